//! Messages up to the eager limit: every size around a packet boundary, in every setting.

use crate::support::{Setup, World, pattern};
use std::time::Duration;
use tidegate_message::flow::SchemeName;
use tidegate_message::{Counter, Operation, Space};

/// 40 bytes ride in the first packet, 56 in each further one; 2048 is the eager limit.
const SIZES: [usize; 9] = [0, 1, 39, 40, 41, 96, 97, 2047, 2048];

#[test]
fn a_message_of_any_eager_size_arrives_whole_when_it_is_expected() {
    for setup in Setup::all(2, 11).filter(Setup::never_refuses) {
        let mut world = setup.build();
        for size in SIZES {
            let receive = world.receive(1).from(0).tagged(7).capacity(size).post();
            let send = world.send(0).to(1).tagged(7).bytes(&pattern(size, size)).post();
            world.settle();
            world.success(send);
            assert_eq!(world.bytes(receive), pattern(size, size), "{world}");
        }
        assert_eq!(world.counter(0, Counter::MessagesEager), SIZES.len() as u64);
        assert_eq!(world.counter(1, Counter::UnexpectedMessages), 0);
    }
}

#[test]
fn a_message_of_any_eager_size_arrives_whole_when_it_is_unexpected() {
    for setup in Setup::all(2, 12).filter(Setup::never_refuses) {
        let mut world = setup.build();
        for size in SIZES {
            let send = world.send(0).to(1).tagged(7).bytes(&pattern(size, size)).scattered().post();
            world.settle();
            world.success(send);
            assert_eq!(world.counter(1, Counter::UnexpectedBytes), size as u64, "stored at its exact size");
            let receive = world.receive(1).from(0).tagged(7).capacity(size + 1).scattered().post();
            world.settle();
            assert_eq!(world.bytes(receive), pattern(size, size), "{world}");
            assert_eq!(world.counter(1, Counter::UnexpectedBytes), 0);
        }
        assert_eq!(world.counter(1, Counter::UnexpectedPeak), 2048);
    }
}

#[test]
fn a_receive_posted_in_the_middle_of_a_message_gets_all_of_it() {
    for setup in Setup::all(2, 13) {
        let mut world = setup.build();
        let send = world.send(0).to(1).tagged(7).bytes(&pattern(3, 2000)).post();
        world.run_until("the first packets are there", |world| world.counter(1, Counter::PacketsReceived) > 2);
        let receive = world.receive(1).from(0).tagged(7).capacity(2000).post();
        world.settle();
        world.success(send);
        assert_eq!(world.bytes(receive), pattern(3, 2000), "{world}");
        assert_eq!(world.counter(1, Counter::UnexpectedBytes), 0);
    }
}

#[test]
fn a_completion_tells_all_about_its_operation() {
    let mut world = Setup::new(3).build();
    let receive = world.receive(2).matching(0xff00, 0xff).capacity(100).post();
    let send = world.send(0).to(2).tagged(0xff42).bytes(&pattern(1, 90)).data(99).post();
    world.settle();
    let sender = world.target(2, 0);
    let received = world.success(receive);
    assert_eq!((received.operation, received.length, received.offset), (Operation::Receive, 90, 0));
    assert!(matches!(received.space, Space::Tagged { tag: 0xff42, .. }), "the tag is the message's: {received:?}");
    assert_eq!((received.data, received.source, received.released), (Some(99), Some(sender), false));
    let sent = world.success(send);
    assert_eq!((sent.operation, sent.length), (Operation::Send, 90));
}

#[test]
fn remote_completion_data_of_any_width_arrives() {
    for memory_limit in [0, 100_000] {
        let mut world = Setup::new(2).build();
        for data in [0, 1, u64::from(u32::MAX), 1 << 32, u64::MAX] {
            for size in [0, 32, 33, 40, 2048, 2048 + memory_limit] {
                let receive = world.receive(1).tagged(7).capacity(size).post();
                world.send(0).to(1).tagged(7).bytes(&pattern(7, size)).data(data).post();
                world.settle();
                assert_eq!(world.bytes(receive), pattern(7, size));
                assert_eq!(world.success(receive).data, Some(data), "with {size} bytes");
            }
        }
    }
}

#[test]
fn a_message_that_is_too_long_is_cut_and_its_full_length_is_told() {
    use tidegate_message::Failure::Truncated;
    for setup in Setup::all(2, 14) {
        for (full, capacity) in [(1, 0), (40, 39), (41, 40), (97, 10), (2048, 0), (2048, 2047)] {
            for expected in [true, false] {
                let mut world = setup.build();
                let mut receive = expected.then(|| world.receive(1).tagged(7).capacity(capacity).post());
                let send = world.send(0).to(1).tagged(7).bytes(&pattern(5, full)).post();
                world.settle();
                let receive = *receive.get_or_insert_with(|| world.receive(1).tagged(7).capacity(capacity).post());
                world.settle();
                world.success(send);
                assert_eq!(world.failure(receive), Truncated { full }, "{world}");
                assert_eq!(world.outcome(receive).bytes, pattern(5, full)[..capacity]);
            }
        }
    }
}

#[test]
fn an_injected_buffer_may_change_at_once() {
    for setup in Setup::all(2, 15) {
        let mut world = setup.build();
        // More than the smallest mailboxes hold, so most of them have to wait. The world scribbles over every buffer
        // as soon as the call has returned.
        let sends: Vec<_> =
            (0..20).map(|n| world.send(0).to(1).tagged(n).bytes(&pattern(n as usize, 60)).inject().post()).collect();
        let receives: Vec<_> = (0..20).map(|n| world.receive(1).tagged(n).capacity(60).post()).collect();
        world.settle();
        for n in 0..20 {
            world.success(sends[n]);
            assert_eq!(world.bytes(receives[n]), pattern(n, 60), "{world}");
        }
    }
}

#[test]
fn what_is_injected_leaves_before_its_sender_falls_silent() {
    // Schemes that refuse try again by a timer, and need their sender.
    for setup in Setup::all(2, 17).filter(Setup::never_refuses) {
        let mut world = Setup { patience: Duration::from_millis(10), ..setup }.build();
        let receives: Vec<_> = (0..20).map(|n| world.receive(1).tagged(n).capacity(40).post()).collect();
        for n in 0..20 {
            while world.send(0).to(1).tagged(n).bytes(&pattern(n as usize, 40)).inject().silent().try_post().is_err() {
                world.step();
            }
        }
        // From here on the sender computes.
        world.pause(0);
        world.settle();
        for (n, receive) in receives.into_iter().enumerate() {
            assert_eq!(world.bytes(receive), pattern(n, 40), "{world}");
        }
        assert_eq!((world.counter(0, Counter::MessagesEager), world.counter(0, Counter::BytesSent)), (20, 20 * 40));
    }
}

/// Posts an injected message, with so much time between two attempts. Returns how long that has taken.
fn inject_in_the_end(world: &mut World, to: usize, bytes: &[u8], between: Duration) -> Duration {
    let begun = world.now();
    while world.send(0).to(to).tagged(0).bytes(bytes).inject().silent().try_post().is_err() {
        world.pass(between);
        // Enough for each node to make progress.
        world.steps(20);
        assert!(world.now().since(begun) < Duration::from_secs(60), "it is refused for ever");
    }
    world.now().since(begun)
}

#[test]
fn a_receiver_that_makes_no_progress_is_waited_for_once_until_credits_come() {
    let patience = Duration::from_millis(2);
    for between in [Duration::from_micros(1), Duration::from_millis(12)] {
        let mut world = Setup { patience, slots: 4, ..Setup::new(3) }.build();
        for round in 0..3 {
            world.pause(1);
            world.pause(2);
            let waited: Duration = (0..20).map(|n| inject_in_the_end(&mut world, 1, &[n; 8], between)).sum();
            let expected = patience.max(between);
            assert!(
                (expected..expected + patience + between).contains(&waited),
                "{waited:?} between {between:?} in round {round}"
            );
            let another: Duration = (0..20).map(|n| inject_in_the_end(&mut world, 2, &[n; 8], between)).sum();
            assert_eq!(another, Duration::ZERO, "patience is one for all peers");
            world.pass(Duration::from_secs(2));
            for receiver in [1, 2] {
                world.resume(receiver);
                let receives: Vec<_> = (0..20).map(|_| world.receive(receiver).tagged(0).capacity(8).post()).collect();
                world.settle();
                receives
                    .into_iter()
                    .enumerate()
                    .for_each(|(n, receive)| assert_eq!(world.bytes(receive), [n as u8; 8]));
            }
            assert_eq!(inject_in_the_end(&mut world, 1, &[0], between), Duration::ZERO);
            let receive = world.receive(1).tagged(0).capacity(1).post();
            world.settle();
            assert_eq!(world.bytes(receive), [0]);
        }
        world.assert_windows(0);
    }
}

/// A retry timer that runs out says nothing of the receiver.
#[test]
fn a_receiver_without_a_buffer_that_makes_no_progress_is_waited_for_once_until_something_leaves() {
    let (patience, between) = (Duration::from_millis(2), Duration::from_micros(50));
    for scheme in [SchemeName::Rnr, SchemeName::SharedWindow] {
        let mut world = Setup { patience, slots: 4, scheme, ..Setup::new(2) }.build();
        for round in 0..3 {
            world.pause(1);
            let waited: Duration = (0..20).map(|n| inject_in_the_end(&mut world, 1, &[n; 8], between)).sum();
            let expected = patience..2 * patience;
            assert!(expected.contains(&waited), "{scheme}: {waited:?} in round {round}");
            world.resume(1);
            let receives: Vec<_> = (0..20).map(|_| world.receive(1).tagged(0).capacity(8).post()).collect();
            for _ in 0..100 {
                world.pass(Duration::from_millis(20));
                world.steps(20);
            }
            receives.into_iter().enumerate().for_each(|(n, receive)| assert_eq!(world.bytes(receive), [n as u8; 8]));
        }
    }
}

/// Each that is refused is, once something has left, the first of its kind.
#[test]
fn what_is_injected_leaves_before_its_sender_falls_silent_though_it_is_refused_again_and_again() {
    let (patience, between) = (Duration::from_millis(2), Duration::from_micros(50));
    for scheme in [SchemeName::Rnr, SchemeName::SharedWindow] {
        let mut world = Setup { patience, slots: 4, scheme, ..Setup::new(2) }.build();
        let receives: Vec<_> = (0..40).map(|_| world.receive(1).tagged(0).capacity(8).post()).collect();
        let mut waited = Duration::ZERO;
        for n in 0..40 {
            // The receiver is late, and then takes all.
            world.pause(1);
            while world.send(0).to(1).tagged(0).bytes(&[n; 8]).inject().silent().try_post().is_err() {
                world.pass(between);
                waited += between;
                world.resume(1);
                world.steps(20);
            }
        }
        assert!(waited > 2 * patience, "{scheme}: {waited:?}");
        world.pause(0);
        world.resume(1);
        world.settle();
        for (n, receive) in receives.into_iter().enumerate() {
            assert_eq!(world.bytes(receive), [n as u8; 8], "{scheme}, {n}");
        }
    }
}

/// A rendezvous needs its sender, and to its program an injected message has been sent.
#[test]
fn what_is_injected_without_a_credit_goes_by_no_rendezvous() {
    for scheme in [SchemeName::Preposted, SchemeName::Growing] {
        let mut world = Setup { slots: 3, scheme, ..Setup::new(2) }.build();
        world.pause(1);
        let send = |world: &mut World, n: u8, inject| {
            let send = world.send(0).to(1).tagged(0).bytes(&[n; 8]);
            if inject { send.inject().post() } else { send.post() }
        };
        (0..10).for_each(|n| _ = send(&mut world, n, true));
        assert_eq!(world.counter(0, Counter::MessagesRendezvous), 0, "{scheme}");
        (10..20).for_each(|n| _ = send(&mut world, n, false));
        assert_eq!(world.counter(0, Counter::MessagesRendezvous), 10, "{scheme}");
        world.resume(1);
        let receives: Vec<_> = (0..20).map(|_| world.receive(1).tagged(0).capacity(8).post()).collect();
        world.settle();
        receives.into_iter().enumerate().for_each(|(n, receive)| assert_eq!(world.bytes(receive), [n as u8; 8]));
    }
}

/// While they are refused to their program nothing of them is in the backlog.
#[test]
fn injected_messages_that_find_no_credit_make_a_connection_grow_whatever_they_take() {
    for size in [8, 64] {
        let patience = Duration::from_millis(2);
        let mut world = Setup { patience, slots: 2, scheme: SchemeName::Growing, ..Setup::new(2) }.build();
        let receives: Vec<_> = (0..20).map(|_| world.receive(1).tagged(0).capacity(size).post()).collect();
        for n in 0..20 {
            inject_in_the_end(&mut world, 1, &pattern(n, size), Duration::from_micros(10));
        }
        assert_eq!(world.counter(0, Counter::SendsDelayed), 0, "{size}: none has waited but with its program");
        world.settle();
        receives.into_iter().enumerate().for_each(|(n, receive)| assert_eq!(world.bytes(receive), pattern(n, size)));
        assert!(world.counter(1, Counter::BuffersAdded) > 0, "{size}");
    }
}

#[test]
fn a_message_of_two_packets_leaves_whole_or_is_refused() {
    for scheme in [SchemeName::Static, SchemeName::Dynamic] {
        // A receiver that never lends more than one credit gets what leaves first, and later what follows.
        for (slots, credit_slots, is_whole) in [(8, 2, true), (2, 1, false)] {
            let patience = Duration::from_millis(2);
            let mut world = Setup { patience, slots, credit_slots, scheme, ..Setup::new(2) }.build();
            let mut waited = Duration::ZERO;
            for n in 0..30 {
                let receive = world.receive(1).tagged(0).capacity(64).post();
                waited += inject_in_the_end(&mut world, 1, &pattern(n, 64), Duration::from_micros(10));
                world.pause(0);
                (0..100).for_each(|_| _ = world.step());
                if is_whole {
                    assert_eq!(world.bytes(receive), pattern(n, 64), "its sender computes\n{world}");
                }
                world.resume(0);
                world.settle();
                assert_eq!(world.bytes(receive), pattern(n, 64));
            }
            assert!(waited < 2 * patience, "{waited:?}: what never comes is not waited for with each message");
        }
    }
}

#[test]
fn a_send_with_delivery_completes_only_when_the_receiver_has_it() {
    for setup in Setup::all(2, 16) {
        for size in [0, 10, 2048, 5000] {
            let mut world = setup.build();
            let send = world.send(0).to(1).tagged(7).bytes(&pattern(2, size)).delivery().post();
            world.settle();
            assert!(!world.is_done(send), "nobody has received it yet\n{world}");
            let receive = world.receive(1).tagged(7).capacity(size).post();
            world.run_until("the send is complete", |world| world.is_done(send));
            world.success(send);
            world.settle();
            assert_eq!(world.bytes(receive), pattern(2, size));
        }
    }
}

#[test]
fn a_send_that_does_not_report_is_silent_when_it_succeeds() {
    let mut world = Setup::new(2).build();
    let silent: Vec<_> =
        [0, 2048, 9000].map(|size| world.send(0).to(1).bytes(&pattern(1, size)).silent().post()).into();
    let receives: Vec<_> = silent.iter().map(|_| world.receive(1).capacity(9000).post()).collect();
    world.settle();
    for (send, receive) in silent.into_iter().zip(receives) {
        assert!(!world.is_done(send));
        world.success(receive);
    }
    assert!(!world.endpoint(0).has_unsent());
}

#[test]
fn what_has_not_left_yet_is_known_as_unsent() {
    let mut world = Setup { slots: 2, credit_slots: 1, ..Setup::new(2) }.build();
    assert!(!world.endpoint(0).has_unsent());
    world.pause(1);
    world.send(0).to(1).bytes(&pattern(1, 2048)).inject().post();
    world.settle();
    assert!(world.endpoint(0).has_unsent(), "37 packets do not fit one slot\n{world}");
    world.resume(1);
    world.settle();
    assert!(!world.endpoint(0).has_unsent());
}

#[test]
fn injected_messages_leave_in_the_end_whatever_refuses_them() {
    for setup in Setup::all(3, 23) {
        let mut world = Setup { patience: Duration::from_millis(10), ..setup }.build();
        let receives: Vec<_> = (0..40).map(|n| world.receive(1 + n % 2).tagged(0).capacity(8).post()).collect();
        for n in 0..40 {
            inject_in_the_end(&mut world, 1 + n % 2, &pattern(n, 8), Duration::from_micros(5));
        }
        world.settle();
        for (n, receive) in receives.into_iter().enumerate() {
            assert_eq!(world.bytes(receive), pattern(n, 8), "{world}");
        }
    }
}
