//! Floods against small windows: everybody sends before anybody receives, and receives come late, in any order, with
//! and without wildcards, between looks, claims and cancels. Every message arrives, and the bound holds all the time.

use super::programs::{Action, Then, assert_over, drain, perform};
use super::reference::Reference;
use crate::support::{Memory, Random, Setup, World};
use proptest::prelude::*;
use tidegate_message::flow::SchemeName;
use tidegate_message::{Counter, PeerId};

/// Sizes around packets, what a small window has room for, the eager limit and bounce buffers.
const SIZES: [usize; 9] = [0, 1, 40, 41, 300, 1000, 2048, 2049, 5000];

/// With this window for each peer there are newcomers, whose windows are small.
const MUCH: usize = 100_000;

fn setup() -> impl Strategy<Value = Setup> {
    let scheme = prop::sample::select(SchemeName::ALL);
    let slots = prop::sample::select(&[(2, 1), (3, 1), (6, 2), (64, 2)][..]);
    let memory = prop::sample::select(&Memory::ALL[..]);
    let window = prop::sample::select(&[0, 130, 400, 1000, 4000, 12_000, MUCH, MUCH][..]);
    (2..=16usize, scheme, slots, memory, any::<bool>(), window, any::<u64>()).prop_map(
        |(nodes, scheme, (slots, credit_slots), memory, piggyback, window, seed)| {
            let base = Setup { scheme, slots, credit_slots, memory, piggyback, ..Setup::new(nodes) };
            let newcomers = if window == MUCH { nodes as u32 / 2 } else { 0 };
            Setup { window: Some(window), newcomers, scheduled: true, seed, ..base }
        },
    )
}

/// What a flood is made of.
#[derive(Clone, Copy, Debug)]
struct Flood {
    seed: u64,
    messages: usize,
    /// All of one size, or of any.
    size: Option<usize>,
    /// Everybody to this node, or everybody to everybody.
    to: Option<usize>,
    tags: u64,
}

fn flood() -> impl Strategy<Value = Flood> {
    let size = prop::option::of(prop::sample::select(&SIZES[..]));
    (any::<u64>(), 1..300usize, size, prop::option::of(0..2usize), 1..6u64)
        .prop_map(|(seed, messages, size, to, tags)| Flood { seed, messages, size, to, tags })
}

impl Flood {
    fn sends(self, random: &mut Random, nodes: usize) -> Vec<Action> {
        let send = |_| {
            let to = self.to.unwrap_or_else(|| random.below(nodes));
            let size = self.size.unwrap_or_else(|| SIZES[random.below(SIZES.len())]);
            let tag = (!random.one_in(10)).then(|| random.bits() % self.tags);
            let inject = size <= 40 && random.one_in(4);
            Action::Send { from: random.below(nodes), to, tag, size, inject, delivery: random.one_in(12) }
        };
        (0..self.messages).map(send).collect()
    }

    /// Receives in any order: most of what was sent, some of what was not; and what programs do besides.
    fn receives(self, random: &mut Random, nodes: usize) -> Vec<Action> {
        let action = |_| {
            let node = self.to.filter(|_| !random.one_in(10)).unwrap_or_else(|| random.below(nodes));
            let from = random.one_in(2).then(|| random.below(nodes));
            let ignore = [0, 1, u64::MAX][random.below(3)];
            let tag = (!random.one_in(10)).then(|| (random.bits() % (self.tags + 1), ignore));
            match random.below(24) {
                0 => Action::Look { node, from, tag, then: Then::Leave },
                1 => Action::Look { node, from, tag, then: Then::Receive },
                2 => Action::Look { node, from, tag, then: Then::Claim },
                3 => Action::Look { node, from, tag, then: Then::Discard },
                4 => Action::CallFor(random.below(4)),
                5 => Action::Cancel(random.below(self.messages)),
                6..10 => Action::Run(random.below(100)),
                _ => Action::Receive { node, from, tag, capacity: 5000 },
            }
        };
        (0..self.messages * 3 / 2).map(action).collect()
    }
}

/// Judges a run when nothing moves any more, and again when all that is left has been received.
fn assert_ends_well(world: &mut World, reference: &mut Reference) {
    world.settle();
    reference.judge(world);
    drain(world, reference);
    reference.judge(world);
    assert_over(world, reference);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn floods_are_received_late_and_within_the_bound(setup in setup(), flood in flood()) {
        let (mut world, mut reference) = (setup.build(), Reference::default());
        let mut random = Random::new(flood.seed);
        flood.sends(&mut random, setup.nodes).into_iter().for_each(|send| perform(&mut world, &mut reference, send));
        world.settle();
        for receive in flood.receives(&mut random, setup.nodes) {
            perform(&mut world, &mut reference, receive);
        }
        assert_ends_well(&mut world, &mut reference);
    }

    #[test]
    fn floods_while_everybody_receives_stay_within_the_bound(setup in setup(), flood in flood()) {
        let (mut world, mut reference) = (setup.build(), Reference::default());
        let mut random = Random::new(flood.seed);
        let (sends, receives) = (flood.sends(&mut random, setup.nodes), flood.receives(&mut random, setup.nodes));
        let (mut sends, mut receives) = (sends.into_iter(), receives.into_iter());
        while sends.len() + receives.len() > 0 {
            let action = if random.one_in(2) { sends.next() } else { receives.next() };
            action.into_iter().for_each(|action| perform(&mut world, &mut reference, action));
        }
        assert_ends_well(&mut world, &mut reference);
    }
}

#[test]
fn a_flood_beyond_the_window_is_held_and_drains_when_it_is_received() {
    for setup in Setup::all(2, 121) {
        let mut world = Setup { window: Some(400), ..setup }.build();
        let mut reference = Reference::default();
        let send = Action::Send { from: 0, to: 1, tag: Some(7), size: 40, inject: false, delivery: false };
        (0..300).for_each(|_| perform(&mut world, &mut reference, send));
        world.settle();
        assert!(world.counter(0, Counter::SendsDeferred) > 250, "{world}");
        assert!(world.counter(1, Counter::EnvelopesDropped) > 250, "{world}");
        let peak = world.counter(1, Counter::ReceivePeak);
        assert!(peak <= world.counter(1, Counter::ReceiveBound), "{peak}");
        drain(&mut world, &mut reference);
        reference.judge(&world);
        assert_over(&mut world, &reference);
        let messages = world.counter(0, Counter::MessagesEager) + world.counter(0, Counter::MessagesRendezvous);
        assert_eq!(messages, 300, "each counts once, whether it left or was taken from its sender\n{world}");
        let questions = world.counter(1, Counter::Queries);
        assert!(
            questions < 20,
            "{questions} questions: a draining receiver asks now and then, not for each message\n{world}"
        );
    }
}

#[test]
fn a_newcomer_has_a_window_of_two_kilobytes_which_grows_and_the_others_are_not_concerned() {
    for setup in Setup::all(4, 123) {
        let mut world = Setup { window: Some(MUCH), newcomers: 1, ..setup }.build();
        let mut reference = Reference::default();
        let base = world.counter(0, Counter::WindowBytes);
        assert!(base > 40_000, "{base}\n{world}");
        let windows = [0, 1, 2].map(|peer| world.endpoint(0).inspect_window(PeerId(peer)).window);
        assert_eq!(windows.map(u64::from), [base, base, 2048], "{world}");
        let send = |from| Action::Send { from, to: 0, tag: Some(7), size: 40, inject: false, delivery: false };
        for from in [1, 2, 3] {
            (0..60).for_each(|_| perform(&mut world, &mut reference, send(from)));
        }
        world.settle();
        let deferred = [1, 2, 3].map(|from| world.counter(from, Counter::SendsDeferred) > 0);
        assert_eq!(deferred, [false, false, true], "{world}");
        assert!(world.endpoint(0).inspect_window(PeerId(2)).window > 2048, "{world}");
        drain(&mut world, &mut reference);
        reference.judge(&world);
        assert_over(&mut world, &reference);
        let (peak, bound) = (world.counter(0, Counter::ReceivePeak), world.counter(0, Counter::ReceiveBound));
        assert!(peak <= bound, "{peak}");
    }
}

#[test]
fn a_look_names_the_oldest_message_though_a_younger_one_is_offered() {
    // With some number of messages before them, exactly the two of tag 1 find no room.
    for before in 0..30 {
        let mut world = Setup { window: Some(1500), ..Setup::new(2) }.build();
        world.send(0).to(1).tagged(2).data(0).post();
        for _ in 0..before {
            world.send(0).to(1).tagged(3).bytes(&[3; 20]).data(1).post();
        }
        for data in [10, 11] {
            world.send(0).to(1).tagged(1).data(data).post();
        }
        world.settle();
        // The room that this makes lets the first leave; the query that follows finds only the second still deferred.
        let first = world.receive(1).tagged(2).post();
        let look = world.receive(1).from(0).tagged(1).peek().post();
        world.settle();
        world.success(first);
        let found = &world.outcome(look).completion;
        assert!(found.result.is_err() || found.data == Some(10), "{before} before: {found:?}\n{world}");
    }
}

#[test]
fn what_windows_grew_by_is_not_lost() {
    for setup in Setup::all(3, 122) {
        let mut world = Setup { window: Some(2000), ..setup }.build();
        let mut stored = Vec::new();
        for round in 0..8 {
            let mut reference = Reference::default();
            // The senders take turns.
            let from = 1 + round % 2;
            let send = Action::Send { from, to: 0, tag: Some(7), size: 20, inject: false, delivery: false };
            (0..60).for_each(|_| perform(&mut world, &mut reference, send));
            world.settle();
            stored.push(world.counter(0, Counter::UnmatchedBytes));
            drain(&mut world, &mut reference);
            assert_eq!(world.counter(0, Counter::UnmatchedBytes), 0, "{world}");
        }
        let base = world.counter(0, Counter::WindowBytes);
        // Were half of what is spare lost each time, nothing would be left of it by now.
        for half in stored.chunks(4) {
            assert!(half.iter().max() > Some(&base), "it grows again: {stored:?}, {base}\n{world}");
        }
    }
}
