//! [`Sequence`]: messages of one sender that fill buffers for several messages (`FI_MULTI_RECV`) are reported in the
//! order in which they were sent, though some of them have to be pulled and others came whole.
//!
//! libfabric does not ask for that, and MPICH, whose own messages come so, puts late ones in order itself. But the one
//! in Intel MPI 2021 copies more of an early one than there is, and dies. A short message is announced where flow
//! control would rather have that (L §4.2: without credits), and the next one may find a credit.
//!
//! At most [`WAITING_MOST`] wait for an earlier one; further ones are reported as they come. Else a peer that never
//! lets us pull a message could make us keep any number of empty ones behind it, which fill no buffer and no window.

use crate::collections::slab::Key;
use crate::completion::Failure;
use crate::matching::Matched;
use std::collections::{BTreeMap, VecDeque};
use tidegate_flow::PeerId;

/// How many messages of all peers wait for earlier ones at most.
const WAITING_MOST: usize = 1024;

/// A receive that has its message, or never will.
#[derive(Debug)]
pub(crate) struct Received<B> {
    pub(crate) matched: Matched<B>,
    /// Bytes of the message that the buffer has.
    pub(crate) length: usize,
    pub(crate) result: Result<(), Failure>,
}

#[derive(Debug)]
enum Turn<B> {
    /// A message that is being pulled.
    Pull(Key),
    /// One that waits for an earlier one.
    Ended(Box<Received<B>>),
}

/// See the module. A sender is here as long as one of its messages is being pulled.
#[derive(Debug)]
pub(crate) struct Sequence<B> {
    of_peers: BTreeMap<PeerId, VecDeque<Turn<B>>>,
    /// How many of all turns have ended.
    waiting: usize,
}

impl<B> Default for Sequence<B> {
    fn default() -> Self {
        Sequence { of_peers: BTreeMap::new(), waiting: 0 }
    }
}

impl<B> Sequence<B> {
    /// A message of a peer is being pulled into a buffer for several.
    pub(crate) fn begin(&mut self, peer: PeerId, pull: Key) {
        self.of_peers.entry(peer).or_default().push_back(Turn::Pull(pull));
    }

    /// A message of a peer has come whole. Returns it if no earlier one is being pulled, or too many wait already.
    #[inline]
    pub(crate) fn admit(&mut self, peer: PeerId, received: Received<B>) -> Option<Received<B>> {
        if self.of_peers.is_empty() || self.waiting >= WAITING_MOST {
            return Some(received);
        }
        let Some(turns) = self.of_peers.get_mut(&peer) else { return Some(received) };
        turns.push_back(Turn::Ended(Box::new(received)));
        self.waiting += 1;
        None
    }

    /// A pull is over. Returns its message if it has no turn; else ask for [what is next](Self::next).
    pub(crate) fn end(&mut self, peer: PeerId, pull: Key, received: Received<B>) -> Option<Received<B>> {
        let turns = self.of_peers.get_mut(&peer);
        let turn =
            turns.and_then(|turns| turns.iter_mut().find(|turn| matches!(turn, Turn::Pull(key) if *key == pull)));
        match turn {
            Some(turn) => *turn = Turn::Ended(Box::new(received)),
            None => return Some(received),
        }
        self.waiting += 1;
        None
    }

    /// The next message of a peer whose turn it is.
    pub(crate) fn next(&mut self, peer: PeerId) -> Option<Received<B>> {
        let turns = self.of_peers.get_mut(&peer)?;
        let received = match turns.pop_front()? {
            Turn::Ended(received) => Some(*received),
            pull => {
                turns.push_front(pull);
                None
            }
        };
        if turns.is_empty() {
            self.of_peers.remove(&peer);
        }
        self.waiting -= usize::from(received.is_some());
        received
    }

    /// A peer is gone: no pull of it has a turn any more. Returns what waited for one.
    pub(crate) fn lose_peer(&mut self, peer: PeerId) -> Vec<Received<B>> {
        let turns = self.of_peers.remove(&peer).into_iter().flatten();
        let ended = turns.filter_map(|turn| match turn {
            Turn::Ended(received) => Some(*received),
            Turn::Pull(_) => None,
        });
        let waited: Vec<_> = ended.collect();
        self.waiting -= waited.len();
        waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::{Envelope, Pattern};
    use crate::matching::Matching;
    use crate::operation::{Context, Queue, Source, Target};
    use crate::testing::Bytes;

    const A: PeerId = PeerId(0);

    /// A receive of this name that has its message, which is empty.
    fn received(name: usize) -> Received<Bytes> {
        let (mut matching, queue) = (Matching::new(1), Queue::Untagged);
        let number = matching.next_number();
        let pattern = Pattern { from: Source::Any, tag: 0, ignore: u64::MAX };
        matching.of(queue).post(number, pattern, Bytes::new(&[]), Context(name), true);
        let envelope = Envelope { source: Target::Peer(A), tag: 0, data: None, length: 0 };
        let active = matching.of(queue).accept(&envelope).expect("it is posted");
        Received { matched: Matched { active, envelope, queue }, length: 0, result: Ok(()) }
    }

    fn name(received: Received<Bytes>) -> usize {
        received.matched.active.context.0
    }

    #[test]
    fn who_never_lets_us_pull_a_message_makes_us_keep_no_more_than_so_many_behind_it() {
        for is_lost in [false, true] {
            let mut sequence = Sequence::default();
            sequence.begin(A, Key(7));
            for index in 0..WAITING_MOST {
                assert!(sequence.admit(A, received(index)).is_none(), "{index}");
            }
            assert_eq!(sequence.admit(A, received(5000)).map(name), Some(5000), "it is reported as it comes");
            assert!(sequence.next(A).is_none());
            let waited: Vec<_> = match is_lost {
                true => sequence.lose_peer(A).into_iter().map(name).collect(),
                false => {
                    assert!(sequence.end(A, Key(7), received(6000)).is_none());
                    assert_eq!(sequence.next(A).map(name), Some(6000), "it was the first");
                    std::iter::from_fn(|| sequence.next(A)).map(name).collect()
                }
            };
            assert!(waited.into_iter().eq(0..WAITING_MOST));
            assert_eq!((sequence.waiting, sequence.of_peers.len()), (0, 0));
            assert_eq!(sequence.admit(A, received(1)).map(name), Some(1), "nothing is before it");
        }
    }
}
