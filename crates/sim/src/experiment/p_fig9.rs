//! P fig. 9: the all-to-all under `static` with and without piggybacking.

use super::case::{Case, Workload, piggybacked, static_credits};
use super::curve::{Line, figure, mean, measure};
use super::operation::Benchmark;
use super::p_fig6_7::{alltoall, meshes, processes, times};
use super::report::{Fact, Findings, Series};
use super::workshop::Workshop;
use crate::SimulationError;

/// A message that leaves room in its last packet.
const BYTES: u64 = 2044;

/// Why the mean is not lower.
const FEW_RIDE: &str = "Everybody sends first and retrieves later, so a packet that leaves finds little to report: with \
    1,024 processes hardly a credit packet is saved but with 64 slots, and there the overhead is half of that without. \
    With few slots it is some points higher, for a reason that was not looked into.";

/// Why no teeth are seen.
const TOO_FAR_APART: &str = "At full size the points are 14 slots apart, further than the teeth. At reduced size, 2 slots \
    apart, the saw is there.";

pub(super) fn run(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let [small, large] = meshes(workshop.scale);
    let mesh = workshop.scale.pick(large.clone(), large, small);
    let slots: Vec<u32> = workshop.scale.pick(
        (8..=64).step_by(14).collect(),
        (8..=64).step_by(2).collect(),
        (12..=60).step_by(3).collect(),
    );
    let repetitions = workshop.scale.pick(1, 2, 4);
    let mut case = alltoall(&mesh);
    if let Workload::Benchmark(benchmark) = case.workload {
        case.workload = Workload::Benchmark(Benchmark { bytes: BYTES, repetitions, ..benchmark });
    }
    let line = |name: &str, piggyback: bool, case: Case| Line {
        name: name.to_owned(),
        case,
        flow: Box::new(move |slots| {
            let flow = static_credits(slots, 2);
            if piggyback { piggybacked(flow) } else { flow }
        }),
        slots: slots.clone(),
    };
    let curves =
        measure(workshop, vec![line("no piggybacking", false, case.clone()), line("piggybacking", true, case)])?;
    let (without, with) = (&curves[0], &curves[1]);
    let saved: Vec<(f64, f64)> = slots
        .iter()
        .zip(without.measured.iter().zip(&with.measured))
        .map(|(&slots, (without, with))| {
            let kept = with.credit_packets as f64 / without.credit_packets.max(1) as f64;
            (f64::from(slots), 100.0 * (1.0 - kept))
        })
        .collect();
    let overheads = [without, with].map(|curve| mean(&curve.overheads(), |_| true));
    let least_saved = saved.iter().map(|point| point.1).fold(f64::MAX, f64::min);
    // A tooth of the saw: the share rises by at least 2 points between neighbours and falls again, or the other way
    // round.
    let steps: Vec<f64> = saved.windows(2).map(|pair| pair[1].1 - pair[0].1).filter(|step| step.abs() > 2.0).collect();
    let teeth = steps.windows(2).filter(|pair| pair[0].signum() != pair[1].signum()).count();
    let facts = vec![
        Fact::tested(
            "Piggybacking lowers the overhead (mean over the sizes).",
            overheads[1] < overheads[0],
            "clear reduction",
            format!("{:.2} % with, {:.2} % without", overheads[1], overheads[0]),
        )
        .because(FEW_RIDE),
        Fact::tested(
            "It saves explicit credit packets at every size.",
            least_saved > 0.0,
            "clear reduction",
            format!("at least {least_saved:.1} % saved"),
        )
        .because(
            "In this all-to-all everybody sends first and retrieves later: packets that leave early find no retrieved \
             packets to report, so credits ride only where a process meanwhile waited for credits and retrieved.",
        ),
        Fact::tested(
            "The share of credit packets saved goes up and down like a saw (at least two teeth).",
            teeth >= 2,
            "ramp pattern",
            format!("{teeth} turns of more than 2 points"),
        )
        .because(TOO_FAR_APART),
    ];
    let setup = format!(
        "All-to-all of {BYTES} bytes among {} processes on a {} mesh (the paper: 1024 on 4×4×4), 2 credit slots, \
         {repetitions} all-to-alls after one to warm up.",
        processes(&mesh),
        times(&mesh)
    );
    let overhead = curves.iter().map(|curve| curve.series(|each, reference| each.overhead(reference))).collect();
    let figures = vec![
        figure("fig9a", "All-to-all, overhead", "overhead (%)", overhead),
        figure("fig9b", "Credit packets saved by piggybacking", "saved (%)", vec![Series::new("saved", saved)]),
    ];
    Ok(Findings { setup, figures, tables: Vec::new(), facts })
}
