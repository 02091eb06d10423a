//! [`Peer`]: what is known of one endpoint on another host, and what is to be said to it next.

use super::buffers::{Arriving, Unaccepted};
use super::contact::Contact;
use super::greeting::Greeting;
use super::liveness::{Probe, Reach, Trouble};
use super::loading::Loading;
use super::network::{Network, Route, Watched};
use super::slots::Speculating;
use super::stream::{ACKNOWLEDGED_BYTES, Inbox, Outbox, UNACKNOWLEDGED};
use super::unsendable::Unsendable;
use super::watch::Watch;
use super::wire::{Kind, PACKETS_PER_BATCH, Receipt};
use tidegate_flow::{Header, Instant, PACKET_BYTES, Packet, PacketKind};

/// Sendings to a peer that the network may have at a time: what one peer does not take must not use up the buffers
/// that there are for all.
pub const OUTSTANDING_MOST: u32 = 6;

/// How far the two have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// We have said hello, or will, and no welcome has come.
    Greeting,
    /// Packets go to and fro.
    Open,
    /// We communicate no more.
    Ended,
}

/// What is to be said beside packets.
#[derive(Debug, Default)]
pub struct Due {
    /// A welcome, as the answer to a hello.
    pub welcome: bool,
    /// A refusal, as the answer to a hello with other parameters.
    pub refusal: bool,
    /// That we hear nothing of it any more.
    pub severed: bool,
    /// A hello or a ping.
    pub probe: bool,
    /// The answer to the ping of this number.
    pub answer: Option<u64>,
    /// An acknowledgement, if nothing has carried it until then.
    pub acknowledgement: Option<Instant>,
}

/// Batches that have come since we last acknowledged.
#[derive(Debug, Default)]
pub struct Unacknowledged {
    /// Batches without a part of a carried message.
    batches: u64,
    /// One of them was full: others wait behind it.
    is_full: bool,
    /// Bytes of batches with a part.
    bytes: usize,
}

impl Unacknowledged {
    /// A batch has come in its turn, of `bytes` behind its header.
    pub fn add(&mut self, bytes: usize, is_loaded: bool) {
        if is_loaded {
            self.bytes += bytes;
        } else {
            self.batches += 1;
            self.is_full |= bytes >= PACKETS_PER_BATCH * PACKET_BYTES;
        }
    }

    /// Whether the sender may be waiting for an acknowledgement.
    pub fn are_many(&self) -> bool {
        self.is_full || self.batches >= UNACKNOWLEDGED / 2 || self.bytes >= ACKNOWLEDGED_BYTES
    }
}

/// An endpoint on another host.
#[derive(Debug)]
pub struct Peer {
    /// How it is reached.
    pub contact: Contact,
    /// The network's name for it, once it was needed.
    pub route: Option<Route>,
    /// What the user may have set wrong if it never answers.
    pub doubt: Option<String>,
    /// How far we have come.
    pub phase: Phase,
    /// Its packets are dropped: it broke the protocol.
    pub is_quarantined: bool,
    /// Why nothing can be written to it any more.
    pub lost: String,
    /// What it has said of itself.
    pub greeting: Option<Greeting>,
    /// It has said that it is closing.
    pub is_closing: bool,
    /// What we send it.
    pub outbox: Outbox,
    /// What it sends us.
    pub inbox: Inbox,
    /// Of what we send it, what it has not accepted; where receivers post buffers.
    pub unaccepted: Option<Unaccepted>,
    /// The same where each receiver has a pool of slots.
    pub speculating: Option<Speculating>,
    /// What comes from it for our posted buffers.
    pub arriving: Arriving,
    /// Messages that have come from it beside packets.
    pub loading: Loading,
    /// The word that it is told of its window, where that is not the word for all.
    pub window_told: Option<u32>,
    /// How much is left of what we set aside for its unmatched messages, in bytes, where that is not what we set aside
    /// for everybody.
    pub window_left: Option<u32>,
    /// Batches that it has sent since we last acknowledged.
    pub unacknowledged: Unacknowledged,
    /// What is to be said to it beside packets.
    pub due: Due,
    /// Whether it stands in the queue of those to whom something is to be sent.
    pub is_queued: bool,
    /// Asking whether it is there.
    pub probe: Probe,
    /// Nothing can be sent to it.
    pub trouble: Option<Trouble>,
    /// A batch for it that the network refuses, and nothing else.
    pub unsendable: Unsendable,
    /// Whether its process is there, where the network below tells nothing of that.
    pub watch: Watch,
    /// We know its host, or have asked it.
    pub is_host_met: bool,
    /// Whether it stands among those for whom the network took nothing, until it is tried again.
    pub is_late: bool,
    /// Sendings to it that the network has not ended.
    pub outstanding: u32,
}

impl Peer {
    /// A peer to whom nothing has been said.
    pub fn new(contact: Contact) -> Peer {
        Peer {
            contact,
            route: None,
            doubt: None,
            phase: Phase::Greeting,
            is_quarantined: false,
            lost: String::new(),
            greeting: None,
            is_closing: false,
            outbox: Outbox::default(),
            inbox: Inbox::default(),
            unaccepted: None,
            speculating: None,
            arriving: Arriving::default(),
            loading: Loading::default(),
            window_told: None,
            window_left: None,
            unacknowledged: Unacknowledged::default(),
            due: Due::default(),
            is_queued: false,
            probe: Probe::default(),
            trouble: None,
            unsendable: Unsendable::default(),
            watch: Watch::default(),
            is_host_met: false,
            is_late: false,
            outstanding: 0,
        }
    }

    /// The network's name for it. Errors are for people.
    pub fn route_by(&mut self, network: &mut impl Network) -> Result<Route, String> {
        match self.route {
            Some(route) => Ok(route),
            None => {
                self.doubt = network.doubt(&self.contact.lower);
                Ok(*self.route.insert(network.resolve(&self.contact.lower)?))
            }
        }
    }

    /// Who it is, for people.
    pub fn name(&self) -> String {
        match &self.greeting {
            Some(greeting) => greeting.name(),
            None => format!("{} of another host, at {}", self.contact, self.contact.lower),
        }
    }

    /// The last that is to be said to it when its place is given away, as a batch of the endpoint of this greeting.
    pub fn last_words(&self, own: &Greeting) -> Option<Vec<u8>> {
        let kind = match &self.due {
            due if due.refusal => Kind::Refusal,
            due if due.severed => Kind::Severed,
            due if due.acknowledgement.is_some() => Kind::Acknowledgement,
            _ => return None,
        };
        Some(own.batch_after(&self.contact, kind, 0, self.come()))
    }

    /// How many of its batches have come, and what we say of the messages in them.
    pub fn come(&self) -> (u64, Receipt) {
        (self.inbox.expected(), self.arriving.receipt())
    }

    /// Adds a packet to what is sent.
    pub fn push(&mut self, packet: &mut Packet) {
        if let Some(speculating) = &mut self.speculating {
            return speculating.push(packet);
        }
        if let Some(unaccepted) = &mut self.unaccepted {
            unaccepted.add(packet);
        }
        self.outbox.push(packet);
    }

    /// How many packets may be added, of those that the program has.
    pub fn room_for(&mut self, count: u32) -> usize {
        let places = self.room().min(count as usize);
        if let Some(speculating) = &mut self.speculating {
            speculating.note_waiting(count - places as u32);
        }
        places
    }

    fn room(&self) -> usize {
        if let Some(speculating) = &self.speculating {
            return speculating.room();
        }
        let is_taken = self.unaccepted.as_ref().is_some_and(|unaccepted| !unaccepted.has_room());
        if is_taken { 0 } else { self.outbox.room() }
    }

    /// Sends what waits to be sent into a pool of slots, and again what was refused, if its time has come.
    pub fn send_kept(&mut self, now: Instant) {
        if let Some(speculating) = &mut self.speculating {
            while self.outbox.room() > 0
                && let Some(packet) = speculating.next()
            {
                self.outbox.push(&packet);
            }
            return;
        }
        let Some(unaccepted) = self.unaccepted.as_mut().filter(|unaccepted| unaccepted.has_more()) else { return };
        while self.outbox.room() > 0
            && let Some(packet) = unaccepted.next_again(now)
        {
            self.outbox.push(&packet);
        }
    }

    /// Whether packets of messages have not reached it for good.
    pub fn has_messages(&self) -> bool {
        let is_message = |header: Header| header.kind() == PacketKind::Data;
        self.outbox.has_messages() || self.kept().any(is_message)
    }

    /// Whether all has reached it.
    pub fn is_empty(&self) -> bool {
        self.outbox.is_empty()
            && self.unaccepted.as_ref().is_none_or(Unaccepted::is_empty)
            && self.speculating.as_ref().is_none_or(Speculating::is_empty)
    }

    /// The headers of the packets that have not.
    pub fn unsent(&self) -> impl Iterator<Item = Header> {
        let keeps = self.unaccepted.is_some() || self.speculating.is_some();
        self.outbox.headers().filter(move |_| !keeps).chain(self.kept())
    }

    /// The headers of the packets that are kept until they are accepted.
    fn kept(&self) -> impl Iterator<Item = Header> {
        let of_messages = self.unaccepted.iter().flat_map(Unaccepted::headers);
        of_messages.chain(self.speculating.iter().flat_map(Speculating::headers))
    }

    /// The network below could not take something for it, or has failed to send it; `why`: its words, if it has any.
    pub fn handle_failure(&mut self, now: Instant, why: Option<String>) {
        self.trouble.get_or_insert_with(|| Trouble::new(now)).handle_failure(now, why);
    }

    /// Finds out whether it can still be reached, as [`Trouble::judge`] does.
    pub fn judge(&mut self, now: Instant, reach: impl FnOnce() -> Option<Reach>) -> Option<String> {
        let is_aside = self.watched().is_some();
        let trouble = self.trouble.as_mut()?;
        match (is_aside, self.watch.is_known()) {
            (false, _) => trouble.judge(now, reach),
            (true, true) => trouble.judge_aside(now, reach),
            (true, false) => trouble.judge(now, || None),
        }
    }

    /// Where its kernel may be asked for it, if that is another socket than its address.
    pub fn watched(&self) -> Option<Watched> {
        self.greeting.as_ref()?.watched
    }

    /// Since when it owes us an acknowledgement, or a welcome.
    pub fn waits_since(&self) -> Option<Instant> {
        match self.phase {
            Phase::Greeting => Some(Instant::default()),
            Phase::Open => self.outbox.unacknowledged_since(),
            Phase::Ended => None,
        }
    }
}
