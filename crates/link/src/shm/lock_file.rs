//! The files on which locks are held, and why no forked child keeps these locks.
//!
//! A lock belongs to an open file (see `lock`), and a child that is forked inherits all open files of its parent. When
//! the parent executes another program, its endpoints are gone, but their locks would stay until the child ends, and
//! peers would take the endpoints for alive. So a child gives the inherited descriptors up first of all (see `fork`).
//! That takes no lock away from the parent: the system releases one when the *last* copy of its open file is closed. A
//! mapping counts as such a copy, so nothing is ever mapped from an open file that holds a lock.
//!
//! Children that are made without the handlers of fork (by the bare system call) keep the locks, and so does everybody
//! for the short time between `vfork` and `exec`.

use super::fork::{Maker, Place};
use super::lock;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::path::Path;

/// A file that may hold locks. A forked child has no copy of it.
#[derive(Debug)]
pub(crate) struct LockFile {
    file: ManuallyDrop<File>,
    /// `None`: there are too many, and children keep copies of this one.
    place: Option<Place>,
    maker: Maker,
}

impl LockFile {
    /// Opens the file.
    pub fn open(options: &OpenOptions, path: &Path) -> io::Result<LockFile> {
        let place = Place::reserve();
        match options.open(path) {
            Ok(file) => {
                if let Some(place) = &place {
                    place.settle(file.as_raw_fd());
                }
                Ok(LockFile { file: ManuallyDrop::new(file), place, maker: Maker::here() })
            }
            Err(error) => {
                if let Some(place) = place {
                    place.free();
                }
                Err(error)
            }
        }
    }

    /// Whether this is a copy in a child that was forked from the process that has opened the file.
    pub fn is_forked(&self) -> bool {
        self.maker.is_ancestor()
    }
}

impl Deref for LockFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        if self.maker.has_forked() {
            // The descriptor was given up, and what has become of the number since is not our affair.
            return;
        }
        // A child that was forked a moment ago may have a copy still. The copy must not keep the locks, and one that a
        // child drops must not release those of its parent.
        if !self.is_forked() {
            lock::release_all(&self.file);
        }
        if let Some(place) = &self.place {
            place.unsettle();
        }
        // SAFETY: the file is not used after this.
        unsafe { ManuallyDrop::drop(&mut self.file) };
        if let Some(place) = self.place.take() {
            place.free();
        }
    }
}

/// Whether less than half of the descriptors that the process may have are in use: the rest is the application's. The
/// system gives out the lowest that is free.
pub(crate) fn has_descriptors_to_spare(file: &File) -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the struct lives through the call.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } == 0;
    known && (file.as_raw_fd() as libc::rlim_t) < limit.rlim_cur / 2
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::lock::Byte;
    use super::*;

    /// Makes a child by the bare system call, which keeps its copies, and which does something and then waits.
    fn child_that(does: impl FnOnce()) -> libc::pid_t {
        // SAFETY: the child makes system calls only, and waits to be killed.
        let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } as libc::pid_t;
        if child == 0 {
            does();
            loop {
                // SAFETY: stops this process, and takes no pointers.
                unsafe { libc::raise(libc::SIGSTOP) };
            }
        }
        let mut status = 0;
        // SAFETY: our child; the word lives through the call.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, libc::WUNTRACED) }, child);
        assert!(libc::WIFSTOPPED(status));
        child
    }

    fn end(child: libc::pid_t) {
        // SAFETY: our child; nobody wants to know how it ended.
        unsafe { (libc::kill(child, libc::SIGKILL), libc::waitpid(child, std::ptr::null_mut(), 0)) };
    }

    #[test]
    fn a_child_that_has_a_copy_neither_keeps_the_locks_nor_releases_them() {
        let path = std::env::temp_dir().join(format!("tidegate-locks-{}", std::process::id()));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let (mut file, other) =
            (Some(LockFile::open(&options, &path).unwrap()), LockFile::open(&options, &path).unwrap());
        std::fs::remove_file(&path).unwrap();
        assert!(lock::try_take(file.as_ref().unwrap(), Byte::LIFE).unwrap());
        let dropper = child_that(|| drop(file.take()));
        assert!(lock::is_taken(&other, Byte::LIFE).unwrap(), "the parent has it still");
        let keeper = child_that(|| {});
        drop(file.take());
        assert!(!lock::is_taken(&other, Byte::LIFE).unwrap(), "nobody has it any more");
        end(dropper);
        end(keeper);
    }
}
