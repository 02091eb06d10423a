//! Messages that are too long for the mailbox, and that the link carries beside the packet that says what they are: in
//! one way, where a request to send, a read and the note that it is over take three. To flow control they are one
//! packet; the receiver's window pays for their payload, as for that of an eager message.

use super::Endpoint;
use crate::assembly::write_clipped;
use crate::completion::Notice;
use crate::counter::Counter;
use crate::egress::{Body, Outgoing};
use crate::envelope::Envelope;
use crate::link::{Buffer, Link};
use crate::malformed::Malformed;
use crate::matching::Stored;
use crate::memory::Memory;
use crate::operation::{Send, Target};
use crate::payload::Payload;
use crate::wire::Carried;
use tidegate_flow::PeerId;

impl<L: Link> Endpoint<L> {
    /// Sends a message whose payload the link carries. `false`: it has no way for it, or no room, or the receiver has
    /// none, or the sender is to know when it is received.
    pub(super) fn carry(&mut self, to: PeerId, send: &Send<L::Buffer>) -> bool {
        let length = send.buffer.len();
        if send.delivery || length > self.link.carries_most(to) || self.presence.lost(to).is_some() {
            return false;
        }
        let cost = Memory::<L::Buffer>::eager_cost(length);
        if cost > self.deferral.rooms.limits(to).largest || !self.deferral.rooms.take(to, cost) {
            return false;
        }
        if length == 0 || !self.link.carry(to, &send.buffer) {
            self.deferral.rooms.put_back(to, cost);
            return false;
        }
        self.count(Counter::MessagesEager, 1);
        let (queue, tag) = (send.space.queue(), send.space.tag());
        let head = Carried { queue, tag, data: send.data, length: length as u64 };
        self.dispatch(to, Outgoing::new(head, Body::None, Some(Notice::of(send))), false);
        true
    }

    /// The packet of a message whose payload the link has carried.
    pub(super) fn handle_carried(&mut self, from: PeerId, head: &Carried) -> Result<(), Malformed> {
        let payload = self.link.take_carried(from).ok_or(Malformed)?;
        let (queue, length) = (head.queue, payload.len());
        if length as u64 != head.length {
            return Err(Malformed);
        }
        let cost = Memory::<L::Buffer>::eager_cost(length);
        self.check_window(from, cost)?;
        let envelope = Envelope { source: Target::Peer(from), tag: head.tag, data: head.data, length };
        match self.matching.of(queue).accept(&envelope) {
            Some(mut active) => {
                write_clipped(&mut active.buffer, 0, &payload);
                self.complete_receive(active, &envelope, queue);
                self.pass_window(from, cost);
            }
            None => {
                self.store_unexpected(envelope, Stored::Here(Payload::Bytes(payload)), queue, cost);
                self.enter_window(from, cost);
            }
        }
        Ok(())
    }
}
