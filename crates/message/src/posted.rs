//! The posted receives of one matching space.
//!
//! They stand in one list in order of posting, and the first that accepts a message gets it. Mostly that is the very first, so this is
//! looked at before anything else, and a short list is simply walked. *The simple idea*, to walk a long one too, makes a program pay
//! for every receive that it has posted with every message that comes in another order. So a list in which a search has
//! walked [`WALK`] receives in vain is *indexed* until few are left: chained by a hash of what they accept.
//!
//! A hash needs to know which bits a receive looks at. Receives that ignore the same bits, and agree in whether they name a source,
//! are of one [`Class`]; programs use few of them (MPIs: exact, any tag, any source, both). A message is looked up once in
//! each class, and of what is found the receive with the lowest number wins: exactly the one that a walk would have found. Receives of
//! more than [`CLASSES`] classes share a last one, which is walked.
//!
//! Two questions are rare: which receive an application means that takes one back, and which is the next one that a certain
//! sender could satisfy (`ask`). A [`Register`] answers them. It catches up with the list only when it is asked, so posting and
//! matching pay nothing for it.

use crate::envelope::{Number, Pattern};
use crate::index::{By, Class, Index, TagKey, source_of};
use crate::list::{Links, Ordered, Position, Walk};
use crate::matching::Place;
use crate::operation::{Context, Source, Target};
use std::collections::BTreeMap;
use std::fmt;

/// Receives that a search passes before it makes an index.
const WALK: usize = 16;
/// Receives that are left when the index is given up.
const FEW: usize = 4;
/// Classes that are told apart.
const CLASSES: usize = 16;

/// A receive that waits for a message.
pub(crate) struct Posted<B> {
    pub(crate) number: Number,
    pub(crate) pattern: Pattern,
    pub(crate) context: Context,
    pub(crate) report: bool,
    pub(crate) place: Place<B>,
    /// Its class and key, while it is indexed.
    class: u8,
    key: TagKey,
    links: Links,
}

impl<B> Posted<B> {
    #[inline]
    pub(crate) fn new(number: Number, pattern: Pattern, context: Context, report: bool, place: Place<B>) -> Self {
        Posted { number, pattern, context, report, place, class: 0, key: 0, links: Links::default() }
    }
}

/// Without what follows from the list.
impl<B: fmt::Debug> fmt::Debug for Posted<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Posted { number, pattern, context, report, place, .. } = self;
        f.debug_tuple("Posted").field(number).field(pattern).field(context).field(report).field(place).finish()
    }
}

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

/// This endpoint itself, then its peers.
#[inline]
pub(crate) fn number_of(source: Target) -> u64 {
    match source {
        Target::Myself => 0,
        Target::Peer(peer) => u64::from(peer.0) + 1,
    }
}

/// Posted receives by something other than their order: by whatever number the caller knows them by, those with the same number
/// in order of posting.
///
/// It does not hear of receives that are posted or gone. When it is asked it adds those beyond the last that it has seen, which
/// are the end of the list, and drops on its way those that are there no more.
#[derive(Default)]
struct Register {
    entries: BTreeMap<(usize, Number), Position>,
    /// All receives up to this one are entered.
    until: Number,
    /// Entries when it was last made from nothing.
    begun_with: usize,
}

impl Register {
    /// Entries that may be out of date before all are thrown away, as many as there were at the beginning apart.
    const SLACK: usize = 64;

    fn catch_up<B>(&mut self, list: &Ordered<Posted<B>>, key_of: impl Fn(&Posted<B>) -> usize) {
        let anew = self.entries.len() > 2 * self.begun_with + Self::SLACK;
        if anew {
            *self = Register::default();
        }
        let mut at = list.last();
        while let Some((here, posted)) = at.and_then(|here| Some((here, list.get(here)?)))
            && posted.number > self.until
        {
            steps::count();
            self.entries.insert((key_of(posted), posted.number), here);
            at = list.before(here);
        }
        if let Some(last) = list.last().and_then(|last| list.get(last)) {
            self.until = last.number;
        }
        if anew {
            self.begun_with = self.entries.len();
        }
    }

    /// The first receive beyond `after` that is known by `key`.
    fn first<B>(&mut self, list: &Ordered<Posted<B>>, key: usize, after: Number) -> Option<(Number, Position)> {
        loop {
            steps::count();
            let later = (key, Number(after.0 + 1))..=(key, Number(u64::MAX));
            let (&(_, number), &at) = self.entries.range(later).next()?;
            if list.get(at).is_some_and(|posted| posted.number == number) {
                return Some((number, at));
            }
            self.entries.remove(&(key, number));
        }
    }
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

    /// Posts a receive, whose number is beyond all others'.
    #[inline]
    pub(crate) fn push(&mut self, posted: Posted<B>) -> Position {
        if self.is_indexed { self.push_indexed(posted) } else { self.list.push_back(posted) }
    }

    #[inline]
    pub(crate) fn get(&self, at: Position) -> Option<&Posted<B>> {
        self.list.get(at)
    }

    #[inline]
    pub(crate) fn remove(&mut self, at: Position) -> Option<Posted<B>> {
        if self.is_indexed { self.remove_indexed(at) } else { self.list.remove(at) }
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

    /// The same, where it is not the very first.
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

/// How many elements the calls of this thread have looked at or moved, for tests. Nothing elsewhere.
pub(crate) mod steps {
    #[cfg(test)]
    thread_local!(static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) });

    #[inline(always)]
    pub(crate) fn count() {
        #[cfg(test)]
        STEPS.with(|steps| steps.set(steps.get() + 1));
    }

    /// The steps that `run` takes.
    #[cfg(test)]
    pub(crate) fn of(run: impl FnOnce()) -> u64 {
        let before = STEPS.with(|steps| steps.get());
        run();
        STEPS.with(|steps| steps.get()) - before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_flow::PeerId;

    type Receives = PostedReceives<()>;

    fn peer(number: u64) -> Target {
        Target::Peer(PeerId(number as u32))
    }

    fn post(receives: &mut Receives, number: u64, pattern: Pattern) -> Position {
        let context = Context(number as usize);
        receives.push(Posted::new(Number(number), pattern, context, true, Place::Single(())))
    }

    fn any(tag: u64) -> Pattern {
        Pattern { from: Source::Any, tag, ignore: 0 }
    }

    /// A generator of numbers that are random enough.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % bound
        }

        /// An envelope, or what a receive names of one: few peers, and tags that have much in common.
        fn envelope(&mut self) -> (Target, u64) {
            let source = if self.below(5) == 0 { Target::Myself } else { peer(self.below(3)) };
            (source, self.below(3) << 60 | self.below(3) << 31 | self.below(40))
        }

        fn pattern(&mut self, masks: u64) -> Pattern {
            let (source, tag) = self.envelope();
            let from = if self.below(3) == 0 { Source::Any } else { Source::From(source) };
            let ignore = match self.below(masks) {
                0..10 => 0,
                10 => u64::MAX,
                11 => (1 << 31) - 1,
                12 => 3 << 60,
                other => other - 12,
            };
            Pattern { from, tag, ignore }
        }
    }

    /// The simple idea: a plain list that is walked.
    #[derive(Default)]
    struct Plain(Vec<(u64, Pattern)>);

    impl Plain {
        fn find(&self, wanted: impl Fn(&(u64, Pattern)) -> bool) -> Option<u64> {
            self.0.iter().find(|posted| wanted(posted)).map(|(number, _)| *number)
        }
    }

    /// What applications call receives: some names are used for many.
    fn name_of(context: Context) -> usize {
        if context.0.is_multiple_of(3) { context.0 % 7 } else { context.0 }
    }

    fn number_at(receives: &Receives, at: Option<Position>) -> Option<u64> {
        at.map(|at| receives.get(at).expect("it was found there").number.0)
    }

    /// Random posts, messages, cancels, questions and departures. `masks`: how many masks there are to choose from.
    fn run_beside_a_plain_list(masks: u64, seed: u64) {
        let (mut receives, mut plain, mut random) = (Receives::new(), Plain::default(), Random(seed));
        let (mut matched, mut made, mut given_up, mut mixed) = (0, 0, 0, false);
        for number in 1..12_000 {
            let was_indexed = receives.is_indexed;
            let is_filling = number / 600 % 2 == 0;
            if random.below(4) < if is_filling { 3 } else { 1 } {
                let pattern = random.pattern(masks);
                post(&mut receives, number, pattern);
                plain.0.push((number, pattern));
            } else {
                let (source, tag) = random.envelope();
                let gone = match random.below(200) {
                    0..30 => {
                        let name = name_of(Context(random.below(number) as usize));
                        let found = receives.find_named(name, name_of).map(|(_, at)| at);
                        let expected = plain.find(|(number, _)| name_of(Context(*number as usize)) == name);
                        assert_eq!(number_at(&receives, found), expected, "{number}: cancel {name}");
                        found
                    }
                    30..60 => {
                        let after = random.below(number);
                        let found = receives.first_from(source, Number(after)).map(|posted| posted.number.0);
                        let expected = plain.find(|(number, pattern)| *number > after && pattern.may_come_from(source));
                        assert_eq!(found, expected, "{number}: the next of {source:?} after {after}");
                        None
                    }
                    60 => {
                        let named = Source::From(source);
                        let removed = receives.remove_where(|posted| posted.pattern.from == named);
                        let removed: Vec<_> = removed.iter().map(|posted| posted.number.0).collect();
                        let expected = plain.0.extract_if(.., |(_, pattern)| pattern.from == named);
                        assert_eq!(removed, expected.map(|(number, _)| number).collect::<Vec<_>>(), "{number}");
                        None
                    }
                    61 => {
                        let (from, to) = (Source::From(source), Source::From(peer(2)));
                        let change = |pattern: &mut Pattern| {
                            if pattern.from == from {
                                pattern.from = to
                            }
                        };
                        receives.change_patterns(change);
                        plain.0.iter_mut().for_each(|(_, pattern)| change(pattern));
                        None
                    }
                    _ => {
                        let found = receives.find(source, tag);
                        let expected = plain.find(|(_, pattern)| pattern.accepts(source, tag));
                        assert_eq!(number_at(&receives, found), expected, "{number}: {source:?} {tag:#x}");
                        found
                    }
                };
                if let Some(removed) = gone.and_then(|at| receives.remove(at)) {
                    plain.0.retain(|(number, _)| *number != removed.number.0);
                    matched += 1;
                }
            }
            made += usize::from(receives.is_indexed && !was_indexed);
            given_up += usize::from(was_indexed && !receives.is_indexed);
            mixed |= receives.classes.len() > CLASSES;
        }
        assert!(matched > 2000 && made > 5 && given_up > 5, "{matched} matched, {made} indices, {given_up} given up");
        assert_eq!(mixed, masks > 15, "some receives were of more than {CLASSES} classes");
    }

    #[test]
    fn whatever_is_asked_is_answered_as_by_a_plain_list() {
        for seed in 0..8 {
            run_beside_a_plain_list(13, seed);
            run_beside_a_plain_list(15, seed);
            run_beside_a_plain_list(19, seed);
            run_beside_a_plain_list(70, seed);
        }
    }

    /// What `count` receives of `kind` cost each, posting and index included, in steps, when each is asked for once in the worst
    /// order.
    fn steps_each(count: u64, ask: impl Fn(&mut Receives, u64)) -> f64 {
        steps::of(|| {
            let mut receives = Receives::new();
            ask(&mut receives, count);
        }) as f64
            / count as f64
    }

    /// Posts `count` receives, and then takes each by a message, last first.
    fn match_in_reverse(pattern: impl Fn(u64) -> Pattern, message: impl Fn(u64) -> (Target, u64)) -> [f64; 2] {
        [500, 20_000].map(|count| {
            steps_each(count, |receives, count| {
                (0..count).for_each(|n| _ = post(receives, n + 1, pattern(n)));
                for n in (0..count).rev() {
                    let (source, tag) = message(n);
                    let at = receives.find(source, tag).expect("it is posted");
                    assert_eq!(receives.remove(at).map(|posted| posted.number), Some(Number(n + 1)));
                }
                assert!(!receives.is_indexed, "nothing is left");
            })
        })
    }

    #[track_caller]
    fn assert_flat(what: &str, [few, many]: [f64; 2]) {
        assert!(few <= 12.0 && many <= 1.2 * few, "{what}: {few} steps each of 500, {many} of 20,000");
    }

    #[test]
    fn a_match_takes_no_more_steps_among_20_000_than_among_500() {
        const TAG_BITS: u64 = (1 << 31) - 1;
        let from = |n| Source::From(peer(n % 1000));
        for step in [1, 2, 3, 64, 1000, 4096, 1 << 20, 1 << 40, 1 << 49] {
            let exact = |n| Pattern { from: Source::From(peer(1)), ..any(n * step) };
            assert_flat(&format!("tags, step {step}"), match_in_reverse(exact, |n| (peer(1), n * step)));
            assert_flat("tags, any source", match_in_reverse(|n| any(n * step), |n| (peer(1), n * step)));
        }
        let sources = |n| Pattern { from: from(n), ..any(n / 1000) };
        assert_flat("sources", match_in_reverse(sources, |n| (peer(n % 1000), n / 1000)));
        let any_tag = |n| Pattern { from: Source::Any, tag: n << 31, ignore: TAG_BITS };
        assert_flat("any tag", match_in_reverse(any_tag, |n| (peer(1), n << 31 | 5)));
        // Eight masks, with and without a source: as many classes as are told apart.
        let masked =
            |n| Pattern { from: if n % 2 == 0 { Source::Any } else { from(7) }, tag: n << 8, ignore: n / 2 % 8 };
        let [few, many] = match_in_reverse(masked, |n| (peer(7), n << 8));
        assert!(few <= 60.0 && many <= 1.2 * few, "masks: {few} steps each of 500, {many} of 20,000");
    }

    #[test]
    fn a_message_that_no_receive_waits_for_takes_few_steps_too() {
        let unmatched = [500, 20_000].map(|count| {
            steps_each(count, |receives, count| {
                (0..count).for_each(|n| _ = post(receives, n + 1, any(n)));
                (0..count).for_each(|n| assert_eq!(receives.find(peer(1), count + n), None));
            })
        });
        assert_flat("unmatched", unmatched);
    }

    #[test]
    fn masks_that_are_no_longer_in_use_cost_nothing() {
        let changing = [500, 20_000].map(|count| {
            steps_each(count, |receives, count| {
                (0..100).for_each(|n| _ = post(receives, n + 1, any(n << 32)));
                for n in 0..count {
                    let unheard_of = Pattern { from: Source::Any, tag: 1 << 31, ignore: n };
                    let at = post(receives, n + 101, unheard_of);
                    assert_eq!(receives.find(peer(1), 1 << 31), Some(at));
                    receives.remove(at);
                }
            })
        });
        assert_flat("masks one after another", changing);
    }

    #[test]
    fn wildcards_that_all_accept_a_message_are_taken_in_order_without_a_search() {
        let wildcard = Pattern { from: Source::Any, tag: 0, ignore: u64::MAX };
        let in_order = steps_each(20_000, |receives, count| {
            (0..count).for_each(|n| _ = post(receives, n + 1, wildcard));
            for n in 0..count {
                let at = receives.find(peer(1), n).expect("anything will do");
                assert_eq!(receives.remove(at).map(|posted| posted.number), Some(Number(n + 1)));
            }
        });
        assert_eq!(in_order, 0.0, "the first will do, and nothing is indexed");
    }

    #[test]
    fn a_cancel_takes_no_more_steps_among_20_000_than_among_500() {
        let names = [|context: Context| context.0, |context: Context| context.0 % 10, |_: Context| 0];
        for name_of in names {
            let cancel = [500, 20_000].map(|count| {
                steps_each(count, |receives, count| {
                    (0..count).for_each(|n| _ = post(receives, n + 1, any(n)));
                    for n in (0..count).rev() {
                        let (_, at) =
                            receives.find_named(name_of(Context(n as usize + 1)), name_of).expect("it is there");
                        receives.remove(at);
                        // Somebody posts another, so that the register has to catch up each time.
                        if n % 2 == 0 {
                            post(receives, 2 * count - n, any(n));
                        }
                    }
                })
            });
            assert_flat("cancel", cancel.map(|steps| steps / 4.0));
        }
    }

    #[test]
    fn the_next_receive_that_a_sender_could_satisfy_takes_few_steps_however_many_it_could_not() {
        let next = [500, 20_000].map(|count| {
            steps_each(count, |receives, count| {
                for n in 0..count {
                    post(receives, 2 * n + 1, Pattern { from: Source::From(peer(1)), ..any(n) });
                    post(receives, 2 * n + 2, Pattern { from: Source::From(peer(2)), ..any(n) });
                    let next = receives.first_from(peer(2), Number(2 * n)).map(|posted| posted.number);
                    assert_eq!(next, Some(Number(2 * n + 2)));
                }
            })
        });
        assert_flat("next", next.map(|steps| steps / 2.0));
    }

    #[test]
    fn a_register_does_not_keep_what_is_gone() {
        let mut receives = Receives::new();
        let mut posted = std::collections::VecDeque::new();
        for number in 1..50_000 {
            posted.push_back(post(&mut receives, number, any(number)));
            if posted.len() > 100 {
                receives.remove(posted.pop_front().unwrap());
            }
            assert_eq!(receives.find_named(0, |context| context.0), None);
            assert!(receives.by_name.entries.len() < 500, "{}", receives.by_name.entries.len());
        }
    }
}
