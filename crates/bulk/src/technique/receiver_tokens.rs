//! [`ReceiverTokens`]: each receiver keeps its token itself, and a queue of requests for it (B §3.2). One sender at a
//! time, but nodes drift apart: a sender that waits in one receiver's queue has data for another that is idle, and
//! sends none (head-of-line blocking). B discarded it; it is kept to show that.
//!
//! Ours: a sender asks for its next block when the last one is through, and the receiver grants the token to the next
//! when the piece has come.

use crate::technique::interface::{Action, Event, Part, Step, Technique};
use crate::technique::sending::{After, Sending};
use crate::{Node, Piece, Signal};
use std::collections::VecDeque;
use tidegate_flow::Instant;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReceiverTokens {
    blocks: Sending,
    /// What is asked for, or under way.
    block: Option<(Piece, State)>,
    /// Who sends to this node now.
    holder: Option<Node>,
    /// Who would like to.
    requests: VecDeque<Node>,
    signals: VecDeque<(Node, Signal)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Asked,
    Granted,
    UnderWay,
}

impl ReceiverTokens {
    pub(crate) fn new(part: Part) -> Self {
        let blocks = Sending::new(part, After::Block, u64::MAX, 1);
        let (holder, requests, signals) = (None, VecDeque::new(), VecDeque::new());
        ReceiverTokens { blocks, block: None, holder, requests, signals }
    }

    /// Lets in the next, if nobody is.
    fn grant(&mut self) {
        if self.holder.is_none()
            && let Some(next) = self.requests.pop_front()
        {
            self.holder = Some(next);
            self.signals.push_back((next, Signal::Grant));
        }
    }
}

impl Technique for ReceiverTokens {
    fn step(&mut self, _now: Instant) -> Step {
        if let Some((to, signal)) = self.signals.pop_front() {
            return Step::Do(Action::Signal { to, signal });
        }
        match self.block {
            Some((piece, State::Granted)) => {
                self.block = Some((piece, State::UnderWay));
                Step::Do(Action::Send(piece))
            }
            Some(_) => Step::Wait,
            None => match self.blocks.step() {
                Step::Do(Action::Send(piece)) => {
                    self.block = Some((piece, State::Asked));
                    Step::Do(Action::Signal { to: piece.to, signal: Signal::Request })
                }
                other => other,
            },
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Sent(sent) => {
                if self.block == Some((sent, State::UnderWay)) {
                    self.block = None;
                }
                self.blocks.handle(event);
            }
            Event::Arrived { from } if self.holder == Some(from) => {
                self.holder = None;
                self.grant();
            }
            Event::Signalled { from, signal: Signal::Request } => {
                if !self.requests.contains(&from) {
                    self.requests.push_back(from);
                }
                self.grant();
            }
            Event::Signalled { from, signal: Signal::Grant } => {
                if let Some((piece, state @ State::Asked)) = &mut self.block
                    && piece.to == from
                {
                    *state = State::Granted;
                }
            }
            Event::Lost(node) => {
                self.blocks.handle(event);
                if self.block.is_some_and(|(piece, _)| piece.to == node) {
                    self.block = None;
                }
                self.requests.retain(|waiting| *waiting != node);
                if self.holder == Some(node) {
                    self.holder = None;
                    self.grant();
                }
            }
            _ => {}
        }
    }
}
