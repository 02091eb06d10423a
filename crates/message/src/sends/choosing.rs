//! By which way a message leaves: eagerly (P §3), that is at once through the mailbox, if its receiver has room for it;
//! carried by the link, by rendezvous, or later.

use super::Sends;
use crate::counter::Counter;
use crate::egress::{Outgoing, Step};
use crate::link::{Buffer, Link};
use crate::memory::Memory;
use crate::operation::{RemoteTarget, Send, Target, TryAgain, WriteRequest};
use crate::port::Port;
use tidegate_flow::PeerId;

impl<L: Link> Sends<L> {
    /// Takes room for an eager message of so many bytes, if it is not too long for that. `inject`: its buffer may
    /// change.
    #[inline(always)]
    pub(crate) fn take_eagerly(&mut self, to: PeerId, length: usize, inject: bool, cost: u32) -> bool {
        self.rooms.take_eagerly(to, length, inject, cost)
    }

    /// Starts a send that has waited behind a fence.
    pub(crate) fn start(&mut self, port: &mut Port<L>, to: PeerId, send: Send<L::Buffer>) {
        self.rooms.meet_once(port, to);
        if !self.take_room(to, &send) {
            return self.send_rendezvous_or_defer(port, to, send);
        }
        let accepted = self.go_on_eagerly(port, to, send, None, false);
        debug_assert!(accepted.is_ok(), "only what may be refused is");
    }

    /// Takes room in the receiver's window for a message, if it may be sent eagerly.
    #[inline]
    fn take_room(&mut self, to: PeerId, send: &Send<L::Buffer>) -> bool {
        let length = send.buffer.len();
        !send.delivery && self.rooms.take_eagerly(to, length, send.inject, Memory::<L::Buffer>::eager_cost(length))
    }

    /// Learns the receiver's window before the first message to it, and then takes room as
    /// [`take_room`](Self::take_room).
    #[cold]
    #[inline(never)]
    pub(crate) fn meet_with_room(&mut self, port: &mut Port<L>, to: PeerId, send: &Send<L::Buffer>) -> bool {
        if self.rooms.is_met(to) {
            return false;
        }
        if send.inject && port.link.must_greet(to) {
            return false;
        }
        self.rooms.learn(port, to);
        self.take_room(to, send)
    }

    /// Whether nothing can leave to a peer before it has answered us for the first time. An injected message counts as
    /// sent, and who has sent all may make no progress any more: it is refused until the peer has answered.
    #[cold]
    pub(crate) fn must_greet(&mut self, port: &mut Port<L>, to: PeerId) -> bool {
        let rooms = &self.rooms;
        (!rooms.is_met(to) || rooms.is_unknown(to)) && port.link.must_greet(to)
    }

    /// The same of the target of an injected remote operation.
    fn must_greet_target(&mut self, port: &mut Port<L>, target: RemoteTarget) -> bool {
        matches!(target.to, Target::Peer(peer) if self.must_greet(port, peer))
    }

    /// A message that is too long for the mailbox, or finds no room.
    pub(crate) fn send_rendezvous_or_defer(&mut self, port: &mut Port<L>, to: PeerId, send: Send<L::Buffer>) {
        port.count(Counter::BytesSent, send.buffer.len() as u64);
        match send.delivery || send.buffer.len() > self.rooms.limits(to).most(send.inject) {
            true if self.carry(port, to, &send) => {}
            true => self.announce(port, to, send),
            false => self.defer_eager(port, to, send),
        }
    }

    /// Whether a write is injected, and its target has not answered us yet.
    pub(crate) fn refuses_injected(&mut self, port: &mut Port<L>, write: &WriteRequest<L::Buffer>) -> bool {
        write.inject && write.to.iter().any(|&(target, _)| self.must_greet_target(port, target))
    }

    /// An eager message is not short, or has not left because of this. `may_refuse`: an injected one need not be kept.
    #[inline(always)]
    pub(crate) fn go_on_eagerly(
        &mut self,
        port: &mut Port<L>,
        to: PeerId,
        send: Send<L::Buffer>,
        step: Option<Step>,
        may_refuse: bool,
    ) -> Result<(), TryAgain> {
        port.egress.attention.raise();
        if send.inject && may_refuse && self.must_hold(port, to, &send, step.as_ref()) {
            let cost = Memory::<L::Buffer>::eager_cost(send.buffer.len());
            self.rooms.put_back(to, cost);
            return Err(TryAgain);
        }
        port.count(Counter::BytesSent, send.buffer.len() as u64);
        port.count(Counter::MessagesEager, 1);
        let inject = send.inject;
        let message = Outgoing::eager(send);
        let left = match step {
            Some(step) => port.end_step(to, step, message, inject),
            None => port.dispatch_unless_announced(to, message, inject),
        };
        if let Some(message) = left {
            self.announce_instead(port, to, message, inject);
        }
        Ok(())
    }

    /// Whether an injected message is refused, because it would wait here (`egress/inject_backoff.rs`).
    #[cold]
    fn must_hold(&mut self, port: &mut Port<L>, to: PeerId, send: &Send<L::Buffer>, step: Option<&Step>) -> bool {
        let is_stuck = match step {
            Some(step) => matches!(step, Step::NoCredits | Step::Full | Step::Announce),
            None if port.presence.lost(to).is_some() => false,
            None if !port.egress.is_idle(to) => true,
            None => !port.egress.has_credits_for(to, Outgoing::eager_packets(send), port.now),
        };
        is_stuck && port.egress.hold(to, port.config.patience, port.now)
    }
}
