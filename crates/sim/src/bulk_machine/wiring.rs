//! [`Wiring`]: which links a machine has, and which of them a unit takes.

use super::parameters::Shape;
use crate::Random;

/// The most links on a way.
const MOST: usize = 24;

/// A link, from one router or node to another.
pub(super) type LinkNumber = u16;

/// The links that a unit takes, one after the other. The last ends at its receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    links: [LinkNumber; MOST],
    length: u8,
}

impl Way {
    fn new() -> Self {
        Way { links: [0; MOST], length: 0 }
    }

    fn push(&mut self, link: u32) {
        self.links[usize::from(self.length)] = link as LinkNumber;
        self.length += 1;
    }

    /// The link of this hop.
    pub fn at(&self, hop: u8) -> LinkNumber {
        self.links[usize::from(hop)]
    }
}

/// See the module. Links are numbered: those out of nodes, those into nodes, then those between routers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wiring {
    shape: Shape,
    nodes: u32,
}

impl Wiring {
    pub fn new(shape: Shape) -> Self {
        Wiring { shape, nodes: shape.nodes() }
    }

    pub fn links(&self) -> u32 {
        let between = match self.shape {
            // Of each group of 4 two up and two down, of each group of 16 four and four.
            Shape::FatTree { .. } => self.nodes / 4 * 4 + self.nodes.div_ceil(16) * 8,
            Shape::Mesh { .. } => 4 * self.nodes,
        };
        2 * self.nodes + between
    }

    /// The link that ends at a node.
    pub fn last_to(&self, node: u32) -> LinkNumber {
        (self.nodes + node) as LinkNumber
    }

    /// The node at the end of a link.
    pub fn node_at_end(&self, link: LinkNumber) -> Option<u32> {
        u32::from(link).checked_sub(self.nodes).filter(|&node| node < self.nodes)
    }

    /// Whether the link is a node's own.
    pub fn is_of_node(&self, link: LinkNumber) -> bool {
        u32::from(link) < 2 * self.nodes
    }

    /// A way between two nodes; `random` chooses among several.
    pub fn way(&self, from: u32, to: u32, random: &mut Random) -> Way {
        let mut way = Way::new();
        way.push(from);
        match self.shape {
            Shape::FatTree { .. } => self.through_tree(from, to, random, &mut way),
            Shape::Mesh { columns, .. } => self.through_mesh(from, to, u32::from(columns), &mut way),
        }
        way.push(self.nodes + to);
        way
    }

    fn through_tree(&self, from: u32, to: u32, random: &mut Random, way: &mut Way) {
        let (small, large) = (2 * self.nodes, 2 * self.nodes + self.nodes / 4 * 4);
        // Of a group: up, up, down, down; of a group of 16: four up, four down.
        let of_small = |group: u32, place: u32| small + 4 * group + place;
        let of_large = |group: u32, place: u32| large + 8 * group + place;
        if from / 4 == to / 4 {
            return;
        }
        let root = random.below(4) as u32;
        way.push(of_small(from / 4, root / 2));
        if from / 16 != to / 16 {
            way.push(of_large(from / 16, root));
            way.push(of_large(to / 16, 4 + root));
        }
        way.push(of_small(to / 4, 2 + root / 2));
    }

    fn through_mesh(&self, from: u32, to: u32, columns: u32, way: &mut Way) {
        let mut here = from;
        // A router's links: east, west, south, north.
        let mut go = |here: &mut u32, direction: u32, by: i64| {
            way.push(2 * self.nodes + 4 * *here + direction);
            *here = (i64::from(*here) + by) as u32;
        };
        while here % columns != to % columns {
            if here % columns < to % columns { go(&mut here, 0, 1) } else { go(&mut here, 1, -1) }
        }
        while here != to {
            if here < to { go(&mut here, 2, columns.into()) } else { go(&mut here, 3, -i64::from(columns)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_end_where_they_should_and_are_as_long_as_the_distance() {
        let mut random = Random::new(1);
        let lengths = |shape: Shape, random: &mut Random, to: u32| {
            let wiring = Wiring::new(shape);
            let way = wiring.way(0, to, random);
            assert_eq!(wiring.node_at_end(way.at(way.length - 1)), Some(to));
            assert!((0..way.length).all(|hop| u32::from(way.at(hop)) < wiring.links()));
            way.length
        };
        let tree = Shape::FatTree { levels: 3 };
        assert_eq!([1, 5, 63].map(|to| lengths(tree, &mut random, to)), [2, 4, 6]);
        let mesh = Shape::Mesh { columns: 4, rows: 2 };
        assert_eq!([1, 3, 4, 7].map(|to| lengths(mesh, &mut random, to)), [3, 5, 3, 6]);
    }
}
