//! Closing, and what must leave before: what the application believes sent (messages in our backlogs, and copies of
//! injected ones that their receiver has no room for), and what peers have begun to take and count on. An endpoint that
//! closes tells its peers first, then goes on until all that has left, for a time that its caller bounds.
//!
//! It waits for the following, each for its reason:
//!
//! - packets that a link has taken and that have not reached their peer, where links send them over a network.
//! - messages and notes in backlogs, refused control packets: they are all that peers may wait for: payload, receipts,
//!   answers to remote operations, credits.
//! - copies of sends that are deferred, go by rendezvous or wait behind a fence, unless their receiver closes too: the
//!   application was told that they are sent.
//! - streams, that is long messages whose receiver has sent a clear to send: it has matched them, and its receive
//!   cannot end otherwise.
//! - reads by peers, by message, that are not through: the peer's operation cannot end otherwise.
//! - requests of ours for remote operations that wait for earlier ones to be answered: only we can send them.
//!
//! It does not wait for sends in the application's memory that no receiver has begun to pull or that wait behind a
//! fence, for receives, nor for answers to what has left: libfabric discards them (fi_endpoint(3)). An MPI, however,
//! lets a program free the request of a send, whose buffer stays as it is, and end; the program counts on such a send,
//! and its MPI may have closed the endpoint by then (MPICH does). So for an application that asks for it
//! ([`begin_closing_after_sends`](Endpoint::begin_closing_after_sends)) all sends are waited for as copies are.
//!
//! Two endpoints that close while each defers messages to the other would wait for ever: neither application receives
//! any more. So no send to a peer that is closing too is waited for: it matches nothing more. (What is in a backlog
//! does leave: a closing peer still retrieves packets.) Such sends are not dropped early: what the peer still pulls
//! while we close, it gets.

use super::Endpoint;
use crate::completion::Failure;
use crate::counter::Counter;
use crate::link::Link;
use crate::wire::MessageKind;
use std::collections::BTreeSet;
use tidegate_flow::PeerId;

impl<L: Link> Endpoint<L> {
    /// Tells all peers that the application receives nothing more. Go on calling [`progress`](Self::progress) while
    /// there is anything [unsent](Self::has_unsent); then drop the endpoint, after
    /// [`abandon_unsent`](Self::abandon_unsent) if that took too long.
    pub fn begin_closing(&mut self) {
        self.port.egress.attention.raise();
        // What waited for others to be written with them would have been written.
        self.rma.send_batch(&mut self.port, self.sends.rooms());
        self.end_losses();
        self.port.presence.begin_closing();
        self.port.link.tell_closing();
    }

    /// The same for an application that counts on all its sends although it closes.
    pub fn begin_closing_after_sends(&mut self) {
        self.port.egress.attention.raise();
        let begun = self.sends.uncopied();
        self.port.presence.await_all_sends(begun.chain(self.fences.uncopied_sends()));
        self.begin_closing();
    }

    /// Whether something has not left yet that the application may believe sent or a peer may wait for, and that its
    /// receiver may still want.
    pub fn has_unsent(&self) -> bool {
        self.port.egress.waiting() > 0
            || self.port.presence.has_awaited()
            || self.port.egress.has_refused()
            || self.pieces_left() > 0
            || self.port.link.has_unsent()
    }

    /// The peers for which that is. Looks at all.
    pub fn unsent_peers(&self) -> impl Iterator<Item = PeerId> {
        (0..self.port.config.flow.peers).map(PeerId).filter(|peer| {
            !self.port.egress.is_idle(*peer)
                || self.port.presence.has_awaited_to(*peer)
                || self.port.egress.refused(*peer) > 0
                || self.sends.streaming().len_of(*peer) > 0
                || self.rma.requests().has_turn(*peer)
                || self.port.link.has_unsent_to(*peer)
        })
    }

    /// Gives up what has not left: all sends and remote operations end, canceled. [`Counter::SendsLost`] says how many
    /// of them the application believed sent.
    pub fn abandon_unsent(&mut self) {
        self.port.egress.attention.raise();
        self.port.presence.begin_closing();
        self.port.presence.give_up_all();
        let peers: BTreeSet<PeerId> = self.port.egress.peers().chain(self.rma.requests().peers()).collect();
        for peer in peers {
            for message in self.port.egress.abandon(peer) {
                if let Some(operation) = message.operation() {
                    self.rma.abandon(&mut self.port, operation);
                }
                self.port.lose_notice(message.into_notice(), Failure::Canceled);
            }
            self.rma.abandon_waiting(&mut self.port, peer);
        }
        let mut lost = 0;
        self.port.link.for_each_unsent(&mut |header| {
            lost += u64::from(MessageKind::from_number(header.message()).is_some_and(counts_as_sent));
        });
        self.port.count(Counter::SendsLost, lost);
        self.rma.cancel_all(&mut self.port);
        self.sends.cancel_all(&mut self.port);
        self.fences.fail_all(&mut self.port, &mut self.sends, &Failure::Canceled);
    }
}

/// Whether the application believes sent what such a message says, once the link has taken it.
fn counts_as_sent(kind: MessageKind) -> bool {
    use MessageKind::*;
    matches!(kind, EagerTagged | EagerUntagged | CarriedTagged | CarriedUntagged | Write | Atomic)
}
