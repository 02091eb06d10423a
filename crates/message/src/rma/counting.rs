//! The accesses of its peers that a target counts.
//!
//! It may count the writes to all of its regions, or to some, and the reads ([`Endpoint::count_writes`] and what
//! follows it). It publishes no memory for direct reads that it counts, and memory for direct writes only as
//! [`Access::ToldWrite`]: `telling` says how it hears of an operation.
//!
//! [`Access::ToldWrite`]: crate::Access::ToldWrite
//! [`Endpoint::count_writes`]: crate::Endpoint::count_writes

use crate::completion::Operation;
use crate::operation::AtomicOp;
use std::collections::HashSet;

/// The accesses that are counted.
#[derive(Debug, Default)]
pub(super) struct Counting {
    /// Writes, to any region.
    writes: bool,
    /// Reads, of any region.
    reads: bool,
    /// Regions of which it is counted what changes them.
    regions: HashSet<u64>,
    /// Whether anything is counted, or has been: notices may come afterwards.
    has_begun: bool,
}

impl Counting {
    /// Whether anything is counted, or has been.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Whether what changes any region is counted.
    pub(super) fn count_writes(&mut self, count: bool) {
        self.writes = count;
        self.has_begun |= count;
    }

    /// Whether what reads any region is counted.
    pub(super) fn count_reads(&mut self, count: bool) {
        self.reads = count;
        self.has_begun |= count;
    }

    /// All changes of this region are counted.
    pub(super) fn count_region(&mut self, key: u64) {
        self.regions.insert(key);
        self.has_begun = true;
    }

    /// A region is no more.
    pub(super) fn forget_region(&mut self, key: u64) {
        self.regions.remove(&key);
    }

    /// Whether an operation is reported that does this to a region, be it without completion data.
    pub(super) fn counts(&self, operation: Operation, region: u64) -> bool {
        self.has_begun
            && match operation {
                Operation::RemoteRead => self.reads,
                Operation::RemoteFetch => self.reads || self.regions.contains(&region),
                Operation::RemoteChange => self.regions.contains(&region),
                _ => self.writes || self.regions.contains(&region),
            }
    }
}

/// An atomic as its target calls it.
pub(super) fn at_target(op: AtomicOp, wants_result: bool) -> Operation {
    match (wants_result, op.writes()) {
        (false, _) => Operation::RemoteWrite,
        (true, true) => Operation::RemoteFetch,
        (true, false) => Operation::RemoteRead,
    }
}
