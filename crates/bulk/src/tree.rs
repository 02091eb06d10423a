//! [`TreeBarrier`]: a barrier made of messages, where a machine has none in hardware (B §3). Node `i` waits for its
//! children, the nodes `arity × i + 1` to `arity × i + arity`, then tells its parent; the root's word goes back down.
//! Latency grows with the tree's height, work of a node with its arity. On their way up nodes say whether anybody below
//! has work left, on the way down whether anybody has.

use crate::Node;
use std::collections::VecDeque;

/// What nodes of the tree tell each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TreeSignal {
    /// To the parent: everybody below is in.
    Up {
        /// Whether anybody below has work left.
        work_left: bool,
    },
    /// To a child: all are in.
    Down {
        /// Whether anybody has work left.
        work_left: bool,
    },
}

/// See the module. One node's part of barriers that follow one another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TreeBarrier {
    me: Node,
    nodes: u32,
    arity: u32,
    /// Children that are in.
    arrived: u32,
    /// Whether this node is.
    inside: bool,
    work_left: bool,
    signals: VecDeque<(Node, TreeSignal)>,
    passed: Option<bool>,
}

impl TreeBarrier {
    /// The part of `me` among `nodes`, with at most `arity` children each.
    ///
    /// # Panics
    /// If `arity` is 0 or `me` is not below `nodes`.
    #[must_use]
    pub fn new(me: Node, nodes: u32, arity: u32) -> Self {
        assert!(arity > 0 && me.0 < nodes, "{me:?} of {nodes} in a tree of arity {arity}");
        let (signals, passed) = (VecDeque::new(), None);
        TreeBarrier { me, nodes, arity, arrived: 0, inside: false, work_left: false, signals, passed }
    }

    fn children(&self) -> impl Iterator<Item = Node> + use<> {
        let first = u64::from(self.me.0) * u64::from(self.arity) + 1;
        let end = (first + u64::from(self.arity)).min(self.nodes.into());
        (first..end).map(|child| Node(child as u32))
    }

    /// This node is in.
    ///
    /// # Panics
    /// If it is in already.
    pub fn enter(&mut self, work_left: bool) {
        assert!(!self.inside, "{:?} enters a barrier in which it is", self.me);
        self.inside = true;
        self.work_left |= work_left;
        self.look();
    }

    /// Another node says something. What does not come from a parent or a child is ignored.
    pub fn handle(&mut self, from: Node, signal: TreeSignal) {
        match signal {
            TreeSignal::Up { work_left } if self.children().any(|child| child == from) => {
                self.arrived += 1;
                self.work_left |= work_left;
                self.look();
            }
            TreeSignal::Down { work_left } if self.inside && Some(from) == self.parent() => self.leave(work_left),
            _ => {}
        }
    }

    fn parent(&self) -> Option<Node> {
        self.me.0.checked_sub(1).map(|place| Node(place / self.arity))
    }

    fn look(&mut self) {
        if !self.inside || (self.arrived as usize) < self.children().count() {
            return;
        }
        match self.parent() {
            Some(parent) => self.signals.push_back((parent, TreeSignal::Up { work_left: self.work_left })),
            None => self.leave(self.work_left),
        }
    }

    fn leave(&mut self, work_left: bool) {
        self.signals.extend(self.children().map(|child| (child, TreeSignal::Down { work_left })));
        (self.inside, self.arrived, self.work_left) = (false, 0, false);
        self.passed = Some(work_left);
    }

    /// The next message to send.
    pub fn poll(&mut self) -> Option<(Node, TreeSignal)> {
        self.signals.pop_front()
    }

    /// Whether all are in, and then whether anybody has work left. Says so once, when the messages that `poll` names
    /// have been taken.
    pub fn passed(&mut self) -> Option<bool> {
        if self.signals.is_empty() { self.passed.take() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delivers everything, in the order of the nodes.
    fn run(tree: &mut [TreeBarrier]) -> Vec<Option<bool>> {
        let mut passed = vec![None; tree.len()];
        let mut moved = true;
        while moved {
            moved = false;
            for place in 0..tree.len() {
                while let Some((to, signal)) = tree[place].poll() {
                    tree[to.0 as usize].handle(Node(place as u32), signal);
                    moved = true;
                }
                passed[place] = passed[place].or(tree[place].passed());
            }
        }
        passed
    }

    #[test]
    fn nobody_leaves_before_the_last_is_in_and_all_hear_whether_work_is_left() {
        for (nodes, arity) in [(1, 2), (2, 1), (7, 2), (10, 3), (16, 8)] {
            for last in 0..nodes {
                let mut tree: Vec<_> = (0..nodes).map(|me| TreeBarrier::new(Node(me), nodes, arity)).collect();
                for work_left in [true, false] {
                    for me in (0..nodes).filter(|me| *me != last) {
                        tree[me as usize].enter(false);
                    }
                    assert!(run(&mut tree).iter().all(Option::is_none), "{nodes} {arity} {last}");
                    tree[last as usize].enter(work_left);
                    assert_eq!(run(&mut tree), vec![Some(work_left); nodes as usize]);
                }
            }
        }
    }
}
