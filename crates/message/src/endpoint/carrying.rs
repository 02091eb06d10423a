//! Messages that are too long for the mailbox, and that the link carries beside the packet that says what they are: in
//! one way, where a request to send, a read and the note that it is over take three. To flow control they are one
//! packet; the receiver's window pays for their payload, as for that of an eager message.

use super::Endpoint;
use crate::bulk::Payload;
use crate::collections::slab::Key;
use crate::completion::Notice;
use crate::counter::Counter;
use crate::egress::{Body, Outgoing};
use crate::link::{Buffer, Link};
use crate::malformed::Malformed;
use crate::memory::Memory;
use crate::operation::{Send, Space};
use crate::wire::{Carried, Eager};
use tidegate_flow::PeerId;

impl<L: Link> Endpoint<L> {
    /// Sends a message whose payload the link carries. `false`: it has no way for it, or no room, or the receiver has
    /// none, or the sender is to know when it is received.
    pub(super) fn carry(&mut self, to: PeerId, send: &Send<L::Buffer>) -> bool {
        let length = send.buffer.len();
        if send.delivery || length > self.port.link.carries_most(to) || self.port.presence.lost(to).is_some() {
            return false;
        }
        let cost = Memory::<L::Buffer>::eager_cost(length);
        if cost > self.deferral.rooms.limits(to).largest || !self.deferral.rooms.take(to, cost) {
            return false;
        }
        if length == 0 || !self.port.link.carry(to, &send.buffer) {
            self.deferral.rooms.put_back(to, cost);
            return false;
        }
        self.say_carried(to, send.space, send.data, length, Some(Notice::of(send)));
        true
    }

    /// The same for the first deferred send, if it is too long for the mailbox and the receiver does not know of it.
    pub(super) fn carry_deferred(&mut self, to: PeerId, key: Key) -> bool {
        let (limits, carries_most) = (self.deferral.rooms.limits(to), self.port.link.carries_most(to));
        let Some(send) = self.bulk.send(key) else { return false };
        let Payload::Application(buffer) = &send.payload else { return false };
        let (length, cost) = (send.length, Memory::<L::Buffer>::eager_cost(send.length));
        let is_long = length > limits.most(false) && length <= carries_most;
        if send.delivery || !is_long || cost > limits.largest || !self.deferral.rooms.may_release_unseen(to, cost) {
            return false;
        }
        if !self.port.link.carry(to, buffer) {
            return false;
        }
        self.deferral.rooms.release_first(to, cost);
        if let Some(send) = self.remove_send(key) {
            self.say_carried(to, send.space, send.data, length, send.notice);
        }
        true
    }

    /// The packet of a message that the link carries.
    fn say_carried(&mut self, to: PeerId, space: Space, data: Option<u64>, length: usize, notice: Option<Notice>) {
        self.port.count(Counter::MessagesEager, 1);
        let head = Carried { queue: space.queue(), tag: space.tag(), data, length: length as u64 };
        self.port.dispatch(to, Outgoing::new(head, Body::None, notice), false);
    }

    /// The packet of a message whose payload the link has carried.
    pub(super) fn handle_carried(&mut self, from: PeerId, head: &Carried) -> Result<(), Malformed> {
        let payload = self.port.link.take_carried(from).ok_or(Malformed)?;
        let Carried { queue, tag, data, length } = *head;
        if payload.len() as u64 != length {
            return Err(Malformed);
        }
        // From here on it is an eager message that has come whole.
        self.begin_eager(from, Eager { queue, tag, data, was_dropped: false }, payload.len(), &payload)
    }
}
