//! R's networks over the time: what is accepted in each window.

use tidegate_sim::{Carried, Estimate};

use crate::data::{BadFigure, Point, Points};
use crate::report::{self, Figure, Series};

fn text<'a>(point: &'a Point, axis: &str) -> &'a str {
    point.keys.get(axis).map_or("", |key| key.text.as_str())
}

/// A curve for each point of the runs `over_time`, named by its axis `cell`, in the panel that `panel` names.
pub(super) fn pictures(points: &Points) -> Result<Vec<Figure>, BadFigure> {
    let curve = |point: &Point| {
        let carried: Vec<&Carried> = point.runs.0.iter().filter_map(|run| run.carried.as_ref()).collect();
        let windows = carried.iter().map(|run| run.windows.len()).min().unwrap_or(0);
        let cycles = carried.first().map_or(0.0, |run| run.cycles as f64 / run.windows.len().max(1) as f64);
        let drawn = (0..windows).map(|window| {
            let rate = Estimate::new(carried.iter().map(|run| run.windows[window]));
            report::Point::of(cycles * (window as f64 + 0.5), &rate)
        });
        Series { panel: text(point, "panel").to_owned(), ..Series::of(text(point, "cell"), drawn) }
    };
    Ok(vec![Figure {
        name: "over-time".to_owned(),
        title: "What is accepted over the time".to_owned(),
        x_axis: "cycles".to_owned(),
        y_axis: "throughput (part of the injection rate)".to_owned(),
        series: points.of(Some("over_time"))?.iter().filter(|point| point.absent.is_none()).map(curve).collect(),
        ..Figure::default()
    }])
}
