//! Messages of an endpoint to itself: no packets, no slots, no credits.

use super::Inbound;
use crate::counter::Counter;
use crate::egress::copy_of;
use crate::envelope::Envelope;
use crate::link::{Buffer, Link, copy};
use crate::matching::{Active, Matched, Stored};
use crate::memory::Memory;
use crate::operation::{Queue, Send, Target};
use crate::payload::Payload;
use crate::port::Port;

impl<L: Link> Inbound<L> {
    /// Delivers a message, or keeps it for its receive: a short one copied as long as our own window has room, others
    /// in their buffer, and one that is to complete with its receive in any case.
    #[cold]
    pub(crate) fn send_to_myself(&mut self, port: &mut Port<L>, send: Send<L::Buffer>) {
        port.count(Counter::MessagesSelf, 1);
        let (queue, tag) = (send.space.queue(), send.space.tag());
        let envelope = Envelope { source: Target::Myself, tag, data: send.data, length: send.buffer.len() };
        if let Some(active) = self.matching.of(queue).accept(&envelope) {
            self.deliver_own(port, active, &envelope, queue, &send.buffer);
            port.complete_own(send.context, send.report, &envelope, queue);
            return;
        }
        let cost = Memory::<L::Buffer>::eager_cost(envelope.length);
        let short = envelope.length <= port.config.eager_bytes && self.windows.has_own_room(cost);
        if !send.delivery && (send.inject || short) {
            let bytes = copy_of(&send.buffer).into_vec();
            self.windows.enter_own(cost);
            self.store_unexpected(port, envelope, Stored::Here(Payload::Bytes(bytes)), queue, cost);
            port.complete_own(send.context, send.report, &envelope, queue);
        } else {
            let buffer = if send.inject { send.buffer.copied() } else { send.buffer };
            let stored = Stored::Own { buffer, context: send.context, report: send.report };
            self.matching.own_kept += 1;
            self.store_unexpected(port, envelope, stored, queue, 0);
        }
    }

    /// Copies a message of our own into its receive.
    pub(super) fn deliver_own(
        &mut self,
        port: &mut Port<L>,
        mut active: Active<L::Buffer>,
        envelope: &Envelope,
        queue: Queue,
        from: &L::Buffer,
    ) {
        let length = envelope.length.min(active.buffer.len());
        copy(from, 0, &mut active.buffer, 0, length);
        self.complete_receive(port, Matched { active, envelope: *envelope, queue });
    }
}
