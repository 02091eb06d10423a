//! Posted buffers between hosts: who is refused, and what is sent again. For the slots of one pool, `slots` has other
//! rules.
//!
//! The receiving link keeps the posted buffers ([`ReceiveQueues`]). A *message* is here what lies in one buffer:
//! packets up to one that ends its buffer, or a control packet. Each is numbered, and each packet carries its message's
//! number and whether it is the first of it. The first takes a buffer. Where there is none, the message is refused: it
//! and all behind it are dropped, until it comes again.
//!
//! The sending link keeps each packet until its message is accepted. Every batch says which message its sender expects
//! next from us, and how often it has refused one so far ([`Receipt`]). When that number rises, the sender waits for
//! the retry timer, and sends everything again from the refused message on, in order (L §4.1); new packets wait
//! meanwhile. A message is accepted with its first packet, whose receipt may come while there was no room yet for its
//! others to go again: they are kept until they have.
//!
//! **Why nothing is lost with a batch.** The receipt is made as packets are taken, before their batch is acknowledged.
//! So a batch that acknowledges packets also says what became of them, and whoever has asked until all was acknowledged
//! knows of each message whether it was accepted. Receipts are counts that only grow, so that an older one that comes
//! late changes nothing.
//!
//! Invariants: the receiver accepts messages in order and each once, since it accepts only the one that it expects; the
//! sender keeps at most [`KEPT_MOST`] packets and a call's more.

use super::wire::{PACKETS_PER_BATCH, Receipt};
use std::collections::VecDeque;
use std::time::Duration;
use tidegate_flow::{Arrived, Header, Instant, Packet, PeerId, ReceiveQueues};

/// Packets that are kept for a peer when nothing more is taken for it.
pub const KEPT_MOST: usize = 4 * PACKETS_PER_BATCH;
/// Numbers of messages have so many bits. Fewer than half of them are ever under way.
pub const NUMBER_MASK: u16 = 0x7fff;
/// The bit beside the number that says that a packet is the first of its message.
const FIRST: u16 = 0x8000;
/// Refusals are counted in so many bits.
pub const REFUSALS_MASK: u8 = 0x3f;

/// How far `to` is ahead of `from`.
pub fn distance(from: u16, to: u16) -> u16 {
    to.wrapping_sub(from) & NUMBER_MASK
}

/// What we have sent to a peer and it has not accepted.
#[derive(Debug, Default)]
pub struct Unaccepted {
    /// The number of the first message that is not accepted.
    first: u16,
    /// The number of the message that is begun next.
    next: u16,
    /// The last message has more packets to come.
    is_amid: bool,
    kept: VecDeque<(u16, Packet)>,
    /// How many of them have been handed on since the last refusal.
    sent: usize,
    refusals: u8,
    /// The retry timer runs until then.
    waits_until: Option<Instant>,
}

impl Unaccepted {
    /// Whether something may be added: not while something has to be sent again before it.
    pub fn has_room(&self) -> bool {
        self.waits_until.is_none() && self.sent == self.kept.len() && self.kept.len() < KEPT_MOST
    }

    /// Adds a packet, which is handed on now, and numbers it.
    pub fn add(&mut self, packet: &mut Packet) {
        let begins = !self.is_amid;
        if begins {
            self.next = self.next.wrapping_add(1) & NUMBER_MASK;
        }
        let number = self.next.wrapping_sub(1) & NUMBER_MASK;
        self.is_amid = !packet.header.is_last_in_buffer();
        packet.header = packet.header.published(number | if begins { FIRST } else { 0 }, PeerId(0));
        // A message is accepted with its first packet.
        if distance(self.first, number) < distance(self.first, self.next) {
            self.kept.push_back((number, *packet));
            self.sent += 1;
        }
    }

    /// The next packet to send again, once the timer has run out.
    pub fn next_again(&mut self, now: Instant) -> Option<Packet> {
        if self.waits_until.is_some_and(|until| until > now) {
            return None;
        }
        self.waits_until = None;
        let &(number, packet) = self.kept.get(self.sent)?;
        if self.is_accepted(number) {
            // The rest of a message of which only the beginning had gone again when it was accepted: it goes once.
            self.kept.pop_front();
        } else {
            self.sent += 1;
        }
        Some(packet)
    }

    /// Whether the peer has accepted that message.
    fn is_accepted(&self, number: u16) -> bool {
        distance(number, self.first).wrapping_sub(1) < NUMBER_MASK / 2
    }

    /// Whether packets are to be sent again, now or when the timer has run out.
    pub fn has_more(&self) -> bool {
        self.sent < self.kept.len()
    }

    /// What the peer has said. Returns until when to wait, if a message was refused.
    pub fn handle_receipt(&mut self, receipt: Receipt, now: Instant, timer: Duration) -> Option<Instant> {
        let accepted = distance(self.first, receipt.expected);
        if accepted > distance(self.first, self.next) {
            return None;
        }
        self.first = receipt.expected & NUMBER_MASK;
        // What has not been handed on again of an accepted message must still go.
        while self.sent > 0 && self.kept.front().is_some_and(|&(number, _)| self.is_accepted(number)) {
            self.kept.pop_front();
            self.sent -= 1;
        }
        let refused = receipt.refusals.wrapping_sub(self.refusals) & REFUSALS_MASK;
        if refused == 0 || refused > REFUSALS_MASK / 2 {
            return None;
        }
        self.refusals = receipt.refusals;
        if self.kept.is_empty() || self.waits_until.is_some() {
            return None;
        }
        self.sent = 0;
        self.waits_until = Some(now + timer);
        self.waits_until
    }

    /// The headers of the packets that are not accepted.
    pub fn headers(&self) -> impl Iterator<Item = Header> {
        self.kept.iter().map(|(_, packet)| packet.header)
    }

    /// Whether all is accepted.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

/// What comes from a peer for our buffers.
#[derive(Debug, Default)]
pub struct Arriving {
    /// The message that is expected next, all bits of its number.
    pub expected: u32,
    /// See [`Receipt::refusals`].
    pub refusals: u8,
    /// Whether the message under way was accepted.
    is_accepted: bool,
    /// See [`Receipt::slots`].
    pub slots: u16,
    /// Its sender has said that it sends nothing more before it knows what became of this.
    pub wants_answer: bool,
    /// How often slots that were kept for it were taken back since it last used one.
    pub revocations: u32,
}

impl Arriving {
    /// What we say of it.
    pub fn receipt(&self) -> Receipt {
        let Arriving { expected, refusals, slots, .. } = *self;
        Receipt { expected: expected as u16 & NUMBER_MASK, refusals, slots }
    }

    /// A packet of this peer has come, with what its sender wrote into its header. Returns whether it has a buffer.
    pub fn accept(&mut self, queues: &mut ReceiveQueues, from: PeerId, header: Header) -> bool {
        let tag = header.stamp();
        if tag & FIRST != 0 {
            let ahead = distance(self.expected as u16, tag);
            let arrived = match ahead {
                0 => queues.handle_arrival(from, self.expected),
                _ => Arrived::Dropped,
            };
            match arrived {
                Arrived::Accepted => self.expected = self.expected.wrapping_add(1),
                Arrived::Refused => self.refusals = self.refusals.wrapping_add(1) & REFUSALS_MASK,
                Arrived::Dropped => {}
            }
            self.is_accepted = arrived == Arrived::Accepted;
        }
        self.is_accepted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_flow::{Buffers, PacketKind, Posting, SchemeName};

    /// Numbers of messages and of refusals begin again, several times.
    #[test]
    fn all_messages_arrive_once_and_in_order_however_often_their_numbers_begin_again() {
        let buffers = Buffers { per_connection: 3, ..Buffers::of(SchemeName::Rnr) };
        let mut queues = ReceiveQueues::new(SchemeName::Rnr, 1, &buffers).expect("the scheme posts some");
        let (mut unaccepted, mut arriving) = (Unaccepted::default(), Arriving::default());
        let (mut now, timer, peer) = (Instant::default(), Duration::from_millis(1), PeerId(0));
        let (mut sent, mut got) = (0_u32, 0);
        while got < 3 * u32::from(NUMBER_MASK) {
            let mut under_way = Vec::new();
            for _ in 0..4 {
                if !unaccepted.has_room() {
                    break;
                }
                let mut packet = Packet::with_credits(PacketKind::Data, sent % 100);
                packet.header = packet.header.ending_buffer();
                unaccepted.add(&mut packet);
                under_way.push(packet);
                sent += 1;
            }
            under_way.extend(std::iter::from_fn(|| unaccepted.next_again(now)));
            for packet in under_way {
                if arriving.accept(&mut queues, peer, packet.header) {
                    assert_eq!(packet.credits(), got % 100);
                    got += 1;
                }
            }
            // Three buffers for four messages: one is refused each time.
            (0..queues.taken(peer)).for_each(|_| queues.post(Posting::Again(peer)));
            now = now + timer + timer;
            unaccepted.handle_receipt(arriving.receipt(), now, timer);
            now = now + timer + timer;
        }
        assert!(sent >= got);
    }

    /// The receipt for the beginning of a message leaves the rest of it to be sent.
    #[test]
    fn a_message_that_is_accepted_before_all_of_it_went_again_goes_whole() {
        let (now, timer) = (Instant::default(), Duration::from_millis(1));
        let mut unaccepted = Unaccepted::default();
        for number in 0..6 {
            let mut packet = Packet::with_credits(PacketKind::Data, number);
            if number == 4 {
                packet.header = packet.header.ending_buffer();
            }
            unaccepted.add(&mut packet);
        }
        let receipt = |expected, refusals| Receipt { expected, refusals, ..Receipt::default() };
        let due = unaccepted.handle_receipt(receipt(0, 1), now, timer).expect("it is refused");
        let again = |unaccepted: &mut Unaccepted| unaccepted.next_again(due).map(|packet| packet.credits());
        assert_eq!((again(&mut unaccepted), again(&mut unaccepted)), (Some(0), Some(1)));
        assert_eq!(unaccepted.handle_receipt(receipt(1, 1), due, timer), None);
        assert!(unaccepted.has_more() && !unaccepted.has_room(), "nothing goes past the rest");
        let rest: Vec<u32> = std::iter::from_fn(|| again(&mut unaccepted)).collect();
        assert_eq!(rest, [2, 3, 4, 5]);
        assert_eq!(unaccepted.headers().count(), 1, "the beginning of the next message");
        assert_eq!(unaccepted.handle_receipt(receipt(2, 1), due, timer), None);
        assert!(unaccepted.is_empty() && unaccepted.has_room());
    }
}
