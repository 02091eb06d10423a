//! [`Work`]: what a node still has to send, by receiver, cut into [`Piece`]s as it leaves.

use crate::Node;
use std::collections::VecDeque;

/// What one node sends to another in an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// The receiver.
    pub to: Node,
    /// Its length. A block of 0 bytes is not sent.
    pub bytes: u64,
}

/// A part of a block, which is sent by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// Which of the blocks, by their order in [`Exchange::new`](crate::Exchange::new).
    pub block: u32,
    /// The receiver.
    pub to: Node,
    /// Where it begins in its block.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
}

/// What is left for one receiver.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Queue {
    to: Node,
    /// Blocks and their lengths, the next to be sent first.
    blocks: VecDeque<(u32, u64)>,
    /// How much of the first has been taken.
    offset: u64,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Work {
    /// In the order of the receivers' numbers.
    queues: Vec<Queue>,
}

impl Work {
    /// The blocks that are longer than nothing, by their places in the list.
    pub(crate) fn new(blocks: impl IntoIterator<Item = (u32, Block)>) -> Self {
        let mut queues: Vec<Queue> = Vec::new();
        let mut sorted: Vec<_> = blocks.into_iter().filter(|(_, block)| block.bytes > 0).collect();
        sorted.sort_by_key(|(place, block)| (block.to, *place));
        for (place, block) in sorted {
            match queues.last_mut() {
                Some(queue) if queue.to == block.to => queue.blocks.push_back((place, block.bytes)),
                _ => {
                    queues.push(Queue { to: block.to, blocks: VecDeque::from([(place, block.bytes)]), offset: 0 });
                }
            }
        }
        Work { queues }
    }

    fn find(&self, to: Node) -> Option<usize> {
        self.queues.binary_search_by_key(&to, |queue| queue.to).ok()
    }

    /// Those who have something to get, by their numbers.
    pub(crate) fn receivers(&self) -> impl Iterator<Item = Node> {
        self.queues.iter().filter(|queue| !queue.blocks.is_empty()).map(|queue| queue.to)
    }

    /// Whether there is something for `to`.
    pub(crate) fn has(&self, to: Node) -> bool {
        self.find(to).is_some_and(|place| !self.queues[place].blocks.is_empty())
    }

    /// Whether a part of the next block for `to` has been taken.
    pub(crate) fn is_amid_block(&self, to: Node) -> bool {
        self.find(to).is_some_and(|place| self.queues[place].offset > 0)
    }

    /// In how many pieces of at most `most` bytes all that is left for `to` leaves.
    pub(crate) fn pieces(&self, to: Node, most: u64) -> u64 {
        let Some(place) = self.find(to) else { return 0 };
        let queue = &self.queues[place];
        let whole: u64 = queue.blocks.iter().skip(1).map(|(_, bytes)| bytes.div_ceil(most)).sum();
        whole + queue.blocks.front().map_or(0, |(_, bytes)| (bytes - queue.offset).div_ceil(most))
    }

    /// The next piece for `to`, of at most `most` bytes.
    pub(crate) fn take(&mut self, to: Node, most: u64) -> Option<Piece> {
        let place = self.find(to)?;
        let queue = &mut self.queues[place];
        let &(block, length) = queue.blocks.front()?;
        let piece = Piece { block, to, offset: queue.offset, bytes: most.min(length - queue.offset) };
        queue.offset += piece.bytes;
        if queue.offset == length {
            queue.blocks.pop_front();
            queue.offset = 0;
        }
        Some(piece)
    }

    /// `node` is gone: nothing is sent to it.
    pub(crate) fn forget(&mut self, node: Node) {
        if let Some(place) = self.find(node) {
            self.queues.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(blocks: &[(u32, u64)]) -> Work {
        Work::new(blocks.iter().zip(0..).map(|(&(to, bytes), place)| (place, Block { to: Node(to), bytes })))
    }

    #[test]
    fn pieces_cover_each_block_once_in_order() {
        let mut work = work(&[(2, 5), (1, 3), (2, 4), (3, 0)]);
        assert_eq!(work.receivers().collect::<Vec<_>>(), [Node(1), Node(2)]);
        assert_eq!(work.pieces(Node(2), 2), 5);
        let mut taken = Vec::new();
        while let Some(piece) = work.take(Node(2), 2) {
            taken.push((piece.block, piece.offset, piece.bytes));
        }
        assert_eq!(taken, [(0, 0, 2), (0, 2, 2), (0, 4, 1), (2, 0, 2), (2, 2, 2)]);
        assert_eq!(work.pieces(Node(2), 2), 0);
        assert!(!work.has(Node(2)) && work.has(Node(1)) && !work.has(Node(3)));
        work.forget(Node(1));
        assert_eq!(work.receivers().next(), None);
    }
}
