//! How sends that stayed with us end.

use super::Sends;
use super::send::PendingSend;
use crate::collections::slab::Key;
use crate::completion::Failure;
use crate::counter::Counter;
use crate::link::Link;
use crate::port::Port;
use tidegate_flow::PeerId;

impl<L: Link> Sends<L> {
    /// A send is with us no longer, and nothing of it leaves any more.
    pub(super) fn remove_send(&mut self, port: &mut Port<L>, key: Key) -> Option<PendingSend<L::Buffer>> {
        let send = self.kept.remove(key)?;
        if send.key != 0 {
            port.link.hide(send.peer, send.key);
        }
        if port.presence.awaits(send.is_copied()) {
            port.presence.drop_send(send.peer);
        }
        port.note_progress_to(send.peer);
        Some(send)
    }

    /// Ends a send that stayed with us and whose peer is gone.
    fn lose_send(&mut self, port: &mut Port<L>, key: Key, peer: &str) {
        if let Some(send) = self.remove_send(port, key) {
            self.kept.bounces.free_send(key);
            port.fail_notice(send.notice, peer);
        }
    }

    /// The sends to a peer that is gone end, and none is deferred for it any more.
    pub(crate) fn lose_peer(&mut self, port: &mut Port<L>, peer: PeerId, name: &str) {
        self.rooms.lose_peer(peer);
        for key in self.kept.sends_to(peer) {
            self.lose_send(port, key, name);
        }
    }

    /// All sends end, canceled. Those that closing was to wait for count as lost.
    pub(crate) fn cancel_all(&mut self, port: &mut Port<L>) {
        for key in self.kept.all_sends() {
            if let Some(send) = self.remove_send(port, key) {
                let is_promised =
                    !send.is_copied() && port.presence.awaits(false) && port.presence.may_match(send.peer);
                if is_promised && send.notice.as_ref().is_some_and(|notice| notice.report) {
                    // Closing was to wait for it. (One that is not reported counts as lost in any case.)
                    port.count(Counter::SendsLost, 1);
                }
                port.lose_notice(send.notice, Failure::Canceled);
            }
        }
    }

    /// The place of a peer that is gone goes to another.
    pub(crate) fn release(&mut self, peer: PeerId) {
        self.rooms.release(peer);
        self.kept.release(peer);
    }
}
