//! [`Engine`]: routers and links, one cycle after the other.
//!
//! A packet is moved as a whole, and what its flits do is arithmetic: a flit crosses a link in one cycle, and a
//! crossbar in 1 / `speed_up` of one. That is what makes the engine fast: per packet and hop there are two events and
//! one decision, where a simulator that moves flits has dozens.
//!
//! * An input of a router has a queue for each channel. The packet at the head of a queue asks for one output and one
//!   channel there ([`Layout::route`]), once, when it gets to the head.
//! * An output, whenever its side of the crossbar is free, picks in turn among the queues that ask for it, whose side
//!   of the crossbar is free too, and for whose packet the buffer at the far end has room: for a whole packet of the
//!   largest size, which is virtual cut-through. The room is taken at once.
//! * The packet leaves behind all that have been picked for that link before. Its head may leave before its tail has
//!   come.
//! * When its tail has left the input, the room that it had there goes back to where it came from.
//!
//! What is simpler than in routers of flits: a packet that enters the crossbar uses it without a pause, even if its
//! tail still has to come; and the room of a packet comes back as one, with its tail, not flit by flit. Both matter
//! only where buffers hold few packets.

use super::layout::{Far, Layout, Routing};
use super::packet::{NONE, Packet, Packets};
use super::parameters::{Lanes, Parameters};
use super::totals::Totals;
use super::wheel::Wheel;
use crate::Random;

/// A link to a node, in the table of links: its number and this bit.
const NODE: u32 = 1 << 31;
/// Fractions of a cycle: 2¹⁰ of them.
const SHIFT: u32 = 10;

/// Something that is due.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The head of a packet reaches a queue.
    Arrive(u32),
    /// The head of a packet reaches its node.
    Deliver(u32),
    /// Room for so many flits is free again behind this output channel.
    Room { channel: u32, flits: u16 },
    /// The same behind a node's.
    NodeRoom { channel: u32, flits: u16 },
    /// A node has taken the whole of a packet.
    Sunk(u32),
}

/// A network of routers.
#[derive(Clone, Debug)]
pub(crate) struct Engine {
    layout: Layout,
    routing: Routing,
    parameters: Parameters,
    now: u64,
    ports: u32,
    channels: u32,
    lanes: u32,
    /// Words of 64 bits for one bit of each queue of a router.
    words: usize,
    random: Random,
    pub packets: Packets,
    wheel: Wheel<Event>,
    totals: Totals,
    /// By node: whether it is slow, since choices for its packets are counted apart.
    pub is_slow: Vec<bool>,
    /// Packets whose heads have reached their nodes since somebody looked.
    pub delivered: Vec<u32>,
    /// Packets that nodes have taken.
    pub sunk: Vec<u32>,
    /// By port: the port or node at the other end of the wire.
    links: Vec<u32>,
    latency: Vec<u16>,
    /// When the last packet that was picked will have left by this port.
    link_free: Vec<u64>,
    /// When the crossbar is free for this input and output, in fractions of a cycle.
    input_free: Vec<u64>,
    output_free: Vec<u64>,
    /// Flits of all buffers behind this port that are in use.
    occupied: Vec<u32>,
    /// By output: the first queue of the input that is asked first next time.
    turn: Vec<u16>,
    /// By input: which of its channels is asked first next time.
    channel_turn: Vec<u8>,
    /// By output channel: flits in use behind it.
    used: Vec<u16>,
    /// By output channel, `words` words: the queues whose heads ask for it.
    requests: Vec<u64>,
    /// By queue: the first packet and the last.
    queues: Vec<(u32, u32)>,
    /// By router: the outputs that may have something to do.
    ready: Vec<u128>,
    /// By node and channel: flits in use of the buffers that it injects into.
    node_used: Vec<u16>,
}

impl Engine {
    pub fn new(layout: Layout, routing: Routing, parameters: Parameters, seed: u64) -> Self {
        let (ports, routers, nodes) = (layout.ports(), layout.routers(), layout.nodes());
        let (channels, all) = (u32::from(parameters.channels), (ports * routers) as usize);
        let words = (ports * channels).div_ceil(64) as usize;
        let (mut links, mut latency) = (vec![NONE; all], vec![0; all]);
        for router in 0..routers {
            for port in 0..ports {
                let index = (router * ports + port) as usize;
                (links[index], latency[index]) = match layout.far(router, port) {
                    Far::Nothing => (NONE, 0),
                    Far::Node(node) => (NODE | node, parameters.node_latency),
                    Far::Router { router: other, port: far } => {
                        let is_long = layout.is_global(router, port);
                        let latency = if is_long { parameters.global_latency } else { parameters.local_latency };
                        (other * ports + far, latency)
                    }
                };
            }
        }
        Engine {
            layout,
            routing,
            now: 0,
            ports,
            channels,
            lanes: channels / layout.classes(),
            words,
            random: Random::stream(seed, 1),
            packets: Packets::new(),
            wheel: Wheel::new(parameters.longest_delay()),
            totals: Totals::default(),
            is_slow: vec![false; nodes as usize],
            delivered: Vec::new(),
            sunk: Vec::new(),
            links,
            latency,
            link_free: vec![0; all],
            input_free: vec![0; all],
            output_free: vec![0; all],
            occupied: vec![0; all],
            turn: vec![0; all],
            channel_turn: vec![0; all],
            used: vec![0; all * channels as usize],
            requests: vec![0; all * channels as usize * words],
            queues: vec![(NONE, NONE); all * channels as usize],
            ready: vec![0; routers as usize],
            node_used: vec![0; (nodes * channels) as usize],
            parameters,
        }
    }

    /// The current cycle.
    pub fn now(&self) -> u64 {
        self.now
    }

    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Whether a node may inject on this channel.
    #[inline]
    pub fn has_room(&self, node: u32, channel: u32) -> bool {
        let used = self.node_used[(node * self.channels + channel) as usize];
        used + self.parameters.packet_flits <= self.parameters.buffer_flits
    }

    /// The next channel from `turn` on, which moves behind it, on which a node may inject.
    #[inline]
    pub fn free_channel(&self, node: u32, turn: &mut u8) -> Option<u32> {
        let channels = self.parameters.channels;
        let mut in_turn = (0..channels).map(|step| (*turn + step) % channels);
        let found = in_turn.find(|&channel| self.has_room(node, channel.into()))?;
        *turn = (found + 1) % channels;
        Some(found.into())
    }

    /// A node injects a packet, whose head is on the wire in this cycle. Call it only where [`Engine::has_room`].
    pub fn inject(&mut self, channel: u32, mut packet: Packet) {
        let node = packet.journey.from;
        debug_assert_ne!(node, packet.journey.to, "nodes send to others");
        self.node_used[(node * self.channels + channel) as usize] += packet.flits;
        packet.journey.lane = (channel % self.lanes) as u8;
        self.layout.prepare(&mut packet.journey, &mut self.random);
        let (router, port) = self.layout.place_of(node);
        packet.place = (router * self.ports + port) * self.channels + channel;
        self.totals.injected += 1;
        let number = self.packets.insert(packet);
        let at = self.now + u64::from(self.parameters.node_latency);
        self.wheel.add(self.now, at, Event::Arrive(number));
    }

    /// The node will have taken a delivered packet by then: it will be among those `sunk`.
    pub fn sink_at(&mut self, packet: u32, at: u64) {
        self.wheel.add(self.now, at, Event::Sunk(packet));
    }

    /// A node has taken a delivered packet: its room is free.
    pub fn release(&mut self, number: u32) -> Packet {
        let packet = self.packets.remove(number);
        let at = self.now + u64::from(self.parameters.credit_delay + self.parameters.node_latency);
        self.wheel.add(self.now, at, Event::Room { channel: packet.place, flits: packet.flits });
        self.totals.released += 1;
        packet
    }

    /// What is due in this cycle happens. Nodes act after that, and then routers ([`Engine::route_packets`]).
    pub fn begin_cycle(&mut self) {
        let events = self.wheel.take(self.now);
        for &event in &events {
            match event {
                Event::Arrive(packet) => self.arrive(packet),
                Event::Deliver(packet) => self.delivered.push(packet),
                Event::Sunk(packet) => self.sunk.push(packet),
                Event::NodeRoom { channel, flits } => self.node_used[channel as usize] -= flits,
                Event::Room { channel, flits } => {
                    self.used[channel as usize] -= flits;
                    let port = channel / self.channels;
                    self.occupied[port as usize] -= u32::from(flits);
                    let first = channel as usize * self.words;
                    if self.requests[first..first + self.words].iter().any(|&word| word != 0) {
                        self.ready[(port / self.ports) as usize] |= 1 << (port % self.ports);
                    }
                }
            }
        }
        self.wheel.reuse(self.now, events);
    }

    /// Every router picks packets; then the cycle is over.
    pub fn end_cycle(&mut self) {
        // So that no output always comes before another one.
        let first = self.now % u64::from(self.ports);
        let behind = u128::MAX << first;
        for router in 0..self.ready.len() {
            let ready = self.ready[router];
            if ready == 0 {
                continue;
            }
            for mut part in [ready & behind, ready & !behind] {
                while part != 0 {
                    self.pick(router as u32, part.trailing_zeros());
                    part &= part - 1;
                }
            }
        }
        self.now += 1;
    }

    fn arrive(&mut self, number: u32) {
        let packet = &mut self.packets[number];
        packet.head_at = self.now;
        let place = packet.place;
        let (first, last) = &mut self.queues[place as usize];
        if *first == NONE {
            (*first, *last) = (number, number);
            self.ask(number);
        } else {
            let behind = std::mem::replace(last, number);
            self.packets[behind].next = number;
        }
    }

    /// The packet at the head of a queue decides for an output.
    fn ask(&mut self, number: u32) {
        let Engine { layout, routing, parameters, occupied, random, packets, ports, channels, .. } = self;
        let packet = &mut packets[number];
        let queue = packet.place;
        let router = queue / *channels / *ports;
        let base = router * *ports;
        let was = packet.journey.stage;
        let of = |port: u32| occupied[(base + port) as usize];
        let way = layout.route(router, &mut packet.journey, *routing, parameters.channel_map, of, random);
        let is_diverted = u64::from(was != packet.journey.stage);
        self.totals.diverted += is_diverted;
        if let Some((shortest, detour)) = way.compared {
            let choices = &mut self.totals.choices[usize::from(self.is_slow[packet.journey.to as usize])];
            choices.compared += 1;
            choices.diverted += is_diverted;
            choices.shortest_flits += u64::from(shortest);
            choices.detour_flits += u64::from(detour);
        }
        let own = packet.journey.lane.into();
        let channel = self.lane_of((base + way.port) * self.channels + way.channel * self.lanes, own);
        let bit = queue - base * self.channels;
        self.requests[channel as usize * self.words + bit as usize / 64] |= 1 << (bit % 64);
        self.ready[router as usize] |= 1 << way.port;
    }

    /// The channel of the class that begins with `first` which a packet takes, whose `own` lane is that.
    fn lane_of(&self, first: u32, own: u32) -> u32 {
        let channels = (0..self.lanes).map(|step| first + (own + step) % self.lanes);
        match self.parameters.lanes {
            Lanes::Fixed => first + own,
            Lanes::PerHop => channels.min_by_key(|&channel| self.used[channel as usize]).unwrap_or(first),
        }
    }

    /// An output picks packets as long as its side of the crossbar is free in this cycle.
    fn pick(&mut self, router: u32, output: u32) {
        let base = router * self.ports;
        let port = (base + output) as usize;
        while self.output_free[port] >> SHIFT <= self.now {
            let mut asking = [0_u64; WORDS_MAX];
            let mut any = 0;
            for channel in 0..self.channels {
                let index = port * self.channels as usize + channel as usize;
                if self.used[index] + self.parameters.packet_flits <= self.parameters.buffer_flits {
                    let requests = &self.requests[index * self.words..(index + 1) * self.words];
                    for (word, request) in asking.iter_mut().zip(requests) {
                        *word |= request;
                        any |= request;
                    }
                }
            }
            if any == 0 {
                // Until room comes back, or a packet asks.
                self.ready[router as usize] &= !(1 << output);
                return;
            }
            let (channels, now) = (self.channels, self.now);
            let input_free = &self.input_free;
            let is_free = |queue: u32| input_free[(base + queue / channels) as usize] >> SHIFT <= now;
            let Some(queue) = next_of(&asking[..self.words], self.turn[port].into(), is_free) else { return };
            let input = queue / channels;
            let queue = self.channel_in_turn(base + input, input, &asking);
            self.turn[port] = if input + 1 == self.ports { 0 } else { ((input + 1) * channels) as u16 };
            self.forward(base, queue, port as u32);
        }
    }

    /// Of an input's queues that ask for an output, the one whose turn it is.
    fn channel_in_turn(&mut self, port: u32, input: u32, asking: &[u64]) -> u32 {
        let turn = u32::from(self.channel_turn[port as usize]);
        let asks = |channel: &u32| {
            let bit = input * self.channels + channel;
            asking[bit as usize / 64] & 1 << (bit % 64) != 0
        };
        let mut in_turn = (turn..self.channels).chain(0..turn);
        let channel = in_turn.find(asks).expect("one of them asks");
        self.channel_turn[port as usize] = if channel + 1 == self.channels { 0 } else { channel as u8 + 1 };
        input * self.channels + channel
    }

    /// The head of a queue goes through the crossbar.
    fn forward(&mut self, base: u32, bit: u32, port: u32) {
        let queue = base * self.channels + bit;
        let (number, last) = self.queues[queue as usize];
        let packet = &mut self.packets[number];
        let next = std::mem::replace(&mut packet.next, NONE);
        let (flits, head_at) = (packet.flits, packet.head_at);
        let channel = self.take_request(queue, bit, port);
        let packet = &mut self.packets[number];
        // The crossbar, and the room that the packet leaves.
        let input = (base + bit / self.channels) as usize;
        let begin = (self.now << SHIFT).max(self.input_free[input]).max(self.output_free[port as usize]);
        let end = begin + self.parameters.crossing(flits, SHIFT);
        self.input_free[input] = end;
        self.output_free[port as usize] = end;
        let left = end.div_ceil(1 << SHIFT).max(head_at + u64::from(flits));
        let room_at = left + u64::from(self.parameters.credit_delay + self.latency[input]);
        let came_by = self.links[input];
        let room = if came_by & NODE != 0 {
            let node = came_by & !NODE;
            Event::NodeRoom { channel: node * self.channels + bit % self.channels, flits }
        } else {
            Event::Room { channel: came_by * self.channels + bit % self.channels, flits }
        };
        self.wheel.add(self.now, room_at, room);
        // The link, and the room that it takes at the far end.
        if let Some(strength) = self.parameters.marking
            && self.random.below(MARK_UNIT) < mark_share(self.used[channel as usize], &self.parameters, strength)
        {
            packet.is_marked = true;
            self.totals.marked += 1;
        }
        self.used[channel as usize] += flits;
        self.occupied[port as usize] += u32::from(flits);
        let departs = (self.now + u64::from(self.parameters.router_latency)).max(self.link_free[port as usize]);
        self.link_free[port as usize] = departs + u64::from(flits);
        let arrives = departs + u64::from(self.latency[port as usize]);
        let to = self.links[port as usize];
        let event = if to & NODE != 0 {
            packet.place = channel;
            Event::Deliver(number)
        } else {
            packet.place = to * self.channels + channel % self.channels;
            Event::Arrive(number)
        };
        self.wheel.add(self.now, arrives, event);
        self.totals.hops += 1;
        self.queues[queue as usize] = if next == NONE { (NONE, NONE) } else { (next, last) };
        if next != NONE {
            self.ask(next);
        }
    }

    /// The head of a queue no longer asks; returns the channel that it asked for.
    fn take_request(&mut self, queue: u32, bit: u32, port: u32) -> u32 {
        debug_assert_eq!(queue / self.channels / self.ports, port / self.ports, "an output of the same router");
        let first = port * self.channels;
        let asked = |channel: &u32| {
            let word = &mut self.requests[*channel as usize * self.words + bit as usize / 64];
            let mask = 1 << (bit % 64);
            let is_it = *word & mask != 0;
            *word &= !mask;
            is_it
        };
        (first..first + self.channels).find(asked).expect("a packet that is picked has asked")
    }
}

/// Words that the queues of the largest router need.
const WORDS_MAX: usize = (super::layout::PORTS_MAX * super::parameters::CHANNELS_MAX as u32 / 64) as usize;

/// Shares are counted in so many parts.
const MARK_UNIT: u64 = 1 << 20;

/// The share of packets that are marked where so many flits are in use of the buffer that they go to: it rises from 0
/// at half of the buffer to 1 at all of it, times `strength`.
fn mark_share(used: u16, parameters: &Parameters, strength: u8) -> u64 {
    let (used, buffer) = (u64::from(used), u64::from(parameters.buffer_flits));
    let beyond = (2 * used).saturating_sub(buffer);
    u64::from(strength) * beyond * MARK_UNIT / buffer
}

/// The first bit from `turn` on, and then from 0 on, that is set and `is_free`.
#[inline]
fn next_of(words: &[u64], turn: u32, is_free: impl Fn(u32) -> bool) -> Option<u32> {
    let (start, behind) = ((turn / 64) as usize, u64::MAX << (turn % 64));
    let search = |index: usize, mask: u64| {
        let mut word = words[index] & mask;
        while word != 0 {
            let bit = index as u32 * 64 + word.trailing_zeros();
            if is_free(bit) {
                return Some(bit);
            }
            word &= word - 1;
        }
        None
    };
    let after = || (start + 1..words.len()).find_map(|index| search(index, u64::MAX));
    let before = || (0..start).find_map(|index| search(index, u64::MAX));
    search(start, behind).or_else(after).or_else(before).or_else(|| search(start, !behind))
}

/// What must hold at any time; for tests.
#[cfg(test)]
impl Engine {
    /// Panics unless every flit of room is accounted for: what is in use behind a channel is what packets hold that are
    /// there or on their way, and what is on its way back.
    pub fn check_room(&self) {
        let mut held = vec![0_u32; self.used.len()];
        let mut node_held = vec![0_u32; self.node_used.len()];
        for packet in self.packets.alive() {
            let came_by = self.links[(packet.place / self.channels) as usize];
            if came_by & NODE == 0 {
                let channel = came_by * self.channels + packet.place % self.channels;
                held[channel as usize] += u32::from(packet.flits);
                continue;
            }
            // At a node's port, it has come from the node, or goes to it.
            let node = came_by & !NODE;
            if packet.journey.from == node {
                node_held[(node * self.channels + packet.place % self.channels) as usize] += u32::from(packet.flits);
            } else {
                held[packet.place as usize] += u32::from(packet.flits);
            }
        }
        for event in self.wheel.all() {
            match *event {
                Event::Room { channel, flits } => held[channel as usize] += u32::from(flits),
                Event::NodeRoom { channel, flits } => node_held[channel as usize] += u32::from(flits),
                Event::Arrive(_) | Event::Deliver(_) | Event::Sunk(_) => {}
            }
        }
        let used = |used: &[u16]| used.iter().map(|&flits| u32::from(flits)).collect::<Vec<_>>();
        assert_eq!(used(&self.used), held, "room behind routers");
        assert_eq!(used(&self.node_used), node_held, "room behind nodes");
        let most = self.used.iter().chain(&self.node_used).max().copied().unwrap_or(0);
        assert!(most <= self.parameters.buffer_flits, "a buffer holds {most} flits");
        for (port, &occupied) in self.occupied.iter().enumerate() {
            let channels = port * self.channels as usize..(port + 1) * self.channels as usize;
            let sum: u32 = self.used[channels].iter().map(|&flits| u32::from(flits)).sum();
            assert_eq!(occupied, sum, "what routing is told of a port");
        }
    }
}
