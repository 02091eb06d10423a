//! P fig. 6 and 7: `static` in the all-to-all of two sizes.

use tidegate_sim::workload::collective::Alltoall;
use tidegate_sim::workload::{Benchmark, Operation};
use tidegate_sim::{FlowChoice, Measurement, SimulationError};

use super::p_table2::MESSAGE_PACKETS;
use crate::curve::{Curve, Line, at, figure, mean, measure};
use crate::report::{Fact, Figure, Findings, Series, Table};
use crate::run::case::{Case, Workload, static_credits};
use crate::workshop::{Scale, Workshop};

/// The paper's slots from which overhead is stable, for 2 to 5 credit slots.
const STABLE: [(u32, u32); 4] = [(2, 57), (3, 52), (4, 50), (5, 49)];

/// The meshes of a scale: the smaller and the larger job.
pub(crate) fn meshes(scale: Scale) -> [Vec<u16>; 2] {
    scale.pick([vec![4, 4], vec![4, 4, 4]], [vec![2, 2], vec![2, 2, 2]], [vec![2], vec![2, 2]])
}

/// How many processes a mesh runs.
pub(crate) fn processes(mesh: &[u16]) -> u32 {
    16 * mesh.iter().map(|&size| u32::from(size)).product::<u32>()
}

/// The all-to-all of this section: optimisation off, 2 KiB.
pub(crate) fn alltoall(mesh: &[u16]) -> Case {
    Case::new(mesh, FlowChoice::Unlimited, Benchmark::new(Operation::Alltoall(Alltoall::Plain)))
}

/// The same after `warm_up` repetitions that do not count, and messages of many lengths: `dynamic` has to learn first
/// which processes are active.
pub(crate) fn warmed_up(mesh: &[u16], warm_up: u32) -> Case {
    let benchmark = Benchmark { warm_up, ..Benchmark::new(Operation::Alltoall(Alltoall::Plain)) };
    Case { workload: Workload::Mixed(benchmark), ..alltoall(mesh) }
}

/// The same as one of many. What the messages before have left of each other's credits decides whether a message finds
/// its credits, so each pair begins with the rest of a random number of messages.
pub(crate) fn amid_others(mesh: &[u16]) -> Case {
    let benchmark = Benchmark { warm_up: 0, ..Benchmark::new(Operation::Alltoall(Alltoall::Plain)) };
    Case { workload: Workload::Amid(benchmark, MESSAGE_PACKETS), ..alltoall(mesh) }
}

struct Sweep {
    credit_slots: Vec<u32>,
    sizes: [u32; 2],
    /// By size, then by credit slots.
    curves: [Vec<Curve>; 2],
    setup: String,
    /// Whether it has the paper's size.
    is_full: bool,
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
             4×4×4), 16 on a node; n − 1 sends, then n − 1 receives. Measured is one all-to-all (the paper: the mean of 150). So that \
             it stands for many, every process begins as though it had sent each other one some number of such messages \
             before, drawn for each: what credits they left it depends on that number.",
            sizes[0],
            times(&meshes[0]),
            sizes[1],
            times(&meshes[1]),
        );
        let is_full = workshop.scale == Scale::Full;
        Ok(Sweep { credit_slots, sizes, curves: [small, large], setup, is_full })
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
pub(crate) fn times(mesh: &[u16]) -> String {
    mesh.iter().map(u16::to_string).collect::<Vec<_>>().join("×")
}

/// The points. At full size a point costs an all-to-all of 39 million packets with each seed.
pub(crate) fn slots(scale: Scale, credits: u32) -> Vec<u32> {
    let start = MESSAGE_PACKETS + credits;
    let border = tidegate_flow::slots_without_stall(MESSAGE_PACKETS, credits).filter(|&slots| slots <= MOST_SLOTS);
    let most = border.unwrap_or(MOST_SLOTS);
    let mut all = vec![PLATEAU, start - 1, start, MOST_SLOTS];
    all.extend(border.into_iter().flat_map(|border| [border - 1, border]));
    all.extend(scale.pick(vec![], vec![10, 20], vec![16]));
    let step = scale.pick(2, 2, 6);
    all.extend((34..most).step_by(step));
    all.sort_unstable();
    all.dedup();
    all
}

/// Slots of the largest mailbox.
const MOST_SLOTS: u32 = 64;
/// The fewest slots that are measured. With still fewer overhead is much higher (figure 10): what looks like a plateau
/// before the fall is one from here on only.
const PLATEAU: u32 = 30;
/// By how many times overhead falls faster beyond that plateau, at least, to be called a fall that starts there.
const STEEPER: f64 = 3.0;
/// Between these slots the paper sees a huge drop.
const DROP: (u32, u32) = (40, 50);

/// What the overhead of one curve does over the size of the mailbox, with `start` slots where a message first fits into
/// the data region.
struct Fall {
    /// The first point from which on all are lower than every point of the plateau before `start`.
    leaves: Option<u32>,
    /// The first point from which on all are within a tenth of the whole fall of the last one's level.
    stable: Option<u32>,
    /// Percentage points per slot, on the plateau and from its end to the last point or the stable part.
    slopes: (f64, f64),
    /// Percentage points from the plateau's end to the last point.
    height: f64,
    /// Percent with the slots between which the paper sees the drop.
    drop: (f64, f64),
}

impl Fall {
    fn of(overheads: &[(u32, f64)], start: u32) -> Self {
        let plateau = || overheads.iter().filter(|(slots, _)| (PLATEAU..start).contains(slots));
        let lowest = plateau().map(|(_, value)| *value).fold(f64::MAX, f64::min);
        let (first, end) = (plateau().next(), plateau().next_back());
        let (Some(&first), Some(&end), Some(&last)) = (first, end, overheads.last()) else {
            return Fall { leaves: None, stable: None, slopes: (0.0, 0.0), height: 0.0, drop: (0.0, 0.0) };
        };
        let height = end.1 - last.1;
        // The first point behind the last one that breaks a rule.
        let first_of_all = |breaks: &dyn Fn(f64) -> bool| {
            let behind = overheads.iter().rposition(|(_, value)| breaks(*value)).map_or(0, |index| index + 1);
            overheads.get(behind).map(|(slots, _)| *slots)
        };
        let leaves = first_of_all(&|value| value >= lowest);
        let stable = first_of_all(&|value| value > last.1 + 0.1 * height);
        let bottom = overheads.iter().find(|(slots, _)| Some(*slots) == stable).copied().unwrap_or(last);
        let slope = |from: (u32, f64), to: (u32, f64)| (from.1 - to.1) / f64::from(to.0.saturating_sub(from.0).max(1));
        let drop = (between(overheads, DROP.0), between(overheads, DROP.1));
        Fall { leaves, stable, slopes: (slope(first, end), slope(end, bottom)), height, drop }
    }

    /// Whether it falls much faster beyond `start` than before.
    fn is_drop_at(&self, start: u32) -> bool {
        let (before, beyond) = self.slopes;
        self.leaves == Some(start) && self.height > 1.0 && beyond > STEEPER * before.max(0.0)
    }
}

/// Points as a list.
fn listed(points: impl Iterator<Item = Option<u32>>) -> String {
    points.map(|point| point.map_or("none".to_owned(), |slots| slots.to_string())).collect::<Vec<_>>().join(" ")
}

/// Why overhead does not fall at 37 data slots.
const NO_EARLY_FALL: &str = "In small jobs a data packet costs its receiver little beside a credit packet. So what few \
    slots cost is work for more credit packets, which shrinks with every slot more, on the plateau too, and not waiting, \
    which is what ends (figure 7 shows that it ends where the paper says). Among 128 processes overhead falls by 0.2 to \
    0.4 points per slot beyond the plateau and as fast on it. With data packets as dear as among 1024 (13 near peers, not \
    105; one seed) it falls by 0.3, 0.8, 1.1, 1.4 and 1.7 points beyond it and by 0.9, 0.4, 0.3, 0.1 and 0.4 on it, with \
    1 to 5 credit slots, and leaves it at 40, 40, 40, 41 and 42 slots.";

/// Why at the paper's size not all curves start to fall there.
const ONE_CREDIT_SLOT: &str = "with 2 to 5 credit slots it does. With 1 it falls faster before than behind: at 38 \
    slots one send in twenty finds its credits, with 64 five in six do (figure 7; eq. 5 asks for 75), so what ends there is \
    little. The even part before is cut off at 30 slots, the fewest that are measured here: with 8, 16, 24 and 30 slots and 2 \
    credit slots overhead is 56.5, 41.4, 31.8 and 24.1 % (figure 10).";

/// Why it does not drop where the paper sees it.
const LATE_DROP: &str = "with 2 and 3 credit slots most of the fall comes in one step where the last sends no longer wait, at 57 \
    and 52 slots by the paper's own table 2: a send that waits holds up those behind it, so few that wait cost far more \
    than their share. With 1 credit slot that step lies beyond 64 slots. In smaller jobs overhead falls less altogether.";

/// Why it is stable earlier or later.
const NOT_STABLE: &str = "What is left after waiting has ended is work for credit packets, and with cheap data packets \
    that goes on shrinking. With data packets as dear as among 1024 processes (13 near peers, not 105; 128 processes, one \
    seed) it is stable from 57, 52, 50 and 49 slots.";

/// Why more processes lose no larger share.
const SAME_SHARE: &str = "Up to 105 peers a data packet costs no more with more of them, so among 64 and 128 processes \
    it costs about as much. With the cost that it has among 1024 (13 near peers; one seed) overhead grows, from 20.7 % \
    among 64 to 25.1 % among 128.";

/// Why points differ by some percentage points for no reason of their own.
pub(crate) const WOBBLE: &str = "in an all-to-all whoever waits holds up those who wait for it, and the order in which \
    that happens changes with the smallest things: neighbouring points differ by up to five percentage points, some \
    far more, and one run stands for the paper's mean of many.";

/// Fig. 6.
pub(crate) fn overhead(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let sweep = Sweep::run(workshop)?;
    let percent = |each: &Measurement, reference: &Measurement| each.overhead(reference);
    let overheads: [Vec<Vec<(u32, f64)>>; 2] =
        [0, 1].map(|size| sweep.curves[size].iter().map(Curve::overheads).collect());
    let facts = overhead_facts(&sweep, &overheads);
    let mut table = Table::new("fig6", "Times without flow control", &["processes", "µs"]);
    for (size, curves) in sweep.sizes.iter().zip(&sweep.curves) {
        table.row([size.to_string(), format!("{:.2}", curves[0].reference.time())]);
    }
    let mut figures = sweep.figures("fig6", "overhead (%)", percent);
    let starts = sweep.credit_slots.iter().map(|credits| f64::from(MESSAGE_PACKETS + credits));
    let stable = STABLE.iter().filter(|(credits, _)| sweep.credit_slots.contains(credits));
    if let Some(larger) = figures.last_mut() {
        larger.series.push(Series::paper(
            "paper: starts to fall (no height given)",
            "",
            starts.map(|slots| (slots, 0.0)),
        ));
        let stable = stable.map(|(_, slots)| (f64::from(*slots), 0.0));
        larger.series.push(Series::paper("paper: stable from (no height given)", "", stable));
    }
    Ok(Findings { setup: sweep.setup, figures, tables: vec![table], facts })
}

fn overhead_facts(sweep: &Sweep, overheads: &[Vec<Vec<(u32, f64)>>; 2]) -> Vec<Fact> {
    let starts: Vec<u32> = sweep.credit_slots.iter().map(|credits| MESSAGE_PACKETS + credits).collect();
    let falls: Vec<Fall> = overheads[1].iter().zip(&starts).map(|(curve, &start)| Fall::of(curve, start)).collect();
    let slopes: Vec<String> =
        falls.iter().map(|fall| format!("{:.1} after {:.1}", fall.slopes.1, fall.slopes.0)).collect();
    let is_stable_as_published = STABLE.iter().all(|(credits, slots)| {
        let index = sweep.credit_slots.iter().position(|have| have == credits);
        index.is_none_or(|index| falls[index].stable == Some(*slots))
    });
    let of_both = |wanted: fn(u32) -> bool| [0, 1].map(|size| mean(&overheads[size].concat(), wanted));
    let (few, near_50) = (of_both(|slots| slots < 38), of_both(|slots| (48..=52).contains(&slots)));
    let shown = |values: [f64; 2]| {
        format!("{:.1} % with {}, {:.1} % with {}", values[0], sweep.sizes[0], values[1], sweep.sizes[1])
    };
    let start = Fact::tested(
        &format!(
            "The overhead of the larger job starts to fall at 37 data slots: 38–42 slots for 1–5 credit slots (from \
                 there on it is below all that it is from {PLATEAU} slots to there, and falls at least {STEEPER} times as fast)."
        ),
        falls.iter().zip(&starts).all(|(fall, &start)| fall.is_drop_at(start)),
        listed(starts.iter().copied().map(Some)),
        format!(
            "{}; percentage points per slot beyond and before: {}",
            listed(falls.iter().map(|fall| fall.leaves)),
            slopes.join(", ")
        ),
    );
    vec![
        reference_times(sweep),
        if sweep.is_full { start.perhaps_because(ONE_CREDIT_SLOT) } else { start.because(NO_EARLY_FALL) },
        huge_drop(sweep, &falls),
        Fact::tested(
            "It is stable from 57, 52, 50, 49 slots for 2–5 credit slots (eq. 5).",
            is_stable_as_published,
            "57 52 50 49",
            format!("{} for {:?} credit slots", listed(falls.iter().map(|fall| fall.stable)), sweep.credit_slots),
        )
        .because(NOT_STABLE),
        Fact::tested(
            "Overhead grows with the number of processes (mean under 38 slots).",
            few[1] > few[0],
            "grows",
            shown(few),
        )
        .because(SAME_SHARE),
        Fact::tested(
            "Close to 50 slots it is very similar for both sizes (means from 48 to 52, a fifth apart at most, and less than \
             half as many points as under 38).",
            apart(near_50) < 0.2 * near_50[1] && apart(near_50) < 0.5 * apart(few),
            "very similar",
            format!("{}; under 38 slots {}", shown(near_50), shown(few)),
        )
        .perhaps_because(
            "up to 106 processes a data packet costs its receiver the same, so in small jobs overhead hardly depends on their \
             size, with few slots or with 50.",
        ),
        best_for_both(sweep, overheads),
        enough_for_both(sweep, overheads),
    ]
}

/// The two times that the paper gives of this figure. The machine is calibrated by them.
fn reference_times(sweep: &Sweep) -> Fact {
    const STATEMENT: &str = "Without flow control the all-to-all takes 52,908.41 µs among 256 processes and 278,515.08 among 1024 \
        (within 5 %).";
    let paper = "52,908.41, 278,515.08 µs";
    if !sweep.is_full {
        return Fact::not_run(STATEMENT, paper, "These sizes are not run in the reduced forms.");
    }
    let times = [0, 1].map(|size| sweep.curves[size][0].reference.time());
    let near = |here: f64, paper: f64| (here / paper - 1.0).abs() < 0.05;
    Fact::tested(
        STATEMENT,
        near(times[0], 52_908.41) && near(times[1], 278_515.08),
        paper,
        format!("{:.2}, {:.2} µs", times[0], times[1]),
    )
    .implied(
        "The cost of a data packet is calibrated by these two times, without noise; what is more here is the noise.",
    )
}

/// The drop that the paper sees in its figure 6(b).
fn huge_drop(sweep: &Sweep, falls: &[Fall]) -> Fact {
    let each = falls.iter().zip(&sweep.credit_slots).map(|(fall, credits)| {
        let (before, beyond) = fall.drop;
        format!("{credits}: {before:.1} to {beyond:.1} %")
    });
    Fact::tested(
        &format!(
            "Between {} and {} slots there is a huge drop in the overhead of the larger job (to less than half, with every \
             number of credit slots).",
            DROP.0, DROP.1
        ),
        falls.iter().all(|fall| fall.drop.1 < fall.drop.0 / 2.0),
        "a huge drop",
        each.collect::<Vec<_>>().join(", "),
    )
    .perhaps_because(LATE_DROP)
}

/// A value at any number of slots: on the straight line between the points next to it.
fn between(values: &[(u32, f64)], slots: u32) -> f64 {
    let below = values.iter().rev().find(|(at, _)| *at <= slots).copied().unwrap_or_default();
    let above = values.iter().find(|(at, _)| *at >= slots).copied().unwrap_or(below);
    if above.0 == below.0 {
        return below.1;
    }
    below.1 + (above.1 - below.1) * f64::from(slots - below.0) / f64::from(above.0 - below.0)
}

/// P's conclusion on credit slots, of the larger job. Not all curves have the same points, and those that only some
/// have are where they differ most, so every number of slots counts once.
fn best_for_both(sweep: &Sweep, overheads: &[Vec<Vec<(u32, f64)>>; 2]) -> Fact {
    let mean = |curve: &[(u32, f64)]| {
        let each = (PLATEAU..=MOST_SLOTS).map(|slots| between(curve, slots));
        each.sum::<f64>() / f64::from(MOST_SLOTS - PLATEAU + 1)
    };
    let means: Vec<(u32, f64)> =
        sweep.credit_slots.iter().zip(&overheads[1]).map(|(credits, curve)| (*credits, mean(curve))).collect();
    let best = means.iter().min_by(|one, other| one.1.total_cmp(&other.1)).map_or(0, |best| best.0);
    let each: Vec<String> = means.iter().map(|(credits, mean)| format!("{credits}: {mean:.1} %")).collect();
    Fact::tested(
        &format!(
            "2 credit slots are best for the all-to-all (mean over all sizes from {PLATEAU} to {MOST_SLOTS} slots; between \
             points, on the straight line)."
        ),
        best == 2,
        "2",
        format!("{best} (means: {})", each.join(", ")),
    )
    .perhaps_because(
        "which is best depends on the sizes that are looked at. At full size 2 credit slots have the least overhead up to \
         41 slots (but from 37 to 39, where 1 has) and from 57 on; between 49 and 56 those with more have far less, because their sends no longer wait, as \
         table 2 says. The paper does not say which sizes it looks at.",
    )
}

/// P's conclusion on the mailbox: 58 slots, here the sizes next to it.
fn enough_for_both(sweep: &Sweep, overheads: &[Vec<Vec<(u32, f64)>>; 2]) -> Fact {
    let curve = sweep.credit_slots.iter().position(|credits| *credits == 2).unwrap_or(0);
    let found = overheads.each_ref().map(|of_size| at(&of_size[curve], NEXT_TO_58));
    Fact::tested(
        "With 2 credit slots 58 slots cost very little in both sizes (at most 3 % with 57, the limit of §7.5).",
        found.iter().all(|overhead| overhead.is_some_and(|overhead| overhead <= 3.0)),
        "very low overhead in all cases",
        found.iter().zip(sweep.sizes).filter_map(|(overhead, size)| Some(format!("{:.1} % with {size}", (*overhead)?)))
            .collect::<Vec<_>>()
            .join(", "),
    )
    .because(
        "What is left where nobody waits is work for control packets, which weighs less where data packets are dear: among \
         128 processes with data packets as dear as among 1024 (13 near peers, not 105; one seed) 4.5 % became 2.0 % with \
         64 slots.",
    )
}

/// What is run next to P's 58 slots: eq. 5's border with 2 credit slots.
const NEXT_TO_58: u32 = 57;

/// How far the two sizes lie apart.
fn apart(values: [f64; 2]) -> f64 {
    (values[0] - values[1]).abs()
}

/// Fig. 7.
pub(crate) fn delayed(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let sweep = Sweep::run(workshop)?;
    let delays: [Vec<Vec<(u32, f64)>>; 2] = [0, 1].map(|size| sweep.curves[size].iter().map(Curve::delays).collect());
    let pairs = delays[0].iter().flatten().zip(delays[1].iter().flatten());
    let most = pairs.map(|(small, large)| (small.1 - large.1).abs()).fold(0.0, f64::max);
    let starts: Vec<Option<u32>> = sweep.credit_slots.iter().map(|credits| Some(MESSAGE_PACKETS + credits)).collect();
    // A message in twenty finds its credits with 1 credit slot there, the smallest share of all.
    let first_below =
        |curve: &Vec<(u32, f64)>| curve.iter().find(|(_, delayed)| *delayed < 99.0).map(|(slots, _)| *slots);
    let found: [Vec<Option<u32>>; 2] = [0, 1].map(|size| delays[size].iter().map(first_below).collect());
    let none_from = |curve: &Vec<(u32, f64)>| {
        let last = curve.iter().rposition(|(_, delayed)| *delayed > 1.0);
        curve.get(last.map_or(0, |index| index + 1)).map(|(slots, _)| *slots)
    };
    let none: [Vec<Option<u32>>; 2] = [0, 1].map(|size| delays[size].iter().map(none_from).collect());
    let published = |credits: &u32| STABLE.iter().find(|(of, _)| of == credits).map(|(_, slots)| *slots);
    let expected: Vec<Option<u32>> = sweep.credit_slots.iter().map(published).collect();
    let both =
        |found: &[Vec<Option<u32>>; 2]| found.each_ref().map(|of_size| listed(of_size.iter().copied())).join("; ");
    let facts = vec![
        Fact::tested(
            "The share of delayed sends is alike for both sizes (nowhere 5 percentage points apart).",
            most < 5.0,
            "very similar",
            format!("at most {most:.1} points apart"),
        )
        .implied(DERIVED),
        Fact::tested(
            "Under 37 data slots every send is delayed, from 37 on some are not (more than 1 %), for both sizes.",
            found.iter().all(|found| *found == starts),
            format!("{} (of figure 6(b): there overhead starts to fall)", listed(starts.iter().copied())),
            both(&found),
        )
        .implied(DERIVED),
        Fact::tested(
            "Nothing is delayed (under 1 %) from the slots of table 2 on, and something with one slot less, for both \
             sizes; with 1 credit slot something always is.",
            none.iter().all(|none| *none == expected),
            listed(expected.iter().copied()),
            both(&none),
        )
        .implied(DERIVED),
    ];
    let figures = sweep.figures("fig7", "delayed sends (%)", |each, _| 100.0 * each.delayed);
    let setup = format!("{} {BY_CONSTRUCTION}", sweep.setup);
    Ok(Findings { setup, figures, tables: Vec::new(), facts })
}

/// Why no statement of figure 7 can fail.
const DERIVED: &str =
    "Derived: the credits that a pair begins with are drawn by eq. 1, so the shares are counts of it.";

/// What these statements can say and what not.
const BY_CONSTRUCTION: &str = "The credits that a pair begins with follow from the thresholds of eq. 1, and so does whether a \
    message finds its own, if nothing but its pair's credits decides: then shares are counts, alike for every size of the job, \
    and what is tested is that nothing else delays a send. A check without that beginning: 30 all-to-alls of 2044 bytes after \
    10, from the start of a program, among 128 processes (two seeds), have 90, 37, 13 and 0 % of their sends wait with 39, 48, \
    54 and 57 slots; begun as here it is 92, 38, 11 and 0 %.";
