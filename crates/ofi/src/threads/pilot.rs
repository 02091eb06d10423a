//! [`Pilot`]: a thread that makes a domain's progress while the application does not (`FI_PROGRESS_AUTO`; R §3: a
//! transfer goes on while its process computes). It is there only when the application asks for it, in the attributes
//! of its domain, or the user, by `FI_TIDEGATE_PROGRESS=thread`.
//!
//! It leaves the work to an application that makes progress itself: as long as there were calls since it looked last,
//! it naps between two looks, and tends only the endpoints of which no call has made progress. When there are no calls
//! any more, it takes over: it makes progress until nothing is left to do, arms all endpoints, as a thread that sleeps
//! on a completion queue does (`sleepers`), and sleeps until something comes. The first call of the application that
//! finds it asleep wakes it, so that it naps again, and nobody else has to arm anything: whatever the call starts, the
//! pilot looks after at the end of its nap.
//!
//! It begins with the first endpoint of its domain (`flight`). The lock of such a domain is needed, whatever the
//! application has promised of its own threads.

use crate::border::bindings::FI_LOG_DOMAIN;
use crate::border::errno::{Errno, Result};
use crate::border::log;
use crate::threads::flight::{Crew, Flight};
use crate::threads::forking;
use crate::threads::wait::Wait;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How long it leaves the work to an application that has called.
const LEAVE: Duration = Duration::from_millis(1);
/// Looks that find nothing to do before it sleeps.
const LOOKS_BEFORE_SLEEP: u32 = 64;

/// See the module.
#[derive(Debug)]
pub struct Pilot {
    /// What it sleeps on. The links of all endpoints wake it.
    pub wait: Wait,
    /// It sleeps, and nobody has woken it. Changed under the domain's lock only.
    is_asleep: AtomicBool,
    flight: Flight,
}

impl Crew for Pilot {
    fn flight(&self) -> &Flight {
        &self.flight
    }

    fn note_end(&self) {
        self.rouse();
    }
}

/// What a look has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The application makes progress itself, or none can be made before it reads what is there: the thread naps.
    Left,
    /// Something moved, or may move at once.
    Moved,
    /// Nothing can be done before something comes, or so much time has passed.
    Still(Duration),
}

impl Pilot {
    /// Fails if the process has no descriptor left.
    pub fn new() -> Result<Pilot> {
        Ok(Pilot { wait: Wait::new()?, is_asleep: AtomicBool::new(false), flight: Flight::default() })
    }

    /// The application has called. The caller holds the domain's lock.
    #[inline]
    pub fn note_call(&self) {
        if self.is_asleep.load(Relaxed) {
            self.rouse();
        }
    }

    #[cold]
    fn rouse(&self) {
        self.is_asleep.store(false, Relaxed);
        self.wait.signal();
    }

    /// The thread is awake. The caller, which is the thread, holds the domain's lock.
    pub fn wake_up(&self) {
        self.is_asleep.store(false, Relaxed);
    }

    /// The thread goes to sleep, so the next call has to wake it. The caller, which is the thread, holds the domain's
    /// lock.
    pub fn fall_asleep(&self) {
        self.is_asleep.store(true, Relaxed);
    }

    /// Begins, unless it runs already. The caller holds the domain's lock. `look` does what there is to do; if that is
    /// nothing and it is told so, it arms what may wake the thread, which sleeps then. `None`: nothing can be done any
    /// more.
    pub fn begin(self: &Arc<Self>, look: impl FnMut(bool) -> Option<Look> + Send + 'static) -> Result<()> {
        let pilot = Arc::clone(self);
        Flight::begin(self, move |is_over| pilot.run(look, is_over)).map_err(|error| {
            log::trouble(
                FI_LOG_DOMAIN,
                &format!("progress of data is to be automatic, and there can be no thread: {error}"),
            );
            Errno::of_system(&error)
        })
    }

    fn run(&self, mut look: impl FnMut(bool) -> Option<Look>, is_over: &AtomicBool) {
        let mut still = 0;
        while !is_over.load(Relaxed) {
            let may_sleep = still >= LOOKS_BEFORE_SLEEP;
            let Some(guard) = forking::Look::begin(is_over) else { return };
            let found = look(may_sleep);
            drop(guard);
            match found {
                None => return,
                Some(Look::Left) => {
                    still = 0;
                    self.wait.sleep_until_signal(LEAVE);
                    self.wait.quieten();
                }
                Some(Look::Moved) => {
                    still = 0;
                    thread::yield_now();
                }
                Some(Look::Still(most)) if may_sleep => self.sleep(most),
                Some(Look::Still(_)) => {
                    still += 1;
                    thread::yield_now();
                }
            }
        }
    }

    fn sleep(&self, most: Duration) {
        self.wait.sleep(Some(most));
        self.wait.quieten();
    }
}
