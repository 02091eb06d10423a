//! A domain: the settings, the lock, and what all endpoints of the domain share.

use crate::addressing::addresses::Addresses;
use crate::border::bindings::*;
use crate::border::errno::{self, Errno, INVALID, Result, TRY_AGAIN, YIELD, YIELD_BEFORE_ERROR};
use crate::border::guard;
use crate::border::log;
use crate::border::misuse;
use crate::border::object::{Fid, Object};
use crate::objects::counter::Counter;
use crate::objects::endpoint::Endpoint;
use crate::objects::fabric::Fabric;
use crate::objects::region::Regions;
use crate::parameter::{Progress, Settings};
use crate::threads::background;
use crate::threads::domain_lock::{DomainLock, Entered, Guarded, Inside, Refusal};
use crate::threads::poll_backoff::Policy;
use crate::threads::progress_thread::ProgressThread;
use std::collections::HashMap;
use std::sync::Arc;
use tidegate_link::Maker;

/// A domain.
#[repr(C)]
pub struct Domain {
    fid: Fid<fid_domain>,
    /// Its fabric.
    pub fabric: Arc<Fabric>,
    /// The user's parameters, read when the domain was opened.
    pub settings: Settings,
    /// Whether remote addresses are virtual addresses and keys are ours (`FI_MR_BASIC`).
    pub virtual_addresses: bool,
    /// Endpoints and regions.
    pub state: Guarded<State>,
    /// Makes progress while the application does not, unless the user wants no thread.
    pub progress_thread: Option<Arc<ProgressThread>>,
    /// Whether that thread makes all progress.
    always_progresses: bool,
    lock: DomainLock,
    maker: Maker,
}

/// What the lock guards.
#[derive(Default)]
pub struct State {
    /// Endpoints that can communicate.
    pub endpoints: Vec<Arc<Endpoint>>,
    /// Registered memory.
    pub regions: Regions,
    /// By key of a region, the counter that is bound to it.
    pub region_counters: HashMap<u64, Arc<Counter>>,
}

// SAFETY: `repr(C)`, and the C struct comes first.
unsafe impl Object for Domain {
    type Fid = fid_domain;
}

impl Domain {
    /// The object that `fi_domain` hands out.
    pub fn new(fid: fid_domain, fabric: Arc<Fabric>, settings: Settings, attr: &fi_domain_attr) -> Result<Domain> {
        let is_automatic = attr.data_progress == FI_PROGRESS_AUTO;
        if is_automatic && settings.progress == Progress::Calls {
            log::trouble(FI_LOG_DOMAIN, Progress::NO_THREAD);
            return Err(INVALID);
        }
        let policy = match settings.progress {
            Progress::Calls => None,
            Progress::OnDemand if !is_automatic => Some(Policy::WhenLeft),
            Progress::OnDemand | Progress::Thread => Some(Policy::Always),
        };
        let always_progresses = policy == Some(Policy::Always);
        let progress_thread = policy.map(|policy| ProgressThread::new(policy).map(Arc::new)).transpose()?;
        if progress_thread.is_some() {
            background::guard_process();
        }
        Ok(Domain {
            fid: Fid::new(fid),
            fabric,
            settings,
            virtual_addresses: attr.mr_mode & FI_MR_BASIC != 0,
            state: Guarded::new(State::default()),
            lock: DomainLock::new(attr.threading != FI_THREAD_DOMAIN || always_progresses),
            progress_thread,
            always_progresses,
            maker: Maker::here(),
        })
    }

    /// Whether this process is a child that was forked from the one that opened the domain.
    pub fn is_inherited(&self) -> bool {
        self.maker.is_ancestor()
    }

    /// Fails in a forked child, to which nothing in this domain belongs. What enters the domain need not ask.
    pub fn check_own(&self) -> Result<()> {
        if self.is_inherited() { Err(misuse::of_parent()) } else { Ok(()) }
    }

    /// Addresses have changed: lets the endpoints that they are bound to look up again what they need, and drop what
    /// they know of indices that have been removed.
    pub fn forget_addresses(&self, addresses: &Arc<Addresses>, removed: &[fi_addr_t], entered: &mut Entered) {
        for index in 0..self.state.get(entered).endpoints.len() {
            let endpoint = Arc::clone(&self.state.get(entered).endpoints[index]);
            let is_bound = endpoint.vector.get().is_some_and(|bound| Arc::ptr_eq(bound, addresses));
            if is_bound && let Some(active) = &mut endpoint.state.get(entered).active {
                active.forget_addresses();
                active.forget_waits(removed);
            }
        }
    }

    /// Runs one call inside the domain: holding its lock, and with a panic turned into `-FI_EOTHER`. After a panic the
    /// state may be half-changed, so the domain refuses all further calls. A forked child is refused, and so is a
    /// signal handler that has interrupted a call of its own thread ([`Refusal`]).
    #[inline(always)]
    pub fn enter(&self, body: impl FnOnce(&mut Entered) -> Result) -> isize {
        match self.lock.acquire(|| self.note_call()) {
            Ok(_inside) => self.run_admitted(body),
            Err(refusal) => refuse(refusal),
        }
    }

    /// Whether a call of this process may come in without more ado: the application serialises its calls, and no thread
    /// of ours may come in.
    #[inline(always)]
    pub fn is_unshared(&self) -> bool {
        self.lock.is_unshared()
    }

    /// The same for a call that may ask for the processor to be given away ([`YIELD`], [`YIELD_BEFORE_ERROR`]), which
    /// is done outside of the domain: inside, it would keep all other threads out for as long as other processes run.
    #[inline(always)]
    pub fn enter_and_yield(&self, body: impl FnOnce(&mut Entered) -> Result) -> isize {
        let outcome = self.enter(body);
        // The two are the least of all.
        if outcome <= YIELD_BEFORE_ERROR.code() { self.yield_now(outcome) } else { outcome }
    }

    /// Enters the domain at once, as a call; `None` if the lock is not free. Not for domains with a thread that makes
    /// all progress, which has to know of the call.
    #[inline(always)]
    pub fn enter_if_free(&self) -> Option<Inside<'_>> {
        debug_assert!(!self.always_progresses);
        self.lock.acquire_if_free()
    }

    /// Runs the rest of a call that [has entered](Self::enter_if_free), as [`enter_and_yield`](Self::enter_and_yield).
    pub fn go_on_and_yield(&self, inside: Inside<'_>, body: impl FnOnce(&mut Entered) -> Result) -> isize {
        let outcome = self.run_admitted(body);
        drop(inside);
        if outcome <= YIELD_BEFORE_ERROR.code() { self.yield_now(outcome) } else { outcome }
    }

    #[cold]
    fn yield_now(&self, outcome: isize) -> isize {
        std::thread::yield_now();
        self.let_waiters_in();
        if outcome == YIELD.code() { TRY_AGAIN.code() } else { Errno(FI_EAVAIL).code() }
    }

    /// A call that waits by entering again and again does this between two times: calls of other threads get in. (The
    /// [`ProgressThread`] mostly gets in before the next call enters.)
    pub fn let_waiters_in(&self) {
        self.lock.let_waiters_in();
    }

    /// Whether there is a thread that makes all progress, so that a call does not have to, and a waiting call makes
    /// that of all endpoints.
    #[inline(always)]
    pub fn always_progresses(&self) -> bool {
        self.always_progresses
    }

    /// A thread that makes all progress leaves it to the application from now on. The lock of its domain is shared
    /// always. (No forked child comes here: it would wake its parent's.)
    fn note_call(&self) {
        if let Some(thread) = self.progress_thread.as_ref().filter(|_| self.always_progresses) {
            thread.note_call();
        }
    }

    /// The same for a [`ProgressThread`] that makes all progress, which is no call of the application. It does not wait
    /// for a call that a signal handler has interrupted to end the process, or to fork: then the answer is
    /// `-FI_EAGAIN`.
    pub fn enter_always(&self, body: impl FnOnce(&mut Entered) -> Result) -> isize {
        self.lock.give_right_of_way();
        match self.lock.acquire_uncounted(background::is_awaited) {
            Ok(_inside) => self.run_admitted(body),
            Err(Refusal::GivenUp) => TRY_AGAIN.code(),
            Err(refusal) => refuse(refusal),
        }
    }

    /// The same for a [`ProgressThread`] that goes on with what is left, if no call is inside. `None`: one is. If the
    /// thread is asleep at the end, it may not come again before the lock was [shared](Self::share_lock).
    pub fn enter_shared(&self, thread: &ProgressThread, body: impl FnOnce(&mut Entered) -> Result) -> Option<isize> {
        let inside = self.lock.try_acquire_shared(background::is_awaited)?;
        let outcome = if self.lock.is_poisoned() { refuse(Refusal::Poisoned) } else { self.run_admitted(body) };
        if thread.is_asleep() {
            inside.leave_last();
        }
        Some(outcome)
    }

    /// From now on a [`ProgressThread`] that goes on with what is left may come in.
    pub fn share_lock(&self, _entered: &mut Entered) {
        self.lock.share();
    }

    /// A number that changes with each call of the application while the thread may come in.
    pub fn calls(&self) -> u32 {
        self.lock.calls()
    }

    /// Runs something inside the domain in a forked child, if it is known that no thread is inside. `None`: one is, or
    /// may be, which only the parent has, and which will never leave.
    pub fn enter_inherited(&self, body: impl FnOnce(&mut Entered) -> Result) -> Option<isize> {
        let _inside = self.lock.try_acquire()?;
        (!self.lock.is_poisoned()).then(|| self.run_admitted(body))
    }

    #[inline(always)]
    fn run_admitted(&self, body: impl FnOnce(&mut Entered) -> Result) -> isize {
        let outcome = guard::catch(|| {
            // SAFETY: we hold the lock, or the application promised that nobody else is inside. A body does not enter
            // its domain again.
            let mut entered = unsafe { Entered::new() };
            // A number, which fits into a register, as a `Result` does not.
            errno::code(body(&mut entered))
        });
        outcome.unwrap_or_else(|| {
            self.lock.poison();
            Errno(FI_EOTHER).code()
        })
    }
}

/// What a call returns that may not come in. Of a mistake of the application the user is told.
#[cold]
fn refuse(refusal: Refusal) -> isize {
    let errno = match refusal {
        Refusal::Poisoned => Errno(FI_EOTHER),
        Refusal::Inherited => misuse::of_parent(),
        Refusal::Inside => misuse::by_handler(),
        Refusal::GivenUp => TRY_AGAIN,
    };
    errno.code()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    /// A domain without an application.
    fn domain(threading: fi_threading) -> Domain {
        // SAFETY: these structs are plain data, and nobody looks into them or calls through their tables.
        let (fabric, fid, mut attr): (fid_fabric, fid_domain, fi_domain_attr) = unsafe { core::mem::zeroed() };
        attr.threading = threading;
        Domain::new(fid, Arc::new(Fabric::new(fabric)), Settings::default(), &attr).unwrap()
    }

    #[test]
    fn a_panic_ends_as_an_error_and_closes_the_domain_for_further_calls() {
        for threading in [FI_THREAD_SAFE, FI_THREAD_DOMAIN] {
            let domain = domain(threading);
            assert_eq!(domain.enter(|_| Ok(7)), 7);
            assert_eq!(domain.enter(|_| Err(INVALID)), INVALID.code());
            assert_eq!(domain.enter(|_| panic!("on purpose")), Errno(FI_EOTHER).code());
            let mut entered_again = false;
            let outcome = domain.enter(|_| {
                entered_again = true;
                Ok(0)
            });
            assert_eq!((outcome, entered_again), (Errno(FI_EOTHER).code(), false));
        }
    }

    // SAFETY: nobody calls through the tables of this domain without an application.
    unsafe impl Sync for Bare {}

    /// A domain that threads share.
    struct Bare(Domain);

    #[test]
    fn who_waits_for_the_lock_of_a_call_that_panics_does_nothing_either() {
        let shared = &Bare(domain(FI_THREAD_SAFE));
        let (inside, wait) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let outcome = shared.0.enter(|_| {
                    inside.send(()).unwrap();
                    std::thread::sleep(Duration::from_millis(100));
                    panic!("on purpose")
                });
                assert_eq!(outcome, Errno(FI_EOTHER).code());
            });
            wait.recv().unwrap();
            assert_eq!(shared.0.enter(|_| Ok(7)), Errno(FI_EOTHER).code());
        });
        assert_eq!(shared.0.enter_inherited(|_| Ok(7)), None);
    }
}
