//! Fenced operations (`FI_FENCE`): they start when all earlier ones to the same target have completed, later ones stay
//! behind them, and other targets do not matter. The rules F1 to F4 are in `src/fence/mod.rs`.

use crate::support::{Handle, Memory, Random, Setup, World, pattern};
use std::time::Duration;
use tidegate_message::{Access, Counter, Failure};

/// The region that everybody may read and write.
const KEY: u64 = 7;

/// Three nodes under all schemes and over every kind of memory. Receivers have room for a few short messages.
fn settings(seed: u64) -> impl Iterator<Item = Setup> {
    Setup::all(3, seed).map(|setup| Setup { window: Some(900), ..setup })
}

/// Node 0 has a long send to node 1 outstanding, which nothing has received.
fn with_a_send_open(setup: Setup) -> (World, Handle) {
    let mut world = setup.build();
    (1..3).for_each(|node| drop(world.register(node, KEY, &[0; 64], &[Access::Read, Access::Write])));
    let open = world.send(0).to(1).tagged(1).bytes(&pattern(1, 9000)).post();
    (world, open)
}

fn receive_first(world: &mut World) {
    let receive = world.receive(1).tagged(1).capacity(9000).post();
    world.settle();
    assert_eq!(world.bytes(receive), pattern(1, 9000), "{world}");
}

fn all_succeed(world: &World, operations: &[Handle]) {
    for operation in operations {
        world.success(*operation);
    }
}

#[test]
fn a_fenced_send_waits_for_earlier_ones_to_the_same_target_and_for_no_others() {
    for setup in settings(501) {
        let (mut world, open) = with_a_send_open(setup);
        let (there, here) = (world.receive(2).tagged(2).capacity(100).post(), world.receive(1).tagged(2).capacity(100));
        let here = here.post();
        let elsewhere = world.send(0).to(2).tagged(2).bytes(&pattern(2, 100)).fenced().post();
        let fenced = world.send(0).to(1).tagged(2).bytes(&pattern(3, 100)).fenced().post();
        let later = world.send(0).to(1).tagged(3).bytes(&pattern(4, 50)).post();
        let other = world.send(0).to(2).tagged(3).bytes(&pattern(5, 50)).post();
        let [last_here, last_there] = [1, 2].map(|node| world.receive(node).tagged(3).capacity(50).post());
        world.settle();
        assert_eq!((world.bytes(there), world.is_done(elsewhere)), (&pattern(2, 100)[..], true), "{world}");
        assert_eq!((world.bytes(last_there), world.is_done(other)), (&pattern(5, 50)[..], true), "{world}");
        for waiting in [open, fenced, later, here, last_here] {
            assert!(!world.is_done(waiting), "{world}");
        }
        receive_first(&mut world);
        assert_eq!((world.bytes(here), world.bytes(last_here)), (&pattern(3, 100)[..], &pattern(4, 50)[..]), "{world}");
        all_succeed(&world, &[open, fenced, later]);
        assert!(!world.endpoint(0).has_outstanding() && !world.endpoint(0).has_work_left(), "{world}");
        (0..3).for_each(|node| world.assert_windows(node));
    }
}

#[test]
fn without_anything_before_it_a_fenced_operation_starts_at_once() {
    for setup in settings(502) {
        let mut world = setup.build();
        let receives = [1, 2].map(|tag| world.receive(1).tagged(tag).capacity(40).post());
        let first = world.send(0).to(1).tagged(1).bytes(&pattern(1, 40)).fenced().post();
        world.settle();
        assert!(world.is_done(first) && world.is_done(receives[0]), "{world}");
        // A message that has left does not count: it is complete.
        let second = world.send(0).to(1).tagged(2).bytes(&pattern(2, 40)).fenced().inject().post();
        world.settle();
        assert_eq!((world.bytes(receives[1]), world.is_done(second)), (&pattern(2, 40)[..], true), "{world}");
    }
}

#[test]
fn remote_operations_and_injected_messages_wait_and_are_waited_for() {
    for setup in settings(503) {
        let (mut world, open) = with_a_send_open(setup);
        let memory = world.register(1, KEY + 1, &[9; 64], &[Access::Read, Access::Write]);
        let place = |world: &World, offset| world.place(0, 1, KEY + 1, offset);
        let (at, to) = (place(&world, 0), place(&world, 8));
        // Their memory is scribbled over as soon as the call is over.
        let write = world.write_fenced(0, at, &pattern(2, 8), true);
        let inject = world.send(0).to(1).tagged(2).bytes(&pattern(3, 40)).inject().post();
        let read = world.read_fenced(0, at, 8);
        let add = world.add_fenced(0, to, 5);
        let plain = world.read(0, vec![(to, 8)]);
        let receive = world.receive(1).tagged(2).capacity(40).post();
        world.settle();
        for waiting in [open, write, inject, read, add, plain, receive] {
            assert!(!world.is_done(waiting), "{world}");
        }
        assert_eq!(memory.bytes(), [9; 64], "nothing has been written\n{world}");
        receive_first(&mut world);
        assert_eq!(world.bytes(receive), pattern(3, 40), "{world}");
        assert_eq!(world.bytes(read), pattern(2, 8), "it sees what the write before the fence has left\n{world}");
        assert_eq!(world.bytes(add), [9; 8], "{world}");
        let sum = u64::from_ne_bytes([9; 8]) + 5;
        assert_eq!((world.bytes(plain).len(), &memory.bytes()[8..16]), (8, &sum.to_ne_bytes()[..]), "{world}");
        all_succeed(&world, &[open, write, inject]);
    }
}

#[test]
fn a_fenced_write_comes_behind_messages_that_lie_in_the_mailbox() {
    for memory in [Memory::Direct, Memory::Mailbox] {
        let mut world = Setup { memory, ..Setup::new(2) }.build();
        let region = world.register(1, KEY, &[0; 8], &[Access::Write]);
        world.pause(1);
        let sent = world.send(0).to(1).tagged(1).bytes(&pattern(1, 40)).post();
        let to = world.place(0, 1, KEY, 0);
        let write = world.write_fenced(0, to, &[1; 8], false);
        world.settle();
        assert!(world.is_done(sent) && !world.is_done(write) && region.bytes() == [0; 8], "{world}");
        world.resume(1);
        world.settle();
        assert!(world.is_done(write) && region.bytes() == [1; 8], "{world}");
    }
}

#[test]
fn a_message_to_oneself_waits_behind_a_fence_as_well() {
    let mut world = Setup::new(2).build();
    let kept = world.send(0).to(0).tagged(1).bytes(&pattern(1, 9000)).post();
    let fenced = world.send(0).to(0).tagged(2).bytes(&pattern(2, 40)).fenced().inject().post();
    let later = world.send(0).to(0).tagged(3).bytes(&pattern(3, 40)).post();
    let other = world.send(0).to(1).tagged(3).bytes(&pattern(4, 40)).post();
    let receives = [2, 3].map(|tag| world.receive(0).tagged(tag).capacity(40).post());
    world.settle();
    assert!(world.is_done(other));
    for waiting in [kept, fenced, later, receives[0], receives[1]] {
        assert!(!world.is_done(waiting), "{world}");
    }
    let first = world.receive(0).tagged(1).capacity(9000).post();
    world.settle();
    assert_eq!(world.bytes(first), pattern(1, 9000));
    assert_eq!((world.bytes(receives[0]), world.bytes(receives[1])), (&pattern(2, 40)[..], &pattern(3, 40)[..]));
    all_succeed(&world, &[kept, fenced, later]);
    assert!(!world.endpoint(0).has_outstanding());
    // One whose memory is used again completes with its receive where that was asked for, and one that is dropped, too.
    let kept = world.send(0).to(0).tagged(4).bytes(&pattern(5, 40)).inject().delivery().post();
    let fenced = world.send(0).to(0).tagged(5).bytes(&pattern(6, 40)).fenced().post();
    world.settle();
    assert!(!world.is_done(kept) && !world.is_done(fenced));
    let dropped = world.receive(0).tagged(4).peek().discard().post();
    world.settle();
    assert!(world.is_done(dropped) && world.is_done(kept) && world.is_done(fenced), "{world}");
}

#[test]
fn what_waits_for_a_peer_that_dies_fails_and_nothing_else_does() {
    for setup in settings(504) {
        let (mut world, open) = with_a_send_open(setup);
        let to = world.place(0, 1, KEY, 0);
        let fenced = world.send(0).to(1).tagged(2).bytes(&pattern(2, 100)).fenced().post();
        let write = world.write_fenced(0, to, &[1; 8], false);
        let inject = world.send(0).to(1).tagged(2).bytes(&pattern(3, 40)).inject().silent().post();
        let elsewhere = world.send(0).to(2).tagged(1).bytes(&pattern(4, 9000)).post();
        let other = world.send(0).to(2).tagged(2).bytes(&pattern(4, 40)).fenced().post();
        world.settle();
        world.kill(1);
        world.settle();
        [open, fenced, write, inject].iter().for_each(|lost| world.assert_lost(*lost, 1));
        assert!(!world.is_done(elsewhere) && !world.is_done(other), "{world}");
        let receives = [1, 2].map(|tag| world.receive(2).tagged(tag).capacity(9000).post());
        world.settle();
        assert!(world.is_done(receives[1]) && world.is_done(other) && !world.endpoint(0).has_outstanding(), "{world}");
    }
}

#[test]
fn what_waits_can_be_cancelled_and_leaves_its_fence_behind() {
    for setup in settings(505) {
        let (mut world, open) = with_a_send_open(setup);
        let fenced = world.send(0).to(1).tagged(2).bytes(&pattern(2, 100)).fenced().post();
        let inject = world.send(0).to(1).tagged(3).bytes(&pattern(3, 40)).inject().post();
        let later = world.send(0).to(1).tagged(3).bytes(&pattern(4, 40)).post();
        assert!(world.cancel(fenced) && world.cancel(inject) && !world.cancel(open), "{world}");
        world.settle();
        assert_eq!([fenced, inject].map(|it| world.failure(it)), [Failure::Canceled, Failure::Canceled]);
        assert!(!world.is_done(later), "it is behind a fence\n{world}");
        world.endpoint(0).begin_closing();
        assert!(!world.endpoint(0).has_unsent() || setup.memory != Memory::Direct, "{world}");
        let receive = world.receive(1).tagged(3).capacity(40).post();
        receive_first(&mut world);
        assert_eq!(world.bytes(receive), pattern(4, 40), "{world}");
        assert!(!world.cancel(later), "it is over");
        // Alone, it takes its fence along.
        let again = world.send(0).to(1).tagged(1).bytes(&pattern(5, 9000)).post();
        let fenced = world.send(0).to(1).tagged(2).bytes(&pattern(6, 100)).fenced().post();
        assert!(world.cancel(fenced) && !world.is_done(again));
        let receive = world.receive(1).tagged(3).capacity(40).post();
        let free = world.send(0).to(1).tagged(3).bytes(&pattern(7, 40)).post();
        world.settle();
        assert!(world.is_done(free) && world.is_done(receive), "{world}");
    }
}

#[test]
fn closing_waits_for_injected_messages_behind_a_fence_unless_their_receiver_closes_too() {
    for setup in settings(506) {
        let (mut world, open) = with_a_send_open(setup);
        let fenced = world.send(0).to(1).tagged(2).bytes(&pattern(2, 100)).fenced().post();
        let inject = world.send(0).to(1).tagged(3).bytes(&pattern(3, 40)).inject().silent().post();
        let to = world.place(0, 1, KEY, 0);
        let write = world.write_fenced(0, to, &[1; 8], true);
        world.settle();
        world.endpoint(0).begin_closing();
        world.settle();
        assert!(world.endpoint(0).has_unsent(), "the application believes these sent\n{world}");
        world.endpoint(1).begin_closing();
        world.settle();
        assert!(!world.endpoint(0).has_unsent(), "{world}");
        world.endpoint(0).abandon_unsent();
        world.settle();
        for canceled in [open, fenced, inject, write] {
            assert_eq!(world.failure(canceled), Failure::Canceled, "{world}");
        }
        assert_eq!(world.counter(0, Counter::SendsLost), 1, "of one the application would have heard nothing\n{world}");
        assert!(!world.endpoint(0).has_outstanding(), "{world}");
    }
}

#[test]
fn an_application_that_counts_on_its_sends_closes_after_those_behind_a_fence() {
    for setup in settings(509) {
        let (mut world, _) = with_a_send_open(setup);
        world.send(0).to(1).tagged(2).bytes(&pattern(2, 100)).fenced().silent().post();
        world.endpoint(0).begin_closing_after_sends();
        world.settle();
        assert!(world.endpoint(0).has_unsent(), "{world}");
        receive_first(&mut world);
        let receive = world.receive(1).tagged(2).capacity(100).post();
        world.settle();
        assert_eq!(world.bytes(receive), pattern(2, 100), "{world}");
        assert!(!world.endpoint(0).has_unsent(), "{world}");
    }
}

/// fi_tidegate(7): "A message that its receiver has no room for has not completed, injected or not."
#[test]
fn messages_that_find_no_room_are_waited_for() {
    for setup in settings(508) {
        let mut world = setup.build();
        let inject =
            |world: &mut World, n| world.send(0).to(1).tagged(1).bytes(&pattern(n, 40)).inject().silent().post();
        let _: Vec<_> = (0..50).map(|n| inject(&mut world, n)).collect();
        let fenced = world.send(0).to(1).tagged(2).bytes(&pattern(50, 40)).fenced().post();
        let receive = world.receive(1).tagged(2).capacity(40).post();
        world.settle();
        assert!(world.counter(0, Counter::SendsDeferred) > 0, "the receiver has no room for all\n{world}");
        assert!(!world.is_done(fenced) && !world.is_done(receive), "{world}");
        let receives: Vec<_> = (0..50).map(|_| world.receive(1).tagged(1).capacity(40).post()).collect();
        world.settle();
        assert_eq!((world.bytes(receive), world.is_done(fenced)), (&pattern(50, 40)[..], true), "{world}");
        for (n, receive) in receives.iter().enumerate() {
            assert_eq!(world.bytes(*receive), pattern(n, 40), "{world}");
        }
    }
}

/// fi_tidegate(7): "As many operations may wait behind fences as may be outstanding; one more is -FI_EAGAIN."
#[test]
fn no_more_operations_wait_behind_fences_than_may_be_outstanding() {
    let mut world = Setup { operations: 20, ..Setup::new(2) }.build();
    let open = world.send(0).to(1).tagged(1).bytes(&pattern(1, 9000)).post();
    let fenced = world.send(0).to(1).tagged(2).bytes(&pattern(2, 40)).fenced().post();
    let mut waiting = Vec::new();
    while let Ok(send) = world.send(0).to(1).tagged(2).bytes(&pattern(2, 40)).inject().silent().try_post() {
        waiting.push(send);
        assert!(waiting.len() <= 20, "{world}");
    }
    assert_eq!(waiting.len(), 18, "with the first two, as many as may be");
    let receives: Vec<_> = (0..19).map(|_| world.receive(1).tagged(2).capacity(40).post()).collect();
    receive_first(&mut world);
    assert!(world.is_done(open) && world.is_done(fenced));
    receives.iter().for_each(|receive| assert_eq!(world.bytes(*receive), pattern(2, 40)));
    assert!(!world.endpoint(0).has_outstanding());
}

/// Whether every operation that a received message had to wait for was complete when the message was received.
fn check_received(world: &World, sends: &[(usize, Handle, Option<usize>)], number: usize) {
    let (to, _, fence) = sends[number];
    for (before, (other, send, _)) in sends[..fence.unwrap_or(0)].iter().enumerate() {
        let is_over = *other != to || world.is_done(*send);
        assert!(is_over, "message {number} overtook {before} to node {to}\n{world}");
    }
}

#[test]
fn programs_of_all_kinds_of_messages_never_overtake_a_fence() {
    for (index, setup) in settings(507).enumerate() {
        let mut random = Random::new(900 + index as u64);
        let patience = [Duration::ZERO, Duration::from_millis(1)][index % 2];
        let mut world = Setup { patience, ..setup }.build();
        let (mut sends, mut last_fence) = (Vec::<(usize, Handle, Option<usize>)>::new(), [None; 3]);
        let mut receives: Vec<Option<Handle>> = vec![None; 30];
        for number in 0..receives.len() {
            let to = 1 + random.below(2);
            let length = [0, 8, 40, 300, 3000][random.below(5)];
            let fenced = random.one_in(4);
            loop {
                let send = world.send(0).to(to).tagged(number as u64).bytes(&pattern(number, length));
                let send = if fenced { send.fenced() } else { send };
                let send = if length <= 40 && number % 3 == 0 { send.inject() } else { send };
                let Ok(send) = send.try_post() else {
                    world.step();
                    continue;
                };
                if fenced {
                    last_fence[to] = Some(number);
                }
                break sends.push((to, send, last_fence[to]));
            }
            for _ in 0..random.below(6) {
                world.step();
            }
            if random.one_in(2) {
                post_one(&mut world, &mut random, &sends, &mut receives);
            }
        }
        let mut seen = vec![false; receives.len()];
        while seen.contains(&false) {
            post_one(&mut world, &mut random, &sends, &mut receives);
            // A fenced one may only come when earlier ones have been received, and all of these are posted in the end.
            for _ in 0..20 {
                world.step();
                for number in 0..receives.len() {
                    if !seen[number] && receives[number].is_some_and(|receive| world.is_done(receive)) {
                        check_received(&world, &sends, number);
                        seen[number] = true;
                    }
                }
            }
        }
        world.settle();
        all_succeed(&world, &sends.iter().map(|(_, send, _)| *send).collect::<Vec<_>>());
        assert!(!world.endpoint(0).has_outstanding(), "{world}");
    }
}

/// Posts one of the receives that are not posted yet.
fn post_one(
    world: &mut World,
    random: &mut Random,
    sends: &[(usize, Handle, Option<usize>)],
    all: &mut [Option<Handle>],
) {
    let open: Vec<usize> = (0..sends.len()).filter(|number| all[*number].is_none()).collect();
    if !open.is_empty() {
        let number = open[random.below(open.len())];
        all[number] = Some(world.receive(sends[number].0).tagged(number as u64).capacity(3000).post());
    }
}
