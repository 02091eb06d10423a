//! Exchanges on networks of thousands of nodes: all-to-all under B's techniques, and as MPIs do it.
//!
//! A node is a processor and a link. The processor takes `overhead_cycles` for each thing that it does (begin a piece,
//! send a signal) and for each that it hears of; the link sends packets, signals first, and pieces that are under way
//! in turn. Pieces, signals, acknowledgements and the barrier's messages all are packets of the same network, so they
//! wait in the same queues. A piece counts as sent when its last packet is on the wire, or, where a technique wants to
//! know when its receiver has it, when the receiver's acknowledgement has come back.
//!
//! * `sizes.rs`: how much there is for whom;
//! * `node.rs`: what a node runs, its processor and its link;
//! * `baseline.rs`: pairwise exchange and Bruck's algorithm;
//! * here: the machine of all of them, [`AllToAll`].

mod baseline;
mod node;
mod sizes;
#[cfg(test)]
mod tests;

pub use sizes::Sizes;

use self::baseline::Rounds;
use self::node::{Heard, Node, Program};
use super::engine::Engine;
use super::layout::{Layout, Routing};
use super::load::{MachineError, SLOW_FACTOR_MAX};
use super::packet::Packet;
use super::parameters::Parameters;
use crate::slots::Slots;
use serde::{Deserialize, Serialize};
use std::fmt;
use tidegate_bulk::{
    Action, Block, Completion, Event, Exchange, Piece, Settings, Signal, TechniqueName, TreeSignal, UnfitSettings,
};

/// Who sends when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// One of B's techniques.
    Technique(TechniqueName),
    /// All blocks at once, in the order of a cyclic shift, so many under way at a time: what MPICH does with blocks of
    /// middle length (32), and Open MPI calls linear.
    Scattered(u32),
    /// What MPICH and Open MPI do with long blocks.
    Pairwise,
    /// What they do with short ones. Only for blocks of one size.
    Bruck,
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Algorithm::Technique(name) => name.fmt(f),
            Algorithm::Scattered(most) => write!(f, "scattered ({most} at a time)"),
            Algorithm::Pairwise => f.write_str("pairwise"),
            Algorithm::Bruck => f.write_str("Bruck"),
        }
    }
}

/// How nodes wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// The network has one: all pass so many cycles after the last is in.
    Hardware {
        /// That many.
        cycles: u32,
    },
    /// Messages along a tree.
    Tree {
        /// Most children of a node.
        arity: u32,
    },
}

/// An exchange on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Wires.
    pub layout: Layout,
    /// Ways.
    pub routing: Routing,
    /// Routers and links.
    pub parameters: Parameters,
    /// Bytes of a flit.
    pub flit_bytes: u32,
    /// Who sends when.
    pub algorithm: Algorithm,
    /// Of the technique.
    pub settings: Settings,
    /// Of the technique.
    pub barrier: Barrier,
    /// What a node's processor needs for one thing that it does or hears of.
    pub overhead_cycles: u32,
    /// How many cycles a node needs to take a flit: with 2 it receives half as fast as it sends.
    pub receive_factor: u16,
    /// Whether it sends nothing meanwhile, because its processor takes what comes, which always comes first: else the
    /// network might stand still (B §1.1). Adapters of today do both at once.
    pub is_receiving_exclusive: bool,
    /// How much there is for whom.
    pub sizes: Sizes,
    /// Decides every random choice.
    pub seed: u64,
    /// An exchange that takes longer is given up.
    pub most_cycles: u64,
}

/// How an exchange went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Exchanged {
    /// When the last byte had been taken and everybody was through.
    pub cycles: u64,
    /// Bytes of all blocks.
    pub bytes: u64,
    /// What a node got in each cycle, in the mean, as a part of what its link carries.
    pub rate: f64,
    /// Small messages of all kinds.
    pub signals: u64,
    /// Requests of `booking`.
    pub requests: u64,
    /// Those that were denied.
    pub denials: u64,
    /// Pieces that were under way to the receiver that had most at once.
    pub most_at_one: u32,
}

/// What cannot be run.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanError {
    /// The machine.
    Machine(MachineError),
    /// The settings of the technique.
    Settings(UnfitSettings),
    /// Bruck's algorithm with blocks of several sizes.
    BruckUneven,
    /// Not over in time.
    TooLong {
        /// The cycles that it was given.
        cycles: u64,
        /// Nodes that are not through.
        nodes: u32,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::Machine(error) => error.fmt(f),
            PlanError::Settings(error) => error.fmt(f),
            PlanError::BruckUneven => f.write_str("Bruck's algorithm needs blocks of one size"),
            PlanError::TooLong { cycles, nodes } => {
                write!(f, "the exchange is not over after {cycles} cycles: {nodes} nodes are not through")
            }
        }
    }
}

impl std::error::Error for PlanError {}

/// What a packet's label says: the number of a piece, or with this bit that of a small message.
const SMALL: u32 = 1 << 31;
/// Flits of a small message: 24 bytes and what a packet needs anyway.
const SMALL_FLITS: u16 = 2;

/// A small message.
#[derive(Clone, Copy, Debug)]
enum Message {
    Signal(Signal),
    Tree(TreeSignal),
    /// The sender's piece of this number is here.
    Acknowledged(u32),
}

/// A piece that is under way.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    piece: Piece,
    /// Packets that the sender has not injected, and that the receiver has not taken.
    to_inject: u32,
    to_sink: u32,
}

/// See the module.
pub struct AllToAll {
    plan: Plan,
    engine: Engine,
    nodes: Vec<Node>,
    /// By node: before this cycle it has nothing to do. Most nodes have not, in most cycles.
    ready_at: Vec<u64>,
    pieces: Slots<UnderWay>,
    messages: Slots<Message>,
    /// Pieces under way to each node.
    incoming: Vec<u32>,
    /// In the hardware barrier: how many, and whether any has work left.
    inside: u32,
    work_left: bool,
    passes_at: Option<u64>,
    left_bytes: u64,
    result: Exchanged,
}

impl AllToAll {
    /// Runs an exchange to its end.
    ///
    /// # Errors
    /// If the machine cannot be built, or the exchange takes too long.
    pub fn run(plan: &Plan) -> Result<Exchanged, PlanError> {
        let mut exchange = AllToAll::new(plan)?;
        while !exchange.is_over() {
            if exchange.engine.now() >= plan.most_cycles {
                let nodes = exchange.nodes.iter().filter(|node| !node.is_finished).count() as u32;
                return Err(PlanError::TooLong { cycles: plan.most_cycles, nodes });
            }
            exchange.cycle();
        }
        let mut result = exchange.result;
        result.cycles = exchange.engine.now();
        let flits = result.bytes as f64 / f64::from(plan.flit_bytes);
        result.rate = flits / exchange.nodes.len() as f64 / result.cycles.max(1) as f64;
        Ok(result)
    }

    fn new(plan: &Plan) -> Result<Self, PlanError> {
        let Plan { layout, routing, seed, receive_factor, .. } = *plan;
        let parameters = Parameters { slowest: receive_factor, ..plan.parameters };
        if !(1..=SLOW_FACTOR_MAX).contains(&receive_factor) {
            return Err(PlanError::Machine(MachineError::SlowFactor(receive_factor)));
        }
        plan.settings.check().map_err(PlanError::Settings)?;
        layout.check().map_err(|error| PlanError::Machine(MachineError::Layout(error)))?;
        parameters.check(&layout).map_err(|error| PlanError::Machine(MachineError::Parameters(error)))?;
        if plan.algorithm == Algorithm::Bruck && !matches!(plan.sizes, Sizes::Uniform(_)) {
            return Err(PlanError::BruckUneven);
        }
        let count = layout.nodes();
        let blocks: Vec<_> = (0..count).map(|me| plan.sizes.blocks(me, count, seed)).collect();
        let bytes = blocks.iter().flatten().map(|block| block.bytes).sum();
        let mut senders = vec![Vec::new(); count as usize];
        for (from, mine) in (0..).zip(&blocks) {
            for block in mine.iter().filter(|block| block.bytes > 0) {
                senders[block.to.0 as usize].push(from);
            }
        }
        let program = |me: u32| Program::new(plan, me, count, &blocks[me as usize], &senders[me as usize]);
        // Bruck's algorithm sends blocks several times; all of that has to arrive.
        let left_bytes = match (plan.algorithm, plan.sizes) {
            (Algorithm::Bruck, Sizes::Uniform(bytes)) => {
                u64::from(count) * (1..count).map(|distance| bytes * u64::from(distance.count_ones())).sum::<u64>()
            }
            _ => bytes,
        };
        Ok(AllToAll {
            plan: *plan,
            engine: Engine::new(layout, routing, parameters, seed),
            nodes: (0..count).map(|me| Node::new(program(me), me, plan)).collect(),
            ready_at: vec![0; count as usize],
            pieces: Slots::new(),
            messages: Slots::new(),
            incoming: vec![0; count as usize],
            inside: 0,
            work_left: false,
            passes_at: None,
            left_bytes,
            result: Exchanged { bytes, ..Exchanged::default() },
        })
    }

    fn is_over(&self) -> bool {
        self.left_bytes == 0 && self.nodes.iter().all(|node| node.is_finished)
    }

    fn cycle(&mut self) {
        self.engine.begin_cycle();
        let now = self.engine.now();
        let mut numbers = std::mem::take(&mut self.engine.delivered);
        for number in numbers.drain(..) {
            let packet = &self.engine.packets[number];
            let node = &mut self.nodes[packet.journey.to as usize];
            node.sunk_at = node.sunk_at.max(now) + u64::from(packet.flits) * u64::from(self.plan.receive_factor);
            let at = node.sunk_at;
            self.engine.sink_at(number, at);
        }
        self.engine.delivered = numbers;
        let mut numbers = std::mem::take(&mut self.engine.sunk);
        for number in numbers.drain(..) {
            let packet = self.engine.release(number);
            self.take(&packet);
        }
        self.engine.sunk = numbers;
        if self.passes_at == Some(now) {
            self.pass();
        }
        for me in 0..self.nodes.len() as u32 {
            if self.ready_at[me as usize] <= now {
                self.act(me, now);
            }
        }
        self.engine.end_cycle();
    }

    /// A node's processor and its link do what they can in this cycle.
    fn act(&mut self, me: u32, now: u64) {
        if self.nodes[me as usize].has_to_do(now) {
            self.compute(me);
        }
        let is_taking = self.plan.is_receiving_exclusive && self.nodes[me as usize].sunk_at > now;
        if !is_taking && self.nodes[me as usize].has_to_send(now) {
            self.inject(me);
        }
        self.ready_at[me as usize] = self.nodes[me as usize].ready_at().max(now + 1);
    }

    /// All pass the hardware barrier.
    fn pass(&mut self) {
        self.passes_at = None;
        let work_left = std::mem::take(&mut self.work_left);
        for node in &mut self.nodes {
            node.heard.push_back(Heard::Event(Event::Passed { work_left }));
        }
        self.ready_at.fill(0);
    }

    /// A node has taken a packet.
    fn take(&mut self, packet: &Packet) {
        let (from, to) = (packet.journey.from, packet.journey.to);
        if packet.label & SMALL != 0 {
            let heard = match self.messages.take(packet.label & !SMALL) {
                Message::Signal(signal) => Heard::Event(Event::Signalled { from: tidegate_bulk::Node(from), signal }),
                Message::Tree(signal) => Heard::Tree { from: tidegate_bulk::Node(from), signal },
                Message::Acknowledged(number) => Heard::Event(Event::Sent(self.pieces.take(number).piece)),
            };
            self.hear(to, heard);
            return;
        }
        let number = packet.label;
        let under_way = self.pieces.of(number);
        under_way.to_sink -= 1;
        if under_way.to_sink > 0 {
            return;
        }
        self.left_bytes -= under_way.piece.bytes;
        self.incoming[to as usize] -= 1;
        let event = Event::Arrived { from: tidegate_bulk::Node(from) };
        self.hear(to, Heard::Event(event));
        if self.nodes[from as usize].program.completion() == Completion::Delivered {
            self.charge(to);
            self.send_small(to, from, Message::Acknowledged(number));
        } else {
            self.pieces.take(number);
        }
    }

    fn send_small(&mut self, from: u32, to: u32, message: Message) {
        self.result.signals += 1;
        let number = self.messages.put(message);
        self.nodes[from as usize].small.push_back((to, SMALL | number));
        self.ready_at[from as usize] = 0;
    }

    /// A node's processor has one thing more to do. (Here the message leaves at once, which is early by that much.)
    fn charge(&mut self, node: u32) {
        let now = self.engine.now();
        self.nodes[node as usize].charge(now, self.plan.overhead_cycles);
    }

    fn hear(&mut self, node: u32, heard: Heard) {
        self.nodes[node as usize].heard.push_back(heard);
        self.ready_at[node as usize] = 0;
    }

    /// A node's processor does one thing.
    fn compute(&mut self, me: u32) {
        let now = self.engine.now();
        let node = &mut self.nodes[me as usize];
        let Some(action) = node.next_action(now, self.plan.overhead_cycles) else {
            return self.poll_tree(me);
        };
        match action {
            Action::Copy(_) => {}
            Action::Send(piece) => {
                let flits = piece.bytes.div_ceil(self.plan.flit_bytes.into());
                let packets = flits.div_ceil(self.plan.parameters.packet_flits.into()) as u32;
                let under_way = UnderWay { piece, to_inject: packets, to_sink: packets };
                let number = self.pieces.put(under_way);
                self.nodes[me as usize].pieces.push_back(number);
                let incoming = &mut self.incoming[piece.to.0 as usize];
                *incoming += 1;
                self.result.most_at_one = self.result.most_at_one.max(*incoming);
            }
            Action::Signal { to, signal } => {
                self.result.requests += u64::from(matches!(signal, Signal::Book { .. }));
                self.result.denials += u64::from(signal == Signal::Denied);
                self.send_small(me, to.0, Message::Signal(signal));
            }
            Action::Enter { work_left } => match self.plan.barrier {
                Barrier::Tree { .. } => self.nodes[me as usize].tree.enter(work_left),
                Barrier::Hardware { cycles } => {
                    self.work_left |= work_left;
                    self.inside += 1;
                    if self.inside == self.nodes.len() as u32 {
                        self.inside = 0;
                        self.passes_at = Some(now + u64::from(cycles.max(1)));
                    }
                }
            },
        }
        self.poll_tree(me);
    }

    /// What the barrier's tree has to say.
    fn poll_tree(&mut self, me: u32) {
        while let Some((to, signal)) = self.nodes[me as usize].tree.poll() {
            self.charge(me);
            self.send_small(me, to.0, Message::Tree(signal));
        }
        if let Some(work_left) = self.nodes[me as usize].tree.passed() {
            self.nodes[me as usize].heard.push_front(Heard::Event(Event::Passed { work_left }));
        }
    }

    /// A node's link sends a packet, if there is room for it.
    fn inject(&mut self, me: u32) {
        let now = self.engine.now();
        let node = &mut self.nodes[me as usize];
        let Some(channel) = self.engine.free_channel(me, &mut node.turn) else { return };
        let packet = match node.small.pop_front() {
            Some((to, label)) => Packet::new(me, to, SMALL_FLITS, now, label),
            None => {
                let Some(number) = node.pieces.pop_front() else { return };
                let under_way = self.pieces.of(number);
                under_way.to_inject -= 1;
                let flits = under_way.piece.bytes.div_ceil(self.plan.flit_bytes.into());
                let rest = flits - u64::from(under_way.to_inject) * u64::from(self.plan.parameters.packet_flits);
                let flits = rest.min(self.plan.parameters.packet_flits.into()) as u16;
                let piece = under_way.piece;
                if under_way.to_inject > 0 {
                    node.pieces.push_back(number);
                } else if node.program.completion() == Completion::Local {
                    node.heard.push_back(Heard::Event(Event::Sent(piece)));
                }
                Packet::new(me, piece.to.0, flits, now, number)
            }
        };
        node.link_free = now + u64::from(packet.flits);
        self.engine.inject(channel, packet);
    }
}

impl Program {
    /// What `me` of so many `nodes` runs, which has these blocks, and gets some from these senders, in their order.
    fn new(plan: &Plan, me: u32, nodes: u32, blocks: &[Block], senders: &[u32]) -> Self {
        let technique = |name, settings: &Settings| {
            Program::Technique(Box::new(Exchange::new(name, tidegate_bulk::Node(me), nodes, blocks, settings)))
        };
        match plan.algorithm {
            Algorithm::Technique(name) => technique(name, &plan.settings),
            Algorithm::Scattered(most) => {
                technique(TechniqueName::InOrder, &Settings { outstanding: most, ..plan.settings })
            }
            Algorithm::Pairwise => Program::Rounds(Rounds::pairwise(me, nodes, blocks, senders)),
            Algorithm::Bruck => {
                let bytes = blocks.first().map_or(0, |block| block.bytes);
                Program::Rounds(Rounds::bruck(me, nodes, bytes))
            }
        }
    }
}
