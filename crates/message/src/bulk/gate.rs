//! [`Gate`]: who moves bulk data next. The one place that decides whether a large transfer to or from a peer starts
//! now.
//!
//! Long messages on their way in start when it is their senders' [turn](Turns), if the order that the user has chosen
//! knows turns; all others start at once. What each call of progress does is bounded: pulls by memory access go on in
//! turn, a few in each call; and the three kinds of pieces that leave through mailboxes begin in turn, so that none of
//! them is always late.

use super::order::{TurnRules, Turns};
use crate::collections::slab::Key;
use std::collections::{HashMap, VecDeque};
use tidegate_flow::PeerId;

/// Pieces of one stream that leave before another stream has its turn.
pub(crate) const PIECES_PER_TURN: usize = 8;
/// Pulls that go on in one call of progress.
pub(crate) const PULLS_PER_CALL: usize = 4;

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
    /// Whose turn it is.
    pub(crate) turns: Turns,
    /// Pulls that take turns and have something to begin, by sender; the oldest first.
    lines: HashMap<PeerId, VecDeque<Key>>,
    /// Pulls in `pulls` and `lines`.
    waiting: usize,
}

impl Gate {
    pub(crate) fn new(rules: TurnRules) -> Self {
        Gate { turns: Turns::new(rules), ..Gate::default() }
    }

    /// Pulls that wait for the next call of progress, or for their turn.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether any of them could go on now.
    pub(crate) fn can_go_on(&self) -> bool {
        let may_begin = |sender: PeerId| self.lines.contains_key(&sender) && self.turns.may_begin(sender);
        !self.pulls.is_empty() || self.turns.has_next() || self.turns.those_running().any(may_begin)
    }

    /// A pull had its share and is not through.
    pub(crate) fn wait(&mut self, pull: Key) {
        self.pulls.push_back(pull);
        self.waiting += 1;
    }

    /// A pull waits for its sender's turn: behind the others of that sender, or, if it had begun, before them.
    pub(crate) fn line_up(&mut self, sender: PeerId, pull: Key, has_begun: bool) {
        let line = self.lines.entry(sender).or_default();
        match has_begun {
            true => line.push_front(pull),
            false => line.push_back(pull),
        }
        self.waiting += 1;
        self.turns.want(sender, true);
    }

    /// A pull that has lined up is over.
    pub(crate) fn leave_line(&mut self, sender: PeerId, pull: Key) {
        if let Some(line) = self.lines.get_mut(&sender) {
            let before = line.len();
            line.retain(|other| *other != pull);
            self.waiting -= before - line.len();
        }
        self.end_line_if_empty(sender);
    }

    /// A sender is gone.
    pub(crate) fn lose(&mut self, sender: PeerId) {
        self.waiting -= self.lines.remove(&sender).map_or(0, |line| line.len());
        self.turns.lose(sender);
    }

    fn end_line_if_empty(&mut self, sender: PeerId) {
        if self.lines.get(&sender).is_some_and(VecDeque::is_empty) {
            self.lines.remove(&sender);
            self.turns.want(sender, false);
        }
    }

    /// The next pull that may begin or go on because it is its sender's turn. It is to [begin](Self::begin) now.
    pub(crate) fn next_in_turn(&mut self) -> Option<Key> {
        while self.turns.poll_turn().is_some() {}
        for _ in 0..self.turns.running() {
            let sender = self.turns.next_running()?;
            if let Some(pull) = self.lines.get(&sender).and_then(|line| line.front())
                && self.turns.may_begin(sender)
            {
                return Some(*pull);
            }
        }
        None
    }

    /// The first pull in a sender's line asks for so many bytes, and is in line no longer.
    pub(crate) fn begin(&mut self, sender: PeerId, bytes: usize) {
        self.turns.begin(sender, bytes);
        if let Some(line) = self.lines.get_mut(&sender) {
            self.waiting -= usize::from(line.pop_front().is_some());
        }
        self.end_line_if_empty(sender);
    }

    /// How many pulls that take no turns go on now.
    pub(crate) fn shares(&self) -> usize {
        self.pulls.len().min(PULLS_PER_CALL)
    }

    /// The next of them.
    pub(crate) fn next_pull(&mut self) -> Option<Key> {
        let pull = self.pulls.pop_front()?;
        self.waiting -= 1;
        Some(pull)
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
