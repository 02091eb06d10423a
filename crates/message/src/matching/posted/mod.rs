//! The posted receives of one matching space.
//!
//! They stand in one list in order of posting, and the first that accepts a message gets it. Mostly that is the very
//! first, so this is looked at before anything else, and a short list is simply walked. *The simple idea*, to walk a
//! long one too, makes a program pay for every receive that it has posted with every message that comes in another
//! order. So a list in which a search has walked [`WALK`] receives in vain is *indexed* until few are left: chained by
//! a hash of what they accept.
//!
//! A hash needs to know which bits a receive looks at. Receives that ignore the same bits, and agree in whether they
//! name a source, are of one [`Class`]; programs use few of them (MPIs: exact, any tag, any source, both). A message is
//! looked up once in each class, and of what is found the receive with the lowest number wins: exactly the one that a
//! walk would have found. Receives of more than [`CLASSES`] classes share a last one, which is walked.
//!
//! Two questions are rare: which receive an application means that takes one back, and which is the next one that a
//! certain sender could satisfy (`deferral`). A [`Register`] answers them. It catches up with the list only when such a
//! question comes, so posting and matching pay nothing for it.

mod register;
mod waiting;

use crate::collections::index::{By, Class, Index, TagKey, source_of};
use crate::collections::list::{Links, Ordered, Position, Walk, Wanted};
use crate::collections::steps;
use crate::envelope::{Number, Pattern, number_of};
use crate::operation::{Context, Source, Target};
use register::Register;
use std::fmt;

pub(crate) use waiting::{Place, Posted};

/// Receives that a search passes before it makes an index.
const WALK: usize = 16;
/// Receives that are left when the index is given up.
const FEW: usize = 4;
/// Classes that are told apart.
const CLASSES: usize = 16;

/// The index of all classes together: by the keys that receives have got.
struct ByOwnKey;

impl<B> By<Posted<B>> for ByOwnKey {
    fn key(&self, posted: &Posted<B>) -> TagKey {
        posted.key
    }
    fn links<'a>(&self, posted: &'a Posted<B>) -> &'a Links {
        &posted.links
    }
    fn links_mut<'a>(&self, posted: &'a mut Posted<B>) -> &'a mut Links {
        &mut posted.links
    }
}

/// The last class, of which nothing is known.
const MIXED: Class = Class { ignore: u64::MAX, names_source: false };

/// A class, and how many receives of it are indexed.
struct Counted {
    class: Class,
    posted: usize,
}

/// Posted receives in order of posting.
pub(crate) struct PostedReceives<B> {
    list: Ordered<Posted<B>>,
    /// Whether all of the list is in `index`; else nothing is.
    is_indexed: bool,
    index: Index,
    classes: Vec<Counted>,
    /// By the source that they name.
    by_source: Register,
    /// By the name that the application cancels them by.
    by_name: Register,
}

/// All else follows from the list.
impl<B: fmt::Debug> fmt::Debug for PostedReceives<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.list.fmt(f)
    }
}

impl<B> PostedReceives<B> {
    pub(crate) fn new() -> Self {
        PostedReceives {
            list: Ordered::new(),
            is_indexed: false,
            index: Index::default(),
            classes: Vec::new(),
            by_source: Register::default(),
            by_name: Register::default(),
        }
    }

    /// Posts a receive, whose number is beyond all others'. `make` makes it: where it is to be, not on the way there.
    #[inline(always)]
    pub(crate) fn push(&mut self, make: impl FnOnce() -> Posted<B>) -> Position {
        if self.is_indexed { self.push_indexed(make()) } else { self.list.push_back(make()) }
    }

    #[inline]
    pub(crate) fn get(&self, at: Position) -> Option<&Posted<B>> {
        self.list.get(at)
    }

    #[inline]
    pub(crate) fn remove(&mut self, at: Position) -> Option<Posted<B>> {
        if self.is_indexed { self.remove_indexed(at) } else { self.list.remove(at) }
    }

    /// Takes the first receive out if it is wanted, and while there is no index.
    #[inline(always)]
    pub(crate) fn take_first(&mut self, wanted: impl Wanted<Posted<B>>) -> Option<Posted<B>> {
        if self.is_indexed { None } else { self.list.take_first(wanted) }
    }

    /// The first receive that accepts a message of `source` with `tag`.
    #[inline]
    pub(crate) fn find(&mut self, source: Target, tag: u64) -> Option<Position> {
        let first = self.list.first()?;
        if self.list.get(first)?.pattern.accepts(source, tag) {
            return Some(first);
        }
        self.find_later(source, tag)
    }

    /// The first receive that accepts the message, where that is not the first of the list.
    #[inline(never)]
    fn find_later(&mut self, source: Target, tag: u64) -> Option<Position> {
        if !self.is_indexed {
            match self.walk(|posted| posted.pattern.accepts(source, tag)) {
                Walk::Found(at) => return Some(at),
                Walk::NotThere => return None,
                Walk::TooLong => self.make_index(),
            }
        }
        let list = &self.list;
        let accepts = |posted: &Posted<B>| {
            steps::count();
            posted.pattern.accepts(source, tag)
        };
        let source = number_of(source);
        let classes = self.classes.iter().enumerate().filter(|(_, counted)| counted.posted > 0);
        let firsts = classes.filter_map(|(number, Counted { class, .. })| {
            steps::count();
            let key = class.key_among(number, source, tag);
            let at = self.index.walk(list, key, &ByOwnKey, usize::MAX, accepts).found()?;
            Some((list.get(at)?.number, at))
        });
        firsts.min_by_key(|(number, _)| *number).map(|(_, at)| at)
    }

    /// Looks at the first few receives.
    fn walk(&self, wanted: impl Fn(&Posted<B>) -> bool) -> Walk {
        self.list.walk(WALK, |posted| {
            steps::count();
            wanted(posted)
        })
    }

    /// Indexes all receives.
    #[cold]
    fn make_index(&mut self) {
        let (mut next, mut count) = (self.list.first(), 0);
        while let Some(at) = next {
            next = self.list.after(at);
            count += 1;
            steps::count();
            self.classify(at);
        }
        self.index.add_all(&mut self.list, count, &ByOwnKey);
        self.is_indexed = true;
    }

    /// Sets the class and the key of the receive at `at`.
    fn classify(&mut self, at: Position) {
        let Some(posted) = self.list.get_mut(at) else { return };
        let wanted = Class::of(&posted.pattern);
        let number = number_of_class(&mut self.classes, wanted);
        let counted = &mut self.classes[number];
        counted.posted += 1;
        posted.class = number as u8;
        posted.key = counted.class.key_among(number, source_of(&posted.pattern), posted.pattern.tag);
    }

    /// The same as [`push`](Self::push), with the index.
    #[inline(never)]
    fn push_indexed(&mut self, posted: Posted<B>) -> Position {
        steps::count();
        let at = self.list.push_back(posted);
        self.classify(at);
        self.index.add(&mut self.list, at, &ByOwnKey);
        at
    }

    /// The same as [`remove`](Self::remove), with the index. The last few receives are found without it.
    #[inline(never)]
    fn remove_indexed(&mut self, at: Position) -> Option<Posted<B>> {
        steps::count();
        let gone = self.list.remove(at)?;
        self.index.remove(&mut self.list, &gone, &ByOwnKey);
        self.classes[gone.class as usize].posted -= 1;
        if self.index.elements() <= FEW {
            self.drop_index();
        }
        Some(gone)
    }

    #[cold]
    fn drop_index(&mut self) {
        if std::mem::take(&mut self.is_indexed) {
            self.index.remove_all(&self.list, &ByOwnKey);
            self.classes.clear();
        }
    }

    /// The first receive beyond `number` that accepts messages of `source`.
    pub(crate) fn first_from(&mut self, source: Target, number: Number) -> Option<&Posted<B>> {
        let wanted = |posted: &Posted<B>| posted.number > number && posted.pattern.may_come_from(source);
        let at = match self.walk(wanted) {
            Walk::Found(at) => Some(at),
            Walk::NotThere => None,
            Walk::TooLong => {
                const ANY: usize = usize::MAX;
                self.by_source.catch_up(&self.list, |posted| match posted.pattern.from {
                    Source::Any => ANY,
                    Source::From(source) => number_of(source) as usize,
                });
                let keys = [ANY, number_of(source) as usize];
                let firsts = keys.into_iter().filter_map(|key| self.by_source.first(&self.list, key, number));
                firsts.min_by_key(|(number, _)| *number).map(|(_, at)| at)
            }
        };
        self.list.get(at?)
    }

    /// The first receive of this name, and where it is. `name_of` says what the application calls one, always the same.
    pub(crate) fn find_named(&mut self, name: usize, name_of: impl Fn(Context) -> usize) -> Option<(Number, Position)> {
        let at = match self.walk(|posted| name_of(posted.context) == name) {
            Walk::Found(at) => at,
            Walk::NotThere => return None,
            Walk::TooLong => {
                self.by_name.catch_up(&self.list, |posted| name_of(posted.context));
                return self.by_name.first(&self.list, name, Number::default());
            }
        };
        Some((self.list.get(at)?.number, at))
    }

    /// All receives, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Posted<B>> {
        self.list.iter()
    }

    /// All receives, the last first.
    pub(crate) fn iter_back(&self) -> impl Iterator<Item = &Posted<B>> {
        std::iter::successors(self.list.last(), |at| self.list.before(*at)).filter_map(|at| self.list.get(at))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Removes all receives for which `wanted` holds, in order.
    pub(crate) fn remove_where(&mut self, wanted: impl Fn(&Posted<B>) -> bool) -> Vec<Posted<B>> {
        self.drop_index();
        self.list.remove_where(wanted)
    }

    /// Changes what receives accept, in place.
    pub(crate) fn change_patterns(&mut self, mut change: impl FnMut(&mut Pattern)) {
        self.drop_index();
        self.by_source = Register::default();
        self.list.for_each_mut(|posted| change(&mut posted.pattern));
    }
}

/// The number of a class; a new one takes the place of one that is empty.
fn number_of_class(classes: &mut Vec<Counted>, wanted: Class) -> usize {
    if let Some(number) = classes.iter().take(CLASSES).position(|counted| counted.class == wanted) {
        return number;
    }
    if let Some(number) = classes.iter().take(CLASSES).position(|counted| counted.posted == 0) {
        classes[number].class = wanted;
        return number;
    }
    let class = match classes.len() {
        0..CLASSES => wanted,
        CLASSES => MIXED,
        _ => return CLASSES,
    };
    classes.push(Counted { class, posted: 0 });
    classes.len() - 1
}

#[cfg(test)]
mod tests;
