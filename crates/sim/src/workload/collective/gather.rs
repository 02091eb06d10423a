//! Gather: the block of member i becomes the i-th block of the root.

use super::tree::Circle;
use crate::buffer::Part;
use crate::workload::Communicator;

/// Forms of [`gather`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gather {
    /// The root receives from each of the others.
    Plain,
    /// Up a k-nomial tree, each subtree's blocks together.
    Tree {
        /// k.
        radix: u32,
    },
}

/// `out` of member i, of `block` bytes, becomes the i-th block of the root's `into`. `into` matters at the root only.
pub async fn gather(group: &Communicator, form: Gather, root: u32, out: Part, into: Part, block: u64) {
    match form {
        Gather::Plain => {
            let counts = vec![block; group.size() as usize];
            gatherv(group, root, out, into, &counts).await;
        }
        Gather::Tree { radix } => gather_up(group, radix, root, out, into, block).await,
    }
}

/// Member i gives `counts[i]` bytes, which lie behind each other in the root's `into`. The root receives from each of
/// the others.
pub async fn gatherv(group: &Communicator, root: u32, out: Part, into: Part, counts: &[u64]) {
    let tag = group.begin();
    let own = counts[group.me() as usize];
    if group.me() != root {
        group.send(root, tag, out.slice(0, own)).await;
        return;
    }
    let (mut offset, mut requests) = (0, Vec::with_capacity(counts.len()));
    for (member, &bytes) in counts.iter().enumerate() {
        let part = into.slice(offset, bytes);
        offset += bytes;
        if member as u32 == root {
            group.task().copy(out.slice(0, bytes), part).await;
        } else {
            requests.push(group.start_receive(member as u32, tag, part).await);
        }
    }
    group.task().wait_all(requests).await;
}

async fn gather_up(group: &Communicator, radix: u32, root: u32, out: Part, into: Part, block: u64) {
    let tag = group.begin();
    let (task, size) = (group.task(), group.size());
    let circle = Circle::new(group, root);
    let place = circle.place(radix);
    let scratch = task.allocate(u64::from(place.members) * block);
    task.copy(out.slice(0, block), scratch.block(0, block)).await;
    // The smallest subtree is complete first.
    for child in place.children.iter().rev() {
        let part = scratch.blocks(child.first - circle.me, child.members, block);
        group.receive(circle.member(child.first), tag, part).await;
    }
    match place.parent {
        Some(parent) => group.send(circle.member(parent), tag, scratch).await,
        None => {
            task.copy(scratch.blocks(0, size - root, block), into.blocks(root, size - root, block)).await;
            task.copy(scratch.blocks(size - root, root, block), into.blocks(0, root, block)).await;
        }
    }
}
