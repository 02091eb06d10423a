//! [`ForkGuard`]: held while a thread of ours is in a domain, and while a call begins such a thread; no child is forked
//! meanwhile. A child has the memory of its parent, but of the threads only the one that forked: a lock that another
//! one held would be held in it for ever. An application with threads of its own knows that; of ours it knows nothing.

use crate::threads::waits::{FORK_CALL_MOST, FORK_MOST, FORK_NAP};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Instant;

/// Threads that fork: several may at a time.
static FORKS: AtomicUsize = AtomicUsize::new(0);
/// Guards that are held.
static GUARDS: AtomicUsize = AtomicUsize::new(0);

/// See the module. It is over when this is dropped.
#[derive(Debug)]
pub struct ForkGuard(());

impl ForkGuard {
    /// Begins, when no thread forks. `None`: the thread of ours is over before.
    pub fn begin(is_over: &AtomicBool) -> Option<ForkGuard> {
        ForkGuard::begin_unless(|| is_over.load(Relaxed))
    }

    /// The same for a call of the application, which holds locks of ours for a moment. `None`: a thread forks, and it
    /// takes long. That may be for this call's sake: a handler of the application may wait for it at a fork, or have
    /// made it.
    pub fn begin_soon() -> Option<ForkGuard> {
        let end = Instant::now() + FORK_CALL_MOST;
        ForkGuard::begin_unless(|| Instant::now() >= end)
    }

    fn begin_unless(gives_up: impl Fn() -> bool) -> Option<ForkGuard> {
        while !gives_up() {
            let guard = ForkGuard::try_begin();
            if guard.is_some() {
                return guard;
            }
            std::thread::sleep(FORK_NAP);
        }
        None
    }

    fn try_begin() -> Option<ForkGuard> {
        GUARDS.fetch_add(1, SeqCst);
        // Else it is over at once.
        let guard = ForkGuard(());
        (FORKS.load(SeqCst) == 0).then_some(guard)
    }
}

impl Drop for ForkGuard {
    /// In a child that a signal handler has forked while it is held it is counted no more.
    fn drop(&mut self) {
        let _ = GUARDS.fetch_update(SeqCst, SeqCst, |guards| guards.checked_sub(1));
    }
}

/// Whether a fork waits for guards, or is under way.
pub fn is_pending() -> bool {
    FORKS.load(Relaxed) > 0
}

/// From now on forks and guards keep clear of each other. To be called once, in a library that stays loaded.
pub fn guard_forks() {
    // SAFETY: the handlers stay where they are, since the library does. If the call fails, for want of memory, forks
    // are as they were.
    unsafe { libc::pthread_atfork(Some(begin_fork), Some(end_fork_in_parent), Some(end_fork_in_child)) };
}

extern "C" fn begin_fork() {
    FORKS.fetch_add(1, SeqCst);
    let end = Instant::now() + FORK_MOST;
    while GUARDS.load(SeqCst) > 0 && Instant::now() < end {
        std::thread::sleep(FORK_NAP);
    }
}

extern "C" fn end_fork_in_parent() {
    FORKS.fetch_sub(1, SeqCst);
}

/// The threads that held guards, or forked besides, are not in the child.
extern "C" fn end_fork_in_child() {
    GUARDS.store(0, SeqCst);
    FORKS.store(0, SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::poll_backoff::{Policy, Polled};
    use crate::threads::progress_thread::ProgressThread;
    use std::sync::Arc;

    #[test]
    fn who_would_begin_a_thread_waits_a_moment_for_a_fork() {
        let thread = Arc::new(ProgressThread::new(Policy::WhenLeft).unwrap());
        begin_fork();
        assert!(ForkGuard::try_begin().is_none());
        let begun = Instant::now();
        thread.wake(|_| Some(Polled::Idle));
        let waited = begun.elapsed();
        end_fork_in_parent();
        assert!(waited >= FORK_CALL_MOST && !thread.is_asleep());
        thread.end().unwrap()();
    }
}
