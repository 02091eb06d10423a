//! B figs. 12 and 13: how many senders booking keeps busy.

use tidegate_bulk::{Settings, TechniqueName};
use tidegate_sim::bulk_machine::{BulkPattern, Proof};
use tidegate_sim::{Estimate, SimulationError, Time};

use super::b_machines::{Curve, REQUESTS, Setting, WINDOW, run_all};
use crate::report::{AsPoint, Fact, Figure, Findings, Series, Table};
use crate::run::bulk_run::BulkRun;
use crate::runs::Runs;
use crate::workshop::Workshop;

/// Most senders are busy where at least so many are, and for the duration where it is so for this part of the time.
const MOST: f64 = 0.5;
const DURATION: f64 = 0.8;

pub(crate) fn run(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let setting = Setting::cm5(workshop.scale);
    let nodes = setting.machine.shape.nodes();
    let passes = workshop.scale.pick(4, 4, 4);
    let bytes = 1024;
    let patterns = [
        ("fig12", "all pairs (transpose)", BulkPattern::CyclicShift { passes }),
        ("fig13", "random", BulkPattern::Random { blocks: passes * (nodes - 1) }),
    ];
    let of = |pattern| {
        let mut run = setting.run(Curve::Booking, bytes);
        run.job.pattern = pattern;
        run.job.watch = true;
        run.job.technique = TechniqueName::Booking;
        run.job.settings =
            Settings { unit: bytes, window: WINDOW, requests_per_round: REQUESTS, ..Settings::default() };
        run
    };
    let changed = |pattern, change: Change| {
        let mut run = of(pattern);
        change(&mut run);
        run
    };
    let count = workshop.scale.pick(CAUSES.len(), CAUSES.len(), 1);
    let cases =
        CAUSES[..count].iter().flat_map(|&(_, change)| patterns.map(|(_, _, pattern)| changed(pattern, change)));
    let all = run_all(workshop, &cases.collect::<Vec<_>>())?;
    let (runs, tables) = (&all[..patterns.len()], vec![causes(&all)]);
    let mut figures = Vec::new();
    let mut facts = Vec::new();
    for ((name, traffic, _), runs) in patterns.iter().zip(runs) {
        figures.push(figure(name, traffic, nodes, runs));
        facts.extend(facts_of(traffic, runs));
    }
    let setup = format!(
        "cm5, {nodes} nodes, {passes} blocks of {bytes} bytes per pair of nodes (random: as many in all), window {WINDOW}, {REQUESTS} \
         request per sender and round. A sender is busy from the beginning of a block until its receiver has acknowledged it. The \
         time is cut into 50 spans."
    );
    Ok(Findings { setup, figures, tables, facts })
}

/// What is changed of a run.
type Change = fn(&mut BulkRun);

/// What may keep senders idle, beginning with the run as it is.
const CAUSES: [(&str, Change); 8] = [
    ("as in the figures", |_| {}),
    ("two requests a round", |run| run.job.settings.requests_per_round = 2),
    ("as many requests as one likes", |run| run.job.settings.requests_per_round = u32::MAX),
    ("window 64", |run| run.job.settings.window = 64),
    ("blocks are sent when injected", |run| run.machine.proof = Proof::Injected),
    ("every block takes as long as the next", |run| run.machine.jitter_per_mille = 0),
    ("the same, two requests a round", |run| {
        run.machine.jitter_per_mille = 0;
        run.job.settings.requests_per_round = 2;
    }),
    ("requests and barriers cost a tenth", |run| {
        let machine = &mut run.machine;
        (machine.send_signal, machine.receive_signal) =
            (Time(machine.send_signal.0 / 10), Time(machine.receive_signal.0 / 10));
    }),
];

/// How many nodes are idle where one of them is changed.
fn causes(all: &[Runs]) -> Table {
    let columns = ["changed", "idle, all pairs", "idle, random"];
    let title = "Nodes idle in the middle three fifths of the time (%): what is changed";
    let mut table = Table::new("causes", title, &columns);
    for ((what, _), runs) in CAUSES.iter().zip(all.chunks(2)) {
        let cells = runs.iter().map(|runs| format!("{:.0}", 100.0 * (1.0 - middle(runs))));
        table.row(std::iter::once((*what).to_owned()).chain(cells));
    }
    table
}

/// The share of senders that are busy in the middle three fifths of the time.
fn middle(runs: &Runs) -> f64 {
    let count = spans(runs);
    let spans = count / 5..count - count / 5;
    spans.clone().map(|span| share(runs, span).mean()).sum::<f64>() / spans.len().max(1) as f64
}

fn spans(runs: &Runs) -> usize {
    runs.0.iter().map(|run| run.bulk.as_ref().map_or(0, |bulk| bulk.busy.len())).min().unwrap_or(0)
}

fn share(runs: &Runs, span: usize) -> Estimate {
    runs.estimate(|run| run.bulk.as_ref().map_or(0.0, |bulk| bulk.busy[span]))
}

fn figure(name: &str, traffic: &str, nodes: u32, runs: &Runs) -> Figure {
    let count = spans(runs);
    let points = (0..count).map(|span| {
        let each = runs.estimate(|run| run.bulk.as_ref().map_or(0.0, |bulk| f64::from(nodes) * bulk.busy[span]));
        each.point(100.0 * (span as f64 + 0.5) / count as f64)
    });
    Figure {
        name: name.to_owned(),
        title: format!("Senders that booking keeps busy, {traffic}"),
        x_axis: "time (% of the whole)".to_owned(),
        y_axis: "senders busy".to_owned(),
        series: vec![Series::of("booking", points)],
        ..Figure::default()
    }
}

fn facts_of(traffic: &str, runs: &Runs) -> [Fact; 3] {
    let count = spans(runs);
    let shares: Vec<f64> = (0..count).map(|span| share(runs, span).mean()).collect();
    let long = shares.iter().filter(|share| **share >= MOST).count() as f64 / count.max(1) as f64;
    let all = shares.iter().sum::<f64>() / count.max(1) as f64;
    let most = runs.estimate(|run| run.bulk.as_ref().map_or(0.0, |bulk| f64::from(bulk.senders_most))).mean();
    let busy = Fact::tested(
        &format!("Booking keeps most senders busy for the duration with {traffic} (half of them, 80 % of the time)."),
        long >= DURATION,
        "most senders busy for the duration",
        format!("half of them or more for {:.0} % of the time; {:.0} % on average", 100.0 * long, 100.0 * all),
    )
    .because("Random traffic ends with the receivers that have most to get: the fewer blocks there are, the longer that lasts");
    let middle = middle(runs);
    let few_idle = Fact::tested(
        &format!("Few nodes are idle with {traffic} (at most 10 %, in the middle three fifths of the time)."),
        middle >= 0.9,
        "very high network utilization (few idle nodes) (B §4.4)",
        format!("{:.0} % idle", 100.0 * (1.0 - middle)),
    )
    .because(
        "Tested in part (table of causes): with two requests a round fewer nodes are idle, with as many as one likes most are denied and more are idle; \
         wider windows, blocks that take equally long and cheaper signals move nothing. What keeps the others idle was not found",
    );
    let one = Fact::tested(
        &format!("No receiver hears more than one sender of blocks at a time with {traffic}."),
        most <= 1.0,
        "while preserving 1-on-1 (B §4.4)",
        format!("at most {most:.1}"),
    );
    [busy, few_idle, one]
}
