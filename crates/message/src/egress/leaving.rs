//! Peers that are gone: what waits for them is taken, and their places are given back.

use super::Egress;
use super::backlog::Backlog;
use super::outgoing::Outgoing;
use crate::link::Buffer;
use tidegate_flow::PeerId;

impl<B: Buffer> Egress<B> {
    /// Nothing of what waits for a peer leaves any more: takes the messages.
    pub(crate) fn abandon(&mut self, peer: PeerId) -> Vec<Outgoing<B>> {
        self.end_delay(peer);
        let Some(lane) = self.lanes.get_mut(peer) else { return Vec::new() };
        let mut backlog = std::mem::replace(&mut lane.backlog, Backlog::new());
        let messages: Vec<_> = std::iter::from_fn(|| backlog.pop()).collect();
        messages.iter().for_each(|message| self.waiting.remove(message));
        self.lanes.end_if_idle(peer);
        messages
    }

    /// A peer is gone: it is owed nothing.
    pub(crate) fn lose_peer(&mut self, peer: PeerId) {
        self.controls.lose_peer(&mut self.lanes, peer);
    }

    /// The place of a peer that is gone goes to another.
    pub(crate) fn release(&mut self, peer: PeerId) {
        self.flow.reset(peer);
        self.waits.forget(peer);
        if self.lanes.end(peer) {
            self.full.retain(|&full| full != peer);
        }
    }
}
