//! P fig. 4 and 5: `static` in multi-pingpong over 1 and 14 hops.

use tidegate_sim::workload::{Benchmark, Operation};
use tidegate_sim::{FlowChoice, Measurement, SimulationError};

use super::p_table2::MESSAGE_PACKETS;
use crate::curve::{Curve, Line, figure, mean, measure};
use crate::report::{Fact, Figure, Findings};
use crate::run::case::{Case, static_credits};
use crate::workshop::Workshop;

/// The machine: an 8×8 mesh, of which two nodes run 16 processes each.
const MESH: [u16; 2] = [8, 8];
/// Distances in hops, and the node that far from node 0.
const FAR_NODES: [(u32, u32); 2] = [(1, 1), (14, 63)];

/// Multi-pingpong between node 0 and another.
pub(crate) fn case(far_node: u32, repetitions: u32) -> Case {
    let benchmark = Benchmark { repetitions, warm_up: 2, ..Benchmark::new(Operation::MultiPingpong) };
    Case { nodes: Some(vec![0, far_node]), ..Case::new(&MESH, FlowChoice::Unlimited, benchmark) }
}

/// The curves of both figures: by distance, then by credit slots.
struct Sweep {
    credit_slots: Vec<u32>,
    curves: [Vec<Curve>; 2],
    setup: String,
}

impl Sweep {
    fn run(workshop: &Workshop<'_>) -> Result<Self, SimulationError> {
        let mut slots: Vec<u32> = workshop.scale.pick(
            (10..=64).step_by(2).chain([39, 49, 57]).collect(),
            vec![10, 16, 20, 24, 28, 32, 36, 40, 44, 48, 49, 50, 52, 56, 57, 60, 64],
            vec![10, 24, 48, 49, 57, 60, 64],
        );
        slots.sort_unstable();
        let credit_slots = workshop.scale.pick(vec![1, 2, 3, 4, 5], vec![1, 2, 3, 4, 5], vec![1, 2, 5]);
        let repetitions = workshop.scale.pick(200, 40, 40);
        let line = |node: u32, credits: u32| Line {
            name: format!("{credits} credit slot{}", if credits == 1 { "" } else { "s" }),
            case: case(node, repetitions),
            flow: Box::new(move |slots| static_credits(slots, credits)),
            slots: slots.clone(),
        };
        let lines = FAR_NODES.iter().flat_map(|&(_, node)| credit_slots.iter().map(move |&credits| (node, credits)));
        let mut near = measure(workshop, lines.map(|(node, credits)| line(node, credits)).collect())?;
        let far = near.split_off(credit_slots.len());
        let setup = format!(
            "8×8 mesh; the 16 processes of one node and the 16 of another, 1 or 14 hops away, send 2 KiB there and \
             back, all pairs at once, {repetitions} times (the paper: 20,480 times)."
        );
        Ok(Sweep { credit_slots, curves: [near, far], setup })
    }

    fn figures(&self, name: &str, y_axis: &str, value: fn(&Measurement, &Measurement) -> f64) -> Vec<Figure> {
        let parts = FAR_NODES.iter().zip(&self.curves).zip(["a", "b"]);
        let figure = |(((hops, _), curves), part): ((&(u32, u32), &Vec<Curve>), &str)| {
            let title = format!("Multi-pingpong under static, {hops} hop{}", if *hops == 1 { "" } else { "s" });
            figure(&format!("{name}{part}"), &title, y_axis, curves.iter().map(|curve| curve.series(value)).collect())
        };
        parts.map(figure).collect()
    }

    /// Mean over all curves of a distance.
    fn mean(&self, distance: usize, wanted: fn(u32) -> bool, value: fn(&Measurement, &Measurement) -> f64) -> f64 {
        let all: Vec<_> = self.curves[distance].iter().flat_map(|curve| curve.values(value)).collect();
        mean(&all, wanted)
    }

    /// By credit slots: the mean over slots and distances.
    fn by_credit_slots(&self, value: fn(&Measurement, &Measurement) -> f64) -> Vec<(u32, f64)> {
        let of = |index: usize| self.curves.iter().flat_map(move |curves| curves[index].values(value));
        let mean = |index: usize| mean(&of(index).collect::<Vec<_>>(), |_| true);
        self.credit_slots.iter().enumerate().map(|(index, &credits)| (credits, mean(index))).collect()
    }

    /// By credit slots: the fewest slots from which on nothing is delayed, but for the first sends after the barrier,
    /// of which each process has one (3 % covers it).
    fn break_even(&self, distance: usize) -> Vec<Option<u32>> {
        let point = |curve: &Curve| {
            let delays = curve.delays();
            let last = delays.iter().rposition(|(_, delayed)| *delayed > 3.0);
            curve.slots.get(last.map_or(0, |index| index + 1)).copied()
        };
        self.curves[distance].iter().map(point).collect()
    }
}

fn percent_of_reference(each: &Measurement, reference: &Measurement) -> f64 {
    each.overhead(reference)
}

fn percent_delayed(each: &Measurement, _: &Measurement) -> f64 {
    100.0 * each.delayed
}

fn list(values: &[(u32, f64)]) -> String {
    values.iter().map(|(credits, value)| format!("{credits}: {value:.1} %")).collect::<Vec<_>>().join(", ")
}

/// Why the longer distance does not cost more.
const SHORT_WAYS: &str = "A sender writes a packet in 1.2 µs, so that the credits of the fewest slots last for longer than they \
    take to come back, 1.1 µs more over 13 more hops in each direction: what few slots cost is the work for \
    more credit packets. With packets that cost half of that (600 ns to write, 450 to retrieve) 10 slots cost \
    30 % at 1 hop and 36 % at 14, with a quarter 27 and 29 % (tested with 2 credit slots, two seeds; as it is, 26 \
    and 25 %). 24 slots cost less over 14 hops even then, 6 and 8 %.";

/// Fig. 4.
pub(crate) fn overhead(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let sweep = Sweep::run(workshop)?;
    let mean = |wanted| [0, 1].map(|distance| sweep.mean(distance, wanted, percent_of_reference));
    let (few, many) = (mean(|slots| slots < 30), mean(|slots| slots > 30));
    let times = [0, 1].map(|distance| sweep.curves[distance][0].reference.time());
    let by_credits = sweep.by_credit_slots(percent_of_reference);
    let least = by_credits.iter().min_by(|one, other| one.1.total_cmp(&other.1)).map_or(0, |best| best.0);
    let best = by_credits.iter().map(|each| each.1).fold(f64::MAX, f64::min);
    let of_two = by_credits.iter().find(|each| each.0 == 2).map_or(f64::MAX, |each| each.1);
    let two = sweep.credit_slots.iter().position(|credits| *credits == 2).unwrap_or(0);
    let from_57 = sweep.curves.iter().flat_map(|curves| curves[two].overheads()).filter(|(slots, _)| *slots >= 57);
    let from_57 = from_57.map(|(_, overhead)| overhead).fold(0.0, f64::max);
    let near = |here: f64, paper: f64| (here / paper - 1.0).abs() < 0.05;
    let facts = vec![
        Fact::tested(
            "Without flow control a message takes 50.04 µs over 1 hop and 51.17 µs over 14 (calibrated; within 5 %).",
            near(times[0], 50.04) && near(times[1], 51.17),
            "50.04, 51.17 µs",
            format!("{:.2}, {:.2} µs", times[0], times[1]),
        )
        .perhaps_because(
            "all four times that the paper gives determine the machine's parameters, and not all can be met at \
            once.",
        )
        .implied("The costs of a packet and of a hop are calibrated by these two times."),
        Fact::tested(
            "Under 30 slots the longer distance costs more.",
            few[1] > few[0],
            "14 hops above 1",
            format!(
                "{:.1} % at 14 hops, {:.1} % at 1 (means), which are {:.1} and {:.1} µs",
                few[1],
                few[0],
                few[1] * times[1] / 100.0,
                few[0] * times[0] / 100.0
            ),
        )
        .because(SHORT_WAYS),
        Fact::tested(
            "Beyond 30 slots distance does not matter (means within 2 percentage points).",
            (many[1] - many[0]).abs() < 2.0,
            "very similar",
            format!("{:.1} % at 14 hops, {:.1} % at 1 (means)", many[1], many[0]),
        )
        .implied("Distance hardly matters with fewer slots either, so this cannot fail here."),
        Fact::tested(
            "1 credit slot has the least overhead.",
            least == 1,
            "1",
            format!("{least} (means: {})", list(&by_credits)),
        )
        .perhaps_because(
            "with few credit slots a sender stands still for longer, with many it handles more credit packets. Which \
             of the two weighs more depends on what a credit packet costs a process beside what a stall does; the \
             paper gives neither.",
        ),
        Fact::tested(
            "2 credit slots are close to the best (within 2 points of it, means), and with 58 slots cost very little (at \
             most 3 % at every size from 57 on).",
            of_two - best < 2.0 && from_57 <= 3.0,
            "close to the best option; very low overhead",
            format!("{:.1} points above the best; at most {from_57:.1} % from 57 slots on", of_two - best),
        ),
    ];
    let figures = sweep.figures("fig4", "overhead (%)", percent_of_reference);
    Ok(Findings { setup: sweep.setup, figures, tables: Vec::new(), facts })
}

/// Fig. 5.
pub(crate) fn delayed(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let sweep = Sweep::run(workshop)?;
    let by_distance = [0, 1].map(|distance| sweep.mean(distance, |_| true, percent_delayed));
    let by_credits = sweep.by_credit_slots(percent_delayed);
    let shrinks = by_credits.windows(2).all(|pair| pair[1].1 <= pair[0].1 + 0.5);
    let (near, far) = (sweep.break_even(0), sweep.break_even(1));
    let words = |points: &[Option<u32>]| {
        let each = points.iter().map(|point| point.map_or("> 64".to_owned(), |slots| slots.to_string()));
        each.collect::<Vec<_>>().join(" ")
    };
    let bounds =
        sweep.credit_slots.iter().filter_map(|&credits| tidegate_flow::slots_without_stall(MESSAGE_PACKETS, credits));
    let bounded = near.iter().zip(bounds).all(|(found, bound)| found.map_or(bound > 64, |found| found == bound));
    let facts = vec![
        Fact::tested(
            "The share of delayed sends grows with distance (by more than half a point).",
            by_distance[1] > by_distance[0] + 0.5,
            "grows",
            format!("{:.2} % at 14 hops, {:.2} % at 1 (means)", by_distance[1], by_distance[0]),
        )
        .because(
            "A send counts as delayed or not, however long it waits. In a pingpong all credits of the message before \
             are back or not back by then at either distance, also with packets that cost half or a quarter (tested: \
             with 10 to 40 slots and 2 credit slots as many sends are delayed at 14 hops as at 1, two seeds).",
        ),
        Fact::tested(
            "It shrinks with the number of credit slots (within half a point).",
            shrinks,
            "shrinks",
            list(&by_credits),
        )
        .perhaps_because(
            "credit slots are taken from the data region: of few slots a sender then owns fewer credits, and more of \
             its messages wait.",
        ),
        Fact::tested(
            "The point from which nothing is delayed (but for the first sends after a barrier) does not depend on \
             distance.",
            near == far,
            "identical",
            format!("1 hop: {}; 14 hops: {}", words(&near), words(&far)),
        ),
        Fact::tested(
            "It is that of eq. 5 (table 2).",
            bounded,
            "57 52 50 49 for 2–5 credit slots",
            format!("{} for {:?} credit slots", words(&near), sweep.credit_slots),
        ),
    ];
    let figures = sweep.figures("fig5", "delayed sends (%)", percent_delayed);
    Ok(Findings { setup: sweep.setup, figures, tables: Vec::new(), facts })
}
