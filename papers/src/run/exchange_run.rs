//! [`ExchangeRun`]: a case that is an exchange of all nodes of a large network (`tidegate_sim::cycle::all_to_all`).

use std::fmt;

use tidegate_bulk::Settings;
use tidegate_sim::cycle::all_to_all::{AllToAll, Barrier, Plan, Sizes};
use tidegate_sim::{Measurement, SimulationError};

/// All nodes exchange blocks as planned, but for the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExchangeRun(pub Plan);

impl ExchangeRun {
    pub fn measure(&self, seed: u64) -> Result<Measurement, SimulationError> {
        let plan = Plan { seed, settings: Settings { seed, ..self.0.settings }, ..self.0 };
        let done = AllToAll::run(&plan).map_err(|error| SimulationError::Setup(error.to_string()))?;
        Ok(Measurement { exchange: Some(done), ..Measurement::default() })
    }

    /// What takes time: packets.
    pub fn size(&self) -> f64 {
        let nodes = f64::from(self.0.layout.nodes());
        let per_node = match self.0.sizes {
            Sizes::Uniform(bytes) | Sizes::Random(bytes) | Sizes::Skewed(bytes) => nodes * bytes as f64,
            Sizes::Shifts { rounds: count, bytes } | Sizes::Sparse { receivers: count, bytes } => {
                f64::from(count) * bytes as f64
            }
        };
        nodes * per_node / f64::from(self.0.flit_bytes)
    }

    /// What is alike in runs that take about as long per packet.
    pub fn kind(&self) -> String {
        format!("exchange, {}", self.0.algorithm)
    }
}

impl fmt::Display for ExchangeRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { layout, algorithm, settings, barrier, overhead_cycles, receive_factor, sizes, .. } = &self.0;
        write!(f, "{layout}, {sizes}, {algorithm}")?;
        let usual = Settings { seed: settings.seed, ..Settings::default() };
        if *settings != usual {
            let Settings { unit, outstanding, window, rounds_per_barrier, requests_per_round, .. } = settings;
            write!(
                f,
                " (unit {unit}, {outstanding} at once, window {window}, {rounds_per_barrier} rounds per barrier"
            )?;
            write!(f, ", {requests_per_round} requests)")?;
        }
        match barrier {
            Barrier::Hardware { cycles } => write!(f, ", barrier in {cycles} cycles")?,
            Barrier::Tree { arity } => write!(f, ", barrier of arity {arity}")?,
        }
        write!(f, ", overhead {overhead_cycles} cycles, a flit taken in {receive_factor}")?;
        if self.0.is_receiving_exclusive { f.write_str(", nothing sent meanwhile") } else { Ok(()) }
    }
}
