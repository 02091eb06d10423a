//! The link of one node of the test network.

use super::*;

/// The environment of one endpoint.
#[derive(Debug)]
pub struct MemoryLink {
    me: usize,
    nodes: usize,
    network: Rc<RefCell<Network>>,
    counters: Counters,
}

impl MemoryLink {
    /// The link of `node`.
    pub fn new(node: usize, nodes: usize, network: Rc<RefCell<Network>>) -> Self {
        MemoryLink { me: node, nodes, network, counters: Counters::default() }
    }

    fn node(&self, peer: PeerId) -> usize {
        assert!((peer.0 as usize) < self.nodes - 1, "{peer:?} is not in the table of {} peers", self.nodes - 1);
        node_of(self.me, peer, self.nodes)
    }
}

impl Link for MemoryLink {
    type Buffer = MemoryBuffer;

    fn write(&mut self, to: PeerId, packet: &Packet) -> Result<(), WriteError> {
        let to = self.node(to);
        self.network.borrow_mut().write(self.me, to, packet)
    }

    fn retrieve(&mut self) -> Option<Packet> {
        let (me, nodes) = (self.me, self.nodes);
        let node = &mut self.network.borrow_mut().nodes[me];
        loop {
            let packet = node.mailbox.pop_front()?;
            if !node.quarantined.contains(&node_of(me, packet.header.source(), nodes)) {
                return Some(packet);
            }
        }
    }

    fn window(&mut self, peer: PeerId) -> Option<u32> {
        let pair = (self.me, self.node(peer));
        (self.network.borrow().hindered == Some(pair)).then_some(0)
    }

    fn reaches_memory(&mut self, peer: PeerId) -> bool {
        let peer = self.node(peer);
        self.network.borrow().reaches(self.me, peer)
    }

    fn read_peer(
        &mut self,
        id: TransferId,
        peer: PeerId,
        from: &[Span],
        into: &mut MemoryBuffer,
        offset: usize,
    ) -> TransferStatus {
        let (peer, local) = (self.node(peer), into.clone());
        let transfer = Transfer { id, peer, remote: from.to_vec(), local, offset, fetch: true };
        self.network.borrow_mut().transfer(self.me, transfer)
    }

    fn write_peer(
        &mut self,
        id: TransferId,
        peer: PeerId,
        to: &[Span],
        from: &MemoryBuffer,
        offset: usize,
    ) -> TransferStatus {
        let (peer, local) = (self.node(peer), from.clone());
        let transfer = Transfer { id, peer, remote: to.to_vec(), local, offset, fetch: false };
        self.network.borrow_mut().transfer(self.me, transfer)
    }

    fn direct_from(&self) -> usize {
        match self.network.borrow().memory {
            Memory::StagedOrDirect => DIRECT_FROM,
            _ => 0,
        }
    }

    fn bounce_buffers(&self) -> BounceBuffers {
        match self.network.borrow().memory {
            Memory::Staged | Memory::StagedOrDirect => STAGES,
            _ => BounceBuffers::default(),
        }
    }

    fn fill_bounce_buffer(&mut self, stage: usize, from: &MemoryBuffer, offset: usize, length: usize) {
        from.read(offset, &mut self.network.borrow_mut().nodes[self.me].stages[stage][..length]);
    }

    fn drain_bounce_buffer(
        &mut self,
        peer: PeerId,
        stage: usize,
        into: &mut MemoryBuffer,
        offset: usize,
        length: usize,
    ) -> bool {
        let (peer, network) = (self.node(peer), self.network.borrow());
        let found = network.nodes[peer].stages.get(stage).filter(|_| !network.memory_fails);
        let found = found.and_then(|stage| stage.get(..length));
        found.is_some_and(|bytes| {
            into.write(offset, bytes);
            true
        })
    }

    fn poll_transfer(&mut self) -> Option<(TransferId, TransferStatus)> {
        self.network.borrow_mut().nodes[self.me].finished.pop_front()
    }

    fn find_region(&mut self, peer: PeerId, key: u64, offset: u64, length: u64, access: Access) -> Option<Span> {
        let (peer, network) = (self.node(peer), self.network.borrow());
        let region = network.nodes[peer].regions.get(&key)?;
        let end = offset.checked_add(length)?;
        let granted = network.reaches(self.me, peer) && region.access.contains(&access) && end <= region.span.length;
        granted.then(|| Span { address: region.span.address + offset, length })
    }

    fn tell_closing(&mut self) {
        let mut network = self.network.borrow_mut();
        let others = (0..self.nodes).filter(|other| *other != self.me);
        others.for_each(|other| network.nodes[other].closings.push_back(self.me));
    }

    fn poll_closing(&mut self) -> Option<PeerId> {
        let mut network = self.network.borrow_mut();
        let node = &mut network.nodes[self.me];
        let closing = *node.closings.front()?;
        let peer = peer_of(self.me, closing, self.nodes);
        if !node.has_taken_all(closing, peer) {
            return None;
        }
        node.closings.pop_front();
        Some(peer)
    }

    fn poll_departure(&mut self) -> Option<Departure> {
        let mut network = self.network.borrow_mut();
        let node = &mut network.nodes[self.me];
        let (gone, orderly) = *node.departures.front()?;
        let peer = peer_of(self.me, gone, self.nodes);
        if !node.has_taken_all(gone, peer) {
            return None;
        }
        node.departures.pop_front();
        node.gone.push(gone);
        Some(Departure { peer, orderly, name: format!("node {gone}") })
    }

    fn quarantine(&mut self, peer: PeerId) -> String {
        let peer = self.node(peer);
        let node = &mut self.network.borrow_mut().nodes[self.me];
        node.quarantined.push(peer);
        let (over, rest) = std::mem::take(&mut node.transfers).into_iter().partition(|transfer| transfer.peer == peer);
        node.transfers = rest;
        let over: Vec<Transfer> = over;
        node.finished.extend(over.into_iter().map(|transfer| (transfer.id, TransferStatus::Unreachable)));
        format!("node {peer}")
    }

    fn release(&mut self, peer: PeerId) {
        let peer = self.node(peer);
        let node = &mut self.network.borrow_mut().nodes[self.me];
        node.quarantined.retain(|quarantined| *quarantined != peer);
        node.released.push(peer);
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
