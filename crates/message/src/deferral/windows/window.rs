//! The window of one sender, as its receiver keeps it.

use crate::envelope::Number;
use crate::operation::Queue;
use tidegate_flow::{Initial, PeerId};

/// The sends of one peer whose envelopes the receiver has dropped.
#[derive(Debug)]
pub(super) struct Dropped {
    pub(super) count: u32,
    /// The queue of the last query.
    pub(super) last: Queue,
    /// Of each queue the latest receive that was compared with all of them.
    pub(super) asked: [Number; 2],
    /// The receive whose query is open, and its queue.
    pub(super) open: Option<(Number, Queue)>,
}

/// The window of one sender.
#[derive(Debug)]
pub(super) struct Window {
    /// Bytes of it.
    pub(super) bytes: u32,
    /// Of these, what it has at least: a base window, or nothing, of a sender that has no session.
    pub(super) base: u32,
    /// Of these, bytes that its unmatched messages take.
    pub(super) stored: u32,
    /// Bytes that are free again, which the sender has not been told.
    pub(super) freed: u32,
    /// Its sends for which there was no room.
    pub(super) dropped: Option<Box<Dropped>>,
}

impl Window {
    /// Room goes back to the sender by so much at a time, in bytes.
    #[inline(always)]
    pub(super) fn quarter(&self) -> u32 {
        self.base / 4
    }

    /// The account of dropped envelopes, and whether it begins now.
    pub(super) fn begin_dropping(&mut self) -> (&mut Dropped, bool) {
        let begins = self.dropped.is_none();
        let none = || Box::new(Dropped { count: 0, last: Queue::Untagged, asked: [Number::default(); 2], open: None });
        (self.dropped.get_or_insert_with(none), begins)
    }
}

/// The windows that peers have from the start, in bytes: which of two, says the number of the peer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bases {
    /// So many peers, the first, were planned for.
    pub(super) planned: u32,
    pub(super) of_planned: u32,
    pub(super) of_newcomers: u32,
}

impl Bases {
    pub(super) fn of(&self, peer: PeerId) -> u32 {
        if peer.0 < self.planned { self.of_planned } else { self.of_newcomers }
    }
}

impl Initial for Window {
    type Config = Bases;

    fn initial(bases: &Bases, peer: PeerId) -> Self {
        let bytes = bases.of(peer);
        Window { bytes, base: bytes, stored: 0, freed: 0, dropped: None }
    }
}
