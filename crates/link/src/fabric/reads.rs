//! [`Reads`]: transfers out of the memory of peers, cut into chunks that the network reads.
//!
//! A chunk is contiguous on both sides. Of each peer a few are under way at a time, of all together a bounded number;
//! but one of each peer always may be, so peers that compute, and serve no reads meanwhile, hold up nobody else. Peers
//! take turns, and the transfers of one peer follow each other in the order in which they began.
//!
//! The network breaks connections that nobody but itself knows of: chunks end with errors then, and are read again
//! after a pause. A transfer ends as *unreachable* when several such rounds in a row brought nothing, and its data goes
//! another way.
//!
//! A chunk keeps its number until the network has ended it, whatever became of its transfer, so the end of a chunk is
//! never taken for that of another, and memory stays in use as long as the network may write to it. Invariant: a
//! transfer of which a chunk is under way is in the table, so its end is told after the last of them has ended.

use super::network::Token;
use crate::memory::IoBuffer;
use std::collections::{HashMap, VecDeque};
use std::mem;
use std::time::Duration;
use tidegate_flow::{Instant, PeerId};
use tidegate_message::{Buffer, RemoteMemory, Span, TransferId, TransferStatus};

/// How transfers are cut, and how much of them may be under way (R §3.2 bounds a message, §4.1 a node).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunking {
    /// Most bytes of a chunk.
    pub bytes: usize,
    /// Chunks of one peer that may be under way.
    pub per_peer: usize,
    /// Chunks that may be under way in all, beside one of each peer.
    pub shared: usize,
}

impl Chunking {
    /// Unless the user says otherwise.
    pub const USUAL: Chunking = Chunking { bytes: 256 << 10, per_peer: 8, shared: 64 };
}

impl Default for Chunking {
    fn default() -> Self {
        Chunking::USUAL
    }
}

/// Rounds without any success after which a transfer is given up.
const ROUNDS_MOST: u32 = 8;
/// The pause after a chunk that the network did not take.
const PAUSE_NOT_TAKEN: Duration = Duration::from_micros(100);
/// The pause after the first round without success. It doubles with each.
const PAUSE_FIRST: Duration = Duration::from_millis(1);

/// What is to be read next.
#[derive(Debug)]
pub struct Chunk {
    /// Its name.
    pub token: Token,
    /// Where it comes from.
    pub from: RemoteMemory,
    /// Where it goes.
    pub into: IoBuffer,
}

/// A part of a transfer.
#[derive(Clone, Copy, Debug)]
struct Part {
    from: RemoteMemory,
    /// Where it goes in the transfer's memory.
    position: usize,
}

/// A part that the network reads.
#[derive(Debug)]
struct UnderWay {
    transfer: TransferId,
    part: Part,
    /// The round of its transfer in which it began.
    round: u32,
}

#[derive(Debug)]
struct Transfer {
    /// `None`: its place has gone to another, who has nothing to do with it.
    peer: Option<PeerId>,
    from: VecDeque<RemoteMemory>,
    into: IoBuffer,
    /// Where the first of `from` goes.
    position: usize,
    /// Parts that are to be read again.
    again: Vec<Part>,
    under_way: usize,
    /// Failures count once per round.
    round: u32,
    /// Rounds without success in a row.
    failures: u32,
    /// It stands in its peer's line.
    is_waiting: bool,
    /// It ends so, with the last of its chunks: nothing more of it is read.
    verdict: Option<TransferStatus>,
}

impl Transfer {
    fn has_next(&self) -> bool {
        self.verdict.is_none() && (!self.again.is_empty() || !self.from.is_empty())
    }

    /// The next part, of so many bytes at most.
    fn next_part(&mut self, most: usize) -> Option<Part> {
        if let Some(part) = self.again.pop() {
            return Some(part);
        }
        let piece = self.from.front_mut()?;
        let wanted = usize::try_from(piece.span.length).unwrap_or(usize::MAX).min(most);
        let room = self.into.len().saturating_sub(self.position).min(wanted);
        let length = self.into.spans_of(self.position, room).next()?.length;
        let part = Part {
            from: RemoteMemory { key: piece.key, span: Span { address: piece.span.address, length } },
            position: self.position,
        };
        self.position += length as usize;
        piece.span = Span { address: piece.span.address.wrapping_add(length), length: piece.span.length - length };
        if piece.span.length == 0 {
            self.from.pop_front();
        }
        Some(part)
    }
}

/// The transfers of one peer.
#[derive(Debug, Default)]
struct Line {
    /// Those that have something to begin, the oldest first.
    waiting: VecDeque<TransferId>,
    under_way: usize,
    /// Nothing begins before this.
    pause_until: Instant,
    /// A transfer was given up: there will be no other.
    is_broken: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Reads {
    chunking: Chunking,
    transfers: HashMap<TransferId, Transfer>,
    lines: HashMap<PeerId, Line>,
    /// Peers with something to begin, in turn. A peer is here once.
    turns: VecDeque<PeerId>,
    /// What the network reads, by number, and how often each number has been used.
    chunks: Vec<(u32, Option<UnderWay>)>,
    free: Vec<u32>,
    ended: VecDeque<(TransferId, TransferStatus)>,
}

impl Reads {
    /// Cuts transfers so from now on.
    pub fn set_chunking(&mut self, chunking: Chunking) {
        self.chunking = chunking;
    }

    /// Begins a transfer: `from`, the pieces in order, to `into` from its beginning. `false`: the pieces are longer
    /// than the memory, there is nothing to read, or reading from this peer [does not work](Self::is_broken).
    pub fn begin(&mut self, id: TransferId, peer: PeerId, from: &[RemoteMemory], into: IoBuffer) -> bool {
        let sum = from.iter().try_fold(0_u64, |sum, piece| sum.checked_add(piece.span.length));
        if sum.is_none_or(|sum| sum == 0 || sum > into.len() as u64) || self.is_broken(peer) {
            return false;
        }
        let from = from.iter().copied().filter(|piece| piece.span.length > 0).collect();
        let (position, under_way, round, failures) = (0, 0, 0, 0);
        let (again, is_waiting, verdict) = (Vec::new(), false, None);
        let transfer =
            Transfer { peer: Some(peer), from, into, position, again, under_way, round, failures, is_waiting, verdict };
        self.transfers.insert(id, transfer);
        self.wait(id, peer, false);
        true
    }

    /// A transfer has something to begin.
    fn wait(&mut self, id: TransferId, peer: PeerId, is_first: bool) {
        let Some(transfer) = self.transfers.get_mut(&id) else { return };
        if mem::replace(&mut transfer.is_waiting, true) {
            return;
        }
        let line = self.lines.entry(peer).or_default();
        if line.waiting.is_empty() {
            self.turns.push_back(peer);
        }
        match is_first {
            true => line.waiting.push_front(id),
            false => line.waiting.push_back(id),
        }
    }

    /// Peers with something to begin.
    pub fn turns(&self) -> usize {
        self.turns.len()
    }

    /// The next of them; it goes behind the others.
    pub fn next_peer(&mut self) -> Option<PeerId> {
        let peer = self.turns.pop_front()?;
        self.turns.push_back(peer);
        Some(peer)
    }

    /// The next chunk to read from a peer, if it may begin now. It counts as under way.
    pub fn next_chunk(&mut self, peer: PeerId, now: Instant) -> Option<Chunk> {
        let line = self.lines.get(&peer)?;
        if now < line.pause_until || !self.may_begin(line) {
            return None;
        }
        let line = self.lines.get_mut(&peer)?;
        let id = *line.waiting.front()?;
        let transfer = self.transfers.get_mut(&id)?;
        let part = transfer.next_part(self.chunking.bytes)?;
        if !transfer.has_next() {
            transfer.is_waiting = false;
            line.waiting.pop_front();
        }
        line.under_way += 1;
        transfer.under_way += 1;
        let into = transfer.into.slice(part.position, part.from.span.length as usize);
        let chunk = UnderWay { transfer: id, part, round: transfer.round };
        if line.waiting.is_empty() {
            self.turns.retain(|other| *other != peer);
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.chunks.push((0, None));
            self.chunks.len() as u32 - 1
        });
        let (uses, place) = &mut self.chunks[number as usize];
        *uses = uses.wrapping_add(1);
        *place = Some(chunk);
        Some(Chunk { token: Token(u64::from(*uses) << 32 | u64::from(number)), from: part.from, into })
    }

    /// The chunk of this name, which is under way no longer. `None`: there is none.
    fn take(&mut self, Token(token): Token) -> Option<UnderWay> {
        let number = token as u32;
        let (uses, place) = self.chunks.get_mut(number as usize)?;
        if *uses != (token >> 32) as u32 {
            return None;
        }
        let chunk = place.take()?;
        self.free.push(number);
        let transfer = self.transfers.get_mut(&chunk.transfer)?;
        transfer.under_way -= 1;
        if let Some(line) = transfer.peer.and_then(|peer| self.lines.get_mut(&peer)) {
            line.under_way -= 1;
        }
        Some(chunk)
    }

    /// The network did not take a chunk: it is to be tried again.
    pub fn put_back(&mut self, token: Token, now: Instant) {
        let Some(chunk) = self.take(token) else { return };
        let Some(transfer) = self.transfers.get_mut(&chunk.transfer) else { return };
        transfer.again.push(chunk.part);
        let Some(peer) = transfer.peer else { return };
        if let Some(line) = self.lines.get_mut(&peer) {
            line.pause_until = line.pause_until.max(now + PAUSE_NOT_TAKEN);
        }
        self.wait(chunk.transfer, peer, true);
    }

    /// A chunk has ended. Returns the peer if it has failed.
    pub fn handle_ended(&mut self, token: Token, has_failed: bool, now: Instant) -> Option<PeerId> {
        let UnderWay { transfer: id, part, round } = self.take(token)?;
        let transfer = self.transfers.get_mut(&id)?;
        let Some(peer) = transfer.peer else {
            self.end_if_over(id);
            return None;
        };
        match has_failed {
            false => transfer.failures = 0,
            true => {
                transfer.again.push(part);
                if round == transfer.round {
                    transfer.round += 1;
                    transfer.failures += 1;
                    let pause = PAUSE_FIRST * (1 << transfer.failures.min(ROUNDS_MOST));
                    if let Some(line) = self.lines.get_mut(&peer) {
                        line.pause_until = line.pause_until.max(now + pause);
                    }
                }
                if transfer.failures >= ROUNDS_MOST {
                    self.lines.entry(peer).or_default().is_broken = true;
                    self.end_peer(peer);
                    return Some(peer);
                }
            }
        }
        match transfer.has_next() {
            true => self.wait(id, peer, has_failed),
            false => self.leave_line(id, peer),
        }
        self.end_if_over(id);
        has_failed.then_some(peer)
    }

    /// A transfer has nothing more to begin.
    fn leave_line(&mut self, id: TransferId, peer: PeerId) {
        let Some(transfer) = self.transfers.get_mut(&id) else { return };
        if !mem::take(&mut transfer.is_waiting) {
            return;
        }
        let Some(line) = self.lines.get_mut(&peer) else { return };
        line.waiting.retain(|other| *other != id);
        if line.waiting.is_empty() {
            self.turns.retain(|other| *other != peer);
        }
    }

    /// Tells the end of a transfer that has nothing left to do.
    fn end_if_over(&mut self, id: TransferId) {
        let Some(transfer) = self.transfers.get(&id) else { return };
        if transfer.under_way == 0 && !transfer.has_next() {
            self.ended.push_back((id, transfer.verdict.unwrap_or(TransferStatus::Done)));
            self.transfers.remove(&id);
        }
    }

    /// Stops a transfer. `false`: the network still reads; its end will be told.
    pub fn cancel(&mut self, id: TransferId) -> bool {
        let Some(transfer) = self.transfers.get_mut(&id) else {
            // Its end was about to be told.
            self.ended.retain(|(ended, _)| *ended != id);
            return true;
        };
        let (peer, is_idle) = (transfer.peer, transfer.under_way == 0);
        transfer.verdict = Some(TransferStatus::Failed);
        if let Some(peer) = peer {
            self.leave_line(id, peer);
        }
        if is_idle {
            self.transfers.remove(&id);
        }
        is_idle
    }

    /// Nothing more is read from a peer: its transfers end, as soon as the network is done with them.
    pub fn end_peer(&mut self, peer: PeerId) {
        let ids = self.transfers.iter().filter(|(_, transfer)| transfer.peer == Some(peer));
        for id in ids.map(|(id, _)| *id).collect::<Vec<_>>() {
            if let Some(transfer) = self.transfers.get_mut(&id) {
                transfer.verdict.get_or_insert(TransferStatus::Unreachable);
            }
            self.leave_line(id, peer);
            self.end_if_over(id);
        }
    }

    /// Whether a transfer from this peer was given up: its data, and all later data, goes another way.
    pub fn is_broken(&self, peer: PeerId) -> bool {
        self.lines.get(&peer).is_some_and(|line| line.is_broken)
    }

    /// The place of a peer goes to another.
    pub fn forget(&mut self, peer: PeerId) {
        self.end_peer(peer);
        self.lines.remove(&peer);
        // Chunks that are under way end without a word to the next owner of the place.
        for transfer in self.transfers.values_mut().filter(|transfer| transfer.peer == Some(peer)) {
            transfer.peer = None;
        }
    }

    /// The next transfer that has ended.
    pub fn poll_ended(&mut self) -> Option<(TransferId, TransferStatus)> {
        self.ended.pop_front()
    }

    /// Whether anything is being read, or is to be.
    #[inline]
    pub fn is_busy(&self) -> bool {
        !self.transfers.is_empty() || !self.ended.is_empty()
    }

    /// When the next chunk may begin that waits for a pause only, and not until others have ended.
    pub fn next_begin(&self) -> Option<Instant> {
        let lines = self.turns.iter().filter_map(|peer| self.lines.get(peer));
        lines.filter(|line| self.may_begin(line)).map(|line| line.pause_until).min()
    }

    /// Whether there is room for one more chunk of this peer.
    fn may_begin(&self, line: &Line) -> bool {
        let shared = self.chunks.len() - self.free.len();
        line.under_way == 0 || (line.under_way < self.chunking.per_peer && shared < self.chunking.shared)
    }
}
