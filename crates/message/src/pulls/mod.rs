//! [`Pulling`]: long messages on their way in (`sends` has the rendezvous): which are being pulled, and by which way.
//!
//! `pulling` says what follows from requests to send and from what comes; `pull` has the pulls, and chooses the way of
//! each; `way` has the measured times of both ways; `gate` whose turn it is.

mod gate;
mod pull;
mod pulling;
mod way;

use crate::collections::slab::Key;
use crate::link::Link;
use crate::malformed::Malformed;
use gate::Gate;
use tidegate_flow::{Instant, PeerId};

pub(crate) use pull::{Pulls, Waited};
pub use way::{CLASSES, WayTimes};

/// See the module.
#[derive(Debug)]
pub(crate) struct Pulling<L: Link> {
    pulls: Pulls<L::Buffer>,
    gate: Gate,
    /// How many bytes a bounce buffer has.
    bounce_bytes: usize,
}

impl<L: Link> Pulling<L> {
    pub(crate) fn new(bounce_bytes: usize) -> Self {
        Pulling { pulls: Pulls::new(), gate: Gate::default(), bounce_bytes }
    }

    /// Those that go on with the next call of progress.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.gate.waiting()
    }

    /// The messages that are being pulled, for looks.
    #[inline]
    pub(crate) fn under_way(&self) -> &Pulls<L::Buffer> {
        &self.pulls
    }

    /// A piece begins to come: where in its message it goes.
    pub(crate) fn admit(&mut self, from: PeerId, key: Key, at: u64, length: usize) -> Result<usize, Malformed> {
        self.pulls.admit(from, key, at, length)
    }

    /// The clear to send of a pull has left.
    pub(crate) fn note_asked(&mut self, key: Key) {
        self.pulls.note_asked(key);
    }

    pub(crate) fn tell_time(&mut self, now: Instant) {
        self.pulls.tell_time(now);
    }
}
