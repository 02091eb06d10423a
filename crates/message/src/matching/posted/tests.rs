use super::*;
use tidegate_flow::PeerId;

type Receives = PostedReceives<()>;

fn peer(number: u64) -> Target {
    Target::Peer(PeerId(number as u32))
}

fn post(receives: &mut Receives, number: u64, pattern: Pattern) -> Position {
    let context = Context(number as usize);
    receives.push(|| Posted::new(Number(number), pattern, context, true, Place::Single(())))
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

/// What `count` receives of `kind` cost each, posting and index included, in steps, when each is looked for once, in
/// the worst order.
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
    let masked = |n| Pattern { from: if n % 2 == 0 { Source::Any } else { from(7) }, tag: n << 8, ignore: n / 2 % 8 };
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
                    let (_, at) = receives.find_named(name_of(Context(n as usize + 1)), name_of).expect("it is there");
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
