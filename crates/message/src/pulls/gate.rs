//! [`Gate`]: which pulls by memory access go on next. The work of each call of progress is bounded: they go on in turn,
//! a few in each call.

use crate::collections::slab::Key;
use std::collections::VecDeque;

/// Pulls that go on in one call of progress.
const PULLS_PER_CALL: usize = 4;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Those that go on with the next call of progress.
    pulls: VecDeque<Key>,
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
}

#[cfg(test)]
mod tests {
    use super::*;

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
