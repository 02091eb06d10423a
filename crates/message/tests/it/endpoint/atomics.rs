//! Remote atomics, of all three kinds. What each operation computes is tested in `tests/it/atomic_apply.rs`.

use crate::support::{Setup, World};
use tidegate_message::{Access, AtomicOp, AtomicType, Counter, Failure, Operation};

const BOTH: [Access; 2] = [Access::Read, Access::Write];

fn words(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn one_place(world: &World, offset: u64, elements: u64) -> Vec<(tidegate_message::RemoteTarget, u64)> {
    vec![(world.place(0, 1, 9, offset), elements)]
}

#[test]
fn an_update_changes_every_element() {
    for setup in Setup::all(2, 71) {
        for elements in [1, 2, 5, 100, 1000] {
            let mut world = setup.build();
            let before: Vec<u64> = (0..elements).collect();
            let memory = world.register(1, 9, &words(&before), &BOTH);
            let to = one_place(&world, 0, elements);
            let update = world.atomic(0, to, AtomicType::Uint64, AtomicOp::Sum, &words(&vec![3; elements as usize]));
            world.settle();
            assert_eq!(world.success(update).operation, Operation::Atomic);
            let after: Vec<u64> = before.iter().map(|value| value + 3).collect();
            assert_eq!(memory.bytes(), words(&after), "{world}");
            assert_eq!(world.counter(0, Counter::AtomicOperations), 1);
        }
    }
}

#[test]
fn a_fetch_brings_the_values_from_before() {
    for setup in Setup::all(2, 72) {
        for elements in [1, 6, 300] {
            let mut world = setup.build();
            let before: Vec<u64> = (0..elements).collect();
            let memory = world.register(1, 9, &words(&before), &BOTH);
            let operand = words(&vec![10; elements as usize]);
            let to = one_place(&world, 0, elements);
            let fetch = world.fetch_atomic(0, to.clone(), AtomicType::Uint64, AtomicOp::Max, &operand, None);
            world.settle();
            assert_eq!(world.bytes(fetch), words(&before), "{world}");
            let after: Vec<u64> = before.iter().map(|value| *value.max(&10)).collect();
            assert_eq!(memory.bytes(), words(&after));
            let read = world.fetch_atomic(0, to, AtomicType::Uint64, AtomicOp::Read, &[], None);
            world.settle();
            assert_eq!(world.bytes(read), words(&after), "{world}");
        }
    }
}

#[test]
fn a_compare_and_swap_swaps_where_it_is_equal() {
    for setup in Setup::all(2, 73) {
        let mut world = setup.build();
        let memory = world.register(1, 9, &words(&[0, 1, 2, 3]), &BOTH);
        let (operand, compare) = (words(&[90, 91, 92]), words(&[1, 7, 3]));
        let to = one_place(&world, 8, 3);
        let swap = world.fetch_atomic(0, to, AtomicType::Uint64, AtomicOp::CompareSwap, &operand, Some(&compare));
        world.settle();
        assert_eq!(world.bytes(swap), words(&[1, 2, 3]), "{world}");
        assert_eq!(memory.bytes(), words(&[0, 90, 2, 92]));
    }
}

#[test]
fn a_compare_of_many_elements_works_in_several_messages() {
    for setup in Setup::all(2, 74) {
        let mut world = setup.build();
        let before: Vec<u64> = (0..500).collect();
        let memory = world.register(1, 9, &words(&before), &BOTH);
        let masks: Vec<u64> = before.iter().map(|value| if value % 2 == 0 { u64::MAX } else { 0 }).collect();
        let to = one_place(&world, 0, 500);
        let (op, operand) = (AtomicOp::MaskedSwap, words(&[7; 500]));
        let swap = world.fetch_atomic(0, to, AtomicType::Uint64, op, &operand, Some(&words(&masks)));
        world.settle();
        assert_eq!(world.bytes(swap), words(&before), "{world}");
        let after: Vec<u64> = before.iter().map(|value| if value % 2 == 0 { 7 } else { *value }).collect();
        assert_eq!(memory.bytes(), words(&after));
    }
}

#[test]
fn several_places_are_changed_in_order() {
    for setup in Setup::all(2, 75) {
        let mut world = setup.build();
        let first = world.register(1, 1, &words(&[1, 2]), &BOTH);
        let second = world.register(1, 2, &words(&[10, 20, 30]), &BOTH);
        let to = vec![(world.place(0, 1, 2, 8), 2), (world.place(0, 1, 1, 0), 1)];
        let fetch = world.fetch_atomic(0, to, AtomicType::Uint64, AtomicOp::Sum, &words(&[100, 200, 300]), None);
        world.settle();
        assert_eq!(world.bytes(fetch), words(&[20, 30, 1]), "{world}");
        assert_eq!((first.bytes(), second.bytes()), (words(&[301, 2]), words(&[10, 120, 230])));
    }
}

#[test]
fn elements_of_thirty_two_bytes_are_not_torn() {
    for setup in Setup::all(2, 76) {
        let mut world = setup.build();
        let memory = world.register(1, 9, &[1; 320], &BOTH);
        let to = one_place(&world, 0, 10);
        let (datatype, op) = (AtomicType::LongDoubleComplex, AtomicOp::Write);
        let fetch = world.fetch_atomic(0, to, datatype, op, &[2; 320], None);
        world.settle();
        assert_eq!((world.bytes(fetch), memory.bytes()), (&[1; 320][..], vec![2; 320]), "{world}");
    }
}

#[test]
fn what_is_not_granted_or_not_defined_fails_and_changes_nothing() {
    for setup in Setup::all(2, 77) {
        let mut world = setup.build();
        let memory = world.register(1, 9, &[1; 64], &BOTH);
        let readable = world.register(1, 8, &[1; 64], &[Access::Read]);
        let word = words(&[5]);
        let sum = |world: &mut World, key, offset| {
            let to = vec![(world.place(0, 1, key, offset), 1)];
            world.fetch_atomic(0, to, AtomicType::Uint64, AtomicOp::Sum, &word, None)
        };
        let denied =
            [sum(&mut world, 7, 0), sum(&mut world, 8, 0), sum(&mut world, 9, 57), sum(&mut world, 9, u64::MAX)];
        let to = one_place(&world, 0, 1);
        let undefined = world.fetch_atomic(0, to, AtomicType::Double, AtomicOp::Bxor, &word, None);
        world.settle();
        assert_eq!(denied.map(|handle| world.failure(handle)), [const { Failure::Denied }; 4], "{world}");
        assert_eq!(world.failure(undefined), Failure::Unsupported, "{world}");
        assert_eq!((memory.bytes(), readable.bytes()), (vec![1; 64], vec![1; 64]));
    }
}

#[test]
fn no_update_of_any_node_is_lost() {
    for setup in Setup::all(4, 78) {
        let mut world = setup.build();
        let memory = world.register(0, 9, &words(&[0]), &BOTH);
        let mut fetches = Vec::new();
        for _ in 0..10 {
            for node in 0..4 {
                let to = vec![(world.place(node, 0, 9, 0), 1)];
                fetches.push(world.fetch_atomic(node, to, AtomicType::Uint64, AtomicOp::Sum, &words(&[1]), None));
                world.step();
            }
        }
        world.settle();
        assert_eq!(memory.bytes(), words(&[40]), "{world}");
        let mut seen: Vec<_> = fetches.into_iter().map(|fetch| world.bytes(fetch).to_vec()).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..40).map(|value| words(&[value])).collect::<Vec<_>>(), "every value once");
    }
}
