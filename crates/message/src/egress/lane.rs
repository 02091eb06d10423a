//! [`Lane`]: what waits for one peer; [`Delayed`]: for how many something does.

use super::backlog::Backlog;
use super::inject_backoff::PeerBackoff;
use crate::link::Buffer;
use crate::wait_cause::WaitCause;

/// What waits for one peer.
#[derive(Debug)]
pub(super) struct Lane<B> {
    /// In order; the first may have left in part.
    pub(super) backlog: Backlog<B>,
    /// What for; then the peer counts in `Egress::delayed`.
    pub(super) waits_for: Option<WaitCause>,
    /// Whether the peer is in `Egress::full`.
    pub(super) is_full: bool,
    /// Whether injected messages are refused.
    pub(super) hold: PeerBackoff,
}

impl<B: Buffer> Lane<B> {
    /// Whether anything goes on when credits come.
    pub(super) fn wants_credits(&self) -> bool {
        !self.backlog.is_empty() || self.hold != PeerBackoff::default()
    }
}

impl<B: Buffer> Default for Lane<B> {
    fn default() -> Self {
        Lane { backlog: Backlog::new(), waits_for: None, is_full: false, hold: PeerBackoff::default() }
    }
}

/// How many peers have sends waiting, and how many have had them since time was told last.
#[derive(Debug, Default)]
pub(super) struct Delayed {
    pub(super) peers: u32,
    /// How many there were when time was told last, and still are.
    pub(super) before: u32,
}
