//! Whether two groups of values differ.

use serde::Serialize;

use super::measures::Measure;

/// Sides that are alike are told apart by chance once in this many times at most.
const CHANCE: f64 = 10.0;

/// Values that differ by less than this part are alike to a reader, however sure the difference is.
const NEGLIGIBLE: f64 = 0.001;

/// The verdict on one measure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Difference {
    /// All values of both sides are the same.
    Same,
    /// The second side has more: its median is this many times that of the first, if that is not 0.
    More {
        /// The ratio.
        ratio: Option<f64>,
    },
    /// It has less: the same ratio, below 1; 0: none is left.
    Less {
        /// The ratio.
        ratio: f64,
    },
    /// The values of both sides overlap, or nearly: no difference that these runs can tell.
    Overlaps,
    /// One run of each, and the difference is no more than one run can tell.
    WithinOneRun,
    /// The values do not overlap, and by chance that happens once in this many times.
    TooFewRuns {
        /// In how many.
        once_in: f64,
    },
}

impl Difference {
    /// Whether it is one.
    #[must_use]
    pub fn is_one(self) -> bool {
        matches!(self, Difference::More { .. } | Difference::Less { .. })
    }
}

/// The value in the middle; of an even number, the mean of the two.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[odd / 2],
        even => f64::midpoint(sorted[even / 2 - 1], sorted[even / 2]),
    }
}

/// The least and the most.
#[must_use]
pub fn range(values: &[f64]) -> (f64, f64) {
    (values.iter().copied().fold(f64::INFINITY, f64::min), values.iter().copied().fold(0.0, f64::max))
}

/// Whether the second side differs from the first.
#[must_use]
pub fn judge(first: &[f64], second: &[f64], measure: &Measure) -> Difference {
    let ((least, most), (other_least, other_most)) = (range(first), range(second));
    if least == most && other_least == other_most && least == other_least {
        return Difference::Same;
    }
    let beyond = if first.len() + second.len() > 2 { 1.0 + NEGLIGIBLE } else { 1.0 };
    let is_apart = most * beyond < other_least || other_most * beyond < least;
    if !is_apart {
        return Difference::Overlaps;
    }
    let (before, after) = (median(first), median(second));
    let difference = match after > before {
        true => Difference::More { ratio: (before > 0.0).then(|| after / before) },
        false => Difference::Less { ratio: after / before },
    };
    let once_in = once_in(first.len(), second.len());
    if once_in >= CHANCE || is_beyond_one_run(before, after, measure) {
        return difference;
    }
    match first.len() + second.len() {
        2 => Difference::WithinOneRun,
        _ => Difference::TooFewRuns { once_in },
    }
}

/// Whether two values differ by more than runs of the same command do.
fn is_beyond_one_run(before: f64, after: f64, measure: &Measure) -> bool {
    let (ratio, least) = measure.alone;
    let (low, high) = (before.min(after), before.max(after));
    high >= ratio * low && high - low >= least
}

/// Of two groups that are alike, all of one lie beyond all of the other by chance once in this many times: of all
/// ways to choose the places of the first group among all, two do.
fn once_in(first: usize, second: usize) -> f64 {
    let ways = (1..=second).fold(1.0, |ways, step| ways * (first + step) as f64 / step as f64);
    ways / 2.0
}

#[cfg(test)]
mod tests {
    use super::super::measures::MEASURES;
    use super::*;

    fn of(first: &[f64], second: &[f64]) -> Difference {
        let seconds = |values: &[f64]| values.iter().map(|value| value * 1e9).collect::<Vec<_>>();
        judge(&seconds(first), &seconds(second), &MEASURES[0])
    }

    #[test]
    fn one_run_of_each_tells_only_what_is_more_than_noise() {
        assert_eq!(of(&[10.0], &[10.0]), Difference::Same);
        assert_eq!(of(&[10.0], &[10.1]), Difference::WithinOneRun);
        assert_eq!(of(&[10.0], &[12.4]), Difference::WithinOneRun);
        assert_eq!(of(&[0.1], &[0.3]), Difference::WithinOneRun, "a fifth of a second is a launcher's mood");
        assert_eq!(of(&[10.0], &[13.0]), Difference::More { ratio: Some(1.3) });
        assert_eq!(of(&[10.0], &[5.0]), Difference::Less { ratio: 0.5 });
    }

    #[test]
    fn several_runs_differ_where_none_of_one_side_lies_among_those_of_the_other() {
        assert_eq!(of(&[10.0, 10.2, 10.4], &[10.5, 10.6, 10.7]), Difference::More { ratio: Some(10.6 / 10.2) });
        assert_eq!(of(&[10.0, 10.2, 10.4], &[10.3, 10.6, 10.7]), Difference::Overlaps);
        // A few bytes of a peak of memory: "0.0 % less" is none.
        assert_eq!(of(&[10.000_2, 10.000_3, 10.000_4], &[10.0, 10.0, 10.000_1]), Difference::Overlaps);
        let few = Difference::TooFewRuns { once_in: 3.0 };
        assert_eq!(of(&[10.0, 10.2], &[10.5, 10.6]), few);
        assert_eq!(of(&[10.0, 10.2], &[20.5, 20.6]), Difference::More { ratio: Some(20.55 / 10.1) });
        assert_eq!((once_in(3, 3), once_in(5, 5)), (10.0, 126.0));
    }

    #[test]
    fn nothing_and_something() {
        let counts = &MEASURES[2];
        assert_eq!(judge(&[0.0], &[7.0], counts), Difference::WithinOneRun);
        assert_eq!(judge(&[0.0], &[1000.0], counts), Difference::More { ratio: None });
        assert_eq!(judge(&[1000.0], &[0.0], counts), Difference::Less { ratio: 0.0 });
        assert_eq!(judge(&[0.0], &[0.0], counts), Difference::Same);
    }

    #[test]
    fn medians_and_ranges() {
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0]), median(&[])), (2.0, 2.5, 0.0));
        assert_eq!(range(&[3.0, 1.0, 2.0]), (1.0, 3.0));
    }
}
