//! What L's figures 9 and 10 and tables 1 and 2 share: runs of the NAS Parallel Benchmarks with 100 buffers per
//! connection and with one.

use tidegate_flow::SchemeName;
use tidegate_sim::workload::nas::{Benchmark, Class};
use tidegate_sim::{Estimate, SimulationError};

use super::l_flows::{Change, SCHEMES, flow};
use crate::report::{AsPoint, Figure, Series, Table};
use crate::run::case::{Case, Workload};
use crate::run::machine::Cluster;
use crate::run::program::NasRun;
use crate::runs::Runs;
use crate::workshop::Workshop;

/// Millions of operations that a process of L's cluster does in a second: an assumption.
pub(crate) const RATE: u32 = 300;
/// Buffers that are enough for every benchmark, and the fewest.
pub(crate) const ENOUGH: u32 = 100;
pub(crate) const FEWEST: u32 = 1;

/// Places in [`SCHEMES`].
pub(crate) const RNR: usize = 0;
pub(crate) const PREPOSTED: usize = 1;
pub(crate) const GROWING: usize = 2;

/// Iterations of a benchmark; `None`: all of them.
pub(crate) fn iterations(workshop: &Workshop<'_>, benchmark: Benchmark) -> Option<u32> {
    let (quick, smallest) = fewer_iterations(benchmark);
    workshop.scale.pick(None, Some(quick), Some(smallest))
}

/// At reduced size, and at the smallest.
pub(crate) fn fewer_iterations(benchmark: Benchmark) -> (u32, u32) {
    match benchmark {
        Benchmark::Is => (5, 2),
        Benchmark::Ft => (3, 1),
        Benchmark::Lu => (25, 4),
        Benchmark::Cg => (3, 1),
        Benchmark::Mg => (4, 2),
        Benchmark::Bt | Benchmark::Sp => (10, 3),
    }
}

/// "IS, FT, LU, CG and MG … using 8 processes on 8 nodes … SP and BT … 16 processes on 8 nodes" (L §6.3).
pub(crate) fn cluster(benchmark: Benchmark) -> Cluster {
    Cluster::of_l(if matches!(benchmark, Benchmark::Bt | Benchmark::Sp) { 2 } else { 1 })
}

/// A run of a benchmark, of which something is changed; processors are so many times as fast.
pub(crate) fn case(
    workshop: &Workshop<'_>,
    (change, faster): (Change, u32),
    (benchmark, scheme): (Benchmark, SchemeName),
    buffers: u32,
) -> Case {
    let iterations = iterations(workshop, benchmark);
    nas_case(iterations, (change, faster), (benchmark, scheme), buffers)
}

/// The same of a table of causes, which is about differences: never more iterations than at reduced size.
pub(crate) fn shorter_case(
    workshop: &Workshop<'_>,
    changed: (Change, u32),
    of: (Benchmark, SchemeName),
    buffers: u32,
) -> Case {
    let (quick, smallest) = fewer_iterations(of.0);
    nas_case(Some(workshop.scale.pick(quick, quick, smallest)), changed, of, buffers)
}

pub(crate) fn nas_case(
    iterations: Option<u32>,
    (change, faster): (Change, u32),
    (benchmark, scheme): (Benchmark, SchemeName),
    buffers: u32,
) -> Case {
    let variation = change.variation;
    let nas = NasRun { benchmark, class: Class::A, iterations, rate: faster * RATE, variation };
    change.case(cluster(benchmark), flow(scheme, buffers), Workload::Nas(nas))
}

/// Something that is changed, what, and how many times as fast processors are.
pub(crate) type Changed = (&'static str, Change, u32);

/// All benchmarks with so many buffers, by benchmark in the order of table 1, then by scheme.
pub(crate) struct Suite(pub Vec<Vec<Runs>>);

impl Suite {
    pub fn run(workshop: &Workshop<'_>, schemes: &[SchemeName], buffers: u32) -> Result<Self, SimulationError> {
        let all = Benchmark::ALL.iter().flat_map(|&benchmark| schemes.iter().map(move |&scheme| (benchmark, scheme)));
        let cases: Vec<Case> = all.map(|of| case(workshop, (Change::NONE, 1), of, buffers)).collect();
        let runs = workshop.run(&cases)?;
        Ok(Suite(runs.chunks(schemes.len()).map(<[Runs]>::to_vec).collect()))
    }

    pub fn of(&self, benchmark: Benchmark) -> &[Runs] {
        &self.0[place(benchmark)]
    }
}

pub(crate) fn place(benchmark: Benchmark) -> usize {
    Benchmark::ALL.iter().position(|other| *other == benchmark).unwrap_or(0)
}

pub(crate) fn name(benchmark: Benchmark) -> String {
    benchmark.name().to_uppercase()
}

pub(crate) fn setup(workshop: &Workshop<'_>, buffers: &str) -> String {
    let all = Benchmark::ALL.iter().filter_map(|&benchmark| Some((benchmark, iterations(workshop, benchmark)?)));
    let fewer: Vec<String> = all.map(|(benchmark, count)| format!("{} {count}", name(benchmark))).collect();
    let fewer = if fewer.is_empty() {
        String::new()
    } else {
        format!(" Fewer iterations than the class has: {}.", fewer.join(", "))
    };
    format!(
        "NAS Parallel Benchmarks, class A, as patterns: IS, FT, LU, CG, MG by 8 processes on 8 nodes, BT and SP by 16; \
         {buffers} buffers per connection. A process computes {RATE} million operations per second.{fewer}"
    )
}

/// Bars over the benchmarks, one series per scheme.
pub(crate) fn bars(figure: &str, title: &str, y_axis: &str, value: impl Fn(usize, usize) -> Estimate) -> Figure {
    let series = SCHEMES.iter().enumerate().map(|(scheme, name)| {
        let points = (0..Benchmark::ALL.len()).map(|benchmark| value(benchmark, scheme).point(benchmark as f64));
        Series::of(name.name(), points)
    });
    Figure {
        name: figure.to_owned(),
        title: title.to_owned(),
        x_axis: "benchmark".to_owned(),
        y_axis: y_axis.to_owned(),
        series: series.collect(),
        categories: Benchmark::ALL.iter().map(|&benchmark| name(benchmark)).collect(),
        ..Figure::default()
    }
}

/// A table of what the bars show.
pub(crate) fn table(figure: &Figure, title: &str, digits: usize) -> Table {
    let mut columns = vec!["benchmark"];
    columns.extend(SCHEMES.iter().map(|scheme| scheme.name()));
    let mut table = Table::new(&figure.name, title, &columns);
    for (at, category) in figure.categories.iter().enumerate() {
        let values = figure.series.iter().map(|series| {
            let point = &series.points[at];
            let half = point.range.map(|(least, most)| format!(" ± {:.digits$}", (most - least) / 2.0));
            format!("{:.digits$}{}", point.y, half.unwrap_or_default())
        });
        table.row(std::iter::once(category.clone()).chain(values));
    }
    table
}

/// Benchmarks with a value each: `IS 0.1 %, FT …`.
pub(crate) fn list(benchmarks: &[Benchmark], value: impl Fn(Benchmark) -> String) -> String {
    benchmarks
        .iter()
        .map(|&benchmark| format!("{} {}", name(benchmark), value(benchmark)))
        .collect::<Vec<_>>()
        .join(", ")
}
