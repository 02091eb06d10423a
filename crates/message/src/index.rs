//! Finds the messages of a tag in a list without a walk past all others.
//!
//! A receive in reverse order of a flood would walk past all that is stored of it, and its sender past all that it holds, for
//! every message anew. So the elements of a list are chained by a hash of the low bits of their tags, where MPIs put the tag of the
//! program (MPICH, Open MPI and Intel MPI alike) and which a receive ignores all or none of. One that ignores some of them
//! walks as ever. Within a chain the order is the list's, so the first match is the same on both ways.

use crate::list::{Chain, Links, Ordered, Position};
use crate::matching::Pattern;
use std::fmt;
use std::marker::PhantomData;

/// The bits of a tag that count.
const KEY_BITS: u64 = (1 << 31) - 1;
/// Chains of the first table.
const FEWEST: usize = 16;

/// What an element is found by.
pub(crate) type TagKey = u32;

/// The key of a message's tag.
#[inline]
pub(crate) fn key_of(tag: u64) -> TagKey {
    (tag & KEY_BITS) as u32
}

/// The key of all messages that `pattern` accepts, if they have one in common.
#[inline]
pub(crate) fn key_wanted(pattern: &Pattern) -> Option<TagKey> {
    (pattern.ignore & KEY_BITS == 0).then(|| key_of(pattern.tag))
}

/// An element of an indexed list. `By` tells the indices of one list apart.
pub(crate) trait Indexed<By = ()> {
    /// Its key, the same as long as it is in the list.
    fn key(&self) -> TagKey;
    /// Whether it is in the index.
    fn is_indexed(&self) -> bool {
        true
    }
    /// Its neighbours in the index, which are the index's own.
    fn links(&self) -> &Links;
    /// The same, to change.
    fn links_mut(&mut self) -> &mut Links;
}

/// The chains of a list by key. It grows with the list, to at most twice as many chains as there ever were elements.
pub(crate) struct Index<By = ()> {
    chains: Vec<Chain>,
    elements: usize,
    by: PhantomData<By>,
}

impl<By> Default for Index<By> {
    fn default() -> Self {
        Index { chains: Vec::new(), elements: 0, by: PhantomData }
    }
}

/// It follows from the list.
impl<By> fmt::Debug for Index<By> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Index")
    }
}

impl<By> Index<By> {
    /// Memory that one element takes in the index, its links apart.
    pub(crate) const BYTES_PER_ELEMENT: usize = 2 * size_of::<Chain>();
    /// Memory that an index may take beyond that.
    pub(crate) const BYTES_BEGUN: usize = FEWEST * size_of::<Chain>() + 32;

    /// Adds the last element of `list`, which is at `at`.
    pub(crate) fn add<T: Indexed<By>>(&mut self, list: &mut Ordered<T>, at: Position) {
        self.elements += 1;
        if self.elements > self.chains.len() {
            self.grow(list);
        } else {
            self.append(list, at);
        }
    }

    /// Adds all elements of `list`, so many, to an index that has none.
    pub(crate) fn add_all<T: Indexed<By>>(&mut self, list: &mut Ordered<T>, elements: usize) {
        self.elements = elements;
        if elements > self.chains.len() {
            self.make_chains(elements.next_power_of_two());
        }
        self.append_all(list);
    }

    /// Forgets all elements, which are still in `list`.
    pub(crate) fn remove_all<T: Indexed<By>>(&mut self, list: &Ordered<T>) {
        self.elements = 0;
        let mut next = list.first();
        while let Some(at) = next {
            next = list.after(at);
            if let Some(chain) = list.get(at).map(|element| self.chain_of(element.key())) {
                self.chains[chain] = Chain::default();
            }
        }
    }

    /// How many elements are in the index.
    pub(crate) fn elements(&self) -> usize {
        self.elements
    }

    /// Chains all elements anew, in twice as many chains.
    #[cold]
    fn grow<T: Indexed<By>>(&mut self, list: &mut Ordered<T>) {
        self.make_chains(2 * self.chains.len());
        self.append_all(list);
    }

    /// So many empty chains.
    fn make_chains(&mut self, chains: usize) {
        let chains = chains.max(FEWEST);
        // The old ones go first: the memory of both together is nowhere accounted for.
        self.chains = Vec::new();
        self.chains.reserve_exact(chains);
        self.chains.resize(chains, Chain::default());
    }

    fn append_all<T: Indexed<By>>(&mut self, list: &mut Ordered<T>) {
        let mut next = list.first();
        while let Some(at) = next {
            next = list.after(at);
            if list.get(at).is_some_and(T::is_indexed) {
                self.append(list, at);
            }
        }
    }

    fn append<T: Indexed<By>>(&mut self, list: &mut Ordered<T>, at: Position) {
        let Some(element) = list.get(at) else { return };
        let chain = self.chain_of(element.key());
        self.chains[chain].append(list, at, T::links_mut);
    }

    /// Forgets an element that has left the list.
    pub(crate) fn remove<T: Indexed<By>>(&mut self, list: &mut Ordered<T>, gone: &T) {
        self.take_out(list, gone.key(), *gone.links());
    }

    /// Forgets an element that stays in the list.
    pub(crate) fn remove_at<T: Indexed<By>>(&mut self, list: &mut Ordered<T>, at: Position) {
        if let Some((key, links)) = list.get(at).map(|element| (element.key(), *element.links())) {
            self.take_out(list, key, links);
        }
    }

    fn take_out<T: Indexed<By>>(&mut self, list: &mut Ordered<T>, key: TagKey, links: Links) {
        self.elements -= 1;
        let chain = self.chain_of(key);
        self.chains[chain].take_out(list, links, T::links_mut);
    }

    /// The first element with this key for which `wanted` holds.
    #[inline]
    pub(crate) fn find<T: Indexed<By>>(
        &self,
        list: &Ordered<T>,
        key: TagKey,
        wanted: impl Fn(&T) -> bool,
    ) -> Option<Position> {
        self.chains.get(self.chain_of(key))?.find(list, T::links, wanted)
    }

    /// Which chain is a key's: by the upper bits of its product with 2³² over the golden ratio, which spreads tags that follow
    /// each other, and those that are multiples of something.
    #[inline]
    fn chain_of(&self, key: TagKey) -> usize {
        ((u64::from(key.wrapping_mul(0x9e37_79b9)) * self.chains.len() as u64) >> 32) as usize
    }

    /// Elements of the longest chain.
    #[cfg(test)]
    pub(crate) fn longest<T: Indexed<By>>(&self, list: &Ordered<T>) -> usize {
        let count = |chain: &Chain| {
            let passed = std::cell::Cell::new(0);
            chain.find(list, T::links, |_| passed.replace(passed.get() + 1) == usize::MAX);
            passed.get()
        };
        self.chains.iter().map(count).max().unwrap_or(0)
    }
}
