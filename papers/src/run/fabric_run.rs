//! [`FabricRun`]: a case that is a network of thousands of nodes under load, simulated cycle by cycle
//! (`tidegate_sim::cycle`), where the other cases are jobs of processes.

use std::fmt;

use tidegate_sim::cycle::{
    Control, Dragonfly, Layout, Limited, Load, Machine, Parameters, Pattern, Routing, Settled, Throughput, Windows,
};
use tidegate_sim::{Carried, Measurement, SimulationError, Stop};

/// Pairs of nodes of a dragonfly send to each other as fast as they can (R §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FabricRun {
    pub shape: Dragonfly,
    pub routing: Routing,
    /// Channels of a link.
    pub channels: u8,
    /// Flits that an input holds for each channel.
    pub buffer_flits: u16,
    pub slow_nodes: u32,
    /// How many cycles a slow node needs for a flit.
    pub slow_factor: u16,
    pub control: Control,
    pub windows: Windows,
}

impl FabricRun {
    /// Nothing is slow, and nothing holds nodes back.
    pub fn new(shape: Dragonfly, windows: Windows) -> Self {
        let Parameters { channels, buffer_flits, .. } = Parameters::SCHNEIDER;
        let (slow_nodes, slow_factor, control) = (0, 1, Control::None);
        let routing = Routing::PROGRESSIVE;
        FabricRun { shape, routing, channels, buffer_flits, slow_nodes, slow_factor, control, windows }
    }

    fn machine(&self, seed: u64) -> Machine {
        let FabricRun { routing, slow_nodes, slow_factor, control, .. } = *self;
        let parameters =
            Parameters { channels: self.channels, buffer_flits: self.buffer_flits, ..Parameters::SCHNEIDER };
        let load = Load { slow_nodes, slow_factor, control, ..Load::full(Pattern::Pairs) };
        Machine { layout: Layout::Dragonfly(self.shape), routing, parameters, load, seed }
    }

    /// The key that the same run has as a file.
    pub fn spec_key(&self) -> String {
        format!("{:?} {:?}", self.machine(0), self.windows)
    }

    pub fn measure(&self, seed: u64) -> Result<Measurement, SimulationError> {
        let machine = self.machine(seed);
        let found = Throughput::measure(&machine, self.windows);
        let found = found.map_err(|error| SimulationError::Setup(error.to_string()))?;
        let stop = |Settled { windows, rate }| Stop { windows, rate };
        let carried = Carried {
            healthy: found.healthy,
            has_settled: found.has_settled,
            at_five_percent: found.at_five_percent.map(stop),
            cumulative: found.cumulative.map(stop),
            latency: found.latency,
            diverted: found.diverted,
            credit_packets: found.credit_packets,
            cycles: found.cycles,
            hops: found.hops,
            windows: found.windows,
        };
        Ok(Measurement { carried: Some(carried), ..Measurement::default() })
    }

    pub fn nodes(&self) -> u32 {
        Layout::Dragonfly(self.shape).nodes()
    }

    /// What takes time: nodes times the cycles of a usual run.
    pub fn size(&self) -> f64 {
        f64::from(self.nodes()) * f64::from(self.windows.cycles)
    }

    /// What is alike in runs that take about as long per node and cycle.
    pub fn kind(&self) -> String {
        format!("{}, {} channels", routing_name(self.routing), self.channels)
    }
}

/// As reports name the ways.
pub(crate) fn routing_name(routing: Routing) -> &'static str {
    match routing {
        Routing::Minimal => "minimal",
        Routing::Valiant => "Valiant",
        Routing::Adaptive { .. } => "adaptive",
    }
}

fn limited_name(limited: Limited) -> &'static str {
    match limited {
        Limited::SendersToSlow => "those that send to slow nodes",
        Limited::Others => "all others",
    }
}

impl fmt::Display for FabricRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Dragonfly { groups, routers, nodes, .. } = self.shape;
        write!(f, "dragonfly of {groups} x {routers} x {nodes} nodes, {} ways", routing_name(self.routing))?;
        write!(f, ", {} slow nodes at 1/{}", self.slow_nodes, self.slow_factor)?;
        match self.control {
            Control::None => {}
            Control::Marks { strength, decay_cycles } => write!(f, ", marks x {strength}, decay {decay_cycles}")?,
            Control::Chunks(most) => write!(f, ", {most} chunks")?,
            Control::ChunksOf(limited, most) => write!(f, ", {most} chunks of {}", limited_name(limited))?,
        }
        let usual = Parameters::SCHNEIDER;
        if self.channels != usual.channels {
            write!(f, ", {} channels", self.channels)?;
        }
        if self.buffer_flits != usual.buffer_flits {
            write!(f, ", buffers of {} flits", self.buffer_flits)?;
        }
        if let Routing::Adaptive { bias, threshold } = self.routing
            && self.routing != Routing::PROGRESSIVE
        {
            write!(f, ", bias {bias}, threshold {threshold}")?;
        }
        let Windows { cycles, most, tolerance_per_mille } = self.windows;
        write!(f, ", windows of {cycles} cycles, at most {most}, within {tolerance_per_mille} per mille")
    }
}
