//! The domain's lock, and [`Guarded`]: state that can only be reached by whoever holds it.
//!
//! An application that asked for `FI_THREAD_DOMAIN` promises to serialise its calls into a domain itself: then the lock
//! does nothing, unless a thread of ours is there as well (`pilot`). For everything else there is one lock per domain.
//! It is held for the length of one call, which is bounded and never sleeps, so waiting means spinning a little and
//! then giving the processor away.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

/// Tries before a waiting thread gives the processor away.
const SPINS: u32 = 100;

/// One lock per domain.
#[derive(Debug)]
pub struct DomainLock {
    /// Whether the application leaves the serialising to us.
    needed: bool,
    held: AtomicBool,
}

impl DomainLock {
    /// A lock, or one that does nothing because the application serialises its calls.
    pub fn new(needed: bool) -> Self {
        DomainLock { needed, held: AtomicBool::new(false) }
    }

    /// Waits until the lock is free and takes it.
    #[inline(always)]
    pub fn acquire(&self) {
        if self.needed && self.held.swap(true, Ordering::Acquire) {
            self.wait();
        }
    }

    #[cold]
    fn wait(&self) {
        loop {
            for _ in 0..SPINS {
                if !self.held.load(Ordering::Relaxed) && !self.held.swap(true, Ordering::Acquire) {
                    return;
                }
                core::hint::spin_loop();
            }
            std::thread::yield_now();
        }
    }

    /// Takes the lock if it is free, or becomes free in a moment. Returns whether.
    pub fn try_acquire(&self) -> bool {
        !self.needed || (0..SPINS).any(|_| !self.held.swap(true, Ordering::Acquire))
    }

    /// Releases the lock.
    #[inline(always)]
    pub fn release(&self) {
        if self.needed {
            self.held.store(false, Ordering::Release);
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
    fn a_lock_that_is_not_needed_never_waits() {
        let lock = DomainLock::new(false);
        assert!(lock.try_acquire() && lock.try_acquire());
        lock.acquire();
        lock.acquire();
        lock.release();
    }
}
