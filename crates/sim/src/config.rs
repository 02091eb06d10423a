//! [`SimulationConfig`]: everything about a run but its program; and why a run may have no outcome.

use std::fmt;
use std::time::Duration;

use tidegate_flow::{Buffers, Config, PEERS_MAX, SchemeName};
use tidegate_message::{Endpoint, EndpointConfig, EndpointError};

use crate::buffer::Contents;
use crate::checker::Deadlock;
use crate::cost::{Cost, SlowReceivers};
use crate::flight::NodeId;
use crate::link::SimLink;
use crate::noise::Noise;
use crate::rendezvous::Rendezvous;
use crate::topology::Topology;
use crate::{Network, NetworkError, NetworkParameters, Time};

/// Which flow control the processes use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowChoice {
    /// None, and mailboxes of unlimited size: what P measures overhead against.
    Unlimited,
    /// A scheme and mailboxes as the library has them.
    Mailbox {
        /// The scheme.
        scheme: SchemeName,
        /// Slots of a mailbox per peer, credit slots included.
        slots_per_peer: u32,
        /// Of those, slots for credit packets.
        credit_slots: u32,
        /// Whether credits ride on data packets.
        piggyback: bool,
        /// Most data slots that one sender may earn under `dynamic` (P fig. 26).
        quota_most: Option<u32>,
    },
    /// A scheme whose receivers post buffers (L, A), and adapters that refuse what finds none.
    Posted {
        /// The scheme.
        scheme: SchemeName,
        /// How many buffers, how large, and what becomes of them.
        buffers: Buffers,
        /// Whether credits ride on data packets.
        piggyback: bool,
    },
}

/// What a sender does while the network does not take its packets, because some receiver's mailbox is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockedSender {
    /// It looks at its own mailbox meanwhile, as Tidegate's library does.
    #[default]
    Retrieves,
    /// It does nothing: the processor waits for its write to the interface (P §2).
    Blocks,
}

/// How long the header of a message is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MessageHeader {
    /// 16 bytes, as the library has it, and as P §3 says ("16 bytes").
    #[default]
    Short,
    /// 24 bytes: a message of 2 KiB fills its 37 packets to the last byte, so no credit rides on it, as P §5.4 says.
    /// The library has such a header where a message carries 8 bytes of completion data, so each one does.
    Long,
}

impl MessageHeader {
    /// The completion data that make the header as long.
    pub(crate) fn completion_data(self) -> Option<u64> {
        match self {
            MessageHeader::Short => None,
            MessageHeader::Long => Some(u64::MAX),
        }
    }
}

/// A run, program excepted.
#[derive(Clone, Debug)]
pub struct SimulationConfig {
    /// How the nodes are wired.
    pub topology: Topology,
    /// The network's numbers.
    pub network: NetworkParameters,
    /// What work costs.
    pub cost: Cost,
    /// Processes of each node: ranks are dealt out node by node.
    pub processes_per_node: u32,
    /// The nodes that run processes, in the order of their ranks. `None`: all, in order.
    pub nodes: Option<Vec<NodeId>>,
    /// Flow control.
    pub flow: FlowChoice,
    /// Places in each endpoint's table of peers. `None`: one for every other process. Fewer make a large job with few
    /// contacts small; a process that needs one more ends the run with an error.
    pub peers: Option<u32>,
    /// Places beside those, for processes that may still come, which nobody takes: as the library has them, they make
    /// mailboxes larger.
    pub spare_peers: u32,
    /// Largest message, in bytes, that is sent eagerly (P §3: 2 KiB).
    pub eager_bytes: usize,
    /// How long the header of a message is.
    pub message_header: MessageHeader,
    /// The run begins amid a program in which every process has exchanged messages of so many packets with every other,
    /// each pair a random number of them: all have heard all, and under `static` each receiver has some packets of each
    /// sender that it has not yet returned credits for. `None`: it begins with the program.
    pub amid_messages_of: Option<u32>,
    /// Who moves the data of long messages.
    pub rendezvous: Rendezvous,
    /// Where each connection has posted buffers of its own: whether acknowledgements tell the sender's adapter how many
    /// are left, and it sends no more messages than that, or one if it knows of none (InfiniBand's end-to-end flow
    /// control, L §2.2). Adapters have none for a pool.
    pub adapter_credits: bool,
    /// Most bytes that an endpoint keeps on behalf of its senders. `None`: no bound, as in P.
    pub receive_memory: Option<usize>,
    /// Whether processes of one node reach each other without mailbox and credits (P §7.2).
    pub intra_node_path: bool,
    /// Receivers that are slower than the others.
    pub slow_receivers: SlowReceivers,
    /// What interrupts processes at work.
    pub noise: Noise,
    /// What senders do while the network does not take their packets.
    pub blocked_sender: BlockedSender,
    /// The run ends here if its programs have not ended before ([`Outcome::cut`](crate::Outcome::cut)): some would take
    /// hours to simulate.
    pub time_most: Time,
    /// Whether memory has bytes.
    pub contents: Contents,
    /// Whether all checkers watch. Costs time and memory.
    pub checks: bool,
    /// Decides every random choice.
    pub seed: u64,
}

impl SimulationConfig {
    /// The machine of P with this topology and 16 processes per node, without flow control.
    #[must_use]
    pub fn extoll(topology: Topology) -> Self {
        SimulationConfig {
            topology,
            network: NetworkParameters::extoll(),
            cost: Cost::extoll(),
            processes_per_node: 16,
            nodes: None,
            flow: FlowChoice::Unlimited,
            peers: None,
            spare_peers: 0,
            eager_bytes: 2048,
            message_header: MessageHeader::Short,
            amid_messages_of: None,
            rendezvous: Rendezvous::Read,
            adapter_credits: true,
            receive_memory: None,
            intra_node_path: false,
            slow_receivers: SlowReceivers::default(),
            noise: Noise::default(),
            blocked_sender: BlockedSender::Blocks,
            time_most: Time::NEVER,
            contents: Contents::default(),
            checks: false,
            seed: 1,
        }
    }

    /// The cluster of L (§6.1): eight nodes on one switch, a process on each, without flow control. Long messages are
    /// written by their senders.
    #[must_use]
    pub fn infiniband2003() -> Self {
        SimulationConfig {
            network: NetworkParameters::infiniband2003(),
            cost: Cost::infiniband2003(),
            processes_per_node: 1,
            rendezvous: Rendezvous::Write,
            blocked_sender: BlockedSender::Retrieves,
            ..SimulationConfig::extoll(one_switch(8))
        }
    }

    /// The cluster of A (§4.1): 32 nodes on one switch, two processes on each, without flow control. A states neither
    /// its eager limit nor the size of its buffers, nor how long messages travel: 12 KiB and the rendezvous of L are
    /// assumed.
    #[must_use]
    pub fn infiniband2007() -> Self {
        SimulationConfig {
            network: NetworkParameters::infiniband2007(),
            cost: Cost::infiniband2007(),
            processes_per_node: 2,
            eager_bytes: 12 << 10,
            topology: one_switch(32),
            ..SimulationConfig::infiniband2003()
        }
    }

    /// Processes of the job.
    #[must_use]
    pub fn size(&self) -> u32 {
        let nodes = self.nodes.as_ref().map_or(self.topology.nodes(), |nodes| nodes.len() as u32);
        nodes.saturating_mul(self.processes_per_node)
    }

    /// Checks that the parts fit together, without making any of them.
    ///
    /// # Errors
    /// If they do not; the error says what to change.
    pub fn check(&self) -> Result<(), SimulationError> {
        self.check_own().map_err(SimulationError::Config)?;
        let (endpoint, _) = self.endpoint().map_err(SimulationError::Endpoint)?;
        if let Some(bytes) = self.receive_memory {
            let least = self.least_receive_memory()?;
            if bytes < least {
                let error = EndpointError::receive_memory_too_small(&endpoint, least);
                return Err(SimulationError::Endpoint(error));
            }
        }
        Network::check(&self.topology, &self.network).map_err(SimulationError::Network)
    }

    /// The smallest legal [`receive_memory`](Self::receive_memory), in bytes.
    ///
    /// # Errors
    /// If flow control refuses its part.
    pub fn least_receive_memory(&self) -> Result<usize, SimulationError> {
        let (endpoint, _) = self.endpoint().map_err(SimulationError::Endpoint)?;
        Endpoint::<SimLink>::least_receive_memory(&endpoint).map_err(|error| SimulationError::Endpoint(error.into()))
    }

    /// The smallest [`receive_memory`](Self::receive_memory) with which all may send to a process at a time, in bytes.
    ///
    /// # Errors
    /// If flow control refuses its part.
    pub fn receive_memory_for_all(&self) -> Result<usize, SimulationError> {
        let (endpoint, _) = self.endpoint().map_err(SimulationError::Endpoint)?;
        Endpoint::<SimLink>::receive_memory_for_all(&endpoint).map_err(|error| SimulationError::Endpoint(error.into()))
    }

    /// Checks what neither the endpoints nor the network check.
    fn check_own(&self) -> Result<(), SetupError> {
        let all = self.topology.nodes();
        let nodes = self.nodes.as_ref().map_or(all as usize, Vec::len) as u64;
        match nodes * u64::from(self.processes_per_node) {
            0 => return Err(SetupError::NoProcesses),
            processes if processes > u64::from(PEERS_MAX) => return Err(SetupError::TooManyProcesses { processes }),
            _ => {}
        }
        if let Some(&node) = self.nodes.iter().flatten().find(|node| node.0 >= all) {
            return Err(SetupError::NoSuchNode { node, topology: self.topology.clone() });
        }
        let mut named: Vec<_> = self.nodes.iter().flatten().collect();
        named.sort();
        if let Some(twice) = named.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(SetupError::NodeNamedTwice { node: *twice[0] });
        }
        if self.noise.interval < Noise::SHORTEST_INTERVAL {
            return Err(SetupError::NoiseTooOften);
        }
        if self.noise.interval == Time::NEVER && self.noise.duration > Time::ZERO {
            return Err(SetupError::NoiseWithoutInterval);
        }
        let most = Endpoint::<SimLink>::LARGEST_EAGER_BYTES;
        if self.eager_bytes > most {
            return Err(SetupError::EagerTooLarge { bytes: self.eager_bytes, most });
        }
        Ok(())
    }

    /// The largest message, in bytes, whose send never waits for its receive.
    pub(crate) fn unreceived_most(&self) -> u64 {
        match self.flow {
            FlowChoice::Posted { scheme, .. } if scheme.lends().announces_short_messages() => 0,
            _ => self.eager_bytes as u64,
        }
    }

    /// What every endpoint is made with, and the slots of its mailbox.
    pub(crate) fn endpoint(&self) -> Result<(EndpointConfig, usize), EndpointError> {
        let peers = self.peers.unwrap_or(u32::MAX).min(self.size() - 1).saturating_add(self.spare_peers);
        let (flow, slots) = match self.flow {
            FlowChoice::Unlimited => {
                let (scheme, piggyback) = (SchemeName::None, false);
                (Config { piggyback, ..Config::new(scheme, peers, 1, 1) }, usize::MAX)
            }
            FlowChoice::Mailbox { scheme, slots_per_peer, credit_slots, piggyback, quota_most } => {
                let own = Config::new(scheme, peers, slots_per_peer, credit_slots);
                let config = Config { piggyback, quota_most, ..own };
                let slots = config.regions()?.mailbox as usize;
                (config, slots)
            }
            FlowChoice::Posted { scheme, buffers, piggyback } => {
                let config = Config { piggyback, buffers, ..Config::new(scheme, peers, 0, 0) };
                let slots = config.regions()?.mailbox as usize;
                (config, slots)
            }
        };
        let endpoint = EndpointConfig {
            flow,
            eager_bytes: self.eager_bytes,
            operations: OPERATIONS,
            receive_memory: self.receive_memory.unwrap_or(usize::MAX / 2),
            patience: Duration::ZERO,
            packets_per_progress: PACKETS_PER_PROGRESS,
            // A pull is one transfer: the interface cuts it into frames.
            bulk_bytes_per_progress: usize::MAX,
        };
        Ok((endpoint, slots))
    }
}

/// All nodes of a cluster on one switch.
fn one_switch(nodes: u32) -> Topology {
    Topology::switch(nodes).expect("there are nodes")
}

/// Operations that a process may have outstanding: more than any program starts.
const OPERATIONS: usize = 1 << 22;
/// Packets that a process retrieves before it looks at anything else: as many as in the library.
const PACKETS_PER_PROGRESS: usize = 64;

/// A configuration whose parts do not fit together. `Display` names the fields of [`SimulationConfig`] to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupError {
    /// No node is named, or nodes have no processes.
    NoProcesses,
    /// More processes than packets can name.
    TooManyProcesses {
        /// Nodes times processes per node.
        processes: u64,
    },
    /// A node is named that the topology does not have.
    NoSuchNode {
        /// That node.
        node: NodeId,
        /// What there is.
        topology: Topology,
    },
    /// A node is named twice.
    NodeNamedTwice {
        /// That node.
        node: NodeId,
    },
    /// Interruptions come more often than every [`Noise::SHORTEST_INTERVAL`].
    NoiseTooOften,
    /// It is said how long interruptions are, and not how often they come.
    NoiseWithoutInterval,
    /// Eager messages may be larger than an endpoint can send.
    EagerTooLarge {
        /// What was given.
        bytes: usize,
        /// The largest that is legal.
        most: usize,
    },
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetupError::NoProcesses => {
                f.write_str("a job without processes: raise `processes_per_node`, or name at least one of the `nodes`")
            }
            SetupError::TooManyProcesses { processes } => write!(
                f,
                "{processes} processes are too many, at most {PEERS_MAX} are allowed: lower `processes_per_node`, or \
                 take fewer nodes"
            ),
            SetupError::NoSuchNode { node, topology } => {
                write!(f, "`nodes`: {node} does not exist: the {topology} has {} nodes, from 0 on", topology.nodes())
            }
            SetupError::NodeNamedTwice { node } => {
                write!(f, "`nodes`: {node} is named twice: raise `processes_per_node` instead")
            }
            SetupError::NoiseTooOften => {
                write!(f, "`noise_interval` is too short: give at least {}", Noise::SHORTEST_INTERVAL)
            }
            SetupError::NoiseWithoutInterval => f.write_str(
                "`noise_duration` says how long a process is interrupted: give a `noise_interval`, which says how often",
            ),
            SetupError::EagerTooLarge { bytes, most } => {
                write!(f, "an eager limit of {bytes} bytes is too large: at most {most} bytes are allowed")
            }
        }
    }
}

impl std::error::Error for SetupError {}

/// Why there is no outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SimulationError {
    /// Something that is to be simulated makes no sense.
    Setup(String),
    /// The parts of the configuration do not fit together.
    Config(SetupError),
    /// Flow control, or the endpoints, refuse their part of the configuration.
    Endpoint(EndpointError),
    /// The network refuses its part of the configuration.
    Network(NetworkError),
    /// Nothing could move any more, and programs had not ended.
    Deadlock(Deadlock),
    /// A process could not go on.
    Process(String),
    /// A checker found something that must never happen; all that it found.
    Violations(Vec<String>),
}

impl fmt::Display for SimulationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimulationError::Setup(what) | SimulationError::Process(what) => f.write_str(what),
            SimulationError::Config(error) => error.fmt(f),
            SimulationError::Endpoint(error) => error.fmt(f),
            SimulationError::Network(error) => error.fmt(f),
            SimulationError::Deadlock(deadlock) => deadlock.fmt(f),
            SimulationError::Violations(violations) => {
                write!(f, "{} violations of what must hold; the first: {}", violations.len(), violations[0])
            }
        }
    }
}

impl std::error::Error for SimulationError {}
