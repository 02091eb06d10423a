//! The queue of `credit_slots + 1` thresholds of every sender (P §6.2).
//!
//! A ring per sender, all in one vector. The head lives beside the counter that it is compared with ([`ReceiverSide`]);
//! its place in the ring is vacant and takes the newest threshold when the head is popped. That place moves on by one
//! with each crossing, so it is the number of crossings since the last monitoring point.

use super::receiver::ReceiverSide;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ThresholdQueues {
    rings: Box<[u32]>,
    /// Places per ring: `credit_slots + 1`.
    places: usize,
}

impl ThresholdQueues {
    /// All thresholds 1 (P §6.3).
    pub(super) fn new(peers: u32, credit_slots: u32) -> Self {
        let places = credit_slots as usize + 1;
        let mut queues = ThresholdQueues { rings: vec![1; places * peers as usize].into(), places };
        queues.rings.iter_mut().step_by(places).for_each(|vacant| *vacant = 0);
        queues
    }

    fn ring(&mut self, index: usize) -> &mut [u32] {
        &mut self.rings[index * self.places..][..self.places]
    }

    /// A crossing: the head goes, `newest` enters at the tail, and the next one becomes the head.
    pub(super) fn advance(&mut self, index: usize, sender: &mut ReceiverSide, newest: u32) {
        debug_assert!(newest > 0, "a threshold of 0 would be reached by nothing");
        let places = self.places;
        let ring = self.ring(index);
        ring[sender.crossings as usize] = newest;
        let next = sender.crossings as usize + 1;
        let next = if next == places { 0 } else { next };
        sender.crossings = next as u32;
        sender.head = std::mem::take(&mut ring[next]);
    }

    /// All ones but for the newest, which gets `extra` on top (C5).
    pub(super) fn restart(&mut self, index: usize, sender: &mut ReceiverSide, extra: u32) {
        let ring = self.ring(index);
        ring.fill(1);
        ring[0] = 0;
        if let Some(newest) = ring.last_mut() {
            *newest += extra;
        }
        sender.crossings = 0;
        sender.head = 1;
    }

    /// The queue from its head to its newest, for inspection.
    pub(super) fn queue(&self, index: usize, sender: &ReceiverSide) -> Vec<u32> {
        let ring = &self.rings[index * self.places..][..self.places];
        let head = sender.crossings as usize;
        std::iter::once(sender.head)
            .chain(ring[head + 1..].iter().copied())
            .chain(ring[..head].iter().copied())
            .collect()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.rings)
    }
}
