//! A matching send and receive that have both started complete, whatever else is pending and however few slots there
//! are.

use crate::support::{Handle, Setup, World, pattern};
use tidegate_message::Counter;

const SIZES: [usize; 4] = [10, 2048, 3000, 300];

fn flood(world: &mut World, from: usize, to: usize, count: usize) {
    for n in 0..count {
        world.send(from).to(to).tagged(from as u64).bytes(&pattern(n, SIZES[n % 4])).post();
    }
}

fn receive_flood(world: &mut World, from: usize, to: usize, count: usize) -> Vec<Handle> {
    (0..count).map(|_| world.receive(to).from(from).tagged(from as u64).capacity(3000).post()).collect()
}

fn assert_flood(world: &World, receives: &[Handle]) {
    for (n, receive) in receives.iter().enumerate() {
        assert!(world.bytes(*receive) == pattern(n, SIZES[n % 4]), "message {n}\n{world}");
    }
}

#[test]
fn both_directions_flood_before_anybody_receives() {
    for setup in Setup::all(2, 101) {
        let mut world = setup.build();
        for (from, to) in [(0, 1), (1, 0)] {
            flood(&mut world, from, to, 40);
        }
        world.steps(500);
        let receives = [receive_flood(&mut world, 0, 1, 40), receive_flood(&mut world, 1, 0, 40)];
        world.settle();
        receives.iter().for_each(|receives| assert_flood(&world, receives));
        assert!(!world.endpoint(0).has_unsent() && !world.endpoint(1).has_unsent());
    }
}

#[test]
fn what_cannot_leave_for_a_while_leaves_later_and_learns_the_window_then() {
    for setup in Setup::all(2, 103) {
        let mut world = Setup { window: Some(50_000), ..setup }.build();
        world.network().hindered = Some((0, 1));
        flood(&mut world, 0, 1, 40);
        world.settle();
        assert_eq!(world.counter(1, Counter::PacketsReceived), 0);
        world.network().hindered = None;
        let receives = receive_flood(&mut world, 0, 1, 40);
        world.settle();
        assert_flood(&world, &receives);
        // From now on the window is what the peer sets aside, and has room for these.
        let held = world.counter(0, Counter::SendsDeferred);
        flood(&mut world, 0, 1, 4);
        assert_eq!(world.counter(0, Counter::SendsDeferred), held, "{world}");
        let receives = receive_flood(&mut world, 0, 1, 4);
        world.settle();
        assert_flood(&world, &receives);
        assert_eq!(world.counter(1, Counter::Violations), 0);
    }
}

#[test]
fn all_to_all_floods_drain() {
    for setup in Setup::all(5, 102) {
        let mut world = setup.build();
        let pairs: Vec<_> = (0..5).flat_map(|from| (0..5).map(move |to| (from, to))).collect();
        pairs.iter().for_each(|(from, to)| flood(&mut world, *from, *to, 8));
        let receives: Vec<_> = pairs.iter().map(|(from, to)| receive_flood(&mut world, *from, *to, 8)).collect();
        world.settle();
        receives.iter().for_each(|receives| assert_flood(&world, receives));
    }
}

#[test]
fn a_stopped_receiver_holds_up_nobody_else() {
    // Who is refused tries again for ever.
    for setup in Setup::all(4, 103).filter(Setup::never_refuses) {
        let mut world = setup.build();
        world.pause(3);
        for from in 0..3 {
            flood(&mut world, from, 3, 20);
            flood(&mut world, from, (from + 1) % 3, 20);
        }
        let others: Vec<_> = (0..3).map(|from| receive_flood(&mut world, from, (from + 1) % 3, 20)).collect();
        world.settle();
        others.iter().for_each(|receives| assert_flood(&world, receives));
        world.resume(3);
        let stopped: Vec<_> = (0..3).map(|from| receive_flood(&mut world, from, 3, 20)).collect();
        world.settle();
        stopped.iter().for_each(|receives| assert_flood(&world, receives));
    }
}

#[test]
fn bursts_after_silence_get_through() {
    // Long one-way traffic moves dynamic slots to the active sender; the silent ones must still get theirs back.
    for setup in Setup::all(4, 104) {
        let mut world = setup.build();
        for round in 0..4 {
            let active = 1 + round % 3;
            flood(&mut world, active, 0, 30);
            let receives = receive_flood(&mut world, active, 0, 30);
            world.settle();
            assert_flood(&world, &receives);
        }
        for from in 1..4 {
            flood(&mut world, from, 0, 10);
        }
        let receives: Vec<_> = (1..4).map(|from| receive_flood(&mut world, from, 0, 10)).collect();
        world.settle();
        receives.iter().for_each(|receives| assert_flood(&world, receives));
    }
}

#[test]
fn sends_that_wait_for_credits_are_counted() {
    let mut world = Setup { slots: 2, credit_slots: 1, scheduled: true, ..Setup::new(2) }.build();
    flood(&mut world, 0, 1, 8);
    let receives = receive_flood(&mut world, 0, 1, 8);
    world.settle();
    assert_flood(&world, &receives);
    assert!(world.counter(0, Counter::SendsDelayed) > 0 && world.counter(0, Counter::DelayNanoseconds) > 0);
    assert!(world.counter(1, Counter::CreditPackets) + world.counter(1, Counter::CreditsPiggybacked) > 0);
}
