//! One pool of slots (`speculative`): small worlds of real [`SlotPool`](tidegate_flow::SlotPool)s and
//! [`Speculation`](tidegate_flow::Speculation)s with networks between them, every interleaving of which is tried
//! (`exhaustive`), and larger ones at random (`random`). `world` has the steps, `check` the rules.

mod check;
mod exhaustive;
mod random;
mod world;

use tidegate_flow::SlotPool;

/// P's mailbox takes 293.5 MiB for 256 Ki processes (table 3). A pool of 2,048 slots, with all that is kept of senders
/// once each of them has sent something, takes less than a megabyte, and with eight that have a few kilobytes more than
/// its slots.
#[test]
fn a_pool_for_many_senders_is_small() {
    const PROCESSES: u32 = 1 << 18;
    let slots = 2048 * 64;
    assert_eq!(slots + SlotPool::bytes_idle(PROCESSES), 712_704);
    assert!(SlotPool::bytes_idle(8 * 256) < 5_000, "eight in a page each");
}
