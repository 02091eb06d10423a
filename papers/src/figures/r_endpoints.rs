//! R's question with endpoints of Tidegate: what few slow processes cost all the others on a dragonfly, with credits
//! that stand for memory in place of R's chunks, which are only counted (R §4.1).

use std::collections::BTreeMap;

use tidegate_flow::SchemeName;
use tidegate_sim::topology::Ways;
use tidegate_sim::workload::Pattern;
use tidegate_sim::{Estimate, Measurement, SimulationError};

use super::compare_job::{SLOT_BYTES, flow, size};
use crate::report::{AsPoint, Fact, Figure, Findings, Series, Table};
use crate::run::case::{Case, Workload};
use crate::run::machine::Grove;
use crate::run::program::{PatternRun, TIME_OF_BYSTANDER};
use crate::runs::Runs;
use crate::workshop::Workshop;

/// Places in a process's table of peers: a barrier has two partners for each bit of a rank, a pair one.
const PEERS: u32 = 20;
/// Slots of a mailbox for each place; all schemes get the memory of these.
const SLOTS: [u32; 4] = [8, 16, 64, 256];
const SCHEMES: [SchemeName; 4] = [SchemeName::None, SchemeName::Static, SchemeName::Dynamic, SchemeName::SharedWindow];
const WAYS: [(Ways, &str); 2] = [(Ways::Shortest, "shortest"), (Ways::DrawnForPairs, "a detour for each pair")];
/// A slow process needs so many times as long for a packet as its link.
const FACTOR: u32 = 8;
/// Of a thousand processes so many are slow, but one at least.
const SLOW_PER_MILLE: u32 = 10;
/// What counts as the same time in the mean.
const SAME: f64 = 1.02;
/// A bystander that takes so many times as long is held up.
const HELD_UP: f64 = 1.5;

/// How many times as long bystanders take beside slow processes: those that neither are slow nor send to one that is.
#[derive(Clone, Copy)]
enum Cost {
    /// All of them together.
    Mean,
    /// The one that loses most.
    Worst,
}

/// A scheme at one memory: without slow processes, and with them.
struct Pair([Runs; 2]);

fn bystanders(run: &Measurement) -> impl Iterator<Item = (u32, f64)> {
    run.notes.iter().filter(|note| note.label == TIME_OF_BYSTANDER).map(|note| (note.rank, note.value))
}

fn cost(slow: &Measurement, none: &Measurement, of: Cost) -> f64 {
    let without: BTreeMap<u32, f64> = bystanders(none).collect();
    let both: Vec<[f64; 2]> = bystanders(slow).filter_map(|(rank, time)| Some([time, *without.get(&rank)?])).collect();
    let sum = |place: usize| both.iter().map(|times| times[place]).sum::<f64>();
    match of {
        // While runs are only listed there are none.
        _ if both.is_empty() => 1.0,
        Cost::Mean => sum(0) / sum(1),
        Cost::Worst => both.iter().map(|[slow, none]| slow / none).fold(0.0, f64::max),
    }
}

impl Pair {
    fn cost(&self, of: Cost) -> Estimate {
        self.0[1].paired(&self.0[0], |slow, none| cost(slow, none, of))
    }

    /// Mean time of all processes with none slow.
    fn time(&self) -> f64 {
        self.0[0].estimate(|run| run.time).mean()
    }
}

/// All of them: by ways, by memory, by scheme.
struct All(Vec<Vec<Vec<Pair>>>);

fn bytes(slots: u32) -> u64 {
    u64::from(slots) * u64::from(PEERS) * SLOT_BYTES
}

impl All {
    fn run(workshop: &Workshop<'_>, sizes: [u16; 3], messages: u32) -> Result<Self, SimulationError> {
        let workload = PatternRun { pattern: Pattern::Pairs, messages, bytes: 1024, window: messages };
        let grove = Grove { sizes, ways: Ways::Shortest, slow_per_mille: 0, slow_factor: FACTOR, peers: PEERS };
        let slow = Grove { slow_per_mille: SLOW_PER_MILLE, ..grove };
        let mut cases = Vec::new();
        for (ways, _) in WAYS {
            for slots in SLOTS {
                for scheme in SCHEMES {
                    let flow = flow(scheme, PEERS + 1, bytes(slots)).map_err(|least| {
                        SimulationError::Setup(format!(
                            "{scheme} needs {} instead of {}",
                            size(least),
                            size(bytes(slots))
                        ))
                    })?;
                    let workload = || Workload::Pattern(workload);
                    cases.extend(
                        [grove, slow].map(|grove| Case::on_dragonfly(Grove { ways, ..grove }, flow, workload())),
                    );
                }
            }
        }
        let mut runs = workshop.run(&cases)?.into_iter();
        let mut pair = || Pair([0, 1].map(|_| runs.next().expect("a result for every case")));
        let mut of_ways = || SLOTS.map(|_| SCHEMES.map(|_| pair()).into()).into();
        Ok(All(WAYS.map(|_| of_ways()).into()))
    }

    /// A scheme at the memories of these places in [`SLOTS`], with all ways: the highest cost.
    fn highest(&self, scheme: SchemeName, memories: std::ops::Range<usize>, of: Cost) -> f64 {
        let place = SCHEMES.iter().position(|&other| other == scheme).unwrap_or(0);
        let pairs = self.0.iter().flat_map(|by_memory| &by_memory[memories.clone()]).map(|by_scheme| &by_scheme[place]);
        pairs.map(|pair| pair.cost(of).mean()).fold(0.0, f64::max)
    }

    fn table(&self) -> Table {
        let columns =
            ["ways", "memory", "scheme", "mean time, none slow (µs)", "mean cost of slow ones", "cost of the worst"];
        let title = "How many times as long those take beside slow processes that have nothing to do with them";
        let mut table = Table::new("endpoints", title, &columns);
        for ((_, ways), by_memory) in WAYS.iter().zip(&self.0) {
            for (slots, by_scheme) in SLOTS.iter().zip(by_memory) {
                for (scheme, pair) in SCHEMES.iter().zip(by_scheme) {
                    let [mean, worst] = [Cost::Mean, Cost::Worst].map(|of| format!("{:.2}", pair.cost(of).mean()));
                    let time = format!("{:.0}", pair.time());
                    table.row([(*ways).to_owned(), size(bytes(*slots)), scheme.to_string(), time, mean, worst]);
                }
            }
        }
        table
    }

    fn figure(&self) -> Figure {
        let mut series = Vec::new();
        for ((_, ways), by_memory) in WAYS.iter().zip(&self.0) {
            for (place, scheme) in SCHEMES.iter().enumerate() {
                let points = SLOTS.iter().zip(by_memory).map(|(&slots, by_scheme)| {
                    by_scheme[place].cost(Cost::Worst).point((bytes(slots) as f64 / 1024.0).log2())
                });
                series.push(Series::of(scheme.name(), points).in_panel(*ways));
            }
        }
        Figure {
            name: "endpoints".to_owned(),
            title: "What slow processes cost the one that loses most by them".to_owned(),
            x_axis: "receive memory of a process (2^x KiB)".to_owned(),
            y_axis: "time (1: without slow processes)".to_owned(),
            series,
            ..Figure::default()
        }
    }
}

/// Runs it.
pub(crate) fn run(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let sizes = workshop.scale.pick([19, 6, 3], [9, 4, 2], [5, 2, 2]);
    let messages = workshop.scale.pick(100, 60, 30);
    let all = All::run(workshop, sizes, messages)?;
    let [groups, routers, nodes] = sizes.map(u32::from);
    let processes = groups * routers * nodes;
    let setup = format!(
        "{groups} groups of {routers} routers of {nodes} nodes, a process on each ({processes} in all), which needs no time for anything; \
         routers with four channels of 16 packets. Random pairs send each other {messages} messages of 1 KiB at once. {SLOW_PER_MILLE} of a thousand \
         processes are slow: they need {FACTOR} times as long for a packet as their link. All schemes have the same receive memory, for \
         {PEERS} peers. Endpoints need the packets of a pair in order, so each pair has one way, the shortest or one by a group that is \
         drawn for it; R's routers choose for each packet."
    );
    let credits = [SchemeName::Static, SchemeName::Dynamic];
    let (few, most) = (0..2, SLOTS.len() - 1..SLOTS.len());
    let every = 0..SLOTS.len();
    let pool = SchemeName::SharedWindow;
    let both = |scheme, memories: &std::ops::Range<usize>| {
        [Cost::Mean, Cost::Worst].map(|of| all.highest(scheme, memories.clone(), of))
    };
    let said = |[mean, worst]: [f64; 2]| format!("mean {mean:.2}, worst {worst:.2}");
    let is_kept = |[mean, worst]: [f64; 2]| mean <= SAME && worst < HELD_UP;
    let said_of_credits = |memories: &std::ops::Range<usize>| {
        credits.map(|scheme| format!("{scheme}: {}", said(both(scheme, memories)))).join("; ")
    };
    let facts = vec![
        Fact::tested(
            "Without flow control slow receivers hold up others: with the two least memories some that have nothing to do with them take \
             1.5 times as long, or longer.",
            both(SchemeName::None, &few)[1] >= HELD_UP,
            "the average throughput drops dramatically",
            said(both(SchemeName::None, &few)),
        )
        .implied(OURS)
        .because(NOT_FAR),
        Fact::tested(
            "With credits they do not: with any memory and any ways the others take no longer in the mean (2 %), and none 1.5 times as long.",
            credits.iter().all(|&scheme| is_kept(both(scheme, &every))),
            "throttle the traffic to the slow nodes",
            said_of_credits(&every),
        )
        .implied(OURS)
        .because(CREDITS),
        Fact::tested(
            "There are never too many credits: with the most memory it is so, too, where with too many of R's chunks congestion comes back.",
            credits.iter().all(|&scheme| is_kept(both(scheme, &most))),
            "if too many transfers are allowed in parallel, congestion occurs",
            said_of_credits(&most),
        )
        .implied("It is the last memory of the statement before.")
        .because(CREDITS),
        Fact::tested(
            "A pool that refuses messages, which their senders' adapters send again, does not hold up others either, unless it is small: \
             with the two most memories.",
            is_kept(both(pool, &(2..SLOTS.len()))),
            "in none of the papers",
            format!("{}; with the two least {}", said(both(pool, &(2..SLOTS.len()))), said(both(pool, &few))),
        )
        .implied(OURS)
        .because("What is refused has crossed the network in vain, and crosses it again."),
    ];
    Ok(Findings { setup, figures: vec![all.figure()], tables: vec![all.table()], facts })
}

/// Why none of these counts as reproduced.
const OURS: &str =
    "No sentence of R, whose nodes have no endpoints: it is R's question, asked of ours. It is tested, and can fail.";

const NOT_FAR: &str = "With one way for each pair the tree of full buffers spreads along few of them (R-fig1: it is detours that spread it); in \
    a network of few nodes nobody may share a link with a slow one.";

const CREDITS: &str = "A credit is a place in the receiver's memory, so what is under way never waits in the network for a slow process; R's \
    chunks are counted only, and wait there.";
