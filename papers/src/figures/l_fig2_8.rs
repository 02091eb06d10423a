//! L fig. 2 to 8: latency, and the bandwidth of a window of messages before an answer.

use tidegate_flow::SchemeName;
use tidegate_sim::workload::point_to_point::Calls;
use tidegate_sim::workload::{Benchmark, Operation};
use tidegate_sim::{Measurement, SimulationError};

use super::l_flows::{Change, SCHEMES, apart, flow, series};
use crate::report::{Fact, Figure, Findings, Table};
use crate::run::case::{Case, Workload};
use crate::run::machine::Cluster;
use crate::runs::Runs;
use crate::workshop::Workshop;

/// What L calls comparable: its own measurements differ by so much from run to run (§6.3.1), in percent.
const COMPARABLE: f64 = 3.0;

/// The machine: L's cluster, a process on each node.
const CLUSTER: Cluster = Cluster::of_l(1);

/// What is said of all these figures' runs.
const SETUP: &str = "Two of the eight nodes of L's cluster, a process on each";

fn case(scheme: SchemeName, buffers: u32, operation: Operation, bytes: u64, repetitions: u32) -> Case {
    let benchmark = Benchmark { bytes, warm_up: repetitions / 5 + 1, repetitions, ..Benchmark::new(operation) };
    Case::on_cluster(CLUSTER, flow(scheme, buffers), Workload::Benchmark(benchmark))
}

/// Something that is changed to see what it decides, and whether a run has its first window only.
type Changed = (&'static str, Change, bool);

/// What is changed of figures 5 to 8.
fn changes() -> Vec<Changed> {
    let timer = |timer_us| Change { timer_us: Some(timer_us), ..Change::NONE };
    vec![
        ("nothing", Change::NONE, false),
        ("retry timer 0.01 ms instead of 0.64", timer(10), false),
        ("retry timer 0.08 ms", timer(80), false),
        ("retry timer 10.24 ms", timer(10_240), false),
        ("adapters without credits", Change { without_adapter_credits: true, ..Change::NONE }, false),
        ("receiving takes half as long", Change { receiving_percent: Some(50), ..Change::NONE }, false),
        ("receiving takes twice as long", Change { receiving_percent: Some(200), ..Change::NONE }, false),
        ("the first window only", Change::NONE, true),
    ]
}

/// A table of the bandwidth with windows that exceed 10 buffers when something is changed.
fn causes(workshop: &Workshop<'_>, bytes: u64, repetitions: u32) -> Result<Table, SimulationError> {
    const WINDOWS: [u32; 4] = [20, 40, 70, 100];
    let lines: Vec<(SchemeName, Calls)> =
        [Calls::Blocking, Calls::NonBlocking].iter().flat_map(|&calls| SCHEMES.map(|scheme| (scheme, calls))).collect();
    let (changes, mut cases) = (changes(), Vec::new());
    for &(_, change, is_first) in &changes {
        for &(scheme, calls) in &lines {
            for window in WINDOWS {
                let (warm_up, repetitions) = if is_first { (0, 1) } else { (repetitions / 5 + 1, repetitions) };
                let operation = Operation::Stream { window, calls };
                let benchmark = Benchmark { bytes, warm_up, repetitions, ..Benchmark::new(operation) };
                cases.push(change.case(CLUSTER, flow(scheme, 10), Workload::Benchmark(benchmark)));
            }
        }
    }
    let runs = workshop.run(&cases)?;
    let heads: Vec<String> = lines
        .iter()
        .map(|(scheme, calls)| {
            format!("{scheme}, {}", if *calls == Calls::Blocking { "blocking" } else { "non-blocking" })
        })
        .collect();
    let mut columns = vec!["changed"];
    columns.extend(heads.iter().map(String::as_str));
    let title = "Bandwidth (MB/s, mean of windows 20, 40, 70, 100) with 10 buffers: one thing changed at a time";
    let mut table = Table::new("causes", title, &columns);
    for ((what, ..), runs) in changes.iter().zip(runs.chunks(WINDOWS.len() * lines.len())) {
        let mean = |runs: &[Runs]| {
            runs.iter().map(|runs| runs.estimate(|run| rate(run, bytes)).mean()).sum::<f64>() / runs.len() as f64
        };
        let cells = runs.chunks(WINDOWS.len()).map(|runs| format!("{:.2}", mean(runs)));
        table.row(std::iter::once((*what).to_owned()).chain(cells));
    }
    Ok(table)
}

/// The runs of all schemes, each over all of `xs`.
fn measure(
    workshop: &Workshop<'_>,
    xs: &[u32],
    case: impl Fn(SchemeName, u32) -> Case,
) -> Result<Vec<Vec<Runs>>, SimulationError> {
    let cases: Vec<Case> = SCHEMES
        .iter()
        .flat_map(|&scheme| xs.iter().map(move |&x| (scheme, x)))
        .map(|(scheme, x)| case(scheme, x))
        .collect();
    let runs = workshop.run(&cases)?;
    Ok(runs.chunks(xs.len()).map(<[Runs]>::to_vec).collect())
}

/// Fig. 2.
pub(crate) fn latency(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let sizes =
        workshop.scale.pick(vec![4, 16, 64, 256, 512, 1024, 2048, 4096], vec![4, 256, 2048, 4096], vec![4, 2048]);
    let repetitions = workshop.scale.pick(1000, 100, 50);
    let runs =
        measure(workshop, &sizes, |scheme, bytes| case(scheme, 100, Operation::Pingpong, bytes.into(), repetitions))?;
    let worst = (0..sizes.len()).map(|at| apart(runs.iter().map(|of| of[at].time()))).fold(0.0, f64::max);
    let first: Vec<f64> = runs.iter().map(|of| of[0].time()).collect();
    let xs: Vec<f64> = sizes.iter().map(|&size| f64::from(size)).collect();
    let curves = SCHEMES.iter().zip(&runs).map(|(&scheme, runs)| series(scheme, &xs, runs, |run| run.time));
    let figure = Figure {
        name: "fig2".to_owned(),
        title: "MPI latency, 100 buffers per connection".to_owned(),
        x_axis: "message size (bytes)".to_owned(),
        y_axis: "one way (µs)".to_owned(),
        series: curves.collect(),
        ..Figure::default()
    };
    let facts = vec![
        Fact::tested(
            "All three schemes perform comparably, at every size (within 3 %, L's own fluctuation).",
            worst <= COMPARABLE,
            "comparably",
            format!("at most {worst:.2} % apart"),
        ),
        Fact::tested(
            "The hardware's scheme has the least overhead, and the difference is negligible (at 4 bytes; under 3 %).",
            first[0] <= first[1] && first[0] <= first[2] && apart(first.iter().copied()) < COMPARABLE,
            "least; negligible",
            format!("rnr {:.3} µs, preposted {:.3}, growing {:.3}", first[0], first[1], first[2]),
        )
        .implied("The book-keeping of credits costs what the machine's parameters say, which are assumed."),
    ];
    let setup = format!("{SETUP}: a message there and back, {repetitions} times; half of that is the latency.");
    Ok(Findings {
        setup,
        figures: vec![figure],
        tables: vec![residuals(workshop, CLUSTER, "L", (1000.0, 1067.0))?],
        facts,
    })
}

/// What the machine does beside what its paper and its hardware tell: the rates of a link and of a bus, in MB/s.
pub(crate) fn residuals(
    workshop: &Workshop<'_>,
    cluster: Cluster,
    paper: &str,
    (link, bus): (f64, f64),
) -> Result<Table, SimulationError> {
    const LARGE: u64 = 1 << 20;
    // The first two processes are to be on different nodes.
    let cluster = Cluster { processes_per_node: 1, ..cluster };
    let case = |operation, bytes, repetitions| {
        let benchmark = Benchmark { bytes, warm_up: 1, repetitions, ..Benchmark::new(operation) };
        Case::on_cluster(cluster, flow(SchemeName::Rnr, 100), Workload::Benchmark(benchmark))
    };
    let stream = Operation::Stream { window: 8, calls: Calls::NonBlocking };
    let cases = [case(Operation::Pingpong, 4, 100), case(stream, LARGE, 5), case(Operation::Pingping, LARGE, 10)];
    let runs = workshop.run(&cases)?;
    let one_way = runs[1].estimate(|run| rate(run, LARGE)).mean();
    let both_ways = runs[2].estimate(|run| 2.0 * rate(run, LARGE)).mean();
    let told = if paper == "L" { "not told" } else { "1.5–3.0 µs, InfiniBand in general" };
    let off = |rate: f64, most: f64| format!("{:+.1} %", 100.0 * (rate / most - 1.0));
    let latency = runs[0].time();
    let beyond =
        if paper == "L" { String::new() } else { format!("{:+.1} % of 3.0 µs", 100.0 * (latency / 3.0 - 1.0)) };
    let mut table = Table::new("residuals", "The machine beside what is told of it", &["", paper, "here", "residual"]);
    let row = |cells: [String; 4]| cells;
    table.row(row(["4 bytes, one way".to_owned(), told.to_owned(), format!("{latency:.2} µs"), beyond]));
    let limit = |what: &str, most: f64| format!("at most {most:.0} MB/s ({what})");
    table.row(row([
        "1 MiB, one way".to_owned(),
        limit("link", link),
        format!("{one_way:.0} MB/s"),
        off(one_way, link),
    ]));
    table.row(row([
        "1 MiB, both ways at once, together".to_owned(),
        limit("bus, both directions", bus),
        format!("{both_ways:.0} MB/s"),
        off(both_ways, bus),
    ]));
    Ok(table)
}

/// A bandwidth figure: its name, buffers, calls.
type Panel = (&'static str, u32, Calls);

/// The runs of a figure, by scheme and window.
struct Bandwidth {
    windows: Vec<u32>,
    runs: Vec<Vec<Runs>>,
}

impl Bandwidth {
    fn measure(workshop: &Workshop<'_>, panel: Panel, bytes: u64, repetitions: u32) -> Result<Self, SimulationError> {
        let (_, buffers, calls) = panel;
        let all = vec![1, 2, 4, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100];
        let windows = workshop.scale.pick(all, vec![1, 4, 10, 15, 20, 40, 70, 100], vec![4, 10, 20, 60, 100]);
        let runs = measure(workshop, &windows, |scheme, window| {
            case(scheme, buffers, Operation::Stream { window, calls }, bytes, repetitions)
        })?;
        Ok(Bandwidth { windows, runs })
    }

    /// The mean over the windows that are wanted of a scheme's bandwidth, in megabytes per second.
    fn mean(&self, scheme: usize, bytes: u64, wanted: impl Fn(u32) -> bool) -> f64 {
        let each = self.windows.iter().zip(&self.runs[scheme]).filter(|(window, _)| wanted(**window));
        let rates: Vec<f64> = each.map(|(_, runs)| runs.estimate(|run| rate(run, bytes)).mean()).collect();
        rates.iter().sum::<f64>() / rates.len().max(1) as f64
    }

    /// The most that the schemes are apart at any window, in percent.
    fn apart(&self) -> f64 {
        let at = |at: usize| apart(self.runs.iter().map(|runs| runs[at].time()));
        (0..self.windows.len()).map(at).fold(0.0, f64::max)
    }

    fn figure(&self, panel: Panel, bytes: u64) -> Figure {
        let (name, buffers, calls) = panel;
        let xs: Vec<f64> = self.windows.iter().map(|&window| f64::from(window)).collect();
        let curve = |(&scheme, runs): (&SchemeName, &Vec<Runs>)| series(scheme, &xs, runs, |run| rate(run, bytes));
        let calls = if calls == Calls::Blocking { "blocking" } else { "non-blocking" };
        Figure {
            name: name.to_owned(),
            title: format!("MPI bandwidth, {bytes} bytes, {buffers} buffers per connection, {calls}"),
            x_axis: "window (messages before an answer)".to_owned(),
            y_axis: "bandwidth (MB/s)".to_owned(),
            series: SCHEMES.iter().zip(&self.runs).map(curve).collect(),
            ..Figure::default()
        }
    }
}

/// Bytes per microsecond, which are megabytes per second.
fn rate(run: &Measurement, bytes: u64) -> f64 {
    bytes as f64 / run.time
}

const SMALL: u64 = 4;
const SMALL_PANELS: [Panel; 4] = [
    ("fig3", 100, Calls::Blocking),
    ("fig4", 100, Calls::NonBlocking),
    ("fig5", 10, Calls::Blocking),
    ("fig6", 10, Calls::NonBlocking),
];

const COST_OF_CREDITS: &str = "The credit messages, one for every five messages one way, cost the schemes with credits that \
    much here. Tested: with 0.8 µs instead of 0.4 for making or understanding one the schemes are 9.4 and 9.9 % apart (reduced \
    size, one seed). L does not tell what one costs.";

const TIMER_DECIDES: &str = "Tested: the retry timer, which L does not state, decides (table of causes). With 0.08 ms the order is L's, \
    growing, rnr, preposted, with both kinds of calls; with 0.01 ms rnr is best of all; with 0.64 ms each refusal costs rnr as \
    much as some hundred messages.";

const WHILE_IT_GROWS: &str = "Tested: in the first window only, while connections grow and messages go by rendezvous, blocking calls \
    are better, as L says (table of causes). Once there are credits, all that is left is that the receiver of blocking \
    calls handles one message at a time.";

const STARTS_ARE_REFUSED: &str = "More starts of rendezvous than buffers are under way under rnr then, and are refused. Tested: with a \
    retry timer of 0.08 ms or less rnr lies between the two others, or beside the better of them (table of causes); L does not \
    state its timer.";

/// Fig. 3 to 6.
pub(crate) fn small_messages(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let repetitions = workshop.scale.pick(200, 40, 20);
    let measured: Result<Vec<_>, _> =
        SMALL_PANELS.iter().map(|&panel| Bandwidth::measure(workshop, panel, SMALL, repetitions)).collect();
    let measured = measured?;
    let enough = [&measured[0], &measured[1]].map(Bandwidth::apart);
    let beyond = |panel: usize| [0, 1, 2].map(|scheme| measured[panel].mean(scheme, SMALL, |window| window > 10));
    let within = |panel: usize| [0, 1, 2].map(|scheme| measured[panel].mean(scheme, SMALL, |window| window <= 10));
    let (blocking, non_blocking) = (beyond(2), beyond(3));
    let said = |[rnr, preposted, growing]: [f64; 3]| {
        format!("growing {growing:.2} MB/s, rnr {rnr:.2}, preposted {preposted:.2}")
    };
    let best = |[rnr, preposted, growing]: [f64; 3]| growing > rnr && growing > preposted;
    let worst = |[rnr, preposted, growing]: [f64; 3]| preposted < rnr && preposted < growing;
    let both = format!("blocking: {}; non-blocking: {}", said(blocking), said(non_blocking));
    let facts = vec![
        Fact::tested(
            "With 100 buffers all three schemes perform comparably, with both kinds of calls (at every window within 3 %).",
            enough.iter().all(|apart| *apart <= COMPARABLE),
            "comparably",
            format!("at most {:.1} % apart with blocking calls, {:.1} % with others", enough[0], enough[1]),
        )
        .because(COST_OF_CREDITS),
        Fact::tested(
            "With 10 buffers, windows up to 10 are no different (means within 3 %).",
            apart(within(2)) <= COMPARABLE && apart(within(3)) <= COMPARABLE,
            "the schemes part when the window exceeds the buffers",
            format!("{:.1} % apart with blocking calls, {:.1} % with others", apart(within(2)), apart(within(3))),
        ),
        Fact::tested(
            "When the window exceeds 10 buffers growing is the best, with both kinds of calls (means over these windows).",
            best(blocking) && best(non_blocking),
            "growing best",
            both.clone(),
        ),
        Fact::tested(
            "Preposted is the worst, with both kinds of calls.",
            worst(blocking) && worst(non_blocking),
            "preposted worst",
            both,
        )
        .because(TIMER_DECIDES),
        Fact::tested(
            "Under preposted blocking calls achieve more than others, when the window exceeds 10 buffers.",
            blocking[1] > non_blocking[1],
            "blocking better",
            format!("{:.2} MB/s with blocking calls, {:.2} with others", blocking[1], non_blocking[1]),
        )
        .because(WHILE_IT_GROWS),
        Fact::tested(
            "Under growing, too.",
            blocking[2] > non_blocking[2],
            "blocking better",
            format!("{:.2} MB/s with blocking calls, {:.2} with others", blocking[2], non_blocking[2]),
        )
        .because(WHILE_IT_GROWS),
    ];
    let figures = measured.iter().zip(SMALL_PANELS).map(|(of, panel)| of.figure(panel, SMALL)).collect();
    let setup = format!(
        "{SETUP}: one sends a window of messages of 4 bytes, the other answers when it has all, {repetitions} times after \
         {} that do not count.",
        repetitions / 5 + 1
    );
    Ok(Findings { setup, figures, tables: vec![causes(workshop, SMALL, repetitions)?], facts })
}

const LARGE: u64 = 32 << 10;
const LARGE_PANELS: [Panel; 2] = [("fig7", 10, Calls::Blocking), ("fig8", 10, Calls::NonBlocking)];
/// "Much better", as a factor: halfway between nothing and what L's link could do beside one message at a time.
const MUCH_BETTER: f64 = 1.25;

/// Fig. 7 and 8.
pub(crate) fn large_messages(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let repetitions = workshop.scale.pick(50, 10, 5);
    let measured: Result<Vec<_>, _> =
        LARGE_PANELS.iter().map(|&panel| Bandwidth::measure(workshop, panel, LARGE, repetitions)).collect();
    let measured = measured?;
    let apart = [&measured[0], &measured[1]].map(Bandwidth::apart);
    let mean = |panel: usize| {
        (0..3).map(|scheme| measured[panel].mean(scheme, LARGE, |window| window >= 10)).sum::<f64>() / 3.0
    };
    let (blocking, non_blocking) = (mean(0), mean(1));
    let facts = vec![
        Fact::tested(
            "With 10 buffers all three schemes perform well with messages of 32 KiB (at every window within 3 %).",
            apart.iter().all(|apart| *apart <= COMPARABLE),
            "all three well",
            format!("at most {:.1} % apart with blocking calls, {:.1} % with others", apart[0], apart[1]),
        )
        .because(STARTS_ARE_REFUSED),
        Fact::tested(
            "Non-blocking calls perform much better than blocking ones (by at least a quarter, means over windows from 10 \
             on and the schemes).",
            non_blocking > MUCH_BETTER * blocking,
            "much better",
            format!("{non_blocking:.0} MB/s with non-blocking calls, {blocking:.0} with blocking ones"),
        ),
    ];
    let figures = measured.iter().zip(LARGE_PANELS).map(|(of, panel)| of.figure(panel, LARGE)).collect();
    let setup = format!("{SETUP}: as in figures 5 and 6, with messages of 32 KiB, {repetitions} times.");
    Ok(Findings { setup, figures, tables: vec![causes(workshop, LARGE, repetitions)?], facts })
}
