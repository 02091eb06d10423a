//! Lists that are searched in order and lose elements anywhere: [`Ordered`], and a [`Chain`] through those of its
//! elements that have something in common.

use crate::heap::block;
use std::fmt;
use std::num::NonZeroU32;

/// Free nodes that a list keeps at most, so that what comes and goes takes no memory anew.
const SPARE_MOST: usize = 64;

/// Where an element of an [`Ordered`] is, as long as it is there. The first place is never used, so that
/// `None` takes no room.
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

/// A question to an element, which stays where it is. A type of its own has it inlined, which closures have not.
pub(crate) trait Wanted<T> {
    /// Whether the element is the one.
    fn meets(self, element: &mut T) -> bool;
}

impl<T, F: FnOnce(&mut T) -> bool> Wanted<T> for F {
    fn meets(self, element: &mut T) -> bool {
        self(element)
    }
}

#[derive(Debug)]
struct Node<T> {
    previous: Option<Position>,
    next: Option<Position>,
    /// `None`: a spare node.
    value: Option<T>,
}

/// A place of a list.
enum Place<T> {
    /// It has a node: of an element, or spare; `next` leads from a spare one to the next.
    Node(Box<Node<T>>),
    /// It has none. The next place that has none.
    Empty(Option<Position>),
}

/// A list in order of arrival, with constant-time removal of what a search found.
///
/// Nodes never move. They go back to the system as elements are removed, but for a few that are kept, so a list takes
/// the memory of the elements that it has; the table of places alone stays as long as the most elements that it had at
/// once, until it is empty.
pub(crate) struct Ordered<T> {
    places: Vec<Place<T>>,
    /// The first spare node, and how many there are.
    spare: Option<Position>,
    spares: usize,
    /// The first place without a node, and how many there are.
    empty: Option<Position>,
    empties: usize,
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
    /// Memory that one element takes: its node, and its place in a table that is at most an eighth too long.
    pub(crate) const BYTES_PER_ELEMENT: usize = block(size_of::<Node<T>>()) + size_of::<Place<T>>() * 9 / 8;
    /// Memory that a list may take beyond its elements' own: spare nodes, and the beginning of the table.
    pub(crate) const BYTES_BEGUN: usize =
        SPARE_MOST * block(size_of::<Node<T>>()) + block(2 * SPARE_MOST * size_of::<Place<T>>());

    pub(crate) fn new() -> Self {
        Ordered { places: Vec::new(), spare: None, spares: 0, empty: None, empties: 0, first: None, last: None }
    }

    #[inline]
    fn node(&self, at: Position) -> Option<&Node<T>> {
        match self.places.get(at.index() as usize) {
            Some(Place::Node(node)) => Some(node),
            _ => None,
        }
    }

    #[inline]
    fn node_mut(&mut self, at: Position) -> Option<&mut Node<T>> {
        match self.places.get_mut(at.index() as usize) {
            Some(Place::Node(node)) => Some(node),
            _ => None,
        }
    }

    /// A list's own link to a node that is there.
    #[inline]
    fn linked(&mut self, at: Position) -> &mut Node<T> {
        self.node_mut(at).expect("links name nodes")
    }

    /// A place with a new node, which is spare.
    #[cold]
    fn add_node(&mut self) -> Position {
        let node = Place::Node(Box::new(Node { previous: None, next: None, value: None }));
        self.spares += 1;
        if let Some(at) = self.empty {
            let place = std::mem::replace(&mut self.places[at.index() as usize], node);
            self.empty = if let Place::Empty(next) = place { next } else { None };
            self.empties -= 1;
            return at;
        }
        if self.places.len() == self.places.capacity() {
            self.places.reserve_exact((self.places.len() / 8).max(SPARE_MOST));
        }
        if self.places.is_empty() {
            self.places.push(Place::Empty(None));
        }
        self.places.push(node);
        Position::of(self.places.len() as u32 - 1).expect("not the place that is never used")
    }

    /// A node has lost its element: it is kept, or goes back to the system.
    #[inline(always)]
    fn drop_node(&mut self, at: Position) {
        if self.spares < SPARE_MOST {
            let spare = self.spare.replace(at);
            self.linked(at).next = spare;
            self.spares += 1;
        } else {
            let empty = self.empty.replace(at);
            self.places[at.index() as usize] = Place::Empty(empty);
            self.empties += 1;
        }
        if self.first.is_none() && self.places.len() > 2 * SPARE_MOST {
            // All positions are free, and nobody remembers any.
            *self = Ordered::new();
        }
    }

    /// Inlined, so that the element is made where it is to be.
    #[inline(always)]
    pub(crate) fn push_back(&mut self, value: T) -> Position {
        let at = self.spare.unwrap_or_else(|| self.add_node());
        let previous = self.last.replace(at);
        let node = self.linked(at);
        let spare = node.next.take();
        node.previous = previous;
        match &mut node.value {
            empty @ None => *empty = Some(value),
            Some(_) => unreachable!("a spare node has no element"),
        }
        self.spare = spare;
        self.spares -= 1;
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

    /// How many elements there are: as many as there are places that are neither spare nor empty. So nothing is counted
    /// when an element comes or goes.
    pub(crate) fn len(&self) -> usize {
        self.places.len().saturating_sub(1) - self.spares - self.empties
    }

    /// The elements, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::successors(self.first(), |at| self.after(*at)).filter_map(|at| self.get(at))
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

    #[inline(always)]
    pub(crate) fn remove(&mut self, at: Position) -> Option<T> {
        // Inlined, so that whoever wants a part of the element moves no more of it.
        let value = self.node_mut(at)?.value.take()?;
        self.unlink(at);
        Some(value)
    }

    /// Takes the first element out, if it is wanted. Inlined, so that who needs a part of it moves no more.
    #[inline(always)]
    pub(crate) fn take_first(&mut self, wanted: impl Wanted<T>) -> Option<T> {
        let at = self.first?;
        let places = self.places.len();
        let Some(Place::Node(node)) = self.places.get_mut(at.index() as usize) else { return None };
        if !wanted.meets(node.value.as_mut()?) {
            return None;
        }
        let value = node.value.take();
        let next = node.next;
        if self.spares == SPARE_MOST || (next.is_none() && places > 2 * SPARE_MOST) {
            self.unlink(at);
            return value;
        }
        node.next = self.spare.replace(at);
        self.spares += 1;
        self.first = next;
        match next {
            Some(next) => self.linked(next).previous = None,
            None => self.last = None,
        }
        value
    }

    /// Takes a node that has lost its element out of the list.
    #[inline(never)]
    fn unlink(&mut self, at: Position) {
        let node = self.linked(at);
        let (previous, next) = (node.previous, node.next);
        match previous {
            Some(previous) => self.linked(previous).next = next,
            None => self.first = next,
        }
        match next {
            Some(next) => self.linked(next).previous = previous,
            None => self.last = previous,
        }
        self.drop_node(at);
    }

    /// The first element, in order of arrival, for which `wanted` holds, among the first so many.
    #[inline]
    pub(crate) fn walk(&self, most: usize, mut wanted: impl FnMut(&T) -> bool) -> Walk {
        let mut at = self.first;
        for _ in 0..most {
            let Some((here, node)) = at.and_then(|here| Some((here, self.node(here)?))) else { return Walk::NotThere };
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
        let values = self.places.iter_mut().filter_map(|place| match place {
            Place::Node(node) => node.value.as_mut(),
            Place::Empty(_) => None,
        });
        values.for_each(&mut change);
    }
}

/// The elements of an [`Ordered`] list that have something in common, in the list's order: a chain through links that
/// they keep.
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

    /// Adds the element at `at`, which comes after all others of the chain. `links` finds an element's links of this
    /// chain.
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
    fn a_list_knows_how_many_elements_it_has_without_counting_them() {
        let mut list = Ordered::new();
        let mut there = Vec::new();
        for turn in 0..2000_usize {
            // It grows and shrinks beyond the nodes that are kept, and is empty now and then.
            match turn % 500 < 250 {
                true => there.push(list.push_back(turn)),
                false => _ = list.remove(there.remove(turn % there.len())),
            }
            assert_eq!(list.len(), there.len(), "turn {turn}");
            assert_eq!(list.iter().count(), there.len());
        }
        assert!(list.is_empty());
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
        assert_eq!(list.walk(usize::MAX, |_| true), Walk::NotThere);
        list.push_back(9);
        assert_eq!(list.remove_where(|_| true), [9]);
    }

    #[test]
    fn the_first_element_is_taken_if_it_is_wanted() {
        let mut list = Ordered::new();
        assert_eq!(list.take_first(|_: &mut i32| true), None);
        (1..=3).for_each(|n| _ = list.push_back(n));
        let drop_one = |list: &mut Ordered<_>| list.take_first(|_: &mut i32| true);
        assert_eq!(list.take_first(|first: &mut i32| *first == 2), None);
        assert_eq!(drop_one(&mut list), Some(1));
        assert_eq!(list.first().and_then(|at| list.before(at)), None);
        list.push_back(4);
        assert_eq!([(); 4].map(|()| drop_one(&mut list)), [Some(2), Some(3), Some(4), None]);
        assert!(list.is_empty() && list.last().is_none());
        list.push_back(5);
        assert_eq!(list.remove_where(|_| true), [5]);
    }

    #[test]
    fn a_list_takes_the_memory_of_the_elements_that_it_has() {
        let mut list = Ordered::new();
        let nodes = |list: &Ordered<usize>| list.places.iter().filter(|place| matches!(place, Place::Node(_))).count();
        for round in 0..3 {
            let at: Vec<_> = (0..20_000).map(|n| list.push_back(n)).collect();
            assert!(nodes(&list) <= 20_000 + SPARE_MOST);
            assert!(list.places.capacity() <= 20_000 * 9 / 8 + 2 * SPARE_MOST, "round {round}");
            // All but every hundredth go, from the back, the front and the middle.
            let (back, rest) = at.split_at(9_000);
            let gone = back.iter().rev().chain(rest).filter(|at| at.index() % 100 != 0);
            gone.for_each(|at| assert!(list.remove(*at).is_some()));
            assert!(nodes(&list) <= 200 + SPARE_MOST, "round {round}: {} nodes", nodes(&list));
            // Places are used again, in whatever order, and the order of the list stays.
            (0..500).for_each(|n| _ = list.push_back(30_000 + n));
            assert_eq!(nodes(&list), 700);
            let left = list.remove_where(|_| true);
            assert!(left.is_sorted() && left.len() == 700, "round {round}");
            assert!(list.places.is_empty(), "an empty list has no table");
        }
    }
}
