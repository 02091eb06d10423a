//! What B's experiments share: its three machines at each scale, jobs by technique, and curves over the block size.

use tidegate_bulk::{Settings, TechniqueName};
use tidegate_sim::bulk_machine::{BulkJob, BulkParameters, BulkPattern, Shape};
use tidegate_sim::{Estimate, Measurement, SimulationError};

use crate::report::{AsPoint, Figure, Series};
use crate::run::bulk_run::BulkRun;
use crate::run::case::Case;
use crate::runs::Runs;
use crate::workshop::{Scale, Workshop};

/// Booking's window and the requests that a sender makes in a round, where they are not what is varied.
pub(crate) const WINDOW: u32 = 32;
pub(crate) const REQUESTS: u32 = 1;

/// What curves are of. Each has the paper's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Curve {
    Shift,
    Barriers,
    Tokens,
    ReceiverTokens,
    Random,
    Interleaved,
    Booking,
}

impl Curve {
    pub fn name(self) -> &'static str {
        match self {
            Curve::Shift => "cyclic shift",
            Curve::Barriers => "cyclic shift + barriers",
            Curve::Tokens => "cyclic shift + tokens",
            Curve::ReceiverTokens => "cyclic shift + receiver tokens",
            Curve::Random => "random",
            Curve::Interleaved => "random interleaved",
            Curve::Booking => "random + booking",
        }
    }

    fn technique(self) -> TechniqueName {
        match self {
            Curve::Shift | Curve::Random => TechniqueName::InOrder,
            Curve::Barriers => TechniqueName::Barriers,
            Curve::Tokens => TechniqueName::Tokens,
            Curve::ReceiverTokens => TechniqueName::ReceiverTokens,
            Curve::Interleaved => TechniqueName::Interleave,
            Curve::Booking => TechniqueName::Booking,
        }
    }

    fn is_random(self) -> bool {
        matches!(self, Curve::Random | Curve::Interleaved | Curve::Booking)
    }
}

/// A machine, what each of its nodes sends in all, and the sizes of blocks.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub machine: BulkParameters,
    pub total: u64,
    pub sizes: Vec<u64>,
}

impl Setting {
    /// The CM-5; a quarter of it where runs have to be short.
    pub fn cm5(scale: Scale) -> Self {
        let machine = BulkParameters { shape: Shape::FatTree { levels: scale.pick(3, 3, 2) }, ..BulkParameters::cm5() };
        let sizes = match scale {
            Scale::Full => vec![64, 128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096],
            Scale::Quick => vec![64, 512, 1024, 2048, 4096],
            Scale::Smallest => vec![64, 512, 2048, 4096],
        };
        Setting::of(machine, sizes)
    }

    pub fn paragon(scale: Scale) -> Self {
        let sizes = scale.pick(
            vec![512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072, 262_144],
            vec![1024, 8192, 32_768, 131_072, 262_144],
            vec![1024, 8192, 131_072],
        );
        Setting::of(BulkParameters::paragon(), sizes)
    }

    pub fn alewife(scale: Scale) -> Self {
        let sizes = scale.pick(
            vec![64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536],
            vec![64, 1024, 8192, 65_536],
            vec![64, 1024, 16_384],
        );
        Setting::of(BulkParameters::alewife(), sizes)
    }

    /// All that a node sends is one block of the largest size to each other node, twice on the two small machines.
    fn of(machine: BulkParameters, sizes: Vec<u64>) -> Self {
        let nodes = u64::from(machine.shape.nodes());
        let passes = if nodes < 16 { 2 } else { 1 };
        let total = passes * (nodes - 1) * sizes.last().copied().unwrap_or(1);
        Setting { machine, total, sizes }
    }

    pub fn largest(&self) -> u64 {
        self.sizes.last().copied().unwrap_or(1)
    }

    /// The same with another machine.
    pub fn with(&self, change: impl Fn(&mut BulkParameters)) -> Self {
        let mut other = self.clone();
        change(&mut other.machine);
        other
    }

    /// A point of a curve.
    pub fn run(&self, curve: Curve, bytes: u64) -> BulkRun {
        let others = u64::from(self.machine.shape.nodes()) - 1;
        let round = |blocks: u64| (self.total + blocks * bytes / 2) / (blocks * bytes);
        let pattern = if curve.is_random() {
            BulkPattern::Random { blocks: round(1).max(1) as u32 }
        } else {
            BulkPattern::CyclicShift { passes: round(others).max(1) as u32 }
        };
        let unit = if curve == Curve::Booking { bytes } else { self.machine.unit_bytes.into() };
        let settings = Settings { unit, window: WINDOW, requests_per_round: REQUESTS, ..Settings::default() };
        let (technique, block_bytes) = (curve.technique(), bytes);
        BulkRun { machine: self.machine, job: BulkJob { pattern, block_bytes, technique, settings, watch: false } }
    }

    /// Some curves over all sizes.
    pub fn measure(&self, workshop: &Workshop<'_>, curves: &[Curve]) -> Result<Panel, SimulationError> {
        let of = |&curve: &Curve| self.sizes.iter().map(move |&bytes| self.run(curve, bytes));
        let mut runs = run_all(workshop, &curves.iter().flat_map(of).collect::<Vec<_>>())?.into_iter();
        let curves = curves.iter().map(|&curve| (curve, runs.by_ref().take(self.sizes.len()).collect())).collect();
        Ok(Panel { setting: self.clone(), curves })
    }
}

pub(crate) fn run_all(workshop: &Workshop<'_>, runs: &[BulkRun]) -> Result<Vec<Runs>, SimulationError> {
    workshop.run(&runs.iter().map(|&run| Case::of_bulk(run)).collect::<Vec<_>>())
}

/// Megabytes per second per node.
pub(crate) fn bandwidth(run: &Measurement) -> f64 {
    run.bulk.as_ref().map_or(1.0, |bulk| bulk.bandwidth)
}

pub(crate) fn mean(runs: &Runs) -> f64 {
    runs.estimate(bandwidth).mean()
}

/// How many times the first is the second, seed by seed.
pub(crate) fn gain(runs: &Runs, over: &Runs) -> Estimate {
    runs.paired(over, |run, over| bandwidth(run) / bandwidth(over))
}

/// The share of booking's requests that were denied, in percent.
pub(crate) fn denied(run: &Measurement) -> f64 {
    run.bulk.as_ref().map_or(0.0, |bulk| 100.0 * bulk.denials as f64 / bulk.requests.max(1) as f64)
}

/// The curves of one machine.
pub(crate) struct Panel {
    pub setting: Setting,
    curves: Vec<(Curve, Vec<Runs>)>,
}

impl Panel {
    pub fn of(&self, curve: Curve) -> &[Runs] {
        self.curves.iter().find(|(of, _)| *of == curve).map_or(&[], |(_, runs)| runs)
    }

    pub fn at(&self, curve: Curve, bytes: u64) -> &Runs {
        let place = self.setting.sizes.iter().position(|&size| size == bytes).unwrap_or(0);
        &self.of(curve)[place]
    }

    /// At the largest size, how many times one curve is another.
    pub fn gain(&self, curve: Curve, over: Curve) -> f64 {
        let largest = self.setting.largest();
        gain(self.at(curve, largest), self.at(over, largest)).mean()
    }

    /// How many times one curve is another, at each size.
    pub fn gains(&self, curve: Curve, over: Curve) -> Vec<(u64, f64)> {
        let pairs = self.of(curve).iter().zip(self.of(over));
        self.setting.sizes.iter().copied().zip(pairs.map(|(runs, over)| gain(runs, over).mean())).collect()
    }

    pub fn figure(&self, name: &str, title: &str) -> Figure {
        let sizes = || self.setting.sizes.iter().map(|&size| size as f64);
        let series = self.curves.iter().map(|(curve, runs)| {
            Series::of(curve.name(), sizes().zip(runs).map(|(x, runs)| runs.estimate(bandwidth).point(x)))
        });
        Figure {
            name: name.to_owned(),
            title: title.to_owned(),
            x_axis: "block size (bytes)".to_owned(),
            y_axis: "achieved bandwidth (MB/s per node)".to_owned(),
            series: series.collect(),
            ..Figure::default()
        }
    }

    /// In words: the machine and its numbers.
    pub fn setup(&self) -> String {
        let Setting { machine, total, .. } = &self.setting;
        format!(
            "{}: {} nodes, {} KB sent by each in all; a unit of {} bytes takes {} to send, {} % of that to receive; blocks take \
             up to {:.1} % longer at random.",
            machine.name,
            machine.shape.nodes(),
            total / 1000,
            machine.unit_bytes,
            machine.sending(machine.unit_bytes),
            machine.receive_percent,
            f64::from(machine.jitter_per_mille) / 5.0
        )
    }
}

/// Ratios at sizes, as text.
pub(crate) fn list(gains: &[(u64, f64)]) -> String {
    gains.iter().map(|(bytes, gain)| format!("{bytes}: {gain:.2}")).collect::<Vec<_>>().join(", ")
}
