//! [`Throughput`]: how much comes through a network under load, once that has settled.
//!
//! The run is cut into windows that do not overlap. It has settled when the rate of three windows in a row differs
//! from that of the window before by less than a tolerance. R says "until variation in throughput between successive
//! iterations is less than 5 %", which does not say of what: a rule on the rate since the beginning stops earlier,
//! while a tree of full buffers still grows, so that rate is kept too.

use super::load::{Loaded, Machine, MachineError};
use super::totals::Choices;

/// How long a run is, and what counts as settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Cycles of a window.
    pub cycles: u32,
    /// Most windows.
    pub most: u32,
    /// The rates of windows differ by less than so many parts of a thousand.
    pub tolerance_per_mille: u32,
}

/// So many windows in a row have to be alike.
const IN_A_ROW: usize = 3;

/// Where a rule stops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settled {
    /// After so many windows.
    pub windows: u32,
    /// The rate then.
    pub rate: f64,
}

/// What comes through.
#[derive(Clone, Debug, PartialEq)]
pub struct Throughput {
    /// Flits that a node takes per cycle in the last window, mean over all nodes.
    pub rate: f64,
    /// The same over the nodes that are not slow.
    pub healthy: f64,
    /// The rate of each window.
    pub windows: Vec<f64>,
    /// Whether it settled.
    pub has_settled: bool,
    /// Where the same rule stops with a tolerance of 5 %.
    pub at_five_percent: Option<Settled>,
    /// Where a rule stops that compares the rates since the beginning, with 5 %, as they are then.
    pub cumulative: Option<Settled>,
    /// Mean cycles that a packet took from when it was ready until it was taken, in the last window.
    pub latency: f64,
    /// All cycles.
    pub cycles: u64,
    /// Steps of packets through routers in all cycles.
    pub hops: u64,
    /// Packets that left the shortest way, of all that were sent.
    pub diverted: f64,
    /// Packets of one flit that carried credits, per packet of data.
    pub credit_packets: f64,
    /// Comparisons of ways by adaptive routers, in all cycles: for packets to nodes that are not slow, and to slow
    /// ones.
    pub choices: [Choices; 2],
}

/// Accepted flits of all and of the nodes that are not slow.
fn accepted(loaded: &Loaded) -> [u64; 2] {
    loaded
        .accepted()
        .fold([0; 2], |[all, healthy], (flits, is_slow)| [all + flits, if is_slow { healthy } else { healthy + flits }])
}

/// Rates that differ by less than this part are alike, for the rule of R, whatever tolerance a run has.
pub(crate) const FIVE_PERCENT: f64 = 0.05;

/// Whether the last rates are alike.
pub(crate) fn is_settled(rates: &[f64], tolerance: f64) -> bool {
    let alike = |pair: &[f64]| (pair[1] - pair[0]).abs() < tolerance * pair[0].max(f64::MIN_POSITIVE);
    rates.len() > IN_A_ROW && rates[rates.len() - IN_A_ROW - 1..].windows(2).all(alike)
}

impl Throughput {
    /// Runs a machine until its throughput has settled.
    ///
    /// # Errors
    /// If it cannot be built.
    pub fn measure(machine: &Machine, windows: Windows) -> Result<Self, MachineError> {
        let mut loaded = Loaded::new(machine)?;
        let nodes = f64::from(machine.layout.nodes());
        let healthy_nodes = nodes - loaded.accepted().filter(|(_, is_slow)| *is_slow).count() as f64;
        let (mut rates, mut since_start) = (Vec::new(), Vec::new());
        let (mut at_five_percent, mut cumulative, mut has_settled) = (None, None, false);
        let (mut healthy, mut latency) = (0.0, 0.0);
        while !has_settled && rates.len() < windows.most as usize {
            let (before, counts) = (accepted(&loaded), loaded.counts());
            loaded.run(windows.cycles.into());
            let (after, now) = (accepted(&loaded), loaded.counts());
            let rate = |flits: u64, nodes: f64| flits as f64 / f64::from(windows.cycles) / nodes.max(1.0);
            rates.push(rate(after[0] - before[0], nodes));
            since_start.push(after[0] as f64 / loaded.now() as f64 / nodes);
            healthy = rate(after[1] - before[1], healthy_nodes);
            latency = (now.latency - counts.latency) as f64 / (now.sunk - counts.sunk).max(1) as f64;
            let count = rates.len() as u32;
            let last = |rates: &[f64]| Settled { windows: count, rate: rates[rates.len() - 1] };
            if is_settled(&rates, FIVE_PERCENT) {
                at_five_percent.get_or_insert(last(&rates));
            }
            if is_settled(&since_start, FIVE_PERCENT) {
                cumulative.get_or_insert(last(&since_start));
            }
            has_settled = is_settled(&rates, f64::from(windows.tolerance_per_mille) / 1000.0);
        }
        let (totals, counts) = (loaded.totals(), loaded.counts());
        Ok(Throughput {
            rate: rates.last().copied().unwrap_or(0.0),
            healthy,
            windows: rates,
            has_settled,
            at_five_percent,
            cumulative,
            latency,
            cycles: loaded.now(),
            hops: totals.hops,
            diverted: totals.diverted as f64 / totals.injected.max(1) as f64,
            credit_packets: counts.credit_packets as f64 / counts.sent.max(1) as f64,
            choices: totals.choices,
        })
    }
}
