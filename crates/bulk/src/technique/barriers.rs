//! [`Barriers`]: a cyclic shift with a barrier behind each round (B §2: "CSHIFT + Barriers").
//!
//! In round `a` node `i` sends all it has for node `(i + a) mod N`. So each round is a permutation, and each receiver
//! hears one sender; the barrier keeps a fast node from meeting the next receiver while a slow one still sends to it.
//! Round 0 is the node's copy to itself, and nobody waits behind the last.

use crate::Node;
use crate::technique::interface::{Action, Event, Part, Step, Technique};
use crate::work::Work;
use tidegate_flow::Instant;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Barriers {
    me: Node,
    nodes: u32,
    /// `a`, from 1.
    round: u32,
    work: Work,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    /// Blocks of the round are left, or the round is over.
    Sending,
    /// A block is under way to this node.
    UnderWay(Node),
    /// In the barrier.
    Inside,
}

impl Barriers {
    pub(crate) fn new(part: Part) -> Self {
        Barriers { me: part.me, nodes: part.nodes, round: 1, work: part.work, state: State::Sending }
    }
}

impl Technique for Barriers {
    fn step(&mut self, _now: Instant) -> Step {
        if self.state != State::Sending {
            return Step::Wait;
        }
        if self.round >= self.nodes {
            return Step::Finished;
        }
        let to = self.me.after(self.round, self.nodes);
        if let Some(piece) = self.work.take(to, u64::MAX) {
            self.state = State::UnderWay(to);
            return Step::Do(Action::Send(piece));
        }
        if self.round == self.nodes - 1 {
            self.round += 1;
            return Step::Finished;
        }
        self.state = State::Inside;
        Step::Do(Action::Enter { work_left: true })
    }

    fn handle(&mut self, event: Event) {
        match (event, self.state) {
            (Event::Sent(_), State::UnderWay(_)) => self.state = State::Sending,
            (Event::Passed { .. }, State::Inside) => {
                self.round += 1;
                self.state = State::Sending;
            }
            (Event::Lost(node), state) => {
                self.work.forget(node);
                if state == State::UnderWay(node) {
                    self.state = State::Sending;
                }
            }
            _ => {}
        }
    }
}
