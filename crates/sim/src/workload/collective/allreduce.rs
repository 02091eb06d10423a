//! Allreduce: everybody gets the sum of everybody's part.

use super::broadcast::{Broadcast, broadcast, piece};
use super::reduce::{Reduce, reduce};
use super::reduce_scatter::reduce_scatter_ring;
use crate::buffer::Part;
use crate::workload::Communicator;

/// Forms of [`allreduce`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allreduce {
    /// A plain reduction to the first member, and a plain broadcast.
    Plain,
    /// log₂ n rounds; in round i everybody exchanges its sum with the one whose number differs in bit i. Where n is no
    /// power of two, some hand their part to a neighbour first and get the result back.
    RecursiveDoubling,
    /// Pieces are added up on their way round a ring, then go round once more: for long parts.
    Ring,
}

/// `into` of everybody becomes the sum of everybody's `out`, which is as long.
pub async fn allreduce(group: &Communicator, form: Allreduce, out: Part, into: Part) {
    match form {
        Allreduce::Plain => {
            reduce(group, Reduce::Plain, 0, out, into).await;
            broadcast(group, Broadcast::Plain, 0, into).await;
        }
        Allreduce::RecursiveDoubling => recursive_doubling(group, out, into).await,
        Allreduce::Ring => {
            let size = group.size();
            group.task().copy(out, into).await;
            reduce_scatter_ring(group, into).await;
            let tag = group.begin();
            for round in 0..size.saturating_sub(1) {
                let (leaving, coming) = (group.before(round), group.before(round + 1));
                let (leaving, coming) = (piece(into, leaving, size), piece(into, coming, size));
                group.exchange(group.after(1), leaving, group.before(1), coming, tag).await;
            }
        }
    }
}

async fn recursive_doubling(group: &Communicator, out: Part, into: Part) {
    let tag = group.begin();
    let (task, me, size) = (group.task(), group.me(), group.size());
    let other = task.allocate(out.length);
    task.copy(out, into).await;
    // The first `2 × extra` members pair up, so that a power of two remains.
    let core = 1 << size.ilog2();
    let extra = size - core;
    if me < 2 * extra && me % 2 == 1 {
        group.send(me - 1, tag, into).await;
        group.receive(me - 1, tag, into).await;
        return;
    }
    if me < 2 * extra {
        group.receive(me + 1, tag, other).await;
        task.combine(other, into).await;
    }
    let number = if me < 2 * extra { me / 2 } else { me - extra };
    let mut bit = 1;
    while bit < core {
        let partner = number ^ bit;
        let partner = if partner < extra { 2 * partner } else { partner + extra };
        group.exchange(partner, into, partner, other, tag).await;
        task.combine(other, into).await;
        bit *= 2;
    }
    if me < 2 * extra {
        group.send(me + 1, tag, into).await;
    }
}
