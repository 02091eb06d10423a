//! What follows when windows change: room and queries for senders.

use super::Inbound;
use crate::link::Link;
use crate::malformed::Handled;
use crate::matching::RemoteSend;
use crate::operation::{Source, Target};
use crate::port::Port;
use tidegate_flow::PeerId;

impl<L: Link> Inbound<L> {
    /// Whether a message that has come from `from` and costs so much is within its window.
    #[inline]
    pub(crate) fn check_window(&mut self, port: &Port<L>, from: PeerId, cost: u32) -> Handled {
        self.windows.check(from, cost, port.egress.returning(from))
    }

    /// A message of `from` found its receive waiting.
    #[inline]
    pub(crate) fn pass_window(&mut self, port: &mut Port<L>, from: PeerId, cost: u32) {
        if self.windows.pass(from, cost) {
            self.update_window(port, from);
        }
    }

    /// A message of `from` has to be stored.
    pub(crate) fn enter_window(&mut self, port: &mut Port<L>, from: PeerId, cost: u32) {
        let is_to_update = self.windows.enter(port.link.counters(), from, cost);
        self.tell_link(port, from);
        if is_to_update {
            self.update_window(port, from);
        }
    }

    /// Lets the link know what a sender may have under way.
    pub(super) fn tell_link(&mut self, port: &mut Port<L>, from: PeerId) {
        port.link.set_window_left(from, self.windows.left(from));
    }

    /// A stored message is stored no longer.
    pub(super) fn leave_window(&mut self, port: &mut Port<L>, source: Target, cost: u32) {
        match source {
            Target::Myself => self.windows.leave_own(cost),
            Target::Peer(from) if port.presence.is_record(from) => self.leave_record(port, from, cost),
            Target::Peer(from) => {
                self.windows.leave(port.link.counters(), from, cost);
                self.tell_link(port, from);
                self.update_window(port, from);
            }
        }
    }

    /// A sender has announced a message of `length` bytes. If the link could have carried it, there may have been too
    /// little room, and the sender gets more.
    pub(crate) fn widen(&mut self, port: &mut Port<L>, from: PeerId, length: usize) {
        if length <= port.link.carries_most(from) && self.windows.grow(from) {
            self.tell_link(port, from);
            self.update_window(port, from);
        }
    }

    /// Says to a sender what is to be said now: room is given back, a query made.
    pub(crate) fn update_window(&mut self, port: &mut Port<L>, from: PeerId) {
        port.egress.attention.raise();
        // What it is told now would be of a session that it does not have any more.
        if self.windows.sessions().is_some_and(|sessions| sessions.is_leaving(from)) {
            return;
        }
        // Notes that wait for the peer are paid for by what its window has freed: once they have left, it shrinks.
        let has_notes = port.egress.backlog(from).is_some_and(|backlog| backlog.notes() > 0);
        if !has_notes && self.windows.shrink(from) {
            self.tell_link(port, from);
        }
        let has_shown = self.windows.sessions().is_some_and(|sessions| sessions.has_shown(from));
        let is_returning = port.egress.returning(from) > 0 || has_shown;
        let (windows, matching) = (&mut self.windows, &mut self.matching);
        let first_from = |queue, source, after| matching.of(queue).first_from(source, after);
        let update = windows.update(port.link.counters(), from, is_returning, first_from);
        if let Some(room) = update.room {
            port.tell(from, room);
        }
        if let Some(query) = update.query {
            port.tell(from, query);
        }
    }

    /// A receive or peek was posted that nothing stored satisfies.
    #[inline]
    pub(super) fn seek(&mut self, port: &mut Port<L>, from: Source) {
        if self.windows.has_dropped() {
            self.seek_dropped(port, from);
        }
    }

    #[cold]
    fn seek_dropped(&mut self, port: &mut Port<L>, from: Source) {
        port.egress.attention.raise();
        match from {
            Source::From(Target::Myself) => {}
            Source::From(Target::Peer(peer)) => self.update_window(port, peer),
            Source::Any => {
                for place in (0..self.windows.peers_with_dropped()).rev() {
                    if let Some(peer) = self.windows.nth_with_dropped(place) {
                        self.update_window(port, peer);
                    }
                }
            }
        }
    }

    /// A pull is over: the part of its sender's window that it kept is free.
    pub(crate) fn release_kept(&mut self, port: &mut Port<L>, remote: &RemoteSend) {
        if remote.kept() > 0 {
            self.leave_window(port, Target::Peer(remote.peer), remote.kept());
        }
    }
}
