//! [`Pattern`]: who sends to whom.

use crate::Random;

/// Who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Random pairs: A sends all to B, and B all to A (R §4.1). With an odd number of nodes one stays idle.
    Pairs,
    /// A random permutation in which nobody sends to itself.
    Permutation,
    /// Each packet to another random node.
    Uniform,
    /// Each node to the one that so many nodes are between; of a dragonfly, by as many as a group has, all of a group
    /// send to the next one.
    Shift(u32),
}

impl Pattern {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Pairs => "pairs",
            Pattern::Permutation => "permutation",
            Pattern::Uniform => "uniform",
            Pattern::Shift(_) => "shift",
        }
    }

    /// The partner of each node: itself if it sends nothing. `None` where each packet has another one.
    pub(super) fn partners(self, nodes: u32, random: &mut Random) -> Option<Vec<u32>> {
        match self {
            Pattern::Uniform => None,
            Pattern::Shift(by) => Some((0..nodes).map(|node| (node + by % nodes) % nodes).collect()),
            Pattern::Pairs => {
                let mut partners: Vec<u32> = (0..nodes).collect();
                for pair in random.permutation(nodes).chunks_exact(2) {
                    partners[pair[0] as usize] = pair[1];
                    partners[pair[1] as usize] = pair[0];
                }
                Some(partners)
            }
            Pattern::Permutation => {
                // One circle through a random order would be too regular: exchange those that stay where they are.
                let mut partners = random.permutation(nodes);
                for node in 0..nodes as usize {
                    if partners[node] == node as u32 {
                        partners.swap(node, (node + 1) % nodes as usize);
                    }
                }
                Some(partners)
            }
        }
    }
}
