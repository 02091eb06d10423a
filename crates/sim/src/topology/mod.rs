//! Who is wired to whom, and which way a packet goes: [`Topology`], one file per kind.
//!
//! A topology is routers with numbered output ports. Each port leads to another router or to a node. The network asks
//! two questions: what is at the end of a port ([`Topology::end_of`], once, when it is built) and by which port and
//! virtual channel a packet leaves a router (`Topology::route`, once per hop). Whatever answers these two is a
//! topology; another kind is another file here and another variant. The rest of the network stays as it is.
//!
//! Deadlock freedom is the topology's business: the channels that `route` chooses must not wait for each other in a
//! circle. Order per pair of processes is too: all packets between two nodes take one path and one lane.

mod grid;
mod ideal;
mod switch;
mod wired;

use std::fmt;

pub use grid::Grid;
pub use ideal::Ideal;
pub use switch::Switch;
pub use wired::{Ways, Wired};

use crate::NodeId;
use crate::cycle::LayoutError;

/// A router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouterId(pub u32);

/// An output of a router, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u32);

/// What a port leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Another router's input.
    Router(RouterId),
    /// The network interface of a node.
    Node(NodeId),
    /// Nothing: the edge of a mesh.
    Nothing,
}

/// The next step of a packet: an output and the virtual channel of the link behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    pub port: Port,
    pub channel: u32,
}

/// The shape of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// A mesh or torus, one node per router.
    Grid(Grid),
    /// A dragonfly or a fat tree.
    Wired(Wired),
    /// All nodes on one switch.
    Switch(Switch),
    /// No routers and links: only the interfaces of the nodes limit what they send and receive.
    Ideal(Ideal),
}

impl Topology {
    /// A mesh with these sizes, one to three of them: `&[4, 4, 4]` is the machine of P.
    ///
    /// # Errors
    /// If there are no sizes, more than three, a zero, or more nodes than can be numbered.
    pub fn mesh(sizes: &[u16]) -> Result<Self, TopologyError> {
        Grid::mesh(sizes).map(Topology::Grid)
    }

    /// A torus with these sizes, one to three of them. A dimension of size 2 or 1 has no way round: it is that of a
    /// mesh.
    ///
    /// # Errors
    /// As for [`mesh`](Self::mesh).
    pub fn torus(sizes: &[u16]) -> Result<Self, TopologyError> {
        Grid::torus(sizes).map(Topology::Grid)
    }

    /// A dragonfly: groups, routers of a group, nodes of a router. Each two groups have one link.
    ///
    /// # Errors
    /// If there are not three sizes, one is 0, or there are more nodes, or ports of a router, than possible.
    pub fn dragonfly(sizes: &[u16], ways: Ways) -> Result<Self, TopologyError> {
        Wired::new(Wired::dragonfly(sizes)?, ways).map(Topology::Wired)
    }

    /// A fat tree: ports of a router, levels of routers.
    ///
    /// # Errors
    /// If there are not two sizes, the ports are not even, or there are more nodes, or ports of a router, than
    /// possible.
    pub fn fat_tree(sizes: &[u16], ways: Ways) -> Result<Self, TopologyError> {
        Wired::new(Wired::fat_tree(sizes)?, ways).map(Topology::Wired)
    }

    /// All of `nodes` nodes on one switch.
    ///
    /// # Errors
    /// If there are none, or more than can be numbered.
    pub fn switch(nodes: u32) -> Result<Self, TopologyError> {
        Switch::new(nodes).map(Topology::Switch)
    }

    /// An [`Ideal`] network of `nodes` nodes.
    ///
    /// # Errors
    /// If there are none, or more than can be numbered.
    pub fn ideal(nodes: u32) -> Result<Self, TopologyError> {
        Ideal::new(nodes).map(Topology::Ideal)
    }

    /// Nodes.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        match self {
            Topology::Grid(grid) => grid.nodes(),
            Topology::Wired(wired) => wired.nodes(),
            Topology::Switch(switch) => switch.nodes(),
            Topology::Ideal(ideal) => ideal.nodes(),
        }
    }

    /// Routers.
    #[must_use]
    pub fn routers(&self) -> u32 {
        match self {
            Topology::Grid(grid) => grid.nodes(),
            Topology::Wired(wired) => wired.routers(),
            Topology::Switch(_) => 1,
            Topology::Ideal(_) => 0,
        }
    }

    /// Output ports of each router, those at the edge of a mesh included.
    #[must_use]
    pub fn ports(&self) -> u32 {
        match self {
            Topology::Grid(grid) => grid.ports(),
            Topology::Wired(wired) => wired.ports(),
            Topology::Switch(switch) => switch.nodes(),
            Topology::Ideal(_) => 0,
        }
    }

    /// The router that a node is attached to. An ideal network has none: every node counts as its own.
    #[must_use]
    pub fn router_of(&self, node: NodeId) -> RouterId {
        match self {
            Topology::Grid(_) | Topology::Ideal(_) => RouterId(node.0),
            Topology::Wired(wired) => wired.router_of(node),
            Topology::Switch(_) => RouterId(0),
        }
    }

    /// What a port leads to.
    #[must_use]
    pub fn end_of(&self, router: RouterId, port: Port) -> End {
        match self {
            Topology::Grid(grid) => grid.end_of(router, port),
            Topology::Wired(wired) => wired.end_of(router, port),
            Topology::Switch(_) => End::Node(NodeId(port.0)),
            Topology::Ideal(_) => End::Nothing,
        }
    }

    /// Links between routers that a packet crosses from one node to the other.
    #[must_use]
    pub fn distance(&self, from: NodeId, to: NodeId) -> u32 {
        match self {
            Topology::Grid(grid) => grid.distance(from, to),
            Topology::Wired(wired) => wired.distance(from, to),
            Topology::Switch(_) | Topology::Ideal(_) => 0,
        }
    }

    /// Fewest links between routers, in one direction, that are cut when the nodes are halved across a dimension;
    /// `None` where no link between routers limits what one half can send to the other, or where no such cut halves
    /// the nodes (all sizes odd), and for dragonflies and fat trees, of which it is not computed.
    ///
    /// Traffic between the halves can never be faster than these links together: a bound for any measured table.
    #[must_use]
    pub fn bisection_links(&self) -> Option<u32> {
        match self {
            Topology::Grid(grid) => grid.bisection_links(),
            Topology::Wired(_) | Topology::Switch(_) | Topology::Ideal(_) => None,
        }
    }

    /// Virtual channels that each lane needs: the number of channels must be a multiple of it.
    pub(crate) fn channels_per_lane(&self) -> u32 {
        match self {
            Topology::Grid(grid) => grid.channels_per_lane(),
            Topology::Wired(wired) => wired.channels_per_lane(),
            Topology::Switch(_) | Topology::Ideal(_) => 1,
        }
    }

    /// Whether the way of a packet depends on who sent it, too.
    pub(crate) fn asks_who_sends(&self) -> bool {
        matches!(self, Topology::Wired(wired) if wired.ways() == Ways::DrawnForPairs)
    }

    /// How a packet of `from` for `to` leaves `router`, over links that have `channels` virtual channels. Who sent it
    /// counts only where the topology [asks](Self::asks_who_sends).
    #[inline]
    pub(crate) fn route(&self, router: RouterId, from: NodeId, to: NodeId, channels: u32) -> Hop {
        match self {
            Topology::Grid(grid) => grid.route(router, to, channels),
            Topology::Wired(wired) => wired.route(router, from, to, channels),
            Topology::Switch(_) | Topology::Ideal(_) => Hop { port: Port(to.0), channel: 0 },
        }
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Topology::Grid(grid) => grid.fmt(f),
            Topology::Wired(wired) => wired.fmt(f),
            Topology::Switch(switch) => write!(f, "switch of {} nodes", switch.nodes()),
            Topology::Ideal(ideal) => write!(f, "ideal network of {} nodes", ideal.nodes()),
        }
    }
}

/// Most nodes a topology may have: packets and channels are numbered in 32 bits.
pub const NODES_MAX: u32 = 1 << 20;

/// A topology that cannot be built. `Display` says what to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopologyError {
    /// The number of sizes is not one to three.
    Dimensions(usize),
    /// A dragonfly or a fat tree has other sizes: says which.
    Sizes(&'static str),
    /// Its wires do not fit together.
    Layout(LayoutError),
    /// A size is zero, or the nodes are none or more than [`NODES_MAX`].
    Nodes(u64),
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TopologyError::Dimensions(given) => {
                write!(f, "a mesh or torus has one to three sizes, not {given}: give for example 4x4x4")
            }
            TopologyError::Sizes(needed) => f.write_str(needed),
            TopologyError::Layout(error) => error.fmt(f),
            TopologyError::Nodes(given) => {
                write!(f, "a network has 1 to {NODES_MAX} nodes, not {given}: change the sizes of the topology")
            }
        }
    }
}

impl std::error::Error for TopologyError {}

/// Checks a number of nodes.
fn checked_nodes(nodes: u64) -> Result<u32, TopologyError> {
    match u32::try_from(nodes) {
        Ok(count @ 1..=NODES_MAX) => Ok(count),
        _ => Err(TopologyError::Nodes(nodes)),
    }
}
