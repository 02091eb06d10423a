//! Messages of an endpoint to itself: no packets, no slots, no credits.

use crate::counter::Counter;
use crate::eager::space_of;
use crate::endpoint::Endpoint;
use crate::link::{Buffer, Link};
use crate::matching::{Active, Envelope, Stored};
use crate::operation::{Context, Send, Space, Target};
use crate::transmit::{Notice, copy_of, sent};

impl<L: Link> Endpoint<L> {
    /// Delivers a message, or keeps it for its receive: a short one copied as long as our own window has room, others in their
    /// buffer.
    #[cold]
    pub(crate) fn send_to_myself(&mut self, send: Send<L::Buffer>) {
        self.count(Counter::MessagesSelf, 1);
        let (tagged, tag) = match send.space {
            Space::Tagged { tag, .. } => (true, tag),
            Space::Untagged => (false, 0),
        };
        let envelope = Envelope { source: Target::Myself, tag, data: send.data, length: send.buffer.len() };
        if let Some(active) = self.matching(tagged).accept(&envelope) {
            self.deliver_own(active, &envelope, tagged, &send.buffer);
            self.complete_own(send.context, send.report, &envelope, tagged);
            return;
        }
        let cost = Self::eager_cost(envelope.length);
        let short = envelope.length <= self.config.eager_bytes && self.own_stored + cost <= self.limits.window;
        if send.inject || (short && !send.delivery) {
            let bytes = copy_of(&send.buffer).into_vec();
            self.own_stored += cost;
            self.store_unexpected(envelope, Stored::Here(bytes), tagged, cost);
            self.complete_own(send.context, send.report, &envelope, tagged);
        } else {
            let stored = Stored::Own { buffer: send.buffer, context: send.context, report: send.report };
            self.store_unexpected(envelope, stored, tagged, 0);
        }
    }

    /// Copies a message of our own into its receive.
    pub(crate) fn deliver_own(
        &mut self,
        mut active: Active<L::Buffer>,
        envelope: &Envelope,
        tagged: bool,
        from: &L::Buffer,
    ) {
        let length = envelope.length.min(active.buffer.len());
        copy(from, 0, &mut active.buffer, 0, length);
        self.complete_receive(active, envelope, tagged);
    }

    /// The send half of a message of our own is complete.
    pub(crate) fn complete_own(&mut self, context: Context, report: bool, envelope: &Envelope, tagged: bool) {
        if report {
            let space = space_of(tagged, envelope.tag);
            let notice = Notice { context, space, length: envelope.length, report };
            self.completions.push_back(sent(notice, Ok(())));
        }
    }
}

/// Copies between two buffers of this process.
pub(crate) fn copy<B: Buffer>(from: &B, from_offset: usize, to: &mut B, to_offset: usize, length: usize) {
    let mut chunk = [0; 4096];
    let mut done = 0;
    while done < length {
        let part = &mut chunk[..(length - done).min(4096)];
        from.read(from_offset + done, part);
        to.write(to_offset + done, part);
        done += part.len();
    }
}
