//! Storage with stable names: [`Slab`] for what a peer may name by number, [`Ordered`] for lists that are searched in
//! order and lose elements anywhere.

use std::fmt;

/// The name of a slab's element: an index and how often its place was used before, so a stale or invented name finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key(pub(crate) u32);

const INDEX_BITS: u32 = 22;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;

impl Key {
    fn new(index: usize, generation: u32) -> Key {
        Key(index as u32 | generation << INDEX_BITS)
    }
    fn index(self) -> usize {
        (self.0 & INDEX_MASK) as usize
    }
    fn generation(self) -> u32 {
        self.0 >> INDEX_BITS
    }
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

/// Elements by [`Key`]. Never holds more than 2²² of them.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Self {
        Slab { places: Vec::new(), free: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Whether one more element fits.
    pub(crate) fn has_room(&self) -> bool {
        !self.free.is_empty() || self.places.len() <= INDEX_MASK as usize
    }

    /// Panics if the slab is full: ask [`has_room`](Self::has_room).
    pub(crate) fn insert(&mut self, value: T) -> Key {
        let index = match self.free.pop() {
            Some(index) => index as usize,
            None => {
                assert!(self.has_room(), "slab is full");
                self.places.push(Place { generation: 0, value: None });
                self.places.len() - 1
            }
        };
        let place = &mut self.places[index];
        place.value = Some(value);
        Key::new(index, place.generation)
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let place = self.places.get_mut(key.index())?;
        if place.generation == key.generation() { place.value.as_mut() } else { None }
    }

    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        let place = self.places.get(key.index())?;
        if place.generation == key.generation() { place.value.as_ref() } else { None }
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let place = self.places.get_mut(key.index())?;
        if place.generation != key.generation() {
            return None;
        }
        let value = place.value.take()?;
        place.generation = (place.generation + 1) & (u32::MAX >> INDEX_BITS);
        self.free.push(key.index() as u32);
        Some(value)
    }

    /// The keys of all elements for which `wanted` holds.
    pub(crate) fn keys_where(&self, mut wanted: impl FnMut(&T) -> bool) -> Vec<Key> {
        let of_place = |(index, place): (usize, &Place<T>)| {
            let value = place.value.as_ref()?;
            wanted(value).then(|| Key::new(index, place.generation))
        };
        self.places.iter().enumerate().filter_map(of_place).collect()
    }
}

const NONE: u32 = u32::MAX;
/// Nodes per block of an [`Ordered`].
const BLOCK_BITS: u32 = 6;
const BLOCK: usize = 1 << BLOCK_BITS;

#[derive(Debug)]
struct Node<T> {
    previous: u32,
    /// Of a free node: the next free one.
    next: u32,
    value: Option<T>,
}

/// A list in order of arrival, with constant-time removal of what a search found and no allocation once it has grown. It grows by
/// blocks of nodes that never move, so that its memory is that of the most elements it ever had and no more.
pub(crate) struct Ordered<T> {
    blocks: Vec<Box<[Node<T>; BLOCK]>>,
    free: u32,
    first: u32,
    last: u32,
}

/// The elements by position, in order. Free nodes are left out: which is used next makes no difference to anybody.
impl<T: fmt::Debug> fmt::Debug for Ordered<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let positions = std::iter::successors(self.first(), |at| self.after(*at));
        f.debug_map().entries(positions.map(|at| (at.0, self.get(at)))).finish()
    }
}

/// Where an element of an [`Ordered`] is, as long as it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position(u32);

impl<T> Ordered<T> {
    /// Memory that one element takes, its part of the table of blocks at its worst included.
    pub(crate) const BYTES_PER_ELEMENT: usize = size_of::<Node<T>>() + 1;
    /// Memory that a list may take beyond its elements' own: a block begun, and the table of blocks.
    pub(crate) const BYTES_BEGUN: usize = size_of::<[Node<T>; BLOCK]>() + 64;

    pub(crate) fn new() -> Self {
        Ordered { blocks: Vec::new(), free: NONE, first: NONE, last: NONE }
    }

    #[inline]
    fn node(&self, index: u32) -> Option<&Node<T>> {
        self.blocks.get((index >> BLOCK_BITS) as usize).map(|block| &block[index as usize % BLOCK])
    }

    #[inline]
    fn node_mut(&mut self, index: u32) -> Option<&mut Node<T>> {
        self.blocks.get_mut((index >> BLOCK_BITS) as usize).map(|block| &mut block[index as usize % BLOCK])
    }

    /// A list's own link to a node that is there.
    #[inline]
    fn linked(&mut self, index: u32) -> &mut Node<T> {
        self.node_mut(index).expect("links name nodes")
    }

    #[cold]
    fn add_block(&mut self) {
        let start = (self.blocks.len() * BLOCK) as u32;
        let last = start + BLOCK as u32 - 1;
        let next = |index: u32| if index == last { NONE } else { index + 1 };
        let node = |at| Node { previous: NONE, next: next(start + at as u32), value: None };
        self.blocks.push(Box::new(std::array::from_fn(node)));
        self.free = start;
    }

    pub(crate) fn push_back(&mut self, value: T) -> Position {
        if self.free == NONE {
            self.add_block();
        }
        let (index, previous) = (self.free, self.last);
        let node = self.linked(index);
        let free = node.next;
        *node = Node { previous, next: NONE, value: Some(value) };
        self.free = free;
        match self.last {
            NONE => self.first = index,
            last => self.linked(last).next = index,
        }
        self.last = index;
        Position(index)
    }

    pub(crate) fn get(&self, at: Position) -> Option<&T> {
        self.node(at.0)?.value.as_ref()
    }

    pub(crate) fn get_mut(&mut self, at: Position) -> Option<&mut T> {
        self.node_mut(at.0)?.value.as_mut()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// The first element.
    pub(crate) fn first(&self) -> Option<Position> {
        (self.first != NONE).then_some(Position(self.first))
    }

    /// The element after the one at `at`.
    pub(crate) fn after(&self, at: Position) -> Option<Position> {
        let next = self.node(at.0)?.next;
        (next != NONE).then_some(Position(next))
    }

    pub(crate) fn remove(&mut self, at: Position) -> Option<T> {
        let free = self.free;
        let node = self.node_mut(at.0)?;
        let value = node.value.take()?;
        let (previous, next) = (node.previous, node.next);
        node.next = free;
        self.free = at.0;
        match previous {
            NONE => self.first = next,
            previous => self.linked(previous).next = next,
        }
        match next {
            NONE => self.last = previous,
            next => self.linked(next).previous = previous,
        }
        Some(value)
    }

    /// The first element, in order of arrival, for which `wanted` holds.
    #[inline]
    pub(crate) fn find(&self, mut wanted: impl FnMut(&T) -> bool) -> Option<Position> {
        let mut index = self.first;
        while let Some(node) = self.node(index) {
            if node.value.as_ref().is_some_and(&mut wanted) {
                return Some(Position(index));
            }
            index = node.next;
        }
        None
    }

    /// Removes all elements for which `wanted` holds, in order.
    pub(crate) fn remove_where(&mut self, mut wanted: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut removed = Vec::new();
        let mut at = self.first();
        while let Some(here) = at {
            at = self.after(here);
            if self.get(here).is_some_and(&mut wanted) {
                removed.extend(self.remove(here));
            }
        }
        removed
    }

    /// Changes every element in place.
    pub(crate) fn for_each_mut(&mut self, mut change: impl FnMut(&mut T)) {
        self.blocks
            .iter_mut()
            .flat_map(|block| block.iter_mut())
            .filter_map(|node| node.value.as_mut())
            .for_each(&mut change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_key_finds_nothing() {
        let mut slab = Slab::new();
        let first = slab.insert('a');
        assert_eq!(slab.remove(first), Some('a'));
        let second = slab.insert('b');
        assert_eq!(first.index(), second.index());
        assert_eq!(slab.get(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get(second), Some(&'b'));
        assert_eq!(slab.get(Key(u32::MAX)), None);
    }

    #[test]
    fn an_ordered_list_keeps_order_through_removals_and_reuse() {
        let mut list = Ordered::new();
        let at: Vec<_> = (0..5).map(|n| list.push_back(n)).collect();
        for gone in [2, 0, 4] {
            assert_eq!(list.remove(at[gone]), Some(gone));
            assert_eq!(list.remove(at[gone]), None);
        }
        list.push_back(7);
        list.push_back(8);
        assert_eq!(list.remove_where(|_| true), [1, 3, 7, 8]);
        assert_eq!(list.find(|_| true), None);
        list.push_back(9);
        assert_eq!(list.remove_where(|_| true), [9]);
        let fill = |list: &mut Ordered<usize>, count| (0..count).map(|n| list.push_back(n)).count();
        fill(&mut list, 3 * BLOCK);
        assert_eq!(list.remove_where(|n| n % 2 == 0).len(), 3 * BLOCK / 2);
        let blocks = list.blocks.len();
        fill(&mut list, BLOCK);
        assert_eq!(list.blocks.len(), blocks, "room that became free is used again");
        assert_eq!(list.remove_where(|_| true).len(), 5 * BLOCK / 2);
    }
}
