//! By which way a message leaves: through the mailbox, if its receiver has room, beside it, by rendezvous, or later.

use super::Endpoint;
use crate::counter::Counter;
use crate::link::{Buffer, Link};
use crate::memory::Memory;
use crate::operation::{RemoteTarget, Send, Target, WriteRequest};
use tidegate_flow::PeerId;

impl<L: Link> Endpoint<L> {
    /// Takes room in the receiver's window for a message, if it may be sent eagerly.
    #[inline]
    pub(super) fn take_room(&mut self, to: PeerId, send: &Send<L::Buffer>) -> bool {
        let length = send.buffer.len();
        !send.delivery
            && self.deferral.rooms.take_eagerly(to, length, send.inject, Memory::<L::Buffer>::eager_cost(length))
    }

    /// Learns the receiver's window before the first message to it, and then takes room as
    /// [`take_room`](Self::take_room).
    #[cold]
    #[inline(never)]
    pub(super) fn meet_with_room(&mut self, to: PeerId, send: &Send<L::Buffer>) -> bool {
        if self.deferral.rooms.is_met(to) {
            return false;
        }
        if send.inject && self.port.link.must_greet(to) {
            return false;
        }
        self.deferral.rooms.learn(&mut self.port, to);
        self.take_room(to, send)
    }

    /// Whether nothing can leave to a peer before it has answered us for the first time. An injected message counts as
    /// sent, and who has sent all may make no progress any more: it is refused until the peer has answered.
    #[cold]
    pub(super) fn must_greet(&mut self, to: PeerId) -> bool {
        let rooms = &self.deferral.rooms;
        (!rooms.is_met(to) || rooms.is_stranger(to)) && self.port.link.must_greet(to)
    }

    /// The same of the target of an injected remote operation.
    pub(super) fn must_greet_target(&mut self, target: RemoteTarget) -> bool {
        matches!(target.to, Target::Peer(peer) if self.must_greet(peer))
    }

    /// A message that is too long for the mailbox, or finds no room.
    pub(super) fn send_otherwise(&mut self, to: PeerId, send: Send<L::Buffer>) {
        self.port.count(Counter::BytesSent, send.buffer.len() as u64);
        match send.delivery || send.buffer.len() > self.deferral.rooms.limits(to).most(send.inject) {
            true if self.carry(to, &send) => {}
            true => self.announce(to, send),
            false => self.defer_eager(to, send),
        }
    }

    /// Whether a write is injected, and its target has not answered us yet.
    pub(super) fn refuses_injected(&mut self, write: &WriteRequest<L::Buffer>) -> bool {
        write.inject && write.to.iter().any(|&(target, _)| self.must_greet_target(target))
    }
}
