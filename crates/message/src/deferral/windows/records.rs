//! Records of departed peers whose messages are stored: they belong to no window.

use super::Windows;
use crate::counter::{Counter, Counters};
use tidegate_flow::PeerId;

/// What a record of a departed peer takes, whose messages are stored: its name, its address, and its places in tables.
pub(super) const RECORD_BYTES: usize = 1024;

impl Windows {
    /// A departed peer makes place for another one: the spare memory pays for its stored messages from now on, and for
    /// a record of it, as `record`. Returns whether it does, or has too little.
    pub(crate) fn begin_record(&mut self, peer: PeerId, record: PeerId) -> bool {
        let (grown, stored) = self.of_peers.get(peer).map_or((0, 0), |it| (it.bytes - it.base, it.stored));
        let needed = stored as usize + RECORD_BYTES;
        if self.spare + (grown as usize) < needed {
            return false;
        }
        self.release(peer);
        self.spare -= needed;
        self.records.insert(record, stored);
        true
    }

    /// A stored message of a departed peer that has a record is stored no longer.
    pub(crate) fn leave_record(&mut self, counters: &Counters, record: PeerId, cost: u32) {
        counters.sub(Counter::UnmatchedBytes, cost.into());
        if let Some(stored) = self.records.get_mut(&record) {
            *stored -= cost;
            self.spare += cost as usize;
        }
    }

    /// Nothing is stored any more of the departed peer that has this record.
    pub(crate) fn end_record(&mut self, record: PeerId) {
        if let Some(stored) = self.records.remove(&record) {
            self.spare += stored as usize + RECORD_BYTES;
        }
    }
}
