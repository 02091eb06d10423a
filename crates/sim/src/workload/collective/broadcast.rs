//! Broadcast: everybody gets the root's part.

use super::scatter::scatter_pieces;
use super::tree::{Circle, binary_place};
use crate::buffer::Part;
use crate::workload::Communicator;

/// Forms of [`broadcast`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broadcast {
    /// The root sends to each of the others.
    Plain,
    /// Down a k-nomial tree; 2 is the binomial one.
    Tree {
        /// k.
        radix: u32,
    },
    /// The root scatters pieces, which then go round in a ring: for long messages.
    ScatterRing,
    /// The first half of the message goes down one half of a binary tree, the second half down the other, in segments;
    /// then each member of one half exchanges with one of the other. What Open MPI 1.4 does from 2 KiB on.
    SplitBinary {
        /// Bytes of a segment; the last of a half may be shorter.
        segment: u64,
    },
}

/// A part in segments of so many bytes.
pub(super) fn segments(part: Part, segment: u64) -> Vec<Part> {
    let count = part.length.div_ceil(segment.max(1));
    (0..count).map(|index| part.slice(index * segment, segment.min(part.length - index * segment))).collect()
}

/// Everybody gets the root's `part`.
pub async fn broadcast(group: &Communicator, form: Broadcast, root: u32, part: Part) {
    let size = group.size();
    let circle = Circle::new(group, root);
    match form {
        Broadcast::Plain => {
            let tag = group.begin();
            if circle.me > 0 {
                group.receive(root, tag, part).await;
                return;
            }
            for member in 1..size {
                group.send(circle.member(member), tag, part).await;
            }
        }
        Broadcast::Tree { radix } => {
            let tag = group.begin();
            let place = circle.place(radix);
            if let Some(parent) = place.parent {
                group.receive(circle.member(parent), tag, part).await;
            }
            for child in place.children {
                group.send(circle.member(child.first), tag, part).await;
            }
        }
        Broadcast::SplitBinary { segment } => split_binary(group, circle, segment, part).await,
        Broadcast::ScatterRing => {
            scatter_pieces(group, root, part).await;
            let tag = group.begin();
            let (next, previous) =
                (circle.member((circle.me + 1) % size), circle.member((circle.me + size - 1) % size));
            for round in 0..size.saturating_sub(1) {
                let out = piece(part, (circle.me + size - round) % size, size);
                let into = piece(part, (circle.me + size - round - 1) % size, size);
                group.exchange(next, out, previous, into, tag).await;
            }
        }
    }
}

/// See [`Broadcast::SplitBinary`]. Odd members, counted from the root, are one half of the tree, even ones the other;
/// 2k − 1 and 2k exchange what they have. A last odd one has nobody to exchange with, and hears from the root.
async fn split_binary(group: &Communicator, circle: Circle, segment: u64, part: Part) {
    let tag = group.begin();
    let (me, size) = (circle.me, group.size());
    let halves = [piece(part, 0, 2), piece(part, 1, 2)];
    let is_alone = |member: u32| !member.is_multiple_of(2) && member + 1 == size;
    let place = binary_place(me, size);
    if let Some(parent) = place.parent {
        let half = halves[usize::from(me.is_multiple_of(2))];
        let mut coming = Vec::new();
        for part in segments(half, segment) {
            coming.push((group.start_receive(circle.member(parent), tag, part).await, part));
        }
        for (request, part) in coming {
            group.task().wait(request).await;
            for &child in &place.children {
                group.send(circle.member(child), tag, part).await;
            }
        }
        let other = halves[usize::from(!me.is_multiple_of(2))];
        if is_alone(me) {
            group.receive(circle.member(0), tag, other).await;
        } else {
            let partner = circle.member(if me.is_multiple_of(2) { me - 1 } else { me + 1 });
            group.exchange(partner, half, partner, other, tag).await;
        }
        return;
    }
    let parts = halves.map(|half| segments(half, segment));
    for index in 0..parts[0].len().max(parts[1].len()) {
        for &child in &place.children {
            if let Some(&part) = parts[usize::from(child.is_multiple_of(2))].get(index) {
                group.send(circle.member(child), tag, part).await;
            }
        }
    }
    if size > 1 && is_alone(size - 1) {
        group.send(circle.member(size - 1), tag, halves[1]).await;
    }
}

/// The `index`-th of `count` pieces of a part, as equal as whole bytes allow.
pub(super) fn piece(part: Part, index: u32, count: u32) -> Part {
    let border = |index: u32| (u128::from(part.length) * u128::from(index) / u128::from(count)) as u64;
    part.slice(border(index), border(index + 1) - border(index))
}

/// `members` pieces of a part from the `first` on.
pub(super) fn pieces(part: Part, first: u32, members: u32, count: u32) -> Part {
    let begin = piece(part, first, count).offset;
    let last = piece(part, first + members - 1, count);
    Part { offset: begin, length: last.offset + last.length - begin }
}
