//! Bulk data between the memories of two processes: one copy, no bounce buffer. Reads by `process_vm_readv`, writes
//! through `/proc/<pid>/mem`.
//!
//! Whether the system permits it depends on the user, on the ptrace policy and on the container, so it is tried once
//! per connection. Where Yama restricts ptrace to ancestors (`ptrace_scope` 1), every endpoint that may use direct
//! transfers first permits them with `PR_SET_PTRACER_ANY`; that opens its memory to other processes of the same user,
//! as it would be without Yama.
//!
//! **Never another process's memory.** A process id may be reused, and a process may execute another program: the same
//! id then stands for another address space. So each endpoint keeps a random number in memory, its *cookie*, at an
//! address that its segment shows together with the number. A read takes the cookie along: the first piece of every
//! system call is the peer's cookie, and the kernel looks the address space up once per call, so what the call brought
//! is that peer's memory if the cookie is right, and counts for nothing if it is not. For a write that would be too
//! late. It goes through a descriptor of `/proc/<pid>/mem`, which belongs to an address space, not to a process id; it
//! is opened at the first write and kept once the cookie has been read through it. When the peer ends or executes
//! another program, a write through it moves nothing. (Several short pieces are written by process id, behind pages
//! that no other address space has: `guard_pages`.)
//!
//! **Memory that only its own process reaches.** The system copies nothing out of some memory, although its process may
//! use it (`memfd_secret`, mappings of devices), and says what it says of memory that is not there. So where the fault
//! is the peer's, the transfer goes another way, in which the peer copies by itself; where it is ours, the operation
//! fails. Which of the two it is, the system does not tell: see [`ProbedMemory::whose_fault`]. One such transfer says
//! little about the next, but transfers that fault one after the other are tried ever more rarely (`Faults`).
//!
//! **A process whose first thread has ended** lives, but the system finds no memory under its id any more (`ESRCH`). So
//! an error says that memory cannot be reached, not that the peer is gone: the transfer is done another way, and from
//! then on all of this peer's.

use super::faults::Faults;
use super::guard_pages::GUARD_PAGES;
use super::iovecs::{PIECES, advance, consume, fill, pieces_within, uninterrupted};
use super::lock_file::has_descriptors_to_spare;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use tidegate_message::Span;

pub(super) const COOKIE_BYTES: usize = size_of::<u64>();

/// Permits what Yama's middle setting would forbid. Harmless where there is no Yama.
pub(crate) fn permit() {
    let restricted =
        std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").is_ok_and(|scope| scope.trim() == "1");
    if restricted {
        // SAFETY: sets an attribute of this process; takes no pointers.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
    }
}

/// Why a transfer did not happen.
#[derive(Debug)]
pub(crate) enum TransferError {
    /// An address of ours is wrong.
    Fault(io::Error),
    /// The system does not reach the peer's memory at an address, whether it is wrong or not.
    PeerFault(io::Error),
    /// This peer's memory cannot be reached in this way.
    Unreachable(io::Error),
}

impl From<io::Error> for TransferError {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EFAULT) => TransferError::Fault(error),
            // That is what Linux says of an address of a process whose memory is written through `/proc`.
            Some(libc::EIO) => TransferError::PeerFault(error),
            _ => TransferError::Unreachable(error),
        }
    }
}

/// A peer's memory.
#[derive(Debug)]
pub(crate) struct ProbedMemory {
    pid: u32,
    /// Where its cookie is, and the number that is there.
    cookie: Span,
    number: u64,
    writes: Writes,
    /// Its guard pages, as long as writes may go behind them.
    guards: Option<[u64; GUARD_PAGES]>,
    faults: Faults,
}

/// How to write to it.
#[derive(Debug)]
enum Writes {
    /// Not tried so far.
    Untried,
    /// Through this, which is bound to the address space.
    Through(File),
    /// Not at all.
    Refused,
}

impl ProbedMemory {
    /// Tries to read the memory of the process that has this number at its cookie's address. Errors say why not and
    /// what would help.
    pub fn probe(pid: u32, cookie_address: u64, number: u64) -> Result<ProbedMemory, String> {
        let cookie = Span { address: cookie_address, length: COOKIE_BYTES as u64 };
        let (writes, faults) = (Writes::Untried, Faults::default());
        let memory = ProbedMemory { pid, cookie, number, writes, guards: None, faults };
        // SAFETY: nothing is copied to memory of ours but the cookie.
        match unsafe { Copier::default().read(&memory, [].into_iter(), [].into_iter()) } {
            Ok(()) => Ok(memory),
            Err(TransferError::Unreachable(error)) if error.kind() == io::ErrorKind::InvalidData => {
                Err(format!("pid {pid} is another process here, so the processes are in different containers"))
            }
            Err(TransferError::Unreachable(error) | TransferError::Fault(error) | TransferError::PeerFault(error)) => {
                Err(format!(
                    "process_vm_readv: {error}; allow it with ptrace_scope 0 or 1 (sysctl kernel.yama.ptrace_scope), in a \
                 container with --cap-add SYS_PTRACE"
                ))
            }
        }
    }

    /// The process, for people.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The same, of which it is said that it has guard pages here; 0: none.
    pub fn guarded(self, guards: [u64; GUARD_PAGES]) -> ProbedMemory {
        ProbedMemory { guards: (!guards.contains(&0)).then_some(guards), ..self }
    }

    /// Where its guard pages are, if writes may go behind them.
    pub(super) fn guards(&self) -> Option<[u64; GUARD_PAGES]> {
        self.guards
    }

    /// Writes cannot go behind guard pages.
    pub(super) fn give_up_guards(&mut self) {
        self.guards = None;
    }

    /// Where its cookie is.
    pub(super) fn cookie(&self) -> Span {
        self.cookie
    }

    /// What is there.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Whether to try a transfer: not for a while, where transfers have faulted in this memory.
    pub fn may_try(&mut self) -> bool {
        self.faults.may_try()
    }

    /// A transfer faulted in this memory.
    pub fn note_fault(&mut self) {
        self.faults.note();
    }

    /// A transfer went well.
    pub fn note_success(&mut self) {
        self.faults = Faults::default();
    }

    /// Whether it can be written to. Opens the way there at the first call.
    pub fn is_writable(&mut self) -> bool {
        if matches!(self.writes, Writes::Untried) {
            self.writes = self.open().map_or(Writes::Refused, Writes::Through);
        }
        matches!(self.writes, Writes::Through(_))
    }

    /// A read stopped where nothing more could be copied, and the next byte was to go to `next`. If our memory there
    /// takes a byte of the cookie, which can be read, the fault is the peer's. The peer may have ended meanwhile.
    ///
    /// # Safety
    /// The byte may be written to.
    unsafe fn whose_fault(&self, next: *mut libc::c_void) -> TransferError {
        let into = libc::iovec { iov_base: next, iov_len: 1 };
        let from = libc::iovec { iov_base: self.cookie.address as *mut libc::c_void, iov_len: 1 };
        let fault = io::Error::from_raw_os_error(libc::EFAULT);
        // SAFETY: the lists have an entry each and live through the call; the caller vouches for the byte.
        match unsafe { libc::process_vm_readv(self.pid as libc::pid_t, &into, 1, &from, 1, 0) } {
            1 => TransferError::PeerFault(fault),
            _ => io::Error::last_os_error().into(),
        }
    }

    /// A descriptor of the address space that has the cookie, as long as less than half of our descriptors are in use.
    fn open(&self) -> Option<File> {
        let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{}/mem", self.pid)).ok()?;
        let mut found = [0; COOKIE_BYTES];
        file.read_exact_at(&mut found, self.cookie.address).ok()?;
        // Without this descriptor writes go by message: if few are left, the application may need them more.
        (u64::from_ne_bytes(found) == self.number && has_descriptors_to_spare(&file)).then_some(file)
    }
}

/// Copies between processes; keeps its lists of pieces from call to call.
#[derive(Debug, Default)]
pub(crate) struct Copier {
    local: Vec<libc::iovec>,
    remote: Vec<libc::iovec>,
}

// SAFETY: between calls nobody follows the pointers in the lists: each call fills them anew.
unsafe impl Send for Copier {}

impl Copier {
    /// Copies all bytes of `remote`, in order, out of a peer's memory to `local`, which must have as many. After an
    /// error some bytes of `local` may have changed.
    ///
    /// # Safety
    /// `local` must be memory that may be written to, with nobody else using it meanwhile. Nothing is asked of
    /// `remote`: what is not mapped there is an error.
    pub unsafe fn read(
        &mut self,
        memory: &ProbedMemory,
        local: impl Iterator<Item = Span>,
        remote: impl Iterator<Item = Span>,
    ) -> Result<(), TransferError> {
        let mut found = 0_u64;
        let found_at = Span { address: (&raw mut found) as u64, length: COOKIE_BYTES as u64 };
        fill(&mut self.local, [found_at].into_iter().chain(local));
        fill(&mut self.remote, [memory.cookie].into_iter().chain(remote));
        let (cookie_to, cookie_from) = (self.local[0], self.remote[0]);
        let (mut local, mut remote) = (&mut self.local[..], &mut self.remote[..]);
        loop {
            // The place before what is left belongs to a piece that is done, or to the last call's cookie.
            (local[0], remote[0]) = (cookie_to, cookie_from);
            let (ours, theirs) = (local.len().min(PIECES), remote.len().min(PIECES));
            let pid = memory.pid as libc::pid_t;
            // SAFETY: the lists have at least as many entries as given, `found` lives through the call, and the caller
            // vouches for the rest of the memory of ours that they name.
            let count =
                unsafe { libc::process_vm_readv(pid, local.as_ptr(), ours as _, remote.as_ptr(), theirs as _, 0) };
            if count < 0 {
                let error = io::Error::last_os_error();
                match error.raw_os_error() {
                    Some(libc::EINTR) => continue,
                    // Nothing was copied, so it is the cookie that is not there.
                    Some(libc::EFAULT) => return Err(TransferError::Unreachable(stranger())),
                    _ => return Err(error.into()),
                }
            }
            // SAFETY: `found` is ours; the system has written to it behind the compiler's back.
            if unsafe { (&raw const found).read_volatile() } != memory.number {
                return Err(TransferError::Unreachable(stranger()));
            }
            let copied = (count as usize).saturating_sub(COOKIE_BYTES);
            (local, remote) = (advance(local, copied), advance(remote, copied));
            match (local.len(), remote.len()) {
                (1, 1) => return Ok(()),
                (1, _) | (_, 1) => return Err(TransferError::Fault(io::ErrorKind::InvalidInput.into())),
                // Transfers may stop anywhere, for signals or at 2 GiB; nothing at all means that the next byte is not
                // there.
                // SAFETY: the next byte that was to be copied goes there, so another may.
                _ if copied == 0 => return Err(unsafe { memory.whose_fault(local[1].iov_base) }),
                _ => {}
            }
        }
    }

    /// Copies all bytes of `local`, in order, into a peer's memory at `remote`, which must have as many. After an error
    /// some of them may be there.
    ///
    /// # Safety
    /// `local` must be memory that may be read, with nobody writing to it meanwhile. Nothing is asked of `remote`: what
    /// is not mapped there is an error, and other damage is the other process's affair.
    pub unsafe fn write(
        &mut self,
        memory: &mut ProbedMemory,
        local: impl Iterator<Item = Span>,
        remote: impl Iterator<Item = Span>,
    ) -> Result<(), TransferError> {
        if !memory.is_writable() {
            return Err(TransferError::Unreachable(io::ErrorKind::PermissionDenied.into()));
        }
        let Writes::Through(file) = &memory.writes else { return Ok(()) };
        fill(&mut self.local, local);
        let mut left = &mut self.local[..];
        for span in remote {
            let mut position = span.address;
            let end = span.address.checked_add(span.length).ok_or(io::Error::from_raw_os_error(libc::EFAULT))?;
            while position < end {
                let room = usize::try_from(end - position).unwrap_or(usize::MAX);
                let Some(first) = left.first().copied() else {
                    return Err(TransferError::Fault(io::ErrorKind::InvalidInput.into()));
                };
                let (file, at) = (file.as_raw_fd(), position as libc::off_t);
                let count = uninterrupted(|| match pieces_within(left, room) {
                    // SAFETY: the caller vouches for the memory of ours; where it ends up is not in this process.
                    0 => unsafe { libc::pwrite(file, first.iov_base, room, at) },
                    // SAFETY: as above; the list has so many entries.
                    pieces => unsafe { libc::pwritev(file, left.as_ptr(), pieces as _, at) },
                })?;
                // The address space is no more.
                if count == 0 {
                    return Err(TransferError::Unreachable(stranger()));
                }
                position += count as u64;
                left = consume(left, count);
            }
        }
        if left.is_empty() { Ok(()) } else { Err(TransferError::Fault(io::ErrorKind::InvalidInput.into())) }
    }
}

/// What is behind the process id is not the peer's memory.
pub(super) fn stranger() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the memory is not the peer's any more")
}

#[cfg(all(test, not(loom)))]
impl ProbedMemory {
    /// The same with another process's id, as if that had got it since.
    pub(super) fn with_pid(self, pid: u32) -> ProbedMemory {
        ProbedMemory { pid, ..self }
    }

    /// The same with its cookie somewhere else.
    pub(super) fn move_cookie(&mut self, address: u64) {
        self.cookie.address = address;
    }
}

#[cfg(test)]
mod tests {
    use super::super::cookie::Cookie;
    use super::*;
    use std::process::Command;
    use std::ptr;
    use std::sync::atomic::Ordering;

    const NUMBER: u64 = 0x7461_6c65_6e74;

    /// The parts of `bytes` in pieces of `size`.
    fn pieces(bytes: &mut [u8], size: usize) -> Vec<Span> {
        let span = |part: &mut [u8]| Span { address: part.as_mut_ptr() as u64, length: part.len() as u64 };
        bytes.chunks_mut(size).map(span).collect()
    }

    /// Our own memory, as a peer would see it.
    fn own_memory(cookie: &Cookie) -> ProbedMemory {
        ProbedMemory::probe(std::process::id(), cookie.address(), NUMBER).unwrap()
    }

    fn read(memory: &ProbedMemory, local: &[Span], remote: &[Span]) -> Result<(), TransferError> {
        // SAFETY: in each test `local` is parts of a vector that nothing else uses until the copy is done.
        unsafe { Copier::default().read(memory, local.iter().copied(), remote.iter().copied()) }
    }

    fn write(memory: &mut ProbedMemory, local: &[Span], remote: &[Span]) -> Result<(), TransferError> {
        // SAFETY: as in `read`.
        unsafe { Copier::default().write(memory, local.iter().copied(), remote.iter().copied()) }
    }

    #[test]
    fn more_pieces_than_a_call_takes_cut_differently_on_both_sides() {
        let mut source: Vec<u8> = (0..10_000_u32).map(|at| (at % 251) as u8).collect();
        let mut target = vec![0; source.len()];
        let cookie = Cookie::new(NUMBER).unwrap();
        let mut memory = own_memory(&cookie);
        let (from, into) = (pieces(&mut source, 3), pieces(&mut target, 7));
        read(&memory, &into, &from).unwrap();
        assert_eq!(source, target);
        target.fill(1);
        let (from, into) = (pieces(&mut source, 5), pieces(&mut target, 7));
        write(&mut memory, &from, &into).unwrap();
        assert_eq!(source, target);
    }

    #[test]
    fn addresses_that_are_not_there_are_faults_of_those_who_named_them() {
        let mut bytes = [7; 16];
        let cookie = Cookie::new(NUMBER).unwrap();
        let mut memory = own_memory(&cookie);
        let local = pieces(&mut bytes, 16);
        let wrong = Span { address: 8, length: 16 };
        let short = Span { length: 8, ..local[0] };
        let long = Span { length: 24, ..local[0] };
        for remote in [[short], [long]] {
            assert!(matches!(read(&memory, &local, &remote), Err(TransferError::Fault(_))), "{remote:?}");
            assert!(matches!(write(&mut memory, &local, &remote), Err(TransferError::Fault(_))), "{remote:?}");
        }
        let half = Span { length: 8, ..local[0] };
        for (ours, theirs) in [(&local[..], &[wrong][..]), (&local, &[half, Span { length: 8, ..wrong }])] {
            let [outcome, other] = [read(&memory, ours, theirs), write(&mut memory, ours, theirs)];
            assert!(matches!((outcome, other), (Err(TransferError::PeerFault(_)), Err(TransferError::PeerFault(_)))));
            let [outcome, other] = [read(&memory, theirs, ours), write(&mut memory, theirs, ours)];
            assert!(matches!((outcome, other), (Err(TransferError::Fault(_)), Err(TransferError::Fault(_)))));
        }
        read(&memory, &local, &local).unwrap();
    }

    /// fi_tidegate(7): "No bytes are read from or written to another process's memory because of a process id: a read
    /// takes a random number of the peer's along in the same system call and counts only if it is right, a write goes
    /// through a descriptor of /proc/PID/mem that is bound to one address space."
    #[test]
    fn another_address_space_is_never_the_peers() {
        let mut bytes = [7; 16];
        let cookie = Cookie::new(NUMBER).unwrap();
        let mut memory = own_memory(&cookie);
        let local = pieces(&mut bytes, 16);
        write(&mut memory, &local, &local).unwrap();
        // As it is after exec, or when the process id is another's.
        // SAFETY: the page is mapped as long as the cookie.
        unsafe { cookie.0.as_ref() }.store(1, Ordering::Relaxed);
        assert!(matches!(read(&memory, &local, &local), Err(TransferError::Unreachable(_))));
        memory.writes = Writes::Untried;
        assert!(!memory.is_writable());
        assert!(matches!(write(&mut memory, &local, &local), Err(TransferError::Unreachable(_))));
        drop(cookie);
        assert!(matches!(read(&memory, &local, &local), Err(TransferError::Unreachable(_))), "nothing is there");
    }

    #[test]
    fn a_process_that_ends_or_executes_another_program_is_out_of_reach() {
        // The child waits for a line, then becomes another program with the same id, and waits again.
        let mut child = Command::new("sh")
            .args(["-c", "read line; exec sh -c 'echo done; read line'"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        // Any readable word of it serves as its cookie: the start of its stack, which the system shows.
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", child.id())).unwrap();
        let stack = maps.lines().find(|line| line.ends_with("[stack]")).unwrap();
        let end = u64::from_str_radix(stack.split(['-', ' ']).nth(1).unwrap(), 16).unwrap();
        let address = end - 64;
        let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{}/mem", child.id())).unwrap();
        let mut word = [0; 8];
        file.read_exact_at(&mut word, address).unwrap();
        let mut memory = ProbedMemory::probe(child.id(), address, u64::from_ne_bytes(word)).unwrap();
        assert!(memory.is_writable());
        use std::io::{Read, Write};
        input.write_all(b"go\n").unwrap();
        output.read_exact(&mut [0; 4]).unwrap();
        let mut bytes = [7; 16];
        let local = pieces(&mut bytes, 16);
        let gone = write(&mut memory, &local, &[Span { address, length: 16 }]);
        assert!(matches!(gone, Err(TransferError::Unreachable(_))), "{gone:?}");
        drop(input);
        child.wait().unwrap();
        let gone = read(&memory, &local, &[Span { address, length: 16 }]);
        assert!(matches!(gone, Err(TransferError::Unreachable(_))), "{gone:?}");
    }

    #[test]
    fn a_forked_childs_copy_is_not_our_memory() {
        let cookie = Cookie::new(NUMBER).unwrap();
        // SAFETY: the child only waits to be killed.
        let child = unsafe { libc::fork() };
        if child == 0 {
            loop {
                // SAFETY: takes no pointers.
                unsafe { libc::pause() };
            }
        }
        let found = ProbedMemory::probe(child as u32, cookie.address(), NUMBER);
        // SAFETY: our child.
        unsafe { libc::kill(child, libc::SIGKILL) };
        // SAFETY: our child; nobody wants to know how it ended.
        unsafe { libc::waitpid(child, ptr::null_mut(), 0) };
        assert!(found.unwrap_err().contains("another process"));
    }
}
