//! Sends that wait with us for room in their receiver's window: what follows from what the receiver says.

use super::Sends;
use super::send::{Payload, PendingSend};
use crate::collections::slab::Key;
use crate::counter::Counter;
use crate::deferral::Place;
use crate::egress::{Body, Outgoing};
use crate::envelope::Pattern;
use crate::link::{Buffer, Link};
use crate::malformed::{Handled, Malformed};
use crate::memory::Memory;
use crate::operation::{Queue, Send, Source, Target};
use crate::port::Port;
use crate::wire::{DeferralCount, DeferralNotice, Eager, Entry, Message, MessageKind, NoMatch, Offer, Query, Room};
use tidegate_flow::PeerId;

impl<L: Link> Sends<L> {
    /// Keeps an eager send for which the receiver has no room.
    #[cold]
    pub(super) fn defer_eager(&mut self, port: &mut Port<L>, to: PeerId, send: Send<L::Buffer>) {
        if let Some(key) = self.keep_send(port, to, send) {
            self.defer(port, to, key);
        }
    }

    /// Sends a message by rendezvous, or defers it when the receiver has no room for one more envelope.
    pub(super) fn announce(&mut self, port: &mut Port<L>, to: PeerId, send: Send<L::Buffer>) {
        let Some(key) = self.keep_send(port, to, send) else { return };
        let Some(send) = self.kept.send(key) else { return };
        let cost = Memory::<L::Buffer>::announce_cost(self.spans_of(send).len());
        match self.rooms.take(to, cost) {
            true => self.announce_kept(port, to, key, false),
            false => self.defer(port, to, key),
        }
    }

    /// Defers a send for which the receiver has no room.
    #[cold]
    fn defer(&mut self, port: &mut Port<L>, to: PeerId, key: Key) {
        if !self.rooms.is_unknown(to) || self.rooms.has_to_ask(to) {
            port.count(Counter::SendsDeferred, 1);
        }
        if let Some(send) = self.kept.send_mut(key) {
            send.deferred = Some(self.rooms.defer(to, key, send.space.queue(), send.space.tag()));
        }
        self.release_deferred(port, to);
        self.notify(port, to);
        self.rooms.ask(port, to);
    }

    /// Sends deferred messages in order as long as they find room (W3).
    fn release_deferred(&mut self, port: &mut Port<L>, to: PeerId) {
        while let Some(key) = self.rooms.first(to) {
            if self.carry_deferred(port, to, key) {
                continue;
            }
            let Some(send) = self.kept.send(key) else { break };
            let (eager, cost) = self.way_of(send);
            let Some(was_dropped) = self.rooms.release_first(to, cost) else { break };
            if let Some(send) = self.kept.send_mut(key) {
                send.deferred = None;
            }
            match eager {
                true => self.send_kept_eagerly(port, to, key, was_dropped),
                false => self.announce_kept(port, to, key, was_dropped),
            }
        }
        self.rooms.end(to);
    }

    /// Whether a deferred send leaves eagerly, and what it costs.
    fn way_of(&self, send: &PendingSend<L::Buffer>) -> (bool, u32) {
        let most = self.rooms.limits(send.peer).most(send.is_copied());
        match send.length <= most && !send.delivery {
            true => (true, Memory::<L::Buffer>::eager_cost(send.length)),
            false => (false, Memory::<L::Buffer>::announce_cost(self.spans_of(send).len())),
        }
    }

    fn send_kept_eagerly(&mut self, port: &mut Port<L>, to: PeerId, key: Key, was_dropped: bool) {
        let Some(send) = self.remove_send(port, key) else { return };
        port.count(Counter::MessagesEager, 1);
        let (queue, tag) = (send.space.queue(), send.space.tag());
        let head = Eager { queue, tag, data: send.data, was_dropped };
        let body = match send.payload {
            _ if send.length == 0 => Body::None,
            Payload::Application(buffer) => Body::Borrowed(buffer),
            Payload::Copied(bytes) => Body::Owned(bytes),
        };
        self.dispatch_or_announce(port, to, Outgoing::new(head, body, send.notice), false);
    }

    /// Shows the receiver the deferred sends that it does not know of (W4), or tells their number (S6), unless
    /// nothing reaches it yet: what it says of its window may let them leave.
    fn notify(&mut self, port: &mut Port<L>, to: PeerId) {
        if self.rooms.is_unknown(to) {
            return;
        }
        let Some((batch, are_counted)) = self.rooms.next_batch(to) else { return };
        port.count(Counter::DeferralNotices, 1);
        if are_counted {
            let count = DeferralCount { sends: batch.len() as u32 };
            return port.dispatch(to, Outgoing::new(count, Body::None, None), false);
        }
        let mut body = Vec::new();
        for key in batch {
            if let Some(send) = self.kept.send(key) {
                entry_of(key, send).emit(&mut body);
            }
        }
        let body = Body::Owned(body.into_boxed_slice());
        port.dispatch(to, Outgoing::new(DeferralNotice, body, None), false);
    }

    /// The receiver has matched or dropped all of a batch.
    pub(crate) fn handle_acknowledged(&mut self, port: &mut Port<L>, from: PeerId) -> Handled {
        if port.egress.waits(from, &[MessageKind::DeferralNotice, MessageKind::DeferralCount]) {
            return Err(Malformed);
        }
        if let Some((queue, pattern)) = self.rooms.acknowledge(from)? {
            self.answer(port, from, queue, &pattern);
        }
        self.release_deferred(port, from);
        self.notify(port, from);
        Ok(())
    }

    /// The receiver gives back what has become free of our window.
    pub(crate) fn handle_room(&mut self, port: &mut Port<L>, from: PeerId, room: Room) -> Handled {
        self.rooms.give_back(from, room)?;
        self.release_deferred(port, from);
        Ok(())
    }

    /// The receiver's query for the first deferred send that a pattern accepts.
    pub(crate) fn handle_query(&mut self, port: &mut Port<L>, from: PeerId, query: &Query) -> Handled {
        let &Query { queue, tag, ignore } = query;
        let pattern = Pattern { from: Source::From(Target::Myself), tag, ignore };
        if self.is_answering(port, from) {
            return Err(Malformed);
        }
        if self.rooms.query(from, queue, pattern)? {
            self.answer(port, from, queue, &pattern);
        }
        Ok(())
    }

    /// Whether an answer to a query of `peer` waits.
    fn is_answering(&self, port: &Port<L>, peer: PeerId) -> bool {
        port.egress.waits(peer, &[MessageKind::OfferTagged, MessageKind::OfferUntagged, MessageKind::NoMatch])
    }

    /// Offers the first dropped send that `pattern` accepts, or says that there is none.
    fn answer(&mut self, port: &mut Port<L>, to: PeerId, queue: Queue, pattern: &Pattern) {
        let found = self.rooms.offer(to, queue, pattern);
        // Our memory keeps it until it leaves, and the receiver's until it is whole.
        let control = self.rooms.common_control_size(port, to);
        let may_be_long = port.egress.is_idle(to);
        let (head, body): (Message, _) = match found.and_then(|key| Some((key, self.kept.send(key)?))) {
            Some((key, send)) => {
                let (tag, data, length) = (send.space.tag(), send.data, send.length as u64);
                let body = if may_be_long { offered_payload(send, control.bytes()) } else { Body::None };
                (Offer { queue, tag, data, send: key.0, length }.into(), body)
            }
            None => (NoMatch.into(), Body::None),
        };
        port.dispatch(to, Outgoing::new(head, body, None), true);
    }

    /// The receiver declines what we offered.
    pub(crate) fn handle_decline(&mut self, port: &mut Port<L>, from: PeerId, key: Key) -> Handled {
        let at = self.offered_at(port, from, key).ok_or(Malformed)?;
        self.rooms.decline(from, at)?;
        self.release_deferred(port, from);
        Ok(())
    }

    /// The receiver accepts what we offered: it has set it aside, and will pull it later.
    pub(crate) fn handle_accept(&mut self, port: &mut Port<L>, from: PeerId, key: Key) -> Handled {
        let at = self.offered_at(port, from, key).ok_or(Malformed)?;
        self.rooms.check_offered(from, at)?;
        self.end_deferral(port, key);
        Ok(())
    }

    /// Where a deferred send is whose offer has left.
    fn offered_at(&self, port: &Port<L>, from: PeerId, key: Key) -> Option<Place> {
        self.kept.send(key).filter(|send| send.peer == from && !self.is_answering(port, from))?.deferred
    }

    /// The receiver has matched a deferred send: it is deferred no longer. It takes the message from here, as it does
    /// after a request to send.
    pub(super) fn end_deferral(&mut self, port: &mut Port<L>, key: Key) {
        let Some(send) = self.kept.send_mut(key) else { return };
        let (Some(at), to) = (send.deferred.take(), send.peer) else { return };
        port.count(Counter::MessagesRendezvous, 1);
        self.rooms.remove(to, at);
        self.release_deferred(port, to);
    }

    /// The receiver has told what room we have.
    fn begin_with_room(&mut self, port: &mut Port<L>, peer: PeerId) {
        self.go_on_with_room(port, peer);
        // Only now there are sends for which it has no room.
        port.count(Counter::SendsDeferred, self.rooms.deferred(peer) as u64);
    }

    /// Sends leave as far as the receiver has room for them, and it is shown the others.
    pub(super) fn go_on_with_room(&mut self, port: &mut Port<L>, peer: PeerId) {
        self.release_deferred(port, peer);
        self.notify(port, peer);
    }

    /// Tries again to learn the window of a peer that could not tell it at the first message to it.
    pub(crate) fn relearn_window(&mut self, port: &mut Port<L>, peer: PeerId) {
        if !self.rooms.is_unknown(peer) {
            return;
        }
        match self.rooms.learn_again(port, peer) {
            true => self.begin_with_room(port, peer),
            // It may have said that we have to ask, which we have not done.
            false if self.rooms.is_outside(peer) => self.rooms.ask(port, peer),
            false => {}
        }
    }
}

/// A short payload travels with its offer, which spares the receiver the pull if it accepts.
fn offered_payload<B: Buffer>(send: &PendingSend<B>, most: usize) -> Body<B> {
    match &send.payload {
        _ if send.length == 0 || send.length > most => Body::None,
        Payload::Application(buffer) => Body::Borrowed(buffer.slice(0, send.length)),
        Payload::Copied(bytes) => Body::Owned(bytes.clone()),
    }
}

fn entry_of<B: Buffer>(key: Key, send: &PendingSend<B>) -> Entry {
    let (queue, tag) = (send.space.queue(), send.space.tag());
    Entry { send: key.0, queue, length: send.length as u64, tag, data: send.data }
}
