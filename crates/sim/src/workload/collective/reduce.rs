//! Reduce: the root gets the sum of everybody's part.

use std::collections::VecDeque;

use super::broadcast::segments;
use super::tree::Circle;
use crate::buffer::Part;
use crate::workload::Communicator;

/// Forms of [`reduce`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// The root receives from each of the others, and adds.
    Plain,
    /// Up a k-nomial tree.
    Tree {
        /// k.
        radix: u32,
    },
    /// Up a k-nomial tree in segments, one after the other: a member sends a segment on while the next one comes.
    Segmented {
        /// k.
        radix: u32,
        /// Bytes of a segment; the last may be shorter.
        segment: u64,
    },
}

/// `into` of the root becomes the sum of everybody's `out`, which is as long. `into` matters at the root only.
pub async fn reduce(group: &Communicator, form: Reduce, root: u32, out: Part, into: Part) {
    let tag = group.begin();
    let (task, size) = (group.task(), group.size());
    let circle = Circle::new(group, root);
    match form {
        Reduce::Plain if circle.me > 0 => group.send(root, tag, out).await,
        Reduce::Plain => {
            let other = task.allocate(out.length);
            task.copy(out, into).await;
            for member in 1..size {
                group.receive(circle.member(member), tag, other).await;
                task.combine(other, into).await;
            }
        }
        Reduce::Tree { radix } => {
            let place = circle.place(radix);
            let (sum, other) = (task.allocate(out.length), task.allocate(out.length));
            task.copy(out, sum).await;
            for child in place.children.iter().rev() {
                group.receive(circle.member(child.first), tag, other).await;
                task.combine(other, sum).await;
            }
            match place.parent {
                Some(parent) => group.send(circle.member(parent), tag, sum).await,
                None => task.copy(sum, into).await,
            }
        }
        Reduce::Segmented { radix, segment } => {
            let place = circle.place(radix);
            let sum = task.allocate(out.length);
            task.copy(out, sum).await;
            let segments = segments(sum, segment);
            let mut coming = VecDeque::new();
            for part in &segments {
                for child in place.children.iter().rev() {
                    let other = task.allocate(part.length);
                    coming.push_back((group.start_receive(circle.member(child.first), tag, other).await, other));
                }
            }
            for part in segments {
                for (request, other) in coming.drain(..place.children.len()) {
                    task.wait(request).await;
                    task.combine(other, part).await;
                }
                if let Some(parent) = place.parent {
                    group.send(circle.member(parent), tag, part).await;
                }
            }
            if place.parent.is_none() {
                task.copy(sum, into).await;
            }
        }
    }
}
