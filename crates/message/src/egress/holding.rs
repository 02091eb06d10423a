//! Injected messages that cannot leave are refused for a while, so that their senders do not fall silent with them.
//!
//! To its sender an injected message counts as sent, and who has sent all may make no progress any more, though the
//! receiver waits. So the sender is asked to try again, as long as credits may come soon: a receiver that makes
//! progress returns them in microseconds. One that computes returns none; so the endpoint, whatever the peer, refuses
//! for `patience`, and then not again for [`REST`], or until credits come from somebody to whom a message was refused.
//! And who has not been worth waiting for is not waited for until credits come from there.
//!
//! Where receivers post buffers, and nobody tells a sender that one is free, its retry timer only says when to try
//! again: credits have come, so to speak, when the message has left.
//!
//! Patience is a time and not a number of refusals: between two of them an MPI may give the processor to a process that
//! computes. The number has a bound, too, for callers that make no progress in between, and so tell no time.
//!
//! Where processes share processors, a receiver that looks for packets all the time may not get to do so while we are
//! patient. So one that waits for a processor is given as much time on one as our patience, but for no longer than
//! [`STARVED_MOST`]. That is many turns of a scheduler; it is little beside [`REST`], because some systems keep the
//! accounts of processes that compute so rarely that they seem to wait. And as our own process may have waited for a
//! processor while the receiver had its time, tries go on for another [`ASKED_EVERY`] after that. (A retry timer that
//! the user has made longer than this may leave no try in that time.)
//!
//! With `none` nothing says that a receiver has moved, so what began with a wait ends after [`REST`] only.

use std::time::Duration;
use tidegate_flow::{Instant, PeerId};

/// How long nothing is refused after it was in vain.
const REST: Duration = Duration::from_secs(1);
/// How long a receiver is waited for that gets no processor.
const STARVED_MOST: Duration = Duration::from_millis(100);
/// How often it is asked whether one does: that takes system calls. Long enough for a retry timer to run out.
const ASKED_EVERY: Duration = Duration::from_millis(1);
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
}

/// What was heard of a receiver's process since our patience was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    of: PeerId,
    /// When anybody was asked about first.
    since: Instant,
    /// How long it had been on a processor when it was asked about first; `None`: it slept.
    ran: Option<Duration>,
    /// When to ask again.
    next: Instant,
    /// It has had its time since, and the message is tried for a last while.
    is_last: bool,
}

impl Hold {
    /// Nothing waits for the peer any more, or credits have come. Returns whether a message had been refused.
    pub(super) fn end(&mut self) -> bool {
        (self.has_given_up, self.is_on_trial) = (false, false);
        std::mem::take(&mut self.is_holding)
    }
}

/// Our patience, which began at `begun`, is over: whether to go on trying to send to a peer all the same. `ran`: how
/// long its process has been on a processor, if it is on one now or waits for one. Whoever is tried, one is asked about
/// at a time, and the last while of one is that of all.
pub(super) fn tries_on(
    asked: &mut Option<Asked>,
    of: PeerId,
    ran: impl FnOnce() -> Option<Duration>,
    (begun, patience): (Instant, Duration),
    now: Instant,
) -> bool {
    let before = asked.filter(|before| before.since >= begun);
    if let Some(before) = before
        && (now < before.next || before.is_last)
    {
        return now < before.next;
    }
    let since = before.map_or(now, |before| before.since);
    // Of another one than before it is not known yet how long it has been on a processor.
    let first = before.filter(|before| before.of == of).and_then(|before| before.ran);
    let ran = ran();
    let has_had_its_time = first.zip(ran).is_some_and(|(first, ran)| ran.saturating_sub(first) >= patience);
    let is_last = ran.is_none() || has_had_its_time || now.since(since) >= STARVED_MOST;
    *asked = Some(Asked { of, since, ran: first.or(ran), next: now + ASKED_EVERY, is_last });
    true
}

impl Holding {
    /// Whether its time counts.
    #[inline]
    pub(super) fn is_timed(self) -> bool {
        self != Holding::Idle
    }

    /// A peer to whom a message was refused has moved. While another one is given time on a processor that ends
    /// nothing: else there would be no end to it where many take turns.
    pub(super) fn end_by(&mut self, peer: PeerId, asked: Option<Asked>) {
        match *self {
            Holding::Since(begun) if asked.is_some_and(|asked| asked.since >= begun && asked.of != peer) => {}
            _ => *self = Holding::Idle,
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

    /// A message cannot leave. Returns whether it is refused. `tries_on` is asked when our patience is over,
    /// which began at the moment that it is given.
    pub(super) fn refuse(
        &mut self,
        patience: Duration,
        now: Instant,
        mut tries_on: impl FnMut(Instant) -> bool,
    ) -> bool {
        match self {
            Holding::Idle => *self = Holding::Begun(1),
            Holding::Begun(refusals) if *refusals < UNTIMED_MOST => *refusals += 1,
            Holding::Since(begun) if now.since(*begun) < patience || tries_on(*begun) => {}
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
        assert!(holding.refuse(PATIENCE, at(0), |_| false));
        // Whoever was away for long before is not said to have been refused meanwhile.
        holding.tell_time(at(50_000));
        assert!(holding.refuse(PATIENCE, at(51_999), |_| false));
        assert!(!holding.refuse(PATIENCE, at(52_000), |_| false));
        assert!(!holding.refuse(PATIENCE, at(52_000), |_| false), "it rests");
        holding.tell_time(at(1_051_999));
        assert!(!holding.refuse(PATIENCE, at(1_051_999), |_| false));
        holding.tell_time(at(1_052_000));
        assert!(!holding.is_timed() && holding.refuse(PATIENCE, at(1_052_000), |_| false));
    }

    #[test]
    fn who_tells_no_time_is_not_refused_without_end() {
        let mut holding = Holding::default();
        assert_eq!(
            (0..2 * UNTIMED_MOST).filter(|_| holding.refuse(PATIENCE, at(0), |_| false)).count(),
            UNTIMED_MOST as usize
        );
    }

    /// What holds for all peers, and what was asked.
    type Held = (Holding, Option<Asked>);

    /// Whether a message is refused at such a moment, to a peer that has run for so long or sleeps.
    fn refuse((holding, asked): &mut Held, peer: u32, moment: u64, mut ran: impl FnMut() -> Option<u64>) -> bool {
        let now = at(moment);
        holding.tell_time(now);
        holding.refuse(PATIENCE, now, |begun| {
            tries_on(asked, PeerId(peer), || ran().map(Duration::from_micros), (begun, PATIENCE), now)
        })
    }

    #[test]
    fn a_receiver_that_waits_for_a_processor_gets_as_much_time_on_one_as_our_patience() {
        let mut held = Held::default();
        let mut refuse = |moment, ran| refuse(&mut held, 0, moment, || Some(ran));
        assert!(refuse(0, 0) && refuse(1, 0));
        for (moment, ran) in [(2_001, 70), (50_000, 70), (51_000, 1_070), (52_000, 1_570), (90_000, 2_069)] {
            assert!(refuse(moment, ran), "at {moment}");
        }
        assert!(refuse(91_000, 2_070), "it has had its time, in which it may have taken what was before");
        assert!(refuse(91_999, 2_070), "a last while");
        assert!(!refuse(92_000, 2_070));
        assert!(!refuse(92_001, 2_070), "we rest");
    }

    #[test]
    fn a_receiver_that_sleeps_is_tried_for_a_last_while_since_we_may_have_waited_for_a_processor() {
        let mut held = Held::default();
        let mut refuse = |moment| refuse(&mut held, 0, moment, || None);
        assert!(refuse(0) && refuse(1) && refuse(50_000) && refuse(50_999));
        assert!(!refuse(51_000));
    }

    #[test]
    fn receivers_that_never_get_a_processor_are_waited_for_a_little_now_and_then() {
        for peers in 1..4 {
            let mut held = Held::default();
            for begun in [0, 2_000_000, 4_000_000] {
                let moments = (begun..begun + 1_100_000).step_by(100);
                let refused = moments.filter(|at| refuse(&mut held, (*at / 100) as u32 % peers, *at, || Some(7)));
                let refused: Vec<_> = refused.collect();
                assert_eq!(refused.first(), Some(&begun));
                let longest = refused.last().unwrap() - begun;
                assert!((102_000..105_000).contains(&longest), "{longest} from {begun} on, {peers} peers");
            }
        }
    }

    #[test]
    fn who_is_asked_how_it_does_is_asked_rarely() {
        for peers in 1..4 {
            let (mut held, mut times) = (Held::default(), 0);
            for moment in 0..50_000 {
                let ran = || {
                    times += 1;
                    Some(0)
                };
                assert!(refuse(&mut held, moment as u32 % peers, moment, ran));
            }
            assert!((40..=50).contains(&times), "{times}, {peers} peers");
        }
    }

    #[test]
    fn receivers_that_sleep_are_tried_for_one_last_while_together() {
        let mut held = Held::default();
        let refused = (0..50_000).take_while(|moment| refuse(&mut held, *moment as u32 % 2, *moment, || None)).count();
        assert!((3_000..3_100).contains(&refused), "{refused}");
    }

    #[test]
    fn who_moves_meanwhile_does_not_begin_the_time_of_another_anew() {
        let mut held = Held::default();
        let refused = (0..1_000_000).step_by(50).take_while(|moment| {
            let is_refused = refuse(&mut held, 0, *moment, || Some(7));
            if *moment > 2_000 && moment % 10_000 == 0 {
                held.0.end_by(PeerId(1), held.1);
            }
            is_refused
        });
        assert!((102_000 / 50..105_000 / 50).contains(&refused.count()));
        assert!(matches!(held.0, Holding::RestUntil(_)));
        held.0.end_by(PeerId(1), held.1);
        assert_eq!(held.0, Holding::Idle, "somebody has moved: the next wait is another's");
        assert!(refuse(&mut held, 0, 2_000_000, || Some(7)) && refuse(&mut held, 0, 2_010_000, || Some(7)));
        held.0.end_by(PeerId(0), held.1);
        assert_eq!(held.0, Holding::Idle, "it has moved itself");
    }

    #[test]
    fn what_was_refused_and_has_left_is_not_timed_for_ever() {
        let mut holding = Holding::default();
        assert!(holding.refuse(PATIENCE, at(0), |_| false));
        holding.tell_time(at(1));
        holding.tell_time(at(1_000_001));
        assert_eq!(holding, Holding::Idle);
    }
}
