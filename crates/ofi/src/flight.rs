//! [`Flight`]: the life of a thread of ours in the application's process. It begins with the first need of its domain
//! and ends with the domain's last endpoint, or with the process, before libfabric unloads what the thread runs. No
//! child is forked while it is in the domain (`forking`).

use crate::forking;
use core::ffi::c_void;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::io;
use std::sync::{Arc, Mutex, Once, PoisonError, TryLockError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

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
        // Those that begin share a lock, whatever their domains.
        let _no_fork = forking::Look::begin_soon();
        let mut running = crew.flight().running();
        if running.is_none() && ends_with_the_process(Arc::downgrade(crew) as Weak<dyn Crew>) {
            let is_over = Arc::new(AtomicBool::new(false));
            let over = Arc::clone(&is_over);
            let thread = ManuallyDrop::new(spawn_without_signals(move || body(&over))?);
            *running = Some(Running { is_over, process: std::process::id(), thread });
        }
        Ok(())
    }

    /// Ends the thread of a domain that has no endpoint left. Returns what the caller has to do once it has left the
    /// domain: wait until the thread has ended.
    pub fn end(crew: &dyn Crew) -> Option<impl FnOnce() + use<>> {
        let thread = Flight::call_off(crew)?;
        Some(move || drop(thread.join()))
    }

    /// Lets a thread that sleeps in [`thread::park`] go on. Returns whether there is one.
    pub fn unpark(&self) -> bool {
        let running = self.running();
        running.iter().for_each(|running| running.thread.thread().unpark());
        running.is_some()
    }

    /// Tells the thread to end. `None`: there is none; a forked child has only a copy of what is known of it.
    fn call_off(crew: &dyn Crew) -> Option<JoinHandle<()>> {
        let running = crew.flight().running().take();
        let running = running.filter(|running| running.process == std::process::id());
        running.iter().for_each(|running| running.is_over.store(true, Relaxed));
        crew.note_end();
        let thread = ManuallyDrop::into_inner(running?.thread);
        thread.thread().unpark();
        Some(thread)
    }

    fn running(&self) -> std::sync::MutexGuard<'_, Option<Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread in which no handler of the application runs for what others do.
fn spawn_without_signals(body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
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

/// Whose threads may be under way when the process ends.
static CREWS: Mutex<Crews> = Mutex::new(Crews { process: 0, is_over: false, crews: Vec::new() });
/// How long the end of the process waits for a thread: it may be kept from ending by what the application holds.
const END_MOST: Duration = Duration::from_secs(1);
/// How long it waits between two looks.
const NAP: Duration = Duration::from_micros(100);

struct Crews {
    /// Whose they are. A forked child has none of its parent's threads.
    process: u32,
    /// The process ends: no thread begins any more, or it would run while libraries are taken down.
    is_over: bool,
    crews: Vec<Weak<dyn Crew>>,
}

/// To be called in a process once at least before the first thread begins, and outside of any domain: this takes the
/// loader's lock.
pub fn guard_process() {
    static IS_REGISTERED: Once = Once::new();
    IS_REGISTERED.call_once(|| {
        stay_loaded();
        forking::guard_forks();
        // SAFETY: the function stays where it is, since the library does.
        unsafe { libc::atexit(end_all) };
    });
}

/// An application may end without closing anything, and libfabric unloads its providers then, under the thread. So the
/// thread ends before: what is registered last runs first. Returns whether one may begin.
fn ends_with_the_process(crew: Weak<dyn Crew>) -> bool {
    let mut known = CREWS.lock().unwrap_or_else(PoisonError::into_inner);
    if known.process != std::process::id() {
        *known = Crews { process: std::process::id(), is_over: false, crews: Vec::new() };
    }
    known.crews.retain(|crew| crew.strong_count() > 0);
    if !known.is_over {
        known.crews.push(crew);
    }
    !known.is_over
}

extern "C" fn end_all() {
    let end = Instant::now() + END_MOST;
    let Some(crews) = end_beginnings(end) else { return };
    for crew in crews.iter().filter_map(Weak::upgrade) {
        let Some(thread) = Flight::call_off(&*crew) else { continue };
        while !thread.is_finished() && Instant::now() < end {
            thread::sleep(NAP);
        }
    }
}

/// No thread begins from now on. Returns whose there are. `None`: there are none of this process, or, in a child that
/// was forked while another thread of its parent was here, nobody will ever tell.
fn end_beginnings(end: Instant) -> Option<Vec<Weak<dyn Crew>>> {
    loop {
        match CREWS.try_lock() {
            Ok(mut known) => {
                let ours = Crews { process: std::process::id(), is_over: true, crews: Vec::new() };
                let before = core::mem::replace(&mut *known, ours);
                return (before.process == std::process::id()).then_some(before.crews);
            }
            Err(TryLockError::WouldBlock) if Instant::now() < end => thread::sleep(NAP),
            Err(_) => return None,
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
