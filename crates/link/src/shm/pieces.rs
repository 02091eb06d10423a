//! Many short pieces of a peer's memory in few system calls.
//!
//! For each place that a call names, the system takes a third of a microsecond to find its page, and as long as for
//! some 3 KiB to copy. So:
//!
//! - **Reads.** Pieces of one region that lie close to each other are read as one, with what lies between, which the
//!   region shows as well, and are copied to where they belong from there. Of a row of integers with gaps the system
//!   sees a few long pieces. Each call begins with the cookie, as all reads do (see `bulk`).
//! - **Writes.** Between the pieces nothing may be written. So each is a place of its own, unless it follows right
//!   behind the one before; but all are written in one call of `process_vm_writev`, behind the peer's guard pages (see
//!   `guard_pages`). Where that cannot be, or there are one or two, each is written alone, through `/proc/<pid>/mem`.
//!
//! A call ends at the first place that is not there. The pieces before are done; the one that is not there is found
//! out, if need be by a call in which nothing is joined, and is left to another way; and the rest is tried again.

use super::bulk::{COOKIE_BYTES, Copier, ProbedMemory, TransferError, stranger};
use super::guard_pages::GUARD_PAGES;
use super::iovecs::{PIECES, entry, fill, uninterrupted};
use crate::memory::IoBuffer;
use std::ops::Range;
use tidegate_message::{BatchPiece, Buffer, Span, TransferStatus};

/// Bytes between two pieces that are read as one. The system copies so many in the time that another place takes.
const GAP: u64 = 1024;
/// Bytes that are read in one call, unless one piece has more.
const GATHERED_BYTES: usize = 64 << 10;

/// Pieces that are written in one call. For fewer the guard pages take longer than a call for each.
const TOGETHER_LEAST: usize = 3;

/// Pieces of a region that are read as one.
#[derive(Debug)]
struct Joined {
    key: u64,
    /// Where they lie at the peer.
    start: u64,
    end: u64,
    /// Where they are put.
    at: usize,
}

impl Joined {
    /// Where what is read next is put.
    fn end_at(&self) -> usize {
        self.at + (self.end - self.start) as usize
    }

    /// Whether a piece that begins there may be read with these.
    fn is_close_to(&self, key: u64, start: u64) -> bool {
        self.key == key && (self.start..=self.end.saturating_add(GAP)).contains(&start)
    }
}

/// Where a piece of the list is put by a read.
#[derive(Debug)]
struct Put {
    piece: usize,
    /// Which of the joined it belongs to, and where it begins there.
    joined: usize,
    offset: usize,
}

/// Copies pieces; keeps its lists from call to call.
#[derive(Debug, Default)]
pub(super) struct PieceCopier {
    local: Vec<libc::iovec>,
    remote: Vec<libc::iovec>,
    joined: Vec<Joined>,
    puts: Vec<Put>,
    /// What is read, before it is copied to where it belongs.
    gathered: Vec<u8>,
    /// System calls so far that copied several pieces, or tried to.
    calls: u64,
}

// SAFETY: between calls nothing follows the pointers in the lists: each call fills them anew.
unsafe impl Send for PieceCopier {}

impl PieceCopier {
    /// Reads pieces of a peer's memory. Their status is `Pending` before for those that are to be read, and afterwards
    /// for those that have to go another way. Returns how many of these faulted in the peer's memory; an error says why
    /// nothing can be read any more.
    pub(super) fn read(
        &mut self,
        memory: &ProbedMemory,
        pieces: &mut [BatchPiece<IoBuffer>],
    ) -> Result<usize, TransferError> {
        let (mut next, mut joined_from, mut faults) = (0, 0, 0);
        while next < pieces.len() {
            let is_joining = next >= joined_from;
            let until = if is_joining { pieces.len() } else { joined_from };
            let planned = self.plan_read(pieces, next..until, is_joining);
            let copied = if self.puts.is_empty() { 0 } else { self.read_planned(memory)? };
            match self.put(pieces, copied) {
                None => next = planned,
                // Which of those that were joined is not there?
                Some(Put { piece, joined, .. }) if is_joining => {
                    let last = self.puts.iter().rev().find(|put| put.joined == joined);
                    (next, joined_from) = (piece, last.map_or(piece, |last| last.piece) + 1);
                }
                Some(Put { piece, .. }) => (next, faults) = (piece + 1, faults + 1),
            }
        }
        Ok(faults)
    }

    /// Lists what the next call reads of these pieces. Returns the first that it leaves out.
    fn plan_read(&mut self, pieces: &[BatchPiece<IoBuffer>], range: Range<usize>, is_joining: bool) -> usize {
        self.joined.clear();
        self.puts.clear();
        let end = range.end;
        for piece in range {
            let BatchPiece { there, status, .. } = &pieces[piece];
            let (key, start) = (there.key, there.span.address);
            let Some(end) = start.checked_add(there.span.length) else { continue };
            if *status != TransferStatus::Pending {
                continue;
            }
            let (places, length) = (self.joined.len(), (end - start) as usize);
            match self.joined.last_mut() {
                // What follows close behind waits for the next call rather than take a place of its own.
                Some(last) if is_joining && last.is_close_to(key, start) => {
                    if last.at as u64 + (end.max(last.end) - last.start) > GATHERED_BYTES as u64 {
                        return piece;
                    }
                    last.end = last.end.max(end);
                }
                Some(last) if last.end_at() + length > GATHERED_BYTES || places + 1 == PIECES => return piece,
                last => {
                    let at = last.map_or(0, |last| last.end_at());
                    self.joined.push(Joined { key, start, end, at });
                }
            }
            let joined = self.joined.len() - 1;
            self.puts.push(Put { piece, joined, offset: (start - self.joined[joined].start) as usize });
        }
        end
    }

    /// Reads what is listed. Returns how many bytes of it have come.
    fn read_planned(&mut self, memory: &ProbedMemory) -> Result<usize, TransferError> {
        let bytes = self.joined.last().map_or(0, Joined::end_at);
        if self.gathered.len() < bytes {
            self.gathered.resize(bytes.max(GATHERED_BYTES), 0);
        }
        let mut found = 0_u64;
        let found_at = Span { address: (&raw mut found) as u64, length: COOKIE_BYTES as u64 };
        let gathered = Span { address: self.gathered.as_mut_ptr() as u64, length: bytes as u64 };
        fill(&mut self.local, [found_at, gathered].into_iter());
        let places = self.joined.iter().map(|joined| Span { address: joined.start, length: joined.end - joined.start });
        fill(&mut self.remote, [memory.cookie()].into_iter().chain(places));
        let (pid, local, remote) = (memory.pid() as libc::pid_t, &self.local, &self.remote);
        let (ours, theirs) = (local.len() as libc::c_ulong, remote.len() as libc::c_ulong);
        self.calls += 1;
        // SAFETY: the lists have as many entries as given, and name nothing of ours but `found` and the first bytes of
        // `gathered`, which are there and which nothing else uses until the call is over.
        let count =
            uninterrupted(|| unsafe { libc::process_vm_readv(pid, local.as_ptr(), ours, remote.as_ptr(), theirs, 0) });
        let count = count.map_err(|error| match error.raw_os_error() {
            // Nothing was copied, so it is the cookie that is not there.
            Some(libc::EFAULT) => TransferError::Unreachable(stranger()),
            _ => TransferError::Unreachable(error),
        })?;
        // SAFETY: `found` is ours; the system has written to it behind the compiler's back.
        if unsafe { (&raw const found).read_volatile() } != memory.number() {
            return Err(TransferError::Unreachable(stranger()));
        }
        Ok(count.saturating_sub(COOKIE_BYTES))
    }

    /// Copies the pieces that have come to where they belong. Returns the first of the others.
    fn put(&mut self, pieces: &mut [BatchPiece<IoBuffer>], copied: usize) -> Option<Put> {
        for (at, &Put { piece, joined, offset }) in self.puts.iter().enumerate() {
            let BatchPiece { there, here, status } = &mut pieces[piece];
            let from = self.joined[joined].at + offset;
            let Some(part) = self.gathered[..copied].get(from..from + there.span.length as usize) else {
                return Some(self.puts.remove(at));
            };
            here.write(0, part);
            *status = TransferStatus::Done;
        }
        None
    }

    /// Writes pieces to a peer's memory, like [`read`](Self::read). A piece of ours that cannot be read has `Failed`.
    pub(super) fn write(
        &mut self,
        memory: &mut ProbedMemory,
        copier: &mut Copier,
        pieces: &mut [BatchPiece<IoBuffer>],
    ) -> Result<usize, TransferError> {
        let (mut next, mut faults) = (0, 0);
        let wanted = pieces.iter().filter(|piece| piece.status == TransferStatus::Pending).count();
        while next < pieces.len() {
            // Where there are no guard pages any more each piece goes alone.
            let (planned, undone) = match memory.guards() {
                Some(guards) if wanted >= TOGETHER_LEAST => self.write_together(memory, guards, pieces, next),
                _ => (next + 1, Some(next)),
            };
            let Some(piece) = undone else {
                next = planned;
                continue;
            };
            next = piece + 1;
            let BatchPiece { there, here, status } = &mut pieces[piece];
            if *status != TransferStatus::Pending {
                continue;
            }
            let (from, to) = (here.spans(), [there.span].into_iter());
            // SAFETY: the spans are those of an `IoBuffer`, whose maker promised that memory for reading.
            match unsafe { copier.write(memory, from, to) } {
                Ok(()) => *status = TransferStatus::Done,
                Err(TransferError::Fault(_)) => *status = TransferStatus::Failed,
                Err(TransferError::PeerFault(_)) => faults += 1,
                Err(error @ TransferError::Unreachable(_)) => return Err(error),
            }
        }
        Ok(faults)
    }

    /// Writes as many of these pieces as one call takes, from the `next` on. Returns the first that it has left out,
    /// and the first that was not written: that is to be written alone.
    fn write_together(
        &mut self,
        memory: &mut ProbedMemory,
        guards: [u64; GUARD_PAGES],
        pieces: &mut [BatchPiece<IoBuffer>],
        next: usize,
    ) -> (usize, Option<usize>) {
        let byte = 0_u8;
        let ours = Span { address: (&raw const byte) as u64, length: 1 };
        fill(&mut self.local, [ours; GUARD_PAGES].into_iter());
        fill(&mut self.remote, guards.map(|address| Span { address, length: 1 }).into_iter());
        let mut planned = next;
        for BatchPiece { there, here, status } in &pieces[next..] {
            if *status == TransferStatus::Pending {
                if self.local.len() + here.spans().count() > PIECES || self.remote.len() == PIECES {
                    break;
                }
                here.spans().for_each(|span| join(&mut self.local, span));
                join(&mut self.remote, there.span);
            }
            planned += 1;
        }
        if planned == next {
            // It has more pieces itself than a call takes.
            return (next + 1, Some(next));
        }
        let (pid, local, remote) = (memory.pid() as libc::pid_t, &self.local, &self.remote);
        let (ours, theirs) = (local.len() as libc::c_ulong, remote.len() as libc::c_ulong);
        self.calls += 1;
        // SAFETY: the lists have as many entries as given; those of ours are memory of `byte` and of `IoBuffer`s, whose
        // makers promised it for reading. Where it ends up is not in this process, and behind the guard pages.
        let count =
            uninterrupted(|| unsafe { libc::process_vm_writev(pid, local.as_ptr(), ours, remote.as_ptr(), theirs, 0) });
        let Some(mut copied) = count.ok().and_then(|count| count.checked_sub(GUARD_PAGES)) else {
            // The system does not let us, or this is not the peer's memory: the other way finds out.
            memory.give_up_guards();
            return (planned, Some(next));
        };
        for (at, BatchPiece { there, status, .. }) in pieces[next..planned].iter_mut().enumerate() {
            if *status != TransferStatus::Pending {
                continue;
            }
            match copied.checked_sub(there.span.length as usize) {
                Some(left) => copied = left,
                None => return (planned, Some(next + at)),
            }
            *status = TransferStatus::Done;
        }
        (planned, None)
    }

    /// How many system calls there were that copied several pieces, or tried to.
    #[cfg(all(test, not(loom)))]
    pub(super) fn calls(&self) -> u64 {
        self.calls
    }
}

/// Adds a span to a list, to the last one if it follows right behind. The first entries are those of the guard pages.
fn join(list: &mut Vec<libc::iovec>, span: Span) {
    let is_first = list.len() == GUARD_PAGES;
    match list.last_mut() {
        Some(last) if !is_first && last.iov_base as u64 + last.iov_len as u64 == span.address => {
            last.iov_len += span.length as usize;
        }
        _ => list.push(entry(span)),
    }
}

#[cfg(all(test, not(miri), not(loom)))]
mod tests;
