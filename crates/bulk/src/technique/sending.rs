//! [`Sending`]: pieces that leave whenever there is room for another one, without asking anybody: what the techniques
//! without coordination have in common. They differ in how long a piece is, and in whose turn it is after it.

use crate::node_set::NodeSet;
use crate::technique::interface::{Action, Event, Part, Step};
use crate::work::Work;
use crate::{Node, Piece};
use std::collections::VecDeque;

/// Whose turn it is after a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum After {
    /// The same receiver's, until the block has gone.
    Block,
    /// The next receiver's; this one's again behind all others.
    Piece,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sending {
    /// Whose turn it is. With [`After::Block`] a receiver is here once for each of its blocks, in the order in which
    /// the program gave them; with [`After::Piece`] once.
    turns: VecDeque<Node>,
    after: After,
    unit: u64,
    most: u32,
    work: Work,
    under_way: Vec<Piece>,
}

impl Sending {
    /// Pieces of `unit` bytes, `most` of them under way.
    pub(crate) fn new(part: Part, after: After, unit: u64, most: u32) -> Self {
        let mut seen = NodeSet::default();
        let receivers = part.blocks.iter().filter(|block| block.to != part.me && block.bytes > 0);
        let turns = receivers.map(|block| block.to).filter(|to| seen.insert(*to) || after == After::Block).collect();
        Sending { turns, after, unit, most, work: part.work, under_way: Vec::new() }
    }

    /// Whether [`step`](Self::step) would send a piece.
    pub(crate) fn can_send(&self) -> bool {
        self.under_way.len() < self.most as usize && !self.turns.is_empty()
    }

    pub(crate) fn step(&mut self) -> Step {
        if self.can_send()
            && let Some(to) = self.turns.pop_front()
            && let Some(piece) = self.work.take(to, self.unit)
        {
            match self.after {
                After::Block if self.work.is_amid_block(to) => self.turns.push_front(to),
                After::Piece if self.work.has(to) => self.turns.push_back(to),
                After::Block | After::Piece => {}
            }
            self.under_way.push(piece);
            return Step::Do(Action::Send(piece));
        }
        if self.under_way.is_empty() && self.turns.is_empty() { Step::Finished } else { Step::Wait }
    }

    pub(crate) fn handle(&mut self, event: Event) {
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
