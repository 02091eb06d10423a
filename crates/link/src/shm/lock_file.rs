//! The files on which locks are held, and why no forked child keeps these locks.
//!
//! A lock belongs to an open file (see `lock`), and a child that is forked inherits all open files of its parent. When
//! the parent executes another program, its endpoints are gone, but their locks would stay until the child ends, and
//! peers would take the endpoints for alive. So a child gives the inherited descriptors up first of all, by a handler
//! of [`pthread_atfork`](libc::pthread_atfork). That takes no lock away from the parent: the system releases one when
//! the *last* copy of its open file is closed. A mapping counts as such a copy, so nothing is ever mapped from an open
//! file that holds a lock.
//!
//! The handler may do little, since other threads of the parent may have been anywhere: it walks through a list of
//! descriptors that cannot be half-changed, because the thread that forks has waited until nobody changes it. It puts a
//! harmless file in the place of each, so that a number that a value of the child still has is never that of a file
//! which the child has opened for itself.
//!
//! Children that are made without these handlers (by the bare system call) keep the locks, and so does everybody for
//! the short time between `vfork` and `exec`.

use std::cell::UnsafeCell;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

/// A file that may hold locks. A forked child has no copy of it.
#[derive(Debug)]
pub(crate) struct LockFile(ManuallyDrop<File>);

impl LockFile {
    /// Opens the file.
    pub fn open(options: &OpenOptions, path: &Path) -> io::Result<LockFile> {
        register_handlers();
        let list = List::enter();
        let file = options.open(path)?;
        list.descriptors().push(file.as_raw_fd());
        Ok(LockFile(ManuallyDrop::new(file)))
    }
}

impl Deref for LockFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // Both steps in one: a child that is forked between them would keep the file open.
        let list = List::enter();
        let descriptors = list.descriptors();
        // Not there: we are a forked child, and what has become of the number since is not our affair.
        if let Some(at) = descriptors.iter().position(|descriptor| *descriptor == self.0.as_raw_fd()) {
            descriptors.swap_remove(at);
            // SAFETY: the file is not used after this.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}

/// The descriptors of all [`LockFile`]s of this process.
struct Descriptors {
    /// Whether some thread uses the list, or forks.
    is_busy: AtomicBool,
    /// Whether a fork is under way that has the list.
    is_forking: AtomicBool,
    list: UnsafeCell<Vec<RawFd>>,
}

// SAFETY: only who has set `is_busy` touches the list.
unsafe impl Sync for Descriptors {}

static DESCRIPTORS: Descriptors = Descriptors {
    is_busy: AtomicBool::new(false),
    is_forking: AtomicBool::new(false),
    list: UnsafeCell::new(Vec::new()),
};

/// How often a fork looks whether the list is free. It is used for a system call at a time, so only a fork out of a
/// signal handler that has interrupted such a use looks in vain; its child keeps the locks.
const LOOKS_BEFORE_FORK: u32 = 100_000;

/// The list, until dropped.
struct List;

impl List {
    fn enter() -> List {
        while !List::try_enter() {
            std::thread::yield_now();
        }
        List
    }

    fn try_enter() -> bool {
        !DESCRIPTORS.is_busy.swap(true, Ordering::Acquire)
    }

    #[allow(
        clippy::mut_from_ref,
        reason = "one value of the type exists at a time, and no function here calls this twice"
    )]
    fn descriptors(&self) -> &mut Vec<RawFd> {
        // SAFETY: `is_busy` is ours, and the callers keep one reference at a time.
        unsafe { &mut *DESCRIPTORS.list.get() }
    }
}

impl Drop for List {
    fn drop(&mut self) {
        DESCRIPTORS.is_busy.store(false, Ordering::Release);
    }
}

fn register_handlers() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // It fails only for want of memory; then children keep the locks.
        // SAFETY: the handlers are functions of this library, and the C library forgets them when it is unloaded.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork_in_parent), Some(after_fork_in_child)) };
    });
}

extern "C" fn before_fork() {
    for _ in 0..LOOKS_BEFORE_FORK {
        if List::try_enter() {
            DESCRIPTORS.is_forking.store(true, Ordering::Relaxed);
            return;
        }
        // SAFETY: has no preconditions.
        unsafe { libc::sched_yield() };
    }
}

extern "C" fn after_fork_in_parent() {
    if DESCRIPTORS.is_forking.swap(false, Ordering::Relaxed) {
        drop(List);
    }
}

/// Only system calls: the child may have been forked while another thread of its parent was anywhere, in the allocator
/// say.
extern "C" fn after_fork_in_child() {
    if !DESCRIPTORS.is_forking.swap(false, Ordering::Relaxed) {
        return;
    }
    let list = List;
    let descriptors = list.descriptors();
    for descriptor in descriptors.iter().copied() {
        // SAFETY: the descriptor is that of a `LockFile`, which never uses it again in this process: the list is
        // emptied. The path is a string of C.
        unsafe {
            libc::close(descriptor);
            // The lowest number that is free, which need not be this one.
            let harmless = libc::open(c"/".as_ptr(), libc::O_PATH | libc::O_CLOEXEC);
            if harmless >= 0 && harmless != descriptor {
                libc::dup3(harmless, descriptor, libc::O_CLOEXEC);
                libc::close(harmless);
            }
        }
    }
    descriptors.clear();
}

/// Whether less than half of the descriptors that the process may have are in use: the rest is the application's. The
/// system gives out the lowest that is free.
pub(crate) fn has_descriptors_to_spare(file: &File) -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the struct lives through the call.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } == 0;
    known && (file.as_raw_fd() as libc::rlim_t) < limit.rlim_cur / 2
}
