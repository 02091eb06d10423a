//! `static`: every sender owns an equal share of the data region for good (P §5).
//!
//! Sending a data packet costs one credit; at zero the sender waits. The receiver counts the packets it retrieves per
//! sender and, when the count reaches the threshold (P eq. 1), returns it in a credit packet, which costs no credit:
//! `credit_slots` slots per pair are kept for those. With piggybacking the count also rides on data packets that have
//! room (P §5.4).
//!
//! Invariants, per pair of sender and receiver:
//! * credits held + packets sent and not retrieved + credits travelling + `retrieved` = quota;
//! * `retrieved` < threshold ≤ quota, so a sender without credits always has some coming;
//! * at most `credit_slots` credit packets wait at the sender: `credit_slots + 1` times the threshold exceeds the
//!   quota, and what rides on data only lowers the count.

use super::interface::Scheme;
use crate::control_queue::ControlQueue;
use crate::credit::{CreditCounter, Credits};
use crate::inspect::{Inspection, PeerInspection};
use crate::threshold::threshold;
use crate::violation::returned_credits;
use crate::{Answer, Config, Control, Initial, Instant, Packet, PacketKind, PeerId, Peers, Regions, Violation};

/// One peer, in both roles.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Peer {
    /// Credits we hold at the peer.
    credits: CreditCounter,
    /// Packets of the peer that we retrieved and have not returned credits for.
    retrieved: u32,
}

impl Initial for Peer {
    /// The quota.
    type Config = u32;

    fn initial(&quota: &u32, _: PeerId) -> Self {
        Peer { credits: CreditCounter::new(quota), retrieved: 0 }
    }
}

/// Static credits towards and from all peers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Static {
    peers: Peers<Peer>,
    quota: u32,
    threshold: u32,
    piggyback: bool,
    control: ControlQueue,
}

impl Scheme for Static {
    /// The initial state: every sender owns its quota.
    fn new(config: &Config, regions: Regions) -> Self {
        let &Config { peers, credit_slots, piggyback, .. } = config;
        Self::with_threshold(peers, regions.quota, threshold(regions.quota, credit_slots), piggyback)
    }

    #[inline(always)]
    fn request(&mut self, to: PeerId, wanted: u32, _now: Instant) -> Answer {
        self.peers.of(to).credits.take(wanted).into()
    }

    #[inline]
    fn give_back(&mut self, to: PeerId, credits: Credits) {
        if credits.count() > 0 {
            self.peers.of(to).credits.merge(credits);
        }
    }

    /// The retrieved count rides, as far as two bytes hold it, and starts again (P §5.4).
    #[inline(always)]
    fn before_send(&mut self, to: PeerId, packet: &mut Packet, _left: u32) -> u32 {
        if !self.piggyback || !packet.has_room_to_piggyback() {
            return 0;
        }
        if let Some(peer) = self.peers.get_mut(to)
            && peer.retrieved > 0
        {
            let riding = u16::try_from(peer.retrieved).unwrap_or(u16::MAX);
            packet.set_piggyback(riding);
            peer.retrieved -= u32::from(riding);
            return riding.into();
        }
        0
    }

    #[inline(always)]
    fn handle_retrieved(&mut self, from: PeerId, packet: &Packet) -> Result<u32, Violation> {
        if from.0 >= self.peers.count() {
            return Err(Violation::UnknownPeer);
        }
        let gained = if packet.header.is_plain_data() { 0 } else { self.handle_returned(from, packet)? };
        if packet.header.kind() == PacketKind::Data {
            self.retrieve(from, 1);
        }
        Ok(gained)
    }

    #[inline]
    fn handle_retrieved_slots(&mut self, from: PeerId, mut slots: u32) -> Result<(), Violation> {
        if from.0 >= self.peers.count() {
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

    fn next_control(&mut self) -> Option<Control> {
        loop {
            let to = self.control.front()?;
            let credits = self.control.take_credits(to);
            self.control.pop_front();
            // A peer that was reset keeps its turn with nothing due.
            if credits > 0 {
                return Some(Control { to, packet: Packet::with_credits(PacketKind::Credit, credits) });
            }
        }
    }

    fn reset(&mut self, peer: PeerId) {
        self.peers.forget(peer);
        self.control.forget(peer);
    }

    #[inline]
    fn credits(&self, to: PeerId) -> u32 {
        self.peers.get(to).map_or(self.quota, |peer| peer.credits.count())
    }

    fn heap_bytes(&self) -> usize {
        Peers::<Peer>::bytes_most(self.peers.count()) + self.control.heap_bytes()
    }

    fn inspect(&self, into: &mut Inspection) {
        let inspect = |peer| {
            let retrieved = self.peers.get(peer).map_or(0, |state| state.retrieved);
            PeerInspection {
                credits: self.credits(peer),
                credits_due: self.control.credits_due(peer),
                current_credits: self.quota - retrieved,
                retrieved,
                thresholds: vec![self.threshold],
                intended_quota: self.quota,
                ..PeerInspection::default()
            }
        };
        into.peers = (0..self.peers.count()).map(|peer| inspect(PeerId(peer))).collect();
    }
}

impl Static {
    /// The scheme with a threshold of the caller's choice.
    fn with_threshold(peers: u32, quota: u32, threshold: u32, piggyback: bool) -> Self {
        let (peers, control) = (Peers::new(peers, quota), ControlQueue::new(peers));
        Static { peers, quota, threshold, piggyback, control }
    }

    /// Data packets' slots are free again, up to `most`: counts those that come to the threshold, returns credits when
    /// it is reached, and says how many it counted.
    #[inline(always)]
    fn retrieve(&mut self, from: PeerId, most: u32) -> u32 {
        let peer = self.peers.of(from);
        let counted = most.min(self.threshold.saturating_sub(peer.retrieved).max(1));
        peer.retrieved += counted;
        if peer.retrieved >= self.threshold {
            let returned = std::mem::take(&mut peer.retrieved);
            self.control.return_credits(from, returned);
        }
        counted
    }

    /// Credits that came back in a packet of their own or on data. Checks first: an impossible packet changes nothing.
    #[inline(never)]
    fn handle_returned(&mut self, from: PeerId, packet: &Packet) -> Result<u32, Violation> {
        let is_known = matches!(packet.header.kind(), PacketKind::Data | PacketKind::Credit);
        if !is_known || (packet.header.has_piggyback() && !self.piggyback) {
            return Err(Violation::Unexpected);
        }
        let gained = returned_credits(packet)?;
        let credits = &mut self.peers.of(from).credits;
        if gained > self.quota.saturating_sub(credits.count()) {
            return Err(Violation::TooManyCredits);
        }
        credits.merge(Credits::new(gained));
        Ok(gained)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A formula for the threshold, from quota and credit slots.
    type Formula = fn(u32, u32) -> u32;

    const EQUATION_1: Formula = threshold;
    /// P table 1, formula (a).
    const FORMULA_A: Formula = |quota, credit_slots| quota / credit_slots + 1;
    /// P table 1, formula (b).
    const FORMULA_B: Formula = |quota, credit_slots| quota / credit_slots;

    #[derive(Debug, PartialEq)]
    enum Outcome {
        Sound,
        /// No credits ever come back.
        Deadlock,
        /// More credit packets wait than there are credit slots.
        Overflow,
    }

    /// The worst case of both dangers at once: a sender uses up its quota without looking at its mailbox.
    fn flood(formula: Formula, quota: u32, credit_slots: u32) -> Outcome {
        let side = |threshold| Static::with_threshold(1, quota, threshold, false);
        let (mut sender, mut receiver) = (side(1), side(formula(quota, credit_slots)));
        let peer = PeerId(0);
        let mut waiting = 0;
        let mut credits = sender.request(peer, u32::MAX, Instant::default()).into_credits();
        while credits.count() > 0 {
            credits.spend();
            receiver.handle_retrieved(peer, &Packet::new(PacketKind::Data, 0, 0)).unwrap();
            waiting += u32::from(receiver.next_control().is_some());
        }
        match waiting {
            0 => Outcome::Deadlock,
            waiting if waiting > credit_slots => Outcome::Overflow,
            _ => Outcome::Sound,
        }
    }

    #[test]
    fn equation_1_is_sound_for_every_small_quota() {
        for quota in 1..200 {
            for credit_slots in 1..=quota {
                assert_eq!(flood(EQUATION_1, quota, credit_slots), Outcome::Sound, "({quota}, {credit_slots})");
            }
        }
    }

    #[test]
    fn formula_a_deadlocks_at_100_1() {
        assert_eq!(FORMULA_A(100, 1), 101);
        assert_eq!(flood(FORMULA_A, 100, 1), Outcome::Deadlock);
    }

    #[test]
    fn formula_b_overflows_at_3_2() {
        assert_eq!(FORMULA_B(3, 2), 1);
        assert_eq!(flood(FORMULA_B, 3, 2), Outcome::Overflow);
    }

    /// The columns of P table 1 that no rule of ours computes, as written there.
    #[test]
    fn the_other_formulas_give_table_1() {
        let rows = [
            (100, 1, 101, 100),
            (100, 2, 51, 50),
            (100, 3, 34, 33),
            (100, 4, 26, 25),
            (100, 5, 21, 20),
            (60, 2, 31, 30),
            (40, 2, 21, 20),
            (20, 2, 11, 10),
            (10, 2, 6, 5),
            (3, 2, 2, 1),
        ];
        for (quota, credit_slots, a, b) in rows {
            assert_eq!((FORMULA_A(quota, credit_slots), FORMULA_B(quota, credit_slots)), (a, b));
        }
    }

    #[test]
    fn more_credits_ride_than_two_bytes_hold() {
        let mut receiver = Static::with_threshold(1, 200_000, 100_000, true);
        for _ in 0..70_000 {
            receiver.handle_retrieved(PeerId(0), &Packet::new(PacketKind::Data, 0, 0)).unwrap();
        }
        let rides = [(); 3].map(|()| {
            let mut packet = Packet::new(PacketKind::Data, 54, 0);
            receiver.before_send(PeerId(0), &mut packet, 0);
            packet.piggyback()
        });
        assert_eq!(rides, [Some(u16::MAX), Some((70_000 - u32::from(u16::MAX)) as u16), None]);
    }
}
