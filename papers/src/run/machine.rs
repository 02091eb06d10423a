//! [`Machine`]: which machine a case runs on.

use std::fmt;

use tidegate_flow::PAYLOAD_BYTES;
use tidegate_sim::topology::{Topology, Ways};
use tidegate_sim::{
    Cost, NetworkParameters, Noise, Rendezvous, SimulationConfig, SimulationError, SlowReceivers, Time,
};

/// Whose cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Year {
    /// That of L.
    Y2003,
    /// That of A.
    Y2007,
}

/// A cluster of nodes on one InfiniBand switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cluster {
    pub year: Year,
    pub nodes: u32,
    pub processes_per_node: u32,
    /// Whether adapters have credits of their own per connection.
    pub adapter_credits: bool,
    pub rendezvous: Rendezvous,
    /// How long it takes a process to take a message in, in percent of what it does on that cluster.
    pub receiving_percent: u32,
    /// What making or understanding a credit packet costs, in nanoseconds, where that is not what it costs on that
    /// cluster.
    pub credit_packet_ns: Option<u32>,
    /// Largest eager message.
    pub eager_bytes: u32,
    /// How the operating system interrupts processes, where that is not what the whole figure has.
    pub interruptions: Option<Interruptions>,
}

/// Interruptions by the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interruptions {
    /// After how much work one comes, on average.
    pub interval_us: u32,
    pub duration_us: u32,
}

impl Interruptions {
    fn noise(self) -> Noise {
        let [interval, duration] =
            [self.interval_us, self.duration_us].map(|span| Time::from_microseconds(span.into()));
        Noise { interval, duration }
    }
}

/// The machine of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    /// That of P: nodes of 16 processes, on a mesh.
    Extoll,
    /// A cluster.
    Cluster(Cluster),
    /// A dragonfly.
    Dragonfly(Grove),
}

/// A dragonfly with a process on each node, which needs no time for anything: what is slow is the network, or a
/// receiver. Its routers hold 16 packets for each channel, as R's hold 256 flits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grove {
    /// Groups, routers of a group, nodes of a router.
    pub sizes: [u16; 3],
    pub ways: Ways,
    /// Of a thousand processes.
    pub slow_per_mille: u32,
    /// How much longer a slow process needs for a packet than its link.
    pub slow_factor: u32,
    /// Places in each endpoint's table of peers.
    pub peers: u32,
}

impl Grove {
    pub fn processes(&self) -> u32 {
        self.sizes.iter().map(|&size| u32::from(size)).product()
    }

    /// Everything of a run but its program and its flow control.
    pub fn config(&self, noise: Noise) -> Result<SimulationConfig, SimulationError> {
        let extoll = NetworkParameters::extoll();
        let rate = extoll.link_bandwidth;
        let packet = rate.time_of(PAYLOAD_BYTES as u32 + extoll.packet_overhead_bytes);
        let network = NetworkParameters {
            injection_bandwidth: rate,
            extraction_bandwidth: rate,
            virtual_channels: 4,
            channel_buffer_packets: 16,
            ..extoll
        };
        let topology = Topology::dragonfly(&self.sizes, self.ways);
        let topology = topology.map_err(|error| SimulationError::Setup(error.to_string()))?;
        let delay = Time(packet.0 * u64::from(self.slow_factor));
        Ok(SimulationConfig {
            network,
            cost: Cost::free(),
            processes_per_node: 1,
            peers: Some(self.peers),
            slow_receivers: SlowReceivers { per_mille: self.slow_per_mille, delay },
            noise,
            ..SimulationConfig::extoll(topology)
        })
    }
}

impl fmt::Display for Grove {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [groups, routers, nodes] = self.sizes;
        write!(f, "dragonfly {groups}x{routers}x{nodes}")?;
        if self.ways == Ways::DrawnForPairs {
            f.write_str(", a detour for each pair")?;
        }
        if self.slow_per_mille > 0 {
            write!(f, ", {} per mille slow at 1/{}", self.slow_per_mille, self.slow_factor)?;
        }
        Ok(())
    }
}

impl Cluster {
    /// The cluster of L with so many processes on each of its eight nodes.
    pub const fn of_l(processes_per_node: u32) -> Self {
        Cluster {
            year: Year::Y2003,
            nodes: 8,
            processes_per_node,
            adapter_credits: true,
            rendezvous: Rendezvous::Write,
            receiving_percent: 100,
            credit_packet_ns: None,
            eager_bytes: 2 << 10,
            interruptions: None,
        }
    }

    /// The cluster of A with so many of its nodes, two processes on each.
    pub const fn of_a(nodes: u32) -> Self {
        Cluster { year: Year::Y2007, nodes, processes_per_node: 2, eager_bytes: 12 << 10, ..Cluster::of_l(2) }
    }

    pub fn processes(&self) -> u32 {
        self.nodes * self.processes_per_node
    }

    /// Everything of a run but its program and its flow control; `noise` is that of the figure.
    pub fn config(&self, noise: Noise) -> Result<SimulationConfig, SimulationError> {
        let config = match self.year {
            Year::Y2003 => SimulationConfig::infiniband2003(),
            Year::Y2007 => SimulationConfig::infiniband2007(),
        };
        let mut cost = config.cost;
        for span in [&mut cost.retrieve_packet, &mut cost.complete_message] {
            *span = Time(span.0 * u64::from(self.receiving_percent) / 100);
        }
        if let Some(span) = self.credit_packet_ns {
            cost.credit_packet = Time::from_nanoseconds(span.into());
        }
        let topology = Topology::switch(self.nodes).map_err(|error| SimulationError::Setup(error.to_string()))?;
        Ok(SimulationConfig {
            topology,
            cost,
            processes_per_node: self.processes_per_node,
            adapter_credits: self.adapter_credits,
            rendezvous: self.rendezvous,
            eager_bytes: self.eager_bytes as usize,
            noise: self.interruptions.map_or(noise, Interruptions::noise),
            ..config
        })
    }
}

impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.year {
            Year::Y2003 => "infiniband2003",
            Year::Y2007 => "infiniband2007",
        };
        write!(f, "{name}, {} nodes of {}", self.nodes, self.processes_per_node)?;
        if !self.adapter_credits {
            f.write_str(", no adapter credits")?;
        }
        if self.rendezvous == Rendezvous::Read {
            f.write_str(", long messages read")?;
        }
        if self.receiving_percent != 100 {
            write!(f, ", receiving takes {} %", self.receiving_percent)?;
        }
        if let Some(span) = self.credit_packet_ns {
            write!(f, ", a credit packet costs {span} ns")?;
        }
        let usual = match self.year {
            Year::Y2003 => 2 << 10,
            Year::Y2007 => 12 << 10,
        };
        if self.eager_bytes != usual {
            write!(f, ", eager up to {} bytes", self.eager_bytes)?;
        }
        if let Some(Interruptions { interval_us, duration_us }) = self.interruptions {
            write!(f, ", interrupted for {duration_us} µs after {interval_us}")?;
        }
        Ok(())
    }
}
