//! What a batch does that has come.

use super::admission;
use super::greeting::{self, Greeting};
use super::peer::Phase;
use super::protocol::Protocol;
use super::stream::{Marks, Taken};
use super::wire::{Batch, Header, Kind, Load, Malformed};
use crate::log::{self, Level};
use std::mem;
use std::time::Duration;
use tidegate_flow::{Instant, PeerId};
use tidegate_message::LinkEvent;

/// How long an acknowledgement waits for something that carries it, unless the sender may be waiting.
const ACKNOWLEDGEMENT_DELAY: Duration = Duration::from_micros(50);

impl Protocol {
    /// Whether a newcomer finds no place.
    pub fn is_full(&self) -> bool {
        self.free.is_empty() && self.places.len() as u32 >= self.places_open
    }

    /// Takes what has come; anything may stand in `bytes`.
    pub fn handle_batch(&mut self, bytes: &[u8], now: Instant) {
        match Batch::parse(bytes) {
            Ok(batch) if batch.header.to == self.own.contact.id() => {
                self.counts.received += 1;
                self.handle(&batch, now);
            }
            Ok(batch) => self.handle_mistaken(&batch, now),
            Err(Malformed) => self.counts.dropped += 1,
        }
    }

    fn handle(&mut self, batch: &Batch, now: Instant) {
        let Header { kind, from, sequence, acknowledged, receipt, .. } = batch.header;
        let Some(place) = self.by_id.get(&from).copied() else { return self.handle_stranger(batch, now) };
        let own = self.own.contact;
        let Some(peer) = self.known(place) else { return };
        if batch.header.has_proof() && !admission::is_proven(batch, &own, peer.contact.secret.as_ref()) {
            return self.counts.dropped += 1;
        }
        if kind == Kind::Absent {
            return self.handle_absent(
                place,
                "another process has its network address now: its process has ended",
                now,
            );
        }
        peer.probe.handle_heard(now);
        let was_asked = peer.watch.handle_heard();
        let was_in_trouble = peer.trouble.take().is_some() || was_asked;
        // Batches that come late know less of what we sent than those that came before them.
        let is_outdated = acknowledged < peer.outbox.first();
        match peer.outbox.handle_acknowledgement(acknowledged) {
            Some(true) => self.queue(place),
            Some(false) => {}
            // Those who have ended may acknowledge what we keep no more.
            None if peer.phase == Phase::Ended => {}
            None => return self.counts.dropped += 1,
        }
        if !is_outdated {
            self.handle_receipt(place, receipt, now);
        }
        if was_in_trouble {
            self.reachability.stop(place);
            self.hurry(place);
        }
        match kind {
            Kind::Hello | Kind::Welcome | Kind::Refusal => self.handle_greeting(place, batch, now),
            Kind::Packets | Kind::Loaded => self.handle_packets(place, batch, now),
            Kind::Acknowledgement | Kind::Absent => {}
            Kind::Ping => self.handle_ping(place, sequence),
            Kind::Answer => self.handle_answer(place, sequence),
            Kind::Severed => self.end(place, false, "it does not hear this process any more"),
        }
    }

    /// An endpoint that has no place here, and knows our id. Whether it knows our secret too is looked at before
    /// anything else.
    fn handle_stranger(&mut self, batch: &Batch, now: Instant) {
        let Header { kind, from, .. } = batch.header;
        let former = self.former.find(from);
        let secret = former.flatten().or(self.own.contact.secret);
        let is_proven =
            batch.header.has_proof() && admission::is_proven(batch, &self.own.contact, former.flatten().as_ref());
        let greeting = Greeting::parse(from, batch.body()).filter(|_| kind == Kind::Hello && is_proven);
        if let (Some(greeting), None) = (&greeting, former)
            && let Some(place) = self.admit(&greeting.contact)
        {
            return self.handle_greeting(place, batch, now);
        }
        self.counts.dropped += 1;
        // Soon there are more places: it says hello again.
        if greeting.is_some() && former.is_none() && self.may_open_places() {
            return;
        }
        let to = match kind {
            Kind::Hello => greeting.map(|greeting| greeting.contact.lower),
            Kind::Ping => greeting::return_address(batch.body()),
            _ => None,
        };
        let (Some(to), Some(secret)) = (to, secret) else { return };
        // It counts as lost, or there is no place for it: untold, it would wait for ever. Who asks and proves nothing
        // may be a peer of old, of which we know nothing more.
        let kind = if is_proven { Kind::Severed } else { Kind::Absent };
        let mut answer = greeting::batch_from(self.own.contact.id(), from, kind, 0);
        if is_proven {
            admission::seal(&mut answer, &secret);
        }
        self.notices.answer((from, to), answer, now);
    }

    /// A batch for another endpoint than ours, which may have had our port before: who still asks for it is told that
    /// it is not here: no other process can say so.
    fn handle_mistaken(&mut self, batch: &Batch, now: Instant) {
        self.counts.dropped += 1;
        let Header { kind, from, to, .. } = batch.header;
        let lower = match kind {
            Kind::Hello => Greeting::parse(from, batch.body()).map(|greeting| greeting.contact.lower),
            Kind::Ping => greeting::return_address(batch.body()),
            _ => None,
        };
        let Some(lower) = lower else { return };
        if from == self.own.contact.id() {
            // A batch of our own has come back: by the network, or from a process that has got hold of it.
            if let Some(place) = self.by_id.get(&to).copied() {
                self.handle_absent(place, "what is sent to its address comes to this process itself", now);
            }
            return;
        }
        self.notices.answer((from, lower), greeting::batch_from(to, from, Kind::Absent, 0), now);
    }

    /// Some process says that a peer is not at its address, which may be true.
    fn handle_absent(&mut self, place: PeerId, why: &str, now: Instant) {
        if self.known(place).is_some_and(|peer| peer.phase != Phase::Ended && peer.probe.handle_absent(now)) {
            self.end(place, false, why);
        }
    }

    fn handle_greeting(&mut self, place: PeerId, batch: &Batch, now: Instant) {
        let Some(theirs) = Greeting::parse(batch.header.from, batch.body()) else { return self.counts.dropped += 1 };
        let disagreement = self.own.disagreement(&theirs);
        let is_closing = self.is_closing;
        let Some(peer) = self.known(place) else { return };
        peer.greeting = Some(theirs);
        if peer.phase == Phase::Ended {
            peer.due.severed = true;
            return self.queue(place);
        }
        if let Some(why) = disagreement {
            peer.due.refusal = batch.header.kind == Kind::Hello;
            let text = why.clone();
            log::line(Level::Trouble, || text);
            self.end(place, false, &why);
            return self.queue(place);
        }
        match batch.header.kind {
            Kind::Refusal => return self.end(place, false, "it refuses our parameters"),
            Kind::Hello => peer.due.welcome = true,
            _ => {}
        }
        if peer.phase == Phase::Greeting {
            peer.phase = Phase::Open;
            peer.due.probe = false;
            peer.probe.handle_heard(now);
            if is_closing {
                peer.outbox.mark(Marks { is_closing, ..Marks::default() });
            }
        }
        self.queue(place);
    }

    fn handle_packets(&mut self, place: PeerId, batch: &Batch, now: Instant) {
        let Header { kind, is_closing, is_last, sequence, .. } = batch.header;
        let own_window = self.own.window;
        let Some(at) = self.places.get_mut(place.0 as usize) else { return };
        let generation = at.generation;
        let Some(peer) = at.peer.as_deref_mut().filter(|peer| peer.phase != Phase::Greeting && !peer.is_quarantined)
        else {
            return self.counts.dropped += 1;
        };
        let (mut inbox, has_ended) = (mem::take(&mut peer.inbox), peer.phase == Phase::Ended);
        let mut arriving = mem::take(&mut peer.arriving);
        let mut loading = mem::take(&mut peer.loading);
        // The last three bits of what is told are no bytes.
        let window = peer.window_left.unwrap_or(peer.window_told.unwrap_or(own_window) & !7) as usize;
        let receipt = arriving.receipt();
        let mut unacknowledged = mem::take(&mut peer.unacknowledged);
        let (mut last, mut is_wrong) = (Marks::default(), false);
        let marks = Marks { is_closing, is_last, is_loaded: kind == Kind::Loaded };
        let taken = inbox.handle(sequence, marks, batch.body(), window, |body, marks| {
            unacknowledged.add(body.len(), marks.is_loaded);
            last = Marks {
                is_closing: last.is_closing | marks.is_closing,
                is_last: last.is_last | marks.is_last,
                is_loaded: false,
            };
            let mut packets = body;
            if marks.is_loaded
                && let Some((load, part, rest)) = Load::split(body)
            {
                packets = rest;
                is_wrong = is_wrong || (!has_ended && loading.add(load, part, window).is_err());
            }
            if !has_ended && !is_wrong {
                self.deliver_from(place, generation, packets, &mut arriving);
            }
        });
        let Some(peer) = self.known(place) else { return };
        peer.inbox = inbox;
        // Those who have ended are heard no more, and what they have sent is taken all the same.
        peer.loading = loading;
        let is_refused = arriving.receipt().refusals != receipt.refusals;
        let is_awaited = mem::take(&mut arriving.wants_answer);
        peer.arriving = arriving;
        let are_many = unacknowledged.are_many();
        peer.unacknowledged = unacknowledged;
        // A sender that was refused and sends nothing more anyway has no use for the answer before it is invited.
        let is_answered = is_refused != is_awaited;
        let is_urgent = are_many || is_answered || last.is_last;
        let is_news = last.is_closing && !peer.is_closing;
        peer.is_closing |= is_news;
        match taken {
            Taken::InOrder if !is_urgent => self.owe_acknowledgement(place, now + ACKNOWLEDGEMENT_DELAY, now),
            Taken::InOrder | Taken::Again => self.owe_acknowledgement(place, now, now),
            Taken::Early => {}
            Taken::Wrong => self.counts.dropped += 1,
        }
        if is_wrong {
            self.counts.dropped += 1;
            self.quarantine(place);
            return;
        }
        if is_news {
            self.tell(LinkEvent::Closing(place));
        }
        if last.is_last {
            self.end(place, true, "it has closed its endpoint");
        }
    }

    fn owe_acknowledgement(&mut self, place: PeerId, at: Instant, now: Instant) {
        let Some(peer) = self.known(place) else { return };
        let is_earlier = peer.due.acknowledgement.is_none_or(|due| at < due);
        if !is_earlier {
            return;
        }
        peer.due.acknowledgement = Some(at);
        match at <= now {
            true => self.queue(place),
            // In order of time, since each waits equally long.
            false => self.acknowledgements.push_back((at, place)),
        }
    }

    fn handle_ping(&mut self, place: PeerId, number: u64) {
        let Some(peer) = self.known(place) else { return };
        match peer.phase {
            Phase::Ended => peer.due.severed = true,
            _ => peer.due.answer = Some(number),
        }
        self.queue(place);
    }

    /// What was sent before this ping and has not come was lost.
    fn handle_answer(&mut self, place: PeerId, number: u64) {
        let Some(peer) = self.known(place) else { return };
        if number > peer.probe.sent {
            return self.counts.dropped += 1;
        }
        if peer.outbox.resend(number) {
            self.queue(place);
        }
    }
}
