//! What follows when windows change: room and queries for senders, and what a peer's window is found to be.

use super::Endpoint;
use crate::link::Link;
use crate::malformed::Malformed;
use crate::operation::{Source, Target};
use tidegate_flow::PeerId;

impl<L: Link> Endpoint<L> {
    /// Whether a message that has come from `from` and costs so much is within its window.
    #[inline]
    pub(super) fn check_window(&mut self, from: PeerId, cost: u32) -> Result<(), Malformed> {
        self.windows.check(from, cost, self.port.egress.returning(from))
    }

    /// A message of `from` found its receive waiting.
    #[inline]
    pub(super) fn pass_window(&mut self, from: PeerId, cost: u32) {
        if self.windows.pass(from, cost) {
            self.review(from);
        }
    }

    /// A message of `from` has to be stored.
    pub(super) fn enter_window(&mut self, from: PeerId, cost: u32) {
        let is_to_review = self.windows.enter(self.port.link.counters(), from, cost);
        self.tell_link(from);
        if is_to_review {
            self.review(from);
        }
    }

    /// Lets the link know what a sender may have under way.
    pub(super) fn tell_link(&mut self, from: PeerId) {
        self.port.link.set_window_left(from, self.windows.left(from));
    }

    /// A stored message is stored no longer.
    pub(super) fn leave_window(&mut self, source: Target, cost: u32) {
        match source {
            Target::Myself => self.windows.leave_own(cost),
            Target::Peer(from) if self.port.presence.is_record(from) => self.leave_record(from, cost),
            Target::Peer(from) => {
                self.windows.leave(self.port.link.counters(), from, cost);
                self.tell_link(from);
                self.review(from);
            }
        }
    }

    /// Says to a sender what is to be said now: room is given back, a query made.
    pub(super) fn review(&mut self, from: PeerId) {
        self.port.egress.attention.raise();
        if self.windows.shrink(from) {
            self.tell_link(from);
        }
        let is_returning = self.port.egress.returning(from) > 0;
        let (windows, matching) = (&mut self.windows, &mut self.matching);
        let first_from = |source, after| matching.first_from(source, after);
        let review = windows.review(self.port.link.counters(), from, is_returning, first_from);
        if let Some(room) = review.room {
            self.port.tell(from, room);
        }
        if let Some(query) = review.query {
            self.port.tell(from, query);
        }
    }

    /// A receive or peek was posted that nothing stored satisfies.
    #[inline]
    pub(super) fn seek(&mut self, from: Source) {
        if self.windows.has_dropped() {
            self.seek_dropped(from);
        }
    }

    #[cold]
    fn seek_dropped(&mut self, from: Source) {
        self.port.egress.attention.raise();
        match from {
            Source::From(Target::Myself) => {}
            Source::From(Target::Peer(peer)) => self.review(peer),
            Source::Any => {
                for place in (0..self.windows.peers_with_dropped()).rev() {
                    if let Some(peer) = self.windows.nth_with_dropped(place) {
                        self.review(peer);
                    }
                }
            }
        }
    }
}
