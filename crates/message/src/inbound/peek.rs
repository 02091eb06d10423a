//! `FI_PEEK`, `FI_CLAIM`, `FI_DISCARD`: looking at unexpected messages, setting them aside, dropping them
//! (fi_tagged(3)).

use super::Inbound;
use crate::completion::Failure;
use crate::deferral::Inquiry;
use crate::envelope::Pattern;
use crate::link::Link;
use crate::matching::MatchQueue;
use crate::operation::{MatchFlags, Queue, Receive, TryAgain};
use crate::port::Port;
use crate::pulls::Pulling;

impl<L: Link> Inbound<L> {
    /// A receive that claims or discards.
    #[cold]
    pub(super) fn receive_by_flags(
        &mut self,
        port: &mut Port<L>,
        pulls: &mut Pulling<L>,
        receive: Receive<L::Buffer>,
        pattern: &Pattern,
        queue: Queue,
    ) {
        let flags = receive.flags;
        let taken = match flags.claim {
            true => self.matching.of(queue).take_claimed(receive.context),
            false => self.matching.of(queue).take_unexpected(pattern),
        };
        let Some(unexpected) = taken else {
            return port.complete_unmatched(receive.context, receive.space, false, Failure::NoMessage);
        };
        if flags.discard {
            let envelope = unexpected.envelope;
            self.discard_stored(port, unexpected, queue);
            port.complete_peek(receive.context, &envelope, queue);
        } else {
            let active = MatchQueue::activate_now(receive.buffer, receive.context, receive.report);
            self.deliver_stored(port, pulls, active, unexpected, queue);
        }
    }

    /// Looks for a message among those stored, and then, by queries, among the sends whose envelopes we have dropped.
    /// Returns whether one is stored.
    pub(crate) fn peek(
        &mut self,
        port: &mut Port<L>,
        pattern: &Pattern,
        queue: Queue,
        receive: &Receive<L::Buffer>,
    ) -> Result<bool, TryAgain> {
        if self.windows.inquiries.is_full() {
            return Err(TryAgain);
        }
        let number = self.matching.next_number();
        let (context, MatchFlags { claim, discard, .. }) = (receive.context, receive.flags);
        let inquiry = Inquiry { number, pattern: *pattern, queue, context, claim, discard };
        if let Some(at) = self.matching.of(queue).find_unexpected(pattern) {
            self.find_stored(port, &inquiry, at);
            return Ok(true);
        }
        if !self.windows.has_dropped() && !self.windows.is_open(&inquiry) {
            self.complete_none(port, &inquiry);
        } else {
            port.egress.attention.raise();
            self.windows.inquiries.push(inquiry);
            self.seek(port, pattern.from);
            self.check_inquiries(port);
        }
        Ok(false)
    }

    /// Ends the peeks that have their answers.
    #[cold]
    pub(crate) fn check_inquiries(&mut self, port: &mut Port<L>) {
        for inquiry in self.windows.inquiries.all() {
            if !self.windows.inquiries.contains(inquiry.number) {
                continue;
            }
            let stored = self.matching.of(inquiry.queue).find_unexpected(&inquiry.pattern);
            if stored.is_none() && self.windows.is_open(&inquiry) {
                continue;
            }
            self.windows.inquiries.take(inquiry.number);
            match stored {
                Some(at) => self.find_stored(port, &inquiry, at),
                None => self.complete_none(port, &inquiry),
            }
        }
    }

    /// A peek has found nothing.
    fn complete_none(&mut self, port: &mut Port<L>, inquiry: &Inquiry) {
        let Inquiry { context, queue, .. } = *inquiry;
        port.complete_unmatched(context, queue.space(0), false, Failure::NoMessage);
    }
}
