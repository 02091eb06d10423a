//! B's techniques on networks of today: all-to-alls on a dragonfly and on a fat tree, beside what MPIs do.

use std::collections::BTreeMap;
use std::fmt;

use tidegate_bulk::{Completion, Settings, TechniqueName};
use tidegate_sim::cycle::all_to_all::{Algorithm, Barrier, Exchanged, Plan, Sizes};
use tidegate_sim::cycle::{Dragonfly, FatTree, Layout, Parameters, Routing};
use tidegate_sim::{Estimate, Measurement, SimulationError};

use crate::report::{AsPoint, Fact, Figure, Findings, Point, Series, Table};
use crate::run::case::Case;
use crate::run::exchange_run::ExchangeRun;
use crate::runs::Runs;
use crate::workshop::{Scale, Workshop};

/// What a node's processor needs to begin a piece or a signal, and to hear of one: 0.2 µs where a link carries 25 GB/s.
const OVERHEAD_CYCLES: u32 = 300;
/// Children of a node in the barrier's tree.
const ARITY: u32 = 4;
/// From this length on a block counts as long.
const LONG: u64 = 64 * 1024;

/// Who sends when, as the report names it.
#[derive(Clone, Copy, Debug)]
struct Contender {
    name: &'static str,
    algorithm: Algorithm,
    /// For `booking`: rounds from one barrier to the next.
    rounds_per_barrier: u32,
    /// For `booking`: the look-ahead window.
    window: u32,
    /// For `interleave`: pieces under way.
    outstanding: u32,
}

const fn technique(name: TechniqueName) -> Contender {
    Contender {
        name: name.name(),
        algorithm: Algorithm::Technique(name),
        rounds_per_barrier: 1,
        window: 8,
        outstanding: 2,
    }
}

const fn of_mpis(name: &'static str, algorithm: Algorithm) -> Contender {
    Contender { name, algorithm, rounds_per_barrier: 1, window: 8, outstanding: 1 }
}

const RARE_BARRIERS: &str = "booking, rare barriers";
const WIDE_WINDOW: &str = "booking, window 64";
const SCATTERED: &str = "scattered";
const PAIRWISE: &str = "pairwise";
const BRUCK: &str = "Bruck";

/// Bruck's algorithm last: it is for blocks of one size, and hopeless with long ones.
const CONTENDERS: [Contender; 12] = [
    technique(TechniqueName::InOrder),
    technique(TechniqueName::Interleave),
    Contender { name: "interleave, 32 at a time", outstanding: 32, ..technique(TechniqueName::Interleave) },
    technique(TechniqueName::Barriers),
    technique(TechniqueName::Tokens),
    technique(TechniqueName::ReceiverTokens),
    technique(TechniqueName::Booking),
    Contender { name: WIDE_WINDOW, window: 64, ..technique(TechniqueName::Booking) },
    Contender { name: RARE_BARRIERS, window: 64, rounds_per_barrier: 16, ..technique(TechniqueName::Booking) },
    of_mpis(SCATTERED, Algorithm::Scattered(32)),
    of_mpis(PAIRWISE, Algorithm::Pairwise),
    of_mpis(BRUCK, Algorithm::Bruck),
];

/// What is exchanged.
#[derive(Clone, Copy, Debug)]
struct Pattern {
    sizes: Sizes,
    /// The length of a block, or its mean.
    bytes: u64,
    /// How many cycles a node needs to take a flit.
    receive_factor: u16,
    /// Whether it sends nothing meanwhile.
    is_receiving_exclusive: bool,
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sizes.fmt(f)?;
        if self.receive_factor > 1 {
            write!(f, ", taken at 1/{} of the link's rate", self.receive_factor)?;
        }
        if self.is_receiving_exclusive { f.write_str(", nothing sent meanwhile") } else { Ok(()) }
    }
}

fn patterns(scale: Scale) -> Vec<Pattern> {
    let of = |sizes, bytes| Pattern { sizes, bytes, receive_factor: 1, is_receiving_exclusive: false };
    let kib = 1024;
    let mean = scale.pick(2, 4, 1) * kib;
    let rounds = scale.pick(8, 16, 4);
    let shifts = |rounds, bytes| of(Sizes::Shifts { rounds, bytes }, bytes);
    let mut all = vec![of(Sizes::Uniform(2 * kib), 2 * kib)];
    if scale == Scale::Quick {
        all.push(of(Sizes::Uniform(16 * kib), 16 * kib));
    }
    all.push(shifts(2 * rounds, LONG));
    if scale != Scale::Smallest {
        all.push(shifts(rounds / 4, 1024 * kib));
    }
    all.extend([
        of(Sizes::Random(mean), mean),
        of(Sizes::Skewed(mean), mean),
        of(Sizes::Sparse { receivers: rounds, bytes: LONG }, LONG),
    ]);
    // Receiving that is dearer than sending: as adapters of today would have it, and as B's machines had it.
    for is_receiving_exclusive in [false, true] {
        let dear = |pattern| Pattern { receive_factor: 2, is_receiving_exclusive, ..pattern };
        all.push(dear(shifts(2 * rounds, LONG)));
        all.push(dear(of(Sizes::Sparse { receivers: rounds, bytes: LONG }, LONG)));
    }
    all
}

/// Two networks of about a thousand nodes.
fn networks(scale: Scale) -> [Layout; 2] {
    let large = Dragonfly { groups: 33, routers: 8, nodes: 4, global: 4 };
    let small = Dragonfly { groups: 9, routers: 4, nodes: 2, global: 2 };
    let smallest = Dragonfly { groups: 5, routers: 2, nodes: 2, global: 2 };
    let tree = FatTree { radix: scale.pick(16, 8, 4), levels: 3 };
    [Layout::Dragonfly(scale.pick(large, small, smallest)), Layout::FatTree(tree)]
}

/// Two that are small enough for long blocks from everybody to everybody.
fn smaller_networks(scale: Scale) -> [Layout; 2] {
    networks(if scale == Scale::Full { Scale::Quick } else { scale })
}

/// One of five thousand nodes, that of R, for irregular traffic only.
const LARGEST: Layout = Layout::Dragonfly(Dragonfly { groups: 73, routers: 12, nodes: 6, global: 6 });

/// What is exchanged where.
fn places(scale: Scale) -> Vec<(Layout, Pattern)> {
    let long = Pattern { sizes: Sizes::Uniform(LONG), bytes: LONG, receive_factor: 1, is_receiving_exclusive: false };
    let smaller = smaller_networks(scale).map(|layout| (layout, long));
    let all = networks(scale)
        .into_iter()
        .flat_map(|layout| patterns(scale).into_iter().map(move |pattern| (layout, pattern)));
    let sparse = Pattern { sizes: Sizes::Sparse { receivers: 8, bytes: LONG }, ..long };
    all.chain(smaller).chain((scale == Scale::Full).then_some((LARGEST, sparse))).collect()
}

/// Whether a contender takes part. Bookings do not where a block is shorter than what it takes to agree on it; who goes
/// through all rounds of a shift does not on the largest network, where that is hopeless for a few receivers each.
fn takes_part(contender: &Contender, layout: Layout, pattern: &Pattern) -> bool {
    match contender.algorithm {
        Algorithm::Pairwise | Algorithm::Technique(TechniqueName::Barriers | TechniqueName::Tokens) => {
            layout != LARGEST
        }
        Algorithm::Bruck => matches!(pattern.sizes, Sizes::Uniform(_)) && pattern.bytes <= 2048,
        Algorithm::Technique(TechniqueName::Booking) => pattern.bytes >= 4096,
        _ => true,
    }
}

/// No exchange here takes so long.
const MOST_CYCLES: u64 = 200_000_000;

fn case(layout: Layout, pattern: &Pattern, contender: &Contender) -> Case {
    let rounds_per_barrier = contender.rounds_per_barrier;
    let settings = match contender.algorithm {
        Algorithm::Technique(TechniqueName::Booking) => Settings {
            // A message of the rendezvous, but no longer than the blocks.
            unit: pattern.bytes.min(LONG),
            window: contender.window,
            rounds_per_barrier,
            ..Settings::default()
        },
        // As the library has it.
        Algorithm::Technique(TechniqueName::Interleave) => {
            Settings { unit: pattern.bytes.min(LONG), outstanding: contender.outstanding, ..Settings::default() }
        }
        _ => Settings::default(),
    };
    Case::of_exchange(ExchangeRun(Plan {
        layout,
        routing: Routing::PROGRESSIVE,
        parameters: Parameters::SCHNEIDER,
        flit_bytes: 16,
        algorithm: contender.algorithm,
        settings,
        barrier: Barrier::Tree { arity: ARITY },
        overhead_cycles: OVERHEAD_CYCLES,
        receive_factor: pattern.receive_factor,
        is_receiving_exclusive: pattern.is_receiving_exclusive,
        sizes: pattern.sizes,
        seed: 0,
        most_cycles: MOST_CYCLES,
    }))
}

/// One network and pattern: the runs of each contender by name.
struct Cell {
    layout: Layout,
    pattern: Pattern,
    runs: BTreeMap<&'static str, Runs>,
}

fn exchange(run: &Measurement) -> Exchanged {
    run.exchange.unwrap_or_default()
}

impl Cell {
    fn rate(&self, name: &str) -> Option<Estimate> {
        Some(self.runs.get(name)?.estimate(|run| exchange(run).rate))
    }

    fn mean(&self, name: &str) -> f64 {
        self.rate(name).map_or(0.0, |rate| rate.mean())
    }

    /// The fastest of those that `are`.
    fn best(&self, are: impl Fn(&Contender) -> bool) -> (&'static str, f64) {
        let all = CONTENDERS.iter().filter(|contender| are(contender));
        let rates = all.map(|contender| (contender.name, self.mean(contender.name)));
        rates.fold(("none", 0.0), |best, one| if one.1 > best.1 { one } else { best })
    }

    fn is_long(&self) -> bool {
        self.pattern.bytes >= LONG
    }

    fn name(&self) -> String {
        format!("{}, {}", self.layout, self.pattern)
    }
}

fn run_all(workshop: &Workshop<'_>) -> Result<Vec<Cell>, SimulationError> {
    let places = places(workshop.scale);
    let takes_part = |layout: Layout, pattern: Pattern| {
        CONTENDERS.iter().filter(move |contender| takes_part(contender, layout, &pattern))
    };
    let cases = places
        .iter()
        .flat_map(|&(layout, pattern)| takes_part(layout, pattern).map(move |one| case(layout, &pattern, one)));
    let mut runs = workshop.run(&cases.collect::<Vec<_>>())?.into_iter();
    let cell = |&(layout, pattern): &(Layout, Pattern)| Cell {
        layout,
        pattern,
        runs: takes_part(layout, pattern).map(|one| one.name).zip(runs.by_ref()).collect(),
    };
    Ok(places.iter().map(cell).collect())
}

pub(crate) fn run(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let cells = run_all(workshop)?;
    let facts = facts(&cells);
    let names = networks(workshop.scale).map(|layout| format!("{layout} ({} nodes)", layout.nodes()));
    let setup = format!(
        "All nodes exchange blocks on two networks: a {}, and a {} (at full size irregular traffic also on a dragonfly of 5,256 \
         nodes, without those who go through all rounds of a shift); packets of 16 flits of 16 bytes, four channels of 256 flits, \
         progressive adaptive routing. A node's processor takes {OVERHEAD_CYCLES} cycles to begin a piece or a signal, and to \
         hear of one (0.2 µs where links carry 25 GB/s); signals, acknowledgements and the barrier's messages (a tree, {ARITY} \
         children) are packets of the same network. Rates are the bytes that a node receives per cycle, from the first cycle to \
         the last byte, as a part of what its link carries. Long blocks go to some distances of a cyclic shift only, so that \
         runs end; the techniques that shift go through all rounds nevertheless. Blocks of `booking` are cut at 64 KiB, and a \
         sender makes one request per round; with rare barriers there are 16 rounds from one to the next, and a window of 64. \
         Pieces of `interleave` are of 64 KiB, 2 or 32 at a time. Nobody waits for receives to be posted; who has to know that a piece has \
         come (tokens, barriers, `receiver_tokens`, `booking`) waits for an acknowledgement besides, so the others are at an advantage of \
         one way of the network for each piece. \
         Scattered is MPICH's way for middle lengths (32 sends at a time, here the next begins when one is over), pairwise that of MPICH and Open MPI for long ones, \
         Bruck that for short ones (as we remember their tables; none of their code was run). A seed draws sizes, receivers, \
         detours and whom a sender asks.",
        names[0], names[1]
    );
    Ok(Findings { setup, figures: figures(&cells), tables: vec![table(&cells)], facts })
}

const OTHERS: &str = "Scattered is one among several that have many pieces under way at once; which of them is first differs from cell to \
    cell (table today)";
const OURS: &str = "it is no sentence of B, whose machines had neither such networks nor such many nodes.";

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Some of the cells, for readers.
fn list(cells: &[Cell], which: impl Fn(&Cell) -> bool, show: impl Fn(&Cell) -> String) -> String {
    cells.iter().filter(|cell| which(cell)).map(show).collect::<Vec<_>>().join("; ")
}

/// Whether a technique has one sender at a time, and waits until a piece has come.
fn ordered(contender: &Contender) -> bool {
    matches!(contender.algorithm, Algorithm::Technique(name) if name.completion() == Completion::Delivered)
}

/// How long blocks fare where everything is sent as it comes.
fn against_scattered(cells: &[Cell]) -> [Fact; 2] {
    let long = |cell: &Cell| cell.is_long();
    let best_of_all = |cell: &Cell| cell.best(|one| one.name != SCATTERED);
    let holds = |test: &dyn Fn(&Cell) -> bool| cells.iter().filter(|cell| long(cell)).all(test);
    let beside_best = |cell: &Cell, name: &str| {
        let (other, rate) = cell.best(ordered);
        format!("{:.3}, {other} {rate:.3} ({})", cell.mean(name), cell.name())
    };
    [
        Fact::tested(
            "With long blocks, scattered is faster than every technique with one sender at a time, also where receiving takes \
             twice as long as sending, and where a node sends nothing meanwhile (everywhere).",
            holds(&|cell| cell.mean(SCATTERED) > cell.best(ordered).1),
            "not in B, on whose machines an order is a win for all but the smallest blocks",
            list(cells, long, |cell| beside_best(cell, SCATTERED)),
        )
        .implied(OURS),
        Fact::tested(
            "With long blocks nothing at all is faster than scattered by more than 5 % (everywhere).",
            holds(&|cell| cell.mean(SCATTERED) > 0.95 * best_of_all(cell).1),
            "not in B",
            list(cells, long, |cell| {
                let (other, rate) = best_of_all(cell);
                format!("{:.3}, {other} {rate:.3} ({})", cell.mean(SCATTERED), cell.name())
            }),
        )
        .implied(OURS)
        .because(OTHERS),
    ]
}

fn facts(cells: &[Cell]) -> Vec<Fact> {
    let beside = |cell: &Cell, name: &str, other: &str| cell.mean(name) / cell.mean(other).max(f64::MIN_POSITIVE);
    let asks = |contender: &Contender| {
        matches!(contender.algorithm, Algorithm::Technique(TechniqueName::Booking | TechniqueName::ReceiverTokens))
    };
    let irregular = |cell: &Cell| matches!(cell.pattern.sizes, Sizes::Sparse { .. }) && cell.layout != LARGEST;
    let uniform = |cell: &Cell| matches!(cell.pattern.sizes, Sizes::Uniform(_));
    let to_all = |cell: &Cell| matches!(cell.pattern.sizes, Sizes::Uniform(bytes) if bytes >= LONG);
    let books = |cell: &Cell| cell.runs.contains_key(RARE_BARRIERS);
    let holds =
        |which: &dyn Fn(&Cell) -> bool, test: &dyn Fn(&Cell) -> bool| cells.iter().filter(|cell| which(cell)).all(test);
    let ratio = |name: &'static str, other: &'static str| {
        move |cell: &Cell| format!("{:.2} ({})", beside(cell, name, other), cell.name())
    };
    let barriers = TechniqueName::Barriers.name();
    let tokens = TechniqueName::Tokens.name();
    vec![
        Fact::tested(
            "Booking with tokens every round and rare barriers is faster than with a barrier each round and the same window (in the \
             median).",
            median(cells.iter().filter(|cell| books(cell)).map(|cell| beside(cell, RARE_BARRIERS, WIDE_WINDOW))) > 1.0,
            "experiments … have shown promise (B §5.1)",
            list(cells, books, ratio(RARE_BARRIERS, WIDE_WINDOW)),
        ),
        Fact::tested(
            "Tokens are faster than barriers made of messages, with a block of one size for each (everywhere).",
            holds(&uniform, &|cell| beside(cell, tokens, barriers) > 1.0),
            "with more nodes one would expect tokens to outperform barriers by a wider margin (B §3.2)",
            list(cells, uniform, ratio(tokens, barriers)),
        ),
        Fact::tested(
            "Where the traffic is irregular (blocks for a few receivers by lot), of the techniques with one sender at a time one \
             that asks receivers is faster than those that go through all rounds of a shift.",
            holds(&irregular, &|cell| cell.best(asks).1 > cell.best(|one| ordered(one) && !asks(one)).1),
            "not in B",
            list(cells, irregular, |cell| {
                let ((mine, rate), (theirs, other)) = (cell.best(asks), cell.best(|one| ordered(one) && !asks(one)));
                format!("{mine} {rate:.3}, {theirs} {other:.3} ({})", cell.name())
            }),
        )
        .implied(OURS),
        Fact::tested(
            "Where everybody has as much for everybody, tokens are faster than pairwise exchange, which MPIs use for long blocks \
             (64 KiB).",
            holds(&to_all, &|cell| beside(cell, tokens, PAIRWISE) > 1.0),
            "not in B",
            list(cells, to_all, ratio(tokens, PAIRWISE)),
        )
        .implied(OURS)
        .perhaps_because("On few nodes pairs are seldom out of step, and a token's way costs more than waiting for a partner"),
    ]
    .into_iter()
    .chain(against_scattered(cells))
    .collect()
}

/// By block length, where blocks have one size: a curve for each contender, a panel for each network.
fn figures(cells: &[Cell]) -> Vec<Figure> {
    let regular: Vec<&Cell> = cells
        .iter()
        .filter(|cell| matches!(cell.pattern.sizes, Sizes::Uniform(_) | Sizes::Shifts { .. }))
        .filter(|cell| cell.pattern.receive_factor == 1)
        .collect();
    let mut layouts: Vec<Layout> = regular.iter().map(|cell| cell.layout).collect();
    layouts.dedup();
    let mut series = Vec::new();
    for layout in layouts {
        for contender in CONTENDERS {
            let of = regular.iter().filter(|cell| cell.layout == layout);
            let points: Vec<Point> =
                of.filter_map(|cell| Some(cell.rate(contender.name)?.point(cell.pattern.bytes as f64))).collect();
            series.push(Series::of(contender.name, points).in_panel(layout.to_string()));
        }
    }
    vec![Figure {
        name: "today".to_owned(),
        title: "All-to-all on networks of today".to_owned(),
        x_axis: "block (bytes)".to_owned(),
        y_axis: "rate (part of a node's link)".to_owned(),
        series,
        ..Figure::default()
    }]
}

fn table(cells: &[Cell]) -> Table {
    let mut columns = vec!["network", "blocks"];
    columns.extend(CONTENDERS.iter().map(|contender| contender.name));
    columns.extend(["denied", "denied, rare barriers", "fastest"]);
    let mut table = Table::new("today", "Rate, as a part of what a node's link carries", &columns);
    for cell in cells {
        let rates = CONTENDERS.iter().map(|contender| match cell.rate(contender.name) {
            Some(rate) => format!("{:.3}", rate.mean()),
            None => String::new(),
        });
        let denied = [TechniqueName::Booking.name(), RARE_BARRIERS].map(|name| {
            let share = |run: &Measurement| {
                let Exchanged { requests, denials, .. } = exchange(run);
                100.0 * denials as f64 / requests.max(1) as f64
            };
            cell.runs.get(name).map_or(String::new(), |runs| format!("{:.1} %", runs.estimate(share).mean()))
        });
        let first = [cell.layout.to_string(), cell.pattern.to_string()];
        let fastest = cell.best(|_| true).0.to_owned();
        table.row(first.into_iter().chain(rates).chain(denied).chain([fastest]));
    }
    table
}
