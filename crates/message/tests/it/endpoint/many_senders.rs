//! Long messages of many senders to one receiver, which takes them all at the same time: no sender waits for another.

use crate::support::{Handle, Memory, Setup, World, pattern};
use tidegate_message::Counter;

const LONG: usize = 50_000;

fn setup(memory: Memory, nodes: usize) -> Setup {
    Setup { memory, scheduled: true, seed: 5, ..Setup::new(nodes) }
}

/// Every node but the first sends a long message to the first, which waits for all of them in order.
fn all_to_first(world: &mut World, nodes: usize) -> Vec<Handle> {
    let receive = |world: &mut World, from| world.receive(0).from(from).tagged(7).capacity(LONG).post();
    let receives = (1..nodes).map(|from| receive(world, from)).collect();
    for from in 1..nodes {
        world.send(from).to(0).tagged(7).bytes(&pattern(from, LONG)).post();
    }
    receives
}

#[test]
fn a_sender_that_stops_holds_up_nobody() {
    for memory in [Memory::Mailbox, Memory::Bounced, Memory::OneWay] {
        let mut world = setup(memory, 4).build();
        // The first sender leaves MPI as soon as it has sent, and its message is matched.
        let first = world.receive(0).from(1).tagged(7).capacity(LONG).post();
        world.send(1).to(0).tagged(7).bytes(&pattern(1, LONG)).post();
        world.progress(1);
        world.pause(1);
        world.steps(500);
        let others = [2, 3].map(|from| world.receive(0).from(from).tagged(7).capacity(LONG).post());
        for from in [2, 3] {
            world.send(from).to(0).tagged(7).bytes(&pattern(from, LONG)).post();
        }
        world.run_until("the others' messages are there", |world| others.iter().all(|other| world.is_done(*other)));
        world.resume(1);
        world.settle();
        assert_eq!(world.bytes(first), pattern(1, LONG));
    }
}

/// A receive takes a long message out of a deferral notice, or out of an offer. Its sender must know that it is matched
/// before it hears that there is room: else it sends it again, and the second goes to a receive of something else.
#[test]
fn a_deferred_message_that_is_matched_leaves_once() {
    for is_offered in [false, true] {
        let mut world = Setup { window: Some(0), ..setup(Memory::Mailbox, 3) }.build();
        // The window is one envelope, so that the second and the third are deferred. The first has no receive.
        let early = world.receive(0).from(2).tagged(2).capacity(LONG).post();
        let sends = [(1, 0), (2, LONG), (3, LONG), (4, 0)]
            .map(|(tag, size)| world.send(2).to(0).tagged(tag).bytes(&pattern(tag as usize, size)).post());
        if is_offered {
            world.cancel(early);
        }
        world.steps(2000);
        let late = is_offered.then(|| world.receive(0).from(2).tagged(2).capacity(LONG).post());
        let matched = late.unwrap_or(early);
        for tag in [1, 4] {
            let found = world.receive(0).from(2).tagged(tag).post();
            world.steps(2000);
            assert!(world.is_done(found), "{is_offered}: {tag}\n{world}");
        }
        let third = world.receive(0).from(2).tagged(3).capacity(LONG).post();
        world.settle();
        for (receive, name) in [(matched, 2), (third, 3)] {
            assert_eq!(world.bytes(receive), pattern(name, LONG), "{is_offered}: {name}\n{world}");
        }
        sends.iter().for_each(|send| assert!(world.is_done(*send), "{world}"));
        assert_eq!([0, 1, 2].map(|node| world.counter(node, Counter::Violations)), [0; 3], "{is_offered}");
        assert!(world.counter(2, Counter::SendsDeferred) > 0, "{world}");
        (0..3).for_each(|node| world.assert_windows(node));
    }
}

#[test]
fn a_sender_that_dies_gives_way() {
    for memory in Memory::ALL {
        for dying in [1, 2] {
            let mut world = setup(memory, 4).build();
            let receives = all_to_first(&mut world, 4);
            world.steps(60);
            world.kill(dying);
            world.settle();
            for (receive, from) in receives.into_iter().zip(1..) {
                match from == dying {
                    false => assert_eq!(world.bytes(receive), pattern(from, LONG), "{world}"),
                    true => assert!(world.is_done(receive), "{world}"),
                }
            }
            world.replace(dying);
            let again = world.receive(0).from(dying).tagged(8).capacity(LONG).post();
            world.send(dying).to(0).tagged(8).bytes(&pattern(9, LONG)).post();
            world.settle();
            assert_eq!(world.bytes(again), pattern(9, LONG), "{world}");
        }
    }
}

#[test]
fn many_to_many_comes_through() {
    for memory in Memory::ALL {
        let mut world = setup(memory, 5).build();
        let mut receives = Vec::new();
        for round in 0..3 {
            for to in 0..5 {
                for from in (0..5).filter(|from| *from != to) {
                    let (tag, size) = (round as u64, 4000 + 9000 * ((from + round) % 4));
                    let seed = from * 10 + round;
                    let receive = world.receive(to).from(from).tagged(tag).capacity(LONG).post();
                    world.send(from).to(to).tagged(tag).bytes(&pattern(seed, size)).post();
                    receives.push((receive, seed, size));
                }
            }
        }
        world.settle();
        for (receive, seed, size) in receives {
            assert_eq!(world.bytes(receive), pattern(seed, size), "{world}");
        }
    }
}
