//! [`Ideal`]: a network in which packets never wait for each other between the interfaces, to show what a real network
//! costs.
//!
//! A packet takes the time of its injection, the latency of one router and the time of its extraction; it waits only
//! for other packets at the interfaces of its own two nodes. There is room for every packet: one that finds no place in
//! its mailbox waits behind its predecessors at the same node, and nothing is pushed back to senders.

use super::{TopologyError, checked_nodes};

/// Packets between different nodes share nothing, and every node has room for all that is sent to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ideal {
    nodes: u32,
}

impl Ideal {
    pub(super) fn new(nodes: u32) -> Result<Self, TopologyError> {
        Ok(Ideal { nodes: checked_nodes(nodes.into())? })
    }

    /// Nodes.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.nodes
    }
}
