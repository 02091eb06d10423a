//! Control packets that wait to be written: a bounded queue of peers, each at most once, and the credits due to each.
//!
//! Credits that fall due twice before the caller polls travel in one packet. That only lowers the number of credit
//! packets on the way, so the credit slots still suffice.

use crate::PeerId;

/// What one peer is owed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Due {
    /// Credits that no packet carries yet.
    credits: u32,
    /// Whether the peer stands in the queue.
    queued: bool,
}

/// See the module. Room for every peer is allocated at construction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ControlQueue {
    due: Box<[Due]>,
    ring: Box<[u32]>,
    first: usize,
    len: usize,
}

impl ControlQueue {
    /// An empty queue for `peers` peers.
    pub(crate) fn new(peers: usize) -> Self {
        ControlQueue { due: vec![Due::default(); peers].into(), ring: vec![0; peers].into(), first: 0, len: 0 }
    }

    /// `credits` more are due to `peer`.
    #[inline]
    pub(crate) fn return_credits(&mut self, peer: usize, credits: u32) {
        self.due[peer].credits += credits;
        self.enqueue(peer);
    }

    /// `peer` has a control packet to look for.
    #[inline]
    pub(crate) fn enqueue(&mut self, peer: usize) {
        if std::mem::replace(&mut self.due[peer].queued, true) {
            return;
        }
        let last = self.first + self.len;
        let place = if last < self.ring.len() { last } else { last - self.ring.len() };
        self.ring[place] = peer as u32;
        self.len += 1;
    }

    /// Whether it is nobody's turn.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The peer whose turn it is.
    pub(crate) fn front(&self) -> Option<PeerId> {
        if self.is_empty() { None } else { Some(PeerId(self.ring[self.first])) }
    }

    /// Takes the credits due to `peer`; 0 if none are.
    pub(crate) fn take_credits(&mut self, peer: usize) -> u32 {
        std::mem::take(&mut self.due[peer].credits)
    }

    /// Credits due to `peer` that no packet carries yet.
    pub(crate) fn credits_due(&self, peer: usize) -> u32 {
        self.due[peer].credits
    }

    /// The front peer has nothing more to send: the next one's turn.
    pub(crate) fn pop_front(&mut self) {
        debug_assert!(self.len > 0);
        let peer = std::mem::take(&mut self.ring[self.first]);
        self.due[peer as usize].queued = false;
        self.len -= 1;
        let next = self.first + 1;
        // An empty queue always looks the same, so that equal states compare equal.
        self.first = if self.len == 0 || next == self.ring.len() { 0 } else { next };
    }

    /// Forgets what is due to `peer`. It may keep its turn, with nothing to send.
    pub(crate) fn forget(&mut self, peer: usize) {
        self.due[peer].credits = 0;
    }

    /// Heap bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.due) + size_of_val(&*self.ring)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Empties the queue, `credits to peer` by `credits to peer`.
    fn drain(queue: &mut ControlQueue) -> String {
        let mut line = String::new();
        while let Some(PeerId(peer)) = queue.front() {
            line += &format!("{} to {peer}; ", queue.take_credits(peer as usize));
            queue.pop_front();
        }
        line
    }

    #[test]
    fn peers_are_served_in_order_each_once_with_all_that_is_due() {
        let mut queue = ControlQueue::new(3);
        for (peer, credits) in [(2, 5), (0, 1), (2, 4), (1, 7)] {
            queue.return_credits(peer, credits);
        }
        assert_eq!(drain(&mut queue), "9 to 2; 1 to 0; 7 to 1; ");
    }

    #[test]
    fn the_ring_wraps_and_an_empty_queue_equals_a_new_one() {
        let mut queue = ControlQueue::new(3);
        queue.return_credits(0, 1);
        queue.return_credits(1, 1);
        assert_eq!((queue.front(), queue.take_credits(0)), (Some(PeerId(0)), 1));
        queue.pop_front();
        queue.return_credits(2, 1);
        queue.return_credits(0, 8);
        assert_eq!(drain(&mut queue), "1 to 1; 1 to 2; 8 to 0; ");
        assert_eq!(queue, ControlQueue::new(3));
    }

    #[test]
    fn a_forgotten_peer_is_owed_nothing() {
        let mut queue = ControlQueue::new(2);
        queue.return_credits(1, 3);
        queue.forget(1);
        assert_eq!(drain(&mut queue), "0 to 1; ");
    }
}
