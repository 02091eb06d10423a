//! Broadcast: everybody gets the root's part.

use super::scatter::scatter_pieces;
use super::tree::Circle;
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
