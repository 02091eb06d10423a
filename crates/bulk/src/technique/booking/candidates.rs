//! [`Candidates`]: the receivers for whom a sender has chunks that are not booked, and whom it asks next.

use crate::Node;

/// See the module. Who is asked is random among those that have not been asked in this round.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Candidates {
    /// Receivers and their chunks; those that have not been asked in this round first.
    list: Vec<(Node, u64)>,
    /// How many these are.
    unasked: usize,
    /// Each sender has its own.
    seed: u64,
}

/// A number that looks random (the mixing step of SplitMix64).
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Candidates {
    pub(super) fn new(list: Vec<(Node, u64)>, me: Node, seed: u64) -> Self {
        let unasked = list.len();
        Candidates { list, unasked, seed: mix(seed ^ mix(me.0.into())) }
    }

    /// Whether chunks are left that are not booked.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// A new round begins: all may be asked again.
    pub(super) fn begin_round(&mut self) {
        self.unasked = self.list.len();
    }

    /// Whom to ask next in `round`.
    pub(super) fn ask(&mut self, round: u64) -> Option<Node> {
        let last = self.unasked.checked_sub(1)?;
        let drawn = mix(self.seed ^ mix(round) ^ (self.unasked as u64)) % self.unasked as u64;
        self.list.swap(drawn as usize, last);
        self.unasked = last;
        Some(self.list[last].0)
    }

    /// A chunk for `node` is booked.
    pub(super) fn book(&mut self, node: Node) {
        if let Some(place) = self.list.iter().position(|(receiver, _)| *receiver == node) {
            self.list[place].1 -= 1;
            if self.list[place].1 == 0 {
                self.remove(place);
            }
        }
    }

    /// `node` is gone.
    pub(super) fn forget(&mut self, node: Node) {
        if let Some(place) = self.list.iter().position(|(receiver, _)| *receiver == node) {
            self.remove(place);
        }
    }

    fn remove(&mut self, mut place: usize) {
        if place < self.unasked {
            self.unasked -= 1;
            self.list.swap(place, self.unasked);
            place = self.unasked;
        }
        self.list.swap_remove(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_asked_once_in_a_round_in_an_order_that_varies() {
        let mut candidates = Candidates::new((0..5).map(|node| (Node(node), 2)).collect(), Node(9), 1);
        let round = |candidates: &mut Candidates, round| {
            candidates.begin_round();
            let mut asked: Vec<_> = std::iter::from_fn(|| candidates.ask(round)).collect();
            let order = asked.clone();
            asked.sort();
            assert_eq!(asked, (0..5).map(Node).collect::<Vec<_>>());
            order
        };
        assert_ne!(round(&mut candidates, 1), round(&mut candidates, 2));
        candidates.begin_round();
        let first = candidates.ask(3).unwrap();
        candidates.book(first);
        candidates.book(first);
        candidates.forget(Node((first.0 + 1) % 5));
        let rest: Vec<_> = std::iter::from_fn(|| candidates.ask(3)).collect();
        assert!(rest.len() == 3 && !rest.contains(&first), "{rest:?}");
    }
}
