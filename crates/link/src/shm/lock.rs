//! Locks on a segment's file. The kernel releases them when the holder dies, which is what they are for.
//!
//! They belong to the open file, not to the process, so two endpoints of one process exclude each other as well.
//! `lock_file` says what that means for forked children.
//!
//! There are two kinds. Locks of a byte (`F_OFD_*`) are held for as long as an endpoint lives. The kernel keeps those
//! of a file in a list and walks it for every request, and each peer of the file's owner has one in it. So what is held
//! for microseconds, and taken by every peer, is a lock of the other kind, `flock`, of which a file has one.

use super::address::Address;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// How long a call that can be made again waits for a lock that is held for microseconds, unless its holder is stopped
/// or has lost its processor.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(10);
/// How long a call waits that cannot be made again: closing, claiming a service.
pub(crate) const TIMEOUT_AT_LAST: Duration = Duration::from_millis(200);
/// The first pause between two tries; each is twice as long as the one before, up to the last.
const PAUSE_FIRST: Duration = Duration::from_micros(20);
const PAUSE_LAST: Duration = Duration::from_millis(1);

/// A byte of the file, by its offset; what it stands for is below. The file need not be so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Byte(libc::off_t);

impl Byte {
    /// Held by the owner for the life of the segment.
    pub const LIFE: Byte = Byte(0);

    /// Held by the peer of this address for as long as it may write into the segment. The byte follows from the tag,
    /// which every user may know (`/proc/locks`), and not from the place: a child of a dead process may still hold its
    /// parent's locks when the place goes to another.
    pub fn of(peer: &Address) -> Byte {
        Byte((peer.tag() >> 2) as libc::off_t | 1 << 62)
    }
}

fn request(kind: libc::c_int, byte: Byte) -> libc::flock {
    // SAFETY: `flock` is a C struct of integers, for which zero is a value.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = byte.0;
    lock.l_len = 1;
    lock
}

fn control(file: &File, command: libc::c_int, lock: &mut libc::flock) -> io::Result<()> {
    loop {
        // SAFETY: the descriptor is ours, and `lock` is a valid struct for the length of the call.
        if unsafe { libc::fcntl(file.as_raw_fd(), command, lock as *mut libc::flock) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Takes the lock if nobody has it; returns whether.
pub(crate) fn try_take(file: &File, byte: Byte) -> io::Result<bool> {
    match control(file, libc::F_OFD_SETLK, &mut request(libc::F_WRLCK, byte)) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether somebody else has the lock.
pub(crate) fn is_taken(file: &File, byte: Byte) -> io::Result<bool> {
    let mut lock = request(libc::F_WRLCK, byte);
    control(file, libc::F_OFD_GETLK, &mut lock)?;
    Ok(lock.l_type != libc::F_UNLCK as libc::c_short)
}

/// Releases all locks that this open file holds, also where a forked child has a copy of it.
pub(crate) fn release_all(file: &File) {
    // From the first byte to the last that there can be. It cannot fail.
    let mut all = libc::flock { l_len: 0, ..request(libc::F_UNLCK, Byte::LIFE) };
    let _ = control(file, libc::F_OFD_SETLK, &mut all);
}

/// Takes or releases the lock of the whole file; returns whether.
fn lock_whole(file: &File, operation: libc::c_int) -> io::Result<bool> {
    loop {
        // SAFETY: the descriptor is ours.
        if unsafe { libc::flock(file.as_raw_fd(), operation) } == 0 {
            return Ok(true);
        }
        let error = io::Error::last_os_error();
        match error.kind() {
            io::ErrorKind::Interrupted => {}
            io::ErrorKind::WouldBlock => return Ok(false),
            _ => return Err(error),
        }
    }
}

/// The lock of the whole file, held until dropped: while somebody looks for, or takes, a place in a table of peers, or
/// writes into a claim.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    file: &'a File,
}

impl<'a> Held<'a> {
    /// Tries to get the lock for so long. `None`: somebody has held it all the while. The system could wait without end
    /// (no `LOCK_NB`), but then a process that is stopped while it has the lock would stop us too.
    pub fn take(file: &'a File, timeout: Duration) -> io::Result<Option<Self>> {
        let (begun, mut pause) = (Instant::now(), PAUSE_FIRST);
        while !lock_whole(file, libc::LOCK_EX | libc::LOCK_NB)? {
            if begun.elapsed() >= timeout {
                return Ok(None);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_LAST);
        }
        Ok(Some(Held { file }))
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // Unlocking what one holds cannot fail; if it did, closing the file would still release it.
        let _ = lock_whole(self.file, libc::LOCK_UN);
    }
}
