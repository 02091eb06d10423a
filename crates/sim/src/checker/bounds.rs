//! Times that no run can beat: closed forms to stand beside measured times.

use crate::Time;

/// Lower bounds of a run's time, each from one resource that all its work had to pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The busiest process's own work.
    pub process: Time,
    /// The busiest node's packets into the network.
    pub injection: Time,
    /// The busiest node's packets out of the network.
    pub extraction: Time,
    /// The busiest link's packets at the link's rate. On a mesh under uniform traffic that is a link of the bisection.
    pub link: Time,
}

impl Bounds {
    /// The largest of them.
    #[must_use]
    pub fn largest(&self) -> Time {
        self.process.max(self.injection).max(self.extraction).max(self.link)
    }
}

/// How long `packets` packets of one sender to one receiver take at least when at most `credits` of them are under way
/// at a time and a credit is back `round_trip` after its packet left: the buffer bounds the rate to `credits /
/// round_trip`.
#[must_use]
pub fn round_trip_bound(packets: u64, credits: u32, round_trip: Time) -> Time {
    match u64::from(credits) {
        0 => Time::NEVER,
        credits => round_trip * (packets.saturating_sub(1) / credits),
    }
}
