//! P fig. 24 to 26: Scatterv with a root that moves on, Reduce_scatter and Gatherv.

use tidegate_sim::workload::collective::{ReduceScatter, Scatter};
use tidegate_sim::workload::{Benchmark, Operation};
use tidegate_sim::{FlowChoice, SimulationError};

use super::p_fig6_7::{meshes, processes, times};
use crate::curve::{Curve, Line, at, figure, measure};
use crate::report::{AsPoint, Fact, Figure, Findings, Series, Table};
use crate::run::case::{Case, capped, dynamic_credits, piggybacked, static_credits};
use crate::runs::Runs;
use crate::workshop::Workshop;

const SLOTS: [u32; 4] = [8, 16, 32, 64];

/// Where the curves of Reduce_scatter begin, and where that with a cap is.
const REDUCE_SCATTER: usize = 2;
const GATHERV: usize = 4;
const CAPPED: usize = 6;
/// Where Scatter is, whose reference is compared with Scatterv's.
const SCATTER: usize = 7;

/// Fig. 26: most data slots of a sender, which is what `static` gives it with 64 slots of which 2 are for credits.
const CAP: u32 = 62;

/// The mailbox of the runs with repetitions per root.
const REPEATED_SLOTS: u32 = 16;

fn line(mesh: &[u16], name: String, flow: fn(u32, u32) -> FlowChoice, benchmark: Benchmark, slots: &[u32]) -> Line {
    Line {
        name,
        case: Case::new(mesh, FlowChoice::Unlimited, benchmark),
        flow: Box::new(move |slots| piggybacked(flow(slots, 2))),
        slots: slots.to_vec(),
    }
}

pub(crate) fn run(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let [_, mesh] = meshes(workshop.scale);
    let repetitions = workshop.scale.pick(40, 16, 8);
    let operations = [
        ("Scatterv", Operation::Scatterv),
        ("Reduce_scatter", Operation::ReduceScatter(ReduceScatter::RecursiveHalving)),
        ("Gatherv", Operation::Gatherv),
    ];
    let mut lines = Vec::new();
    for (name, operation) in operations {
        let benchmark = Benchmark { repetitions, ..Benchmark::new(operation) };
        lines.push(line(&mesh, format!("{name}, static"), static_credits, benchmark, &SLOTS));
        lines.push(line(&mesh, format!("{name}, dynamic"), dynamic_credits, benchmark, &SLOTS));
    }
    let benchmark = Benchmark { repetitions, ..Benchmark::new(operations[1].1) };
    let with_cap = |slots, credit_slots| capped(dynamic_credits(slots, credit_slots), CAP);
    lines.push(line(&mesh, "Reduce_scatter, dynamic with a cap".to_owned(), with_cap, benchmark, &SLOTS));
    let scatter = Benchmark { repetitions, ..Benchmark::new(Operation::Scatter(Scatter::Tree { radix: 2 })) };
    lines.push(line(&mesh, "Scatter".to_owned(), static_credits, scatter, &[]));
    let per_root: Vec<u32> = workshop.scale.pick(vec![1, 2, 5, 10, 20, 50], vec![1, 2, 5, 10, 20], vec![1, 10]);
    for &repetitions_per_root in &per_root {
        // As many roots whatever the number: with one repetition each it is the test above, as in the paper.
        let repetitions = repetitions * repetitions_per_root;
        let benchmark = Benchmark { repetitions, repetitions_per_root, ..Benchmark::new(Operation::Scatterv) };
        lines.push(line(&mesh, "static".to_owned(), static_credits, benchmark, &[REPEATED_SLOTS]));
        lines.push(line(&mesh, "dynamic".to_owned(), dynamic_credits, benchmark, &[REPEATED_SLOTS]));
    }
    let mut curves = measure(workshop, lines)?;
    let repeated = curves.split_off(SCATTER + 1);
    let setup = format!(
        "{} processes on a {} mesh (the paper: 1024 on 4×4×4), 2 KiB, 2 credit slots, piggybacking; {repetitions} \
         repetitions after one to warm up, the root moving on after each: so roots are the first {repetitions} ranks, of the \
         first {} nodes (the Intel benchmarks do 1000 repetitions, with almost all as roots). Scatters of roots that follow each other \
         overlap, so Scatterv's time per operation falls with the number of roots: {MORE_ROOTS} Then Scatterv with {per_root:?} \
         repetitions per root, by as many roots, and {REPEATED_SLOTS} slots; with one it is the same runs. Reduce_scatter divides \
         its 2 KiB among all processes, by recursive halving, which later versions of Open MPI choose for up to 12 KiB; what \
         the paper's version did is not known, and the statements on it depend on that. It was run with {CAP} data slots per \
         sender at the most, too.",
        processes(&mesh),
        times(&mesh),
        repetitions.div_ceil(16),
    );
    let figures = vec![by_repetitions(&per_root, &repeated)];
    Ok(Findings {
        setup,
        figures,
        tables: vec![table(&operations.map(|each| each.0), &curves), cap_table(&curves)],
        facts: facts(&curves, &repeated),
    })
}

/// Fig. 24.
fn table(names: &[&str], curves: &[Curve]) -> Table {
    let columns = ["benchmark", "slots", "reference, µs", "static, µs", "dynamic, µs"];
    let mut table = Table::new("fig24", "Time per operation", &columns);
    for (name, pair) in names.iter().zip(curves.chunks(2)) {
        for (index, slots) in SLOTS.iter().enumerate() {
            let times = [&pair[0].reference, &pair[0].measured[index], &pair[1].measured[index]];
            let times = times.map(|each| format!("{:.1}", each.time()));
            table.row([(*name).to_owned(), slots.to_string()].into_iter().chain(times));
        }
    }
    table
}

/// Fig. 26: Reduce_scatter under `dynamic`, without and with the cap.
fn cap_table(curves: &[Curve]) -> Table {
    let columns = ["slots", "reference, µs", "static, µs", "dynamic, µs", "dynamic with the cap, µs"];
    let title = format!("Reduce_scatter, with at most {CAP} data slots per sender: time per operation");
    let mut table = Table::new("fig26", &title, &columns);
    let [uncapped, capped] = [&curves[REDUCE_SCATTER + 1], &curves[CAPPED]];
    for (index, slots) in SLOTS.iter().enumerate() {
        let fixed = &curves[REDUCE_SCATTER];
        let times = [&fixed.reference, &fixed.measured[index], &uncapped.measured[index], &capped.measured[index]];
        table.row(std::iter::once(slots.to_string()).chain(times.map(|each| format!("{:.1}", each.time()))));
    }
    table
}

/// Fig. 25.
fn by_repetitions(per_root: &[u32], repeated: &[Curve]) -> Figure {
    let points = |of: fn(&[Curve]) -> &Runs| {
        let pairs = per_root.iter().zip(repeated.chunks(2));
        pairs.map(move |(&count, pair)| of(pair).estimate(|run| run.time).point(f64::from(count)))
    };
    let series = vec![
        Series::of("reference", points(|pair| &pair[0].reference)),
        Series { piggyback: true, ..Series::of("static", points(|pair| &pair[0].measured[0])) },
        Series { piggyback: true, ..Series::of("dynamic", points(|pair| &pair[1].measured[0])) },
    ];
    let title = format!("Scatterv, {REPEATED_SLOTS} slots per process");
    Figure { x_axis: "repetitions per root".to_owned(), ..figure("fig25", &title, "time per operation (µs)", series) }
}

/// Why Gatherv is slower.
const SENDERS_LEAVE: &str = "Measured as the Intel benchmarks do, a mean over processes: without flow control senders leave at \
    once, long before the root has their messages, and with it they wait for credits, so the reference looks quick. \
    Tested among 128 processes with data packets as dear as among 1024 (one seed; time until the last process is done): \
    8, 16, 32 and 64 slots cost 130, 100, 15 and 2 % under dynamic, 205, 110, 4 and 1 % under static. So most of the \
    difference is the measure; but nothing makes flow control faster than none in it here. The paper found no reason either.";

/// What is known of the number of roots.
const MORE_ROOTS: &str = "among 1024 processes without flow control it is 3,290 µs \
    with 8 roots, 1,942 with 16 and 1,577 with 40 (three seeds).";

/// Why Reduce_scatter does not behave as in the paper.
const OTHER_FORM: &str = "the paper could not run the reference for want of memory, so messages must pile up in its Reduce_scatter as \
    they do in neither of the forms that were tried. By recursive halving a process writes to log₂ n others: few slots cost time, more do not. In \
    pairs everybody sends one packet to each other and no send ever waits (1024 processes, three seeds, 16 repetitions: static takes \
    31.8 ms with every number of slots, dynamic 34.0, 32.8, 32.8 and 33.0 with 8, 16, 32 and 64, with the cap the same). In pairs with 2 KiB \
    for each process sends wait (128 processes with data packets as dear as among 1024, one seed): static takes 75.3, 78.0, 77.7 \
    and 73.8 ms, dynamic 79.3, 78.4, 78.7 and 74.4, with the cap 81.6, 78.5, 79.3 and 73.6. A mailbox costs the same here however \
    far its ends lie apart, which is what the paper suspects.";

fn facts(curves: &[Curve], repeated: &[Curve]) -> Vec<Fact> {
    let mut facts = moving_root(curves).to_vec();
    facts.extend(many_repetitions(repeated));
    facts.extend(reduce_scatter(curves));
    facts.push(gatherv(curves));
    facts
}

fn shown(values: [f64; 2]) -> String {
    format!("static {:.1} %, dynamic {:.1} %", values[0], values[1])
}

/// What P says of Scatterv in figure 24.
fn moving_root(curves: &[Curve]) -> [Fact; 3] {
    let few = [&curves[0], &curves[1]].map(|curve| {
        let below = curve.overheads().into_iter().filter(|(slots, _)| *slots < 64).map(|(_, overhead)| overhead);
        below.fold(f64::INFINITY, f64::min)
    });
    let with_64 = [&curves[0], &curves[1]].map(|curve| at(&curve.overheads(), 64).unwrap_or(f64::MAX));
    let references = [&curves[0], &curves[SCATTER]].map(|curve| curve.reference.time());
    [
        Fact::tested(
            "Scatterv with a root that moves on: both schemes are poor at every size below 64 slots (the least overhead, above 5 %).",
            few.iter().all(|overhead| *overhead > 5.0),
            "very inefficient",
            shown(few),
        )
        .perhaps_because(
            "the roots' sends overlap: while one root waits for the credits of one receiver the others go on, and only \
             the root's wait is on the way of anybody.",
        ),
        Fact::tested(
            "With 64 slots, 4 GB in all, neither is (under 5 %).",
            with_64.iter().all(|overhead| *overhead < 5.0),
            "inefficient when smaller than 4 GB",
            shown(with_64),
        )
        .perhaps_because(
            "under dynamic a receiver has to notice a new root before it grants it more than the least, and by then the root \
             has moved on.",
        ),
        Fact::tested(
            "Without flow control Scatterv is slower than Scatter, which is optimised.",
            references[0] > references[1],
            "evident in the reference times",
            format!("{:.1} µs, Scatter {:.1}", references[0], references[1]),
        )
        .perhaps_because(
            "scatters of roots that follow each other overlap here: with many repetitions per root, where they do not, Scatterv \
             takes far longer than Scatter (figure 25).",
        ),
    ]
}

/// What P says of figure 25.
fn many_repetitions(repeated: &[Curve]) -> [Fact; 3] {
    let overhead = |pair: &[Curve]| [0, 1].map(|scheme| pair[scheme].measured[0].overhead(&pair[scheme].reference));
    let (once, often) = match (repeated.chunks(2).next(), repeated.chunks(2).last()) {
        (Some(first), Some(last)) => (overhead(first), overhead(last)),
        _ => ([0.0; 2], [0.0; 2]),
    };
    let times = |pair: &[Curve]| [&pair[0].reference, &pair[0].measured[0]].map(Runs::time);
    let [first, last] = [repeated.chunks(2).next(), repeated.chunks(2).last()].map(|pair| pair.map_or([1.0; 2], times));
    [
        Fact::tested(
            "With many repetitions per root dynamic comes close to the reference (under 5 %, from more).",
            often[1] < 5.0 && often[1] < once[1],
            "close to the reference",
            format!("{:.1} % with one, {:.1} % with many", once[1], often[1]),
        )
        .perhaps_because(
            "a root has one message for each receiver at a time: a receiver sees too few packets of it to call it \
             active.",
        ),
        Fact::tested(
            "With many repetitions dynamic has less overhead than static.",
            often[1] < often[0],
            "lower",
            shown(often),
        )
        .perhaps_because(
            "a root has one message for each receiver at a time: a receiver sees too few packets of it to call it \
             active.",
        ),
        Fact::tested(
            "With many repetitions the reference and static take far longer per operation than with one (at least twice as long).",
            last.iter().zip(first).all(|(last, first)| *last > 2.0 * first),
            "an important increment",
            format!("reference {:.1} to {:.1} µs, static {:.1} to {:.1}", first[0], last[0], first[1], last[1]),
        )
        .perhaps_because("few roots follow each other, so that little overlaps with one repetition either."),
    ]
}

/// What P says of Reduce_scatter: figures 24 and 26.
fn reduce_scatter(curves: &[Curve]) -> [Fact; 3] {
    let mean_time = |curve: usize| curves[curve].measured.iter().map(Runs::time).sum::<f64>() / SLOTS.len() as f64;
    let [fixed, without, with] = [REDUCE_SCATTER, REDUCE_SCATTER + 1, CAPPED].map(mean_time);
    let scattered: Vec<f64> = curves[REDUCE_SCATTER].measured.iter().map(Runs::time).collect();
    let at_32 = SLOTS.iter().position(|&slots| slots == 32).map_or(f64::MAX, |index| scattered[index]);
    let others = SLOTS.iter().zip(&scattered).filter(|(slots, _)| **slots != 32);
    let each = scattered.iter().zip(SLOTS).map(|(time, slots)| format!("{slots}: {time:.1} µs"));
    [
        Fact::tested(
            "Reduce_scatter is faster under static than under dynamic (mean over the sizes).",
            fixed < without,
            "static presents better results",
            format!("static {fixed:.1} µs, dynamic {without:.1}"),
        )
        .perhaps_because(OTHER_FORM),
        Fact::tested(
            "Under static it is fastest with 32 slots.",
            others.clone().all(|(_, time)| at_32 < *time),
            "32 slots (2 GB)",
            each.collect::<Vec<_>>().join(", "),
        )
        .perhaps_because("the form of the operation, as above."),
        Fact::tested(
            "Under dynamic it gains from a cap of 62 slots per sender (fig. 26; mean over the sizes).",
            with < without,
            "better with the cap",
            format!("{with:.1} µs with it, {without:.1} µs without"),
        )
        .perhaps_because("the form of the operation, as above."),
    ]
}

/// What surprised the paper's authors too.
fn gatherv(curves: &[Curve]) -> Fact {
    let gatherv: Vec<f64> = curves[GATHERV + 1].overheads().into_iter().map(|(_, overhead)| overhead).collect();
    let most = |values: &[f64]| values.iter().copied().fold(f64::MIN, f64::max);
    let least = |values: &[f64]| values.iter().copied().fold(f64::MAX, f64::min);
    Fact::tested(
        "Gatherv under dynamic is faster than the reference at every size (fig. 24).",
        most(&gatherv) < 0.0,
        "faster",
        format!("{:.1} to {:.1} % slower", least(&gatherv), most(&gatherv)),
    )
    .because(SENDERS_LEAVE)
}
