//! A fig. 3: a pool of buffers that adapts, by the retry timer.

use tidegate_message::Counter;
use tidegate_sim::workload::nas::{Benchmark, Variation};
use tidegate_sim::{Estimate, SimulationError};

use super::a_fig2::{FIRST, RATE, case, cluster, memory, name, nas, pool, setup};
use super::l_flows::{apart, lumps};
use crate::report::{AsPoint, Fact, Figure, Findings, Series, Table};
use crate::run::case::{Case, Workload};
use crate::run::machine::Cluster;
use crate::run::program::NasRun;
use crate::runs::Runs;
use crate::workshop::Workshop;

/// Fig. 3's timers, in microseconds: from the shortest to the longest that there is.
fn timers(workshop: &Workshop<'_>) -> Vec<u64> {
    workshop.scale.pick(vec![10, 640, 40_960, 655_360], vec![10, 640, 655_360], vec![10, 655_360])
}

/// Fig. 3.
pub(crate) fn retry_timer(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let timers = timers(workshop);
    let most = workshop.scale.pick(vec![16, 64, 4096], vec![16, 64], vec![16, 4096]);
    let benchmarks = [Benchmark::Is, Benchmark::Lu, Benchmark::Cg, Benchmark::Mg, Benchmark::Bt];
    let mut cases = Vec::new();
    for benchmark in benchmarks {
        for &most in &most {
            cases.extend(timers.iter().map(|&timer| case(workshop, benchmark, pool(FIRST, most, timer))));
        }
    }
    let runs = workshop.run(&cases)?;
    let by_benchmark: Vec<Vec<&[Runs]>> =
        runs.chunks(most.len() * timers.len()).map(|runs| runs.chunks(timers.len()).collect()).collect();
    let (shortest, longest) = (0, timers.len() - 1);
    let memory_of =
        |benchmark: usize, window: usize, timer: usize| by_benchmark[benchmark][window][timer].estimate(memory).mean();
    let time_of = |benchmark: usize, window: usize, timer: usize| by_benchmark[benchmark][window][timer].time();
    let place = |of| benchmarks.iter().position(|benchmark| *benchmark == of).unwrap_or(0);
    // How much more memory the shortest timer takes than the longest, with the smallest window.
    let more: Vec<f64> = (0..benchmarks.len())
        .map(|of| 100.0 * (memory_of(of, 0, shortest) / memory_of(of, 0, longest) - 1.0))
        .collect();
    let slower = |of: usize| {
        let worst = |window: usize| {
            let times = (0..timers.len()).map(|timer| time_of(of, window, timer));
            apart(times)
        };
        (0..most.len()).map(worst).fold(0.0, f64::max)
    };
    let list = |value: &dyn Fn(usize) -> f64| {
        let each = benchmarks.iter().enumerate().map(|(at, of)| format!("{} {:.1} %", name(*of), value(at)));
        each.collect::<Vec<_>>().join(", ")
    };
    let mg = place(Benchmark::Mg);
    let facts = vec![
        Fact::tested(
            "With a very small largest window (16) the shortest timer takes more memory than the longest, on some benchmark \
             (by at least 5 %).",
            more.iter().any(|more| *more >= 5.0),
            "more memory is consumed",
            list(&|at| more[at]),
        )
        .because(TIMER_MEMORY),
        Fact::tested(
            "On MG the timer has no impact on performance, even with small windows (all timers within 3 %).",
            slower(mg) <= 3.0,
            "literally no impact",
            format!("{:.1} %", slower(mg)),
        )
        .implied("Here nothing of MG is refused, whatever the window (table of A-fig2), so no timer ever runs."),
        Fact::tested(
            "On the others neither (within 3 %).",
            (0..benchmarks.len()).all(|at| at == mg || slower(at) <= 3.0),
            "the same trend",
            list(&slower),
        )
        .because(TIMER_TIME),
    ];
    let figures = [Benchmark::Lu, Benchmark::Mg]
        .into_iter()
        .flat_map(|of| timer_figures(of, &most, &timers, &by_benchmark[place(of)]))
        .collect();
    Ok(Findings { setup: setup(workshop), figures, tables: vec![causes(workshop, &timers)?], facts })
}

/// Memory and time of a benchmark by the retry timer, a curve for each largest window.
fn timer_figures(of: Benchmark, most: &[u32], timers: &[u64], runs: &[&[Runs]]) -> [Figure; 2] {
    let figure = |what: &str, y_axis: &str, value: &dyn Fn(&Runs) -> Estimate| {
        let series = most.iter().enumerate().map(|(window, &most)| {
            let points = timers.iter().enumerate();
            let points = points.map(|(timer, &us)| value(&runs[window][timer]).point((us as f64 / 10.0).log2()));
            Series::of(format!("8–{most}"), points)
        });
        Figure {
            name: format!("fig3-{}-{what}", of.name()),
            title: format!("{}: {what} by retry timer", name(of)),
            x_axis: "retry timer (2^x × 0.01 ms)".to_owned(),
            y_axis: y_axis.to_owned(),
            series: series.collect(),
            ..Figure::default()
        }
    };
    [
        figure("memory", "memory (KiB)", &|runs| runs.estimate(memory)),
        figure("time", "time (s)", &|runs| runs.estimate(|run| run.time / 1e6)),
    ]
}

/// What a way to run the benchmarks changes: the first and the largest window, the cluster, how many times as fast its
/// processors are.
type Way = (&'static str, [u32; 2], Cluster, u32);

/// How much more memory the shortest timer takes than the longest when something is changed.
fn causes(workshop: &Workshop<'_>, timers: &[u64]) -> Result<Table, SimulationError> {
    let as_is = cluster(workshop);
    let interrupted = |us| Cluster { interruptions: lumps(us), ..as_is };
    let ways: [Way; 7] = [
        ("nothing", [FIRST, 16], as_is, 1),
        ("a window of 4", [4, 4], as_is, 1),
        ("a window of 1", [1, 1], as_is, 1),
        ("taking a message in takes four times as long", [FIRST, 16], Cluster { receiving_percent: 400, ..as_is }, 1),
        ("interruptions of 1 ms, as much in all", [FIRST, 16], interrupted(1_000), 1),
        ("interruptions of 10 ms, as much in all", [FIRST, 16], interrupted(10_000), 1),
        ("processors ten times as fast", [FIRST, 16], as_is, 10),
    ];
    let at_once = NasRun { variation: Variation::TransposeAtOnce, ..nas(workshop, Benchmark::Ft) };
    let others = [Benchmark::Is, Benchmark::Lu, Benchmark::Cg, Benchmark::Mg, Benchmark::Bt];
    let runs_of = others.map(|benchmark| (name(benchmark), nas(workshop, benchmark)));
    let runs_of: Vec<(String, NasRun)> = runs_of.into_iter().chain([("FT at once".to_owned(), at_once)]).collect();
    let ends = [timers[0], timers[timers.len() - 1]];
    let mut cases = Vec::new();
    for (_, [first, most], cluster, faster) in ways {
        for (_, nas) in &runs_of {
            let workload = Workload::Nas(NasRun { rate: faster * RATE, ..*nas });
            cases.extend(ends.map(|timer| Case::on_cluster(cluster, pool(first, most, timer), workload.clone())));
        }
    }
    let runs = workshop.run(&cases)?;
    let heads: Vec<String> =
        runs_of.iter().flat_map(|(of, _)| [format!("{of}: refused"), format!("{of}: more (%)")]).collect();
    let mut columns = vec!["changed"];
    columns.extend(heads.iter().map(String::as_str));
    let title = "8–16: messages refused with the longest timer, and how much more memory the shortest takes; one thing changed at a \
        time (FT with its transposes started at once)";
    let mut table = Table::new("causes", title, &columns);
    for ((what, ..), runs) in ways.iter().zip(runs.chunks(2 * runs_of.len())) {
        let cells = runs.chunks(2).flat_map(|ends| {
            let refused = ends[1].estimate(|run| run.counter(Counter::Refusals) as f64).mean();
            let more = ends[0].estimate(memory).mean() / ends[1].estimate(memory).mean() - 1.0;
            [format!("{refused:.0}"), format!("{:.1}", 100.0 * more)]
        });
        table.row(std::iter::once((*what).to_owned()).chain(cells));
    }
    Ok(table)
}

const TIMER_MEMORY: &str = "With 8–16 only IS has messages refused, 23 of them, so its number is at the edge of the tolerance, and it depends on the \
    seed on which side. Tested (table of causes): it depends on how many are refused. With a window of 4 there are 1,284 of IS, \
    and the shortest timer takes 9.5 % more memory. It is not that messages come one at a time: FT's, all started at once, are \
    refused more often, and take 2 %. Neither slower receiving nor longer interruptions bring the others to refusals that \
    matter. With a window of 1 it is the longest timer that takes more.";
const TIMER_TIME: &str = "IS is refused a few times with windows up to 16, and each time waits for the timer, the longest of which takes \
    longer than the program. Tested: with windows up to 64 nothing is refused, and the timer has no effect (runs of this \
    figure). A's programs took minutes, beside which some such waits do not show.";
