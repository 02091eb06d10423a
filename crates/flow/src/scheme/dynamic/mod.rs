//! `dynamic`: slots of the data region move to the senders that use them (P §6).
//!
//! # The idea
//!
//! Every sender keeps `static_slots` slots for good. The rest of the data region is a pool that the receiver lends:
//! whenever a sender has used up a threshold's worth of credits it gets new ones, as many as its *intended quota* earns
//! (P eq. 1). A sender that used all it was given (`credit_slots + 1` thresholds, a *monitoring point*) rises in the
//! activity lists; once it is among the most active it *steals* from the intended quota of the sender that has been
//! quiet for longest. The quiet sender's real credits follow: it is asked to return what it does not use.
//!
//! # Where the paper alone is not enough
//!
//! The paper queues the threshold it computed even when fewer credits were granted. Then a sender can use up everything
//! it has without reaching the threshold, and waits for ever. The rules that close this and the other gaps, and where
//! each one acts:
//!
//! | rule | says | file |
//! |---|---|---|
//! | C1 | queue the credits granted, not the threshold computed | [`activity_control`], [`piggyback`] |
//! | C2 | on crossing subtract the head, not all; cross again at the next head | [`activity_control`], [`piggyback`] |
//! | C3 | nobody's static slots are lent out | [`slots`] |
//! | C4 | a blocked sender crosses nothing, and gets one credit when it has none left | [`credit_return`] |
//! | C5 | a response puts its sender back into the initial state | [`credit_return`] |
//! | C6 | credits that ride lower `retrieved` and raise `current_credits` alike | [`piggyback`] |
//!
//! # Invariants
//!
//! * *Conservation*: Σ `current_credits` + `available_slots` = data region, and `current_credits` = credits the sender
//!   holds + its packets on the way + credits on the way to it.
//! * *Reserve* (C3): `available_slots` ≥ Σ max(`static_slots` − `current_credits`, 0).
//! * *Queue* (C1): sum of the thresholds − `retrieved` = `current_credits` + 1, for every sender that is not blocked.
//!   - Liveness: when a sender has spent everything, `retrieved` has grown to the sum − 1, and as every one of the two
//!     or more thresholds is at least 1 the head is reached, so credits are granted; the reserve has at least one. A
//!     sender is thus never without credits when a packet of its arrives, whatever it sends: nothing underflows.
//!   - Credit slots: while `credit_slots` credit packets are unread, the newest `credit_slots` thresholds are what they
//!     carry (and what rode behind them), so `retrieved` cannot grow beyond the head − 1.
//! * *Lists*: every sender is in exactly one; the intended quotas sum to the data region.
//!
//! # Files
//!
//! [`state`] has both halves, [`sender`] and [`receiver`] what is kept for each peer. Mechanisms of the receiver:
//! [`slots`] (slot management), [`thresholds`], [`activity_control`], [`activity_lists`], [`steal`], [`credit_return`]
//! (requests and responses), [`piggyback`], [`reset`].

mod activity_control;
mod activity_lists;
mod credit_return;
mod piggyback;
mod receiver;
mod reset;
mod sender;
mod slots;
mod state;
mod steal;
mod thresholds;

use super::interface::Scheme;
use crate::config::MAILBOX_SLOTS_MAX;
use crate::inspect::{Activity, Inspection, PeerInspection};
use crate::violation::returned_credits;
use crate::{
    Answer, Config, Control, Credits, Initial, Instant, Packet, PacketKind, PeerId, Peers, Regions, SchemeStats,
    Violation,
};
use receiver::ReceiverSide;
use sender::SenderSide;
pub(crate) use state::Dynamic;

impl Scheme for Dynamic {
    fn new(config: &Config, regions: Regions) -> Self {
        Dynamic::initial(config, regions)
    }

    #[inline(always)]
    fn request(&mut self, to: PeerId, wanted: u32, _now: Instant) -> Answer {
        self.take(to, wanted).into()
    }

    #[inline]
    fn give_back(&mut self, to: PeerId, credits: Credits) {
        if credits.count() > 0 {
            self.merge_credits(to, credits);
        }
    }

    #[inline(always)]
    fn before_send(&mut self, to: PeerId, packet: &mut Packet, _left: u32) -> u32 {
        self.let_credits_ride(to, packet)
    }

    /// Slots and activity (receiver's half), then credits (sender's half), as in P fig. 11.
    #[inline(always)]
    fn handle_retrieved(&mut self, from: PeerId, packet: &Packet) -> Result<u32, Violation> {
        if from.0 >= self.receivers.count() {
            return Err(Violation::UnknownPeer);
        }
        if packet.header.is_plain_data() {
            self.retrieve(from, 1);
            return Ok(0);
        }
        self.handle_control(from, packet)
    }

    #[inline]
    fn handle_retrieved_slots(&mut self, from: PeerId, mut slots: u32) -> Result<(), Violation> {
        if from.0 >= self.receivers.count() {
            return Err(Violation::UnknownPeer);
        }
        while slots > 0 {
            slots -= self.retrieve(from, slots);
        }
        Ok(())
    }

    #[inline(always)]
    fn has_control(&self) -> bool {
        !self.control.is_empty()
    }

    /// Of one peer: credits first, since they cost nothing and a request must not overtake grants made before it.
    fn next_control(&mut self) -> Option<Control> {
        while let Some(to) = self.control.front() {
            let credits = self.control.take_credits(to);
            if credits > 0 {
                return Some(Control { to, packet: Packet::with_credits(PacketKind::Credit, credits) });
            }
            if let Some(packet) = self.senders.of(to).poll_waiting(self.slots.static_slots()) {
                return Some(Control { to, packet });
            }
            self.control.pop_front();
        }
        None
    }

    fn reset(&mut self, peer: PeerId) {
        self.forget(peer);
    }

    #[inline]
    fn credits(&self, to: PeerId) -> u32 {
        self.senders.get(to).map_or(self.shares.static_slots, SenderSide::credits)
    }

    fn heap_bytes(&self) -> usize {
        let peers = self.receivers.count();
        Peers::<SenderSide>::bytes_most(peers)
            + Peers::<ReceiverSide>::bytes_most(peers)
            + self.thresholds.heap_bytes()
            + self.lists.heap_bytes()
            + self.control.heap_bytes()
    }

    #[inline]
    fn tally(&self) -> SchemeStats {
        self.tally
    }

    fn move_to_low(&mut self, peer: PeerId) {
        self.lists.move_to_front(peer, Activity::Low);
    }

    fn inspect(&self, into: &mut Inspection) {
        into.available_slots = self.slots.available();
        into.static_slots = self.slots.static_slots();
        into.activity_lists = self.lists.inspect();
        into.peers = (0..self.receivers.count()).map(|peer| self.inspect_peer(PeerId(peer))).collect();
    }
}

impl Dynamic {
    fn inspect_peer(&self, peer: PeerId) -> PeerInspection {
        let initial = (SenderSide::initial(&self.shares.static_slots, peer), ReceiverSide::initial(&self.shares, peer));
        let sender = self.senders.get(peer).unwrap_or(&initial.0);
        let receiver = self.receivers.get(peer).unwrap_or(&initial.1);
        PeerInspection {
            credits: sender.credits(),
            request_waiting: sender.request_waiting,
            response_waiting: sender.response_waiting,
            credits_due: self.control.credits_due(peer),
            current_credits: receiver.current_credits,
            retrieved: receiver.retrieved,
            piggybacked: receiver.piggybacked,
            thresholds: self.thresholds.queue(peer, receiver),
            crossings: receiver.crossings,
            intended_quota: receiver.intended_quota,
            blocked: receiver.blocked,
            ..PeerInspection::default()
        }
    }

    // Out of line, so that the common case stays small where it is inlined.
    /// Control packets, and data on which credits ride. Checks first, so that an impossible packet changes nothing.
    #[inline(never)]
    fn handle_control(&mut self, from: PeerId, packet: &Packet) -> Result<u32, Violation> {
        if packet.header.has_piggyback() && !self.piggyback {
            return Err(Violation::Unexpected);
        }
        let gained = returned_credits(packet)?;
        // Only the peer knows how many peers it has, and so how large its data region is: the largest legal one must
        // do.
        if gained > MAILBOX_SLOTS_MAX.saturating_sub(self.credits(from)) {
            return Err(Violation::TooManyCredits);
        }
        match packet.header.kind() {
            PacketKind::Data => {
                self.retrieve(from, 1);
            }
            PacketKind::Credit => {}
            PacketKind::ReturnRequest => {
                self.handle_request(from)?;
                // As any packet that costs a credit, its slot is free again.
                self.retrieve(from, 1);
                self.wake_control(from);
            }
            PacketKind::ReturnResponse => self.handle_response(from, packet.credits())?,
        }
        if gained > 0 {
            self.merge_credits(from, Credits::new(gained));
        }
        Ok(gained)
    }
}
