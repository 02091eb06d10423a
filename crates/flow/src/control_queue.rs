//! Control packets that wait to be written: a bounded queue of peers, each at most once, and the credits due to each.
//!
//! Credits that fall due twice before the caller polls travel in one packet. That only lowers the number of credit
//! packets on the way, so the credit slots still suffice.

use crate::{PeerId, Peers};
use std::collections::VecDeque;

/// What one peer is owed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Due {
    /// Credits that no packet carries yet.
    credits: u32,
    /// Whether the peer stands in the queue.
    queued: bool,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ControlQueue {
    due: Peers<Due>,
    /// Whose turn it is.
    turns: VecDeque<PeerId>,
}

impl ControlQueue {
    /// An empty queue for `peers` peers.
    pub(crate) fn new(peers: u32) -> Self {
        ControlQueue { due: Peers::new(peers, ()), turns: VecDeque::new() }
    }

    /// `credits` more are due to `peer`.
    #[inline]
    pub(crate) fn return_credits(&mut self, peer: PeerId, credits: u32) {
        self.due.of(peer).credits += credits;
        self.enqueue(peer);
    }

    /// `peer` may be owed a control packet: gives it a turn, if it has none.
    #[inline]
    pub(crate) fn enqueue(&mut self, peer: PeerId) {
        if !std::mem::replace(&mut self.due.of(peer).queued, true) {
            self.turns.push_back(peer);
        }
    }

    /// Whether it is nobody's turn.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// The peer whose turn it is.
    pub(crate) fn front(&self) -> Option<PeerId> {
        self.turns.front().copied()
    }

    /// Takes the credits due to `peer`; 0 if none are.
    pub(crate) fn take_credits(&mut self, peer: PeerId) -> u32 {
        std::mem::take(&mut self.due.of(peer).credits)
    }

    /// Credits due to `peer` that no packet carries yet.
    pub(crate) fn credits_due(&self, peer: PeerId) -> u32 {
        self.due.get(peer).map_or(0, |due| due.credits)
    }

    /// The front peer has nothing more to send: the next one's turn.
    pub(crate) fn pop_front(&mut self) {
        if let Some(peer) = self.turns.pop_front() {
            self.due.of(peer).queued = false;
        }
    }

    /// Drops what is due to `peer`. It may keep its turn, with nothing to send.
    pub(crate) fn forget(&mut self, peer: PeerId) {
        if let Some(due) = self.due.get_mut(peer) {
            due.credits = 0;
        }
    }

    /// Most heap bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        Peers::<Due>::bytes_most(self.due.count()) + queue_bytes::<PeerId>(self.due.count())
    }
}

/// Most heap bytes of a queue in which each of so many peers stands once: it doubles as it grows.
pub(crate) fn queue_bytes<T>(peers: u32) -> usize {
    2 * peers.max(2) as usize * size_of::<T>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Empties the queue, `credits to peer` by `credits to peer`.
    fn drain(queue: &mut ControlQueue) -> String {
        let mut line = String::new();
        while let Some(PeerId(peer)) = queue.front() {
            line += &format!("{} to {peer}; ", queue.take_credits(PeerId(peer)));
            queue.pop_front();
        }
        line
    }

    #[test]
    fn peers_are_served_in_order_each_once_with_all_that_is_due() {
        let mut queue = ControlQueue::new(3);
        for (peer, credits) in [(2, 5), (0, 1), (2, 4), (1, 7)] {
            queue.return_credits(PeerId(peer), credits);
        }
        assert_eq!(drain(&mut queue), "9 to 2; 1 to 0; 7 to 1; ");
    }

    #[test]
    fn turns_go_round_and_an_empty_queue_equals_a_new_one() {
        let mut queue = ControlQueue::new(3);
        queue.return_credits(PeerId(0), 1);
        queue.return_credits(PeerId(1), 1);
        assert_eq!((queue.front(), queue.take_credits(PeerId(0))), (Some(PeerId(0)), 1));
        queue.pop_front();
        queue.return_credits(PeerId(2), 1);
        queue.return_credits(PeerId(0), 8);
        assert_eq!(drain(&mut queue), "1 to 1; 1 to 2; 8 to 0; ");
        assert_eq!(queue, ControlQueue::new(3));
    }

    #[test]
    fn a_forgotten_peer_is_owed_nothing() {
        let mut queue = ControlQueue::new(2);
        queue.return_credits(PeerId(1), 3);
        queue.forget(PeerId(1));
        assert_eq!(drain(&mut queue), "0 to 1; ");
    }
}
