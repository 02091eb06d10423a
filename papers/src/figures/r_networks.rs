//! What R's figures 1, 4 and 5 share: a dragonfly whose nodes send in random pairs, some of them slow.

use tidegate_sim::cycle::{Control, Dragonfly, Routing, Windows};
use tidegate_sim::{Carried, Estimate, Measurement, SimulationError};

use crate::report::{AsPoint, Figure, Point, Series};
use crate::run::case::Case;
use crate::run::fabric_run::FabricRun;
use crate::runs::Runs;
use crate::workshop::{Scale, Workshop};

/// What R compares its chunks with: nothing, and marks of congestion in two strengths.
pub(crate) const ALTERNATIVES: [(&str, Control); 3] = [
    ("baseline", Control::None),
    ("default marks", Control::DEFAULT_MARKS),
    ("aggressive marks", Control::AGGRESSIVE_MARKS),
];

/// Adaptive ways that take a detour wherever it is less occupied, but for R's threshold: bias 1 instead of 2.
pub(crate) const EAGER: Routing = Routing::Adaptive { bias: 1, threshold: 30 };

/// The network of a figure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Network {
    pub scale: Scale,
    run: FabricRun,
}

impl Network {
    /// R's own at full size; smaller ones are balanced, too: half as many nodes and global links of a router as a group
    /// has routers, and as many groups as that allows.
    pub fn new(workshop: &Workshop<'_>) -> Self {
        Network::of(workshop.scale)
    }

    /// That of another size.
    pub fn of(scale: Scale) -> Self {
        let small = Dragonfly { groups: 19, routers: 6, nodes: 3, global: 3 };
        let smallest = Dragonfly { groups: 9, routers: 4, nodes: 2, global: 2 };
        let shape = scale.pick(Dragonfly::SCHNEIDER, small, smallest);
        let windows = Windows { cycles: scale.pick(10_000, 5_000, 2_000), most: 20, tolerance_per_mille: 50 };
        Network { scale, run: FabricRun::new(shape, windows) }
    }

    pub fn nodes(&self) -> u32 {
        self.run.nodes()
    }

    /// So many nodes as a share of all, in percent.
    pub fn percent(&self, nodes: u32) -> f64 {
        100.0 * f64::from(nodes) / f64::from(self.nodes())
    }

    /// How many nodes are this share of all, in hundredths of a percent; at least one if it is more than none.
    pub fn share(&self, hundredths: u32) -> u32 {
        let rounded = (self.nodes() * hundredths + 5_000) / 10_000;
        rounded.max(u32::from(hundredths > 0))
    }

    /// The numbers of these shares, each once.
    pub fn shares(&self, hundredths: &[u32]) -> Vec<u32> {
        let mut all: Vec<u32> = hundredths.iter().map(|&share| self.share(share)).collect();
        all.dedup();
        all
    }

    /// With so many slow nodes, each of which needs so many cycles for a flit.
    pub fn slow(&self, nodes: u32, factor: u16) -> FabricRun {
        // Where nothing is slow the factor does not matter, and one run serves all.
        FabricRun { slow_nodes: nodes, slow_factor: if nodes > 0 { factor } else { 1 }, ..self.run }
    }

    /// With such a control. Where there is none, and none or a hundredth of the nodes are slow, the run also says where
    /// a rule of 2 % stops. All figures share these runs.
    pub fn controlled(&self, nodes: u32, factor: u16, control: Control) -> FabricRun {
        let run = FabricRun { control, ..self.slow(nodes, factor) };
        let is_narrow = control == Control::None && (nodes == 0 || nodes == self.share(100));
        let tolerance_per_mille = if is_narrow { 20 } else { run.windows.tolerance_per_mille };
        FabricRun { windows: Windows { tolerance_per_mille, ..run.windows }, ..run }
    }

    /// What was run, for readers.
    pub fn setup(&self) -> String {
        let Dragonfly { groups, routers, nodes, .. } = self.run.shape;
        let size = match self.scale {
            Scale::Full => "R's network",
            Scale::Quick | Scale::Smallest => {
                "A smaller network than R's, in which a share of the nodes is fewer of them"
            }
        };
        format!(
            "{size}: {groups} groups of {routers} routers of {nodes} nodes ({} in all), packets of 16 flits, four channels of 256 \
             flits, progressive adaptive routing (bias 2, threshold 30 flits). Random pairs send to each other as fast as they \
             can. Throughput is what a node accepts, mean over all nodes, as a part of what its link carries: that of the last \
             of three windows of {} cycles in a row that differ by less than 5 % from the one before, or of the 20th window. A \
             seed draws the pairs and, apart from them, the slow nodes.",
            self.nodes(),
            self.run.windows.cycles
        )
    }
}

/// Runs all of these.
pub(crate) fn run_all(workshop: &Workshop<'_>, runs: &[FabricRun]) -> Result<Vec<Runs>, SimulationError> {
    workshop.run(&runs.iter().map(|&run| Case::of_fabric(run)).collect::<Vec<_>>())
}

pub(crate) fn routed(run: FabricRun, routing: Routing) -> FabricRun {
    FabricRun { routing, ..run }
}

/// What a run has carried; nothing while runs are only listed.
pub(crate) fn carried(run: &Measurement) -> Carried {
    run.carried.clone().unwrap_or_default()
}

/// The throughput with each seed.
pub(crate) fn rates(runs: &Runs) -> Estimate {
    runs.estimate(|run| carried(run).rate())
}

/// Its mean.
pub(crate) fn rate(runs: &Runs) -> f64 {
    rates(runs).mean()
}

/// The throughput beside that of `other`: the mean over the seeds of the ratios with the same seed.
pub(crate) fn beside(runs: &Runs, other: &Runs) -> f64 {
    rates(runs).over(&rates(other)).mean()
}

/// How many of these had not settled when they were stopped: `2 of 9`.
pub(crate) fn not_settled<'a>(cases: impl IntoIterator<Item = &'a Runs>) -> String {
    let settled: Vec<bool> = cases.into_iter().flat_map(|runs| &runs.0).map(|run| carried(run).has_settled).collect();
    format!("{} of {}", settled.iter().filter(|&&settled| !settled).count(), settled.len())
}

/// The least and the most of the seeds.
pub(crate) fn extremes(runs: &Runs) -> (f64, f64) {
    let each = runs.0.iter().map(|run| carried(run).rate());
    each.fold((f64::MAX, 0.0), |(least, most), rate| (least.min(rate), most.max(rate)))
}

/// The largest relative to the least of the seeds, less 1, in percent.
pub(crate) fn spread(runs: &Runs) -> f64 {
    let (least, most) = extremes(runs);
    100.0 * (most / least.max(f64::MIN_POSITIVE) - 1.0)
}

/// A curve of throughputs.
pub(crate) fn curve<'a>(name: &str, points: impl IntoIterator<Item = (f64, &'a Runs)>) -> Series {
    let points: Vec<Point> = points.into_iter().map(|(x, runs)| rates(runs).point(x)).collect();
    Series::of(name, points)
}

/// A picture of throughputs.
pub(crate) fn figure(name: &str, title: &str, x_axis: &str, series: Vec<Series>) -> Figure {
    Figure {
        name: name.to_owned(),
        title: title.to_owned(),
        x_axis: x_axis.to_owned(),
        y_axis: "throughput (part of the injection rate)".to_owned(),
        series,
        ..Figure::default()
    }
}

/// The abscissa of figures 1 and 4.
pub(crate) const SHARE_AXIS: &str = "slow nodes (% of all)";

/// Numbers with three digits: `0.522, 0.436`.
pub(crate) fn list(values: impl IntoIterator<Item = f64>) -> String {
    values.into_iter().map(|value| format!("{value:.3}")).collect::<Vec<_>>().join(", ")
}
