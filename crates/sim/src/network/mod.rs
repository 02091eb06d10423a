//! [`Network`]: packets move from node to node by virtual cut-through, and wait where there is no room.
//!
//! # The model
//!
//! 1. **Injection.** [`inject`](Network::inject) puts a packet into its node's injection buffer. The interface hands
//!    one packet after the other to the router, each whole: it is at the router's input `injection_latency` after its
//!    last byte left. Its place in the injection buffer, which is the router's input buffer of that node, is free
//!    when it has left the router.
//! 2. **Router.** `router_latency` after its first byte came in, a packet may leave by the output that the topology
//!    chooses, if the link is free and the next router has a buffer for the whole packet. It is forwarded while its
//!    end still comes in.
//! 3. **Link.** It occupies the link for its bytes at `link_bandwidth`; its first byte is at the next router
//!    `link_latency` after it left. When its last byte has left, its buffer is free, and the router before learns it
//!    `link_latency` later.
//! 4. **Extraction.** The last router waits for the whole packet, then hands it over at `extraction_bandwidth` if the
//!    node's extraction buffer has room: it is there `extraction_latency` after its last byte left, and
//!    [`Notice::Arrived`] says so.
//! 5. It stays there until it is [taken](Network::take_arrival), first come first served. A node whose first packet
//!    finds no room in its mailbox leaves it: the buffer fills, then the routers before it, back to the senders (P
//!    §2).
//!
//! So a packet that meets no other is in the extraction buffer after
//! `t_inject + injection_latency + router_latency + hops × (link_latency + router_latency) + [t_link] + t_extract +
//! extraction_latency`, each t the time of its bytes at that rate, `t_link` only if there are hops.
//! ([`Network::uncontended_latency`].)
//!
//! What is left out: flits (a packet moves as a whole, so buffers count packets), limits of the crossbar (an input
//! can feed several outputs at once), errors and retransmission on links.
//!
//! # How it is used
//!
//! The owner keeps one [`EventQueue`](crate::EventQueue) for everything that happens. Each method gets `schedule`, to
//! be called with what is to come back to [`handle`](Network::handle) at that time. An uncontended packet costs one
//! event per router and one for its arrival; a packet that waits costs its link one more.

mod build;
mod inspect;

pub use build::NetworkError;
use build::{Exits, Wiring, check};
pub use inspect::{LinkReport, Totals};

use crate::flight::{NONE, NodeId, Place, Pool};
use crate::parameters::Rate;
use crate::router::{Channel, CreditRings, Credits, Link, LinkKind, Queue, VirtualOutputQueue};
use crate::topology::{RouterId, Topology};
use crate::{Flight, NetworkParameters, Time};

/// Something that is to happen in the network. Opaque: schedule it, and hand it to [`Network::handle`] when its time
/// comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NetworkEvent(Event);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Event {
    /// A packet may leave the router it has come to.
    Route(u32),
    /// A link is free, or a credit is back, and something waits for it.
    Wake(u32),
    /// A packet is in the extraction buffer of its node.
    Arrive(u32),
    /// A node that was refused can inject again.
    Injectable(u32),
}

/// What the owner of the network is to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Notice {
    /// There is room in the injection buffer of this node, which was refused before.
    Injectable(NodeId),
    /// One more packet is in the extraction buffer of this node.
    Arrived(NodeId),
}

/// The injection buffer is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

/// A node's side of its injection buffer.
#[derive(Clone, Debug)]
struct Injector {
    /// When the last packet's end has been handed to the router.
    free_at: Time,
    /// Places in the buffer.
    room: Credits,
    /// Which of its router's inputs it is.
    input: u32,
    /// Whether a refused node is to be told of the next place that becomes free.
    starved: bool,
    /// Whether that notice is scheduled.
    notice_due: bool,
}

/// A node's extraction buffer.
#[derive(Clone, Debug)]
struct Extractor {
    arrived: Queue,
    count: u32,
    /// When the last packet's end has been handed over; kept in an ideal network only, elsewhere the link knows.
    free_at: Time,
}

/// The network: everything between the injection of a packet and its being taken. See the [module](self).
#[derive(Debug)]
pub struct Network {
    topology: Topology,
    exits: Exits,
    parameters: NetworkParameters,
    link_rate: Rate,
    injection_rate: Rate,
    extraction_rate: Rate,
    /// Whether the topology is [`Topology::Ideal`]: no routers, only interfaces.
    ideal: bool,
    ports: u32,
    virtual_channels: u32,
    links: Vec<Link>,
    channels: Vec<Channel>,
    queues: Vec<VirtualOutputQueue>,
    rings: CreditRings,
    injectors: Vec<Injector>,
    extractors: Vec<Extractor>,
    pool: Pool,
    totals: Totals,
}

/// Most channels there may be: beyond are the injection buffers, numbered by their nodes.
const CHANNELS_MAX: u64 = 1 << 31;

impl Network {
    /// An empty network.
    ///
    /// # Errors
    /// If a parameter is out of range for this topology.
    pub fn new(topology: Topology, parameters: NetworkParameters) -> Result<Self, NetworkError> {
        check(&topology, &parameters)?;
        let Wiring { links, channels, queues, rings, injectors } = Wiring::new(&topology, &parameters);
        let extractor = Extractor { arrived: Queue::EMPTY, count: 0, free_at: Time::ZERO };
        Ok(Network {
            link_rate: Rate::new(parameters.link_bandwidth),
            injection_rate: Rate::new(parameters.injection_bandwidth),
            extraction_rate: Rate::new(parameters.extraction_bandwidth),
            exits: Exits::new(&topology, parameters.virtual_channels.into()),
            ideal: matches!(topology, Topology::Ideal(_)),
            ports: topology.ports(),
            virtual_channels: parameters.virtual_channels.into(),
            links,
            channels,
            queues,
            rings,
            injectors,
            extractors: vec![extractor; topology.nodes() as usize],
            pool: Pool::new(),
            totals: Totals::default(),
            topology,
            parameters,
        })
    }

    /// Puts a packet into the injection buffer of `flight.from`.
    ///
    /// # Errors
    /// If the buffer is full. [`Notice::Injectable`] then says once when to try again.
    #[inline]
    pub fn inject(
        &mut self,
        now: Time,
        flight: &Flight,
        schedule: &mut impl FnMut(Time, NetworkEvent),
    ) -> Result<(), Refused> {
        let node = flight.from.0;
        let injector = &mut self.injectors[node as usize];
        if !injector.room.ready(&self.rings, now) {
            self.promise_notice(node, schedule);
            return Err(Refused);
        }
        injector.room.spend();
        let wire_bytes = self.parameters.wire_bytes(flight.payload_bytes());
        let handed_over = injector.free_at.max(now) + self.injection_rate.time_of(wire_bytes);
        injector.free_at = handed_over;
        let router = self.topology.router_of(flight.from).0;
        let place = Place {
            next: NONE,
            held: CHANNELS_MAX as u32 + node,
            router,
            input: injector.input,
            to: flight.to.0,
            wire_bytes,
        };
        let packet = self.pool.insert(*flight, place);
        self.totals.injected += 1;
        let ready = handed_over + self.parameters.injection_latency + self.parameters.router_latency;
        schedule(ready, NetworkEvent(Event::Route(packet)));
        if self.ideal {
            self.pool.places[packet as usize].held = NONE;
            self.vacate(CHANNELS_MAX as u32 + node, handed_over, schedule);
        }
        Ok(())
    }

    /// Lets something happen that was scheduled for `now`.
    #[inline]
    pub fn handle(
        &mut self,
        now: Time,
        event: NetworkEvent,
        schedule: &mut impl FnMut(Time, NetworkEvent),
    ) -> Option<Notice> {
        match event.0 {
            Event::Route(packet) => {
                self.route(now, packet, schedule);
                None
            }
            Event::Wake(link) => {
                self.wake(now, link, schedule);
                None
            }
            Event::Arrive(packet) => {
                let node = self.pool.places[packet as usize].to;
                let extractor = &mut self.extractors[node as usize];
                extractor.arrived.push(&mut self.pool.places, packet);
                extractor.count += 1;
                Some(Notice::Arrived(NodeId(node)))
            }
            Event::Injectable(node) => {
                self.injectors[node as usize].notice_due = false;
                Some(Notice::Injectable(NodeId(node)))
            }
        }
    }

    /// The packet that has been in the node's extraction buffer longest.
    #[inline]
    #[must_use]
    pub fn arrival(&self, node: NodeId) -> Option<&Flight> {
        let head = self.extractors[node.0 as usize].arrived.head;
        (head != NONE).then(|| self.pool.get(head))
    }

    /// Takes that packet, which makes room in the extraction buffer.
    #[inline]
    pub fn take_arrival(
        &mut self,
        now: Time,
        node: NodeId,
        schedule: &mut impl FnMut(Time, NetworkEvent),
    ) -> Option<Flight> {
        let extractor = &mut self.extractors[node.0 as usize];
        let packet = extractor.arrived.pop(&self.pool.places)?;
        extractor.count -= 1;
        self.totals.delivered += 1;
        let held = self.pool.places[packet as usize].held;
        if !self.ideal {
            let at = now + self.parameters.extraction_latency;
            self.channels[held as usize].credits.give_back(&mut self.rings, at);
            self.end_starvation(held, schedule);
        }
        Some(self.pool.remove(packet))
    }

    /// The packet can leave its router: at once if nothing is in its way, which is the common case.
    #[inline]
    fn route(&mut self, now: Time, packet: u32, schedule: &mut impl FnMut(Time, NetworkEvent)) {
        if self.ideal {
            return self.receive_ideal(now, packet, schedule);
        }
        let place = self.pool.places[packet as usize];
        let from = || self.pool.get(packet).from;
        let (link_index, channel_index) = self.exits.of(&self.topology, RouterId(place.router), from, NodeId(place.to));
        let link = &mut self.links[link_index as usize];
        let channel = &mut self.channels[channel_index as usize];
        // Packets for which no wake-up is due lack credits of their own channel, so this one overtakes none that could
        // leave.
        let nobody_first = link.waiting == 0 || (channel.waiting.is_empty() && link.wake_at > now);
        if nobody_first && link.free_at <= now && channel.credits.ready(&self.rings, now) {
            self.depart(now, packet, link_index, channel_index, schedule);
            return;
        }
        channel.waiting.push(&mut self.queues, &mut self.pool.places, place.input, packet);
        link.waiting += 1;
        self.arrange_wake(now, link_index, schedule);
    }

    /// A link looks for something to send.
    fn wake(&mut self, now: Time, link_index: u32, schedule: &mut impl FnMut(Time, NetworkEvent)) {
        let link = &mut self.links[link_index as usize];
        if link.wake_at <= now {
            link.wake_at = Time::NEVER;
        }
        if link.waiting > 0 && link.free_at <= now {
            let base = link_index * self.virtual_channels;
            for step in 0..self.virtual_channels {
                let turn = u32::from(link.turn) + step;
                let turn = if turn >= self.virtual_channels { turn - self.virtual_channels } else { turn };
                let channel = &mut self.channels[(base + turn) as usize];
                if channel.waiting.is_empty() || !channel.credits.ready(&self.rings, now) {
                    continue;
                }
                if let Some(packet) = channel.waiting.pop(&mut self.queues, &self.pool.places) {
                    link.waiting -= 1;
                    link.turn = if turn + 1 == self.virtual_channels { 0 } else { turn as u8 + 1 };
                    self.depart(now, packet, link_index, base + turn, schedule);
                    break;
                }
            }
        }
        self.arrange_wake(now, link_index, schedule);
    }

    /// Schedules a wake-up of a link on which something waits for when it can next send: when it is free and has a
    /// credit.
    #[inline]
    fn arrange_wake(&mut self, now: Time, link_index: u32, schedule: &mut impl FnMut(Time, NetworkEvent)) {
        let link = &mut self.links[link_index as usize];
        if link.waiting == 0 || link.wake_at <= link.free_at {
            return;
        }
        let base = (link_index * self.virtual_channels) as usize;
        let mut soonest = Time::NEVER;
        for channel in &mut self.channels[base..base + self.virtual_channels as usize] {
            if channel.waiting.is_empty() {
                continue;
            }
            match channel.credits.next_at(&self.rings) {
                Some(at) => soonest = soonest.min(at),
                None => channel.starved = true,
            }
        }
        if soonest == Time::NEVER {
            return;
        }
        let at = soonest.max(link.free_at).max(now);
        if at < link.wake_at {
            link.wake_at = at;
            schedule(at, NetworkEvent(Event::Wake(link_index)));
        }
    }

    /// The packet leaves its router by a free link and a channel that has a credit.
    #[inline]
    fn depart(
        &mut self,
        now: Time,
        packet: u32,
        link_index: u32,
        channel_index: u32,
        schedule: &mut impl FnMut(Time, NetworkEvent),
    ) {
        let place = &mut self.pool.places[packet as usize];
        let link = &mut self.links[link_index as usize];
        self.channels[channel_index as usize].credits.spend();
        let left = std::mem::replace(&mut place.held, channel_index);
        let took = if link.kind == LinkKind::Hop {
            let took = self.link_rate.time_of(place.wire_bytes);
            place.router = link.far_end;
            place.input = link.input;
            self.totals.hops += 1;
            let mut ready = now + self.parameters.link_latency + self.parameters.router_latency;
            if self.topology.router_of(NodeId(place.to)).0 == link.far_end {
                ready += took;
            }
            schedule(ready, NetworkEvent(Event::Route(packet)));
            took
        } else {
            let took = self.extraction_rate.time_of(place.wire_bytes);
            let arrives = now + took + self.parameters.extraction_latency;
            schedule(arrives, NetworkEvent(Event::Arrive(packet)));
            took
        };
        link.free_at = now + took;
        link.busy += took;
        link.carried += 1;
        self.vacate(left, now + took, schedule);
    }

    /// A router's input buffer is empty from `at` on: gives its credit back, and wakes the link or the node that waits
    /// for it.
    #[inline]
    fn vacate(&mut self, held: u32, at: Time, schedule: &mut impl FnMut(Time, NetworkEvent)) {
        if held >= CHANNELS_MAX as u32 {
            let node = held - CHANNELS_MAX as u32;
            let injector = &mut self.injectors[node as usize];
            injector.room.give_back(&mut self.rings, at);
            if injector.starved {
                self.promise_notice(node, schedule);
            }
            return;
        }
        let at = at + self.parameters.link_latency;
        self.channels[held as usize].credits.give_back(&mut self.rings, at);
        self.end_starvation(held, schedule);
    }

    /// A credit of this channel is on its way back: if its link waits for one, it is told when to look.
    #[inline]
    fn end_starvation(&mut self, channel_index: u32, schedule: &mut impl FnMut(Time, NetworkEvent)) {
        let channel = &mut self.channels[channel_index as usize];
        if channel.starved {
            channel.starved = false;
            self.arrange_wake(Time::ZERO, channel_index / self.virtual_channels, schedule);
        }
    }

    /// Schedules the notice that a refused node is owed, or remembers that it is owed until a place is about to
    /// become free.
    #[cold]
    fn promise_notice(&mut self, node: u32, schedule: &mut impl FnMut(Time, NetworkEvent)) {
        let injector = &mut self.injectors[node as usize];
        if injector.notice_due {
            return;
        }
        let free_at = injector.room.next_at(&self.rings);
        injector.starved = free_at.is_none();
        if let Some(at) = free_at {
            injector.notice_due = true;
            schedule(at, NetworkEvent(Event::Injectable(node)));
        }
    }

    /// In an ideal network the packet is at its node now, where there is always room.
    fn receive_ideal(&mut self, now: Time, packet: u32, schedule: &mut impl FnMut(Time, NetworkEvent)) {
        let place = &self.pool.places[packet as usize];
        let extractor = &mut self.extractors[place.to as usize];
        let received = extractor.free_at.max(now) + self.extraction_rate.time_of(place.wire_bytes);
        extractor.free_at = received;
        schedule(received + self.parameters.extraction_latency, NetworkEvent(Event::Arrive(packet)));
    }
}
