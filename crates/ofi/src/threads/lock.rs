//! The domain's lock, and [`Guarded`]: state that can only be reached by whoever holds it.
//!
//! An application that asked for `FI_THREAD_DOMAIN` promises to serialise its calls into a domain itself: then all that
//! is left to exclude is a thread of ours that comes rarely (`standby`), at little cost to the calls ([`Bias`]), and at
//! none but a look while that thread sleeps. For everything else there is one lock per domain. It is held for the
//! length of one call, which is bounded and never sleeps.
//!
//! Two callers are refused instead ([`Refusal`]): a forked child, to which nothing inside belongs, and a signal handler
//! that has interrupted its own thread inside, which would wait for itself. Where the application serialises its calls,
//! nothing says that a thread is inside, and a handler is not refused.

use crate::threads::thread::{Backoff, Holder, SPINS, YIELDS};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::io;
use tidegate_link::{Bias, process};

/// Tries before a guest gives up. It tries that often because who polls gives the processor away inside, so where many
/// want a processor, somebody is inside nearly always.
const GUEST_TRIES: u32 = YIELDS + 200;

/// Stands for the number of a process that may come in: no process may any more.
const POISONED: u32 = u32::MAX;

/// Why a call may not come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A call has panicked inside, and may have left the state half-changed.
    Poisoned,
    /// This process is a forked child that has inherited the domain.
    Inherited,
    /// This thread is inside already: the caller is a signal handler that has interrupted it there.
    Inside,
    /// The caller did not want to wait any longer.
    GivenUp,
}

/// One lock per domain.
#[derive(Debug)]
pub struct DomainLock {
    /// Whether the application leaves the serialising to us.
    needed: bool,
    /// Who has it, where it is needed.
    holder: Holder,
    /// The number of the process whose calls may come in, or [`POISONED`].
    admitted: AtomicU32,
    /// How often it was taken where it is needed, but for guests.
    taken: AtomicU32,
    /// What excludes the guest where it is not. Where it is, this is open always: a call looks at that first.
    bias: Bias,
    /// A call waits: guests let it in before they come again. It sleeps between two looks in the end, and would hardly
    /// ever look in the moment between two visits.
    has_waiter: AtomicBool,
}

/// Who is inside, until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Inside<'a>(&'a DomainLock);

/// A guest who is inside, until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Visit<'a> {
    lock: &'a DomainLock,
    is_last: bool,
}

impl DomainLock {
    /// A lock, or one that only excludes guests because the application serialises its calls.
    pub fn new(needed: bool) -> Self {
        DomainLock {
            needed,
            holder: Holder::new(),
            admitted: AtomicU32::new(process::number()),
            taken: AtomicU32::new(0),
            bias: Bias::new(needed),
            has_waiter: AtomicBool::new(false),
        }
    }

    /// Whether calls of this process may come in. It is to be asked from inside: another thread may have panicked while
    /// this one waited.
    #[inline(always)]
    pub fn admits(&self) -> bool {
        self.admitted.load(Ordering::Relaxed) == process::current()
    }

    /// Why calls of this process may not come in.
    #[cold]
    pub fn refusal(&self) -> Refusal {
        if self.is_poisoned() { Refusal::Poisoned } else { Refusal::Inherited }
    }

    /// Whether a call has panicked inside.
    pub fn is_poisoned(&self) -> bool {
        self.admitted.load(Ordering::Relaxed) == POISONED
    }

    /// A call has panicked inside: no other may come in any more.
    pub fn poison(&self) {
        self.admitted.store(POISONED, Ordering::Relaxed);
    }

    /// Waits until the lock is free and takes it.
    #[inline(always)]
    pub fn acquire(&self) -> Result<Inside<'_>, Refusal> {
        if !self.bias.is_open() {
            return Ok(Inside(self));
        }
        if self.needed {
            let inside = self.acquire_uncounted(|| false)?;
            self.taken.store(self.taken.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
            return Ok(inside);
        }
        if !self.bias.try_enter() {
            self.wait(|| !self.bias.is_open() || self.bias.try_enter(), || false)?;
        }
        Ok(Inside(self))
    }

    /// The same for a caller that is no call of the application, and that may give up, where the lock is needed.
    #[inline(always)]
    pub fn acquire_uncounted(&self, gives_up: impl Fn() -> bool) -> Result<Inside<'_>, Refusal> {
        if !self.holder.try_take() {
            self.wait(|| self.holder.take_if_free(), gives_up)?;
        }
        Ok(Inside(self))
    }

    /// Takes the lock if it is known to be free, or becomes free in a moment. Where the application serialises its
    /// calls, nobody says that it is inside while no guest may come.
    pub fn try_acquire(&self) -> Option<Inside<'_>> {
        let come_in = || match (self.bias.is_open(), self.needed) {
            (false, _) => false,
            (true, true) => self.holder.try_take(),
            (true, false) => !self.bias.is_inside() && self.bias.try_enter(),
        };
        (0..SPINS).any(|_| come_in()).then(|| Inside(self))
    }

    /// For a thread that waits by coming in again and again: lets those in first that wait outside. This takes a
    /// bounded time, because a thread may end while it waits.
    pub fn let_waiters_in(&self) {
        let mut backoff = Backoff::default();
        while self.has_waiter.load(Ordering::Relaxed) {
            if backoff.pauses() >= GUEST_TRIES {
                // A thread that still waits says so again.
                self.has_waiter.store(false, Ordering::Relaxed);
            }
            backoff.pause();
        }
    }

    /// A number that changes with each [`acquire`](Self::acquire) since guests may come.
    pub fn calls(&self) -> u32 {
        if self.needed { self.taken.load(Ordering::Relaxed) } else { self.bias.visits() }
    }

    /// From now on guests may come. The caller is inside.
    pub fn admit_guests(&self) {
        self.bias.open();
    }

    /// Makes ready for a guest. To be called before the first [`try_visit`](Self::try_visit), and by the guest: in a
    /// process with several threads it takes milliseconds.
    pub fn prepare_for_guest(&self) -> io::Result<()> {
        if self.needed { Ok(()) } else { Bias::prepare() }
    }

    /// Lets a guest in, if it was [admitted](Self::admit_guests) since its [last visit](Visit::end_last), and nobody is
    /// inside or who is goes out soon. Fails if guests cannot be excluded any more.
    pub fn try_visit(&self) -> io::Result<Option<Visit<'_>>> {
        let mut backoff = Backoff::default();
        let mut wait = || {
            backoff.pause();
            backoff.pauses() < GUEST_TRIES
        };
        // Not for ever: a thread may end while it waits.
        while self.has_waiter.load(Ordering::Relaxed) {
            if !wait() {
                break;
            }
        }
        let has_come = match self.needed {
            true => loop {
                if self.holder.take_if_free() {
                    break true;
                }
                if !wait() {
                    break false;
                }
            },
            false => self.bias.try_visit(wait)?,
        };
        Ok(has_come.then(|| Visit { lock: self, is_last: false }))
    }

    /// Tries until it is in. In a forked child the lock may be held by a thread that only the parent has.
    #[cold]
    fn wait(&self, come_in: impl Fn() -> bool, gives_up: impl Fn() -> bool) -> Result<(), Refusal> {
        let mut backoff = Backoff::default();
        let outcome = loop {
            if come_in() {
                break Ok(());
            }
            if !self.admits() {
                break Err(self.refusal());
            }
            if self.holder.is_own() {
                break Err(Refusal::Inside);
            }
            if gives_up() {
                break Err(Refusal::GivenUp);
            }
            self.has_waiter.store(true, Ordering::Relaxed);
            backoff.pause();
        };
        self.has_waiter.store(false, Ordering::Relaxed);
        outcome
    }
}

impl Drop for Inside<'_> {
    /// Releases the lock.
    #[inline(always)]
    fn drop(&mut self) {
        let DomainLock { needed, holder, bias, .. } = self.0;
        if !bias.is_open() {
            return;
        }
        if *needed {
            holder.release();
        } else {
            bias.leave();
        }
    }
}

impl Visit<'_> {
    /// The guest goes out, and does not come again before it is admitted.
    pub fn end_last(mut self) {
        self.is_last = true;
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let DomainLock { needed, holder, bias, .. } = self.lock;
        match (*needed, self.is_last) {
            (true, _) => holder.release(),
            (false, true) => bias.end_last_visit(),
            (false, false) => bias.end_visit(),
        }
    }
}

/// Proof that the caller has entered a domain: holds its lock, or was promised by the application to be alone.
#[derive(Debug)]
pub struct Entered(());

impl Entered {
    /// # Safety
    /// Until the value is dropped, no other thread may hold such a value of the same domain, and this thread may not
    /// make a second one.
    #[inline(always)]
    pub unsafe fn new() -> Self {
        Entered(())
    }
}

/// State of an object of a domain. Borrowing it borrows the proof, so two mutable borrows cannot exist at once.
#[derive(Debug)]
pub struct Guarded<T>(UnsafeCell<T>);

// SAFETY: all access goes through `get`, which needs the proof that no other thread is inside the domain.
unsafe impl<T> Sync for Guarded<T> {}
// SAFETY: an object may be closed by another thread than the one that opened it; what it holds (memory of the
// application, shared memory, file descriptors) is not bound to a thread.
unsafe impl<T> Send for Guarded<T> {}

impl<T> Guarded<T> {
    /// State that only a proof opens.
    pub fn new(value: T) -> Self {
        Guarded(UnsafeCell::new(value))
    }

    /// The state. The proof must be of the domain that the object belongs to. That holds because every method of an
    /// object is called with the proof that a call on this object, or on another object of its domain, has made; `bind`
    /// refuses objects of other domains.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub fn get<'a>(&'a self, _entered: &'a mut Entered) -> &'a mut T {
        // SAFETY: `Entered` is unique in its domain, and it is mutably borrowed for as long as this borrow lasts.
        unsafe { &mut *self.0.get() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU64;
    use std::time::Duration;

    /// One more, by who is inside alone.
    fn count(shared: &Guarded<u64>) {
        // SAFETY: that nobody else is inside is what the test is about.
        let mut entered = unsafe { Entered::new() };
        let count = shared.get(&mut entered);
        let before = *count;
        std::thread::yield_now();
        *count = before + 1;
    }

    #[test]
    fn calls_and_guests_exclude_each_other() {
        const CALLS: u64 = 3_000;
        for (needed, callers) in [(true, 3), (false, 1)] {
            let shared = &(DomainLock::new(needed), Guarded::new(0));
            if shared.0.prepare_for_guest().is_err() {
                continue;
            }
            let (visits, calls) = (&AtomicU64::new(0), &AtomicU64::new(0));
            std::thread::scope(|scope| {
                // Among several callers the guest may find the lock taken always.
                let goes_on = |number| number < CALLS || (!needed && visits.load(Ordering::Relaxed) == 0);
                let call = |number| {
                    let _inside = shared.0.acquire().unwrap();
                    count(&shared.1);
                    if number % 100 == 0 {
                        shared.0.admit_guests();
                    }
                    calls.fetch_add(1, Ordering::Relaxed);
                };
                let call_all = move || (0..).take_while(|&number| goes_on(number)).for_each(call);
                let callers: Vec<_> = (0..callers).map(|_| scope.spawn(call_all)).collect();
                while !callers.iter().all(|caller| caller.is_finished()) {
                    let Some(visit) = shared.0.try_visit().unwrap() else { continue };
                    count(&shared.1);
                    if (visits.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(10) {
                        visit.end_last();
                    }
                }
            });
            let (visits, calls) = (visits.load(Ordering::Relaxed), calls.load(Ordering::Relaxed));
            assert!(calls >= callers * CALLS && (needed || visits > 0));
            // SAFETY: the other threads have ended.
            let mut entered = unsafe { Entered::new() };
            assert_eq!(*shared.1.get(&mut entered), calls + visits);
        }
    }

    #[test]
    fn a_lock_that_nobody_will_release_can_be_left_alone() {
        let lock = DomainLock::new(true);
        let inside = lock.try_acquire().unwrap();
        assert!(lock.try_acquire().is_none());
        drop(inside);
        assert!(lock.try_acquire().is_some());
        let lock = DomainLock::new(false);
        let inside = lock.acquire().unwrap();
        assert!(lock.try_acquire().is_none(), "nobody says a word, and somebody may be inside");
        lock.admit_guests();
        assert!(lock.try_acquire().is_none());
        drop(inside);
        assert!(lock.try_acquire().is_some());
    }

    #[test]
    fn a_thread_that_is_inside_and_one_that_gives_up_do_not_wait() {
        let lock = &DomainLock::new(true);
        let inside = lock.acquire().unwrap();
        assert_eq!(lock.acquire().unwrap_err(), Refusal::Inside, "it would wait for itself");
        std::thread::scope(|scope| {
            let other = || lock.acquire_uncounted(|| true).map(|_| ()).unwrap_err();
            assert_eq!(scope.spawn(other).join().unwrap(), Refusal::GivenUp);
            lock.poison();
            let other = || lock.acquire().map(|_| ()).unwrap_err();
            assert_eq!(scope.spawn(other).join().unwrap(), Refusal::Poisoned);
        });
        drop(inside);
        assert!(!lock.admits() && lock.refusal() == Refusal::Poisoned);
    }

    #[test]
    fn who_waits_comes_in_before_the_guest_comes_again_and_again() {
        for needed in [true, false] {
            let lock = &DomainLock::new(needed);
            if lock.prepare_for_guest().is_err() {
                continue;
            }
            let inside = lock.acquire().unwrap();
            lock.admit_guests();
            drop(inside);
            let (visits, is_over) = (&AtomicU32::new(0), &AtomicBool::new(false));
            let waited: u32 = std::thread::scope(|scope| {
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        if let Some(_visit) = lock.try_visit().unwrap() {
                            visits.fetch_add(1, Ordering::Relaxed);
                            std::thread::sleep(Duration::from_millis(1));
                        }
                    }
                });
                let waits = (0..50).map(|_| {
                    let before = visits.load(Ordering::Relaxed);
                    let inside = lock.acquire().unwrap();
                    let came = visits.load(Ordering::Relaxed) - before;
                    drop(inside);
                    std::thread::sleep(Duration::from_millis(1));
                    came
                });
                let waited = waits.sum();
                is_over.store(true, Ordering::Relaxed);
                waited
            });
            assert!(waited < 10 * 50, "{waited} visits while 50 calls waited");
        }
    }

    #[test]
    fn guests_come_in_when_nobody_is_inside_and_are_no_calls() {
        for needed in [true, false] {
            let lock = DomainLock::new(needed);
            if lock.prepare_for_guest().is_err() {
                continue;
            }
            let inside = lock.acquire().unwrap();
            lock.admit_guests();
            assert!(lock.try_visit().unwrap().is_none(), "who admits guests is inside");
            drop(inside);
            let calls = lock.calls();
            let visit = lock.try_visit().unwrap().unwrap();
            assert!(lock.try_acquire().is_none());
            drop(visit);
            assert_eq!(lock.calls(), calls);
            let inside = lock.acquire().unwrap();
            assert!(lock.calls() != calls && lock.try_visit().unwrap().is_none() && lock.try_acquire().is_none());
            drop(inside);
            lock.try_visit().unwrap().unwrap().end_last();
            assert_eq!(lock.try_visit().unwrap().is_some(), needed, "where the lock is needed all may take it");
        }
    }
}
