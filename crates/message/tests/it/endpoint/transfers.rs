//! What a link tells later: transfers that end after what they were for, writes that have failed, packets refused.

use crate::support::{Handle, Memory, Setup, World, pattern};
use std::time::Duration;
use tidegate_message::flow::{Packet, PacketKind, SchemeName};
use tidegate_message::{Access, Buffer, Context, Counter, Failure, WriteRequest};

/// A region that is in reach of transfers.
const KEY: u64 = 5;
/// One that is not.
const BY_MESSAGE: u64 = 6;

/// Three nodes; a receive and a read of node 0 wait for transfers with node 1, which do not end.
fn with_pending_transfers(is_stubborn: bool) -> (World, [Handle; 2]) {
    let mut world = Setup { memory: Memory::Delayed, scheduled: true, seed: 7, ..Setup::new(3) }.build();
    world.network().is_stubborn = is_stubborn;
    world.network().holds_transfers = true;
    world.register(1, KEY, &pattern(3, 100), &[Access::Read, Access::Write]);
    let receive = world.receive(0).from(1).tagged(7).capacity(9000).post();
    world.send(1).to(0).tagged(7).bytes(&pattern(1, 9000)).post();
    let read = world.read(0, vec![(world.place(0, 1, KEY, 0), 100)]);
    world.run_until("both are under way", |world| world.network().transfers(0) == 2);
    (world, [receive, read])
}

#[test]
fn what_a_lost_peer_was_wanted_for_ends_at_once_if_its_transfers_can_be_stopped() {
    let (mut world, handles) = with_pending_transfers(false);
    world.kill(1);
    world.settle();
    handles.iter().for_each(|handle| world.assert_lost(*handle, 1));
    assert_eq!(world.network().transfers(0), 0, "they were stopped");
    assert!(world.network().has_released(0, 1));
}

#[test]
fn what_a_lost_peer_was_wanted_for_ends_with_its_transfers_if_they_cannot_be_stopped() {
    let (mut world, handles) = with_pending_transfers(true);
    let other = world.send(0).to(2).bytes(&pattern(2, 10)).post();
    world.kill(1);
    world.settle();
    assert!(handles.iter().all(|handle| !world.is_done(*handle)), "their memory is in use\n{world}");
    world.success(other);
    assert!(!world.network().has_released(0, 1), "a completion is still to name it");
    assert!(world.endpoint(0).has_outstanding());
    // The transfers scribble into their memory when they end. From the completions on nothing may: the world checks it.
    world.network().holds_transfers = false;
    world.settle();
    handles.iter().for_each(|handle| world.assert_lost(*handle, 1));
    assert!(world.network().has_released(0, 1) && !world.endpoint(0).has_outstanding(), "{world}");
    world.replace(1);
    let again = world.receive(0).from(1).capacity(10).post();
    world.send(1).to(0).bytes(&pattern(4, 10)).post();
    world.settle();
    assert_eq!(world.bytes(again), pattern(4, 10));
}

#[test]
fn a_buffer_of_many_messages_goes_back_when_no_transfer_touches_it_any_more() {
    let setup = Setup { memory: Memory::Delayed, scheduled: true, seed: 9, ..Setup::new(3) };
    let mut world = setup.build();
    world.network().is_stubborn = true;
    world.network().holds_transfers = true;
    let many = world.receive(0).capacity(9000).multi(8000).post();
    world.send(1).to(0).bytes(&pattern(1, 4000)).post();
    world.run_until("it is under way", |world| world.network().transfers(0) == 1);
    world.kill(1);
    world.settle();
    assert!(!world.is_done(many), "{world}");
    world.network().holds_transfers = false;
    world.settle();
    world.assert_lost(many, 1);
    assert!(world.outcome(many).completion.released, "{world}");
}

#[test]
fn operations_that_are_given_up_at_the_end_wait_for_their_transfers_too() {
    for is_stubborn in [false, true] {
        let (mut world, [_, read]) = with_pending_transfers(is_stubborn);
        world.endpoint(0).begin_closing();
        world.endpoint(0).abandon_unsent();
        world.progress(0);
        assert_eq!(world.is_done(read), !is_stubborn, "{world}");
        world.network().holds_transfers = false;
        world.settle();
        assert_eq!(world.failure(read), Failure::Canceled);
    }
}

#[test]
fn a_write_that_fails_late_ends_what_was_to_be_sent_and_what_was_sent_by_the_peer_is_still_received() {
    for setup in Setup::all(3, 101) {
        let mut world = setup.build();
        world.pause(1);
        let long = world.send(0).to(1).tagged(7).bytes(&pattern(1, 9000)).post();
        let sends: Vec<Handle> =
            (0..30).map(|n| world.send(0).to(1).tagged(n).bytes(&pattern(1, 300)).post()).collect();
        let waits = world.receive(0).from(1).tagged(99).capacity(10).post();
        let (short, stored) = (world.receive(0).from(1).tagged(3).capacity(10), [3; 10]);
        let short = short.post();
        world.resume(1);
        world.send(1).to(0).tagged(3).bytes(&stored).post();
        world.pause(1);
        world.network().fail_late(0, 1);
        world.settle();
        world.assert_lost(long, 1);
        assert_eq!(world.bytes(short), stored, "it was sent before\n{world}");
        world.assert_lost(waits, 1);
        let lost = sends.iter().filter(|send| world.outcome(**send).completion.result.is_err()).count();
        sends.iter().skip(sends.len() - lost).for_each(|send| world.assert_lost(*send, 1));
        let (after, other) = (world.send(0).to(1).bytes(&[1]).post(), world.send(0).to(2).bytes(&[2]).post());
        world.settle();
        world.assert_lost(after, 1);
        world.success(other);
        assert!(!world.endpoint(0).has_unsent(), "{world}");
    }
}

#[test]
fn flow_control_hears_of_packets_that_were_refused_on_their_way() {
    let setup = Setup { scheme: SchemeName::RefuseThird, piggyback: false, ..Setup::new(2) };
    let mut world = setup.build();
    world.pause(1);
    assert_eq!(world.endpoint(0).credits(tidegate_message::PeerId(0)), 2);
    let full = world.counter(0, Counter::MailboxFull);
    world.network().refuse_late(0, 1);
    world.progress(0);
    assert_eq!(world.endpoint(0).credits(tidegate_message::PeerId(0)), 0, "others had better wait");
    assert_eq!(world.counter(0, Counter::MailboxFull), full + 1);
    let waits = world.send(0).to(1).bytes(&[1; 100]).post();
    assert!(!world.is_done(waits));
    world.pass(Duration::from_secs(1));
    world.resume(1);
    world.settle();
    world.success(waits);
}

/// Credits and return requests are counted in the order in which they were sent: what found no place is not overtaken.
#[test]
fn control_packets_stay_in_order_when_a_link_has_no_place_now_and_then() {
    for (seed, piggyback) in (1..100).flat_map(|seed| [(seed, false), (seed, true)]) {
        let setup = Setup { slots: 6, piggyback, scheduled: true, seed, window: Some(0), ..Setup::new(2) };
        let mut world = setup.build();
        world.network().is_busy = true;
        let mut receives = Vec::new();
        for n in 0..60 {
            for (me, other) in [(0, 1), (1, 0)] {
                receives.push(world.receive(me).from(other).tagged(n).capacity(600).post());
                world.send(me).to(other).tagged(n).bytes(&pattern(1, 600)).post();
            }
            world.steps(30);
        }
        world.network().is_busy = false;
        world.settle();
        receives.iter().for_each(|receive| assert_eq!(world.bytes(*receive), pattern(1, 600)));
    }
}

/// Two reads of node 0 from node 1: one by a transfer that is pending, one by message.
fn two_reads() -> (World, [Handle; 2]) {
    let mut world = Setup { memory: Memory::Delayed, seed: 8, ..Setup::new(3) }.build();
    world.network().holds_transfers = true;
    world.register(1, KEY, &pattern(3, 100), &[Access::Read]);
    let other = world.buffer(1, &pattern(4, 100));
    world.endpoint(1).register(BY_MESSAGE, other, &[Access::Read]);
    world.pause(1);
    let reads = [KEY, BY_MESSAGE].map(|key| world.read(0, vec![(world.place(0, 1, key, 0), 100)]));
    (world, reads)
}

#[test]
fn a_false_reply_does_not_end_a_transfer() {
    let (mut world, [direct, _]) = two_reads();
    assert_eq!(world.network().transfers(0), 1);
    let mut reply = Packet::new(PacketKind::Data, 16, 12);
    reply.payload[12..16].copy_from_slice(&0_u32.to_le_bytes());
    world.inject_packet(1, 0, reply);
    world.progress(0);
    assert!(!world.is_done(direct), "its transfer is pending");
    assert_eq!(world.counter(0, Counter::Violations), 1);
    world.network().holds_transfers = false;
    world.resume(1);
    world.settle();
    assert_eq!(world.bytes(direct), pattern(3, 100));
}

#[test]
fn what_is_injected_may_change_after_the_call_even_where_transfers_end_later() {
    let mut world = Setup { memory: Memory::Delayed, scheduled: true, seed: 8, ..Setup::new(3) }.build();
    let region = world.register(1, KEY, &[0; 100], &[Access::Write]);
    let mut buffer = world.buffer(0, &[7; 8]);
    let to = vec![(world.place(0, 1, KEY, 0), 8)];
    let context = Context(1);
    let write = WriteRequest { to, buffer: buffer.clone(), data: None, context, inject: true, report: true };
    world.endpoint(0).write(write).expect("room");
    buffer.write(0, &[0xdd; 8]);
    world.settle();
    assert_eq!(region.bytes()[..8], [7; 8]);
}

#[test]
fn no_part_of_an_operation_begins_after_it_has_ended() {
    for is_stubborn in [false, true] {
        let mut world = Setup { memory: Memory::Delayed, scheduled: true, seed: 8, ..Setup::new(3) }.build();
        world.network().is_stubborn = is_stubborn;
        world.network().holds_transfers = true;
        world.register(1, KEY, &pattern(3, 100), &[Access::Read, Access::Write]);
        world.network().cut.push((0, 1));
        // The first part goes by message, and shows that the peer is out of reach.
        let read = world.read(0, vec![(world.place(0, 1, BY_MESSAGE, 0), 50), (world.place(0, 1, KEY, 0), 50)]);
        let places = vec![(world.place(0, 1, BY_MESSAGE, 0), 50), (world.place(0, 1, KEY, 0), 50)];
        let write = world.write(0, places, &[1; 100], None);
        assert_eq!(world.network().transfers(0), 0);
        world.settle();
        world.assert_lost(read, 1);
        world.assert_lost(write, 1);
    }
}

#[test]
fn late_failures_leave_nothing_behind() {
    for setup in Setup::all(3, 103) {
        let mut world = setup.build();
        world.register(1, KEY, &pattern(3, 9000), &[Access::Read, Access::Write]);
        let read = world.read(0, vec![(world.place(0, 1, KEY, 0), 9000)]);
        let write = world.write(0, vec![(world.place(0, 1, KEY, 0), 9000)], &pattern(3, 9000), None);
        let receive = world.receive(0).from(1).capacity(9000).post();
        world.send(1).to(0).bytes(&pattern(1, 9000)).post();
        world.steps(20);
        world.network().fail_late(0, 1);
        world.steps(7);
        let late = world.read(0, vec![(world.place(0, 1, KEY, 0), 9000)]);
        let send = world.send(0).to(1).bytes(&pattern(1, 9000)).post();
        world.settle();
        for handle in [read, write, receive, late, send] {
            assert_eq!(world.all(handle).len(), 1, "{handle:?} ends once\n{world}");
        }
        assert!(!world.endpoint(0).has_outstanding() && world.network().has_released(0, 1), "{world}");
    }
}
