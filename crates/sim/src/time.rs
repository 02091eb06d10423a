//! [`Time`]: simulated time in whole picoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

use tidegate_flow::Instant;

/// A point in simulated time since the start of the run, or a span of it, in picoseconds.
///
/// A whole number, so that the same run gives the same bytes on every machine. 64 bits are 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The start of the run, and the empty span.
    pub const ZERO: Time = Time(0);
    /// Later than any time that a run reaches.
    pub const NEVER: Time = Time(u64::MAX);

    /// A span of this number of nanoseconds.
    #[must_use]
    pub const fn from_nanoseconds(nanoseconds: u64) -> Self {
        Time(nanoseconds * 1_000)
    }

    /// A span of this number of microseconds.
    #[must_use]
    pub const fn from_microseconds(microseconds: u64) -> Self {
        Time(microseconds * 1_000_000)
    }

    /// As the library counts time: in whole nanoseconds.
    #[must_use]
    pub const fn instant(self) -> Instant {
        Instant::from_nanos(self.0 / 1_000)
    }

    /// The earliest time that [`instant`](Self::instant) turns into this moment.
    #[must_use]
    pub const fn of_instant(instant: Instant) -> Self {
        Time(instant.as_nanos().saturating_mul(1_000))
    }

    /// In nanoseconds, for people and tables. Not for decisions: a float rounds.
    #[must_use]
    pub fn nanoseconds(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// In microseconds, for people and tables.
    #[must_use]
    pub fn microseconds(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// In seconds, for people and tables.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// The span from `earlier` to this time; empty if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Time) -> Time {
        Time(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Time {
    type Output = Time;
    #[inline]
    fn add(self, span: Time) -> Time {
        Time(self.0 + span.0)
    }
}

impl AddAssign for Time {
    #[inline]
    fn add_assign(&mut self, span: Time) {
        self.0 += span.0;
    }
}

impl Sub for Time {
    type Output = Time;
    #[inline]
    fn sub(self, span: Time) -> Time {
        Time(self.0 - span.0)
    }
}

impl Mul<u64> for Time {
    type Output = Time;
    #[inline]
    fn mul(self, times: u64) -> Time {
        Time(self.0 * times)
    }
}

impl fmt::Display for Time {
    /// With the largest unit that leaves at least one digit before the point: `86.9 ns`, `1.25 ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (divisor, unit) = match self.0 {
            0..1_000 => return write!(f, "{} ps", self.0),
            1_000..1_000_000 => (1e3, "ns"),
            1_000_000..1_000_000_000 => (1e6, "µs"),
            1_000_000_000..1_000_000_000_000 => (1e9, "ms"),
            _ => (1e12, "s"),
        };
        write!(f, "{} {unit}", (self.0 as f64 / divisor * 1e3).round() / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_print_in_the_unit_that_suits_them() {
        let shown = [999, 86_900, 1_250_000_000, 278_500_000_000, 2_000_000_000_000].map(|ps| Time(ps).to_string());
        assert_eq!(shown, ["999 ps", "86.9 ns", "1.25 ms", "278.5 ms", "2 s"]);
    }
}
