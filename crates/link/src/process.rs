//! Which process this is, among those that descend from one another by forks; and state that each of them has of its
//! own ([`PerProcess`]).
//!
//! A forked child has a copy of all that its parent has opened, and must neither use it nor take it for its own. Asking
//! for the process id tells the two apart, at the price of a system call. So each process that uses this library has a
//! number that none of its ancestors has had, in a page that the system clears in a child (`MADV_WIPEONFORK`, Linux
//! 4.14), however the child was made. To compare that number with the one that was noted when something was opened
//! costs a load. Where the system does not clear the page, a handler of `pthread_atfork` does, which a child does not
//! run that was made by the bare system call. A child that shares its parent's memory (`vfork`) is its parent here.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering::*};

/// Has pages of its own, so that nothing else is cleared with it.
#[repr(C)]
#[cfg_attr(target_arch = "x86_64", repr(align(4096)))]
#[cfg_attr(not(target_arch = "x86_64"), repr(align(65536)))]
struct Page(AtomicU32);

/// The number of this process. 0: it has none yet.
static PAGE: Page = Page(AtomicU32::new(0));
/// The highest number that this process and its ancestors have thought of.
static LAST: AtomicU32 = AtomicU32::new(0);
/// The number of the first of them.
static FIRST: AtomicU32 = AtomicU32::new(0);

/// The number of this process; 0 if it has taken none.
#[inline(always)]
pub fn current() -> u32 {
    PAGE.0.load(Relaxed)
}

/// The number of this process, which it takes now if it has none.
pub fn number() -> u32 {
    match current() {
        0 => take_number(),
        number => number,
    }
}

#[cold]
fn take_number() -> u32 {
    clear_in_children();
    let next = LAST.fetch_add(1, Relaxed) + 1;
    // Another thread may have taken one meanwhile.
    let number = PAGE.0.compare_exchange(0, next, Relaxed, Relaxed).map_or_else(|other| other, |_| next);
    let _ = FIRST.compare_exchange(0, number, Relaxed, Relaxed);
    number
}

/// Whether an ancestor of this process has used this library too, and this one was forked from it.
pub fn is_descendant() -> bool {
    number() != FIRST.load(Relaxed)
}

/// Must come before the process has its number. Two threads may register the handler twice, which is no harm; to wait
/// for each other would be one, in a child that has only one of them.
fn clear_in_children() {
    static IS_REGISTERED: AtomicBool = AtomicBool::new(false);
    if !IS_REGISTERED.load(Acquire) {
        // SAFETY: the handler is a function of this library, and the C library forgets it when that is unloaded. It
        // fails only for want of memory.
        let failed = unsafe { libc::pthread_atfork(None, None, Some(clear)) };
        IS_REGISTERED.store(failed == 0, Release);
    }
    // SAFETY: the pages are this static's alone, and zero is a value of it. Where the system refuses, nothing changes.
    unsafe { libc::madvise((&raw const PAGE).cast_mut().cast(), size_of::<Page>(), libc::MADV_WIPEONFORK) };
}

extern "C" fn clear() {
    PAGE.0.store(0, Relaxed);
}

/// What each process makes for itself when it first needs it. A forked child has nothing of its parent's, be it that
/// another thread held it or was making it when the child was forked. What was made is never dropped.
#[derive(Debug)]
pub struct PerProcess<T: 'static>(AtomicPtr<Made<T>>);

#[derive(Debug)]
struct Made<T> {
    process: u32,
    value: OnceLock<T>,
}

impl<T: Send + Sync> PerProcess<T> {
    /// Nothing yet.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        PerProcess(AtomicPtr::new(std::ptr::null_mut()))
    }

    fn made(&self) -> Option<&'static Made<T>> {
        // SAFETY: null, or leaked by `get_or_init`.
        unsafe { self.0.load(Acquire).as_ref() }
    }

    /// What this process has made; `None`: nothing.
    #[inline]
    pub fn get(&self) -> Option<&'static T> {
        self.made().filter(|made| made.process == current())?.value.get()
    }

    /// The same, made now if it is not there.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &'static T {
        let process = number();
        loop {
            let found = self.0.load(Acquire);
            if let Some(made) = self.made().filter(|made| made.process == process) {
                return made.value.get_or_init(make);
            }
            let own = Box::into_raw(Box::new(Made { process, value: OnceLock::new() }));
            if self.0.compare_exchange(found, own, AcqRel, Relaxed).is_err() {
                // SAFETY: made above, and known to nobody else.
                drop(unsafe { Box::from_raw(own) });
            }
        }
    }
}

/// Children of tests, for all files of this crate that know who was forked.
#[cfg(all(test, not(miri), not(loom)))]
pub(crate) mod children {
    /// The answer of `look` in a child that is made by `make`.
    pub(crate) fn in_child_by(make: impl FnOnce() -> libc::pid_t, look: impl FnOnce() -> bool) -> bool {
        match make() {
            0 => {
                let found = look();
                // SAFETY: ends the process.
                unsafe { libc::_exit(if found { 7 } else { 0 }) }
            }
            child => {
                let mut status = 0;
                // SAFETY: our child; the word lives through the call.
                assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                libc::WEXITSTATUS(status) == 7
            }
        }
    }

    pub(crate) fn fork() -> libc::pid_t {
        // SAFETY: the child makes system calls only, and ends by one.
        unsafe { libc::fork() }
    }

    /// A child of the bare system call, for which no handler of forks runs.
    pub(crate) fn clone() -> libc::pid_t {
        // SAFETY: as above.
        unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as libc::pid_t }
    }
}

#[cfg(all(test, not(miri), not(loom)))]
mod tests {
    use super::children::{clone, fork, in_child_by};
    use super::*;

    #[test]
    fn each_generation_has_a_number_that_no_ancestor_has_had() {
        let parent = number();
        assert!(parent != 0 && number() == parent);
        for make in [fork, clone] {
            assert!(in_child_by(make, || {
                let is_cleared = current() == 0;
                let child = number();
                let of_grandchild = |_| in_child_by(make, || current() == 0 && ![parent, child].contains(&number()));
                is_cleared && child != parent && is_descendant() && of_grandchild(())
            }));
        }
        assert_eq!(current(), parent, "the parent keeps its own");
    }

    #[test]
    fn a_child_makes_what_it_needs_for_itself() {
        static MADE: PerProcess<u32> = PerProcess::new();
        let parent = std::process::id();
        assert!(MADE.get().is_none());
        assert_eq!(MADE.get_or_init(std::process::id), &parent);
        assert!(in_child_by(fork, || {
            let is_none = MADE.get().is_none();
            is_none && MADE.get_or_init(std::process::id) == &std::process::id() && MADE.get().is_some()
        }));
        assert_eq!(MADE.get(), Some(&parent));
    }
}
