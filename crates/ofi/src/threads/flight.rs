//! [`Flight`]: the life of a thread of ours in the application's process. It begins with the first need of its domain
//! and ends with the domain's last endpoint, or with the process, before libfabric unloads what the thread runs. No
//! child is forked while it is in the domain (`forking`).
//!
//! A signal handler may end the process, and what its thread holds is held for ever then. So no signal is delivered to
//! a thread that holds one of the locks here, and the end of the process waits for none of them without a bound.

use crate::threads::forking;
use crate::threads::thread::SignalsBlocked;
use core::ffi::c_void;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tidegate_link::process::{self, PerProcess};

/// A thread that runs, or none.
#[derive(Debug, Default)]
pub struct Flight(Mutex<Option<Running>>);

#[derive(Debug)]
struct Running {
    is_over: Arc<AtomicBool>,
    process: u32,
    /// Not dropped in a forked child: what names the thread there may name one of the child's own by then.
    thread: ManuallyDrop<JoinHandle<()>>,
}

/// Who has such a thread.
pub trait Crew: Send + Sync + 'static {
    /// The thread.
    fn flight(&self) -> &Flight;
    /// It is told to end, or has been: wakes it, if it sleeps on something else than [`thread::park`].
    fn note_end(&self);
}

impl Flight {
    /// Begins, unless it runs already, or the process ends. `body` returns soon after its flag says that it is over.
    pub fn begin<C: Crew>(crew: &Arc<C>, body: impl FnOnce(&AtomicBool) + Send + 'static) -> io::Result<()> {
        let _blocked = SignalsBlocked::new();
        // Those that begin share a lock, whatever their domains.
        let _no_fork = forking::Look::begin_soon();
        let mut running = crew.flight().running();
        if running.is_none() && ends_with_the_process(Arc::downgrade(crew) as Weak<dyn Crew>) {
            let is_over = Arc::new(AtomicBool::new(false));
            let over = Arc::clone(&is_over);
            let thread = thread::Builder::new().name("tidegate".into()).spawn(move || body(&over))?;
            *running = Some(Running { is_over, process: process::number(), thread: ManuallyDrop::new(thread) });
        }
        Ok(())
    }

    /// Ends the thread of a domain that has no endpoint left. Returns what the caller has to do once it has left the
    /// domain: wait until the thread has ended.
    pub fn end(crew: &dyn Crew) -> Option<impl FnOnce() + use<>> {
        let _blocked = SignalsBlocked::new();
        let running = crew.flight().running().take();
        let thread = call_off(crew, running)?;
        Some(move || drop(thread.join()))
    }

    /// Lets a thread that sleeps in [`thread::park`] go on. Returns whether there is one.
    pub fn unpark(&self) -> bool {
        let _blocked = SignalsBlocked::new();
        let running = self.running();
        running.iter().for_each(|running| running.thread.thread().unpark());
        running.is_some()
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the thread to end. `None`: there is none; a forked child has only a copy of what is known of it.
fn call_off(crew: &dyn Crew, running: Option<Running>) -> Option<JoinHandle<()>> {
    let running = running.filter(|running| running.process == process::current());
    running.iter().for_each(|running| running.is_over.store(true, Relaxed));
    crew.note_end();
    let thread = ManuallyDrop::into_inner(running?.thread);
    thread.thread().unpark();
    Some(thread)
}

/// Whose threads may be under way when the process ends. A forked child has none of its parent's threads.
static CREWS: PerProcess<Mutex<Crews>> = PerProcess::new();
/// The number of the process that ends.
static ENDING: AtomicU32 = AtomicU32::new(0);
/// How long the end of the process waits for a thread: it may be kept from ending by what the application holds.
const END_MOST: Duration = Duration::from_secs(1);
/// How long it waits between two looks.
const NAP: Duration = Duration::from_micros(100);

#[derive(Default)]
struct Crews {
    /// The process ends: no thread begins any more, or it would run while libraries are taken down.
    is_over: bool,
    crews: Vec<Weak<dyn Crew>>,
}

/// To be called in a process once at least before the first thread begins, and outside of any domain: this takes the
/// loader's lock. Two threads may do it at once, which is no harm; to wait for each other would be one, in a child that
/// is forked meanwhile.
pub fn guard_process() {
    static IS_REGISTERED: AtomicBool = AtomicBool::new(false);
    if !IS_REGISTERED.load(Relaxed) {
        stay_loaded();
        forking::guard_forks();
        // SAFETY: the function stays where it is, since the library does.
        unsafe { libc::atexit(end_all) };
        IS_REGISTERED.store(true, Relaxed);
    }
}

/// Whether a thread of the application waits for ours to keep clear: the process ends, or is about to fork. A signal
/// handler may do that in a thread that is inside a domain, and then that domain does not become free.
pub fn is_awaited() -> bool {
    ENDING.load(Relaxed) == process::current() || forking::is_pending()
}

/// An application may end without closing anything, and libfabric unloads its providers then, under the thread. So the
/// thread ends before: what is registered last runs first. Returns whether one may begin.
fn ends_with_the_process(crew: Weak<dyn Crew>) -> bool {
    let mut known = CREWS.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    known.crews.retain(|crew| crew.strong_count() > 0);
    if !known.is_over {
        known.crews.push(crew);
    }
    !known.is_over
}

extern "C" fn end_all() {
    let Some(known) = CREWS.get() else { return };
    ENDING.store(process::current(), Relaxed);
    let end = Instant::now() + END_MOST;
    let Some(mut known) = lock_until(known, end) else { return };
    known.is_over = true;
    let crews = core::mem::take(&mut known.crews);
    drop(known);
    for crew in crews.iter().filter_map(Weak::upgrade) {
        let running = lock_until(&crew.flight().0, end).and_then(|mut running| running.take());
        let Some(thread) = call_off(&*crew, running) else { continue };
        while !thread.is_finished() && Instant::now() < end {
            thread::sleep(NAP);
        }
    }
}

/// Takes a lock, if that is possible until this time.
fn lock_until<T>(mutex: &Mutex<T>, end: Instant) -> Option<MutexGuard<'_, T>> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() < end => thread::sleep(NAP),
            Err(TryLockError::WouldBlock) => return None,
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
