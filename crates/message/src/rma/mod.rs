//! RMA reads and writes, and atomics.
//!
//! Where the link finds the target's region and reaches its memory, data moves at once, without the target's help.
//! Elsewhere a request goes to the target by message: a write is cut into pieces with an address each, a read is
//! answered by a stream of pieces; each piece of a write, and each read when its data is through, is answered by a
//! `Reply`. How many may be unanswered is bounded ([`request`]). An operation is complete when all of its parts have
//! been answered: then its data is in place (delivery complete).
//!
//! A target that counts the writes of its peers ([`Endpoint::count_writes`](crate::Endpoint::count_writes)) publishes
//! no memory for direct writing, and says so in its replies: then the origin ends its operation with a notice, one for
//! the operation however many pieces it had.

mod apply;
mod operation;
mod region;
mod request;

use crate::link::Buffer;

pub use apply::{AtomicCall, AtomicError, AtomicInput, apply as atomic_apply, is_valid as atomic_is_valid};
pub(crate) use operation::{Operations, RemoteOperation};
pub(crate) use region::Regions;
pub(crate) use request::{Request, Requests, UnfinishedRead, WriteRest, pieces};

/// Remote operations, as their origin and as their target.
#[derive(Debug)]
pub(crate) struct Rma<B> {
    pub(crate) operations: Operations<B>,
    pub(crate) regions: Regions<B>,
    pub(crate) requests: Requests<B>,
    /// Whether writes of peers are reported that bring no completion data.
    pub(crate) counts_writes: bool,
}

impl<B: Buffer> Rma<B> {
    /// Most heap bytes of the tables of peers: when there are requests between us and all `peers`.
    pub(crate) const fn bytes_most(peers: u32) -> usize {
        Requests::<B>::bytes_most(peers)
    }

    pub(crate) fn new(peers: u32) -> Self {
        let (operations, regions, requests) = (Operations::new(), Regions::new(), Requests::new(peers));
        Rma { operations, regions, requests, counts_writes: false }
    }
}
