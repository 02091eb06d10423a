//! B figures 12 and 13: how many senders booking keeps busy over the time.

use tidegate_sim::{Estimate, SimulationError};

use crate::data::{Named, Point, Points, ValueOf};
use crate::report::{AsPoint, Figure, Findings, Series};
use crate::workshop::Workshop;

/// Most senders are busy where at least so many are.
const MOST: f64 = 0.5;

/// The runs that are watched, as the figures have them.
fn watched(points: &Points) -> Result<Vec<&Point>, String> {
    let all = points.of(Some("watched")).map_err(|error| error.to_string())?;
    Ok(all.iter().filter(|point| text(point, "changed") == "as in the figures").collect())
}

fn text<'a>(point: &'a Point, axis: &str) -> &'a str {
    point.keys.get(axis).map_or("", |key| key.text.as_str())
}

/// The share of senders that are busy, by span of the time.
fn shares(point: &Point) -> Vec<Estimate> {
    let busy = |run: &tidegate_sim::Measurement| run.bulk.as_ref().map_or(&[][..], |bulk| &bulk.busy).to_vec();
    let each: Vec<Vec<f64>> = point.runs.0.iter().map(|run| busy(run)).collect();
    let spans = each.iter().map(Vec::len).min().unwrap_or(0);
    (0..spans).map(|span| Estimate::new(each.iter().map(|busy| busy[span]))).collect()
}

/// The percentage of the time for which at least half of the senders are busy, with the traffic that `where` names.
pub(super) fn long(points: &Points, value: &ValueOf) -> Result<Named, String> {
    let wanted = value.r#where.get("traffic").and_then(|traffic| traffic.as_str()).unwrap_or_default();
    let watched = watched(points)?;
    let point = watched.iter().find(|point| text(point, "traffic") == wanted);
    let shares = shares(point.ok_or_else(|| format!("no runs are of traffic = {wanted}"))?);
    let long = shares.iter().filter(|share| share.mean() >= MOST).count();
    Ok(Named { keys: Vec::new(), numbers: vec![100.0 * long as f64 / shares.len().max(1) as f64] })
}

/// A picture for each traffic.
pub(super) fn pictures(_: &Workshop<'_>, points: &Points) -> Result<Findings, SimulationError> {
    let watched = watched(points).map_err(SimulationError::Setup)?;
    let picture = |point: &&Point| {
        let nodes = point.keys.get("nodes").and_then(|nodes| nodes.number).unwrap_or(1.0);
        let shares = shares(point);
        let place = |span: usize| 100.0 * (span as f64 + 0.5) / shares.len() as f64;
        let busy = |share: &Estimate| Estimate::new(share.each().iter().map(|share| nodes * share));
        let drawn = shares.iter().enumerate().map(|(span, share)| busy(share).point(place(span)));
        Figure {
            name: text(point, "figure").to_owned(),
            title: format!("Senders that booking keeps busy, {}", text(point, "traffic")),
            x_axis: "time (% of the whole)".to_owned(),
            y_axis: "senders busy".to_owned(),
            series: vec![Series::of("booking", drawn)],
            ..Figure::default()
        }
    };
    Ok(Findings { figures: watched.iter().map(picture).collect(), ..Findings::default() })
}
