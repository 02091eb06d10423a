//! `FI_PEEK`, `FI_CLAIM`, `FI_DISCARD`: looking at unexpected messages, setting them aside, dropping them (fi_tagged(3)).

use crate::completion::{Completion, Failure, Operation};
use crate::eager::space_of;
use crate::endpoint::Endpoint;
use crate::link::Link;
use crate::matching::{Envelope, Matching, Pattern};
use crate::operation::{Context, Receive};

impl<L: Link> Endpoint<L> {
    /// A receive with one of the three flags.
    #[cold]
    pub(crate) fn receive_by_flags(&mut self, receive: Receive<L::Buffer>, pattern: &Pattern, tagged: bool) {
        let flags = receive.flags;
        let missing = |endpoint: &mut Self| {
            endpoint.complete_unmatched(receive.context, receive.space, false, Failure::NoMessage);
        };
        if flags.peek {
            let Some(at) = self.matching(tagged).find_unexpected(pattern) else { return missing(self) };
            let found = self.matching(tagged).stored_mut(at).expect("a position that was just found");
            let envelope = found.envelope;
            if flags.claim && !flags.discard {
                found.claimed = Some(receive.context);
            }
            self.complete_peek(receive.context, &envelope, tagged);
            if flags.discard
                && let Some(unexpected) = self.matching(tagged).take_at(at)
            {
                self.discard_stored(unexpected, tagged);
            }
            return;
        }
        let taken = match flags.claim {
            true => self.matching(tagged).take_claimed(receive.context),
            false => self.matching(tagged).take_unexpected(pattern),
        };
        let Some(unexpected) = taken else { return missing(self) };
        if flags.discard {
            let envelope = unexpected.envelope;
            self.discard_stored(unexpected, tagged);
            self.complete_peek(receive.context, &envelope, tagged);
        } else {
            let active = Matching::activate_now(receive.buffer, receive.context, receive.report);
            self.deliver_stored(active, unexpected, tagged);
        }
    }

    fn complete_peek(&mut self, context: Context, envelope: &Envelope, tagged: bool) {
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
