//! Injected messages that cannot leave are refused for a while, so that their senders do not fall silent with them.
//!
//! To its sender an injected message counts as sent, and who has sent all may make no progress any more, though the
//! receiver waits. So the sender is asked to try again, as long as credits may come soon: a receiver that makes
//! progress returns them in microseconds. One that computes returns none; so the endpoint, whatever the peer, refuses
//! for `patience` at most, and then not again for [`REST`], or until credits come from somebody to whom a message was
//! refused. And who has not been worth waiting for is not waited for until credits come from there.
//!
//! Where receivers post buffers, and nobody tells a sender that one is free, its retry timer only says when to try
//! again: credits have come, so to speak, when the message has left.
//!
//! Patience is a time and not a number of refusals: between two of them an MPI may give the processor to a process that
//! computes. The number has a bound, too, for callers that make no progress in between, and so tell no time.
//!
//! Where processes share processors, a receiver that looks for packets all the time may not get to do so while we are
//! patient. So one that waits for a processor is given as much time on one as our patience, but for no longer than
//! [`STARVED_MOST`]. And as our own process may have waited for one while the receiver had its time, each message is
//! tried once more after that.

use std::time::Duration;
use tidegate_flow::Instant;

/// How long nothing is refused after it was in vain.
const REST: Duration = Duration::from_secs(1);
/// How long a receiver is waited for that gets no processor.
const STARVED_MOST: Duration = Duration::from_secs(1);
/// Most refusals before time is told.
const UNTIMED_MOST: u32 = 100_000;

/// What holds for all peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Holding {
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
    /// When our patience was over, and how long the peer's process had been on a processor by then.
    pub(super) ran: Option<(Instant, Duration)>,
    /// It has had its time since, and the message is tried once more.
    pub(super) is_last_try: bool,
}

impl Hold {
    /// Nothing waits for the peer any more, or credits have come. Returns whether a message had been refused.
    pub(super) fn end(&mut self) -> bool {
        (self.has_given_up, self.is_on_trial, self.ran, self.is_last_try) = (false, false, None, false);
        std::mem::take(&mut self.is_holding)
    }

    /// Our patience is over: whether to try once more all the same. `ran`: how long the peer's process has been on a
    /// processor, if it is on one now or waits for one.
    pub(super) fn tries_on(&mut self, ran: Option<Duration>, patience: Duration, now: Instant) -> bool {
        let may_have_looked = ran.is_none_or(|ran| {
            let (since, before) = *self.ran.get_or_insert((now, ran));
            ran.saturating_sub(before) >= patience || now.since(since) >= STARVED_MOST
        });
        !may_have_looked || !std::mem::replace(&mut self.is_last_try, true)
    }
}

impl Holding {
    /// Whether its time counts.
    #[inline]
    pub(super) fn is_timed(self) -> bool {
        self != Holding::Idle
    }

    /// What was waited for has come.
    pub(super) fn end_if(&mut self, has_come: bool) {
        if has_come {
            *self = Holding::Idle;
        }
    }

    /// Time is told.
    pub(super) fn tell_time(&mut self, now: Instant) {
        *self = match *self {
            Holding::Begun(_) => Holding::Since(now),
            Holding::Since(begun) if now.since(begun) >= REST => Holding::Idle,
            Holding::RestUntil(end) if now >= end => Holding::Idle,
            other => other,
        };
    }

    /// A message cannot leave. Returns whether it is refused. `tries_on` is asked when our patience is over.
    pub(super) fn refuse(&mut self, patience: Duration, now: Instant, mut tries_on: impl FnMut() -> bool) -> bool {
        match self {
            Holding::Idle => *self = Holding::Begun(1),
            Holding::Begun(refusals) if *refusals < UNTIMED_MOST => *refusals += 1,
            Holding::Since(begun) if now.since(*begun) < patience || tries_on() => {}
            Holding::RestUntil(_) => return false,
            Holding::Begun(_) | Holding::Since(_) => {
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

    fn at(microseconds: u64) -> Instant {
        Instant::default() + Duration::from_micros(microseconds)
    }

    #[test]
    fn refuses_for_its_patience_from_the_first_time_told_and_then_rests() {
        let mut holding = Holding::default();
        assert!(holding.refuse(PATIENCE, at(0), || false));
        // Whoever was away for long before is not said to have been refused meanwhile.
        holding.tell_time(at(50_000));
        assert!(holding.refuse(PATIENCE, at(51_999), || false));
        assert!(!holding.refuse(PATIENCE, at(52_000), || false));
        assert!(!holding.refuse(PATIENCE, at(52_000), || false), "it rests");
        holding.tell_time(at(1_051_999));
        assert!(!holding.refuse(PATIENCE, at(1_051_999), || false));
        holding.tell_time(at(1_052_000));
        assert!(!holding.is_timed() && holding.refuse(PATIENCE, at(1_052_000), || false));
    }

    #[test]
    fn who_tells_no_time_is_not_refused_without_end() {
        let mut holding = Holding::default();
        assert_eq!(
            (0..2 * UNTIMED_MOST).filter(|_| holding.refuse(PATIENCE, at(0), || false)).count(),
            UNTIMED_MOST as usize
        );
    }

    /// Whether a message is refused at such a moment, to a peer that has run for so long or sleeps.
    fn refuse_at(holding: &mut Holding, hold: &mut Hold, moment: u64, ran: Option<u64>) -> bool {
        let ran = ran.map(Duration::from_micros);
        holding.tell_time(at(moment));
        holding.refuse(PATIENCE, at(moment), || hold.tries_on(ran, PATIENCE, at(moment)))
    }

    #[test]
    fn a_receiver_that_waits_for_a_processor_gets_as_much_time_on_one_as_our_patience() {
        let (mut holding, mut hold) = Default::default();
        let mut refuse = |moment, ran| refuse_at(&mut holding, &mut hold, moment, Some(ran));
        assert!(refuse(0, 0) && refuse(1, 0));
        for (moment, ran) in [(2_001, 70), (50_000, 70), (51_000, 1_070), (51_500, 1_570), (90_000, 2_069)] {
            assert!(refuse(moment, ran), "at {moment}");
        }
        assert!(refuse(90_001, 2_070), "it has had its time, in which it may have taken what was before");
        assert!(!refuse(90_002, 2_070));
        assert!(!refuse(90_003, 2_070), "we rest");
    }

    #[test]
    fn a_receiver_that_sleeps_is_tried_once_more_since_we_may_have_waited_for_a_processor() {
        let (mut holding, mut hold) = Default::default();
        let mut refuse = |moment| refuse_at(&mut holding, &mut hold, moment, None);
        assert!(refuse(0) && refuse(1) && refuse(50_000));
        assert!(!refuse(50_001));
    }

    #[test]
    fn a_receiver_that_never_gets_a_processor_is_not_waited_for_without_end() {
        let mut hold = Hold::default();
        let mut tries_on = |moment| hold.tries_on(Some(Duration::ZERO), PATIENCE, at(moment));
        assert!(tries_on(10) && tries_on(1_000_009));
        assert!(tries_on(1_000_010), "the last try");
        assert!(!tries_on(1_000_011));
        hold.end();
        assert!(hold.tries_on(Some(Duration::ZERO), PATIENCE, at(1_000_012)), "another message");
    }

    #[test]
    fn what_was_refused_and_has_left_is_not_timed_for_ever() {
        let mut holding = Holding::default();
        assert!(holding.refuse(PATIENCE, at(0), || false));
        holding.tell_time(at(1));
        holding.tell_time(at(1_000_001));
        assert_eq!(holding, Holding::Idle);
    }
}
