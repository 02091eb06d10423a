//! Barrier: nobody goes on before everybody has come.

use super::tree::Circle;
use crate::buffer::Part;
use crate::workload::Communicator;

/// Forms of [`barrier`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// The first member hears of all the others, then tells them.
    Plain,
    /// The same along a k-nomial tree.
    Tree {
        /// k.
        radix: u32,
    },
    /// log₂ n rounds; in round i everybody tells the one 2^i behind it.
    Dissemination,
    /// log₂ n rounds, in each of which everybody exchanges with the member whose number differs in one bit. Only for
    /// powers of two; [`Dissemination`](Self::Dissemination) takes its place elsewhere.
    RecursiveDoubling,
}

/// Nobody goes on before everybody has come.
pub async fn barrier(group: &Communicator, form: Barrier) {
    let tag = group.begin();
    let size = group.size();
    let radix = match form {
        Barrier::RecursiveDoubling if size.is_power_of_two() => {
            let mut bit = 1;
            while bit < size {
                let partner = group.me() ^ bit;
                group.exchange(partner, Part::EMPTY, partner, Part::EMPTY, tag).await;
                bit *= 2;
            }
            return;
        }
        Barrier::Dissemination | Barrier::RecursiveDoubling => {
            let mut distance = 1;
            while distance < size {
                group.exchange(group.after(distance), Part::EMPTY, group.before(distance), Part::EMPTY, tag).await;
                distance *= 2;
            }
            return;
        }
        // A tree in which all other members are children of the first.
        Barrier::Plain => size.max(2),
        Barrier::Tree { radix } => radix,
    };
    let place = Circle::new(group, 0).place(radix);
    for child in place.children.iter().rev() {
        group.receive(child.first, tag, Part::EMPTY).await;
    }
    if let Some(parent) = place.parent {
        group.send(parent, tag, Part::EMPTY).await;
        group.receive(parent, tag, Part::EMPTY).await;
    }
    for child in &place.children {
        group.send(child.first, tag, Part::EMPTY).await;
    }
}
