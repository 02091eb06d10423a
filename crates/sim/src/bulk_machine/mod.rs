//! Machines like those of B (Brewer, Gauthier, Fox, Schuett): nodes whose processors put units into the network and
//! take units out of it, and take longer to take one out.
//!
//! A model beside that of endpoints over packets: a node of a CM-5 sends packets of 16 bytes of data, an all-to-all
//! millions of them, and none passes through an endpoint of Tidegate's. What the two have in common is the code that
//! decides: every node here has a [`tidegate_bulk::Exchange`], and does what that says.
//!
//! * A processor does one thing at a time: it puts a unit into its interface, or takes one out (`processor.rs`).
//! * When its interface is full it takes out what has come, or waits. When it finds that something has come it takes
//!   out all of it, for else the network would fill up for ever. So a node that two others send to has no time to send.
//! * Links have finite buffers, and a full one stops what is behind (`network.rs`, `wiring.rs`).
//!
//! Nothing else is put in: that many senders at one receiver slow down those behind them, that nodes drift apart, and
//! that a node that falls behind falls further behind, comes of these three.
//!
//! `parameters.rs` has the numbers, `job.rs` who sends to whom, `program.rs`
//! what a node's exchange says and hears, `outcome.rs` what came of it.

mod job;
mod network;
mod outcome;
mod parameters;
mod processor;
mod program;
mod wiring;

pub use job::{BulkJob, BulkPattern};
pub use outcome::BulkOutcome;
pub use parameters::{BarrierKind, BulkParameters, Mover, Proof, Reception, Shape};

use tidegate_bulk::{Completion, Event, Node, Piece, Signal, TreeSignal};

use crate::config::SimulationError;
use crate::slots::Slots;
use crate::{EventQueue, Random, Time};
use network::{Network, Notice};
use outcome::Watch;
use processor::Processor;
use program::Program;

/// What is to happen.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Happening {
    /// A cell has crossed this link.
    Crossed(u16),
    /// A processor is done with what it did.
    Done(u16),
    /// All pass the barrier.
    Barrier,
    /// A node's exchange wanted to be asked now.
    Wake(u16),
}

/// A small message.
#[derive(Clone, Copy, Debug)]
enum Word {
    /// Of an exchange, by its place among those that follow one another.
    Signal(u32, Signal),
    Tree(TreeSignal),
    /// A piece has been taken, all of it.
    Taken(u32),
}

/// What a unit carries.
#[derive(Clone, Copy, Debug)]
enum Load {
    Small(Word),
    Data { transfer: u32, bytes: u32 },
}

/// A unit under way.
#[derive(Clone, Copy, Debug)]
struct Unit {
    from: u32,
    to: u32,
    load: Load,
}

/// A piece under way.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    from: u32,
    exchange: u32,
    piece: Piece,
    /// Bytes in the interface or beyond it.
    sent: u64,
    /// Bytes that have left the node.
    left: u64,
    /// Bytes that the receiver has.
    taken: u64,
    /// What a unit of it takes its sender beyond the usual.
    jitter: Time,
    is_over_for_sender: bool,
}

/// A run. See the module.
#[derive(Debug)]
struct Machine {
    parameters: BulkParameters,
    completion: Completion,
    network: Network,
    queue: EventQueue<Happening>,
    units: Slots<Unit>,
    transfers: Slots<Transfer>,
    processors: Vec<Processor>,
    programs: Vec<Program>,
    /// Nodes in the hardware barrier, and whether any of them has work left.
    entered: u32,
    work_left: bool,
    /// For ways.
    random: Random,
    seed: u64,
    watch: Watch,
    now: Time,
}

/// Runs a job on a machine.
///
/// # Errors
/// If nothing can move any more before all is delivered, or the machine makes no sense.
pub fn run(parameters: &BulkParameters, job: &BulkJob, seed: u64) -> Result<BulkOutcome, SimulationError> {
    let nodes = parameters.shape.nodes();
    job.settings.check().map_err(|error| SimulationError::Setup(error.to_string()))?;
    let exchanges = job.exchanges(nodes, seed);
    let all = exchanges.iter().flatten().flatten().map(|block| block.bytes).sum();
    let mut machine = Machine {
        parameters: *parameters,
        completion: job.technique.completion(),
        network: Network::new(parameters),
        queue: EventQueue::new(),
        units: Slots::new(),
        transfers: Slots::new(),
        processors: (0..nodes).map(|_| Processor::default()).collect(),
        programs: (0..nodes).map(|me| Program::new(Node(me), job, &exchanges, parameters)).collect(),
        entered: 0,
        work_left: false,
        random: Random::stream(seed, u64::MAX),
        seed,
        watch: Watch::new(nodes, job.watch),
        now: Time::ZERO,
    };
    for node in 0..nodes {
        machine.ask(node);
        machine.look(node);
    }
    machine.heed();
    while let Some((now, happening)) = machine.queue.pop() {
        machine.now = now;
        machine.happen(happening);
        machine.heed();
    }
    let unfinished = machine.programs.iter().filter(|program| !program.is_over()).count();
    if unfinished > 0 || machine.watch.delivered != all {
        let what = format!("nothing moves, and {unfinished} of {nodes} nodes have not finished: {job:?}");
        return Err(SimulationError::Process(what));
    }
    Ok(machine.watch.outcome(nodes))
}

impl Machine {
    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Crossed(link) => self.network.crossed(link, self.now, &mut self.queue),
            Happening::Done(node) => self.done(node.into()),
            Happening::Barrier => {
                let work_left = std::mem::take(&mut self.work_left);
                for node in 0..self.programs.len() as u32 {
                    self.passed(node, work_left);
                    self.look(node);
                }
            }
            Happening::Wake(node) => {
                self.ask(node.into());
                self.look(node.into());
            }
        }
    }

    /// What the network has told meanwhile.
    fn heed(&mut self) {
        while let Some(notice) = self.network.notices.pop() {
            match notice {
                Notice::Arrived(node) => self.arrived(node),
                Notice::Left(node, unit) => self.left(node, unit),
            }
        }
    }

    /// An exchange of a node hears something, now or when the node is so far.
    fn tell(&mut self, node: u32, exchange: u32, event: Event) {
        self.programs[node as usize].hear(exchange, event);
        self.ask(node);
    }

    /// The sender of a piece may go on.
    fn sent(&mut self, transfer: u32) {
        let of = self.transfers.of(transfer);
        of.is_over_for_sender = true;
        let Transfer { from, exchange, piece, taken, .. } = *of;
        if taken == piece.bytes {
            self.transfers.take(transfer);
        }
        self.watch.end_sending(from, piece.to.0, self.now);
        self.tell(from, exchange, Event::Sent(piece));
    }

    /// A node has taken a unit.
    fn taken(&mut self, number: u32) {
        let Unit { from, to, load } = self.units.take(number);
        match load {
            Load::Small(Word::Signal(exchange, signal)) => {
                self.tell(to, exchange, Event::Signalled { from: Node(from), signal });
            }
            Load::Small(Word::Tree(signal)) => {
                self.programs[to as usize].tree.handle(Node(from), signal);
                self.climb(to);
            }
            Load::Small(Word::Taken(transfer)) => self.sent(transfer),
            Load::Data { transfer, bytes } => self.taken_data(transfer, to, bytes),
        }
    }

    fn taken_data(&mut self, transfer: u32, to: u32, bytes: u32) {
        self.watch.deliver(bytes, self.now);
        let of = self.transfers.of(transfer);
        of.taken += u64::from(bytes);
        let Transfer { from, exchange, piece, taken, is_over_for_sender, .. } = *of;
        if taken < piece.bytes {
            return;
        }
        if is_over_for_sender {
            self.transfers.take(transfer);
        } else if self.waits_for_proof() {
            self.processors[to as usize].small.push_back((from, Word::Taken(transfer)));
        }
        self.tell(to, exchange, Event::Arrived { from: Node(from) });
    }

    fn waits_for_proof(&self) -> bool {
        self.completion == Completion::Delivered && self.parameters.proof == Proof::Acknowledged
    }
}
