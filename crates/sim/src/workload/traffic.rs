//! Patterns of traffic without structure in time: every member sends a number of messages to the members that the
//! pattern names.

use std::rc::Rc;

use crate::random::Random;
use crate::task::{Sender, Tag};
use crate::workload::Communicator;
use crate::workload::neighbours::square;

/// Who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Every message to another member, all equally likely.
    Random,
    /// All messages of a member to one other, everybody to a different one: drawn once.
    Permutation,
    /// Two members to each other, drawn once (R §4.1); of an odd number one sends nothing.
    Pairs,
    /// Everybody to one.
    Incast {
        /// That one.
        root: u32,
    },
    /// The i-th message to the member i + 1 behind, in a circle.
    CyclicShift,
    /// Members are the elements of a matrix, row by row, as square as their number allows; each sends to its mirror
    /// image. Those on the diagonal send nothing.
    Transpose,
}

/// All messages of a pattern: made once, shared by all processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    destinations: Rc<[Vec<u32>]>,
    incoming: Rc<[u32]>,
}

/// The tag of all messages here.
const TAG: Tag = Tag(2);

impl Traffic {
    /// `messages` messages of each of `size` members. Random choices are the seed's.
    #[must_use]
    pub fn new(pattern: Pattern, size: u32, messages: u32, seed: u64) -> Self {
        let destinations: Vec<Vec<u32>> = match pattern {
            _ if size < 2 => vec![Vec::new(); size as usize],
            Pattern::Random => (0..size).map(|me| random_destinations(me, size, messages, seed)).collect(),
            Pattern::Permutation => {
                let circle = Random::new(seed).permutation(size);
                let mut to = vec![Vec::new(); size as usize];
                for (index, &me) in circle.iter().enumerate() {
                    to[me as usize] = vec![circle[(index + 1) % circle.len()]; messages as usize];
                }
                to
            }
            Pattern::Pairs => {
                let mut to = vec![Vec::new(); size as usize];
                for pair in Random::new(seed).permutation(size).chunks_exact(2) {
                    to[pair[0] as usize] = vec![pair[1]; messages as usize];
                    to[pair[1] as usize] = vec![pair[0]; messages as usize];
                }
                to
            }
            Pattern::Incast { root } => {
                let count = |me| if me == root { 0 } else { messages as usize };
                (0..size).map(|me| vec![root; count(me)]).collect()
            }
            Pattern::CyclicShift => {
                (0..size).map(|me| (0..messages).map(|i| (me + 1 + i % (size - 1)) % size).collect()).collect()
            }
            Pattern::Transpose => {
                let [rows, columns] = square(size);
                let mirror = |me: u32| me % columns * rows + me / columns;
                let count = |me| if mirror(me) == me { 0 } else { messages as usize };
                (0..size).map(|me| vec![mirror(me); count(me)]).collect()
            }
        };
        let mut incoming = vec![0; size as usize];
        destinations.iter().flatten().for_each(|&to| incoming[to as usize] += 1);
        Traffic { destinations: destinations.into(), incoming: incoming.into() }
    }

    /// To whom a member sends, in order.
    #[must_use]
    pub fn destinations(&self, member: u32) -> &[u32] {
        &self.destinations[member as usize]
    }

    /// How many messages a member gets.
    #[must_use]
    pub fn incoming(&self, member: u32) -> u32 {
        self.incoming[member as usize]
    }

    /// Sends and receives this member's messages, of `bytes` each, with at most `window` sends under way.
    pub async fn run(&self, group: &Communicator, bytes: u64, window: usize) {
        let (task, me) = (group.task(), group.me());
        let (out, into) = (task.allocate(bytes), task.allocate(bytes));
        let mut receives = Vec::with_capacity(self.incoming(me) as usize);
        for _ in 0..self.incoming(me) {
            receives.push(task.start_receive(Sender::Any, TAG, into).await);
        }
        let mut sends = std::collections::VecDeque::new();
        for &to in self.destinations(me) {
            if sends.len() >= window.max(1)
                && let Some(first) = sends.pop_front()
            {
                task.wait(first).await;
            }
            sends.push_back(group.start_send(to, TAG, out).await);
        }
        task.wait_all(sends).await;
        task.wait_all(receives).await;
    }
}

fn random_destinations(me: u32, size: u32, messages: u32, seed: u64) -> Vec<u32> {
    let mut random = Random::stream(seed, u64::from(me));
    let mut other = || random.below(u64::from(size) - 1) as u32;
    (0..messages).map(|_| other()).map(|other| other + u32::from(other >= me)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(mut members: Vec<u32>) -> Vec<u32> {
        members.sort_unstable();
        members
    }

    #[test]
    fn nobody_sends_to_itself() {
        let patterns = [
            Pattern::Random,
            Pattern::Permutation,
            Pattern::Pairs,
            Pattern::Incast { root: 1 },
            Pattern::CyclicShift,
            Pattern::Transpose,
        ];
        for pattern in patterns {
            for size in [1, 2, 3, 12, 16] {
                let traffic = Traffic::new(pattern, size, 20, 7);
                for me in 0..size {
                    assert!(!traffic.destinations(me).contains(&me), "{pattern:?} of {size}");
                }
            }
        }
    }

    #[test]
    fn of_a_pair_each_sends_to_the_other() {
        for size in [2, 3, 12, 13] {
            let traffic = Traffic::new(Pattern::Pairs, size, 5, 3);
            let partner = |me: u32| traffic.destinations(me).first().copied();
            let idle = (0..size).filter(|&me| partner(me).is_none()).count();
            assert_eq!(idle as u32, size % 2);
            for me in 0..size {
                assert!(partner(me).is_none_or(|other| partner(other) == Some(me)), "{me} of {size}");
                assert_eq!(traffic.destinations(me).len() as u32, traffic.incoming(me));
            }
        }
    }

    #[test]
    fn a_permutation_and_a_transposition_load_everybody_alike() {
        for (pattern, size) in [(Pattern::Permutation, 13), (Pattern::Transpose, 16), (Pattern::Transpose, 12)] {
            let traffic = Traffic::new(pattern, size, 1, 3);
            let to = (0..size).map(|me| *traffic.destinations(me).first().unwrap_or(&me)).collect();
            assert_eq!(sorted(to), Vec::from_iter(0..size), "{pattern:?}");
        }
        let square = Traffic::new(Pattern::Transpose, 16, 1, 0);
        assert_eq!(
            (square.destinations(1), square.destinations(7), square.destinations(5)),
            (&[4][..], &[13][..], &[][..])
        );
    }

    #[test]
    fn a_cyclic_shift_visits_everybody_else_in_turn() {
        let traffic = Traffic::new(Pattern::CyclicShift, 5, 6, 0);
        assert_eq!(traffic.destinations(3), [4, 0, 1, 2, 4, 0]);
    }

    #[test]
    fn an_incast_has_one_receiver() {
        let traffic = Traffic::new(Pattern::Incast { root: 2 }, 4, 5, 0);
        assert_eq!([0, 1, 2, 3].map(|me| traffic.incoming(me)), [0, 0, 15, 0]);
    }
}
