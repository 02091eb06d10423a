//! Scatter: the i-th block of the root goes to member i.

use super::broadcast::pieces;
use super::tree::Circle;
use crate::buffer::Part;
use crate::workload::Communicator;

/// Forms of [`scatter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scatter {
    /// The root sends to each of the others.
    Plain,
    /// Down a k-nomial tree, each subtree's blocks together.
    Tree {
        /// k.
        radix: u32,
    },
}

/// The i-th block, of `block` bytes, of the root's `out` goes to `into` of member i. `out` matters at the root only.
pub async fn scatter(group: &Communicator, form: Scatter, root: u32, out: Part, into: Part, block: u64) {
    match form {
        Scatter::Plain => {
            let counts = vec![block; group.size() as usize];
            scatterv(group, root, out, into, &counts).await;
        }
        Scatter::Tree { radix } => scatter_down(group, radix, root, out, into, block).await,
    }
}

/// Member i gets `counts[i]` bytes, which lie behind each other in the root's `out`. The root sends to each of the
/// others whose count is not zero: no library does better (P §7.4.1).
pub async fn scatterv(group: &Communicator, root: u32, out: Part, into: Part, counts: &[u64]) {
    let tag = group.begin();
    let own = counts[group.me() as usize];
    if group.me() != root {
        if own > 0 {
            group.receive(root, tag, into.slice(0, own)).await;
        }
        return;
    }
    let mut offset = 0;
    for (member, &bytes) in counts.iter().enumerate() {
        let part = out.slice(offset, bytes);
        offset += bytes;
        if member as u32 == root {
            group.task().copy(part, into.slice(0, bytes)).await;
        } else if bytes > 0 {
            group.send(member as u32, tag, part).await;
        }
    }
}

/// Blocks travel in the order of members counted from the root, so that each subtree's lie together.
async fn scatter_down(group: &Communicator, radix: u32, root: u32, out: Part, into: Part, block: u64) {
    let tag = group.begin();
    let (task, size) = (group.task(), group.size());
    let circle = Circle::new(group, root);
    let place = circle.place(radix);
    let scratch = task.allocate(u64::from(place.members) * block);
    match place.parent {
        Some(parent) => {
            group.receive(circle.member(parent), tag, scratch).await;
        }
        None => {
            // The root's own order begins with itself.
            task.copy(out.blocks(root, size - root, block), scratch.blocks(0, size - root, block)).await;
            task.copy(out.blocks(0, root, block), scratch.blocks(size - root, root, block)).await;
        }
    }
    for child in &place.children {
        let part = scratch.blocks(child.first - circle.me, child.members, block);
        group.send(circle.member(child.first), tag, part).await;
    }
    task.copy(scratch.block(0, block), into.slice(0, block)).await;
}

/// Scatters pieces of the root's `part` down a binomial tree: the i-th member, counted from the root, has the i-th
/// piece of its own `part` in the end, and those of its subtree.
pub(super) async fn scatter_pieces(group: &Communicator, root: u32, part: Part) {
    let tag = group.begin();
    let size = group.size();
    let circle = Circle::new(group, root);
    let place = circle.place(2);
    if let Some(parent) = place.parent {
        group.receive(circle.member(parent), tag, pieces(part, circle.me, place.members, size)).await;
    }
    for child in place.children {
        group.send(circle.member(child.first), tag, pieces(part, child.first, child.members, size)).await;
    }
}
