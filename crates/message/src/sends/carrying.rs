//! Messages that are too long for the mailbox, and that the link carries beside the packet that says what they are: in
//! one way, where a request to send, a read and the note that it is over take three. To flow control they are one
//! packet; the receiver's window pays for their payload, as for that of an eager message.

use super::Sends;
use super::send::Payload;
use crate::collections::slab::Key;
use crate::completion::Notice;
use crate::counter::Counter;
use crate::egress::{Body, Outgoing};
use crate::link::{Buffer, Link};
use crate::memory::Memory;
use crate::operation::{Send, Space};
use crate::port::Port;
use crate::wire::Carried;
use tidegate_flow::PeerId;

impl<L: Link> Sends<L> {
    /// Sends a message whose payload the link carries. `false`: it has no way for it, or no room, or the receiver has
    /// none, or the sender is to know when it is received.
    pub(crate) fn carry(&mut self, port: &mut Port<L>, to: PeerId, send: &Send<L::Buffer>) -> bool {
        let length = send.buffer.len();
        if send.delivery || length > port.link.carries_most(to) || port.presence.lost(to).is_some() {
            return false;
        }
        let cost = Memory::<L::Buffer>::eager_cost(length);
        if cost > self.rooms.limits(to).largest || !self.rooms.take(to, cost) {
            return false;
        }
        let carried = if length > 0 { port.link.carry(to, &send.buffer) } else { None };
        let Some(number) = carried else {
            self.rooms.put_back(to, cost);
            return false;
        };
        self.say_carried(port, to, (send.space, send.data), (length, number), Some(Notice::of(send)));
        true
    }

    /// The same for the first deferred send, if it is too long for the mailbox and the receiver does not know of it.
    pub(super) fn carry_deferred(&mut self, port: &mut Port<L>, to: PeerId, key: Key) -> bool {
        let (limits, carries_most) = (self.rooms.limits(to), port.link.carries_most(to));
        let Some(send) = self.kept.send(key) else { return false };
        let Payload::Application(buffer) = &send.payload else { return false };
        let (length, cost) = (send.length, Memory::<L::Buffer>::eager_cost(send.length));
        let is_long = length > limits.most(false) && length <= carries_most;
        if send.delivery || !is_long || cost > limits.largest || !self.rooms.may_release_unseen(to, cost) {
            return false;
        }
        let Some(number) = port.link.carry(to, buffer) else { return false };
        self.rooms.release_first(to, cost);
        if let Some(send) = self.remove_send(port, key) {
            self.say_carried(port, to, (send.space, send.data), (length, number), send.notice);
        }
        true
    }

    /// The packet of a message that the link carries.
    fn say_carried(
        &mut self,
        port: &mut Port<L>,
        to: PeerId,
        (space, data): (Space, Option<u64>),
        (length, number): (usize, u32),
        notice: Option<Notice>,
    ) {
        port.count(Counter::MessagesEager, 1);
        let head = Carried { queue: space.queue(), tag: space.tag(), data, length: length as u32, number };
        port.dispatch(to, Outgoing::new(head, Body::None, notice), false);
    }
}
