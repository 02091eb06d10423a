//! Whom a process has contact with: [`PeerTable`], its endpoint's table of peers, and [`Ranks`], a set of them.

use std::collections::HashMap;

use tidegate_flow::PeerId;

use crate::flight::Rank;

/// The ranks that a process has contact with, by their place in its endpoint's table of peers.
#[derive(Debug)]
pub(crate) enum PeerTable {
    /// All but itself, in order: nothing to store.
    Everybody { me: u32, size: u32 },
    /// Those that it has had contact with, in the order of first contact.
    Contacts { ranks: Vec<Rank>, places: HashMap<Rank, PeerId>, most: u32 },
}

impl PeerTable {
    /// The table of process `me` of `size`, with room for `most`.
    pub(crate) fn new(me: Rank, size: u32, most: u32) -> Self {
        match most + 1 >= size {
            true => PeerTable::Everybody { me: me.0, size },
            false => PeerTable::Contacts { ranks: Vec::new(), places: HashMap::new(), most },
        }
    }

    /// The rank behind a place, if the place is taken.
    pub(crate) fn known_rank(&self, peer: PeerId) -> Option<Rank> {
        match self {
            // There may be places beyond, which nobody takes.
            PeerTable::Everybody { size, .. } => (peer.0 + 1 < *size).then(|| self.rank(peer)),
            PeerTable::Contacts { ranks, .. } => ranks.get(peer.0 as usize).copied(),
        }
    }

    /// The rank behind a place that is taken.
    pub(crate) fn rank(&self, peer: PeerId) -> Rank {
        match self {
            PeerTable::Everybody { me, .. } => Rank(peer.0 + u32::from(peer.0 >= *me)),
            PeerTable::Contacts { ranks, .. } => ranks[peer.0 as usize],
        }
    }

    /// The place of `rank`, if it has one.
    pub(crate) fn find(&self, rank: Rank) -> Option<PeerId> {
        match self {
            PeerTable::Everybody { me, .. } => Some(PeerId(rank.0 - u32::from(rank.0 > *me))),
            PeerTable::Contacts { places, .. } => places.get(&rank).copied(),
        }
    }

    /// The place of `rank`, a new one if it has none; `None` if the table is full.
    pub(crate) fn admit(&mut self, rank: Rank) -> Option<PeerId> {
        if let Some(peer) = self.find(rank) {
            return Some(peer);
        }
        let PeerTable::Contacts { ranks, places, most } = self else { return None };
        let peer = PeerId(ranks.len() as u32);
        if peer.0 == *most {
            return None;
        }
        ranks.push(rank);
        places.insert(rank, peer);
        Some(peer)
    }
}

/// A set of ranks, a bit for each.
#[derive(Debug, Default)]
pub(crate) struct Ranks {
    words: Vec<u64>,
    count: u32,
}

impl Ranks {
    /// Whether this is a new one.
    #[inline]
    pub(crate) fn add(&mut self, rank: Rank) -> bool {
        let (word, bit) = (rank.0 as usize / 64, 1 << (rank.0 % 64));
        if self.words.get(word).is_some_and(|word| word & bit != 0) {
            return false;
        }
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= bit;
        self.count += 1;
        true
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }
}
