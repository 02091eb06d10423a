//! How many simulations a plan takes, and about how long, before it begins.

use std::fmt;
use std::time::Duration;

use crate::progress::duration;

/// A run with flow control takes longer than one with ample memory by about this factor: 1.5 to 4 with the traces of
/// `tests/programs/holdup.c`. Where senders are refused again and again (`rnr`, `shared_window`), it may be many
/// times that.
const BOUNDED_TIMES: u32 = 3;

/// The cost of a plan, as far as it can be told before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Runs.
    pub simulations: usize,
    /// How long they take together, with those that go on at the same time.
    pub time: Duration,
}

impl Expected {
    /// `settings` is the number of all schemes together; each is run with every seed, and `at_once` runs go on at the
    /// same time. `ample`: how long the runs with ample memory took, of which there were `seeds`.
    pub fn new(settings: usize, seeds: usize, ample: Duration, at_once: usize) -> Self {
        let each = ample / seeds.max(1) as u32 * BOUNDED_TIMES;
        let simulations = settings * seeds;
        let rounds = simulations.div_ceil(at_once.max(1));
        Expected { simulations, time: each.saturating_mul(u32::try_from(rounds).unwrap_or(u32::MAX)) }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.time.as_secs();
        let time = if seconds == 0 { "a second or less".to_owned() } else { format!("some {}", duration(self.time)) };
        write!(f, "about {} simulations, {time}", self.simulations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_follows_the_runs_with_ample_memory() {
        let expected = Expected::new(45, 2, Duration::from_millis(200), 2);
        assert_eq!(expected, Expected { simulations: 90, time: Duration::from_millis(45 * 300) });
        assert_eq!(expected.to_string(), "about 90 simulations, some 13 s");
        let quick = Expected::new(3, 1, Duration::from_millis(10), 2);
        assert_eq!(quick.to_string(), "about 3 simulations, a second or less");
    }
}
