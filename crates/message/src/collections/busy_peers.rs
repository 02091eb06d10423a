//! [`BusyPeers`]: what is remembered of a peer only while something waits for it or is under way with it.
//!
//! *The simple idea*, a state for each peer in a page that its first use allocates ([`Peers`]), lets every peer to
//! which one long message has gone cost for ever what it costs at work. So a state is a block of its own here. A peer
//! that is idle has none, and costs the place for its address.
//!
//! The owner of the table says when a state [ends](BusyPeers::end), as soon as it says no more than a new one does. The
//! blocks of some are kept for the next that begin: two peers that exchange one message after the other allocate
//! nothing.

use crate::heap::block;
use std::fmt;
use tidegate_flow::{PeerId, Peers};

/// Blocks that are kept: for as many peers as one is a neighbour of in a grid of three dimensions, and some more.
const SPARE_MOST: usize = 32;
/// Addresses per page.
const PAGE: usize = 64;

/// See the module.
pub(crate) struct BusyPeers<T> {
    of_peers: Peers<Option<Box<T>>, PAGE>,
    /// Blocks for the next states. Each is as at the start.
    spare: Vec<Box<T>>,
}

/// Those that are busy, by number. Where a state lies makes no difference.
impl<T: fmt::Debug> fmt::Debug for BusyPeers<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.all()).finish()
    }
}

impl<T> BusyPeers<T> {
    /// Heap bytes of each state. There are never more than there were busy peers at once: spare ones are used first.
    pub(crate) const BYTES_EACH: usize = block(size_of::<T>());

    /// Most heap bytes without those.
    pub(crate) const fn bytes_most(peers: u32) -> usize {
        Peers::<Option<Box<T>>, PAGE>::bytes_most(peers) + block(SPARE_MOST * size_of::<Box<T>>())
    }

    /// A table of so many peers, all of them idle.
    pub(crate) fn new(peers: u32) -> Self {
        BusyPeers { of_peers: Peers::new(peers, ()), spare: Vec::new() }
    }

    /// How many peers there are, busy or not.
    pub(crate) fn count(&self) -> u32 {
        self.of_peers.count()
    }

    /// The state of a peer, if it is busy.
    #[inline]
    pub(crate) fn get(&self, peer: PeerId) -> Option<&T> {
        self.of_peers.get(peer)?.as_deref()
    }

    /// The same, to change.
    #[inline]
    pub(crate) fn get_mut(&mut self, peer: PeerId) -> Option<&mut T> {
        self.of_peers.get_mut(peer)?.as_deref_mut()
    }

    /// The busy peers and their states, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = (PeerId, &T)> {
        self.of_peers.contacted().filter_map(|(peer, state)| Some((peer, state.as_deref()?)))
    }
}

impl<T: Default> BusyPeers<T> {
    /// The state of a peer that is busy from now on, if it was not before. Panics if there is no such peer.
    #[inline]
    pub(crate) fn of(&mut self, peer: PeerId) -> &mut T {
        self.of_peers.of(peer).get_or_insert_with(|| self.spare.pop().unwrap_or_default())
    }

    /// A peer is idle: what is left of its state is dropped. Returns whether it had any.
    pub(crate) fn end(&mut self, peer: PeerId) -> bool {
        let Some(mut state) = self.take(peer) else { return false };
        *state = T::default();
        self.keep(state);
        true
    }

    /// A peer is idle: takes its state, which the caller makes as new and lets [be kept](Self::keep).
    #[inline]
    pub(crate) fn take(&mut self, peer: PeerId) -> Option<Box<T>> {
        self.of_peers.get_mut(peer)?.take()
    }

    /// Keeps a block whose state is as new for the next peer, or drops it.
    #[inline]
    pub(crate) fn keep(&mut self, state: Box<T>) {
        if self.spare.len() < self.spare.capacity() {
            self.spare.push(state);
        } else if self.spare.capacity() == 0 {
            self.keep_first(state);
        }
    }

    /// The list has as many places from now on as it will ever have.
    #[cold]
    fn keep_first(&mut self, state: Box<T>) {
        self.spare.reserve_exact(SPARE_MOST);
        self.spare.push(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_there_from_its_first_use_until_it_ends_and_the_next_begins_as_new() {
        let mut peers: BusyPeers<Vec<u8>> = BusyPeers::new(1000);
        assert!(peers.get(PeerId(7)).is_none() && peers.get_mut(PeerId(7)).is_none() && !peers.end(PeerId(7)));
        peers.of(PeerId(999)).push(9);
        peers.of(PeerId(7)).push(7);
        assert_eq!(format!("{peers:?}"), "{PeerId(7): [7], PeerId(999): [9]}");
        assert!(peers.end(PeerId(7)) && !peers.end(PeerId(7)) && peers.get(PeerId(7)).is_none());
        assert!(peers.of(PeerId(8)).is_empty(), "nothing of the peer before it");
        assert_eq!(peers.all().map(|(peer, _)| peer.0).collect::<Vec<_>>(), [8, 999]);
    }

    #[test]
    fn blocks_are_used_again_and_few_are_kept() {
        let mut peers: BusyPeers<u64> = BusyPeers::new(1000);
        let first: *const u64 = peers.of(PeerId(0));
        peers.end(PeerId(0));
        assert_eq!(&raw const *peers.of(PeerId(500)), first);
        (0..1000).for_each(|peer| *peers.of(PeerId(peer)) = 1);
        (0..1000).for_each(|peer| _ = peers.end(PeerId(peer)));
        assert_eq!((peers.spare.len(), peers.spare.capacity(), peers.all().count()), (SPARE_MOST, SPARE_MOST, 0));
    }
}
