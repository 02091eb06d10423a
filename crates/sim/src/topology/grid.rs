//! [`Grid`]: meshes and tori of one to three dimensions with dimension-order routing, one node per router.
//!
//! A packet first goes along the first dimension until that coordinate is right, then along the second, then the
//! third. In a mesh no circle of waiting links can come about: turns go from lower dimensions to higher ones only,
//! and within a dimension packets in one direction never come back.
//!
//! In a torus the links of one dimension and direction are a ring, and packets could wait for each other all around it.
//! So the ring has two classes of virtual channels and a *dateline*, the link between its last router and its first: a
//! packet that has the dateline still ahead of it in this dimension is in class 0, any other in class 1 (Dally and
//! Seitz). Class 1 is never used on the dateline link itself, and class 0 never behind it, so neither class closes the
//! circle. The class follows from where the packet is and where it goes, so a packet carries no state for it. Of two
//! ways of equal length a packet takes the upward one where it starts in an even column, so both directions get their
//! share.
//!
//! Virtual channels beyond these are *lanes*: destinations are divided among them, so that a blocked destination does
//! not block all others behind it, while the packets of one pair stay in order.

use std::fmt;

use super::{End, Hop, Port, RouterId, TopologyError, checked_nodes};
use crate::NodeId;

/// Most dimensions of a grid.
const DIMENSIONS: usize = 3;

/// A mesh or torus. Node `n` is at `n % width`, `n / width % height`, and so on; it is attached to router `n`.
///
/// Ports `2d` and `2d + 1` of a router lead upwards and downwards in dimension `d`, the last port to its node.
#[derive(Clone, PartialEq, Eq)]
pub struct Grid {
    /// Sizes as given.
    sizes: Vec<u16>,
    /// Whether each dimension is a ring; dimensions beyond `sizes` are of size 1.
    ring: [bool; DIMENSIONS],
    extent: [u16; DIMENSIONS],
    wraps: bool,
    /// Coordinates of each router, and their sum, which tells the lane: looked up twice per hop, so computed once.
    coordinates: Vec<[u16; 4]>,
}

impl Grid {
    pub(super) fn mesh(sizes: &[u16]) -> Result<Self, TopologyError> {
        Self::new(sizes, false)
    }

    pub(super) fn torus(sizes: &[u16]) -> Result<Self, TopologyError> {
        Self::new(sizes, true)
    }

    fn new(sizes: &[u16], wraps: bool) -> Result<Self, TopologyError> {
        if sizes.is_empty() || sizes.len() > DIMENSIONS {
            return Err(TopologyError::Dimensions(sizes.len()));
        }
        let nodes = checked_nodes(sizes.iter().map(|&size| u64::from(size)).product())?;
        let mut extent = [1; DIMENSIONS];
        extent[..sizes.len()].copy_from_slice(sizes);
        let ring = extent.map(|size| wraps && size > 2);
        let coordinates = (0..nodes)
            .map(|node| {
                let x = node % u32::from(extent[0]);
                let y = node / u32::from(extent[0]) % u32::from(extent[1]);
                let z = node / u32::from(extent[0]) / u32::from(extent[1]);
                [x as u16, y as u16, z as u16, (x + y + z) as u16]
            })
            .collect();
        Ok(Grid { sizes: sizes.to_vec(), ring, extent, wraps, coordinates })
    }

    /// The sizes, as given.
    #[must_use]
    pub fn sizes(&self) -> &[u16] {
        &self.sizes
    }

    /// Whether it is a torus.
    #[must_use]
    pub fn is_torus(&self) -> bool {
        self.wraps
    }

    pub(super) fn nodes(&self) -> u32 {
        self.coordinates.len() as u32
    }

    pub(super) fn ports(&self) -> u32 {
        2 * self.sizes.len() as u32 + 1
    }

    pub(super) fn channels_per_lane(&self) -> u32 {
        if self.ring.contains(&true) { 2 } else { 1 }
    }

    pub(super) fn end_of(&self, router: RouterId, port: Port) -> End {
        let dimension = port.0 as usize / 2;
        if dimension == self.sizes.len() {
            return End::Node(NodeId(router.0));
        }
        let size = self.extent[dimension];
        let mut at = self.coordinates[router.0 as usize];
        let here = at[dimension];
        at[dimension] = match (port.0.is_multiple_of(2), self.ring[dimension]) {
            (true, _) if here + 1 < size => here + 1,
            (true, true) => 0,
            (false, _) if here > 0 => here - 1,
            (false, true) => size - 1,
            _ => return End::Nothing,
        };
        let [width, height, _] = self.extent.map(u32::from);
        End::Router(RouterId(u32::from(at[0]) + width * (u32::from(at[1]) + height * u32::from(at[2]))))
    }

    pub(super) fn distance(&self, from: NodeId, to: NodeId) -> u32 {
        let (a, b) = (self.coordinates[from.0 as usize], self.coordinates[to.0 as usize]);
        let along = |dimension: usize| {
            let straight = a[dimension].abs_diff(b[dimension]);
            if self.ring[dimension] { straight.min(self.extent[dimension] - straight) } else { straight }
        };
        (0..DIMENSIONS).map(|dimension| u32::from(along(dimension))).sum()
    }

    pub(super) fn bisection_links(&self) -> Option<u32> {
        let halved = |dimension: &usize| self.extent[*dimension].is_multiple_of(2);
        let cut = |dimension: usize| {
            let per_row = if self.ring[dimension] { 2 } else { 1 };
            self.nodes() / u32::from(self.extent[dimension]) * per_row
        };
        (0..DIMENSIONS).filter(halved).map(cut).min()
    }

    /// The first dimension in which the packet is not where it should be decides.
    #[inline]
    pub(super) fn route(&self, router: RouterId, to: NodeId, channels: u32) -> Hop {
        let here = &self.coordinates[router.0 as usize];
        let there = &self.coordinates[to.0 as usize];
        let Some(dimension) = (0..DIMENSIONS).find(|&dimension| here[dimension] != there[dimension]) else {
            return Hop { port: Port(self.ports() - 1), channel: 0 };
        };
        let (at, goal) = (here[dimension], there[dimension]);
        let up = self.goes_up(dimension, at, goal);
        let port = Port(2 * dimension as u32 + u32::from(!up));
        let lane = u32::from(there[3]);
        if channels == 1 {
            return Hop { port, channel: 0 };
        }
        if self.channels_per_lane() == 1 {
            return Hop { port, channel: lane % channels };
        }
        let dateline_ahead = if up { at > goal } else { at < goal };
        Hop { port, channel: 2 * (lane % (channels / 2)) + u32::from(!dateline_ahead) }
    }

    /// Whether the way from coordinate `at` to another, `goal`, is upwards.
    #[inline]
    fn goes_up(&self, dimension: usize, at: u16, goal: u16) -> bool {
        if !self.ring[dimension] {
            return goal > at;
        }
        let size = u32::from(self.extent[dimension]);
        let steps_up = u32::from(goal) + if goal > at { 0 } else { size } - u32::from(at);
        2 * steps_up < size || (2 * steps_up == size && at.is_multiple_of(2))
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<_> = self.sizes.iter().map(u16::to_string).collect();
        write!(f, "{} {}", sizes.join("x"), if self.wraps { "torus" } else { "mesh" })
    }
}

impl fmt::Debug for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Grid({self})")
    }
}
