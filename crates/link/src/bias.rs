//! [`Bias`]: exclusion between an owner that comes all the time and a guest that comes rarely. The owner pays two plain
//! stores and some loads, no locked instruction; the guest pays a system call. While it is closed to guests, the owner
//! pays no more than a look at that.
//!
//! 1. The owner says that it is inside, then looks whether the guest wants to be.
//! 2. The guest says that it wants to be inside, then looks whether the owner is. If so it waits until the owner
//!    leaves, or gives up, and comes another time.
//! 3. One of them sees the other, if no look comes before the word that is said before it. A processor may let it,
//!    unless there is a barrier between them. The owner has none: `membarrier(2)` makes one in all threads of the
//!    process that run, in the name of the guest. A thread that does not run has passed one when it was taken off
//!    its processor.
//!
//! The owner opens it from inside, and closes it never: it cannot know whether the guest is about to come. The guest
//! closes it as the last that it does inside.
//!
//! The owner may be several threads that exclude each other by other means; so may the guest.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};
#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};
use std::io;

/// See the module.
#[derive(Debug)]
pub struct Bias {
    /// The guest may come. Changed from inside only.
    is_open: AtomicBool,
    /// Twice the visits of the owner while it was open; odd while the owner is inside and it is. Written by the owner
    /// only.
    visits: AtomicU32,
    /// The guest is inside, or looks whether it may be.
    has_guest: AtomicBool,
}

impl Bias {
    /// Open to guests, or closed.
    pub fn new(is_open: bool) -> Self {
        Bias { is_open: AtomicBool::new(is_open), visits: AtomicU32::new(0), has_guest: AtomicBool::new(false) }
    }

    /// Whether this system has what the guest needs (Linux 4.14, and no filter of system calls against it).
    pub fn is_supported() -> bool {
        barrier::is_supported()
    }

    /// Makes ready for the guest. To be called once in a process, at least, before [`try_visit`](Self::try_visit). In a
    /// process with several threads it takes milliseconds.
    pub fn prepare() -> io::Result<()> {
        barrier::prepare()
    }

    /// Whether guests may come. If not, the owner comes in and [goes out](Self::leave) without a word.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.is_open.load(Acquire)
    }

    /// The owner, who is inside, lets guests come from now on.
    pub fn open(&self) {
        if !self.is_open() {
            self.visits.store(self.visits.load(Relaxed).wrapping_add(1), Relaxed);
            self.is_open.store(true, Release);
        }
    }

    /// The owner comes in, unless the guest is inside or about to be. Returns whether.
    #[inline(always)]
    pub fn try_enter(&self) -> bool {
        let before = self.visits.load(Relaxed);
        self.visits.store(before.wrapping_add(1), Relaxed);
        barrier::for_owner();
        if self.has_guest.load(Acquire) {
            self.visits.store(before, Release);
            return false;
        }
        if !self.is_open() {
            // The guest has closed it since the owner looked.
            self.visits.store(before, Relaxed);
        }
        true
    }

    /// The owner goes out. Only if it is open.
    #[inline(always)]
    pub fn leave(&self) {
        self.visits.store(self.visits.load(Relaxed).wrapping_add(1), Release);
    }

    /// Whether the owner is inside, as far as it says so: not while it is closed.
    pub fn is_inside(&self) -> bool {
        !self.visits.load(Relaxed).is_multiple_of(2)
    }

    /// A number that changes with each visit of the owner while it is open.
    pub fn visits(&self) -> u32 {
        self.visits.load(Relaxed)
    }

    /// The guest comes in, if it is open. While the owner is inside, `wait` is called, again and again; it says when to
    /// give up. Returns whether the guest is in; if so it has to [end](Self::end_visit) it. The owner does not come in
    /// again meanwhile. Fails if the system makes no barrier (any more: an application may have forbidden itself the
    /// call).
    pub fn try_visit(&self, mut wait: impl FnMut() -> bool) -> io::Result<bool> {
        self.has_guest.store(true, SeqCst);
        let barrier = barrier::for_guest();
        let mut goes_on = barrier.is_ok() && self.is_open();
        while goes_on && !self.visits.load(Acquire).is_multiple_of(2) {
            goes_on = wait();
        }
        if !goes_on {
            self.end_visit();
        }
        barrier.map(|()| goes_on)
    }

    /// The guest goes out.
    pub fn end_visit(&self) {
        self.has_guest.store(false, Release);
    }

    /// The guest goes out, and may not come again before the owner [opens](Self::open).
    pub fn end_last_visit(&self) {
        self.is_open.store(false, Release);
        self.end_visit();
    }
}

#[cfg(not(loom))]
mod barrier {
    use core::sync::atomic::{Ordering::SeqCst, compiler_fence};
    use libc::{c_int, c_long};
    use std::io;

    // linux/membarrier.h
    const QUERY: c_int = 0;
    const PRIVATE_EXPEDITED: c_int = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: c_int = 1 << 4;

    /// What the system answers. The interpreter does not know the call.
    fn membarrier(command: c_int) -> io::Result<c_long> {
        if cfg!(miri) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        // SAFETY: the call takes no pointer.
        match unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) } {
            answer @ 0.. => Ok(answer),
            _ => Err(io::Error::last_os_error()),
        }
    }

    pub fn is_supported() -> bool {
        const NEEDED: c_long = (PRIVATE_EXPEDITED | REGISTER_PRIVATE_EXPEDITED) as c_long;
        membarrier(QUERY).is_ok_and(|commands| commands & NEEDED == NEEDED)
    }

    pub fn prepare() -> io::Result<()> {
        membarrier(REGISTER_PRIVATE_EXPEDITED).map(|_| ())
    }

    /// The compiler keeps the order; the processor need not.
    #[inline(always)]
    pub fn for_owner() {
        compiler_fence(SeqCst);
    }

    pub fn for_guest() -> io::Result<()> {
        membarrier(PRIVATE_EXPEDITED).map(|_| ())
    }
}

/// The model knows no `membarrier`; what it is to have the effect of are barriers on both sides.
#[cfg(loom)]
mod barrier {
    use loom::sync::atomic::{Ordering::SeqCst, fence};
    use std::io;

    pub fn is_supported() -> bool {
        true
    }

    pub fn prepare() -> io::Result<()> {
        Ok(())
    }

    pub fn for_owner() {
        fence(SeqCst);
    }

    pub fn for_guest() -> io::Result<()> {
        fence(SeqCst);
        Ok(())
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    struct Shared {
        bias: Bias,
        /// Loom sees who touches it while another does.
        count: UnsafeCell<u32>,
    }

    // SAFETY: `count` is touched by who is inside.
    unsafe impl Sync for Shared {}

    impl Shared {
        fn enter(&self) {
            while self.bias.is_open() && !self.bias.try_enter() {
                thread::yield_now();
            }
        }

        fn leave(&self) {
            if self.bias.is_open() {
                self.bias.leave();
            }
        }

        fn touch(&self) {
            // SAFETY: as above; that is what the model checks.
            self.count.with_mut(|count| unsafe { *count += 1 });
        }
    }

    /// A guest that comes once, if it is let in, and goes by `end`. Returns how often it came.
    fn visit(shared: &Arc<Shared>, end: fn(&Bias)) -> thread::JoinHandle<u32> {
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            let mut waits = 0;
            let wait = || {
                waits += 1;
                thread::yield_now();
                waits < 2
            };
            let has_come = shared.bias.try_visit(wait).unwrap();
            if has_come {
                shared.touch();
                end(&shared.bias);
            }
            u32::from(has_come)
        })
    }

    /// The owner comes twice and does something inside, and a guest comes.
    fn check(is_open: bool, inside: fn(&Bias), end: fn(&Bias)) {
        loom::model(move || {
            let shared = Arc::new(Shared { bias: Bias::new(is_open), count: UnsafeCell::new(0) });
            let guest = visit(&shared, end);
            for _ in 0..2 {
                shared.enter();
                shared.touch();
                inside(&shared.bias);
                shared.leave();
            }
            let visits = guest.join().unwrap();
            shared.enter();
            // SAFETY: as above.
            assert_eq!(shared.count.with(|count| unsafe { *count }), 2 + visits);
            assert_eq!(shared.bias.is_inside(), shared.bias.is_open());
        });
    }

    #[test]
    fn owner_and_guest_exclude_each_other() {
        check(true, |_| {}, Bias::end_visit);
    }

    #[test]
    fn they_do_while_the_owner_opens_from_inside() {
        check(false, Bias::open, Bias::end_visit);
    }

    #[test]
    fn they_do_while_the_guest_closes_behind_itself() {
        check(true, |_| {}, Bias::end_last_visit);
    }

    #[test]
    fn they_do_while_the_owner_opens_what_the_guest_closes() {
        check(true, Bias::open, Bias::end_last_visit);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::cell::UnsafeCell;
    use std::thread;

    /// Two numbers that are the same whenever somebody comes in.
    struct Shared(Bias, UnsafeCell<[u64; 2]>);

    // SAFETY: the numbers are touched by who is inside.
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
    fn owner_and_guest_exclude_each_other() {
        if Bias::prepare().is_err() {
            return;
        }
        let shared = &Shared(Bias::new(true), UnsafeCell::new([0; 2]));
        let visits = thread::scope(|scope| {
            let guest = scope.spawn(move || {
                let mut visits = 0;
                while visits < 1000 {
                    if shared.0.try_visit(|| false).unwrap() {
                        shared.touch();
                        shared.0.end_visit();
                        visits += 1;
                    }
                }
                visits
            });
            let mut visits = 0;
            while !guest.is_finished() {
                while !shared.0.try_enter() {
                    thread::yield_now();
                }
                shared.touch();
                shared.0.leave();
                visits += 1;
            }
            visits + guest.join().unwrap()
        });
        // SAFETY: the other thread has ended.
        assert_eq!(unsafe { *shared.1.get() }, [visits; 2]);
    }

    #[test]
    fn each_visit_of_the_owner_is_counted_and_keeps_the_guest_out() {
        if Bias::prepare().is_err() {
            return;
        }
        let bias = Bias::new(true);
        let before = bias.visits();
        assert!(bias.try_enter(), "nobody is inside");
        assert!(bias.is_inside() && !bias.try_visit(|| false).unwrap());
        bias.leave();
        assert!(!bias.is_inside() && bias.visits() != before);
        assert!(bias.try_visit(|| unreachable!("nobody is inside")).unwrap() && !bias.try_enter());
        bias.end_visit();
        assert!(bias.try_enter(), "the guest is gone");
        let has_come = bias.try_visit(|| {
            // The owner goes out, and does not come in again.
            bias.leave();
            !bias.try_enter()
        });
        assert!(has_come.unwrap());
    }

    #[test]
    fn it_is_open_from_when_the_owner_opens_it_to_when_the_guest_closes_it() {
        if Bias::prepare().is_err() {
            return;
        }
        let bias = Bias::new(false);
        assert!(!bias.is_open() && !bias.try_visit(|| unreachable!("it is closed")).unwrap());
        bias.open();
        assert!(bias.is_open() && !bias.try_visit(|| false).unwrap(), "who opens it is inside");
        bias.leave();
        for _ in 0..2 {
            assert!(bias.try_visit(|| unreachable!("nobody is inside")).unwrap());
            bias.end_visit();
        }
        assert!(bias.try_visit(|| unreachable!("nobody is inside")).unwrap());
        bias.end_last_visit();
        assert!(!bias.is_open() && !bias.try_visit(|| unreachable!("it is closed")).unwrap());
        assert!(bias.try_enter() && !bias.is_inside(), "the owner saw it open, and comes in when it no longer is");
        bias.open();
        assert!(bias.is_inside());
    }
}
