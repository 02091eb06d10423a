//! Barrier: nobody goes on before everybody has come.

use crate::buffer::Part;
use crate::workload::Communicator;

/// Forms of [`barrier`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// The first member hears of all the others, then tells them.
    Plain,
    /// log₂ n rounds; in round i everybody tells the one 2^i behind it.
    Dissemination,
}

/// Nobody goes on before everybody has come.
pub async fn barrier(group: &Communicator, form: Barrier) {
    let tag = group.begin();
    let (me, size) = (group.me(), group.size());
    match form {
        Barrier::Plain if me == 0 => {
            for member in 1..size {
                group.receive(member, tag, Part::EMPTY).await;
            }
            for member in 1..size {
                group.send(member, tag, Part::EMPTY).await;
            }
        }
        Barrier::Plain => {
            group.send(0, tag, Part::EMPTY).await;
            group.receive(0, tag, Part::EMPTY).await;
        }
        Barrier::Dissemination => {
            let mut distance = 1;
            while distance < size {
                group.exchange(group.after(distance), Part::EMPTY, group.before(distance), Part::EMPTY, tag).await;
                distance *= 2;
            }
        }
    }
}
