//! L table 1: how many messages single processes of a NAS benchmark send, each of which noted its own.

use tidegate_sim::Measurement;

use crate::data::{Named, Points, ValueOf, is_chosen, joined};

/// Messages of each process without credit messages: eager ones, and three for each long one.
fn messages(run: &Measurement) -> Vec<f64> {
    run.noted("eager").iter().zip(run.noted("rendezvous")).map(|(eager, long)| eager + 3.0 * long).collect()
}

fn most(each: Vec<f64>) -> f64 {
    each.into_iter().fold(0.0, f64::max)
}

/// A number of each run that a value means, mean over the seeds; the function also has the paper's number of messages,
/// the point's `process`.
fn each(points: &Points, value: &ValueOf, of: fn(&Measurement, f64) -> f64) -> Result<Named, String> {
    let mut named = Named::default();
    for point in points.of(value.runs.as_deref()).map_err(|error| error.0)? {
        if is_chosen(&point.keys, &value.r#where).map_err(|error| error.0)? {
            let paper = point.keys.get("process").and_then(|key| key.number);
            let paper = paper.ok_or("a number `process` of the benchmark is needed: what the paper's process sends")?;
            named.keys.push(joined(&point.keys, &value.each).map_err(|error| error.0)?);
            named.numbers.push(point.runs.estimate(|run| of(run, paper)).mean());
        }
    }
    Ok(named)
}

/// Messages of the process that sends most.
pub(super) fn busiest(points: &Points, value: &ValueOf) -> Result<Named, String> {
    each(points, value, |run, _| most(messages(run)))
}

/// Credit messages of the process that sends most of them.
pub(super) fn most_credits(points: &Points, value: &ValueOf) -> Result<Named, String> {
    each(points, value, |run, _| most(run.noted("credits")))
}

/// Messages of the process that comes nearest to the paper's: its numbers are those of one process, of LU one with
/// three neighbours, of CG one that is its own transpose.
pub(super) fn nearest(points: &Points, value: &ValueOf) -> Result<Named, String> {
    each(points, value, |run, paper| {
        let off = |count: &f64| (count / paper - 1.0).abs();
        messages(run).into_iter().min_by(|one, other| off(one).total_cmp(&off(other))).unwrap_or(0.0)
    })
}
