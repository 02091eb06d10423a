//! Messages above the eager limit that the link carries beside the packet that says what they are.

use crate::support::{Memory, Setup, pattern};
use tidegate_message::flow::{Packet, PacketKind, SchemeName};
use tidegate_message::{Counter, Failure};

/// Every scheme where messages are carried.
fn settings(seed: u64) -> impl Iterator<Item = Setup> {
    Setup::all(2, seed).filter(|setup| setup.memory == Memory::Carried)
}

#[test]
fn a_carried_message_is_complete_for_its_sender_before_it_is_received_and_stored_at_its_exact_size() {
    for setup in settings(401) {
        let mut world = setup.build();
        let send = world.send(0).to(1).tagged(7).bytes(&pattern(1, 4000)).scattered().post();
        world.settle();
        world.success(send);
        assert_eq!((world.counter(1, Counter::UnexpectedBytes), world.counter(1, Counter::BytesRead)), (4000, 0));
        let receive = world.receive(1).from(0).tagged(7).capacity(5000).scattered().post();
        world.settle();
        assert_eq!(world.bytes(receive), pattern(1, 4000), "{world}");
        assert_eq!(world.counter(1, Counter::UnexpectedBytes), 0);
        world.assert_windows(1);
    }
}

#[test]
fn short_carried_and_long_messages_keep_their_order() {
    for setup in settings(402) {
        for first in [false, true] {
            let mut world = setup.build();
            let sizes = [10, 4000, 9000, 3000, 4999, 1, 2500, 2500, 2500, 2500];
            let receive = |world: &mut crate::support::World| {
                sizes.map(|size: usize| world.receive(1).from(0).tagged(7).capacity(size).post())
            };
            let early = first.then(|| receive(&mut world));
            let sends: Vec<_> = (0..)
                .zip(sizes)
                .map(|(number, size)| world.send(0).to(1).tagged(7).bytes(&pattern(number, size)).post())
                .collect();
            world.settle();
            let receives = early.unwrap_or_else(|| receive(&mut world));
            world.settle();
            for (number, size) in (0..).zip(sizes) {
                world.success(sends[number]);
                assert_eq!(world.bytes(receives[number]), pattern(number, size), "message {number} of {setup:?}");
            }
        }
    }
}

#[test]
fn a_receive_that_is_too_small_gets_the_beginning_and_a_discarded_message_leaves_nothing() {
    for setup in settings(403) {
        let mut world = setup.build();
        for unexpected in [false, true] {
            let post = |world: &mut crate::support::World| world.receive(1).tagged(7).capacity(100).post();
            let early = (!unexpected).then(|| post(&mut world));
            let send = world.send(0).to(1).tagged(7).bytes(&pattern(3, 4000)).post();
            world.settle();
            let receive = early.unwrap_or_else(|| post(&mut world));
            world.settle();
            world.success(send);
            assert_eq!(world.failure(receive), Failure::Truncated { full: 4000 });
            assert_eq!(world.outcome(receive).bytes, pattern(3, 4000)[..100]);
        }
        world.send(0).to(1).tagged(8).bytes(&pattern(4, 4000)).post();
        world.settle();
        let discard = world.receive(1).tagged(8).peek().discard().post();
        world.settle();
        world.success(discard);
        assert_eq!((world.counter(1, Counter::UnexpectedBytes), world.counter(1, Counter::UnmatchedBytes)), (0, 0));
        world.assert_windows(1);
    }
}

/// A window of 3,000 bytes has no room for one message of a quarter of it; and a delivery is more than that it left.
#[test]
fn what_has_no_room_in_the_window_or_is_to_be_delivered_is_announced() {
    for window in [Some(3000), None] {
        let mut world = Setup { memory: Memory::Carried, window, ..Setup::new(2) }.build();
        let mut send = world.send(0).to(1).tagged(7).bytes(&pattern(5, 4000));
        if window.is_none() {
            send = send.delivery();
        }
        let send = send.post();
        world.settle();
        assert!(!world.is_done(send));
        assert_eq!(world.counter(1, Counter::UnexpectedBytes), 0, "the receiver stores none of it");
        let receive = world.receive(1).tagged(7).capacity(4000).post();
        world.settle();
        world.success(send);
        assert_eq!(world.bytes(receive), pattern(5, 4000));
        assert_eq!(world.counter(0, Counter::MessagesRendezvous), 1);
    }
}

#[test]
fn what_was_carried_is_received_after_its_senders_death_and_nothing_of_it_is_left() {
    for scheme in [SchemeName::None, SchemeName::Static, SchemeName::Dynamic] {
        let mut world = Setup { memory: Memory::Carried, scheme, ..Setup::new(3) }.build();
        let sends = [0, 1].map(|number| world.send(0).to(1).tagged(7).bytes(&pattern(number, 4000)).post());
        world.settle();
        sends.iter().for_each(|send| {
            world.success(*send);
        });
        world.kill(0);
        world.settle();
        let receives = [0, 1].map(|_| world.receive(1).from(0).tagged(7).capacity(4000).post());
        world.settle();
        for (number, receive) in receives.into_iter().enumerate() {
            assert_eq!(world.bytes(receive), pattern(number, 4000), "{scheme:?}");
        }
        assert_eq!(world.counter(1, Counter::UnmatchedBytes), 0);
    }
}

/// Kinds 27 and 28 say that something was carried.
#[test]
fn a_packet_for_which_nothing_was_carried_is_a_violation() {
    for memory in [Memory::Carried, Memory::Direct] {
        let mut world = Setup { memory, ..Setup::new(2) }.build();
        for kind in [27, 28] {
            let mut packet = Packet::new(PacketKind::Data, 24, kind);
            packet.payload[16..24].copy_from_slice(&4000_u64.to_le_bytes());
            world.inject_packet(1, 0, packet);
        }
        world.settle();
        assert_eq!(world.counter(0, Counter::Violations), 2);
        let receive = world.receive(0).tagged(7).capacity(4000).post();
        world.send(1).to(0).tagged(7).bytes(&pattern(6, 4000)).post();
        world.settle();
        assert_eq!(world.bytes(receive), pattern(6, 4000));
    }
}

/// Whose window is not known yet gets nothing, and then all in the ways and the order in which it would have come: what
/// is short or carried is complete though nobody receives it.
#[test]
fn what_was_sent_before_the_window_was_known_leaves_as_if_it_had_been() {
    for scheme in [SchemeName::None, SchemeName::Static, SchemeName::Dynamic] {
        let mut world = Setup { memory: Memory::Carried, scheme, ..Setup::new(2) }.build();
        world.network().hindered = Some((0, 1));
        let sizes = [10, 4000, 2000, 4999];
        let sends: Vec<_> = (0..)
            .zip(sizes)
            .map(|(number, size)| world.send(0).to(1).tagged(7).bytes(&pattern(number, size)).post())
            .collect();
        world.settle();
        assert!(sends.iter().all(|&send| !world.is_done(send)), "nothing can leave");
        world.network().hindered = None;
        world.settle();
        sends.iter().for_each(|send| {
            world.success(*send);
        });
        assert_eq!(world.counter(0, Counter::SendsDeferred), 0, "there was room for all");
        assert_eq!((world.counter(0, Counter::MessagesEager), world.counter(0, Counter::MessagesRendezvous)), (4, 0));
        for (number, size) in (0..).zip(sizes) {
            let receive = world.receive(1).from(0).tagged(7).capacity(size).post();
            world.settle();
            assert_eq!(world.bytes(receive), pattern(number, size), "message {number} under {scheme:?}");
        }
        world.assert_windows(1);
    }
}
