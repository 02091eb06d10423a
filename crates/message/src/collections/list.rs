//! Lists that are searched in order and lose elements anywhere: [`Ordered`], and a [`Chain`] through those of its elements that
//! have something in common.

use std::fmt;
use std::num::NonZeroU32;

/// Nodes per block of an [`Ordered`].
const BLOCK_BITS: u32 = 6;
const BLOCK: usize = 1 << BLOCK_BITS;

/// Where an element of an [`Ordered`] is, as long as it is there. The first place of the first block is never used, so that `None`
/// takes no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position(NonZeroU32);

impl Position {
    /// No position is before this one, in whatever list.
    pub(crate) const MIN: Position = Position(NonZeroU32::MIN);

    #[inline]
    fn of(index: u32) -> Option<Position> {
        NonZeroU32::new(index).map(Position)
    }

    #[inline]
    fn index(self) -> u32 {
        self.0.get()
    }
}

#[derive(Debug)]
struct Node<T> {
    previous: Option<Position>,
    /// Of a free node: the next free one.
    next: Option<Position>,
    value: Option<T>,
}

/// A list in order of arrival, with constant-time removal of what a search found and no allocation once it has grown. It grows by
/// blocks of nodes that never move, so that its memory is that of the most elements it ever had and no more.
pub(crate) struct Ordered<T> {
    blocks: Vec<Box<[Node<T>; BLOCK]>>,
    free: Option<Position>,
    first: Option<Position>,
    last: Option<Position>,
}

/// The elements by position, in order. Free nodes are left out: which is used next makes no difference to anybody.
impl<T: fmt::Debug> fmt::Debug for Ordered<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let positions = std::iter::successors(self.first(), |at| self.after(*at));
        f.debug_map().entries(positions.map(|at| (at.index(), self.get(at)))).finish()
    }
}

impl<T> Ordered<T> {
    /// Memory that one element takes, its part of the table of blocks at its worst included.
    pub(crate) const BYTES_PER_ELEMENT: usize = size_of::<Node<T>>() + 1;
    /// Memory that a list may take beyond its elements' own: a block begun, and the table of blocks.
    pub(crate) const BYTES_BEGUN: usize = size_of::<[Node<T>; BLOCK]>() + 64;

    pub(crate) fn new() -> Self {
        Ordered { blocks: Vec::new(), free: None, first: None, last: None }
    }

    #[inline]
    fn node(&self, at: Position) -> Option<&Node<T>> {
        let index = at.index();
        self.blocks.get((index >> BLOCK_BITS) as usize).map(|block| &block[index as usize % BLOCK])
    }

    #[inline]
    fn node_mut(&mut self, at: Position) -> Option<&mut Node<T>> {
        let index = at.index();
        self.blocks.get_mut((index >> BLOCK_BITS) as usize).map(|block| &mut block[index as usize % BLOCK])
    }

    /// A list's own link to a node that is there.
    #[inline]
    fn linked(&mut self, at: Position) -> &mut Node<T> {
        self.node_mut(at).expect("links name nodes")
    }

    /// Adds a block of free nodes. Returns the first.
    #[cold]
    fn add_block(&mut self) -> Position {
        let start = (self.blocks.len() * BLOCK) as u32;
        let node = |at: usize| {
            let next = if at + 1 < BLOCK { Position::of(start + at as u32 + 1) } else { None };
            Node { previous: None, next, value: None }
        };
        self.blocks.push(Box::new(std::array::from_fn(node)));
        Position::of(start.max(1)).expect("not the place that is never used")
    }

    pub(crate) fn push_back(&mut self, value: T) -> Position {
        let at = self.free.unwrap_or_else(|| self.add_block());
        let previous = self.last.replace(at);
        let node = self.linked(at);
        let free = node.next;
        *node = Node { previous, next: None, value: Some(value) };
        self.free = free;
        match previous {
            Some(previous) => self.linked(previous).next = Some(at),
            None => self.first = Some(at),
        }
        at
    }

    #[inline]
    pub(crate) fn get(&self, at: Position) -> Option<&T> {
        self.node(at)?.value.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, at: Position) -> Option<&mut T> {
        self.node_mut(at)?.value.as_mut()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// The first element.
    #[inline]
    pub(crate) fn first(&self) -> Option<Position> {
        self.first
    }

    /// The last element.
    pub(crate) fn last(&self) -> Option<Position> {
        self.last
    }

    /// The element before the one at `at`.
    pub(crate) fn before(&self, at: Position) -> Option<Position> {
        self.node(at)?.previous
    }

    /// The element after the one at `at`.
    #[inline]
    pub(crate) fn after(&self, at: Position) -> Option<Position> {
        self.node(at)?.next
    }

    pub(crate) fn remove(&mut self, at: Position) -> Option<T> {
        let free = self.free;
        let node = self.node_mut(at)?;
        let value = node.value.take()?;
        let (previous, next) = (node.previous, node.next);
        node.next = free;
        self.free = Some(at);
        match previous {
            Some(previous) => self.linked(previous).next = next,
            None => self.first = next,
        }
        match next {
            Some(next) => self.linked(next).previous = previous,
            None => self.last = previous,
        }
        Some(value)
    }

    /// The first element, in order of arrival, for which `wanted` holds, among the first so many.
    #[inline]
    pub(crate) fn walk(&self, most: usize, mut wanted: impl FnMut(&T) -> bool) -> Walk {
        let mut at = self.first;
        let Some(first) = self.blocks.first() else { return Walk::NotThere };
        // The block that the walk is in: most steps stay in it, and then need not wait for a look into the table of blocks.
        let (mut number, mut block) = (0, first);
        for _ in 0..most {
            let Some(here) = at else { return Walk::NotThere };
            let index = here.index();
            if index >> BLOCK_BITS != number {
                number = index >> BLOCK_BITS;
                block = &self.blocks[number as usize];
            }
            let node = &block[index as usize % BLOCK];
            if node.value.as_ref().is_some_and(&mut wanted) {
                return Walk::Found(here);
            }
            at = node.next;
        }
        Walk::of_rest(at)
    }

    /// Removes all elements for which `wanted` holds, in order.
    pub(crate) fn remove_where(&mut self, mut wanted: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut removed = Vec::new();
        let mut at = self.first;
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

/// The elements of an [`Ordered`] list that have something in common, in the list's order: a chain through links that they keep.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Chain {
    first: Option<Position>,
    last: Option<Position>,
}

/// An element's neighbours in a chain.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Links {
    previous: Option<Position>,
    next: Option<Position>,
}

impl Links {
    /// The element behind.
    pub(crate) fn next(&self) -> Option<Position> {
        self.next
    }
}

impl Chain {
    /// The first element.
    #[inline]
    pub(crate) fn first(&self) -> Option<Position> {
        self.first
    }

    /// Adds the element at `at`, which comes after all others of the chain. `links` finds an element's links of this chain.
    #[inline]
    pub(crate) fn append<T>(&mut self, list: &mut Ordered<T>, at: Position, links: impl Fn(&mut T) -> &mut Links) {
        let previous = self.last.replace(at);
        match previous.and_then(|previous| list.get_mut(previous)) {
            Some(element) => links(element).next = Some(at),
            None => self.first = Some(at),
        }
        if let Some(element) = list.get_mut(at) {
            *links(element) = Links { previous, next: None };
        }
    }

    /// Adds the element at `at` in front of all others of the chain, whose order is then not the list's.
    pub(crate) fn prepend<T>(&mut self, list: &mut Ordered<T>, at: Position, links: impl Fn(&mut T) -> &mut Links) {
        let next = self.first.replace(at);
        match next.and_then(|next| list.get_mut(next)) {
            Some(element) => links(element).previous = Some(at),
            None => self.last = Some(at),
        }
        if let Some(element) = list.get_mut(at) {
            *links(element) = Links { previous: None, next };
        }
    }

    /// Takes out an element that has left the list with these links.
    #[inline]
    pub(crate) fn take_out<T>(&mut self, list: &mut Ordered<T>, gone: Links, links: impl Fn(&mut T) -> &mut Links) {
        match gone.previous.and_then(|previous| list.get_mut(previous)) {
            Some(element) => links(element).next = gone.next,
            None => self.first = gone.next,
        }
        match gone.next.and_then(|next| list.get_mut(next)) {
            Some(element) => links(element).previous = gone.previous,
            None => self.last = gone.previous,
        }
    }

    /// The first element for which `wanted` holds, among the first so many.
    #[inline]
    pub(crate) fn walk<T>(
        &self,
        list: &Ordered<T>,
        links: impl Fn(&T) -> &Links,
        most: usize,
        wanted: impl Fn(&T) -> bool,
    ) -> Walk {
        let mut at = self.first;
        for _ in 0..most {
            let Some((here, element)) = at.and_then(|here| Some((here, list.get(here)?))) else {
                return Walk::NotThere;
            };
            if wanted(element) {
                return Walk::Found(here);
            }
            at = links(element).next;
        }
        Walk::of_rest(at)
    }
}

/// What looking at the first few elements has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walk {
    Found(Position),
    NotThere,
    /// It may be among the others.
    TooLong,
}

impl Walk {
    /// None of the first elements will do; the next one is this.
    #[inline]
    fn of_rest(next: Option<Position>) -> Walk {
        if next.is_some() { Walk::TooLong } else { Walk::NotThere }
    }

    /// What was found.
    #[inline]
    pub(crate) fn found(self) -> Option<Position> {
        match self {
            Walk::Found(at) => Some(at),
            Walk::NotThere | Walk::TooLong => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(list.walk(usize::MAX, |_| true), Walk::NotThere);
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
