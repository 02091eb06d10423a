//! Posted buffers and pools of slots in the protocol; the rules are in `buffers` and `slots`.

use super::buffers::Arriving;
use super::protocol::Protocol;
use super::slots::{HOLDING_MOST, Holder, PROGRESSES_MOST};
use super::wire::{Receipt, packets, sent_packets};
use tidegate_flow::{Instant, PeerId, Posting, ReceiveQueues, SlotPool};
use tidegate_message::LinkEvent;

impl Protocol {
    /// Does what flow control wants done with posted buffers.
    pub fn post(&mut self, posting: Posting) {
        if let Some(queues) = &mut self.queues {
            queues.post(posting);
        }
    }

    /// Puts those packets of a batch's body into the mailbox that have buffers or slots, or all where none are posted.
    pub(super) fn deliver_from(&mut self, place: PeerId, generation: u16, body: &[u8], arriving: &mut Arriving) {
        let Some(mut queues) = self.queues.take() else {
            return self.deliver(packets(body, generation, place));
        };
        for mut packet in sent_packets(body) {
            let is_accepted = match queues.slots_mut() {
                Some(slots) => arriving.accept_slot(slots, place, packet.header),
                None => arriving.accept(&mut queues, place, packet.header),
            };
            if is_accepted {
                packet.header = packet.header.published(generation, place);
                self.deliver(std::iter::once(packet));
            }
        }
        if queues.poll_limit_reached() {
            // At once, not behind packets: the pool is to grow while they come.
            self.events.push_front((0, LinkEvent::LimitReached));
        }
        self.queues = Some(queues);
    }

    /// A peer has said what became of our messages, or packets.
    pub(super) fn handle_receipt(&mut self, place: PeerId, receipt: Receipt, now: Instant) {
        let timer = self.retry_timer;
        if let Some(speculating) = self.known(place).and_then(|peer| peer.speculating.as_mut()) {
            let answered = speculating.handle_receipt(receipt);
            if answered.is_refused {
                self.tell(LinkEvent::Refused(place));
            }
            if answered.may_send {
                self.queue(place);
            }
            return;
        }
        let Some(unaccepted) = self.known(place).and_then(|peer| peer.unaccepted.as_mut()) else { return };
        if let Some(until) = unaccepted.handle_receipt(receipt, now, timer) {
            self.refused.push_back((until, place));
            self.tell(LinkEvent::Refused(place));
        }
    }

    /// Those whose timer has run out stand in the queue again.
    pub(super) fn queue_refused(&mut self, now: Instant) {
        while let Some((_, place)) = self.refused.front().copied().filter(|(until, _)| *until <= now) {
            self.refused.pop_front();
            self.queue(place);
        }
    }

    /// Whether peers have been invited and not been told.
    #[inline]
    pub fn has_invitations(&self) -> bool {
        self.queues.as_ref().and_then(ReceiveQueues::slots).is_some_and(SlotPool::has_invitations)
    }

    /// Takes back slots that no sender uses, and tells the peers for which slots are kept now.
    pub(super) fn serve_slots(&mut self, now: Instant) {
        while let Some(idle) = self.idle_holder(now) {
            self.holder = None;
            self.slot_pool().and_then(SlotPool::revoke);
            if let Some(peer) = self.known(idle) {
                peer.arriving.revoke();
            }
        }
        while let Some((place, slots)) = self.slot_pool().and_then(SlotPool::poll_invitation) {
            let Some(peer) = self.known(place) else { continue };
            peer.arriving.invite(slots);
            peer.due.acknowledgement = Some(now);
            self.queue(place);
        }
    }

    /// The peer whose slots are to be taken back now.
    fn idle_holder(&mut self, now: Instant) -> Option<PeerId> {
        let slots = self.slot_pool()?;
        // Each transmission asks: while no sender waits, no holder is looked for.
        let first = if slots.may_revoke() { slots.first_holder() } else { None };
        let Some((place, expected)) = first.map(|place| (place, slots.expected(place))) else {
            self.holder = None;
            return None;
        };
        match self.holder {
            Some(holder) if (holder.place, holder.expected) == (place, expected) => {
                (holder.until <= now).then_some(place)
            }
            // It makes progress, though perhaps too little of it.
            Some(holder) if holder.place == place && holder.ends <= now => Some(place),
            before => {
                let most = self.known(place).map_or(HOLDING_MOST, |peer| peer.arriving.holding_most());
                let before = before.filter(|holder| holder.place == place);
                let ends = before.map_or(now + most * PROGRESSES_MOST, |holder| holder.ends);
                self.holder = Some(Holder { place, expected, until: (now + most).min(ends), ends });
                None
            }
        }
    }
}
