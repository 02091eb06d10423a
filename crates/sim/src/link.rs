//! [`SimLink`]: the environment of one simulated process's endpoint.
//!
//! # Time
//!
//! A process runs ahead of the simulation while it is busy: every packet it writes or retrieves moves its own clock.
//! What it wrote lies in its *outbox*, each packet with the time it was ready, and the node's interface takes it from
//! there when its time comes. That loses nothing: within one call of the endpoint no packet that arrives could change
//! what is written. The process calls its endpoint again only when the outbox is empty and the simulation has caught
//! up.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::slice;

use tidegate_flow::{Header, Packet, PacketKind, PeerId, Placement, Posting, ReceiveQueues, ReceiverResource};
use tidegate_message::{
    Access, Arrival, Bounce, Capabilities, Carry, Closing, Counter, Counters, Fill, Link, LinkEvent, Medium,
    PeerMemory, PeerNames, RemoteMemory, SenderWrites, TransferId, TransferStatus, WriteError,
};

use crate::Time;
use crate::buffer::MemoryBuffer;
use crate::checker::Ledger;
use crate::contacts::{PeerTable, Ranks};
use crate::cost::{Activity, Cost, Spent};
use crate::flight::Rank;
use crate::noise::Interruptions;
use crate::outbox::Outbox;
use crate::parcel::{Bodies, Body, Parcel};
use crate::posted::Posted;
use crate::rendezvous::Rendezvous;

/// Which way bulk data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// From the peer's memory to ours.
    Read,
    /// From our memory to the peer's, which has [admitted](SenderWrites::admit_write) it.
    Write,
}

/// A copy from or to a peer's memory that the endpoint asked for.
#[derive(Debug)]
pub(crate) struct TransferRequest {
    pub id: TransferId,
    pub transfer: Transfer,
    pub peer: Rank,
    pub remote: Vec<RemoteMemory>,
    /// Where the bytes go, or come from.
    pub local: MemoryBuffer,
    pub offset: usize,
}

/// A packet in a mailbox: 16 bytes, which a parcel and a rank beside each other would not be.
#[derive(Clone, Copy, Debug)]
struct Slot {
    header: Header,
    body: Body,
    source: Rank,
}

/// The packets that have arrived, in order.
#[derive(Debug, Default)]
pub(crate) struct Mailbox(VecDeque<Slot>);

impl Mailbox {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Bytes of heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<Slot>()
    }

    #[inline]
    pub(crate) fn push(&mut self, source: Rank, parcel: Parcel) {
        self.0.push_back(Slot { header: parcel.header, body: parcel.body, source });
    }
}

/// What one process's packets cost, under the scheme it runs.
#[derive(Debug)]
pub(crate) struct PacketCost {
    pub(crate) cost: Cost,
    pub(crate) lends: ReceiverResource,
}

/// How long peers were blocked (P §6.1) that one process had asked to return credits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Blocked {
    /// Peers that have not answered.
    count: u32,
    since: Time,
    total: Time,
}

impl Blocked {
    /// Adds the time of those that are blocked up to `now`.
    fn account(&mut self, now: Time) {
        self.total += Time(now.since(self.since).0 * u64::from(self.count));
        self.since = now;
    }

    fn begin(&mut self, now: Time) {
        self.account(now);
        self.count += 1;
    }

    fn end(&mut self, now: Time) {
        self.account(now);
        self.count = self.count.saturating_sub(1);
    }

    /// The time of all peers together, until the last request or answer.
    pub(crate) fn total(&self) -> Time {
        self.total
    }
}

/// The environment of one process's endpoint.
///
/// What is touched for every packet stands first, in this order and at the beginning of a cache line: in a run of a
/// thousand processes hardly anything of a process is still in the cache when its next packet comes.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct SimLink {
    pub(crate) clock: Time,
    pub(crate) mailbox: Mailbox,
    counters: Box<Counters>,
    costs: Rc<PacketCost>,
    interruptions: Interruptions,
    /// How much longer than other processes this one takes to retrieve a packet.
    sink_delay: Time,
    /// What a data packet costs in addition, with as many senders as there are.
    far: Time,
    /// Who has sent data.
    senders: Ranks,
    pub(crate) spent: Spent,
    peers: PeerTable,
    me: Rank,
    pub(crate) outbox: Outbox,
    pub(crate) requests: Vec<TransferRequest>,
    ended: VecDeque<TransferId>,
    /// Who moves the data of long messages.
    rendezvous: Rendezvous,
    /// The memory that peers may write into, by peer and key.
    admitted: HashMap<(Rank, u64), MemoryBuffer>,
    /// Whose adapters have refused messages of ours since the endpoint was told last.
    refused: VecDeque<PeerId>,
    /// Where the scheme posts buffers.
    pub(crate) posted: Option<Posted>,
    /// The payloads of the whole run.
    bodies: Rc<RefCell<Bodies>>,
    ledger: Option<Rc<RefCell<Ledger>>>,
    pub(crate) blocked: Blocked,
    /// Why the process cannot go on, which the calls of the endpoint cannot return: the run ends with this error.
    pub(crate) failure: Option<String>,
}

impl SimLink {
    /// The link of process `me` of `size`, whose endpoint has room for `peers`.
    pub(crate) fn new(me: Rank, size: u32, peers: u32, costs: Rc<PacketCost>, bodies: Rc<RefCell<Bodies>>) -> Self {
        let peers = PeerTable::new(me, size, peers);
        SimLink {
            me,
            peers,
            costs,
            sink_delay: Time::ZERO,
            interruptions: Interruptions::none(),
            senders: Ranks::default(),
            far: Time::ZERO,
            clock: Time::ZERO,
            spent: Spent::default(),
            mailbox: Mailbox::default(),
            outbox: Outbox::default(),
            requests: Vec::new(),
            ended: VecDeque::new(),
            rendezvous: Rendezvous::default(),
            admitted: HashMap::new(),
            refused: VecDeque::new(),
            posted: None,
            counters: Box::default(),
            bodies,
            ledger: None,
            blocked: Blocked::default(),
            failure: None,
        }
    }

    /// Makes the process slower than others at taking packets out of its mailbox.
    pub(crate) fn slow_down(&mut self, delay: Time) {
        self.sink_delay = delay;
    }

    /// Whether it is.
    pub(crate) fn is_slow(&self) -> bool {
        self.sink_delay > Time::ZERO
    }

    /// Lets noise interrupt the process.
    pub(crate) fn disturb(&mut self, interruptions: Interruptions) {
        self.interruptions = interruptions;
    }

    /// Says who moves the data of long messages.
    pub(crate) fn meet_by(&mut self, rendezvous: Rendezvous) {
        self.rendezvous = rendezvous;
    }

    /// The memory that `peer` was let write into under this key: it is written once.
    pub(crate) fn take_admitted(&mut self, peer: Rank, key: u64) -> Option<MemoryBuffer> {
        self.admitted.remove(&(peer, key))
    }

    /// Gives the process buffers to post.
    pub(crate) fn post_buffers(&mut self, queues: ReceiveQueues) {
        self.posted = Some(Posted::new(queues));
    }

    /// Lets a checker see all that is written and retrieved.
    pub(crate) fn attach(&mut self, ledger: Rc<RefCell<Ledger>>) {
        self.ledger = Some(ledger);
    }

    /// The rank behind a place in the endpoint's table of peers.
    pub fn rank(&self, peer: PeerId) -> Rank {
        self.peers.rank(peer)
    }

    /// The rank behind a place, if the place is taken.
    pub(crate) fn known_rank(&self, peer: PeerId) -> Option<Rank> {
        self.peers.known_rank(peer)
    }

    /// The place of `rank` in the endpoint's table, if it has one.
    pub fn find_peer(&self, rank: Rank) -> Option<PeerId> {
        self.peers.find(rank)
    }

    /// The place of `rank`, which from now on has one. `None` if the table is full: the run ends.
    pub(crate) fn admit_peer(&mut self, rank: Rank) -> Option<PeerId> {
        let peer = self.peers.admit(rank);
        if peer.is_none() {
            let me = self.me;
            self.failure = Some(format!(
                "{me} has no place left for {rank} in its table of peers: raise `peers`, or leave it out, so that all \
                 can talk to all"
            ));
        }
        peer
    }

    /// The process works for so long; interruptions by noise prolong that.
    #[inline]
    pub(crate) fn spend(&mut self, activity: Activity, span: Time) {
        self.clock += span + self.interruptions.during(span);
        self.spent.add(activity, span);
    }

    /// All ranks below `size` but this one have sent data.
    pub(crate) fn hear_all(&mut self, size: u32) {
        for rank in (0..size).map(Rank).filter(|&rank| rank != self.me) {
            self.senders.add(rank);
        }
        self.far = self.costs.cost.far(self.senders.count());
    }

    /// Its adapter has something for the process to see to, a refusal or an invitation of `speculative`: that costs as
    /// much as a packet of credits.
    pub(crate) fn see_to_answer(&mut self, now: Time) {
        self.clock = self.clock.max(now);
        self.spend(Activity::Credits, self.costs.cost.credit_packet);
    }

    /// A packet found the mailbox full.
    pub(crate) fn note_refused(&self) {
        self.counters.add(Counter::MailboxFull, 1);
    }

    /// A peer's adapter has refused a message of ours.
    pub(crate) fn note_refusal(&mut self, by: Rank) {
        self.refused.extend(self.peers.find(by));
    }

    /// Whether the endpoint has not been told of something that has happened.
    #[inline]
    pub(crate) fn has_events(&self) -> bool {
        !self.ended.is_empty() || !self.refused.is_empty()
    }

    /// A bulk transfer of ours has ended.
    pub(crate) fn end_transfer(&mut self, id: TransferId) {
        self.ended.push_back(id);
    }

    #[inline]
    fn write_one(&mut self, to: Rank, packet: &Packet) {
        let kind = packet.header.kind();
        let is_data = kind == PacketKind::Data;
        let activity = if is_data { Activity::Send } else { Activity::Credits };
        let cost = &self.costs.cost;
        self.spend(activity, cost.of_packet(cost.send_packet, is_data));
        self.spend(Activity::Credits, self.control_cost(packet.header, true));
        if kind == PacketKind::ReturnRequest {
            self.blocked.begin(self.clock);
        }
        if let Some(ledger) = &self.ledger {
            ledger.borrow_mut().written(self.me, to, packet);
        }
        let parcel = Parcel::plain(packet).unwrap_or_else(|| self.bodies.borrow_mut().keep(packet));
        self.outbox.push(self.clock, to, parcel);
    }

    /// What writing or retrieving this packet costs beside the packet itself. Where a credit is for a buffer, its last
    /// packet pays for it.
    fn control_cost(&self, header: Header, writes: bool) -> Time {
        let cost = &self.costs.cost;
        match (header.kind(), self.costs.lends, writes) {
            (
                _,
                ReceiverResource::Nothing
                | ReceiverResource::Buffers
                | ReceiverResource::PoolBuffers
                | ReceiverResource::PoolSlots,
                _,
            ) => Time::ZERO,
            (_, ReceiverResource::CreditedBuffers | ReceiverResource::GrowingBuffers, _)
                if !header.is_last_in_buffer() =>
            {
                Time::ZERO
            }
            (PacketKind::Data, _, true) => cost.credit_take,
            (PacketKind::Data, _, false) => cost.credit_count,
            (_, ReceiverResource::MovingSlots, true) => cost.credit_packet + cost.dynamic_packet,
            (..) => cost.credit_packet,
        }
    }
}

impl Medium for SimLink {
    type Buffer = MemoryBuffer;
}

impl PeerMemory for SimLink {
    fn capabilities(&mut self, _: PeerId) -> Capabilities {
        Capabilities { reaches_memory: true, ..Capabilities::default() }
    }

    fn read_peer(
        &mut self,
        id: TransferId,
        peer: PeerId,
        from: &[RemoteMemory],
        into: &mut MemoryBuffer,
        offset: usize,
    ) -> TransferStatus {
        self.spend(Activity::Receive, self.costs.cost.bulk_call);
        let peer = self.peers.rank(peer);
        let (remote, local) = (from.to_vec(), into.clone());
        self.requests.push(TransferRequest { id, transfer: Transfer::Read, peer, remote, local, offset });
        TransferStatus::Pending
    }

    /// No simulated program writes remote memory by itself: this is the data of a long message.
    fn write_peer(
        &mut self,
        id: TransferId,
        peer: PeerId,
        to: &[RemoteMemory],
        from: &MemoryBuffer,
        offset: usize,
    ) -> TransferStatus {
        self.spend(Activity::Send, self.costs.cost.bulk_call);
        let peer = self.peers.rank(peer);
        let (remote, local) = (to.to_vec(), from.clone());
        self.requests.push(TransferRequest { id, transfer: Transfer::Write, peer, remote, local, offset });
        TransferStatus::Pending
    }

    /// No simulated peer closes or dies, so no transfer is ever cancelled.
    fn cancel_transfer(&mut self, _: PeerId, _: TransferId) -> bool {
        false
    }

    fn find_region(&mut self, _: PeerId, _: u64, _: u64, _: u64, _: Access) -> Option<(RemoteMemory, Access)> {
        None
    }
}

impl Bounce for SimLink {}
impl Carry for SimLink {}
impl Closing for SimLink {}
impl PeerNames for SimLink {}

impl SenderWrites for SimLink {
    fn writes_bulk(&self) -> bool {
        self.rendezvous == Rendezvous::Write
    }

    fn admit_write(&mut self, peer: PeerId, key: u64, buffer: &MemoryBuffer) {
        self.spend(Activity::Receive, self.costs.cost.bulk_call);
        self.admitted.insert((self.peers.rank(peer), key), buffer.clone());
    }
}

impl Link for SimLink {
    #[inline]
    fn write(&mut self, to: PeerId, count: u32, mut fill: impl Fill) -> Result<u32, WriteError> {
        let to = self.peers.rank(to);
        for _ in 0..count {
            // A new packet each time, so that no bytes of an earlier one lie behind a short payload.
            let mut packet = Packet::new(PacketKind::Data, 0, 0);
            fill.fill(slice::from_mut(&mut packet), Placement::default());
            self.write_one(to, &packet);
        }
        Ok(count)
    }

    #[inline]
    fn retrieve(&mut self) -> Option<Arrival> {
        let waiting = self.mailbox.len() as u64;
        let Slot { header, body, source } = self.mailbox.0.pop_front()?;
        self.counters.raise(Counter::MailboxPeak, waiting);
        let mut packet = match body {
            Body::ZEROS => Bodies::open_plain(Parcel { header, body }),
            _ => self.bodies.borrow_mut().open(Parcel { header, body }),
        };
        let kind = packet.header.kind();
        let is_data = kind == PacketKind::Data;
        let activity = if is_data { Activity::Receive } else { Activity::Credits };
        let cost = &self.costs.cost;
        if is_data && self.senders.add(source) {
            self.far = cost.far(self.senders.count());
        }
        let far = if is_data { self.far } else { Time::ZERO };
        let waited = Time(cost.retrieve_waiting.0 * waiting);
        self.spend(activity, cost.of_packet(cost.retrieve_packet, is_data) + far + waited + self.sink_delay);
        self.spend(Activity::Credits, self.control_cost(header, false));
        if kind == PacketKind::ReturnResponse {
            self.blocked.end(self.clock);
        }
        if let Some(ledger) = &self.ledger {
            ledger.borrow_mut().retrieved(source, self.me, &packet);
        }
        if let Some(posted) = &mut self.posted {
            posted.note_retrieved(self.clock);
        }
        let source = self.admit_peer(source)?;
        packet.header = packet.header.published(0, source);
        Some(Arrival { source, packet })
    }

    fn post(&mut self, posting: Posting) {
        if let Some(posted) = &mut self.posted {
            posted.post(self.clock, posting);
        }
    }

    #[inline]
    fn poll_event(&mut self) -> Option<LinkEvent> {
        if let Some(by) = self.refused.pop_front() {
            return Some(LinkEvent::Refused(by));
        }
        let id = self.ended.pop_front()?;
        self.spend(Activity::Receive, self.costs.cost.bulk_call);
        Some(LinkEvent::TransferEnded(id, TransferStatus::Done))
    }

    fn quarantine(&mut self, peer: PeerId) -> String {
        unreachable!("a simulated process keeps the protocol, and peer {} does not", peer.0)
    }

    fn release(&mut self, _peer: PeerId) {}

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
