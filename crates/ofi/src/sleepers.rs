//! Who sleeps on a completion queue, and how they are woken by what other threads do.
//!
//! A sleeper waits for a packet: its endpoints are armed (see `tidegate_link`), and the next packet makes its
//! descriptor readable. That is enough while nobody else calls into the domain. Another thread takes the packet away,
//! disarms the endpoint by that, and reports what came to the queue that nobody looks at; it may complete an operation
//! without any packet (a message to itself, a cancel), or start work that needs more calls of progress and then go
//! away. So:
//! 1. whoever adds a completion to a queue with sleepers rings;
//! 2. whoever makes progress of an endpoint, or starts something there, arms it again before leaving the domain, or
//!    rings if there is work left that can go on at once (`Endpoint::look_after_sleepers`);
//! 3. an endpoint that retrieves nothing because its receive queue is full of what nobody asked for
//!    (`completion_queue`) is not armed: who reads that queue does as in 2;
//! 4. ringing makes the descriptor readable, for all that sleep on it, until one of them has found the queue empty and
//!    settles to sleep again. Nothing is rung twice in between, and a queue without sleepers costs the look at a
//!    length.
//!
//! Everything happens under the domain's lock, so nobody can add a completion between the look at the empty queue and
//! the entry in the list of sleepers.
//!
//! Sleepers are threads, because an application tells when it begins to sleep on a descriptor (`fi_trywait`), and not
//! when it wakes: a thread that calls into the domain is evidently awake. A thread that asked and never comes back
//! stays in the list, which costs the others time and no wake.

use std::time::{Duration, Instant};

/// Names a thread among those that run now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread(usize);

impl Thread {
    /// The calling one.
    pub fn current() -> Thread {
        thread_local! {
            static PLACE: u8 = const { 0 };
        }
        Thread(PLACE.with(|place| (&raw const *place).addr()))
    }
}

/// The sleepers of one queue.
#[derive(Debug, Default)]
pub struct Sleepers {
    threads: Vec<Thread>,
    /// The descriptor is readable, or will be at once, for a sleeper that has not settled since.
    rung: bool,
    /// When the alarm rings by itself.
    alarm: Option<Instant>,
}

impl Sleepers {
    /// Whether nobody sleeps.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// This thread is awake.
    pub fn remove(&mut self, thread: Thread) {
        self.threads.retain(|other| *other != thread);
    }

    /// This thread goes to sleep, and the descriptor is readable no more before `alarm`.
    pub fn settle(&mut self, thread: Thread, alarm: Instant) {
        self.remove(thread);
        self.threads.push(thread);
        self.alarm = Some(alarm);
        self.rung = false;
    }

    /// Whether somebody sleeps for whom nobody has rung. Who asks is awake.
    pub fn are_unaware(&mut self, asking: Thread) -> bool {
        self.remove(asking);
        !self.is_empty() && !self.rung
    }

    /// The descriptor becomes readable now.
    pub fn ring(&mut self) {
        self.rung = true;
    }

    /// Whether the alarm has to be set to ring at `due`: it would ring later.
    pub fn hasten(&mut self, due: Instant) -> bool {
        let is_late = self.alarm.is_none_or(|alarm| due < alarm);
        if is_late {
            self.alarm = Some(due);
        }
        is_late
    }
}

/// The moment `after` from now; so far away that it makes no difference if there is none.
pub fn moment(after: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(after).unwrap_or(now + Duration::from_secs(1 << 30))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: Thread = Thread(1);
    const OTHER: Thread = Thread(2);

    #[test]
    fn threads_are_told_apart() {
        assert_eq!(Thread::current(), Thread::current());
        let here = Thread::current();
        std::thread::spawn(move || assert_ne!(Thread::current(), here)).join().unwrap();
    }

    #[test]
    fn nobody_rings_for_himself() {
        let mut sleepers = Sleepers::default();
        sleepers.settle(ME, Instant::now());
        assert!(!sleepers.is_empty());
        assert!(!sleepers.are_unaware(ME));
        assert!(sleepers.is_empty(), "who calls is awake");
    }

    #[test]
    fn one_ring_is_for_all_and_lasts_until_somebody_settles() {
        let mut sleepers = Sleepers::default();
        sleepers.settle(ME, Instant::now());
        sleepers.settle(OTHER, Instant::now());
        assert!(sleepers.are_unaware(Thread(3)));
        sleepers.ring();
        assert!(!sleepers.are_unaware(Thread(3)));
        sleepers.remove(OTHER);
        sleepers.settle(OTHER, Instant::now());
        assert!(sleepers.are_unaware(OTHER), "the other one may have slept through it");
    }

    #[test]
    fn the_alarm_is_only_ever_hastened() {
        let mut sleepers = Sleepers::default();
        let now = Instant::now();
        let [soon, late] = [1, 2].map(|seconds| now + Duration::from_secs(seconds));
        sleepers.settle(ME, late);
        assert!(sleepers.hasten(soon));
        assert!(!sleepers.hasten(soon) && !sleepers.hasten(late));
    }
}
