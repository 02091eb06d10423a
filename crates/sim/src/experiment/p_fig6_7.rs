//! P fig. 6 and 7: `static` in the all-to-all of two sizes.

use super::case::{Case, Measurement, Workload, static_credits};
use super::curve::{Curve, Line, figure, mean, measure};
use super::operation::{Benchmark, Operation};
use super::p_table2::MESSAGE_PACKETS;
use super::report::{Fact, Figure, Findings, Table};
use super::workshop::{Scale, Workshop};
use crate::SimulationError;
use crate::config::FlowChoice;
use crate::workload::collective::Alltoall;

/// The paper's slots from which overhead is stable, for 2 to 5 credit slots.
const STABLE: [(u32, u32); 4] = [(2, 57), (3, 52), (4, 50), (5, 49)];

/// The meshes of a scale: the smaller and the larger job.
pub(super) fn meshes(scale: Scale) -> [Vec<u16>; 2] {
    scale.pick([vec![4, 4], vec![4, 4, 4]], [vec![2, 2], vec![2, 2, 2]], [vec![2], vec![2, 2]])
}

/// How many processes a mesh runs.
pub(super) fn processes(mesh: &[u16]) -> u32 {
    16 * mesh.iter().map(|&size| u32::from(size)).product::<u32>()
}

/// The all-to-all of this section: optimisation off, 2 KiB.
pub(super) fn alltoall(mesh: &[u16]) -> Case {
    Case::new(mesh, FlowChoice::Unlimited, Benchmark::new(Operation::Alltoall(Alltoall::Plain)))
}

/// The same after `warm_up` repetitions that do not count: `dynamic` has to learn first which processes are active.
pub(super) fn warmed_up(case: Case, warm_up: u32) -> Case {
    match case.workload {
        Workload::Benchmark(benchmark) => {
            Case { workload: Workload::Benchmark(Benchmark { warm_up, ..benchmark }), ..case }
        }
        Workload::Amid(..) | Workload::Phases(_) => case,
    }
}

/// The all-to-all of figures 6 and 7: one of many. What the messages before have left of each other's credits decides
/// whether a message finds its credits, so each pair begins with the rest of a random number of messages.
fn amid_others(mesh: &[u16]) -> Case {
    let benchmark = Benchmark { warm_up: 0, ..Benchmark::new(Operation::Alltoall(Alltoall::Plain)) };
    Case { workload: Workload::Amid(benchmark, MESSAGE_PACKETS), ..alltoall(mesh) }
}

struct Sweep {
    credit_slots: Vec<u32>,
    sizes: [u32; 2],
    /// By size, then by credit slots.
    curves: [Vec<Curve>; 2],
    setup: String,
}

impl Sweep {
    fn run(workshop: &Workshop<'_>) -> Result<Self, SimulationError> {
        let meshes = meshes(workshop.scale);
        let sizes = [processes(&meshes[0]), processes(&meshes[1])];
        let credit_slots = workshop.scale.pick(vec![1, 2, 3, 4, 5], vec![1, 2, 3, 4, 5], vec![2, 5]);
        let pairs = meshes.iter().flat_map(|mesh| credit_slots.iter().map(move |&credits| (mesh, credits)));
        let line = |(mesh, credits): (&Vec<u16>, u32)| Line {
            name: format!("{credits} credit slot{}", if credits == 1 { "" } else { "s" }),
            case: amid_others(mesh),
            flow: Box::new(move |slots| static_credits(slots, credits)),
            slots: slots(workshop.scale, credits),
        };
        let mut small = measure(workshop, pairs.map(line).collect())?;
        let large = small.split_off(credit_slots.len());
        let setup = format!(
            "All-to-all of 2 KiB among {} processes on a {} mesh and {} on a {} mesh (the paper: 256 on 4×4, 1024 on \
             4×4×4), 16 on a node; n − 1 sends, then n − 1 receives. One is measured, which begins as though each pair \
             had exchanged a random number of messages before (the paper: the mean of 150).",
            sizes[0],
            times(&meshes[0]),
            sizes[1],
            times(&meshes[1]),
        );
        Ok(Sweep { credit_slots, sizes, curves: [small, large], setup })
    }

    fn figures(&self, name: &str, y_axis: &str, value: fn(&Measurement, &Measurement) -> f64) -> Vec<Figure> {
        let figure = |(index, part): (usize, &str)| {
            let title = format!("All-to-all under static, {} processes", self.sizes[index]);
            let series = self.curves[index].iter().map(|curve| curve.series(value)).collect();
            figure(&format!("{name}{part}"), &title, y_axis, series)
        };
        [(0, "a"), (1, "b")].into_iter().map(figure).collect()
    }
}

/// Sizes as people write them: `4×4×4`.
pub(super) fn times(mesh: &[u16]) -> String {
    mesh.iter().map(u16::to_string).collect::<Vec<_>>().join("×")
}

/// The points: few where little happens, every second around the fall, and all beside the paper's two borders. A point
/// at full size costs an all-to-all of 39 million packets.
fn slots(scale: Scale, credits: u32) -> Vec<u32> {
    let start = MESSAGE_PACKETS + credits;
    let border = tidegate_flow::slots_without_stall(MESSAGE_PACKETS, credits).unwrap_or(64).min(64);
    let (everywhere, fall) = scale.pick(
        (vec![10, 20, 30, 64], (34..border).step_by(2)),
        (vec![10, 20, 30, 64], (34..border).step_by(2)),
        (vec![16, 30, 64], (start..border).step_by(6)),
    );
    let borders = (start - 1..=start + 1).chain(border - 1..=border + 1);
    let mut all: Vec<u32> = everywhere.into_iter().chain(fall).chain(borders).collect();
    all.retain(|&slots| slots <= 64);
    all.sort_unstable();
    all.dedup();
    all
}

/// Few slots, from which on overhead no longer depends on how few they are.
const PLATEAU: u32 = 30;

/// The level of the plateau before 37 data slots, and the height by which overhead falls from there.
fn fall(overheads: &[(u32, f64)], before: u32) -> (f64, f64) {
    let high = mean(overheads, |slots| (PLATEAU..before).contains(&slots));
    (high, high - overheads.last().map_or(0.0, |last| last.1))
}

/// The first point after the plateau that is lower by a quarter of what is gained in all.
fn falls_at(overheads: &[(u32, f64)], before: u32) -> Option<u32> {
    let (high, gain) = fall(overheads, before);
    overheads.iter().find(|&&(slots, value)| slots >= PLATEAU && value < high - 0.25 * gain).map(|(slots, _)| *slots)
}

/// The first point from which on all are within a quarter of what is gained in all.
fn stable_from(overheads: &[(u32, f64)], before: u32) -> Option<u32> {
    let (high, gain) = fall(overheads, before);
    let limit = high - 0.75 * gain;
    let last = overheads.iter().rposition(|&(_, value)| value > limit).map_or(0, |index| index + 1);
    overheads.get(last).map(|(slots, _)| *slots)
}

/// Why overhead does not fall at 37 data slots.
const NO_EARLY_FALL: &str = "In small jobs a data packet costs its receiver little, so what few slots cost is work for \
    more control packets, which shrinks with every slot more, and not waiting, which ends where a message fits into the \
    data region. With what a packet costs among 1024 processes overhead falls from 22 to 5 % between 38 and 40 slots, \
    with 2 credit slots, among 128 already.";

/// Why it is stable a little earlier or later.
const SECOND_MESSAGE: &str = "What is measured is the second message between any two processes. With 3 credit slots it \
    finds its credits with 51 slots already: the threshold is 13, so 37 packets leave 11 unreported, and 37 of the 48 \
    credits are there. The eighth message would find 36; the paper's mean of many all-to-alls has it.";

/// Why more processes lose no larger share.
const SAME_SHARE: &str = "Here neither links nor interfaces are the limit (the busiest link is busy for a tenth of the \
    time): who waits waits for its receiver's next look at its mailbox, which comes once with each of its sends, \
    however many processes there are.";

/// Why points differ by some percentage points for no reason of their own.
pub(super) const WOBBLE: &str = "In an all-to-all whoever waits holds up those who wait for it, and the order in which \
    that happens changes with the smallest things: neighbouring points differ by up to five percentage points, some \
    far more, and one run stands for the paper's mean of many.";

/// Fig. 6.
pub(super) fn overhead(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let sweep = Sweep::run(workshop)?;
    let percent = |each: &Measurement, reference: &Measurement| each.overhead(reference);
    let overheads: [Vec<Vec<(u32, f64)>>; 2] =
        [0, 1].map(|size| sweep.curves[size].iter().map(Curve::overheads).collect());
    let starts: Vec<u32> = sweep.credit_slots.iter().map(|credits| MESSAGE_PACKETS + credits).collect();
    let falls: Vec<Option<u32>> =
        overheads[1].iter().zip(&starts).map(|(curve, &start)| falls_at(curve, start)).collect();
    let stable: Vec<Option<u32>> =
        overheads[1].iter().zip(&starts).map(|(curve, &start)| stable_from(curve, start)).collect();
    let gain: Vec<f64> = overheads[1].iter().zip(&starts).map(|(curve, &start)| fall(curve, start).1).collect();
    let real = gain.iter().all(|gain| *gain > 1.0);
    let words = |points: &[Option<u32>]| {
        let each = points.iter().map(|point| point.map_or("none".to_owned(), |slots| slots.to_string()));
        each.collect::<Vec<_>>().join(" ")
    };
    let gains = gain.iter().map(|gain| format!("{gain:.1}")).collect::<Vec<_>>().join(" ");
    let stable_as_published = STABLE.iter().all(|(credits, slots)| {
        let index = sweep.credit_slots.iter().position(|have| have == credits);
        index.is_none_or(|index| stable[index] == Some(*slots))
    });
    let larger = {
        let few = |size: usize| mean(&overheads[size].concat(), |slots| slots < 38);
        (few(0), few(1))
    };
    let facts = vec![
        Fact::tested(
            "The overhead of the larger job starts to fall at 37 data slots: 38–42 slots for 1–5 credit slots.",
            real && falls.iter().zip(&starts).all(|(found, start)| *found == Some(*start)),
            starts.iter().map(u32::to_string).collect::<Vec<_>>().join(" "),
            format!("{} (it falls by {gains} percentage points in all)", words(&falls)),
        )
        .because(NO_EARLY_FALL),
        Fact::tested(
            "It is stable from 57, 52, 50, 49 slots for 2–5 credit slots (eq. 5).",
            real && stable_as_published,
            "57 52 50 49",
            format!("{} for {:?} credit slots", words(&stable), sweep.credit_slots),
        )
        .because(SECOND_MESSAGE),
        Fact::tested(
            "Overhead grows with the number of processes (mean under 38 slots).",
            larger.1 > larger.0,
            "grows",
            format!("{:.1} % with {}, {:.1} % with {}", larger.0, sweep.sizes[0], larger.1, sweep.sizes[1]),
        )
        .because(SAME_SHARE),
    ];
    let mut table = Table::new("fig6", "Times without flow control", &["processes", "µs"]);
    for (size, curves) in sweep.sizes.iter().zip(&sweep.curves) {
        table.row([size.to_string(), format!("{:.2}", curves[0].reference.time())]);
    }
    let figures = sweep.figures("fig6", "overhead (%)", percent);
    Ok(Findings { setup: sweep.setup, figures, tables: vec![table], facts })
}

/// Fig. 7.
pub(super) fn delayed(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let sweep = Sweep::run(workshop)?;
    let delays: [Vec<Vec<(u32, f64)>>; 2] = [0, 1].map(|size| sweep.curves[size].iter().map(Curve::delays).collect());
    let differences: Vec<f64> = delays[0]
        .concat()
        .iter()
        .zip(delays[1].concat())
        .map(|((_, small), (_, large))| (small - large).abs())
        .collect();
    let most = differences.iter().copied().fold(0.0, f64::max);
    let mean_difference = differences.iter().sum::<f64>() / differences.len() as f64;
    let none_from = |curve: &Curve| {
        let values = curve.delays();
        let last = values.iter().rposition(|(_, delayed)| *delayed > 1.0);
        curve.slots.get(last.map_or(0, |index| index + 1)).copied()
    };
    let found: Vec<Option<u32>> = sweep.curves[1].iter().map(none_from).collect();
    let as_published = STABLE.iter().all(|(credits, slots)| {
        let index = sweep.credit_slots.iter().position(|have| have == credits);
        index.is_none_or(|index| found[index].is_some_and(|found| found <= *slots))
    });
    let words: Vec<String> =
        found.iter().map(|point| point.map_or("> 64".to_owned(), |slots| slots.to_string())).collect();
    let facts = vec![
        Fact::tested(
            "The share of delayed sends is alike for both sizes (mean difference under 5 percentage points).",
            mean_difference < 5.0,
            "very similar",
            format!("{mean_difference:.2} points on average, at most {most:.1}"),
        ),
        Fact::tested(
            "From the slots of table 2 on nothing is delayed (under 1 %), as in multi-pingpong.",
            as_published,
            "57 52 50 49 for 2–5 credit slots",
            format!("at most {} for {:?} credit slots", words.join(" "), sweep.credit_slots),
        ),
    ];
    let figures = sweep.figures("fig7", "delayed sends (%)", |each, _| 100.0 * each.delayed);
    Ok(Findings { setup: sweep.setup, figures, tables: Vec::new(), facts })
}
