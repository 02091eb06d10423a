//! [`NodeSet`]: which of the nodes, a bit each.

use crate::Node;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct NodeSet {
    words: Vec<u64>,
}

impl NodeSet {
    fn place(node: Node) -> (usize, u64) {
        ((node.0 / 64) as usize, 1 << (node.0 % 64))
    }

    /// Whether `node` is in it.
    pub(crate) fn contains(&self, node: Node) -> bool {
        let (word, bit) = Self::place(node);
        self.words.get(word).is_some_and(|bits| bits & bit != 0)
    }

    /// Puts `node` in; says whether it was not there before.
    pub(crate) fn insert(&mut self, node: Node) -> bool {
        let (word, bit) = Self::place(node);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_goes_in_once() {
        let mut set = NodeSet::default();
        assert!(!set.contains(Node(70)));
        assert!(set.insert(Node(70)) && !set.insert(Node(70)));
        assert!(set.contains(Node(70)) && !set.contains(Node(6)) && !set.contains(Node(700)));
    }
}
