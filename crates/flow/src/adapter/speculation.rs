//! [`Speculation`]: packets of one connection on their way into a [`SlotPool`](super::SlotPool), in order, until the
//! receiver's adapter has accepted them.
//!
//! Packets leave at once. When one is refused, the receiver drops all behind it, and the queue waits for an invitation;
//! then everything goes again, from the refused packet on. There is no timer.
//!
//! A dropped packet has taken the network's time for nothing, and where many send to one at a time, nearly all packets
//! are dropped. So no more packets are under way without an invitation than a *window*: it is
//! [`WINDOW_MOST`] at first, or what the queue was [made](Speculation::new) with, half as large after each refusal, and
//! twice as large after as many packets as it has were accepted. At 1, a single packet asks for slots, since each says
//! how many are behind it.

use super::slot_pool::KEPT_MOST;
use std::collections::VecDeque;

/// The largest window, in packets, and the first, unless the queue is made with another one.
pub const WINDOW_MOST: u32 = 64;

/// See the module. `M`: what is kept of a packet so that it can be sent again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Speculation<M> {
    /// The number of the first packet that is not accepted.
    first: u16,
    packets: VecDeque<M>,
    /// How many of them have been sent since the last refusal.
    sent: usize,
    /// The first was refused, and is not invited.
    is_refused: bool,
    /// How many of the first are invited.
    invited: u32,
    window: u32,
    window_most: u32,
    /// Packets beyond invitations that were accepted since the window has changed.
    accepted: u32,
}

impl<M> Default for Speculation<M> {
    fn default() -> Self {
        Speculation::new(WINDOW_MOST)
    }
}

impl<M> Speculation<M> {
    /// An empty queue with this window, at first and at most.
    pub fn new(window_most: u32) -> Self {
        Speculation {
            first: 0,
            packets: VecDeque::new(),
            sent: 0,
            is_refused: false,
            invited: 0,
            window: window_most.max(1),
            window_most: window_most.max(1),
            accepted: 0,
        }
    }

    /// The number of the first packet that is not accepted.
    pub fn first(&self) -> u16 {
        self.first
    }

    /// Packets that have not been accepted.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether all have been accepted.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Adds a packet.
    pub fn push(&mut self, packet: M) {
        self.packets.push_back(packet);
    }

    /// The number of a packet that is added now, if it may be sent at once: all before it have been, and the window has
    /// room.
    pub fn number_of_next(&self) -> Option<u16> {
        let is_next = self.sent == self.packets.len() && self.may_send();
        is_next.then(|| self.first.wrapping_add(self.sent as u16))
    }

    fn may_send(&self) -> bool {
        !self.is_refused && self.sent < (self.invited + self.window) as usize
    }

    /// The next packet to send, its number, and how many are behind it; unless it is to wait.
    pub fn next_to_send(&self) -> Option<(u16, u32, &M)> {
        let packet = self.packets.get(self.sent)?;
        let behind = (self.packets.len() - self.sent - 1) as u32;
        self.may_send().then(|| (self.first.wrapping_add(self.sent as u16), behind, packet))
    }

    /// Whether the packet that is sent next had better be acknowledged, though the message goes on: no other may follow
    /// before that, or a quarter of a window has been sent.
    pub fn wants_answer(&self) -> bool {
        let sent = self.sent as u32 + 1;
        let next = u32::from(self.first) + sent;
        sent >= self.invited + self.window || next.is_multiple_of((self.window / 4).max(1))
    }

    /// That packet has left.
    pub fn note_sent(&mut self) {
        self.sent += 1;
    }

    /// The receiver has accepted all packets before this number. Returns whether others can leave for that.
    pub fn handle_accepted(&mut self, before: u16) -> bool {
        let accepted = before.wrapping_sub(self.first);
        if accepted as usize > self.sent || accepted == 0 {
            return false;
        }
        self.first = before;
        self.sent -= accepted as usize;
        self.packets.drain(..accepted as usize);
        let of_invited = u32::from(accepted).min(self.invited);
        self.invited -= of_invited;
        self.accepted = self.accepted.saturating_add(u32::from(accepted) - of_invited);
        if self.accepted >= self.window && self.window < self.window_most {
            (self.accepted, self.window) = (0, (2 * self.window).min(self.window_most));
        }
        true
    }

    /// The receiver has refused the packet of this number, and accepted all before it. Returns whether that changes
    /// anything.
    pub fn handle_refused(&mut self, number: u16) -> bool {
        self.handle_accepted(number);
        if number != self.first || self.sent == 0 || self.is_refused {
            return false;
        }
        (self.is_refused, self.invited) = (true, 0);
        (self.accepted, self.window) = (0, (self.window / 2).max(1));
        true
    }

    /// The receiver keeps this number of slots: everything goes again from the refused packet on.
    pub fn handle_invited(&mut self, slots: u32) {
        if std::mem::take(&mut self.is_refused) {
            (self.sent, self.invited) = (0, slots.min(KEPT_MOST));
        }
    }

    /// Whether it waits for an invitation.
    pub fn is_waiting(&self) -> bool {
        self.is_refused
    }

    /// The packets that have not been accepted, in order.
    pub fn packets(&self) -> impl Iterator<Item = &M> {
        self.packets.iter()
    }

    /// Whether refusals have made the window smaller than it may be.
    pub fn is_narrow(&self) -> bool {
        self.window < self.window_most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(packets: u16) -> Speculation<u16> {
        let mut queue = Speculation::default();
        (0..packets).for_each(|packet| queue.push(packet));
        queue
    }

    /// Sends all that may be sent; returns numbers, and how many are behind the last.
    fn send(queue: &mut Speculation<u16>) -> (Vec<u16>, u32) {
        let (mut sent, mut behind) = (Vec::new(), 0);
        while let Some((number, left, &packet)) = queue.next_to_send() {
            assert_eq!(number, packet);
            (behind, _) = (left, sent.push(number));
            queue.note_sent();
        }
        (sent, behind)
    }

    #[test]
    fn what_was_refused_goes_again_when_it_is_invited() {
        let mut queue = of(3);
        assert_eq!(send(&mut queue), (vec![0, 1, 2], 0));
        assert!(queue.handle_refused(1) && queue.is_waiting());
        queue.push(3);
        assert_eq!((send(&mut queue), queue.number_of_next()), ((vec![], 0), None));
        queue.handle_invited(2);
        assert_eq!(send(&mut queue), (vec![1, 2, 3], 0));
        assert!(queue.handle_accepted(4) && queue.is_empty());
        assert_eq!(queue.number_of_next(), Some(4));
    }

    #[test]
    fn the_window_is_half_after_a_refusal_and_grows_as_packets_are_accepted() {
        let mut queue = of(200);
        let (sent, behind) = send(&mut queue);
        assert_eq!((sent.len(), behind), (64, 136));
        assert!(queue.handle_refused(0));
        queue.handle_invited(10);
        assert_eq!(send(&mut queue).0.len(), 10 + 32);
        // The invited ones do not count.
        queue.handle_accepted(10);
        assert_eq!(send(&mut queue).0.len(), 0);
        queue.handle_accepted(41);
        assert_eq!(send(&mut queue).0.len(), 31);
        queue.handle_accepted(42);
        assert_eq!(send(&mut queue).0.len(), 33, "one, and the window is twice as large");
    }

    #[test]
    fn answers_that_cannot_be_change_nothing() {
        let mut queue = of(2);
        let before = queue.clone();
        assert!(!queue.handle_accepted(1) && !queue.handle_refused(0), "nothing was sent");
        queue.handle_invited(5);
        assert_eq!(queue, before);
        send(&mut queue);
        assert!(!queue.handle_accepted(3) && queue.handle_refused(1) && !queue.handle_refused(1));
    }
}
