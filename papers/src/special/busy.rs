//! B figures 12 and 13: how many senders booking keeps busy over the time.

use tidegate_sim::Estimate;

use crate::data::{BadFigure, Named, Point, Points, ValueOf};
use crate::report::{self, Figure, Series};

/// The runs that are watched, as the figures have them.
fn watched(points: &Points) -> Result<impl Iterator<Item = &Point>, BadFigure> {
    Ok(points.of(Some("watched"))?.iter().filter(|point| text(point, "changed") == "as in the figures"))
}

fn text<'a>(point: &'a Point, axis: &str) -> &'a str {
    point.keys.get(axis).map_or("", |key| key.text.as_str())
}

/// The share of senders that are busy, by span of the time.
fn shares(point: &Point) -> Vec<Estimate> {
    let each: Vec<&[f64]> =
        point.runs.0.iter().map(|run| run.bulk.as_ref().map_or(&[][..], |bulk| &bulk.busy)).collect();
    let spans = each.iter().map(|busy| busy.len()).min().unwrap_or(0);
    (0..spans).map(|span| Estimate::new(each.iter().map(|busy| busy[span]))).collect()
}

/// The percentage of the time for which at least half of the senders are busy, with the traffic that `where` names.
pub(super) fn long(points: &Points, value: &ValueOf) -> Result<Named, BadFigure> {
    let wanted = value.numbers_of.r#where.get("traffic").and_then(|traffic| traffic.as_str()).unwrap_or_default();
    let point = watched(points)?.find(|point| text(point, "traffic") == wanted);
    let shares = shares(point.ok_or_else(|| format!("no runs are of traffic = {wanted}"))?);
    let long = shares.iter().filter(|share| share.mean() >= 0.5).count();
    Ok(Named { keys: Vec::new(), numbers: vec![100.0 * long as f64 / shares.len().max(1) as f64] })
}

pub(super) fn pictures(points: &Points) -> Result<Vec<Figure>, BadFigure> {
    let picture = |point: &Point| {
        let nodes = point.keys.get("nodes").and_then(|nodes| nodes.number).unwrap_or(1.0);
        let shares = shares(point);
        let drawn = shares.iter().enumerate().map(|(span, share)| {
            let busy = Estimate::new(share.each().iter().map(|share| nodes * share));
            report::Point::of(100.0 * (span as f64 + 0.5) / shares.len() as f64, &busy)
        });
        Figure {
            name: text(point, "figure").to_owned(),
            title: format!("Senders that booking keeps busy, {}", text(point, "traffic")),
            x_axis: "time (% of the whole)".to_owned(),
            y_axis: "senders busy".to_owned(),
            series: vec![Series::of("booking", drawn)],
            ..Figure::default()
        }
    };
    Ok(watched(points)?.map(picture).collect())
}
