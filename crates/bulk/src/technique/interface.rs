//! What a technique is asked ([`Step`]) and told ([`Event`]); [`Technique`] is what each answers.

use crate::work::Work;
use crate::{Block, Node, Piece, Settings, Signal};
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
    /// A piece of this node is through: see [`Completion`].
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
