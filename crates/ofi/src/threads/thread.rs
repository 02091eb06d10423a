//! Which thread this is ([`Thread`]), and a mutex that knows which one holds it ([`HandlerMutex`]).
//!
//! A signal handler of the application may call us, or `exit`, while the thread that it has interrupted is in a call of
//! ours. What that thread holds it will not release before the handler returns, so to wait for it would be to wait for
//! ever. Therefore a holder is known by its thread, and a thread that would wait for itself is told so. Where no call
//! of the application is under way for long, signals are kept out instead ([`SignalsBlocked`]).

use crate::threads::waits::{LOCK_NAP, SPINS, YIELDS};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ops::{Deref, DerefMut};
use core::ptr;
use tidegate_link::LockWord;

/// The identity of a thread among those that run now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread(pub usize);

impl Thread {
    /// The calling one. The thread that forks is the same in its child.
    #[inline(always)]
    pub fn current() -> Thread {
        Thread(address())
    }
}

/// The address of the thread's control block, which its first word holds.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn address() -> usize {
    let address;
    // SAFETY: on this architecture every thread has such a word, by the rules for thread-local storage.
    unsafe { core::arch::asm!("mov {}, fs:[0]", out(reg) address, options(nostack, preserves_flags, readonly)) };
    address
}

/// The address of the thread's control block.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn address() -> usize {
    let address;
    // SAFETY: reads a register that every thread may read.
    unsafe { core::arch::asm!("mrs {}, tpidr_el0", out(reg) address, options(nostack, preserves_flags, nomem)) };
    address
}

/// The address of something that each thread has for itself.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn address() -> usize {
    thread_local! {
        static PLACE: u8 = const { 0 };
    }
    PLACE.with(|place| (&raw const *place).addr())
}

/// The pauses of a thread that waits for another one: it spins, then gives the processor away, and sleeps at last,
/// because to a thread of a higher priority than the holder's the scheduler gives the processor back at once.
#[derive(Debug, Default)]
pub struct Backoff(u32);

impl Backoff {
    /// The number of pauses so far.
    pub fn pauses(&self) -> u32 {
        self.0
    }

    /// Sleeps, however few pauses there were.
    pub fn nap(&mut self) {
        self.0 = self.0.saturating_add(1);
        std::thread::sleep(LOCK_NAP);
    }

    /// Pauses.
    pub fn pause(&mut self) {
        self.0 = self.0.saturating_add(1);
        match self.0 {
            ..SPINS => core::hint::spin_loop(),
            SPINS..YIELDS => std::thread::yield_now(),
            YIELDS.. => std::thread::sleep(LOCK_NAP),
        }
    }
}

/// A mutex that says when its thread holds it already, instead of waiting for ever.
#[derive(Debug)]
pub struct HandlerMutex<T> {
    word: LockWord,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by the holder alone.
unsafe impl<T: Send> Sync for HandlerMutex<T> {}

/// The value of a [`HandlerMutex`], which is held until this is dropped.
#[derive(Debug)]
pub struct HandlerGuard<'a, T>(&'a HandlerMutex<T>);

impl<T> HandlerMutex<T> {
    /// Nobody holds it.
    pub const fn new(value: T) -> Self {
        HandlerMutex { word: LockWord::free(), value: UnsafeCell::new(value) }
    }

    /// Waits until no other thread holds it. `None`: this thread does; the caller runs in a signal handler.
    #[inline]
    pub fn lock(&self) -> Option<HandlerGuard<'_, T>> {
        let has_taken = self.word.try_take(Thread::current().0) || self.wait();
        has_taken.then(|| HandlerGuard(self))
    }

    #[cold]
    fn wait(&self) -> bool {
        let mut backoff = Backoff::default();
        while !self.word.take_if_free(Thread::current().0) {
            if self.word.is_held_by(Thread::current().0) {
                return false;
            }
            backoff.pause();
        }
        true
    }
}

impl<T> Deref for HandlerGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this thread holds the mutex, and has one guard.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for HandlerGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed mutably.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for HandlerGuard<'_, T> {
    fn drop(&mut self) {
        self.0.word.leave();
    }
}

/// Until this is dropped no handler of the application runs in this thread, nor in the threads that it begins, but for
/// signals that tell of what the thread itself does: the application may guard its pages with them. It costs two system
/// calls.
pub struct SignalsBlocked(libc::sigset_t);

impl SignalsBlocked {
    /// Signals wait from now on.
    #[allow(clippy::new_without_default)]
    pub fn new() -> SignalsBlocked {
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: both sets are filled by these calls before anybody looks at them.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            for own in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS] {
                libc::sigdelset(all.as_mut_ptr(), own);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            SignalsBlocked(before.assume_init())
        }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: the set lives through the call.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_told_apart() {
        assert_eq!(Thread::current(), Thread::current());
        let here = Thread::current();
        std::thread::spawn(move || assert_ne!(Thread::current(), here)).join().unwrap();
    }

    #[test]
    fn a_thread_that_would_wait_for_itself_is_told_so_and_others_wait() {
        let mutex = &HandlerMutex::new(0);
        let mut held = mutex.lock().unwrap();
        assert!(mutex.lock().is_none(), "this thread holds it");
        std::thread::scope(|scope| {
            let other = scope.spawn(move || {
                let mut held = mutex.lock().unwrap();
                let found = *held;
                *held += 1;
                found
            });
            std::thread::sleep(std::time::Duration::from_millis(20));
            *held = 7;
            drop(held);
            assert_eq!(other.join().unwrap(), 7);
        });
        assert_eq!(*mutex.lock().unwrap(), 8);
    }

    #[test]
    fn signals_wait_while_they_are_blocked() {
        let is_blocked = || {
            let mut now = MaybeUninit::uninit();
            // SAFETY: the call fills the set, which lives through both.
            unsafe {
                libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), now.as_mut_ptr());
                [libc::SIGALRM, libc::SIGSEGV].map(|signal| libc::sigismember(now.as_ptr(), signal) == 1)
            }
        };
        let outer = SignalsBlocked::new();
        drop(SignalsBlocked::new());
        assert_eq!(is_blocked(), [true, false], "the inner one has changed nothing");
        drop(outer);
        assert_eq!(is_blocked(), [false, false]);
    }
}
