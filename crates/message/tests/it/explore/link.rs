//! The environment of an endpoint that is explored: what comes in is what the next step says, what goes out is kept.

use crate::support::{Arena, MemoryBuffer, node_of, peer_of};
use std::collections::VecDeque;
use std::fmt;
use std::slice;
use tidegate_message::flow::{Header, PAYLOAD_BYTES, Packet, PacketKind, Placement};
use tidegate_message::{
    Arrival, Bounce, Buffer, Capabilities, Carry, Closing, Counters, Departure, Fill, Link, LinkEvent, Medium, PeerId,
    PeerMemory, PeerNames, RemoteMemory, SenderWrites, Span, TransferId, TransferStatus, WriteError,
};

/// The environment of an actor: at most two packets in, any number out.
pub struct ActorLink {
    pub me: usize,
    pub nodes: usize,
    pub direct: bool,
    pub incoming: VecDeque<Packet>,
    /// What comes in is one packet, of so many slots.
    pub is_long: bool,
    pub written: Vec<(usize, Packet)>,
    /// Packets that fit each node's mailbox before it is full.
    pub room: Vec<usize>,
    pub departure: Option<usize>,
    pub told: Vec<usize>,
    /// How each node leaves, if it does.
    pub orderly: Vec<bool>,
    pub arena: Arena,
    /// Whose memory was read.
    pub touched: Vec<(usize, Span)>,
    pub counters: Counters,
}

/// Only what the next step may depend on: the rest is empty between steps, never changes, or only counts.
impl fmt::Debug for ActorLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "told {:?}", self.told)
    }
}

impl Medium for ActorLink {
    type Buffer = MemoryBuffer;
}

impl PeerMemory for ActorLink {
    fn capabilities(&mut self, _: PeerId) -> Capabilities {
        Capabilities { reaches_memory: self.direct, is_synchronous: true, ..Capabilities::default() }
    }

    fn read_peer(
        &mut self,
        _: TransferId,
        peer: PeerId,
        from: &[RemoteMemory],
        into: &mut MemoryBuffer,
        mut offset: usize,
    ) -> TransferStatus {
        let node = node_of(self.me, peer, self.nodes);
        for RemoteMemory { span, .. } in from {
            let Some(remote) = self.arena.find(node, *span) else { return TransferStatus::Failed };
            let mut bytes = vec![0; remote.len()];
            remote.read(0, &mut bytes);
            into.write(offset, &bytes);
            offset += bytes.len();
            self.touched.push((node, *span));
        }
        TransferStatus::Done
    }
}

impl Bounce for ActorLink {}
impl Carry for ActorLink {}
impl Closing for ActorLink {}
impl PeerNames for ActorLink {}
impl SenderWrites for ActorLink {}

impl Link for ActorLink {
    fn write(&mut self, to: PeerId, count: u32, mut fill: impl Fill) -> Result<u32, WriteError> {
        let to = node_of(self.me, to, self.nodes);
        if self.told.contains(&to) {
            return Err(WriteError::Unreachable(format!("node {to} has left")));
        }
        let places = self.room[to].min(count as usize);
        if places == 0 {
            return Err(WriteError::Full);
        }
        self.room[to] -= places;
        for _ in 0..places {
            let mut packet = Packet::new(PacketKind::Data, 0, 0);
            fill.fill(slice::from_mut(&mut packet), Placement::default());
            packet.header = packet.header.published(1, peer_of(to, self.me, self.nodes));
            let end = if packet.header.has_piggyback() { PAYLOAD_BYTES - 2 } else { PAYLOAD_BYTES };
            packet.payload[packet.header.length()..end].fill(0);
            self.written.push((to, packet));
        }
        Ok(places as u32)
    }

    fn retrieve(&mut self) -> Option<Arrival> {
        let mut packet = self.incoming.pop_front()?;
        if self.is_long {
            packet.header = packet.header.with_slots(1 + self.incoming.len() as u32);
        }
        Some(Arrival { source: packet.header.source(), packet })
    }

    fn retrieve_following(&mut self, first: &Header, into: &mut [[u8; PAYLOAD_BYTES]]) -> Option<Packet> {
        assert_eq!(first.slots() as usize, 1 + self.incoming.len());
        let places = into.iter_mut().zip(self.incoming.drain(..));
        places.fold(None, |_, (place, packet)| {
            *place = packet.payload;
            Some(packet)
        })
    }

    fn poll_event(&mut self) -> Option<LinkEvent> {
        let node = self.departure.take()?;
        self.told.push(node);
        let orderly = self.orderly[node];
        let peer = peer_of(self.me, node, self.nodes);
        Some(LinkEvent::Departed(Departure { peer, orderly, name: format!("node {node}") }))
    }

    fn quarantine(&mut self, _: PeerId) -> String {
        unreachable!("all keep the protocol")
    }

    fn release(&mut self, _: PeerId) {}

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
