//! Everything is bounded: at a bound an operation is refused whole, and goes on later.

use crate::support::{Handle, Setup, World, pattern};
use tidegate_message::flow::SchemeName;
use tidegate_message::{Counter, Instant, TryAgain};

/// Posts a receive. It may be refused while completions wait to be polled, not otherwise.
fn receive(world: &mut World, from: usize, node: usize, tag: u64, size: usize) -> Handle {
    if let Ok(receive) = world.receive(node).from(from).tagged(tag).capacity(size).try_post() {
        return receive;
    }
    world.progress(node);
    world.receive(node).from(from).tagged(tag).capacity(size).post()
}

#[test]
fn sends_beyond_the_bound_are_refused_and_go_on_later() {
    for setup in Setup::all(2, 51) {
        for size in [30, 2000, 5000] {
            let mut world = Setup { operations: 8, ..setup }.build();
            world.pause(1);
            let mut sends: Vec<Handle> = Vec::new();
            // An eager send that left leaves its place; what the mailbox and the bound hold together is finite.
            let refused = loop {
                let n = sends.len();
                match world.send(0).to(1).tagged(n as u64).bytes(&pattern(n, size)).try_post() {
                    Ok(send) => sends.push(send),
                    Err(refused) => break refused,
                }
                assert!(n < 8 + 64 + 1, "no bound\n{world}");
                world.settle();
            };
            assert_eq!(refused, TryAgain);
            world.resume(1);
            let receives: Vec<_> = (0..sends.len()).map(|n| receive(&mut world, 0, 1, n as u64, size)).collect();
            world.settle();
            for (n, (send, receive)) in sends.into_iter().zip(receives).enumerate() {
                world.success(send);
                assert_eq!(world.bytes(receive), pattern(n, size), "{world}");
            }
            let again = world.send(0).to(1).tagged(0).bytes(&pattern(0, size)).try_post();
            assert!(again.is_ok(), "there is room again\n{world}");
        }
    }
}

#[test]
fn receives_can_be_posted_however_many_sends_wait_for_their_peer() {
    // Both sides first send as much as they may, then receive: were receives refused, nobody would ever move.
    for setup in Setup::all(2, 52) {
        for size in [60, 5000] {
            let mut world = Setup { operations: 8, ..setup }.build();
            let mut sends = [0, 0];
            for (node, sends) in sends.iter_mut().enumerate() {
                world.pause(1 - node);
                while world.send(node).to(1 - node).tagged(7).bytes(&pattern(*sends, size)).try_post().is_ok() {
                    *sends += 1;
                    world.settle();
                    assert!(*sends < 100, "no bound\n{world}");
                }
                world.resume(1 - node);
            }
            let receives = [0, 1].map(|node: usize| -> Vec<Handle> {
                (0..sends[1 - node]).map(|_| receive(&mut world, 1 - node, node, 7, size)).collect()
            });
            world.settle();
            for (n, receive) in receives.iter().flat_map(|receives| receives.iter().enumerate()) {
                assert!(world.bytes(*receive) == pattern(n, size), "{world}");
            }
        }
    }
}

#[test]
fn one_call_of_progress_does_a_bounded_amount() {
    let mut world = Setup { scheme: SchemeName::None, ..Setup::new(2) }.build();
    world.pause(1);
    for n in 0..40 {
        world.send(0).to(1).tagged(n).bytes(&[1]).post();
    }
    world.settle();
    world.progress(1);
    assert_eq!(world.counter(1, Counter::PacketsReceived), 8, "packets_per_progress");
}

#[test]
fn completions_that_nobody_takes_hold_up_messages_and_are_not_lost() {
    let mut world = Setup { operations: 8, scheme: SchemeName::None, ..Setup::new(2) }.build();
    let receives: Vec<_> = (0..30).map(|n| world.receive(1).tagged(n).capacity(1).post()).collect();
    let mut sends = 0;
    while sends < 30 {
        if world.send(0).to(1).tagged(sends).bytes(&[1]).try_post().is_ok() {
            sends += 1;
        }
        world.progress(0);
    }
    for _ in 0..100 {
        // Without taking what has completed.
        world.endpoint(1).progress(Instant::default());
    }
    let received = world.counter(1, Counter::PacketsReceived);
    assert!((8..=16).contains(&received), "a few more than the bound at most: {received}");
    world.settle();
    receives.into_iter().for_each(|receive| assert_eq!(world.success(receive).length, 1));
}
