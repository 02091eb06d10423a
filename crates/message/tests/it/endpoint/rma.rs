//! RMA: straight to memory where the link reaches it, by message elsewhere.

use crate::support::{Memory, Setup, World, pattern};
use tidegate_message::{Access, AtomicOp, AtomicType, Counter, Failure, Operation};

const BOTH: [Access; 2] = [Access::Read, Access::Write];
/// Of a target that counts writes.
const TOLD: [Access; 2] = [Access::Read, Access::ToldWrite];
const SIZES: [usize; 7] = [0, 1, 24, 56, 97, 2500, 30_000];

#[test]
fn a_write_lands_where_it_should_and_nowhere_else() {
    for setup in Setup::all(2, 61) {
        let mut world = setup.build();
        for size in SIZES {
            let memory = world.register(1, 9, &vec![7; size + 20], &BOTH);
            let write = world.write(0, vec![(world.place(0, 1, 9, 10), size as u64)], &pattern(1, size), None);
            world.settle();
            assert_eq!(world.success(write).operation, Operation::Write);
            let bytes = memory.bytes();
            assert_eq!(bytes[10..10 + size], pattern(1, size), "{world}");
            assert!(bytes[..10].iter().chain(&bytes[10 + size..]).all(|byte| *byte == 7));
            world.deregister(1, 9);
        }
        assert!(world.remote_writes(1).is_empty());
        assert_eq!(world.counter(0, Counter::RmaOperations), SIZES.len() as u64);
    }
}

#[test]
fn a_read_brings_what_is_there() {
    for setup in Setup::all(2, 62) {
        let mut world = setup.build();
        for size in SIZES {
            let contents = pattern(3, size + 20);
            let memory = world.register(1, 9, &contents, &[Access::Read]);
            let read = world.read(0, vec![(world.place(0, 1, 9, 10), size as u64)]);
            world.settle();
            assert_eq!(world.success(read).operation, Operation::Read);
            assert_eq!(world.bytes(read), &contents[10..10 + size], "{world}");
            assert_eq!(memory.bytes(), contents);
            world.deregister(1, 9);
        }
    }
}

#[test]
fn memory_that_gets_out_of_reach_is_read_and_written_by_message() {
    for left in [0, 1, 5] {
        for memory in [Memory::Direct, Memory::BouncedOrDirect] {
            let mut world = Setup { memory, scheduled: true, ..Setup::new(2) }.build();
            world.network().transfers_left = Some(left);
            let region = world.register(1, 9, &vec![7; 30_000], &BOTH);
            for round in 0..4 {
                let write = world.write(0, vec![(world.place(0, 1, 9, 0), 30_000)], &pattern(round, 30_000), None);
                world.settle();
                world.success(write);
                assert_eq!(region.bytes(), pattern(round, 30_000), "{world}");
                let read = world.read(0, vec![(world.place(0, 1, 9, 0), 30_000)]);
                world.settle();
                world.success(read);
                assert_eq!(world.bytes(read), pattern(round, 30_000), "{world}");
            }
        }
    }
}

#[test]
fn a_write_with_data_tells_its_target_after_the_bytes_are_there() {
    for setup in Setup::all(2, 63) {
        for (size, data) in [(0, 0), (10, 5), (3000, u64::from(u32::MAX)), (30_000, u64::MAX)] {
            let mut world = setup.build();
            let memory = world.register(1, 9, &vec![0; size], &[Access::Write]);
            let write = world.write(0, vec![(world.place(0, 1, 9, 0), size as u64)], &pattern(1, size), Some(data));
            world.run_until("the target is told", |world| !world.remote_writes(1).is_empty());
            assert_eq!(memory.bytes(), pattern(1, size), "{world}");
            world.settle();
            world.success(write);
            let told = world.remote_writes(1);
            assert_eq!(
                told.iter().map(|told| (told.data, told.length)).collect::<Vec<_>>(),
                [(Some(data), size)],
                "{world}"
            );
            assert_eq!(told[0].source, Some(world.target(1, 0)));
        }
    }
}

#[test]
fn several_places_are_written_and_read_in_order() {
    for setup in Setup::all(3, 64) {
        let mut world = setup.build();
        let first = world.register(1, 1, &[0; 100], &BOTH);
        let second = world.register(1, 2, &[0; 9000], &BOTH);
        let places = vec![
            (world.place(0, 1, 1, 90), 10),
            (world.place(0, 1, 2, 0), 7000),
            (world.place(0, 1, 1, 0), 1),
            (world.place(0, 1, 2, 8999), 1),
        ];
        let write = world.write(0, places.clone(), &pattern(1, 7012), None);
        world.settle();
        world.success(write);
        let (first, second, expected) = (first.bytes(), second.bytes(), pattern(1, 7012));
        assert_eq!((&first[90..], &second[..7000]), (&expected[..10], &expected[10..7010]), "{world}");
        assert_eq!((first[0], second[8999]), (expected[7010], expected[7011]));
        let read = world.read(0, places);
        world.settle();
        assert_eq!(world.bytes(read), expected, "{world}");
    }
}

#[test]
fn what_is_not_granted_is_denied_and_touches_nothing() {
    for setup in Setup::all(2, 65) {
        let mut world = setup.build();
        let readable = world.register(1, 1, &[7; 100], &[Access::Read]);
        let writable = world.register(1, 2, &[7; 100], &[Access::Write]);
        let place = |world: &crate::support::World, key, offset, length| vec![(world.place(0, 1, key, offset), length)];
        let denied = [
            world.write(0, place(&world, 1, 0, 10), &[1; 10], None),
            world.read(0, place(&world, 2, 0, 10)),
            world.read(0, place(&world, 3, 0, 10)),
            world.write(0, place(&world, 3, 0, 10), &[1; 10], None),
            world.write(0, place(&world, 2, 91, 10), &[1; 10], Some(5)),
            world.read(0, place(&world, 1, 101, 1)),
            world.read(0, place(&world, 1, u64::MAX, 1)),
            world.read(0, place(&world, 1, u64::MAX - 3, 10)),
            world.write(0, place(&world, 2, 50, 9000), &[1; 9000], None),
            world.write(0, vec![(world.place(0, 1, 2, 0), 10), (world.place(0, 1, 1, 0), 10)], &[7; 20], None),
        ];
        world.settle();
        for handle in denied {
            assert_eq!(world.failure(handle), Failure::Denied, "{world}");
        }
        assert!(world.remote_writes(1).is_empty(), "nobody is told of a write that was denied");
        assert_eq!((readable.bytes(), writable.bytes()), (vec![7; 100], vec![7; 100]), "{world}");
        let allowed = world.read(0, place(&world, 1, 0, 100));
        world.settle();
        assert_eq!(world.bytes(allowed), [7; 100]);
    }
}

#[test]
fn a_region_that_was_deregistered_is_denied() {
    for setup in Setup::all(2, 66) {
        let mut world = setup.build();
        world.register(1, 1, &[7; 100], &BOTH);
        world.deregister(1, 1);
        let read = world.read(0, vec![(world.place(0, 1, 1, 0), 10)]);
        world.settle();
        assert_eq!(world.failure(read), Failure::Denied, "{world}");
    }
}

#[test]
fn a_message_after_a_write_finds_the_bytes_written() {
    for setup in Setup::all(2, 67) {
        for size in [10, 3000] {
            let mut world = setup.build();
            let memory = world.register(1, 9, &vec![0; size], &BOTH);
            let write = world.write(0, vec![(world.place(0, 1, 9, 0), size as u64)], &pattern(1, size), None);
            world.run_until("the write is complete", |world| world.is_done(write));
            let receive = world.receive(1).post();
            world.send(0).to(1).post();
            world.run_until("the message is there", |world| world.is_done(receive));
            assert_eq!(memory.bytes(), pattern(1, size), "{world}");
            world.settle();
        }
    }
}

#[test]
fn everybody_reads_and_writes_everybody_at_once() {
    for setup in Setup::all(4, 68) {
        let mut world = setup.build();
        // Node n owns one stripe of 3000 bytes for every writer.
        let memories: Vec<_> = (0..4).map(|node| world.register(node, 9, &[0; 12_000], &BOTH)).collect();
        let mut handles = Vec::new();
        for round in 0..3 {
            for (from, to) in (0..4).flat_map(|from| (0..4).map(move |to| (from, to))) {
                let place = world.place(from, to, 9, 3000 * from as u64);
                handles.push(world.write(from, vec![(place, 3000)], &pattern(10 * from + to, 3000), Some(round)));
                handles.push(world.read(from, vec![(place, 3000)]));
            }
        }
        world.settle();
        handles.into_iter().for_each(|handle| assert_eq!(world.success(handle).length, 3000));
        for (to, memory) in memories.iter().enumerate() {
            for from in 0..4 {
                assert_eq!(memory.bytes()[3000 * from..3000 * (from + 1)], pattern(10 * from + to, 3000), "{world}");
            }
            assert_eq!(world.remote_writes(to).len(), 12);
        }
    }
}

#[test]
fn who_counts_writes_hears_once_of_each_that_succeeded() {
    for setup in Setup::all(2, 69) {
        let mut world = setup.build();
        world.endpoint(1).count_writes(true);
        world.register(1, 9, &[0; 9000], &TOLD);
        let place = |world: &World, offset, length| (world.place(0, 1, 9, offset), length);
        let heard =
            |world: &World| world.remote_writes(1).iter().map(|told| (told.data, told.length)).collect::<Vec<_>>();
        let (one, two) = (place(&world, 0, 5000), place(&world, 6000, 1));
        let plain = world.write(0, vec![one, two], &pattern(1, 5001), None);
        world.settle();
        world.success(plain);
        assert_eq!(heard(&world), [(None, 5001)], "once, however many pieces and places: {world}");
        let to = vec![place(&world, 0, 9000)];
        world.write(0, to.clone(), &pattern(1, 9000), Some(7));
        world.settle();
        assert_eq!(heard(&world)[1..], [(Some(7), 9000)], "not twice because it brings data: {world}");
        world.read(0, to);
        world.write(0, vec![place(&world, 8999, 2)], &[1; 2], None);
        world.settle();
        assert_eq!(heard(&world).len(), 2, "reads and refused writes do not count: {world}");
        let to = vec![place(&world, 0, 2)];
        world.atomic(0, to, AtomicType::Uint64, AtomicOp::Sum, &[1; 16]);
        world.settle();
        assert_eq!(heard(&world)[2..], [(None, 16)], "{world}");
        let to = vec![place(&world, 0, 2), place(&world, 8, 900)];
        world.atomic(0, to, AtomicType::Uint64, AtomicOp::Sum, &[1; 902 * 8]);
        world.settle();
        assert_eq!(heard(&world)[3..], [(None, 902 * 8)], "the length of all parts, in places and messages: {world}");
        let own = vec![(world.place(1, 1, 9, 0), 3)];
        world.write(1, own, &[1; 3], None);
        world.settle();
        assert_eq!(heard(&world)[4..], [(None, 3)], "its own as well: {world}");
        assert!(world.remote_writes(0).is_empty(), "who does not count hears nothing: {world}");
    }
}

/// The operations on its memory that an endpoint was told of, each with the key of the region.
fn heard(world: &World, node: usize) -> Vec<(Operation, u64)> {
    world.remote_writes(node).iter().map(|told| (told.operation, told.context.0 as u64)).collect()
}

#[test]
fn who_counts_the_changes_of_one_region_hears_of_those_alone() {
    use Operation::{RemoteChange, RemoteFetch, RemoteWrite};
    for setup in Setup::all(2, 70) {
        for origin in [0, 1] {
            let mut world = setup.build();
            world.register(1, 8, &[0; 9000], &BOTH);
            world.register(1, 9, &[0; 9000], &TOLD);
            world.endpoint(1).count_region(9);
            let place = |world: &World, key, length| (world.place(origin, 1, key, 0), length);
            let (other, counted) = (place(&world, 8, 5000), place(&world, 9, 5000));
            world.write(origin, vec![other], &pattern(1, 5000), None);
            world.read(origin, vec![counted]);
            world.settle();
            assert_eq!(heard(&world, 1), [], "{world}");
            world.write(origin, vec![counted], &pattern(1, 5000), None);
            world.settle();
            assert_eq!(heard(&world, 1), [(RemoteWrite, 9)], "once, however many pieces: {world}");
            world.write(origin, vec![other, counted, counted], &pattern(1, 15000), None);
            world.settle();
            assert_eq!(heard(&world, 1)[1..], [(RemoteChange, 9)], "the other region is not counted: {world}");
            let to = vec![place(&world, 9, 2), place(&world, 8, 1), place(&world, 9, 600)];
            world.atomic(origin, to.clone(), AtomicType::Uint64, AtomicOp::Sum, &[1; 603 * 8]);
            world.settle();
            assert_eq!(heard(&world, 1)[2..], [(RemoteWrite, 9)], "as many messages as it takes: {world}");
            let lengths: Vec<_> = world.remote_writes(1).iter().map(|told| told.length).collect();
            assert_eq!(lengths, [5000, 0, 603 * 8], "a further region is reported without a length: {world}");
            world.fetch_atomic(origin, to.clone(), AtomicType::Uint64, AtomicOp::Sum, &[1; 603 * 8], None);
            world.settle();
            assert_eq!(heard(&world, 1)[3..], [(RemoteFetch, 9)], "{world}");
            world.fetch_atomic(origin, to, AtomicType::Uint64, AtomicOp::Read, &[], None);
            world.settle();
            world.deregister(1, 9);
            world.register(1, 9, &[0; 9000], &BOTH);
            world.write(origin, vec![counted], &pattern(1, 5000), None);
            world.settle();
            assert_eq!(heard(&world, 1).len(), 4, "it is another region of that key: {world}");
        }
    }
}

/// The parts of a read take turns, and the last one may be through first.
#[test]
fn who_hears_that_a_read_is_through_may_give_its_memory_away() {
    for setup in Setup::all(2, 72).filter(|setup| matches!(setup.memory, Memory::Mailbox | Memory::Bounced)) {
        for last in [0, 8] {
            let mut world = setup.build();
            world.register(1, 9, &pattern(9, 90_000), &BOTH);
            world.endpoint(1).count_reads(true);
            let place = |world: &World, length| (world.place(0, 1, 9, 0), length);
            let read = world.read(0, vec![place(&world, 90_000), place(&world, last)]);
            world.run_until("the target hears of it", |world| !world.remote_writes(1).is_empty());
            // Whatever had not left would be denied from now on.
            world.deregister(1, 9);
            world.settle();
            let expected = [pattern(9, 90_000), pattern(9, last as usize)].concat();
            assert!(world.bytes(read) == expected, "{world}");
            assert_eq!(heard(&world, 1), [(Operation::RemoteRead, 9)], "{world}");
        }
    }
}

#[test]
fn who_counts_reads_hears_once_of_each_and_of_atomics_with_a_result() {
    use Operation::{RemoteFetch, RemoteRead};
    for setup in Setup::all(2, 71).filter(|setup| matches!(setup.memory, Memory::Mailbox | Memory::Bounced)) {
        for origin in [0, 1] {
            let mut world = setup.build();
            world.register(1, 9, &[0; 9000], &BOTH);
            world.endpoint(1).count_reads(true);
            let place = |world: &World, length| (world.place(origin, 1, 9, 0), length);
            let parts = [place(&world, 9000), place(&world, 1), place(&world, 40)];
            for lengths in [&parts[..], &parts[1..2], &[place(&world, 0)]] {
                world.read(origin, lengths.to_vec());
            }
            world.settle();
            assert_eq!(heard(&world, 1), [(RemoteRead, 9); 3], "{world}");
            let to = vec![place(&world, 2)];
            world.fetch_atomic(origin, to.clone(), AtomicType::Uint64, AtomicOp::Sum, &[1; 16], None);
            world.settle();
            world.fetch_atomic(origin, to.clone(), AtomicType::Uint64, AtomicOp::Read, &[], None);
            world.settle();
            assert_eq!(heard(&world, 1)[3..], [(RemoteFetch, 9), (RemoteRead, 9)], "{world}");
            world.write(origin, vec![place(&world, 9)], &[1; 9], None);
            world.atomic(origin, to, AtomicType::Uint64, AtomicOp::Sum, &[1; 16]);
            world.read(origin, vec![place(&world, 9001)]);
            world.settle();
            assert_eq!(heard(&world, 1).len(), 5, "writes and refused reads do not count: {world}");
        }
    }
}
