//! `FI_PEEK`, `FI_CLAIM`, `FI_DISCARD`: looking at unexpected messages, setting them aside, dropping them
//! (fi_tagged(3)).

use super::Endpoint;
use crate::completion::{Completion, Failure};
use crate::deferral::Inquiry;
use crate::envelope::Pattern;
use crate::link::Link;
use crate::matching::MatchQueue;
use crate::operation::{Context, MatchFlags, Queue, Receive, Target};

impl<L: Link> Endpoint<L> {
    /// A receive with one of the three flags.
    #[cold]
    pub(super) fn receive_by_flags(&mut self, receive: Receive<L::Buffer>, pattern: &Pattern, queue: Queue) {
        let flags = receive.flags;
        if flags.peek {
            return self.peek(pattern, queue, receive.context, flags);
        }
        let taken = match flags.claim {
            true => self.matching.of(queue).take_claimed(receive.context),
            false => self.matching.of(queue).take_unexpected(pattern),
        };
        let Some(unexpected) = taken else {
            return self.port.complete_unmatched(receive.context, receive.space, false, Failure::NoMessage);
        };
        if flags.discard {
            let envelope = unexpected.envelope;
            self.discard_stored(unexpected, queue);
            self.port.complete_peek(receive.context, &envelope, queue);
        } else {
            let active = MatchQueue::activate_now(receive.buffer, receive.context, receive.report);
            self.deliver_stored(active, unexpected, queue);
        }
    }

    /// Looks for a message among those stored, and then, by queries, among the sends whose envelopes we have dropped.
    fn peek(&mut self, pattern: &Pattern, queue: Queue, context: Context, flags: MatchFlags) {
        let number = self.matching.next_number();
        let (claim, discard) = (flags.claim, flags.discard);
        let inquiry = Inquiry { number, pattern: *pattern, queue, context, claim, discard };
        if let Some(at) = self.matching.of(queue).find_unexpected(pattern) {
            self.looks.end_probe();
            return self.find_stored(&inquiry, at);
        }
        self.looks.note_probe(queue, *pattern);
        if !self.windows.has_dropped() {
            self.port.complete_unmatched(context, queue.space(0), false, Failure::NoMessage);
        } else {
            self.windows.inquiries.push(inquiry);
            self.seek(pattern.from);
            self.review_inquiries();
        }
    }

    /// Ends the peeks that have their answers.
    #[cold]
    pub(super) fn review_inquiries(&mut self) {
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
                Some(at) => self.find_stored(&inquiry, at),
                None => self.complete_none(&inquiry),
            }
        }
        if self.fences.are_raised() {
            // A message to ourselves may have been dropped.
            self.release_fenced(Target::Myself);
        }
    }

    /// A peek has found nothing.
    fn complete_none(&mut self, inquiry: &Inquiry) {
        let Inquiry { context, queue, .. } = *inquiry;
        self.port.ended.push(Completion::unmatched(context, queue.space(0), false, Failure::NoMessage));
    }
}
