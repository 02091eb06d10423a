//! The clock of the trace: nanoseconds that never go back.
//!
//! Each call is timed at its begin and its end, so reading the clock is most of what recording costs. Where the
//! system's own clock counts the processor's ticks (Linux has found out that all processors count alike), they are read
//! directly, which takes half of the time or less.

use std::time::Duration;
use tidegate_link::process::PerProcess;

/// For how long ticks are compared with the system's clock at the start: so long that a reading's own length, some 50
/// ns, is less than a ten-thousandth of it.
const TRIAL: Duration = Duration::from_millis(1);

/// Readings of both clocks of which the best is taken.
const TRIES: usize = 16;

/// How ticks become nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// Ticks at some moment, and nanoseconds then.
    ticks: u64,
    nanoseconds: u64,
    /// Nanoseconds of 2³² ticks.
    per_ticks: u64,
}

impl Scale {
    fn between(before: (u64, u64), after: (u64, u64)) -> Option<Scale> {
        let (ticks, nanoseconds) = (after.0.checked_sub(before.0)?, after.1.checked_sub(before.1)?);
        let per_ticks = (u128::from(nanoseconds) << 32).checked_div(ticks.into())?;
        Some(Scale { ticks: before.0, nanoseconds: before.1, per_ticks: per_ticks.try_into().ok()? })
    }

    #[inline]
    fn nanoseconds(&self, ticks: u64) -> u64 {
        let passed = u128::from(ticks.saturating_sub(self.ticks)) * u128::from(self.per_ticks);
        self.nanoseconds + (passed >> 32) as u64
    }
}

static SCALE: PerProcess<Option<Scale>> = PerProcess::new();

/// Finds out how ticks become nanoseconds, the first time that it is called.
pub fn prepare() {
    SCALE.get_or_init(|| if counts_ticks() { measure() } else { None });
}

/// The present. [`prepare`] has been called.
#[inline]
pub fn now() -> u64 {
    match SCALE.get() {
        Some(Some(scale)) => scale.nanoseconds(ticks()),
        _ => tidegate_link::now().as_nanos(),
    }
}

fn measure() -> Option<Scale> {
    let before = reading();
    loop {
        let after = reading();
        if after.1.saturating_sub(before.1) >= TRIAL.as_nanos() as u64 {
            return Scale::between(before, after);
        }
    }
}

/// Both clocks at one moment. A process may lose its processor between two readings; of some tries the shortest counts.
fn reading() -> (u64, u64) {
    let attempt = |_| {
        let (before, nanoseconds, after) = (ticks(), tidegate_link::now().as_nanos(), ticks());
        let length = after.saturating_sub(before);
        (length, (before + length / 2, nanoseconds))
    };
    (0..TRIES).map(attempt).min_by_key(|(length, _)| *length).map_or((0, 0), |(_, pair)| pair)
}

/// Whether the system's own clock counts ticks.
#[cfg(target_arch = "x86_64")]
fn counts_ticks() -> bool {
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    source.is_ok_and(|source| source.trim() == "tsc")
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn ticks() -> u64 {
    // SAFETY: every processor of this architecture has the instruction, and it touches no memory.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn counts_ticks() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_nanoseconds() {
        let scale = Scale::between((1000, 50), (4000, 1050)).unwrap();
        assert_eq!([1000, 4000, 301_000].map(|ticks| scale.nanoseconds(ticks)), [50, 1049, 100_049]);
        assert_eq!(scale.nanoseconds(0), 50, "never before the moment at which it began");
        assert!(Scale::between((5, 5), (5, 9)).is_none() && Scale::between((5, 5), (4, 9)).is_none());
    }

    #[test]
    fn the_clock_goes_as_the_systems_does() {
        prepare();
        let begun = (now(), tidegate_link::now().as_nanos());
        std::thread::sleep(Duration::from_millis(20));
        let passed = (now() - begun.0, tidegate_link::now().as_nanos() - begun.1);
        // The two are read one after the other, and anything may come between: this finds a wrong scale only.
        assert!(passed.0 > passed.1 / 2 && passed.0 < 2 * passed.1, "{passed:?}");
    }
}
