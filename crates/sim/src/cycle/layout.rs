//! [`Layout`]: which ports are wired to each other, and the ways between nodes.

use std::fmt;

use super::dragonfly::{self, Dragonfly};
use super::fat_tree::FatTree;
use super::packet::Journey;
use super::parameters::ChannelMap;
use crate::Random;
use crate::topology::NODES_MAX;

/// How packets find their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// By the shortest way, always the same.
    Minimal,
    /// By a random detour, whatever the load (Valiant).
    Valiant,
    /// By the shortest way unless its next output is occupied by more than `bias` times the flits of the detour's, and
    /// `threshold` more (progressive adaptive routing, Jiang, Kim and Dally).
    Adaptive {
        /// Weight of the detour's occupancy.
        bias: u32,
        /// In flits.
        threshold: u32,
    },
}

impl Routing {
    /// As R has it: bias 2, threshold 30 flits.
    pub const PROGRESSIVE: Routing = Routing::Adaptive { bias: 2, threshold: 30 };
}

/// What a port leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Far {
    /// A port of another router.
    Router {
        /// Which.
        router: u32,
        /// Its port.
        port: u32,
    },
    /// A node.
    Node(u32),
    /// No wire is plugged in.
    Nothing,
}

/// Where a packet goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub port: u32,
    /// Which of the classes of channels.
    pub channel: u32,
    /// Flits in use behind the shortest way and the detour, where an adaptive router of a dragonfly compared them.
    pub compared: Option<(u32, u32)>,
}

/// The wires of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Groups, all connected with each other.
    Dragonfly(Dragonfly),
    /// A folded Clos network.
    FatTree(FatTree),
}

/// Most ports of a router.
pub const PORTS_MAX: u32 = 128;

impl Layout {
    /// Whether this can be wired.
    ///
    /// # Errors
    /// If it cannot, the error says why.
    pub fn check(&self) -> Result<(), LayoutError> {
        let nodes = match self {
            Layout::Dragonfly(dragonfly) => {
                dragonfly.check()?;
                let routers = u64::from(dragonfly.groups) * u64::from(dragonfly.routers);
                routers.saturating_mul(dragonfly.nodes.into())
            }
            Layout::FatTree(tree) => {
                tree.check()?;
                tree.nodes()
            }
        };
        if !(2..=u64::from(NODES_MAX)).contains(&nodes) {
            return Err(LayoutError::Nodes(nodes));
        }
        let ports = match self {
            Layout::Dragonfly(one) => u64::from(one.nodes) + u64::from(one.routers) + u64::from(one.global) - 1,
            Layout::FatTree(tree) => tree.radix.into(),
        };
        if ports > PORTS_MAX.into() {
            return Err(LayoutError::Ports(ports));
        }
        Ok(())
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        match self {
            Layout::Dragonfly(dragonfly) => dragonfly.groups * dragonfly.routers * dragonfly.nodes,
            Layout::FatTree(tree) => tree.nodes() as u32,
        }
    }

    /// How many routers there are.
    #[must_use]
    pub fn routers(&self) -> u32 {
        match self {
            Layout::Dragonfly(dragonfly) => dragonfly.groups * dragonfly.routers,
            Layout::FatTree(tree) => tree.routers(),
        }
    }

    /// Ports of each router.
    #[must_use]
    pub fn ports(&self) -> u32 {
        match self {
            Layout::Dragonfly(dragonfly) => dragonfly.ports(),
            Layout::FatTree(tree) => tree.radix,
        }
    }

    /// Channels without which packets could wait for each other in a circle. The channels of a link are a multiple.
    #[must_use]
    pub fn classes(&self) -> u32 {
        match self {
            Layout::Dragonfly(_) => dragonfly::CLASSES,
            Layout::FatTree(_) => 1,
        }
    }

    /// The router of a node, and its port there.
    pub(crate) fn place_of(&self, node: u32) -> (u32, u32) {
        match self {
            Layout::Dragonfly(dragonfly) => dragonfly.place_of(node),
            Layout::FatTree(tree) => tree.place_of(node),
        }
    }

    /// What a port leads to.
    pub(crate) fn far(&self, router: u32, port: u32) -> Far {
        match self {
            Layout::Dragonfly(dragonfly) => dragonfly.far(router, port),
            Layout::FatTree(tree) => tree.far(router, port),
        }
    }

    /// Whether the wire at this port is a long one.
    pub(crate) fn is_global(&self, router: u32, port: u32) -> bool {
        match self {
            Layout::Dragonfly(dragonfly) => dragonfly.is_global(port),
            Layout::FatTree(tree) => tree.is_global(router, port),
        }
    }

    /// Draws what is decided once for a packet, when it enters.
    #[inline]
    pub(crate) fn prepare(&self, journey: &mut Journey, random: &mut Random) {
        match self {
            Layout::Dragonfly(dragonfly) => dragonfly.prepare(journey, random),
            Layout::FatTree(_) => {}
        }
    }

    /// Where a packet goes from here, and on which class of channels. `occupied` says how many flits of the buffers
    /// behind an output are in use.
    #[inline]
    pub(crate) fn route(
        &self,
        router: u32,
        journey: &mut Journey,
        routing: Routing,
        map: ChannelMap,
        occupied: impl Fn(u32) -> u32,
        random: &mut Random,
    ) -> Way {
        match self {
            Layout::Dragonfly(dragonfly) => dragonfly.route(router, journey, routing, map, occupied),
            Layout::FatTree(tree) => {
                let port = tree.route(router, journey, routing, occupied, random);
                Way { port, channel: 0, compared: None }
            }
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Layout::Dragonfly(Dragonfly { groups, routers, nodes, .. }) => {
                write!(f, "dragonfly of {groups} groups of {routers} routers of {nodes} nodes")
            }
            Layout::FatTree(FatTree { radix, levels }) => {
                write!(f, "fat tree of {levels} levels of routers with {radix} ports")
            }
        }
    }
}

/// Why wires do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutError {
    /// Something is 0.
    Empty,
    /// A group has too few global links for all the others.
    TooManyGroups {
        /// Groups asked for.
        groups: u32,
        /// Global links of a group.
        links: u64,
    },
    /// The ports of a fat tree's routers are not even.
    Radix(u32),
    /// A fat tree has no level, or too many.
    Levels(u32),
    /// Too few or too many nodes.
    Nodes(u64),
    /// Too many ports.
    Ports(u64),
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LayoutError::Empty => {
                f.write_str("a dragonfly has at least one of `groups`, `routers_per_group` and `nodes_per_router`")
            }
            LayoutError::TooManyGroups { groups, links } => write!(
                f,
                "`groups` = {groups}: a group has routers_per_group × global_links = {links} links to other groups, and \
                 needs one for each, so give at most {} groups, or more `global_links`",
                links + 1
            ),
            LayoutError::Radix(radix) => {
                write!(f, "`radix` = {radix}: half of a router's ports lead up, so give an even number from 2 on")
            }
            LayoutError::Levels(levels) => write!(f, "`levels` = {levels}: a fat tree has 1 to 20"),
            LayoutError::Nodes(nodes) => {
                write!(f, "the `topology` has {nodes} nodes, and 2 to {NODES_MAX} are possible: change its sizes")
            }
            LayoutError::Ports(ports) => {
                write!(f, "each router of the `topology` has {ports} ports, and at most {PORTS_MAX} are possible")
            }
        }
    }
}

impl std::error::Error for LayoutError {}
