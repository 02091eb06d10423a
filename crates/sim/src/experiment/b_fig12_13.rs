//! B figs. 12 and 13: how many senders booking keeps busy.

use tidegate_bulk::{Settings, TechniqueName};

use super::b_machines::{Curve, REQUESTS, Setting, WINDOW, run_all};
use super::estimate::Estimate;
use super::measurement::Runs;
use super::report::{Fact, Figure, Findings, Series};
use super::workshop::Workshop;
use crate::SimulationError;
use crate::bulk_machine::BulkPattern;

/// Most senders are busy where at least so many are, and for the duration where it is so for this part of the time.
const MOST: f64 = 0.5;
const DURATION: f64 = 0.8;

pub(super) fn run(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
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
    let runs = run_all(workshop, &patterns.map(|(_, _, pattern)| of(pattern)))?;
    let mut figures = Vec::new();
    let mut facts = Vec::new();
    for ((name, traffic, _), runs) in patterns.iter().zip(&runs) {
        figures.push(figure(name, traffic, nodes, runs));
        facts.extend(facts_of(traffic, runs));
    }
    let setup = format!(
        "cm5, {nodes} nodes, {passes} blocks of {bytes} bytes per pair of nodes (random: as many in all), window {WINDOW}, {REQUESTS} \
         request per sender and round. A sender is busy from the beginning of a block until its receiver has acknowledged it. The \
         time is cut into 50 spans."
    );
    Ok(Findings { setup, figures, tables: Vec::new(), facts })
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
    let middle = &shares[count / 5..count - count / 5];
    let most = runs.estimate(|run| run.bulk.as_ref().map_or(0.0, |bulk| f64::from(bulk.senders_most))).mean();
    let busy = Fact::tested(
        &format!("Booking keeps most senders busy for the duration with {traffic} (half of them, 80 % of the time)."),
        long >= DURATION,
        "most senders busy for the duration",
        format!("half of them or more for {:.0} % of the time; {:.0} % on average", 100.0 * long, 100.0 * all),
    )
    .because("Random traffic ends with the receivers that have most to get: the fewer blocks there are, the longer that lasts");
    let middle = middle.iter().sum::<f64>() / middle.len().max(1) as f64;
    let few_idle = Fact::tested(
        &format!("Few nodes are idle with {traffic} (at most 10 %, in the middle three fifths of the time)."),
        middle >= 0.9,
        "very high network utilization (few idle nodes) (B §4.4)",
        format!("{:.0} % idle", 100.0 * (1.0 - middle)),
    )
    .perhaps_because(
        "A sender makes one request per round, and those that are late find the receivers of a round taken; a sender waits for its \
         receiver's acknowledgement, too, and counts as busy then",
    );
    let one = Fact::tested(
        &format!("No receiver hears more than one sender of blocks at a time with {traffic}."),
        most <= 1.0,
        "while preserving 1-on-1 (B §4.4)",
        format!("at most {most:.1}"),
    );
    [busy, few_idle, one]
}
