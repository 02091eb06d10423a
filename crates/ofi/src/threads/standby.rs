//! [`Standby`]: a thread that goes on with what a domain has left to do while the application does not call
//! (`FI_TIDEGATE_PROGRESS=on_demand`, the default).
//!
//! Messages that find no credit and no buffer wait in their sender's process, and so does what their receivers owe it,
//! until that process calls again. An application may have good reason to believe all sent, and wait for its peers in
//! another way: asleep, at a lock in shared memory, at its launcher's. Where those wait for what has not left, nobody
//! would ever move again.
//!
//! So there is no thread, and nothing but a glance at what each call leaves, until a call leaves something to do. That
//! begins the thread, or wakes it. It naps between two looks, longer and longer while nothing moves and nothing is
//! being copied, and leaves alone the endpoints of which a call has made progress meanwhile; not every call does. When
//! nothing has been left for a while, it sleeps until something is again, without a look at what comes: an application
//! that computes while nothing of its own waits is not disturbed, and what others send it waits for its next call, as
//! under any provider without progress of its own.

use crate::border::bindings::FI_LOG_DOMAIN;
use crate::border::log;
use crate::threads::flight::{Crew, Flight};
use crate::threads::forking;
use crate::threads::thread::HandlerMutex;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// How long it leaves an application alone that has called.
const LEAVE: Duration = Duration::from_millis(8);
/// The first nap of an application's silence, and the longest; each is twice the one before.
const NAPS: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(32));
/// Looks without a nap after something has moved: peers that run answer in microseconds.
const QUICK_LOOKS: u32 = 32;
/// Looks in a row that find nothing left before it sleeps.
const LOOKS_BEFORE_SLEEP: u32 = 8;
/// Looks from outside in a row, while the application calls and makes its progress, before it looks inside: to come in
/// disturbs all processors on which the application has threads.
const LOOKS_FROM_OUTSIDE: u32 = 3;
/// After this time it is tried again to begin a thread.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug)]
pub struct Standby {
    /// It sleeps, or has not begun. Changed inside the domain only, but at the end of the process.
    is_asleep: AtomicBool,
    flight: Flight,
    /// There could be no thread at this time.
    failed: HandlerMutex<Option<Instant>>,
}

/// What a look has found. Of several endpoints the greatest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Look {
    /// The application has called since, and it was not looked whether it makes progress.
    Passed,
    /// Nothing is left.
    Idle,
    /// The application makes progress of all that is left, or is inside.
    Called,
    /// Nothing can move now of what is left.
    Still,
    /// Something may have moved: the end of it will tell.
    Underway,
    /// Something has moved.
    Moved,
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

/// Decides when to look from outside whether the application calls, and when from inside what it leaves.
#[derive(Debug, Default)]
pub struct Glances {
    calls: u32,
    /// Looks from outside in a row.
    passed: u32,
    /// The application made all progress itself when it was looked inside last.
    is_trusted: bool,
}

impl Glances {
    /// Whether to look from outside only. `calls`: how many there have been.
    pub fn passes(&mut self, calls: u32) -> bool {
        let was_called = std::mem::replace(&mut self.calls, calls) != calls;
        let passes = was_called && self.is_trusted && self.passed < LOOKS_FROM_OUTSIDE;
        self.passed = if passes { self.passed + 1 } else { 0 };
        passes
    }

    /// What a look inside has found. `None`: it did not come in.
    pub fn note(&mut self, look: Option<Look>) {
        self.is_trusted = matches!(look, Some(Look::Called | Look::Idle));
    }
}

/// How long the naps are.
#[derive(Clone, Copy, Debug)]
struct Naps {
    next: Duration,
    /// Looks that follow without a nap.
    quick: u32,
    /// Looks in a row that have found nothing left.
    idle: u32,
}

impl Naps {
    const FIRST: Naps = Naps { next: NAPS.0, quick: 0, idle: 0 };

    /// How long to nap after a look. `None`: not at all.
    fn after(&mut self, look: Look) -> Option<Duration> {
        let Naps { next, quick, idle } = *self;
        let (after, nap) = match look {
            Look::Passed => (*self, Some(LEAVE)),
            Look::Idle => (Naps { idle: idle + 1, ..Naps::FIRST }, Some(LEAVE)),
            Look::Called => (Naps::FIRST, Some(LEAVE)),
            Look::Moved => (Naps { quick: QUICK_LOOKS, ..Naps::FIRST }, None),
            Look::Still | Look::Underway if quick > 0 => (Naps { quick: quick - 1, ..Naps::FIRST }, None),
            Look::Underway => (Naps::FIRST, Some(NAPS.0)),
            Look::Still => (Naps { next: (next * 2).min(NAPS.1), ..Naps::FIRST }, Some(next)),
        };
        *self = after;
        nap
    }

    /// Whether the thread sleeps if its next look finds nothing left either.
    fn is_over(&self) -> bool {
        self.idle + 1 >= LOOKS_BEFORE_SLEEP
    }
}

impl Standby {
    /// One that sleeps. No thread has begun.
    pub fn new() -> Standby {
        Standby { is_asleep: AtomicBool::new(true), flight: Flight::default(), failed: HandlerMutex::new(None) }
    }

    /// Whether somebody has to wake it if a call leaves something to do. The caller is inside the domain.
    #[inline(always)]
    pub fn is_asleep(&self) -> bool {
        self.is_asleep.load(Relaxed)
    }

    /// Something is left to do: wakes the thread, or begins it. `prepare` makes ready to look into the domain, which
    /// `look` does, both in the thread. That is told whether to let the thread [fall asleep](Self::fall_asleep) if
    /// nothing is left; `None`: nothing can be done any more. Where there can be no thread the user is told once, and
    /// the application is left with its own calls until it is tried again. The caller is inside the domain.
    #[cold]
    pub fn wake(
        self: &Arc<Self>,
        prepare: impl FnOnce() -> io::Result<()> + Send + 'static,
        look: impl FnMut(bool) -> io::Result<Option<Look>> + Send + 'static,
    ) {
        let Some(mut failed) = self.failed.lock() else { return };
        if failed.is_some_and(|at| at.elapsed() < TRY_AGAIN) {
            return;
        }
        self.is_asleep.store(false, Relaxed);
        if self.flight.unpark() {
            return;
        }
        let standby = Arc::clone(self);
        let begun = Flight::begin(self, move |is_over| {
            if let Err(error) = prepare().and_then(|()| standby.run(look, is_over)) {
                tell(&error);
            }
        });
        if let Err(error) = begun {
            self.is_asleep.store(true, Relaxed);
            if failed.replace(Instant::now()).is_none() {
                tell(&error);
            }
        }
    }

    /// The thread goes to sleep. The caller, which is the thread, is inside the domain.
    pub fn fall_asleep(&self) {
        self.is_asleep.store(true, Relaxed);
    }

    fn run(&self, mut look: impl FnMut(bool) -> io::Result<Option<Look>>, is_over: &AtomicBool) -> io::Result<()> {
        let mut naps = Naps::FIRST;
        // The call that began it is not over yet.
        thread::park_timeout(LEAVE);
        while let Some(guard) = forking::Look::begin(is_over) {
            let sleeps = naps.is_over();
            let found = look(sleeps);
            drop(guard);
            let Some(found) = found? else { break };
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
        Ok(())
    }
}

/// There can be no thread.
fn tell(error: &io::Error) {
    log::trouble(
        FI_LOG_DOMAIN,
        &format!(
            "FI_TIDEGATE_PROGRESS=on_demand: there can be no thread ({error}): messages that cannot leave at once wait for \
             the next call of this process"
        ),
    );
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
        assert!((0..QUICK_LOOKS).all(|_| nap(&mut naps, Look::Still).is_none()));
        assert_eq!(nap(&mut naps, Look::Still), Some(2));
        assert_eq!(nap(&mut naps, Look::Underway), Some(2));
        assert_eq!(nap(&mut naps, Look::Underway), Some(2));
        assert_eq!(nap(&mut naps, Look::Called), Some(8));
        assert_eq!(nap(&mut naps, Look::Still), Some(2));
        assert_eq!(nap(&mut naps, Look::Passed), Some(8));
        assert_eq!(nap(&mut naps, Look::Still), Some(4), "nothing is known of what is left");
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
                Ok(Some(Look::Idle))
            }
        };
        assert!(standby.is_asleep(), "nothing is left yet, and there is no thread");
        standby.wake(|| Ok(()), look);
        for _ in 0..2 {
            for number in 1..=LOOKS_BEFORE_SLEEP {
                assert_eq!(hear.recv().unwrap(), number == LOOKS_BEFORE_SLEEP);
            }
            assert!(standby.is_asleep());
            assert!(hear.recv_timeout(4 * LEAVE).is_err(), "it sleeps");
            standby.wake(|| unreachable!("there is a thread"), |_| unreachable!("there is a thread"));
        }
        Flight::end(&*standby).unwrap()();
        assert!(Flight::end(&*standby).is_none());
        assert!(standby.is_asleep(), "the next endpoint of the domain begins another one");
    }

    #[test]
    fn where_no_thread_can_look_nobody_asks_again_until_the_next_endpoint() {
        let standby = Arc::new(Standby::new());
        let forbidden = || Err(io::Error::from(io::ErrorKind::PermissionDenied));
        standby.wake(forbidden, |_| unreachable!("it may not look"));
        assert!(!standby.is_asleep());
        Flight::end(&*standby).unwrap()();
        assert!(standby.is_asleep());
        let (tell, hear) = mpsc::channel();
        let look = move |_| {
            tell.send(()).unwrap();
            forbidden().map(|()| None)
        };
        standby.wake(|| Ok(()), look);
        hear.recv().unwrap();
        assert!(hear.recv().is_err(), "the thread has ended");
    }

    #[test]
    fn it_looks_inside_rarely_while_the_application_calls_and_makes_progress() {
        let mut glances = Glances::default();
        let mut calls = 0;
        let mut count_inside = |glances: &mut Glances, found, step| {
            (0..40)
                .filter(|_| {
                    calls += step;
                    let looks_inside = !glances.passes(calls);
                    if looks_inside {
                        glances.note(Some(found));
                    }
                    looks_inside
                })
                .count()
        };
        assert_eq!(count_inside(&mut glances, Look::Called, 1), 10);
        assert_eq!(count_inside(&mut glances, Look::Idle, 1), 10);
        assert_eq!(count_inside(&mut glances, Look::Called, 0), 40, "nobody calls");
        assert!(count_inside(&mut glances, Look::Still, 1) >= 37, "the calls make no progress of what is left");
    }
}
