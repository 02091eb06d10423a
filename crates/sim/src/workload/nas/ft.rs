//! FT, Fourier transform in three dimensions: the grid is divided along one axis, so each transform transposes the
//! whole grid once. Before the timed part, one transform warms up; the timed part has one forward, and one back per
//! iteration.

use super::{Class, Nas, Variation};
use crate::Time;
use crate::workload::Communicator;
use crate::workload::collective::{Alltoall, Reduce, alltoall, reduce};

/// Points of the grid.
pub(super) fn points(class: Class) -> u64 {
    match class {
        Class::A => 256 * 256 * 128,
        Class::B => 512 * 256 * 256,
        Class::C => 512 * 512 * 512,
    }
}

/// Bytes of a complex number.
const COMPLEX_BYTES: u64 = 16;

pub(super) async fn run(nas: &Nas, world: &Communicator) -> Time {
    let (task, size) = (world.task(), world.size());
    let block = points(nas.class) * COMPLEX_BYTES / u64::from(size).pow(2);
    let (out, into) = (task.allocate(block * u64::from(size)), task.allocate(block * u64::from(size)));
    let (sum, total) = (task.allocate(COMPLEX_BYTES), task.allocate(COMPLEX_BYTES));
    let time = nas.time(size);
    let form = match nas.variation {
        Variation::TransposeAtOnce => Alltoall::Posted,
        _ => Alltoall::Pairwise,
    };
    task.compute(time).await;
    alltoall(world, form, out, into, block).await;
    let begin = task.now();
    task.compute(time).await;
    alltoall(world, form, out, into, block).await;
    for _ in 0..nas.iterations() {
        task.compute(time).await;
        alltoall(world, form, out, into, block).await;
        reduce(world, Reduce::Tree { radix: 2 }, 0, sum, total).await;
    }
    begin
}
