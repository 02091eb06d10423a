//! Injected messages that cannot leave are refused for a while, so that their senders do not fall silent with them.

use super::Egress;
use crate::link::Buffer;
use tidegate_flow::PeerId;

impl<B: Buffer> Egress<B> {
    /// Whether a message that cannot leave had better be refused than wait here: `most` times in a row.
    #[cold]
    pub(crate) fn hold(&mut self, to: PeerId, most: u32) -> bool {
        let held = &mut self.lanes.of(to).held;
        let is_held = *held < most;
        *held += u32::from(is_held);
        is_held
    }

    /// Whether anything goes on when credits come: something waits for the peer, or was refused.
    #[inline]
    pub(crate) fn wants_credits(&self, peer: PeerId) -> bool {
        self.lanes.get(peer).is_some_and(|lane| !lane.backlog.is_empty() || lane.held > 0)
    }
}
