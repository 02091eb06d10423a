//! Random programs under random delays, judged by the reference of `reference.rs`. A failing program is shrunk and
//! printed.

use super::reference::{Posted, Purpose, Reference, Sent};
use crate::support::{Handle, Memory, ReceiveBuilder, Setup, World, pattern};
use proptest::prelude::*;
use tidegate_message::flow::SchemeName;
use tidegate_message::{Counter, Space};

/// Sizes around every boundary: packets, the eager limit, bounce buffers, pieces.
const SIZES: [usize; 10] = [0, 1, 40, 41, 300, 2048, 2049, 3600, 4100, 9000];

/// One step of a program. Nodes are numbers modulo the nodes of the job.
#[derive(Clone, Copy, Debug)]
pub enum Action {
    Send {
        from: usize,
        to: usize,
        tag: Option<u64>,
        size: usize,
        inject: bool,
        delivery: bool,
    },
    Receive {
        node: usize,
        from: Option<usize>,
        tag: Option<(u64, u64)>,
        capacity: usize,
    },
    /// Looks for a message and waits for the answer.
    Look {
        node: usize,
        from: Option<usize>,
        tag: Option<(u64, u64)>,
        then: Then,
    },
    /// Receives a claimed message.
    CallFor(usize),
    /// Cancels one of the receives posted so far.
    Cancel(usize),
    /// Lets the network and the endpoints run for a while.
    Run(usize),
    Pause(usize),
    Resume(usize),
}

/// What becomes of a message that a look has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Leave,
    Receive,
    Claim,
    Discard,
}

fn action() -> impl Strategy<Value = Action> {
    let tag = || prop::option::weighted(0.8, 0..3u64);
    let size = || prop::sample::select(&SIZES[..]);
    let filter = prop::option::weighted(0.8, (0..3u64, prop::sample::select(&[0, 1, u64::MAX][..])));
    let send = (0..8usize, 0..8usize, tag(), size(), prop::bool::weighted(0.2), prop::bool::weighted(0.2));
    let receive = (0..8usize, prop::option::weighted(0.6, 0..8usize), filter.clone(), size());
    let look = (0..8usize, prop::option::weighted(0.6, 0..8usize), filter.clone(), then());
    prop_oneof![
        8 => send.prop_map(|(from, to, tag, size, inject, delivery)| {
            Action::Send { from, to, tag, size, inject: inject && size <= 300, delivery }
        }),
        8 => receive.prop_map(|(node, from, tag, capacity)| Action::Receive { node, from, tag, capacity }),
        2 => look.prop_map(|(node, from, tag, then)| Action::Look { node, from, tag, then }),
        1 => (0..100usize).prop_map(Action::CallFor),
        1 => (0..100usize).prop_map(Action::Cancel),
        4 => (1..60usize).prop_map(Action::Run),
        1 => (0..8usize).prop_map(Action::Pause),
        1 => (0..8usize).prop_map(Action::Resume),
    ]
}

fn then() -> impl Strategy<Value = Then> {
    prop::sample::select(&[Then::Leave, Then::Receive, Then::Claim, Then::Discard][..])
}

fn setup() -> impl Strategy<Value = Setup> {
    let scheme = prop::sample::select(SchemeName::ALL);
    let slots = prop::sample::select(&[(2, 1), (3, 1), (4, 1), (6, 2), (16, 2), (64, 2)][..]);
    let memory = prop::sample::select(&Memory::ALL[..]);
    let window = prop::sample::select(&[None, Some(0), Some(200), Some(600), Some(3000), Some(20_000)][..]);
    let few = prop::sample::select(&[None, None, Some(0), Some(3000), Some(10_000)][..]);
    (2..=8usize, scheme, slots, memory, any::<bool>(), window, few, any::<u64>()).prop_map(
        |(nodes, scheme, (slots, credit_slots), memory, piggyback, window, few, seed)| {
            let base = Setup { scheme, slots, credit_slots, memory, piggyback, window, few, ..Setup::new(nodes) };
            Setup { scheduled: true, seed, ..base }
        },
    )
}

/// Bursts of sends to node 0, and little that it receives.
fn crowding() -> impl Strategy<Value = Vec<Action>> {
    let filter = || prop::option::weighted(0.8, (0..3u64, prop::sample::select(&[0, 1, u64::MAX][..])));
    let from = || prop::option::weighted(0.5, 1..5usize);
    let (tag, size) = (prop::option::weighted(0.8, 0..3u64), prop::sample::select(&[0, 40, 41, 300, 2049, 9000][..]));
    let send = (1..5usize, tag, size, prop::bool::weighted(0.2), prop::bool::weighted(0.1));
    let sends = (send, 1..14usize).prop_map(|((from, tag, size, inject, delivery), times)| {
        vec![Action::Send { from, to: 0, tag, size, inject: inject && size <= 300, delivery }; times]
    });
    let receives = (from(), filter(), 1..4usize)
        .prop_map(|(from, tag, times)| vec![Action::Receive { node: 0, from, tag, capacity: 300 }; times]);
    let other = prop_oneof![
        3 => (from(), filter(), then()).prop_map(|(from, tag, then)| Action::Look { node: 0, from, tag, then }),
        2 => (0..60usize).prop_map(Action::Cancel),
        1 => (0..20usize).prop_map(Action::CallFor),
        5 => (1..60usize).prop_map(Action::Run),
        1 => (0..5usize).prop_map(Action::Pause),
        1 => (0..5usize).prop_map(Action::Resume),
    ];
    prop_oneof![14 => sends, 4 => receives, 13 => other.prop_map(|action| vec![action])]
}

/// Receive memory for one sender at a time, or a few.
fn turns() -> impl Strategy<Value = Setup> {
    let (scheme, few) = (prop::sample::select(SchemeName::ALL), prop::sample::select(&[0, 0, 700, 3000][..]));
    let (slots, memory) = (prop::sample::select(&[(3, 1), (16, 2)][..]), prop::sample::select(&Memory::ALL[..]));
    (3..=5usize, scheme, slots, memory, few, any::<u64>()).prop_map(
        |(nodes, scheme, (slots, credit_slots), memory, few, seed)| {
            let base = Setup { scheme, slots, credit_slots, memory, few: Some(few), ..Setup::new(nodes) };
            Setup { scheduled: true, seed, ..base }
        },
    )
}

/// Runs a program; returns the world, in which nothing moves any more, and the operations that it was given.
fn run(setup: Setup, program: &[Action]) -> (World, Reference) {
    let (mut world, mut reference) = (setup.build(), Reference::default());
    for action in program {
        perform(&mut world, &mut reference, *action);
    }
    (0..setup.nodes).for_each(|node| world.resume(node));
    world.settle();
    (world, reference)
}

pub fn perform(world: &mut World, reference: &mut Reference, action: Action) {
    let nodes = world.setup.nodes;
    match action {
        Action::Send { from, to, tag, size, inject, delivery } => {
            let (id, from, to) = (reference.sent.len(), from % nodes, to % nodes);
            let send = world.send(from).to(to).bytes(&pattern(id, size)).data(id as u64);
            let send = if let Some(tag) = tag { send.tagged(tag) } else { send };
            let send = if inject { send.inject() } else { send };
            let handle = if delivery { send.delivery() } else { send }.post();
            reference.sent.push(Sent { handle, from, to, tag, size, id });
        }
        Action::Receive { node, from, tag, capacity } => {
            let wish = Wish { node: node % nodes, from: from.map(|from| from % nodes), tag };
            receive(world, reference, wish, capacity, Purpose::Any);
        }
        Action::Look { node, from, tag, then } => {
            look(world, reference, Wish { node: node % nodes, from: from.map(|from| from % nodes), tag }, then);
        }
        Action::CallFor(which) if which < reference.claimed.len() => {
            let (claim, id) = reference.claimed.swap_remove(which);
            call_for(world, reference, claim, id);
        }
        Action::CallFor(_) => {}
        Action::Cancel(which) => {
            if let Some(receive) = reference.posted.get(which) {
                world.cancel(receive.handle);
            }
        }
        Action::Run(steps) => world.steps(steps),
        Action::Pause(node) => world.pause(node % nodes),
        Action::Resume(node) => world.resume(node % nodes),
    }
}

/// Which messages a receive or a look accepts.
#[derive(Clone, Copy)]
struct Wish {
    node: usize,
    from: Option<usize>,
    tag: Option<(u64, u64)>,
}

impl Wish {
    fn builder(self, world: &mut World) -> ReceiveBuilder<'_> {
        let receive = world.receive(self.node);
        let receive = if let Some(from) = self.from { receive.from(from) } else { receive };
        if let Some((tag, ignore)) = self.tag { receive.matching(tag, ignore) } else { receive }
    }

    fn posted(self, handle: Handle, capacity: usize, purpose: Purpose) -> Posted {
        let Wish { node, from, tag } = self;
        Posted { handle, node, from, tag, capacity, purpose }
    }
}

fn receive(world: &mut World, reference: &mut Reference, wish: Wish, capacity: usize, purpose: Purpose) {
    let handle = wish.builder(world).capacity(capacity).post();
    reference.posted.push(wish.posted(handle, capacity, purpose));
}

/// Looks for a message. Nobody may be paused: the answer may have to come from any sender.
fn look(world: &mut World, reference: &mut Reference, wish: Wish, then: Then) {
    (0..world.setup.nodes).for_each(|node| {
        if world.is_alive(node) {
            world.resume(node)
        }
    });
    let peek = wish.builder(world).peek();
    let handle = match then {
        Then::Leave | Then::Receive => peek,
        Then::Claim => peek.claim(),
        Then::Discard => peek.discard(),
    }
    .post();
    world.run_until("the look has its answer", |world| world.is_done(handle));
    let completion = world.outcome(handle).completion.clone();
    let found = completion.data.map(|id| id as usize);
    let takes = matches!(then, Then::Claim | Then::Discard);
    reference.posted.push(wish.posted(handle, 0, Purpose::Look { found, takes }));
    match (then, found, completion.space) {
        (Then::Claim, Some(id), _) => reference.claimed.push((handle, id)),
        (Then::Receive, Some(id), space) => {
            let from = completion.source.map(|source| world.node_of(wish.node, source));
            let tag = if let Space::Tagged { tag, .. } = space { Some((tag, 0)) } else { None };
            receive(world, reference, Wish { from, tag, ..wish }, 9000, Purpose::This(id));
        }
        _ => {}
    }
}

/// Receives a claimed message.
fn call_for(world: &mut World, reference: &mut Reference, claim: Handle, id: usize) {
    let Sent { tag, .. } = reference.sent[id];
    let wish = Wish { node: claim.node, from: None, tag: tag.map(|tag| (tag, 0)) };
    let handle = wish.builder(world).claim().context_of(claim).capacity(9000).post();
    reference.called_for.push((wish.posted(handle, 9000, Purpose::This(id)), id));
}

fn call_for_all(world: &mut World, reference: &mut Reference) {
    for (claim, id) in std::mem::take(&mut reference.claimed) {
        if world.is_alive(claim.node) {
            call_for(world, reference, claim, id);
        }
    }
}

/// Receives whatever nobody has received, with receives that accept everything.
pub fn drain(world: &mut World, reference: &mut Reference) {
    call_for_all(world, reference);
    for node in 0..world.setup.nodes {
        for tag in [None, Some((0, u64::MAX))] {
            for _ in 0..reference.sent.len() {
                perform(world, reference, Action::Receive { node, from: None, tag, capacity: 9000 });
            }
        }
    }
    world.settle();
}

/// Checks that everything has been received and that nothing is left of it.
pub fn assert_over(world: &mut World, reference: &Reference) {
    for sent in &reference.sent {
        assert_eq!(world.success(sent.handle).length, sent.size, "{sent:?}");
    }
    for node in 0..world.setup.nodes {
        assert!(!world.endpoint(node).has_unsent(), "{world}");
        for gauge in [Counter::UnexpectedBytes, Counter::UnmatchedBytes, Counter::Violations] {
            assert_eq!(world.counter(node, gauge), 0, "{gauge:?} of {node}\n{world}");
        }
        let bound = world.counter(node, Counter::ReceiveBound);
        assert!(world.counter(node, Counter::ReceivePeak) <= bound, "{world}");
        let slots = world.network().slots();
        assert!(world.network().peak(node) <= slots, "{world}");
        world.assert_windows(node);
    }
}

proptest! {
    #[test]
    fn every_program_obeys_the_rules_of_matching(setup in setup(), program in prop::collection::vec(action(), 1..120)) {
        let (mut world, mut reference) = run(setup, &program);
        reference.judge(&world);
        drain(&mut world, &mut reference);
        reference.judge(&world);
        assert_over(&mut world, &reference);
    }

    /// Turns in which senders only tell the number of their sends (S6).
    #[test]
    fn programs_in_turns_obey_them_too(setup in turns(), program in prop::collection::vec(crowding(), 1..50)) {
        let (mut world, mut reference) = run(setup, &program.concat());
        reference.judge(&world);
        drain(&mut world, &mut reference);
        reference.judge(&world);
        assert_over(&mut world, &reference);
    }

    #[test]
    fn survivors_finish_whatever_dies(
        setup in setup(),
        before in prop::collection::vec(action(), 1..60),
        after in prop::collection::vec(action(), 1..60),
    ) {
        let (mut world, mut reference) = (setup.build(), Reference::default());
        before.iter().for_each(|action| perform(&mut world, &mut reference, *action));
        let posted_before = reference.posted.len();
        world.kill(0);
        let survivors = |action: &&Action| match action {
            Action::Send { from, .. } => from % setup.nodes != 0,
            Action::Receive { node, .. } | Action::Pause(node) | Action::Resume(node) => node % setup.nodes != 0,
            Action::Look { node, .. } => node % setup.nodes != 0,
            Action::CallFor(_) | Action::Cancel(_) => false,
            Action::Run(_) => true,
        };
        after.iter().filter(survivors).for_each(|action| perform(&mut world, &mut reference, *action));
        (1..setup.nodes).for_each(|node| world.resume(node));
        world.settle();
        call_for_all(&mut world, &mut reference);
        // With everything that survivors sent each other received, none of their operations is left, bar receives.
        for node in 1..setup.nodes {
            for tag in [None, Some((0, u64::MAX))] {
                for _ in 0..reference.sent.len() {
                    perform(&mut world, &mut reference, Action::Receive { node, from: None, tag, capacity: 9000 });
                }
            }
        }
        world.settle();
        for sent in reference.sent.iter().filter(|sent| sent.from != 0) {
            prop_assert!(world.is_done(sent.handle), "{:?} hangs\n{}", sent, world);
            if sent.to != 0 {
                prop_assert_eq!(&world.outcome(sent.handle).completion.result, &Ok(()));
            }
        }
        // Later ones may name a place that was given back already; who holds it then is not this crate's to know.
        let before_death = reference.posted[..posted_before].iter();
        for posted in before_death.filter(|posted| posted.node != 0 && posted.from == Some(0)) {
            prop_assert!(world.is_done(posted.handle), "{:?} hangs\n{}", posted, world);
        }
        for node in 1..setup.nodes {
            prop_assert!(!world.endpoint(node).has_unsent(), "{}", world);
            prop_assert_eq!(world.counter(node, Counter::UnexpectedBytes), 0, "{}", world);
        }
    }
}
