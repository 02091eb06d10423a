//! [`Program`]: a node's exchanges, one after the other; and what becomes of what they say.

use tidegate_bulk::{Action, Block, Event, Exchange, Node, Piece, Settings, Signal, Step, TechniqueName, TreeBarrier};

use super::job::BulkJob;
use super::parameters::{BarrierKind, BulkParameters};
use super::{Happening, Machine, Transfer, Word};
use crate::{Random, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InExchange,
    /// In the program's own barrier, between two exchanges of a technique that has none at its end.
    Between,
    Over,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Program {
    me: Node,
    nodes: u32,
    technique: TechniqueName,
    settings: Settings,
    /// The blocks of each exchange.
    blocks: Vec<Vec<Block>>,
    /// Which of them it is in.
    at: u32,
    exchange: Exchange,
    state: State,
    /// What exchanges that come have heard already.
    early: Vec<(u32, Event)>,
    /// Its part of the tree of barriers.
    pub tree: TreeBarrier,
}

impl Program {
    pub fn new(me: Node, job: &BulkJob, exchanges: &[Vec<Vec<Block>>], parameters: &BulkParameters) -> Self {
        let nodes = parameters.shape.nodes();
        let blocks: Vec<Vec<Block>> = exchanges.iter().map(|of| of[me.0 as usize].clone()).collect();
        let first = blocks.first().map_or(&[][..], |blocks| blocks);
        let arity = match parameters.barrier {
            BarrierKind::Tree { arity } => arity,
            BarrierKind::Hardware(_) => 1,
        };
        Program {
            me,
            nodes,
            technique: job.technique,
            settings: job.settings,
            at: 0,
            exchange: Exchange::new(job.technique, me, nodes, first, &job.settings),
            state: State::InExchange,
            early: Vec::new(),
            tree: TreeBarrier::new(me, nodes, arity),
            blocks,
        }
    }

    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// An exchange hears something. One that is over needs nothing.
    pub fn hear(&mut self, exchange: u32, event: Event) {
        match exchange.cmp(&self.at) {
            std::cmp::Ordering::Equal => self.exchange.handle(event),
            std::cmp::Ordering::Greater => self.early.push((exchange, event)),
            std::cmp::Ordering::Less => {}
        }
    }

    /// The next exchange begins.
    fn begin_next(&mut self) {
        self.at += 1;
        let blocks = &self.blocks[self.at as usize];
        self.exchange = Exchange::new(self.technique, self.me, self.nodes, blocks, &self.settings);
        self.state = State::InExchange;
        let at = self.at;
        let exchange = &mut self.exchange;
        self.early.retain(|&(of, event)| {
            if of == at {
                exchange.handle(event);
            }
            of != at
        });
    }

    fn has_next(&self) -> bool {
        (self.at as usize) + 1 < self.blocks.len()
    }
}

impl Machine {
    /// Asks a node's exchange what to do, until it has to wait.
    pub(super) fn ask(&mut self, node: u32) {
        loop {
            let program = &mut self.programs[node as usize];
            if program.state == State::Between {
                return;
            }
            match program.exchange.step(self.now.instant()) {
                Step::Do(action) => self.act(node, action),
                Step::Wait => return,
                Step::WaitUntil(time) => {
                    self.queue.schedule(Time::of_instant(time).max(self.now), Happening::Wake(node as u16));
                    return;
                }
                Step::Finished if !program.has_next() => {
                    program.state = State::Over;
                    self.watch.finish(self.now);
                    return;
                }
                // The last round of a cyclic shift has no barrier behind it, but another shift follows.
                Step::Finished if program.technique == TechniqueName::Barriers => {
                    program.state = State::Between;
                    self.enter(node, true);
                }
                Step::Finished => program.begin_next(),
            }
        }
    }

    fn act(&mut self, node: u32, action: Action) {
        match action {
            // No time is counted for it: no program here sends to itself.
            Action::Copy(_) => {}
            Action::Send(piece) => self.begin(node, piece),
            Action::Signal { to, signal } => {
                match signal {
                    Signal::Book { .. } => self.watch.requests += 1,
                    Signal::Denied => self.watch.denials += 1,
                    _ => {}
                }
                let word = Word::Signal(self.programs[node as usize].at, signal);
                self.processors[node as usize].small.push_back((to.0, word));
            }
            Action::Enter { work_left } => self.enter(node, work_left),
        }
    }

    /// A piece goes out, behind those that have begun.
    fn begin(&mut self, node: u32, piece: Piece) {
        let exchange = self.programs[node as usize].at;
        let usual = self.parameters.sending(self.parameters.unit_bytes);
        // Drawn for each block, the same whatever the technique.
        let block = u64::from(exchange) << 32 | u64::from(piece.block);
        let mut random = Random::stream(self.seed ^ block.wrapping_mul(0x9e37_79b9_7f4a_7c15), node.into());
        let jitter = Time(random.below(1 + usual.0 * u64::from(self.parameters.jitter_per_mille) / 500));
        let (sent, left, taken, is_over_for_sender) = (0, 0, 0, false);
        let transfer = Transfer { from: node, exchange, piece, sent, left, taken, jitter, is_over_for_sender };
        let number = self.transfers.put(transfer);
        self.processors[node as usize].transfers.push_back(number);
        self.watch.begin_sending(node, piece.to.0, self.now);
    }

    fn enter(&mut self, node: u32, work_left: bool) {
        match self.parameters.barrier {
            BarrierKind::Hardware(span) => {
                self.entered += 1;
                self.work_left |= work_left;
                if self.entered == self.programs.len() as u32 {
                    self.entered = 0;
                    self.queue.schedule(self.now + span, Happening::Barrier);
                }
            }
            BarrierKind::Tree { .. } => {
                self.programs[node as usize].tree.enter(work_left);
                self.climb(node);
            }
        }
    }

    /// What a node's part of the tree says.
    pub(super) fn climb(&mut self, node: u32) {
        let tree = &mut self.programs[node as usize].tree;
        while let Some((to, signal)) = tree.poll() {
            self.processors[node as usize].small.push_back((to.0, Word::Tree(signal)));
        }
        if let Some(work_left) = tree.passed() {
            self.passed(node, work_left);
        }
    }

    /// A node hears that all have entered the barrier.
    pub(super) fn passed(&mut self, node: u32, work_left: bool) {
        let program = &mut self.programs[node as usize];
        match program.state {
            State::Between => program.begin_next(),
            State::InExchange | State::Over => program.exchange.handle(Event::Passed { work_left }),
        }
        self.ask(node);
    }
}
