//! [`Exchange`]: one node's part of one exchange, whatever the technique.

use crate::table::Chosen;
use crate::technique::interface::{Action, Completion, Event, Part, Step};
use crate::work::Work;
use crate::{Block, Booked, Node, Piece, Settings, TechniqueName};
use std::collections::VecDeque;
use tidegate_flow::Instant;

/// See the module. Call [`step`](Exchange::step) and do what it says until it says to wait; then call
/// [`handle`](Exchange::handle) with what has happened, and `step` again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Exchange {
    name: TechniqueName,
    own: VecDeque<Piece>,
    technique: Chosen,
}

impl Exchange {
    /// The part of `me` among `nodes`, which sends `blocks`. Cyclic techniques and bookings need all nodes to take
    /// part, also those that have nothing to send, with the same technique and settings.
    ///
    /// # Panics
    /// If `me` or a receiver is not below `nodes`, or the settings are unfit.
    #[must_use]
    pub fn new(name: TechniqueName, me: Node, nodes: u32, blocks: &[Block], settings: &Settings) -> Self {
        assert!(me.0 < nodes, "{me:?} of {nodes}");
        assert!(blocks.iter().all(|block| block.to.0 < nodes), "a block to a node that does not exist");
        if let Err(unfit) = settings.check() {
            panic!("{unfit}");
        }
        let (own, others): (Vec<_>, Vec<_>) = (0..).zip(blocks.iter().copied()).partition(|(_, block)| block.to == me);
        let own = own.into_iter().filter(|(_, block)| block.bytes > 0);
        let own = own.map(|(place, block)| Piece { block: place, to: me, offset: 0, bytes: block.bytes }).collect();
        let part = Part { me, nodes, blocks, work: Work::new(others), settings: *settings };
        Exchange { name, own, technique: Chosen::new(name, part) }
    }

    /// The technique.
    #[must_use]
    pub fn name(&self) -> TechniqueName {
        self.name
    }

    /// When pieces of this exchange count as sent.
    #[must_use]
    pub fn completion(&self) -> Completion {
        self.name.completion()
    }

    /// What to do now.
    pub fn step(&mut self, now: Instant) -> Step {
        match self.own.pop_front() {
            Some(piece) => Step::Do(Action::Copy(piece)),
            None => self.technique.step(now),
        }
    }

    /// Something has happened. What no correct peer sends is ignored.
    pub fn handle(&mut self, event: Event) {
        self.technique.handle(event);
    }

    /// `tokens`: whether this node has the token of `of` (its own, when that is home again), for checkers and displays.
    #[must_use]
    pub fn holds_token(&self, of: Node) -> bool {
        self.technique.holds_token(of)
    }

    /// `booking`: the rounds that this node has booked, and those that it has granted, for checkers and displays.
    #[must_use]
    pub fn bookings(&self) -> Vec<Booked> {
        self.technique.bookings()
    }
}
