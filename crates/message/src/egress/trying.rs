//! Peers to which nothing could be written: their mailboxes were full, or they had not answered for the first time.
//! They are tried again with every progress call.

use super::Egress;
use crate::link::Buffer;
use tidegate_flow::PeerId;

impl<B: Buffer> Egress<B> {
    /// The peers whose mailboxes were full, which the caller tries again. Each counts as full until
    /// [`retry`](Self::retry).
    pub(crate) fn take_full(&mut self) -> Vec<PeerId> {
        std::mem::take(&mut self.full)
    }

    /// One of the peers whose mailboxes were full is being tried again.
    pub(crate) fn retry(&mut self, peer: PeerId) {
        self.lanes.of(peer).is_full = false;
    }
}
