//! Sends that stay with us until the receiver has them, and their requests to send (RTS).

use super::Sends;
use super::bounce::Use;
use super::send::{Payload, PendingSend};
use crate::collections::slab::Key;
use crate::completion::Notice;
use crate::counter::Counter;
use crate::egress::{Body, Outgoing, copy_of};
use crate::link::{Buffer, Capabilities, Link, Span};
use crate::memory::{Limits, Memory};
use crate::operation::{Send, Target};
use crate::port::Port;
use crate::wire::{Message, RequestToSend};
use tidegate_flow::PeerId;

impl<L: Link> Sends<L> {
    /// Sends a short message; or its request to send, if flow control wants that and the receiver has room for it.
    #[inline]
    pub(super) fn dispatch_or_announce(
        &mut self,
        port: &mut Port<L>,
        to: PeerId,
        message: Outgoing<L::Buffer>,
        inject: bool,
    ) {
        if let Some(message) = port.dispatch_unless_announced(to, message, inject) {
            self.announce_instead(port, to, message, inject);
        }
    }

    /// Sends a request to send for a short message whose first packet has no credit, as flow control wants; a message
    /// of any other kind waits. So does an injected one: to its program it counts as sent, and a program that has sent
    /// all may not be there to answer a clear to send.
    #[cold]
    pub(super) fn announce_instead(
        &mut self,
        port: &mut Port<L>,
        to: PeerId,
        message: Outgoing<L::Buffer>,
        inject: bool,
    ) {
        let may_be_announced = !inject && message.may_be_announced();
        let has_room = |spans, eager| self.rooms.has_instead(to, eager, Memory::<L::Buffer>::announce_cost(spans));
        match message {
            Outgoing { head: Message::Eager(head), body: Body::Borrowed(buffer), notice: Some(notice), .. }
                if may_be_announced
                    && has_room(buffer.spans().count(), Memory::<L::Buffer>::eager_cost(buffer.len())) =>
            {
                port.link.counters().sub(Counter::MessagesEager, 1);
                let Notice { context, space, report, .. } = notice;
                let (target, data) = (Target::Peer(to), head.data);
                let send = Send { to: target, space, buffer, data, context, inject, delivery: false, report };
                self.announce_in_room(port, to, send);
            }
            message => port.wait_in_queue(to, message, inject, false),
        }
    }

    /// Keeps a send that stays with us until the receiver gets it. `None`: its peer is gone, and the application has
    /// been told.
    pub(crate) fn keep_send(&mut self, port: &mut Port<L>, to: PeerId, send: Send<L::Buffer>) -> Option<Key> {
        let length = send.buffer.len();
        let notice = Some(Notice { context: send.context, space: send.space, length, report: send.report });
        if let Some(lost) = port.presence.lost(to) {
            let name = lost.name.clone();
            port.fail_notice(notice, &name);
            return None;
        }
        let payload = match send.inject {
            true => Payload::Copied(copy_of(&send.buffer)),
            false => Payload::Application(send.buffer),
        };
        if port.presence.awaits(send.inject) {
            port.presence.keep_send(to);
        }
        let Send { space, data, delivery, .. } = send;
        port.egress.attention.begin();
        Some(self.kept.keep(PendingSend::new(to, space, data, delivery, payload, notice)))
    }

    /// Sends the request to send of a message for which an eager message's room was taken. The caller has checked that
    /// the receiver has room for what a request to send costs beyond that.
    fn announce_in_room(&mut self, port: &mut Port<L>, to: PeerId, send: Send<L::Buffer>) {
        let taken = Memory::<L::Buffer>::eager_cost(send.buffer.len());
        let Some(key) = self.keep_send(port, to, send) else { return };
        let Some(kept) = self.kept.send(key) else { return };
        let cost = Memory::<L::Buffer>::announce_cost(self.spans_of(kept).len());
        self.rooms.take_instead(to, taken, cost);
        self.announce_kept(port, to, key, false);
    }

    /// The pieces of memory that the request to send of a send names. With none, its receiver sends a clear to send.
    pub(super) fn spans_of(&self, send: &PendingSend<L::Buffer>) -> Vec<Span> {
        let Limits { largest, control, .. } = self.rooms.limits(send.peer);
        send.spans(|count| {
            let fits = Memory::<L::Buffer>::announce_cost(count) <= largest;
            fits && RequestToSend::body_bytes(count) <= control.bytes()
        })
    }

    /// Sends the request to send of a message for which the receiver has room. `was_dropped`: the receiver has dropped
    /// its envelope once.
    pub(super) fn announce_kept(&mut self, port: &mut Port<L>, to: PeerId, key: Key, was_dropped: bool) {
        port.count(Counter::MessagesRendezvous, 1);
        let Some(send) = self.kept.send(key) else { return };
        let mut spans = self.spans_of(send);
        let (length, data, space) = (send.length, send.data, send.space);
        let exposed = match &send.payload {
            Payload::Application(buffer) if !spans.is_empty() => port.link.expose(to, buffer, &mut spans),
            _ => 0,
        };
        let head = RequestToSend {
            queue: space.queue(),
            tag: space.tag(),
            data,
            was_dropped,
            send: key.0,
            length: length as u64,
            spans: spans.len() as u16,
            first: spans.first().copied().unwrap_or(Span { address: 0, length: 0 }),
            bounce: self.bounce_first_piece(port, to, key, length),
            is_keyed: exposed != 0,
        };
        if let Some(send) = self.kept.send_mut(key) {
            (send.key, send.is_located) = (exposed, !spans.is_empty());
        }
        let rest = RequestToSend::body_of(exposed, &spans);
        let body = if rest.is_empty() { Body::None } else { Body::Owned(rest.into_boxed_slice()) };
        port.dispatch(to, Outgoing::new(head, body, None), false);
    }

    /// Copies the first piece of a rendezvous message into a bounce buffer, unless the receiver will rather read all of
    /// it from memory, as it did last time.
    fn bounce_first_piece(&mut self, port: &mut Port<L>, to: PeerId, key: Key, length: usize) -> Option<u16> {
        if length == 0
            || self.kept.reads_memory(to, length)
            || !self.kept.bounces.exists()
            || self.kept.send(key)?.is_copied()
        {
            return None;
        }
        let Capabilities { reaches_memory, shares_bounce_buffers, direct_from, .. } = port.link.capabilities(to);
        if !shares_bounce_buffers || (reaches_memory && length >= direct_from) {
            return None;
        }
        let control = self.rooms.limits(to).control;
        let bounce = self.kept.bounces.take(to, control, key, Use::Ahead)?;
        let Payload::Application(buffer) = &self.kept.send(key)?.payload else { return None };
        port.link.fill_bounce_buffer(bounce, buffer, 0, length.min(self.kept.bounces.bytes()));
        Some(bounce as u16)
    }
}
