//! [`ExchangeRun`]: a case that is an exchange of all nodes of a large network (`crate::cycle::all_to_all`).

use std::fmt;

use super::measurement::{Exchange, Measurement};
use crate::config::SimulationError;
use crate::cycle::all_to_all::{Algorithm, AllToAll, Barrier, Plan, Sizes};
use crate::cycle::{Layout, Parameters, Routing};
use tidegate_bulk::Settings;

/// Bytes of a flit, on the networks of this folder: so a packet has 256.
const FLIT_BYTES: u32 = 16;
/// No exchange here takes so long.
const MOST_CYCLES: u64 = 200_000_000;

/// All nodes exchange blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ExchangeRun {
    pub layout: Layout,
    pub algorithm: Algorithm,
    pub settings: Settings,
    pub barrier: Barrier,
    pub overhead_cycles: u32,
    pub receive_factor: u16,
    pub is_receiving_exclusive: bool,
    pub sizes: Sizes,
}

impl ExchangeRun {
    pub fn measure(&self, seed: u64) -> Result<Measurement, SimulationError> {
        let ExchangeRun { layout, algorithm, settings, barrier, overhead_cycles, sizes, .. } = *self;
        let plan = Plan {
            layout,
            routing: Routing::PROGRESSIVE,
            parameters: Parameters::SCHNEIDER,
            flit_bytes: FLIT_BYTES,
            algorithm,
            settings: Settings { seed, ..settings },
            barrier,
            overhead_cycles,
            receive_factor: self.receive_factor,
            is_receiving_exclusive: self.is_receiving_exclusive,
            sizes,
            seed,
            most_cycles: MOST_CYCLES,
        };
        let done = AllToAll::run(&plan).map_err(|error| SimulationError::Setup(error.to_string()))?;
        let exchange = Exchange {
            cycles: done.cycles,
            rate: done.rate,
            signals: done.signals,
            requests: done.requests,
            denials: done.denials,
            most_at_one: done.most_at_one,
        };
        Ok(Measurement { exchange: Some(exchange), ..Measurement::default() })
    }

    /// What takes time: packets.
    pub fn size(&self) -> f64 {
        let nodes = f64::from(self.layout.nodes());
        let per_node = match self.sizes {
            Sizes::Uniform(bytes) | Sizes::Random(bytes) | Sizes::Skewed(bytes) => nodes * bytes as f64,
            Sizes::Shifts { rounds: count, bytes } | Sizes::Sparse { receivers: count, bytes } => {
                f64::from(count) * bytes as f64
            }
        };
        nodes * per_node / f64::from(FLIT_BYTES)
    }

    /// What is alike in runs that take about as long per packet.
    pub fn kind(&self) -> String {
        format!("exchange, {}", self.algorithm)
    }
}

impl fmt::Display for ExchangeRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ExchangeRun { layout, algorithm, settings, barrier, overhead_cycles, receive_factor, sizes, .. } = self;
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
        if self.is_receiving_exclusive { f.write_str(", nothing sent meanwhile") } else { Ok(()) }
    }
}
