//! The messages of one matching space that arrived before their receive.
//!
//! They stand in one list in order of arrival, which a receive from any source searches. Through the same elements runs a chain
//! for each source, in the same order, for receives that name one: else those would walk past all that a flood of somebody else
//! has left, for every message anew. The first match is the same on both ways.

use crate::matching::{Pattern, Unexpected};
use crate::operation::{Source, Target};
use crate::slab::{Ordered, Position};
use std::fmt;

/// A message, and its neighbours of the same source.
struct Shelved<B> {
    message: Unexpected<B>,
    previous: Option<Position>,
    next: Option<Position>,
}

/// The neighbours follow from the list.
impl<B: fmt::Debug> fmt::Debug for Shelved<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.message.fmt(f)
    }
}

/// The ends of a source's chain.
#[derive(Clone, Copy, Debug, Default)]
struct Chain {
    first: Option<Position>,
    last: Option<Position>,
}

/// Stored messages.
pub(crate) struct Stock<B> {
    list: Ordered<Shelved<B>>,
    /// By source: this endpoint itself, then its peers.
    chains: Box<[Chain]>,
}

/// The chains follow from the list.
impl<B: fmt::Debug> fmt::Debug for Stock<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.list.fmt(f)
    }
}

/// Which chain is a source's.
fn chain_of(source: Target) -> usize {
    match source {
        Target::Myself => 0,
        Target::Peer(peer) => peer.0 as usize + 1,
    }
}

impl<B> Stock<B> {
    /// Memory that a message takes, payload apart.
    pub(crate) const BYTES_PER_MESSAGE: usize = Ordered::<Shelved<B>>::BYTES_PER_ELEMENT;

    /// Memory that a stock may take beyond its messages' own, if messages come from so many peers.
    pub(crate) const fn bytes_begun(peers: usize) -> usize {
        Ordered::<Shelved<B>>::BYTES_BEGUN + (peers + 1) * size_of::<Chain>()
    }

    /// A stock for the messages of so many peers, and of this endpoint itself.
    pub(crate) fn new(peers: usize) -> Self {
        Stock { list: Ordered::new(), chains: vec![Chain::default(); peers + 1].into() }
    }

    /// Stores a message.
    pub(crate) fn push(&mut self, message: Unexpected<B>) -> Position {
        let chain = chain_of(message.envelope.source);
        let previous = self.chains[chain].last;
        let at = self.list.push_back(Shelved { message, previous, next: None });
        match previous.and_then(|previous| self.list.get_mut(previous)) {
            Some(previous) => previous.next = Some(at),
            None => self.chains[chain].first = Some(at),
        }
        self.chains[chain].last = Some(at);
        at
    }

    /// The message at a position that [`push`](Self::push) returned and that was not removed since.
    pub(crate) fn get_mut(&mut self, at: Position) -> Option<&mut Unexpected<B>> {
        self.list.get_mut(at).map(|shelved| &mut shelved.message)
    }

    /// Removes the message at a position.
    pub(crate) fn remove(&mut self, at: Position) -> Option<Unexpected<B>> {
        let Shelved { message, previous, next } = self.list.remove(at)?;
        let chain = chain_of(message.envelope.source);
        match previous.and_then(|previous| self.list.get_mut(previous)) {
            Some(shelved) => shelved.next = next,
            None => self.chains[chain].first = next,
        }
        match next.and_then(|next| self.list.get_mut(next)) {
            Some(shelved) => shelved.previous = previous,
            None => self.chains[chain].last = previous,
        }
        Some(message)
    }

    /// The first message, in order of arrival, that `pattern` accepts and that nobody claimed.
    #[inline]
    pub(crate) fn find(&self, pattern: &Pattern) -> Option<Position> {
        let wanted = |message: &Unexpected<B>| {
            message.claimed.is_none() && pattern.accepts(message.envelope.source, message.envelope.tag)
        };
        match pattern.from {
            Source::Any => self.list.find(|shelved| wanted(&shelved.message)),
            Source::From(source) => {
                let mut at = self.first_of(source);
                while let Some(here) = at {
                    let shelved = self.list.get(here)?;
                    if wanted(&shelved.message) {
                        return Some(here);
                    }
                    at = shelved.next;
                }
                None
            }
        }
    }

    /// The first message for which `wanted` holds.
    pub(crate) fn find_where(&self, wanted: impl Fn(&Unexpected<B>) -> bool) -> Option<Position> {
        self.list.find(|shelved| wanted(&shelved.message))
    }

    /// The first message of `source`.
    #[inline]
    pub(crate) fn first_of(&self, source: Target) -> Option<Position> {
        self.chains.get(chain_of(source))?.first
    }

    /// Changes every message in place; their sources stay.
    pub(crate) fn for_each_mut(&mut self, mut change: impl FnMut(&mut Unexpected<B>)) {
        self.list.for_each_mut(|shelved| change(&mut shelved.message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::{Envelope, Stored};
    use crate::operation::Context;
    use tidegate_flow::PeerId;

    const PEERS: u32 = 3;

    fn message(peer: u32, tag: u64) -> Unexpected<()> {
        let envelope = Envelope { source: Target::Peer(PeerId(peer)), tag, data: None, length: 0 };
        Unexpected { envelope, stored: Stored::Here(Vec::new()), claimed: None, cost: 0 }
    }

    fn exactly(peer: u32, tag: u64) -> Pattern {
        Pattern { from: Source::From(Target::Peer(PeerId(peer))), tag, ignore: 0 }
    }

    fn take(stock: &mut Stock<()>, pattern: &Pattern) -> Option<(Target, u64)> {
        let at = stock.find(pattern)?;
        stock.remove(at).map(|message| (message.envelope.source, message.envelope.tag))
    }

    #[test]
    fn chains_find_what_a_search_of_the_whole_list_finds() {
        let mut stock = Stock::new(PEERS as usize);
        let mut seed = 7_u64;
        let mut random = |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % bound
        };
        for _ in 0..20_000 {
            let (peer, tag) = (random(PEERS.into()) as u32, random(4));
            match random(5) {
                0..2 => drop(stock.push(message(peer, tag))),
                2 => drop(take(&mut stock, &Pattern { from: Source::Any, tag, ignore: 0 })),
                _ => {
                    let pattern = exactly(peer, tag);
                    let searched =
                        stock.find_where(|message| pattern.accepts(message.envelope.source, message.envelope.tag));
                    assert_eq!(stock.find(&pattern), searched);
                    let taken = take(&mut stock, &pattern);
                    assert_eq!(taken.is_some(), searched.is_some());
                }
            }
        }
    }

    #[test]
    fn a_claimed_message_is_passed_over_on_both_ways() {
        let mut stock = Stock::new(PEERS as usize);
        let first = stock.push(message(1, 5));
        let second = stock.push(message(1, 5));
        stock.get_mut(first).unwrap().claimed = Some(Context(9));
        assert_eq!(stock.find(&exactly(1, 5)), Some(second));
        assert_eq!(stock.find(&Pattern { from: Source::Any, tag: 5, ignore: 0 }), Some(second));
        assert_eq!(stock.first_of(Target::Peer(PeerId(1))), Some(first));
        assert_eq!(stock.find(&exactly(u32::MAX, 5)), None, "nobody's messages");
    }
}
