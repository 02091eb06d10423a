//! [`MemoryLink`]: the environment of one endpoint, and the [`Network`] that all links of a job share.

mod memory;
mod memory_link;

use super::buffer::{Arena, MemoryBuffer};
use super::random::Random;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::rc::Rc;
use tidegate_message::flow::{Config, Packet, PacketKind, Posting, ReceiveQueues, Regions, SchemeName};
use tidegate_message::{
    Access, Arrival, BounceBuffers, Buffer, Capabilities, Counters, Departure, Link, LinkEvent, PeerId, RemoteMemory,
    Span, TransferId, TransferStatus, WriteError,
};
use tidegate_message::{Bounce, Carry, Closing, Medium, PeerMemory, PeerNames, SenderWrites};

pub use memory::{Memory, node_of, peer_of};
pub use memory_link::MemoryLink;

/// Few and small, so that tests run out of them.
const BOUNCE_BUFFERS: BounceBuffers = BounceBuffers { count: 3, bytes: 1000 };
/// With bounce buffers and direct access: what is shorter goes through a bounce buffer.
const DIRECT_FROM: usize = 3500;
/// The longest message that is carried, and the shortest.
const CARRIED_MOST: usize = 5000;
const CARRIED_LEAST: usize = 97;
/// Messages of one node that wait to be taken before no more are carried. Their packets may wait for credits.
const CARRIED_AT_ONCE: usize = 2;

#[derive(Debug)]
struct Transfer {
    id: TransferId,
    peer: usize,
    remote: Vec<Span>,
    local: MemoryBuffer,
    offset: usize,
    fetch: bool,
}

#[derive(Debug)]
struct Region {
    span: Span,
    access: Vec<Access>,
}

#[derive(Debug)]
struct Node {
    alive: bool,
    /// Written and not yet visible, by the node that sent it.
    in_transit: Vec<VecDeque<Packet>>,
    mailbox: VecDeque<Packet>,
    peak: usize,
    departures: VecDeque<(usize, bool)>,
    /// Peers that have said that they close, of which the endpoint has not been told.
    closings: VecDeque<usize>,
    /// Peers whose departure the endpoint has been told.
    gone: Vec<usize>,
    released: Vec<usize>,
    /// Whose packets are dropped.
    quarantined: Vec<usize>,
    transfers: Vec<Transfer>,
    finished: VecDeque<(TransferId, TransferStatus)>,
    /// What else its link has to tell it.
    events: VecDeque<LinkEvent>,
    /// Its posted buffers, where the scheme has such.
    queues: Option<ReceiveQueues>,
    /// Of each node, whether the last packet that it has written here goes on with a buffer.
    is_amid: Vec<bool>,
    /// Messages that have come beside packets, by the node that sent them.
    carried: Vec<VecDeque<Vec<u8>>>,
    regions: BTreeMap<u64, Region>,
    bounce_buffers: Vec<Vec<u8>>,
}

impl Node {
    fn new(nodes: usize, config: &Config) -> Self {
        Node {
            alive: true,
            queues: ReceiveQueues::new(config.scheme, config.peers, &config.buffers),
            is_amid: vec![false; nodes],
            in_transit: vec![VecDeque::new(); nodes],
            mailbox: VecDeque::new(),
            peak: 0,
            departures: VecDeque::new(),
            closings: VecDeque::new(),
            gone: Vec::new(),
            released: Vec::new(),
            quarantined: Vec::new(),
            transfers: Vec::new(),
            finished: VecDeque::new(),
            events: VecDeque::new(),
            carried: vec![VecDeque::new(); nodes],
            regions: BTreeMap::new(),
            bounce_buffers: vec![vec![0; BOUNCE_BUFFERS.bytes]; BOUNCE_BUFFERS.count],
        }
    }

    /// The next packet of its mailbox.
    fn take_packet(&mut self) -> Option<Packet> {
        let packet = self.mailbox.pop_front()?;
        if let Some(slots) = self.queues.as_mut().and_then(ReceiveQueues::slots_mut) {
            slots.note_retrieved(1);
        }
        Some(packet)
    }

    /// Whether it has retrieved all that a node has written, which it knows as `peer`.
    fn has_taken_all(&self, from: usize, peer: PeerId) -> bool {
        self.in_transit[from].is_empty() && self.mailbox.iter().all(|packet| packet.header.source() != peer)
    }

    /// Slots taken: from the write on until the packet is retrieved.
    fn slots_used(&self) -> usize {
        self.mailbox.len() + self.in_transit.iter().map(VecDeque::len).sum::<usize>()
    }
}

/// Everything between the endpoints of a job.
#[derive(Debug)]
pub struct Network {
    config: Config,
    regions: Regions,
    memory: Memory,
    /// Whether packets become visible only when the scheduler says so.
    scheduled: bool,
    nodes: Vec<Node>,
    /// Every bulk transfer fails, as if the addresses were wrong.
    pub memory_fails: bool,
    /// Bulk transfers after which no memory can be reached any more.
    pub transfers_left: Option<u32>,
    /// Of every region these bytes cannot be reached directly.
    pub hole: Range<u64>,
    /// How many pieces were read or written together, each time that was asked for.
    pub batches: Vec<usize>,
    /// Who cannot send to whom, although the latter lives: writes fail, and a departure is reported once.
    pub cut: Vec<(usize, usize)>,
    /// Who cannot write to whom for a while, and cannot learn its window.
    pub hindered: Option<(usize, usize)>,
    /// What nodes have told of their windows, and of those of newcomers, with the first place of one.
    pub told: HashMap<usize, (u32, Option<(PeerId, u32)>)>,
    /// How often a window is asked for before it is known, and how often yet, by pair.
    pub unknown_for: u32,
    pub unknown: HashMap<(usize, usize), u32>,
    /// Packets came from outside of any protocol: what flow control promises for mailboxes does not hold.
    pub hostile: bool,
    /// This node's mailbox is full for data, and takes everything else.
    pub deaf: Option<usize>,
    /// No transfer can be stopped: one whose peer is gone changes memory until it has ended.
    pub is_stubborn: bool,
    /// Transfers that are pending do not end.
    pub holds_transfers: bool,
    /// Links have too much under way now and then: fewer places than wanted, or none.
    pub is_busy: bool,
    /// Packets of one message that have come are retrieved as one of several slots.
    pub joins: bool,
    /// Random numbers of busy links, and whether the last of them had no place.
    draws: (Random, bool),
    /// Application memory.
    pub arena: Arena,
    /// What must never happen and did.
    pub problems: Vec<String>,
    pub now: tidegate_message::Instant,
    /// Packets that the network was asked to take.
    offered: u64,
}

impl Network {
    /// A network of `nodes` with empty mailboxes.
    pub fn new(nodes: usize, config: Config, memory: Memory, scheduled: bool) -> Self {
        let regions = config.regions().expect("the test's configuration is legal");
        let arena = Arena::default();
        let nodes = (0..nodes).map(|_| Node::new(nodes, &config)).collect();
        Network {
            config,
            regions,
            memory,
            scheduled,
            nodes,
            memory_fails: false,
            transfers_left: None,
            hole: 0..0,
            batches: Vec::new(),
            cut: Vec::new(),
            hindered: None,
            told: HashMap::new(),
            unknown_for: 0,
            unknown: HashMap::new(),
            hostile: false,
            deaf: None,
            is_stubborn: false,
            holds_transfers: false,
            is_busy: false,
            joins: true,
            draws: (Random::new(1), false),
            arena,
            problems: Vec::new(),
            now: tidegate_message::Instant::default(),
            offered: 0,
        }
    }

    /// Whether there is a place for a packet.
    fn reserve(&mut self, from: usize, to: usize) -> Result<(), WriteError> {
        if self.nodes[from].gone.contains(&to) || self.nodes[from].quarantined.contains(&to) {
            return Err(WriteError::Unreachable(format!("node {to} has left")));
        }
        if self.hindered == Some((from, to)) {
            return Err(WriteError::Full);
        }
        if self.cut.contains(&(from, to)) {
            let departures = &mut self.nodes[from].departures;
            if !departures.contains(&(to, false)) {
                departures.push_back((to, false));
            }
            return Err(WriteError::Unreachable(format!("node {to} is out of reach")));
        }
        if self.config.scheme == SchemeName::RefuseThird && self.refuses() {
            return Err(WriteError::Refused);
        }
        self.take_buffer(from, to)?;
        let used = self.nodes[to].slots_used();
        if used >= self.regions.mailbox as usize {
            if self.config.scheme.lends().has_credits() && !self.hostile {
                self.problem(format!("{from} found the mailbox of {to} full ({used} slots)"));
            }
            return Err(WriteError::Full);
        }
        Ok(())
    }

    /// A packet that does not go on with a buffer takes one, where the scheme posts such.
    fn take_buffer(&mut self, from: usize, to: usize) -> Result<(), WriteError> {
        let source = peer_of(to, from, self.nodes.len());
        let node = &mut self.nodes[to];
        let Some(queues) = node.queues.as_mut() else { return Ok(()) };
        if let Some(slots) = queues.slots_mut() {
            // As over shared memory: whoever finds none tries again, and takes what is kept for it meanwhile.
            while slots.poll_invitation().is_some() {}
            return if slots.take(source, 0) { Ok(()) } else { Err(WriteError::Full) };
        }
        if !node.is_amid[from] && !queues.take(source) {
            return Err(WriteError::Refused);
        }
        if queues.poll_limit_reached() {
            node.events.push_back(LinkEvent::LimitReached);
        }
        Ok(())
    }

    /// What flow control of a node wants done with its posted buffers.
    fn post(&mut self, node: usize, posting: Posting) {
        if let Some(queues) = &mut self.nodes[node].queues {
            queues.post(posting);
        }
    }

    /// A packet for which there is a place.
    fn publish_packet(&mut self, from: usize, to: usize, packet: Packet) {
        self.inject(from, to, packet);
        self.nodes[to].is_amid[from] = !packet.header.is_last_in_buffer();
        if self.nodes[to].queues.is_some() {
            return;
        }
        let of_pair = self.nodes[to].in_transit[from].iter().chain(&self.nodes[to].mailbox);
        let source = peer_of(to, from, self.nodes.len());
        let credit = |packet: &&Packet| packet.header.source() == source && packet.header.kind() == PacketKind::Credit;
        if !self.hostile && of_pair.filter(credit).count() > self.config.credit_slots as usize {
            self.problem(format!("more than {} credit packets from {from} wait at {to}", self.config.credit_slots));
        }
    }

    /// How many places a link has now; no two times in a row none.
    fn places(&mut self, count: u32) -> u32 {
        let (random, was_full) = &mut self.draws;
        let places = match random.below(4) {
            _ if !self.is_busy => count,
            0 | 1 if !*was_full => 0,
            2 => count.min(1),
            _ => count,
        };
        *was_full = places == 0;
        places
    }

    /// Every fifth packet finds no buffer, where flow control reckons with that.
    fn refuses(&mut self) -> bool {
        self.offered += 1;
        self.offered.is_multiple_of(5)
    }

    /// Puts a packet under way whatever the room: hostile and late packets take this door.
    pub fn inject(&mut self, from: usize, to: usize, packet: Packet) {
        let source = peer_of(to, from, self.nodes.len());
        let packet = Packet { header: packet.header.published(1, source), ..packet };
        let node = &mut self.nodes[to];
        if self.scheduled {
            node.in_transit[from].push_back(packet);
        } else {
            node.mailbox.push_back(packet);
        }
        node.peak = node.peak.max(node.slots_used());
    }

    /// Whether nothing has come for a node that would wake it.
    pub fn has_nothing_for(&self, node: usize) -> bool {
        let node = &self.nodes[node];
        node.mailbox.is_empty()
            && node.finished.is_empty()
            && node.events.is_empty()
            && node.departures.is_empty()
            && node.closings.is_empty()
    }

    /// Lets one thing happen that is under way to a node of `awake`: a packet becomes visible, or a bulk transfer ends.
    /// False if nothing is under way.
    pub fn step(&mut self, random: &mut Random, awake: &[usize]) -> bool {
        self.now = self.now + std::time::Duration::from_nanos(100);
        let pairs = awake.iter().flat_map(|to| (0..self.nodes.len()).map(move |from| (*to, from)));
        let moving: Vec<_> = pairs.filter(|(to, from)| !self.nodes[*to].in_transit[*from].is_empty()).collect();
        let pending = awake.iter().flat_map(|to| (0..self.nodes[*to].transfers.len()).map(move |at| (*to, at)));
        let pending: Vec<_> = pending.filter(|_| !self.holds_transfers).collect();
        match moving.len() + pending.len() {
            0 => false,
            count => {
                let chosen = random.below(count);
                match moving.get(chosen) {
                    Some((to, from)) => {
                        let packet = self.nodes[*to].in_transit[*from].pop_front();
                        self.nodes[*to].mailbox.extend(packet);
                    }
                    None => self.finish_transfer(pending[chosen - moving.len()]),
                }
                true
            }
        }
    }

    fn finish_transfer(&mut self, (node, at): (usize, usize)) {
        let transfer = self.nodes[node].transfers.remove(at);
        let status = self.copy(&transfer);
        self.nodes[node].finished.push_back((transfer.id, status));
    }

    /// Whether a node of `awake` has something to take that no step is needed for.
    pub fn has_visible(&self, awake: &[usize]) -> bool {
        awake.iter().any(|node| {
            let node = &self.nodes[*node];
            !node.mailbox.is_empty() || !node.finished.is_empty() || !node.events.is_empty()
        })
    }

    fn copy(&mut self, transfer: &Transfer) -> TransferStatus {
        let total: u64 = transfer.remote.iter().map(|span| span.length).sum();
        let mut local = transfer.local.clone();
        if transfer.offset as u64 + total > local.len() as u64 {
            self.problem(format!("a bulk transfer of {total} bytes at {} leaves its local buffer", transfer.offset));
            return TransferStatus::Failed;
        }
        let mut offset = transfer.offset;
        for span in &transfer.remote {
            if !self.nodes[transfer.peer].alive {
                if self.is_stubborn && transfer.fetch {
                    local.write(offset, &[0xee]);
                }
                return TransferStatus::Unreachable;
            }
            let found = self.arena.find(transfer.peer, *span).filter(|_| !self.memory_fails);
            let Some(mut remote) = found else { return TransferStatus::Failed };
            let mut bytes = vec![0; remote.len()];
            if transfer.fetch {
                remote.read(0, &mut bytes);
                local.write(offset, &bytes);
            } else {
                local.read(offset, &mut bytes);
                remote.write(0, &bytes);
            }
            offset += bytes.len();
        }
        TransferStatus::Done
    }

    fn transfer(&mut self, node: usize, transfer: Transfer) -> TransferStatus {
        if !self.reaches(node, transfer.peer) {
            self.problem(format!("{node} touches the memory of {}, which it does not reach", transfer.peer));
            return TransferStatus::Failed;
        }
        if matches!(self.memory, Memory::Delayed | Memory::Carried) {
            self.nodes[node].transfers.push(transfer);
            return TransferStatus::Pending;
        }
        match &mut self.transfers_left {
            Some(0) => return TransferStatus::Unreachable,
            Some(left) => *left -= 1,
            None => {}
        }
        self.copy(&transfer)
    }

    fn reaches(&self, node: usize, peer: usize) -> bool {
        match self.memory {
            Memory::Direct | Memory::Delayed | Memory::BouncedOrDirect | Memory::Carried => true,
            Memory::Mailbox | Memory::Bounced => false,
            Memory::OneWay => node < peer,
        }
    }

    /// Makes a region known to peers that reach the memory of `node`.
    pub fn publish(&mut self, node: usize, key: u64, buffer: &MemoryBuffer, access: &[Access]) {
        let mut spans = buffer.spans();
        if let (Some(span), None) = (spans.next(), spans.next()) {
            self.nodes[node].regions.insert(key, Region { span, access: access.to_vec() });
        }
    }

    /// Withdraws a region that was made known to peers.
    pub fn unpublish(&mut self, node: usize, key: u64) {
        self.nodes[node].regions.remove(&key);
    }

    /// The node's process ends. Others are told once they have taken its last packet.
    pub fn depart(&mut self, node: usize, orderly: bool) {
        self.nodes[node].alive = false;
        self.nodes[node].transfers.clear();
        for other in (0..self.nodes.len()).filter(|other| *other != node) {
            self.nodes[other].departures.push_back((node, orderly));
        }
    }

    /// Packets of `from` that `to` has not seen never arrive, and `from` is told so; that it is out of reach is told
    /// once it has retrieved what `to` has sent.
    pub fn fail_late(&mut self, from: usize, to: usize) {
        self.nodes[to].in_transit[from].clear();
        let peer = peer_of(from, to, self.nodes.len());
        let event = LinkEvent::WriteFailed(peer, format!("node {to} does not answer any more"));
        self.nodes[from].events.push_back(event);
        self.nodes[from].departures.push_back((to, false));
        self.cut.push((from, to));
    }

    /// A packet of `from` has found no buffer at `to`.
    pub fn refuse_late(&mut self, from: usize, to: usize) {
        let event = LinkEvent::Refused(peer_of(from, to, self.nodes.len()));
        self.nodes[from].events.push_back(event);
    }

    /// How many transfers of a node are pending.
    pub fn transfers(&self, node: usize) -> usize {
        self.nodes[node].transfers.len()
    }

    /// Packets from `node` that nobody has seen yet are lost.
    pub fn lose_in_transit(&mut self, node: usize) {
        self.nodes.iter_mut().for_each(|other| other.in_transit[node].clear());
    }

    /// Another process takes the place of `node`, which has left and was released by all.
    pub fn revive(&mut self, node: usize) {
        for other in (0..self.nodes.len()).filter(|other| *other != node) {
            assert!(self.nodes[other].released.contains(&node), "{other} still holds the place of {node}");
            self.nodes[other].released.retain(|released| *released != node);
            self.nodes[other].gone.retain(|gone| *gone != node);
        }
        self.nodes[node] = Node::new(self.nodes.len(), &self.config);
    }

    /// Whether `node` gave the place of the departed `peer` free.
    pub fn has_released(&self, node: usize, peer: usize) -> bool {
        self.nodes[node].released.contains(&peer)
    }

    /// Most slots of the node's mailbox ever used.
    pub fn peak(&self, node: usize) -> usize {
        self.nodes[node].peak
    }

    /// Slots of each mailbox.
    pub fn slots(&self) -> usize {
        self.regions.mailbox as usize
    }

    /// The mailbox of a node, in one line.
    pub fn line(&self, node: usize) -> String {
        let Node { mailbox, in_transit, transfers, peak, alive, .. } = &self.nodes[node];
        let state = if *alive { "" } else { " (gone)" };
        let transit: Vec<_> = in_transit.iter().map(VecDeque::len).collect();
        let (visible, slots, bulk) = (mailbox.len(), self.regions.mailbox, transfers.len());
        format!(
            "{node}{state}: mailbox {visible} of {slots} peak {peak}, in transit by sender {transit:?}, {bulk} bulk transfers"
        )
    }

    fn problem(&mut self, problem: String) {
        self.problems.push(problem);
    }
}
