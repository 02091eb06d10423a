//! Who sleeps on a completion queue, and how they are woken by what other threads do.
//!
//! A sleeper waits for a packet: its endpoints are armed (`ShmLink::arm`), and the next packet makes its descriptor
//! readable. That is enough while no other thread calls into the domain. But another thread may retrieve the packet,
//! which disarms the endpoint, and report the completion to the queue that the sleeper does not look at. It may also
//! complete an operation without any packet (a message to itself, a cancelled receive), or start work that needs more
//! calls of progress, and then never call again. So there are four rules:
//! 1. Whoever adds a completion to a queue with sleepers rings.
//! 2. Whoever makes progress of an endpoint, or starts something there, arms it again before leaving the domain. If
//!    there is work left that can go on at once, it rings instead (`Endpoint::look_after_sleepers`).
//! 3. An endpoint whose receive queue is full of unsolicited completions (`completion_queue`) retrieves nothing and is
//!    not armed. Whoever reads that queue then follows rule 2.
//! 4. Ringing makes the descriptor readable for all threads that sleep on it, until one of them has found the queue
//!    empty and goes to sleep again. Between the two nobody rings a second time. A queue without sleepers costs one
//!    look at the length of a list.
//!
//! Everything happens under the domain's lock, so nobody can add a completion between the look at the empty queue and
//! the entry in the list of sleepers.
//!
//! The list of sleepers names threads, because an application tells when it begins to sleep on a descriptor
//! (`fi_trywait`) and does not tell when it wakes; but a thread that calls into the domain is evidently awake. A thread
//! that was told that it may sleep and never comes back stays in the list. That costs the other threads time, and none
//! of them misses a wake.

use crate::threads::thread::Thread;
use std::time::{Duration, Instant};

/// The sleepers of one queue.
#[derive(Debug, Default)]
pub struct Sleepers {
    threads: Vec<Thread>,
    /// Somebody has rung, and no thread has gone to sleep since: the descriptor is readable, or will be at once.
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

    /// This thread goes to sleep. The descriptor is not readable from now on, until `alarm` or until somebody rings.
    pub fn fall_asleep(&mut self, thread: Thread, alarm: Instant) {
        self.remove(thread);
        self.threads.push(thread);
        self.alarm = Some(alarm);
        self.rung = false;
    }

    /// Whether another thread sleeps for which nobody has rung. The asking thread is awake and leaves the list.
    pub fn are_unaware(&mut self, asking: Thread) -> bool {
        self.remove(asking);
        !self.is_empty() && !self.rung
    }

    /// Somebody makes the descriptor readable now.
    pub fn ring(&mut self) {
        self.rung = true;
    }

    /// Whether the alarm has to be set to `due`, because it would ring later than that. It counts as set from now on.
    pub fn hasten(&mut self, due: Instant) -> bool {
        let is_late = self.alarm.is_none_or(|alarm| due < alarm);
        if is_late {
            self.alarm = Some(due);
        }
        is_late
    }
}

/// The moment `after` from now. A moment too far away for the clock becomes one that is decades away.
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
    fn nobody_rings_for_himself() {
        let mut sleepers = Sleepers::default();
        sleepers.fall_asleep(ME, Instant::now());
        assert!(!sleepers.is_empty());
        assert!(!sleepers.are_unaware(ME));
        assert!(sleepers.is_empty(), "who calls is awake");
    }

    #[test]
    fn one_ring_is_for_all_and_lasts_until_somebody_goes_to_sleep() {
        let mut sleepers = Sleepers::default();
        sleepers.fall_asleep(ME, Instant::now());
        sleepers.fall_asleep(OTHER, Instant::now());
        assert!(sleepers.are_unaware(Thread(3)));
        sleepers.ring();
        assert!(!sleepers.are_unaware(Thread(3)));
        sleepers.remove(OTHER);
        sleepers.fall_asleep(OTHER, Instant::now());
        assert!(sleepers.are_unaware(OTHER), "the other one may have slept through it");
    }

    #[test]
    fn the_alarm_is_only_ever_hastened() {
        let mut sleepers = Sleepers::default();
        let now = Instant::now();
        let [soon, late] = [1, 2].map(|seconds| now + Duration::from_secs(seconds));
        sleepers.fall_asleep(ME, late);
        assert!(sleepers.hasten(soon));
        assert!(!sleepers.hasten(soon) && !sleepers.hasten(late));
    }
}
