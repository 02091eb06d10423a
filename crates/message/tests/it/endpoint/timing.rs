//! Time is what the endpoint is told: what it counts, and when it wants to be called though nothing has come.
//! (`World::progress` checks in all tests that an endpoint that may sleep has nothing to do.)

use crate::support::{Memory, Setup, World, pattern};
use std::time::Duration;
use tidegate_message::Counter;
use tidegate_message::flow::SchemeName;

const A_WHILE: Duration = Duration::from_micros(5);

/// Node 0 has sends to node 1 that wait for credits, and to `others` more nodes.
fn blocked_sender(others: usize) -> World {
    let mut world = Setup { slots: 2, credit_slots: 1, ..Setup::new(2 + others) }.build();
    for to in 1..2 + others {
        for n in 0..8 {
            world.send(0).to(to).tagged(1).bytes(&pattern(n, 300)).post();
        }
    }
    world
}

#[test]
fn waiting_for_credits_counts_from_the_first_telling_to_the_last() {
    for others in [0, 2] {
        let mut world = blocked_sender(others);
        assert!(world.endpoint(0).is_timed());
        world.pass(A_WHILE);
        world.progress(0);
        assert_eq!(world.counter(0, Counter::DelayNanoseconds), 0, "nobody said when it began");
        world.pass(A_WHILE);
        world.progress(0);
        let expected = 5_000 * (1 + others as u64);
        assert_eq!(world.counter(0, Counter::DelayNanoseconds), expected, "added over peers");
    }
}

#[test]
fn waiting_that_begins_while_another_waits_does_not_count_what_was_before() {
    let mut world = Setup { slots: 2, credit_slots: 1, ..Setup::new(3) }.build();
    for n in 0..8 {
        world.send(0).to(1).tagged(1).bytes(&pattern(n, 300)).post();
    }
    world.progress(0);
    world.pass(A_WHILE);
    for n in 0..8 {
        world.send(0).to(2).tagged(1).bytes(&pattern(n, 300)).post();
    }
    world.progress(0);
    assert_eq!(world.counter(0, Counter::DelayNanoseconds), 5_000, "the second peer has waited for no time yet");
}

#[test]
fn time_that_goes_back_or_stands_still_counts_nothing() {
    let mut world = blocked_sender(0);
    world.pass(A_WHILE);
    world.progress(0);
    world.endpoint(0).tell_time(tidegate_message::Instant::default());
    world.progress(0);
    assert_eq!(world.counter(0, Counter::DelayNanoseconds), 0);
}

#[test]
fn who_waits_for_nothing_needs_no_clock_and_sleeps_until_something_comes() {
    let mut world = blocked_sender(0);
    for _ in 0..8 {
        world.receive(1).tagged(1).capacity(300).post();
    }
    assert_eq!(world.endpoint(0).next_timeout(), None, "credits come as packets");
    world.settle();
    for node in 0..2 {
        assert!(!world.endpoint(node).is_timed() && world.endpoint(node).next_timeout().is_none(), "{world}");
    }
}

#[test]
fn who_waits_for_room_in_a_mailbox_tries_again_after_a_while() {
    let mut world = Setup { scheme: SchemeName::None, slots: 4, credit_slots: 1, ..Setup::new(2) }.build();
    for n in 0..8 {
        world.send(0).to(1).tagged(1).bytes(&pattern(n, 300)).post();
    }
    world.pass(A_WHILE);
    world.progress(0);
    let due = world.endpoint(0).next_timeout().expect("nobody tells of room in a mailbox");
    assert!(due > world.now() && due < world.now() + Duration::from_millis(10), "{due:?}");
}

#[test]
fn a_fetch_that_had_its_share_of_a_progress_call_goes_on_at_once() {
    let mut world = Setup { memory: Memory::Direct, ..Setup::new(2) }.build();
    let receive = world.receive(1).tagged(1).capacity(100_000).post();
    world.send(0).to(1).tagged(1).bytes(&pattern(1, 100_000)).post();
    let mut calls = 0;
    while !world.is_done(receive) {
        world.progress(1);
        calls += 1;
        let due = world.endpoint(1).next_timeout();
        let is_over = world.is_done(receive);
        assert!(is_over || due.is_some_and(|due| due <= world.now()), "only the receiver can go on\n{world}");
    }
    assert!(calls >= 100_000 / 4096, "{calls} calls");
}
