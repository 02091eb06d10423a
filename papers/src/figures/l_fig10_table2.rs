//! L fig. 10 and table 2: the NAS Parallel Benchmarks with one buffer per connection.

use tidegate_flow::SchemeName;
use tidegate_message::Counter;
use tidegate_sim::SimulationError;
use tidegate_sim::workload::nas::{Benchmark, Variation};

use super::l_flows::{Change, SCHEMES, lumps};
use super::l_nas::{
    Changed, ENOUGH, FEWEST, GROWING, PREPOSTED, RNR, Suite, bars, fewer_iterations, iterations, list, name, nas_case,
    place, setup, shorter_case, table,
};
use crate::report::{Fact, Findings, Table};
use crate::run::case::Case;
use crate::runs::Runs;
use crate::workshop::Workshop;

/// What is changed to see what decides figure 10 and table 2.
fn changes() -> Vec<Changed> {
    vec![
        ("nothing", Change::NONE, 1),
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

/// Fig. 10.
pub(crate) fn one_buffer(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
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
        Fact::tested("And on MG (by at least 5 %).", rnr_mg >= 5.0, "significantly", format!("{rnr_mg:.1} %"))
            .because(RNR_DROP),
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
        ),
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
        .flat_map(|(changed, of)| [ENOUGH, FEWEST].map(|buffers| shorter_case(workshop, changed, of, buffers)))
        .collect();
    let runs = workshop.run(&cases)?;
    let heads: Vec<String> = drops.iter().map(|(benchmark, scheme)| format!("{} {scheme}", name(*benchmark))).collect();
    let mut columns = vec!["changed"];
    columns.extend(heads.iter().map(String::as_str));
    columns.push("LU growing: buffers");
    let mut table = Table::new(
        "causes",
        "What decides the drops (%): one thing changed at a time (LU 25 iterations, CG 3, MG 4, IS 5, SP 10)",
        &columns,
    );
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
    plane. Tested (table of causes): interruptions of 1 ms, which put the two out of step, raise the drop to some 5 %, longer \
    and rarer ones less; processors ten times as fast bring it to about L's 13 %.";
const PREPOSTED_CG: &str = "Most of it are refusals, by credit messages that take the only buffer, times the retry timer. Tested (table of \
    causes): the drop is below L's 6 % with 0.01 and 0.08 ms, above with 0.64, far above with 10.24.";

/// What L's table 2 says.
const TABLE2: [u32; 7] = [4, 4, 63, 3, 6, 7, 7];

/// Table 2.
pub(crate) fn buffers_reached(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
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
        ),
        Fact::tested(
            "LU reaches as many as it has planes to send one way, and one: 63 (60 to 66).",
            (60.0..=66.0).contains(&buffers(Benchmark::Lu)),
            "63",
            format!("{:.1}", buffers(Benchmark::Lu)),
        )
        .because(LU_BUFFERS),
    ];
    let tables = vec![table, buffers_of_lu(workshop)?];
    Ok(Findings { setup: setup(workshop, "at first 1"), figures: Vec::new(), tables, facts })
}

/// What decides how many buffers LU reaches.
fn buffers_of_lu(workshop: &Workshop<'_>) -> Result<Table, SimulationError> {
    let (quick, smallest) = fewer_iterations(Benchmark::Lu);
    let few = Some(workshop.scale.pick(quick, quick, smallest));
    let all = iterations(workshop, Benchmark::Lu);
    let copied = Change { variation: Variation::EdgesCopied, ..Change::NONE };
    let lumps_of = |change, us| Change { interruptions: lumps(us), ..change };
    let ways: Vec<(&str, Option<u32>, Change, u32)> = vec![
        ("25 iterations", few, Change::NONE, 1),
        ("all 250 iterations", all, Change::NONE, 1),
        ("the same, interruptions of 10 ms, as much in all", all, lumps_of(Change::NONE, 10_000), 1),
        ("the same, interruptions of 100 ms", all, lumps_of(Change::NONE, 100_000), 1),
        ("what may not leave waits as a copy, and its sender goes on; 25 iterations", few, copied, 1),
        ("the same, all 250 iterations", all, copied, 1),
        ("copies, and processors ten times as fast, 25 iterations", few, copied, 10),
    ];
    let of = (Benchmark::Lu, SchemeName::Growing);
    let cases: Vec<Case> = ways
        .iter()
        .map(|&(_, iterations, change, faster)| nas_case(iterations, (change, faster), of, FEWEST))
        .collect();
    let runs = workshop.run(&cases)?;
    let title = "Most buffers that a connection of LU reached under growing: what is changed (L: 63)";
    let mut table = Table::new("lu", title, &["run", "buffers", "messages that had to wait, per process"]);
    for ((what, ..), runs) in ways.iter().zip(&runs) {
        let most = runs.estimate(|run| run.posted.map_or(0.0, |posted| f64::from(posted.buffers_most))).mean();
        let added = runs.estimate(|run| run.counter(Counter::BuffersAdded) as f64 / 8.0).mean();
        table.row([(*what).to_owned(), format!("{most:.1}"), format!("{added:.0}")]);
    }
    Ok(table)
}

const LU_BUFFERS: &str = "Here a message that may not leave becomes a rendezvous, and its blocking send waits for the handshake (an assumption; \
    figures 5 and 6 want it so): a sender that gets ahead adds one buffer, and stands. Tested (table of LU): if what may not \
    leave waits as a copy and its sender goes on, all planes of one sweep wait once, each adds a buffer, and LU reaches 63, \
    L's number, in 25 iterations as in 250. The number of iterations does not matter; longer interruptions bring \
    connections to 13 to 17";
