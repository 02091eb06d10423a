//! Allgather: the block of member i becomes the i-th block of everybody.

use super::broadcast::{Broadcast, broadcast};
use super::gather::gatherv;
use crate::buffer::Part;
use crate::task::Tag;
use crate::workload::Communicator;

/// Forms of [`allgather`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allgather {
    /// A gather at the first member, and a plain broadcast.
    Plain,
    /// n − 1 rounds, in which each block goes round a ring.
    Ring,
    /// n / 2 rounds, in each of which everybody exchanges what it learnt last, two blocks, with one of its two
    /// neighbours in turn (Chen, Zhang, Zhang, Yuan 2005). Only for even numbers; [`Ring`](Self::Ring) takes its place
    /// elsewhere.
    NeighbourExchange,
    /// log₂ n rounds, in each of which everybody exchanges all that it has with the member whose number differs in one
    /// bit. Only for powers of two; [`Bruck`](Self::Bruck) takes its place elsewhere.
    RecursiveDoubling,
    /// log₂ n rounds for any n: in round i from the one 2^i behind; a rotation at the end puts blocks where they
    /// belong.
    Bruck,
}

/// `out` of member i, of `block` bytes, becomes the i-th block of everybody's `into`.
pub async fn allgather(group: &Communicator, form: Allgather, out: Part, into: Part, block: u64) {
    let (task, me, size) = (group.task(), group.me(), group.size());
    match form {
        Allgather::Plain | Allgather::Ring | Allgather::NeighbourExchange => {
            let counts = vec![block; size as usize];
            allgatherv(group, form, out, into, &counts).await;
        }
        Allgather::RecursiveDoubling if size.is_power_of_two() => {
            let tag = group.begin();
            task.copy(out.slice(0, block), into.block(me, block)).await;
            let mut have = 1;
            while have < size {
                let partner = me ^ have;
                let (mine, theirs) = (me / have * have, partner / have * have);
                let (leaving, coming) = (into.blocks(mine, have, block), into.blocks(theirs, have, block));
                group.exchange(partner, leaving, partner, coming, tag).await;
                have *= 2;
            }
        }
        Allgather::Bruck | Allgather::RecursiveDoubling => {
            let tag = group.begin();
            let scratch = task.allocate(u64::from(size) * block);
            task.copy(out.slice(0, block), scratch.block(0, block)).await;
            let mut have = 1;
            while have < size {
                let count = have.min(size - have);
                let (leaving, coming) = (scratch.blocks(0, count, block), scratch.blocks(have, count, block));
                group.exchange(group.before(have), leaving, group.after(have), coming, tag).await;
                have += count;
            }
            task.copy(scratch.blocks(0, size - me, block), into.blocks(me, size - me, block)).await;
            task.copy(scratch.blocks(size - me, me, block), into.blocks(0, me, block)).await;
        }
    }
}

/// Member i gives `counts[i]` bytes, which lie behind each other in everybody's `into`. [`Allgather::Plain`],
/// [`Allgather::NeighbourExchange`] or, for all other forms, [`Allgather::Ring`].
pub async fn allgatherv(group: &Communicator, form: Allgather, out: Part, into: Part, counts: &[u64]) {
    let (me, size) = (group.me(), group.size());
    let whole = into.slice(0, counts.iter().sum());
    if form == Allgather::Plain {
        gatherv(group, 0, out, into, counts).await;
        broadcast(group, Broadcast::Plain, 0, whole).await;
        return;
    }
    let tag = group.begin();
    let mut parts = Vec::with_capacity(counts.len());
    let mut offset = 0;
    for &bytes in counts {
        parts.push(into.slice(offset, bytes));
        offset += bytes;
    }
    let own = parts[me as usize];
    group.task().copy(out.slice(0, own.length), own).await;
    if form == Allgather::NeighbourExchange && size.is_multiple_of(2) {
        return exchange_with_neighbours(group, tag, &parts).await;
    }
    for round in 0..size.saturating_sub(1) {
        let (leaving, coming) = (parts[group.before(round) as usize], parts[group.before(round + 1) as usize]);
        group.exchange(group.after(1), leaving, group.before(1), coming, tag).await;
    }
}

/// See [`Allgather::NeighbourExchange`]; `parts` are the blocks. Members 2k and 2k + 1 learn the same blocks, a pair
/// from each round but the first, which come from the pairs before and behind theirs in turn: 1, 1, 2, 2 … pairs away.
async fn exchange_with_neighbours(group: &Communicator, tag: Tag, parts: &[Part]) {
    let (me, size) = (group.me(), group.size());
    let is_even = me.is_multiple_of(2);
    // In even rounds with the other one of the pair, in odd ones with the neighbour on the other side.
    let neighbours = if is_even { [group.after(1), group.before(1)] } else { [group.before(1), group.after(1)] };
    let (own, other) = (parts[me as usize], parts[neighbours[0] as usize]);
    group.exchange(neighbours[0], own, neighbours[0], other, tag).await;
    let pairs = size / 2;
    let pair = |number: u32| {
        let (first, second) = (parts[2 * number as usize], parts[2 * number as usize + 1]);
        Part { length: first.length + second.length, ..first }
    };
    let mut known = me / 2;
    for round in 1..pairs {
        let distance = round.div_ceil(2);
        let is_before = is_even != round.is_multiple_of(2);
        let coming = (me / 2 + if is_before { pairs - distance } else { distance }) % pairs;
        let neighbour = neighbours[round as usize % 2];
        group.exchange(neighbour, pair(known), neighbour, pair(coming), tag).await;
        known = coming;
    }
}
