//! A fig. 2: a pool of buffers that adapts, by its largest window; and what the figures of A share.

use std::time::Duration;

use tidegate_flow::{Buffers, SchemeName};
use tidegate_message::Counter;
use tidegate_sim::workload::nas::{Benchmark, Class, Variation};
use tidegate_sim::{Estimate, FlowChoice, Measurement, SimulationError};

use super::l_fig2_8::residuals;
use super::l_flows::lumps;
use crate::report::{AsPoint, Fact, Figure, Findings, Series, Table};
use crate::run::case::{Case, Workload};
use crate::run::machine::{Cluster, Interruptions};
use crate::run::program::NasRun;
use crate::runs::Runs;
use crate::workshop::Workshop;

/// Millions of operations that a process of A's cluster does in a second: an assumption.
pub(crate) const RATE: u32 = 800;
/// Bytes of a buffer: an assumption (A states none).
const BUFFER_BYTES: u32 = 12 << 10;
/// A's first window, and the window of the version without adapting.
pub(crate) const FIRST: u32 = 8;
const FIXED: u32 = 512;

/// A pool that begins with a window and grows to another.
pub(crate) fn pool(first: u32, most: u32, timer_us: u64) -> FlowChoice {
    let scheme = SchemeName::SharedWindow;
    let packets = Buffers::packets_of(BUFFER_BYTES);
    let retry_timer = Duration::from_micros(timer_us);
    let buffers = Buffers { packets, pool_first: first, pool_most: most, retry_timer, ..Buffers::of(scheme) };
    FlowChoice::Posted { scheme, buffers, piggyback: true }
}

/// The retry timer where it is not what a figure is about, in microseconds; A does not state it.
const TIMER_US: u64 = 640;

/// Iterations of a benchmark; `None`: all of them. Windows only grow, and time and memory are per iteration or reached
/// early, so what the statements say does not depend on how many there are once the window has settled.
fn iterations(workshop: &Workshop<'_>, benchmark: Benchmark) -> Option<u32> {
    let (full, quick, smallest) = match benchmark {
        Benchmark::Is => (5, 2, 1),
        Benchmark::Ft => (2, 1, 1),
        Benchmark::Lu => (6, 2, 1),
        Benchmark::Cg => (3, 1, 1),
        Benchmark::Mg => (8, 2, 1),
        Benchmark::Bt | Benchmark::Sp => (12, 3, 1),
    };
    workshop.scale.pick(Some(full), Some(quick), Some(smallest))
}

/// Of the benchmarks; a smaller one where runs have to be short.
fn class(workshop: &Workshop<'_>) -> Class {
    workshop.scale.pick(Class::B, Class::B, Class::A)
}

/// A's nodes, with two processes each.
fn nodes(workshop: &Workshop<'_>) -> u32 {
    workshop.scale.pick(32, 32, 8)
}

pub(crate) fn cluster(workshop: &Workshop<'_>) -> Cluster {
    Cluster::of_a(nodes(workshop))
}

pub(crate) fn nas(workshop: &Workshop<'_>, benchmark: Benchmark) -> NasRun {
    let (iterations, variation) = (iterations(workshop, benchmark), Variation::AsPublished);
    NasRun { benchmark, class: class(workshop), iterations, rate: RATE, variation }
}

pub(crate) fn case(workshop: &Workshop<'_>, benchmark: Benchmark, flow: FlowChoice) -> Case {
    Case::on_cluster(cluster(workshop), flow, Workload::Nas(nas(workshop, benchmark)))
}

/// Communication memory of a process, in kilobytes: the pool that it ended with, and the most that unexpected messages
/// took beside it; the mean over the processes.
pub(crate) fn memory(run: &Measurement) -> f64 {
    let posted = run.posted.unwrap_or_default();
    (posted.buffers_mean * f64::from(BUFFER_BYTES) + posted.unexpected_mean) / 1024.0
}

pub(crate) fn name(benchmark: Benchmark) -> String {
    benchmark.name().to_uppercase()
}

pub(crate) fn setup(workshop: &Workshop<'_>) -> String {
    let all = Benchmark::ALL.iter().filter_map(|&benchmark| Some((benchmark, iterations(workshop, benchmark)?)));
    let fewer: Vec<String> = all.map(|(benchmark, count)| format!("{} {count}", name(benchmark))).collect();
    format!(
        "NAS Parallel Benchmarks, class {}, as patterns, by {} processes on {} nodes (A does not say how many there were); \
         buffers of 12 KiB, which is assumed, as is a process's speed, {RATE} million operations per second. Fewer \
         iterations than the class has: {}. NAMD is left out: nothing of its messages is published that a pattern could be \
         written from honestly.",
        if class(workshop) == Class::B { "B" } else { "A" },
        2 * nodes(workshop),
        nodes(workshop),
        fewer.join(", ")
    )
}

/// By benchmark: the runs with each largest window, and those of the fixed one.
struct Windows {
    most: Vec<u32>,
    runs: Vec<Vec<Runs>>,
    fixed: Vec<Runs>,
}

impl Windows {
    fn run(workshop: &Workshop<'_>) -> Result<Self, SimulationError> {
        let all = vec![16, 32, 64, 128, 512, 4096];
        let most = workshop.scale.pick(all, vec![16, 64, 4096], vec![16, 64, 4096]);
        let flows: Vec<FlowChoice> = std::iter::once(pool(FIXED, FIXED, TIMER_US))
            .chain(most.iter().map(|&most| pool(FIRST, most, TIMER_US)))
            .collect();
        let all = Benchmark::ALL.iter().flat_map(|&benchmark| flows.iter().map(move |&flow| (benchmark, flow)));
        let cases: Vec<Case> = all.map(|(benchmark, flow)| case(workshop, benchmark, flow)).collect();
        let runs = workshop.run(&cases)?;
        let by_benchmark: Vec<&[Runs]> = runs.chunks(flows.len()).collect();
        let fixed = by_benchmark.iter().map(|runs| runs[0].clone()).collect();
        let runs = by_benchmark.iter().map(|runs| runs[1..].to_vec()).collect();
        Ok(Windows { most, runs, fixed })
    }

    /// Performance beside the fixed window's: 1 is the same, less is worse.
    fn performance(&self, benchmark: usize, at: usize) -> Estimate {
        self.runs[benchmark][at].paired(&self.fixed[benchmark], |run, fixed| fixed.time / run.time)
    }

    fn memory(&self, benchmark: usize, at: usize) -> Estimate {
        self.runs[benchmark][at].estimate(memory)
    }

    /// The largest windows from `least` on, as places.
    fn from(&self, least: u32) -> impl Iterator<Item = usize> + '_ {
        self.most.iter().enumerate().filter(move |(_, most)| **most >= least).map(|(at, _)| at)
    }

    fn worst(&self, benchmark: usize, places: impl Iterator<Item = usize>) -> f64 {
        places.map(|at| self.performance(benchmark, at).mean()).fold(f64::MAX, f64::min)
    }

    /// What pools ended with.
    fn table(&self) -> Table {
        let last = self.most.len() - 1;
        let mut table = Table::new(
            "fig2",
            "By benchmark: window and memory that 8–4096 ended with, memory with 8–16 and with 512, refusals, events",
            &[
                "benchmark",
                "window",
                "memory (KiB)",
                "8–16 (KiB)",
                "fixed 512 (KiB)",
                "refusals with 8–16",
                "refusals",
                "limit events",
            ],
        );
        for (benchmark, of) in Benchmark::ALL.iter().enumerate() {
            let runs = &self.runs[benchmark];
            let window = runs[last].estimate(|run| run.posted.unwrap_or_default().buffers_mean).mean();
            let count = |at: usize, counter| runs[at].estimate(|run| run.counter(counter) as f64).mean();
            table.row([
                name(*of),
                format!("{window:.0}"),
                format!("{:.0}", self.memory(benchmark, last).mean()),
                format!("{:.0}", self.memory(benchmark, 0).mean()),
                format!("{:.0}", self.fixed[benchmark].estimate(memory).mean()),
                format!("{:.0}", count(0, Counter::Refusals)),
                format!("{:.0}", count(last, Counter::Refusals)),
                format!("{:.0}", count(last, Counter::LimitEvents)),
            ]);
        }
        table
    }

    fn figure(&self, name_of: &str, title: &str, y_axis: &str, value: impl Fn(usize, usize) -> Estimate) -> Figure {
        let series = Benchmark::ALL.iter().enumerate().map(|(benchmark, of)| {
            let points =
                self.most.iter().enumerate().map(|(at, &most)| value(benchmark, at).point(f64::from(most).log2()));
            Series::of(name(*of), points).in_panel(name(*of))
        });
        Figure {
            name: name_of.to_owned(),
            title: title.to_owned(),
            x_axis: "largest window (2^x buffers)".to_owned(),
            y_axis: y_axis.to_owned(),
            series: series.collect(),
            ..Figure::default()
        }
    }
}

/// No worse: what repeated runs of one program differ by (L §6.3.1 has the same of an older version), as a share.
const EQUAL: f64 = 0.97;

/// Fig. 2.
pub(crate) fn largest_window(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let windows = Windows::run(workshop)?;
    let facts = facts_of_windows(&windows);
    let table = windows.table();
    let figures = vec![
        windows.figure(
            "fig2-performance",
            "Performance beside a fixed window of 512",
            "performance (1: the same)",
            |benchmark, at| windows.performance(benchmark, at),
        ),
        windows.figure("fig2-memory", "Communication memory of a process", "memory (KiB)", |benchmark, at| {
            windows.memory(benchmark, at)
        }),
    ];
    Ok(Findings {
        setup: setup(workshop),
        figures,
        tables: vec![
            table,
            causes(workshop)?,
            bursts(workshop)?,
            residuals(workshop, cluster(workshop), "A", (2000.0, 4000.0))?,
        ],
        facts,
    })
}

fn facts_of_windows(windows: &Windows) -> Vec<Fact> {
    let all = 0..Benchmark::ALL.len();
    let last = windows.most.len() - 1;
    let from_64: Vec<f64> = all.clone().map(|benchmark| windows.worst(benchmark, windows.from(64))).collect();
    let any: Vec<f64> = all.clone().map(|benchmark| windows.worst(benchmark, windows.from(0))).collect();
    let robust = any.iter().filter(|worst| **worst >= EQUAL).count();
    let fixed_memory: Vec<f64> = windows.fixed.iter().map(|runs| runs.estimate(memory).mean()).collect();
    let saved: Vec<f64> =
        all.clone().map(|benchmark| fixed_memory[benchmark] / windows.memory(benchmark, last).mean()).collect();
    let more: Vec<f64> = all
        .clone()
        .map(|benchmark| windows.memory(benchmark, last).mean() - windows.memory(benchmark, 0).mean())
        .collect();
    let list = |values: &[f64], digits: usize| {
        let each = Benchmark::ALL.iter().zip(values).map(|(of, value)| format!("{} {value:.digits$}", name(*of)));
        each.collect::<Vec<_>>().join(", ")
    };
    vec![
        Fact::tested(
            "A largest window of 64 or more performs as the fixed one, on every benchmark (at least 0.97 of it).",
            from_64.iter().all(|worst| *worst >= EQUAL),
            "the same",
            list(&from_64, 3),
        ),
        Fact::tested(
            "On five of the benchmarks, MG among them, every largest window performs equally well (at least 0.97).",
            robust >= 5 && any[4] >= EQUAL,
            "panels (c) to (g)",
            list(&any, 3),
        )
        .because(SMALL_WINDOWS),
        Fact::tested(
            "On the two others there is degradation with 32 and 16 (below 0.97).",
            robust == 5,
            "panels (a) and (b)",
            format!("{} of 7 degrade: {}", 7 - robust, list(&any, 3)),
        )
        .because(SMALL_WINDOWS),
        Fact::tested(
            "With 4096 as the largest window memory is less than with the fixed 512, on every benchmark.",
            saved.iter().all(|saved| *saved > 1.0),
            "considerably less",
            format!("by factors: {}", list(&saved, 1)),
        ),
        Fact::tested(
            "It is two to three times less (1.5 to 4 times, on every benchmark).",
            saved.iter().all(|saved| (1.5..=4.0).contains(saved)),
            "a factor of two or three",
            list(&saved, 1),
        )
        .because(MEMORY),
        Fact::tested(
            "From 16 to 4096 memory grows by about 500 KB (250 to 750, on five benchmarks or more).",
            more.iter().filter(|more| (250.0..=750.0).contains(*more)).count() >= 5,
            "around 500 KB",
            format!("{} KiB", list(&more, 0)),
        )
        .because(MEMORY),
    ]
}

/// What windows, memory and performance become when something is changed.
fn causes(workshop: &Workshop<'_>) -> Result<Table, SimulationError> {
    let benchmarks = [Benchmark::Is, Benchmark::Lu, Benchmark::Cg, Benchmark::Mg, Benchmark::Sp];
    let changes: Vec<(&str, Option<Interruptions>, u32)> = vec![
        ("nothing", None, 1),
        ("interruptions of 1 ms, as much in all", lumps(1_000), 1),
        ("interruptions of 10 ms, as much in all", lumps(10_000), 1),
        ("interruptions of 100 ms, as much in all", lumps(100_000), 1),
        ("processors ten times as fast", None, 10),
    ];
    let flows = [pool(FIXED, FIXED, TIMER_US), pool(FIRST, 16, TIMER_US), pool(FIRST, 4096, TIMER_US)];
    let mut cases = Vec::new();
    for &(_, interruptions, faster) in &changes {
        for benchmark in benchmarks {
            let nas = NasRun { rate: faster * RATE, ..nas(workshop, benchmark) };
            let cluster = Cluster { interruptions, ..cluster(workshop) };
            cases.extend(flows.map(|flow| Case::on_cluster(cluster, flow, Workload::Nas(nas))));
        }
    }
    let runs = workshop.run(&cases)?;
    let heads: Vec<String> =
        benchmarks.iter().flat_map(|&of| [format!("{} 8–16", name(of)), format!("{} (KiB)", name(of))]).collect();
    let mut columns = vec!["changed"];
    columns.extend(heads.iter().map(String::as_str));
    let title = "Performance with 8–16, and memory with 8–4096: one thing changed at a time";
    let mut table = Table::new("causes", title, &columns);
    for ((what, ..), runs) in changes.iter().zip(runs.chunks(flows.len() * benchmarks.len())) {
        let cells = runs.chunks(flows.len()).flat_map(|of| {
            let performance = of[1].paired(&of[0], |run, fixed| fixed.time / run.time).mean();
            [format!("{performance:.3}"), format!("{:.0}", of[2].estimate(memory).mean())]
        });
        table.row(std::iter::once((*what).to_owned()).chain(cells));
    }
    Ok(table)
}

/// What bursts of messages at a process do: words of everybody at the start, as a library's own set-up or a small
/// all-to-all has them, and transposes that are started at once.
fn bursts(workshop: &Workshop<'_>) -> Result<Table, SimulationError> {
    let mut ways: Vec<(String, NasRun)> = Vec::new();
    for benchmark in Benchmark::ALL {
        for variation in [Variation::AsPublished, Variation::WordsAtFirst] {
            let what = if variation == Variation::AsPublished { "" } else { ", words of all to all at the start" };
            ways.push((format!("{}{what}", name(benchmark)), NasRun { variation, ..nas(workshop, benchmark) }));
        }
    }
    let at_once = NasRun { variation: Variation::TransposeAtOnce, ..nas(workshop, Benchmark::Ft) };
    ways.push(("FT, transposes started at once".to_owned(), at_once));
    let flows = [
        pool(FIXED, FIXED, TIMER_US),
        pool(FIRST, 16, TIMER_US),
        pool(FIRST, 32, TIMER_US),
        pool(FIRST, 4096, TIMER_US),
    ];
    let cases = ways
        .iter()
        .flat_map(|(_, nas)| flows.map(|flow| Case::on_cluster(cluster(workshop), flow, Workload::Nas(*nas))));
    let runs = workshop.run(&cases.collect::<Vec<_>>())?;
    let title = "Bursts: performance with 8–16 and 8–32 beside 512; memory with 8–4096, what that is more than with 8–16, and how \
        many times less than with 512; the same if 3 MiB beside the pool count in both";
    let columns = ["run", "8–16", "8–32", "memory (KiB)", "more (KiB)", "times less", "times less, beside 3 MiB"];
    let mut table = Table::new("bursts", title, &columns);
    for ((what, _), runs) in ways.iter().zip(runs.chunks(flows.len())) {
        let performance = |at: usize| runs[at].paired(&runs[0], |run, fixed| fixed.time / run.time).mean();
        let kib = |at: usize| runs[at].estimate(memory).mean();
        table.row([
            what.clone(),
            format!("{:.3}", performance(1)),
            format!("{:.3}", performance(2)),
            format!("{:.0}", kib(3)),
            format!("{:.0}", kib(3) - kib(1)),
            format!("{:.1}", kib(0) / kib(3)),
            format!("{:.1}", (kib(0) + BESIDE_KIB) / (kib(3) + BESIDE_KIB)),
        ]);
    }
    Ok(table)
}

/// Memory of a process that is no part of a pool and the same with every window, in KiB: an assumption, to see what it
/// does.
const BESIDE_KIB: f64 = 3.0 * 1024.0;

const SMALL_WINDOWS: &str = "Here a receiver takes messages out about as fast as they come, and only IS, whose alltoallv has bursts, comes \
    near. Tested (tables of causes and of bursts): neither longer interruptions, nor faster processors, nor words of all to all \
    at the start, nor FT's transposes started at once make another benchmark degrade, so what did in A is not explained; A does \
    not say how many processes there were, nor which benchmarks these are.";
const MEMORY: &str = "A counts something beside the pool, or its numbers do not go together: a pool of 512 buffers of 12 KiB is 6 MiB, and 500 KB \
    more than 16 buffers are 0.7 MiB, which is nine times less. Tested (table of bursts): with 3 MiB beside the pool in both \
    cases every benchmark takes 2.2 to 2.9 times less. The growth is not explained but for IS: words of all to all at the start \
    add 8 to 10 KiB; FT adds 884 KiB if its transposes are started at once. Interruptions of 1 ms multiply what LU takes, and \
    processors ten times as fast about double it (table of causes).";
