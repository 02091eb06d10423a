//! [`LocalLink`]: a trivial network. Its nodes are endpoints of one process, its memory access ends later, needs keys,
//! and cannot be stopped.

use super::support::Memory;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::slice;
use tidegate_flow::{Packet, PacketKind, PeerId, Placement};
use tidegate_link::IoBuffer;
use tidegate_message::{
    Access, Arrival, Bounce, Buffer, Capabilities, Carry, Closing, Counters, Departure, Fill, Link, LinkEvent, Medium,
    PeerMemory, PeerNames, RemoteMemory, SenderWrites, Span, TransferId, TransferStatus, WriteError,
};

/// Packets that a mailbox holds.
const MAILBOX: usize = 1024;

#[derive(Debug)]
struct Transfer {
    id: TransferId,
    peer: usize,
    remote: Vec<RemoteMemory>,
    local: IoBuffer,
    reads: bool,
}

#[derive(Debug, Default)]
struct Node {
    /// Its table of peers.
    peers: Vec<Option<usize>>,
    mailbox: VecDeque<(usize, Packet)>,
    events: VecDeque<LinkEvent>,
    departures: VecDeque<(usize, bool)>,
    closings: VecDeque<usize>,
    /// Nodes that it cannot write to, and why.
    unreachable: HashMap<usize, String>,
    quarantined: Vec<usize>,
    /// What peers may reach, by key.
    exposed: HashMap<u64, Vec<Span>>,
    /// The keys of regions, by the application's key.
    regions: HashMap<u64, u64>,
    transfers: Vec<Transfer>,
    is_gone: bool,
}

/// What all nodes share.
#[derive(Debug, Default)]
pub struct Network {
    nodes: Vec<Node>,
    next_key: u64,
    /// Transfers that are pending do not end.
    pub holds_transfers: bool,
    /// How often a transfer could not be stopped.
    pub not_stopped: usize,
}

impl Network {
    fn place_of(&mut self, me: usize, node: usize) -> PeerId {
        let peers = &mut self.nodes[me].peers;
        let at = peers.iter().position(|peer| *peer == Some(node)).unwrap_or_else(|| {
            peers.push(Some(node));
            peers.len() - 1
        });
        PeerId(at as u32)
    }

    /// Packets of `from` that `to` has not retrieved never arrive; `from` is told now, and once it has retrieved what
    /// `to` has sent, that it is out of reach.
    pub fn fail_late(&mut self, from: usize, to: usize) {
        self.nodes[to].mailbox.retain(|(source, _)| *source != from);
        let (place, why) = (self.place_of(from, to), format!("node {to} does not answer any more"));
        let node = &mut self.nodes[from];
        node.events.push_back(LinkEvent::WriteFailed(place, why.clone()));
        node.unreachable.insert(to, why);
        node.departures.push_back((to, false));
    }

    /// A node is no more.
    pub fn depart(&mut self, gone: usize, orderly: bool) {
        self.nodes[gone].is_gone = true;
        for node in self.nodes.iter_mut().filter(|node| node.peers.contains(&Some(gone))) {
            node.unreachable.insert(gone, format!("node {gone} has left"));
            node.departures.push_back((gone, orderly));
        }
    }

    /// Ends the transfers that are pending, unless the test keeps them from ending.
    pub fn step(&mut self) {
        if self.holds_transfers {
            return;
        }
        for me in 0..self.nodes.len() {
            for transfer in std::mem::take(&mut self.nodes[me].transfers) {
                let status = self.copy(&transfer);
                self.nodes[me].events.push_back(LinkEvent::TransferEnded(transfer.id, status));
            }
        }
    }

    fn copy(&self, Transfer { peer, remote, local, reads, .. }: &Transfer) -> TransferStatus {
        let (peer, mut local, mut at) = (&self.nodes[*peer], local.slice(0, local.len()), 0);
        if peer.is_gone {
            if *reads {
                // As an adapter may that is in the middle of it.
                local.write(0, &[0xee]);
            }
            return TransferStatus::Unreachable;
        }
        for RemoteMemory { key, span } in remote {
            let end = span.address + span.length;
            let lies_in = |exposed: &Span| exposed.address <= span.address && end <= exposed.address + exposed.length;
            if !peer.exposed.get(key).is_some_and(|spans| spans.iter().any(lies_in)) {
                return TransferStatus::Failed;
            }
            let mut there = Memory::at(span.address, span.length as usize).buffer();
            let mut bytes = vec![0; there.len()];
            match *reads {
                true => {
                    there.read(0, &mut bytes);
                    local.write(at, &bytes);
                }
                false => {
                    local.read(at, &mut bytes);
                    there.write(0, &bytes);
                }
            }
            at += bytes.len();
        }
        TransferStatus::Done
    }
}

/// The link of one node.
#[derive(Debug)]
pub struct LocalLink {
    me: usize,
    network: Rc<RefCell<Network>>,
    counters: Counters,
}

impl LocalLink {
    /// A new node.
    pub fn new(network: &Rc<RefCell<Network>>) -> Self {
        let nodes = &mut network.borrow_mut().nodes;
        nodes.push(Node::default());
        LocalLink { me: nodes.len() - 1, network: network.clone(), counters: Counters::default() }
    }

    /// The place of a node.
    pub fn peer(&self, node: usize) -> PeerId {
        self.network.borrow_mut().place_of(self.me, node)
    }

    /// How many nodes peers may reach memory of ours for.
    pub fn exposed(&self) -> usize {
        self.network.borrow().nodes[self.me].exposed.len()
    }

    /// Lets peers reach a region without us.
    pub fn publish_region(&mut self, key: u64, memory: &IoBuffer) {
        let reach = self.expose(PeerId(0), memory, &mut []);
        self.network.borrow_mut().nodes[self.me].regions.insert(key, reach);
    }

    fn node(&self, peer: PeerId) -> usize {
        self.network.borrow().nodes[self.me].peers[peer.0 as usize].expect("a peer that is in the table")
    }

    fn begin(&mut self, transfer: Transfer) -> TransferStatus {
        self.network.borrow_mut().nodes[self.me].transfers.push(transfer);
        TransferStatus::Pending
    }
}

impl Medium for LocalLink {
    type Buffer = IoBuffer;
}

impl PeerMemory for LocalLink {
    fn capabilities(&mut self, _: PeerId) -> Capabilities {
        Capabilities { reaches_memory: true, ..Capabilities::default() }
    }

    fn expose(&mut self, _: PeerId, memory: &IoBuffer, _: &mut [Span]) -> u64 {
        let mut network = self.network.borrow_mut();
        network.next_key += 1;
        let key = network.next_key << 32;
        network.nodes[self.me].exposed.insert(key, memory.spans().collect());
        key
    }

    fn hide(&mut self, _: PeerId, key: u64) {
        let found = self.network.borrow_mut().nodes[self.me].exposed.remove(&key);
        assert!(found.is_some(), "a key is hidden once, by who exposed it");
    }

    fn read_peer(
        &mut self,
        id: TransferId,
        peer: PeerId,
        from: &[RemoteMemory],
        into: &mut IoBuffer,
        offset: usize,
    ) -> TransferStatus {
        let local = into.slice(offset, into.len() - offset);
        self.begin(Transfer { id, peer: self.node(peer), remote: from.to_vec(), local, reads: true })
    }

    fn write_peer(
        &mut self,
        id: TransferId,
        peer: PeerId,
        to: &[RemoteMemory],
        from: &IoBuffer,
        offset: usize,
    ) -> TransferStatus {
        let local = from.slice(offset, from.len() - offset);
        self.begin(Transfer { id, peer: self.node(peer), remote: to.to_vec(), local, reads: false })
    }

    fn cancel_transfer(&mut self, _: PeerId, _: TransferId) -> bool {
        self.network.borrow_mut().not_stopped += 1;
        false
    }

    fn find_region(
        &mut self,
        peer: PeerId,
        key: u64,
        offset: u64,
        length: u64,
        access: Access,
    ) -> Option<(RemoteMemory, Access)> {
        let (node, network) = (self.node(peer), self.network.borrow());
        let key = *network.nodes[node].regions.get(&key)?;
        let span = network.nodes[node].exposed.get(&key)?[0];
        let fits = offset.checked_add(length).is_some_and(|end| end <= span.length);
        fits.then_some((RemoteMemory { key, span: Span { address: span.address + offset, length } }, access))
    }
}

impl Bounce for LocalLink {}
impl Carry for LocalLink {}

impl Closing for LocalLink {
    fn tell_closing(&mut self) {
        let (me, mut network) = (self.me, self.network.borrow_mut());
        let others = network.nodes.iter_mut().filter(|node| node.peers.contains(&Some(me)));
        others.for_each(|node| node.closings.push_back(me));
    }
}

impl PeerNames for LocalLink {}
impl SenderWrites for LocalLink {}

impl Link for LocalLink {
    fn write(&mut self, to: PeerId, count: u32, mut fill: impl Fill) -> Result<u32, WriteError> {
        let to = self.node(to);
        let places = {
            let network = self.network.borrow();
            if let Some(why) = network.nodes[self.me].unreachable.get(&to) {
                return Err(WriteError::Unreachable(why.clone()));
            }
            count.min((MAILBOX - network.nodes[to].mailbox.len()) as u32)
        };
        for _ in 0..places {
            let mut packet = Packet::new(PacketKind::Data, 0, 0);
            fill.fill(slice::from_mut(&mut packet), Placement::default());
            // Every packet meets congestion here.
            packet.header = packet.header.marked();
            self.network.borrow_mut().nodes[to].mailbox.push_back((self.me, packet));
        }
        if places > 0 { Ok(places) } else { Err(WriteError::Full) }
    }

    fn retrieve(&mut self) -> Option<Arrival> {
        let mut network = self.network.borrow_mut();
        loop {
            let (from, packet) = network.nodes[self.me].mailbox.pop_front()?;
            if !network.nodes[self.me].quarantined.contains(&from) {
                return Some(Arrival { source: network.place_of(self.me, from), packet });
            }
        }
    }

    fn poll_event(&mut self) -> Option<LinkEvent> {
        let mut network = self.network.borrow_mut();
        let node = &mut network.nodes[self.me];
        if let Some(event) = node.events.pop_front() {
            return Some(event);
        }
        let has_taken_all = |from: usize| node.mailbox.iter().all(|(source, _)| *source != from);
        if let Some(&closing) = node.closings.front()
            && has_taken_all(closing)
        {
            node.closings.pop_front();
            return Some(LinkEvent::Closing(network.place_of(self.me, closing)));
        }
        let &(gone, orderly) = node.departures.front()?;
        if !has_taken_all(gone) {
            return None;
        }
        node.departures.pop_front();
        let peer = network.place_of(self.me, gone);
        Some(LinkEvent::Departed(Departure { peer, orderly, name: format!("node {gone}") }))
    }

    fn quarantine(&mut self, peer: PeerId) -> String {
        let node = self.node(peer);
        let mut network = self.network.borrow_mut();
        network.nodes[self.me].quarantined.push(node);
        network.nodes[self.me].departures.push_back((node, false));
        format!("node {node}")
    }

    fn release(&mut self, peer: PeerId) {
        let node = self.node(peer);
        let mut network = self.network.borrow_mut();
        network.nodes[self.me].peers[peer.0 as usize] = None;
        if !network.nodes[node].is_gone && !network.nodes[self.me].unreachable.contains_key(&node) {
            // A stranger that nobody wants.
            network.nodes[self.me].quarantined.push(node);
            network.fail_late(node, self.me);
        }
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// Dropping a link ends all transfers: nothing is copied any more.
impl Drop for LocalLink {
    fn drop(&mut self) {
        self.network.borrow_mut().nodes[self.me].transfers.clear();
    }
}
