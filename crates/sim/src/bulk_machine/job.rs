//! [`BulkJob`]: what nodes send to whom, and by which technique.

use tidegate_bulk::{Block, Node, Settings, TechniqueName};

use crate::Random;

/// Who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkPattern {
    /// In round `a` node `i` sends a block to node `(i + a) mod N`, for all `a` but 0; so often.
    CyclicShift {
        /// How often.
        passes: u32,
    },
    /// Each node sends so many blocks, each to a random other node.
    Random {
        /// How many.
        blocks: u32,
    },
    /// Each node sends a block to the node whose number has this bit the other way.
    Partners {
        /// The bit.
        bit: u32,
    },
    /// Node 0 sends a block to this one, and nobody else anything.
    OneWay {
        /// Which.
        to: u32,
    },
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkJob {
    /// Who sends to whom.
    pub pattern: BulkPattern,
    /// Bytes of each block.
    pub block_bytes: u64,
    /// How it goes.
    pub technique: TechniqueName,
    /// The technique's settings.
    pub settings: Settings,
    /// Whether [`BulkOutcome::busy`](super::BulkOutcome::busy) is wanted.
    pub watch: bool,
}

impl BulkJob {
    /// The exchanges that follow one another: of each the blocks by sender. Techniques that go round need one for each
    /// time round; to the others all blocks are one.
    pub(super) fn exchanges(&self, nodes: u32, seed: u64) -> Vec<Vec<Vec<Block>>> {
        let block = |to: u32| Block { to: Node(to), bytes: self.block_bytes };
        let shift = |from: u32| (1..nodes).map(move |distance| block((from + distance) % nodes));
        let goes_round = matches!(self.technique, TechniqueName::Barriers | TechniqueName::Tokens);
        match self.pattern {
            BulkPattern::CyclicShift { passes } if goes_round => {
                (0..passes).map(|_| (0..nodes).map(|from| shift(from).collect()).collect()).collect()
            }
            BulkPattern::CyclicShift { passes } => {
                vec![(0..nodes).map(|from| (0..passes).flat_map(|_| shift(from)).collect()).collect()]
            }
            BulkPattern::Random { blocks } => {
                let of = |from: u32| {
                    let mut random = Random::stream(seed, u64::from(from));
                    let mut draw = || 1 + random.below(u64::from(nodes) - 1) as u32;
                    (0..blocks).map(|_| block((from + draw()) % nodes)).collect()
                };
                vec![(0..nodes).map(of).collect()]
            }
            BulkPattern::Partners { bit } => vec![(0..nodes).map(|from| vec![block(from ^ bit)]).collect()],
            BulkPattern::OneWay { to } => {
                vec![(0..nodes).map(|from| if from == 0 { vec![block(to)] } else { Vec::new() }).collect()]
            }
        }
    }
}
