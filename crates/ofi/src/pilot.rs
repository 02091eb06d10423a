//! [`Pilot`]: a thread that makes a domain's progress while the application does not (`FI_PROGRESS_AUTO`; R §3: a
//! transfer goes on while its process computes). It is there only when the user asks for it, by
//! `FI_TIDEGATE_PROGRESS=thread`.
//!
//! It leaves the work to an application that makes progress itself: as long as there were calls since it looked last,
//! it naps between two looks, and tends only the endpoints of which no call has made progress. When there are no calls
//! any more, it takes over: it makes progress until nothing is left to do, arms all endpoints, as a thread that sleeps
//! on a completion queue does (`sleepers`), and sleeps until something comes. The first call of the application that
//! finds it asleep wakes it, so that it naps again, and nobody else has to arm anything: whatever the call starts, the
//! pilot looks after at the end of its nap.
//!
//! It begins with the first endpoint of its domain and ends with the last, or with the process, before libfabric
//! unloads what the thread runs. The lock of such a domain is needed, whatever the application has promised of its own
//! threads. No child is forked while the thread holds it (`forking`).

use crate::bindings::FI_LOG_DOMAIN;
use crate::errno::{Errno, Result};
use crate::forking;
use crate::log;
use crate::wait::Wait;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long it leaves the work to an application that has called.
const LEAVE: Duration = Duration::from_millis(1);
/// Looks that find nothing to do before it sleeps.
const LOOKS_BEFORE_SLEEP: u32 = 64;

/// See the module.
#[derive(Debug)]
pub struct Pilot {
    /// What it sleeps on. The links of all endpoints wake it.
    pub wait: Wait,
    /// Calls of the application so far. Changed under the domain's lock only.
    calls: AtomicU64,
    /// It sleeps, and nobody has woken it. Changed under the domain's lock only.
    is_asleep: AtomicBool,
    flight: Mutex<Option<Flight>>,
}

/// A thread that runs.
#[derive(Debug)]
struct Flight {
    is_over: Arc<AtomicBool>,
    process: u32,
    thread: JoinHandle<()>,
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
        let (calls, is_asleep) = (AtomicU64::new(0), AtomicBool::new(false));
        Ok(Pilot { wait: Wait::new()?, calls, is_asleep, flight: Mutex::new(None) })
    }

    /// The application has called. The caller holds the domain's lock.
    #[inline]
    pub fn note_call(&self) {
        self.calls.store(self.calls.load(Relaxed).wrapping_add(1), Relaxed);
        if self.is_asleep.load(Relaxed) {
            self.rouse();
        }
    }

    #[cold]
    fn rouse(&self) {
        self.is_asleep.store(false, Relaxed);
        self.wait.signal();
    }

    /// Whether the application has called since `seen`, which becomes what there is now. The caller, which is the
    /// thread, holds the domain's lock.
    pub fn was_called(&self, seen: &mut u64) -> bool {
        self.is_asleep.store(false, Relaxed);
        let calls = self.calls.load(Relaxed);
        core::mem::replace(seen, calls) != calls
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
        let mut flight = self.flight.lock().unwrap_or_else(PoisonError::into_inner);
        if flight.is_none() {
            let is_over = Arc::new(AtomicBool::new(false));
            let (pilot, over) = (Arc::clone(self), Arc::clone(&is_over));
            end_with_the_process(self);
            let thread = spawn_without_signals(move || pilot.run(look, &over)).map_err(|error| {
                log::trouble(FI_LOG_DOMAIN, &format!("FI_TIDEGATE_PROGRESS=thread: there can be no thread: {error}"));
                Errno::of_system(&error)
            })?;
            *flight = Some(Flight { is_over, process: std::process::id(), thread });
        }
        Ok(())
    }

    /// No endpoint is left. Returns what the caller has to do once it has left the domain: wait until the thread has
    /// ended.
    pub fn end(&self) -> Option<impl FnOnce() + use<>> {
        let thread = self.call_off()?;
        Some(move || drop(thread.join()))
    }

    /// Tells the thread to end. `None`: there is none; a forked child has only a copy of what is known of it.
    fn call_off(&self) -> Option<JoinHandle<()>> {
        let flight = self.flight.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Flight { is_over, thread, .. } = flight.filter(|flight| flight.process == std::process::id())?;
        is_over.store(true, Relaxed);
        self.rouse();
        Some(thread)
    }

    fn run(&self, mut look: impl FnMut(bool) -> Option<Look>, is_over: &AtomicBool) {
        let mut still = 0;
        while !is_over.load(Relaxed) {
            let may_sleep = still >= LOOKS_BEFORE_SLEEP;
            let found = {
                let _look = forking::Look::begin();
                look(may_sleep)
            };
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

/// A thread in which no handler of the application runs for what others do.
fn spawn_without_signals(body: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: both sets are filled by these calls before anybody looks at them.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        // But for those that tell of what the thread itself does: the application may guard its pages with them.
        for own in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS] {
            libc::sigdelset(all.as_mut_ptr(), own);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let thread = thread::Builder::new().name("tidegate".into()).spawn(body);
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    thread
}

/// Pilots that may be under way when the process ends.
static PILOTS: Mutex<Vec<Weak<Pilot>>> = Mutex::new(Vec::new());
/// How long the end of the process waits for a thread: it may be kept from ending by what the application holds.
const END_MOST: Duration = Duration::from_secs(1);

/// An application may end without closing anything, and libfabric unloads its providers then, under the thread. So the
/// thread ends before: what is registered last runs first.
fn end_with_the_process(pilot: &Arc<Pilot>) {
    static IS_REGISTERED: Once = Once::new();
    let mut pilots = PILOTS.lock().unwrap_or_else(PoisonError::into_inner);
    pilots.retain(|pilot| pilot.strong_count() > 0);
    pilots.push(Arc::downgrade(pilot));
    IS_REGISTERED.call_once(|| {
        stay_loaded();
        forking::guard_forks();
        // SAFETY: the function stays where it is, since the library does.
        unsafe { libc::atexit(end_all) };
    });
}

extern "C" fn end_all() {
    let pilots = core::mem::take(&mut *PILOTS.lock().unwrap_or_else(PoisonError::into_inner));
    let end = Instant::now() + END_MOST;
    for pilot in pilots.iter().filter_map(Weak::upgrade) {
        let Some(thread) = pilot.call_off() else { continue };
        while !thread.is_finished() && Instant::now() < end {
            thread::sleep(Duration::from_micros(100));
        }
    }
}

/// Keeps this library in memory until the process ends.
fn stay_loaded() {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the address is one of our code; the struct is filled if the call succeeds, and the name that it leads to
    // lives as long as the library.
    unsafe {
        if libc::dladdr(stay_loaded as *const c_void, found.as_mut_ptr()) != 0 {
            let name = found.assume_init_ref().dli_fname;
            libc::dlopen(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE);
        }
    }
}
