//! Messages above the eager limit: a request to send, then they are pulled from memory or through the mailbox.

use crate::support::{Memory, Setup, pattern};
use tidegate_message::{Access, Counter, Failure};

const SIZES: [usize; 4] = [2049, 4096, 5001, 30_000];

#[test]
fn a_long_message_arrives_whole_over_every_kind_of_memory() {
    for setup in Setup::all(2, 21) {
        let mut world = setup.build();
        for size in SIZES {
            for scattered in [false, true] {
                let receive = world.receive(1).tagged(7).capacity(size);
                let receive = if scattered { receive.scattered() } else { receive }.post();
                let send = world.send(0).to(1).tagged(7).bytes(&pattern(size, size));
                let send = if scattered { send.scattered() } else { send }.post();
                world.settle();
                world.success(send);
                assert_eq!(world.bytes(receive), pattern(size, size), "{world}");
            }
        }
        // Where messages are carried, the two shortest of them are.
        let carried = if setup.memory == Memory::Carried { 4 } else { 0 };
        assert_eq!(world.counter(0, Counter::MessagesRendezvous) + carried, 2 * SIZES.len() as u64);
        assert_eq!(world.counter(0, Counter::MessagesEager), carried);
    }
}

#[test]
fn a_long_message_waits_at_its_sender_until_it_is_received() {
    for setup in Setup::all(2, 22) {
        let mut world = setup.build();
        let send = world.send(0).to(1).tagged(7).bytes(&pattern(1, 30_000)).post();
        world.settle();
        assert!(!world.is_done(send), "{world}");
        assert_eq!(world.counter(1, Counter::UnexpectedBytes), 0, "the receiver stores none of it");
        let receive = world.receive(1).tagged(7).capacity(40_000).post();
        world.settle();
        world.success(send);
        assert_eq!(world.bytes(receive), pattern(1, 30_000), "{world}");
    }
}

/// Its receive matches a long message that has found no room, of which the receiver knows no memory.
#[test]
fn a_long_message_that_was_deferred_is_read_where_that_is_possible() {
    for memory in [Memory::Direct, Memory::Delayed, Memory::OneWay, Memory::Mailbox] {
        for (from, to) in [(0, 1), (1, 0)] {
            let setup = Setup { window: Some(400), ..Setup::new(2) };
            let mut world = Setup { memory, ..setup }.build();
            for _ in 0..30 {
                world.send(from).to(to).tagged(1).bytes(&[1; 40]).post();
            }
            let send = world.send(from).to(to).tagged(7).bytes(&pattern(1, 30_000)).post();
            world.settle();
            let deferred = world.counter(from, Counter::SendsDeferred);
            assert!(deferred > 0 && !world.is_done(send), "{world}");
            let receive = world.receive(to).tagged(7).capacity(30_000).post();
            world.settle();
            world.success(send);
            assert_eq!(world.bytes(receive), pattern(1, 30_000), "{world}");
            let is_read = matches!(memory, Memory::Direct | Memory::Delayed) || (memory, to) == (Memory::OneWay, 0);
            let read = world.counter(to, Counter::BytesRead);
            assert_eq!(read, if is_read { 30_000 } else { 0 }, "{memory:?} from {from} to {to}\n{world}");
        }
    }
}

#[test]
fn a_receive_that_is_too_small_for_a_long_message_gets_its_beginning() {
    for setup in Setup::all(2, 23) {
        for capacity in [0, 1, 100, 29_999] {
            let mut world = setup.build();
            let send = world.send(0).to(1).tagged(7).bytes(&pattern(1, 30_000)).scattered().post();
            let receive = world.receive(1).tagged(7).capacity(capacity).scattered().post();
            world.settle();
            world.success(send);
            assert_eq!(world.failure(receive), Failure::Truncated { full: 30_000 }, "{world}");
            assert_eq!(world.outcome(receive).bytes, pattern(1, 30_000)[..capacity]);
        }
    }
}

#[test]
fn an_injected_long_message_is_copied() {
    for setup in Setup::all(2, 24) {
        let setup = Setup { eager_bytes: 16, ..setup };
        let mut world = setup.build();
        let send = world.send(0).to(1).tagged(7).bytes(&pattern(1, 64)).inject().post();
        world.settle();
        let receive = world.receive(1).tagged(7).capacity(64).post();
        world.settle();
        world.success(send);
        assert_eq!(world.bytes(receive), pattern(1, 64), "{world}");
    }
}

#[test]
fn many_long_messages_cross_in_both_directions() {
    for setup in Setup::all(3, 25) {
        let mut world = setup.build();
        let mut pairs = Vec::new();
        for round in 0..6 {
            for (from, to) in [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)] {
                let seed = round * 100 + from * 10 + to;
                let send =
                    world.send(from).to(to).tagged(round as u64).bytes(&pattern(seed, 3000 + 1000 * round)).post();
                let receive = world.receive(to).from(from).tagged(round as u64).capacity(10_000).post();
                pairs.push((send, receive, seed, 3000 + 1000 * round));
            }
        }
        world.settle();
        for (send, receive, seed, size) in pairs {
            world.success(send);
            assert_eq!(world.bytes(receive), pattern(seed, size), "{world}");
        }
    }
}

#[test]
fn a_message_whose_senders_memory_gets_out_of_reach_comes_another_way() {
    // The test's endpoints read 10,000 bytes or so per progress call: the memory is lost before, amid and after the
    // message.
    for transfers in [0, 1, 3, 100] {
        for memory in [Memory::Direct, Memory::BouncedOrDirect] {
            let mut world = Setup { memory, scheduled: true, ..Setup::new(2) }.build();
            world.network().transfers_left = Some(transfers);
            for (round, size) in [100_000, 30_000, 100_000].into_iter().enumerate() {
                let send = world.send(0).to(1).tagged(7).bytes(&pattern(round, size)).post();
                let receive = world.receive(1).tagged(7).capacity(size).post();
                world.settle();
                world.success(send);
                assert!(world.bytes(receive) == pattern(round, size), "{transfers} transfers\n{world}");
            }
        }
    }
}

#[test]
fn a_fetch_that_fails_ends_both_sides() {
    for memory in [Memory::Direct, Memory::Delayed] {
        let mut world = Setup { memory, scheduled: true, ..Setup::new(2) }.build();
        world.network().memory_fails = true;
        let send = world.send(0).to(1).tagged(7).bytes(&pattern(1, 30_000)).post();
        let receive = world.receive(1).tagged(7).capacity(30_000).post();
        world.settle();
        assert_eq!((world.failure(receive), world.failure(send)), (Failure::Fault, Failure::Fault));
        world.network().memory_fails = false;
        let send = world.send(0).to(1).tagged(7).bytes(&pattern(2, 30_000)).post();
        let receive = world.receive(1).tagged(7).capacity(30_000).post();
        world.settle();
        world.success(send);
        assert_eq!(world.bytes(receive), pattern(2, 30_000), "the next one is not affected");
    }
}

/// How often streams are looked at for each of `count` messages whose requests to send have all come, in one order or
/// the other, before their receives are posted.
fn looks_each(memory: Memory, count: usize, reverse: bool) -> f64 {
    const BYTES: usize = 2100;
    let mut world = Setup { memory, operations: 1 << 20, ..Setup::new(2) }.build();
    for n in 0..count {
        world.send(0).to(1).tagged(n as u64).bytes(&pattern(n % 7, BYTES)).post();
    }
    world.settle();
    let order = |n| if reverse { count - 1 - n } else { n };
    let receives: Vec<_> =
        (0..count).map(order).map(|n| (n, world.receive(1).tagged(n as u64).capacity(BYTES).post())).collect();
    world.settle();
    for (n, receive) in receives {
        assert_eq!(world.bytes(receive), pattern(n % 7, BYTES));
    }
    world.endpoint(0).inspect_stream_looks() as f64 / count as f64
}

#[test]
fn a_message_that_fails_half_way_sends_no_more_of_itself() {
    let mut world = Setup { memory: Memory::Bounced, ..Setup::new(2) }.build();
    world.network().memory_fails = true;
    let send = world.send(0).to(1).tagged(7).bytes(&pattern(1, 30_000)).post();
    let receive = world.receive(1).tagged(7).capacity(30_000).post();
    world.run_until("the sender knows", |world| world.is_done(send));
    assert!(!world.endpoint(0).has_unsent(), "its memory is the application's again\n{world}");
    world.settle();
    assert_eq!((world.failure(receive), world.failure(send)), (Failure::Fault, Failure::Fault));
}

#[test]
fn long_messages_and_remote_writes_do_not_wait_for_all_of_each_other() {
    const SHORT: usize = 20_000;
    const LONG: usize = 300_000;
    for [sent, written] in [[SHORT, LONG], [LONG, SHORT]] {
        let mut world = Setup { memory: Memory::Mailbox, ..Setup::new(2) }.build();
        world.register(1, 9, &[0; LONG], &[Access::Write]);
        let receive = world.receive(1).tagged(7).capacity(sent).post();
        let send = world.send(0).to(1).tagged(7).bytes(&pattern(1, sent)).post();
        let write = world.write(0, vec![(world.place(0, 1, 9, 0), written as u64)], &pattern(1, written), None);
        world.run_until("one of them is done", |world| world.is_done(send) || world.is_done(write));
        assert_eq!([world.is_done(send), world.is_done(write)], [sent == SHORT, written == SHORT], "{world}");
        world.settle();
        assert_eq!(world.bytes(receive), pattern(1, sent));
        world.success(write);
    }
}

#[test]
fn a_long_message_takes_no_more_looks_among_5_000_than_among_500() {
    for memory in [Memory::Mailbox, Memory::Bounced] {
        for reverse in [false, true] {
            let [few, many] = [500, 5_000].map(|count| looks_each(memory, count, reverse));
            assert!(few <= 24.0 && many <= 1.2 * few, "{memory:?}: {few} looks each of 500, {many} of 5,000");
        }
    }
}
