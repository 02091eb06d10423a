//! Bulk data. The receiver of a rendezvous message reads it out of its sender's memory (P §2: the RMA engine), or the
//! sender writes it into the receiver's (L §3.1).
//!
//! To read, a request crosses the network to the owner of the memory, whose interface, without its processor, sends the
//! bytes back in frames; to write, frames leave at once. They share the network and the interfaces with the packets of
//! mailboxes, and need no slots and no posted buffers. That the last frame of a write has arrived is known to the
//! writer at once, as with messages (`adapter.rs`).

use std::collections::VecDeque;

use tidegate_flow::{Header, PacketKind};

use crate::flight::{Flight, Label, NodeId, Rank};
use crate::link::{Transfer, TransferRequest};
use crate::parcel::{Body, Parcel};

/// Kinds of packets that go to no mailbox. They are the last numbers, because the message layer numbers its kinds from
/// 1 on.
const REQUEST_KIND: u8 = 0xff;
const FRAME_KIND: u8 = 0xfe;
/// Payload bytes of such a packet beside the bulk data: which read it belongs to, and where its bytes go.
const ADDRESS_BYTES: usize = 8;

/// Names one read that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BulkId(u32);

/// A read or a write under way.
#[derive(Debug)]
pub(crate) struct BulkRead {
    /// Who asked for it.
    pub owner: Rank,
    pub request: TransferRequest,
    pub bytes: u64,
    /// Number of frames that have not arrived.
    pub left: u64,
}

/// What a node's interface still has to send.
#[derive(Clone, Copy, Debug)]
struct Job {
    packet: BulkPacket,
    from: NodeId,
    to: NodeId,
    /// Bytes that have not been sent.
    bytes: u64,
}

/// A packet of bulk traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BulkPacket {
    /// Asks for the bytes.
    Request(BulkId),
    /// Brings some of them.
    Frame(BulkId),
}

impl BulkPacket {
    /// What a packet of the network is, if it does not go to a mailbox.
    #[inline]
    pub fn of(parcel: Parcel) -> Option<BulkPacket> {
        match parcel.header.message() {
            REQUEST_KIND => Some(BulkPacket::Request(BulkId(parcel.body.0))),
            FRAME_KIND => Some(BulkPacket::Frame(BulkId(parcel.body.0))),
            _ => None,
        }
    }

    fn parcel(self) -> Parcel {
        let (kind, id) = match self {
            BulkPacket::Request(id) => (REQUEST_KIND, id),
            BulkPacket::Frame(id) => (FRAME_KIND, id),
        };
        Parcel { header: Header::new(PacketKind::Data, ADDRESS_BYTES, kind), body: Body(id.0) }
    }
}

/// All bulk traffic of a run.
#[derive(Debug)]
pub(crate) struct Bulk {
    reads: Vec<Option<BulkRead>>,
    free: Vec<u32>,
    /// What each node's interface has to send.
    jobs: Vec<VecDeque<Job>>,
    frame_bytes: u64,
}

impl Bulk {
    pub fn new(nodes: usize, frame_bytes: u32) -> Self {
        let jobs = vec![VecDeque::new(); nodes];
        Bulk { reads: Vec::new(), free: Vec::new(), jobs, frame_bytes: u64::from(frame_bytes.max(1)) }
    }

    /// A process of `from` wants to read or to write memory that is on `to`.
    pub fn start(&mut self, owner: Rank, from: NodeId, to: NodeId, request: TransferRequest) {
        let bytes: u64 = request.remote.iter().map(|memory| memory.span.length).sum();
        let left = bytes.div_ceil(self.frame_bytes).max(1);
        let transfer = request.transfer;
        let read = Some(BulkRead { owner, request, bytes, left });
        let id = match self.free.pop() {
            Some(index) => {
                self.reads[index as usize] = read;
                BulkId(index)
            }
            None => {
                self.reads.push(read);
                BulkId((self.reads.len() - 1) as u32)
            }
        };
        let (packet, bytes) = match transfer {
            Transfer::Read => (BulkPacket::Request(id), 0),
            Transfer::Write => (BulkPacket::Frame(id), bytes),
        };
        self.jobs[from.0 as usize].push_back(Job { packet, from, to, bytes });
    }

    /// A request has come to the node that has the bytes: they go back to where it came from.
    pub fn answer(&mut self, id: BulkId, request: &Flight) {
        let Some(read) = &self.reads[id.0 as usize] else { return };
        let job = Job { packet: BulkPacket::Frame(id), from: request.to, to: request.from, bytes: read.bytes };
        self.jobs[request.to.0 as usize].push_back(job);
    }

    /// A frame has come. Returns the read if it was the last one.
    pub fn receive_frame(&mut self, id: BulkId) -> Option<BulkRead> {
        let place = &mut self.reads[id.0 as usize];
        let read = place.as_mut()?;
        read.left -= 1;
        if read.left > 0 {
            return None;
        }
        self.free.push(id.0);
        place.take()
    }

    /// Whether the node's interface has bulk packets to send.
    pub fn has_work(&self, node: NodeId) -> bool {
        !self.jobs[node.0 as usize].is_empty()
    }

    /// The node's next bulk packet.
    pub fn next(&self, node: NodeId) -> Option<Flight> {
        let job = self.jobs[node.0 as usize].front()?;
        Some(Flight {
            parcel: job.packet.parcel(),
            from: job.from,
            to: job.to,
            source: Rank(u32::MAX),
            destination: Rank(u32::MAX),
            bulk_bytes: job.bytes.min(self.frame_bytes) as u32,
            label: Label::NONE,
        })
    }

    /// The network has taken the packet that [`next`](Self::next) returned. The next job has its turn, so that no
    /// reader waits for another reader's long message.
    pub fn sent(&mut self, node: NodeId) {
        let jobs = &mut self.jobs[node.0 as usize];
        let Some(mut job) = jobs.pop_front() else { return };
        job.bytes = job.bytes.saturating_sub(self.frame_bytes);
        if job.bytes > 0 {
            jobs.push_back(job);
        }
    }
}
