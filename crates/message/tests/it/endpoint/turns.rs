//! Senders of long messages take turns: a preference, never a lock.

use crate::support::{Handle, Memory, Setup, World, pattern};
use std::time::Duration;
use tidegate_message::flow::{Packet, PacketKind};
use tidegate_message::{BulkOrder, Counter, TurnRules};

const LONG: usize = 50_000;
const STALL: Duration = Duration::from_millis(20);
/// The kinds of the messages by which senders are booked.
const BOOKING: u8 = 29;
const BOOKED: u8 = 30;

fn rules(order: BulkOrder) -> TurnRules {
    TurnRules { order, senders: 1, quantum: 20_000, ordered_from: 5000, stall: STALL }
}

fn setup(order: BulkOrder, memory: Memory, nodes: usize) -> Setup {
    Setup { memory, scheduled: true, turns: rules(order), seed: 5, ..Setup::new(nodes) }
}

/// Every node but the first sends a long message to the first, which waits for all of them in order.
fn all_to_first(world: &mut World, nodes: usize) -> (Vec<Handle>, Vec<Handle>) {
    let receive = |world: &mut World, from| world.receive(0).from(from).tagged(7).capacity(LONG).post();
    let receives = (1..nodes).map(|from| receive(world, from)).collect();
    let send = |world: &mut World, from| world.send(from).to(0).tagged(7).bytes(&pattern(from, LONG)).post();
    (receives, (1..nodes).map(|from| send(world, from)).collect())
}

#[test]
fn a_sender_that_stops_holds_up_nobody() {
    for order in BulkOrder::ALL {
        for memory in [Memory::Mailbox, Memory::Bounced, Memory::OneWay] {
            let mut world = setup(order, memory, 4).build();
            // The first sender leaves MPI as soon as it has sent: its message is matched, and its turn comes first.
            let first = world.receive(0).from(1).tagged(7).capacity(LONG).post();
            world.send(1).to(0).tagged(7).bytes(&pattern(1, LONG)).post();
            world.progress(1);
            world.pause(1);
            world.steps(500);
            let begun = world.now();
            let others = [2, 3].map(|from| world.receive(0).from(from).tagged(7).capacity(LONG).post());
            for from in [2, 3] {
                world.send(from).to(0).tagged(7).bytes(&pattern(from, LONG)).post();
            }
            world.run_until("the others' messages are there", |world| others.iter().all(|other| world.is_done(*other)));
            assert!(world.now().since(begun) <= 3 * STALL, "{world}");
            let stalls = world.counter(0, Counter::TurnsStalled);
            let is_read = memory == Memory::OneWay;
            assert_eq!(stalls > 0, order != BulkOrder::RoundRobin && !is_read, "{stalls} stalls\n{world}");
            world.resume(1);
            world.settle();
            assert_eq!(world.bytes(first), pattern(1, LONG));
        }
    }
}

/// A receive takes a long message out of a deferral notice, or out of an offer, while it is another sender's turn. The
/// message's sender must know that it is matched: else it sends it again as soon as there is room, and what comes then
/// goes to a receive that waits for something else.
#[test]
fn a_deferred_message_that_waits_for_its_turn_leaves_once() {
    for (order, is_offered) in BulkOrder::ALL.into_iter().flat_map(|order| [(order, false), (order, true)]) {
        let base = setup(order, Memory::Mailbox, 3);
        let turns = TurnRules { stall: Duration::from_secs(1000), ..base.turns };
        let mut world = Setup { window: Some(0), turns, ..base }.build();
        let first = world.receive(0).from(1).tagged(7).capacity(LONG).post();
        world.send(1).to(0).tagged(7).bytes(&pattern(1, LONG)).post();
        world.progress(1);
        world.progress(0);
        world.pause(1);
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
            assert!(world.is_done(found), "{order} {is_offered}: {tag} waits for the turn of 2\n{world}");
        }
        assert_eq!(
            world.is_done(matched),
            order == BulkOrder::RoundRobin,
            "{order} {is_offered}: it has no turn\n{world}"
        );
        let third = world.receive(0).from(2).tagged(3).capacity(LONG).post();
        world.steps(2000);
        world.resume(1);
        world.settle();
        for (receive, name) in [(first, 1), (matched, 2), (third, 3)] {
            assert_eq!(world.bytes(receive), pattern(name, LONG), "{order} {is_offered}: {name}\n{world}");
        }
        sends.iter().for_each(|send| assert!(world.is_done(*send), "{world}"));
        assert_eq!([0, 1, 2].map(|node| world.counter(node, Counter::Violations)), [0; 3], "{order} {is_offered}");
        assert!(world.counter(2, Counter::SendsDeferred) > 0, "{world}");
        (0..3).for_each(|node| world.assert_windows(node));
    }
}

#[test]
fn a_sender_that_waits_for_another_is_served_after_it() {
    for order in BulkOrder::ALL {
        let mut world = setup(order, Memory::Bounced, 3).build();
        let receives = [1, 2].map(|from| world.receive(0).from(from).tagged(7).capacity(LONG).post());
        world.send(1).to(0).tagged(7).bytes(&pattern(1, LONG)).post();
        world.progress(1);
        world.pause(1);
        world.send(2).to(0).tagged(7).bytes(&pattern(2, LONG)).post();
        world.run_until("the second is there", |world| world.is_done(receives[1]));
        // Only now does the program of the first go on: it had waited for a word of the receiver.
        world.resume(1);
        world.settle();
        for (receive, from) in receives.into_iter().zip(1..) {
            assert_eq!(world.bytes(receive), pattern(from, LONG), "{world}");
        }
    }
}

#[test]
fn as_many_senders_are_served_at_a_time_as_have_a_turn() {
    for order in BulkOrder::ALL {
        for senders in [1, 2] {
            let mut setup = setup(order, Memory::Delayed, 6);
            setup.turns.senders = senders;
            let mut world = setup.build();
            let (receives, sends) = all_to_first(&mut world, 6);
            let most = std::cell::Cell::new(0);
            world.run_until("all is there", |world| {
                most.set(most.get().max(world.network().transfers(0)));
                receives.iter().all(|receive| world.is_done(*receive))
            });
            world.settle();
            let is_free = order == BulkOrder::RoundRobin;
            assert!(if is_free { most.get() > 1 } else { most.get() == senders }, "{} at a time\n{world}", most.get());
            for send in sends {
                world.success(send);
            }
            for (receive, from) in receives.into_iter().zip(1..) {
                assert_eq!(world.bytes(receive), pattern(from, LONG), "{world}");
            }
        }
    }
}

#[test]
fn who_dies_in_its_turn_or_before_it_gives_way() {
    for order in BulkOrder::ALL {
        for memory in Memory::ALL {
            for dying in [1, 2] {
                let mut world = setup(order, memory, 4).build();
                let (receives, _) = all_to_first(&mut world, 4);
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
}

#[test]
fn many_to_many_under_every_order_comes_through() {
    for order in BulkOrder::ALL {
        for memory in Memory::ALL {
            let mut world = setup(order, memory, 5).build();
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
}

#[test]
fn a_sender_that_the_endpoint_and_its_link_both_ask_is_asked_once_and_both_hear_the_answer() {
    let mut world = setup(BulkOrder::Booking, Memory::Bounced, 4).build();
    let (receives, _) = all_to_first(&mut world, 4);
    // The link's questions come at every moment of the endpoint's own.
    let answers = std::cell::Cell::new(0);
    world.run_until("all is there", |world| {
        for sender in 1..4 {
            answers.set(answers.get() + usize::from(world.network().take_booked(0, sender)));
            world.network().ask(0, sender);
        }
        receives.iter().all(|receive| world.is_done(*receive))
    });
    assert!(answers.get() >= 3, "the link has heard of {} answers\n{world}", answers.get());
    world.settle();
    assert_eq!([0, 1, 2, 3].map(|node| world.counter(node, Counter::Violations)), [0; 4], "{world}");
}

#[test]
fn questions_and_answers_that_no_correct_peer_sends_are_dropped() {
    let mut world = setup(BulkOrder::Booking, Memory::Direct, 4).build();
    let packet = |kind, flags: u32| {
        let mut packet = Packet::new(PacketKind::Data, 16, kind);
        packet.payload[8..12].copy_from_slice(&flags.to_le_bytes());
        packet
    };
    // An answer to nothing, and flags that neither kind knows.
    world.inject_packet(1, 0, packet(BOOKED, 0));
    world.inject_packet(1, 0, packet(BOOKING, 1 << 24));
    world.inject_packet(1, 0, packet(BOOKED, 1 << 26));
    world.steps(200);
    assert_eq!(world.counter(0, Counter::Violations), 3);
    // The second has booked node 0. A third that asks again before it was answered is not kept twice.
    world.inject_packet(2, 0, packet(BOOKING, 0));
    world.steps(200);
    (0..100).for_each(|_| world.inject_packet(3, 0, packet(BOOKING, 0)));
    world.run_until("all were retrieved", |world| world.counter(0, Counter::Violations) == 3 + 99);
    world.settle();
    // Nodes 2 and 3 have asked nothing, so answers were violations there: one each, the second after a time T.
    world.pass(STALL);
    world.settle();
    assert_eq!([2, 3].map(|node| world.counter(node, Counter::Violations)), [1, 1], "{world}");
    let receive = world.receive(0).from(3).tagged(7).capacity(LONG).post();
    world.send(3).to(0).tagged(7).bytes(&pattern(3, LONG)).post();
    world.settle();
    assert_eq!(world.bytes(receive), pattern(3, LONG));
}
