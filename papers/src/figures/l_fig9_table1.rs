//! L fig. 9 and table 1: the NAS Parallel Benchmarks with enough buffers, and what credits cost.

use tidegate_flow::SchemeName;
use tidegate_message::Counter;
use tidegate_sim::workload::nas::{Benchmark, Variation};
use tidegate_sim::{Measurement, SimulationError};

use super::l_flows::{Change, SCHEMES, apart, lumps};
use super::l_nas::{
    Changed, ENOUGH, GROWING, PREPOSTED, RNR, Suite, bars, case, iterations, list, name, place, setup, shorter_case,
    table,
};
use crate::report::{Fact, Findings, Table};
use crate::runs::Runs;
use crate::workshop::Workshop;

/// Fig. 9.
pub(crate) fn enough_buffers(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let suite = Suite::run(workshop, &SCHEMES, ENOUGH)?;
    let slower = |benchmark: usize, scheme: usize| {
        suite.0[benchmark][scheme].paired(&suite.0[benchmark][RNR], |run, rnr| 100.0 * (run.time / rnr.time - 1.0))
    };
    let others = [Benchmark::Is, Benchmark::Ft, Benchmark::Cg, Benchmark::Mg, Benchmark::Sp];
    let apart_of = |benchmark| apart(suite.of(benchmark).iter().map(Runs::time));
    let worst = others.iter().map(|&benchmark| apart_of(benchmark)).fold(0.0, f64::max);
    let sum = |counters: &[Counter]| {
        let of = |runs: &Runs| runs.estimate(|run| counters.iter().map(|&of| run.counter(of) as f64).sum()).mean();
        others.iter().flat_map(|&benchmark| suite.of(benchmark)).map(of).sum::<f64>()
    };
    let refusals = sum(&[Counter::Refusals]);
    let rare =
        (sum(&[Counter::MessagesEager, Counter::MessagesRendezvous]) / sum(&[Counter::CreditPackets]).max(1.0)).floor();
    let lu = [PREPOSTED, GROWING].map(|scheme| slower(place(Benchmark::Lu), scheme).mean());
    let figure =
        bars("fig9", "NAS benchmarks, 100 buffers per connection: time beside rnr", "time beyond rnr (%)", slower);
    let facts = vec![
        Fact::tested(
            "The schemes perform comparably on IS, FT, CG, MG and SP (within 3 %).",
            worst <= 3.0,
            "at most 2–3 %",
            list(&others, |benchmark| format!("{:.2} %", apart_of(benchmark))),
        )
        .implied(&format!(
            "All of these runs together have {refusals} refusals, and one credit message for {rare} messages: nothing is left \
             that could take 3 % of the time."
        )),
        fluctuation(&suite, &others),
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

/// "… with at most 2%–3% difference due to random fluctuation": schemes differ no more than seeds do.
fn fluctuation(suite: &Suite, benchmarks: &[Benchmark]) -> Fact {
    let statement = "What they differ by there is random fluctuation: on each, runs of rnr with other seeds are further apart than \
        the means of two schemes are.";
    let paper = "by random fluctuation";
    let of = |benchmark: Benchmark| {
        let runs = suite.of(benchmark);
        (apart(runs.iter().map(Runs::time)), apart(runs[RNR].0.iter().map(|run| run.time)))
    };
    if suite.of(benchmarks[0])[RNR].0.len() < 2 {
        return Fact::not_run(statement, paper, "With one seed nothing fluctuates.");
    }
    Fact::tested(
        statement,
        benchmarks.iter().all(|&benchmark| of(benchmark).0 < of(benchmark).1),
        paper,
        list(benchmarks, |benchmark| format!("{:.3} %, seeds {:.3} %", of(benchmark).0, of(benchmark).1)),
    )
    .perhaps_because("with interruptions alone that is all that fluctuates here.")
    .across_seeds()
}

/// What LU loses by credits when something is changed.
fn costs_of_credits(workshop: &Workshop<'_>) -> Result<Table, SimulationError> {
    let cost = |span| Change { credit_packet_ns: Some(span), ..Change::NONE };
    let changes: Vec<Changed> = vec![
        ("nothing", Change::NONE, 1),
        ("a credit message costs each side 10 µs instead of 0.4", cost(10_000), 1),
        ("a credit message costs each side 50 µs", cost(50_000), 1),
        ("a credit message costs each side 150 µs", cost(150_000), 1),
        ("processors ten times as fast", Change::NONE, 10),
        ("interruptions of 10 ms, as much in all", Change { interruptions: lumps(10_000), ..Change::NONE }, 1),
    ];
    let of = [SchemeName::Rnr, SchemeName::Preposted].map(|scheme| (Benchmark::Lu, scheme));
    let cases = changes
        .iter()
        .flat_map(|&(_, change, faster)| of.map(|of| shorter_case(workshop, (change, faster), of, ENOUGH)));
    let runs = workshop.run(&cases.collect::<Vec<_>>())?;
    let title = "What LU loses by the credits of preposted, 100 buffers: one thing changed at a time (25 iterations)";
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

/// Table 1 beside L's.
fn table1(
    credits: impl Fn(Benchmark) -> f64,
    all: impl Fn(Benchmark) -> f64,
    share: impl Fn(Benchmark) -> f64,
) -> Table {
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
    table
}

/// What decides how many messages MG has.
fn messages_of_mg(workshop: &Workshop<'_>) -> Result<Table, SimulationError> {
    let given = Change { variation: Variation::InputGiven, ..Change::NONE };
    let changes = [
        ("nothing", Change::NONE),
        (
            "a face of exactly 2,048 bytes is a long message, three for one",
            Change { eager_bytes: Some(2032), ..Change::NONE },
        ),
        ("without the 80 reductions of the input", given),
        ("both", Change { eager_bytes: Some(2032), ..given }),
    ];
    let cases = changes.map(|(_, change)| case(workshop, (change, 1), (Benchmark::Mg, SchemeName::Preposted), ENOUGH));
    let runs = workshop.run(&cases)?;
    let title = "Messages of a process of MG: one thing changed at a time (L: 1595)";
    let mut table = Table::new("mg", title, &["changed", "messages", "beside L (%)"]);
    for ((what, _), runs) in changes.iter().zip(&runs) {
        let count = runs.estimate(|run| mean(messages(run))).mean();
        table.row([(*what).to_owned(), format!("{count:.0}"), format!("{:+.1}", 100.0 * (count / 1595.0 - 1.0))]);
    }
    Ok(table)
}

/// Thresholds, L's first: from how many owed credits on a credit message goes.
const THRESHOLDS: [u32; 6] = [5, 2, 10, 20, 40, 80];
/// What a credit message would have to cost each side so that LU loses what it does in L (table of causes of L-fig9).
const DEAR_NS: u32 = 150_000;

/// LU under preposted with other thresholds.
struct Thresholds {
    /// Explicit credit messages of a process, by threshold.
    credits: Vec<f64>,
    /// How much faster than with L's threshold, in percent, by threshold.
    faster: Vec<f64>,
    table: Table,
}

impl Thresholds {
    fn run(workshop: &Workshop<'_>) -> Result<Self, SimulationError> {
        let dear = [None, Some(DEAR_NS)];
        let of = (Benchmark::Lu, SchemeName::Preposted);
        let cases = dear.iter().flat_map(|&credit_packet_ns| {
            THRESHOLDS.map(|threshold| {
                let change = Change { credit_threshold: Some(threshold), credit_packet_ns, ..Change::NONE };
                shorter_case(workshop, (change, 1), of, ENOUGH)
            })
        });
        let runs = workshop.run(&cases.collect::<Vec<_>>())?;
        let (cheap, dear) = runs.split_at(THRESHOLDS.len());
        let credits = cheap.iter().map(|runs| runs.estimate(|run| mean(run.noted("credits"))).mean()).collect();
        let faster = |runs: &[Runs]| {
            let than_first = |runs: &Runs, first: &Runs| {
                runs.paired(first, |run, first| 100.0 * (1.0 - run.time / first.time)).mean()
            };
            runs.iter().map(|of| than_first(of, &runs[0])).collect::<Vec<f64>>()
        };
        let (faster, dear_faster) = (faster(cheap), faster(dear));
        let title = "LU under preposted, 100 buffers, 25 iterations: the credit threshold changed; how much faster than with 5; the \
            same if a credit message cost each side 150 µs instead of 0.4";
        let columns = ["threshold", "credit messages per process", "faster (%)", "faster, dear credit messages (%)"];
        let mut found = Thresholds { credits, faster, table: Table::new("thresholds", title, &columns) };
        for (at, threshold) in THRESHOLDS.iter().enumerate() {
            found.table.row([
                threshold.to_string(),
                format!("{:.0}", found.credits[at]),
                format!("{:.2}", found.faster[at]),
                format!("{:.2}", dear_faster[at]),
            ]);
        }
        Ok(found)
    }

    /// "… a threshold credit value, which suppresses any explicit credit messages if the number of credit to be
    /// transferred is below the threshold … Performance can be improved by increasing this value for LU" (§6.3.1).
    fn facts(&self) -> [Fact; 2] {
        let each = |values: &[f64], digits: usize| {
            let each = THRESHOLDS.iter().zip(values).map(|(threshold, value)| format!("{threshold}: {value:.digits$}"));
            each.collect::<Vec<_>>().join(", ")
        };
        // From 2 on, in their order.
        let rising = [1, 0, 2, 3, 4, 5].map(|at| self.credits[at]);
        let best = self.faster[2..].iter().copied().fold(f64::MIN, f64::max);
        [
            Fact::tested(
                "The number of explicit credit messages of LU depends on the threshold: the larger, the fewer.",
                rising.windows(2).all(|pair| pair[1] < pair[0]),
                "depends on a threshold credit value",
                each(&self.credits, 0),
            )
            .implied(
                "It is the rule of the threshold: one for each so many of the 62 planes that go one way in a sweep; what is left \
                 rides on the messages of the next.",
            ),
            Fact::tested(
                "A larger threshold than 5 improves the performance of LU (some by at least 1 %).",
                best >= 1.0,
                "can be improved",
                format!("faster by (%) {}", each(&self.faster, 2)),
            )
            .because(THRESHOLD_COST),
        ]
    }
}

/// Why a larger threshold gains nothing here, tested.
const THRESHOLD_COST: &str = "Credit messages cost too little here to be felt: with a threshold of 80 there are none, and LU is 0.01 % faster. Tested \
    (table of thresholds): if one cost each side 150 µs, which makes preposted as much slower than rnr as in L (L-fig9, table of \
    causes), a threshold of 10 would gain 2.5 %, and 80 all that is lost, 5.1 %.";

/// Table 1.
pub(crate) fn credit_messages(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let suite = Suite::run(workshop, &[SchemeName::Preposted], ENOUGH)?;
    let runs = |benchmark| &suite.of(benchmark)[0];
    let credits = |benchmark| runs(benchmark).estimate(|run| mean(run.noted("credits"))).mean();
    let all = |benchmark| runs(benchmark).estimate(|run| mean(messages(run))).mean();
    let share = |benchmark| 100.0 * credits(benchmark) / all(benchmark).max(1.0);
    let of_lu = |label: &str| runs(Benchmark::Lu).estimate(|run| most(run.noted(label))).mean();
    let busiest = runs(Benchmark::Lu).estimate(|run| most(messages(run))).mean();
    let table = table1(credits, all, share);
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
    // L's numbers are those of one process: of LU one with three neighbours, of CG one that is its own transpose.
    let nearest = |benchmark, run: &Measurement| {
        let off = |count: &f64| (count / paper_of(benchmark) - 1.0).abs();
        messages(run).into_iter().min_by(|one, other| off(one).total_cmp(&off(other))).unwrap_or(0.0)
    };
    let counted = |benchmark| runs(benchmark).estimate(|run| nearest(benchmark, run)).mean();
    let off = |benchmark| 100.0 * (counted(benchmark) / paper_of(benchmark) - 1.0);
    let counts = "Some process sends as many messages as the paper says (within 10 %; BT and SP swapped, as their iterations say).";
    let counts = match is_whole {
        true => Fact::tested(
            counts,
            Benchmark::ALL.iter().all(|&benchmark| off(benchmark).abs() <= 10.0),
            list(&Benchmark::ALL, |benchmark| format!("{:.0}", paper_of(benchmark))),
            list(&Benchmark::ALL, |benchmark| format!("{:.0} ({:+.1} %)", counted(benchmark), off(benchmark))),
        )
        .perhaps_because("the forms of small collectives are not known."),
        false => Fact::not_run(counts, "383 to 48,805", "Fewer iterations than the class has."),
    };
    let mut facts = vec![
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
    let thresholds = Thresholds::run(workshop)?;
    facts.extend(thresholds.facts());
    let tables = vec![table, thresholds.table, messages_of_mg(workshop)?];
    Ok(Findings { setup: setup(workshop, "100"), figures: Vec::new(), tables, facts })
}
