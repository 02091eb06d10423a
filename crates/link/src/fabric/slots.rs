//! One pool of slots between hosts (`speculative`): each packet takes a slot of its receiver's pool, or is refused and
//! goes again when its sender is invited. [`SlotPool`] and [`Speculation`] have the rules; this is how batches carry
//! them. An endpoint with peers on its own host has a second pool of as many slots, in its shared memory.
//!
//! The sending link keeps each packet until it is accepted ([`Speculating`]), at most [`KEPT_MOST`] for a peer. It
//! carries its number, how many its sender has behind it, and whether its sender waits for an answer, in fields of its
//! header that only links use. The receiving link looks at the packet that it expects next, and drops the others.
//!
//! Every batch says which packet its sender expects next from us, how often it has refused or invited us, and to how
//! many slots it has invited us last ([`Receipt`]). The count is odd while we have to wait. An invitation makes the
//! receiving link send an acknowledgement at once, which carries it, unless another batch does.
//!
//! **Why no refusal and no invitation is lost or misread.** A refusal follows only from a packet that its sender has
//! sent since the last invitation it knows of. So the count is ahead of what the sender knows by two at most: by a
//! refusal and the invitation after it. Two mean that both have happened, and everything goes again from the expected
//! packet on. Each refusal comes with a batch of its sender's, so that two receipts that acknowledge the same batches
//! differ by one invitation at most, and a receipt that acknowledges fewer than another is older and is not looked at.
//! A lost acknowledgement that carried an invitation is made good by any later batch; a sender that hears nothing
//! pings, and each answer carries the receipt.
//!
//! **When a refusal is told.** A sender that goes on sending is told at once. One whose window is full sends nothing
//! until it is invited, whether it knows of the refusal or not; its packet says that, and the refusal waits a moment
//! for the invitation, which carries both. So where all senders wait, each invitation costs one batch and no more.
//!
//! **Slots that no sender uses.** A sender that was invited and computes does not come. When others wait, and nothing
//! has come of the one invited longest ago for [`HOLDING_MOST`], or too little for [`PROGRESSES_MOST`] times that, its
//! slots are taken back. From then on until it has used a slot it is kept a single one ([`SlotPool`] says for how
//! long), and where that is taken back too the time doubles, up to [`DOUBLINGS_MOST`] times.

use super::buffers::{Arriving, KEPT_MOST, NUMBER_MASK, REFUSALS_MASK, distance};
use super::wire::Receipt;
use std::time::Duration;
use tidegate_flow::{Arrived, Header, Instant, Packet, PeerId, SlotPool, Speculation};

/// How long slots are kept for a sender of which nothing comes, while others wait for slots.
pub const HOLDING_MOST: Duration = Duration::from_millis(5);
/// This many times as long they are kept for a sender of which packets come one by one.
pub const PROGRESSES_MOST: u32 = 20;
/// How often that time doubles for a sender that comes too late each time: it is 1.28 s at most.
const DOUBLINGS_MOST: u32 = 8;
/// The bit above a packet's number that says that its sender waits for an answer.
const WANTS_ANSWER: u16 = 0x8000;
/// The header says of at most this number of packets that they are behind another: that is what its bits hold.
const BEHIND_MOST: u32 = 0xf_ffff;

/// The packets that we have written to a peer and its pool of slots has not accepted.
#[derive(Debug)]
pub struct Speculating {
    queue: Speculation<Packet>,
    /// How often the peer has refused or invited us, as far as we know.
    answers: u8,
    /// How many more packets the program had when there was no room for them.
    waiting: u32,
}

/// The changes that a receipt has made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    /// A packet of ours was refused.
    pub is_refused: bool,
    /// Packets can be sent that could not before.
    pub may_send: bool,
}

impl Default for Speculating {
    /// Until a packet is refused, there may be as many under way as are kept.
    fn default() -> Self {
        Speculating { queue: Speculation::new(KEPT_MOST as u32), answers: 0, waiting: 0 }
    }
}

impl Speculating {
    /// How many packets may be added.
    pub fn room(&self) -> usize {
        KEPT_MOST.saturating_sub(self.queue.len())
    }

    /// Adds a packet behind the others.
    pub fn push(&mut self, packet: &Packet) {
        self.queue.push(*packet);
    }

    /// The program has more packets, this number of them, for which there is no room.
    pub fn note_waiting(&mut self, packets: u32) {
        self.waiting = packets;
    }

    /// The next packet that may be sent now, if there is one, which counts as sent from now on.
    pub fn next(&mut self) -> Option<Packet> {
        let wants_answer = self.queue.is_narrow() && self.queue.wants_answer();
        let (number, behind, packet) = self.queue.next_to_send()?;
        let behind = behind.saturating_add(self.waiting).min(BEHIND_MOST);
        let stamp = number & NUMBER_MASK | if wants_answer { WANTS_ANSWER } else { 0 };
        let packet = Packet { header: packet.header.published(stamp, PeerId(behind)), ..*packet };
        self.queue.note_sent();
        Some(packet)
    }

    /// The peer has said what became of our packets. A receipt that cannot be true changes nothing.
    pub fn handle_receipt(&mut self, receipt: Receipt) -> Answered {
        let news = receipt.refusals.wrapping_sub(self.answers) & REFUSALS_MASK;
        let accepted = u32::from(distance(self.queue.first(), receipt.expected));
        if news > REFUSALS_MASK / 2 || accepted as usize > self.queue.len() {
            return Answered::default();
        }
        self.answers = receipt.refusals & REFUSALS_MASK;
        let (is_waiting, is_invited) = (self.queue.is_waiting(), self.answers.is_multiple_of(2));
        let before = self.queue.first().wrapping_add(accepted as u16);
        let is_refused = news > 0 && !is_waiting && self.queue.handle_refused(before);
        let mut may_send = !is_refused && self.queue.handle_accepted(before);
        if is_invited && self.queue.is_waiting() {
            self.queue.handle_invited(receipt.slots.into());
            may_send = true;
        }
        Answered { is_refused, may_send }
    }

    /// The headers of the packets that are not accepted.
    pub fn headers(&self) -> impl Iterator<Item = Header> {
        self.queue.packets().map(|packet| packet.header)
    }

    /// Whether all is accepted.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

impl Arriving {
    /// A packet of this peer has come for our pool of slots, with its sender's words in its header. Returns whether it
    /// has a slot.
    pub fn accept_slot(&mut self, pool: &mut SlotPool, from: PeerId, header: Header) -> bool {
        let (stamp, behind) = (header.stamp(), header.source().0);
        let ahead = distance(self.expected as u16, stamp);
        let number = match ahead <= NUMBER_MASK / 2 {
            true => self.expected.wrapping_add(ahead.into()),
            false => self.expected.wrapping_sub(distance(stamp, self.expected as u16).into()),
        };
        self.wants_answer |= stamp & WANTS_ANSWER != 0;
        let arrived = pool.handle_arrival(from, number as u16, behind);
        match arrived {
            Arrived::Accepted => (self.expected, self.revocations) = (self.expected.wrapping_add(1), 0),
            Arrived::Refused => self.refusals = self.refusals.wrapping_add(1) & REFUSALS_MASK,
            Arrived::Dropped => {}
        }
        arrived == Arrived::Accepted
    }

    /// This number of slots is kept for the peer, which waits for them.
    pub fn invite(&mut self, slots: u32) {
        self.slots = slots.min(u16::MAX.into()) as u16;
        self.refusals = self.refusals.wrapping_add(1) & REFUSALS_MASK;
    }

    /// Slots that were kept for this peer were taken back.
    pub fn revoke(&mut self) {
        self.revocations = self.revocations.saturating_add(1);
    }

    /// How long slots are kept for this peer while nothing comes of it and others wait.
    pub fn holding_most(&self) -> Duration {
        HOLDING_MOST * (1 << self.revocations.min(DOUBLINGS_MOST))
    }
}

/// The peer that was invited longest ago, while others wait.
#[derive(Clone, Copy, Debug)]
pub struct Holder {
    /// The peer's place.
    pub place: PeerId,
    /// The packet that is expected of the peer.
    pub expected: u16,
    /// Until when slots are kept for the peer though it does not come.
    pub until: Instant,
    /// Until when they are kept though it comes, if slowly.
    pub ends: Instant,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tidegate_flow::PacketKind;

    const PEER: PeerId = PeerId(0);
    const OTHER: PeerId = PeerId(1);

    fn sent(speculating: &mut Speculating) -> Vec<Packet> {
        std::iter::from_fn(|| speculating.next()).collect()
    }

    /// Numbers of packets, and of refusals and invitations, begin again several times. Of two receipts only one comes.
    #[test]
    fn all_packets_arrive_once_and_in_order_however_often_numbers_begin_again() {
        let (mut speculating, mut arriving) = (Speculating::default(), Arriving::default());
        let mut pool = SlotPool::new(2, 8);
        let (mut written, mut got, mut refusals, mut rounds) = (0_u32, 0, 0, 0_u32);
        while got < 3 * u32::from(NUMBER_MASK) {
            rounds += 1;
            assert!(rounds < 3 * u32::from(NUMBER_MASK), "it does not end");
            for _ in 0..speculating.room().min(30) {
                speculating.push(&Packet::with_credits(PacketKind::Data, written % 100));
                written += 1;
            }
            for packet in sent(&mut speculating) {
                if arriving.accept_slot(&mut pool, PEER, packet.header) {
                    assert_eq!(packet.credits(), got % 100);
                    got += 1;
                }
            }
            if rounds.is_multiple_of(2) {
                refusals += u32::from(speculating.handle_receipt(arriving.receipt()).is_refused);
            }
            pool.note_retrieved(pool.filled());
            while let Some((_, slots)) = pool.poll_invitation() {
                arriving.invite(slots);
            }
            refusals += u32::from(speculating.handle_receipt(arriving.receipt()).is_refused);
            assert!(speculating.handle_receipt(arriving.receipt()) == Answered::default(), "it is known");
        }
        assert!(refusals > 10 * u32::from(REFUSALS_MASK), "{refusals} in {rounds}");
        assert!(written < got + KEPT_MOST as u32 + 1);
    }

    #[test]
    fn a_packet_says_how_many_are_behind_it_and_a_waiting_sender_asks_for_an_answer() {
        let mut speculating = Speculating::default();
        (0..5).for_each(|number| speculating.push(&Packet::with_credits(PacketKind::Data, number)));
        speculating.note_waiting(3);
        let said = |packet: &Packet| (packet.header.stamp(), packet.header.source().0);
        let first: Vec<_> = sent(&mut speculating).iter().map(said).collect();
        assert_eq!(first, [(0, 7), (1, 6), (2, 5), (3, 4), (4, 3)]);
        for round in 0..9 {
            let receipt = Receipt { expected: 0, refusals: 2 * round + 1, slots: 0 };
            assert!(speculating.handle_receipt(receipt).is_refused && sent(&mut speculating).is_empty());
            let receipt = Receipt { refusals: 2 * round + 2, slots: 1, ..receipt };
            assert!(speculating.handle_receipt(receipt).may_send);
            assert!(!sent(&mut speculating).is_empty());
        }
        // The one that was invited was accepted, and another one: the window has grown from one to two.
        let receipt = Receipt { expected: 2, refusals: 18, slots: 1 };
        assert!(speculating.handle_receipt(receipt).may_send);
        let last: Vec<_> = sent(&mut speculating).iter().map(said).collect();
        assert_eq!(last, [(WANTS_ANSWER | 2, 5), (WANTS_ANSWER | 3, 4)]);
    }

    /// A receipt that comes late, or cannot be true, changes nothing.
    #[test]
    fn receipts_that_say_less_than_is_known_are_not_looked_at() {
        let mut speculating = Speculating::default();
        (0..3).for_each(|number| speculating.push(&Packet::with_credits(PacketKind::Data, number)));
        assert_eq!(sent(&mut speculating).len(), 3);
        let receipt = |expected, refusals, slots| Receipt { expected, refusals, slots };
        for refusals in [1, 2] {
            assert_eq!(
                speculating.handle_receipt(receipt(4, refusals, 9)),
                Answered::default(),
                "it has not sent these"
            );
        }
        assert!(speculating.handle_receipt(receipt(1, 1, 0)).is_refused);
        assert!(speculating.handle_receipt(receipt(1, 2, 2)).may_send);
        assert_eq!(sent(&mut speculating).len(), 2);
        assert_eq!(speculating.handle_receipt(receipt(1, 1, 0)), Answered::default());
        assert_eq!(speculating.handle_receipt(receipt(3, 2, 2)), Answered { is_refused: false, may_send: true });
        assert!(speculating.is_empty());
    }

    #[test]
    fn a_packet_that_was_accepted_is_dropped_when_it_comes_again() {
        let (mut arriving, mut pool) = (Arriving::default(), SlotPool::new(2, 8));
        let header = |number| Header::new(PacketKind::Data, 1, 0).published(number, PeerId(0));
        let accepted = [0, 1, 0, 1, NUMBER_MASK, 2].map(|number| arriving.accept_slot(&mut pool, PEER, header(number)));
        assert_eq!(accepted, [true, true, false, false, false, true]);
        assert_eq!((pool.filled(), arriving.receipt().expected), (3, 3));
    }

    #[test]
    fn slots_are_kept_longer_for_a_sender_that_came_too_late() {
        let (mut arriving, mut pool) = (Arriving::default(), SlotPool::new(2, 1));
        assert_eq!(arriving.holding_most(), HOLDING_MOST);
        (0..50).for_each(|_| arriving.revoke());
        assert_eq!(arriving.holding_most(), HOLDING_MOST * (1 << DOUBLINGS_MOST));
        assert!(arriving.accept_slot(&mut pool, PEER, Header::new(PacketKind::Data, 1, 0)));
        assert_eq!(arriving.holding_most(), HOLDING_MOST);
    }

    proptest! {
        /// A peer may say anything: no more packets are kept than may be, and they stay in order.
        #[test]
        fn any_receipts_may_come(receipts in prop::collection::vec((0_u16..600, 0_u8..64, any::<u16>()), 0..300)) {
            let (mut speculating, mut number) = (Speculating::default(), 0);
            for (expected, refusals, slots) in receipts {
                for _ in 0..speculating.room().min(7) {
                    speculating.push(&Packet::with_credits(PacketKind::Data, number));
                    number += 1;
                }
                let numbers: Vec<u32> = sent(&mut speculating).iter().map(|packet| packet.credits()).collect();
                prop_assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]));
                let expected = expected.wrapping_add(speculating.queue.first()).wrapping_sub(50);
                speculating.handle_receipt(Receipt { expected, refusals, slots });
                prop_assert!(speculating.headers().count() <= KEPT_MOST);
            }
        }

        /// Packets may say anything: every slot is free, kept or filled, and another sender gets one.
        #[test]
        fn any_packets_may_come(headers in prop::collection::vec((0_u16..9, any::<u32>(), 0_u8..4), 0..300), size in 1_u32..9) {
            let mut arriving = [Arriving::default(), Arriving::default()];
            let mut pool = SlotPool::new(2, size);
            for (ahead, behind, what) in headers {
                let expected = arriving[0].receipt().expected;
                let stamp = expected.wrapping_add(ahead).wrapping_sub(2) | if what == 1 { WANTS_ANSWER } else { 0 };
                let header = Header::new(PacketKind::Data, 1, 0).published(stamp, PeerId(behind % (BEHIND_MOST + 1)));
                arriving[0].accept_slot(&mut pool, PEER, header);
                if what == 2 {
                    pool.note_retrieved(1);
                }
                if what == 3 {
                    pool.revoke();
                }
                while let Some((place, slots)) = pool.poll_invitation() {
                    arriving[place.0 as usize].invite(slots);
                }
                prop_assert_eq!(pool.free() + pool.filled() + pool.kept_for(PEER), size);
                prop_assert_eq!(arriving[0].receipt().refusals % 2 == 1, pool.is_marked(PEER));
            }
            pool.note_retrieved(pool.filled());
            let header = Header::new(PacketKind::Data, 1, 0);
            if !arriving[1].accept_slot(&mut pool, OTHER, header) {
                // All was kept for the first.
                prop_assert_eq!(pool.revoke(), Some(PEER));
                prop_assert!(arriving[1].accept_slot(&mut pool, OTHER, header));
            }
        }
    }
}
