//! What checkers, displays and tables may know of a network: counts, occupancies, and the time of a packet that meets
//! no other.

use super::Network;
use crate::router::LinkKind;
use crate::topology::{End, RouterId, Topology};
use crate::{Flight, NetworkParameters, NodeId, Time};

/// Counts of a whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets accepted by [`Network::inject`].
    pub injected: u64,
    /// Packets taken by [`Network::take_arrival`].
    pub delivered: u64,
    /// Links between routers crossed, all packets together.
    pub hops: u64,
}

/// One direction of a link, for checkers and displays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkReport {
    /// The router that sends into it.
    pub from: RouterId,
    /// Where it leads.
    pub to: End,
    /// The sum of the times that its packets took.
    pub busy: Time,
    /// Packets sent.
    pub packets: u64,
    /// Packets at its near end that wait for it.
    pub waiting: u32,
    /// Packets that occupy a buffer at its far end or are on their way there.
    pub occupied: u32,
    /// Whether something waits for it and no buffer at the far end is free.
    pub blocked: bool,
}

impl Network {
    /// The topology.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The parameters.
    #[must_use]
    pub fn parameters(&self) -> &NetworkParameters {
        &self.parameters
    }

    /// Counts since the start.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Packets injected and not yet taken.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.pool.in_use()
    }

    /// Packets in the node's extraction buffer, the ones that can be taken.
    #[must_use]
    pub fn arrived(&self, node: NodeId) -> u32 {
        self.extractors[node.0 as usize].count
    }

    /// The packets in the node's extraction buffer, in the order in which they will be taken.
    pub fn arrivals(&self, node: NodeId) -> impl Iterator<Item = &Flight> {
        let queue = self.extractors[node.0 as usize].arrived;
        queue.iter(&self.pool.places).map(|packet| self.pool.get(packet))
    }

    /// Packets that occupy the node's injection buffer.
    #[must_use]
    pub fn injecting(&self, node: NodeId) -> u32 {
        self.injectors[node.0 as usize].room.occupied()
    }

    /// Whether the node could inject at `now`.
    #[must_use]
    pub fn can_inject(&self, now: Time, node: NodeId) -> bool {
        self.injectors[node.0 as usize].room.ready(&self.rings, now)
    }

    /// Every link, by router and port; those to nodes included. An ideal network has none.
    pub fn links(&self) -> impl Iterator<Item = LinkReport> {
        (0..self.links.len() as u32).filter_map(|index| self.link_report(index))
    }

    fn link_report(&self, index: u32) -> Option<LinkReport> {
        let link = &self.links[index as usize];
        let to = match link.kind {
            LinkKind::Hop => End::Router(RouterId(link.far_end)),
            LinkKind::Extraction => End::Node(NodeId(link.far_end)),
            LinkKind::Edge => return None,
        };
        let base = (index * self.virtual_channels) as usize;
        let channels = &self.channels[base..base + self.virtual_channels as usize];
        Some(LinkReport {
            from: RouterId(index / self.ports),
            to,
            busy: link.busy,
            packets: link.carried,
            waiting: link.waiting,
            occupied: channels.iter().map(|channel| channel.credits.occupied()).sum(),
            blocked: channels.iter().any(|channel| channel.starved),
        })
    }

    /// From injection to arrival, for a packet that meets no other.
    #[must_use]
    pub fn uncontended_latency(&self, from: NodeId, to: NodeId, payload_bytes: u32) -> Time {
        let parameters = &self.parameters;
        let bytes = parameters.wire_bytes(payload_bytes);
        let hops = u64::from(self.topology.distance(from, to));
        let last_byte = if hops > 0 { parameters.link_bandwidth.time_of(bytes) } else { Time::ZERO };
        let injection = parameters.injection_bandwidth.time_of(bytes) + parameters.injection_latency;
        let crossing =
            parameters.router_latency + (parameters.link_latency + parameters.router_latency) * hops + last_byte;
        injection + crossing + parameters.extraction_bandwidth.time_of(bytes) + parameters.extraction_latency
    }

    /// Bytes of heap that the network holds.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.links.capacity() * size_of::<crate::router::Link>()
            + self.channels.capacity() * size_of::<crate::router::Channel>()
            + self.injectors.capacity() * size_of::<super::Injector>()
            + self.extractors.capacity() * size_of::<super::Extractor>()
            + self.rings.heap_bytes()
            + self.pool.heap_bytes()
    }
}
