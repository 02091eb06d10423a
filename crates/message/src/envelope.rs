//! What a message is called, what a receive accepts, and when it was posted.

use crate::operation::{Queue, Receive, Source, Space, Target};

/// What identifies a message to the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Envelope {
    pub(crate) source: Target,
    pub(crate) tag: u64,
    pub(crate) data: Option<u64>,
    /// Bytes of payload.
    pub(crate) length: usize,
}

/// What a receive accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub(crate) from: Source,
    pub(crate) tag: u64,
    pub(crate) ignore: u64,
}

impl Pattern {
    /// What a receive accepts, and in which queue.
    #[inline(always)]
    pub(crate) fn of<B>(receive: &Receive<B>) -> (Queue, Pattern) {
        let from = receive.from;
        match receive.space {
            Space::Tagged { tag, ignore } => (Queue::Tagged, Pattern { from, tag, ignore }),
            Space::Untagged => (Queue::Untagged, Pattern { from, tag: 0, ignore: u64::MAX }),
        }
    }

    #[inline]
    pub(crate) fn accepts(&self, source: Target, tag: u64) -> bool {
        (self.tag ^ tag) & !self.ignore == 0
            && match self.from {
                Source::Any => true,
                Source::From(target) => target == source,
            }
    }

    /// Whether it accepts any messages of `source` at all.
    pub(crate) fn may_come_from(&self, source: Target) -> bool {
        self.from == Source::Any || self.from == Source::From(source)
    }
}

/// The number of a receive or peek in order of posting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Number(pub(crate) u64);

/// The number that stands for a source: 0 for this endpoint itself, then its peers.
#[inline]
pub(crate) fn number_of(source: Target) -> u64 {
    match source {
        Target::Myself => 0,
        Target::Peer(peer) => u64::from(peer.0) + 1,
    }
}
