//! Peers that die or leave: everything that waits for them ends with an error that names them, nothing else does.

use super::Endpoint;
use crate::assembly::Sink;
use crate::bulk::Pull;
use crate::collections::slab::Key;
use crate::completion::Failure;
use crate::counter::Counter;
use crate::link::{Departure, Link};
use crate::operation::Target;
use crate::port::{Ending, TransferOwner};
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
        self.sends.lose_room(peer);
        for message in self.port.egress.abandon(peer) {
            self.port.fail_notice(message.into_notice(), name);
        }
        self.sends.lose_peer(&mut self.port, peer, name);
        self.rma.lose_peer(&mut self.port, peer, name);
        if self.fences.are_raised() {
            self.fail_fenced(Target::Peer(peer), &Failure::PeerLost { peer: name.to_owned() });
        }
    }

    /// Ends everything that waits for `peer`.
    pub(super) fn lose_peer(&mut self, peer: PeerId, name: &str, orderly: bool) {
        self.port.presence.lose(peer, Lost { name: name.to_owned(), orderly });
        let sink = self.assembly.end(peer);
        self.handle_unreachable(peer, name);
        self.port.egress.lose_peer(peer);
        self.windows.lose_peer(peer);
        self.lose_inbound(peer, sink, name);
        for received in self.sequence.lose_peer(peer) {
            self.report_received(received);
        }
        for key in self.bulk.pulls.of_peer(peer) {
            self.lose_pull(key, name);
        }
        for (queue, receive) in self.matching.lose_peer(Target::Peer(peer), name, !orderly) {
            let failure = Failure::PeerLost { peer: name.to_owned() };
            self.port.complete_unmatched(receive.context, queue.space(0), receive.released, failure);
        }
    }

    /// Ends a pull whose peer is gone; there is nobody to tell.
    fn lose_pull(&mut self, key: Key, peer: &str) {
        if let Some(Pull { active, envelope, queue, remote, .. }) = self.bulk.pulls.end(key, false, self.port.now) {
            self.forget_stored(remote.peer, remote.kept());
            let failure = Failure::PeerLost { peer: peer.to_owned() };
            let running = self.port.stop_transfers(TransferOwner::Pull(key), remote.peer);
            match running.is_empty() {
                true => self.fail_receive(active, &envelope, queue, failure),
                false => {
                    let ending = Ending::Receive { active, envelope, queue, failure };
                    self.port.transfers.hold(&running, remote.peer, ending);
                }
            }
        }
    }

    /// The message that was under way from the peer will never be whole.
    fn lose_inbound(&mut self, peer: PeerId, sink: Sink<L::Buffer>, name: &str) {
        match sink {
            Sink::Receive(active, envelope, queue) => {
                self.fail_receive(active, &envelope, queue, Failure::PeerLost { peer: name.to_owned() });
            }
            Sink::Store(at, queue) => {
                if let Some(unexpected) = self.matching.of(queue).take_at(at) {
                    self.port.link.counters().sub(Counter::UnexpectedBytes, unexpected.envelope.length as u64);
                    self.forget_stored(peer, unexpected.cost);
                }
            }
            Sink::Idle | Sink::Control(_) | Sink::Piece(..) | Sink::ReadData(..) | Sink::Discard => {}
        }
    }

    /// What a lost peer had stored here is stored no longer. There is nobody to give the room to.
    fn forget_stored(&mut self, peer: PeerId, cost: u32) {
        if cost > 0 {
            self.windows.leave(self.port.link.counters(), peer, cost);
            self.windows.shrink(peer);
            self.windows.review(self.port.link.counters(), peer, false, |_, _| None);
        }
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
                self.end_record(peer);
            } else if self.port.transfers.holds_any_of(peer) {
                self.port.presence.depart(peer);
            } else if !self.matching.has_stored_from(Target::Peer(peer)) {
                self.release_peer(peer);
            } else if !self.port.link.lacks_places() || !self.record_peer(peer) {
                self.port.presence.depart(peer);
            }
        }
    }

    /// Keeps a record of a departed peer for its stored messages, and gives its place back. Returns whether receive
    /// memory pays for that.
    fn record_peer(&mut self, peer: PeerId) -> bool {
        let record = self.port.presence.next_record();
        let is_paid = self.windows.begin_record(peer, record);
        if is_paid {
            self.port.presence.begin_record(peer);
            self.matching.move_source(Target::Peer(peer), Target::Peer(record));
            self.port.link.begin_record(peer, record);
            self.release_peer(peer);
        }
        is_paid
    }

    /// A stored message of a peer that has a record is stored no longer. The record goes with the last one, once no
    /// completion can name it.
    #[cold]
    pub(super) fn leave_record(&mut self, record: PeerId, cost: u32) {
        self.windows.leave_record(self.port.link.counters(), record, cost);
        if !self.matching.has_stored_from(Target::Peer(record)) {
            self.port.presence.depart(record);
        }
    }

    fn end_record(&mut self, record: PeerId) {
        self.matching.forget_peer(Target::Peer(record));
        self.windows.end_record(record);
        self.port.presence.end_record(record);
        self.port.link.end_record(record);
    }

    fn release_peer(&mut self, peer: PeerId) {
        let source = Target::Peer(peer);
        self.matching.forget_peer(source);
        self.windows.release(peer);
        self.sends.release(peer);
        self.assembly.release(peer);
        self.rma.release(peer);
        self.port.egress.release(peer);
        self.looks.release(peer);
        self.port.presence.release(peer);
        self.port.link.release(peer);
    }
}
