//! The messages of one matching space that arrived before their receive.
//!
//! They stand in one list in order of arrival. Through the same elements run three sorts of chains, in the same order: one for each
//! source, for receives that name one, which would else walk past all that a flood of somebody else has left, for every message
//! anew; and two [indices](crate::index), for those that name a source and a tag, and for those that name only a tag. The first match
//! is the same on all ways. Only a receive that ignores some of a tag's lower bits, but not all that differ among what is
//! stored, walks past messages that it does not accept.
//!
//! A message that was set aside (`FI_CLAIM`) leaves the indices, so that it is in nobody's way.

use crate::index::{Index, Indexed, TagKey, key_of, key_wanted};
use crate::list::{Chain, Links, Ordered, Position};
use crate::matching::{Pattern, Unexpected};
use crate::operation::{Context, Source, Target};
use crate::posted::steps;
use std::collections::BTreeSet;
use std::fmt;

/// A message, and its neighbours of the same source, of the same source and tag, and of the same tag.
struct Shelved<B> {
    message: Unexpected<B>,
    of_source: Links,
    of_key: Links,
    of_tag: Links,
}

/// Index by source and tag.
struct BySourceAndTag;
/// Index by tag.
struct ByTag;

/// The neighbours follow from the list.
impl<B: fmt::Debug> fmt::Debug for Shelved<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.message.fmt(f)
    }
}

impl<B> Indexed<BySourceAndTag> for Shelved<B> {
    fn key(&self) -> TagKey {
        key_from(self.message.envelope.source, key_of(self.message.envelope.tag))
    }
    fn is_indexed(&self) -> bool {
        self.message.claimed.is_none()
    }
    fn links(&self) -> &Links {
        &self.of_key
    }
    fn links_mut(&mut self) -> &mut Links {
        &mut self.of_key
    }
}

impl<B> Indexed<ByTag> for Shelved<B> {
    fn key(&self) -> TagKey {
        key_of(self.message.envelope.tag)
    }
    fn is_indexed(&self) -> bool {
        self.message.claimed.is_none()
    }
    fn links(&self) -> &Links {
        &self.of_tag
    }
    fn links_mut(&mut self) -> &mut Links {
        &mut self.of_tag
    }
}

/// Stored messages.
pub(crate) struct Stock<B> {
    list: Ordered<Shelved<B>>,
    /// By source: this endpoint itself, then its peers.
    sources: Box<[Chain]>,
    index: Index<BySourceAndTag>,
    tags: Index<ByTag>,
    /// Messages that were set aside, by the context that they are for. Their memory is the program's, like a posted receive's.
    claimed: BTreeSet<(usize, Position)>,
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
    pub(crate) const BYTES_PER_MESSAGE: usize = Ordered::<Shelved<B>>::BYTES_PER_ELEMENT
        + Index::<BySourceAndTag>::BYTES_PER_ELEMENT
        + Index::<ByTag>::BYTES_PER_ELEMENT;

    /// Memory that a stock may take beyond its messages' own, if messages come from so many peers.
    pub(crate) const fn bytes_begun(peers: usize) -> usize {
        let indices = Index::<BySourceAndTag>::BYTES_BEGUN + Index::<ByTag>::BYTES_BEGUN;
        Ordered::<Shelved<B>>::BYTES_BEGUN + indices + (peers + 1) * size_of::<Chain>()
    }

    /// A stock for the messages of so many peers, and of this endpoint itself.
    pub(crate) fn new(peers: usize) -> Self {
        let sources = vec![Chain::default(); peers + 1].into();
        let (index, tags) = (Index::default(), Index::default());
        Stock { list: Ordered::new(), sources, index, tags, claimed: BTreeSet::new() }
    }

    /// Stores a message.
    pub(crate) fn push(&mut self, message: Unexpected<B>) -> Position {
        let (source, claimed) = (number_of(message.envelope.source), message.claimed);
        let (of_source, of_key, of_tag) = Default::default();
        let at = self.list.push_back(Shelved { message, of_source, of_key, of_tag });
        self.sources[source].append(&mut self.list, at, |shelved| &mut shelved.of_source);
        match claimed {
            Some(context) => _ = self.claimed.insert((context.0, at)),
            None => {
                self.index.add(&mut self.list, at);
                self.tags.add(&mut self.list, at);
            }
        }
        at
    }

    /// The message at a position that [`push`](Self::push) returned and that was not removed since.
    pub(crate) fn get_mut(&mut self, at: Position) -> Option<&mut Unexpected<B>> {
        self.list.get_mut(at).map(|shelved| &mut shelved.message)
    }

    /// Sets the message at a position aside.
    pub(crate) fn claim(&mut self, at: Position, context: Context) {
        let Some(claimed) = self.get_mut(at).map(|message| message.claimed.replace(context)) else { return };
        if let Some(other) = claimed {
            self.claimed.remove(&(other.0, at));
        } else {
            self.index.remove_at(&mut self.list, at);
            self.tags.remove_at(&mut self.list, at);
        }
        self.claimed.insert((context.0, at));
    }

    /// Where the message is that was set aside for `context`.
    pub(crate) fn find_claimed(&self, context: Context) -> Option<Position> {
        let (of, at) = *self.claimed.range((context.0, Position::MIN)..).next()?;
        (of == context.0).then_some(at)
    }

    /// Removes the message at a position.
    pub(crate) fn remove(&mut self, at: Position) -> Option<Unexpected<B>> {
        let gone = self.list.remove(at)?;
        let source = number_of(gone.message.envelope.source);
        self.sources[source].take_out(&mut self.list, gone.of_source, |shelved| &mut shelved.of_source);
        match gone.message.claimed {
            Some(context) => _ = self.claimed.remove(&(context.0, at)),
            None => {
                self.index.remove(&mut self.list, &gone);
                self.tags.remove(&mut self.list, &gone);
            }
        }
        Some(gone.message)
    }

    /// The first message, in order of arrival, that `pattern` accepts and that nobody claimed.
    #[inline]
    pub(crate) fn find(&self, pattern: &Pattern) -> Option<Position> {
        if self.list.is_empty() { None } else { self.find_stored(pattern) }
    }

    fn find_stored(&self, pattern: &Pattern) -> Option<Position> {
        let wanted = |shelved: &Shelved<B>| {
            steps::count();
            let Unexpected { claimed, envelope, .. } = &shelved.message;
            claimed.is_none() && pattern.accepts(envelope.source, envelope.tag)
        };
        match (pattern.from, key_wanted(pattern)) {
            (Source::Any, Some(tag)) => self.tags.find(&self.list, tag, wanted),
            (Source::Any, None) => self.list.find(wanted),
            (Source::From(source), Some(tag)) => self.index.find(&self.list, key_from(source, tag), wanted),
            (Source::From(source), None) => {
                self.sources.get(number_of(source))?.find(&self.list, |shelved| &shelved.of_source, wanted)
            }
        }
    }

    /// The first message for which `wanted` holds, found by a walk.
    #[cfg(test)]
    fn find_where(&self, wanted: impl Fn(&Unexpected<B>) -> bool) -> Option<Position> {
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
            let pattern = Pattern { from: if random(3) == 0 { Source::Any } else { from }, tag, ignore };
            let accepted = |message: &Unexpected<()>| {
                message.claimed.is_none() && pattern.accepts(message.envelope.source, message.envelope.tag)
            };
            let searched = stock.find_where(accepted);
            assert_eq!(stock.find(&pattern), searched, "{pattern:?}");
            let context = Context(random(100) as usize);
            match (searched, stock.find_claimed(context)) {
                (Some(at), None) if random(4) == 0 => stock.claim(at, context),
                (_, Some(at)) if random(2) == 0 => {
                    assert_eq!(stock.remove(at).and_then(|message| message.claimed), Some(context));
                    length -= 1;
                }
                (Some(at), _) => {
                    assert!(stock.remove(at).is_some_and(|message| accepted(&message)));
                    found += 1;
                    length -= 1;
                }
                (None, _) => {}
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
            for longest in [stock.index.longest(&stock.list), stock.tags.longest(&stock.list)] {
                assert!(longest <= 8, "step {step}: a chain of {longest}");
            }
        }
    }

    /// Steps for each of so many messages, all stored first, of which `ask` then looks for each in the worst order.
    #[track_caller]
    fn assert_flat(what: &str, tag_of: impl Fn(u64) -> u64, ask: impl Fn(&mut Stock<()>, u64)) {
        let [few, many] = [500, 20_000].map(|count| {
            let mut stock = Stock::new(PEERS as usize);
            (0..count).for_each(|n| _ = stock.push(message(n as u32 % PEERS, tag_of(n))));
            let all = steps::of(|| (0..count).rev().for_each(|n| ask(&mut stock, n)));
            all as f64 / count as f64
        });
        assert!(few <= 4.0 && many <= few + 1.0, "{what}: {few} steps each of 500, {many} of 20,000");
    }

    #[test]
    fn a_search_takes_no_more_steps_among_20_000_than_among_500() {
        let from_any = |tag| Pattern { from: Source::Any, tag, ignore: 0 };
        for step in [1, 3, 1000, 4096] {
            let take = |stock: &mut Stock<()>, pattern: &Pattern| {
                let at = stock.find(pattern).expect("it is stored");
                stock.remove(at);
            };
            assert_flat("any source", |n| n * step, |stock, n| take(stock, &from_any(n * step)));
            assert_flat("one source", |n| n * step, |stock, n| take(stock, &exactly(n as u32 % PEERS, n * step)));
            let nowhere = |n: u64| (n + 30_000) * step;
            assert_flat(
                "unmatched, any source",
                |n| n * step,
                |stock, n| assert_eq!(stock.find(&from_any(nowhere(n))), None),
            );
        }
        let claim = |stock: &mut Stock<()>, n| {
            let at = stock.find(&from_any(7)).expect("not all are claimed");
            stock.claim(at, Context(n as usize));
        };
        assert_flat("claims", |_| 7, claim);
    }

    #[test]
    fn a_claimed_message_is_passed_over_on_both_ways() {
        let mut stock = Stock::new(PEERS as usize);
        let first = stock.push(message(1, 5));
        let second = stock.push(message(1, 5));
        stock.claim(first, Context(9));
        assert_eq!(stock.find(&exactly(1, 5)), Some(second));
        assert_eq!(stock.find(&Pattern { from: Source::Any, tag: 5, ignore: 0 }), Some(second));
        assert_eq!(stock.first_of(Target::Peer(PeerId(1))), Some(first));
        assert_eq!(stock.find(&exactly(u32::MAX, 5)), None, "nobody's messages");
    }
}
