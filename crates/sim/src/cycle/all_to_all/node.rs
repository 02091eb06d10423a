//! [`Node`]: what a node runs, its processor and its link.

use super::baseline::Rounds;
use super::{Barrier, Plan};
use std::collections::VecDeque;
use tidegate_bulk::{Action, Completion, Event, Exchange, Step, TreeBarrier, TreeSignal};
use tidegate_flow::Instant;

/// What decides.
#[derive(Debug)]
pub(super) enum Program {
    Technique(Box<Exchange>),
    Rounds(Rounds),
}

impl Program {
    pub(super) fn completion(&self) -> Completion {
        match self {
            Program::Technique(exchange) => exchange.completion(),
            Program::Rounds(_) => Completion::Local,
        }
    }

    fn step(&mut self, now: u64) -> Step {
        match self {
            // A cycle counts as a nanosecond.
            Program::Technique(exchange) => exchange.step(Instant::from_nanos(now)),
            Program::Rounds(rounds) => rounds.step(),
        }
    }

    fn handle(&mut self, event: Event) {
        match self {
            Program::Technique(exchange) => exchange.handle(event),
            Program::Rounds(rounds) => rounds.handle(event),
        }
    }
}

/// Something that the processor has to hear of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Heard {
    Event(Event),
    Tree { from: tidegate_bulk::Node, signal: TreeSignal },
}

/// See the module.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) program: Program,
    pub(super) tree: TreeBarrier,
    pub(super) heard: VecDeque<Heard>,
    /// Small messages that are to be sent: receivers and labels.
    pub(super) small: VecDeque<(u32, u32)>,
    /// Pieces that are being sent, whose turn it is first.
    pub(super) pieces: VecDeque<u32>,
    pub(super) link_free: u64,
    pub(super) turn: u8,
    /// When it has taken all that has come.
    pub(super) sunk_at: u64,
    pub(super) is_finished: bool,
    processor_free: u64,
    /// The program may have something to do, now or then.
    asks_at: Option<u64>,
}

impl Node {
    pub(super) fn new(program: Program, me: u32, plan: &Plan) -> Self {
        let arity = if let Barrier::Tree { arity } = plan.barrier { arity } else { 2 };
        Node {
            program,
            tree: TreeBarrier::new(tidegate_bulk::Node(me), plan.layout.nodes(), arity),
            heard: VecDeque::new(),
            small: VecDeque::new(),
            pieces: VecDeque::new(),
            link_free: 0,
            turn: (me % u32::from(plan.parameters.channels)) as u8,
            sunk_at: 0,
            is_finished: false,
            processor_free: 0,
            asks_at: Some(0),
        }
    }

    /// Whether the processor has something to do.
    pub(super) fn has_to_do(&self, now: u64) -> bool {
        self.processor_free <= now && (!self.heard.is_empty() || self.asks_at.is_some_and(|at| at <= now))
    }

    /// Whether the link has.
    pub(super) fn has_to_send(&self, now: u64) -> bool {
        self.link_free <= now && (!self.small.is_empty() || !self.pieces.is_empty())
    }

    /// When it has something to do next, as far as it knows.
    pub(super) fn ready_at(&self) -> u64 {
        let wants = if self.heard.is_empty() { self.asks_at } else { Some(0) };
        let processor = wants.map_or(u64::MAX, |at| at.max(self.processor_free));
        let sends = !self.small.is_empty() || !self.pieces.is_empty();
        processor.min(if sends { self.link_free } else { u64::MAX })
    }

    /// The processor has one thing more to do.
    pub(super) fn charge(&mut self, now: u64, overhead: u32) {
        self.processor_free = self.processor_free.max(now) + u64::from(overhead);
    }

    /// The processor does one thing: it hears of something, or asks its program what to do.
    pub(super) fn next_action(&mut self, now: u64, overhead: u32) -> Option<Action> {
        if let Some(heard) = self.heard.pop_front() {
            self.processor_free = now + u64::from(overhead);
            self.asks_at = Some(now);
            match heard {
                Heard::Event(event) => self.program.handle(event),
                Heard::Tree { from, signal } => self.tree.handle(from, signal),
            }
            return None;
        }
        self.asks_at = None;
        match self.program.step(now) {
            Step::Do(action) => {
                self.asks_at = Some(now);
                self.processor_free = now + u64::from(overhead);
                Some(action)
            }
            Step::WaitUntil(then) => {
                self.asks_at = Some(then.as_nanos());
                None
            }
            Step::Finished => {
                self.is_finished = true;
                None
            }
            Step::Wait => None,
        }
    }
}
