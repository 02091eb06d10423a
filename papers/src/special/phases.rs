//! P figure 19: the credits of rank 0 towards three ranges of ranks, noted after every all-to-all of seven phases.

use std::collections::BTreeMap;

use tidegate_sim::{Estimate, SimulationError};

use crate::data::{Key, Named, Points, ValueOf, is_chosen, joined};
use crate::report::{AsPoint, Figure, Findings, Point, Series, Spread};
use crate::workshop::Workshop;

/// Phases of the program, and ranges of ranks.
const PHASES: usize = 7;
const RANGES: usize = 3;
/// What is noted, by the names that files use.
const LABELS: [(&str, &str); 3] =
    [("median", "credits median"), ("least", "credits minimum"), ("most", "credits maximum")];

/// What was noted under a label, by range and then by all-to-all.
fn noted(points: &Points, label: &str) -> Result<Vec<Vec<Estimate>>, String> {
    let point = points.of(None).map_err(|error| error.to_string())?.first().ok_or("there are no runs")?;
    let mut noted = vec![Vec::new(); RANGES];
    let value = |index: u64| {
        point.runs.estimate(|run| {
            let found = run.notes.iter().find(|note| note.label == label && note.index == index);
            found.map_or(0.0, |note| note.value)
        })
    };
    let all = point.runs.0.first().map_or(0, |run| run.notes.iter().filter(|note| note.label == label).count());
    for index in 0..all {
        noted[index % RANGES].push(value(index as u64));
    }
    Ok(noted)
}

/// Credits at the `begin` and the `end` of each phase (`at`), by `range` and by what is noted (`of`).
pub(super) fn credits(points: &Points, value: &ValueOf) -> Result<Named, String> {
    let mut named = Named::default();
    for (of, label) in LABELS {
        for (range, noted) in noted(points, label)?.into_iter().enumerate() {
            let repetitions = noted.len() / PHASES;
            for (place, credits) in noted.iter().enumerate() {
                let (phase, nth) = (place / repetitions, place % repetitions);
                let at = if nth == 0 { "begin" } else { "end" };
                let keys = [
                    ("of", of.to_owned()),
                    ("at", at.to_owned()),
                    ("phase", (phase + 1).to_string()),
                    ("range", (range + 1).to_string()),
                ];
                let keys: BTreeMap<String, Key> =
                    keys.into_iter().map(|(name, text)| (name.to_owned(), Key::new(text))).collect();
                let is_noted = nth == 0 || nth + 1 == repetitions;
                if is_noted && is_chosen(&keys, &value.r#where).map_err(|error| error.to_string())? {
                    named.keys.push(joined(&keys, &value.each).map_err(|error| error.to_string())?);
                    named.numbers.push(credits.mean());
                }
            }
        }
    }
    Ok(named)
}

/// The picture: medians over the all-to-alls, with the least and the most.
pub(super) fn picture(_: &Workshop<'_>, points: &Points) -> Result<Findings, SimulationError> {
    let of = |label: &str| noted(points, label).map_err(SimulationError::Setup);
    let [medians, least, most] = [of(LABELS[0].1)?, of(LABELS[1].1)?, of(LABELS[2].1)?];
    let processes = points.of(None).map_or(0, |points| points[0].runs.0[0].processes);
    let bounds = [1, processes / 4, processes / 2, processes];
    let series = (0..RANGES).map(|range| {
        let point = |step: usize| Point {
            range: Some((least[range][step].mean(), most[range][step].mean())),
            ..medians[range][step].point(step as f64 + 1.0)
        };
        let panel = format!("ranks {}–{}", bounds[range], bounds[range + 1].saturating_sub(1));
        Series::of("dynamic", (0..medians[range].len()).map(point)).in_panel(panel)
    });
    let figure = Figure {
        name: "fig19".to_owned(),
        title: "Credits of rank 0: median, least and most".to_owned(),
        x_axis: "all-to-alls done".to_owned(),
        y_axis: "credits".to_owned(),
        series: series.collect(),
        spread: Spread::Extremes,
        ..Figure::default()
    };
    Ok(Findings { setup: String::new(), figures: vec![figure], tables: Vec::new(), facts: Vec::new() })
}
