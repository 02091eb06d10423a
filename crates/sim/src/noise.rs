//! [`Noise`]: the operating system's share of a real machine.
//!
//! Without noise equal processes keep step for ever, and who waits for whom falls into a pattern that a slightly longer
//! message could change. Runs with noise and several seeds show how far the numbers depend on that.

use crate::{Random, Time};

/// What interrupts processes at work. One that waits is not interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noise {
    /// After how much work, on average: each time is drawn between nothing and twice that, for each process by itself.
    /// [`Time::NEVER`]: no noise.
    pub interval: Time,
    /// For how long.
    pub duration: Time,
}

impl Noise {
    /// The shortest interval: less is no machine, and takes long to simulate.
    pub const SHORTEST_INTERVAL: Time = Time::from_nanoseconds(100);

    fn draw_interval(&self, random: &mut Random) -> Time {
        Time(1 + random.below(self.interval.0.saturating_mul(2)))
    }
}

impl Default for Noise {
    fn default() -> Self {
        Noise { interval: Time::NEVER, duration: Time::ZERO }
    }
}

/// The interruptions of one process.
#[derive(Debug)]
pub(crate) struct Interruptions {
    noise: Noise,
    random: Random,
    /// Work until the next.
    left: Time,
}

impl Interruptions {
    pub(crate) fn none() -> Self {
        Interruptions { noise: Noise::default(), random: Random::new(0), left: Time::NEVER }
    }

    /// Those of one of many processes, which `random` tells apart.
    pub(crate) fn new(noise: Noise, mut random: Random) -> Self {
        match noise.interval {
            Time::NEVER => Self::none(),
            _ => Interruptions { left: noise.draw_interval(&mut random), noise, random },
        }
    }

    /// By how much a span of work is prolonged.
    #[inline]
    pub(crate) fn during(&mut self, work: Time) -> Time {
        if work < self.left {
            self.left = self.left - work;
            return Time::ZERO;
        }
        self.interrupt(work)
    }

    #[cold]
    fn interrupt(&mut self, work: Time) -> Time {
        let (mut next, mut lost) = (self.left, Time::ZERO);
        while next <= work {
            lost += self.noise.duration;
            next += self.noise.draw_interval(&mut self.random);
        }
        self.left = next - work;
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOISE: Noise = Noise { interval: Time::from_microseconds(100), duration: Time::from_microseconds(3) };

    /// How often work of `pieces` spans is interrupted.
    fn count(pieces: u64, span: Time) -> u64 {
        let mut interruptions = Interruptions::new(NOISE, Random::stream(7, 1));
        let lost: u64 = (0..pieces).map(|_| interruptions.during(span).0).sum();
        assert_eq!(lost % NOISE.duration.0, 0);
        lost / NOISE.duration.0
    }

    #[test]
    fn work_is_interrupted_as_often_however_it_is_cut() {
        let whole = count(1, Time::from_microseconds(1_000_000));
        assert_eq!(count(1_000_000, Time::from_microseconds(1)), whole);
        assert!((9_700..10_300).contains(&whole), "10,000 were expected: {whole}");
    }

    #[test]
    fn without_noise_nothing_is_interrupted() {
        assert_eq!(Interruptions::none().during(Time::from_microseconds(1 << 40)), Time::ZERO);
    }
}
