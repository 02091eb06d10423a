//! [`Sizes`]: how much each node has for each other in an exchange.

use crate::Random;
use tidegate_bulk::{Block, Node};

/// How much each node has for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// So many bytes for each.
    Uniform(u64),
    /// From 0 to twice as many bytes as this, each pair by itself.
    Random(u64),
    /// The mean is so many bytes, but one node in eight, by lot, gets four times as much from each other node, and the
    /// others the rest.
    Skewed(u64),
    /// For some nodes, by lot, each at most once: irregular traffic.
    Sparse {
        /// For how many.
        receivers: u32,
        /// How much for each.
        bytes: u64,
    },
}

impl Sizes {
    /// What `me` sends, in the order of a cyclic shift; nothing to itself, which would not touch the network.
    #[must_use]
    pub fn blocks(self, me: u32, nodes: u32, seed: u64) -> Vec<Block> {
        let mut random = Random::stream(seed, 1_000 + u64::from(me));
        let others = (1..nodes).map(|distance| (me + distance) % nodes);
        let block = |to: u32, bytes: u64| Block { to: Node(to), bytes };
        match self {
            Sizes::Uniform(bytes) => others.map(|to| block(to, bytes)).collect(),
            Sizes::Random(mean) => others.map(|to| block(to, random.below(2 * mean + 1))).collect(),
            Sizes::Skewed(mean) => {
                let hot = Random::stream(seed, 999).permutation(nodes);
                let is_hot = |to: u32| hot[to as usize] < nodes.div_ceil(8);
                others.map(|to| block(to, if is_hot(to) { 4 * mean } else { 4 * mean / 7 })).collect()
            }
            Sizes::Sparse { receivers, bytes } => {
                let mut chosen = random.permutation(nodes - 1);
                chosen.truncate(receivers as usize);
                chosen.into_iter().map(|distance| block((me + 1 + distance) % nodes, bytes)).collect()
            }
        }
    }
}
