//! P fig. 9: the all-to-all under `static` with and without piggybacking.

use tidegate_message::Counter;
use tidegate_sim::workload::Benchmark;
use tidegate_sim::{Measurement, SimulationError};

use super::p_fig6_7::{alltoall, meshes, processes, times};
use super::p_table1::threshold_of_static;
use super::p_table2::MESSAGE_PACKETS;
use crate::curve::{Line, figure, mean, measure};
use crate::report::{AsPoint, Fact, Findings, Point, Series};
use crate::run::case::{Case, Workload, piggybacked, static_credits};
use crate::workshop::Workshop;

/// A message that leaves room in its last packet.
const BYTES: u64 = 2044;
const CREDIT_SLOTS: u32 = 2;

/// Why the mean is not lower. The tests are `causes bytes=2044 near=13`.
const ALL_BEGIN_ALIKE: &str = "With piggybacking the last packet of a message takes along what was counted, so every message \
    begins with a count of 0 and the first credit packet comes after a whole threshold. Without, counts are of all sizes, \
    and it comes sooner. That costs where every send waits either way. Tested among 128 processes with data packets as \
    dear as among 1024 (two or three seeds), with 8 and 36 slots: counts of all sizes 43.7 and 18.5 %; all 0, without \
    piggybacking, 48.9 and 21.0 %; with piggybacking 48.3 and 21.0 %. The number of repetitions matters little: there the \
    mean over the sizes falls by 10.7 % with 2 after 1, and by 11.3 % with 30 after 10; with every third size from 9 to 63 \
    by 10.0 %.";

/// Why some sizes save next to nothing.
const WHOLE_THRESHOLDS: &str = "With 8, 36 and 54 slots a message is a whole number of thresholds and one packet more, so that \
    one credit of 37 is left to ride: 2.7 % is the most (the computed curve). And the few repetitions hide even that, \
    and what 48 slots save. Tested among 128 processes with data packets as dear as among 1024 (two seeds): with 30 \
    repetitions after 10 it is 2.7, 3.2, 3.4 and 13 % with 8, 36, 54 and 48 slots.";

/// Why the measured saw is not the computed one.
const FEW_REPETITIONS: &str = "What is computed is the mean of many repetitions, each of whose messages finds all that the \
    one before left. Few are measured, and half of the messages leave while the other's is on its way.";

/// Why no teeth are seen.
const TOO_FEW_POINTS: &str = "The teeth are narrower than the distance between the points.";

/// Percent of the credit packets that piggybacking saves in the long run: only the last packet of a message has room,
/// and what rides there is what the thresholds of the other's message left.
fn saved_in_the_long_run(slots: u32) -> Result<f64, SimulationError> {
    let threshold = threshold_of_static(slots - CREDIT_SLOTS, CREDIT_SLOTS)?;
    let sent_for = MESSAGE_PACKETS / threshold * threshold;
    Ok(100.0 * (1.0 - f64::from(sent_for) / f64::from(MESSAGE_PACKETS)))
}

/// The same for many sizes, by slots.
fn computed_for(slots: impl IntoIterator<Item = u32>) -> Result<Vec<(f64, f64)>, SimulationError> {
    slots.into_iter().map(|slots| Ok((f64::from(slots), saved_in_the_long_run(slots)?))).collect()
}

pub(crate) fn run(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let [small, large] = meshes(workshop.scale);
    let mesh = workshop.scale.pick(large.clone(), large, small);
    let slots: Vec<u32> = workshop.scale.pick(
        // The highest point of each tooth of what is computed, from 24 slots on, and some of the lowest.
        vec![8, 24, 30, 36, 39, 48, 54, 57, 64],
        (9..=63).step_by(3).collect(),
        (12..=60).step_by(3).collect(),
    );
    let repetitions = workshop.scale.pick(2, 4, 4);
    let mut case = alltoall(&mesh);
    if let Workload::Benchmark(benchmark) = case.workload {
        case.workload = Workload::Benchmark(Benchmark { bytes: BYTES, repetitions, ..benchmark });
    }
    let line = |name: &str, piggyback: bool, case: Case| Line {
        name: name.to_owned(),
        case,
        flow: Box::new(move |slots| {
            let flow = static_credits(slots, CREDIT_SLOTS);
            if piggyback { piggybacked(flow) } else { flow }
        }),
        slots: slots.clone(),
    };
    let curves =
        measure(workshop, vec![line("no piggybacking", false, case.clone()), line("piggybacking", true, case)])?;
    let (without, with) = (&curves[0], &curves[1]);
    let saved_of = |with: &Measurement, without: &Measurement| {
        let [with, without] = [with, without].map(|each| each.counter(Counter::CreditPackets));
        100.0 * (1.0 - with as f64 / without.max(1) as f64)
    };
    let pairs = slots.iter().zip(without.measured.iter().zip(&with.measured));
    let points: Vec<Point> =
        pairs.map(|(&slots, (without, with))| with.paired(without, saved_of).point(f64::from(slots))).collect();
    let saved: Vec<(f64, f64)> = points.iter().map(|point| (point.x, point.y)).collect();
    let overheads = [without, with].map(|curve| mean(&curve.overheads(), |_| true));
    let least_saved = saved.iter().map(|point| point.1).fold(f64::MAX, f64::min);
    let computed = computed_for(slots.iter().copied())?;
    let apart = slots.iter().zip(saved.iter().zip(&computed));
    let apart: Vec<(u32, f64)> = apart.map(|(&slots, (here, there))| (slots, (here.1 - there.1).abs())).collect();
    let mean_apart = mean(&apart, |_| true);
    let teeth = teeth(&saved);
    let facts = facts(overheads, least_saved, teeth, mean_apart);
    let every_slot = computed_for(slots[0]..=64)?;
    let setup = format!(
        "All-to-all of {BYTES} bytes among {} processes on a {} mesh (the paper: 1024 on 4×4×4), {CREDIT_SLOTS} credit slots, \
         {repetitions} all-to-alls after one to warm up. These runs begin with the program, with all credits at hand, and not \
         amid one as in figures 6, 7, 10 and 15 to 18: so the curve without piggybacking is not that of figure 6 (with 54 slots \
         {} of its sends wait here, and in figure 7 one in nine). Not every size is measured: what lies between the points \
         is not known.",
        processes(&mesh),
        times(&mesh),
        without
            .delays()
            .iter()
            .find(|(slots, _)| *slots == 54)
            .map_or("some".to_owned(), |(_, delayed)| format!("{delayed:.0} %")),
    );
    let overhead = curves.iter().map(|curve| curve.series(|each, reference| each.overhead(reference))).collect();
    let figures = vec![
        figure("fig9a", "All-to-all, overhead", "overhead (%)", overhead),
        figure(
            "fig9b",
            "Credit packets saved by piggybacking",
            "saved (%)",
            vec![Series::of("measured", points), Series::new("computed, in the long run", every_slot)],
        ),
    ];
    Ok(Findings { setup, figures, tables: Vec::new(), facts })
}

/// Teeth of the saw: values that lie at least 2 percentage points above the lowest before them, since the last tooth,
/// and above one behind them.
fn teeth(saved: &[(f64, f64)]) -> usize {
    const RISE: f64 = 2.0;
    let (mut teeth, mut lowest, mut highest) = (0, f64::MAX, f64::MIN);
    for &(_, value) in saved {
        if highest > lowest + RISE && value < highest - RISE {
            teeth += 1;
            (lowest, highest) = (value, f64::MIN);
        }
        if value < lowest {
            (lowest, highest) = (value, f64::MIN);
        }
        highest = highest.max(value);
    }
    teeth
}

/// What P says, `overheads` being without piggybacking and with it, in %.
fn facts(overheads: [f64; 2], least_saved: f64, teeth: usize, mean_apart: f64) -> Vec<Fact> {
    vec![
        Fact::tested(
            "Piggybacking lowers the overhead (by at least a tenth of it, mean over the sizes).",
            overheads[1] < 0.9 * overheads[0],
            "clear reduction",
            format!("{:.2} % with, {:.2} % without", overheads[1], overheads[0]),
        )
        .because(ALL_BEGIN_ALIKE),
        Fact::tested(
            "It saves explicit credit packets at every size (at least 5 %).",
            least_saved > 5.0,
            "clear reduction",
            format!("at least {least_saved:.1} % saved"),
        )
        .because(WHOLE_THRESHOLDS),
        Fact::tested(
            "The share of credit packets saved goes up and down like a saw (at least two teeth: up and down again by more than 2 \
             points).",
            teeth >= 2,
            "ramp pattern",
            format!("{teeth} teeth at the sizes that were measured"),
        )
        .perhaps_because(TOO_FEW_POINTS),
        Fact::tested(
            "The ramps come from buffer size, threshold and message size together (within 10 points, mean over the sizes).",
            mean_apart < 10.0,
            "due to their correlation",
            format!("{mean_apart:.1} points from what k packets and the threshold θ of eq. 1 give, 1 − (k div θ) θ / k"),
        )
        .perhaps_because(FEW_REPETITIONS),
    ]
}
