//! RMA reads and writes, and atomics.
//!
//! Reads and writes go straight to the target's memory, without its help, where the link finds the region and reaches
//! it, unless they are fenced, or injected over a link that goes on copying after the call; short ones in a row go
//! together ([`batch`]). All others, and every atomic, go by message: a write is cut into pieces with an address each,
//! a read is answered by a stream of pieces; each piece of a write, and each read when its data is through, is answered
//! by a `Reply`. How many may be unanswered is bounded ([`request`]). An operation is complete when all of its parts
//! have been answered: then its data is in place (delivery complete).
//!
//! The accesses of peers that a target counts are in `counting`, and how it hears of them in `telling`.
//!
//! `request`, `operation`, `region`, `counting`, `batch` and `apply` are its parts; each other file says what follows
//! in one of them from what has happened in another. A write by message is started in `remote` and requested in
//! `requesting`; at the target it is done in `remote` and answered in `requesting`; `finishing` ends it. `batching`
//! says what waits in `batch`, and carries it out.

mod apply;
mod atomics;
mod batch;
mod batching;
mod counting;
mod finishing;
mod operation;
mod region;
mod remote;
mod request;
mod requesting;
mod telling;

use crate::collections::slab::Key;
use crate::link::Link;
use crate::malformed::Malformed;
use crate::operation::Target;
use batch::Batch;
use counting::Counting;
use operation::Operations;
use region::Regions;
use tidegate_flow::PeerId;

pub use apply::{AtomicCall, AtomicError, AtomicInput, apply as atomic_apply, is_valid as atomic_is_valid};
pub(crate) use request::{Requests, UnfinishedRead};

/// Remote operations, as their origin and as their target.
#[derive(Debug)]
pub(crate) struct Rma<L: Link> {
    operations: Operations<L::Buffer>,
    regions: Regions<L::Buffer>,
    requests: Requests<L::Buffer>,
    counting: Counting,
    batch: Batch<L::Buffer>,
}

impl<L: Link> Rma<L> {
    /// Most heap bytes of the table of peers.
    pub(crate) const fn bytes_most(peers: u32) -> usize {
        Requests::<L::Buffer>::bytes_most(peers)
    }

    /// The same for each peer whose requests we answer: it has a window.
    pub(crate) const BYTES_OF_SENDER: usize = Requests::<L::Buffer>::BYTES_OF_SENDER;

    pub(crate) fn new(peers: u32) -> Self {
        let (operations, regions, requests) = (Operations::new(), Regions::new(), Requests::new(peers));
        Rma { operations, regions, requests, counting: Counting::default(), batch: Batch::new() }
    }

    /// How many operations of ours are not over.
    #[inline]
    pub(crate) fn outstanding(&self) -> usize {
        self.operations.len()
    }

    /// Whether there is one to this target; looked for from place `from` on, which then is where one was found.
    pub(crate) fn has_any_to(&self, target: Target, from: &mut usize) -> bool {
        self.operations.has_any_to(target, from)
    }

    /// A peer has given its session back: it has no reads here.
    pub(crate) fn end_session(&mut self, peer: PeerId) {
        self.requests.shrink(peer);
    }

    /// What is requested by message, in both directions.
    pub(crate) fn requests(&self) -> &Requests<L::Buffer> {
        &self.requests
    }

    /// A piece of the data of a read begins to come: where it goes.
    pub(crate) fn admit_read_data(
        &self,
        from: PeerId,
        key: Key,
        position: u64,
        length: usize,
    ) -> Result<usize, Malformed> {
        self.operations.admit(from, key, position, length)
    }

    /// The place of a peer that is gone goes to another.
    pub(crate) fn release(&mut self, peer: PeerId) {
        self.requests.lose_peer(peer);
    }
}
