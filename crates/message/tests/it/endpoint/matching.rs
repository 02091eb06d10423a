//! Who receives what: MPI's matching rules and libfabric's peek, claim, discard and cancel.

use crate::support::{Setup, World, pattern};
use tidegate_message::{Counter, Failure, Space};

/// One eager message of a single packet, one of many packets, one that goes by rendezvous.
const SIZES: [usize; 3] = [20, 1500, 6000];

#[test]
fn a_receive_takes_only_its_own_tag() {
    let mut world = Setup::new(2).build();
    let receives: Vec<_> = [3, 1, 2].map(|tag| world.receive(1).tagged(tag).capacity(10).post()).into();
    for tag in [1, 2, 3] {
        world.send(0).to(1).tagged(tag).bytes(&[tag as u8]).post();
    }
    world.settle();
    let got: Vec<_> = receives.into_iter().map(|receive| world.bytes(receive).to_vec()).collect();
    assert_eq!(got, [[3], [1], [2]]);
}

#[test]
fn ignored_bits_do_not_matter_and_all_others_do() {
    let mut world = Setup::new(2).build();
    let receive = world.receive(1).matching(0xab00_0000_0000_0000, 0x00ff_ffff_ffff_ffff).capacity(10).post();
    world.send(0).to(1).tagged(0xaa00_0000_0000_1234).bytes(&[1]).post();
    world.send(0).to(1).tagged(0xab00_0000_0000_1234).bytes(&[2]).post();
    world.settle();
    assert_eq!(world.bytes(receive), [2]);
}

#[test]
fn a_receive_takes_only_from_its_source() {
    for setup in Setup::all(3, 31) {
        let mut world = setup.build();
        let from_two = world.receive(0).from(2).tagged(7).capacity(10).post();
        let from_any = world.receive(0).tagged(7).capacity(10).post();
        world.send(1).to(0).tagged(7).bytes(&[1]).post();
        world.settle();
        assert!(!world.is_done(from_two));
        assert_eq!(world.success(from_any).source, Some(world.target(0, 1)));
        world.send(2).to(0).tagged(7).bytes(&[2]).post();
        world.settle();
        assert_eq!(world.bytes(from_two), [2], "{world}");
    }
}

#[test]
fn tagged_and_untagged_messages_never_meet() {
    let mut world = Setup::new(2).build();
    let tagged = world.receive(1).matching(0, u64::MAX).capacity(10).post();
    let untagged = world.receive(1).capacity(10).post();
    world.send(0).to(1).bytes(&[1]).post();
    world.send(0).to(1).tagged(0).bytes(&[2]).post();
    world.settle();
    assert_eq!((world.bytes(tagged), world.bytes(untagged)), (&[2][..], &[1][..]));
    assert_eq!(world.success(untagged).space, Space::Untagged);
}

#[test]
fn messages_of_one_sender_do_not_overtake_each_other() {
    for setup in Setup::all(2, 32) {
        for posted_before in [0, 7, 30] {
            let mut world = setup.build();
            let receive = |world: &mut crate::support::World| world.receive(1).tagged(7).capacity(6000).post();
            let mut receives: Vec<_> = (0..posted_before).map(|_| receive(&mut world)).collect();
            for n in 0..30 {
                world.send(0).to(1).tagged(7).bytes(&pattern(n, SIZES[n % 3])).post();
                world.step();
            }
            receives.extend((posted_before..30).map(|_| receive(&mut world)));
            world.settle();
            for (n, receive) in receives.into_iter().enumerate() {
                assert_eq!(world.bytes(receive), pattern(n, SIZES[n % 3]), "message {n}\n{world}");
            }
        }
    }
}

#[test]
fn receives_that_match_alike_are_taken_in_the_order_they_were_posted() {
    let mut world = Setup::new(2).build();
    let exact = world.receive(1).from(0).tagged(7).capacity(10).post();
    let any_tag = world.receive(1).from(0).matching(0, u64::MAX).capacity(10).post();
    let any_source = world.receive(1).tagged(7).capacity(10).post();
    for n in 0..3 {
        world.send(0).to(1).tagged(7).bytes(&[n]).post();
    }
    world.settle();
    assert_eq!([exact, any_tag, any_source].map(|receive| world.bytes(receive)[0]), [0, 1, 2]);
}

#[test]
fn messages_of_all_senders_reach_receives_from_anybody() {
    for setup in Setup::all(4, 33) {
        let mut world = setup.build();
        let receives: Vec<_> = (0..9).map(|_| world.receive(0).tagged(7).capacity(6000).post()).collect();
        for (round, size) in SIZES.into_iter().enumerate() {
            for from in 1..4 {
                world.send(from).to(0).tagged(7).bytes(&pattern(from, size)).data(round as u64).post();
            }
        }
        world.settle();
        let mut next = [0; 4];
        for receive in receives {
            let (data, source) = (world.success(receive).data, world.success(receive).source);
            let from = world.node_of(0, source.expect("a sender"));
            assert_eq!(data, Some(next[from]), "in order per sender\n{world}");
            assert_eq!(world.bytes(receive), pattern(from, SIZES[next[from] as usize]));
            next[from] += 1;
        }
        assert_eq!(next, [0, 3, 3, 3]);
    }
}

#[test]
fn a_peek_tells_of_a_message_and_leaves_it() {
    for setup in Setup::all(2, 34) {
        for size in SIZES {
            let mut world = setup.build();
            let nothing = world.receive(1).tagged(7).peek().post();
            world.settle();
            assert_eq!(world.failure(nothing), Failure::NoMessage);
            world.send(0).to(1).tagged(7).bytes(&pattern(1, size)).data(5).post();
            world.settle();
            for _ in 0..2 {
                let peek = world.receive(1).matching(0, 0xff).peek().post();
                world.settle();
                let found = world.success(peek);
                assert_eq!((found.length, found.data), (size, Some(5)), "{world}");
                assert_eq!(found.source, Some(world.target(1, 0)));
                assert!(matches!(found.space, Space::Tagged { tag: 7, .. }), "{found:?}");
            }
            let receive = world.receive(1).tagged(7).capacity(size).post();
            world.settle();
            assert_eq!(world.bytes(receive), pattern(1, size), "{world}");
        }
    }
}

#[test]
fn a_peek_finds_the_oldest_message_that_matches() {
    let mut world = Setup::new(2).build();
    for (tag, data) in [(1, 10), (2, 20), (2, 21)] {
        world.send(0).to(1).tagged(tag).data(data).post();
    }
    world.settle();
    let peek = world.receive(1).tagged(2).peek().post();
    world.settle();
    assert_eq!(world.success(peek).data, Some(20));
}

#[test]
fn a_claimed_message_waits_for_its_own_receive() {
    for setup in Setup::all(2, 35) {
        for size in SIZES {
            let mut world = setup.build();
            world.send(0).to(1).tagged(7).bytes(&pattern(1, size)).post();
            world.send(0).to(1).tagged(7).bytes(&pattern(2, size)).post();
            world.settle();
            let claim = world.receive(1).tagged(7).peek().claim().post();
            world.settle();
            assert_eq!(world.success(claim).length, size);
            let other = world.receive(1).tagged(7).capacity(size).post();
            world.settle();
            assert_eq!(world.bytes(other), pattern(2, size), "the claimed one is set aside\n{world}");
            let claimed = world.receive(1).tagged(7).capacity(size).claim().context_of(claim).post();
            world.settle();
            assert_eq!(world.bytes(claimed), pattern(1, size), "{world}");
            assert_eq!(world.counter(1, Counter::UnexpectedBytes), 0);
        }
    }
}

#[test]
fn a_discarded_message_is_gone_and_its_sender_is_satisfied() {
    for setup in Setup::all(2, 36) {
        for size in SIZES {
            for claim_first in [false, true] {
                let mut world = setup.build();
                let send = world.send(0).to(1).tagged(7).bytes(&pattern(1, size)).post();
                world.settle();
                if claim_first {
                    let claim = world.receive(1).tagged(7).peek().claim().post();
                    world.settle();
                    let dropped = world.receive(1).tagged(7).claim().discard().context_of(claim).post();
                    world.settle();
                    world.success(dropped);
                } else {
                    let dropped = world.receive(1).tagged(7).peek().discard().post();
                    world.settle();
                    world.success(dropped);
                }
                world.success(send);
                assert_eq!(world.counter(1, Counter::UnexpectedBytes), 0, "{world}");
                let peek = world.receive(1).tagged(7).peek().post();
                world.settle();
                assert_eq!(world.failure(peek), Failure::NoMessage);
            }
        }
    }
}

#[test]
fn a_message_can_be_claimed_and_discarded_while_it_still_arrives() {
    for setup in Setup::all(2, 37) {
        for discard in [false, true] {
            let mut world = setup.build();
            world.send(0).to(1).tagged(7).bytes(&pattern(1, 2000)).post();
            let next = world.send(0).to(1).tagged(7).bytes(&pattern(2, 2000)).post();
            world.run_until("the first packet is there", |world| world.counter(1, Counter::PacketsReceived) > 0);
            let peek = world.receive(1).tagged(7).peek();
            let peek = if discard { peek.discard() } else { peek.claim() }.post();
            world.settle();
            assert_eq!(world.success(peek).length, 2000, "{world}");
            let receive = world.receive(1).tagged(7).capacity(2000).post();
            world.settle();
            world.success(next);
            assert_eq!(world.bytes(receive), pattern(2, 2000), "{world}");
            if !discard {
                let claimed = world.receive(1).tagged(7).capacity(2000).claim().context_of(peek).post();
                world.settle();
                assert_eq!(world.bytes(claimed), pattern(1, 2000), "{world}");
            }
            assert_eq!(world.counter(1, Counter::UnexpectedBytes), 0);
        }
    }
}

#[test]
fn a_canceled_receive_says_so_and_takes_nothing() {
    let mut world = Setup::new(2).build();
    let canceled = world.receive(1).tagged(7).capacity(100).post();
    let next = world.receive(1).tagged(7).capacity(100).post();
    assert!(world.cancel(canceled));
    world.settle();
    assert_eq!(world.failure(canceled), Failure::Canceled);
    assert!(!world.cancel(canceled), "it is no more");
    world.send(0).to(1).tagged(7).bytes(&pattern(1, 100)).post();
    world.settle();
    assert_eq!(world.bytes(next), pattern(1, 100));
}

#[test]
fn of_receives_with_one_name_the_oldest_is_canceled_whatever_it_is() {
    let mut world = Setup { window: Some(0), ..Setup::new(2) }.build();
    // Without room for more than one message, a peek has to wait for its sender's answer.
    (0..9).for_each(|_| _ = world.send(0).to(1).tagged(9).bytes(&[1]).post());
    world.settle();
    world.pause(0);
    let mut posted = Vec::new();
    for turn in 0..30 {
        posted.push(match turn % 3 {
            0 => world.receive(1).tagged(100 + turn).capacity(1).post(),
            1 => world.receive(1).capacity(1).post(),
            _ => world.receive(1).tagged(100 + turn).peek().post(),
        });
    }
    let canceled = |world: &mut World| world.endpoint(1).cancel_named(1, |context| usize::from(context.0 > 0));
    for receive in posted {
        assert!(canceled(&mut world) && !world.is_done(receive), "{world}");
        world.progress(1);
        assert_eq!(world.failure(receive), Failure::Canceled, "{world}");
    }
    assert!(!canceled(&mut world));
}

#[test]
fn peeks_that_wait_for_answers_are_bounded() {
    let mut world = Setup { window: Some(0), ..Setup::new(2) }.build();
    (0..9).for_each(|_| _ = world.send(0).to(1).tagged(9).bytes(&[1]).post());
    world.settle();
    world.pause(0);
    let peeks: Vec<_> = (0..64).map(|tag| world.receive(1).tagged(100 + tag).peek().post()).collect();
    assert!(world.receive(1).tagged(7).peek().try_post().is_err(), "one more has to wait");
    let receive = world.receive(1).tagged(7).capacity(1).post();
    world.resume(0);
    world.settle();
    for peek in peeks {
        assert_eq!(world.failure(peek), Failure::NoMessage, "{world}");
    }
    assert!(!world.is_done(receive), "a receive is never refused");
    let peek = world.receive(1).tagged(9).peek().post();
    world.settle();
    world.success(peek);
}

#[test]
fn a_receive_that_has_matched_cannot_be_canceled() {
    for setup in Setup::all(2, 38) {
        for size in [2000, 6000] {
            let mut world = setup.build();
            let receive = world.receive(1).tagged(7).capacity(size).post();
            let send = world.send(0).to(1).tagged(7).bytes(&pattern(1, size)).post();
            world.run_until("the first packet is there", |world| world.counter(1, Counter::PacketsReceived) > 0);
            assert!(!world.cancel(receive), "{world}");
            world.settle();
            world.success(send);
            assert_eq!(world.bytes(receive), pattern(1, size), "{world}");
        }
    }
}
