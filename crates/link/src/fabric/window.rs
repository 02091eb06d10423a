//! The windows that peers are told, those that they have told, and the bytes that are left of ours.

use super::peer::Phase;
use super::protocol::Protocol;
use tidegate_flow::PeerId;

impl Protocol {
    /// What we set aside for the unmatched messages of each sender, in bytes; told before anybody is greeted.
    pub fn set_window(&mut self, bytes: u32) {
        self.own.window = bytes;
    }

    /// The same for newcomers, peers at this place and behind it.
    pub fn set_newcomers(&mut self, first: PeerId, bytes: u32) {
        self.newcomers = Some((first, bytes));
    }

    /// How much of that is left of one peer. A correct one has sent beside its packets no more than that.
    pub fn set_window_left(&mut self, place: PeerId, bytes: u32) {
        let Some(peer) = self.known(place) else { return };
        peer.window_left = Some(bytes);
        if peer.loading.cost() > bytes as usize {
            self.counts.dropped += 1;
            self.quarantine(place);
        }
    }

    /// What the peer has told of its window. `Some(0)`: nothing yet.
    pub fn window(&self, place: PeerId) -> Option<u32> {
        let peer = self.look_up(place)?;
        match (&peer.greeting, peer.phase) {
            (Some(greeting), _) => Some(greeting.window).filter(|window| *window > 0),
            (None, Phase::Ended) => None,
            (None, _) => Some(0),
        }
    }
}
