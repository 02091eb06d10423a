//! How an endpoint closes towards peers on other hosts: it says so, says goodbye, and waits until both have been
//! acknowledged by those who have not ended.

use super::peer::{Peer, Phase};
use super::protocol::Protocol;
use super::stream::Marks;
use tidegate_flow::{Header, PeerId};

impl Protocol {
    /// Tells all peers that we match nothing more, and will close.
    pub fn tell_closing(&mut self) {
        self.is_closing = true;
        self.mark_all(Marks { is_closing: true, ..Marks::default() });
    }

    /// Says goodbye to all peers.
    pub fn say_goodbye(&mut self) {
        self.is_closing = true;
        self.mark_all(Marks { is_closing: true, is_last: true, ..Marks::default() });
    }

    fn mark_all(&mut self, marks: Marks) {
        for at in 0..self.places.len() {
            let place = PeerId(at as u32);
            if let Some(peer) = self.known(place).filter(|peer| peer.phase == Phase::Open) {
                peer.outbox.mark(marks);
                self.queue(place);
            }
        }
    }

    /// Whether all that was to be sent has left and been acknowledged, by those who have not ended.
    pub fn is_flushed(&self) -> bool {
        let mut peers = self.peers().filter(|peer| peer.route.is_some());
        self.notices.is_empty()
            && self.acknowledgements.is_empty()
            && peers.all(|peer| peer.outstanding == 0 && (peer.phase != Phase::Open || peer.is_empty()))
    }

    /// Whether there is anybody to whom something has been said, or will be.
    #[inline]
    pub fn has_peers(&self) -> bool {
        !self.by_id.is_empty() || !self.notices.is_empty()
    }

    /// Whether something waits that the application may believe sent, or a peer may wait for: packets of messages that
    /// a peer has not acknowledged, unless it counts as lost.
    pub fn has_unsent(&self) -> bool {
        self.peers().any(is_owed)
    }

    /// The same of the peer at a place.
    pub fn has_unsent_to(&self, place: PeerId) -> bool {
        self.look_up(place).is_some_and(is_owed)
    }

    /// The headers of the packets that no peer has acknowledged yet that could.
    pub fn unsent(&self) -> impl Iterator<Item = Header> {
        self.peers().filter(|peer| peer.phase == Phase::Open).flat_map(|peer| peer.unsent())
    }
}

/// Whether packets of messages wait that the peer has not acknowledged yet and could.
fn is_owed(peer: &Peer) -> bool {
    peer.phase == Phase::Open && peer.has_messages()
}
