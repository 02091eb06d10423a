//! [`Load`]: what nodes send, how fast they take what comes, and what holds them back; [`Machine`]: a network under it.
//!
//! **Marks** (FECN, BECN: R §4.1). A packet that goes into a buffer that is more than half full is marked with some
//! probability. For each marked packet its receiver marks one packet that goes back. Each of those adds 8 to the
//! counter of who receives it, any other packet subtracts 1, and time subtracts 1 every few cycles; the counter stays
//! from 0 to 20. A node sends at the rate 1 − counter / 20: it gathers that share of a flit in each cycle, and begins
//! a packet when it has a packet's flits together.
//!
//! **Chunks** (R §3, as §4.1 simulates them). A node has at most so many packets under way; each packet that its
//! receiver has *sunk* is a credit that rides back on a packet of data. Where no packet of data can go back, because
//! both have run out of credits or the pattern has no traffic that way, a packet of one flit carries them: without it
//! two partners with one credit each would wait for each other for ever.

use super::engine::Engine;
use super::layout::{Layout, LayoutError, Routing};
use super::packet::Packet;
use super::parameters::{ParameterError, Parameters};
use super::pattern::Pattern;
use super::totals::Totals;
use crate::Random;

/// What holds senders back beside full buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Nothing.
    None,
    /// Marks by full buffers.
    Marks {
        /// How many times as strongly as R's default.
        strength: u8,
        /// After how many cycles time takes 1 off a node's counter.
        decay_cycles: u16,
    },
    /// So many packets of a node are under way at most.
    Chunks(u32),
    /// The same for some of the nodes only, which tells whose limit does what. All of them count and return credits.
    ChunksOf(Limited, u32),
}

/// Which nodes are limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limited {
    /// Those that send to a slow node.
    SendersToSlow,
    /// All but those.
    Others,
}

impl Control {
    /// R's marks.
    pub const DEFAULT_MARKS: Control = Control::Marks { strength: 1, decay_cycles: 4 };
    /// R's aggressive marks.
    pub const AGGRESSIVE_MARKS: Control = Control::Marks { strength: 2, decay_cycles: 50 };

    /// How many packets of a node may be under way, given whether its receiver is slow. `None` if nobody counts them.
    fn chunks(self, sends_to_slow: bool) -> Option<u32> {
        match self {
            Control::None | Control::Marks { .. } => None,
            Control::Chunks(most) => Some(most),
            Control::ChunksOf(limited, most) => {
                Some(if sends_to_slow == (limited == Limited::SendersToSlow) { most } else { u32::MAX })
            }
        }
    }
}

/// What a mark that comes back adds to a counter, and the counter's largest value (R §4.1).
const MARK_STEP: u32 = 8;
const MARK_MOST: u32 = 20;

/// What nodes do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Who sends to whom.
    pub pattern: Pattern,
    /// How many flits a node has to send in a thousand cycles: 1,000 is all that its link carries.
    pub offered_per_mille: u32,
    /// How many nodes take what comes slowly.
    pub slow_nodes: u32,
    /// How many cycles they need for a flit.
    pub slow_factor: u16,
    /// What holds senders back.
    pub control: Control,
}

impl Load {
    /// All of them send as fast as they can.
    #[must_use]
    pub fn full(pattern: Pattern) -> Self {
        Load { pattern, offered_per_mille: 1000, slow_nodes: 0, slow_factor: 1, control: Control::None }
    }
}

/// A network and its load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Wires.
    pub layout: Layout,
    /// Ways.
    pub routing: Routing,
    /// Routers and links.
    pub parameters: Parameters,
    /// Nodes.
    pub load: Load,
    /// Decides every random choice.
    pub seed: u64,
}

/// Why a machine cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineError {
    /// Wires.
    Layout(LayoutError),
    /// Routers and links.
    Parameters(ParameterError),
    /// More slow nodes than nodes.
    SlowNodes {
        /// What was asked for.
        slow: u32,
        /// How many there are.
        nodes: u32,
    },
    /// A node is slow by no factor, or by too much.
    SlowFactor(u16),
    /// Nothing is offered, or more than a link carries.
    Offered(u32),
    /// Marks ride back on packets of data, which only pairs send both ways.
    MarksWithoutPairs,
    /// Credits are counted for one receiver of each node.
    ChunksWithoutPartner,
    /// Time takes nothing off a counter.
    NoDecay,
    /// No packet may be under way.
    NoChunks,
    /// All send to themselves.
    NoShift,
}

/// Slower nodes are refused: the calendar of events would be too long.
pub const SLOW_FACTOR_MAX: u16 = 1000;

impl std::fmt::Display for MachineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MachineError::Layout(error) => error.fmt(f),
            MachineError::Parameters(error) => error.fmt(f),
            MachineError::SlowNodes { slow, nodes } => {
                write!(f, "`slow_nodes` = {slow}: the network has {nodes} nodes")
            }
            MachineError::SlowFactor(factor) => {
                write!(f, "`slow_factor` = {factor}: a slow node takes a flit in 1 to {SLOW_FACTOR_MAX} cycles")
            }
            MachineError::Offered(per_mille) => write!(
                f,
                "`offered` = {}: give more than 0, and at most 1, which is all that a node's link carries",
                f64::from(*per_mille) / 1000.0
            ),
            MachineError::MarksWithoutPairs => {
                f.write_str("`control`: marks ride back on packets of data, so they need `pattern` = \"pairs\"")
            }
            MachineError::ChunksWithoutPartner => f.write_str(
                "`control`: chunks need a `pattern` in which each node has one receiver: pairs, permutation or shift",
            ),
            MachineError::NoDecay => f.write_str(
                "`mark_decay_cycles` = 0: nodes that have stopped would never begin again, so give at least 1",
            ),
            MachineError::NoChunks => f.write_str("`chunks` = 0: nothing could ever be sent, so give at least 1"),
            MachineError::NoShift => {
                f.write_str("`shift`: by this many every node would send to itself: give another number")
            }
        }
    }
}

impl std::error::Error for MachineError {}

impl Machine {
    /// Whether it can be built.
    ///
    /// # Errors
    /// If it cannot, the error says why.
    pub fn check(&self) -> Result<(), MachineError> {
        self.layout.check().map_err(MachineError::Layout)?;
        self.parameters.check(&self.layout).map_err(MachineError::Parameters)?;
        let (nodes, load) = (self.layout.nodes(), &self.load);
        if load.slow_nodes > nodes {
            return Err(MachineError::SlowNodes { slow: load.slow_nodes, nodes });
        }
        if !(1..=SLOW_FACTOR_MAX).contains(&load.slow_factor) {
            return Err(MachineError::SlowFactor(load.slow_factor));
        }
        if !(1..=1000).contains(&load.offered_per_mille) {
            return Err(MachineError::Offered(load.offered_per_mille));
        }
        if let Pattern::Shift(by) = load.pattern
            && by.is_multiple_of(nodes)
        {
            return Err(MachineError::NoShift);
        }
        match load.control {
            Control::None => Ok(()),
            Control::Marks { .. } if load.pattern != Pattern::Pairs => Err(MachineError::MarksWithoutPairs),
            Control::Chunks(_) | Control::ChunksOf(..) if load.pattern == Pattern::Uniform => {
                Err(MachineError::ChunksWithoutPartner)
            }
            Control::Chunks(0) | Control::ChunksOf(_, 0) => Err(MachineError::NoChunks),
            Control::Marks { decay_cycles: 0, .. } => Err(MachineError::NoDecay),
            Control::Marks { .. } | Control::Chunks(_) | Control::ChunksOf(..) => Ok(()),
        }
    }
}

/// A node.
#[derive(Clone, Debug)]
struct Node {
    /// When its link to the router is free.
    free_at: u64,
    /// The channel that it tries first next time.
    turn: u8,
    /// To whom it sends; itself if it does not, and if each packet has another receiver.
    partner: u32,
    /// Who sends to it.
    source: u32,
    /// When it has taken all that has come.
    sunk_at: u64,
    /// How many cycles it needs for a flit.
    slowness: u16,
    /// How many of its packets may be under way, if they are counted.
    chunks: Option<u32>,
    /// Its packets that have not been sunk, as far as it knows.
    outstanding: u32,
    /// Packets of its source that it has sunk and not told of.
    owed_credits: u32,
    /// Marked packets of its source that it has not told of.
    owed_marks: u32,
    /// What holds it back, from 0 to 20.
    counter: u32,
    /// Twentieths of flits that it may send.
    tokens: u32,
    /// When its next packet is ready.
    next_born: u64,
    /// Flits of data that it has sunk.
    accepted: u64,
}

/// What nodes have done since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets of data that were injected.
    pub sent: u64,
    /// Packets of data that were sunk.
    pub sunk: u64,
    /// Packets of one flit that carried nothing but credits.
    pub credit_packets: u64,
    /// Sum over the packets that were sunk of the cycles from when they were ready.
    pub latency: u64,
}

/// A network under load.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub(super) engine: Engine,
    machine: Machine,
    nodes: Vec<Node>,
    is_uniform: bool,
    random: Random,
    counts: Counts,
    /// Lists that are used again in each cycle.
    spare: Vec<u32>,
}

/// What a packet's label says.
const DATA: u32 = 0;
const CREDITS: u32 = 1;

impl Loaded {
    /// Builds it.
    ///
    /// # Errors
    /// If it cannot be built, the error says why.
    pub fn new(machine: &Machine) -> Result<Self, MachineError> {
        machine.check()?;
        let Machine { layout, routing, parameters, load, seed } = *machine;
        let count = layout.nodes();
        let marking = match load.control {
            Control::Marks { strength, .. } => Some(strength),
            Control::None | Control::Chunks(_) | Control::ChunksOf(..) => None,
        };
        let parameters = Parameters { marking, slowest: load.slow_factor, ..parameters };
        // Pairs and slow nodes are drawn apart, so that neither depends on how the other is drawn.
        let partners = load.pattern.partners(count, &mut Random::stream(seed, 2));
        let mut slowness = vec![1; count as usize];
        for &node in &Random::stream(seed, 3).permutation(count)[..load.slow_nodes as usize] {
            slowness[node as usize] = load.slow_factor;
        }
        let node = |node: u32| Node {
            free_at: 0,
            turn: (node % u32::from(parameters.channels)) as u8,
            partner: partners.as_ref().map_or(node, |partners| partners[node as usize]),
            source: node,
            sunk_at: 0,
            slowness: slowness[node as usize],
            chunks: None,
            outstanding: 0,
            owed_credits: 0,
            owed_marks: 0,
            counter: 0,
            tokens: 0,
            next_born: 0,
            accepted: 0,
        };
        let mut nodes: Vec<Node> = (0..count).map(node).collect();
        for (index, &partner) in partners.iter().flatten().enumerate() {
            nodes[partner as usize].source = index as u32;
            nodes[index].chunks = load.control.chunks(slowness[partner as usize] > 1);
        }
        let mut engine = Engine::new(layout, routing, parameters, seed);
        engine.is_slow = slowness.iter().map(|&factor| factor > 1).collect();
        Ok(Loaded {
            engine,
            machine: Machine { parameters, ..*machine },
            nodes,
            is_uniform: partners.is_none(),
            random: Random::stream(seed, 4),
            counts: Counts::default(),
            spare: Vec::new(),
        })
    }

    /// The current cycle.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.engine.now()
    }

    /// What nodes have done.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What routers have done.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.engine.totals()
    }

    /// Packets that are under way.
    #[must_use]
    pub fn under_way(&self) -> u64 {
        self.engine.packets.count()
    }

    /// Flits of data that each node has sunk since the beginning, and whether it is slow.
    pub fn accepted(&self) -> impl Iterator<Item = (u64, bool)> {
        self.nodes.iter().map(|node| (node.accepted, node.slowness > 1))
    }

    /// Packets that each node has under way, as far as it knows, and whether its receiver is slow.
    #[cfg(test)]
    pub(super) fn outstanding(&self) -> impl Iterator<Item = (u32, bool)> {
        self.nodes.iter().map(|node| (node.outstanding, self.nodes[node.partner as usize].slowness > 1))
    }

    /// Runs for so many cycles.
    pub fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.step(true);
        }
    }

    /// One cycle; nodes begin new packets of data only if they `send`.
    pub(super) fn step(&mut self, send: bool) {
        self.engine.begin_cycle();
        self.receive();
        self.sink();
        if let Control::Marks { decay_cycles, .. } = self.machine.load.control {
            self.gather_tokens(self.engine.now().is_multiple_of(decay_cycles.into()));
        }
        let now = self.engine.now();
        for node in 0..self.nodes.len() {
            if self.nodes[node].free_at <= now {
                self.inject(node as u32, send);
            }
        }
        self.engine.end_cycle();
    }

    /// Nodes queue what has come, and look at its marks.
    fn receive(&mut self) {
        let mut delivered = std::mem::replace(&mut self.engine.delivered, std::mem::take(&mut self.spare));
        let now = self.engine.now();
        for number in delivered.drain(..) {
            let packet = &self.engine.packets[number];
            let node = &mut self.nodes[packet.journey.to as usize];
            let begin = node.sunk_at.max(now);
            node.sunk_at = begin + u64::from(packet.flits) * u64::from(node.slowness);
            node.owed_marks += u32::from(packet.is_marked);
            node.counter = match packet.tells_mark {
                true => (node.counter + MARK_STEP).min(MARK_MOST),
                false => node.counter.saturating_sub(1),
            };
            let at = node.sunk_at;
            self.engine.sink_at(number, at);
        }
        self.spare = delivered;
    }

    /// Nodes have taken packets.
    fn sink(&mut self) {
        let mut sunk = std::mem::replace(&mut self.engine.sunk, std::mem::take(&mut self.spare));
        for number in sunk.drain(..) {
            let packet = self.engine.release(number);
            let node = &mut self.nodes[packet.journey.to as usize];
            node.outstanding -= u32::from(packet.credits);
            if packet.label == DATA {
                node.accepted += u64::from(packet.flits);
                node.owed_credits += 1;
                self.counts.sunk += 1;
                self.counts.latency += self.engine.now() - packet.born;
            }
        }
        self.spare = sunk;
    }

    fn gather_tokens(&mut self, is_decay: bool) {
        let most = MARK_MOST * u32::from(self.machine.parameters.packet_flits);
        for node in &mut self.nodes {
            node.tokens = (node.tokens + MARK_MOST - node.counter).min(most);
            node.counter = node.counter.saturating_sub(u32::from(is_decay));
        }
    }

    /// A node begins a packet, if it has one to send and may.
    fn inject(&mut self, index: u32, send: bool) {
        let now = self.engine.now();
        let flits = self.machine.parameters.packet_flits;
        let node = &self.nodes[index as usize];
        let has_data = send && node.next_born <= now && (self.is_uniform || node.partner != index);
        let is_marked = matches!(self.machine.load.control, Control::Marks { .. });
        let may = match node.chunks {
            Some(most) => node.outstanding < most,
            None => !is_marked || node.tokens >= MARK_MOST * u32::from(flits),
        };
        let is_chunked = node.chunks.is_some();
        let rides = node.source == node.partner;
        let begins = has_data && may;
        let owes = is_chunked && node.owed_credits > 0;
        if !begins && !owes {
            return;
        }
        let node = &mut self.nodes[index as usize];
        let Some(channel) = self.engine.free_channel(index, &mut node.turn) else { return };
        let mut packet = if begins && (rides || !owes) {
            self.counts.sent += 1;
            let to = match self.is_uniform {
                true => {
                    (index + 1 + self.random.below(self.machine.layout.nodes() as u64 - 1) as u32)
                        % self.machine.layout.nodes()
                }
                false => node.partner,
            };
            node.tokens = node.tokens.saturating_sub(MARK_MOST * u32::from(flits));
            node.outstanding += u32::from(is_chunked);
            Packet::new(index, to, flits, node.next_born, DATA)
        } else {
            self.counts.credit_packets += 1;
            Packet::new(index, node.source, 1, now, CREDITS)
        };
        if packet.journey.to == node.source {
            packet.tells_mark = node.owed_marks > 0;
            node.owed_marks -= u32::from(packet.tells_mark);
            if is_chunked {
                packet.credits = std::mem::take(&mut node.owed_credits) as u16;
            }
        }
        node.free_at = now + u64::from(packet.flits);
        if packet.label == DATA {
            self.nodes[index as usize].next_born = self.draw_next(index, now);
        }
        self.engine.inject(channel, packet);
    }

    /// When the node's next packet is ready: at full load at once; else the gaps between packets are 1 to twice the
    /// mean, each as likely.
    fn draw_next(&mut self, index: u32, now: u64) -> u64 {
        let offered = u64::from(self.machine.load.offered_per_mille);
        if offered == 1000 {
            return now;
        }
        let born = self.nodes[index as usize].next_born;
        let mean = 1000 * u64::from(self.machine.parameters.packet_flits) / offered;
        born + 1 + self.random.below((2 * mean - 1).max(1))
    }
}
