//! Short direct reads and writes in a row go together.

use crate::support::{Handle, Memory, Setup, World, pattern};
use tidegate_message::{Access, AtomicOp, AtomicType, Buffer, Context, Counter, Failure, TryAgain, WriteRequest};

const BOTH: [Access; 2] = [Access::Read, Access::Write];
/// Accesses of a row that go at once, and pieces that wait at most.
const AT_ONCE: usize = 4;
const MOST: usize = 256;
/// Every other two bytes of a region of this many.
const BYTES: usize = 4000;

fn reads(world: &mut World, count: usize) -> Vec<Handle> {
    (0..count).map(|at| read(world, at)).collect()
}

fn read(world: &mut World, at: usize) -> Handle {
    world.read(0, vec![(world.place(0, 1, 9, 4 * at as u64), 2)])
}

fn writes(world: &mut World, count: usize) -> Vec<Handle> {
    let write = |at: usize| world.write(0, vec![(world.place(0, 1, 9, 4 * at as u64), 2)], &pattern(at, 2), None);
    (0..count).map(write).collect()
}

fn batches(world: &mut World) -> Vec<usize> {
    std::mem::take(&mut world.network().batches)
}

/// What a region holds of which `count` pieces were written.
fn written(count: usize) -> Vec<u8> {
    let mut bytes = vec![0; BYTES];
    (0..count).for_each(|at| bytes[4 * at..4 * at + 2].copy_from_slice(&pattern(at, 2)));
    bytes
}

#[test]
fn a_row_of_short_reads_goes_in_few_batches_and_each_brings_its_own_bytes() {
    let mut world = Setup::new(2).build();
    let memory = world.register(1, 9, &pattern(1, BYTES), &BOTH);
    // The last rows know that the one before was a long one.
    let rows = [
        (3, vec![]),
        (AT_ONCE, vec![]),
        (AT_ONCE + 1, vec![1]),
        (700, vec![MOST, MOST, 700 - 2 * MOST - AT_ONCE]),
        (7, vec![6]),
        (AT_ONCE, vec![]),
    ];
    for (count, expected) in rows {
        let handles = reads(&mut world, count);
        world.progress(0);
        assert_eq!(batches(&mut world), expected);
        for (at, handle) in handles.into_iter().enumerate() {
            world.success(handle);
            assert_eq!(world.bytes(handle), &memory.bytes()[4 * at..4 * at + 2]);
        }
    }
    assert_eq!(world.counter(0, Counter::PacketsSent), 0, "nothing goes by message");
}

#[test]
fn a_row_of_short_writes_goes_in_few_batches() {
    for memory in [Memory::Direct, Memory::BouncedOrDirect] {
        let mut world = Setup { memory, ..Setup::new(2) }.build();
        let region = world.register(1, 9, &[0; BYTES], &BOTH);
        let handles = writes(&mut world, 300);
        assert_eq!(region.bytes(), written(AT_ONCE + MOST), "the first batch was full");
        world.progress(0);
        assert_eq!((batches(&mut world), region.bytes()), (vec![MOST, 300 - AT_ONCE - MOST], written(300)));
        handles.into_iter().for_each(|handle| assert_eq!(world.success(handle).length, 2));
    }
}

#[test]
fn who_makes_progress_after_each_has_each_at_once() {
    let mut world = Setup::new(2).build();
    world.register(1, 9, &pattern(1, BYTES), &BOTH);
    for at in 0..50 {
        let handle = read(&mut world, at);
        assert_eq!(world.open_operations(0), 1);
        world.progress(0);
        world.success(handle);
    }
    assert_eq!(batches(&mut world), []);
}

#[test]
fn long_ones_and_those_of_another_kind_send_off_what_waits() {
    let mut world = Setup::new(3).build();
    let region = world.register(1, 9, &[0; BYTES], &BOTH);
    world.register(2, 9, &[0; BYTES], &BOTH);
    let mut handles = writes(&mut world, 10);
    assert_eq!(region.bytes(), written(AT_ONCE));
    // What a read brings that follows was written before.
    handles.extend(reads(&mut world, 10));
    assert_eq!((batches(&mut world), region.bytes()), (vec![10 - AT_ONCE], written(10)));
    handles.push(world.read(0, vec![(world.place(0, 2, 9, 0), 2)]));
    assert_eq!(batches(&mut world), [10], "they are of another peer");
    handles.push(world.read(0, vec![(world.place(0, 2, 9, 0), 3000)]));
    assert_eq!(batches(&mut world), [1], "a long one does not wait");
    handles.push(world.read(0, vec![(world.place(0, 2, 9, 0), 2)]));
    handles.push(world.atomic(0, vec![(world.place(0, 1, 9, 0), 1)], AtomicType::Uint8, AtomicOp::Sum, &[1]));
    assert_eq!(batches(&mut world), [1], "nor does an atomic");
    handles.push(world.write(0, vec![(world.place(0, 1, 9, 8), 2)], &[7; 2], None));
    handles.push(world.write(0, vec![(world.place(0, 1, 9, 8), 2)], &[8; 2], Some(5)));
    assert_eq!((batches(&mut world), &region.bytes()[8..10]), (vec![1], &[8; 2][..]), "nor one that brings data");
    world.settle();
    handles.into_iter().for_each(|handle| assert!(world.success(handle).length > 0));
}

#[test]
fn an_injected_write_waits_in_memory_of_its_own() {
    for hole in [0..0, 36..38] {
        let mut world = Setup::new(2).build();
        let region = world.register(1, 9, &[0; BYTES], &BOTH);
        world.network().hole = hole;
        writes(&mut world, 10);
        let (to, mut buffer) = (vec![(world.place(0, 1, 9, 36), 2)], world.buffer(0, &[9; 2]));
        let (buffer_of_write, context) = (buffer.clone(), Context(0));
        let request = WriteRequest { to, buffer: buffer_of_write, data: None, context, inject: true, report: false };
        assert_eq!(world.endpoint(0).write(request), Ok::<_, TryAgain>(()));
        assert_eq!(region.bytes(), written(AT_ONCE), "{world}");
        buffer.write(0, &[1; 2]);
        world.settle();
        assert_eq!((&region.bytes()[..36], &region.bytes()[36..38]), (&written(10)[..36], &[9; 2][..]), "{world}");
    }
}

#[test]
fn a_piece_that_is_out_of_reach_goes_by_message_alone() {
    for is_write in [false, true] {
        let mut world = Setup::new(2).build();
        let region = world.register(1, 9, &if is_write { vec![0; BYTES] } else { pattern(1, BYTES) }, &BOTH);
        world.network().hole = 81..82;
        let handles = if is_write { writes(&mut world, 100) } else { reads(&mut world, 100) };
        world.progress(0);
        let is_left = |handle: &&Handle| !world.is_done(**handle);
        assert_eq!(handles.iter().filter(is_left).collect::<Vec<_>>(), [&handles[20]], "{world}");
        world.settle();
        for (at, handle) in handles.into_iter().enumerate() {
            world.success(handle);
            if !is_write {
                assert_eq!(world.bytes(handle), &region.bytes()[4 * at..4 * at + 2]);
            }
        }
        assert!(!is_write || region.bytes() == written(100));
    }
}

#[test]
fn memory_that_gets_out_of_reach_meanwhile_is_read_and_written_by_message() {
    for left in [0, 2, AT_ONCE as u32, 20] {
        let mut world = Setup { scheduled: true, ..Setup::new(2) }.build();
        let region = world.register(1, 9, &[0; BYTES], &BOTH);
        world.network().transfers_left = Some(left);
        let mut handles = writes(&mut world, 300);
        world.settle();
        assert_eq!(region.bytes(), written(300), "{world}");
        handles.extend(reads(&mut world, 300));
        world.settle();
        handles.iter().for_each(|handle| assert_eq!(world.success(*handle).length, 2));
        assert!((0..300).all(|at| world.bytes(handles[300 + at]) == pattern(at, 2)), "{world}");
    }
}

#[test]
fn a_region_that_is_no_more_when_its_turn_comes_is_denied_and_no_other() {
    let mut world = Setup::new(2).build();
    let region = world.register(1, 9, &pattern(1, BYTES), &BOTH);
    world.register(1, 8, &pattern(2, BYTES), &BOTH);
    world.network().hole = 40..42;
    let kept = reads(&mut world, 10);
    let revoked = world.read(0, vec![(world.place(0, 1, 8, 40), 2)]);
    // A link that finds the region withdrawn says of the piece that it is out of reach.
    world.deregister(1, 8);
    world.settle();
    assert_eq!(world.failure(revoked), Failure::Denied);
    assert!(kept.into_iter().enumerate().all(|(at, it)| world.bytes(it) == &region.bytes()[4 * at..4 * at + 2]));
}

#[test]
fn an_operation_with_many_places_is_complete_with_the_last_of_them() {
    for hole in [0..0, 401..402] {
        let mut world = Setup::new(2).build();
        let region = world.register(1, 9, &[0; BYTES], &BOTH);
        world.network().hole = hole;
        let places: Vec<_> = (0..400).map(|at| (world.place(0, 1, 9, 4 * at), 2)).collect();
        let bytes: Vec<u8> = (0..400).flat_map(|at| pattern(at, 2)).collect();
        let write = world.write(0, places.clone(), &bytes, None);
        let read = world.read(0, places);
        assert!(!world.is_done(write) && !world.is_done(read));
        world.settle();
        world.success(write);
        assert_eq!((region.bytes(), world.bytes(read).len()), (written(400), 800), "{world}");
    }
}

#[test]
fn a_fenced_operation_waits_for_those_that_wait_and_they_for_none() {
    let mut world = Setup::new(2).build();
    let region = world.register(1, 9, &[0; BYTES], &BOTH);
    let handles = writes(&mut world, 20);
    let fenced = world.write_fenced(0, world.place(0, 1, 9, 0), &[0xee; 8], false);
    let behind = read(&mut world, 0);
    assert_eq!(region.bytes(), written(AT_ONCE), "{world}");
    world.run_until("the fenced one is over", |world| world.is_done(fenced));
    handles.into_iter().for_each(|handle| assert_eq!(world.success(handle).length, 2));
    world.settle();
    world.success(behind);
    assert_eq!(region.bytes()[..8], [0xee; 8], "what waited was written before: {world}");
}

#[test]
fn what_waits_cannot_be_cancelled_one_by_one_and_ends_with_the_next_progress() {
    let mut world = Setup::new(2).build();
    world.register(1, 9, &pattern(1, BYTES), &BOTH);
    let handles = reads(&mut world, 20);
    assert!(!world.cancel(handles[19]));
    world.progress(0);
    handles.into_iter().for_each(|handle| assert_eq!(world.success(handle).length, 2));
}

/// fi_tidegate(7): "Short reads and writes that wait to go together are carried out first."
#[test]
fn an_endpoint_that_closes_writes_first_what_waits() {
    let mut world = Setup::new(2).build();
    let region = world.register(1, 9, &[0; BYTES], &BOTH);
    writes(&mut world, 20);
    world.endpoint(0).begin_closing();
    assert_eq!((region.bytes(), world.endpoint(0).has_unsent()), (written(20), false));
}

#[test]
fn what_is_given_up_while_it_waits_touches_no_memory() {
    let mut world = Setup::new(2).build();
    let region = world.register(1, 9, &[0; BYTES], &BOTH);
    let handles = writes(&mut world, 20);
    world.endpoint(0).abandon_unsent();
    world.progress(0);
    assert_eq!((region.bytes(), batches(&mut world)), (written(AT_ONCE), vec![]));
    handles[..AT_ONCE].iter().for_each(|handle| assert_eq!(world.success(*handle).length, 2));
    handles[AT_ONCE..].iter().for_each(|handle| assert_eq!(world.failure(*handle), Failure::Canceled));
}

#[test]
fn reads_that_wait_for_a_peer_that_is_found_to_be_gone_end_with_it_and_others_go_on() {
    let mut world = Setup::new(3).build();
    world.register(1, 9, &pattern(1, BYTES), &BOTH);
    let other = world.register(2, 9, &pattern(2, BYTES), &BOTH);
    let handles = reads(&mut world, 20);
    world.network().cut.push((0, 1));
    let message = world.send(0).to(1).bytes(&[1; 8]).post();
    assert_eq!(batches(&mut world), []);
    let live = world.read(0, vec![(world.place(0, 2, 9, 4), 2)]);
    world.settle();
    world.assert_lost(message, 1);
    handles[..AT_ONCE].iter().for_each(|handle| assert_eq!(world.success(*handle).length, 2));
    handles[AT_ONCE..].iter().for_each(|handle| world.assert_lost(*handle, 1));
    assert_eq!(world.bytes(live), &other.bytes()[4..6]);
}

#[test]
fn a_peer_that_dies_while_reads_of_it_wait_ends_them_all_in_some_way() {
    let mut world = Setup::new(2).build();
    world.register(1, 9, &pattern(1, BYTES), &BOTH);
    let handles = reads(&mut world, 20);
    world.kill(1);
    world.settle();
    handles[..AT_ONCE].iter().for_each(|handle| assert_eq!(world.success(*handle).length, 2));
    handles[AT_ONCE..].iter().for_each(|handle| world.assert_lost(*handle, 1));
}

#[test]
fn a_target_that_counts_hears_of_each_write_of_a_batch_once() {
    for hole in [0..0, 41..42] {
        let mut world = Setup::new(2).build();
        world.endpoint(1).count_writes(true);
        let region = world.register(1, 9, &[0; BYTES], &[Access::Read, Access::ToldWrite]);
        world.network().hole = hole;
        writes(&mut world, 50);
        world.settle();
        let lengths: Vec<usize> = world.remote_writes(1).iter().map(|told| told.length).collect();
        assert_eq!((lengths, region.bytes()), (vec![2; 50], written(50)), "{world}");
    }
}
