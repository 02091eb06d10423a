//! Closing, and what must leave before: what the application believes sent (messages in our backlogs, and copies of injected ones that
//! their receiver has no room for), and what peers have begun to take and count on. An endpoint that closes tells its peers first,
//! then goes on until all that has left, for a time that its caller bounds.
//!
//! | waits for | why |
//! |---|---|
//! | messages and notes in backlogs, refused control packets | all that peers may wait for: payload, receipts, answers to remote operations, credits |
//! | copies of held or announced sends, unless their receiver closes too | the application was told that they are sent |
//! | streams, that is long messages whose receiver has asked for them by message | it has matched them, and cannot end otherwise |
//! | reads by peers, by message, that are not through | the same |
//! | requests of ours for remote operations that wait for earlier ones to be answered | only we can send them |
//!
//! It does not wait for sends in the application's memory that nobody has asked for, for receives, nor for answers to what has left.
//!
//! Two endpoints that close while each holds messages for the other would wait for ever: neither application receives any more. So
//! nobody waits for copies to a peer that is closing too: it matches nothing more. (What is in a backlog does leave: a closing peer
//! still takes what comes.) Nothing is forgotten because of that; what the peer fetches at the last moment it gets.

use crate::Endpoint;
use crate::bulk::PendingSend;
use crate::collections::slab::Key;
use crate::completion::{Completion, Failure, Notice};
use crate::counter::Counter;
use crate::link::Link;
use tidegate_flow::PeerId;

impl<L: Link> Endpoint<L> {
    /// Tells all peers that the application receives nothing more. Go on calling [`progress`](Self::progress) while there is anything
    /// [unsent](Self::has_unsent); then drop the endpoint, after [`abandon_unsent`](Self::abandon_unsent) if that took too long.
    pub fn begin_closing(&mut self) {
        self.presence.begin_closing();
        self.link.tell_closing();
    }

    /// Whether something has not left yet that the application may believe sent or a peer may wait for, and that its receiver may
    /// still want.
    pub fn has_unsent(&self) -> bool {
        self.egress.waiting() > 0 || self.presence.has_copies() || self.egress.has_refused() || self.pieces_left() > 0
    }

    /// Gives up what has not left: all sends and remote operations end, canceled. [`Counter::SendsLost`] says how many of them the
    /// application believed sent.
    pub fn abandon_unsent(&mut self) {
        self.presence.begin_closing();
        for peer in (0..self.presence.peers()).map(PeerId) {
            self.presence.give_up(peer);
            for message in self.egress.abandon(peer) {
                if let Some(operation) = message.operation() {
                    self.lose_operation(operation);
                }
                self.lose_notice(message.into_notice(), Failure::Canceled);
            }
            for operation in self.rma.requests.waiting_operations(peer) {
                self.lose_operation(operation);
            }
            self.rma.requests.lose_peer(peer);
        }
        // Of all other operations the target has what it needs, and may still do them: they are canceled, not lost.
        for key in self.rma.operations.all() {
            self.cancel_operation(key);
        }
        for key in self.bulk.all_sends() {
            if let Some(send) = self.remove_send(key) {
                self.lose_kept(send, Failure::Canceled);
            }
        }
    }

    /// A remote operation of which a part has not left.
    fn lose_operation(&mut self, key: Key) {
        if self.cancel_operation(key) == Some(false) {
            self.count(Counter::SendsLost, 1);
        }
    }

    /// A message that its receiver will never have. Its application hears of it, unless it closes: then it has heard before that
    /// an injected message is sent, and hears nothing more.
    pub(crate) fn lose_notice(&mut self, notice: Option<Notice>, failure: Failure) {
        let Some(notice) = notice else { return };
        if self.presence.is_closing() && !notice.report {
            self.count(Counter::SendsLost, 1);
        }
        self.completions.push_back(Completion::sent(notice, Err(failure)));
    }

    /// A send is with us no longer, and nothing of it leaves any more.
    pub(crate) fn remove_send(&mut self, key: Key) -> Option<PendingSend<L::Buffer>> {
        let send = self.bulk.remove(key)?;
        if send.is_copied() {
            self.presence.drop_copy(send.peer);
        }
        Some(send)
    }

    /// Ends an announced send whose peer is gone.
    pub(crate) fn lose_send(&mut self, key: Key, peer: &str) {
        if let Some(send) = self.remove_send(key) {
            self.bulk.bounces.free_send(key);
            self.lose_kept(send, Failure::PeerLost { peer: peer.to_owned() });
        }
    }

    /// A send that stayed with us will never be received.
    pub(crate) fn lose_kept(&mut self, send: PendingSend<L::Buffer>, failure: Failure) {
        if send.notice.is_none() && send.is_copied() {
            // The application was told long ago that it is sent.
            self.count(Counter::SendsLost, 1);
        }
        self.lose_notice(send.notice, failure);
    }
}
