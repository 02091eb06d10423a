//! [`Lane`]: what waits for one peer, sends and flow control's own packets; [`Delayed`]: for how many sends do.

use super::backlog::{Backlog, Number};
use super::inject_backoff::PeerBackoff;
use crate::collections::busy_peers::BusyPeers;
use crate::link::Buffer;
use crate::wait_cause::WaitCause;
use tidegate_flow::PeerId;

/// What waits for one peer. One for which nothing does has none.
#[derive(Debug)]
pub(super) struct Lane<B> {
    /// In order; the first may have left in part.
    pub(super) backlog: Backlog<B>,
    /// What for; then the peer counts in `Egress::delayed`.
    pub(super) waits_for: Option<WaitCause>,
    /// Whether the peer is in `Egress::full`.
    pub(super) is_full: bool,
    /// Whether injected messages are refused.
    pub(super) hold: PeerBackoff,
    /// How many of flow control's own packets wait for it.
    pub(super) owed: u32,
    /// While these are tried again: one of them has found no place.
    pub(super) is_stuck: bool,
}

/// The lanes of all peers for which something waits.
#[derive(Debug)]
pub(super) struct Lanes<B> {
    of_peers: BusyPeers<Lane<B>>,
    /// No message that has waited in a lane which has ended had a later number.
    number: Number,
}

impl<B: Buffer> Lanes<B> {
    /// Most heap bytes: when something waits for all `peers`.
    pub(super) const fn bytes_most(peers: u32) -> usize {
        BusyPeers::<Lane<B>>::bytes_most(peers) + peers as usize * BusyPeers::<Lane<B>>::BYTES_EACH
    }

    pub(super) fn new(peers: u32) -> Self {
        Lanes { of_peers: BusyPeers::new(peers), number: Number::default() }
    }

    /// How many peers there are.
    pub(super) fn peers(&self) -> u32 {
        self.of_peers.count()
    }

    #[inline]
    pub(super) fn get(&self, peer: PeerId) -> Option<&Lane<B>> {
        self.of_peers.get(peer)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, peer: PeerId) -> Option<&mut Lane<B>> {
        self.of_peers.get_mut(peer)
    }

    /// The lane of a peer, for something that is to wait. What waits already keeps its number, also while it is tried
    /// again and so is not in the backlog: looks know it by that.
    pub(super) fn of(&mut self, peer: PeerId) -> &mut Lane<B> {
        let lane = self.of_peers.of(peer);
        if lane.waits_for.is_none() {
            lane.backlog.number_from(self.number);
        }
        lane
    }

    /// The peers that have lanes, in order.
    pub(super) fn all(&self) -> impl Iterator<Item = PeerId> {
        self.of_peers.all().map(|(peer, _)| peer)
    }

    /// Something that waited for a peer does no longer.
    pub(super) fn end_if_idle(&mut self, peer: PeerId) {
        if let Some(lane) = self.of_peers.get(peer).filter(|lane| lane.is_idle()) {
            self.number = self.number.max(lane.backlog.number());
            self.of_peers.end(peer);
        }
    }

    /// Nothing waits for a peer that is gone. Returns whether it had a lane.
    pub(super) fn end(&mut self, peer: PeerId) -> bool {
        self.of_peers.end(peer)
    }
}

impl<B: Buffer> Lane<B> {
    /// Whether the lane says no more than a new one.
    pub(super) fn is_idle(&self) -> bool {
        let is_as_new = self.waits_for.is_none() && !self.is_full && self.hold == PeerBackoff::default();
        is_as_new && self.backlog.is_empty() && self.owed == 0
    }

    /// Whether anything goes on when credits come.
    pub(super) fn wants_credits(&self) -> bool {
        !self.backlog.is_empty() || self.hold != PeerBackoff::default()
    }
}

impl<B: Buffer> Default for Lane<B> {
    fn default() -> Self {
        let (backlog, hold) = (Backlog::new(), PeerBackoff::default());
        Lane { backlog, waits_for: None, is_full: false, hold, owed: 0, is_stuck: false }
    }
}

/// How many peers have sends waiting, and how many have had them since time was told last.
#[derive(Debug, Default)]
pub(super) struct Delayed {
    pub(super) peers: u32,
    /// How many there were when time was told last, and still are.
    pub(super) before: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_keeps_its_number_while_lanes_of_others_end() {
        let [stuck, other, later] = [0, 1, 2].map(PeerId);
        let mut lanes = Lanes::<crate::testing::Bytes>::new(3);
        // Its message is out of the backlog meanwhile, as it is tried again.
        lanes.of(stuck).waits_for = Some(WaitCause::Credits);
        let number = lanes.of(stuck).backlog.number();
        lanes.of(other).backlog.number_from(Number::of(70));
        lanes.end_if_idle(other);
        assert!(lanes.get(other).is_none());
        assert!(lanes.of(stuck).backlog.number() == number);
        assert!(lanes.of(later).backlog.number() == Number::of(70), "no number comes twice");
    }
}
