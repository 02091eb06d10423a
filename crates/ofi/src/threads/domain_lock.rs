//! The domain's lock, and [`Guarded`]: state that can only be reached by whoever holds it.
//!
//! There is one lock per domain, a [`LockWord`]. It is held for the length of one call, which is bounded, and sleeps
//! only where a thread is begun, a table of peers is locked by another process, or a network is opened, for
//! milliseconds at most. An application that asked for `FI_THREAD_DOMAIN` promises to serialise its calls into a domain itself. Then all that is
//! left to exclude is a thread of ours that comes rarely (`progress_thread`), and as long as that thread is not armed a
//! call does no more than to load the word.
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

    /// Waits until the lock is free and takes it. `note_shared` is called inside if the lock is shared.
    #[inline(always)]
    pub fn acquire(&self, note_shared: impl FnOnce()) -> Result<Inside<'_>, Refusal> {
        if self.word.is_unshared_for(process::current()) {
            return Ok(Inside(self));
        }
        self.give_right_of_way();
        let inside = self.acquire_uncounted(|| false)?;
        self.taken.store(self.taken.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        note_shared();
        Ok(inside)
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
        let_in(&self.has_waiter, SECOND_THREAD_TRIES, 0);
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
        let_in(&self.is_urgent, THREAD_FIRST_TRIES, THREAD_FIRST_NAPS);
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
        let mut backoff = Backoff::default();
        while self.has_waiter.load(Ordering::Relaxed) {
            if !wait(&mut backoff) {
                // Not for ever: a thread may end while it waits. One that still waits says so again.
                self.has_waiter.store(false, Ordering::Relaxed);
                break;
            }
        }
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
fn let_in(flag: &AtomicBool, tries: u32, naps: u32) {
    if !come_in(|| !flag.load(Ordering::Relaxed), tries, naps) {
        flag.store(false, Ordering::Relaxed);
    }
}

/// Looks again and again whether those that waited `have_come`: so many times, and then between so many naps. Returns
/// whether they have.
fn come_in(have_come: impl Fn() -> bool, tries: u32, naps: u32) -> bool {
    let mut backoff = Backoff::default();
    while !have_come() {
        match backoff.pauses() {
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
mod tests {
    use super::*;
    use crate::threads::waits::LOCK_NAP;
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
    fn calls_and_the_thread_of_ours_exclude_each_other() {
        const CALLS: u64 = 1_000;
        for (needed, callers) in [(true, 3), (false, 1)] {
            let shared = &(DomainLock::new(needed), Guarded::new(0));
            let (visits, calls) = (&AtomicU64::new(0), &AtomicU64::new(0));
            std::thread::scope(|scope| {
                // Among several callers the thread may find the lock taken always.
                let goes_on = |number| number < CALLS || (!needed && visits.load(Ordering::Relaxed) == 0);
                let call = |number| {
                    let inside = shared.0.acquire(|| {}).unwrap();
                    count(&shared.1);
                    if number % 100 == 0 {
                        shared.0.share();
                    }
                    calls.fetch_add(1, Ordering::Relaxed);
                    drop(inside);
                    // Else the thread runs only while a call is inside, on a machine with one processor to spare.
                    std::thread::yield_now();
                };
                let call_all = move || (0..).take_while(|&number| goes_on(number)).for_each(call);
                let callers: Vec<_> = (0..callers).map(|_| scope.spawn(call_all)).collect();
                while !callers.iter().all(|caller| caller.is_finished()) {
                    let Some(visit) = shared.0.try_acquire_shared(|| false) else { continue };
                    count(&shared.1);
                    if (visits.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(10) {
                        visit.leave_last();
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
        let inside = lock.acquire(|| {}).unwrap();
        assert!(lock.try_acquire().is_none(), "nobody says a word, and somebody may be inside");
        lock.share();
        assert!(lock.try_acquire().is_none());
        drop(inside);
        assert!(lock.try_acquire().is_some());
    }

    #[test]
    fn a_thread_that_is_inside_and_one_that_gives_up_do_not_wait() {
        let lock = &DomainLock::new(true);
        let inside = lock.acquire(|| {}).unwrap();
        assert_eq!(lock.acquire(|| {}).unwrap_err(), Refusal::Inside, "it would wait for itself");
        std::thread::scope(|scope| {
            let other = || lock.acquire_uncounted(|| true).map(|_| ()).unwrap_err();
            assert_eq!(scope.spawn(other).join().unwrap(), Refusal::GivenUp);
            lock.poison();
            let other = || lock.acquire(|| {}).map(|_| ()).unwrap_err();
            assert_eq!(scope.spawn(other).join().unwrap(), Refusal::Poisoned);
        });
        drop(inside);
        assert!(!lock.admits() && lock.refusal() == Refusal::Poisoned);
    }

    #[test]
    fn who_waits_comes_in_before_the_thread_of_ours_comes_again_and_again() {
        for needed in [true, false] {
            let lock = &DomainLock::new(needed);
            let inside = lock.acquire(|| {}).unwrap();
            lock.share();
            drop(inside);
            let (visits, is_over) = (&AtomicU32::new(0), &AtomicBool::new(false));
            let waited: u32 = std::thread::scope(|scope| {
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        if let Some(_visit) = lock.try_acquire_shared(|| false) {
                            visits.fetch_add(1, Ordering::Relaxed);
                            std::thread::sleep(Duration::from_millis(1));
                        }
                    }
                });
                let waits = (0..50).map(|_| {
                    let before = visits.load(Ordering::Relaxed);
                    let inside = lock.acquire(|| {}).unwrap();
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
    fn the_thread_of_ours_comes_in_when_no_call_is_inside_and_is_no_call() {
        for needed in [true, false] {
            let lock = DomainLock::new(needed);
            let inside = lock.acquire(|| {}).unwrap();
            lock.share();
            assert!(lock.try_acquire_shared(|| false).is_none(), "the call that shares it is inside");
            drop(inside);
            let calls = lock.calls();
            let visit = lock.try_acquire_shared(|| false).unwrap();
            assert!(lock.try_acquire().is_none());
            drop(visit);
            assert_eq!(lock.calls(), calls);
            let inside = lock.acquire(|| {}).unwrap();
            assert!(
                lock.calls() != calls && lock.try_acquire_shared(|| false).is_none() && lock.try_acquire().is_none()
            );
            drop(inside);
            lock.try_acquire_shared(|| false).unwrap().leave_last();
            assert_eq!(lock.try_acquire_shared(|| false).is_some(), needed, "where the lock is needed all may take it");
        }
    }

    /// How many calls come in while another thread waits, in the median.
    fn calls_before_a_waiter(needed: bool, is_call: bool) -> u32 {
        let (lock, is_over) = (&DomainLock::new(needed), &AtomicBool::new(false));
        let inside = lock.acquire(|| {}).unwrap();
        lock.share();
        drop(inside);
        let mut calls: Vec<u32> = std::thread::scope(|scope| {
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let _inside = lock.acquire(|| {}).unwrap();
                    (0..200).for_each(|_| core::hint::spin_loop());
                }
            });
            let calls = (0..100).filter_map(|_| {
                let begun = lock.calls();
                while lock.calls() == begun {
                    std::thread::yield_now();
                }
                let before = lock.calls();
                let inside = match is_call {
                    true => lock.acquire(|| {}).ok(),
                    false => lock.try_acquire_shared(|| false),
                };
                inside.map(|_inside| lock.calls().wrapping_sub(before))
            });
            let calls = calls.collect();
            is_over.store(true, Ordering::Relaxed);
            calls
        });
        calls.sort_unstable();
        assert!(calls.len() >= 50, "{calls:?}");
        calls[calls.len() / 2]
    }

    /// Without [`give_right_of_way`](DomainLock::give_right_of_way) they would be thousands.
    #[test]
    fn few_calls_come_in_while_another_thread_waits() {
        for (needed, is_call) in [(true, false), (false, false), (true, true)] {
            // More, where this thread loses its processor while it waits.
            let calls = calls_before_a_waiter(needed, is_call);
            assert!(calls <= 16, "{calls}");
        }
    }

    /// A caller that gives way may be the one for whom all others wait: a signal handler inside.
    #[test]
    fn a_thread_that_asks_again_and_again_is_waited_for_until_it_may_have_napped() {
        let (looks, begun) = (core::cell::Cell::new(0), std::time::Instant::now());
        let asks_again = || {
            looks.set(looks.get() + 1);
            assert!(looks.get() < 1000, "without end");
            false
        };
        assert!(!come_in(asks_again, THREAD_FIRST_TRIES, THREAD_FIRST_NAPS));
        assert!(begun.elapsed() >= THREAD_FIRST_NAPS * LOCK_NAP && THREAD_FIRST_NAPS > 0);
        let flag = AtomicBool::new(true);
        let_in(&flag, 3, 0);
        assert!(!flag.load(Ordering::Relaxed), "a thread that has ended is waited for once");
    }

    #[test]
    fn a_thread_that_comes_in_leaves_the_flags_of_others_raised() {
        let lock = DomainLock::new(true);
        lock.has_waiter.store(true, Ordering::Relaxed);
        lock.is_urgent.store(true, Ordering::Relaxed);
        let inside = lock.acquire_uncounted(|| false).unwrap();
        assert!(lock.has_waiter.load(Ordering::Relaxed) && lock.is_urgent.load(Ordering::Relaxed));
        // One that waits and gives up at its first try has raised nothing.
        std::thread::scope(|scope| {
            scope.spawn(|| lock.acquire_uncounted(|| true).map(|_| ()).unwrap_err()).join().unwrap()
        });
        assert!(lock.has_waiter.load(Ordering::Relaxed) && lock.is_urgent.load(Ordering::Relaxed));
        drop(inside);
    }
}
