//! [`Parameters`]: the numbers of routers and links.

use std::fmt;

use super::layout::Layout;

/// Most channels of a link.
pub const CHANNELS_MAX: u8 = 16;

/// Which channel a packet takes at the end of its way through a dragonfly; the others are the same in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChannelMap {
    /// Each step of a way has its own: all packets end on the last one, apart from those that pass through.
    #[default]
    ByStep,
    /// The number of global links taken decides: behind one of them packets end among those that pass through.
    ByGlobalLinks,
}

/// Which of several equal channels a packet takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lanes {
    /// The same all along, as it was injected.
    #[default]
    Fixed,
    /// At each router the one with the fewest flits in use, its own if that has as few.
    PerHop,
}

/// Routers and links. Times are cycles; a link carries a flit in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Channels of a link.
    pub channels: u8,
    /// The channel at the end of a dragonfly's ways.
    pub channel_map: ChannelMap,
    /// The choice among equal channels.
    pub lanes: Lanes,
    /// Flits that an input holds for each channel.
    pub buffer_flits: u16,
    /// Flits of the longest packet.
    pub packet_flits: u16,
    /// How many flits a router's crossbar moves while a link moves ten, for each input and output.
    pub speed_up_tenths: u16,
    /// From a packet's arrival at the head of its queue to the wire, if nothing is in its way.
    pub router_latency: u16,
    /// Of a short wire: within a group, below the top of a tree.
    pub local_latency: u16,
    /// Of a long wire: between groups, at the top of a tree.
    pub global_latency: u16,
    /// Of the wire between a node and its router.
    pub node_latency: u16,
    /// From the moment when room becomes free until it is on its way back.
    pub credit_delay: u16,
    /// How strongly full buffers mark packets (FECN); `None`: never.
    pub marking: Option<u8>,
    /// How many cycles the slowest node needs for a flit.
    pub slowest: u16,
}

impl Parameters {
    /// Those of R (§4.1): packets of 16 flits, 256 flits per channel, speed-up 2.4, links of 2 and 10 cycles. The paper
    /// does not say how many channels there are, nor how long a router takes: four, because the ways need them, and one
    /// cycle each for two allocations and the crossbar.
    pub const SCHNEIDER: Parameters = Parameters {
        channels: 4,
        channel_map: ChannelMap::ByStep,
        lanes: Lanes::Fixed,
        buffer_flits: 256,
        packet_flits: 16,
        speed_up_tenths: 24,
        router_latency: 3,
        local_latency: 2,
        global_latency: 10,
        node_latency: 1,
        credit_delay: 2,
        marking: None,
        slowest: 1,
    };

    /// Cycles that the longest event lies ahead: all buffers behind a port have to be emptied at the slowest rate.
    pub(super) fn longest_delay(&self) -> u64 {
        let buffers = u64::from(self.channels) * u64::from(self.buffer_flits) + u64::from(self.packet_flits);
        let wires = self.router_latency.max(self.credit_delay) + self.global_latency.max(self.local_latency);
        buffers * u64::from(self.slowest.max(1)) + u64::from(wires) + u64::from(self.node_latency) + 2
    }

    /// How long a packet takes the crossbar, in 2^`shift` parts of a cycle.
    #[inline]
    pub(super) fn crossing(&self, flits: u16, shift: u32) -> u64 {
        ((u64::from(flits) * 10) << shift) / u64::from(self.speed_up_tenths)
    }

    /// Whether these numbers can work with this layout.
    ///
    /// # Errors
    /// If they cannot, the error says why.
    pub fn check(&self, layout: &Layout) -> Result<(), ParameterError> {
        let classes = layout.classes();
        if self.channels == 0 || self.channels > CHANNELS_MAX || !u32::from(self.channels).is_multiple_of(classes) {
            return Err(ParameterError::Channels { given: self.channels, classes });
        }
        if self.packet_flits == 0 || self.packet_flits > self.buffer_flits || self.buffer_flits > BUFFER_FLITS_MAX {
            return Err(ParameterError::Buffer { buffer: self.buffer_flits, packet: self.packet_flits });
        }
        if !(10..=1000).contains(&self.speed_up_tenths) {
            return Err(ParameterError::SpeedUp(self.speed_up_tenths));
        }
        let latencies = [
            ("router_cycles", self.router_latency),
            ("local_cycles", self.local_latency),
            ("global_cycles", self.global_latency),
        ];
        let others = [("node_cycles", self.node_latency), ("credit_cycles", self.credit_delay)];
        match latencies.into_iter().chain(others).find(|(_, cycles)| !(1..=LATENCY_MAX).contains(cycles)) {
            Some((name, cycles)) => Err(ParameterError::Latency { name, cycles }),
            None => Ok(()),
        }
    }
}

/// Most flits of a buffer.
pub const BUFFER_FLITS_MAX: u16 = 1 << 13;
/// Most cycles of a wire or router.
pub const LATENCY_MAX: u16 = 1 << 12;

/// Why numbers of routers do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterError {
    /// Channels.
    Channels {
        /// What was given.
        given: u8,
        /// What it has to be a multiple of.
        classes: u32,
    },
    /// A packet does not fit into a buffer, or the buffer is too large.
    Buffer {
        /// Flits of the buffer.
        buffer: u16,
        /// Flits of the packet.
        packet: u16,
    },
    /// A crossbar that is slower than the links.
    SpeedUp(u16),
    /// Some latency is 0 or too large.
    Latency {
        /// Which.
        name: &'static str,
        /// What was given.
        cycles: u16,
    },
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParameterError::Channels { given, classes } => write!(
                f,
                "`channels` = {given}: this topology needs {classes} so that packets never wait for each other in a \
                 circle; give a multiple of {classes}, at most {CHANNELS_MAX}"
            ),
            ParameterError::Buffer { buffer, packet } => write!(
                f,
                "`buffer_flits` = {buffer}: a buffer holds at least one packet, which has `packet_flits` = {packet} (from 1 \
                 on), and at most {BUFFER_FLITS_MAX} flits"
            ),
            ParameterError::SpeedUp(tenths) => {
                write!(f, "`speed_up` = {}: give 1 to 100", f64::from(*tenths) / 10.0)
            }
            ParameterError::Latency { name, cycles } => {
                write!(f, "`{name}` = {cycles}: give 1 to {LATENCY_MAX} cycles")
            }
        }
    }
}

impl std::error::Error for ParameterError {}
