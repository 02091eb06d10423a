//! [`Protocol`]: packets between endpoints of different hosts, over a [`Network`](super::network::Network) that may
//! lose, repeat and reorder batches. It does no input or output: the network and the time are arguments.
//!
//! A connection begins at the first contact: a *hello*, which the other side answers by a *welcome*, or a *refusal*
//! where the parameters differ; each of them tells who its sender is, and proves that it belongs to the job
//! (`admission`). Then packets travel in batches as `stream` describes. An endpoint's id follows from its secret and is
//! never used twice, so a pair of ids has one connection in its life: when the network below breaks it and makes
//! another, numbers and acknowledgements go on where they were, and once a peer counts as lost it stays lost; if it
//! lives and goes on, it is told (*severed*).
//!
//! What is lost below is sent again, when the network says that a sending failed, or when an answer to a later ping
//! shows that it has not come. So a peer that computes and answers nothing is sent nothing twice.
//!
//! A peer for which the network takes nothing is *late*: it is tried again when its trouble says, and holds up nobody.
//!
//! Memory: [`Protocol::bytes_most`]. `peer` is one peer, `receiving` what a batch does, `sending` what is sent when,
//! `closing` when all has been said.

use super::buffers::{KEPT_MOST, Unaccepted};
use super::contact::Contact;
use super::copies::{Copies, SHARED_MOST};
use super::departing::Departing;
use super::former::FormerPeers;
use super::greeting::Greeting;
use super::loading::Loading;
use super::notices::{NOTICES_MOST, Notices};
use super::peer::{OUTSTANDING_MOST, Peer, Phase};
use super::reachability_probe::ReachabilityProbe;
use super::reads::Reads;
use super::slots::{Holder, Speculating};
use super::stream::{Inbox, Outbox, PACKETS_PER_ARRIVAL};
use crate::log::{self, Level};
use crate::shm::{LinkError, Told};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use tidegate_flow::{Config, Instant, PACKET_BYTES, Packet, PacketKind, PeerId, Placement, ReceiveQueues, SlotPool};
use tidegate_message::{Arrival, Departure, LinkEvent, PLACES_AHEAD, WriteError};

/// Packets that are filled together.
const PACKETS_AT_ONCE: usize = 16;
/// Peers that are lost or have left, of which the id is remembered, per peer that there may be.
const ENDED_PER_PEER: usize = 2;
/// What has happened, for counters and tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Batches sent, of all kinds.
    pub sent: u64,
    /// Of these, batches of packets that had been sent before.
    pub resent: u64,
    /// Batches that came and were for us.
    pub received: u64,
    /// Batches that came and were dropped: strangers', malformed, longer than a batch may be, cut off when their
    /// connection broke, or of peers that count as lost.
    pub dropped: u64,
}

/// The place of a peer in our table.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// Which of those who had this place one after the other; packets in the mailbox carry it.
    pub generation: u16,
    pub peer: Option<Box<Peer>>,
}

/// See the module.
#[derive(Debug)]
pub struct Protocol {
    pub(super) own: Greeting,
    /// The first place of a newcomer, and what newcomers are told of their windows, where that is not what others are.
    pub(super) newcomers: Option<(PeerId, u32)>,
    pub(super) places: Vec<Place>,
    pub(super) free: Vec<PeerId>,
    /// How many places may be taken, and how many may be in the end.
    pub(super) places_open: u32,
    pub(super) places_most: u32,
    pub(super) by_id: HashMap<u64, PeerId>,
    /// Peers that we communicate with no more.
    pub(super) former: FormerPeers,
    /// Packets that have come, in order. Their stamps are generations.
    mailbox: VecDeque<Packet>,
    mailbox_most: usize,
    /// Packets that have ever been put into the mailbox, and taken from it.
    delivered: u64,
    taken: u64,
    /// What has happened, each with the packets that have to be taken before it is told.
    pub(super) events: VecDeque<(u64, LinkEvent)>,
    /// A peer wanted a place when few were free, which is to be told.
    is_low_on_places: bool,
    /// Peers to whom something is to be sent.
    pub(super) ready: VecDeque<PeerId>,
    /// Peers for whom the network took nothing, and when the first of them is tried again.
    pub(super) late: Vec<PeerId>,
    pub(super) late_at: Instant,
    /// Peers that are owed an acknowledgement, and until when something else may carry it.
    pub(super) acknowledgements: VecDeque<(Instant, PeerId)>,
    /// Our posted buffers, where receivers post such.
    pub(super) queues: Option<ReceiveQueues>,
    /// Peers that have refused a message of ours, and until when that waits.
    pub(super) refused: VecDeque<(Instant, PeerId)>,
    pub(super) retry_timer: Duration,
    /// The peer for which slots of our pool have been kept longest, while others wait for some.
    pub(super) holder: Option<Holder>,
    /// Memory for messages that are carried, beyond what each peer may have.
    pub(super) copies: Copies,
    pub(super) notices: Notices,
    /// The network's names for those who have no place any more.
    pub(super) departing: Departing,
    /// Whether peers to whom nothing can be sent are there.
    pub(super) reachability: ReachabilityProbe,
    /// What is read from peers' memory.
    pub(super) reads: Reads,
    /// When to look again who has been quiet, and at whom first.
    pub(super) look_at: Instant,
    pub(super) look_from: usize,
    pub(super) is_closing: bool,
    /// Why the network is of no use any more.
    pub(super) broken: Option<String>,
    pub(super) counts: Counts,
}

impl Protocol {
    /// An endpoint without peers. `flow` says how many there may be, and how many packets they may have under way.
    pub fn new(own: Greeting, flow: &Config) -> Protocol {
        Protocol {
            own,
            newcomers: None,
            places: Vec::new(),
            free: Vec::new(),
            places_open: flow.peers,
            places_most: flow.peers,
            by_id: HashMap::new(),
            former: FormerPeers::new(ENDED_PER_PEER * flow.peers as usize),
            mailbox: VecDeque::new(),
            mailbox_most: mailbox_most(flow),
            delivered: 0,
            taken: 0,
            events: VecDeque::new(),
            is_low_on_places: false,
            ready: VecDeque::new(),
            late: Vec::new(),
            late_at: Instant::default(),
            acknowledgements: VecDeque::new(),
            queues: ReceiveQueues::new(flow.scheme, flow.peers, &flow.buffers),
            refused: VecDeque::new(),
            retry_timer: flow.buffers.retry_timer,
            holder: None,
            copies: Copies::default(),
            notices: Notices::default(),
            departing: Departing::new(flow.peers as usize),
            reachability: ReachabilityProbe::new(flow.peers as usize),
            reads: Reads::default(),
            look_at: Instant::default(),
            look_from: 0,
            is_closing: false,
            broken: None,
            counts: Counts::default(),
        }
    }

    /// The most memory that an endpoint takes that so many peers on other hosts talk to. A queue doubles as it grows.
    pub fn bytes_most(flow: &Config, peers: usize) -> usize {
        let table = size_of::<Place>() + size_of::<Peer>() + 8 * 2 + ENDED_PER_PEER * FormerPeers::BYTES_EACH + 6 * 48;
        let table = table + ReachabilityProbe::BYTES_PER_PEER;
        // Packets that may have to be sent again, where receivers post buffers.
        let kept = if flow.scheme.lends().posts_buffers() { 4 * KEPT_MOST * (PACKET_BYTES + 8) } else { 0 };
        let each = Outbox::BYTES_MOST + Inbox::BYTES_MOST + 2 * table + kept;
        let pool = if flow.scheme.lends().is_pool_of_slots() { SlotPool::bytes_most(flow.peers) } else { 0 };
        2 * mailbox_most(flow) * PACKET_BYTES + SHARED_MOST + pool + peers * each + NOTICES_MOST * 256
    }

    /// What we say of ourselves.
    pub fn own(&self) -> &Greeting {
        &self.own
    }

    /// What has happened so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The place of the endpoint at this contact, a new one if it has none. Says hello to it. Errors: the peer has no
    /// network address, other parameters, or was lost; there is no place.
    pub fn peer(&mut self, contact: &Contact) -> Result<PeerId, LinkError> {
        if let Some(place) = self.by_id.get(&contact.id()).copied() {
            // It may have told us who it is before the application has: then we had no secret to prove anything by.
            if let Some(peer) = self.known(place) {
                peer.contact.secret = peer.contact.secret.or(contact.secret);
            }
            return Ok(place);
        }
        let elsewhere = |reason: &str| LinkError::Elsewhere { peer: contact.address, reason: reason.to_owned() };
        if self.former.find(contact.id()).is_some() {
            return Err(elsewhere("it has left, or counts as lost"));
        }
        if let Some(why) = &self.broken {
            return Err(elsewhere(&format!("the network below has failed: {why}")));
        }
        self.own.contact.check_network(contact)?;
        if contact.lower == self.own.contact.lower {
            return Err(elsewhere("its network address is that of this process itself"));
        }
        if let Told::All(ours) = &self.own.contact.settings {
            // The host's name is not known yet: it comes with the greeting.
            contact.settings.check(ours, || format!("{contact} of another host"))?;
        }
        let (peers, is_changing) = (self.places_open, self.may_open_places());
        let place =
            self.admit(contact).ok_or(LinkError::TableFull { owner: "this process".into(), peers, is_changing })?;
        if let Some(peer) = self.known(place) {
            peer.due.probe = true;
        }
        self.queue(place);
        Ok(place)
    }

    /// From now on so many places may be taken, and so many in the end.
    pub fn open_places(&mut self, open: u32, most: u32) {
        (self.places_open, self.places_most) = (open, most);
    }

    /// Whether more places may be opened.
    pub(super) fn may_open_places(&self) -> bool {
        self.places_open < self.places_most
    }

    /// A place for an endpoint that has none.
    pub(super) fn admit(&mut self, contact: &Contact) -> Option<PeerId> {
        let taken = self.places.len() - self.free.len();
        let are_few = taken + PLACES_AHEAD as usize >= self.places_open as usize;
        self.is_low_on_places |= are_few && self.may_open_places();
        let place = self.free.pop().or_else(|| {
            let place = PeerId(self.places.len() as u32);
            (place.0 < self.places_open).then(|| self.places.push(Place::default())).map(|()| place)
        })?;
        let window_told = self.newcomers.filter(|(first, _)| place >= *first).map(|(_, told)| told);
        let mut peer = Box::new(Peer { window_told, ..Peer::new(*contact) });
        match &self.queues {
            Some(queues) if queues.slots().is_some() => peer.speculating = Some(Speculating::default()),
            Some(_) => peer.unaccepted = Some(Unaccepted::default()),
            None => {}
        }
        self.places[place.0 as usize].peer = Some(peer);
        self.by_id.insert(contact.id(), place);
        Some(place)
    }

    /// The peer at a place.
    pub(super) fn known(&mut self, place: PeerId) -> Option<&mut Peer> {
        self.places.get_mut(place.0 as usize)?.peer.as_deref_mut()
    }

    pub(super) fn look_up(&self, place: PeerId) -> Option<&Peer> {
        self.places.get(place.0 as usize)?.peer.as_deref()
    }

    /// How the peer at a place is reached.
    pub fn contact(&self, place: PeerId) -> Option<Contact> {
        self.look_up(place).map(|peer| peer.contact)
    }

    /// The name of the peer at a place, for people.
    pub fn name_of(&self, place: PeerId) -> Option<String> {
        self.look_up(place).map(Peer::name)
    }

    /// Something is to be sent to this peer, when its turn comes or, if the network took nothing for it, its time.
    pub(super) fn queue(&mut self, place: PeerId) {
        if let Some(peer) = self.known(place)
            && !peer.is_queued
            && !peer.is_late
        {
            peer.is_queued = true;
            self.ready.push_back(place);
        }
    }

    /// Puts packets to a peer into batches, as [`Link::write`](tidegate_message::Link::write) wants it.
    pub fn write(
        &mut self,
        to: PeerId,
        count: u32,
        now: Instant,
        mut fill: impl FnMut(&mut [Packet], Placement),
    ) -> Result<u32, WriteError> {
        let peer = self.known(to).ok_or_else(|| WriteError::Unreachable(format!("there is no peer {}", to.0)))?;
        match peer.phase {
            Phase::Ended => return Err(WriteError::Unreachable(peer.lost.clone())),
            Phase::Greeting => return Err(WriteError::Full),
            Phase::Open => peer.outbox.handle_write(now),
        }
        let places = peer.room_for(count);
        if places == 0 {
            return Err(WriteError::Full);
        }
        let mut packets = [Packet::new(PacketKind::Data, 0, 0); PACKETS_AT_ONCE];
        let mut left = places;
        while left > 0 {
            let chunk = &mut packets[..left.min(PACKETS_AT_ONCE)];
            fill(chunk, Placement::default());
            chunk.iter_mut().for_each(|packet| peer.push(packet));
            left -= left.min(PACKETS_AT_ONCE);
        }
        self.queue(to);
        Ok(places as u32)
    }

    /// The length of the next whole message that a peer's batches have brought along.
    pub fn carried_length(&mut self, from: PeerId) -> Option<usize> {
        self.known(from)?.loading.next_length()
    }

    /// Takes the next message that a peer's batches have brought along.
    pub fn take_carried(&mut self, from: PeerId) -> Option<Vec<u8>> {
        self.known(from)?.loading.take()
    }

    /// Whether the network has as many sendings to a peer as it may.
    pub fn has_flights_most(&mut self, to: PeerId) -> bool {
        self.known(to).is_some_and(|peer| peer.outstanding >= OUTSTANDING_MOST)
    }

    /// Whether the mailbox has room for what one more batch may put into it.
    pub fn has_room(&self) -> bool {
        self.mailbox.len() + PACKETS_PER_ARRIVAL <= self.mailbox_most
    }

    /// Whether a packet is there to be taken.
    #[inline]
    pub fn has_packets(&self) -> bool {
        !self.mailbox.is_empty()
    }

    /// Packets in the mailbox.
    #[cfg(test)]
    pub(super) fn packets(&self) -> usize {
        self.mailbox.len()
    }

    /// Our pool of slots, where packets take such.
    #[inline]
    pub(super) fn slot_pool(&mut self) -> Option<&mut SlotPool> {
        self.queues.as_mut()?.slots_mut()
    }

    /// Puts packets of a peer into the mailbox.
    pub(super) fn deliver(&mut self, packets: impl Iterator<Item = Packet>) {
        let before = self.mailbox.len();
        self.mailbox.extend(packets);
        self.delivered += (self.mailbox.len() - before) as u64;
    }

    /// The next packet that has come.
    pub fn retrieve(&mut self) -> Option<Arrival> {
        while let Some(packet) = self.mailbox.pop_front() {
            self.taken += 1;
            // Also of a packet that is dropped here the slot is free.
            if let Some(slots) = self.slot_pool() {
                slots.note_retrieved(1);
            }
            let source = packet.header.source();
            let place = self.places.get(source.0 as usize)?;
            let is_heard = place.peer.as_ref().is_some_and(|peer| !peer.is_quarantined);
            if is_heard && place.generation == packet.header.stamp() {
                return Some(Arrival { source, packet });
            }
        }
        None
    }

    /// Whether there is something to retrieve, to tell, or to read.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.has_packets() || !self.events.is_empty() || self.is_low_on_places || self.reads.is_busy()
    }

    /// What has happened. What concerns a peer comes behind its packets; all else waits for nothing.
    pub fn poll_event(&mut self) -> Option<LinkEvent> {
        if let Some((transfer, status)) = self.reads.poll_ended() {
            return Some(LinkEvent::TransferEnded(transfer, status));
        }
        if std::mem::take(&mut self.is_low_on_places) {
            return Some(LinkEvent::PlacesLow);
        }
        let is_its_turn = self.events.front().is_some_and(|(after, _)| *after <= self.taken);
        if is_its_turn { self.events.pop_front().map(|(_, event)| event) } else { None }
    }

    /// Tells an event behind the packets that have come so far.
    pub(super) fn tell(&mut self, event: LinkEvent) {
        self.events.push_back((self.delivered, event));
    }

    /// We communicate with a peer no more.
    pub(super) fn end(&mut self, place: PeerId, orderly: bool, why: &str) {
        let Some(peer) = self.known(place).filter(|peer| peer.phase != Phase::Ended) else { return };
        let who = peer.name();
        peer.phase = Phase::Ended;
        // Who has never answered may not be where we think.
        let doubt = peer.doubt.take().filter(|_| !orderly && peer.greeting.is_none());
        let why = &doubt.as_ref().map_or_else(|| why.to_owned(), |doubt| format!("{why}, or {doubt}"));
        peer.lost = format!("{who}: {why}");
        peer.outbox.clear();
        (peer.unaccepted, peer.speculating) = (None, None);
        peer.due.probe = false;
        // It waits for nothing any more, and does not come. Its packets in the mailbox have their slots.
        if let Some(slots) = self.slot_pool() {
            slots.forget(place);
        }
        self.reads.end_peer(place);
        self.reachability.stop(place);
        let Some(peer) = self.known(place) else { return };
        let name = if orderly { who } else { format!("{who} ({why})") };
        if !orderly {
            let text = peer.lost.clone();
            log::line(if doubt.is_some() { Level::Trouble } else { Level::Warn }, || text);
        }
        self.tell(LinkEvent::Departed(Departure { peer: place, orderly, name }));
    }

    /// Drops the packets of a peer from now on, and tells it. Returns who it is.
    pub fn quarantine(&mut self, place: PeerId) -> String {
        let Some(peer) = self.known(place) else { return format!("peer {}", place.0) };
        (peer.is_quarantined, peer.due.severed) = (true, true);
        // Its packets are taken no more, so nobody asks for what it has sent beside them.
        peer.loading = Loading::default();
        let name = peer.name();
        self.end(place, false, "it broke the protocol");
        self.queue(place);
        name
    }

    /// Gives the place of a peer away. If it has not ended, it is told that we hear it no more.
    pub fn release(&mut self, place: PeerId, now: Instant) {
        let Some(peer) = self.known(place) else { return };
        if peer.phase != Phase::Ended {
            peer.due.severed = true;
        }
        let last_words = self.look_up(place).and_then(|peer| peer.last_words(&self.own));
        let Some(contact) = self.contact(place) else { return };
        if let Some(batch) = last_words {
            self.notices.add((contact.id(), contact.lower), batch, now);
        }
        let at = &mut self.places[place.0 as usize];
        let Some(peer) = at.peer.take() else { return };
        if let Some(route) = peer.route {
            self.departing.add_with_outstanding(place, at.generation, route, peer.outstanding);
        }
        at.generation = at.generation.wrapping_add(1);
        if peer.is_late {
            self.late.retain(|late| *late != place);
        }
        self.reachability.stop(place);
        // What it took and did not fill is posted again.
        if let Some(queues) = &mut self.queues {
            queues.forget(place);
        }
        self.refused.retain(|(_, refused)| *refused != place);
        self.free.push(place);
        self.by_id.remove(&contact.id());
        self.reads.forget(place);
        self.former.add(&contact);
        // What has happened to it concerns nobody any more.
        self.events.retain(|(_, event)| subject(event) != Some(place));
    }

    pub(super) fn peers(&self) -> impl Iterator<Item = &Peer> {
        self.places.iter().filter_map(|place| place.peer.as_deref())
    }
}

/// Whom an event concerns.
fn subject(event: &LinkEvent) -> Option<PeerId> {
    match event {
        LinkEvent::TransferEnded(..) | LinkEvent::LimitReached | LinkEvent::PlacesLow => None,
        LinkEvent::WriteFailed(peer, _) | LinkEvent::Refused(peer) | LinkEvent::Closing(peer) => Some(*peer),
        LinkEvent::Departed(departure) => Some(departure.peer),
    }
}

/// Packets that the mailbox holds at most: what flow control lends, and what one arrival may put on top.
fn mailbox_most(flow: &Config) -> usize {
    flow.regions().map_or(0, |regions| regions.mailbox as usize) + PACKETS_PER_ARRIVAL
}
