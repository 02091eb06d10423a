//! Peers that are late: the network took nothing for them, and they are tried again at their own time.

use super::protocol::Protocol;
use std::mem;
use tidegate_flow::{Instant, PeerId};

impl Protocol {
    /// A peer is tried again when its trouble says.
    pub(super) fn delay(&mut self, place: PeerId) {
        let Some(peer) = self.known(place) else { return };
        let Some(retry_at) = peer.trouble.as_ref().map(|trouble| trouble.retry_at) else { return };
        peer.is_late = true;
        self.late_at = if self.late.is_empty() { retry_at } else { self.late_at.min(retry_at) };
        self.late.push(place);
    }

    /// Those whose time has come stand in the queue again.
    pub(super) fn queue_late(&mut self, now: Instant) {
        if self.late.is_empty() || now < self.late_at {
            return;
        }
        for place in mem::take(&mut self.late) {
            let Some(peer) = self.known(place).filter(|peer| peer.is_late) else { continue };
            match &peer.trouble {
                Some(trouble) if trouble.retry_at > now => self.delay(place),
                _ => {
                    peer.is_late = false;
                    self.queue(place);
                }
            }
        }
    }

    /// The network takes batches for a peer again.
    pub(super) fn hurry(&mut self, place: PeerId) {
        if let Some(peer) = self.known(place)
            && mem::take(&mut peer.is_late)
        {
            self.late.retain(|late| *late != place);
        }
        self.queue(place);
    }
}
