//! All-to-all: the j-th block of member i becomes the i-th block of member j.

use crate::buffer::Part;
use crate::task::{Request, Tag};
use crate::workload::Communicator;

/// Forms of [`alltoall`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alltoall {
    /// n − 1 sends, then n − 1 receives (P §5.3, optimisation off). A send of an eager message that has to wait for
    /// credits holds up those behind it; long messages do not wait for each other, nor do any where one without
    /// credits is announced and waits for its receive.
    Plain,
    /// All receives are posted, then all sends started, the last receiver first, then all are waited for: what Open MPI
    /// 1.4 does with blocks of 200 to 3,000 bytes (its "basic linear" form). A send that waits for credits holds up
    /// nothing but what goes to the same receiver.
    Posted,
    /// n − 1 rounds; in round i everybody sends to the one i behind it and receives from the one i before it.
    Pairwise,
    /// log₂ n rounds; in round i all blocks whose remaining distance has bit i set travel by 2^i, in one message. For
    /// short blocks.
    Bruck,
}

/// All-to-all of blocks of `block` bytes: from `out` to `into`, which have a block for every member.
pub async fn alltoall(group: &Communicator, form: Alltoall, out: Part, into: Part, block: u64) {
    let tag = group.begin();
    let (task, me, size) = (group.task(), group.me(), group.size());
    if form == Alltoall::Bruck {
        return bruck(group, out, into, block).await;
    }
    task.copy(out.block(me, block), into.block(me, block)).await;
    if form == Alltoall::Posted {
        let blocks = |part: Part| move |member| Some(part.block(member, block));
        return post_all(group, tag, blocks(out), blocks(into)).await;
    }
    if form == Alltoall::Pairwise {
        for distance in 1..size {
            let (to, from) = (group.after(distance), group.before(distance));
            group.exchange(to, out.block(to, block), from, into.block(from, block), tag).await;
        }
        return;
    }
    let mut sends = Vec::new();
    for distance in 1..size {
        let to = group.after(distance);
        send_first(group, to, tag, out.block(to, block), &mut sends).await;
    }
    for distance in 1..size {
        let from = group.before(distance);
        group.receive(from, tag, into.block(from, block)).await;
    }
    task.wait_all(sends).await;
}

/// Posts all receives, then starts all sends, the last receiver first, then waits for all. `leaving` is what a member
/// is sent, `coming` where what it sends goes; nothing where no message is.
async fn post_all(
    group: &Communicator,
    tag: Tag,
    leaving: impl Fn(u32) -> Option<Part>,
    coming: impl Fn(u32) -> Option<Part>,
) {
    let size = group.size();
    let mut requests = Vec::with_capacity(2 * size as usize);
    for from in (1..size).map(|distance| group.after(distance)) {
        if let Some(part) = coming(from) {
            requests.push(group.start_receive(from, tag, part).await);
        }
    }
    for to in (1..size).map(|distance| group.before(distance)) {
        if let Some(part) = leaving(to) {
            requests.push(group.start_send(to, tag, part).await);
        }
    }
    group.task().wait_all(requests).await;
}

/// Sends a block before anything is received. A send that may wait for its receive is only started.
async fn send_first(group: &Communicator, to: u32, tag: Tag, part: Part, sends: &mut Vec<Request>) {
    if group.task().sends_unreceived(part.length) {
        group.send(to, tag, part).await;
    } else {
        sends.push(group.start_send(to, tag, part).await);
    }
}

/// Blocks lie by the distance they have to travel, so that a round's blocks are those with a bit of their place set.
async fn bruck(group: &Communicator, out: Part, into: Part, block: u64) {
    let tag = group.begin();
    let (task, me, size) = (group.task(), group.me(), group.size());
    let scratch = task.allocate(u64::from(size) * block);
    let half = u64::from(size.div_ceil(2)) * block;
    let (packed, arrived) = (task.allocate(half), task.allocate(half));
    task.copy(out.blocks(me, size - me, block), scratch.blocks(0, size - me, block)).await;
    task.copy(out.blocks(0, me, block), scratch.blocks(size - me, me, block)).await;
    let mut distance = 1;
    while distance < size {
        let places: Vec<u32> = (0..size).filter(|place| place & distance != 0).collect();
        for (index, &place) in places.iter().enumerate() {
            task.copy(scratch.block(place, block), packed.block(index as u32, block)).await;
        }
        let count = places.len() as u32;
        let (leaving, coming) = (packed.blocks(0, count, block), arrived.blocks(0, count, block));
        group.exchange(group.after(distance), leaving, group.before(distance), coming, tag).await;
        for (index, &place) in places.iter().enumerate() {
            task.copy(arrived.block(index as u32, block), scratch.block(place, block)).await;
        }
        distance *= 2;
    }
    for place in 0..size {
        task.copy(scratch.block(place, block), into.block(group.before(place), block)).await;
    }
}

/// Forms of [`alltoallv`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alltoallv {
    /// n − 1 sends, then n − 1 receives.
    Plain,
    /// All receives are posted, then all sends started, then all are waited for: as [`Alltoall::Posted`].
    Posted,
    /// n − 1 rounds; in round i everybody sends to the one i behind it and receives from the one i before it.
    Pairwise,
}

/// Memory with a block of its own length for every member, behind each other.
#[derive(Clone, Copy, Debug)]
pub struct Blocks<'a> {
    /// Where they lie.
    pub part: Part,
    /// Bytes of each member's.
    pub counts: &'a [u64],
}

impl Blocks<'_> {
    fn parts(&self) -> Vec<Part> {
        let offsets = self.counts.iter().scan(0, |offset, &bytes| {
            *offset += bytes;
            Some(*offset - bytes)
        });
        offsets.zip(self.counts).map(|(offset, &bytes)| self.part.slice(offset, bytes)).collect()
    }
}

/// All-to-all of blocks of different lengths: what member i means for member j is as long in `out` of i as in `into` of
/// j. Empty blocks are not sent.
pub async fn alltoallv(group: &Communicator, form: Alltoallv, out: Blocks<'_>, into: Blocks<'_>) {
    let tag = group.begin();
    let (task, me, size) = (group.task(), group.me(), group.size());
    let (leaving, coming) = (out.parts(), into.parts());
    task.copy(leaving[me as usize], coming[me as usize]).await;
    if form == Alltoallv::Posted {
        let blocks =
            |parts: Vec<Part>| move |member| Some(parts[member as usize]).filter(|part: &Part| part.length > 0);
        return post_all(group, tag, blocks(leaving), blocks(coming)).await;
    }
    let mut sends = Vec::new();
    for distance in 1..size {
        let (to, from) = (group.after(distance), group.before(distance));
        let (part, place) = (leaving[to as usize], coming[from as usize]);
        if part.length > 0 {
            match form {
                Alltoallv::Plain => send_first(group, to, tag, part, &mut sends).await,
                Alltoallv::Posted | Alltoallv::Pairwise => sends.push(group.start_send(to, tag, part).await),
            }
        }
        if form == Alltoallv::Pairwise {
            if place.length > 0 {
                group.receive(from, tag, place).await;
            }
            task.wait_all(sends.drain(..)).await;
        }
    }
    if form == Alltoallv::Plain {
        for distance in 1..size {
            let from = group.before(distance);
            if coming[from as usize].length > 0 {
                group.receive(from, tag, coming[from as usize]).await;
            }
        }
        task.wait_all(sends).await;
    }
}
