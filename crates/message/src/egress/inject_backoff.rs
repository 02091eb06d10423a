//! Injected messages that cannot leave are refused for a while, so that a sender goes no faster than its receiver.
//!
//! To its sender an injected message counts as sent, and who has sent all may compute. What waits here then goes on in
//! steps of milliseconds only (`FI_TIDEGATE_PROGRESS` in docs/parameters.md), or not before the next call. So the
//! sender is asked to try again, as long as credits may come soon: a receiver that makes progress returns them in
//! microseconds. One that computes, or has no processor, returns none; so the endpoint, whatever the peer, refuses for
//! `patience`, and then not again for [`REST`], or until credits come from somebody to whom a message was refused. And
//! who has not been worth waiting for is not waited for until credits come from there.
//!
//! Where receivers post buffers, and nobody tells a sender that one is free, its retry timer only says when to try
//! again: credits have come, so to speak, when the message has left.
//!
//! Patience is a time and not a number of refusals: between two of them an MPI may give the processor to a process that
//! computes. The number has a bound, too, for callers that make no progress in between, and so tell no time.
//!
//! With `none` nothing says that a receiver has moved, so what began with a wait ends after [`REST`] only.
//!
//! # Why it is there although a thread goes on by itself
//!
//! Because that thread leaves the application alone for 8 ms first, and naps. Measured again when the thread got its
//! present shape (28 November 2026, MPICH, two busy cores, `patience` of 2 ms and of 0 in turn, eleven pairs; the least
//! of each is what a quiet machine would do): 2,000 messages of 8 bytes before the sender sleeps for 200 ms, until the
//! last has come:
//!
//! | | refused for up to 2 ms | not refused | median ratio of a pair |
//! |---|---:|---:|---:|
//! | `dynamic` | 3.4 ms | 4.8 ms | 1.9 |
//! | `dynamic`, 8 slots | 2.3 ms | 17.4 ms | 3.5 |
//! | `static` | 2.3 ms | 24.5 ms | 3.1 |
//! | `static`, 8 slots | 2.4 ms | 26.9 ms | 1.2 |
//!
//! A flood whose sender goes on to wait for its receiver gains nothing by it: 26.7 and 27.7 ms with `dynamic`, 27.7 and
//! 27.4 with 8 slots, 23.6 and 23.6 with `static`. With `static` on a busy machine it even loses (0.66 to 0.79 of the
//! time without), presumably because the sender polls on a processor that the receiver could have.

use std::time::Duration;
use tidegate_flow::Instant;

/// How long nothing is refused after it was in vain.
const REST: Duration = Duration::from_secs(1);
/// Most refusals before time is told.
const UNTIMED_MOST: u32 = 100_000;

/// What holds for all peers. A wait lasts as long as there is a peer to whom a message was refused in it, and who has
/// not moved since: that others have moved does not begin it anew. So who is refused late in the wait of another is
/// refused for less than `patience`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct InjectBackoff {
    stage: Stage,
    /// The number of the wait, or of the last one. 0: there was none.
    wait: u64,
    /// For how many peers it is.
    peers: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Idle,
    /// So many messages were refused, and no time has been told since.
    Begun(u32),
    /// Messages have been refused since this moment, or were and have left.
    Since(Instant),
    /// It was in vain: nothing is refused until then.
    RestUntil(Instant),
}

/// What holds for one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PeerBackoff {
    /// In which wait a message to it was refused last. 0: in none since credits came.
    wait: u64,
    /// It was in vain.
    has_given_up: bool,
    /// The retry timer has run out since: whether the peer has moved, the next message will show.
    pub(super) is_on_trial: bool,
    /// It was in vain though there were some credits, and there have never been enough for such a message since: it may
    /// be that there never are.
    pub(super) is_scarce: bool,
}

impl PeerBackoff {
    /// Whether a message to it has been refused since credits came.
    pub(super) fn is_holding(&self) -> bool {
        self.wait != 0
    }
}

impl InjectBackoff {
    /// Whether its time counts.
    #[inline]
    pub(super) fn is_timed(&self) -> bool {
        self.stage != Stage::Idle
    }

    /// Nothing waits for the peer any more, or credits have come.
    pub(super) fn end(&mut self, hold: &mut PeerBackoff) {
        let was_holding = hold.is_holding();
        self.forget(hold);
        (hold.wait, hold.has_given_up, hold.is_on_trial) = (0, false, false);
        if was_holding && self.peers == 0 {
            self.stage = Stage::Idle;
        }
    }

    /// Time is told.
    pub(super) fn tell_time(&mut self, now: Instant) {
        self.stage = match self.stage {
            Stage::Begun(_) => Stage::Since(now),
            Stage::Since(begun) if now.since(begun) >= REST => Stage::Idle,
            Stage::RestUntil(end) if now >= end => Stage::Idle,
            other => other,
        };
    }

    /// A message to this peer cannot leave. Returns whether it is refused.
    pub(super) fn refuse(&mut self, hold: &mut PeerBackoff, patience: Duration, now: Instant) -> bool {
        let is_refused = !hold.has_given_up && self.is_patient(patience, now);
        if !is_refused {
            self.forget(hold);
            hold.has_given_up = true;
        } else if hold.wait != self.wait {
            hold.wait = self.wait;
            self.peers += 1;
        }
        is_refused
    }

    /// Whether a message that cannot leave is refused now. Begins a wait if there is none.
    fn is_patient(&mut self, patience: Duration, now: Instant) -> bool {
        match &mut self.stage {
            Stage::Idle => *self = InjectBackoff { stage: Stage::Begun(1), wait: self.wait + 1, peers: 0 },
            Stage::Begun(refusals) if *refusals < UNTIMED_MOST => *refusals += 1,
            Stage::Since(begun) if now.since(*begun) < patience => {}
            Stage::RestUntil(_) => return false,
            Stage::Begun(_) | Stage::Since(_) => {
                self.stage = Stage::RestUntil(now + REST);
                return false;
            }
        }
        true
    }

    /// The wait is not for this peer, or no longer.
    fn forget(&mut self, hold: &PeerBackoff) {
        self.peers -= u32::from(hold.wait == self.wait && hold.is_holding() && !hold.has_given_up);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(2);

    fn at(microseconds: u64) -> Instant {
        Instant::default() + Duration::from_micros(microseconds)
    }

    /// Two peers.
    #[derive(Default)]
    struct Two {
        holding: InjectBackoff,
        a: PeerBackoff,
        b: PeerBackoff,
    }

    impl Two {
        fn refuse_a(&mut self, moment: u64) -> bool {
            self.holding.refuse(&mut self.a, PATIENCE, at(moment))
        }

        fn refuse_b(&mut self, moment: u64) -> bool {
            self.holding.refuse(&mut self.b, PATIENCE, at(moment))
        }

        fn tell_time(&mut self, moment: u64) {
            self.holding.tell_time(at(moment));
        }

        fn end_a(&mut self) {
            self.holding.end(&mut self.a);
        }

        fn end_b(&mut self) {
            self.holding.end(&mut self.b);
        }
    }

    #[test]
    fn refuses_for_its_patience_from_the_first_time_told_and_then_rests() {
        let mut two = Two::default();
        assert!(two.refuse_a(0));
        // Whoever was away for long before is not said to have been refused meanwhile.
        two.tell_time(50_000);
        assert!(two.refuse_b(51_999));
        assert!(!two.refuse_a(52_000));
        assert!(!two.refuse_b(52_000), "it rests");
        two.tell_time(1_051_999);
        assert!(!two.holding.refuse(&mut PeerBackoff::default(), PATIENCE, at(1_051_999)), "whoever it is");
        two.tell_time(1_052_000);
        assert!(!two.holding.is_timed() && !two.refuse_a(1_052_000), "who was not worth waiting for is not waited for");
        two.end_a();
        assert!(two.refuse_a(1_052_000));
    }

    #[test]
    fn who_tells_no_time_is_not_refused_without_end() {
        let mut two = Two::default();
        assert_eq!((0..2 * UNTIMED_MOST).filter(|_| two.refuse_a(0)).count(), UNTIMED_MOST as usize);
    }

    #[test]
    fn who_moves_does_not_begin_the_wait_for_another_anew() {
        for is_b_first in [false, true] {
            let mut two = Two::default();
            let refused = (0..1_000_000).step_by(50).take_while(|&moment| {
                two.tell_time(moment);
                if is_b_first {
                    two.refuse_b(moment);
                }
                let is_refused = two.refuse_a(moment);
                two.refuse_b(moment);
                two.end_b();
                is_refused
            });
            assert!(refused.count() <= 2 + 2_000 / 50);
            assert!(two.a.has_given_up);
            two.tell_time(1_100_000);
            assert!(two.refuse_b(1_100_000));
            two.tell_time(1_100_001);
            two.end_a();
            assert!(!two.refuse_b(1_102_001), "that A moves does not begin the wait for B anew");
        }
    }

    #[test]
    fn a_wait_lasts_until_all_have_moved_to_whom_messages_were_refused_in_it() {
        let mut two = Two::default();
        assert!(two.refuse_a(0));
        two.tell_time(1);
        assert!(two.refuse_b(1_000));
        two.end_a();
        assert!(two.holding.is_timed() && two.refuse_a(1_500));
        two.end_b();
        assert!(two.holding.is_timed(), "of two refusals the second counts");
        two.end_a();
        assert_eq!((two.holding.is_timed(), two.holding.peers), (false, 0));
        assert!(two.refuse_a(2_500));
    }

    #[test]
    fn who_was_refused_in_a_wait_before_does_not_count_in_this_one() {
        let mut two = Two::default();
        assert!(two.refuse_a(0));
        two.tell_time(1);
        two.tell_time(1_000_001);
        assert!(!two.holding.is_timed(), "what was refused and has left is not timed for ever");
        assert!(two.refuse_b(1_000_002));
        two.end_a();
        assert!(two.holding.is_timed());
        two.end_b();
        assert!(!two.holding.is_timed());
    }
}
