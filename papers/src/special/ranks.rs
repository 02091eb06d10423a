//! L table 1: how many messages single processes of a NAS benchmark send, each of which noted its own.

use tidegate_sim::Measurement;

use crate::data::{BadFigure, Named, Points, ValueOf, joined};

/// Messages of each process without credit messages: eager ones, and three for each long one.
fn messages(run: &Measurement) -> impl Iterator<Item = f64> {
    run.noted("eager").into_iter().zip(run.noted("rendezvous")).map(|(eager, long)| eager + 3.0 * long)
}

/// A number of each run that a value means, mean over the seeds; `of` also has the paper's, `process`.
fn each(points: &Points, value: &ValueOf, of: fn(&Measurement, f64) -> f64) -> Result<Named, BadFigure> {
    let mut named = Named::default();
    for point in points.chosen(value.numbers_of.runs.as_deref(), &value.numbers_of.r#where)? {
        let paper = point.keys.get("process").and_then(|key| key.number);
        let paper = paper.ok_or("a number `process` of the benchmark is needed: what the paper's process sends")?;
        named.keys.push(joined(&point.keys, &value.each)?);
        named.numbers.push(point.runs.estimate(|run| of(run, paper)).mean());
    }
    Ok(named)
}

/// Messages of the process that sends most.
pub(super) fn busiest(points: &Points, value: &ValueOf) -> Result<Named, BadFigure> {
    each(points, value, |run, _| messages(run).fold(0.0, f64::max))
}

/// Credit messages of the process that sends most of them.
pub(super) fn most_credits(points: &Points, value: &ValueOf) -> Result<Named, BadFigure> {
    each(points, value, |run, _| run.noted("credits").into_iter().fold(0.0, f64::max))
}

/// Messages of the process that comes nearest to the paper's, whose numbers are those of one process.
pub(super) fn nearest(points: &Points, value: &ValueOf) -> Result<Named, BadFigure> {
    each(points, value, |run, paper| {
        let off = |count: &f64| (count / paper - 1.0).abs();
        messages(run).min_by(|one, other| off(one).total_cmp(&off(other))).unwrap_or(0.0)
    })
}
