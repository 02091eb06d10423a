//! P figure 19: the credits of rank 0 towards three ranges of ranks, noted after every all-to-all of seven phases.

use tidegate_sim::Estimate;

use crate::data::{BadFigure, Key, Keys, Named, Points, ValueOf, is_chosen, joined};
use crate::report::{Figure, Point, Series};

const PHASES: usize = 7;
const RANGES: usize = 3;
const LABELS: [(&str, &str); 3] =
    [("median", "credits median"), ("least", "credits minimum"), ("most", "credits maximum")];

/// What was noted under a label, by range and then by all-to-all.
fn noted(points: &Points, runs: Option<&str>, label: &str) -> Result<Vec<Vec<Estimate>>, BadFigure> {
    let runs = &points.of(runs)?.first().ok_or("there are no runs")?.runs;
    let mut noted = vec![Vec::new(); RANGES];
    let all = runs.0.first().map_or(0, |run| run.notes.iter().filter(|note| note.label == label).count());
    for index in 0..all {
        noted[index % RANGES].push(runs.estimate(|run| {
            let found = run.notes.iter().find(|note| note.label == label && note.index == index as u64);
            found.map_or(0.0, |note| note.value)
        }));
    }
    Ok(noted)
}

/// Credits at the `begin` and the `end` of each phase (`at`), by `range` and by what is noted (`of`).
pub(super) fn credits(points: &Points, value: &ValueOf) -> Result<Named, BadFigure> {
    let mut named = Named::default();
    for (of, label) in LABELS {
        for (range, noted) in noted(points, value.numbers_of.runs.as_deref(), label)?.into_iter().enumerate() {
            let repetitions = noted.len() / PHASES;
            for (place, credits) in noted.iter().enumerate() {
                let (phase, nth) = (place / repetitions + 1, place % repetitions);
                if nth != 0 && nth + 1 != repetitions {
                    continue;
                }
                let (at, phase, range) = (if nth == 0 { "begin" } else { "end" }, phase.to_string(), range + 1);
                let keys = [("of", of), ("at", at), ("phase", &phase), ("range", &range.to_string())];
                let keys: Keys = keys.map(|(name, text)| (name.to_owned(), Key::new(text))).into();
                if is_chosen(&keys, &value.numbers_of.r#where)? {
                    named.keys.push(joined(&keys, &value.each)?);
                    named.numbers.push(credits.mean());
                }
            }
        }
    }
    Ok(named)
}

/// The picture: medians over the all-to-alls, with the least and the most.
pub(super) fn pictures(points: &Points) -> Result<Vec<Figure>, BadFigure> {
    let [medians, least, most] = LABELS.map(|(_, label)| noted(points, None, label));
    let (medians, least, most) = (medians?, least?, most?);
    let processes = points.of(None).map_or(0, |points| points[0].runs.0[0].processes);
    let bounds = [1, processes / 4, processes / 2, processes];
    let series = (0..RANGES).map(|range| {
        let point = |step: usize| Point {
            range: Some((least[range][step].mean(), most[range][step].mean())),
            ..Point::of(step as f64 + 1.0, &medians[range][step])
        };
        let panel = format!("ranks {}–{}", bounds[range], bounds[range + 1].saturating_sub(1));
        Series { panel, ..Series::of("dynamic", (0..medians[range].len()).map(point)) }
    });
    Ok(vec![Figure {
        name: "fig19".to_owned(),
        title: "Credits of rank 0: median, least and most".to_owned(),
        x_axis: "all-to-alls done".to_owned(),
        y_axis: "credits".to_owned(),
        series: series.collect(),
        has_extremes: true,
        ..Figure::default()
    }])
}
