//! Shared memory between the processes of one host.

mod address;
mod error;

pub use address::Address;
pub use error::LinkError;

use crate::memory::IoBuffer;
use crate::stats::StatsConfig;
use std::io;
use std::os::fd::RawFd;
use std::path::PathBuf;
use tidegate_flow::{Config, Packet, PeerId};
use tidegate_message::{Access, Counters, Departure, Link, Span, TransferId, TransferStatus, WriteError};

/// How bulk data may travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkChoice {
    /// Directly if a probe succeeds, else through the mailbox.
    Auto,
    /// Directly; a peer whose memory cannot be reached is an error.
    Direct,
    /// Through the mailbox.
    Mailbox,
}

/// What an endpoint over shared memory needs to know.
#[derive(Clone, Debug)]
pub struct ShmConfig {
    /// Flow control: fixes the size of the mailbox. All processes must agree, on all but `peers`.
    pub flow: Config,
    /// Bulk data.
    pub bulk: BulkChoice,
    /// Polls that find nothing before [`ShmLink::idle`] yields the processor; `None`: many if the processes fit the cores,
    /// few if not.
    pub spin: Option<u32>,
    /// Publish the counters in a file; `None`: keep them private.
    pub stats: Option<StatsConfig>,
    /// Whether [`ShmLink::wake_fd`] may be called. Costs senders a memory barrier per packet.
    pub wakes: bool,
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
            directory: PathBuf::from("/dev/shm"),
        }
    }
}

/// One endpoint's view of shared memory: its own mailbox and those of its peers.
#[derive(Debug)]
pub struct ShmLink {}

impl ShmLink {
    /// Creates the segment and reclaims those that dead processes left behind.
    pub fn new(config: ShmConfig) -> Result<ShmLink, LinkError> {
        let _ = config;
        todo!()
    }

    /// Where peers find this endpoint.
    pub fn address(&self) -> Address {
        todo!()
    }

    /// The peer at `address`, which is not this endpoint's own: found in the table of peers, or inserted. Does not connect.
    pub fn peer(&mut self, address: &Address) -> Result<PeerId, LinkError> {
        let _ = address;
        todo!()
    }

    /// The address of a peer; `None` if there is no such peer (any more).
    pub fn address_of(&self, peer: PeerId) -> Option<Address> {
        let _ = peer;
        todo!()
    }

    /// Lets peers find a registered region, so that RMA goes straight to memory. `false`: no room; peers then go by message.
    pub fn publish_region(&mut self, key: u64, span: Span, read: bool, write: bool) -> bool {
        let _ = (key, span, read, write);
        todo!()
    }

    /// Ends that. A key that was not published is no error.
    pub fn withdraw_region(&mut self, key: u64) {
        let _ = key;
        todo!()
    }

    /// Progress found something to do.
    #[inline]
    pub fn busy(&mut self) {
        todo!()
    }

    /// Progress found nothing to do: spins a little, then yields the processor; now and then looks whether peers live.
    #[inline]
    pub fn idle(&mut self) {
        todo!()
    }

    /// A descriptor that becomes readable when a packet arrives while [armed](Self::arm).
    /// Errors: [`ShmConfig::wakes`] was not set; the process has no descriptor left.
    pub fn wake_fd(&mut self) -> io::Result<RawFd> {
        todo!()
    }

    /// Asks for a wake at the next packet. `true`: nothing has arrived so far, the caller may block on the descriptor.
    /// `false`: something has; call progress. Ends by itself at the next packet or poll.
    pub fn arm(&mut self) -> bool {
        todo!()
    }

    /// How bulk data travels, for people and statistics: `direct`, `mailbox`, or `undecided` before the first connection.
    pub fn bulk(&self) -> &'static str {
        todo!()
    }
}

impl Link for ShmLink {
    type Buffer = IoBuffer;
    fn write(&mut self, _to: PeerId, _packet: &Packet) -> Result<(), WriteError> {
        todo!()
    }
    fn retrieve(&mut self) -> Option<Packet> {
        todo!()
    }
    fn reaches_memory(&mut self, _peer: PeerId) -> bool {
        todo!()
    }
    fn read_peer(&mut self, _: TransferId, _: PeerId, _: &[Span], _: &mut IoBuffer, _: usize) -> TransferStatus {
        todo!()
    }
    fn write_peer(&mut self, _: TransferId, _: PeerId, _: &[Span], _: &IoBuffer, _: usize) -> TransferStatus {
        todo!()
    }
    fn poll_transfer(&mut self) -> Option<(TransferId, TransferStatus)> {
        None
    }
    fn find_region(&mut self, _: PeerId, _: u64, _: u64, _: u64, _: Access) -> Option<Span> {
        todo!()
    }
    fn poll_departure(&mut self) -> Option<Departure> {
        todo!()
    }
    fn release(&mut self, _peer: PeerId) {
        todo!()
    }
    fn counters(&self) -> &Counters {
        todo!()
    }
    fn now(&self) -> u64 {
        todo!()
    }
}
