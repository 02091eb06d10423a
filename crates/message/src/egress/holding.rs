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

use std::time::Duration;
use tidegate_flow::{Instant, PeerId};

/// How long nothing is refused after it was in vain.
const REST: Duration = Duration::from_secs(1);
/// Most refusals before time is told.
const UNTIMED_MOST: u32 = 100_000;

/// What holds for all peers. A wait is that of the peer whose message was refused first: that others move meanwhile
/// does not begin it anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Holding {
    #[default]
    Idle,
    /// So many messages were refused, and no time has been told since.
    Begun(u32, PeerId),
    /// Messages have been refused since this moment, or were and have left.
    Since(Instant, PeerId),
    /// It was in vain: nothing is refused until then.
    RestUntil(Instant),
}

/// What holds for one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hold {
    /// A message to it has been refused since credits came.
    pub(super) is_holding: bool,
    /// It was in vain.
    pub(super) has_given_up: bool,
    /// The retry timer has run out since: whether the peer has moved, the next message will show.
    pub(super) is_on_trial: bool,
    /// It was in vain though there were some credits, and there have never been enough for such a message since: it may
    /// be that there never are.
    pub(super) is_scarce: bool,
}

impl Hold {
    /// Nothing waits for the peer any more, or credits have come. Returns whether a message had been refused.
    pub(super) fn end(&mut self) -> bool {
        (self.has_given_up, self.is_on_trial) = (false, false);
        std::mem::take(&mut self.is_holding)
    }
}

impl Holding {
    /// Whether its time counts.
    #[inline]
    pub(super) fn is_timed(self) -> bool {
        self != Holding::Idle
    }

    /// A peer to whom a message was refused has moved.
    pub(super) fn end_by(&mut self, peer: PeerId) {
        match *self {
            Holding::Begun(_, of) | Holding::Since(_, of) if of != peer => {}
            _ => *self = Holding::Idle,
        }
    }

    /// Time is told.
    pub(super) fn tell_time(&mut self, now: Instant) {
        *self = match *self {
            Holding::Begun(_, of) => Holding::Since(now, of),
            Holding::Since(begun, _) if now.since(begun) >= REST => Holding::Idle,
            Holding::RestUntil(end) if now >= end => Holding::Idle,
            other => other,
        };
    }

    /// A message to `peer` cannot leave. Returns whether it is refused.
    pub(super) fn refuse(&mut self, peer: PeerId, patience: Duration, now: Instant) -> bool {
        match self {
            Holding::Idle => *self = Holding::Begun(1, peer),
            Holding::Begun(refusals, _) if *refusals < UNTIMED_MOST => *refusals += 1,
            Holding::Since(begun, _) if now.since(*begun) < patience => {}
            Holding::RestUntil(_) => return false,
            Holding::Begun(..) | Holding::Since(..) => {
                *self = Holding::RestUntil(now + REST);
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(2);
    const A: PeerId = PeerId(0);
    const B: PeerId = PeerId(1);

    fn at(microseconds: u64) -> Instant {
        Instant::default() + Duration::from_micros(microseconds)
    }

    #[test]
    fn refuses_for_its_patience_from_the_first_time_told_and_then_rests() {
        let mut holding = Holding::default();
        assert!(holding.refuse(A, PATIENCE, at(0)));
        // Whoever was away for long before is not said to have been refused meanwhile.
        holding.tell_time(at(50_000));
        assert!(holding.refuse(B, PATIENCE, at(51_999)));
        assert!(!holding.refuse(A, PATIENCE, at(52_000)));
        assert!(!holding.refuse(B, PATIENCE, at(52_000)), "it rests");
        holding.tell_time(at(1_051_999));
        assert!(!holding.refuse(A, PATIENCE, at(1_051_999)));
        holding.tell_time(at(1_052_000));
        assert!(!holding.is_timed() && holding.refuse(A, PATIENCE, at(1_052_000)));
    }

    #[test]
    fn who_tells_no_time_is_not_refused_without_end() {
        let mut holding = Holding::default();
        assert_eq!((0..2 * UNTIMED_MOST).filter(|_| holding.refuse(A, PATIENCE, at(0))).count(), UNTIMED_MOST as usize);
    }

    #[test]
    fn who_moves_does_not_begin_the_wait_for_another_anew() {
        let mut holding = Holding::default();
        let refused = (0..1_000_000).step_by(50).take_while(|&moment| {
            holding.tell_time(at(moment));
            let is_refused = holding.refuse(A, PATIENCE, at(moment));
            holding.refuse(B, PATIENCE, at(moment));
            holding.end_by(B);
            is_refused
        });
        assert_eq!(refused.count(), 1 + 2_000 / 50);
        assert_eq!(holding, Holding::Idle, "somebody has moved, so there is no rest: the next wait is another's");
        assert!(holding.refuse(B, PATIENCE, at(3_000)));
        holding.tell_time(at(3_001));
        holding.end_by(A);
        assert!(!holding.refuse(B, PATIENCE, at(5_001)));
    }

    #[test]
    fn what_was_refused_and_has_left_is_not_timed_for_ever() {
        let mut holding = Holding::default();
        assert!(holding.refuse(A, PATIENCE, at(0)));
        holding.tell_time(at(1));
        holding.tell_time(at(1_000_001));
        assert_eq!(holding, Holding::Idle);
    }
}
