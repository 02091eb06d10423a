//! Which places of our own table others have taken since the last look, found without a look at all places.
//!
//! Places are given out in order, and those that became free first, the last of them before all others. [`Vacant`] has
//! these in the order of the list in the table: so those that were taken since are its last ones. That holds as long as
//! nobody takes a place between the moment when we learn who has taken one and the moment when we free another: so both
//! happen under the lock of the table.

use super::peer::Table;
use tidegate_flow::PeerId;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Vacant {
    /// Places in the table below this one have been given out, or are vacant.
    seen: usize,
    /// Those that others take last come first.
    places: Vec<PeerId>,
}

impl Vacant {
    /// The places that somebody has taken since the last call, perhaps we.
    pub fn poll_taken(&mut self, table: &Table) -> Vec<PeerId> {
        let is_taken = |peer| table.address(peer).is_some();
        let mut taken = Vec::new();
        for place in self.seen..table.used() {
            self.seen = place + 1;
            let peer = PeerId(place as u32);
            if is_taken(peer) { taken.push(peer) } else { self.places.push(peer) }
        }
        while let Some(peer) = self.places.pop_if(|peer| is_taken(*peer)) {
            taken.push(peer);
        }
        // If the list of free places is damaged, that order does not hold: peers that find no other place then take any
        // free one. So in a full table all vacant places are looked at.
        if table.is_full() {
            taken.extend(self.places.extract_if(.., |peer| is_taken(*peer)));
        }
        taken
    }

    /// We free a place. The caller holds the lock of the table, under which it has called
    /// [`poll_taken`](Self::poll_taken).
    pub fn push(&mut self, peer: PeerId) {
        self.places.push(peer);
    }

    /// How many places are vacant.
    #[cfg(all(test, not(loom)))]
    pub fn len(&self) -> usize {
        self.places.len()
    }
}
