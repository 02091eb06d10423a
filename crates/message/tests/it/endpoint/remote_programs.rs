//! Random mixtures of RMA, atomics and messages: everything completes, and memory holds what a sequential run leaves
//! there.

use crate::support::{Handle, Memory, Setup, World, pattern};
use proptest::prelude::*;
use tidegate_message::flow::SchemeName;
use tidegate_message::{Access, AtomicOp, AtomicType, Counter, PeerId};

const KEY: u64 = 9;
/// Every operation has a stripe of its own in its target's memory, so their order does not matter.
const STRIPE: usize = 6000;
/// In front of the stripes: one counter that everybody adds to.
const SHARED: usize = 8;

#[derive(Clone, Copy, Debug)]
enum Action {
    Write {
        from: usize,
        to: usize,
        size: usize,
        told: bool,
    },
    Read {
        from: usize,
        to: usize,
        size: usize,
    },
    /// Adds 1 to the target's counter and fetches.
    Count {
        from: usize,
        to: usize,
    },
    /// Fetches without changing anything: results of many bytes.
    Fetch {
        from: usize,
        to: usize,
        size: usize,
    },
    Message {
        from: usize,
        to: usize,
        size: usize,
    },
    Run(usize),
}

fn action() -> impl Strategy<Value = Action> {
    let pair = || (0..8usize, 0..8usize);
    let size = || prop::sample::select(&[0, 1, 24, 25, 300, 3000, 5900][..]);
    prop_oneof![
        3 => (pair(), size(), any::<bool>()).prop_map(|((from, to), size, told)| Action::Write { from, to, size, told }),
        3 => (pair(), size()).prop_map(|((from, to), size)| Action::Read { from, to, size }),
        2 => pair().prop_map(|(from, to)| Action::Count { from, to }),
        2 => (pair(), size()).prop_map(|((from, to), size)| Action::Fetch { from, to, size }),
        2 => (pair(), size()).prop_map(|((from, to), size)| Action::Message { from, to, size }),
        2 => (1..40usize).prop_map(Action::Run),
    ]
}

fn setup() -> impl Strategy<Value = Setup> {
    let scheme = prop::sample::select(SchemeName::ALL);
    let slots = prop::sample::select(&[(2, 1), (3, 1), (6, 2), (64, 2)][..]);
    let memory = prop::sample::select(&Memory::ALL[..]);
    // Accounts for one unanswered request, for two short ones or one long, for some, and without end.
    let window = prop::sample::select(&[Some(0), Some(4000), Some(30_000), None][..]);
    let few = prop::sample::select(&[None, None, Some(0), Some(3000)][..]);
    (2..=5usize, scheme, slots, memory, window, few, any::<bool>(), any::<u64>()).prop_map(
        |(nodes, scheme, (slots, credit_slots), memory, window, few, piggyback, seed)| {
            let base = Setup { scheme, slots, credit_slots, memory, window, few, piggyback, ..Setup::new(nodes) };
            Setup { scheduled: true, seed, ..base }
        },
    )
}

/// What must be there once all is still.
#[derive(Default)]
struct Expected {
    /// Node, offset, bytes.
    written: Vec<(usize, usize, Vec<u8>)>,
    told: usize,
    brought: Vec<(Handle, Vec<u8>)>,
    counts: Vec<(usize, Handle)>,
    sent: Vec<Handle>,
}

fn perform(world: &mut World, expected: &mut Expected, index: usize, action: Action) {
    let nodes = world.setup.nodes;
    let offset = SHARED + index * STRIPE;
    match action {
        Action::Write { from, to, size, told } => {
            let (from, to, bytes) = (from % nodes, to % nodes, pattern(index, size));
            let place = (world.place(from, to, KEY, offset as u64), size as u64);
            expected.sent.push(world.write(from, vec![place], &bytes, told.then_some(index as u64)));
            expected.told += usize::from(told);
            expected.written.push((to, offset, bytes));
        }
        Action::Read { from, to, size } => {
            let (from, to) = (from % nodes, to % nodes);
            let places = vec![(world.place(from, to, KEY, offset as u64), size as u64)];
            expected.brought.push((world.read(from, places), vec![7; size]));
        }
        Action::Count { from, to } => {
            let (from, to, one) = (from % nodes, to % nodes, 1u64.to_le_bytes());
            let place = (world.place(from, to, KEY, 0), 1);
            let fetch = world.fetch_atomic(from, vec![place], AtomicType::Uint64, AtomicOp::Sum, &one, None);
            expected.counts.push((to, fetch));
        }
        Action::Fetch { from, to, size } => {
            let (from, to, elements) = (from % nodes, to % nodes, size as u64 / 8);
            let places = vec![(world.place(from, to, KEY, offset as u64), elements)];
            let fetch = world.fetch_atomic(from, places, AtomicType::Uint64, AtomicOp::Read, &[], None);
            expected.brought.push((fetch, vec![7; elements as usize * 8]));
        }
        Action::Message { from, to, size } => {
            let (from, to, tag) = (from % nodes, to % nodes, index as u64);
            expected.sent.push(world.send(from).to(to).tagged(tag).bytes(&pattern(index, size)).post());
            let receive = world.receive(to).from(from).tagged(tag).capacity(size).post();
            expected.brought.push((receive, pattern(index, size)));
        }
        Action::Run(steps) => world.steps(steps),
    }
}

proptest! {
    #[test]
    fn remote_operations_and_messages_do_not_disturb_each_other(
        setup in setup(),
        program in prop::collection::vec(action(), 1..60),
    ) {
        let mut world = setup.build();
        let mut contents = vec![7; SHARED + program.len() * STRIPE];
        contents[..SHARED].fill(0);
        let both = [Access::Read, Access::Write];
        let memories: Vec<_> = (0..setup.nodes).map(|node| world.register(node, KEY, &contents, &both)).collect();
        let mut expected = Expected::default();
        for (index, action) in program.iter().enumerate() {
            perform(&mut world, &mut expected, index, *action);
        }
        world.settle();
        for (node, offset, bytes) in &expected.written {
            prop_assert!(memories[*node].bytes()[*offset..][..bytes.len()] == *bytes, "{}", world);
        }
        for (handle, bytes) in &expected.brought {
            prop_assert!(world.bytes(*handle) == *bytes, "{:?}\n{}", handle, world);
        }
        expected.sent.iter().for_each(|handle| assert_eq!(world.success(*handle).context.0, handle.context));
        let told: usize = (0..setup.nodes).map(|node| world.remote_writes(node).len()).sum();
        prop_assert_eq!(told, expected.told);
        for (node, memory) in memories.iter().enumerate() {
            let fetched = expected.counts.iter().filter(|(to, _)| *to == node).map(|(_, fetch)| world.bytes(*fetch).to_vec());
            let mut fetched: Vec<_> = fetched.collect();
            fetched.sort_unstable();
            let all: Vec<_> = (0..fetched.len() as u64).map(|value| value.to_le_bytes().to_vec()).collect();
            prop_assert_eq!(&fetched, &all, "every value once\n{}", world);
            prop_assert_eq!(memory.bytes()[..SHARED].to_vec(), (all.len() as u64).to_le_bytes().to_vec());
            prop_assert_eq!(world.counter(node, Counter::Violations), 0);
            prop_assert!(world.counter(node, Counter::ReceivePeak) <= world.counter(node, Counter::ReceiveBound));
            world.assert_windows(node);
            for peer in 0..setup.nodes as u32 - 1 {
                let backlog = world.endpoint(node).inspect_backlog(PeerId(peer));
                prop_assert_eq!((backlog.notes, backlog.messages, backlog.requests, backlog.unanswered), (0, 0, 0, 0));
            }
        }
    }
}
