//! Finds elements of a list by a key without a walk past all others.
//!
//! A program that receives a flood in reverse order would make the receiver walk past all that is stored of it, and the
//! sender past all that it defers, for every message anew. So the elements of a list are chained by a hash of the parts
//! of their envelopes that a receive looks at, its [`Class`]. Within a chain the order is the list's, so a walk of the
//! chain and a walk of the list find the same first match.

use super::list::{Chain, Links, Ordered, Position, Walk};
use crate::envelope::{Pattern, number_of};
use crate::operation::Source;
use std::fmt;

/// Chains of the first table.
const FEWEST: usize = 16;
/// Elements per chain, on average, that make the table grow to twice as many chains.
const LOAD: usize = 2;
/// A table with so many times more chains than elements is too long.
const TOO_LONG: usize = 16;

/// What an element is found by.
pub(crate) type TagKey = u32;

/// The parts of an envelope that a pattern looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    /// Bits of the tag that it ignores.
    pub(crate) ignore: u64,
    /// Whether it names a source.
    pub(crate) names_source: bool,
}

impl Class {
    #[inline]
    pub(crate) fn of(pattern: &Pattern) -> Class {
        Class { ignore: pattern.ignore, names_source: pattern.from != Source::Any }
    }

    /// The key of all envelopes that look like this to the class.
    #[inline]
    pub(crate) fn key(&self, source: u64, tag: u64) -> TagKey {
        self.key_among(0, source, tag)
    }

    /// The key where several classes share an index; `number` is this class's among them.
    #[inline]
    pub(crate) fn key_among(&self, number: usize, source: u64, tag: u64) -> TagKey {
        let source = if self.names_source { 1 + source } else { 0 };
        let seen = (tag & !self.ignore) ^ (source << 5 | number as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
        // The upper half of the product with 2⁶⁴ over the golden ratio depends on every bit.
        (seen.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as TagKey
    }
}

/// The number that stands for a source in keys: this endpoint itself, then its peers.
#[inline]
pub(crate) fn source_of(pattern: &Pattern) -> u64 {
    match pattern.from {
        Source::Any => 0,
        Source::From(source) => number_of(source),
    }
}

/// What an index needs to know of the elements of its list.
pub(crate) trait By<T> {
    /// An element's key, the same as long as it is in the list.
    fn key(&self, element: &T) -> TagKey;
    /// Whether it is in the index.
    fn is_indexed(&self, _: &T) -> bool {
        true
    }
    /// Its neighbours in the index, which are the index's own.
    fn links<'a>(&self, element: &'a T) -> &'a Links;
    /// Its neighbours in the index, to change.
    fn links_mut<'a>(&self, element: &'a mut T) -> &'a mut Links;
}

/// The chains of a list by key. The table grows and shrinks with the list.
#[derive(Default)]
pub(crate) struct Index {
    chains: Vec<Chain>,
    elements: usize,
}

/// Shows its name only: what is in it follows from the list.
impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Index")
    }
}

impl Index {
    /// Memory that one element takes in the index, its links apart.
    pub(crate) const BYTES_PER_ELEMENT: usize = size_of::<Chain>();
    /// Memory that an index may take beyond that.
    pub(crate) const BYTES_BEGUN: usize = FEWEST * size_of::<Chain>() + 32;

    /// Adds the last element of `list`, which is at `at`.
    pub(crate) fn add<T>(&mut self, list: &mut Ordered<T>, at: Position, by: &impl By<T>) {
        self.elements += 1;
        if self.elements > LOAD * self.chains.len() {
            self.make_chains(self.elements);
            self.append_all(list, by);
        } else {
            self.append(list, at, by);
        }
    }

    /// Indexes all elements of `list` anew, at most so many.
    pub(crate) fn add_all<T>(&mut self, list: &mut Ordered<T>, most: usize, by: &impl By<T>) {
        if most > LOAD * self.chains.len() {
            self.make_chains(most);
        } else {
            self.chains.fill(Chain::default());
        }
        self.elements = self.append_all(list, by);
    }

    /// Drops all elements from the index; they are still in `list`. A long table gives its memory back.
    pub(crate) fn remove_all<T>(&mut self, list: &Ordered<T>, by: &impl By<T>) {
        self.elements = 0;
        if self.chains.len() > FEWEST {
            self.chains = Vec::new();
            return;
        }
        let mut next = list.first();
        while let Some(at) = next {
            next = list.after(at);
            if let Some(chain) = list.get(at).map(|element| self.chain_of(by.key(element))) {
                self.chains[chain] = Chain::default();
            }
        }
    }

    /// How many elements are in the index.
    pub(crate) fn elements(&self) -> usize {
        self.elements
    }

    /// Empty chains, as many as so many elements pay for.
    #[cold]
    fn make_chains(&mut self, elements: usize) {
        let chains = (elements.next_power_of_two() / LOAD).max(FEWEST);
        // The old ones go first: the memory of both together is nowhere accounted for.
        self.chains = Vec::new();
        self.chains.reserve_exact(chains);
        self.chains.resize(chains, Chain::default());
    }

    /// Returns how many there were.
    fn append_all<T>(&mut self, list: &mut Ordered<T>, by: &impl By<T>) -> usize {
        let (mut next, mut count) = (list.first(), 0);
        while let Some(at) = next {
            next = list.after(at);
            if list.get(at).is_some_and(|element| by.is_indexed(element)) {
                self.append(list, at, by);
                count += 1;
            }
        }
        count
    }

    fn append<T>(&mut self, list: &mut Ordered<T>, at: Position, by: &impl By<T>) {
        let Some(element) = list.get(at) else { return };
        let chain = self.chain_of(by.key(element));
        self.chains[chain].append(list, at, |element| by.links_mut(element));
    }

    /// Drops an element from the index that has left the list. A table that is much too long for those that are left
    /// gives its memory back.
    pub(crate) fn remove<T>(&mut self, list: &mut Ordered<T>, gone: &T, by: &impl By<T>) {
        self.take_out(list, by.key(gone), *by.links(gone), by);
        if self.chains.len() > FEWEST && self.elements < self.chains.len() / TOO_LONG {
            self.make_chains(self.elements);
            self.append_all(list, by);
        }
    }

    /// Drops an element from the index that stays in the list.
    pub(crate) fn remove_at<T>(&mut self, list: &mut Ordered<T>, at: Position, by: &impl By<T>) {
        if let Some((key, links)) = list.get(at).map(|element| (by.key(element), *by.links(element))) {
            self.take_out(list, key, links, by);
        }
    }

    fn take_out<T>(&mut self, list: &mut Ordered<T>, key: TagKey, links: Links, by: &impl By<T>) {
        self.elements -= 1;
        let chain = self.chain_of(key);
        self.chains[chain].take_out(list, links, |element| by.links_mut(element));
    }

    /// The first element with this key for which `wanted` holds, among so many of its chain.
    #[inline]
    pub(crate) fn walk<T>(
        &self,
        list: &Ordered<T>,
        key: TagKey,
        by: &impl By<T>,
        most: usize,
        wanted: impl Fn(&T) -> bool,
    ) -> Walk {
        let Some(chain) = self.chains.get(self.chain_of(key)) else { return Walk::NotThere };
        chain.walk(list, |element| by.links(element), most, wanted)
    }

    /// Which chain is a key's: by its upper bits, since keys are products that are spread there.
    #[inline]
    fn chain_of(&self, key: TagKey) -> usize {
        ((u64::from(key) * self.chains.len() as u64) >> 32) as usize
    }

    /// What the chains take of the heap.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        crate::heap::block(self.chains.capacity() * size_of::<Chain>())
    }

    /// Elements of the longest chain.
    #[cfg(test)]
    pub(crate) fn longest<T>(&self, list: &Ordered<T>, by: &impl By<T>) -> usize {
        let count = |chain: &Chain| {
            let passed = std::cell::Cell::new(0);
            let pass = |_: &T| passed.replace(passed.get() + 1) == usize::MAX;
            chain.walk(list, |element| by.links(element), usize::MAX, pass);
            passed.get()
        };
        self.chains.iter().map(count).max().unwrap_or(0)
    }
}
