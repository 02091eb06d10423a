//! [`PollBackoff`]: what the progress thread does after each poll, and whether it polls from inside the domain at all.
//! The numbers are in `waits`.

use crate::threads::waits::*;
use std::time::Duration;

/// When a domain has a thread that makes progress, and what that thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// It makes all progress that the application does not make (`FI_PROGRESS_AUTO`, `FI_TIDEGATE_PROGRESS=thread`).
    Always,
    /// It goes on with what calls have left to do (`FI_TIDEGATE_PROGRESS=on_demand`).
    WhenLeft,
}

/// What a poll has found. Of several endpoints the greatest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Polled {
    /// The application has called since, and it was not looked whether it makes progress.
    Passed,
    /// A call is inside the domain, and stays there.
    Occupied,
    /// Nothing is left.
    Idle,
    /// The application makes progress of all that is left; or none can be made before it reads what is there.
    Called,
    /// Nothing can move now.
    Still,
    /// Something may have moved: the end of it will tell.
    Underway,
    /// Something has moved, or may move at once.
    Moved,
    /// Nothing can move before a packet comes, or so much time has passed. All endpoints are armed.
    Armed(Duration),
}

/// What the thread does between two polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Gives the processor away once.
    Yield,
    /// Naps for this time.
    Nap(Duration),
    /// Sleeps until something is left to do again.
    SleepUntilWoken,
    /// Sleeps until a packet comes or a call wakes it, but no longer than this.
    SleepUntilPacket(Duration),
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct PollBackoff {
    policy: Policy,
    /// The calls of the application that are known.
    calls: u32,
    /// Looks from outside in a row.
    passed: u32,
    /// The application made all progress itself at the last poll from inside.
    is_trusted: bool,
    /// How long the next nap is.
    nap: Duration,
    /// Polls that follow without a nap.
    quick: u32,
    /// Polls in a row that have found nothing: nothing that moves (`Always`), or nothing that is left (`WhenLeft`).
    in_vain: u32,
    /// It polls again without a nap.
    is_quick: bool,
}

impl PollBackoff {
    /// Nothing is known yet.
    pub fn new(policy: Policy) -> PollBackoff {
        PollBackoff {
            policy,
            calls: 0,
            passed: 0,
            is_trusted: false,
            nap: NAP_FIRST,
            quick: 0,
            in_vain: 0,
            is_quick: false,
        }
    }

    /// Whether the application has called since this was asked last. `calls`: how many calls there have been.
    pub fn was_called(&mut self, calls: u32) -> bool {
        core::mem::replace(&mut self.calls, calls) != calls
    }

    /// Whether to look from outside only this time: the application calls, and made all progress itself when this was
    /// looked at last.
    pub fn passes(&mut self, calls: u32) -> bool {
        let passes = self.was_called(calls) && self.is_trusted && self.passed < LOOKS_FROM_OUTSIDE;
        self.passed = if passes { self.passed + 1 } else { 0 };
        passes
    }

    /// Whether the thread goes to sleep if its next poll finds nothing either.
    pub fn may_sleep(&self) -> bool {
        match self.policy {
            Policy::Always => self.in_vain >= ALWAYS_POLLS_BEFORE_SLEEP,
            Policy::WhenLeft => self.in_vain + 1 >= IDLE_POLLS_BEFORE_SLEEP,
        }
    }

    /// What to do after a poll.
    pub fn pause_after(&mut self, polled: Polled) -> Pause {
        let pause = match self.policy {
            Policy::Always => self.pause_always(polled),
            Policy::WhenLeft => self.pause_when_left(polled),
        };
        self.is_quick = pause == Pause::Yield;
        pause
    }

    /// Whether there was no nap since the last poll.
    pub fn is_quick(&self) -> bool {
        self.is_quick
    }

    fn pause_always(&mut self, polled: Polled) -> Pause {
        let (in_vain, pause) = match polled {
            Polled::Moved => (0, Pause::Yield),
            Polled::Armed(most) => (self.in_vain, Pause::SleepUntilPacket(most)),
            Polled::Still | Polled::Underway => (self.in_vain + 1, Pause::Yield),
            Polled::Passed | Polled::Occupied | Polled::Idle | Polled::Called => (0, Pause::Nap(ALWAYS_LEAVES)),
        };
        self.in_vain = in_vain;
        pause
    }

    fn pause_when_left(&mut self, polled: Polled) -> Pause {
        if polled == Polled::Passed {
            // Nothing is known of what is left.
            return Pause::Nap(WHEN_LEFT_LEAVES);
        }
        self.is_trusted = matches!(polled, Polled::Called | Polled::Idle);
        let (nap, may_sleep) = (core::mem::replace(&mut self.nap, NAP_FIRST), self.may_sleep());
        let in_vain = core::mem::take(&mut self.in_vain);
        let quick = core::mem::take(&mut self.quick);
        match polled {
            Polled::Idle if may_sleep => Pause::SleepUntilWoken,
            Polled::Idle => {
                self.in_vain = in_vain + 1;
                Pause::Nap(WHEN_LEFT_LEAVES)
            }
            Polled::Passed | Polled::Occupied | Polled::Called => Pause::Nap(WHEN_LEFT_LEAVES),
            Polled::Moved => {
                self.quick = QUICK_POLLS;
                Pause::Yield
            }
            Polled::Still | Polled::Underway | Polled::Armed(_) if quick > 0 => {
                self.quick = quick - 1;
                Pause::Yield
            }
            Polled::Underway => Pause::Nap(NAP_FIRST),
            Polled::Still | Polled::Armed(_) => {
                self.nap = (nap * 2).min(NAP_LONGEST);
                Pause::Nap(nap)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nap(backoff: &mut PollBackoff, polled: Polled) -> Option<u128> {
        match backoff.pause_after(polled) {
            Pause::Yield => None,
            Pause::Nap(nap) => Some(nap.as_millis()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn naps_get_longer_while_nothing_moves() {
        let backoff = &mut PollBackoff::new(Policy::WhenLeft);
        let still: Vec<_> = (0..7).map(|_| nap(backoff, Polled::Still).unwrap()).collect();
        assert_eq!(still, [2, 4, 8, 16, 32, 32, 32]);
        assert!(!backoff.is_quick());
        assert_eq!((nap(backoff, Polled::Moved), backoff.is_quick()), (None, true));
        assert!((0..QUICK_POLLS).all(|_| nap(backoff, Polled::Still).is_none()));
        assert_eq!(nap(backoff, Polled::Still), Some(2));
        assert_eq!(nap(backoff, Polled::Underway), Some(2));
        assert_eq!(nap(backoff, Polled::Underway), Some(2));
        assert_eq!(nap(backoff, Polled::Called), Some(8));
        assert_eq!(nap(backoff, Polled::Still), Some(2));
        assert_eq!(nap(backoff, Polled::Passed), Some(8));
        assert_eq!(nap(backoff, Polled::Still), Some(4), "nothing is known of what is left");
        assert_eq!(nap(backoff, Polled::Occupied), Some(8));
        assert_eq!(nap(backoff, Polled::Still), Some(2));
    }

    #[test]
    fn it_sleeps_when_nothing_was_left_for_a_while() {
        let mut backoff = PollBackoff::new(Policy::WhenLeft);
        for _ in 0..IDLE_POLLS_BEFORE_SLEEP - 1 {
            assert!(!backoff.may_sleep());
            assert_eq!(nap(&mut backoff, Polled::Idle), Some(8));
        }
        assert!(backoff.may_sleep());
        assert_eq!({ backoff }.pause_after(Polled::Idle), Pause::SleepUntilWoken);
        backoff.pause_after(Polled::Called);
        assert!(!backoff.may_sleep());
    }

    #[test]
    fn a_thread_that_always_makes_progress_sleeps_only_after_polls_in_vain_and_does_not_poll_anew_after_a_sleep() {
        let backoff = &mut PollBackoff::new(Policy::Always);
        for _ in 0..ALWAYS_POLLS_BEFORE_SLEEP {
            assert!(!backoff.may_sleep());
            assert_eq!(nap(backoff, Polled::Still), None);
        }
        let most = Duration::from_millis(7);
        for _ in 0..2 {
            assert!(backoff.may_sleep());
            assert_eq!(backoff.pause_after(Polled::Armed(most)), Pause::SleepUntilPacket(most));
        }
        assert_eq!(nap(backoff, Polled::Called), Some(1), "the application makes progress");
        assert!(!backoff.may_sleep());
    }

    #[test]
    fn it_looks_inside_rarely_while_the_application_calls_and_makes_progress() {
        let mut backoff = PollBackoff::new(Policy::WhenLeft);
        let mut calls = 0;
        let mut count_inside = |backoff: &mut PollBackoff, found, step| {
            (0..40)
                .filter(|_| {
                    calls += step;
                    let looks_inside = !backoff.passes(calls);
                    backoff.pause_after(if looks_inside { found } else { Polled::Passed });
                    looks_inside
                })
                .count()
        };
        assert_eq!(count_inside(&mut backoff, Polled::Called, 1), 10);
        assert_eq!(count_inside(&mut backoff, Polled::Idle, 1), 10);
        assert_eq!(count_inside(&mut backoff, Polled::Called, 0), 40, "no call comes");
        assert!(count_inside(&mut backoff, Polled::Still, 1) >= 37, "the calls make no progress of what is left");
        assert!(count_inside(&mut backoff, Polled::Occupied, 1) >= 37, "it did not come in");
    }
}
