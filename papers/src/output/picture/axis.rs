//! [`Axis`]: from numbers to pixels, and what stands beside an axis.

use super::super::text::number;

#[derive(Clone, Debug)]
pub struct Axis {
    pub title: String,
    pub ticks: Vec<(f64, String)>,
    low: f64,
    high: f64,
    is_logarithmic: bool,
}

type Label = fn(f64) -> String;

/// Axes whose numbers are no plain ones, by the end of their titles; and what is said of a number.
const UNITS: [(&str, Label); 5] = [
    (" (bytes)", bytes),
    (" (KiB)", |tick| bytes(1024.0 * tick)),
    (" (2^x KiB)", |tick| bytes(1024.0 * tick.exp2())),
    (" (2^x buffers)", |tick| number(tick.exp2())),
    (" (2^x × 0.01 ms)", |tick| match 0.01 * tick.exp2() {
        time if time < 1000.0 => format!("{} ms", number(time)),
        time => format!("{} s", number(time / 1000.0)),
    }),
];
/// Most numbers that an axis with such a unit shows because they are drawn.
const MOST_DRAWN: usize = 6;

impl Axis {
    /// An axis from `low` to `high`, whose title says what its numbers are. Where they are sizes or times, and few, it
    /// shows those that are `drawn`.
    pub fn new(title: &str, (low, high): (f64, f64), is_logarithmic: bool, drawn: &[f64]) -> Self {
        let unit = UNITS.iter().find(|(end, _)| title.ends_with(end));
        let label = unit.map_or(number as Label, |(_, label)| *label);
        let ticks = match unit {
            Some(_) if (1..=MOST_DRAWN).contains(&drawn.len()) => drawn.to_vec(),
            Some(_) if is_logarithmic => powers(low, high, if high / low < 100.0 { 2.0 } else { 4.0 }, &[1.0]),
            Some(_) => every(low, high, ((high - low) / 8.0).log2().ceil().exp2().max(1.0)),
            None if is_logarithmic && high / low < 100.0 => powers(low, high, 10.0, &[1.0, 2.0, 5.0]),
            None if is_logarithmic => powers(low, high, 10.0, &[1.0]),
            // Slots are read best in steps of 8.
            None if title.contains("slots") && high - low < 100.0 => every(low, high, 8.0),
            None => {
                let rough = (high - low) / 7.0;
                let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * 10_f64.powf(rough.log10().floor()));
                every(low, high, steps.into_iter().find(|step| *step >= rough).unwrap_or(rough))
            }
        };
        let title = unit.map_or(title, |(end, _)| title.trim_end_matches(end)).to_owned();
        let ticks = ticks.into_iter().map(|tick| (tick, label(tick))).collect();
        Axis { title, ticks, low, high, is_logarithmic }
    }

    /// Where a number is, if the axis goes from one pixel to another.
    pub fn place(&self, value: f64, from: f64, to: f64) -> f64 {
        let of = |value: f64| if self.is_logarithmic { value.ln() } else { value };
        from + (of(value) - of(self.low)) / (of(self.high) - of(self.low)) * (to - from)
    }
}

fn every(low: f64, high: f64, step: f64) -> Vec<f64> {
    ((low / step).ceil() as i64..=(high / step).floor() as i64).map(|nth| nth as f64 * step).collect()
}

/// All products of these digits and a power of the base.
fn powers(low: f64, high: f64, base: f64, digits: &[f64]) -> Vec<f64> {
    let powers = low.log(base).floor() as i32..=high.log(base).ceil() as i32;
    let all = powers.flat_map(|power| digits.iter().map(move |digit| digit * base.powi(power)));
    all.filter(|tick| (low..=high).contains(tick)).collect()
}

fn bytes(bytes: f64) -> String {
    match bytes {
        0.0..1024.0 => format!("{} B", number(bytes)),
        1024.0..1_048_576.0 => format!("{} KiB", number(bytes / 1024.0)),
        _ => format!("{} MiB", number(bytes / 1_048_576.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(title: &str, range: (f64, f64), is_logarithmic: bool) -> (String, String) {
        let axis = Axis::new(title, range, is_logarithmic, &[]);
        (axis.title, axis.ticks.into_iter().map(|(_, label)| label).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn axes_of_sizes_and_times_say_sizes_and_times() {
        let (title, ticks) = labels("receive memory (2^x KiB)", (2.7, 12.3), false);
        assert_eq!((title.as_str(), ticks.as_str()), ("receive memory", "16 KiB 64 KiB 256 KiB 1 MiB 4 MiB"));
        let drawn = Axis::new("memory (2^x KiB)", (2.7, 12.3), false, &[3.0, 12.0]);
        assert_eq!(drawn.ticks, [(3.0, "8 KiB".to_owned()), (12.0, "4 MiB".to_owned())]);
        assert_eq!(labels("block (bytes)", (60.0, 70_000.0), true).1, "64 B 256 B 1 KiB 4 KiB 16 KiB 64 KiB");
        assert_eq!(
            labels("retry timer (2^x × 0.01 ms)", (-0.3, 16.3), false).1,
            "0.01 ms 0.16 ms 2.56 ms 41 ms 655.4 ms"
        );
        assert_eq!(labels("window (messages)", (0.8, 110.0), true).1, "1 10 100");
    }

    #[test]
    fn numbers_are_round_and_slots_go_in_eights() {
        assert_eq!(labels("overhead (%)", (0.0, 68.0), false).1, "0 10 20 30 40 50 60");
        assert_eq!(labels("buffer (slots)", (7.0, 65.0), false).1, "8 16 24 32 40 48 56 64");
        assert_eq!(Axis::new("", (1.0, 100.0), true, &[]).place(10.0, 0.0, 2.0), 1.0);
    }
}
