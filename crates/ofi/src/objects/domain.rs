//! A domain: the settings, the lock, and what all endpoints of the domain share.

use crate::addressing::addresses::Addresses;
use crate::border::bindings::*;
use crate::border::errno::{self, Errno, GIVE_WAY, INVALID, Result, TRY_AGAIN};
use crate::border::guard;
use crate::border::log;
use crate::border::misuse;
use crate::border::object::{Fid, Object};
use crate::objects::endpoint::Endpoint;
use crate::objects::fabric::Fabric;
use crate::objects::region::Regions;
use crate::parameter::{Progress, Settings};
use crate::threads::flight;
use crate::threads::lock::{DomainLock, Entered, Guarded, Refusal};
use crate::threads::pilot::Pilot;
use crate::threads::standby::Standby;
use std::io;
use std::sync::Arc;
use tidegate_link::{Bias, Maker};

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
    /// Makes progress while the application does not, if the application or the user wants that.
    pub pilot: Option<Arc<Pilot>>,
    /// Goes on with what the application leaves to do when it stops calling, unless the user wants no thread.
    pub standby: Option<Arc<Standby>>,
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
        let has_pilot = is_automatic || settings.progress == Progress::Thread;
        let pilot = has_pilot.then(|| Pilot::new().map(Arc::new)).transpose()?;
        let standby = (!has_pilot && settings.progress == Progress::OnDemand).then(|| Arc::new(Standby::new()));
        if pilot.is_some() || standby.is_some() {
            flight::guard_process();
        }
        let has_guest = standby.is_some() && !Bias::is_supported();
        Ok(Domain {
            fid: Fid::new(fid),
            fabric,
            settings,
            virtual_addresses: attr.mr_mode & FI_MR_BASIC != 0,
            state: Guarded::new(State::default()),
            lock: DomainLock::new(attr.threading != FI_THREAD_DOMAIN || pilot.is_some() || has_guest),
            pilot,
            standby,
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
        let _inside = match self.lock.acquire() {
            Ok(inside) => inside,
            Err(refusal) => return refuse(refusal),
        };
        if !self.lock.admits() {
            return refuse(self.lock.refusal());
        }
        // In a forked child this would wake the parent's.
        if let Some(pilot) = &self.pilot {
            pilot.note_call();
        }
        self.run_admitted(body)
    }

    /// The same for a call that may ask for the processor to be given away ([`GIVE_WAY`]), which is done outside of the
    /// domain: inside, it would keep all other threads out for as long as other processes run.
    #[inline(always)]
    pub fn enter_and_give_way(&self, body: impl FnOnce(&mut Entered) -> Result) -> isize {
        let outcome = self.enter(body);
        if outcome == GIVE_WAY.code() { self.give_way() } else { outcome }
    }

    #[cold]
    fn give_way(&self) -> isize {
        std::thread::yield_now();
        self.let_waiters_in();
        TRY_AGAIN.code()
    }

    /// A call that waits by entering again and again does this between two times: other threads, and the [`Pilot`], get
    /// in.
    pub fn let_waiters_in(&self) {
        self.lock.let_waiters_in();
    }

    /// The same for the [`Pilot`], which is no call of the application. It does not wait for a call that a signal
    /// handler has interrupted to end the process, or to fork: then the answer is `-FI_EAGAIN`.
    pub fn enter_uncounted(&self, body: impl FnOnce(&mut Entered) -> Result) -> isize {
        match self.lock.acquire_uncounted(flight::is_awaited) {
            Ok(_inside) => self.run(body),
            Err(Refusal::GivenUp) => TRY_AGAIN.code(),
            Err(refusal) => refuse(refusal),
        }
    }

    /// The same for the [`Standby`], if nobody is inside. `None`: somebody is. If it is asleep at the end, it may not
    /// come again before it was [admitted](Self::admit_guests). Fails if the system can not exclude it any more.
    pub fn visit(&self, standby: &Standby, body: impl FnOnce(&mut Entered) -> Result) -> io::Result<Option<isize>> {
        let Some(visit) = self.lock.try_visit()? else { return Ok(None) };
        let outcome = self.run(body);
        if standby.is_asleep() {
            visit.end_last();
        }
        Ok(Some(outcome))
    }

    /// From now on the [`Standby`] may come.
    pub fn admit_guests(&self, _entered: &mut Entered) {
        self.lock.admit_guests();
    }

    /// A number that changes with each call of the application since guests may come.
    pub fn calls(&self) -> u32 {
        self.lock.calls()
    }

    /// Makes ready for the [`Standby`], who calls this before it comes first.
    pub fn prepare_for_guest(&self) -> io::Result<()> {
        self.lock.prepare_for_guest()
    }

    /// Runs something inside the domain in a forked child, if it is known that no thread is inside. `None`: one is, or
    /// may be, which only the parent has, and which will never leave.
    pub fn enter_inherited(&self, body: impl FnOnce(&mut Entered) -> Result) -> Option<isize> {
        let _inside = self.lock.try_acquire()?;
        (!self.lock.is_poisoned()).then(|| self.run_admitted(body))
    }

    /// Runs the body with the lock held. Whether it may come in at all is looked at only now: another call may have
    /// panicked while this one waited for the lock.
    fn run(&self, body: impl FnOnce(&mut Entered) -> Result) -> isize {
        if !self.lock.admits() {
            return refuse(self.lock.refusal());
        }
        self.run_admitted(body)
    }

    #[inline(always)]
    fn run_admitted(&self, body: impl FnOnce(&mut Entered) -> Result) -> isize {
        let outcome = guard::catch(|| {
            // SAFETY: we hold the lock, or the application promised that nobody else is inside. A body does not enter
            // its domain again.
            let mut entered = unsafe { Entered::new() };
            body(&mut entered)
        });
        if outcome.is_none() {
            self.lock.poison();
        }
        outcome.map_or(Errno(FI_EOTHER).code(), errno::code)
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
