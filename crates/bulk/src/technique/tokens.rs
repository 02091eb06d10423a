//! [`Tokens`]: a cyclic shift without barriers (B §3.1). Each receiver has a token, and who holds it alone sends to the
//! receiver. The permutations are known in advance, so the token's way is, too: behind its round node `i` passes it to
//! node `(i - 1) mod N`, which sends to the same receiver in the next round. A node that is early begins as soon as
//! *its* receiver is free, while at a barrier it would wait for all.
//!
//! Ours, where B is silent: node `j` has its own token at first, and round 0 is its copy to itself; a node without a
//! block for the receiver passes the token on; a node counts its block as sent when the receiver has it; the token that
//! is home again ends the exchange. A slow node can hold up to N - 1 tokens.
//!
//! **A node that is lost** drops out of all ways. Tokens that it had come again from their receivers, when those know
//! of the loss themselves, for only then nothing of the lost node is under way to them:
//!
//! * who passed a token to a node that is lost tells the token's receiver (`Stranded`), which passes it to the next
//!   that lives behind the lost one;
//! * the lost node may have passed it on before. Then the next has had it, and a node that has had a token ignores it.

use crate::node_set::NodeSet;
use crate::technique::interface::{Action, Event, Part, Step, Technique};
use crate::work::Work;
use crate::{Node, Signal};
use std::collections::VecDeque;
use tidegate_flow::Instant;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tokens {
    me: Node,
    nodes: u32,
    /// Whose receiver's turn it is: this node's distance to it.
    round: u32,
    work: Work,
    under_way: Option<Node>,
    /// Tokens that have been here, also those that are still; this node's own is among them when it is home.
    seen: NodeSet,
    /// To whom this node has passed each token (those of nodes `round` and nearer).
    passed: Vec<Option<Node>>,
    lost: NodeSet,
    /// This node's token was passed to these, who are gone as somebody says, and this node does not know it yet.
    stranded: Vec<Node>,
    signals: VecDeque<(Node, Signal)>,
}

impl Tokens {
    pub(crate) fn new(part: Part) -> Self {
        let mut tokens = Tokens {
            me: part.me,
            nodes: part.nodes,
            round: 1,
            work: part.work,
            under_way: None,
            seen: NodeSet::default(),
            passed: vec![None; part.nodes as usize],
            lost: NodeSet::default(),
            stranded: Vec::new(),
            signals: VecDeque::new(),
        };
        tokens.pass(part.me, part.me);
        tokens
    }

    /// Whether this node has the token of `of`; its own, when that is home again.
    pub(crate) fn holds(&self, of: Node) -> bool {
        self.seen.contains(of) && (of == self.me || self.passed[of.0 as usize].is_none())
    }

    /// Passes the token of `of` to the next that lives behind `behind`, to whom it may be home.
    fn pass(&mut self, of: Node, behind: Node) {
        let mut next = behind.before(1, self.nodes);
        while next != of && self.lost.contains(next) {
            next = next.before(1, self.nodes);
        }
        self.passed[of.0 as usize] = Some(next);
        if next == self.me {
            self.seen.insert(of);
        } else if !self.lost.contains(of) {
            self.signals.push_back((next, Signal::Token { of }));
        }
    }

    fn handle_lost(&mut self, node: Node) {
        self.lost.insert(node);
        self.work.forget(node);
        if self.under_way == Some(node) {
            self.under_way = None;
        }
        for of in (0..self.nodes).map(Node) {
            if self.passed[of.0 as usize] != Some(node) || of == node || self.lost.contains(of) {
                continue;
            }
            if of == self.me {
                self.pass(of, node);
            } else {
                self.signals.push_back((of, Signal::Stranded { lost: node }));
            }
        }
        if let Some(place) = self.stranded.iter().position(|lost| *lost == node) {
            self.stranded.swap_remove(place);
            self.pass(self.me, node);
        }
    }

    fn handle_signal(&mut self, signal: Signal) {
        match signal {
            Signal::Token { of } if of.0 < self.nodes => {
                self.seen.insert(of);
            }
            Signal::Stranded { lost } if lost.0 < self.nodes && lost != self.me => {
                if self.lost.contains(lost) {
                    self.pass(self.me, lost);
                } else if !self.stranded.contains(&lost) {
                    self.stranded.push(lost);
                }
            }
            _ => {}
        }
    }
}

impl Technique for Tokens {
    fn step(&mut self, _now: Instant) -> Step {
        loop {
            if let Some((to, signal)) = self.signals.pop_front() {
                return Step::Do(Action::Signal { to, signal });
            }
            if self.round >= self.nodes {
                return if self.seen.contains(self.me) { Step::Finished } else { Step::Wait };
            }
            let to = self.me.after(self.round, self.nodes);
            if !self.lost.contains(to) {
                if self.under_way.is_some() || !self.seen.contains(to) {
                    return Step::Wait;
                }
                if let Some(piece) = self.work.take(to, u64::MAX) {
                    self.under_way = Some(to);
                    return Step::Do(Action::Send(piece));
                }
                self.pass(to, self.me);
            }
            self.round += 1;
            // The token leaves before this node waits for the next.
            if let Some((to, signal)) = self.signals.pop_front() {
                return Step::Do(Action::Signal { to, signal });
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Sent(_) => self.under_way = None,
            Event::Signalled { signal, .. } => self.handle_signal(signal),
            Event::Lost(node) => self.handle_lost(node),
            Event::Arrived { .. } | Event::Passed { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Action, Block, Event, Exchange, Node, Settings, Signal, Step, TechniqueName};
    use tidegate_flow::Instant;

    #[test]
    fn a_token_leaves_though_the_next_is_not_here_yet() {
        let blocks = [1, 2].map(|to| Block { to: Node(to), bytes: 8 });
        let mut exchange = Exchange::new(TechniqueName::Tokens, Node(0), 3, &blocks, &Settings::default());
        let now = Instant::default();
        let own = Step::Do(Action::Signal { to: Node(2), signal: Signal::Token { of: Node(0) } });
        assert_eq!((exchange.step(now), exchange.step(now)), (own, Step::Wait));
        exchange.handle(Event::Signalled { from: Node(1), signal: Signal::Token { of: Node(1) } });
        let Step::Do(Action::Send(piece)) = exchange.step(now) else { panic!("the block for node 1") };
        exchange.handle(Event::Sent(piece));
        let passed = Step::Do(Action::Signal { to: Node(2), signal: Signal::Token { of: Node(1) } });
        assert_eq!((exchange.step(now), exchange.step(now)), (passed, Step::Wait));
    }
}
