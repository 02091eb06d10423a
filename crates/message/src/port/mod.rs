//! [`Port`]: how every part of an endpoint reaches the world: the link and the way out, time, the peers that are there
//! or gone, and the completions for the application.
//!
//! It is lent to the parts with each call (`&mut Port`), and knows none of them. So the signature of a method says
//! which other parts it may touch: those that it is also handed.

mod reporting;
mod sending;
mod transfers;

use crate::completion::Ended;
use crate::counter::Counter;
use crate::egress::Egress;
use crate::link::Link;
use crate::memory::Limits;
use crate::operation::EndpointConfig;
use crate::presence::Presence;
use crate::wire::PIECE_BYTES;
use std::collections::BTreeSet;
use tidegate_flow::{Instant, PeerId};

pub(crate) use reporting::placed;
pub(crate) use transfers::{Ended as EndedTransfer, Ending, TransferOwner, Transfers};

/// Pieces of one stream that leave before another one has its turn.
pub(crate) const PIECES_PER_TURN: usize = 8;
/// Bytes of one read or write for the same. Their pieces may be short.
pub(crate) const BYTES_PER_TURN: usize = PIECES_PER_TURN * PIECE_BYTES;

/// See the module.
#[derive(Debug)]
pub(crate) struct Port<L: Link> {
    pub(crate) link: L,
    /// With the word of attention.
    pub(crate) egress: Egress<L::Buffer>,
    pub(crate) presence: Presence,
    pub(crate) ended: Ended,
    pub(crate) config: EndpointConfig,
    /// The limits of the window that we set aside for each peer that we were planned for.
    pub(crate) limits: Limits,
    /// The same of a newcomer, and the first place of one.
    newcomers: Limits,
    planned: u32,
    pub(crate) now: Instant,
    /// What the link was asked to copy.
    pub(crate) transfers: Transfers<L::Buffer>,
    /// Peers with operations behind a fence, which wait for earlier ones to end.
    fenced: BTreeSet<PeerId>,
}

impl<L: Link> Port<L> {
    pub(crate) fn new(link: L, egress: Egress<L::Buffer>, config: EndpointConfig, limits: (Limits, Limits)) -> Self {
        let (limits, newcomers) = limits;
        Port {
            link,
            egress,
            planned: config.flow.planned(),
            presence: Presence::new(config.flow.peers),
            ended: Ended::default(),
            config,
            limits,
            newcomers,
            now: Instant::default(),
            transfers: Transfers::new(),
            fenced: BTreeSet::new(),
        }
    }

    /// The limits of the window that we set aside for this peer.
    #[inline]
    pub(crate) fn limits_of(&self, peer: PeerId) -> &Limits {
        if peer.0 < self.planned { &self.limits } else { &self.newcomers }
    }

    #[inline]
    pub(crate) fn count(&self, counter: Counter, amount: u64) {
        self.link.counters().add(counter, amount);
    }

    /// Operations to a peer wait behind a fence, or do no longer.
    pub(crate) fn set_fenced(&mut self, peer: PeerId, is_fenced: bool) {
        match is_fenced {
            true => self.fenced.insert(peer),
            false => self.fenced.remove(&peer),
        };
    }

    /// An operation to a peer has ended, or has left: with the next progress those may start that wait for that.
    #[inline]
    pub(crate) fn note_progress_to(&mut self, peer: PeerId) {
        if !self.fenced.is_empty() && self.fenced.contains(&peer) {
            self.egress.try_again(peer);
        }
    }
}
