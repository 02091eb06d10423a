//! [`Sequence`]: messages of one sender that fill buffers for several messages (`FI_MULTI_RECV`) are reported in the
//! order in which they were sent, though some of them have to be pulled and others came whole.
//!
//! libfabric does not ask for that, and MPICH, whose own messages come so, puts late ones in order itself. But the one
//! in Intel MPI 2021 copies more of an early one than there is, and dies. A short message is announced where flow
//! control would rather have that (L §4.2: without credits), and the next one may find a credit.

use crate::collections::slab::Key;
use crate::completion::Failure;
use crate::envelope::Envelope;
use crate::matching::Active;
use crate::operation::Queue;
use std::collections::{BTreeMap, VecDeque};
use tidegate_flow::PeerId;

/// A receive that has its message, or never will.
#[derive(Debug)]
pub(crate) struct Received<B> {
    pub(crate) active: Active<B>,
    pub(crate) envelope: Envelope,
    pub(crate) queue: Queue,
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
pub(crate) struct Sequence<B>(BTreeMap<PeerId, VecDeque<Turn<B>>>);

impl<B> Default for Sequence<B> {
    fn default() -> Self {
        Sequence(BTreeMap::new())
    }
}

impl<B> Sequence<B> {
    /// A message of a peer is being pulled into a buffer for several.
    pub(crate) fn begin(&mut self, peer: PeerId, pull: Key) {
        self.0.entry(peer).or_default().push_back(Turn::Pull(pull));
    }

    /// A message of a peer has come whole. Returns it if no earlier one is being pulled.
    #[inline]
    pub(crate) fn admit(&mut self, peer: PeerId, received: Received<B>) -> Option<Received<B>> {
        if self.0.is_empty() {
            return Some(received);
        }
        let Some(turns) = self.0.get_mut(&peer) else { return Some(received) };
        turns.push_back(Turn::Ended(Box::new(received)));
        None
    }

    /// A pull is over. Returns its message if it has no turn; else ask for [what is next](Self::next).
    pub(crate) fn end(&mut self, peer: PeerId, pull: Key, received: Received<B>) -> Option<Received<B>> {
        let turns = self.0.get_mut(&peer);
        let turn =
            turns.and_then(|turns| turns.iter_mut().find(|turn| matches!(turn, Turn::Pull(key) if *key == pull)));
        match turn {
            Some(turn) => *turn = Turn::Ended(Box::new(received)),
            None => return Some(received),
        }
        None
    }

    /// The next message of a peer whose turn it is.
    pub(crate) fn next(&mut self, peer: PeerId) -> Option<Received<B>> {
        let turns = self.0.get_mut(&peer)?;
        let received = match turns.pop_front()? {
            Turn::Ended(received) => Some(*received),
            pull => {
                turns.push_front(pull);
                None
            }
        };
        if turns.is_empty() {
            self.0.remove(&peer);
        }
        received
    }

    /// A peer is gone: no pull of it has a turn any more. Returns what waited for one.
    pub(crate) fn lose_peer(&mut self, peer: PeerId) -> impl Iterator<Item = Received<B>> + use<B> {
        self.0.remove(&peer).into_iter().flatten().filter_map(|turn| match turn {
            Turn::Ended(received) => Some(*received),
            Turn::Pull(_) => None,
        })
    }
}
