//! Messages of a trace that no rank receives. A short one would leave its sender and be forgotten, and the replay end
//! as if all were well.

use std::collections::HashMap;

use super::Trace;
use super::graph::Operation;
use crate::flight::Rank;
use crate::task::Sender;
use crate::workload::RecordedOperation;

/// More messages of one rank to another than that one receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreceived {
    /// The line of the last of them, counted from 1.
    pub line: usize,
    /// The rank that sends.
    pub from: u32,
    /// The rank that receives too few.
    pub to: u32,
    /// How many it sends.
    pub sent: u64,
    /// How many receives name the sender.
    pub received: u64,
}

impl Trace {
    /// A pair of ranks of which the one certainly sends more than the other receives, if there is one. Tags do not
    /// count: a receive that waits for another tag never ends, and the replay says so.
    #[must_use]
    pub fn unreceived(&self) -> Option<Unreceived> {
        let mut sent: HashMap<(u32, u32), (u64, usize)> = HashMap::new();
        for (from, operation) in self.all() {
            if let RecordedOperation::Send { to: Rank(to), .. } = operation.action {
                let (count, line) = sent.entry((to, from)).or_default();
                (*count, *line) = (*count + 1, operation.line.max(*line));
            }
        }
        let (mut named, mut from_any): (HashMap<(u32, u32), u64>, HashMap<u32, u64>) = Default::default();
        for (to, operation) in self.all() {
            match operation.action {
                RecordedOperation::Receive { from: Sender::Rank(Rank(from)), .. } => {
                    *named.entry((to, from)).or_default() += 1;
                }
                RecordedOperation::Receive { from: Sender::Any, .. } => *from_any.entry(to).or_default() += 1,
                RecordedOperation::Send { .. } | RecordedOperation::Compute(_) => {}
            }
        }
        // Receives from any rank may take what no other receive names.
        let mut pairs: Vec<_> = sent.into_iter().collect();
        pairs.sort_unstable();
        for ((to, from), (sent, line)) in pairs {
            let received = named.get(&(to, from)).copied().unwrap_or(0);
            let left = from_any.entry(to).or_default();
            let beyond = sent.saturating_sub(received);
            if beyond > *left {
                return Some(Unreceived { line, from, to, sent, received });
            }
            *left -= beyond;
        }
        None
    }

    fn all(&self) -> impl Iterator<Item = (u32, &Operation)> {
        (0..).zip(&*self.ranks).flat_map(|(rank, operations)| operations.iter().map(move |operation| (rank, operation)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ranks: &[&str]) -> Option<(usize, u32, u32, u64, u64)> {
        let all: String =
            (0..).zip(ranks).map(|(rank, does): (u32, _)| format!("rank {rank} {{\n{does}\n}}\n")).collect();
        let found = Trace::parse(&format!("num_ranks {}\n{all}", ranks.len())).expect("a legal trace").unreceived();
        found.map(|found| (found.line, found.from, found.to, found.sent, found.received))
    }

    #[test]
    fn a_message_that_no_rank_receives_is_found_with_the_line_of_its_send() {
        assert_eq!(of(&["send 8b to 1", "recv 8b from 0"]), None);
        assert_eq!(of(&["send 8b to 1", "calc 1"]), Some((3, 0, 1, 1, 0)));
        assert_eq!(of(&["send 8b to 1\nsend 8b to 1", "recv 8b from 0"]), Some((4, 0, 1, 2, 1)));
        assert_eq!(of(&["send 8b to 2", "recv 8b from 0", "calc 1"]), Some((3, 0, 2, 1, 0)));
    }

    #[test]
    fn receives_from_any_rank_take_what_is_left() {
        assert_eq!(of(&["send 8b to 2", "send 8b to 2", "recv 8b from -1\nrecv 8b from 0"]), None);
        assert_eq!(of(&["send 8b to 2", "send 8b to 2", "recv 8b from -1"]), Some((6, 1, 2, 1, 0)));
        // A receive that never ends is for the replay to find.
        assert_eq!(of(&["send 8b to 1 tag 3", "recv 8b from 0 tag 4"]), None);
    }
}
