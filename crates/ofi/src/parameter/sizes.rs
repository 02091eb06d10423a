//! How large mailbox and receive memory are unless the user says (`FI_TIDEGATE_SLOTS`, `FI_TIDEGATE_RX_MEMORY`).
//!
//! The paper's result is that under `dynamic` 16 slots per peer are enough where there are many (P §7), and it is what
//! a large job gets. A small one would gain nothing by so few: its mailbox takes [`LEAST_MAILBOX`] in any case, which
//! those that are expected share; in between it is [`SLOTS`] for each of them, up to [`MOST_MAILBOX`]. Under `static` a
//! share is for good, and both ends of a connection must know it: there it is [`SLOTS`] for each peer, whatever the job.
//!
//! All ranks of a node together may keep messages in an eighth of its memory ([`NODE_SHARE`]), and none keeps more than
//! [`RECEIVE_MEMORY`], which is enough for everything that has been measured, or than it takes to let all peers send at
//! a time. No size of a job is refused: where that is less than the least with which an endpoint works, it is the least.

use tidegate_message::flow::{Config, PACKET_BYTES, ReceiverResource};

/// Slots of a peer that is expected, as long as the mailbox is neither small nor large.
pub const SLOTS: u32 = 64;
/// Slots of a peer that is expected, however many they are.
const LEAST_SLOTS: u32 = 16;
/// What a mailbox takes however few peers are expected, in bytes.
pub const LEAST_MAILBOX: usize = 256 << 10;
/// What a mailbox may take for more than the least slots of each, in bytes.
pub const MOST_MAILBOX: usize = 1 << 20;
/// The bound on receive memory, in bytes.
pub const RECEIVE_MEMORY: usize = 64 << 20;
/// One part in so many of a node's memory is what all ranks on it may keep for their senders.
pub const NODE_SHARE: u64 = 8;

/// Slots per peer for an endpoint that is otherwise configured so.
pub fn slots_by_default(flow: &Config) -> u32 {
    if flow.scheme.lends() == ReceiverResource::FixedSlots {
        return SLOTS;
    }
    let expected = flow.expected().max(1);
    let of_others = (flow.peers - flow.expected()) as usize * 2 * flow.credit_slots as usize;
    // As many for each that the mailbox takes so many bytes.
    let filling = |bytes: usize| ((bytes / PACKET_BYTES).saturating_sub(of_others) / expected as usize) as u32;
    SLOTS.min(filling(MOST_MAILBOX)).max(filling(LEAST_MAILBOX)).max(least_slots(flow))
}

/// The fewest slots per peer that are chosen, where that helps to stay within a bound.
pub fn least_slots(flow: &Config) -> u32 {
    match flow.scheme.lends() {
        ReceiverResource::FixedSlots => SLOTS,
        _ => LEAST_SLOTS.max(flow.credit_slots.saturating_mul(4)),
    }
}

/// What an endpoint needs of receive memory, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// To work at all.
    pub least: usize,
    /// To let all peers send at a time.
    pub for_all: usize,
}

/// The bound on receive memory in bytes, of so many ranks on a node with so much memory, where that is known.
pub fn receive_memory_by_default(node_memory: Option<u64>, ranks_here: u32, needs: Needs) -> usize {
    let share = node_memory.map_or(u64::MAX, |bytes| bytes / NODE_SHARE / u64::from(ranks_here.max(1)));
    let share = usize::try_from(share).unwrap_or(usize::MAX);
    RECEIVE_MEMORY.max(needs.for_all).min(share).max(needs.least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_message::flow::SchemeName;

    /// Slots per peer, and KiB of the mailbox, where so many of so many peers are expected.
    fn of(scheme: SchemeName, expected: u32, peers: u32) -> (u32, usize) {
        let config = Config { expected_peers: Some(expected), ..Config::new(scheme, peers, 1 << 10, 2) };
        let slots = slots_by_default(&config);
        let regions = Config { slots_per_peer: slots, ..config }.regions().unwrap();
        (slots, regions.mailbox as usize / (1024 / PACKET_BYTES))
    }

    #[test]
    fn few_peers_share_a_mailbox_that_is_not_small_and_many_have_as_few_slots_as_the_paper() {
        let dynamic = |expected, peers| of(SchemeName::Dynamic, expected, peers);
        assert_eq!([dynamic(1, 64), dynamic(7, 64)], [(3844, 256), (552, 255)]);
        assert_eq!([dynamic(63, 256), dynamic(239, 256)], [(64, 300), (64, 960)]);
        assert_eq!([dynamic(1023, 1040), dynamic(65_535, 65_552)], [(16, 1027), (16, 65_539)]);
        assert_eq!(of(SchemeName::None, 1023, 1040), (16, 1027), "equal memory");
        assert_eq!([of(SchemeName::Static, 7, 64), of(SchemeName::Static, 1023, 1040)], [(64, 256), (64, 4160)]);
        let credits = Config { credit_slots: 40, ..Config::new(SchemeName::Dynamic, 10_000, 1, 2) };
        assert!(Config { slots_per_peer: slots_by_default(&credits), ..credits }.regions().is_ok());
    }

    #[test]
    fn all_ranks_of_a_node_keep_no_more_than_an_eighth_of_its_memory() {
        let of = |gib: u64, ranks| receive_memory_by_default(Some(gib << 30), ranks, Needs::default()) >> 20;
        assert_eq!([of(256, 128), of(32, 64), of(16, 512), of(1, 0)], [64, 64, 4, 64]);
        assert_eq!(receive_memory_by_default(None, 4, Needs::default()), RECEIVE_MEMORY);
    }

    #[test]
    fn no_job_is_refused_and_all_may_send_at_a_time_where_the_node_has_memory_for_that() {
        let needs = Needs { least: 40 << 20, for_all: 100 << 20 };
        let of = |gib: u64, ranks| receive_memory_by_default(Some(gib << 30), ranks, needs) >> 20;
        assert_eq!([of(256, 128), of(80, 128), of(16, 128)], [100, 80, 40]);
    }
}
