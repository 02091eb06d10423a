//! Endpoints with much memory and with little, in one job: how long messages of our own kinds may be differs for each,
//! and is not known everywhere from the start.

use crate::support::{Handle, Memory, Random, Setup, World, pattern};
use tidegate_message::flow::SchemeName;
use tidegate_message::{Access, AtomicOp, AtomicType, Counter, PeerId};

const KEY: u64 = 9;
/// Operations of a program, and the memory of each, in bytes.
const COUNT: usize = 40;
const STRIPE: usize = 9_000;
/// Bytes of an operation: on both sides of one packet, of a piece of either size, and of the eager limit.
const SIZES: [usize; 16] = [0, 1, 8, 32, 39, 40, 41, 79, 80, 81, 300, 1024, 2048, 4072, 4073, 9000];

/// Runs until nothing moves, and a window that could not be told yet has been asked for often enough to be known.
fn settle(world: &mut World) {
    (0..=UNKNOWN_MOST).for_each(|_| world.settle());
}

/// How often a window is asked for before it is known, at most.
const UNKNOWN_MOST: usize = 60;

/// What must be true in the end.
#[derive(Default)]
struct Expected {
    /// Bytes at a place of a node.
    written: Vec<(usize, usize, Vec<u8>)>,
    /// Bytes that an operation has brought.
    brought: Vec<(Handle, Vec<u8>)>,
    /// Operations that bring nothing.
    done: Vec<Handle>,
    /// Messages that are received in the end: by whom, from whom, and which.
    late: Vec<(usize, usize, usize, Vec<u8>)>,
}

impl Expected {
    /// Starts one operation, of any kind.
    fn start(&mut self, world: &mut World, random: &mut Random, index: usize) {
        let nodes = world.setup.nodes;
        let (from, to) = (random.below(nodes), random.below(nodes));
        let (offset, size) = (index * STRIPE, SIZES[random.below(SIZES.len())]);
        let split = random.below(size + 1);
        let place = |world: &World, at: usize| world.place(from, to, KEY, (offset + at) as u64);
        let parts = vec![(place(world, 0), split as u64), (place(world, split), (size - split) as u64)];
        let (datatype, element) = [
            (AtomicType::Uint8, 1),
            (AtomicType::Double, 8),
            (AtomicType::Uint128, 16),
            (AtomicType::LongDoubleComplex, 32),
        ][random.below(4)];
        let elements = vec![(place(world, 0), (size / element) as u64)];
        let length = size / element * element;
        match random.below(6) {
            0 | 1 => {
                let bytes = pattern(index, size);
                self.done.push(world.write(from, parts, &bytes, random.one_in(3).then_some(index as u64)));
                self.written.push((to, offset, bytes));
            }
            2 => self.brought.push((world.read(from, parts), vec![7; size])),
            3 => {
                let fetch = world.fetch_atomic(from, elements, datatype, AtomicOp::Read, &[], None);
                self.brought.push((fetch, vec![7; length]));
            }
            4 => {
                // All of it is as it is compared with, so all of it is swapped.
                let (bytes, old) = (vec![7; length], vec![7; length]);
                let swap = world.fetch_atomic(from, elements, datatype, AtomicOp::CompareSwap, &bytes, Some(&old));
                self.brought.push((swap, old));
            }
            _ => {
                let bytes = pattern(index, size);
                let send = world.send(from).to(to).tagged(index as u64).bytes(&bytes);
                let send = if random.one_in(2) { send.scattered() } else { send };
                self.done.push(send.post());
                match random.one_in(2) {
                    true => self.receive(world, to, from, index, bytes),
                    false => self.late.push((to, from, index, bytes)),
                }
            }
        }
    }

    fn receive(&mut self, world: &mut World, node: usize, from: usize, index: usize, bytes: Vec<u8>) {
        let receive = world.receive(node).from(from).tagged(index as u64).capacity(bytes.len()).post();
        self.brought.push((receive, bytes));
    }

    /// Receives what is late, the last first.
    fn receive_late(&mut self, world: &mut World) {
        while let Some((node, from, index, bytes)) = self.late.pop() {
            self.receive(world, node, from, index, bytes);
        }
    }
}

/// A program of all kinds of operations, which must do what it says, with one completion for each.
fn run(seed: u64) {
    let mut random = Random::new(seed);
    let nodes = 2 + random.below(3);
    let scheme = SchemeName::ALL[random.below(SchemeName::ALL.len())];
    let (slots, credit_slots) = [(2, 1), (3, 1), (64, 2)][random.below(3)];
    let memory = Memory::ALL[random.below(Memory::ALL.len())];
    let base = Setup { scheme, slots, credit_slots, memory, operations: 1 << 20, ..Setup::new(nodes) };
    // Of some programs half of the peers are newcomers, where memory is enough for that to make a difference.
    let newcomers = if random.one_in(3) { nodes as u32 / 2 } else { 0 };
    let mut world = Setup { scheduled: true, seed, uneven: Some(seed as usize), newcomers, ..base }.build();
    world.network().unknown_for = random.below(2) as u32 * random.below(UNKNOWN_MOST) as u32;
    let contents = vec![7; COUNT * STRIPE];
    let both = [Access::Read, Access::Write];
    let memories: Vec<_> = (0..nodes).map(|node| world.register(node, KEY, &contents, &both)).collect();
    let mut expected = Expected::default();
    for index in 0..COUNT {
        expected.start(&mut world, &mut random, index);
        if random.one_in(3) {
            world.steps(random.below(60));
        }
    }
    if random.one_in(2) {
        settle(&mut world);
    }
    expected.receive_late(&mut world);
    settle(&mut world);
    for (node, offset, bytes) in &expected.written {
        assert!(
            memories[*node].bytes()[*offset..][..bytes.len()] == *bytes,
            "seed {seed}, {offset} of {node}\n{world}"
        );
    }
    for (handle, bytes) in &expected.brought {
        assert!(world.bytes(*handle) == *bytes, "seed {seed}, {handle:?}\n{world}");
    }
    for handle in expected.done {
        world.success(handle);
    }
    for node in 0..nodes {
        let counts = [Counter::Violations, Counter::PeersQuarantined].map(|counter| world.counter(node, counter));
        assert_eq!(counts, [0, 0], "seed {seed}\n{world}");
        assert!(world.counter(node, Counter::ReceivePeak) <= world.counter(node, Counter::ReceiveBound));
        world.assert_windows(node);
        for peer in 0..nodes as u32 - 1 {
            let left = world.endpoint(node).inspect_backlog(PeerId(peer));
            assert_eq!(
                (left.notes, left.messages, left.requests, left.unanswered),
                (0, 0, 0, 0),
                "seed {seed}\n{world}"
            );
        }
    }
}

#[test]
fn programs_do_what_they_say_whatever_memory_their_endpoints_have() {
    (0..200).for_each(run);
}
