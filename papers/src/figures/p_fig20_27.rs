//! P fig. 20 to 23 and 27: the Intel MPI Benchmarks under both schemes with 8, 16, 32 and 64 slots.

use tidegate_sim::workload::collective::{
    Allgather, Allreduce, Alltoall, Alltoallv, Barrier, Broadcast, Gather, Reduce, Scatter,
};
use tidegate_sim::workload::{Benchmark, Operation};
use tidegate_sim::{Estimate, FlowChoice, Measurement, SimulationError};

use super::p_fig6_7::{meshes, processes, times as shape};
use crate::curve::{Curve, Line, figure, measure};
use crate::report::{AsPoint, Fact, Figure, Findings, Series, Table};
use crate::run::case::{Case, dynamic_credits, piggybacked, static_credits};
use crate::workshop::Workshop;

/// Mailboxes of the four figures, in slots per process.
const SLOTS: [u32; 4] = [8, 16, 32, 64];

const BINOMIAL: u32 = 2;

/// The mean overhead that is asked for, in percent (P §7.5).
pub(crate) const MOST: f64 = 3.0;

const LOCALIZED: &str = "localized";
const BALANCED: &str = "balanced";
const BY_RMA: &str = "by RMA";
const ALL: [&str; 3] = [LOCALIZED, BALANCED, BY_RMA];

/// The paper's three kinds of communication, and what belongs to them. Collectives as MPI libraries do them with 2 KiB.
const GROUPS: [(&str, &[(&str, Operation)]); 3] = [
    (
        LOCALIZED,
        &[
            ("PingPong", Operation::Pingpong),
            ("PingPing", Operation::Pingping),
            ("Sendrecv", Operation::Sendrecv),
            ("Exchange", Operation::Exchange),
            ("Allreduce", Operation::Allreduce(Allreduce::RecursiveDoubling)),
            ("Reduce", Operation::Reduce(Reduce::Segmented { radix: BINOMIAL, segment: 1024 })),
            ("Bcast", Operation::Broadcast(Broadcast::SplitBinary { segment: 1024 })),
            ("Barrier", Operation::Barrier(Barrier::RecursiveDoubling)),
        ],
    ),
    (
        BALANCED,
        &[("Alltoall", Operation::Alltoall(Alltoall::Posted)), ("Alltoallv", Operation::Alltoallv(Alltoallv::Posted))],
    ),
    (
        BY_RMA,
        &[
            ("Allgather", Operation::Allgather(Allgather::NeighbourExchange)),
            ("Allgatherv", Operation::Allgatherv(Allgather::NeighbourExchange)),
            ("Gather", Operation::Gather(Gather::Tree { radix: BINOMIAL })),
            ("Scatter", Operation::Scatter(Scatter::Tree { radix: BINOMIAL })),
        ],
    ),
];

/// A benchmark under both schemes.
struct Row {
    group: &'static str,
    name: &'static str,
    fixed: Curve,
    moving: Curve,
}

fn rows(workshop: &Workshop<'_>) -> Result<(Vec<Row>, String), SimulationError> {
    let [_, mesh] = meshes(workshop.scale);
    let repetitions = workshop.scale.pick(40, 100, 10);
    // The root moves on after each: an edge of a tree is used once in many repetitions.
    let often = workshop.scale.pick(500, 200, 10);
    // Operations with n − 1 blocks per process cost as much as hundreds of the others.
    let few = workshop.scale.pick(1, 2, 1);
    let learning = workshop.scale.pick(1, 4, 1);
    let all = GROUPS
        .iter()
        .flat_map(|(group, members)| members.iter().map(move |&(name, operation)| (*group, name, operation)));
    let line = |scheme: &str, flow: fn(u32, u32) -> FlowChoice, operation: Operation| {
        let heavy = matches!(
            operation,
            Operation::Alltoall(_) | Operation::Alltoallv(_) | Operation::Allgather(_) | Operation::Allgatherv(_)
        );
        let is_tree = matches!(operation, Operation::Broadcast(_) | Operation::Reduce(_) | Operation::Barrier(_));
        let repetitions = if is_tree { often } else { repetitions };
        let (warm_up, repetitions) = if heavy { (learning, few) } else { (repetitions / 2, repetitions) };
        let benchmark = Benchmark { warm_up, repetitions, ..Benchmark::new(operation) };
        Line {
            name: scheme.to_owned(),
            case: Case::new(&mesh, FlowChoice::Unlimited, benchmark),
            flow: Box::new(move |slots| piggybacked(flow(slots, 2))),
            slots: SLOTS.to_vec(),
        }
    };
    let lines = all.clone().flat_map(|(_, _, operation)| {
        [line("static", static_credits, operation), line("dynamic", dynamic_credits, operation)]
    });
    let mut curves = measure(workshop, lines.collect())?.into_iter();
    let mut rows = Vec::new();
    for (group, name, _) in all {
        if let (Some(fixed), Some(moving)) = (curves.next(), curves.next()) {
            rows.push(Row { group, name, fixed, moving });
        }
    }
    let setup = format!(
        "{} processes on a {} mesh (the paper: 1024 on 4×4×4), 2 KiB, 2 credit slots, piggybacking, {repetitions} \
         repetitions after half as many to warm up ({often} of Reduce, Bcast and Barrier; {few} after {learning} of \
         Alltoall, Alltoallv, Allgather and Allgatherv; the Intel benchmarks do 1000), the root moving on after each. Collectives in the forms \
         that Open MPI 1.4 chooses at this size (the paper's library; it does not say which version): recursive \
         doubling in Allreduce and Barrier, segments of 1 KiB up a binomial tree in Reduce and down a split binary one \
         in Bcast, exchange with neighbours in Allgather(v), in Alltoall all receives posted, then all sends \
         started. Alltoallv is not Open MPI's choice, which is pairs: it is done as Alltoall, because with pairs it takes 0.96 s \
         without any flow control, and figure 23's axis ends at 0.4. {PAIRS} Gather and Scatter take binomial \
         trees: the paper says that Scatter is optimised. With equal counts Alltoallv is Alltoall and Allgatherv Allgather here: \
         in means each of the two counts twice, as the paper has all four.",
        processes(&mesh),
        shape(&mesh)
    );
    Ok((rows, setup))
}

/// What becomes of the headline with Open MPI's own Alltoallv.
const PAIRS: &str = "With pairs (tried at full size, one seed) \
    it takes 963 ms, and static costs −12.5, −8.7, −7.8 and 0.4 % of that with 8, 16, 32 and 64 slots, dynamic −6.7, −6.4, −4.7 \
    and 0.5 %: few slots make it faster than no flow control, of which the paper says nothing. With these in its place the means of \
    figure 27 would be 18.9, 9.7, 3.7 and 1.8 % under static, 3.3, 1.8, 1.1 and 1.3 % under dynamic: 64 and 16 slots \
    again.";

/// The overhead with exactly so many slots, in percent.
fn overhead_at(curve: &Curve, slots: u32) -> Option<Estimate> {
    let all = curve.estimates(Measurement::overhead);
    all.into_iter().find(|(at, _)| *at == slots).map(|(_, overhead)| overhead)
}

/// Mean overheads of some groups with each seed, static and dynamic, in percent.
fn estimates(rows: &[Row], groups: &[&str], slots: u32) -> [Estimate; 2] {
    let wanted: Vec<&Row> = rows.iter().filter(|row| groups.contains(&row.group)).collect();
    let mean = |curve: fn(&Row) -> &Curve| {
        let all: Vec<Estimate> = wanted.iter().filter_map(|row| overhead_at(curve(row), slots)).collect();
        Estimate::mean_of(&all)
    };
    [mean(|row| &row.fixed), mean(|row| &row.moving)]
}

/// Their means over the seeds.
fn overheads(rows: &[Row], groups: &[&str], slots: u32) -> [f64; 2] {
    estimates(rows, groups, slots).map(|overhead| overhead.mean())
}

/// The overhead of each benchmark. The paper draws times, but those of microseconds and of milliseconds do not fit one
/// axis.
fn bars(number: u32, slots: u32, rows: &[Row]) -> Figure {
    let series = |name: &str, curve: fn(&Row) -> &Curve| {
        let overheads = rows.iter().filter_map(|row| overhead_at(curve(row), slots)).enumerate();
        let points = overheads.map(|(index, overhead)| overhead.point(index as f64));
        Series { piggyback: true, ..Series::of(name, points) }
    };
    let title = format!("Intel MPI Benchmarks, {slots} slots per process");
    let series = vec![series("static", |row| &row.fixed), series("dynamic", |row| &row.moving)];
    Figure {
        x_axis: String::new(),
        categories: rows.iter().map(|row| row.name.to_owned()).collect(),
        ..figure(&format!("fig{number}"), &title, "overhead (%)", series)
    }
}

/// Fig. 20 to 23.
pub(crate) fn times(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let (rows, setup) = rows(workshop)?;
    let (mut tables, mut figures) = (Vec::new(), Vec::new());
    for (number, slots) in (20..).zip(SLOTS.iter().rev()) {
        figures.push(bars(number, *slots, &rows));
        let title = format!("{slots} slots per process: time per operation");
        let columns = [
            "kind",
            "benchmark",
            "reference, µs",
            "static, µs",
            "dynamic, µs",
            "static, overhead %",
            "dynamic, overhead %",
        ];
        let mut table = Table::new(&format!("fig{number}"), &title, &columns);
        for row in &rows {
            let index = row.fixed.slots.iter().position(|at| at == slots).unwrap_or(0);
            let (reference, fixed, moving) =
                (&row.fixed.reference, &row.fixed.measured[index], &row.moving.measured[index]);
            let times = [reference.time(), fixed.time(), moving.time()].map(|time| format!("{time:.1}"));
            let overheads = [fixed, moving].map(|each| format!("{:.1}", each.overhead(reference)));
            table.row([row.group.to_owned(), row.name.to_owned()].into_iter().chain(times).chain(overheads));
        }
        tables.push(table);
    }
    let largest = overheads(&rows, &ALL, 64);
    let facts = vec![
        Fact::tested(
            "With 64 slots both are within 3 % of the reference (mean of all).",
            largest.iter().all(|overhead| *overhead <= MOST),
            "within 3 %",
            format!("static {:.1} %, dynamic {:.1} %", largest[0], largest[1]),
        )
        .implied("Follows from the slots that figure 27 finds enough."),
        mean_overheads_on_the_axes(&rows),
        times_on_the_axes(&rows, processes(&meshes(workshop.scale)[1])),
    ];
    Ok(Findings { setup, figures, tables, facts })
}

/// The axes of figure 23 survive in the paper's text, and nothing else of it: by group, where its axis of times, in µs,
/// and that of mean overheads, in %, end, and the marks before. Which axis is which group's is inferred from their
/// order, and that something reaches beyond the last mark but one from how axes are usually drawn.
const AXES: [(&str, [f64; 2], [f64; 2]); 3] = [
    (LOCALIZED, [1_200.0, 1_400.0], [45.0, 50.0]),
    (BALANCED, [350_000.0, 400_000.0], [30.0, 35.0]),
    (BY_RMA, [30_000.0, 35_000.0], [9.0, 10.0]),
];

/// How the statements on axes say that they are inferred.
const INFERRED: &str = "(inferred: only the axes are left of the figure, taken to belong to the groups in their order, and the \
    largest value to lie beyond the last mark but one)";

/// Mean overheads on these axes.
fn mean_overheads_on_the_axes(rows: &[Row]) -> Fact {
    let found = AXES.map(|(group, _, [least, most])| (group, least, most, overheads(rows, &[group], 8)));
    let each = |(group, _, _, [fixed, moving]): &(&str, f64, f64, [f64; 2])| {
        format!("{group}: static {fixed:.1} %, dynamic {moving:.1} %")
    };
    Fact::tested(
        &format!("With 8 slots the larger mean overhead of each group lies where the axes of figure 23 end {INFERRED}."),
        found.iter().all(|(_, least, most, [fixed, moving])| (*least..=*most).contains(&fixed.max(*moving))),
        "localized 45 to 50 %, balanced 30 to 35 %, by RMA 9 to 10 %",
        found.iter().map(each).collect::<Vec<_>>().join("; "),
    )
    .perhaps_because(
        "at full size all lie below: few slots cost less here than there. What goes by RMA needs credits for its requests and \
         ends only. The forms of Gather and Allgather are assumed, and so is that other processes go on while a send waits.",
    )
}

/// Times on these axes, which only a job of the paper's size can be compared with.
fn times_on_the_axes(rows: &[Row], processes: u32) -> Fact {
    let statement =
        format!("With 8 slots the longest time of each group lies where the axes of figure 23 end {INFERRED}.");
    let paper = "localized 1,200 to 1,400 µs, balanced 350,000 to 400,000 µs, by RMA 30,000 to 35,000 µs";
    if processes != 1024 {
        return Fact::not_run(&statement, paper, "The times of the paper are those of 1024 processes.");
    }
    let longest = |group: &str| {
        let of_group = rows.iter().filter(|row| row.group == group);
        let times = of_group.flat_map(|row| [&row.fixed, &row.moving].map(|curve| curve.measured[0].time()));
        times.fold(0.0, f64::max)
    };
    let found = AXES.map(|(group, [least, most], _)| (group, least, most, longest(group)));
    let each = |(group, _, _, time): &(&str, f64, f64, f64)| format!("{group} {time:.0} µs");
    Fact::tested(
        &statement,
        found.iter().all(|(_, least, most, time)| (*least..=*most).contains(time)),
        paper,
        found.iter().map(each).collect::<Vec<_>>().join(", "),
    )
    .perhaps_because(
        "here a send that waits for credits lets those to other processes go on; in the paper's machine the process may stop \
         and search its mailbox for credits. With sends that are waited for one after the other the all-to-all takes 447,000 µs \
         under static and 471,000 under dynamic with 8 slots (figures 16 and 17), where it is 315,600 and 339,900 with all \
         sends started: the axis ends between the two. But those runs are without piggybacking and begin amid a program, so they \
         do not isolate this cause. Of what goes by RMA nothing was tried.",
    )
}

/// The fewest slots with which the mean overhead of a scheme is at most [`MOST`].
fn enough(means: &[(u32, [f64; 2])], scheme: usize) -> Option<u32> {
    means.iter().find(|(_, mean)| mean[scheme] <= MOST).map(|(slots, _)| *slots)
}

/// The same of both schemes, static first, over all benchmarks, from the runs of figure 27.
pub(crate) fn enough_slots(workshop: &Workshop<'_>) -> Result<[Option<u32>; 2], SimulationError> {
    let (rows, _) = rows(workshop)?;
    let means = SLOTS.map(|slots| (slots, overheads(&rows, &ALL, slots)));
    Ok([enough(&means, 0), enough(&means, 1)])
}

/// Fig. 27.
pub(crate) fn mean_overhead(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let (rows, setup) = rows(workshop)?;
    let means = |groups: &[&str]| SLOTS.map(|slots| (slots, overheads(&rows, groups, slots)));
    let (all, others) = (means(&ALL), means(&[LOCALIZED, BY_RMA]));
    let (fixed, moving) = (enough(&all, 0), enough(&all, 1));
    let words = |slots: Option<u32>| slots.map_or("more than 64 slots".to_owned(), |slots| format!("{slots} slots"));
    let curve = |name: &str, scheme: usize, groups: &[&str], panel: &str| {
        let points = SLOTS.map(|slots| estimates(&rows, groups, slots)[scheme].point(f64::from(slots)));
        Series { piggyback: true, ..Series::of(name, points) }.in_panel(panel)
    };
    let panels = [("all", &ALL[..]), ("without Alltoall and Alltoallv", &[LOCALIZED, BY_RMA])];
    let series = panels
        .iter()
        .flat_map(|(panel, groups)| [curve("static", 0, groups, panel), curve("dynamic", 1, groups, panel)]);
    let quarter = match (fixed, moving) {
        (Some(fixed), Some(moving)) => moving * 4 <= fixed,
        (None, Some(moving)) => moving <= 16,
        _ => false,
    };
    let balanced = format!(
        "Two of the benchmarks decide it, Alltoall and Alltoallv, in which everybody is as active and no slots are idle: \
         both schemes are slow there with few slots, dynamic as slow or slower, as the paper says of the all-to-all (its \
         figures 15 and 17). Of the others' mean static needs {}, dynamic {}.",
        words(enough(&others, 0)),
        words(enough(&others, 1)),
    );
    let facts = vec![
        Fact::tested(
            "static needs 64 slots for a mean overhead of at most 3 %.",
            fixed == Some(64),
            "64 slots",
            words(fixed),
        )
        .perhaps_because(super::p_fig6_7::WOBBLE),
        Fact::tested("dynamic needs 16.", moving == Some(16), "16 slots", words(moving)).because(&balanced),
        Fact::tested(
            "dynamic needs at most a quarter of static's slots.",
            quarter,
            "a quarter",
            format!("dynamic {}, static {}", words(moving), words(fixed)),
        )
        .because(&balanced)
        .implied("Follows from the two statements above."),
    ];
    let figures =
        vec![figure("fig27", "Mean overhead over the Intel MPI Benchmarks", "overhead (%)", series.collect())];
    Ok(Findings { setup, figures, tables: vec![counted_once(&rows)], facts })
}

/// The means without what is the same run a second time.
fn counted_once(rows: &[Row]) -> Table {
    let columns = ["slots", "static, %", "dynamic, %", "static, each run once, %", "dynamic, each run once, %"];
    let title =
        "Mean overheads, and the same without Alltoallv and Allgatherv, which are the runs of Alltoall and Allgather";
    let mut table = Table::new("fig27", title, &columns);
    for slots in SLOTS {
        let mean = |curve: fn(&Row) -> &Curve, is_counted: fn(&Row) -> bool| {
            let counted = rows.iter().filter(|row| is_counted(row));
            let each: Vec<Estimate> = counted.filter_map(|row| overhead_at(curve(row), slots)).collect();
            format!("{:.2}", Estimate::mean_of(&each).mean())
        };
        let once = |row: &Row| !["Alltoallv", "Allgatherv"].contains(&row.name);
        let means = [
            mean(|row| &row.fixed, |_| true),
            mean(|row| &row.moving, |_| true),
            mean(|row| &row.fixed, once),
            mean(|row| &row.moving, once),
        ];
        table.row(std::iter::once(slots.to_string()).chain(means));
    }
    table
}
