//! [`QuietPeriod`]: for how long no message of a job has moved, and when that is to be said.
//!
//! The time between two looks counts only as far as they were due: if this process was stopped for an hour, or the host
//! slept, nothing is known of that hour. And when a process goes on that a signal had stopped, the count begins again,
//! since it had no chance to send anything before.

use std::time::Duration;

/// A quiet job is told at most this often in one run. Each time, the next quiet period has to last twice as long.
const TOLD_MOST: u32 = 8;

/// One look at a job as a whole.
#[derive(Clone, Copy, Debug)]
pub struct QuietLook {
    /// When, by a clock that never goes back.
    pub at: Duration,
    /// How much of the time since the look before counts at most.
    pub counts_most: Duration,
    /// Whether messages have moved since the look before, or processes have come or gone.
    pub has_moved: bool,
    /// Whether a process was stopped by a signal at the look before and is not any more, or all of them are stopped.
    pub was_stopped: bool,
}

/// The step that a look asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuietStep {
    /// Nothing.
    Nothing,
    /// No message has moved for this long: to be judged, and told if `is_untold`.
    Judge {
        /// Time that counts.
        quiet_for: Duration,
        /// Whether this period has not been told, and may be.
        is_untold: bool,
    },
    /// Messages move again, after this long. The quiet period was told.
    MovesAgain(Duration),
}

/// The time in which no message of a job has moved.
#[derive(Clone, Debug)]
pub struct QuietPeriod {
    /// From when on it is judged.
    after: Duration,
    /// The last look.
    at: Option<Duration>,
    /// The time without a message that counts.
    quiet_for: Duration,
    /// Whether this period was told.
    is_told: bool,
    /// How many were told.
    told: u32,
}

impl QuietPeriod {
    /// Nothing is known yet. `after`: how long a quiet period lasts until it is judged.
    #[must_use]
    pub fn new(after: Duration) -> Self {
        QuietPeriod { after, at: None, quiet_for: Duration::ZERO, is_told: false, told: 0 }
    }

    /// The time without a message so far.
    #[must_use]
    pub fn lasts(&self) -> Duration {
        self.quiet_for
    }

    /// Takes a look into account.
    pub fn observe(&mut self, look: QuietLook) -> QuietStep {
        let before = self.at.replace(look.at);
        let gap = before.map_or(Duration::ZERO, |before| look.at.saturating_sub(before)).min(look.counts_most);
        if look.has_moved {
            let lasted = self.quiet_for + gap;
            self.quiet_for = Duration::ZERO;
            let was_told = std::mem::take(&mut self.is_told);
            return if was_told { QuietStep::MovesAgain(lasted) } else { QuietStep::Nothing };
        }
        if look.was_stopped {
            self.quiet_for = Duration::ZERO;
            return QuietStep::Nothing;
        }
        self.quiet_for += gap;
        if self.quiet_for < self.after {
            return QuietStep::Nothing;
        }
        let is_untold =
            !self.is_told && self.told < TOLD_MOST && self.quiet_for >= self.after.saturating_mul(1 << self.told);
        QuietStep::Judge { quiet_for: self.quiet_for, is_untold }
    }

    /// The quiet period was told.
    pub fn note_told(&mut self) {
        self.is_told = true;
        self.told += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn quiet(at: u64) -> QuietLook {
        QuietLook { at: seconds(at), counts_most: seconds(4), has_moved: false, was_stopped: false }
    }

    fn moving(at: u64) -> QuietLook {
        QuietLook { has_moved: true, ..quiet(at) }
    }

    /// Looks each second until it is judged and told, from `at` on. Returns when that is.
    fn told_from(period: &mut QuietPeriod, at: u64) -> Option<u64> {
        (at..at + 10_000).find(|at| {
            let is_told = matches!(period.observe(quiet(*at)), QuietStep::Judge { is_untold: true, .. });
            if is_told {
                period.note_told();
            }
            is_told
        })
    }

    #[test]
    fn it_is_told_once_in_a_quiet_period() {
        let mut period = QuietPeriod::new(seconds(60));
        assert_eq!(told_from(&mut period, 100), Some(160));
        for at in 161..500 {
            let expected = QuietStep::Judge { quiet_for: seconds(at - 100), is_untold: false };
            assert_eq!(period.observe(quiet(at)), expected);
        }
        assert_eq!(period.observe(moving(500)), QuietStep::MovesAgain(seconds(400)));
        assert_eq!(period.observe(moving(501)), QuietStep::Nothing);
    }

    #[test]
    fn each_time_the_next_has_to_last_twice_as_long_and_there_is_a_most() {
        let (mut period, mut at, mut lasted) = (QuietPeriod::new(seconds(2)), 1, Vec::new());
        while let Some(told) = told_from(&mut period, at) {
            lasted.push(told - at);
            at = told + 1;
            assert_eq!(period.observe(moving(at)), QuietStep::MovesAgain(seconds(lasted[lasted.len() - 1] + 1)));
        }
        assert_eq!(lasted, [2, 4, 8, 16, 32, 64, 128, 256]);
    }

    #[test]
    fn messages_that_move_begin_the_time_again() {
        let mut period = QuietPeriod::new(seconds(3));
        for at in 0..100 {
            let look = if at % 3 == 0 { moving(at) } else { quiet(at) };
            assert_eq!(period.observe(look), QuietStep::Nothing, "{at}");
        }
    }

    #[test]
    fn time_in_which_no_look_was_does_not_count() {
        let mut period = QuietPeriod::new(seconds(60));
        period.observe(quiet(0));
        // The host slept, or this process was stopped.
        assert_eq!(period.observe(quiet(36_000)), QuietStep::Nothing);
        assert_eq!(period.lasts(), seconds(4));
        assert_eq!(told_from(&mut period, 36_001), Some(36_056));
    }

    #[test]
    fn when_processes_go_on_that_were_stopped_the_time_begins_again_and_nothing_is_told_twice() {
        let mut period = QuietPeriod::new(seconds(5));
        assert_eq!(told_from(&mut period, 0), Some(5));
        assert_eq!(period.observe(QuietLook { was_stopped: true, ..quiet(6) }), QuietStep::Nothing);
        assert_eq!(period.observe(quiet(7)), QuietStep::Nothing);
        let again: Vec<QuietStep> = (8..20).map(|at| period.observe(quiet(at))).collect();
        assert_eq!(again[again.len() - 1], QuietStep::Judge { quiet_for: seconds(13), is_untold: false });
        assert!(again.iter().all(|step| !matches!(step, QuietStep::Judge { is_untold: true, .. })), "{again:?}");
    }
}
