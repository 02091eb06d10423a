//! `preposted`: a fixed number of buffers for each connection, and a credit for each (L §4.2).
//!
//! The receiver posts `per_connection` buffers for each connection at the start, and posts each again once its message
//! has been processed. A sender begins with as many credits. Each message costs one; without credits messages wait in
//! the backlog queue, in order, which is the caller's: [`Answer::Wait`]. Credits come back on data packets, or, once
//! `credit_threshold` of them are owed, by a credit packet.
//!
//! What L says and where that is here:
//!
//! * "whenever a sender sends out a message that will consume a receiver buffer, its credit count will be decremented":
//!   [`Preposted::grant`];
//! * "when there are no credits, only Rendezvous protocol is used", because its handshake brings credits back:
//!   [`Answer::Announce`], also for a message that finds others in the backlog
//!   ([`announces_behind_others`](Scheme::announces_behind_others); notes, 5). The request to send costs a credit
//!   like any message, and waits for it in the backlog;
//! * "the receiver will re-post a receive buffer after it has finished processing it. The credit count … will then be
//!   incremented": [`Preposted::post_again`];
//! * piggybacking: [`before_send`](Scheme::before_send); explicit credit messages:
//!   [`next_control`](Scheme::next_control). The threshold is 5 (L §6.3.1), or the number of buffers if that is
//!   smaller: with fewer than 5 it would never be reached (notes);
//! * the optimistic scheme: "we do not impose flow control for explicit credit messages". They take a posted buffer
//!   and cost no credit. So a message that a credit covers *can* be refused, by the buffer that a credit message has
//!   taken, and the hardware's retry lies under this scheme as under `rnr`. The buffer of a credit message is posted
//!   again and earns no credit.
//!
//! Where this departs from L: a count rides on the last packet of a message if that has two bytes to spare, instead of
//! in every header; what does not ride waits for the next message or the threshold. A credit packet that the link
//! refuses as it writes is taken back, and made anew when the timer has run out, with all that is owed by then: its
//! bytes have not left. An injected message that finds no credit goes by no rendezvous: a program counts it as sent and
//! may fall silent, and a rendezvous needs it. It is refused to its program for a while (`egress/inject_backoff.rs` in
//! `tidegate-message`), and then waits in the backlog; either way it has waited (L §4.3). An empty
//! message waits in the backlog, too. The backlog goes on when the message that brought the credits has been handled,
//! not before (notes, 6): its order is the same, but a credit packet may leave where the count could have ridden on
//! what waited.
//!
//! Invariants, for each sender and receiver:
//! * credits held + messages sent and not processed + credits travelling + credits owed = buffers of the connection;
//! * posted buffers + buffers that are full = the same number;
//! * credits owed < min(threshold, buffers) whenever no credit packet waits to leave, so a sender without credits has
//!   some coming, or its messages are not processed: there is no deadlock, even with one buffer and floods both ways,
//!   since processing messages and sending credit packets wait for nothing but the adapter.

use super::interface::Scheme;
use crate::control_queue::ControlQueue;
use crate::credit::CreditCounter;
use crate::filling::Filling;
use crate::inspect::{Inspection, PeerInspection};
use crate::retries::Retries;
use crate::violation::returned_credits;
use crate::{
    Answer, Config, Control, Credits, Initial, Instant, Packet, PacketKind, PeerId, Peers, Posting, Regions,
    SchemeStats, Violation,
};
use std::collections::VecDeque;

/// Whether a message has waited in the backlog (L §4.3; `preposted` does not care).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Past {
    Fresh,
    Waited,
}

/// What a packet was that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Its buffer is not complete.
    Nothing,
    /// It was a credit packet, whose buffer costs no credit.
    Credit,
    /// It was the last of a message.
    Message(Past),
}

/// One peer, in both roles.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Peer {
    /// We as sender: credits we hold, one for each buffer.
    credits: CreditCounter,
    /// We as sender: the buffer under way.
    filling: Filling,
    /// We as sender: what the message in that buffer has been through.
    past: Past,
    /// We as sender: a message found no credit, and none has left since.
    was_short: bool,
    /// We as receiver: credits owed, for buffers that were posted again.
    owed: u32,
    /// We as receiver: buffers of the connection.
    buffers: u32,
}

impl Initial for Peer {
    /// Buffers of each connection.
    type Config = u32;

    fn initial(&buffers: &u32, _: PeerId) -> Self {
        let (credits, filling) = (CreditCounter::new(buffers), Filling::Idle);
        Peer { credits, filling, past: Past::Fresh, was_short: false, owed: 0, buffers }
    }
}

/// See the module. What `growing` needs beside, it does by the methods that are no part of [`Scheme`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Preposted {
    peers: Peers<Peer>,
    /// Packets that a buffer holds.
    packets: u32,
    threshold: u32,
    /// Buffers that a connection can have at most, and thus credits.
    buffers_most: u32,
    piggyback: bool,
    /// Peers that may be owed a credit packet.
    control: ControlQueue,
    retries: Retries,
    postings: VecDeque<Posting>,
}

impl Scheme for Preposted {
    fn new(config: &Config, _regions: Regions) -> Self {
        Preposted::with_most(config, config.buffers.per_connection)
    }

    fn request(&mut self, to: PeerId, wanted: u32, _now: Instant) -> Answer {
        self.grant(to, wanted, Past::Fresh)
    }

    fn announces_behind_others(&self) -> bool {
        true
    }

    fn give_back(&mut self, to: PeerId, credits: Credits) {
        let peer = self.peers.of(to);
        if peer.filling.give_back(credits.into_count()) {
            peer.credits.merge(Credits::new(1));
            // Nothing of the message has left, and what it has been through counts when it does.
            peer.was_short = peer.past == Past::Waited;
        }
    }

    fn handle_refused(&mut self, to: PeerId, credits: Credits, now: Instant) {
        self.give_back(to, credits);
        self.retries.refuse(to, now);
    }

    /// What it was to bring is owed again.
    fn handle_control_refused(&mut self, control: Control, now: Instant) -> Option<Control> {
        self.retries.refuse(control.to, now);
        self.owe(control.to, control.packet.credits());
        None
    }

    fn handle_late_refusal(&mut self, _by: PeerId, _now: Instant) {
        self.retries.count_late_refusal();
    }

    /// On the last packet of a message ride the credits owed, as far as two bytes hold them.
    fn before_send(&mut self, to: PeerId, packet: &mut Packet, left: u32) -> u32 {
        self.retries.note_departure(to);
        let peer = self.peers.of(to);
        if !peer.filling.fill(packet, left) {
            return 0;
        }
        if peer.past == Past::Waited {
            packet.header = packet.header.after_waiting();
        }
        if !self.piggyback || peer.owed == 0 || !packet.has_room_to_piggyback() {
            return 0;
        }
        let riding = u16::try_from(peer.owed).unwrap_or(u16::MAX);
        packet.set_piggyback(riding);
        peer.owed -= u32::from(riding);
        riding.into()
    }

    fn handle_retrieved(&mut self, from: PeerId, packet: &Packet) -> Result<u32, Violation> {
        let (gained, ended) = self.accept(from, packet)?;
        match ended {
            Ended::Nothing => {}
            Ended::Credit => self.post_free_again(from),
            Ended::Message(_) => self.post_again(from),
        }
        Ok(gained)
    }

    fn handle_retrieved_slots(&mut self, _from: PeerId, _slots: u32) -> Result<(), Violation> {
        Ok(())
    }

    fn has_control(&self) -> bool {
        !self.control.is_empty() || !self.postings.is_empty()
    }

    /// A credit packet for each peer that is owed as many as the threshold. Meanwhile some may have ridden.
    fn next_control(&mut self) -> Option<Control> {
        loop {
            let to = self.control.front()?;
            self.control.pop_front();
            if self.is_credit_packet_due(to) && !self.retries.waits(to) {
                let credits = std::mem::take(&mut self.peers.of(to).owed);
                return Some(Control { to, packet: Packet::with_credits(PacketKind::Credit, credits) });
            }
        }
    }

    fn poll_posting(&mut self) -> Option<Posting> {
        self.postings.pop_front()
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.retries.next_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(peer) = self.retries.take_due(now) {
            self.control.enqueue(peer);
        }
    }

    fn poll_ready(&mut self) -> Option<PeerId> {
        self.retries.poll_ready()
    }

    fn reset(&mut self, peer: PeerId) {
        self.peers.forget(peer);
        self.retries.forget(peer);
        self.postings.retain(|posting| posting.peer() != Some(peer));
    }

    fn credits(&self, to: PeerId) -> u32 {
        let (held, left) = match self.peers.get(to) {
            Some(peer) => (peer.credits.count(), peer.filling.left()),
            None => (*self.peers.config(), 0),
        };
        held.saturating_mul(self.packets).saturating_add(left)
    }

    fn refusals(&self, to: PeerId) -> u8 {
        self.retries.refusals(to)
    }

    fn heap_bytes(&self) -> usize {
        Peers::<Peer>::bytes_most(self.peers.count()) + self.control.heap_bytes() + self.retries.heap_bytes()
    }

    fn tally(&self) -> SchemeStats {
        self.retries.tally()
    }

    fn inspect(&self, into: &mut Inspection) {
        let inspect = |id| {
            let initial = Peer::initial(self.peers.config(), id);
            let peer = self.peers.get(id).unwrap_or(&initial);
            PeerInspection {
                credits: peer.credits.count() + u32::from(peer.filling == Filling::Granted),
                current_credits: peer.buffers - peer.owed,
                retrieved: peer.owed,
                thresholds: vec![self.threshold.min(peer.buffers)],
                intended_quota: peer.buffers,
                is_retrying: self.retries.waits(id),
                ..PeerInspection::default()
            }
        };
        into.peers = (0..self.peers.count()).map(|peer| inspect(PeerId(peer))).collect();
    }
}

impl Preposted {
    /// The scheme with connections that may come to have so many buffers.
    pub(super) fn with_most(config: &Config, buffers_most: u32) -> Self {
        let Config { peers, buffers, piggyback, .. } = config;
        Preposted {
            peers: Peers::new(*peers, buffers.per_connection),
            packets: buffers.packets,
            threshold: buffers.credit_threshold,
            buffers_most,
            piggyback: *piggyback,
            control: ControlQueue::new(*peers),
            retries: Retries::new(*peers, buffers.retry_timer),
            postings: VecDeque::new(),
        }
    }

    /// May up to `wanted` packets of a message with this past leave for `to`? As many as the buffer under way has room
    /// for, or as a new one holds, for a credit.
    pub(super) fn grant(&mut self, to: PeerId, wanted: u32, past: Past) -> Answer {
        if self.retries.waits(to) {
            return Answer::Wait;
        }
        let peer = self.peers.of(to);
        let left = peer.filling.left();
        if left > 0 {
            return Credits::new(left.min(wanted)).into();
        }
        let mut credit = peer.credits.take(1);
        if credit.count() == 0 {
            peer.was_short = true;
            return Answer::Announce;
        }
        credit.spend();
        credit.end();
        // The message that was short has waited in the backlog, or with the program, which was told to try again.
        peer.past = if std::mem::take(&mut peer.was_short) { Past::Waited } else { past };
        Credits::new(peer.filling.begin(wanted, self.packets)).into()
    }

    /// A packet has come: takes the credits that it brings, and says what it ends. Checks first: an impossible packet
    /// changes nothing.
    pub(super) fn accept(&mut self, from: PeerId, packet: &Packet) -> Result<(u32, Ended), Violation> {
        if from.0 >= self.peers.count() {
            return Err(Violation::UnknownPeer);
        }
        let header = packet.header;
        let is_known = matches!(header.kind(), PacketKind::Data | PacketKind::Credit);
        if !is_known || (header.has_piggyback() && !self.piggyback) {
            return Err(Violation::Unexpected);
        }
        let gained = returned_credits(packet)?;
        let credits = &mut self.peers.of(from).credits;
        if gained > self.buffers_most.saturating_sub(credits.count()) {
            return Err(Violation::TooManyCredits);
        }
        credits.merge(Credits::new(gained));
        let past = if header.has_waited() { Past::Waited } else { Past::Fresh };
        Ok(match header.kind() {
            PacketKind::Credit => (gained, Ended::Credit),
            _ if header.ends_buffer() => (gained, Ended::Message(past)),
            _ => (gained, Ended::Nothing),
        })
    }

    /// A message was processed: its buffer is posted again, and its credit is owed.
    pub(super) fn post_again(&mut self, from: PeerId) {
        self.postings.push_back(Posting::Again(from));
        self.owe(from, 1);
    }

    /// A message was processed: its buffer is not posted again, and its credit is withheld. With the number of buffers
    /// the threshold may fall, and what was owed below it before may reach it now.
    pub(super) fn withdraw(&mut self, from: PeerId) {
        self.postings.push_back(Posting::Withdrawn(from));
        self.peers.of(from).buffers -= 1;
        self.owe(from, 0);
    }

    /// So many buffers are posted beside those that a connection has. Their credits return like others.
    pub(super) fn add(&mut self, from: PeerId, buffers: u32) {
        self.postings.push_back(Posting::More(from, buffers));
        self.peers.of(from).buffers += buffers;
        self.owe(from, buffers);
    }

    /// Buffers of a connection.
    pub(super) fn buffers(&self, from: PeerId) -> u32 {
        self.peers.get(from).map_or(*self.peers.config(), |peer| peer.buffers)
    }

    /// A credit packet was processed: its buffer is posted again, and earns no credit.
    pub(super) fn post_free_again(&mut self, from: PeerId) {
        self.postings.push_back(Posting::Again(from));
    }

    /// So many credits more are owed; never more than there are buffers, even to a sender that ignores its credits.
    fn owe(&mut self, from: PeerId, credits: u32) {
        let peer = self.peers.of(from);
        peer.owed = peer.owed.saturating_add(credits).min(peer.buffers);
        if self.is_credit_packet_due(from) {
            self.control.enqueue(from);
        }
    }

    fn is_credit_packet_due(&self, to: PeerId) -> bool {
        self.peers.get(to).is_some_and(|peer| peer.owed >= self.threshold.min(peer.buffers))
    }
}
