//! The queue of `credit_slots + 1` thresholds of every sender (P §6.2).
//!
//! A ring per sender, all in one table. The head lives beside the counter that it is compared with ([`ReceiverSide`]);
//! its place in the ring is vacant and takes the newest threshold when the head is popped. That place moves on by one
//! with each crossing, so it is the number of crossings since the last monitoring point.

use super::receiver::ReceiverSide;
use crate::{Initial, PeerId, Peers};

/// A threshold, or 0 in the vacant place of its ring.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Threshold(u32);

impl Initial for Threshold {
    /// Places per ring.
    type Config = u32;

    /// All thresholds 1, the head the first (P §6.3).
    fn initial(&places: &u32, place: PeerId) -> Self {
        Threshold(u32::from(!place.0.is_multiple_of(places)))
    }
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ThresholdQueues {
    /// The places of the first sender's ring, then those of the next one's: see [`place`](Self::place).
    rings: Peers<Threshold, 64>,
    /// Places per ring: `credit_slots + 1`.
    places: u32,
}

impl ThresholdQueues {
    /// Rings for `peers` senders, in the initial state.
    pub(super) fn new(peers: u32, credit_slots: u32) -> Self {
        let places = credit_slots + 1;
        ThresholdQueues { rings: Peers::new(places * peers, places), places }
    }

    /// A place of a sender's ring, as the table of all of them counts.
    fn place(&self, sender: PeerId, place: u32) -> PeerId {
        PeerId(sender.0 * self.places + place)
    }

    fn of(&mut self, sender: PeerId, place: u32) -> &mut u32 {
        &mut self.rings.of(self.place(sender, place)).0
    }

    /// A crossing: the head goes, `newest` enters at the tail, and the next one becomes the head.
    pub(super) fn advance(&mut self, index: PeerId, sender: &mut ReceiverSide, newest: u32) {
        debug_assert!(newest > 0, "a threshold of 0 would be reached by nothing");
        *self.of(index, sender.crossings) = newest;
        let next = sender.crossings + 1;
        sender.crossings = if next == self.places { 0 } else { next };
        sender.head = std::mem::take(self.of(index, sender.crossings));
    }

    /// All ones but for the newest, which gets `extra` on top (C5).
    pub(super) fn restart(&mut self, index: PeerId, sender: &mut ReceiverSide, extra: u32) {
        (0..self.places).for_each(|place| _ = self.rings.forget(self.place(index, place)));
        *self.of(index, self.places - 1) += extra;
        sender.crossings = 0;
        sender.head = 1;
    }

    /// The queue from its head to its newest, for inspection.
    pub(super) fn queue(&self, index: PeerId, sender: &ReceiverSide) -> Vec<u32> {
        let at = |place| {
            let place = self.place(index, place);
            self.rings.get(place).cloned().unwrap_or_else(|| Threshold::initial(&self.places, place)).0
        };
        let head = sender.crossings;
        std::iter::once(sender.head).chain((head + 1..self.places).map(at)).chain((0..head).map(at)).collect()
    }

    /// Most heap bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        Peers::<Threshold, 64>::bytes_most(self.rings.count())
    }
}
