//! [`LockWord`]: a lock that costs a load as long as one side has it to itself.
//!
//! The calls of an application exclude each other, because the application serialises them. A thread of ours comes in
//! rarely. So the word is in one of three states:
//!
//! | state | who may come in | what it costs a call |
//! |---|---|---|
//! | `Unshared` | calls | a load on the way in, and one on the way out: nothing is stored |
//! | `Free` | whoever turns it into `Held` | a compare-and-swap |
//! | `Held` | no other thread | a store on the way out |
//!
//! 1. Only a call that is inside turns `Unshared` into `Held` ([`share`](LockWord::share)), before it arms the thread.
//!    So a call that finds `Unshared` is alone: the thread may not come in, and the other calls do not.
//! 2. Only the thread turns `Held` into `Unshared`, as the last that it does inside
//!    ([`leave_last`](LockWord::leave_last)). So a call that waits loads the word anew each time.
//! 3. A call that leaves loads the word again: the call itself may have turned it into `Held` since it came in.
//! 4. To find `Unshared` is an acquire, and so is to take a free word; to leave is a release, the last time too. What a
//!    side wrote inside is therefore seen by the next one inside. Two calls hand it to each other by what the
//!    application serialises them with, and the state of the word with it: the second finds no older one.
//! 5. `Unshared` does not tell whether a call is inside. Who may not wait for one (a forked child, the end of the
//!    process) has to take it for occupied.
//! 6. `Unshared` names the process that has it. In a forked child, to which nothing inside belongs, the same load
//!    refuses a call.
//!
//! `Held` names the thread, so that a signal handler can be told that it has interrupted its own thread inside. A lock
//! that several threads of the application need begins as `Free`, and is never `Unshared`.
//!
//! The loom model below tries all interleavings of two serialised callers and the thread.
//!
//! # Why it is no biased lock
//!
//! With a biased lock a call pays two plain stores and a load; the thread pays a `membarrier(2)` each time it comes in,
//! which disturbs all processors of the process, and registers for it first, which takes milliseconds. Measured where
//! the thread is armed, a message of 8 bytes takes as long with this word (0.99 to 1.00 of the time; an empty poll
//! 1.04, which is 1.1 ns); where it is not, the word is 2 to 21 instructions shorter (28 November
//! 2026; docs/benchmarks.md at commit a5a72963 has the tables).

#[cfg(not(loom))]
use core::sync::atomic::{AtomicUsize, Ordering::*};
#[cfg(loom)]
use loom::sync::atomic::{AtomicUsize, Ordering::*};

/// See the module. A number below `FREE` is `Unshared` and names a process, one above it is `Held` and names a thread.
#[derive(Debug)]
pub struct LockWord(AtomicUsize);

/// The highest bit, which no number of a process has. (A process without a number, a forked child, has 0, and finds no
/// word unshared.) With the address of a thread it says that this thread holds the word.
const FREE: usize = 1 << (usize::BITS - 1);
/// `Unshared` for no process at all.
const BARRED: usize = FREE - 1;

fn is_unshared(word: usize) -> bool {
    word < FREE
}

impl LockWord {
    /// `Unshared`: the calls of this process have it to themselves.
    pub fn unshared(process: u32) -> Self {
        debug_assert!(process != 0);
        LockWord(AtomicUsize::new(process as usize))
    }

    /// `Free`.
    #[cfg(not(loom))]
    pub const fn free() -> Self {
        LockWord(AtomicUsize::new(FREE))
    }

    /// Whether the calls of this process have it to themselves: if so, a call is in, and goes out by
    /// [`leave`](Self::leave).
    #[inline(always)]
    pub fn is_unshared_for(&self, process: u32) -> bool {
        self.0.load(Acquire) == process as usize
    }

    /// Whether any process has it to itself: then whether a call is inside is not known.
    pub fn is_unshared(&self) -> bool {
        is_unshared(self.0.load(Relaxed))
    }

    /// This thread takes it if it is free. Returns whether it has. `thread` is the address of something that is its
    /// own.
    #[inline(always)]
    pub fn try_take(&self, thread: usize) -> bool {
        self.0.compare_exchange(FREE, thread | FREE, Acquire, Relaxed).is_ok()
    }

    /// The same for a thread that tries again and again: it leaves the cache line of the word to the holder.
    pub fn take_if_free(&self, thread: usize) -> bool {
        self.0.load(Relaxed) == FREE && self.try_take(thread)
    }

    /// Whether this thread holds it.
    pub fn is_held_by(&self, thread: usize) -> bool {
        self.0.load(Relaxed) == thread | FREE
    }

    /// The caller goes out. It holds the word, unless that is `Unshared`.
    #[inline(always)]
    pub fn leave(&self) {
        if !is_unshared(self.0.load(Relaxed)) {
            self.0.store(FREE, Release);
        }
    }

    /// A call that is inside holds the word from now on, so that another thread may come in once it has left.
    pub fn share(&self, thread: usize) {
        if self.is_unshared() {
            self.0.store(thread | FREE, Relaxed);
        }
    }

    /// The caller, which holds the word, goes out, and calls of this process have it to themselves from now on.
    pub fn leave_last(&self, process: u32) {
        self.0.store(process as usize, Release);
    }

    /// The caller, which is inside, lets no call find the word unshared any more.
    pub fn bar(&self) {
        if self.is_unshared() {
            self.0.store(BARRED, Relaxed);
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::{Arc, Mutex};
    use loom::thread;

    const PROCESS: u32 = 1;
    /// The names of two callers and of the thread of ours.
    const CALLERS: [usize; 2] = [2, 4];
    const SECOND: usize = 6;

    struct Shared {
        word: LockWord,
        /// By this the application serialises its calls.
        serial: Mutex<()>,
        /// Loom sees which thread touches it while another one does.
        count: UnsafeCell<u32>,
    }

    // SAFETY: `count` is touched by the one that is inside.
    unsafe impl Sync for Shared {}

    impl Shared {
        fn touch(&self) {
            // SAFETY: as above; that is what the model checks.
            self.count.with_mut(|count| unsafe { *count += 1 });
        }

        fn call(&self, caller: usize, arms: bool) {
            let serial = self.serial.lock().unwrap();
            while !self.word.is_unshared_for(PROCESS) && !self.word.try_take(caller) {
                thread::yield_now();
            }
            self.touch();
            if arms {
                self.word.share(caller);
                self.touch();
            }
            self.word.leave();
            drop(serial);
        }
    }

    /// The thread of ours tries to come in so often at most, and goes by `leave`. Returns how often it was inside.
    fn second(shared: &Arc<Shared>, leave: fn(&LockWord)) -> thread::JoinHandle<u32> {
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            for _ in 0..2 {
                if shared.word.take_if_free(SECOND) {
                    shared.touch();
                    leave(&shared.word);
                    return 1;
                }
                thread::yield_now();
            }
            0
        })
    }

    /// A caller in each of two threads, which may arm, and the thread of ours.
    fn check(word: fn() -> LockWord, arms: [bool; 2], leave: fn(&LockWord)) {
        loom::model(move || {
            let shared = Arc::new(Shared { word: word(), serial: Mutex::new(()), count: UnsafeCell::new(0) });
            let thread = second(&shared, leave);
            let other = thread::spawn({
                let shared = Arc::clone(&shared);
                move || shared.call(CALLERS[1], arms[1])
            });
            shared.call(CALLERS[0], arms[0]);
            other.join().unwrap();
            let visits = thread.join().unwrap();
            let expected = 2 + arms.iter().filter(|arms| **arms).count() as u32 + visits;
            // SAFETY: as above.
            assert_eq!(shared.count.with(|count| unsafe { *count }), expected);
            assert!(CALLERS.iter().chain(&[SECOND]).all(|thread| !shared.word.is_held_by(*thread)), "all have left");
        });
    }

    fn unshared() -> LockWord {
        LockWord::unshared(PROCESS)
    }

    fn free() -> LockWord {
        LockWord(AtomicUsize::new(FREE))
    }

    fn leave_last(word: &LockWord) {
        word.leave_last(PROCESS);
    }

    #[test]
    fn callers_and_the_thread_exclude_each_other_while_a_caller_arms_it() {
        check(unshared, [true, false], LockWord::leave);
        check(unshared, [false, true], leave_last);
    }

    #[test]
    fn they_do_while_both_arm_what_the_thread_gives_back() {
        check(unshared, [true, true], leave_last);
    }

    #[test]
    fn they_do_while_it_is_armed_and_the_thread_gives_it_back() {
        check(free, [false, false], leave_last);
        check(free, [true, false], leave_last);
    }

    #[test]
    fn the_thread_does_not_come_in_while_it_is_not_armed() {
        loom::model(|| {
            let shared = Arc::new(Shared { word: unshared(), serial: Mutex::new(()), count: UnsafeCell::new(0) });
            let thread = second(&shared, LockWord::leave);
            shared.call(CALLERS[0], false);
            assert_eq!(thread.join().unwrap(), 0);
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::cell::UnsafeCell;
    use std::thread;

    const PROCESS: u32 = 7;
    const CALLER: usize = 8;
    const SECOND: usize = 16;

    /// Two numbers that are the same whenever a thread comes in.
    struct Shared(LockWord, UnsafeCell<[u64; 2]>);

    // SAFETY: the numbers are touched by the thread that is inside.
    unsafe impl Sync for Shared {}

    impl Shared {
        fn touch(&self) {
            // SAFETY: as above.
            let numbers = unsafe { &mut *self.1.get() };
            assert_eq!(numbers[0], numbers[1]);
            numbers[0] += 1;
            thread::yield_now();
            numbers[1] += 1;
        }
    }

    #[test]
    fn a_caller_and_the_thread_that_it_arms_exclude_each_other() {
        let shared = &Shared(LockWord::unshared(PROCESS), UnsafeCell::new([0; 2]));
        let visits = thread::scope(|scope| {
            let second = scope.spawn(move || {
                let mut visits = 0;
                while visits < 300 {
                    if !shared.0.take_if_free(SECOND) {
                        thread::yield_now();
                        continue;
                    }
                    shared.touch();
                    visits += 1;
                    if visits % 10 == 0 { shared.0.leave_last(PROCESS) } else { shared.0.leave() }
                }
                visits
            });
            let mut calls = 0;
            while !second.is_finished() {
                while !shared.0.is_unshared_for(PROCESS) && !shared.0.try_take(CALLER) {
                    thread::yield_now();
                }
                shared.touch();
                calls += 1;
                if calls % 3 == 0 {
                    shared.0.share(CALLER);
                    shared.touch();
                    calls += 1;
                }
                shared.0.leave();
                // Else the thread runs only while the word is held, on a machine with one processor to spare.
                thread::yield_now();
            }
            calls + second.join().unwrap()
        });
        // SAFETY: the other thread has ended.
        assert_eq!(unsafe { *shared.1.get() }, [visits; 2]);
    }

    #[test]
    fn it_is_shared_from_when_a_call_arms_the_thread_to_when_that_leaves_for_the_last_time() {
        let word = LockWord::unshared(PROCESS);
        assert!(word.is_unshared_for(PROCESS) && !word.try_take(SECOND), "a call may be inside");
        word.leave();
        assert!(word.is_unshared_for(PROCESS), "nothing is stored");
        word.share(CALLER);
        assert!(word.is_held_by(CALLER) && !word.is_unshared() && !word.take_if_free(SECOND));
        word.share(CALLER);
        word.leave();
        assert!(word.take_if_free(SECOND) && !word.try_take(CALLER));
        word.leave();
        assert!(word.try_take(CALLER));
        word.leave();
        assert!(word.try_take(SECOND));
        word.leave_last(PROCESS);
        assert!(word.is_unshared_for(PROCESS) && !word.take_if_free(SECOND));
    }

    #[test]
    fn a_child_and_a_barred_process_do_not_find_it_unshared() {
        let word = LockWord::unshared(PROCESS);
        assert!(word.is_unshared() && !word.is_unshared_for(PROCESS + 1) && !word.is_unshared_for(0));
        word.bar();
        assert!(word.is_unshared() && !word.is_unshared_for(PROCESS) && !word.try_take(CALLER));
        let word = LockWord::free();
        word.bar();
        assert!(!word.is_unshared_for(0) && word.try_take(CALLER), "the caller that takes it has to ask");
    }
}
