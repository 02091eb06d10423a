//! Eager messages (P §3): sent at once through the mailbox, matched when their first packet arrives, stored at exactly
//! their size when no receive waits for them.

use super::Endpoint;
use super::ending::placed;
use crate::assembly::{Sink, write_clipped};
use crate::completion::Completion;
use crate::counter::Counter;
use crate::egress::{Outgoing, Step};
use crate::envelope::Envelope;
use crate::link::{Buffer, Link};
use crate::malformed::Malformed;
use crate::matching::Stored;
use crate::memory::Memory;
use crate::operation::{Queue, Send, Target, TryAgain};
use crate::payload::Payload;
use crate::wire::{Eager, LARGEST_EAGER_BYTES};
use tidegate_flow::PeerId;

impl<L: Link> Endpoint<L> {
    /// Sends a message through the mailbox. A short one leaves straight from here nearly always, and is looked at where
    /// it is: to move its description would cost as much as all else. What is not sent
    /// [goes on](Self::go_on_eagerly).
    #[inline(always)]
    pub(super) fn begin_eagerly(&mut self, to: PeerId, send: &Send<L::Buffer>) -> Option<Step> {
        self.send_short(to, send)
    }

    /// An eager message is not short, or has not left because of this.
    #[inline(never)]
    pub(super) fn go_on_eagerly(
        &mut self,
        to: PeerId,
        send: Send<L::Buffer>,
        step: Option<Step>,
    ) -> Result<(), TryAgain> {
        if send.inject && self.must_hold(to, &send, step.as_ref()) {
            let cost = Memory::<L::Buffer>::eager_cost(send.buffer.len());
            self.deferral.rooms.put_back(to, cost);
            return Err(TryAgain);
        }
        self.leave_eagerly(to, send, step);
        Ok(())
    }

    /// The same for a message that waits here if it has to.
    #[inline(always)]
    pub(super) fn leave_eagerly(&mut self, to: PeerId, send: Send<L::Buffer>, step: Option<Step>) {
        self.count_eager(&send);
        let inject = send.inject;
        let message = Outgoing::eager(send);
        let left = match step {
            Some(step) => self.end_step(to, step, message, inject),
            None => self.dispatch_unless_announced(to, message, inject),
        };
        if let Some(message) = left {
            self.announce_instead(to, message, inject);
        }
    }

    /// An eager message leaves, or waits to leave.
    #[inline(always)]
    pub(super) fn count_eager(&self, send: &Send<L::Buffer>) {
        self.count(Counter::BytesSent, send.buffer.len() as u64);
        self.count(Counter::MessagesEager, 1);
    }

    /// Whether an injected message is refused, because it would wait here (`egress/holding.rs`).
    #[cold]
    fn must_hold(&mut self, to: PeerId, send: &Send<L::Buffer>, step: Option<&Step>) -> bool {
        let is_stuck = match step {
            Some(step) => matches!(step, Step::NoCredits | Step::Full | Step::Announce),
            None if self.presence.lost(to).is_some() => false,
            None if !self.egress.is_idle(to) => true,
            None => !self.egress.has_credits_for(to, Outgoing::eager_packets(send), self.now),
        };
        is_stuck && self.egress.hold(to, self.config.patience, self.now)
    }

    /// The first packet of an eager message, or all of it.
    #[inline]
    pub(super) fn begin_eager(
        &mut self,
        from: PeerId,
        head: Eager,
        length: usize,
        rest: &[u8],
    ) -> Result<(), Malformed> {
        let queue = head.queue;
        if length > LARGEST_EAGER_BYTES {
            return Err(Malformed);
        }
        let cost = Memory::<L::Buffer>::eager_cost(length);
        self.check_window(from, cost)?;
        if head.was_dropped {
            self.deferral.windows.remember(from)?;
        }
        let envelope = Envelope { source: Target::Peer(from), tag: head.tag, data: head.data, length };
        let whole = rest.len() == length;
        if whole && self.fill_first(&envelope, rest, queue) {
            self.pass_window(from, cost);
            return Ok(());
        }
        match self.matching.of(queue).accept(&envelope) {
            Some(mut active) => {
                write_clipped(&mut active.buffer, 0, rest);
                if whole {
                    self.complete_receive(active, &envelope, queue);
                } else {
                    let sink = Sink::Receive(active, envelope, queue);
                    self.begin_assembly(from, sink, length, rest.len());
                }
                self.pass_window(from, cost);
            }
            None => {
                let mut payload = Payload::Zeros(0);
                payload.append(rest, length);
                let at = self.store_unexpected(envelope, Stored::Here(payload), queue, cost);
                if !whole {
                    let sink = Sink::Store(at, queue);
                    self.begin_assembly(from, sink, length, rest.len());
                }
                self.enter_window(from, cost);
            }
        }
        Ok(())
    }

    /// Delivers a message that has come whole to the first posted receive, if that accepts it.
    #[inline(always)]
    fn fill_first(&mut self, envelope: &Envelope, payload: &[u8], queue: Queue) -> bool {
        let Some((room, context, report)) = self.matching.of(queue).fill_first(envelope, payload) else { return false };
        self.count(Counter::BytesReceived, envelope.length as u64);
        let (length, result) = placed(envelope, room);
        if report || result.is_err() {
            self.ended.push(Completion { length, result, ..Completion::met(context, queue, envelope) });
        }
        true
    }
}
