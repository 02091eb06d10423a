//! Peers that die or leave: what waits for them fails and names them, nothing else does, and their place is used again.

use crate::support::{Handle, Memory, Setup, World, pattern};
use tidegate_message::flow::{Packet, PacketKind, SchemeName};
use tidegate_message::{Access, AtomicOp, AtomicType, Counter, Failure};

/// Every setting with three nodes.
fn settings(seed: u64) -> impl Iterator<Item = Setup> {
    Setup::all(3, seed)
}

#[test]
fn sends_that_wait_for_a_dead_peer_fail_and_name_it() {
    for setup in settings(81) {
        let mut world = setup.build();
        world.pause(1);
        let sends: Vec<Handle> =
            (0..30).map(|n| world.send(0).to(1).tagged(n).bytes(&pattern(1, 300)).post()).collect();
        let long = world.send(0).to(1).tagged(7).bytes(&pattern(1, 9000)).post();
        world.settle();
        world.kill(1);
        world.settle();
        world.assert_lost(long, 1);
        let lost = sends.iter().filter(|send| world.outcome(**send).completion.result.is_err()).count();
        sends.iter().skip(sends.len() - lost).for_each(|send| world.assert_lost(*send, 1));
        assert!(lost > 0, "30 messages of 6 packets do not fit 64 slots\n{world}");
        assert!(!world.endpoint(0).has_unsent(), "{world}");
        assert_eq!(world.counter(0, Counter::PeersDied), 1);
    }
}

#[test]
fn a_send_to_a_peer_known_dead_fails() {
    for setup in settings(82) {
        let mut world = setup.build();
        world.kill(1);
        world.settle();
        for size in [0, 100, 9000] {
            let send = world.send(0).to(1).bytes(&pattern(1, size)).post();
            let injected = world.send(0).to(1).bytes(&pattern(1, size.min(100))).inject().silent().post();
            world.settle();
            assert!(matches!(world.failure(send), Failure::PeerLost { .. }), "{world}");
            assert!(
                matches!(world.failure(injected), Failure::PeerLost { .. }),
                "failures are always reported\n{world}"
            );
        }
        assert!(!world.endpoint(0).has_unsent());
    }
}

#[test]
fn receives_from_a_dead_peer_fail_and_others_stay() {
    for setup in settings(83) {
        let mut world = setup.build();
        let directed = world.receive(0).from(1).tagged(7).capacity(10).post();
        let untagged = world.receive(0).from(1).capacity(10).post();
        let many = world.receive(0).from(1).capacity(100).multi(10).post();
        let anybody = world.receive(0).tagged(7).capacity(10).post();
        let other = world.receive(0).from(2).tagged(7).capacity(10).post();
        world.settle();
        world.kill(1);
        world.settle();
        for receive in [directed, untagged, many] {
            world.assert_lost(receive, 1);
        }
        assert!(world.outcome(many).completion.released, "its buffer goes back\n{world}");
        assert!(!world.is_done(anybody) && !world.is_done(other), "{world}");
        for n in 0..2 {
            world.send(2).to(0).tagged(7).bytes(&[n]).post();
        }
        world.settle();
        assert_eq!((world.bytes(anybody), world.bytes(other)), (&[0][..], &[1][..]), "{world}");
    }
}

#[test]
fn a_message_cut_off_by_death_fails_its_receive() {
    for setup in settings(84) {
        for long in [false, true] {
            let mut world = setup.build();
            let size = if long { 60_000 } else { 2048 };
            let receive = world.receive(0).tagged(7).capacity(size).post();
            let next = world.receive(0).tagged(7).capacity(size).post();
            world.send(1).to(0).tagged(7).bytes(&pattern(1, size)).post();
            world.run_until("the first packet is there", |world| world.counter(0, Counter::PacketsReceived) > 0);
            world.kill(1);
            world.network().lose_in_transit(1);
            world.settle();
            // All 37 packets may have been there already.
            if world.all(receive).iter().any(|done| done.completion.result.is_ok()) {
                continue;
            }
            world.assert_lost(receive, 1);
            assert!(!world.is_done(next), "anybody may still send it\n{world}");
            world.send(2).to(0).tagged(7).bytes(&pattern(2, size)).post();
            world.settle();
            assert!(world.bytes(next) == pattern(2, size), "{world}");
        }
    }
}

#[test]
fn a_message_cut_off_by_death_before_its_receive_is_forgotten() {
    for setup in settings(85).filter(|setup| setup.slots < 64) {
        let mut world = setup.build();
        world.send(1).to(0).tagged(7).bytes(&pattern(1, 2048)).post();
        world.run_until("the first packet is there", |world| world.counter(0, Counter::PacketsReceived) > 0);
        world.kill(1);
        world.network().lose_in_transit(1);
        world.settle();
        assert_eq!(world.counter(0, Counter::UnexpectedBytes), 0, "{world}");
        let receive = world.receive(0).tagged(7).capacity(2048).post();
        world.settle();
        assert!(!world.is_done(receive));
        assert!(world.network().has_released(0, 1), "nothing of it is left\n{world}");
    }
}

#[test]
fn what_a_dead_peer_had_sent_completely_can_still_be_received() {
    for setup in settings(86) {
        let mut world = setup.build();
        let send = world.send(1).to(0).tagged(7).bytes(&pattern(1, 100)).post();
        let long = world.send(1).to(0).tagged(8).bytes(&pattern(1, 9000)).post();
        world.settle();
        world.success(send);
        world.kill(1);
        world.settle();
        assert!(!world.network().has_released(0, 1), "its name is still needed");
        let short = world.receive(0).from(1).tagged(7).capacity(100).post();
        let announced = world.receive(0).from(1).tagged(8).capacity(9000).post();
        world.settle();
        assert_eq!(world.bytes(short), pattern(1, 100), "{world}");
        world.assert_lost(announced, 1);
        assert!(!world.is_done(long));
        assert!(world.network().has_released(0, 1), "{world}");
    }
}

#[test]
fn remote_operations_on_a_dead_peer_fail_and_name_it() {
    for setup in settings(87) {
        for kill_first in [true, false] {
            let mut world = setup.build();
            let both = [Access::Read, Access::Write];
            world.register(1, 9, &[0; 90_000], &both);
            world.settle();
            if kill_first {
                world.kill(1);
                world.settle();
            } else {
                world.pause(1);
            }
            let all = vec![(world.place(0, 1, 9, 0), 90_000)];
            let words = vec![(world.place(0, 1, 9, 0), 2000)];
            let operands = vec![1; 16_000];
            let write = world.write(0, all.clone(), &vec![1; 90_000], Some(5));
            let read = world.read(0, all);
            let sum = world.atomic(0, words.clone(), AtomicType::Uint64, AtomicOp::Sum, &operands);
            let fetch = world.fetch_atomic(0, words, AtomicType::Uint64, AtomicOp::Sum, &operands, None);
            if !kill_first {
                // Without the target's help only direct access gets anywhere.
                world.steps(50);
                world.kill(1);
            }
            world.settle();
            for handle in [write, read] {
                let direct = !matches!(setup.memory, Memory::Mailbox | Memory::Bounced);
                let finished = world.outcome(handle).completion.result.is_ok();
                assert!(!finished || (direct && !kill_first), "{handle:?} cannot have worked\n{world}");
                if !finished && !kill_first {
                    world.assert_lost(handle, 1);
                }
            }
            for handle in [sum, fetch] {
                let failure = world.failure(handle);
                assert!(matches!(failure, Failure::PeerLost { .. }), "{failure:?}\n{world}");
            }
            assert!(!world.endpoint(0).has_unsent());
        }
    }
}

#[test]
fn a_dead_readers_requests_are_forgotten() {
    for setup in settings(88) {
        let mut world = setup.build();
        world.register(0, 9, &[7; 90_000], &[Access::Read]);
        let read = world.read(1, vec![(world.place(1, 0, 9, 0), 90_000)]);
        world.steps(40);
        world.kill(1);
        world.settle();
        assert!(!world.endpoint(0).has_unsent(), "nothing waits for a reader that is no more\n{world}");
        let _ = read;
        let again = world.read(2, vec![(world.place(2, 0, 9, 0), 90_000)]);
        world.settle();
        assert_eq!(world.bytes(again), vec![7; 90_000]);
    }
}

#[test]
fn survivors_go_on_when_one_dies_in_the_middle_of_a_flood() {
    for setup in settings(89) {
        let mut world = setup.build();
        let flood = |world: &mut World, from: usize, to: usize| -> Vec<(Handle, usize)> {
            let sizes = (0..12).map(|n| [10, 1500, 5000][n % 3]);
            let post = |size| (world.send(from).to(to).tagged(from as u64).bytes(&pattern(from, size)).post(), size);
            sizes.map(post).collect()
        };
        let mut involved = Vec::new();
        for (from, to) in [(0, 1), (1, 0), (1, 2), (2, 1)] {
            involved.extend(flood(&mut world, from, to).into_iter().filter(|_| from != 1));
        }
        let unaffected = [flood(&mut world, 0, 2), flood(&mut world, 2, 0)];
        let mut received = Vec::new();
        for (node, from) in [(2, 0), (0, 2), (0, 1), (2, 1)] {
            for n in 0..12 {
                let receive = world.receive(node).from(from).tagged(from as u64).capacity(5000).post();
                received.push((receive, from, [10, 1500, 5000][n % 3]));
            }
        }
        world.steps(200);
        world.kill(1);
        world.settle();
        for (send, size) in unaffected.iter().flatten() {
            assert_eq!(world.success(*send).length, *size);
        }
        for (receive, from, size) in received {
            let result = &world.outcome(receive).completion.result;
            match result {
                Ok(()) => assert!(world.bytes(receive) == pattern(from, size), "{world}"),
                Err(_) => {
                    assert_eq!(from, 1, "{world}");
                    world.assert_lost(receive, 1);
                }
            }
        }
        for (send, _) in involved {
            assert!(world.is_done(send), "{send:?} hangs\n{world}");
        }
    }
}

#[test]
fn an_orderly_departure_is_not_a_death() {
    let mut world = Setup::new(3).build();
    world.send(1).to(0).tagged(7).bytes(&[1]).post();
    world.settle();
    world.close(1);
    world.settle();
    assert_eq!(world.counter(0, Counter::PeersDied), 0);
    let receive = world.receive(0).tagged(7).capacity(1).post();
    world.settle();
    assert_eq!(world.bytes(receive), [1]);
    assert!(world.network().has_released(0, 1));
}

#[test]
fn a_new_process_takes_the_place_of_a_dead_one() {
    for setup in settings(90) {
        let mut world = setup.build();
        world.pause(0);
        for n in 0..40 {
            world.send(1).to(0).tagged(7).bytes(&pattern(n, 300)).post();
            world.send(0).to(1).tagged(7).bytes(&pattern(n, 300)).post();
        }
        world.steps(200);
        world.resume(0);
        world.kill(1);
        world.settle();
        while world.counter(0, Counter::UnexpectedBytes) > 0 {
            world.receive(0).tagged(7).peek().discard().post();
            world.settle();
        }
        world.replace(1);
        // More than all credits, in both directions: they are all there again.
        for n in 0..40 {
            let there = world.receive(1).tagged(8).capacity(300).post();
            let back = world.receive(0).tagged(8).capacity(300).post();
            world.send(0).to(1).tagged(8).bytes(&pattern(n, 300)).post();
            world.send(1).to(0).tagged(8).bytes(&pattern(n, 300)).post();
            world.settle();
            assert!(world.bytes(there) == pattern(n, 300) && world.bytes(back) == pattern(n, 300), "{world}");
        }
    }
}

#[test]
fn a_send_between_death_and_replacement_does_not_harm_the_newcomer() {
    let mut world = Setup::new(3).build();
    world.kill(1);
    world.settle();
    let early = world.send(0).to(1).bytes(&[1]).post();
    world.settle();
    assert!(matches!(world.failure(early), Failure::PeerLost { .. }));
    world.replace(1);
    let receive = world.receive(1).capacity(1).post();
    world.send(0).to(1).bytes(&[2]).post();
    world.settle();
    assert_eq!(world.bytes(receive), [2], "{world}");
}

#[test]
fn late_packets_of_a_dead_peer_are_dropped() {
    for setup in settings(91) {
        let mut world = setup.build();
        let send = world.send(0).to(1).tagged(7).bytes(&pattern(1, 9000)).post();
        let receive = world.receive(1).tagged(7).capacity(9000).post();
        world.run_until("the announcement is there", |world| world.counter(1, Counter::PacketsReceived) > 0);
        world.kill(1);
        world.settle();
        let lost = world.outcome(send).completion.result.is_err();
        for kind in [PacketKind::Data, PacketKind::Credit, PacketKind::ReturnRequest, PacketKind::ReturnResponse] {
            for message in 0..64 {
                let mut packet = Packet::new(kind, 40, message);
                packet.payload = [message; 56];
                // Flags that no kind has would hide the rest.
                packet.payload[11] &= 7;
                world.inject_packet(1, 0, packet);
            }
        }
        world.settle();
        assert_eq!(world.all(send).len(), 1, "no second completion\n{world}");
        assert!(lost || world.is_done(send));
        let _ = receive;
        let next = world.receive(2).capacity(10).post();
        world.send(0).to(2).bytes(&[1]).post();
        world.settle();
        assert_eq!(world.bytes(next), [1]);
    }
}

#[test]
fn a_receive_from_a_peer_that_closed_takes_nothing_of_who_comes_after() {
    let mut world = Setup::new(3).build();
    world.send(1).to(0).tagged(1).bytes(&[1]).post();
    let served = world.receive(0).from(1).tagged(1).capacity(1).post();
    let left = world.receive(0).from(1).tagged(7).capacity(1).post();
    world.settle();
    world.close(1);
    world.settle();
    world.success(served);
    assert!(!world.is_done(left), "whoever leaves in good order owes nothing");
    world.replace(1);
    let next = world.receive(0).from(1).tagged(7).capacity(1).post();
    world.send(1).to(0).tagged(7).bytes(&[2]).post();
    world.settle();
    assert!(!world.is_done(left), "it was meant for another process\n{world}");
    assert_eq!(world.bytes(next), [2]);
    assert!(world.cancel(left), "the application can still have it back");
    world.settle();
    assert_eq!(world.failure(left), Failure::Canceled);
}

#[test]
fn what_a_peer_had_sent_that_cannot_be_answered_is_received_and_then_it_is_lost() {
    // With enough credits for all of it: more could not come from somebody who gets no answer.
    let enough = |setup: &Setup| setup.slots >= 64 && setup.scheme != SchemeName::Dynamic && setup.never_refuses();
    for setup in settings(94).filter(enough) {
        let mut world = setup.build();
        world.network().cut.push((0, 1));
        let stored = world.send(1).to(0).tagged(7).bytes(&pattern(1, 100)).post();
        let under_way = world.send(1).to(0).tagged(8).bytes(&pattern(2, 500)).post();
        // It waits for a message that comes only after the answer has failed.
        let receive = world.receive(0).from(1).tagged(8).capacity(500).post();
        let directed = world.receive(0).from(1).tagged(9).capacity(10).post();
        let answer = world.send(0).to(1).tagged(9).bytes(&[1]).post();
        world.settle();
        assert!(matches!(world.failure(answer), Failure::PeerLost { .. }), "{world}");
        assert_eq!(world.bytes(receive), pattern(2, 500), "what had been sent counts\n{world}");
        world.success(under_way);
        world.success(stored);
        world.assert_lost(directed, 1);
        assert!(!world.network().has_released(0, 1), "its name is still needed\n{world}");
        let late = world.receive(0).from(1).tagged(7).capacity(100).post();
        world.settle();
        assert_eq!(world.bytes(late), pattern(1, 100), "{world}");
        assert!(world.network().has_released(0, 1), "{world}");
    }
}

/// Each operation is the first to find that nothing reaches its target any more: with its first packet, or with a later
/// one.
#[test]
fn an_operation_that_finds_its_target_out_of_reach_fails_once_and_names_it() {
    for setup in settings(97) {
        for kind in 0..9 {
            let mut world = setup.build();
            world.register(1, 7, &pattern(1, 40_000), &[Access::Read, Access::Write]);
            world.send(0).to(1).tagged(1).post();
            world.settle();
            let [place, long, short] = [0, 5000, 30_000].map(|offset| world.place(0, 1, 7, offset));
            let places = vec![(place, 300), (long, 20_000), (short, 5)];
            world.network().cut.push((0, 1));
            let found = match kind {
                0 => world.send(0).to(1).tagged(2).bytes(&[1]).post(),
                1 => world.send(0).to(1).tagged(2).bytes(&pattern(1, 700)).post(),
                2 => world.send(0).to(1).tagged(2).bytes(&pattern(1, 60_000)).post(),
                3 => world.send(0).to(1).tagged(2).bytes(&pattern(1, 300)).inject().post(),
                4 => world.write(0, places, &pattern(1, 20_305), Some(1)),
                5 => world.read(0, places),
                6 => world.atomic(0, vec![(place, 400)], AtomicType::Uint64, AtomicOp::Sum, &pattern(1, 3200)),
                7 => world.write_fenced(0, place, &pattern(1, 9000), true),
                _ => world.read_fenced(0, place, 9000),
            };
            let next = world.send(0).to(1).tagged(3).bytes(&[1]).post();
            world.settle();
            let results = [found, next].map(|handle| world.outcome(handle).completion.result.clone());
            for result in results {
                match result {
                    Err(Failure::PeerLost { peer }) => assert!(peer.contains("node 1"), "{peer}"),
                    // Straight to its memory, for which nothing has to be sent.
                    other => assert!(other.is_ok() && (4..6).contains(&kind), "{kind}: {other:?}\n{world}"),
                }
            }
            assert!(!world.endpoint(0).has_outstanding() && !world.endpoint(0).has_unsent(), "{world}");
        }
    }
}

/// Node 1 reads and waits for its answers; node 0 finds, as it answers, that it does not reach node 1 any more.
#[test]
fn answers_that_cannot_be_sent_any_more_keep_nothing() {
    let enough = |setup: &Setup| setup.slots >= 64 && setup.scheme != SchemeName::Dynamic;
    for setup in settings(98).filter(enough) {
        let mut world = setup.build();
        world.register(0, 7, &pattern(1, 40_000), &[Access::Read, Access::Write]);
        world.pause(0);
        let reads: Vec<_> = (0..3).map(|n| world.read(1, vec![(world.place(1, 0, 7, n), 20_000)])).collect();
        let write = world.write(1, vec![(world.place(1, 0, 7, 9), 700)], &pattern(2, 700), None);
        world.network().cut.push((0, 1));
        world.resume(0);
        world.settle();
        assert!(!world.endpoint(0).has_unsent() && !world.endpoint(0).has_work_left(), "{world}");
        assert_eq!(world.counter(0, Counter::Violations), 0, "{world}");
        world.kill(0);
        world.settle();
        for handle in reads.into_iter().chain([write]) {
            assert!(world.is_done(handle), "{handle:?} hangs\n{world}");
        }
    }
}

/// The departure is all that its peer hears: were the look not ended with it, the peer would sleep.
#[test]
fn a_look_for_held_messages_of_a_dead_peer_ends_with_the_departure() {
    for setup in Setup::all(2, 92) {
        let mut world = Setup { window: Some(0), ..setup }.build();
        for tag in [1, 2] {
            world.send(1).to(0).tagged(tag).post();
        }
        world.settle();
        world.pause(1);
        let look = world.receive(0).from(1).tagged(3).peek().post();
        world.settle();
        assert!(!world.is_done(look), "the other has not answered\n{world}");
        world.kill(1);
        while !world.is_done(look) {
            assert!(world.progress(0) || world.endpoint(0).next_timeout().is_some() || world.is_done(look), "{world}");
        }
        assert_eq!(world.failure(look), Failure::NoMessage);
    }
}

/// The peer lives and is honest; only we cannot reach it any more, and it has said much before it learns of that.
#[test]
fn what_a_peer_still_says_of_what_was_given_up_is_no_violation() {
    // With enough credits for all of it: more could not come from somebody who gets no answer.
    let enough = |setup: &Setup| setup.slots >= 64 && setup.scheme != SchemeName::Dynamic;
    for setup in settings(96).filter(enough) {
        for window in [None, Some(2000)] {
            let mut world = Setup { window, ..setup }.build();
            world.register(1, 7, &pattern(1, 4000), &[Access::Read, Access::Write]);
            let place = world.place(0, 1, 7, 0);
            world.pause(1);
            let sends: Vec<_> = (0..6)
                .map(|n| world.send(0).to(1).tagged(n).bytes(&pattern(1, 40 + 2000 * n as usize)).post())
                .collect();
            let read = world.read(0, vec![(place, 3000)]);
            let write = world.write(0, vec![(place, 50)], &[7; 50], None);
            world.settle();
            world.pause(0);
            world.resume(1);
            for n in 0..6 {
                world.receive(1).from(0).tagged(n).capacity(20_000).post();
            }
            world.settle();
            world.network().cut.push((0, 1));
            let last = world.send(0).to(1).tagged(9).bytes(&[1]).post();
            world.resume(0);
            world.settle();
            for handle in sends.into_iter().chain([read, write, last]) {
                assert!(world.is_done(handle), "{handle:?} hangs\n{world}");
            }
            assert_eq!(world.counter(0, Counter::Violations), 0, "{world}");
        }
    }
}
