//! Why the comparison comes out as it does: what is suspected is changed, and the numbers that move are printed.

use std::time::Duration;

use tidegate_flow::{Buffers, RETRY_TIMER_LEAST, SchemeName};
use tidegate_sim::workload::Benchmark;
use tidegate_sim::{Estimate, FlowChoice, SimulationError};

use super::compare_job::{Program, flow, time};
use crate::report::Table;
use crate::run::case::{Case, Workload};
use crate::run::machine::Cluster;
use crate::run::program::{NasRun, PatternRun};
use crate::runs::Runs;
use crate::workshop::Workshop;

/// More refusals than any message meets.
const NEVER: u32 = u32::MAX;

/// How many times as long programs are made, to see what `growing` takes once it has grown.
const LONGER: u32 = 4;

fn geometric_mean(each: impl Iterator<Item = f64>) -> f64 {
    let logarithms: Vec<f64> = each.map(f64::ln).collect();
    (logarithms.iter().sum::<f64>() / logarithms.len().max(1) as f64).exp()
}

/// The same program, so many times as long.
fn longer(workload: &Workload, times: u32) -> Workload {
    match workload {
        Workload::Benchmark(benchmark) => {
            Workload::Benchmark(Benchmark { repetitions: times * benchmark.repetitions, ..*benchmark })
        }
        Workload::Pattern(run) => Workload::Pattern(PatternRun { messages: times * run.messages, ..*run }),
        Workload::Nas(run) => {
            Workload::Nas(NasRun { iterations: run.iterations.map(|iterations| times * iterations), ..*run })
        }
        other => other.clone(),
    }
}

/// How many times what is timed happens, where a run's time is that of one of them.
fn repetitions(workload: &Workload) -> f64 {
    match workload {
        Workload::Benchmark(benchmark) => f64::from(benchmark.repetitions),
        _ => 1.0,
    }
}

/// Runs of all programs, in their order, each beside its reference.
struct Pairs(Vec<(Runs, Runs)>);

impl Pairs {
    /// Time beside that in mailboxes without end, program by program.
    fn slower(&self) -> impl Iterator<Item = f64> + '_ {
        self.0
            .iter()
            .map(|(runs, reference)| runs.paired(reference, |run, reference| time(run) / time(reference)).mean())
    }

    fn mean(&self) -> f64 {
        geometric_mean(self.slower())
    }

    /// KiB of buffers that a process ended with, in the program where these are most.
    fn buffers_kib(&self) -> f64 {
        let of = |runs: &Runs| runs.estimate(|run| run.posted.unwrap_or_default().buffers_mean).mean();
        let bytes = super::compare_job::BUFFER_BYTES as f64;
        self.0.iter().map(|(runs, _)| of(runs) * bytes / 1024.0).fold(0.0, f64::max)
    }
}

/// A scheme with its buffers changed, if it has any.
fn with(mut flow: FlowChoice, change: impl FnOnce(&mut Buffers)) -> FlowChoice {
    if let FlowChoice::Posted { buffers, .. } = &mut flow {
        change(buffers);
    }
    flow
}

/// A way to run all programs: a scheme as it is, or changed.
#[derive(Clone, Copy)]
struct Way {
    flow: FlowChoice,
    free_credits: bool,
    times: u32,
}

impl Way {
    const fn new(flow: FlowChoice) -> Self {
        Way { flow, free_credits: false, times: 1 }
    }

    fn case(self, cluster: Cluster, workload: &Workload) -> Case {
        let case = Case::on_cluster(cluster, self.flow, longer(workload, self.times));
        Case { free_credits: self.free_credits, ..case }
    }
}

/// Runs all programs in several ways, each beside a reference that is as long.
fn run(
    workshop: &Workshop<'_>,
    cluster: Cluster,
    programs: &[Program],
    ways: &[Way],
) -> Result<Vec<Pairs>, SimulationError> {
    let cases = ways.iter().flat_map(|way| {
        programs.iter().flat_map(move |(_, workload)| {
            let reference = Way { times: way.times, ..Way::new(FlowChoice::Unlimited) };
            [way.case(cluster, workload), reference.case(cluster, workload)]
        })
    });
    let runs = workshop.run(&cases.collect::<Vec<_>>())?;
    let pairs = |runs: &[Runs]| Pairs(runs.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect());
    Ok(runs.chunks(2 * programs.len()).map(pairs).collect())
}

/// What was found about the most memory.
pub(crate) struct Plenty {
    pub table: Table,
    /// Time under `growing` once it has grown, beside that without flow control: mean over all programs.
    pub growing_grown: f64,
    /// Time under `growing` with the shortest retry timer, the same.
    pub growing_shortest_timer: f64,
    /// That of `growing` that begins with all its buffers.
    pub growing_from_most: f64,
    /// The same of `static` and `dynamic`, with credits that cost processors nothing.
    pub free_credits: [f64; 2],
}

/// With the most memory: longer programs, `growing` that begins with all its buffers, credits without a cost.
pub(crate) fn plenty(
    workshop: &Workshop<'_>,
    cluster: Cluster,
    programs: &[Program],
    memory: u64,
) -> Result<Plenty, SimulationError> {
    let of = |scheme| flow(scheme, cluster.processes(), memory).unwrap_or(FlowChoice::Unlimited);
    let growing = of(SchemeName::Growing);
    let shortest_timer = with(growing, |buffers| buffers.retry_timer = RETRY_TIMER_LEAST);
    let from_two = with(growing, |buffers| buffers.per_connection = buffers.per_connection_most.min(2));
    let from_most = with(growing, |buffers| buffers.per_connection = buffers.per_connection_most);
    let [fixed, moving] = [SchemeName::Static, SchemeName::Dynamic].map(of);
    let free = |flow| Way { free_credits: true, ..Way::new(flow) };
    let ways = [
        Way::new(growing),
        Way { times: LONGER, ..Way::new(growing) },
        Way::new(shortest_timer),
        Way::new(from_two),
        Way::new(from_most),
        Way::new(fixed),
        free(fixed),
        Way::new(moving),
        free(moving),
    ];
    let all = run(workshop, cluster, programs, &ways)?;
    let grown: Vec<f64> = programs
        .iter()
        .zip(all[0].0.iter().zip(&all[1].0))
        .map(|((_, workload), (short, long))| beyond_the_first(workload, short, long).mean())
        .collect();
    let growing_grown = geometric_mean(grown.iter().copied());
    let table = table_of_plenty((cluster.processes(), memory), programs, &all, &grown);
    Ok(Plenty {
        table,
        growing_grown,
        growing_shortest_timer: all[2].mean(),
        growing_from_most: all[4].mean(),
        free_credits: [all[6].mean(), all[8].mean()],
    })
}

/// What [`plenty`] found, by program; `all` has its ways in their order.
fn table_of_plenty((processes, memory): (u32, u64), programs: &[Program], all: &[Pairs], grown: &[f64]) -> Table {
    let title = format!(
        "{} processes, {}: what is suspected, changed. Time under growing: as it is; in programs {LONGER} times as long; in their \
         last {} of {LONGER} parts, when it has grown; with a retry timer of 0.01 ms instead of 0.64; beginning with two \
         buffers for each connection, or with all. Then static and dynamic: as they are, and with credits that cost \
         processors nothing",
        processes,
        super::compare_job::size(memory),
        LONGER - 1,
    );
    let columns = [
        "program",
        "growing",
        "longer",
        "grown",
        "0.01 ms",
        "two at first",
        "all at first",
        "static",
        "credits free",
        "dynamic",
        "credits free",
    ];
    let mut table = Table::new("plenty", &title, &columns);
    let columns: Vec<Vec<f64>> = all.iter().map(|pairs| pairs.slower().collect()).collect();
    let row = |cells: Vec<f64>| cells.into_iter().map(|slower| format!("{slower:.2}")).collect::<Vec<_>>();
    for (at, (name, _)) in programs.iter().enumerate() {
        let mut cells: Vec<f64> = columns.iter().map(|column| column[at]).collect();
        cells.insert(2, grown[at]);
        table.row(std::iter::once((*name).to_owned()).chain(row(cells)));
    }
    let mut means: Vec<f64> = all.iter().map(Pairs::mean).collect();
    means.insert(2, geometric_mean(grown.iter().copied()));
    table.row(std::iter::once("mean".to_owned()).chain(row(means)));
    let kib = [0, 1, 1, 2, 3, 4].map(|way: usize| format!("{:.0}", all[way].buffers_kib()));
    let none = std::iter::repeat_n("–".to_owned(), 4);
    table.row(std::iter::once("buffers at the end, at most (KiB)".to_owned()).chain(kib).chain(none));
    table
}

/// Time beside the reference of what a longer program does beyond what the short one does: its beginning, in which
/// connections grow, left out.
fn beyond_the_first(workload: &Workload, short: &(Runs, Runs), long: &(Runs, Runs)) -> Estimate {
    let (few, many) = (repetitions(workload), repetitions(&longer(workload, LONGER)));
    let beyond =
        |long: &Runs, short: &Runs| long.paired(short, move |long, short| many * time(long) - few * time(short));
    let (here, reference) = (beyond(&long.0, &short.0), beyond(&long.1, &short.1));
    here.over(&reference)
}

/// What was found about the least memory.
pub(crate) struct Least {
    pub table: Table,
    /// Time under a pool with the shortest timer, beside that without flow control: mean over all programs.
    pub shortest_timer: f64,
    /// The same under `static` and `dynamic`.
    pub credits: [f64; 2],
    /// The same of the pool as it is; with a spare buffer for who was refused once, or 64 times; for nobody.
    pub spare: [f64; 4],
    /// The same, of the incast alone.
    pub spare_incast: [f64; 4],
}

/// With the least memory: shorter retry timers.
pub(crate) fn least(
    workshop: &Workshop<'_>,
    cluster: Cluster,
    programs: &[Program],
    memory: u64,
) -> Result<Least, SimulationError> {
    let of = |scheme| flow(scheme, cluster.processes(), memory).unwrap_or(FlowChoice::Unlimited);
    let pool =
        |timer_us| with(of(SchemeName::SharedWindow), |buffers| buffers.retry_timer = Duration::from_micros(timer_us));
    // After how many refusals a sender may have the spare buffer.
    let spare_after = |refusals| with(of(SchemeName::SharedWindow), |buffers| buffers.refusals_most = refusals);
    let [sooner, later, never] = [1, 64, NEVER].map(spare_after);
    let timers = [pool(640), pool(80), pool(10)];
    let flows =
        [[of(SchemeName::Static), of(SchemeName::Dynamic)].as_slice(), &timers, &[sooner, later, never]].concat();
    let all = run(workshop, cluster, programs, &flows.into_iter().map(Way::new).collect::<Vec<_>>())?;
    let title = format!(
        "{} processes, {}: time with shorter retry timers instead of 0.64 ms, and with the spare buffer for who was refused once, 64 times, or \
         never, instead of 8 times, beside static and dynamic",
        cluster.processes(),
        super::compare_job::size(memory)
    );
    let columns = ["program", "static", "dynamic", "shared_window", "0.08 ms", "0.01 ms", "once", "64 times", "never"];
    let mut table = Table::new("least", &title, &columns);
    let columns: Vec<Vec<f64>> = all.iter().map(|pairs| pairs.slower().collect()).collect();
    for (at, (name, _)) in programs.iter().enumerate() {
        let cells = columns.iter().map(|column| format!("{:.2}", column[at]));
        table.row(std::iter::once((*name).to_owned()).chain(cells));
    }
    let means = all.iter().map(|pairs| format!("{:.2}", pairs.mean()));
    table.row(std::iter::once("mean".to_owned()).chain(means));
    let incast = programs.iter().position(|program| program.0 == "Incast").unwrap_or(0);
    let of_spare = [2, 5, 6, 7];
    Ok(Least {
        table,
        shortest_timer: all[4].mean(),
        credits: [all[0].mean(), all[1].mean()],
        spare: of_spare.map(|way| all[way].mean()),
        spare_incast: of_spare.map(|way| columns[way][incast]),
    })
}
