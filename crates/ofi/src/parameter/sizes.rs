//! How large mailbox and receive memory are unless the user says (`FI_TIDEGATE_SLOTS`, `FI_TIDEGATE_RX_MEMORY`).
//!
//! By default a mailbox is one pool of slots, which has no share of a peer and does not grow with the job. With
//! shares it does: the paper's result is that under `dynamic` 16 slots per peer are enough where there are many (P
//! §7), and it is what a large job gets. A small one would gain nothing by so few: its mailbox takes
//! [`LEAST_MAILBOX`] in any case, which those that are expected share; in between it is [`SLOTS`] for each of them,
//! up to [`MOST_MAILBOX`]. Under `static` a share is for good, and both ends of a connection must know it: there it
//! is [`SLOTS`] for each peer, whatever the job.
//!
//! All ranks of a node together may keep messages in an eighth of its memory ([`NODE_SHARE`]), and none keeps more than
//! [`RECEIVE_MEMORY`], which is enough for everything that has been measured, or than it takes to let all peers send at
//! a time. No size of a job is refused: where that is less than the least with which an endpoint works, it is the
//! least.

use super::Settings;
use super::peers::Peers;
use tidegate_message::flow::{Config, PACKET_BYTES, ReceiverResource};

/// Slots of a peer that is expected, as long as the mailbox is neither small nor large.
pub const SLOTS: u32 = 64;
/// Slots of a peer that is expected, however many they are.
const LEAST_SLOTS: u32 = 16;
/// The least of a mailbox, however few peers are expected, in bytes.
pub const LEAST_MAILBOX: usize = 256 << 10;
/// The most of a mailbox in which each peer has more than the least slots, in bytes.
pub const MOST_MAILBOX: usize = 1 << 20;
/// Slots of a pool where the bound that the user gave is too small for the usual number and all peers: a mailbox of
/// 16 KiB, with which the mean over the Intel MPI Benchmarks is as with more (papers/ours, `imb`).
pub const LEAST_POOL: u32 = 256;
/// The bound on receive memory, in bytes.
pub const RECEIVE_MEMORY: usize = 64 << 20;
/// All ranks on a node may keep this part of its memory for their senders, one in 8.
pub const NODE_SHARE: u64 = 8;

/// Slots per peer for an endpoint that is otherwise configured so.
pub fn slots_by_default(flow: &Config) -> u32 {
    if flow.scheme.lends() == ReceiverResource::FixedSlots {
        return SLOTS;
    }
    let expected = flow.expected().max(1);
    let of_others = (flow.peers - flow.expected()) as usize * 2 * flow.credit_slots as usize;
    // As many for each as fill a mailbox of these bytes.
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

/// Receive memory that an endpoint needs, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    /// To work at all.
    pub least: usize,
    /// To let all peers send at a time.
    pub for_all: usize,
}

/// The bound on receive memory in bytes, by the ranks on a node and its memory, where that is known.
pub fn receive_memory_by_default(node_memory: Option<u64>, ranks_here: u32, needs: Needs) -> usize {
    let share = node_memory.map_or(u64::MAX, |bytes| bytes / NODE_SHARE / u64::from(ranks_here.max(1)));
    let share = usize::try_from(share).unwrap_or(usize::MAX);
    RECEIVE_MEMORY.max(needs.for_all).min(share).max(needs.least)
}

impl Settings {
    /// The bound on receive memory in bytes, of an endpoint with these needs. A value that the user gave is returned
    /// as it is: the endpoint refuses it if it is too small.
    pub fn receive_memory(&self, needs: Needs) -> usize {
        let ranks_here = self.job.local_size.or(self.job.size).unwrap_or(1);
        let by_default = || receive_memory_by_default(self.node_memory, ranks_here, needs);
        self.receive_memory.unwrap_or_else(by_default)
    }

    /// The configuration of flow control, and whether it is for fewer peers than the application has hinted at.
    /// `addresses` is how many the application expects in its address vector; it counts where the launcher does not
    /// tell the number of ranks. `for_all` is the smallest receive memory with which all peers may send at a time:
    /// where the user bounds the memory and leaves the slots to us, they are as few as that needs.
    pub(super) fn planned_flow(&self, addresses: usize, for_all: impl Fn(&Config) -> usize) -> (Config, bool) {
        let mailbox =
            |peers| self.flow_for(peers, None).regions().map_or(0, |regions| regions.mailbox as usize * PACKET_BYTES);
        let (peers, expected) = match self.peers {
            // Who says how many there are expects them all.
            Some(number) => (Peers { number, is_cut: false }, None),
            None => {
                let peers = Peers::by_default(self.job.size, addresses, self.receive_memory(Needs::default()), mailbox);
                (peers, self.job.size.map(|ranks| (ranks - 1).max(1)))
            }
        };
        let mut flow = self.flow_for(peers.number, expected);
        let is_short_of_memory = |flow: &Config| self.receive_memory.is_some_and(|bytes| bytes < for_all(flow));
        if self.slots_per_peer.is_none() {
            flow.slots_per_peer = slots_by_default(&flow);
            if is_short_of_memory(&flow) {
                flow.slots_per_peer = least_slots(&flow);
            }
        }
        if flow.scheme.lends() == ReceiverResource::PoolSlots
            && self.buffers.pool_slots.is_none()
            && is_short_of_memory(&flow)
        {
            flow.buffers.pool_slots = LEAST_POOL;
        }
        (flow, peers.is_cut)
    }

    /// Whether the user leaves it to us how many slots a mailbox has.
    pub fn leaves_slots(&self) -> bool {
        match self.scheme.lends() {
            ReceiverResource::PoolSlots => self.buffers.pool_slots.is_none(),
            _ => self.slots_per_peer.is_none(),
        }
    }

    /// A configuration to compare with that of peers: the numbers that must be alike do not depend on the job.
    pub fn flow_alike(&self) -> Config {
        self.planned_flow(0, |_| 0).0
    }

    fn flow_for(&self, peers: u32, expected_peers: Option<u32>) -> Config {
        let buffers = self.buffers.of(self.scheme);
        let config = Config::new(self.scheme, peers, self.slots_per_peer.unwrap_or(SLOTS), self.credit_slots);
        Config { piggyback: self.piggyback, expected_peers, buffers, ..config }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_message::flow::SchemeName;

    /// Slots per peer, and KiB of the mailbox, by how many peers are expected and there are.
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
