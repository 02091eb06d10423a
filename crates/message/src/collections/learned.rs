//! Finds the first element of a list that a pattern accepts, whatever bits of the tag the pattern ignores.
//!
//! *The simple idea* is to chain elements by the low bits of their tags, where MPIs put the tag of the program. A
//! receive of any tag of one communicator ignores just these bits, and walks past everything of all others; a receive
//! of one tag walks past the messages of another communicator that have the same tag. No choice of bits will do for
//! all, since each MPI divides a tag in its own way. So an [index](super::index) is made for the parts of envelopes
//! that patterns really look at, their [`Class`]: MPIs use four (exact and any tag, each with and without a source). An
//! element costs memory in each index, which belongs to the bound on receive memory, so there are [`CLASSES`] of them
//! and no more.
//!
//! - An index is made by the first search that has walked [`WALK`] elements in vain. Lists that stay short have none,
//!   and nothing to keep up to date; all are given up when few elements are left. So making them costs every element a
//!   few steps.
//! - A search of a class that has no index goes through the narrowest chain that has in it whatever it may accept: that
//!   of an index whose class looks at less, or else the plain one that its caller knows.
//! - Where all indices are in use, one is made anew for another class if nobody has used it for the last [`IDLE`]
//!   searches. So a program that changes its masks is slow for so many searches and not for ever, and one that uses too
//!   many at a time does not make indices all the time: it walks, as a plain list would.

use super::index::{By, Class, Index, TagKey};
use super::list::{Links, Ordered, Position, Walk};
use super::steps;
use std::fmt;

/// Indices of one list.
pub(crate) const CLASSES: usize = 4;
/// Elements that a search passes before it makes an index.
const WALK: usize = 16;
/// Elements that are left when the indices are given up.
const FEW: usize = 4;
/// Searches after which an index that none of them has used goes to another class.
const IDLE: u64 = 8 * CLASSES as u64;

/// An element's neighbours in each index.
pub(crate) type LinksOfClasses = [Links; CLASSES];

/// An element that is looked for.
pub(crate) trait Sought {
    /// The number that stands for its source.
    fn source(&self) -> u64;
    fn tag(&self) -> u64;
    /// Whether any search is to find it.
    fn is_sought(&self) -> bool {
        true
    }
    fn links(&self) -> &LinksOfClasses;
    fn links_mut(&mut self) -> &mut LinksOfClasses;
}

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) class: Class,
    /// Counts if the class names a source.
    pub(crate) source: u64,
    pub(crate) tag: u64,
}

/// The index of a class, which has this place among the links.
struct ByClass {
    class: Class,
    place: usize,
}

impl<T: Sought> By<T> for ByClass {
    #[inline]
    fn key(&self, element: &T) -> TagKey {
        self.class.key(element.source(), element.tag())
    }
    #[inline]
    fn is_indexed(&self, element: &T) -> bool {
        element.is_sought()
    }
    #[inline]
    fn links<'a>(&self, element: &'a T) -> &'a Links {
        &element.links()[self.place]
    }
    #[inline]
    fn links_mut<'a>(&self, element: &'a mut T) -> &'a mut Links {
        &mut element.links_mut()[self.place]
    }
}

#[derive(Default)]
struct Learned {
    /// `None`: not in use.
    class: Option<Class>,
    index: Index,
    /// The number of the last search that used it.
    used: u64,
}

/// The indices of a list.
#[derive(Default)]
pub(crate) struct Indices {
    learned: [Learned; CLASSES],
    /// How many are in use: the first ones.
    number: usize,
    /// Elements of the list, those that no search is to find included.
    elements: usize,
    searches: u64,
}

/// Shows the name only: the indices follow from the list and from past searches, and change no result of a search.
impl fmt::Debug for Indices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Indices")
    }
}

impl Indices {
    /// Memory that one element takes in the indices, its links apart.
    pub(crate) const BYTES_PER_ELEMENT: usize = CLASSES * Index::BYTES_PER_ELEMENT;
    /// Memory that they may take beyond that.
    pub(crate) const BYTES_BEGUN: usize = CLASSES * Index::BYTES_BEGUN;

    /// The indices in use, and how they find their elements.
    fn in_use(&mut self) -> impl Iterator<Item = (&mut Learned, ByClass)> {
        let places = self.learned[..self.number].iter_mut().enumerate();
        places.filter_map(|(place, learned)| Some(ByClass { class: learned.class?, place }).map(|by| (learned, by)))
    }

    /// An element was added to `list`, at its end.
    #[inline]
    pub(crate) fn add<T: Sought>(&mut self, list: &mut Ordered<T>, at: Position) {
        self.elements += 1;
        if self.number > 0 && list.get(at).is_some_and(T::is_sought) {
            self.in_use().for_each(|(learned, by)| learned.index.add(list, at, &by));
        }
    }

    /// An element has left `list`.
    #[inline]
    pub(crate) fn remove<T: Sought>(&mut self, list: &mut Ordered<T>, gone: &T) {
        self.elements -= 1;
        if self.number > 0 {
            if gone.is_sought() {
                self.in_use().for_each(|(learned, by)| learned.index.remove(list, gone, &by));
            }
            if self.elements <= FEW {
                self.give_up(list);
            }
        }
    }

    /// An element of `list` that was sought is sought no longer.
    pub(crate) fn withdraw<T: Sought>(&mut self, list: &mut Ordered<T>, at: Position) {
        if self.number > 0 {
            self.in_use().for_each(|(learned, by)| learned.index.remove_at(list, at, &by));
        }
    }

    /// Forgets all: the elements are as if none had been looked for.
    #[cold]
    pub(crate) fn give_up<T: Sought>(&mut self, list: &Ordered<T>) {
        for (learned, by) in self.in_use() {
            learned.index.remove_all(list, &by);
            learned.class = None;
        }
        self.number = 0;
    }

    /// The first element that looks like `wanted` and for which `accepts` holds, unless another for which it holds is
    /// found before: that ends the search as well. `plain` walks a chain that has all in it that look like `wanted`,
    /// and at most so many elements.
    #[inline]
    pub(crate) fn find<T: Sought>(
        &mut self,
        list: &mut Ordered<T>,
        wanted: &Wanted,
        plain: impl Fn(&Ordered<T>, usize) -> Walk,
        accepts: impl Fn(&T) -> bool,
    ) -> Option<Position> {
        if self.number == 0 {
            match plain(list, WALK) {
                Walk::Found(at) => return Some(at),
                Walk::NotThere => return None,
                Walk::TooLong => {}
            }
        }
        self.find_by_index(list, wanted, plain, accepts)
    }

    #[inline(never)]
    fn find_by_index<T: Sought>(
        &mut self,
        list: &mut Ordered<T>,
        wanted: &Wanted,
        plain: impl Fn(&Ordered<T>, usize) -> Walk,
        accepts: impl Fn(&T) -> bool,
    ) -> Option<Position> {
        self.searches += 1;
        let narrowest = self.narrowest(wanted.class);
        let walk = |indices: &Indices, list: &Ordered<T>, most| match narrowest {
            Some(place) => indices.walk(place, list, wanted, most, &accepts),
            None => plain(list, most),
        };
        if narrowest.is_some_and(|place| self.learned[place].class == Some(wanted.class)) {
            return walk(self, list, usize::MAX).found();
        }
        match walk(self, list, WALK) {
            Walk::Found(at) => Some(at),
            Walk::NotThere => None,
            Walk::TooLong => match self.learn(list, wanted.class) {
                Some(place) => self.walk(place, list, wanted, usize::MAX, &accepts).found(),
                None => walk(self, list, usize::MAX).found(),
            },
        }
    }

    /// Looks at the elements that look like `wanted` to the class at `place`, and at most so many.
    #[inline]
    fn walk<T: Sought>(
        &self,
        place: usize,
        list: &Ordered<T>,
        wanted: &Wanted,
        most: usize,
        accepts: impl Fn(&T) -> bool,
    ) -> Walk {
        let Learned { class: Some(class), index, .. } = &self.learned[place] else { return Walk::NotThere };
        steps::count();
        let by = ByClass { class: *class, place };
        index.walk(list, class.key(wanted.source, wanted.tag), &by, most, accepts)
    }

    /// The index of a class, or else that of the class which looks at most of what this one looks at, and at nothing
    /// else.
    fn narrowest(&mut self, wanted: Class) -> Option<usize> {
        let searches = self.searches;
        if let Some(place) = self.learned[..self.number].iter().position(|learned| learned.class == Some(wanted)) {
            self.learned[place].used = searches;
            return Some(place);
        }
        let (learned, by) = self
            .in_use()
            .filter(|(_, by)| {
                let Class { ignore, names_source } = by.class;
                wanted.ignore & !ignore == 0 && (wanted.names_source || !names_source)
            })
            .min_by_key(|(_, by)| (by.class.ignore.count_ones(), !by.class.names_source))?;
        learned.used = searches;
        Some(by.place)
    }

    /// Makes an index for a class, unless all are in use. Returns its place.
    #[cold]
    fn learn<T: Sought>(&mut self, list: &mut Ordered<T>, class: Class) -> Option<usize> {
        let place = match self.number {
            CLASSES => (0..CLASSES).min_by_key(|&place| self.learned[place].used)?,
            free => free,
        };
        let learned = &mut self.learned[place];
        if learned.class.is_some() && self.searches - learned.used <= IDLE {
            return None;
        }
        (0..self.elements).for_each(|_| steps::count());
        (learned.class, learned.used) = (Some(class), self.searches);
        learned.index.add_all(list, self.elements, &ByClass { class, place });
        self.number = self.number.max(place + 1);
        Some(place)
    }

    /// What the indices take of the heap.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.learned.iter().map(|learned| learned.index.bytes()).sum()
    }

    /// How many indices are in use.
    #[cfg(test)]
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Elements of the longest chain.
    #[cfg(test)]
    pub(crate) fn longest<T: Sought>(&mut self, list: &Ordered<T>) -> usize {
        self.in_use().map(|(learned, by)| learned.index.longest(list, &by)).max().unwrap_or(0)
    }
}
