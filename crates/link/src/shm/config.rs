//! What an endpoint over shared memory needs to know.

use crate::stats::StatsConfig;
use std::path::PathBuf;
use tidegate_flow::{BufferField, Config, Names};

/// Where segments lie.
pub const DIRECTORY: &str = "/dev/shm";

/// The names by which users of the provider set the numbers of flow control and receive memory.
pub const NAMES: Names = Names {
    slots: "FI_TIDEGATE_SLOTS",
    credit_slots: "FI_TIDEGATE_CREDIT_SLOTS",
    peers: "FI_TIDEGATE_PEERS",
    receive_memory: "FI_TIDEGATE_RX_MEMORY",
    buffers: variable_of,
};

/// The variable by which users say how long a message a posted buffer holds.
pub(super) const BUFFER_SIZE: &str = "FI_TIDEGATE_BUFFER_SIZE";

/// The variable by which users set what flow control calls so.
const fn variable_of(field: BufferField) -> &'static str {
    match field {
        BufferField::Packets => "FI_TIDEGATE_BUFFER_SIZE (in packets)",
        BufferField::PerConnection => "FI_TIDEGATE_BUFFERS",
        BufferField::PerConnectionMost => "FI_TIDEGATE_BUFFERS_MOST",
        BufferField::CreditThreshold => "FI_TIDEGATE_CREDIT_THRESHOLD",
        BufferField::RetryTimer => "FI_TIDEGATE_RETRY_TIMER",
        BufferField::PoolFirst => "FI_TIDEGATE_POOL_FIRST",
        BufferField::PoolMost => "FI_TIDEGATE_POOL_MOST",
        BufferField::PoolSlots => "FI_TIDEGATE_POOL_SLOTS",
        BufferField::QuietAfter => "FI_TIDEGATE_QUIET_AFTER",
        // That is not for users to set (why: `adapter/spare.rs` in `tidegate-flow`).
        BufferField::RefusalsMost => field.name(),
    }
}

/// Bounce buffers of an endpoint, unless the user says otherwise: 1 MiB in all.
pub const DEFAULT_BOUNCE_BUFFERS: u32 = 32;
/// Most bounce buffers that an endpoint may have: 1 GiB.
pub const BOUNCE_BUFFERS_MOST: u32 = 1 << 15;

/// Send buffers of an endpoint, unless the user says otherwise: at most 512 KiB in all.
pub const DEFAULT_SEND_BUFFERS: u32 = 32;
/// Most send buffers that an endpoint may have: 1 GiB.
pub const SEND_BUFFERS_MOST: u32 = 1 << 16;

/// How bulk data may travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkChoice {
    /// Directly if a probe succeeds and that is measured to be faster, or the transfer is very long; else through
    /// bounce buffers, or through the mailbox when no bounce buffer is free.
    Auto,
    /// All directly; a peer whose memory cannot be reached is an error.
    Direct,
    /// All through bounce buffers, or through the mailbox when no bounce buffer is free.
    Bounced,
    /// All through the mailbox.
    Mailbox,
}

impl BulkChoice {
    pub(super) fn may_be_direct(self) -> bool {
        matches!(self, BulkChoice::Auto | BulkChoice::Direct)
    }

    /// Whether bounce buffers are of use.
    pub(super) fn may_be_bounced(self) -> bool {
        matches!(self, BulkChoice::Auto | BulkChoice::Bounced)
    }
}

/// What an endpoint over shared memory needs to know.
#[derive(Clone, Debug)]
pub struct ShmConfig {
    /// Flow control: fixes the size of the mailbox. All processes must agree, on all but `peers`.
    pub flow: Config,
    /// Bulk data.
    pub bulk: BulkChoice,
    /// Polls that find nothing before [`idle`](super::ShmLink::idle) yields the processor; `None`: many if the
    /// processes fit the cores, few if not.
    pub spin: Option<u32>,
    /// Publish the counters in a file; `None`: keep them private.
    pub stats: Option<StatsConfig>,
    /// Whether [`wake_fd`](super::ShmLink::wake_fd) may be called. Costs senders a memory barrier per packet.
    pub wakes: bool,
    /// Bounce buffers of 32 KiB for bulk data; 0: none.
    pub bounce_buffers: u32,
    /// Send buffers of 16 KiB for messages of some hundred bytes to some kilobytes; fewer than two are of no use.
    pub send_buffers: u32,
    /// Where segments lie: `/dev/shm`, the same for all processes.
    pub directory: PathBuf,
}

impl ShmConfig {
    /// Defaults for everything but flow control.
    pub fn new(flow: Config) -> Self {
        ShmConfig {
            flow,
            bulk: BulkChoice::Auto,
            spin: None,
            stats: None,
            wakes: false,
            bounce_buffers: DEFAULT_BOUNCE_BUFFERS,
            send_buffers: DEFAULT_SEND_BUFFERS,
            directory: PathBuf::from(DIRECTORY),
        }
    }

    /// How many bounce buffers and send buffers the segment has. An endpoint without peers needs none.
    pub(super) fn buffers(&self) -> (u32, u32) {
        let has_peers = self.flow.peers > 0;
        let bounce_buffers = if self.bulk.may_be_bounced() && has_peers { self.bounce_buffers } else { 0 };
        (bounce_buffers, if has_peers { self.send_buffers } else { 0 })
    }
}
