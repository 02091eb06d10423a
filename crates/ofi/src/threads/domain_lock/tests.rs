//! Tests of the domain's lock.

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
        assert!(lock.calls() != calls && lock.try_acquire_shared(|| false).is_none() && lock.try_acquire().is_none());
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

/// Without [`give_right_of_way`](DomainLock::give_right_of_way) they would be thousands, and most waiters give up.
#[test]
fn few_calls_come_in_while_another_thread_waits() {
    for (needed, is_call) in [(true, false), (false, false), (true, true)] {
        // One or none, but 153 were seen where other programs took this thread's processor while it waited.
        let calls = calls_before_a_waiter(needed, is_call);
        assert!(calls <= 1000, "{calls}");
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
    assert!(!come_in(asks_again, THREAD_FIRST_TRIES, THREAD_FIRST_NAPS, || false));
    assert!(begun.elapsed() >= THREAD_FIRST_NAPS * LOCK_NAP && THREAD_FIRST_NAPS > 0);
    assert!(!come_in(|| false, u32::MAX, 0, || true), "one that gives up does not wait");
    let flag = AtomicBool::new(true);
    let_in(&flag, 3, 0, || false);
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
