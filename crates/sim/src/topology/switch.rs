//! [`Switch`]: every node on one switch, whose outputs are all that packets share.

use super::{TopologyError, checked_nodes};

/// All nodes on one switch. Its input buffers are the injection buffers of the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    nodes: u32,
}

impl Switch {
    pub(super) fn new(nodes: u32) -> Result<Self, TopologyError> {
        Ok(Switch { nodes: checked_nodes(nodes.into())? })
    }

    /// Nodes.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.nodes
    }
}
