//! Whether a process has polled in its MPI all the time of a quiet period, from what it did between looks
//! ([`crate::top::habit`]).

use std::time::Duration;

use crate::top::habit::PollHabit;

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
