//! Peers to which nothing could be written: their mailboxes were full, or they had not answered for the first time.
//! They are tried again with every progress call.

use super::Egress;
use super::control::Controls;
use super::mailboxes::Mailboxes;
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
        if let Some(lane) = self.lanes.get_mut(peer) {
            lane.is_full = false;
        }
    }

    /// How many control packets found no place in a peer's mailbox.
    pub(crate) fn refused(&self, peer: PeerId) -> u32 {
        Controls::of(&self.lanes, peer)
    }

    /// Whether control packets wait.
    pub(crate) fn has_refused(&self) -> bool {
        self.controls.len() > 0
    }

    /// Tries the control packets again that found no place.
    pub(crate) fn retry_control(&mut self, mailboxes: &mut impl Mailboxes) {
        self.controls.retry(&mut self.lanes, mailboxes);
    }
}
