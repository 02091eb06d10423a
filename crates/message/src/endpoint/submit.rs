//! Messages to send and receives to post: where the application comes in.

use super::Endpoint;
use crate::completion::Failure;
use crate::counter::Counter;
use crate::envelope::Pattern;
use crate::link::{Buffer, Link};
use crate::matching::MatchQueue;
use crate::memory::Memory;
use crate::operation::{Context, MatchFlags, MultiReceive, Queue, Receive, Send, Source, Space, Target, TryAgain};
use tidegate_flow::PeerId;

impl<L: Link> Endpoint<L> {
    /// Sends a message: eagerly up to the eager size, else by rendezvous.
    #[inline]
    pub fn send(&mut self, send: Send<L::Buffer>) -> Result<(), TryAgain> {
        self.check_room()?;
        let Target::Peer(to) = send.to else {
            self.send_to_myself(send);
            return Ok(());
        };
        let length = send.buffer.len();
        self.count(Counter::BytesSent, length as u64);
        match self.take_room(to, &send) || self.meet_with_room(to, &send) {
            true => self.send_eagerly(to, send),
            false => self.send_otherwise(to, send),
        }
        Ok(())
    }

    /// Takes room in the receiver's window for a message, if it may be sent eagerly.
    #[inline]
    fn take_room(&mut self, to: PeerId, send: &Send<L::Buffer>) -> bool {
        let length = send.buffer.len();
        !send.delivery
            && self.deferral.rooms.take_eagerly(to, length, send.inject, Memory::<L::Buffer>::eager_cost(length))
    }

    /// Learns the receiver's window before the first message to it, and then takes room as
    /// [`take_room`](Self::take_room).
    #[cold]
    fn meet_with_room(&mut self, to: PeerId, send: &Send<L::Buffer>) -> bool {
        if self.deferral.rooms.is_met(to) {
            return false;
        }
        self.meet(to);
        self.take_room(to, send)
    }

    /// A message that is too long for the mailbox, or finds no room.
    fn send_otherwise(&mut self, to: PeerId, send: Send<L::Buffer>) {
        match send.delivery || send.buffer.len() > self.deferral.rooms.limits(to).most(send.inject) {
            true => self.announce(to, send),
            false => self.defer_eager(to, send),
        }
    }

    /// Posts a receive, or peeks, claims, discards. It is not refused because sends wait: they may wait for this very
    /// receive. A peek is refused while 64 of them (`Inquiries::MOST`) wait for answers.
    #[inline]
    pub fn receive(&mut self, receive: Receive<L::Buffer>) -> Result<(), TryAgain> {
        if self.completions.len() >= self.config.operations {
            return Err(TryAgain);
        }
        let (queue, pattern) = match receive.space {
            Space::Tagged { tag, ignore } => (Queue::Tagged, Pattern { from: receive.from, tag, ignore }),
            Space::Untagged => (Queue::Untagged, Pattern { from: receive.from, tag: 0, ignore: u64::MAX }),
        };
        if receive.flags != MatchFlags::default() {
            if receive.flags.peek && self.deferral.windows.inquiries.is_full() {
                return Err(TryAgain);
            }
            self.receive_by_flags(receive, &pattern, queue);
            return Ok(());
        }
        if let Some(multi) = receive.multi {
            self.receive_many(receive, pattern, queue, multi);
            return Ok(());
        }
        if let Some(unexpected) = self.matching.of(queue).take_unexpected(&pattern) {
            let active = MatchQueue::activate_now(receive.buffer, receive.context, receive.report);
            self.deliver_stored(active, unexpected, queue);
        } else if let Some(peer) = self.dead_source(receive.from) {
            let failure = Failure::PeerLost { peer };
            self.complete_unmatched(receive.context, receive.space, false, failure);
        } else {
            let number = self.matching.next_number();
            self.matching.of(queue).post(number, pattern, receive.buffer, receive.context, receive.report);
            self.seek(receive.from);
        }
        Ok(())
    }

    /// Cancels the receive of this context, if it has not matched: it completes with [`Failure::Canceled`]. Returns
    /// whether.
    pub fn cancel(&mut self, context: Context) -> bool {
        self.cancel_named(context.0, |context| context.0)
    }

    /// Cancels the oldest receive that the application calls `name`, if one has not matched. `name_of` says what it
    /// calls the receive of a context: always the same, as long as the receive is there.
    pub fn cancel_named(&mut self, name: usize, name_of: impl Fn(Context) -> usize) -> bool {
        let inquiry = self.deferral.windows.inquiries.find_named(name, &name_of);
        if let Some((queue, canceled)) = self.matching.take_back_named(name, inquiry, &name_of) {
            self.complete_unmatched(canceled.context, queue.space(0), canceled.released, Failure::Canceled);
            return true;
        }
        let Some(inquiry) = inquiry.and_then(|number| self.deferral.windows.inquiries.take(number)) else {
            return false;
        };
        self.complete_unmatched(inquiry.context, inquiry.queue.space(0), false, Failure::Canceled);
        true
    }

    /// Posts a multi-receive buffer and fills it with what is stored already.
    fn receive_many(&mut self, receive: Receive<L::Buffer>, pattern: Pattern, queue: Queue, multi: MultiReceive) {
        let number = self.matching.next_number();
        let matching = self.matching.of(queue);
        let at = matching.post_multi(number, pattern, receive.buffer, receive.context, receive.report, multi);
        while let Some((active, unexpected)) = self.matching.of(queue).accept_stored(at) {
            self.deliver_stored(active, unexpected, queue);
        }
        if let Some(peer) = self.dead_source(receive.from)
            && let Some(left) = self.matching.of(queue).take_back(at)
        {
            self.complete_unmatched(left.context, receive.space, left.released, Failure::PeerLost { peer });
        }
        self.seek(receive.from);
    }

    /// The name of the one peer that a receive accepts, if that peer died.
    fn dead_source(&self, from: Source) -> Option<String> {
        let Source::From(Target::Peer(peer)) = from else { return None };
        let lost = self.presence.lost(peer)?;
        (!lost.orderly).then(|| lost.name.clone())
    }
}
