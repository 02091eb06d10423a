//! P fig. 19: credits follow the phases of a program under `dynamic`.

use super::case::{Case, PhaseSizes, Workload, dynamic_credits};
use super::curve::figure;
use super::measurement::Runs;
use super::operation::{Benchmark, Operation};
use super::p_fig6_7::{meshes, processes, times};
use super::report::{Fact, Figure, Findings, Point, Series, Spread};
use super::workshop::Workshop;
use crate::SimulationError;
use crate::workload::collective::Barrier;

/// Median, least and most of the credits towards the `part`-th of the watched ranges, after every all-to-all: each of
/// the three as a mean over the seeds.
fn curve(runs: &Runs, part: usize, steps: u64) -> Vec<Point> {
    let point = |step: u64| {
        let of = |label: &str| {
            runs.estimate(|run| {
                let mut found =
                    run.notes.iter().filter(|note| note.label == label && note.index == 3 * step + part as u64);
                found.next().map_or(0.0, |note| note.value)
            })
        };
        let range = (of("credits minimum").mean(), of("credits maximum").mean());
        Point { range: Some(range), ..of("credits median").point(step as f64 + 1.0) }
    };
    (0..steps).map(point).collect()
}

pub(super) fn run(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let [_, mesh] = meshes(workshop.scale);
    let size = processes(&mesh);
    let repetitions = workshop.scale.pick(4, 12, 6);
    let (quarter, half) = (size / 4, size / 2);
    let sizes = vec![size, quarter, half, size, half, quarter, size];
    let phases = PhaseSizes { sizes, repetitions, bytes: 2048, watched: [1..quarter, quarter..half, half..size] };
    // The benchmark's place is taken by the phases.
    let benchmark = Benchmark::new(Operation::Barrier(Barrier::Dissemination));
    let case =
        Case { workload: Workload::Phases(phases.clone()), ..Case::new(&mesh, dynamic_credits(30, 2), benchmark) };
    let results = workshop.run(&[case])?;
    let steps = phases.sizes.len() as u64 * u64::from(repetitions);
    let parts = [0, 1, 2].map(|part| curve(&results[0], part, steps));
    let names = phases.watched.clone().map(|ranks| format!("ranks {}–{}", ranks.start, ranks.end - 1));
    let series = names.into_iter().zip(parts.clone());
    let series = series.map(|(name, points)| Series::of("dynamic", points).in_panel(name)).collect();
    let title = "Credits of rank 0: median, least and most";
    let figure = Figure {
        x_axis: "all-to-alls done".to_owned(),
        spread: Spread::Extremes,
        ..figure("fig19", title, "credits", series)
    };
    let setup = format!(
        "{size} processes on a {} mesh (the paper: 1024); phases of {repetitions} all-to-alls (the paper: 100) among \
         {:?} of them, a barrier of all after each; dynamic, 30 slots per process, 2 credit slots, 2 KiB. Noted after \
         every all-to-all.",
        times(&mesh),
        phases.sizes
    );
    Ok(Findings { setup, figures: vec![figure], tables: Vec::new(), facts: facts(&parts, repetitions as usize) })
}

/// Phases are counted from 0: all, quarter, half, all, half, quarter, all.
fn facts(parts: &[Vec<Point>; 3], repetitions: usize) -> Vec<Fact> {
    let end = |part: usize, phase: usize| &parts[part][(phase + 1) * repetitions - 1];
    let before_last = |part: usize, phase: usize| &parts[part][phase * repetitions];
    let shown = |one: f64, other: f64| format!("{one:.0} against {other:.0}");
    let (quarter_active, quarter_idle) = (end(0, 1).y, end(2, 1).y);
    let (half_active, half_idle) = (end(1, 2).y.min(end(0, 2).y), end(2, 2).y);
    let balanced = end(0, 3).y - end(2, 3).y;
    let revived = (1..4).map(|phase| before_last(2, phase).range.map_or(0.0, |range| range.1)).fold(0.0, f64::max);
    vec![
        Fact::tested(
            "While a quarter is active, credits move to it from the others (medians at the end of the phase).",
            quarter_active > quarter_idle,
            "the active quarter owns more",
            shown(quarter_active, quarter_idle),
        ),
        Fact::tested(
            "While half is active, both its quarters own more than the idle half.",
            half_active > half_idle,
            "the active half owns more",
            shown(half_active, half_idle),
        )
        .because("Few all-to-alls in a phase: credits have not moved that far at its end."),
        Fact::tested(
            "When all are active again, the quarter has to give back most of what it gained.",
            balanced.abs() < (quarter_active - quarter_idle).abs(),
            "back to equal shares",
            format!("{balanced:.0} credits apart, {:.0} before", quarter_active - quarter_idle),
        ),
        Fact::tested(
            "The barrier after a phase revives idle ranks: some of the idle half gain credits beyond their static \
             slots.",
            revived > 2.0,
            "ranks 512–1023 gain credits after 200 executions",
            format!("up to {revived:.0} credits"),
        ),
    ]
}
