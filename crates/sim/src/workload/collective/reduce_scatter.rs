//! Reduce-scatter: member i gets the i-th block of the sum of everybody's part.

use super::broadcast::piece;
use super::reduce::{Reduce, reduce};
use super::scatter::{Scatter, scatter, scatterv};
use crate::buffer::Part;
use crate::workload::Communicator;

/// Forms of [`reduce_scatter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReduceScatter {
    /// A plain reduction to the first member, and a plain scatter.
    Plain,
    /// n − 1 rounds; in round i everybody sends the block of the one i behind it straight there.
    Pairwise,
    /// log₂ n rounds, each with half as much data as the one before; the first with the member whose number differs in
    /// the highest bit. Only for powers of two; [`Pairwise`](Self::Pairwise) takes its place elsewhere.
    RecursiveHalving,
    /// Blocks are added up on their way round a ring.
    Ring,
    /// See [`reduce_then_scatterv`].
    ReduceThenScatterv,
}

/// Bytes of a segment on the way up, as Open MPI 1.6 has for 2 KiB.
const SEGMENT: u64 = 1024;

/// `into` of member i, of `counts[i]` bytes, becomes its part of the sum of everybody's `out`, in which the parts lie
/// behind each other: up a binomial tree in segments to the first member, which sends each of the others its part, if
/// it has one. Open MPI 1.6 does so where a count is zero (`coll_tuned_decision_fixed.c`). Members without a part wait
/// for nothing that comes down, so they run ahead.
pub async fn reduce_then_scatterv(group: &Communicator, out: Part, into: Part, counts: &[u64]) {
    let sum = group.task().allocate(out.length);
    reduce(group, Reduce::Segmented { radix: 2, segment: SEGMENT }, 0, out, sum).await;
    scatterv(group, 0, sum, into, counts).await;
}

/// `into` of member i, of `block` bytes, becomes the i-th block of the sum of everybody's `out`, which has a block for
/// every member.
pub async fn reduce_scatter(group: &Communicator, form: ReduceScatter, out: Part, into: Part, block: u64) {
    let (task, me, size) = (group.task(), group.me(), group.size());
    match form {
        ReduceScatter::Plain => {
            let sum = task.allocate(out.length);
            reduce(group, Reduce::Plain, 0, out, sum).await;
            scatter(group, Scatter::Plain, 0, sum, into, block).await;
        }
        ReduceScatter::RecursiveHalving if size.is_power_of_two() => halving(group, out, into, block).await,
        ReduceScatter::Pairwise | ReduceScatter::RecursiveHalving => {
            let tag = group.begin();
            let other = task.allocate(block);
            task.copy(out.block(me, block), into.slice(0, block)).await;
            for distance in 1..size {
                let (to, from) = (group.after(distance), group.before(distance));
                group.exchange(to, out.block(to, block), from, other, tag).await;
                task.combine(other, into.slice(0, block)).await;
            }
        }
        ReduceScatter::Ring => {
            let sum = task.allocate(out.length);
            task.copy(out, sum).await;
            reduce_scatter_ring(group, sum).await;
            task.copy(sum.block(me, block), into.slice(0, block)).await;
        }
        ReduceScatter::ReduceThenScatterv => {
            reduce_then_scatterv(group, out, into, &vec![block; size as usize]).await;
        }
    }
}

async fn halving(group: &Communicator, out: Part, into: Part, block: u64) {
    let tag = group.begin();
    let (task, me) = (group.task(), group.me());
    let (sum, other) = (task.allocate(out.length), task.allocate(out.length / 2));
    task.copy(out, sum).await;
    let (mut first, mut count) = (0, group.size());
    while count > 1 {
        count /= 2;
        let partner = me ^ count;
        let (keep, give) = if me & count == 0 { (first, first + count) } else { (first + count, first) };
        let coming = other.slice(0, u64::from(count) * block);
        group.exchange(partner, sum.blocks(give, count, block), partner, coming, tag).await;
        task.combine(coming, sum.blocks(keep, count, block)).await;
        first = keep;
    }
    task.copy(sum.block(me, block), into.slice(0, block)).await;
}

/// Adds up everybody's `part` in place: in the end member i has the sum of the i-th piece, of as many pieces as
/// members.
pub(super) async fn reduce_scatter_ring(group: &Communicator, part: Part) {
    let tag = group.begin();
    let (task, size) = (group.task(), group.size());
    let other = task.allocate(part.length.div_ceil(u64::from(size)));
    for round in 1..size {
        let leaving = piece(part, group.before(round), size);
        let own = piece(part, group.before(round + 1), size);
        let coming = other.slice(0, own.length);
        group.exchange(group.after(1), leaving, group.before(1), coming, tag).await;
        task.combine(coming, own).await;
    }
}
