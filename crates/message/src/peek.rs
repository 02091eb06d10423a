//! `FI_PEEK`, `FI_CLAIM`, `FI_DISCARD`: looking at unexpected messages, setting them aside, dropping them (fi_tagged(3)).

use crate::ask::Inquiry;
use crate::completion::{Completion, Failure, Operation};
use crate::eager::space_of;
use crate::endpoint::Endpoint;
use crate::link::Link;
use crate::list::Position;
use crate::matching::{Envelope, Matching, Pattern};
use crate::operation::{Context, MatchFlags, Receive};

/// Peeks that may wait for answers at a time: each call of `progress` looks at all of them.
pub(crate) const PEEKS_MOST: usize = 64;

impl<L: Link> Endpoint<L> {
    /// A receive with one of the three flags.
    #[cold]
    pub(crate) fn receive_by_flags(&mut self, receive: Receive<L::Buffer>, pattern: &Pattern, tagged: bool) {
        let flags = receive.flags;
        if flags.peek {
            return self.peek(pattern, tagged, receive.context, flags);
        }
        let taken = match flags.claim {
            true => self.matching(tagged).take_claimed(receive.context),
            false => self.matching(tagged).take_unexpected(pattern),
        };
        let Some(unexpected) = taken else {
            return self.complete_unmatched(receive.context, receive.space, false, Failure::NoMessage);
        };
        if flags.discard {
            let envelope = unexpected.envelope;
            self.discard_stored(unexpected, tagged);
            self.complete_peek(receive.context, &envelope, tagged);
        } else {
            let active = Matching::activate_now(receive.buffer, receive.context, receive.report);
            self.deliver_stored(active, unexpected, tagged);
        }
    }

    /// Looks for a message, among those stored and then among those that we have forgotten.
    fn peek(&mut self, pattern: &Pattern, tagged: bool, context: Context, flags: MatchFlags) {
        let number = self.next_number();
        let (claim, discard) = (flags.claim, flags.discard);
        let inquiry = Inquiry { number, pattern: *pattern, tagged, context, claim, discard };
        if let Some(at) = self.matching(tagged).find_unexpected(pattern) {
            self.find_stored(&inquiry, at);
        } else if self.forgetful.is_empty() {
            self.complete_unmatched(context, space_of(tagged, 0), false, Failure::NoMessage);
        } else {
            self.inquiries.push(inquiry);
            self.seek(pattern.from);
            self.review_inquiries();
        }
    }

    /// Ends a peek with the stored message at `at`, the first that it accepts.
    pub(crate) fn find_stored(&mut self, inquiry: &Inquiry, at: Position) {
        let tagged = inquiry.tagged;
        let Some(found) = self.matching(tagged).stored_mut(at) else { return };
        let envelope = found.envelope;
        if inquiry.claim && !inquiry.discard {
            self.matching(tagged).claim(at, inquiry.context);
        }
        self.complete_peek(inquiry.context, &envelope, tagged);
        if inquiry.discard
            && let Some(unexpected) = self.matching(tagged).take_at(at)
        {
            self.discard_stored(unexpected, tagged);
        }
    }

    pub(crate) fn complete_peek(&mut self, context: Context, envelope: &Envelope, tagged: bool) {
        self.completions.push_back(Completion {
            context,
            operation: Operation::Receive,
            space: space_of(tagged, envelope.tag),
            length: envelope.length,
            offset: 0,
            data: envelope.data,
            source: Some(envelope.source),
            released: false,
            result: Ok(()),
        });
    }
}
