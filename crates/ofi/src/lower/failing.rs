//! [`Failing`]: something that the endpoint cannot do without fails, and is tried again: is it over?
//!
//! What is short for a while (memory, descriptors) comes back, so only time tells. A number of failures tells nothing:
//! tries follow each other by microseconds, and by minutes while the application computes. So the time between two
//! tries counts, but of each such time no more than [`STEP_MOST`], and no success in between.

use std::time::{Duration, Instant};

/// What fails for this long is over: as long as each sending to a peer fails before that counts as lost.
const FAILING_MOST: Duration = Duration::from_secs(10);
/// What counts at most of the time between two tries: the application may have computed.
const STEP_MOST: Duration = Duration::from_millis(100);

/// See the module.
#[derive(Debug, Default)]
pub struct Failing {
    /// The last failure: when, and why.
    last: Option<(Instant, String)>,
    /// How long it has failed, as far as that counts.
    lasted: Duration,
}

impl Failing {
    /// It has succeeded.
    pub fn handle_success(&mut self) {
        if self.last.is_some() {
            *self = Failing::default();
        }
    }

    /// It has failed. Returns the reason, if it is over.
    pub fn handle_failure(&mut self, now: Instant, why: String) -> Option<String> {
        if let Some((last, _)) = &self.last {
            self.lasted += now.saturating_duration_since(*last).min(STEP_MOST);
        }
        let (_, why) = self.last.insert((now, why));
        (self.lasted >= FAILING_MOST).then(|| why.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many tries it takes, one in each such time, until it is over.
    fn tries(interval: Duration, succeeds: impl Fn(u32) -> bool) -> Option<u32> {
        let (mut failing, mut now) = (Failing::default(), Instant::now());
        (1..200_000).find(|number| {
            now += interval;
            if succeeds(*number) {
                failing.handle_success();
            }
            failing.handle_failure(now, "no memory".into()).is_some()
        })
    }

    /// fi_tidegate(7): "The network counts as broken only when posting buffers, or reading what has come, has failed
    /// for 10 seconds in which it was tried."
    #[test]
    fn only_time_counts_and_not_that_in_which_nothing_was_tried() {
        assert_eq!(tries(Duration::from_millis(1), |_| false), Some(10_001));
        assert_eq!(tries(Duration::from_micros(1), |_| false), None, "many failures in a moment");
        assert_eq!(tries(Duration::from_secs(60), |_| false), Some(101), "the application computes");
        assert_eq!(tries(Duration::from_millis(1), |number| number % 9_000 == 0), None, "it succeeds now and then");
    }
}
