//! [`Rounds`]: what MPIs do without Tidegate, where that is not one of B's techniques: rounds, in each of which a node
//! sends to one other and receives from one, and goes on when both are through.
//!
//! * **Pairwise exchange**, of long blocks: in round `a` node `i` sends to `i + a` and receives from `i - a`. A cyclic
//!   shift in which neighbours wait for each other, and nobody for all.
//! * **Bruck's algorithm**, of short ones: in round `r` node `i` sends to `i + 2^r` all blocks whose way has bit `r`,
//!   its own and those that it was given. So there are few rounds, and a block is sent several times.

use std::collections::VecDeque;
use tidegate_bulk::{Action, Block, Event, Node, Piece, Step};

/// A round of one node.
#[derive(Clone, Copy, Debug)]
struct Round {
    to: Node,
    bytes: u64,
    from: Node,
    receives: bool,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    left: VecDeque<Round>,
    under_way: bool,
    /// Whether this round's piece is out or there is none to send.
    is_sent: bool,
    /// Whose pieces have come that no round has asked for.
    arrived: Vec<Node>,
}

impl Rounds {
    /// Of a node that has these blocks, one at most for each other, and gets one from each of these senders, in their
    /// order.
    pub(super) fn pairwise(me: u32, nodes: u32, blocks: &[Block], senders: &[u32]) -> Self {
        let mut lengths = vec![0; nodes as usize];
        for block in blocks {
            lengths[block.to.0 as usize] += block.bytes;
        }
        Rounds::new((1..nodes).map(|distance| {
            let (to, from) = ((me + distance) % nodes, (me + nodes - distance) % nodes);
            let receives = senders.binary_search(&from).is_ok();
            Round { to: Node(to), bytes: lengths[to as usize], from: Node(from), receives }
        }))
    }

    /// Blocks of `bytes` for each.
    pub(super) fn bruck(me: u32, nodes: u32, bytes: u64) -> Self {
        let steps = (0..).map(|bit| 1_u32 << bit).take_while(|step| *step < nodes);
        Rounds::new(steps.map(|step| {
            let blocks = (1..nodes).filter(|distance| distance & step != 0).count() as u64;
            let (to, from) = ((me + step) % nodes, (me + nodes - step) % nodes);
            Round { to: Node(to), bytes: bytes * blocks, from: Node(from), receives: bytes > 0 }
        }))
    }

    fn new(rounds: impl Iterator<Item = Round>) -> Self {
        Rounds { left: rounds.collect(), under_way: false, is_sent: false, arrived: Vec::new() }
    }

    pub(super) fn step(&mut self) -> Step {
        while let Some(round) = self.left.front() {
            if self.under_way {
                return Step::Wait;
            }
            if !self.is_sent && round.bytes > 0 {
                (self.is_sent, self.under_way) = (true, true);
                return Step::Do(Action::Send(Piece { block: 0, to: round.to, offset: 0, bytes: round.bytes }));
            }
            if round.receives {
                let Some(place) = self.arrived.iter().position(|from| *from == round.from) else { return Step::Wait };
                self.arrived.swap_remove(place);
            }
            self.is_sent = false;
            self.left.pop_front();
        }
        Step::Finished
    }

    pub(super) fn handle(&mut self, event: Event) {
        match event {
            Event::Sent(_) => self.under_way = false,
            Event::Arrived { from } => self.arrived.push(from),
            Event::Signalled { .. } | Event::Passed { .. } | Event::Lost(_) => {}
        }
    }
}
