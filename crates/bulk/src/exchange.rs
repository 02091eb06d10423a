//! [`Exchange`]: one node's part of one exchange, whatever the technique.

use crate::table::Chosen;
use crate::work::Work;
use crate::{Block, Node, Piece, Settings, Signal, TechniqueName};
use std::collections::VecDeque;
use tidegate_flow::Instant;

/// Something to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Copy a piece that this node sends to itself. It has happened when `step` is called again.
    Copy(Piece),
    /// Start sending a piece; [`Event::Sent`] says when it is through.
    Send(Piece),
    /// Send a small message. Those of a pair arrive in their order.
    Signal {
        /// To whom.
        to: Node,
        /// What.
        signal: Signal,
    },
    /// Enter a barrier of all nodes that live; [`Event::Passed`] says when all have. Signals go on to be handled
    /// meanwhile, and what `step` says is done.
    Enter {
        /// Whether this node has work left. The barrier tells all whether anybody has.
        work_left: bool,
    },
}

/// Something that has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A piece of this node is through: see [`Exchange::completion`].
    Sent(Piece),
    /// A piece of another node is here, all of it.
    Arrived {
        /// Who sent it.
        from: Node,
    },
    /// A small message is here.
    Signalled {
        /// Who sent it.
        from: Node,
        /// What.
        signal: Signal,
    },
    /// All have entered the barrier.
    Passed {
        /// Whether anybody has work left.
        work_left: bool,
    },
    /// A node is gone for good, and nothing that it has sent will arrive any more. Pieces on their way to it are not
    /// reported as sent.
    Lost(Node),
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// This, and then ask again.
    Do(Action),
    /// Nothing until an event.
    Wait,
    /// Nothing until then, or an event.
    WaitUntil(Instant),
    /// Nothing any more: this node has sent all that it had to and nobody needs it. (After the loss of a node somebody
    /// may: events are still to be handled, as long as others are not finished.) It says nothing of what others send
    /// to this node.
    Finished,
}

/// When a piece counts as sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Completion {
    /// When its memory may be used again.
    Local,
    /// When the receiver has all of it. Techniques with one sender per receiver need this: the next sender would
    /// meet the rest of the piece.
    Delivered,
}

/// What a technique answers; the same for all.
pub(crate) trait Technique {
    fn step(&mut self, now: Instant) -> Step;
    fn handle(&mut self, event: Event);
}

/// What a technique is made from.
pub(crate) struct Part<'a> {
    pub(crate) me: Node,
    pub(crate) nodes: u32,
    /// All blocks, those to this node left out of `work`.
    pub(crate) blocks: &'a [Block],
    pub(crate) work: Work,
    pub(crate) settings: Settings,
}

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
    pub fn bookings(&self) -> Vec<crate::Booked> {
        self.technique.bookings()
    }
}
