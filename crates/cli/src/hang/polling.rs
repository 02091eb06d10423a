//! Whether a process has polled in its MPI all the time, from what two looks at it differ by.
//!
//! A process that waits in a blocking call polls without a pause, and gives the processor away every few polls, which
//! its page counts (`yields`). Measured with ranks in `MPI_Recv` and `MPI_Barrier` of three MPIs, alone and with twice
//! as many ranks as cores, that is 10,000 to 330,000 times for each second of a processor. One that computes and calls
//! `MPI_Test` every few milliseconds does so less than ten times, and one that sleeps between its calls is mostly found
//! asleep.

use std::time::Duration;

use crate::process::State;

/// One that does nothing but poll gives the processor away at least this often for each second of it that it uses.
const YIELDS_LEAST: f64 = 2000.0;
/// One that was found asleep and has used less than this part of the time need not compute: it sleeps between its
/// polls.
const COMPUTES_FROM: f64 = 0.2;

/// The time between two looks at a process.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// The time between the looks.
    pub lasted: Duration,
    /// How long its threads have used processors, in steps of `accuracy`.
    pub ran: Duration,
    /// The steps in which its system tells that.
    pub accuracy: Duration,
    /// How often it has given the processor away because it had found nothing.
    pub yields: u64,
    /// The state of its first thread at the second look.
    pub state: State,
}

/// How a process spent the time between two looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollHabit {
    /// It has polled, and done nothing else.
    Polls,
    /// It has computed, if it has polled at all.
    Computes,
    /// It would go on, and has had no processor.
    Starved,
    /// None of these: it sleeps now and then, or is stopped, or is on another host.
    Unclear,
}

impl Stretch {
    /// How the process spent it, as far as that can be told.
    #[must_use]
    pub fn habit(&self) -> PollHabit {
        let least = self.ran.saturating_sub(self.accuracy).as_secs_f64() * YIELDS_LEAST;
        let has_polled = self.yields > 0 && self.yields as f64 >= least;
        match self.state {
            State::Runnable if has_polled => PollHabit::Polls,
            State::Runnable if self.yields == 0 && self.ran <= self.accuracy => PollHabit::Starved,
            State::Runnable => PollHabit::Computes,
            State::Sleeping if !has_polled && self.ran.as_secs_f64() >= self.lasted.as_secs_f64() * COMPUTES_FROM => {
                PollHabit::Computes
            }
            _ => PollHabit::Unclear,
        }
    }
}

/// How a process has spent a quiet period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polling {
    /// For how long it has done nothing but poll, up to now.
    pub polls_for: Duration,
    /// How much of the time since it did that last it computed.
    computes_for: Duration,
    /// For how much of that time it is not clear.
    unclear_for: Duration,
}

impl Polling {
    /// Takes into account what it did between two looks, which counts for `time`.
    pub fn add(&mut self, habit: PollHabit, time: Duration) {
        match habit {
            PollHabit::Polls => *self = Polling { polls_for: self.polls_for + time, ..Polling::default() },
            // It has done nothing: neither a proof nor the contrary.
            PollHabit::Starved => {}
            PollHabit::Computes => (self.polls_for, self.computes_for) = (Duration::ZERO, self.computes_for + time),
            PollHabit::Unclear => (self.polls_for, self.unclear_for) = (Duration::ZERO, self.unclear_for + time),
        }
    }

    /// Whether it computes, and does not only seem to at some look: one that sleeps between its polls is found awake
    /// now and then.
    #[must_use]
    pub fn computes(&self) -> bool {
        self.computes_for > self.unclear_for
    }
}

/// Whether at most one thread of a process has run, from how long each has run. Another one may be about to send the
/// message for which the others wait.
#[must_use]
pub fn only_one_ran(ran: &[Duration], accuracy: Duration) -> bool {
    let all: Duration = ran.iter().sum();
    let least = (accuracy * 2).max(all / 50);
    ran.iter().filter(|ran| **ran >= least).count() <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn habit(ran: u64, yields: u64, state: State) -> PollHabit {
        Stretch { lasted: ms(1000), ran: ms(ran), accuracy: ms(10), yields, state }.habit()
    }

    #[test]
    fn what_a_process_did_is_told_by_how_often_it_polls() {
        use PollHabit::{Computes, Polls, Starved, Unclear};
        use State::{Runnable, Sleeping, Stopped};
        for (ran, yields, state, expected) in [
            (1000, 200_000, Runnable, Polls),
            (1000, 10_000, Runnable, Polls),
            // It shares its processor with other programs.
            (50, 600, Runnable, Polls),
            (10, 1, Runnable, Polls),
            (0, 3, Runnable, Polls),
            (0, 0, Runnable, Starved),
            (10, 0, Runnable, Starved),
            // It computes and asks now and then.
            (1000, 0, Runnable, Computes),
            (1000, 9, Runnable, Computes),
            (1000, 1500, Runnable, Computes),
            (300, 2, Runnable, Computes),
            (40, 0, Runnable, Computes),
            // Its other threads do.
            (3000, 2, Sleeping, Computes),
            // It sleeps between its polls.
            (30, 0, Sleeping, Unclear),
            (30, 30, Sleeping, Unclear),
            (1000, 200_000, Sleeping, Unclear),
            (0, 0, Sleeping, Unclear),
            (0, 0, Stopped, Unclear),
            (10, 5, Stopped, Unclear),
        ] {
            assert_eq!(habit(ran, yields, state), expected, "{ran} ms, {yields} yields, {state:?}");
        }
    }

    #[test]
    fn it_has_polled_all_the_time_if_it_never_did_anything_else() {
        let of = |habits: &[PollHabit]| {
            let mut polling = Polling::default();
            habits.iter().for_each(|habit| polling.add(*habit, ms(500)));
            (polling.polls_for, polling.computes())
        };
        use PollHabit::{Computes, Polls, Starved, Unclear};
        assert_eq!(of(&[]), (ms(0), false));
        assert_eq!(of(&[Polls, Starved, Polls]), (ms(1000), false));
        assert_eq!(of(&[Polls, Polls, Computes]), (ms(0), true));
        assert_eq!(of(&[Computes, Starved]), (ms(0), true));
        assert_eq!(of(&[Computes, Computes, Polls]), (ms(500), false));
        // It sleeps between its polls, and was found awake once.
        assert_eq!(of(&[Unclear, Unclear, Computes]), (ms(0), false));
        assert_eq!(of(&[Polls, Unclear]), (ms(0), false));
    }

    #[test]
    fn a_second_thread_that_runs_is_seen() {
        let only_one = |ran: &[u64]| only_one_ran(&ran.iter().copied().map(ms).collect::<Vec<_>>(), ms(10));
        assert!(only_one(&[]) && only_one(&[0]) && only_one(&[900]));
        assert!(only_one(&[900, 0, 10]) && only_one(&[60_000, 500]));
        assert!(!only_one(&[900, 400]) && !only_one(&[60_000, 2000]) && !only_one(&[40, 20]));
    }
}
