//! Receive memory that is not enough for all to send at a time: senders ask, and take turns.

use crate::support::{Memory, Setup, World, pattern};
use tidegate_message::Counter;

/// So many nodes with so many bytes beyond the least that is legal.
fn setup(nodes: usize, more: usize, seed: u64) -> Setup {
    Setup { few: Some(more), memory: Memory::Mailbox, scheduled: true, seed, slots: 16, ..Setup::new(nodes) }
}

/// Checks that nothing is left anywhere.
fn assert_over(world: &mut World) {
    for node in 0..world.setup.nodes {
        assert!(!world.endpoint(node).has_unsent(), "{world}");
        for gauge in [Counter::UnmatchedBytes, Counter::Violations] {
            assert_eq!(world.counter(node, gauge), 0, "{gauge:?} of {node}\n{world}");
        }
        world.assert_windows(node);
    }
}

#[test]
fn a_message_for_a_posted_receive_comes_though_there_is_one_session_for_all() {
    for seed in 1..20 {
        let mut world = setup(4, 0, seed).build();
        let receives = [1, 2, 3].map(|from| world.receive(0).from(from).tagged(7).capacity(100).post());
        let sends = [1, 2, 3].map(|from| world.send(from).to(0).tagged(7).bytes(&pattern(from, 50)).post());
        world.settle();
        for from in 1..4 {
            assert_eq!(world.bytes(receives[from - 1]), pattern(from, 50));
            assert_eq!(world.success(sends[from - 1]).length, 50);
        }
        assert_over(&mut world);
    }
}
