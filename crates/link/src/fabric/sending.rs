//! What is sent when: who has something to say, in turn; what was lost, again; and questions to those who are quiet.

use super::admission;
use super::greeting::Greeting;
use super::liveness::FAILED_FOR;
use super::network::{Network, NetworkEvent, Route, Sending, Token};
use super::notices::NO_PLACE;
use super::peer::{OUTSTANDING_MOST, Peer, Phase, Unacknowledged};
use super::protocol::Protocol;
use super::watch::Finding;
use super::wire::{BESIDE_PART, Header, Kind};
use crate::memory::IoBuffer;
use std::sync::Arc;
use std::time::Duration;
use tidegate_flow::{Instant, PeerId};
use tidegate_message::Buffer;

/// Time between two looks who has been quiet.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Places that one look looks at.
const PLACES_PER_LOOK: usize = 256;
/// Time between two tries to send what the network did not take.
const RETRY_INTERVAL: Duration = Duration::from_millis(1);
/// Events of the network that one exchange handles at most.
const EVENTS_PER_EXCHANGE: usize = 32;
/// A token's bits for a batch's number: more than there may be on their way.
const SEQUENCE_MASK: u64 = 0x7fff;
/// A token's low bits for a hello or a ping. Other batches without packets have 0.
const PROBE: u64 = 0xffff;

/// What is sent to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Control(Kind, u64),
    Packets(u64),
}

/// How sending to a peer went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// There is nothing more for it, until the network has ended what it has.
    Done,
    /// It is to be tried again when its trouble says.
    Late,
    /// There is no buffer for anybody.
    NoBuffer,
}

/// What is to be sent to a peer next.
fn next_item(peer: &mut Peer, now: Instant) -> Option<Item> {
    let due = &peer.due;
    let probe = if peer.phase == Phase::Greeting { Kind::Hello } else { Kind::Ping };
    let controls = [
        (due.refusal, Kind::Refusal),
        (due.severed, Kind::Severed),
        (due.welcome, Kind::Welcome),
        (due.probe, probe),
        (due.answer.is_some(), Kind::Answer),
    ];
    if let Some((_, kind)) = controls.into_iter().find(|(is_due, _)| *is_due) {
        let sequence = match kind {
            Kind::Answer => due.answer.unwrap_or(0),
            Kind::Ping | Kind::Hello => peer.probe.sent + 1,
            _ => 0,
        };
        return Some(Item::Control(kind, sequence));
    }
    if peer.phase == Phase::Open
        && let Some(due) = peer.outbox.poll_due()
    {
        return Some(Item::Packets(due.sequence));
    }
    let is_due = peer.due.acknowledgement.is_some_and(|at| at <= now);
    is_due.then_some(Item::Control(Kind::Acknowledgement, 0))
}

/// The network has taken an item: it is due no more, and whatever it carried neither.
fn handle_taken(peer: &mut Peer, item: Item, now: Instant) {
    peer.outstanding += 1;
    peer.unacknowledged = Unacknowledged::default();
    peer.due.acknowledgement = None;
    match item {
        Item::Packets(sequence) => peer.outbox.handle_taken(sequence, peer.probe.sent, now),
        Item::Control(kind, _) => match kind {
            Kind::Refusal => peer.due.refusal = false,
            Kind::Severed => peer.due.severed = false,
            Kind::Welcome => peer.due.welcome = false,
            Kind::Answer => peer.due.answer = None,
            Kind::Hello | Kind::Ping => {
                peer.due.probe = false;
                peer.probe.handle_sent(now);
            }
            Kind::Packets | Kind::Loaded | Kind::Acknowledgement | Kind::Absent => {}
        },
    }
}

impl Protocol {
    /// Longest message that is carried to a peer now, in batches of up to this length.
    pub fn carries_most(&mut self, to: PeerId, longest_batch: usize) -> usize {
        self.known(to).map_or(0, |peer| peer.outbox.carries_most(longest_batch - BESIDE_PART))
    }

    /// Puts a message into batches of up to this length, beside the packets that are written next, as
    /// [`Carry::carry`](tidegate_message::Carry::carry) wants it.
    pub fn carry(&mut self, to: PeerId, message: &IoBuffer, longest_batch: usize) -> bool {
        let Some(peer) = self.places.get_mut(to.0 as usize).and_then(|at| at.peer.as_deref_mut()) else { return false };
        let append = |offset, length, batch: &mut Vec<u8>| message.append_to(offset, length, batch);
        let (length, part_most) = (message.len(), longest_batch - BESIDE_PART);
        let is_carried = peer.phase == Phase::Open && peer.outbox.carry(length, part_most, &self.copies, append);
        if is_carried {
            self.queue(to);
        }
        is_carried
    }

    /// Takes what has come, does what is due, and sends what can be sent: a bounded amount of each. Returns whether
    /// anything has come.
    pub fn exchange(&mut self, network: &mut impl Network, now: Instant) -> bool {
        let mut any = false;
        for _ in 0..EVENTS_PER_EXCHANGE {
            if !self.has_room() {
                break;
            }
            match network.poll() {
                None => break,
                Some(NetworkEvent::Received(batch)) => self.handle_batch(batch, now),
                Some(NetworkEvent::Dropped) => self.counts.dropped += 1,
                Some(NetworkEvent::Sent(token)) => self.handle_ended(token, None, now),
                Some(NetworkEvent::Failed(token, why)) => self.handle_ended(token, Some(why), now),
                Some(NetworkEvent::Read(token)) => self.handle_read(token, None, now),
                Some(NetworkEvent::ReadFailed(token, why)) => self.handle_read(token, Some(why), now),
                Some(NetworkEvent::Broken(why)) => self.handle_broken(why),
            }
            any = true;
        }
        self.handle_timeout(network, now);
        self.transmit(network, now);
        any
    }

    /// A sending has ended, or has failed.
    fn handle_ended(&mut self, Token(token): Token, failure: Option<String>, now: Instant) {
        let (place, generation) = (PeerId((token >> 32) as u32), (token >> 16) as u16);
        if place.0 == NO_PLACE {
            if let Some(route) = self.notices.end(token as u32) {
                self.departing.add(route);
            }
            return;
        }
        if self.places.get(place.0 as usize).is_none_or(|at| at.generation != generation) {
            return self.departing.handle_ended(place, generation);
        }
        let Some(peer) = self.known(place) else { return };
        peer.outstanding = peer.outstanding.saturating_sub(1);
        match token & 0xffff {
            0 => {}
            PROBE => peer.probe.is_under_way = false,
            low => {
                let first = peer.outbox.first();
                let ahead = (low - 1).wrapping_sub(first) & SEQUENCE_MASK;
                peer.outbox.handle_ended(first + ahead, failure.is_some());
            }
        }
        match failure {
            None if peer.trouble.take().is_some() => {
                self.reachability.stop(place);
                self.hurry(place);
            }
            None => self.queue(place),
            Some(why) => {
                // What had been sent before may be lost as well: the answer to a ping shows what has come.
                peer.due.probe |= peer.phase != Phase::Ended;
                peer.handle_failure(now, Some(why));
                self.queue(place);
            }
        }
    }

    /// The network is of no use any more.
    fn handle_broken(&mut self, why: String) {
        for place in 0..self.places.len() {
            self.end(PeerId(place as u32), false, &format!("the network below has failed: {why}"));
        }
        self.broken = Some(why);
    }

    /// Looks who has been quiet for a while, and whose host we do not know.
    fn handle_timeout(&mut self, network: &mut impl Network, now: Instant) {
        if now < self.look_at {
            return;
        }
        self.look_at = now + LOOK_INTERVAL;
        network.tend();
        self.reachability.handle_timeout(network, now);
        for _ in 0..self.places.len().min(PLACES_PER_LOOK) {
            let place = PeerId((self.look_from % self.places.len()) as u32);
            self.look_from = place.0 as usize + 1;
            self.meet_host(place, network, now);
            self.watch(place, network, now);
            if let Some(peer) = self.known(place)
                && peer.phase != Phase::Ended
                && peer.probe.is_due(now, peer.waits_since())
            {
                peer.due.probe = true;
                self.queue(place);
            }
        }
    }

    /// Asks the host of a peer that has answered us, once, so that its silence later means something.
    fn meet_host(&mut self, place: PeerId, network: &mut impl Network, now: Instant) {
        if let Some(peer) = self.places.get_mut(place.0 as usize).and_then(|at| at.peer.as_deref_mut())
            && let (Phase::Open, false, Some(route)) = (peer.phase, peer.is_host_met, peer.route)
        {
            peer.is_host_met = self.reachability.meet(route, network, now);
        }
    }

    /// Finds out whether a peer's process is there, where the network below tells nothing of that.
    fn watch(&mut self, place: PeerId, network: &mut impl Network, now: Instant) {
        let Some(peer) = self.places.get_mut(place.0 as usize).and_then(|at| at.peer.as_deref_mut()) else { return };
        let (Phase::Open, Some(route), Some(watched)) = (peer.phase, peer.route, peer.watched()) else { return };
        if peer.watch.begin() {
            network.watch(route, watched.at);
        }
        // Trouble asks by itself.
        let is_silent = peer.probe.is_silent(now) && peer.trouble.is_none();
        match peer.watch.look(now, watched.name, is_silent, || self.reachability.ask(place, route, network, now)) {
            Finding::Nothing => {}
            Finding::Enough => self.reachability.stop(place),
            Finding::Lost(why) => {
                self.reachability.stop(place);
                self.end(place, false, &why);
            }
        }
    }

    /// Sends what is to be sent, as far as the network takes it.
    pub fn transmit(&mut self, network: &mut impl Network, now: Instant) {
        while let Some((_, place)) = self.acknowledgements.front().copied().filter(|(at, _)| *at <= now) {
            self.acknowledgements.pop_front();
            self.queue(place);
        }
        self.queue_late(now);
        self.queue_refused(now);
        self.serve_slots(now);
        for _ in 0..self.ready.len() {
            let Some(place) = self.ready.pop_front() else { break };
            if let Some(peer) = self.known(place) {
                peer.is_queued = false;
            }
            match self.transmit_to(place, network, now) {
                Outcome::Done => {}
                Outcome::Late => self.delay(place),
                Outcome::NoBuffer => {
                    self.queue(place);
                    break;
                }
            }
        }
        self.notices.send(network, now);
        self.begin_reads(network, now);
        self.reachability.close(network);
        self.departing.forget(network);
    }

    fn transmit_to(&mut self, place: PeerId, network: &mut impl Network, now: Instant) -> Outcome {
        loop {
            let Some(at) = self.places.get_mut(place.0 as usize) else { return Outcome::Done };
            let token = u64::from(place.0) << 32 | u64::from(at.generation) << 16;
            let Some(peer) = at.peer.as_deref_mut() else { return Outcome::Done };
            if peer.outstanding >= OUTSTANDING_MOST {
                return Outcome::Done;
            }
            peer.send_kept(now);
            let Some(item) = next_item(peer, now) else { return Outcome::Done };
            let route = match peer.route_by(network) {
                Ok(route) => route,
                Err(why) => {
                    self.end(place, false, &why);
                    return Outcome::Done;
                }
            };
            if peer.trouble.as_ref().is_some_and(|trouble| trouble.retry_at > now) {
                return Outcome::Late;
            }
            if let Some(why) = peer.judge(now, || self.reachability.ask(place, route, network, now)) {
                peer.trouble = None;
                self.reachability.stop(place);
                self.end(place, false, &why);
                return Outcome::Done;
            }
            match send(&self.own, peer, item, network, route, token) {
                Sending::Taken => {
                    self.counts.sent += 1;
                    self.counts.resent += u64::from(is_again(peer, item));
                    peer.unsendable.handle_taken(number(item));
                    handle_taken(peer, item, now);
                }
                Sending::NoBuffer => return Outcome::NoBuffer,
                Sending::Again => {
                    peer.handle_failure(now, None);
                    return Outcome::Late;
                }
                Sending::Failed(why) => {
                    if let Some(sequence) = number(item).filter(|it| peer.unsendable.handle_refusal(*it, now)) {
                        let why =
                            format!("sending to it failed for {} s: batch {sequence}: {why}", FAILED_FOR.as_secs());
                        self.reachability.stop(place);
                        self.end(place, false, &why);
                        return Outcome::Done;
                    }
                    peer.handle_failure(now, Some(why));
                    return Outcome::Late;
                }
            }
        }
    }

    /// When to exchange at the latest, though nothing has come. `None`: nothing is due.
    pub fn next_timeout(&self, now: Instant) -> Option<Instant> {
        let is_waiting = !self.ready.is_empty() || self.notices.are_waiting();
        let retry = is_waiting.then(|| now + RETRY_INTERVAL);
        let late = (!self.late.is_empty()).then_some(self.late_at);
        let acknowledgement = self.acknowledgements.front().map(|(at, _)| *at);
        let look = self.has_peers().then_some(self.look_at);
        let read = self.reads.next_begin();
        let refused = self.refused.front().map(|(at, _)| *at);
        let holder = self.holder.map(|holder| holder.until);
        [retry, late, acknowledgement, look, read, refused, holder].into_iter().flatten().min()
    }
}

/// The number of a batch of packets.
fn number(item: Item) -> Option<u64> {
    match item {
        Item::Packets(sequence) => Some(sequence),
        Item::Control(..) => None,
    }
}

fn is_again(peer: &mut Peer, item: Item) -> bool {
    matches!(item, Item::Packets(_)) && peer.outbox.poll_due().is_some_and(|due| due.is_again)
}

fn send(own: &Greeting, peer: &mut Peer, item: Item, network: &mut impl Network, to: Route, token: u64) -> Sending {
    let come = peer.come();
    match item {
        Item::Control(kind, sequence) => {
            let low = if matches!(kind, Kind::Hello | Kind::Ping) { PROBE } else { 0 };
            let window = peer.window_told.unwrap_or(own.window);
            network.send(to, Token(token | low), &own.batch_telling(window, &peer.contact, kind, sequence, come))
        }
        Item::Packets(_) => {
            let Some(due) = peer.outbox.poll_due() else { return Sending::Again };
            let (is_closing, is_last) = (due.marks.is_closing, due.marks.is_last);
            let (to_id, from, sequence) = (peer.contact.id(), own.contact.id(), due.sequence);
            let kind = if due.marks.is_loaded { Kind::Loaded } else { Kind::Packets };
            let (acknowledged, receipt) = come;
            let header = Header { kind, is_closing, is_last, to: to_id, from, sequence, acknowledged, receipt };
            // It is due only once the network has ended all sendings of it, so the network has no share of it now.
            header.emit(Arc::make_mut(due.bytes).as_mut_slice());
            let token = Token(token | (1 + (sequence & SEQUENCE_MASK)));
            if !header.has_proof() {
                return network.send_kept(to, token, due.bytes);
            }
            let mut sealed = due.bytes.to_vec();
            admission::seal(&mut sealed, &admission::secret_for(&own.contact, &peer.contact));
            network.send_kept(to, token, &Arc::new(sealed))
        }
    }
}
