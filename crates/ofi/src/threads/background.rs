//! [`BackgroundThread`]: the life of a thread of ours in the application's process. It begins with the first need of
//! its domain and ends with the domain's last endpoint, or with the process, before libfabric unloads what the thread
//! runs. No child is forked while it is in the domain (`fork_guard`).
//!
//! A signal handler may end the process, and what its thread holds is held for ever then. So no signal is delivered to
//! a thread that holds one of the locks here, and the end of the process waits for none of them without a bound.

use crate::threads::fork_guard::{self, ForkGuard};
use crate::threads::thread::SignalsBlocked;
use crate::threads::wait::Wait;
use crate::threads::waits::{END_MOST, END_NAP};
use core::ffi::c_void;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Instant;
use tidegate_link::process::{self, PerProcess};

/// A thread that runs, or none.
#[derive(Debug)]
pub struct BackgroundThread {
    running: Mutex<Option<Running>>,
    /// What it sleeps on, if not in [`thread::park`] only.
    wait: Option<Wait>,
}

#[derive(Debug)]
struct Running {
    is_over: Arc<AtomicBool>,
    process: u32,
    /// Not dropped in a forked child: what names the thread there may name one of the child's own by then.
    thread: ManuallyDrop<JoinHandle<()>>,
}

impl BackgroundThread {
    /// No thread has begun. `wait`: what it will sleep on, if not in [`thread::park`] only.
    pub fn new(wait: Option<Wait>) -> BackgroundThread {
        BackgroundThread { running: Mutex::new(None), wait }
    }

    /// What the thread sleeps on, if not in [`thread::park`] only.
    pub fn wait(&self) -> Option<&Wait> {
        self.wait.as_ref()
    }

    /// Begins, unless it runs already, or the process ends. `body` returns soon after its flag says that it is over.
    pub fn begin(self: &Arc<Self>, body: impl FnOnce(&AtomicBool) + Send + 'static) -> io::Result<()> {
        let _blocked = SignalsBlocked::new();
        // Those that begin share a lock, whatever their domains.
        let _no_fork = ForkGuard::begin_soon();
        let mut running = self.running();
        if running.is_none() && ends_with_the_process(Arc::downgrade(self)) {
            let is_over = Arc::new(AtomicBool::new(false));
            let over = Arc::clone(&is_over);
            let thread = thread::Builder::new().name("tidegate".into()).spawn(move || body(&over))?;
            *running = Some(Running { is_over, process: process::number(), thread: ManuallyDrop::new(thread) });
        }
        Ok(())
    }

    /// Ends the thread of a domain that has no endpoint left. Returns what the caller has to do once it has left the
    /// domain: wait until the thread has ended.
    pub fn end(&self) -> Option<impl FnOnce() + use<>> {
        let _blocked = SignalsBlocked::new();
        let running = self.running().take();
        let thread = self.call_off(running)?;
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
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the thread to end. `None`: there is none; a forked child has only a copy of what is known of it.
    fn call_off(&self, running: Option<Running>) -> Option<JoinHandle<()>> {
        let running = running.filter(|running| running.process == process::current())?;
        running.is_over.store(true, Relaxed);
        let thread = ManuallyDrop::into_inner(running.thread);
        thread.thread().unpark();
        if let Some(wait) = &self.wait {
            wait.signal();
        }
        Some(thread)
    }
}

/// The threads that may be under way when the process ends. A forked child has none of its parent's threads.
static ALL: PerProcess<Mutex<All>> = PerProcess::new();
/// The number of the process that ends.
static ENDING: AtomicU32 = AtomicU32::new(0);

#[derive(Default)]
struct All {
    /// The process ends: no thread begins any more, or it would run while libraries are taken down.
    is_over: bool,
    threads: Vec<Weak<BackgroundThread>>,
}

/// To be called in a process once at least before the first thread begins, and outside of any domain: this takes the
/// loader's lock. Two threads may do it at once, which is no harm; to wait for each other would be one, in a child that
/// is forked meanwhile.
pub fn guard_process() {
    static IS_REGISTERED: AtomicBool = AtomicBool::new(false);
    if !IS_REGISTERED.load(Relaxed) {
        stay_loaded();
        fork_guard::guard_forks();
        // SAFETY: the function stays where it is, since the library does.
        unsafe { libc::atexit(end_all) };
        IS_REGISTERED.store(true, Relaxed);
    }
}

/// Whether a thread of the application waits for ours to keep clear: the process ends, or is about to fork. A signal
/// handler may do that in a thread that is inside a domain, and then that domain does not become free.
pub fn is_awaited() -> bool {
    ENDING.load(Relaxed) == process::current() || fork_guard::is_pending()
}

/// An application may end without closing anything, and libfabric unloads its providers then, under the thread. So the
/// thread ends before: what is registered last runs first. Returns whether one may begin.
fn ends_with_the_process(thread: Weak<BackgroundThread>) -> bool {
    let mut all = ALL.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    all.threads.retain(|thread| thread.strong_count() > 0);
    if !all.is_over {
        all.threads.push(thread);
    }
    !all.is_over
}

extern "C" fn end_all() {
    let Some(all) = ALL.get() else { return };
    ENDING.store(process::current(), Relaxed);
    let end = Instant::now() + END_MOST;
    let Some(mut all) = lock_until(all, end) else { return };
    all.is_over = true;
    let threads = core::mem::take(&mut all.threads);
    drop(all);
    for background in threads.iter().filter_map(Weak::upgrade) {
        let running = lock_until(&background.running, end).and_then(|mut running| running.take());
        let Some(thread) = background.call_off(running) else { continue };
        while !thread.is_finished() && Instant::now() < end {
            thread::sleep(END_NAP);
        }
    }
}

/// Takes a lock, if that is possible until this time.
fn lock_until<T>(mutex: &Mutex<T>, end: Instant) -> Option<MutexGuard<'_, T>> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() < end => thread::sleep(END_NAP),
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
