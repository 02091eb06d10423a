//! The messages of one matching space that arrived before their receive.
//!
//! They stand in one list in order of arrival. Through the same elements run other chains, in the same order: one for
//! each source, for receives that name one, which would else walk past all that a flood of somebody else has left, for
//! every message anew; and where that is not enough, those of up to four [indices](crate::collections::learned), by
//! whatever parts of envelopes receives look at. All of them lead to the same first match.
//!
//! A message that was set aside (`FI_CLAIM`) leaves the indices, so that it is in nobody's way.

use super::message::Unexpected;
use crate::collections::index::{Class, source_of};
use crate::collections::learned::{Indices, LinksOfClasses, Sought, Wanted};
use crate::collections::list::{Chain, Links, Ordered, Position};
use crate::collections::steps;
use crate::envelope::{Pattern, number_of};
use crate::operation::{Context, Source, Target};
use std::collections::BTreeSet;
use std::fmt;
use tidegate_flow::{PeerId, Peers};

/// A message, and its neighbours of the same source and in the indices.
struct Waiting<B> {
    message: Unexpected<B>,
    /// In order of arrival.
    number: u32,
    of_source: Links,
    of_classes: LinksOfClasses,
}

/// The neighbours follow from the list.
impl<B: fmt::Debug> fmt::Debug for Waiting<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.message.fmt(f)
    }
}

impl<B> Sought for Waiting<B> {
    fn source(&self) -> u64 {
        number_of(self.message.envelope.source)
    }
    fn tag(&self) -> u64 {
        self.message.envelope.tag
    }
    fn is_sought(&self) -> bool {
        self.message.claimed.is_none()
    }
    fn links(&self) -> &LinksOfClasses {
        &self.of_classes
    }
    fn links_mut(&mut self) -> &mut LinksOfClasses {
        &mut self.of_classes
    }
}

/// Stored messages.
pub(crate) struct UnexpectedMessages<B> {
    list: Ordered<Waiting<B>>,
    /// By source: this endpoint itself, then its peers.
    sources: Peers<Chain, 64>,
    indices: Indices,
    /// Messages that were set aside, by the context that they are for. Their memory is the program's, like a posted
    /// receive's.
    claimed: BTreeSet<(usize, Position)>,
    /// The number of the next message.
    next: u32,
}

/// The chains follow from the list.
impl<B: fmt::Debug> fmt::Debug for UnexpectedMessages<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.list.fmt(f)
    }
}

/// Which chain is a source's: this endpoint's own is the first.
fn chain_of(source: Target) -> PeerId {
    PeerId(number_of(source).min(u32::MAX.into()) as u32)
}

impl<B> UnexpectedMessages<B> {
    /// Memory that a message takes, payload apart.
    pub(crate) const BYTES_PER_MESSAGE: usize = Ordered::<Waiting<B>>::BYTES_PER_ELEMENT + Indices::BYTES_PER_ELEMENT;

    /// Memory that a list may take beyond its messages' own, if messages come from so many peers.
    pub(crate) const fn bytes_begun(peers: u32) -> usize {
        Ordered::<Waiting<B>>::BYTES_BEGUN + Indices::BYTES_BEGUN + Peers::<Chain, 64>::bytes_most(peers + 1)
    }

    /// A list for the messages of so many peers, and of this endpoint itself.
    pub(crate) fn new(peers: u32) -> Self {
        let sources = Peers::new(peers + 1, ());
        let (indices, claimed) = (Indices::default(), BTreeSet::new());
        UnexpectedMessages { list: Ordered::new(), sources, indices, claimed, next: 0 }
    }

    /// Stores a message.
    pub(crate) fn push(&mut self, message: Unexpected<B>) -> Position {
        let (source, claimed) = (chain_of(message.envelope.source), message.claimed);
        let (of_source, of_classes) = Default::default();
        let number = self.next;
        self.next = number.wrapping_add(1);
        let at = self.list.push_back(Waiting { message, number, of_source, of_classes });
        self.sources.of(source).append(&mut self.list, at, |waiting| &mut waiting.of_source);
        self.indices.add(&mut self.list, at);
        if let Some(context) = claimed {
            self.claimed.insert((context.0, at));
        }
        at
    }

    /// The message at a position that [`push`](Self::push) returned and that was not removed since.
    pub(crate) fn get_mut(&mut self, at: Position) -> Option<&mut Unexpected<B>> {
        self.list.get_mut(at).map(|waiting| &mut waiting.message)
    }

    /// Sets the message at a position aside.
    pub(crate) fn claim(&mut self, at: Position, context: Context) {
        let Some(claimed) = self.get_mut(at).map(|message| message.claimed.replace(context)) else { return };
        if let Some(other) = claimed {
            self.claimed.remove(&(other.0, at));
        } else {
            self.indices.withdraw(&mut self.list, at);
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
        let source = chain_of(gone.message.envelope.source);
        self.sources.of(source).take_out(&mut self.list, gone.of_source, |waiting| &mut waiting.of_source);
        self.indices.remove(&mut self.list, &gone);
        if let Some(context) = gone.message.claimed {
            self.claimed.remove(&(context.0, at));
        }
        Some(gone.message)
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many messages there are.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// The messages in order of arrival, each with its number.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (u32, &Unexpected<B>)> {
        self.list.iter().map(|waiting| (waiting.number, &waiting.message))
    }

    /// The first message, in order of arrival, that `pattern` accepts and that nobody claimed.
    #[inline]
    pub(crate) fn find(&mut self, pattern: &Pattern) -> Option<Position> {
        if self.list.is_empty() { None } else { self.find_stored(pattern) }
    }

    fn find_stored(&mut self, pattern: &Pattern) -> Option<Position> {
        let accepts = |waiting: &Waiting<B>| {
            steps::count();
            let Unexpected { claimed, envelope, .. } = &waiting.message;
            claimed.is_none() && pattern.accepts(envelope.source, envelope.tag)
        };
        let wanted = Wanted { class: Class::of(pattern), source: source_of(pattern), tag: pattern.tag };
        match pattern.from {
            Source::Any => self.indices.find(&mut self.list, &wanted, |list, most| list.walk(most, accepts), accepts),
            Source::From(source) => {
                let chain = *self.sources.get(chain_of(source))?;
                let plain = |list: &_, most| chain.walk(list, |waiting| &waiting.of_source, most, accepts);
                self.indices.find(&mut self.list, &wanted, plain, accepts)
            }
        }
    }

    /// The first message for which `wanted` holds, found by a walk.
    #[cfg(test)]
    fn find_where(&self, wanted: impl Fn(&Unexpected<B>) -> bool) -> Option<Position> {
        self.list.walk(usize::MAX, |waiting| wanted(&waiting.message)).found()
    }

    /// The first message of `source`.
    #[inline]
    pub(crate) fn first_of(&self, source: Target) -> Option<Position> {
        self.sources.get(chain_of(source))?.first()
    }

    /// The messages of one source are those of another from now on, of which there are none.
    pub(crate) fn move_source(&mut self, from: Target, to: Target) {
        let Some(&chain) = self.sources.get(chain_of(from)).filter(|chain| chain.first().is_some()) else { return };
        // What the indices are about changes. They are made again by searches that need them.
        self.indices.give_up(&self.list);
        self.for_each_mut(|message| {
            if message.envelope.source == from {
                message.envelope.source = to;
            }
        });
        self.sources.forget(chain_of(from));
        self.sources.grow(chain_of(to).0 + 1);
        *self.sources.of(chain_of(to)) = chain;
    }

    /// Changes every message in place; their sources stay.
    pub(crate) fn for_each_mut(&mut self, mut change: impl FnMut(&mut Unexpected<B>)) {
        self.list.for_each_mut(|waiting| change(&mut waiting.message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::Envelope;
    use crate::matching::Stored;
    use crate::operation::Context;
    use crate::payload::Payload;
    use tidegate_flow::PeerId;

    const PEERS: u32 = 3;

    fn message(peer: u32, tag: u64) -> Unexpected<()> {
        let envelope = Envelope { source: Target::Peer(PeerId(peer)), tag, data: None, length: 0 };
        Unexpected { envelope, stored: Stored::Here(Payload::Zeros(0)), claimed: None, cost: 0 }
    }

    fn exactly(peer: u32, tag: u64) -> Pattern {
        Pattern { from: Source::From(Target::Peer(PeerId(peer))), tag, ignore: 0 }
    }

    /// Bits of a tag in which MPIs put the program's tag; their communicator is above them.
    const TAG_BITS: u64 = (1 << 31) - 1;

    /// Random messages, receives and claims; `masks` are what receives may ignore.
    fn run_beside_a_search_of_the_whole_list(masks: &[u64], seed: u64) {
        let mut list = UnexpectedMessages::new(PEERS);
        let mut seed = seed;
        let mut random = |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % bound
        };
        let (mut found, mut most, mut length, mut indices) = (0, 0, 0_usize, 0);
        for turn in 0..40_000 {
            // Communicators, protocol bits and tags: bits of all sorts of which a receive may ignore any.
            let (peer, tag) = (random(PEERS.into()) as u32, random(3) << 60 | random(3) << 40 | random(60));
            let ignore = masks[random(masks.len() as u64) as usize];
            let from = Source::From(Target::Peer(PeerId(peer)));
            let filling = turn / 5_000 % 2 == 0;
            if random(4) < if filling { 3 } else { 1 } {
                list.push(message(peer, tag));
                length += 1;
                most = most.max(length);
                continue;
            }
            let pattern = Pattern { from: if random(3) == 0 { Source::Any } else { from }, tag, ignore };
            let accepted = |message: &Unexpected<()>| {
                message.claimed.is_none() && pattern.accepts(message.envelope.source, message.envelope.tag)
            };
            let searched = list.find_where(accepted);
            assert_eq!(list.find(&pattern), searched, "{pattern:?}");
            indices = indices.max(list.indices.number());
            let context = Context(random(100) as usize);
            match (searched, list.find_claimed(context)) {
                (Some(at), None) if random(4) == 0 => list.claim(at, context),
                (_, Some(at)) if random(2) == 0 => {
                    assert_eq!(list.remove(at).and_then(|message| message.claimed), Some(context));
                    length -= 1;
                }
                (Some(at), _) => {
                    assert!(list.remove(at).is_some_and(|message| accepted(&message)));
                    found += 1;
                    length -= 1;
                }
                (None, _) => {}
            }
        }
        assert!(found > 4_000 && most > 1_000, "{found} found, {most} at the most");
        assert!(indices >= masks.len().min(4), "{indices} indices for {} masks", masks.len());
    }

    #[test]
    fn chains_and_indices_find_what_a_search_of_the_whole_list_finds() {
        for seed in 0..4 {
            // The masks of an MPI that keeps its protocol in the highest bits; more than there are indices; some that
            // hide parts of tags.
            run_beside_a_search_of_the_whole_list(&[3 << 60, 3 << 60 | TAG_BITS], seed);
            run_beside_a_search_of_the_whole_list(&[0, 3 << 60, TAG_BITS, 3 << 60 | TAG_BITS, u64::MAX], seed);
            run_beside_a_search_of_the_whole_list(&[0, 3 << 40, 1, 7, 6, !1, !TAG_BITS, u64::MAX], seed);
        }
    }

    #[test]
    fn tags_that_follow_each_other_in_any_step_share_few_chains() {
        for step in [1, 2, 3, 64, 1000, 4096, 1 << 20, 1 << 31, 1 << 40] {
            let mut list = UnexpectedMessages::new(PEERS);
            for n in 0..1000 {
                list.push(message(1, n * step));
            }
            assert!(list.find(&exactly(1, 999 * step)).is_some());
            let longest = list.indices.longest(&list.list);
            assert!((2..=8).contains(&longest), "step {step}: a chain of {longest}");
        }
    }

    /// Steps for each of so many messages, all stored first, of which `ask` then looks for each in the worst order.
    #[track_caller]
    fn assert_flat(
        what: &str,
        envelope_of: impl Fn(u64) -> (u32, u64),
        ask: impl Fn(&mut UnexpectedMessages<()>, u64),
    ) {
        let [few, many] = [500, 20_000].map(|count| {
            let mut list = UnexpectedMessages::new(PEERS);
            for n in 0..count {
                let (peer, tag) = envelope_of(n);
                list.push(message(peer, tag));
            }
            let all = steps::of(|| (0..count).rev().for_each(|n| ask(&mut list, n)));
            all as f64 / count as f64
        });
        assert!(few <= 10.0 && many <= few + 1.0, "{what}: {few} steps each of 500, {many} of 20,000");
    }

    fn take(list: &mut UnexpectedMessages<()>, pattern: &Pattern) {
        let at = list.find(pattern).unwrap_or_else(|| panic!("{pattern:?} has a message"));
        list.remove(at);
    }

    #[test]
    fn a_search_takes_no_more_steps_among_20_000_than_among_500() {
        let from_any = |tag| Pattern { from: Source::Any, tag, ignore: 0 };
        for step in [1, 3, 1000, 4096] {
            let envelope = |n| (n as u32 % PEERS, n * step);
            assert_flat("any source", envelope, |list, n| take(list, &from_any(n * step)));
            assert_flat("one source", envelope, |list, n| take(list, &exactly(n as u32 % PEERS, n * step)));
            let nowhere = |n: u64| (n + 30_000) * step;
            assert_flat("unmatched, any source", envelope, |list, n| {
                assert_eq!(list.find(&from_any(nowhere(n))), None);
            });
        }
        let claim = |list: &mut UnexpectedMessages<()>, n| {
            let at = list.find(&from_any(7)).expect("not all are claimed");
            list.claim(at, Context(n as usize));
        };
        assert_flat("claims", |n| (n as u32 % PEERS, 7), claim);
        let claim_any = |list: &mut UnexpectedMessages<()>, n| {
            let at = list.find(&Pattern { ignore: u64::MAX, ..from_any(7) }).expect("not all are claimed");
            list.claim(at, Context(n as usize));
        };
        assert_flat("claims of anything", |n| (n as u32 % PEERS, n), claim_any);
    }

    /// What receives of an MPI program look for: any tag and one tag of a communicator, with and without a source; one
    /// mask hides bits of the protocol.
    fn mpi_pattern(kind: u64, peer: u32, tag: u64) -> Pattern {
        const PROTOCOL: u64 = 3 << 62;
        let from = if kind & 1 == 0 { Source::Any } else { exactly(peer, 0).from };
        Pattern { from, tag, ignore: if kind & 2 == 0 { PROTOCOL } else { PROTOCOL | TAG_BITS } }
    }

    #[test]
    fn receives_of_one_communicator_do_not_walk_past_the_messages_of_others() {
        // Of two communicators, the messages of one are behind those of the other and are received first; tags are all
        // alike, or each is another.
        for tags in [1, 1000, 1 << 31] {
            let half = |n: u64| n % 2;
            let envelope = |n: u64| (n as u32 % PEERS, (half(n) << 31) | (n % tags));
            for kind in 0..4 {
                let kind_of_pattern = |list: &mut UnexpectedMessages<()>, n| {
                    let (peer, tag) = envelope(n);
                    take(list, &mpi_pattern(kind, peer, tag));
                };
                assert_flat(&format!("kind {kind}, {tags} tags, last first"), envelope, kind_of_pattern);
            }
            for kind in [2, 3] {
                // All of one communicator stand before all of the other.
                let [few, many] = [500_u64, 20_000].map(|count| {
                    let mut list = UnexpectedMessages::new(PEERS);
                    let envelope = |n: u64| (n as u32 % PEERS, (u64::from(n >= count / 2) << 31) | (n % tags));
                    for n in 0..count {
                        let (peer, tag) = envelope(n);
                        list.push(message(peer, tag));
                    }
                    let all = steps::of(|| {
                        for n in count / 2..count {
                            let (peer, tag) = envelope(n);
                            take(&mut list, &mpi_pattern(kind, peer, tag));
                        }
                    });
                    all as f64 / (count / 2) as f64
                });
                assert!(few <= 10.0 && many <= few + 1.0, "kind {kind}: {few} of 500, {many} of 20,000");
            }
        }
    }

    #[test]
    fn a_program_that_mixes_all_four_kinds_of_receives_is_not_slow_either() {
        let envelope = |n: u64| (n as u32 % PEERS, ((n % 5) << 31) | (n % 1000));
        assert_flat("all kinds", envelope, |list, n| {
            let (peer, tag) = envelope(n);
            // A wildcard may have taken its message.
            if let Some(at) = list.find(&mpi_pattern(n % 4, peer, tag)) {
                list.remove(at);
            }
        });
    }

    #[test]
    fn masks_that_are_no_longer_in_use_give_their_indices_to_others() {
        let [few, many] = [500_u64, 20_000].map(|count| {
            let mut list = UnexpectedMessages::new(PEERS);
            (0..count).for_each(|n| _ = list.push(message(1, n << 8)));
            let rounds = 4 * count;
            let all = steps::of(|| {
                for n in 0..rounds {
                    // The masks of the first half of the run are never used again.
                    let ignore = if n < rounds / 2 { n % 4 } else { 4 + n % 4 };
                    let last = Pattern { from: Source::Any, tag: (count - 1) << 8, ignore };
                    assert!(list.find(&last).is_some());
                }
            });
            all as f64 / rounds as f64
        });
        assert!(few <= 40.0 && many <= few + 1.0, "{few} steps each of 500, {many} of 20,000");
    }

    #[test]
    fn indices_take_no_more_memory_than_messages_pay_for() {
        for learned_at in [17, 31, 32, 33, 100, 1000] {
            let mut list = UnexpectedMessages::new(PEERS);
            for count in 1..3000 {
                list.push(message(1, count << 8));
                if count == learned_at {
                    for ignore in 0..4 {
                        list.find(&Pattern { ignore, ..exactly(1, count << 8) });
                    }
                    assert_eq!(list.indices.number(), 4);
                }
                let paid = count as usize * Indices::BYTES_PER_ELEMENT + Indices::BYTES_BEGUN;
                assert!(list.indices.bytes() <= paid, "{} bytes for {count} messages", list.indices.bytes());
            }
        }
    }

    #[test]
    fn messages_that_get_another_source_keep_their_order_among_all() {
        let (old, new) = (Target::Peer(PeerId(1)), Target::Peer(PeerId(PEERS + 70)));
        let mut list = UnexpectedMessages::new(PEERS);
        for n in 0..200 {
            list.push(message(n as u32 % PEERS, n % 7));
        }
        let from_any = |tag| Pattern { from: Source::Any, tag, ignore: 0 };
        assert!(list.find(&exactly(2, 99)).is_none() && list.indices.number() > 0);
        list.move_source(old, new);
        assert_eq!((list.first_of(old), list.find(&exactly(1, 3))), (None, None));
        let exact = Pattern { from: Source::From(new), tag: 3, ignore: 0 };
        let expected = list.find_where(|message| message.envelope.source == new && message.envelope.tag == 3);
        assert_eq!((list.find(&exact), expected.is_some()), (expected, true));
        let mut last = None;
        while let Some(at) = list.find(&from_any(3)) {
            let number = list.list.get(at).map(|waiting| waiting.number);
            assert!(number > last, "{number:?} after {last:?}");
            last = number;
            list.remove(at);
        }
        assert_eq!(list.find(&exact), None);
        list.push(message(1, 3));
        assert!(list.find(&exact).is_none() && list.find(&exactly(1, 3)).is_some() && list.first_of(new).is_some());
    }

    #[test]
    fn few_messages_have_no_index_and_it_goes_when_few_are_left() {
        let mut list = UnexpectedMessages::new(PEERS);
        for (count, indices) in [(16, 0), (17, 1)] {
            (0..count).for_each(|n| _ = list.push(message(1, n)));
            take(&mut list, &exactly(1, count - 1));
            assert_eq!(list.indices.number(), indices);
            (0..count - 1).for_each(|n| take(&mut list, &exactly(1, n)));
            assert_eq!(list.indices.number(), 0);
        }
    }

    #[test]
    fn a_claimed_message_is_passed_over_on_both_ways() {
        let mut list = UnexpectedMessages::new(PEERS);
        let first = list.push(message(1, 5));
        let second = list.push(message(1, 5));
        list.claim(first, Context(9));
        assert_eq!(list.find(&exactly(1, 5)), Some(second));
        assert_eq!(list.find(&Pattern { from: Source::Any, tag: 5, ignore: 0 }), Some(second));
        assert_eq!(list.first_of(Target::Peer(PeerId(1))), Some(first));
        assert_eq!(list.find(&exactly(u32::MAX, 5)), None, "nobody's messages");
    }
}
