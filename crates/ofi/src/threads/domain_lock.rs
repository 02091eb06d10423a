//! The domain's lock, and [`Guarded`]: state that can only be reached by whoever holds it.
//!
//! There is one lock per domain, a [`LockWord`]. It is held for the length of one call, which is bounded, and sleeps
//! only where a thread is begun, a table of peers is locked by another process, or a network is opened, for
//! milliseconds at most. An application that asked for `FI_THREAD_DOMAIN` promises to serialise its calls into a domain
//! itself. Then all that is left to exclude is a thread of ours that comes rarely (`progress_thread`), and as long as
//! that thread is not armed a call does no more than to load the word.
//!
//! Two callers are refused instead ([`Refusal`]): a forked child, to which nothing inside belongs, and a signal handler
//! that has interrupted its own thread inside, which would wait for itself. While the word is unshared nothing says
//! that a call is inside, and a handler is not refused.

use crate::threads::thread::{Backoff, Thread};
use crate::threads::waits::{SECOND_THREAD_TRIES, SPINS, THREAD_FIRST_NAPS, THREAD_FIRST_TRIES};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tidegate_link::{LockWord, process};

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
    word: LockWord,
    /// Whether the application leaves the serialising to us: then the word is never unshared.
    needed: bool,
    /// The number of the process whose calls may come in, or [`POISONED`].
    admitted: AtomicU32,
    /// How often a call took it while it was shared.
    taken: AtomicU32,
    /// A call waits, or the thread that makes all progress: the thread that goes on with what is left lets it in before
    /// it comes again, and so does a call that waits by coming in again and again. The waiting thread sleeps between
    /// two tries in the end, and would hardly ever try in the moment between two visits.
    has_waiter: AtomicBool,
    /// A thread of ours waits, or a call that has waited for longer than most calls take: the next call lets it in
    /// first, if it comes within [`let_urgent_in`](Self::let_urgent_in). A caller that comes again at once would hardly
    /// ever leave it the lock. Several threads that wait have one flag, and who of them gets in is chance: among many
    /// callers with long calls one may wait for hundreds of them.
    is_urgent: AtomicBool,
}

/// The caller is inside, until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Inside<'a>(&'a DomainLock);

impl DomainLock {
    /// A lock, or one that only excludes a thread of ours because the application serialises its calls.
    pub fn new(needed: bool) -> Self {
        let process = process::number();
        DomainLock {
            word: if needed { LockWord::free() } else { LockWord::unshared(process) },
            needed,
            admitted: AtomicU32::new(process),
            taken: AtomicU32::new(0),
            has_waiter: AtomicBool::new(false),
            is_urgent: AtomicBool::new(false),
        }
    }

    /// Whether calls of this process may come in. It is to be asked from inside: another thread may have panicked while
    /// this one waited.
    fn admits(&self) -> bool {
        self.admitted.load(Ordering::Relaxed) == process::current()
    }

    /// Why calls of this process may not come in.
    #[cold]
    fn refusal(&self) -> Refusal {
        if self.is_poisoned() { Refusal::Poisoned } else { Refusal::Inherited }
    }

    /// Whether a call has panicked inside.
    pub fn is_poisoned(&self) -> bool {
        self.admitted.load(Ordering::Relaxed) == POISONED
    }

    /// A call has panicked inside: no other may come in any more.
    pub fn poison(&self) {
        self.admitted.store(POISONED, Ordering::Relaxed);
        self.word.bar();
    }

    /// Whether the calls of this process have it to themselves, so that one that asks is inside.
    #[inline(always)]
    pub fn is_unshared(&self) -> bool {
        self.word.is_unshared_for(process::current())
    }

    /// Waits until the lock is free and takes it. `note_shared` is called inside if the lock is shared.
    #[inline(always)]
    pub fn acquire(&self, note_shared: impl FnOnce()) -> Result<Inside<'_>, Refusal> {
        if self.is_unshared() {
            return Ok(Inside(self));
        }
        self.give_right_of_way();
        let inside = self.acquire_uncounted(|| false)?;
        self.taken.store(self.taken.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        note_shared();
        Ok(inside)
    }

    /// The same for a call that finds the lock shared and free, and calls of this process admitted.
    #[inline(always)]
    pub fn acquire_if_free(&self) -> Option<Inside<'_>> {
        if self.is_urgent.load(Ordering::Relaxed) || !self.word.try_take(Thread::current().0) {
            return None;
        }
        let inside = Inside(self);
        self.taken.store(self.taken.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.admits().then_some(inside)
    }

    /// The same for the thread of ours, which is no call of the application, and may give up.
    #[inline(always)]
    pub fn acquire_uncounted(&self, gives_up: impl Fn() -> bool) -> Result<Inside<'_>, Refusal> {
        if !self.word.try_take(Thread::current().0) {
            self.wait(gives_up)?;
        }
        let inside = Inside(self);
        if self.admits() { Ok(inside) } else { Err(self.refusal()) }
    }

    /// Takes the lock if it is known to be free, or becomes free in a moment. While it is unshared, nothing says
    /// whether a call is inside.
    pub fn try_acquire(&self) -> Option<Inside<'_>> {
        (0..SPINS).any(|_| self.word.take_if_free(Thread::current().0)).then(|| Inside(self))
    }

    /// For a thread that waits by coming in again and again: lets those in first that wait outside. It tries a bounded
    /// number of times, because a thread may end while it waits.
    pub fn let_waiters_in(&self) {
        let_in(&self.has_waiter, SECOND_THREAD_TRIES, 0, || false);
    }

    /// Waits outside until a thread has come in, if that of another is [urgent](Self::is_urgent). The number of tries
    /// is bounded: the other one may have no processor, and a caller may be a signal handler that has interrupted its
    /// own thread inside, for which all wait.
    #[inline(always)]
    pub fn give_right_of_way(&self) {
        if self.is_urgent.load(Ordering::Relaxed) {
            self.let_urgent_in();
        }
    }

    #[cold]
    #[inline(never)]
    fn let_urgent_in(&self) {
        let_in(&self.is_urgent, THREAD_FIRST_TRIES, THREAD_FIRST_NAPS, || false);
    }

    /// A number that changes with each [`acquire`](Self::acquire) while the lock is shared.
    pub fn calls(&self) -> u32 {
        self.taken.load(Ordering::Relaxed)
    }

    /// From now on the thread of ours may come in too. The caller is inside.
    pub fn share(&self) {
        self.word.share(Thread::current().0);
    }

    /// For the thread of ours: takes the lock, if it is [shared](Self::share), and free, or a call that is inside
    /// leaves soon. The next call waits meanwhile. `gives_up` is asked again and again.
    pub fn try_acquire_shared(&self, gives_up: impl Fn() -> bool) -> Option<Inside<'_>> {
        let wait = |backoff: &mut Backoff| {
            backoff.pause();
            backoff.pauses() < SECOND_THREAD_TRIES && !gives_up()
        };
        let_in(&self.has_waiter, SECOND_THREAD_TRIES, 0, &gives_up);
        let (thread, mut backoff) = (Thread::current().0, Backoff::default());
        let has_come = loop {
            if self.word.take_if_free(thread) {
                break true;
            }
            if self.word.is_unshared() {
                break false;
            }
            raise(&self.is_urgent);
            if !wait(&mut backoff) {
                // A call may wait for this thread to come in.
                break self.word.take_if_free(thread);
            }
        };
        self.is_urgent.store(false, Ordering::Relaxed);
        has_come.then(|| Inside(self))
    }

    /// Tries until it is in. In a forked child the lock may be held by a thread that only the parent has.
    #[cold]
    fn wait(&self, gives_up: impl Fn() -> bool) -> Result<(), Refusal> {
        let mut backoff = Backoff::default();
        let thread = Thread::current().0;
        let outcome = loop {
            // Each time anew: the thread of ours may have left for the last time.
            if self.word.take_if_free(thread) || self.word.is_unshared_for(process::current()) {
                break Ok(());
            }
            if !self.admits() {
                break Err(self.refusal());
            }
            if self.word.is_held_by(thread) {
                break Err(Refusal::Inside);
            }
            if gives_up() {
                break Err(Refusal::GivenUp);
            }
            raise(&self.has_waiter);
            if backoff.pauses() >= SPINS {
                raise(&self.is_urgent);
            }
            backoff.pause();
        };
        // A flag that only others have raised is theirs.
        if backoff.pauses() > 0 {
            self.has_waiter.store(false, Ordering::Relaxed);
        }
        if backoff.pauses() > SPINS {
            self.is_urgent.store(false, Ordering::Relaxed);
        }
        outcome
    }
}

/// Raises a flag. Mostly it is raised: then the cache line, in which the lock's word is, stays with the holder.
#[inline]
fn raise(flag: &AtomicBool) {
    if !flag.load(Ordering::Relaxed) {
        flag.store(true, Ordering::Relaxed);
    }
}

/// Waits until `flag` says that no thread waits any more. If that takes too long the flag is lowered, and that is the
/// end also if it is raised again: a thread that waits still says so to the next caller.
fn let_in(flag: &AtomicBool, tries: u32, naps: u32, gives_up: impl Fn() -> bool) {
    if !come_in(|| !flag.load(Ordering::Relaxed), tries, naps, gives_up) {
        flag.store(false, Ordering::Relaxed);
    }
}

/// Looks again and again whether those that waited `have_come`: so many times, and then between so many naps. Returns
/// whether they have.
fn come_in(have_come: impl Fn() -> bool, tries: u32, naps: u32, gives_up: impl Fn() -> bool) -> bool {
    let mut backoff = Backoff::default();
    while !have_come() {
        match backoff.pauses() {
            _ if gives_up() => return false,
            pauses if pauses < tries => backoff.pause(),
            pauses if pauses < tries + naps => backoff.nap(),
            _ => return false,
        }
    }
    true
}

impl Inside<'_> {
    /// The thread of ours goes out, and does not come again before a call [shares](DomainLock::share) the lock.
    pub fn leave_last(self) {
        let lock = self.0;
        if lock.needed || lock.is_poisoned() {
            return;
        }
        core::mem::forget(self);
        lock.word.leave_last(lock.admitted.load(Ordering::Relaxed));
    }
}

impl Drop for Inside<'_> {
    /// Releases the lock.
    #[inline(always)]
    fn drop(&mut self) {
        self.0.word.leave();
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
mod tests;
