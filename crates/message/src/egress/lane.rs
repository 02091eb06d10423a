//! [`Lane`]: what waits for one peer; [`Delayed`]: for how many something does.

use super::backlog::Backlog;
use crate::link::Buffer;

/// What waits for one peer.
#[derive(Debug)]
pub(super) struct Lane<B> {
    /// In order; the first may have left in part.
    pub(super) backlog: Backlog<B>,
    /// Whether the peer counts in `Egress::delayed`.
    pub(super) is_delayed: bool,
    /// Whether the peer is in `Egress::full`.
    pub(super) is_full: bool,
    /// How often an injected message has been refused since credits came.
    pub(super) held: u32,
}

impl<B> Lane<B> {
    /// Nothing waits any more. Returns whether the peer has counted in `Egress::delayed`.
    pub(super) fn end_delay(&mut self) -> bool {
        self.held = 0;
        std::mem::take(&mut self.is_delayed)
    }
}

impl<B: Buffer> Default for Lane<B> {
    fn default() -> Self {
        Lane { backlog: Backlog::new(), is_delayed: false, is_full: false, held: 0 }
    }
}

/// How many peers have sends waiting, and how many have had them since time was told last.
#[derive(Debug, Default)]
pub(super) struct Delayed {
    pub(super) peers: u32,
    /// How many there were when time was told last, and still are.
    pub(super) before: u32,
}
