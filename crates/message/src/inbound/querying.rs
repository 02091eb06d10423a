//! Sends of peers that found no room here: what follows from deferral notices, offers, and answers to queries.

use super::Inbound;
use crate::assembly::write_clipped;
use crate::completion::Completion;
use crate::counter::Counter;
use crate::envelope::{Envelope, Number};
use crate::link::Link;
use crate::malformed::{Handled, Malformed};
use crate::matching::{Matched, RemoteSend, Stored, Unexpected};
use crate::operation::{Queue, Target};
use crate::port::Port;
use crate::pulls::Pulling;
use crate::pulls::Waited;
use crate::wire::Status;
use crate::wire::{Accept, Acknowledged, Decline, DeferralCount, Entry, MessageKind, Offer};
use tidegate_flow::PeerId;

impl<L: Link> Inbound<L> {
    /// A peer shows its deferred sends.
    pub(crate) fn handle_deferral_notice(
        &mut self,
        port: &mut Port<L>,
        pulls: &mut Pulling<L>,
        from: PeerId,
        body: &[u8],
    ) -> Handled {
        let count = body.len() / Entry::BYTES;
        // A peer that sends a batch before our `Acknowledged` for the last one has left breaks the protocol.
        let is_acknowledged = !port.egress.waits(from, &[MessageKind::Acknowledged]);
        let most = port.limits_of(from).control.batch();
        if !self.windows.has_session(from) {
            return Err(Malformed);
        }
        if !is_acknowledged || !(1..=most).contains(&count) || !body.len().is_multiple_of(Entry::BYTES) {
            return Err(Malformed);
        }
        let mut passed = 0;
        for entry in body.chunks_exact(Entry::BYTES) {
            let Entry { send, queue, length, tag, data } = Entry::parse(entry).ok_or(Malformed)?;
            let length = usize::try_from(length).map_err(|_| Malformed)?;
            let envelope = Envelope { source: Target::Peer(from), tag, data, length };
            let until = self.windows.until(from, queue);
            match self.matching.of(queue).accept_until(&envelope, until) {
                Some(active) => {
                    self.pull_deferred(port, pulls, from, send, Matched { active, envelope, queue });
                    passed += 1;
                }
                None => {
                    port.count(Counter::EnvelopesDropped, 1);
                    let tag = (queue == Queue::Tagged).then_some(tag);
                    let latest = self.windows.compared_by_now(self.matching.last_number());
                    self.windows.drop_envelope(from, tag, latest);
                }
            }
        }
        self.step(from, passed);
        port.tell(from, Acknowledged);
        if self.windows.grow(from) {
            self.tell_link(port, from);
        }
        self.update_window(port, from);
        Ok(())
    }

    /// A peer has more deferred sends, and does not show them (S6).
    pub(crate) fn handle_deferral_count(&mut self, port: &mut Port<L>, from: PeerId, count: DeferralCount) -> Handled {
        let is_acknowledged = !port.egress.waits(from, &[MessageKind::Acknowledged]);
        if !is_acknowledged || count.sends == 0 || self.windows.sessions().is_none() {
            return Err(Malformed);
        }
        self.windows.drop_unseen(from, count.sends)?;
        port.count(Counter::EnvelopesDropped, count.sends.into());
        port.tell(from, Acknowledged);
        self.update_window(port, from);
        Ok(())
    }

    /// Pulls a deferred send for a receive.
    fn pull_deferred(
        &mut self,
        port: &mut Port<L>,
        pulls: &mut Pulling<L>,
        from: PeerId,
        send: u32,
        matched: Matched<L::Buffer>,
    ) {
        pulls.start(port, self, matched, RemoteSend::of_deferred(from, send), Waited::Message);
    }

    /// A sender's offer for our query, with its payload if that is short: it goes to the first receive that accepts it,
    /// among those for which queries were made so far.
    pub(crate) fn handle_offer(
        &mut self,
        port: &mut Port<L>,
        pulls: &mut Pulling<L>,
        from: PeerId,
        offer: &Offer,
        payload: &[u8],
    ) -> Handled {
        let &Offer { queue, tag, data, send, length } = offer;
        let length = usize::try_from(length).map_err(|_| Malformed)?;
        let envelope = Envelope { source: Target::Peer(from), tag, data, length };
        let answered = self.windows.take_offer(from, queue, self.has_asked(port, from))?;
        let accepted = self.matching.of(queue).accept_until(&envelope, Some(answered.until));
        self.step(from, accepted.is_some().into());
        let takes_more = accepted.as_ref().is_some_and(|active| active.is_of_several());
        match accepted {
            Some(mut active) if payload.len() == length => {
                write_clipped(&mut active.buffer, 0, payload);
                self.complete_receive(port, Matched { active, envelope, queue });
                port.tell(from, RemoteSend::of_deferred(from, send).finished(Status::Success));
                self.windows.remember(from)?;
            }
            Some(active) => {
                self.pull_deferred(port, pulls, from, send, Matched { active, envelope, queue });
                self.windows.remember(from)?;
            }
            None => {
                self.windows.close_query(from, queue, answered.number);
                self.offer_to_inquiry(port, answered.number, RemoteSend::of_deferred(from, send), envelope, queue)?;
            }
        }
        if takes_more {
            self.end_at_multi(from, queue, answered.number);
        }
        self.update_window(port, from);
        Ok(())
    }

    /// A receive for several messages has got the answer to a query of this number. If the receive of that is still
    /// posted, the next answer could be for it again, and so on.
    fn end_at_multi(&mut self, from: PeerId, queue: Queue, number: Number) {
        let Some(limited) = self.windows.sessions_mut().filter(|sessions| sessions.limit(from, queue).is_some()) else {
            return;
        };
        let next = self.matching.of(queue).first_from(Target::Peer(from), Number(number.0 - 1));
        if next.is_some_and(|(next, _)| next == number) {
            limited.end_at_multi(from, queue, number);
        }
    }

    /// Whether the query that is open, if one is, has left: then it may be answered.
    fn has_asked(&self, port: &Port<L>, peer: PeerId) -> bool {
        !port.egress.waits(peer, &[MessageKind::QueryTagged, MessageKind::QueryUntagged])
    }

    /// No receive accepts an offered send: a peek may have found it.
    fn offer_to_inquiry(
        &mut self,
        port: &mut Port<L>,
        number: Number,
        remote: RemoteSend,
        envelope: Envelope,
        queue: Queue,
    ) -> Handled {
        let (from, send) = (remote.peer, remote.id);
        let found = self.windows.inquiries.take_of(number, queue);
        let found = found.filter(|inquiry| inquiry.pattern.accepts(envelope.source, envelope.tag));
        let Some(inquiry) = found else {
            port.tell(from, Decline { send });
            return Ok(());
        };
        if let Some(at) = self.matching.of(queue).find_unexpected(&inquiry.pattern) {
            // It left its sender before the query came there, and is older than what was offered.
            self.find_stored(port, &inquiry, at);
            port.tell(from, Decline { send });
            return Ok(());
        }
        port.ended.push(Completion::met(inquiry.context, queue, &envelope));
        if inquiry.discard {
            self.windows.remember(from)?;
            port.tell(remote.peer, remote.finished(Status::Success));
        } else if inquiry.claim {
            // What its program has claimed is the program's, as a posted receive is: it counts for no window.
            self.windows.remember(from)?;
            port.tell(from, Accept { send });
            let stored = Stored::Remote(remote);
            self.matching.of(queue).store(Unexpected { envelope, stored, claimed: Some(inquiry.context), cost: 0 });
        } else {
            port.tell(from, Decline { send });
        }
        Ok(())
    }

    /// A sender has no match for our query.
    pub(crate) fn handle_no_match(&mut self, port: &mut Port<L>, from: PeerId) -> Handled {
        self.windows.take_no_match(from, self.has_asked(port, from))?;
        self.step(from, 0);
        self.update_window(port, from);
        Ok(())
    }
}
