//! How a process spent the time between two looks: whether it polled in its MPI, or did something else.
//!
//! A process that waits in a blocking call polls without a pause, and gives the processor away every few polls, which
//! its page counts (`yields`). Measured with ranks in `MPI_Recv` and `MPI_Barrier` of three MPIs, alone and with twice
//! as many ranks as cores, that is 10,000 to 330,000 times for each second of a processor. One that computes and calls
//! `MPI_Test` every few milliseconds does so less than ten times, and one that sleeps between its calls is mostly found
//! asleep.

use std::time::Duration;

use tidegate_message::Counter;

use crate::process::{self, State};
use crate::top::look::Seen;

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

/// The time between two looks at a process of this host; `None`: it is on another one, or was not there before.
pub fn stretch(before: &Seen, now: &Seen, lasted: Duration) -> Option<Stretch> {
    let (earlier, process) = (before.process?, now.process?);
    Some(Stretch {
        lasted,
        ran: process::ticks(process.ran_ticks.saturating_sub(earlier.ran_ticks)),
        accuracy: process::ticks(1),
        yields: now.get(Counter::Yields).saturating_sub(before.get(Counter::Yields)),
        state: process.state,
    })
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
}
