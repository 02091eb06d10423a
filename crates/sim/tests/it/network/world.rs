//! Nodes that inject what they have to send as fast as they are let and take what arrives, with the checks that hold
//! in every run: packets arrive where they should, once, in order per pair, and none is lost between injection and
//! delivery.

use std::collections::{HashMap, VecDeque};

use tidegate_flow::{Header, PacketKind};
use tidegate_sim::{
    Bandwidth, Body, EventQueue, Flight, Label, Network, NetworkEvent, NetworkParameters, NodeId, Notice, Parcel, Rank,
    Time, Topology,
};

/// Numbers that make arithmetic easy: 64 bytes for every full packet, 64 ns on a link, 32 ns in and out.
pub fn round_numbers() -> NetworkParameters {
    NetworkParameters {
        link_bandwidth: Bandwidth::from_megabytes(1_000),
        link_latency: Time::from_nanoseconds(30),
        router_latency: Time::from_nanoseconds(20),
        injection_bandwidth: Bandwidth::from_megabytes(2_000),
        injection_latency: Time::from_nanoseconds(5),
        extraction_bandwidth: Bandwidth::from_megabytes(2_000),
        extraction_latency: Time::from_nanoseconds(7),
        packet_overhead_bytes: 8,
        packet_granule_bytes: 8,
        virtual_channels: 2,
        channel_buffer_packets: 8,
        injection_buffer_packets: 8,
        extraction_buffer_packets: 8,
    }
}

/// The least that works: one packet per buffer.
pub fn tight_buffers() -> NetworkParameters {
    NetworkParameters {
        channel_buffer_packets: 1,
        injection_buffer_packets: 1,
        extraction_buffer_packets: 1,
        ..round_numbers()
    }
}

/// Numbers from a seed, the same on every machine (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % u64::from(bound)) as u32
    }

    /// A random order of `0..count`.
    pub fn permutation(&mut self, count: u32) -> Vec<u32> {
        let mut order: Vec<u32> = (0..count).collect();
        (1..count).rev().for_each(|last| order.swap(last as usize, self.below(last + 1) as usize));
        order
    }
}

#[derive(Clone, Copy)]
enum Event {
    Network(NetworkEvent),
    /// A node that takes its time takes its next packet.
    Take(NodeId),
}

/// What a node does with what arrives.
#[derive(Clone, Copy, PartialEq)]
pub enum Receiver {
    /// Takes it at once.
    Prompt,
    /// Takes one packet per this time.
    Slow(Time),
    /// Leaves it.
    Stopped,
}

pub struct World {
    pub network: Network,
    queue: EventQueue<Event>,
    backlog: Vec<VecDeque<Flight>>,
    receivers: Vec<Receiver>,
    /// Whether a slow receiver has a `Take` under way.
    taking: Vec<bool>,
    sent: HashMap<(NodeId, NodeId), u32>,
    received: HashMap<(NodeId, NodeId), u32>,
    /// When and between whom, in order of delivery.
    pub delivered: Vec<(Time, NodeId, NodeId)>,
    pub now: Time,
}

impl World {
    pub fn new(topology: Topology, parameters: NetworkParameters) -> Self {
        let nodes = topology.nodes() as usize;
        World {
            network: Network::new(topology, parameters).expect("a legal network"),
            queue: EventQueue::new(),
            backlog: vec![VecDeque::new(); nodes],
            receivers: vec![Receiver::Prompt; nodes],
            taking: vec![false; nodes],
            sent: HashMap::new(),
            received: HashMap::new(),
            delivered: Vec::new(),
            now: Time::ZERO,
        }
    }

    pub fn nodes(&self) -> u32 {
        self.backlog.len() as u32
    }

    pub fn set_receiver(&mut self, node: u32, receiver: Receiver) {
        self.receivers[node as usize] = receiver;
        self.notice(Notice::Arrived(NodeId(node)));
    }

    /// Gives a node one more full packet to send, numbered within its pair.
    pub fn send(&mut self, from: u32, to: u32) {
        self.send_sized(from, to, 56, 0);
    }

    pub fn send_sized(&mut self, from: u32, to: u32, payload: usize, bulk_bytes: u32) {
        let (from, to) = (NodeId(from), NodeId(to));
        let number = self.sent.entry((from, to)).or_default();
        let parcel = Parcel { header: Header::new(PacketKind::Data, payload, 0), body: Body(*number) };
        *number += 1;
        let flight =
            Flight { parcel, from, to, source: Rank(from.0), destination: Rank(to.0), bulk_bytes, label: Label::NONE };
        self.backlog[from.0 as usize].push_back(flight);
        self.inject(from);
    }

    /// Runs until nothing is left to happen.
    pub fn run(&mut self) {
        self.run_until(Time::NEVER);
    }

    /// Lets everything happen that is due up to `end`.
    pub fn run_until(&mut self, end: Time) {
        while self.queue.next_time().is_some_and(|time| time <= end) {
            let (now, event) = self.queue.pop().expect("an event");
            assert!(now >= self.now, "time ran backwards");
            self.now = now;
            match event {
                Event::Network(event) => {
                    let queue = &mut self.queue;
                    let mut schedule = |at, event| queue.schedule(at, Event::Network(event));
                    if let Some(notice) = self.network.handle(now, event, &mut schedule) {
                        self.notice(notice);
                    }
                }
                Event::Take(node) => {
                    self.taking[node.0 as usize] = false;
                    self.take(node);
                    self.notice(Notice::Arrived(node));
                }
            }
            let totals = self.network.totals();
            assert_eq!(totals.injected, totals.delivered + self.network.in_flight() as u64, "a packet was lost");
        }
    }

    /// Runs until nothing is left to happen, and then everything must have arrived.
    pub fn run_dry(&mut self) {
        self.run();
        let stuck: Vec<_> = self.network.links().filter(|link| link.waiting > 0).collect();
        assert_eq!(self.network.in_flight(), 0, "packets are stuck at {stuck:#?}");
        assert_eq!(self.sent, self.received, "sent and received differ");
        assert!(self.backlog.iter().all(VecDeque::is_empty));
    }

    pub fn count_to(&self, node: u32) -> usize {
        self.delivered.iter().filter(|(_, _, to)| to.0 == node).count()
    }

    pub fn count_from(&self, node: u32) -> usize {
        self.delivered.iter().filter(|(_, from, _)| from.0 == node).count()
    }

    /// Everything that was delivered, in order, as one number.
    pub fn trace_hash(&self) -> u64 {
        self.delivered.iter().fold(0xcbf2_9ce4_8422_2325, |hash, (time, from, to)| {
            [time.0, from.0.into(), to.0.into()]
                .iter()
                .fold(hash, |hash, word| (hash ^ word).wrapping_mul(0x0100_0000_01b3))
        })
    }

    fn notice(&mut self, notice: Notice) {
        match notice {
            Notice::Injectable(node) => self.inject(node),
            Notice::Arrived(node) => match self.receivers[node.0 as usize] {
                Receiver::Prompt => while self.take(node) {},
                Receiver::Slow(pace) if self.network.arrived(node) > 0 && !self.taking[node.0 as usize] => {
                    self.taking[node.0 as usize] = true;
                    self.queue.schedule(self.now + pace, Event::Take(node));
                }
                Receiver::Slow(_) | Receiver::Stopped => {}
            },
        }
    }

    fn inject(&mut self, node: NodeId) {
        let backlog = &mut self.backlog[node.0 as usize];
        let queue = &mut self.queue;
        let mut schedule = |at, event| queue.schedule(at, Event::Network(event));
        while let Some(flight) = backlog.front() {
            let free = self.network.can_inject(self.now, node);
            let accepted = self.network.inject(self.now, flight, &mut schedule).is_ok();
            assert_eq!(free, accepted, "the network does what it says");
            if !accepted {
                return;
            }
            backlog.pop_front();
        }
    }

    fn take(&mut self, node: NodeId) -> bool {
        let queue = &mut self.queue;
        let mut schedule = |at, event| queue.schedule(at, Event::Network(event));
        let Some(flight) = self.network.take_arrival(self.now, node, &mut schedule) else { return false };
        assert_eq!(flight.to, node, "a packet came to the wrong node");
        assert_eq!((flight.source.0, flight.destination.0), (flight.from.0, flight.to.0));
        let number = flight.parcel.body.0;
        let expected = self.received.entry((flight.from, flight.to)).or_default();
        assert_eq!(number, *expected, "from {} to {}: out of order, lost or doubled", flight.from, flight.to);
        *expected += 1;
        self.delivered.push((self.now, flight.from, flight.to));
        true
    }
}
