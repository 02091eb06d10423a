//! [`Standby`]: a thread that goes on with what a domain has left to do while the application does not call
//! (`FI_TIDEGATE_PROGRESS=on_demand`, the default).
//!
//! Messages that find no credit and no buffer wait in their sender's process, and so does what their receivers owe it,
//! until that process calls again. An application may have good reason to believe all sent, and wait for its peers in
//! another way: asleep, at a lock in shared memory, at its launcher's. Where those wait for what has not left, nobody
//! would ever move again.
//!
//! So there is no thread, and nothing but a glance at what each call leaves, until a call leaves something to do. That
//! begins the thread, or wakes it. It naps between two looks, longer and longer while nothing moves, and does nothing
//! as long as there were calls meanwhile: who calls makes the progress. When nothing has been left for a while, it
//! sleeps until something is again, without a look at what comes: an application that computes while nothing of its own
//! waits is not disturbed, and what others send it waits for its next call, as under any provider without progress of
//! its own.

use crate::bindings::FI_LOG_DOMAIN;
use crate::flight::{Crew, Flight};
use crate::forking;
use crate::log;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How long it leaves an application alone that has called.
const LEAVE: Duration = Duration::from_millis(8);
/// The first nap of an application's silence, and the longest; each is twice the one before.
const NAPS: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(32));
/// Looks in a row that find nothing left before it sleeps.
const LOOKS_BEFORE_SLEEP: u32 = 16;

/// See the module.
#[derive(Debug)]
pub struct Standby {
    /// It sleeps, or has not begun. Changed inside the domain only.
    is_asleep: AtomicBool,
    flight: Flight,
}

/// What a look has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The application has called since, or is inside.
    Called,
    /// Something has moved.
    Moved,
    /// Nothing can move now of what is left.
    Still,
    /// Nothing is left.
    Idle,
}

impl Crew for Standby {
    fn flight(&self) -> &Flight {
        &self.flight
    }

    /// The next endpoint of the domain begins another one.
    fn note_end(&self) {
        self.is_asleep.store(true, Relaxed);
    }
}

/// How long the naps are.
#[derive(Clone, Copy, Debug)]
struct Naps {
    next: Duration,
    /// Looks in a row that have found nothing left.
    idle: u32,
}

impl Naps {
    const FIRST: Naps = Naps { next: NAPS.0, idle: 0 };

    /// How long to nap after a look. `None`: not at all.
    fn after(&mut self, look: Look) -> Option<Duration> {
        let Naps { next, idle } = *self;
        *self = match look {
            Look::Still => Naps { next: (next * 2).min(NAPS.1), idle: 0 },
            Look::Idle => Naps { idle: idle + 1, ..Naps::FIRST },
            Look::Called | Look::Moved => Naps::FIRST,
        };
        match look {
            Look::Moved => None,
            Look::Still => Some(next),
            Look::Called | Look::Idle => Some(LEAVE),
        }
    }

    /// Whether the thread sleeps if its next look finds nothing left either.
    fn is_over(&self) -> bool {
        self.idle + 1 >= LOOKS_BEFORE_SLEEP
    }
}

impl Standby {
    /// One that sleeps. No thread has begun.
    pub fn new() -> Standby {
        Standby { is_asleep: AtomicBool::new(true), flight: Flight::default() }
    }

    /// Whether somebody has to wake it if a call leaves something to do. The caller is inside the domain.
    #[inline(always)]
    pub fn is_asleep(&self) -> bool {
        self.is_asleep.load(Relaxed)
    }

    /// Something is left to do: wakes the thread, or begins it, if `prepare` says that it may look into the domain,
    /// which `look` does. That is told whether to let the thread [fall asleep](Self::fall_asleep) if nothing is left;
    /// `None`: nothing can be done any more. Where there can be no thread the user is told, and the application is left
    /// with its own calls. The caller is inside the domain.
    #[cold]
    pub fn wake(
        self: &Arc<Self>,
        prepare: impl FnOnce() -> bool,
        look: impl FnMut(bool) -> Option<Look> + Send + 'static,
    ) {
        self.is_asleep.store(false, Relaxed);
        if self.flight.unpark() {
            return;
        }
        let standby = Arc::clone(self);
        let begun = match prepare() {
            true => Flight::begin(self, move |is_over| standby.run(look, is_over)),
            false => Err(io::Error::last_os_error()),
        };
        if let Err(error) = begun {
            log::trouble(
                FI_LOG_DOMAIN,
                &format!(
                    "FI_TIDEGATE_PROGRESS=on_demand: there can be no thread ({error}): messages that cannot leave at \
                     once wait for the next call of this process"
                ),
            );
        }
    }

    /// The thread goes to sleep. The caller, which is the thread, is inside the domain.
    pub fn fall_asleep(&self) {
        self.is_asleep.store(true, Relaxed);
    }

    fn run(&self, mut look: impl FnMut(bool) -> Option<Look>, is_over: &AtomicBool) {
        let mut naps = Naps::FIRST;
        // The call that began it is not over yet.
        thread::park_timeout(LEAVE);
        while !is_over.load(Relaxed) {
            let sleeps = naps.is_over();
            let found = {
                let _look = forking::Look::begin();
                look(sleeps)
            };
            let Some(found) = found else { return };
            let nap = naps.after(found);
            if found == Look::Idle && sleeps {
                while self.is_asleep() && !is_over.load(Relaxed) {
                    thread::park();
                }
                naps = Naps::FIRST;
            }
            match nap {
                Some(nap) => thread::park_timeout(nap),
                None => thread::yield_now(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn naps_get_longer_while_nothing_moves() {
        let mut naps = Naps::FIRST;
        let nap = |naps: &mut Naps, look| naps.after(look).map(|nap| nap.as_millis());
        let still: Vec<_> = (0..7).map(|_| nap(&mut naps, Look::Still).unwrap()).collect();
        assert_eq!(still, [2, 4, 8, 16, 32, 32, 32]);
        assert_eq!(nap(&mut naps, Look::Moved), None);
        assert_eq!(nap(&mut naps, Look::Still), Some(2));
        assert_eq!(nap(&mut naps, Look::Called), Some(8));
        assert_eq!(nap(&mut naps, Look::Still), Some(2));
    }

    #[test]
    fn it_sleeps_when_nothing_was_left_for_a_while() {
        let mut naps = Naps::FIRST;
        for _ in 0..LOOKS_BEFORE_SLEEP - 1 {
            assert!(!naps.is_over());
            naps.after(Look::Idle);
        }
        assert!(naps.is_over());
        naps.after(Look::Called);
        assert!(!naps.is_over());
    }

    #[test]
    fn it_looks_until_nothing_is_left_and_again_when_it_is_woken() {
        let standby = Arc::new(Standby::new());
        let (tell, hear) = mpsc::channel();
        let look = {
            let standby = Arc::clone(&standby);
            move |sleeps| {
                if sleeps {
                    standby.fall_asleep();
                }
                tell.send(sleeps).unwrap();
                Some(Look::Idle)
            }
        };
        assert!(standby.is_asleep(), "nothing is left yet, and there is no thread");
        standby.wake(|| true, look);
        for _ in 0..2 {
            for number in 1..=LOOKS_BEFORE_SLEEP {
                assert_eq!(hear.recv().unwrap(), number == LOOKS_BEFORE_SLEEP);
            }
            assert!(standby.is_asleep());
            assert!(hear.recv_timeout(4 * LEAVE).is_err(), "it sleeps");
            standby.wake(|| unreachable!("there is a thread"), |_| None);
        }
        Flight::end(&*standby).unwrap()();
        assert!(Flight::end(&*standby).is_none());
        assert!(standby.is_asleep(), "the next endpoint of the domain begins another one");
    }

    #[test]
    fn where_there_can_be_no_thread_nobody_asks_again() {
        let standby = Arc::new(Standby::new());
        standby.wake(|| false, |_| None);
        assert!(!standby.is_asleep() && Flight::end(&*standby).is_none());
    }
}
