//! Peers that die or leave: everything that waits for them ends with an error that names them, and nothing else ends.

use super::Endpoint;
use crate::completion::Failure;
use crate::counter::Counter;
use crate::link::{Departure, Link};
use crate::operation::Target;
use crate::presence::{Loss, Lost};
use tidegate_flow::PeerId;

/// Departed peers that one call of progress looks at, however many there are.
const LOOKS_MOST: usize = 16;

impl<L: Link> Endpoint<L> {
    /// A call is over, or the handling of a packet or an event: what waits for peers that were found to be gone in it
    /// ends. This is the one place for that, so nothing else has to expect that an operation, a stream or a queue is
    /// gone because something was sent meanwhile.
    #[inline(always)]
    pub(super) fn end_losses(&mut self) {
        if self.port.egress.attention.has_losses() {
            self.handle_losses();
        }
    }

    #[cold]
    #[inline(never)]
    fn handle_losses(&mut self) {
        while let Some(peer) = self.port.egress.poll_overdrawn() {
            self.port.quarantine(peer, "it sends without waiting for credits while its own mailbox is full");
        }
        while let Some(Loss { peer, name, is_quarantined }) = self.port.presence.next_loss() {
            match is_quarantined {
                true => self.lose_peer(peer, &name, false),
                false => self.handle_unreachable(peer, &name),
            }
        }
        self.port.egress.attention.end_losses();
    }

    /// The link cannot send to `peer` any more: whatever is on its way there fails. What the peer has sent is still
    /// retrieved, and may be received; its departure, which the link reports behind that, ends the rest.
    #[cold]
    pub(super) fn handle_unreachable(&mut self, peer: PeerId, name: &str) {
        self.port.presence.give_up(peer);
        for message in self.port.egress.abandon(peer) {
            self.port.fail_notice(message.into_notice(), name);
        }
        self.sends.lose_peer(&mut self.port, peer, name);
        self.rma.lose_peer(&mut self.port, peer, name);
        if self.fences.are_raised() {
            let failure = Failure::PeerLost { peer: name.to_owned() };
            self.fences.fail(&mut self.port, &mut self.sends, Target::Peer(peer), &failure);
        }
    }

    /// Ends everything that waits for `peer`.
    pub(super) fn lose_peer(&mut self, peer: PeerId, name: &str, orderly: bool) {
        self.port.presence.lose(peer, Lost { name: name.to_owned(), orderly });
        self.handle_unreachable(peer, name);
        self.port.egress.lose_peer(peer);
        self.inbound.lose_messages(&mut self.port, peer, name);
        self.pulls.lose_peer(&mut self.port, &mut self.inbound, peer, name);
        self.inbound.lose_receives(&mut self.port, peer, name, orderly);
    }

    /// The link says that a peer is gone, and that all it sent has been retrieved.
    pub(super) fn handle_departure(&mut self, departure: Departure) {
        let peer = departure.peer;
        if !departure.orderly {
            self.port.count(Counter::PeersDied, 1);
            if let Some(identity) = self.port.link.identity(peer) {
                self.port.link.note_death(identity);
            }
        }
        self.lose_peer(peer, &departure.name, departure.orderly);
        self.port.presence.depart(peer);
    }

    /// Gives the places of those departed peers back of which no message is stored any more and no completion waits for
    /// a transfer to end. Until then, and as long as a completion that the application has not read may name them,
    /// their numbers are in use. Between two calls of progress no number changes its meaning. They have turns, because
    /// there may be many whose messages are stored for long. Where the link lacks places, those peers give theirs back
    /// too of which messages are stored, and are known by [records](crate::presence) from then on, as many as the spare
    /// receive memory pays for: whoever does not receive what departed peers have sent keeps no newcomer out.
    #[cold]
    pub(super) fn release_departed(&mut self) {
        if !self.port.ended.left().is_empty() {
            return;
        }
        for _ in 0..self.port.presence.departed().min(LOOKS_MOST) {
            let Some(peer) = self.port.presence.next_departed() else { break };
            if self.port.presence.is_record(peer) {
                self.inbound.end_record(&mut self.port, peer);
            } else if self.port.transfers.holds_any_of(peer) {
                self.port.presence.depart(peer);
            } else if !self.inbound.has_stored_from(Target::Peer(peer))
                || (self.port.link.lacks_places() && self.inbound.begin_record(&mut self.port, peer))
            {
                self.release_peer(peer);
            } else {
                self.port.presence.depart(peer);
            }
        }
    }

    fn release_peer(&mut self, peer: PeerId) {
        self.inbound.release(peer);
        self.sends.release(peer);
        self.rma.release(peer);
        self.port.egress.release(peer);
        self.looks.release(peer);
        self.port.presence.release(peer);
        self.port.link.release(peer);
    }
}
