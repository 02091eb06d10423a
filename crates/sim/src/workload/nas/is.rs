//! IS, integer sort: each process counts its keys by bucket, all sum the counts, and each bucket goes to the process
//! that sorts it. Keys are spread evenly, so the buckets that two processes exchange are about equally long.

use super::{Class, Nas};
use crate::Time;
use crate::workload::Communicator;
use crate::workload::collective::{Allreduce, Alltoall, Alltoallv, Blocks, allreduce, alltoall, alltoallv};

/// Buckets, and five numbers to verify, of four bytes each.
const COUNTS_BYTES: u64 = (1024 + 5) * 4;

/// Keys of all processes.
pub(super) fn keys(class: Class) -> u64 {
    match class {
        Class::A => 1 << 23,
        Class::B => 1 << 25,
        Class::C => 1 << 27,
    }
}

pub(super) async fn run(nas: &Nas, world: &Communicator) -> Time {
    let (task, size) = (world.task(), world.size());
    let block = keys(nas.class) * 4 / u64::from(size).pow(2);
    let (counts, sums) = (task.allocate(COUNTS_BYTES), task.allocate(COUNTS_BYTES));
    let (lengths, theirs) = (task.allocate(4 * u64::from(size)), task.allocate(4 * u64::from(size)));
    let (out, into) = (task.allocate(block * u64::from(size)), task.allocate(block * u64::from(size)));
    let blocks = vec![block; size as usize];
    let mut begin = task.now();
    for iteration in 0..=nas.iterations() {
        if iteration == 1 {
            begin = task.now();
        }
        task.compute(nas.time(size)).await;
        allreduce(world, Allreduce::RecursiveDoubling, counts, sums).await;
        alltoall(world, Alltoall::Posted, lengths, theirs, 4).await;
        let (out, into) = (Blocks { part: out, counts: &blocks }, Blocks { part: into, counts: &blocks });
        alltoallv(world, Alltoallv::Posted, out, into).await;
    }
    begin
}
