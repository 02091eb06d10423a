//! The domain's lock, and [`Guarded`]: state that can only be reached by whoever holds it.
//!
//! An application that asked for `FI_THREAD_DOMAIN` promises to serialise its calls into a domain itself: then all that
//! is left to exclude is a thread of ours that comes rarely (`standby`), at no cost to the calls ([`Bias`]). For
//! everything else there is one lock per domain. It is held for the length of one call, which is bounded and never
//! sleeps, so waiting means spinning a little, then giving the processor away, and sleeping at last: to who has a
//! higher priority than the one inside, the scheduler gives the processor back at once ([`Patience`]).

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::io;
use std::time::Duration;
use tidegate_link::Bias;

/// Tries before a waiting thread gives the processor away.
const SPINS: u32 = 100;
/// Tries before it sleeps between two of them.
const YIELDS: u32 = SPINS + 400;
/// For how long.
const SLEEP: Duration = Duration::from_micros(50);
/// Tries before a guest gives up. It tries that often because who polls gives the processor away inside, so where many
/// want a processor, somebody is inside nearly always.
const GUEST_TRIES: u32 = YIELDS + 200;

/// Who waits for somebody who is inside.
#[derive(Debug, Default)]
struct Patience(u32);

impl Patience {
    /// Whether a guest had better come another time.
    fn is_over_for_guest(&self) -> bool {
        self.0 >= GUEST_TRIES
    }

    fn wait(&mut self) {
        self.0 = self.0.saturating_add(1);
        match self.0 {
            ..SPINS => core::hint::spin_loop(),
            SPINS..YIELDS => std::thread::yield_now(),
            YIELDS.. => std::thread::sleep(SLEEP),
        }
    }
}

/// One lock per domain.
#[derive(Debug)]
pub struct DomainLock {
    /// Whether the application leaves the serialising to us.
    needed: bool,
    held: AtomicBool,
    /// How often it was taken where it is needed, but for guests.
    taken: AtomicU32,
    /// What excludes the guest where it is not.
    bias: Bias,
    /// A call waits: guests let it in before they come again. It sleeps between two looks in the end, and would hardly
    /// ever look in the moment between two visits.
    has_waiter: AtomicBool,
}

impl DomainLock {
    /// A lock, or one that only excludes guests because the application serialises its calls.
    pub fn new(needed: bool) -> Self {
        DomainLock {
            needed,
            held: AtomicBool::new(false),
            taken: AtomicU32::new(0),
            bias: Bias::default(),
            has_waiter: AtomicBool::new(false),
        }
    }

    /// Waits until the lock is free and takes it.
    #[inline(always)]
    pub fn acquire(&self) {
        if self.needed {
            self.acquire_uncounted();
            self.taken.store(self.taken.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        } else if !self.bias.try_enter() {
            self.wait(|| self.bias.try_enter());
        }
    }

    /// The same for who is no call of the application, where the lock is needed.
    #[inline(always)]
    pub fn acquire_uncounted(&self) {
        if self.held.swap(true, Ordering::Acquire) {
            self.wait(|| self.take_if_free());
        }
    }

    /// A number that changes with each [`acquire`](Self::acquire).
    pub fn calls(&self) -> u32 {
        if self.needed { self.taken.load(Ordering::Relaxed) } else { self.bias.visits() }
    }

    /// Makes ready for a guest. To be called before the first [`try_visit`](Self::try_visit), and by the guest: in a
    /// process with several threads it takes milliseconds.
    pub fn prepare_for_guest(&self) -> io::Result<()> {
        if self.needed { Ok(()) } else { Bias::prepare() }
    }

    /// Lets a guest in, if nobody is inside, or goes out soon. Returns whether. Fails if guests cannot be excluded any
    /// more.
    pub fn try_visit(&self) -> io::Result<bool> {
        let mut patience = Patience::default();
        let mut wait = || {
            patience.wait();
            !patience.is_over_for_guest()
        };
        // Not for ever: a thread may end while it waits.
        while self.has_waiter.load(Ordering::Relaxed) {
            if !wait() {
                break;
            }
        }
        if !self.needed {
            return self.bias.try_visit(wait);
        }
        while !self.take_if_free() {
            if !wait() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The guest goes out.
    pub fn end_visit(&self) {
        if self.needed { self.release() } else { self.bias.end_visit() }
    }

    /// Tries until it is in.
    #[cold]
    fn wait(&self, come_in: impl Fn() -> bool) {
        let mut patience = Patience::default();
        while !come_in() {
            self.has_waiter.store(true, Ordering::Relaxed);
            patience.wait();
        }
        self.has_waiter.store(false, Ordering::Relaxed);
    }

    /// For who looks again and again: the line of the lock is left to its holder until it is free.
    fn take_if_free(&self) -> bool {
        !self.held.load(Ordering::Relaxed) && !self.held.swap(true, Ordering::Acquire)
    }

    /// Takes the lock if it is free, or becomes free in a moment. Returns whether.
    pub fn try_acquire(&self) -> bool {
        (0..SPINS).any(|_| match self.needed {
            true => !self.held.swap(true, Ordering::Acquire),
            false => !self.bias.is_inside() && self.bias.try_enter(),
        })
    }

    /// Releases the lock.
    #[inline(always)]
    pub fn release(&self) {
        if self.needed {
            self.held.store(false, Ordering::Release);
        } else {
            self.bias.leave();
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
    use std::sync::Arc;

    #[test]
    fn the_lock_excludes() {
        let shared = Arc::new((DomainLock::new(true), Guarded::new(0u64)));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || {
                    for _ in 0..20_000 {
                        shared.0.acquire();
                        // SAFETY: the lock is held.
                        let mut entered = unsafe { Entered::new() };
                        *shared.1.get(&mut entered) += 1;
                        shared.0.release();
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        // SAFETY: the other threads have ended.
        let mut entered = unsafe { Entered::new() };
        assert_eq!(*shared.1.get(&mut entered), 80_000);
    }

    #[test]
    fn a_lock_that_nobody_will_release_can_be_left_alone() {
        let lock = DomainLock::new(true);
        assert!(lock.try_acquire());
        assert!(!lock.try_acquire());
        lock.release();
        assert!(lock.try_acquire());
    }

    #[test]
    fn who_waits_comes_in_before_the_guest_comes_again_and_again() {
        for needed in [true, false] {
            let lock = &DomainLock::new(needed);
            if lock.prepare_for_guest().is_err() {
                continue;
            }
            let (visits, is_over) = (&AtomicU32::new(0), &AtomicBool::new(false));
            let waited: u32 = std::thread::scope(|scope| {
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        if lock.try_visit().unwrap() {
                            visits.fetch_add(1, Ordering::Relaxed);
                            std::thread::sleep(Duration::from_millis(1));
                            lock.end_visit();
                        }
                    }
                });
                let waits = (0..50).map(|_| {
                    let before = visits.load(Ordering::Relaxed);
                    lock.acquire();
                    let came = visits.load(Ordering::Relaxed) - before;
                    lock.release();
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
            let calls = lock.calls();
            assert!(lock.try_visit().unwrap() && !lock.try_acquire());
            lock.end_visit();
            assert_eq!(lock.calls(), calls);
            lock.acquire();
            assert!(lock.calls() != calls && !lock.try_visit().unwrap() && !lock.try_acquire());
            lock.release();
            assert!(lock.try_visit().unwrap());
            lock.end_visit();
        }
    }
}
