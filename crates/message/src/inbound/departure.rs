//! Peers that are gone: receives that only they could satisfy, messages that have come in part, and records of those
//! that are stored.

use super::Inbound;
use crate::assembly::Sink;
use crate::completion::Failure;
use crate::counter::Counter;
use crate::link::Link;
use crate::operation::Target;
use crate::port::Port;
use tidegate_flow::PeerId;

impl<L: Link> Inbound<L> {
    /// A peer has nothing more to say of its deferred sends, and the message that was under way from it goes nowhere.
    pub(crate) fn lose_messages(&mut self, port: &mut Port<L>, peer: PeerId, name: &str) {
        let sink = self.assembly.lose(peer);
        self.windows.lose_peer(peer);
        self.lose_inbound(port, peer, sink, name);
        for received in self.sequence.lose_peer(peer) {
            self.report_received(port, received);
        }
    }

    /// Ends the receives that only a lost peer could have satisfied, unless it left in order: then they stay.
    pub(crate) fn lose_receives(&mut self, port: &mut Port<L>, peer: PeerId, name: &str, orderly: bool) {
        for (queue, receive) in self.matching.lose_peer(Target::Peer(peer), name, !orderly) {
            let failure = Failure::PeerLost { peer: name.to_owned() };
            port.complete_unmatched(receive.context, queue.space(0), receive.released, failure);
        }
    }

    /// The message that was under way from the peer will never be whole.
    fn lose_inbound(&mut self, port: &mut Port<L>, peer: PeerId, sink: Sink<L::Buffer>, name: &str) {
        match sink {
            Sink::Receive(matched) => {
                self.fail_receive(port, matched, Failure::PeerLost { peer: name.to_owned() });
            }
            Sink::Store(at, queue) => {
                if let Some(unexpected) = self.matching.of(queue).take_at(at) {
                    port.link.counters().sub(Counter::UnexpectedBytes, unexpected.envelope.length as u64);
                    self.forget_stored(port, peer, unexpected.cost);
                }
            }
            Sink::Idle | Sink::Control(_) | Sink::Piece(..) | Sink::ReadData(..) | Sink::Discard => {}
        }
    }

    /// What a lost peer had stored here is stored no longer. There is nobody to give the room to.
    pub(crate) fn forget_stored(&mut self, port: &Port<L>, peer: PeerId, cost: u32) {
        if cost > 0 {
            self.windows.leave(port.link.counters(), peer, cost);
            self.windows.shrink(peer);
            self.windows.update(port.link.counters(), peer, false, |_, _, _| None);
        }
    }

    /// Keeps a record of a departed peer for its stored messages, so that its place is free. Returns whether receive
    /// memory pays for that.
    pub(crate) fn begin_record(&mut self, port: &mut Port<L>, peer: PeerId) -> bool {
        let record = port.presence.next_record();
        let is_paid = self.windows.begin_record(peer, record);
        if is_paid {
            port.presence.begin_record(peer);
            self.matching.move_source(Target::Peer(peer), Target::Peer(record));
            port.link.begin_record(peer, record);
        }
        is_paid
    }

    /// A stored message of a peer that has a record is stored no longer. The record goes with the last one, once no
    /// completion can name it.
    #[cold]
    pub(crate) fn leave_record(&mut self, port: &mut Port<L>, record: PeerId, cost: u32) {
        self.windows.leave_record(port.link.counters(), record, cost);
        if !self.matching.has_stored_from(Target::Peer(record)) {
            port.presence.depart(record);
        }
    }

    pub(crate) fn end_record(&mut self, port: &mut Port<L>, record: PeerId) {
        self.matching.forget_peer(Target::Peer(record));
        self.windows.end_record(record);
        port.presence.end_record(record);
        port.link.end_record(record);
    }

    /// Whether messages of a source are stored.
    pub(crate) fn has_stored_from(&self, source: Target) -> bool {
        self.matching.has_stored_from(source)
    }

    /// The place of a peer that is gone goes to another.
    pub(crate) fn release(&mut self, peer: PeerId) {
        self.matching.forget_peer(Target::Peer(peer));
        self.windows.release(peer);
        self.assembly.release(peer);
    }
}
