//! P fig. 19: credits follow the phases of a program under `dynamic`.

use super::case::{Case, Workload, dynamic_credits};
use super::operation::Benchmark;
use super::p_fig6_7::{meshes, processes, times};
use super::report::{Fact, Figure, Findings, Point, Series};
use super::workshop::Workshop;
use crate::SimulationError;
use crate::flight::Rank;
use crate::task::{Program, Run, Task};
use crate::workload::Communicator;
use crate::workload::collective::{Alltoall, Barrier, alltoall, barrier};

/// All-to-alls among the first processes, whose number changes from phase to phase; a barrier of all after each phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Phases {
    /// Processes of each phase.
    pub sizes: Vec<u32>,
    /// All-to-alls of a phase.
    pub repetitions: u32,
    pub bytes: u64,
}

/// Which part of the processes a credit count is towards.
const LABELS: [&str; 3] = ["ranks 1–255", "ranks 256–511", "ranks 512–1023"];

impl Program for Phases {
    fn start(&self, task: Task) -> Run {
        Box::pin(run_phases(self.clone(), task))
    }
}

async fn run_phases(phases: Phases, task: Task) {
    let world = Communicator::world(&task);
    let bytes = phases.bytes * u64::from(task.size());
    let (out, into) = (task.allocate(bytes), task.allocate(bytes));
    let mut step = 0;
    for (index, &size) in phases.sizes.iter().enumerate() {
        let group = Communicator::range(&task, 1 + index as u32, 0, size);
        for _ in 0..phases.repetitions {
            if let Some(group) = &group {
                alltoall(group, Alltoall::Plain, out, into, phases.bytes).await;
            }
            if task.rank() == Rank(0) {
                record_credits(&task, step).await;
            }
            step += 1;
        }
        barrier(&world, Barrier::Dissemination).await;
    }
}

/// What rank 0 holds towards the three parts: the first quarter, the second, the second half.
async fn record_credits(task: &Task, step: u64) {
    let size = task.size();
    let borders = [1, size / 4, size / 2, size];
    for (label, border) in LABELS.iter().zip(borders.windows(2)) {
        for rank in border[0]..border[1] {
            let credits = task.credits(Rank(rank)).await;
            task.record(label, step, f64::from(credits));
        }
    }
}

/// Median, least and most.
fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    match (values.first(), values.last()) {
        (Some(&least), Some(&most)) => (values[values.len() / 2], least, most),
        _ => (0.0, 0.0, 0.0),
    }
}

pub(super) fn run(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let [_, mesh] = meshes(workshop.scale);
    let size = processes(&mesh);
    let repetitions = workshop.scale.pick(4, 12, 6);
    let (quarter, half) = (size / 4, size / 2);
    let phases = Phases { sizes: vec![size, quarter, half, size, half, quarter, size], repetitions, bytes: 2048 };
    let benchmark = Benchmark::new(super::Operation::Barrier(Barrier::Dissemination));
    let case =
        Case { workload: Workload::Phases(phases.clone()), ..Case::new(&mesh, dynamic_credits(30, 2), benchmark) };
    let results = workshop.run(&[case])?;
    let samples = &results[0].samples;
    let curve = |part: usize| {
        let steps = phases.sizes.len() as u64 * u64::from(repetitions);
        let point = |step: u64| {
            let of = samples.iter().filter(|sample| sample.label == LABELS[part] && sample.index == step);
            let (median, least, most) = spread(of.map(|sample| sample.value).collect());
            Point { x: step as f64 + 1.0, y: median, range: Some((least, most)) }
        };
        (0..steps).map(point).collect::<Vec<_>>()
    };
    let parts = [curve(0), curve(1), curve(2)];
    let border = |number: u32| if number == 0 { 1 } else { number };
    let name = |low: u32, high: u32| format!("ranks {}–{}", border(low), high - 1);
    let names = [name(0, quarter), name(quarter, half), name(half, size)];
    let series = names.into_iter().zip(parts.clone()).map(|(name, points)| Series { name, points }).collect();
    let figure = Figure {
        name: "fig19".to_owned(),
        title: "Credits of rank 0: median, least and most".to_owned(),
        x_axis: "all-to-alls done".to_owned(),
        y_axis: "credits".to_owned(),
        series,
    };
    let setup = format!(
        "{size} processes on a {} mesh (the paper: 1024); phases of {repetitions} all-to-alls (the paper: 100) among {:?} of them, a \
         barrier of all after each; dynamic, 30 slots per process, 2 credit slots, 2 KiB. Noted after every all-to-all.",
        times(&mesh),
        phases.sizes
    );
    Ok(Findings { setup, figures: vec![figure], tables: Vec::new(), facts: facts(&parts, repetitions as usize) })
}

/// Phases are counted from 0: all, quarter, half, all, half, quarter, all.
fn facts(parts: &[Vec<Point>; 3], repetitions: usize) -> Vec<Fact> {
    let end = |part: usize, phase: usize| parts[part][(phase + 1) * repetitions - 1];
    let before_last = |part: usize, phase: usize| parts[part][phase * repetitions];
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
        ),
        Fact::tested(
            "When all are active again, the quarter has to give back most of what it gained.",
            balanced.abs() < (quarter_active - quarter_idle).abs(),
            "back to equal shares",
            format!("{balanced:.0} credits apart, {:.0} before", quarter_active - quarter_idle),
        ),
        Fact::tested(
            "The barrier after a phase revives idle ranks: some of the idle half gain credits beyond their static slots.",
            revived > 2.0,
            "ranks 512–1023 gain credits after 200 executions",
            format!("up to {revived:.0} credits"),
        ),
    ]
}
