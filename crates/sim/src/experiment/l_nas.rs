//! L fig. 9, table 1, fig. 10 and table 2: the NAS Parallel Benchmarks with 100 buffers per connection and with one.

use tidegate_flow::SchemeName;

use super::case::{Case, Workload};
use super::estimate::Estimate;
use super::l_flows::{Change, SCHEMES, apart, flow, lumps};
use super::machine::Cluster;
use super::measurement::{Measurement, Runs};
use super::program::NasRun;
use super::report::{Fact, Figure, Findings, Series, Table};
use super::workshop::Workshop;
use crate::SimulationError;
use crate::workload::nas::{Benchmark, Class};

/// Millions of operations that a process of L's cluster does in a second: an assumption.
const RATE: u32 = 300;
/// Buffers that are enough for every benchmark, and the fewest.
const ENOUGH: u32 = 100;
const FEWEST: u32 = 1;

/// Places in [`SCHEMES`].
const RNR: usize = 0;
const PREPOSTED: usize = 1;
const GROWING: usize = 2;

/// Iterations of a benchmark; `None`: all of them.
fn iterations(workshop: &Workshop<'_>, benchmark: Benchmark) -> Option<u32> {
    let fewer = match benchmark {
        Benchmark::Is => (5, 2),
        Benchmark::Ft => (3, 1),
        Benchmark::Lu => (70, 65),
        Benchmark::Cg => (5, 1),
        Benchmark::Mg => (4, 2),
        Benchmark::Bt | Benchmark::Sp => (15, 5),
    };
    workshop.scale.pick(None, Some(fewer.0), Some(fewer.1))
}

/// "IS, FT, LU, CG and MG … using 8 processes on 8 nodes … SP and BT … 16 processes on 8 nodes" (L §6.3).
fn cluster(benchmark: Benchmark) -> Cluster {
    Cluster::of_l(if matches!(benchmark, Benchmark::Bt | Benchmark::Sp) { 2 } else { 1 })
}

/// A run of a benchmark, of which something is changed; processors are so many times as fast.
fn case(
    workshop: &Workshop<'_>,
    (change, faster): (Change, u32),
    (benchmark, scheme): (Benchmark, SchemeName),
    buffers: u32,
) -> Case {
    let iterations = iterations(workshop, benchmark);
    let nas = NasRun { benchmark, class: Class::A, iterations, rate: faster * RATE };
    change.case(cluster(benchmark), flow(scheme, buffers), Workload::Nas(nas))
}

/// Something that is changed, what, and how many times as fast processors are.
type Changed = (&'static str, Change, u32);

/// What is changed to see what decides figure 10 and table 2.
fn changes() -> Vec<Changed> {
    vec![
        ("as above", Change::NONE, 1),
        ("retry timer 0.01 ms instead of 0.64", Change { timer_us: Some(10), ..Change::NONE }, 1),
        ("retry timer 0.08 ms", Change { timer_us: Some(80), ..Change::NONE }, 1),
        ("retry timer 10.24 ms", Change { timer_us: Some(10_240), ..Change::NONE }, 1),
        ("adapters without credits", Change { without_adapter_credits: true, ..Change::NONE }, 1),
        ("interruptions of 1 ms, as much in all", Change { interruptions: lumps(1_000), ..Change::NONE }, 1),
        ("interruptions of 10 ms, as much in all", Change { interruptions: lumps(10_000), ..Change::NONE }, 1),
        ("interruptions of 100 ms, as much in all", Change { interruptions: lumps(100_000), ..Change::NONE }, 1),
        ("processors three times as fast", Change::NONE, 3),
        ("processors ten times as fast", Change::NONE, 10),
    ]
}

/// All benchmarks with so many buffers, by benchmark in the order of table 1, then by scheme.
struct Suite(Vec<Vec<Runs>>);

impl Suite {
    fn run(workshop: &Workshop<'_>, schemes: &[SchemeName], buffers: u32) -> Result<Self, SimulationError> {
        let all = Benchmark::ALL.iter().flat_map(|&benchmark| schemes.iter().map(move |&scheme| (benchmark, scheme)));
        let cases: Vec<Case> = all.map(|of| case(workshop, (Change::NONE, 1), of, buffers)).collect();
        let runs = workshop.run(&cases)?;
        Ok(Suite(runs.chunks(schemes.len()).map(<[Runs]>::to_vec).collect()))
    }

    fn of(&self, benchmark: Benchmark) -> &[Runs] {
        &self.0[place(benchmark)]
    }
}

fn place(benchmark: Benchmark) -> usize {
    Benchmark::ALL.iter().position(|other| *other == benchmark).unwrap_or(0)
}

fn name(benchmark: Benchmark) -> String {
    benchmark.name().to_uppercase()
}

fn setup(workshop: &Workshop<'_>, buffers: &str) -> String {
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
fn bars(figure: &str, title: &str, y_axis: &str, value: impl Fn(usize, usize) -> Estimate) -> Figure {
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
fn table(figure: &Figure, title: &str, digits: usize) -> Table {
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
fn list(benchmarks: &[Benchmark], value: impl Fn(Benchmark) -> String) -> String {
    benchmarks
        .iter()
        .map(|&benchmark| format!("{} {}", name(benchmark), value(benchmark)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Fig. 9.
pub(super) fn enough_buffers(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let suite = Suite::run(workshop, &SCHEMES, ENOUGH)?;
    let slower = |benchmark: usize, scheme: usize| {
        suite.0[benchmark][scheme].paired(&suite.0[benchmark][RNR], |run, rnr| 100.0 * (run.time / rnr.time - 1.0))
    };
    let others = [Benchmark::Is, Benchmark::Ft, Benchmark::Cg, Benchmark::Mg, Benchmark::Sp];
    let apart_of = |benchmark| apart(suite.of(benchmark).iter().map(Runs::time));
    let worst = others.iter().map(|&benchmark| apart_of(benchmark)).fold(0.0, f64::max);
    let lu = [PREPOSTED, GROWING].map(|scheme| slower(place(Benchmark::Lu), scheme).mean());
    let figure =
        bars("fig9", "NAS benchmarks, 100 buffers per connection: time beside rnr", "time beyond rnr (%)", slower);
    let facts = vec![
        Fact::tested(
            "The schemes perform comparably on IS, FT, CG, MG and SP (within 3 %).",
            worst <= 3.0,
            "at most 2–3 %, by random fluctuation",
            list(&others, |benchmark| format!("{:.2} %", apart_of(benchmark))),
        ),
        Fact::tested(
            "On LU rnr outperforms both schemes with credits, by 5–6 % (4 to 7 %).",
            lu.iter().all(|slower| (4.0..=7.0).contains(slower)),
            "5–6 %",
            format!("preposted {:.2} % slower than rnr, growing {:.2} %", lu[0], lu[1]),
        )
        .because(LU_COST),
        Fact::tested(
            "On LU both schemes with credits are slower than rnr, and by more than on any other benchmark.",
            lu.iter().all(|&slower| slower > worst && slower > 0.0),
            "LU is the exception",
            format!("preposted {:.2} %, growing {:.2} %; others at most {worst:.2} %", lu[0], lu[1]),
        )
        .because(LU_COST),
        Fact::not_run(
            "There are discrepancies in the running time of BT.",
            "under investigation",
            "The paper does not say which, nor why: nothing can be tested.",
        ),
    ];
    let tables = vec![table(&figure, "Time beyond that of rnr, 100 buffers (%)", 2), costs_of_credits(workshop)?];
    Ok(Findings { setup: setup(workshop, "100"), figures: vec![figure], tables, facts })
}

/// What LU loses by credits when something is changed.
fn costs_of_credits(workshop: &Workshop<'_>) -> Result<Table, SimulationError> {
    let cost = |span| Change { credit_packet_ns: Some(span), ..Change::NONE };
    let changes: Vec<Changed> = vec![
        ("as above", Change::NONE, 1),
        ("a credit message costs each side 10 µs instead of 0.4", cost(10_000), 1),
        ("a credit message costs each side 50 µs", cost(50_000), 1),
        ("a credit message costs each side 150 µs", cost(150_000), 1),
        ("processors ten times as fast", Change::NONE, 10),
        ("interruptions of 10 ms, as much in all", Change { interruptions: lumps(10_000), ..Change::NONE }, 1),
    ];
    let of = [SchemeName::Rnr, SchemeName::Preposted].map(|scheme| (Benchmark::Lu, scheme));
    let cases =
        changes.iter().flat_map(|&(_, change, faster)| of.map(|of| case(workshop, (change, faster), of, ENOUGH)));
    let runs = workshop.run(&cases.collect::<Vec<_>>())?;
    let title = "What LU loses by the credits of preposted, 100 buffers: one thing changed at a time";
    let mut table = Table::new("causes", title, &["changed", "beyond rnr (%)"]);
    for ((what, ..), pair) in changes.iter().zip(runs.chunks(2)) {
        let slower = pair[1].paired(&pair[0], |credits, none| 100.0 * (credits.time / none.time - 1.0)).mean();
        table.row([(*what).to_owned(), format!("{slower:.2}")]);
    }
    Ok(table)
}

/// Why credits cost LU less here, tested.
const LU_COST: &str = "The counts are L's (table 1), the cost is not: some 36 credit messages per iteration of 0.2 s cannot cost 5 %. \
    Tested (table of causes): a credit message would have to cost each side some 150 µs. Neither faster processors nor long \
    interruptions bring the difference about.";

/// What L's table 1 says: benchmark, explicit credit messages, all messages; BT and SP as they are in the table.
const TABLE1: [(Benchmark, u32, u32); 7] = [
    (Benchmark::Is, 0, 383),
    (Benchmark::Ft, 0, 193),
    (Benchmark::Lu, 9002, 48_805),
    (Benchmark::Cg, 0, 4202),
    (Benchmark::Mg, 1, 1595),
    (Benchmark::Bt, 0, 28_913),
    (Benchmark::Sp, 0, 14_531),
];

/// Messages of each rank without credit messages: eager ones, and three for each long one.
fn messages(run: &Measurement) -> Vec<f64> {
    run.noted("eager").iter().zip(run.noted("rendezvous")).map(|(eager, long)| eager + 3.0 * long).collect()
}

fn most(values: Vec<f64>) -> f64 {
    values.into_iter().fold(0.0, f64::max)
}

fn mean(values: Vec<f64>) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Table 1.
pub(super) fn credit_messages(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let suite = Suite::run(workshop, &[SchemeName::Preposted], ENOUGH)?;
    let runs = |benchmark| &suite.of(benchmark)[0];
    let credits = |benchmark| runs(benchmark).estimate(|run| mean(run.noted("credits"))).mean();
    let all = |benchmark| runs(benchmark).estimate(|run| mean(messages(run))).mean();
    let share = |benchmark| 100.0 * credits(benchmark) / all(benchmark).max(1.0);
    let of_lu = |label: &str| runs(Benchmark::Lu).estimate(|run| most(run.noted(label))).mean();
    let busiest = runs(Benchmark::Lu).estimate(|run| most(messages(run))).mean();
    let mut table = Table::new(
        "table1",
        "Explicit credit messages and messages per process under preposted, 100 buffers (L's BT and SP are swapped)",
        &["benchmark", "credit messages", "messages", "share (%)", "L: credit messages", "L: messages"],
    );
    for (benchmark, paper_credits, paper_all) in TABLE1 {
        let here = [credits(benchmark), all(benchmark)].map(|value| format!("{value:.0}"));
        let row = here.into_iter().chain([
            format!("{:.1}", share(benchmark)),
            paper_credits.to_string(),
            paper_all.to_string(),
        ]);
        table.row(std::iter::once(name(benchmark)).chain(row));
    }
    let others: Vec<Benchmark> =
        Benchmark::ALL.iter().copied().filter(|benchmark| *benchmark != Benchmark::Lu).collect();
    let worst = others.iter().map(|&benchmark| share(benchmark)).fold(0.0, f64::max);
    let is_whole = iterations(workshop, Benchmark::Lu).is_none();
    let paper_of = |benchmark| match benchmark {
        // The table has the two the wrong way round: SP has twice as many iterations.
        Benchmark::Bt => 14_531.0,
        Benchmark::Sp => 28_913.0,
        _ => f64::from(TABLE1[place(benchmark)].2),
    };
    let counted = |benchmark| if benchmark == Benchmark::Lu { busiest } else { all(benchmark) };
    let off = |benchmark| 100.0 * (counted(benchmark) / paper_of(benchmark) - 1.0);
    let counts = "The number of messages of a process is the paper's (within 10 %; LU: of one with three neighbours; BT and SP \
        swapped, as their iterations say).";
    let counts = match is_whole {
        true => Fact::tested(
            counts,
            Benchmark::ALL.iter().all(|&benchmark| off(benchmark).abs() <= 10.0),
            list(&Benchmark::ALL, |benchmark| format!("{:.0}", paper_of(benchmark))),
            list(&Benchmark::ALL, |benchmark| format!("{:.0} ({:+.1} %)", counted(benchmark), off(benchmark))),
        ),
        false => Fact::not_run(counts, "383 to 48,805", "Fewer iterations than the class has."),
    };
    let facts = vec![
        Fact::tested(
            "On LU explicit credit messages are a large share of all messages: 18 % (16 to 21 %).",
            (16.0..=21.0).contains(&share(Benchmark::Lu)),
            "18.4 %",
            format!(
                "{:.1} % (mean over processes); one with three neighbours sends {:.0} beside {busiest:.0}",
                share(Benchmark::Lu),
                of_lu("credits")
            ),
        ),
        Fact::tested(
            "On all others there are almost none (at most 0.5 % of the messages).",
            worst <= 0.5,
            "0, MG 1",
            list(&others, |benchmark| format!("{:.0}", credits(benchmark))),
        ),
        counts,
    ];
    Ok(Findings { setup: setup(workshop, "100"), figures: Vec::new(), tables: vec![table], facts })
}

/// Fig. 10.
pub(super) fn one_buffer(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let (enough, fewest) = (Suite::run(workshop, &SCHEMES, ENOUGH)?, Suite::run(workshop, &SCHEMES, FEWEST)?);
    // Performance is the inverse of time.
    let drop = |benchmark: usize, scheme: usize| {
        fewest.0[benchmark][scheme]
            .paired(&enough.0[benchmark][scheme], |one, hundred| 100.0 * (1.0 - hundred.time / one.time))
    };
    let of = |benchmark, scheme| drop(place(benchmark), scheme).mean();
    let figure = bars("fig10", "NAS benchmarks: what one buffer costs instead of 100", "performance drop (%)", drop);
    let robust = [Benchmark::Is, Benchmark::Ft, Benchmark::Sp, Benchmark::Bt];
    let all = |scheme: usize| list(&Benchmark::ALL, |benchmark| format!("{:.1} %", of(benchmark, scheme)));
    let worst = |benchmarks: &[Benchmark], scheme: usize| {
        benchmarks.iter().map(|&benchmark| of(benchmark, scheme)).fold(f64::MIN, f64::max)
    };
    let robust_worst = [RNR, PREPOSTED, GROWING].map(|scheme| worst(&robust, scheme));
    let rest = [Benchmark::Is, Benchmark::Ft, Benchmark::Mg, Benchmark::Bt, Benchmark::Sp];
    let (lu, cg) = (of(Benchmark::Lu, PREPOSTED), of(Benchmark::Cg, PREPOSTED));
    let (rnr_lu, rnr_mg) = (of(Benchmark::Lu, RNR), of(Benchmark::Mg, RNR));
    let facts = vec![
        Fact::tested(
            "IS, FT, SP and BT lose at most 2 % under each of the schemes.",
            robust_worst.iter().all(|drop| *drop <= 2.0),
            "at most 2 %",
            format!(
                "at most {:.1} % under rnr, {:.1} % preposted, {:.1} % growing",
                robust_worst[0], robust_worst[1], robust_worst[2]
            ),
        )
        .because(ROBUST),
        Fact::tested(
            "Under rnr performance drops significantly on LU (by at least 10 %).",
            rnr_lu >= 10.0,
            "significantly",
            all(RNR),
        )
        .because(RNR_DROP),
        Fact::tested("And on MG (by at least 5 %).", rnr_mg >= 5.0, "significantly", format!("{rnr_mg:.1} %")),
        Fact::tested(
            "Preposted drops most on LU (10 to 16 %).",
            (10.0..=16.0).contains(&lu) && lu >= cg && lu >= worst(&rest, PREPOSTED),
            "13 %",
            all(PREPOSTED),
        )
        .because(PREPOSTED_LU),
        Fact::tested(
            "And next on CG (4 to 8 %).",
            (4.0..=8.0).contains(&cg) && cg >= worst(&rest, PREPOSTED),
            "6 %",
            format!("{cg:.1} %"),
        )
        .because(PREPOSTED_CG),
        Fact::tested(
            "Under growing there is almost no degradation (at most 2 % on each).",
            worst(&Benchmark::ALL, GROWING) <= 2.0,
            "almost none",
            all(GROWING),
        )
        .because(GROWING_DROP),
    ];
    let tables = vec![table(&figure, "Performance drop from 100 buffers to one (%)", 2), causes(workshop)?];
    Ok(Findings { setup: setup(workshop, "100 and 1"), figures: vec![figure], tables, facts })
}

/// What the drops and the numbers of buffers become when something is changed.
fn causes(workshop: &Workshop<'_>) -> Result<Table, SimulationError> {
    let drops = [
        (Benchmark::Lu, SchemeName::Rnr),
        (Benchmark::Mg, SchemeName::Rnr),
        (Benchmark::Is, SchemeName::Preposted),
        (Benchmark::Lu, SchemeName::Preposted),
        (Benchmark::Cg, SchemeName::Preposted),
        (Benchmark::Sp, SchemeName::Preposted),
        (Benchmark::Lu, SchemeName::Growing),
    ];
    let changes = changes();
    let cases: Vec<Case> = changes
        .iter()
        .flat_map(|&(_, change, faster)| drops.iter().map(move |&of| ((change, faster), of)))
        .flat_map(|(changed, of)| [ENOUGH, FEWEST].map(|buffers| case(workshop, changed, of, buffers)))
        .collect();
    let runs = workshop.run(&cases)?;
    let heads: Vec<String> = drops.iter().map(|(benchmark, scheme)| format!("{} {scheme}", name(*benchmark))).collect();
    let mut columns = vec!["changed"];
    columns.extend(heads.iter().map(String::as_str));
    columns.push("LU growing: buffers");
    let mut table = Table::new("causes", "What decides the drops (%): one thing changed at a time", &columns);
    for ((what, ..), runs) in changes.iter().zip(runs.chunks(2 * drops.len())) {
        let drop = |pair: &[Runs]| pair[1].paired(&pair[0], |one, hundred| 100.0 * (1.0 - hundred.time / one.time));
        let cells = runs.chunks(2).map(|pair| format!("{:.1}", drop(pair).mean()));
        let reached = runs[runs.len() - 1].estimate(|run| run.posted.map_or(0.0, |of| of.buffers_most.into())).mean();
        table.row(std::iter::once((*what).to_owned()).chain(cells).chain([format!("{reached:.0}")]));
    }
    Ok(table)
}

const ROBUST: &str = "A credit message that takes the only buffer lets a message be refused, which then waits for the retry timer. Tested \
    (table of causes): with a timer of 0.01 ms hardly anything is lost, with 10.24 ms many times as much. L does not state its \
    timer.";
const RNR_DROP: &str = "Tested (table of causes): it depends on how far a sender gets ahead within the retry timer. On processors ten times as \
    fast LU drops sharply, and MG as well; MG does with a longer timer, too. L states neither its timer nor what its \
    processors computed in a second.";
const PREPOSTED_LU: &str = "A sender of LU that is one plane ahead finds its only credit back, because its receiver needs as long for a \
    plane. Tested (table of causes): the drop grows with what keeps the two from being in step: interruptions that are \
    longer, and processors that are faster (ten times: about L's 13 %).";
const PREPOSTED_CG: &str = "Most of it are refusals, by credit messages that take the only buffer, times the retry timer. Tested (table of \
    causes): with 0.01 ms the drop is below L's 6 %, with 0.64 ms above, with 10.24 ms far above: some 0.05 ms would give L's.";
const GROWING_DROP: &str = "";

/// What L's table 2 says.
const TABLE2: [u32; 7] = [4, 4, 63, 3, 6, 7, 7];

/// Table 2.
pub(super) fn buffers_reached(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let suite = Suite::run(workshop, &[SchemeName::Growing], FEWEST)?;
    let buffers = |benchmark: Benchmark| {
        suite.of(benchmark)[0].estimate(|run| run.posted.map_or(0.0, |posted| f64::from(posted.buffers_most))).mean()
    };
    let mut table = Table::new(
        "table2",
        "Most buffers that any connection reached under growing, which began with one",
        &["benchmark", "buffers", "L"],
    );
    for (benchmark, paper) in Benchmark::ALL.iter().zip(TABLE2) {
        table.row([name(*benchmark), format!("{:.1}", buffers(*benchmark)), paper.to_string()]);
    }
    let others: Vec<Benchmark> =
        Benchmark::ALL.iter().copied().filter(|benchmark| *benchmark != Benchmark::Lu).collect();
    let most = others.iter().map(|&benchmark| buffers(benchmark)).fold(0.0, f64::max);
    let facts = vec![
        Fact::tested(
            "All benchmarks but LU need very few buffers per connection (no more than 7).",
            most <= 7.0,
            "4 4 3 6 7 7",
            list(&others, |benchmark| format!("{:.1}", buffers(benchmark))),
        )
        .because(FEW_BUFFERS),
        Fact::tested(
            "LU reaches as many as it has planes to send one way, and one: 63 (60 to 66).",
            (60.0..=66.0).contains(&buffers(Benchmark::Lu)),
            "63",
            format!("{:.1}", buffers(Benchmark::Lu)),
        )
        .because(LU_BUFFERS),
    ];
    Ok(Findings { setup: setup(workshop, "at first 1"), figures: Vec::new(), tables: vec![table], facts })
}

const FEW_BUFFERS: &str = "";
const LU_BUFFERS: &str = "For 63 a receiver must once have been a whole sweep behind its sender. Here all processes are equally fast, and the \
    usual interruptions put them a few planes apart. Tested (last column of figure 10's table of causes): with \
    interruptions of the same share that last longer connections reach more.";
