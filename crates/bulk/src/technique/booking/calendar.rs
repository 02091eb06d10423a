//! [`Calendar`]: with whom the rounds that come are booked: a sender's "S" list and a receiver's "R" list (B fig. 9).

use crate::Node;
use std::collections::VecDeque;

/// See the module. It covers as many rounds as the look-ahead window has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Calendar {
    /// The first round that can be booked.
    start: u64,
    rounds: VecDeque<Option<Node>>,
}

impl Calendar {
    pub(super) fn new(start: u64, window: u32) -> Self {
        Calendar { start, rounds: vec![None; window as usize].into() }
    }

    /// The first round that can be booked.
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// A bit for each round from `base` on, lowest first: 1 = free.
    pub(super) fn free(&self, base: u64) -> u64 {
        let bits = (self.start..).zip(&self.rounds).filter(|(_, booked)| booked.is_none());
        let bits = bits.filter_map(|(round, _)| round.checked_sub(base)).filter(|bit| *bit < 64);
        bits.fold(0, |free, bit| free | 1 << bit)
    }

    /// Books a round; says whether it was free and inside.
    pub(super) fn book(&mut self, round: u64, with: Node) -> bool {
        let place = round.checked_sub(self.start).and_then(|place| usize::try_from(place).ok());
        match place.and_then(|place| self.rounds.get_mut(place)) {
            Some(slot @ None) => {
                *slot = Some(with);
                true
            }
            _ => false,
        }
    }

    /// All that is booked, by round.
    pub(super) fn booked(&self) -> impl Iterator<Item = (u64, Node)> {
        (self.start..).zip(&self.rounds).filter_map(|(round, booked)| Some((round, (*booked)?)))
    }

    /// The first `rounds` begin: they leave the calendar, and as many come in behind.
    pub(super) fn advance(&mut self, rounds: u32) -> VecDeque<(u64, Node)> {
        let mut begun = VecDeque::new();
        for _ in 0..rounds {
            if let Some(Some(node)) = self.rounds.pop_front() {
                begun.push_back((self.start, node));
            }
            self.rounds.push_back(None);
            self.start += 1;
        }
        begun
    }

    /// `node` is gone: its rounds are free.
    pub(super) fn forget(&mut self, node: Node) {
        for booked in &mut self.rounds {
            if *booked == Some(node) {
                *booked = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_booked_once_and_move_on() {
        let mut calendar = Calendar::new(10, 4);
        assert_eq!(calendar.free(10), 0b1111);
        assert!(calendar.book(11, Node(3)) && !calendar.book(11, Node(4)));
        assert!(!calendar.book(9, Node(3)) && !calendar.book(14, Node(3)));
        assert_eq!(calendar.free(10), 0b1101);
        assert_eq!(calendar.free(11), 0b110);
        assert_eq!(calendar.free(8), 0b11_0100);
        assert_eq!(calendar.advance(2), [(11, Node(3))]);
        assert_eq!((calendar.start(), calendar.free(12)), (12, 0b1111));
        assert!(calendar.book(15, Node(5)));
        calendar.forget(Node(5));
        assert_eq!(calendar.booked().count(), 0);
    }
}
