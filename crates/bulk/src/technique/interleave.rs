//! [`Interleave`]: pieces of one unit for different receivers in turn, not one long block after the other (B §2). So
//! that a receiver hears many senders a little, none for long. A block of one unit cannot be interleaved.

use crate::exchange::{Action, Event, Part, Step, Technique};
use crate::work::Work;
use crate::{Node, Piece};
use std::collections::VecDeque;
use tidegate_flow::Instant;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Interleave {
    /// Whose turn it is: those with something left, in the order of their first blocks.
    turns: VecDeque<Node>,
    work: Work,
    under_way: Vec<Piece>,
    most: u32,
    unit: u64,
}

impl Interleave {
    pub(crate) fn new(part: Part) -> Self {
        let mut seen = crate::node_set::NodeSet::default();
        let receivers = part.blocks.iter().filter(|block| block.to != part.me && block.bytes > 0);
        let turns = receivers.map(|block| block.to).filter(|to| seen.insert(*to)).collect();
        let (most, unit) = (part.settings.outstanding, part.settings.unit);
        Interleave { turns, work: part.work, under_way: Vec::new(), most, unit }
    }
}

impl Technique for Interleave {
    fn step(&mut self, _now: Instant) -> Step {
        if self.under_way.len() < self.most as usize
            && let Some(to) = self.turns.pop_front()
            && let Some(piece) = self.work.take(to, self.unit)
        {
            if self.work.has(to) {
                self.turns.push_back(to);
            }
            self.under_way.push(piece);
            return Step::Do(Action::Send(piece));
        }
        if self.under_way.is_empty() && self.turns.is_empty() { Step::Finished } else { Step::Wait }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Sent(piece) => self.under_way.retain(|sent| *sent != piece),
            Event::Lost(node) => {
                self.turns.retain(|to| *to != node);
                self.work.forget(node);
                self.under_way.retain(|piece| piece.to != node);
            }
            Event::Arrived { .. } | Event::Signalled { .. } | Event::Passed { .. } => {}
        }
    }
}
