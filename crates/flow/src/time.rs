//! [`Instant`]: a moment that somebody else's clock has shown. This crate and the message layer have no clock; whoever
//! runs them says what time it is, so that the same code runs in a process and in the simulator.

use std::ops::Add;
use std::time::Duration;

/// A moment, in nanoseconds since a fixed one that only the owner of the clock knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Instant(u64);

impl Instant {
    /// The moment this many nanoseconds after the fixed one.
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Instant(nanoseconds)
    }

    /// Nanoseconds since the fixed moment.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time that has passed since `earlier`; none if that is later.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A moment later by a duration, or the last one there is.
impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, duration: Duration) -> Instant {
        Instant(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_wraps() {
        let (early, late) = (Instant::from_nanos(7), Instant::from_nanos(u64::MAX - 1));
        assert_eq!(late.since(early).as_nanos(), u128::from(u64::MAX - 8));
        assert_eq!(early.since(late), Duration::ZERO);
        assert_eq!(late + Duration::from_secs(1), Instant::from_nanos(u64::MAX));
        assert_eq!((early + Duration::from_micros(1)).as_nanos(), 1007);
    }
}
