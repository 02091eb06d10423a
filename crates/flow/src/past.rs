//! [`Past`]: what was exchanged with a peer before a simulation begins.

/// Data packets that were exchanged with one peer before, for [`FlowControl::age`](crate::FlowControl::age).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Past {
    /// Packets sent to the peer.
    pub sent: u64,
    /// Packets of the peer that were retrieved.
    pub retrieved: u64,
}
