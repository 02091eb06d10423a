//! Bulk data between the memories of two processes, by `process_vm_readv` and `process_vm_writev`: one copy, no
//! staging.
//!
//! Whether the system permits it depends on the user, on the ptrace policy and on the container, so it is tried once
//! per connection: each endpoint's segment shows a random number and where its own memory holds it, and the peer
//! tries to read it there. Where Yama restricts ptrace to ancestors (`ptrace_scope` 1), every endpoint that may use
//! direct transfers first permits them with `PR_SET_PTRACER_ANY`; that opens its memory to other processes of the
//! same user, as it would be without Yama.
//!
//! A process id that died and was reused could name the wrong memory; departures are noticed long before ids come
//! round.

use super::segment::Header;
use std::io;
use std::sync::atomic::Ordering;
use tidegate_message::Span;

/// Pieces per system call (`IOV_MAX`).
const PIECES: usize = 1024;

/// Which way the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the peer's memory to ours.
    Read,
    /// From ours to the peer's.
    Write,
}

/// Permits what Yama's middle setting would forbid. Harmless where there is no Yama.
pub(crate) fn permit() {
    let restricted =
        std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").is_ok_and(|scope| scope.trim() == "1");
    if restricted {
        // SAFETY: sets an attribute of this process; takes no pointers.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
    }
}

/// Tries to read the peer's memory. Errors say why not and what would help.
pub(crate) fn probe(pid: u32, header: &Header) -> Result<(), String> {
    let expected = header.cookie.load(Ordering::Relaxed);
    let remote = Span { address: header.cookie_address.load(Ordering::Relaxed), length: 8 };
    let mut found = [0; 8];
    let local = Span { address: found.as_mut_ptr() as u64, length: 8 };
    // SAFETY: `local` is `found`, which lives through the call and is not otherwise used meanwhile.
    let copied = unsafe { Copier::default().copy(Direction::Read, pid, [local].into_iter(), &[remote]) };
    match copied {
        Ok(()) if u64::from_ne_bytes(found) == expected => Ok(()),
        Ok(()) => Err(format!("pid {pid} is another process here, so the processes are in different containers")),
        Err(error) => Err(format!(
            "process_vm_readv: {error}; allow it with ptrace_scope 0 or 1 (sysctl kernel.yama.ptrace_scope), in a \
             container with --cap-add SYS_PTRACE"
        )),
    }
}

/// Copies between processes; keeps its lists of pieces from call to call.
#[derive(Debug, Default)]
pub(crate) struct Copier {
    local: Vec<libc::iovec>,
    remote: Vec<libc::iovec>,
}

// SAFETY: the lists are empty of meaning between calls.
unsafe impl Send for Copier {}

impl Copier {
    /// Copies all bytes of `remote`, in order, from or to `local`, which must have as many.
    ///
    /// # Safety
    /// `local` must be memory that may be written to (for [`Direction::Read`]) or read, with nobody else using it
    /// meanwhile. Nothing is asked of `remote`: what is not mapped there is an error, and other damage is the other
    /// process's affair.
    pub unsafe fn copy(
        &mut self,
        direction: Direction,
        pid: u32,
        local: impl Iterator<Item = Span>,
        remote: &[Span],
    ) -> io::Result<()> {
        fill(&mut self.local, local);
        fill(&mut self.remote, remote.iter().copied());
        let (mut local, mut remote) = (&mut self.local[..], &mut self.remote[..]);
        while !local.is_empty() && !remote.is_empty() {
            let (ours, theirs) = (local.len().min(PIECES), remote.len().min(PIECES));
            let call = match direction {
                Direction::Read => libc::process_vm_readv,
                Direction::Write => libc::process_vm_writev,
            };
            // SAFETY: the lists have at least as many entries as given; the caller vouches for our memory they name.
            let count = unsafe { call(pid as libc::pid_t, local.as_ptr(), ours as _, remote.as_ptr(), theirs as _, 0) };
            match count {
                // Transfers may stop anywhere, for signals or at 2 GiB; nothing at all means that the next byte is
                // not there.
                1.. => {
                    local = advance(local, count as usize);
                    remote = advance(remote, count as usize);
                }
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                _ => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
        if local.is_empty() && remote.is_empty() { Ok(()) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }
}

fn fill(list: &mut Vec<libc::iovec>, spans: impl Iterator<Item = Span>) {
    list.clear();
    list.extend(
        spans
            .filter(|span| span.length > 0)
            .map(|span| libc::iovec { iov_base: span.address as *mut libc::c_void, iov_len: span.length as usize }),
    );
}

/// What is left of a list after `count` bytes.
fn advance(mut list: &mut [libc::iovec], mut count: usize) -> &mut [libc::iovec] {
    while let Some(first) = list.first_mut() {
        if count < first.iov_len {
            first.iov_base = first.iov_base.wrapping_byte_add(count);
            first.iov_len -= count;
            return list;
        }
        count -= first.iov_len;
        list = &mut list[1..];
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of `bytes` in pieces of `size`.
    fn pieces(bytes: &mut [u8], size: usize) -> Vec<Span> {
        let span = |part: &mut [u8]| Span { address: part.as_mut_ptr() as u64, length: part.len() as u64 };
        bytes.chunks_mut(size).map(span).collect()
    }

    #[test]
    fn more_pieces_than_a_call_takes_cut_differently_on_both_sides() {
        let mut source: Vec<u8> = (0..10_000_u32).map(|at| (at % 251) as u8).collect();
        let mut target = vec![0; source.len()];
        let (from, into) = (pieces(&mut source, 3), pieces(&mut target, 7));
        let pid = std::process::id();
        // SAFETY: `into` is the parts of `target`, which nothing else uses until the copy is done.
        unsafe { Copier::default().copy(Direction::Read, pid, into.into_iter(), &from) }.unwrap();
        assert_eq!(source, target);
        target.fill(1);
        let (from, into) = (pieces(&mut source, 5), pieces(&mut target, 10_000));
        // SAFETY: as above, the other way round.
        unsafe { Copier::default().copy(Direction::Write, pid, from.into_iter(), &into) }.unwrap();
        assert_eq!(source, target);
    }

    #[test]
    fn addresses_that_are_not_there_and_processes_that_are_gone_are_errors() {
        let mut bytes = [7; 16];
        let copy = |pid, local: Vec<Span>, remote: Span| {
            // SAFETY: `local` is always `bytes`.
            unsafe { Copier::default().copy(Direction::Read, pid, local.into_iter(), &[remote]) }
        };
        let pid = std::process::id();
        let local = pieces(&mut bytes, 16);
        let bad = copy(pid, local.clone(), Span { address: 8, length: 16 }).unwrap_err();
        assert_eq!(bad.raw_os_error(), Some(libc::EFAULT));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let gone = copy(child.id(), local.clone(), local[0]).unwrap_err();
        assert_eq!(gone.raw_os_error(), Some(libc::ESRCH));
        let short = copy(pid, local.clone(), Span { length: 8, ..local[0] }).unwrap_err();
        assert_eq!(short.kind(), io::ErrorKind::InvalidInput, "both sides must have as many bytes");
    }
}
