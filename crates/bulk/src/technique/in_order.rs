//! [`InOrder`]: one block after the other, in the order in which the program gave them (B §2: "CSHIFT" where that is a
//! cyclic shift, "Random" where receivers are random). What the other techniques are measured against.

use crate::technique::interface::{Action, Event, Part, Step, Technique};
use crate::work::Work;
use crate::{Node, Piece};
use std::collections::VecDeque;
use tidegate_flow::Instant;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct InOrder {
    /// The receivers of the blocks that are left, in order.
    order: VecDeque<Node>,
    work: Work,
    under_way: Vec<Piece>,
    most: u32,
}

impl InOrder {
    pub(crate) fn new(part: Part) -> Self {
        let order = part.blocks.iter().filter(|block| block.to != part.me && block.bytes > 0);
        let order = order.map(|block| block.to).collect();
        InOrder { order, work: part.work, under_way: Vec::new(), most: part.settings.outstanding }
    }
}

impl Technique for InOrder {
    fn step(&mut self, _now: Instant) -> Step {
        if self.under_way.len() < self.most as usize
            && let Some(to) = self.order.pop_front()
            && let Some(piece) = self.work.take(to, u64::MAX)
        {
            self.under_way.push(piece);
            return Step::Do(Action::Send(piece));
        }
        if self.under_way.is_empty() && self.order.is_empty() { Step::Finished } else { Step::Wait }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Sent(piece) => self.under_way.retain(|sent| *sent != piece),
            Event::Lost(node) => {
                self.order.retain(|to| *to != node);
                self.work.forget(node);
                self.under_way.retain(|piece| piece.to != node);
            }
            Event::Arrived { .. } | Event::Signalled { .. } | Event::Passed { .. } => {}
        }
    }
}
