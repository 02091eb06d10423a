//! [`Pack`]: what the page's script draws, as few bytes.
//!
//! A number takes one byte: 0 is 0, and 255 the largest of its kind, from which each step down is a factor of
//! 2^(1/16). So a value is right to 2.2 %, over a range of 60,000; what is smaller becomes the smallest step.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;

use super::rows::{Row, rows};
use super::timeline::{Lines, METRICS, Metric};
use crate::recording::view::View;
use tidegate_link::stats::WaitCause;
use tidegate_message::Counter;

/// Steps in which a value doubles.
const STEPS: f64 = 16.0;

/// A run as the script gets it.
#[derive(Clone, Debug, Serialize)]
pub struct Pack {
    name: String,
    simulated: bool,
    /// Names of the rows.
    rows: Vec<String>,
    /// How many processes each has.
    sizes: Vec<usize>,
    columns: usize,
    begin_s: f64,
    end_s: f64,
    metrics: Vec<PackedMetric>,
    /// The row to draw from the start.
    blamed: Option<usize>,
    /// The metric to show first.
    first: &'static str,
    /// The bound on the receive memory of a process, in bytes, if all have the same.
    bound: Option<u64>,
    /// Who waited for whom: by cause, the first for all together.
    waits: Vec<PackedWaits>,
}

#[derive(Clone, Debug, Serialize)]
struct PackedMetric {
    id: &'static str,
    name: &'static str,
    about: &'static str,
    kind: &'static str,
    /// Whether rows of several processes show the most of any.
    most: bool,
    /// The largest value of any process.
    largest: f32,
    /// Rows by columns.
    cells: String,
    /// Least, median and most of all processes, by columns.
    spread: String,
}

#[derive(Clone, Debug, Serialize)]
struct PackedWaits {
    cause: &'static str,
    /// In seconds.
    largest: f32,
    /// Rows that waited by rows for which they did.
    cells: String,
    /// The seconds that were waited for processes that are not known.
    unknown_s: f64,
}

/// The choice that the pictures show before the reader has chosen anything.
#[derive(Clone, Copy, Debug)]
pub struct First {
    /// The process to look at first, if there is one.
    pub process: Option<usize>,
    /// The id of a metric.
    pub metric: &'static str,
}

impl Pack {
    /// Packs a run.
    #[must_use]
    pub fn new(name: &str, view: &View, lines: &Lines, first: &First) -> Self {
        let rows = rows(view, first.process);
        let metrics = METRICS.iter().zip(&lines.values).filter_map(|(metric, values)| packed(metric, values, &rows));
        Pack {
            name: name.to_owned(),
            simulated: view.is_simulated(),
            columns: lines.columns,
            begin_s: lines.begin_ns as f64 / 1e9,
            end_s: lines.end_ns as f64 / 1e9,
            metrics: metrics.collect(),
            blamed: first.process.and_then(|process| rows.iter().position(|row| row.members.contains(&process))),
            first: first.metric,
            bound: bound(view),
            waits: waits(view, &rows),
            sizes: rows.iter().map(|row| row.members.len()).collect(),
            rows: rows.into_iter().map(|row| row.label).collect(),
        }
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// How many columns of time there are.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Whether anything is known of who waited for whom.
    #[must_use]
    pub fn has_waits(&self) -> bool {
        !self.waits.is_empty()
    }
}

/// The bound on receive memory, if all processes have the same.
fn bound(view: &View) -> Option<u64> {
    let mut bounds = view.processes.iter().map(|process| process.get(Counter::ReceiveBound));
    let first = bounds.next().filter(|first| *first > 0)?;
    bounds.all(|bound| bound == first).then_some(first)
}

/// A metric of all rows; `None` where it is 0 throughout.
fn packed(metric: &Metric, values: &[Vec<f32>], rows: &[Row]) -> Option<PackedMetric> {
    let largest = values.iter().flatten().copied().fold(0.0, f32::max);
    if largest <= 0.0 {
        return None;
    }
    let columns = values[0].len();
    let mut cells = Vec::with_capacity(rows.len() * columns);
    for row in rows {
        let of_row = &values[row.members.clone()];
        for column in 0..columns {
            let members = of_row.iter().map(|values| values[column]);
            let value = match metric.kind.shows_most() {
                true => members.fold(0.0, f32::max),
                false => members.sum::<f32>() / row.members.len() as f32,
            };
            cells.push(step(value, largest));
        }
    }
    let mut spread = vec![0; 3 * columns];
    for column in 0..columns {
        let mut all: Vec<f32> = values.iter().map(|line| line[column]).collect();
        all.sort_by(f32::total_cmp);
        for (index, value) in [all[0], all[all.len() / 2], all[all.len() - 1]].into_iter().enumerate() {
            spread[index * columns + column] = step(value, largest);
        }
    }
    Some(PackedMetric {
        id: metric.id,
        name: metric.name,
        about: metric.about,
        kind: metric.kind.name(),
        most: metric.kind.shows_most(),
        largest,
        cells: BASE64_STANDARD.encode(cells),
        spread: BASE64_STANDARD.encode(spread),
    })
}

/// A value as a byte.
fn step(value: f32, largest: f32) -> u8 {
    if value <= 0.0 {
        return 0;
    }
    let below = STEPS * f64::from(largest / value).log2();
    (255.0 - below).round().clamp(1.0, 255.0) as u8
}

/// Who waited for whom; empty if no waits between known processes were recorded.
fn waits(view: &View, rows: &[Row]) -> Vec<PackedWaits> {
    let mut row_of = vec![0; view.processes.len()];
    for (number, row) in rows.iter().enumerate() {
        row.members.clone().for_each(|process| row_of[process] = number);
    }
    let of = |cause: Option<WaitCause>| {
        let mut cells = vec![0.0_f32; rows.len() * rows.len()];
        let mut unknown_s = 0.0;
        for wait in view.waits.iter().filter(|wait| cause.is_none_or(|cause| wait.cause == cause)) {
            let seconds = wait.waited_ns as f64 / 1e9;
            match wait.to {
                Some(to) => cells[row_of[wait.from] * rows.len() + row_of[to]] += seconds as f32,
                None => unknown_s += seconds,
            }
        }
        let largest = cells.iter().copied().fold(0.0, f32::max);
        let cells: Vec<u8> = cells.into_iter().map(|seconds| step(seconds, largest)).collect();
        let name = cause.map_or("anything", crate::recording::rows::words);
        PackedWaits { cause: name, largest, cells: BASE64_STANDARD.encode(cells), unknown_s }
    };
    let all = std::iter::once(None).chain(WaitCause::ALL.iter().copied().map(Some));
    all.map(of).filter(|waits| waits.largest > 0.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the script does it.
    fn value(step: u8, largest: f32) -> f64 {
        if step == 0 { 0.0 } else { f64::from(largest) * ((f64::from(step) - 255.0) / STEPS).exp2() }
    }

    #[test]
    fn a_byte_keeps_a_value_to_two_percent() {
        assert_eq!((step(0.0, 9.0), step(9.0, 9.0), step(1e-9, 9.0)), (0, 255, 1));
        for exponent in 0..150 {
            let number = 7e6 * (f64::from(exponent) / -10.0).exp2();
            let kept = value(step(number as f32, 7e6), 7e6);
            assert!((kept / number - 1.0).abs() < 0.022, "{number}: {kept}");
        }
    }
}
