//! R fig. 4: whether marks of congestion (FECN, BECN) help against slow nodes.

use tidegate_sim::SimulationError;

use super::r_networks::{
    ALTERNATIVES, EAGER, Network, SHARE_AXIS, beside, curve, figure, list, not_settled, rate, routed, run_all,
};
use crate::report::{Fact, Findings, Table};
use crate::run::fabric_run::FabricRun;
use crate::runs::Runs;
use crate::workshop::Workshop;

/// Shares of slow nodes, in hundredths of a percent: at full size 0, 1, 5, 26 and 53 nodes.
const SHARES: [u32; 5] = [0, 2, 10, 50, 100];
/// A slow node needs so many cycles for a flit.
const FACTORS: [u16; 3] = [2, 4, 8];
/// Places in [`ALTERNATIVES`].
const BASELINE: usize = 0;
const DEFAULT: usize = 1;
const AGGRESSIVE: usize = 2;

/// The runs, by factor, then by alternative, then by number of slow nodes.
struct Curves {
    counts: Vec<u32>,
    runs: Vec<Runs>,
}

impl Curves {
    fn run(workshop: &Workshop<'_>, network: Network) -> Result<Self, SimulationError> {
        let counts = network.shares(&SHARES);
        let mut all = Vec::new();
        for factor in FACTORS {
            for (_, control) in ALTERNATIVES {
                all.extend(counts.iter().map(|&count| network.controlled(count, factor, control)));
            }
        }
        Ok(Curves { runs: run_all(workshop, &all)?, counts })
    }

    /// Those of a curve.
    fn of(&self, factor: usize, alternative: usize) -> &[Runs] {
        let first = (factor * ALTERNATIVES.len() + alternative) * self.counts.len();
        &self.runs[first..first + self.counts.len()]
    }

    /// Throughputs beside the baseline's, by number of slow nodes.
    fn beside(&self, factor: usize, alternative: usize) -> Vec<f64> {
        let baseline = self.of(factor, BASELINE).iter();
        self.of(factor, alternative).iter().zip(baseline).map(|(runs, base)| beside(runs, base)).collect()
    }
}

pub(crate) fn run(workshop: &Workshop<'_>) -> Result<Findings, SimulationError> {
    let network = Network::new(workshop);
    let curves = Curves::run(workshop, network)?;
    let none = |alternative: usize| curves.beside(0, alternative)[0];
    // Beside the baseline, the better of the two, where some are slow.
    let better = |factor: usize| -> Vec<f64> {
        let both = [DEFAULT, AGGRESSIVE].map(|alternative| curves.beside(factor, alternative));
        both[0].iter().zip(&both[1]).skip(1).map(|(one, other)| one.max(*other)).collect()
    };
    let worst = |factor: usize| {
        let both = [DEFAULT, AGGRESSIVE].into_iter().flat_map(|alternative| curves.beside(factor, alternative));
        both.fold(f64::MAX, f64::min)
    };
    let helps_at_two = better(0);
    let others: Vec<f64> = [1, 2].into_iter().flat_map(better).collect();
    let facts = vec![
        Fact::tested(
            "With slow nodes at 1/2, and few of them, marks improve the throughput (by at least 2 %, with some share below 1 %).",
            helps_at_two.split_last().is_some_and(|(_, few)| few.iter().any(|&beside| beside >= 1.02)),
            "an improvement, only at 2x and for few slow nodes",
            format!("the better of both beside the baseline: {}", list(helps_at_two.iter().copied())),
        )
        .implied(NO_MORE)
        .because(NO_GAIN),
        Fact::tested(
            "With slow nodes at 1/4 or 1/8 they do not (at most 2 % more than the baseline, with any share).",
            others.iter().all(|&beside| beside <= 1.02),
            "capable of improving the baseline only in the 2x case",
            format!("the better of both beside the baseline, at 1/4 and 1/8: {}", list(others.iter().copied())),
        )
        .because(NO_GAIN),
        Fact::tested(
            "The default marks cost throughput with no slow node (at least 1 %).",
            none(DEFAULT) <= 0.99,
            "a penalty with no slow receivers",
            format!("{:+.1} %", 100.0 * (none(DEFAULT) - 1.0)),
        )
        .because(MILD),
        Fact::tested(
            "Aggressive marks cost 40 % with no slow node (30 to 50 %).",
            (0.5..=0.7).contains(&none(AGGRESSIVE)),
            "−40 %, to about 0.35",
            format!("{:+.1} %, to {:.3}", 100.0 * (none(AGGRESSIVE) - 1.0), rate(&curves.of(0, AGGRESSIVE)[0])),
        )
        .because(STRONG),
        Fact::tested(
            "With slow nodes at 1/8 marks reduce the throughput by up to 50 % (40 to 60 % at worst).",
            (0.4..=0.6).contains(&worst(2)),
            "by up to 50 % of the baseline",
            format!("at worst {:+.1} %", 100.0 * (worst(2) - 1.0)),
        )
        .because(WORST),
    ];
    let mut series = Vec::new();
    for (place, factor) in FACTORS.iter().enumerate() {
        for (alternative, (name, _)) in ALTERNATIVES.iter().enumerate() {
            let points = curves.counts.iter().map(|&count| network.percent(count)).zip(curves.of(place, alternative));
            series.push(curve(name, points).in_panel(format!("slow nodes at 1/{factor}")));
        }
    }
    let figures = vec![figure("fig4", "Congestion marks against slow nodes", SHARE_AXIS, series)];
    let setup = format!(
        "{} A packet that enters a buffer more than half full is marked, with a probability that grows to 1 with the buffer; its \
         receiver marks a packet that goes back. That adds 8 to its receiver's counter, of 0 to 20, which any other packet \
         lowers by 1, and time by 1 every 4 cycles (aggressive: twice the probability, every 50 cycles). A node injects at the \
         rate 1 − counter / 20.",
        network.setup()
    );
    Ok(Findings { setup, figures, tables: vec![values(network, &curves), eager(workshop, network)?], facts })
}

/// The numbers behind the curves.
fn values(network: Network, curves: &Curves) -> Table {
    let mut columns = vec!["slow nodes", "share (%)"];
    let heads: Vec<String> = FACTORS
        .iter()
        .flat_map(|factor| ALTERNATIVES.iter().map(move |(name, _)| format!("at 1/{factor}: {name}")))
        .collect();
    columns.extend(heads.iter().map(String::as_str));
    let mut table = Table::new("fig4", "Throughput", &columns);
    for (place, &count) in curves.counts.iter().enumerate() {
        let all = (0..FACTORS.len()).flat_map(|factor| (0..ALTERNATIVES.len()).map(move |other| (factor, other)));
        let cells = all.map(|(factor, alternative)| format!("{:.3}", rate(&curves.of(factor, alternative)[place])));
        let first = [count.to_string(), format!("{:.2}", network.percent(count))];
        table.row(first.into_iter().chain(cells));
    }
    table
}

/// The same question where slow nodes at 1/8 bring down more than half: with a bias of 1 (R-fig1).
fn eager(workshop: &Workshop<'_>, network: Network) -> Result<Table, SimulationError> {
    let [few, many] = [10, 100].map(|share| network.share(share));
    let rows = [(0, 1), (few, 2), (many, 2), (many, 4), (few, 8), (many, 8)];
    let all: Vec<_> = rows
        .iter()
        .flat_map(|&(count, factor)| {
            ALTERNATIVES.map(|(_, control)| FabricRun { control, ..network.slow(count, factor) })
        })
        .map(|run| routed(run, EAGER))
        .collect();
    let runs = run_all(workshop, &all)?;
    let title = "Adaptive ways without bias, with which slow nodes at 1/8 cost more than half; in brackets beside the baseline; how many runs had not settled after 20 windows";
    let columns = ["slow nodes", "baseline", "default marks", "aggressive marks", "not settled"];
    let mut table = Table::new("eager", title, &columns);
    for ((count, factor), runs) in rows.iter().zip(runs.chunks(ALTERNATIVES.len())) {
        let name = if *count == 0 { "none".to_owned() } else { format!("{count} at 1/{factor}") };
        let base = &runs[BASELINE];
        let marked =
            |place: usize| format!("{:.3} ({:+.0} %)", rate(&runs[place]), 100.0 * (beside(&runs[place], base) - 1.0));
        table.row([name, format!("{:.3}", rate(base)), marked(DEFAULT), marked(AGGRESSIVE), not_settled(runs)]);
    }
    Ok(table)
}

const NO_MORE: &str = "It holds, but is no effect of slow nodes: the gain is there with none (3.9 %), is about as large with 1 and 5 (3.1 and 2.2 %) and \
    gone with 26 and 53, where R has a loss with none.";

const NO_GAIN: &str = "Tested: what is above is the gain that default marks bring with no slow node at all; with R's bias no share gains more. \
    Without bias (table) default marks gain 1 to 8 % with slow nodes at 1/2 and 1/8 and lose 7 % at 1/4; half of the runs had not \
    settled, so that it cannot be told whether they gain more at 1/2, as R says.";

const MILD: &str = "Tested: at full injection random pairs congest this network before any node is slow, and sending less relieves it. Nodes that \
    offer 0.55 of what their links carry (`offered` in a file for `tidegate sim`), without marks, are accepted at 0.540, those that offer \
    all at 0.518: a gain of 4 %, as large as that of default marks, and perhaps how they gain. Not found: why R's lose. Nothing that was \
    changed turns the gain into a cost: a bias of 1 (table); on 342 nodes, beside the table, marks from a quarter of the buffer on, a mark \
    on every packet above half of it, counters that packets without a mark leave alone, a throttle where packets are generated instead of \
    where they leave.";

const STRONG: &str = "Tested, not found: with a bias of 1 they cost as much (16 % over the last ten windows, 6 % in the last one, which the table has; no run \
    settled). On 342 nodes R's words \
    were read in other ways, each alone: packets without a mark leave the counter alone: 19 %; the throttle is where packets are \
    generated: 16; marks from a quarter of the buffer on: 14; a mark on every packet above half of it: 12; by what a port holds \
    for all its channels: a gain of 3. None gives 40.";

const WORST: &str = "Tested, not found: without bias (table) the baseline has lost as much before, and at 1/8 marks take little more (aggressive ones at most 5 %, over the last ten windows). On 342 nodes, where the \
    worst is 33 %, marks from a quarter of the buffer on bring 36 %, and the other readings less.";
