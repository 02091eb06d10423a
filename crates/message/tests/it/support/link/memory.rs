//! [`Memory`]: the kinds of ways that long messages have in the test network, and what its nodes call each other.

use tidegate_message::PeerId;

/// How far an endpoint reaches into its peers' memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// At once.
    Direct,
    /// Every bulk transfer is pending until the scheduler finishes it.
    Delayed,
    /// Not at all: everything goes through the mailbox.
    Mailbox,
    /// Nodes reach those with a higher number only.
    OneWay,
    /// Not at all, but there are bounce buffers.
    Bounced,
    /// At once, and bounce buffers for what is short.
    BouncedOrDirect,
    /// With delay, and what is not too long is carried beside packets, one at a time.
    Carried,
}

impl Memory {
    pub const ALL: [Memory; 7] = [
        Memory::Direct,
        Memory::Delayed,
        Memory::Mailbox,
        Memory::OneWay,
        Memory::Bounced,
        Memory::BouncedOrDirect,
        Memory::Carried,
    ];
}

/// The node that `me` calls `peer`. Everybody's table starts after himself, so no two nodes name a third one alike.
pub fn node_of(me: usize, peer: PeerId, nodes: usize) -> usize {
    (me + 1 + peer.0 as usize) % nodes
}

/// What `me` calls `node`.
pub fn peer_of(me: usize, node: usize, nodes: usize) -> PeerId {
    PeerId(((node + nodes - me - 1) % nodes) as u32)
}
