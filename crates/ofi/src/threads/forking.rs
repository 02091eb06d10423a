//! [`Look`]: what a thread of ours does in a domain, and who begins one; no child is forked meanwhile. A
//! child has the memory of its parent, but of the threads only the one that forked: a lock that another one held would
//! be held in it for ever. An application with threads of its own knows that; of ours it knows nothing.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Threads that fork: several may at a time.
static FORKS: AtomicUsize = AtomicUsize::new(0);
/// Looks that are under way.
static LOOKS: AtomicUsize = AtomicUsize::new(0);
/// How long a fork waits for them: their work is short, and never sleeps, so this is never reached unless they are
/// kept from running. Then the child finds the domain occupied, and closes it without tidying up.
const WAIT_MOST: Duration = Duration::from_secs(1);
/// How long a call of the application waits for a fork.
const CALL_WAIT_MOST: Duration = Duration::from_millis(10);
/// How long they wait for each other between two tries. A fork may take long: the application has its own to do then.
const NAP: Duration = Duration::from_micros(100);

/// See the module. It is over when this is dropped.
#[derive(Debug)]
pub struct Look(());

impl Look {
    /// Begins, when nobody forks. `None`: the thread is over before.
    pub fn begin(is_over: &AtomicBool) -> Option<Look> {
        Look::begin_unless(|| is_over.load(Relaxed))
    }

    /// The same for a call of the application, which holds locks of ours for a moment. `None`: somebody forks, and it
    /// takes long. That may be for this call's sake: a handler of the application may wait for it at a fork, or have
    /// made it.
    pub fn begin_soon() -> Option<Look> {
        let end = Instant::now() + CALL_WAIT_MOST;
        Look::begin_unless(|| Instant::now() >= end)
    }

    fn begin_unless(gives_up: impl Fn() -> bool) -> Option<Look> {
        while !gives_up() {
            let look = Look::try_begin();
            if look.is_some() {
                return look;
            }
            std::thread::sleep(NAP);
        }
        None
    }

    fn try_begin() -> Option<Look> {
        LOOKS.fetch_add(1, SeqCst);
        // Else it is over at once.
        let look = Look(());
        (FORKS.load(SeqCst) == 0).then_some(look)
    }
}

impl Drop for Look {
    /// In a child that a signal handler has forked amid a look it is counted no more.
    fn drop(&mut self) {
        let _ = LOOKS.fetch_update(SeqCst, SeqCst, |looks| looks.checked_sub(1));
    }
}

/// Whether a fork waits for looks, or is under way.
pub fn is_pending() -> bool {
    FORKS.load(Relaxed) > 0
}

/// From now on forks and looks keep clear of each other. To be called once, in a library that stays loaded.
pub fn guard_forks() {
    // SAFETY: the handlers stay where they are, since the library does. If the call fails, for want of memory, forks
    // are as they were.
    unsafe { libc::pthread_atfork(Some(begin_fork), Some(end_fork_in_parent), Some(end_fork_in_child)) };
}

extern "C" fn begin_fork() {
    FORKS.fetch_add(1, SeqCst);
    let end = Instant::now() + WAIT_MOST;
    while LOOKS.load(SeqCst) > 0 && Instant::now() < end {
        std::thread::sleep(NAP);
    }
}

extern "C" fn end_fork_in_parent() {
    FORKS.fetch_sub(1, SeqCst);
}

/// The threads that looked, or forked besides, are not in the child.
extern "C" fn end_fork_in_child() {
    LOOKS.store(0, SeqCst);
    FORKS.store(0, SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::flight::Flight;
    use crate::threads::standby::{Look as Found, Standby};
    use std::sync::Arc;

    #[test]
    fn who_would_begin_a_thread_waits_a_moment_for_a_fork() {
        let standby = Arc::new(Standby::new());
        begin_fork();
        assert!(Look::try_begin().is_none());
        let begun = Instant::now();
        standby.wake(|| Ok(()), |_| Ok(Some(Found::Idle)));
        let waited = begun.elapsed();
        end_fork_in_parent();
        assert!(waited >= CALL_WAIT_MOST && !standby.is_asleep());
        Flight::end(&*standby).unwrap()();
    }
}
