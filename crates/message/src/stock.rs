//! The messages of one matching space that arrived before their receive.
//!
//! They stand in one list in order of arrival, which a receive from any source searches. Through the same elements run two sorts
//! of chains, in the same order: one for each source, for receives that name one, which would else walk past all that a flood
//! of somebody else has left, for every message anew; and an [`index`](crate::index) for those that name a source and a tag. The first
//! match is the same on all ways.

use crate::index::{Index, Indexed, TagKey, key_of, key_wanted};
use crate::list::{Chain, Links, Ordered, Position};
use crate::matching::{Pattern, Unexpected};
use crate::operation::{Source, Target};
use std::fmt;

/// A message, and its neighbours of the same source and of the same key.
struct Shelved<B> {
    message: Unexpected<B>,
    of_source: Links,
    of_key: Links,
}

/// The neighbours follow from the list.
impl<B: fmt::Debug> fmt::Debug for Shelved<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.message.fmt(f)
    }
}

impl<B> Indexed for Shelved<B> {
    fn key(&self) -> TagKey {
        key_from(self.message.envelope.source, key_of(self.message.envelope.tag))
    }
    fn links(&self) -> &Links {
        &self.of_key
    }
    fn links_mut(&mut self) -> &mut Links {
        &mut self.of_key
    }
}

/// Stored messages.
pub(crate) struct Stock<B> {
    list: Ordered<Shelved<B>>,
    /// By source: this endpoint itself, then its peers.
    sources: Box<[Chain]>,
    index: Index,
}

/// The chains follow from the list.
impl<B: fmt::Debug> fmt::Debug for Stock<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.list.fmt(f)
    }
}

/// Which chain is a source's.
fn number_of(source: Target) -> usize {
    match source {
        Target::Myself => 0,
        Target::Peer(peer) => peer.0 as usize + 1,
    }
}

/// The key of one source's messages of a tag.
fn key_from(source: Target, tag: TagKey) -> TagKey {
    tag ^ (number_of(source) as u32).rotate_right(12)
}

impl<B> Stock<B> {
    /// Memory that a message takes, payload apart.
    pub(crate) const BYTES_PER_MESSAGE: usize = Ordered::<Shelved<B>>::BYTES_PER_ELEMENT + Index::BYTES_PER_ELEMENT;

    /// Memory that a stock may take beyond its messages' own, if messages come from so many peers.
    pub(crate) const fn bytes_begun(peers: usize) -> usize {
        Ordered::<Shelved<B>>::BYTES_BEGUN + Index::BYTES_BEGUN + (peers + 1) * size_of::<Chain>()
    }

    /// A stock for the messages of so many peers, and of this endpoint itself.
    pub(crate) fn new(peers: usize) -> Self {
        Stock { list: Ordered::new(), sources: vec![Chain::default(); peers + 1].into(), index: Index::default() }
    }

    /// Stores a message.
    pub(crate) fn push(&mut self, message: Unexpected<B>) -> Position {
        let source = number_of(message.envelope.source);
        let at = self.list.push_back(Shelved { message, of_source: Links::default(), of_key: Links::default() });
        self.sources[source].append(&mut self.list, at, |shelved| &mut shelved.of_source);
        self.index.add(&mut self.list, at);
        at
    }

    /// The message at a position that [`push`](Self::push) returned and that was not removed since.
    pub(crate) fn get_mut(&mut self, at: Position) -> Option<&mut Unexpected<B>> {
        self.list.get_mut(at).map(|shelved| &mut shelved.message)
    }

    /// Removes the message at a position.
    pub(crate) fn remove(&mut self, at: Position) -> Option<Unexpected<B>> {
        let gone = self.list.remove(at)?;
        let source = number_of(gone.message.envelope.source);
        self.sources[source].take_out(&mut self.list, gone.of_source, |shelved| &mut shelved.of_source);
        self.index.remove(&mut self.list, &gone);
        Some(gone.message)
    }

    /// The first message, in order of arrival, that `pattern` accepts and that nobody claimed.
    #[inline]
    pub(crate) fn find(&self, pattern: &Pattern) -> Option<Position> {
        let wanted = |shelved: &Shelved<B>| {
            let Unexpected { claimed, envelope, .. } = &shelved.message;
            claimed.is_none() && pattern.accepts(envelope.source, envelope.tag)
        };
        match (pattern.from, key_wanted(pattern)) {
            (Source::Any, _) => self.list.find(wanted),
            (Source::From(source), Some(tag)) => self.index.find(&self.list, key_from(source, tag), wanted),
            (Source::From(source), None) => {
                self.sources.get(number_of(source))?.find(&self.list, |shelved| &shelved.of_source, wanted)
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
        self.sources.get(number_of(source))?.first()
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
    fn chains_and_index_find_what_a_search_of_the_whole_list_finds() {
        let mut stock = Stock::new(PEERS as usize);
        let mut seed = 7_u64;
        let mut random = |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % bound
        };
        let (mut found, mut most, mut length) = (0, 0, 0_usize);
        for turn in 0..40_000 {
            // Bits above the index's and below, of which a receive may ignore either, both or none.
            let (peer, tag) = (random(PEERS.into()) as u32, random(3) << 40 | random(60));
            let ignore = [0, 3 << 40, 1, u64::MAX][random(4) as usize];
            let from = Source::From(Target::Peer(PeerId(peer)));
            let filling = turn / 5_000 % 2 == 0;
            if random(4) < if filling { 3 } else { 1 } {
                stock.push(message(peer, tag));
                length += 1;
                most = most.max(length);
                continue;
            }
            let pattern = Pattern { from: if random(5) == 0 { Source::Any } else { from }, tag, ignore };
            let searched = stock.find_where(|message| pattern.accepts(message.envelope.source, message.envelope.tag));
            assert_eq!(stock.find(&pattern), searched, "{pattern:?}");
            if take(&mut stock, &pattern).is_some() {
                found += 1;
                length -= 1;
            }
        }
        assert!(found > 5_000 && most > 1_000, "{found} found, {most} at the most");
    }

    #[test]
    fn tags_that_follow_each_other_in_any_step_share_few_chains() {
        for step in [1, 2, 3, 64, 1000, 4096, 1 << 20] {
            let mut stock = Stock::new(PEERS as usize);
            for n in 0..1000 {
                stock.push(message(1, n * step));
            }
            let longest = stock.index.longest(&stock.list);
            assert!(longest <= 8, "step {step}: a chain of {longest}");
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
