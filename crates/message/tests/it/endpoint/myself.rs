//! An endpoint that talks to itself: everything works, and no mailbox, no credit is used.

use crate::support::{Handle, Setup, World, pattern};
use tidegate_message::{Access, AtomicOp, AtomicType, Counter, Failure, Target};

const SIZES: [usize; 5] = [0, 1, 41, 2048, 50_000];

fn assert_no_packets(world: &mut World) {
    for counter in [Counter::PacketsSent, Counter::PacketsReceived] {
        assert_eq!(world.counter(0, counter), 0, "{counter:?}");
    }
}

#[test]
fn a_message_to_oneself_arrives_expected_and_unexpected() {
    for expected in [true, false] {
        let mut world = Setup::new(2).build();
        for size in SIZES {
            let receive = |world: &mut World| world.receive(0).tagged(7).capacity(size).scattered().post();
            let before = expected.then(|| receive(&mut world));
            let send = world.send(0).to(0).tagged(7).bytes(&pattern(1, size)).data(size as u64).post();
            world.settle();
            let receive = before.unwrap_or_else(|| receive(&mut world));
            world.settle();
            world.success(send);
            assert_eq!(world.bytes(receive), pattern(1, size), "{world}");
            let received = world.success(receive);
            assert_eq!((received.source, received.data), (Some(Target::Myself), Some(size as u64)));
        }
        assert_eq!(world.counter(0, Counter::MessagesSelf), SIZES.len() as u64);
        assert_eq!(world.counter(0, Counter::UnexpectedBytes), 0);
        assert_no_packets(&mut world);
    }
}

#[test]
fn an_injected_message_to_oneself_is_copied() {
    let mut world = Setup::new(2).build();
    world.send(0).to(0).tagged(7).bytes(&pattern(1, 60)).inject().post();
    world.settle();
    let receive = world.receive(0).from(0).tagged(7).capacity(60).post();
    world.settle();
    assert_eq!(world.bytes(receive), pattern(1, 60));
}

#[test]
fn messages_to_oneself_match_in_order_beside_those_of_peers() {
    let mut world = Setup::new(2).build();
    let from_myself = world.receive(0).from(0).tagged(7).capacity(10).post();
    let from_any = world.receive(0).tagged(7).capacity(10).post();
    world.send(1).to(0).tagged(7).bytes(&[1]).post();
    world.settle();
    world.send(0).to(0).tagged(7).bytes(&[2]).post();
    world.settle();
    assert_eq!((world.bytes(from_myself), world.bytes(from_any)), (&[2][..], &[1][..]));
    let receives: Vec<_> = (0..3).map(|_| world.receive(0).tagged(8).capacity(9000).post()).collect();
    for (n, size) in [10, 9000, 20].into_iter().enumerate() {
        world.send(0).to(0).tagged(8).bytes(&pattern(n, size)).post();
    }
    world.settle();
    assert_eq!(receives.iter().map(|receive| world.bytes(*receive).len()).collect::<Vec<_>>(), [10, 9000, 20]);
}

#[test]
fn a_message_to_oneself_that_is_too_long_is_cut() {
    for (size, unexpected) in [(100, false), (100, true), (9000, false), (9000, true)] {
        let mut world = Setup::new(2).build();
        let receive = |world: &mut World| world.receive(0).capacity(60).post();
        let before = (!unexpected).then(|| receive(&mut world));
        let send = world.send(0).to(0).bytes(&pattern(1, size)).post();
        world.settle();
        let receive = before.unwrap_or_else(|| receive(&mut world));
        world.settle();
        world.success(send);
        assert_eq!(world.failure(receive), Failure::Truncated { full: size });
        assert_eq!(world.outcome(receive).bytes, pattern(1, size)[..60]);
    }
}

#[test]
fn one_can_peek_at_claim_and_discard_what_one_sent() {
    for size in [50, 9000] {
        let mut world = Setup::new(2).build();
        let sends: Vec<_> = (0..2).map(|n| world.send(0).to(0).tagged(n).bytes(&pattern(1, size)).post()).collect();
        world.settle();
        let peek = world.receive(0).tagged(0).peek().claim().post();
        let discard = world.receive(0).tagged(1).peek().discard().post();
        world.settle();
        assert_eq!((world.success(peek).length, world.success(discard).length), (size, size));
        let claimed = world.receive(0).tagged(0).capacity(size).claim().context_of(peek).post();
        world.settle();
        assert_eq!(world.bytes(claimed), pattern(1, size));
        sends.into_iter().for_each(|send| assert!(world.success(send).length == size));
    }
}

#[test]
fn a_send_to_oneself_with_delivery_waits_for_its_receive() {
    let mut world = Setup::new(2).build();
    let send = world.send(0).to(0).bytes(&pattern(1, 50)).delivery().post();
    world.settle();
    assert!(!world.is_done(send));
    let receive = world.receive(0).capacity(50).post();
    world.settle();
    world.success(send);
    assert_eq!(world.bytes(receive), pattern(1, 50));
}

#[test]
fn multi_receives_take_messages_from_oneself() {
    let mut world = Setup::new(2).build();
    let multi = world.receive(0).capacity(100).multi(30).post();
    for n in 0..2 {
        world.send(0).to(0).bytes(&pattern(n, 40)).post();
    }
    world.settle();
    let offsets: Vec<_> = world.all(multi).iter().map(|d| (d.completion.offset, d.completion.released)).collect();
    assert_eq!(offsets, [(0, false), (40, true)]);
}

#[test]
fn one_can_reach_ones_own_memory() {
    let mut world = Setup::new(2).build();
    let memory = world.register(0, 9, &[7; 100], &[Access::Read, Access::Write]);
    let write = world.write(0, vec![(world.place(0, 0, 9, 10), 60)], &pattern(1, 60), Some(3));
    world.settle();
    world.success(write);
    assert_eq!(memory.bytes()[10..70], pattern(1, 60));
    assert_eq!(world.remote_writes(0).iter().map(|told| told.data).collect::<Vec<_>>(), [Some(3)]);
    let read = world.read(0, vec![(world.place(0, 0, 9, 10), 60)]);
    world.settle();
    assert_eq!(world.bytes(read), pattern(1, 60));
    let (place, two) = (world.place(0, 0, 9, 0), 2u64.to_le_bytes());
    let sum = world.fetch_atomic(0, vec![(place, 1)], AtomicType::Uint64, AtomicOp::Sum, &two, None);
    world.settle();
    assert_eq!(world.bytes(sum), [7; 8]);
    assert_eq!(memory.bytes()[0], 9);
    let denied: [Handle; 2] =
        [world.read(0, vec![(world.place(0, 0, 8, 0), 1)]), world.read(0, vec![(world.place(0, 0, 9, 99), 2)])];
    world.settle();
    assert_eq!(denied.map(|handle| world.failure(handle)), [Failure::Denied, Failure::Denied]);
    assert_no_packets(&mut world);
}
