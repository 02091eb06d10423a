//! The link of one node of the test network.

use super::*;
use std::slice;
use tidegate_flow::{Header, MOST_SLOTS_PER_PACKET, PAYLOAD_BYTES, Placement};
use tidegate_message::{BatchPiece, Fill};

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

/// How many of the packets in a mailbox go on with the message of the one before, in the same buffer where those are
/// posted: they might have been slots of it.
fn slots_that_go_on(first: Header, mailbox: &VecDeque<Packet>) -> u32 {
    let mut is_full = first.begins_long_packet() && !first.ends_buffer();
    let goes_on = |packet: &&Packet| {
        let (header, source) = (packet.header, first.source());
        let goes_on = is_full && (header.kind(), header.source(), header.message()) == (PacketKind::Data, source, 0);
        is_full = header.length() == PAYLOAD_BYTES && !header.ends_buffer();
        goes_on
    };
    mailbox.iter().take(MOST_SLOTS_PER_PACKET as usize - 1).take_while(goes_on).count() as u32
}

impl Medium for MemoryLink {
    type Buffer = MemoryBuffer;
}

impl PeerMemory for MemoryLink {
    fn capabilities(&mut self, peer: PeerId) -> Capabilities {
        let (peer, network) = (self.node(peer), self.network.borrow());
        Capabilities {
            reaches_memory: network.reaches(self.me, peer),
            is_synchronous: !matches!(network.memory, Memory::Delayed | Memory::Carried),
            shares_bounce_buffers: matches!(network.memory, Memory::Bounced | Memory::BouncedOrDirect),
            direct_from: if network.memory == Memory::BouncedOrDirect { DIRECT_FROM } else { 0 },
        }
    }

    fn cancel_transfer(&mut self, _: PeerId, id: TransferId) -> bool {
        let mut network = self.network.borrow_mut();
        if network.is_stubborn {
            return false;
        }
        let node = &mut network.nodes[self.me];
        node.transfers.retain(|transfer| transfer.id != id);
        node.finished.retain(|(finished, _)| *finished != id);
        true
    }

    fn read_peer(
        &mut self,
        id: TransferId,
        peer: PeerId,
        from: &[RemoteMemory],
        into: &mut MemoryBuffer,
        offset: usize,
    ) -> TransferStatus {
        let (peer, local) = (self.node(peer), into.clone());
        let transfer = Transfer { id, peer, remote: spans_of(from), local, offset, fetch: true };
        self.network.borrow_mut().transfer(self.me, transfer)
    }

    fn write_peer(
        &mut self,
        id: TransferId,
        peer: PeerId,
        to: &[RemoteMemory],
        from: &MemoryBuffer,
        offset: usize,
    ) -> TransferStatus {
        let (peer, local) = (self.node(peer), from.clone());
        let transfer = Transfer { id, peer, remote: spans_of(to), local, offset, fetch: false };
        self.network.borrow_mut().transfer(self.me, transfer)
    }

    fn read_pieces(&mut self, peer: PeerId, pieces: &mut [BatchPiece<MemoryBuffer>]) {
        self.network.borrow_mut().batches.push(pieces.len());
        for BatchPiece { there, here, status } in pieces {
            *status = match there.key {
                0 => self.read_peer(TransferId(u32::MAX), peer, &[*there], here, 0),
                _ => TransferStatus::Unreachable,
            };
        }
    }

    fn write_pieces(&mut self, peer: PeerId, pieces: &mut [BatchPiece<MemoryBuffer>]) {
        self.network.borrow_mut().batches.push(pieces.len());
        for BatchPiece { there, here, status } in pieces {
            *status = match there.key {
                0 => self.write_peer(TransferId(u32::MAX), peer, &[*there], here, 0),
                _ => TransferStatus::Unreachable,
            };
        }
    }

    fn find_region(
        &mut self,
        peer: PeerId,
        key: u64,
        offset: u64,
        length: u64,
        access: Access,
    ) -> Option<(RemoteMemory, Access)> {
        let (peer, network) = (self.node(peer), self.network.borrow());
        let region = network.nodes[peer].regions.get(&key)?;
        let end = offset.checked_add(length)?;
        let granted = access.granted_by(|access| region.access.contains(&access))?;
        let is_there = network.reaches(self.me, peer) && end <= region.span.length;
        let span = Span { address: region.span.address + offset, length };
        // Whether it can be reached is found out by a transfer only.
        let is_in_hole = offset < network.hole.end && network.hole.start < end;
        is_there.then_some((RemoteMemory { key: u64::from(is_in_hole), span }, granted))
    }
}

impl Bounce for MemoryLink {
    fn bounce_buffers(&self) -> BounceBuffers {
        match self.network.borrow().memory {
            Memory::Bounced | Memory::BouncedOrDirect => BOUNCE_BUFFERS,
            _ => BounceBuffers::default(),
        }
    }

    fn fill_bounce_buffer(&mut self, bounce_buffer: usize, from: &MemoryBuffer, offset: usize, length: usize) {
        from.read(offset, &mut self.network.borrow_mut().nodes[self.me].bounce_buffers[bounce_buffer][..length]);
    }

    fn drain_bounce_buffer(
        &mut self,
        peer: PeerId,
        bounce_buffer: usize,
        into: &mut MemoryBuffer,
        offset: usize,
        length: usize,
    ) -> bool {
        let (peer, network) = (self.node(peer), self.network.borrow());
        let found = network.nodes[peer].bounce_buffers.get(bounce_buffer).filter(|_| !network.memory_fails);
        let found = found.and_then(|bounce_buffer| bounce_buffer.get(..length));
        found.is_some_and(|bytes| {
            into.write(offset, bytes);
            true
        })
    }
}

impl Carry for MemoryLink {
    fn is_better_carried(&self, _: PeerId, length: usize) -> bool {
        self.network.borrow().memory == Memory::Carried && (CARRIED_LEAST..=CARRIED_MOST).contains(&length)
    }

    fn take_back_carried(&mut self, peer: PeerId) {
        let (me, to) = (self.me, self.node(peer));
        self.network.borrow_mut().nodes[to].carried[me].pop_back();
    }

    fn carries_most(&mut self, _: PeerId) -> usize {
        if self.network.borrow().memory == Memory::Carried { CARRIED_MOST } else { 0 }
    }

    fn carry(&mut self, peer: PeerId, message: &MemoryBuffer) -> Option<u32> {
        let (me, to) = (self.me, self.node(peer));
        let network = &mut *self.network.borrow_mut();
        let carried = &mut network.nodes[to].carried[me];
        let has_room = carried.len() < CARRIED_AT_ONCE;
        if has_room {
            let mut bytes = vec![0; message.len()];
            message.read(0, &mut bytes);
            carried.push_back(bytes);
        }
        has_room.then_some(0)
    }

    fn has_carried(&mut self, peer: PeerId, number: u32, length: usize) -> bool {
        let from = self.node(peer);
        let next = self.network.borrow().nodes[self.me].carried[from].front().map(Vec::len);
        number == 0 && next == Some(length)
    }

    fn copy_carried(&mut self, peer: PeerId, number: u32, length: usize, into: &mut MemoryBuffer) {
        let message = self.take_carried(peer, number, length);
        let fits = message.len().min(into.len());
        into.write(0, &message[..fits]);
    }

    fn take_carried(&mut self, peer: PeerId, _: u32, _: usize) -> Vec<u8> {
        let from = self.node(peer);
        self.network.borrow_mut().nodes[self.me].carried[from].pop_front().expect("a message that has come")
    }
}

impl Closing for MemoryLink {
    fn tell_closing(&mut self) {
        let mut network = self.network.borrow_mut();
        let others = (0..self.nodes).filter(|other| *other != self.me);
        others.for_each(|other| network.nodes[other].closings.push_back(self.me));
    }
}

impl PeerNames for MemoryLink {}
impl SenderWrites for MemoryLink {}

impl Link for MemoryLink {
    fn write(&mut self, to: PeerId, count: u32, mut fill: impl Fill) -> Result<u32, WriteError> {
        let to = self.node(to);
        if self.network.borrow().deaf == Some(to) {
            // What it takes and what not depends on what is in the packet, as with no honest peer.
            let mut packet = Packet::new(PacketKind::Data, 0, 0);
            fill.fill(slice::from_mut(&mut packet), Placement::default());
            return if packet.header.kind() == PacketKind::Data { Err(WriteError::Full) } else { Ok(1) };
        }
        let count = self.network.borrow_mut().places(count);
        if count == 0 {
            return Err(WriteError::Full);
        }
        for written in 0..count {
            // A statement of its own: the borrow of the network ends here, before `fill` runs.
            let place = self.network.borrow_mut().reserve(self.me, to);
            match place {
                Ok(()) => {}
                Err(error) if written == 0 => return Err(error),
                Err(_) => return Ok(written),
            }
            let mut packet = Packet::new(PacketKind::Data, 0, 0);
            fill.fill(slice::from_mut(&mut packet), Placement::default());
            self.network.borrow_mut().publish_packet(self.me, to, packet);
        }
        Ok(count)
    }

    fn is_quiet(&mut self) -> bool {
        self.network.borrow().has_nothing_for(self.me)
    }

    fn retrieve(&mut self) -> Option<Arrival> {
        let (me, nodes) = (self.me, self.nodes);
        let network = &mut *self.network.borrow_mut();
        let node = &mut network.nodes[me];
        loop {
            let mut packet = node.take_packet()?;
            let source = packet.header.source();
            if !node.quarantined.contains(&node_of(me, source, nodes)) {
                let following = slots_that_go_on(packet.header, &node.mailbox);
                if network.joins && following > 0 {
                    packet.header = packet.header.with_slots(1 + following);
                }
                return Some(Arrival { source, packet });
            }
        }
    }

    fn retrieve_following(&mut self, first: &Header, into: &mut [[u8; PAYLOAD_BYTES]]) -> Option<Packet> {
        let node = &mut self.network.borrow_mut().nodes[self.me];
        let places = into.iter_mut().take(first.slots() as usize - 1);
        // A hostile one says more than there are.
        if (slots_that_go_on(*first, &node.mailbox) as usize) < places.len() {
            return None;
        }
        places.fold(None, |_, place| node.take_packet().inspect(|packet| *place = packet.payload))
    }

    fn post(&mut self, posting: Posting) {
        self.network.borrow_mut().post(self.me, posting);
    }

    fn poll_event(&mut self) -> Option<LinkEvent> {
        let mut network = self.network.borrow_mut();
        let node = &mut network.nodes[self.me];
        if let Some((id, status)) = node.finished.pop_front() {
            return Some(LinkEvent::TransferEnded(id, status));
        }
        if let Some(event) = node.events.pop_front() {
            return Some(event);
        }
        let peer_of = |other| peer_of(self.me, other, self.nodes);
        if let Some(&closing) = node.closings.front()
            && node.has_taken_all(closing, peer_of(closing))
        {
            node.closings.pop_front();
            return Some(LinkEvent::Closing(peer_of(closing)));
        }
        let &(gone, orderly) = node.departures.front()?;
        let peer = peer_of(gone);
        if !node.has_taken_all(gone, peer) {
            return None;
        }
        node.departures.pop_front();
        node.gone.push(gone);
        Some(LinkEvent::Departed(Departure { peer, orderly, name: format!("node {gone}") }))
    }

    fn window(&mut self, peer: PeerId) -> Option<u32> {
        let pair = (self.me, self.node(peer));
        let mut network = self.network.borrow_mut();
        if network.hindered == Some(pair) {
            return Some(0);
        }
        let unknown_for = network.unknown_for;
        let left = network.unknown.entry(pair).or_insert(unknown_for);
        if *left > 0 {
            *left -= 1;
            return Some(0);
        }
        let (told, newcomers) = network.told.get(&pair.1).copied()?;
        let place = peer_of(pair.1, self.me, self.nodes);
        Some(newcomers.filter(|(first, _)| place >= *first).map_or(told, |(_, told)| told))
    }

    fn tell_window(&mut self, told: u32) {
        self.network.borrow_mut().told.insert(self.me, (told, None));
    }

    fn tell_newcomers(&mut self, first: PeerId, told: u32) {
        let mut network = self.network.borrow_mut();
        network.told.get_mut(&self.me).expect("the window of others is told before").1 = Some((first, told));
    }

    fn quarantine(&mut self, peer: PeerId) -> String {
        let peer = self.node(peer);
        self.network.borrow_mut().nodes[self.me].quarantined.push(peer);
        format!("node {peer}")
    }

    fn release(&mut self, peer: PeerId) {
        let (place, peer) = (peer, self.node(peer));
        let node = &mut self.network.borrow_mut().nodes[self.me];
        node.is_amid[peer] = false;
        node.carried[peer].clear();
        if let Some(queues) = &mut node.queues {
            queues.forget(place);
        }
        node.quarantined.retain(|quarantined| *quarantined != peer);
        node.released.push(peer);
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}

fn spans_of(memory: &[RemoteMemory]) -> Vec<Span> {
    memory.iter().map(|piece| piece.span).collect()
}
