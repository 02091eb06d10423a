//! [`Gate`]: which bulk data moves next. The work of each call of progress is bounded: pulls by memory access go on in
//! turn, a few in each call; and the three kinds of pieces that leave through mailboxes begin in turn, so that none of
//! them is always late.

use crate::collections::slab::Key;
use std::collections::VecDeque;

/// Pulls that go on in one call of progress.
const PULLS_PER_CALL: usize = 4;

/// What leaves through mailboxes in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pieces {
    /// Long messages.
    Streams,
    /// Data of reads.
    Reads,
    /// Requests for remote operations.
    Requests,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Pulls by memory access that go on with the next call of progress.
    pulls: VecDeque<Key>,
    /// Which of the three kinds of pieces begins next.
    turn: usize,
}

impl Gate {
    /// Pulls that wait for the next call of progress.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.pulls.len()
    }

    /// A pull had its share and is not through.
    pub(crate) fn wait(&mut self, pull: Key) {
        self.pulls.push_back(pull);
    }

    /// How many pulls go on now.
    pub(crate) fn shares(&self) -> usize {
        self.pulls.len().min(PULLS_PER_CALL)
    }

    /// The next of them.
    pub(crate) fn next_pull(&mut self) -> Option<Key> {
        self.pulls.pop_front()
    }

    /// In which order pieces are sent.
    pub(crate) fn order(&self) -> [Pieces; 3] {
        let mut order = [Pieces::Streams, Pieces::Reads, Pieces::Requests];
        order.rotate_left(self.turn);
        order
    }

    /// Some were sent: next time another kind begins.
    pub(crate) fn end_turn(&mut self) {
        self.turn = (self.turn + 1) % 3;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_pieces_begins_in_turn() {
        let mut gate = Gate::default();
        let firsts: Vec<_> = (0..4)
            .map(|_| {
                let first = gate.order()[0];
                gate.end_turn();
                first
            })
            .collect();
        assert_eq!(firsts, [Pieces::Streams, Pieces::Reads, Pieces::Requests, Pieces::Streams]);
    }

    #[test]
    fn few_pulls_go_on_in_each_call_and_all_have_their_turn() {
        let mut gate = Gate::default();
        (0..6).for_each(|pull| gate.wait(Key(pull)));
        let mut seen = Vec::new();
        for _ in 0..2 {
            for _ in 0..gate.shares() {
                let pull = gate.next_pull().expect("it waits");
                seen.push(pull.0);
                gate.wait(pull);
            }
        }
        assert_eq!((seen, gate.waiting()), (vec![0, 1, 2, 3, 4, 5, 0, 1], 6));
    }
}
