//! All-to-all: the j-th block of member i becomes the i-th block of member j.

use crate::buffer::Part;
use crate::workload::Communicator;

/// Forms of [`alltoall`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alltoall {
    /// n − 1 sends, then n − 1 receives (P §5.3, optimisation off).
    Plain,
    /// n − 1 rounds; in round i everybody sends to the one i behind it and receives from the one i before it.
    Pairwise,
}

/// All-to-all of blocks of `block` bytes: from `out` to `into`, which have a block for every member.
pub async fn alltoall(group: &Communicator, form: Alltoall, out: Part, into: Part, block: u64) {
    let tag = group.begin();
    let (me, size) = (group.me(), group.size());
    group.task().copy(out.block(me, block), into.block(me, block)).await;
    match form {
        Alltoall::Plain => {
            for distance in 1..size {
                let to = group.after(distance);
                group.send(to, tag, out.block(to, block)).await;
            }
            for distance in 1..size {
                let from = group.before(distance);
                group.receive(from, tag, into.block(from, block)).await;
            }
        }
        Alltoall::Pairwise => {
            for distance in 1..size {
                let (to, from) = (group.after(distance), group.before(distance));
                group.exchange(to, out.block(to, block), from, into.block(from, block), tag).await;
            }
        }
    }
}
