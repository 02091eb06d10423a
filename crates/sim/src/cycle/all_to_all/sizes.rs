//! [`Sizes`]: how much each node has for each other in an exchange.

use crate::Random;
use std::fmt;
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
    /// For the nodes at some distances, which are spread evenly from 1 on: some rounds of an all-to-all of blocks that
    /// are too long for all of them to be simulated.
    Shifts {
        /// How many distances.
        rounds: u32,
        /// How much for each.
        bytes: u64,
    },
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
            Sizes::Shifts { rounds, bytes } => {
                let rounds = rounds.min(nodes - 1);
                let distances =
                    (0..rounds).map(|nth| 1 + (u64::from(nth) * u64::from(nodes - 1) / u64::from(rounds)) as u32);
                distances.map(|distance| block((me + distance) % nodes, bytes)).collect()
            }
            Sizes::Sparse { receivers, bytes } => {
                let mut chosen = random.permutation(nodes - 1);
                chosen.truncate(receivers as usize);
                chosen.into_iter().map(|distance| block((me + 1 + distance) % nodes, bytes)).collect()
            }
        }
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sizes::Uniform(bytes) => write!(f, "{} for each", length(*bytes)),
            Sizes::Random(mean) => write!(f, "0 to {} for each", length(2 * mean)),
            Sizes::Skewed(mean) => write!(f, "{} in the mean, one in eight gets four times that", length(*mean)),
            Sizes::Shifts { rounds, bytes } => write!(f, "{} at {rounds} distances", length(*bytes)),
            Sizes::Sparse { receivers, bytes } => write!(f, "{} for {receivers} by lot", length(*bytes)),
        }
    }
}

/// As people read it.
fn length(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes / 1024),
        _ => format!("{} MiB", bytes / 1_048_576),
    }
}
