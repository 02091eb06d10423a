//! Numbers as people read them: three digits and a unit.

use tidegate_message::Unit;

/// `value` with its unit, as short as three significant digits allow.
pub fn human(value: u64, unit: Unit) -> String {
    match unit {
        Unit::Count | Unit::Slots => count(value),
        Unit::Bytes => bytes(value),
        Unit::Nanoseconds => nanoseconds(value),
    }
}

/// The unit's name in JSON and lists.
pub fn name(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "count",
        Unit::Bytes => "bytes",
        Unit::Nanoseconds => "ns",
        Unit::Slots => "slots",
    }
}

fn count(value: u64) -> String {
    if value < 1_000_000 {
        return with_separators(value);
    }
    scaled(value as f64, 1000.0, &["", "k", "M", "G", "T", "P", "E"])
}

fn bytes(value: u64) -> String {
    scaled(value as f64, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"])
}

fn nanoseconds(value: u64) -> String {
    if value < 100_000_000_000 {
        return scaled(value as f64, 1000.0, &["ns", "µs", "ms", "s"]);
    }
    let seconds = value / 1_000_000_000;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// A time in microseconds, which may be a fraction: `31.4 µs`, `1.69 s`.
pub fn microseconds(value: f64) -> String {
    let nanoseconds = value * 1000.0;
    // Below a microsecond, tenths of a nanosecond are told apart.
    if (0.0..100.0).contains(&nanoseconds) && nanoseconds.fract() != 0.0 {
        return format!("{nanoseconds:.1} ns");
    }
    if nanoseconds < 1e9 {
        scaled(nanoseconds, 1000.0, &["ns", "µs", "ms", "s"])
    } else {
        self::nanoseconds(nanoseconds as u64)
    }
}

/// Three significant digits; whole numbers stay whole.
fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let mut scaled = value;
    let mut unit = 0;
    // What would be printed as 1000 belongs to the next unit.
    while scaled >= step.min(999.5) && unit + 1 < units.len() {
        scaled /= step;
        unit += 1;
    }
    let digits = if unit == 0 || scaled >= 99.95 { 0 } else { 1 + usize::from(scaled < 9.995) };
    format!("{scaled:.digits$} {}", units[unit])
}

fn with_separators(value: u64) -> String {
    if value < 1000 { value.to_string() } else { format!("{},{:03}", with_separators(value / 1000), value % 1000) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        for (value, unit, expected) in [
            (0, Unit::Count, "0"),
            (999, Unit::Count, "999"),
            (12_045, Unit::Count, "12,045"),
            (1_234_567, Unit::Count, "1.23 M"),
            (999_999_999, Unit::Count, "1.00 G"),
            (u64::MAX, Unit::Count, "18.4 E"),
            (1480, Unit::Slots, "1,480"),
            (0, Unit::Bytes, "0 B"),
            (1023, Unit::Bytes, "1.00 KiB"),
            (999, Unit::Bytes, "999 B"),
            (1536, Unit::Bytes, "1.50 KiB"),
            (1_572_864, Unit::Bytes, "1.50 MiB"),
            (u64::MAX, Unit::Bytes, "16.0 EiB"),
            (0, Unit::Nanoseconds, "0 ns"),
            (12_345, Unit::Nanoseconds, "12.3 µs"),
            (123_456_789, Unit::Nanoseconds, "123 ms"),
            (9_999_999, Unit::Nanoseconds, "10.0 ms"),
            (61_500_000_000, Unit::Nanoseconds, "61.5 s"),
            (125_000_000_000, Unit::Nanoseconds, "2 min 5 s"),
            (7_500_000_000_000, Unit::Nanoseconds, "2 h 5 min"),
        ] {
            assert_eq!(human(value, unit), expected, "{value} {unit:?}");
        }
    }
}
