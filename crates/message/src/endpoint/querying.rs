//! Sends of peers that found no room here: what follows from deferral notices, offers, and answers to queries.

use super::Endpoint;
use crate::assembly::write_clipped;
use crate::bulk::Waited;
use crate::completion::Completion;
use crate::counter::Counter;
use crate::envelope::{Envelope, Number};
use crate::link::Link;
use crate::malformed::Malformed;
use crate::matching::{Active, RemoteSend, Stored, Unexpected};
use crate::operation::{Queue, Target};
use crate::wire::{Accept, Acknowledged, BATCH_MOST, Decline, Entry, MessageKind, Offer};
use tidegate_flow::PeerId;

impl<L: Link> Endpoint<L> {
    /// A peer shows its deferred sends.
    pub(super) fn handle_deferral_notice(&mut self, from: PeerId, body: &[u8]) -> Result<(), Malformed> {
        let count = body.len() / Entry::BYTES;
        // A peer that sends a batch before our `Acknowledged` for the last one has left breaks the protocol.
        let is_acknowledged = !self.port.egress.waits(from, &[MessageKind::Acknowledged]);
        if !is_acknowledged || !(1..=BATCH_MOST).contains(&count) || !body.len().is_multiple_of(Entry::BYTES) {
            return Err(Malformed);
        }
        for entry in body.chunks_exact(Entry::BYTES) {
            let Entry { send, queue, length, tag, data } = Entry::parse(entry).ok_or(Malformed)?;
            let length = usize::try_from(length).map_err(|_| Malformed)?;
            let envelope = Envelope { source: Target::Peer(from), tag, data, length };
            let until = self.windows.until(from);
            match self.matching.of(queue).accept_until(&envelope, until) {
                Some(active) => self.pull_deferred(from, send, active, envelope, queue),
                None => {
                    self.port.count(Counter::EnvelopesDropped, 1);
                    let tag = (queue == Queue::Tagged).then_some(tag);
                    self.windows.drop_envelope(from, tag, self.matching.last_number());
                }
            }
        }
        self.port.tell(from, Acknowledged);
        if self.windows.grow(from) {
            self.tell_link(from);
        }
        self.review(from);
        Ok(())
    }

    /// Pulls a deferred send for a receive.
    fn pull_deferred(&mut self, from: PeerId, send: u32, active: Active<L::Buffer>, envelope: Envelope, queue: Queue) {
        self.start_pull(active, envelope, RemoteSend::of_deferred(from, send), queue, Waited::Message);
    }

    /// A sender's offer for our query, with its payload if that is short: it goes to the first receive that accepts it,
    /// among those for which queries were made so far.
    pub(super) fn handle_offer(&mut self, from: PeerId, offer: &Offer, payload: &[u8]) -> Result<(), Malformed> {
        let &Offer { queue, tag, data, send, length } = offer;
        let length = usize::try_from(length).map_err(|_| Malformed)?;
        let envelope = Envelope { source: Target::Peer(from), tag, data, length };
        let answered = self.windows.take_offer(from, self.has_asked(from))?;
        match self.matching.of(queue).accept_until(&envelope, Some(answered.until)) {
            Some(mut active) if payload.len() == length => {
                write_clipped(&mut active.buffer, 0, payload);
                self.complete_receive(active, &envelope, queue);
                self.finish_announced(&RemoteSend::of_deferred(from, send));
                self.windows.remember(from)?;
            }
            Some(active) => {
                self.pull_deferred(from, send, active, envelope, queue);
                self.windows.remember(from)?;
            }
            None => {
                self.windows.close_query(from, answered.number);
                self.offer_to_inquiry(from, answered.number, send, envelope, queue)?;
            }
        }
        self.review(from);
        Ok(())
    }

    /// Whether the query that is open, if one is, has left: then it may be answered.
    fn has_asked(&self, peer: PeerId) -> bool {
        !self.port.egress.waits(peer, &[MessageKind::QueryTagged, MessageKind::QueryUntagged])
    }

    /// No receive accepts an offered send: a peek may have found it.
    fn offer_to_inquiry(
        &mut self,
        from: PeerId,
        number: Number,
        send: u32,
        envelope: Envelope,
        queue: Queue,
    ) -> Result<(), Malformed> {
        let found = self.windows.inquiries.take_of(number, queue);
        let found = found.filter(|inquiry| inquiry.pattern.accepts(envelope.source, envelope.tag));
        let Some(inquiry) = found else {
            self.port.tell(from, Decline { send });
            return Ok(());
        };
        if let Some(at) = self.matching.of(queue).find_unexpected(&inquiry.pattern) {
            // It left its sender before the query came there, and is older than what was offered.
            self.find_stored(&inquiry, at);
            self.port.tell(from, Decline { send });
            return Ok(());
        }
        self.port.ended.push(Completion::met(inquiry.context, queue, &envelope));
        let remote = RemoteSend::of_deferred(from, send);
        if inquiry.discard {
            self.windows.remember(from)?;
            self.finish_announced(&remote);
        } else if inquiry.claim {
            // What its program has claimed is the program's, as a posted receive is: it counts for no window.
            self.windows.remember(from)?;
            self.port.tell(from, Accept { send });
            let stored = Stored::Remote(remote);
            self.matching.of(queue).store(Unexpected { envelope, stored, claimed: Some(inquiry.context), cost: 0 });
        } else {
            self.port.tell(from, Decline { send });
        }
        Ok(())
    }

    /// A sender has no match for our query.
    pub(super) fn handle_no_match(&mut self, from: PeerId) -> Result<(), Malformed> {
        self.windows.take_no_match(from, self.has_asked(from))?;
        self.review(from);
        Ok(())
    }
}
