//! A small world: endpoints, and between each two that talk one channel per direction, which keeps order and loses
//! nothing.
//!
//! Packets of different senders may arrive at a receiver in any order, which covers every network and every mailbox.

use std::cell::{Cell, OnceCell};
use std::collections::VecDeque;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use tidegate_flow::{Config, Credits, FlowControl, Inspection, Instant, Packet, PacketKind, PeerId, SchemeName};

/// One direction of data between two endpoints.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    pub from: usize,
    pub to: usize,
    /// Data packets it will ever send; `None` = it always has data.
    pub packets: Option<u8>,
}

/// Something wrong on purpose, to see that the checker notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Credit packets disappear on their way.
    CreditPacketsVanish,
    /// Nobody polls for control packets.
    NobodyPolls,
    /// The checker expects one credit slot fewer than there are.
    OneCreditSlotFewer,
    /// The checker expects one data slot fewer than there are.
    OneDataSlotFewer,
}

/// What a world is made of.
#[derive(Clone, Debug)]
pub struct Layout {
    pub scheme: SchemeName,
    pub credit_slots: u32,
    pub piggyback: bool,
    /// Data region of each endpoint, in slots. As many as there are endpoints.
    pub data: Vec<u32>,
    pub flows: Vec<Flow>,
    /// Control packets leave in steps of their own instead of at once.
    pub polls_late: bool,
    /// How many of its peers each endpoint expects; `None`: all.
    pub expected: Option<u32>,
    /// An endpoint, with a single peer, that dies and comes back as new again and again.
    pub restarts: Option<usize>,
    pub fault: Option<Fault>,
}

impl Layout {
    /// Endpoints with data regions of `data` slots and no traffic yet.
    pub fn new(scheme: SchemeName, credit_slots: u32, data: &[u32]) -> Self {
        let data = data.to_vec();
        let (piggyback, polls_late) = (false, false);
        let (flows, expected, restarts, fault) = (Vec::new(), None, None, None);
        Layout { scheme, credit_slots, piggyback, data, flows, polls_late, expected, restarts, fault }
    }

    pub fn piggyback(mut self) -> Self {
        self.piggyback = true;
        self
    }

    /// `from` always has data for `to`.
    pub fn flow(mut self, from: usize, to: usize) -> Self {
        self.flows.push(Flow { from, to, packets: None });
        self
    }

    /// `from` has `packets` packets for `to`, then falls silent.
    pub fn burst(mut self, from: usize, to: usize, packets: u8) -> Self {
        self.flows.push(Flow { from, to, packets: Some(packets) });
        self
    }

    pub fn polls_late(mut self) -> Self {
        self.polls_late = true;
        self
    }

    /// `endpoint` dies and comes back as new, again and again.
    pub fn restarts(mut self, endpoint: usize) -> Self {
        self.restarts = Some(endpoint);
        self
    }

    pub fn fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Who `endpoint` exchanges packets with, in order: its table of peers.
    fn peers(&self, endpoint: usize) -> Vec<usize> {
        let talks = |other: usize| {
            self.flows
                .iter()
                .any(|flow| (flow.from, flow.to) == (endpoint, other) || (flow.to, flow.from) == (endpoint, other))
        };
        (0..self.data.len()).filter(|&other| talks(other)).collect()
    }

    /// A new endpoint's flow control.
    pub fn flow_control(&self, endpoint: usize) -> FlowControl {
        let config = Config {
            piggyback: self.piggyback,
            expected_peers: self.expected,
            ..Config::new(self.scheme, self.peers(endpoint).len() as u32, 2 * self.credit_slots, self.credit_slots)
        };
        FlowControl::with_data_region(&config, self.data[endpoint]).unwrap()
    }
}

/// What matters of a packet on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wire {
    Data { riding: u16 },
    Credit(u32),
    Request,
    Response(u32),
}

impl Wire {
    fn of(packet: &Packet) -> Self {
        match packet.header.kind() {
            PacketKind::Data => Wire::Data { riding: packet.piggyback().unwrap_or(0) },
            PacketKind::Credit => Wire::Credit(packet.credits()),
            PacketKind::ReturnRequest => Wire::Request,
            PacketKind::ReturnResponse => Wire::Response(packet.credits()),
        }
    }

    fn packet(self) -> Packet {
        match self {
            Wire::Data { riding } => {
                let mut packet = Packet::new(PacketKind::Data, 0, 0);
                if riding > 0 {
                    packet.set_piggyback(riding);
                }
                packet
            }
            Wire::Credit(credits) => Packet::with_credits(PacketKind::Credit, credits),
            Wire::Request => Packet::new(PacketKind::ReturnRequest, 0, 0),
            Wire::Response(credits) => Packet::with_credits(PacketKind::ReturnResponse, credits),
        }
    }

    /// Whether it lies in the data region.
    pub fn costs_credit(self) -> bool {
        !matches!(self, Wire::Credit(_))
    }

    /// Credits that it takes back to the receiver that lent them.
    pub fn gives_back(self) -> u32 {
        if let Wire::Response(credits) = self { credits } else { 0 }
    }

    /// Credits that it brings to a sender.
    pub fn returns(self) -> u32 {
        match self {
            Wire::Credit(credits) => credits,
            Wire::Data { riding } => u32::from(riding),
            Wire::Request | Wire::Response(_) => 0,
        }
    }
}

/// A part of the world, shared between states that do not differ in it, with what is computed from it once.
#[derive(Clone, Debug)]
pub struct Part<T> {
    value: T,
    print: Cell<Option<u64>>,
    inspection: OnceCell<Inspection>,
}

impl<T: Hash + Clone> Part<T> {
    fn new(value: T) -> Rc<Self> {
        Rc::new(Part { value, print: Cell::new(None), inspection: OnceCell::new() })
    }

    fn change(this: &mut Rc<Self>) -> &mut T {
        let part = Rc::make_mut(this);
        (part.print, part.inspection) = Default::default();
        &mut part.value
    }

    fn print(&self, compute: impl FnOnce(&T) -> u64) -> u64 {
        let print = self.print.get().unwrap_or_else(|| compute(&self.value));
        self.print.set(Some(print));
        print
    }
}

/// What tells two states of an endpoint apart.
///
/// An endpoint with a single peer has nobody to steal from, so neither its activity lists nor the crossings that move
/// them decide anything: states that differ only there count as one. (What waits to be polled is not in the inspection,
/// though.)
fn endpoint_print(flow_control: &FlowControl, polls_late: bool) -> u64 {
    let mut inspection = if polls_late { return fingerprint(flow_control) } else { flow_control.inspect() };
    if inspection.scheme != SchemeName::Dynamic || inspection.peers.len() != 1 {
        return fingerprint(flow_control);
    }
    inspection.activity_lists = Default::default();
    inspection.peers[0].crossings = 0;
    fingerprint(&inspection)
}

/// 64 bits that tell values apart.
fn fingerprint(value: &impl Hash) -> u64 {
    let mut mixer = Mixer::default();
    value.hash(&mut mixer);
    mixer.finish()
}

/// A hash of good quality that is fast on small integers: explorations spend much of their time here.
#[derive(Clone, Default)]
pub struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    /// Folds the 128-bit product of the state and an odd constant.
    fn write_u64(&mut self, value: u64) {
        let product = u128::from(self.0 ^ value ^ 0x9e37_79b9_7f4a_7c15) * 0xa076_1d64_78bd_642f;
        self.0 = (product as u64).rotate_left(23) ^ (product >> 64) as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A step of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A flow sends one data packet, with room for credits or without.
    Send { flow: u8, room: bool },
    /// The packet that is first in a channel is retrieved.
    Retrieve { channel: u8 },
    /// An endpoint writes its control packets.
    Poll { endpoint: u8 },
    /// An endpoint dies; its last packets were retrieved, and another process takes its place.
    Restart { endpoint: u8 },
}

/// One direction of packets between two endpoints: from `from`'s peer number `to_index` to the one that knows it as
/// `from_index`.
#[derive(Clone, Copy, Debug)]
pub struct Channel {
    pub from: usize,
    pub to: usize,
    /// `to` in `from`'s table of peers.
    pub to_index: PeerId,
    /// `from` in `to`'s table of peers.
    pub from_index: PeerId,
    /// The channel of the other direction.
    pub reverse: usize,
}

/// What never changes about a world.
#[derive(Debug)]
pub struct Map {
    pub layout: Layout,
    pub channels: Vec<Channel>,
    /// The channel of each flow.
    flows: Vec<usize>,
}

/// See the module. Cheap to clone.
#[derive(Clone, Debug)]
pub struct World {
    pub map: Rc<Map>,
    endpoints: Vec<Rc<Part<FlowControl>>>,
    packets: Vec<Rc<Part<VecDeque<Wire>>>>,
    /// Packets that each flow may still send.
    left: Vec<Option<u8>>,
    /// Credits that the application of each channel's sender has taken out and not used yet.
    pub in_hand: Vec<u32>,
}

impl World {
    pub fn new(layout: Layout) -> Self {
        let tables: Vec<Vec<usize>> = (0..layout.data.len()).map(|endpoint| layout.peers(endpoint)).collect();
        let index = |of: usize, at: usize| tables[at].iter().position(|&peer| peer == of).unwrap();
        let pairs: Vec<(usize, usize)> =
            tables.iter().enumerate().flat_map(|(from, table)| table.iter().map(move |&to| (from, to))).collect();
        let place = |from: usize, to: usize| pairs.iter().position(|&pair| pair == (from, to)).unwrap();
        let channel = |&(from, to): &(usize, usize)| Channel {
            from,
            to,
            to_index: PeerId(index(to, from) as u32),
            from_index: PeerId(index(from, to) as u32),
            reverse: place(to, from),
        };
        let channels: Vec<Channel> = pairs.iter().map(channel).collect();
        let flows = layout.flows.iter().map(|flow| place(flow.from, flow.to)).collect();
        World {
            endpoints: (0..layout.data.len()).map(|endpoint| Part::new(layout.flow_control(endpoint))).collect(),
            packets: channels.iter().map(|_| Part::new(VecDeque::new())).collect(),
            left: layout.flows.iter().map(|flow| flow.packets).collect(),
            in_hand: vec![0; channels.len()],
            map: Rc::new(Map { layout, channels, flows }),
        }
    }

    /// Equal for equal states, and different for different ones but for a chance of 2⁻⁶⁴.
    pub fn fingerprint(&self) -> u64 {
        let mut mixer = Mixer::default();
        let polls_late = self.map.layout.polls_late;
        for part in &self.endpoints {
            mixer.write_u64(part.print(|flow_control| endpoint_print(flow_control, polls_late)));
        }
        for part in &self.packets {
            mixer.write_u64(part.print(fingerprint));
        }
        self.left.hash(&mut mixer);
        mixer.finish()
    }

    pub fn inspect(&self, endpoint: usize) -> &Inspection {
        let part = &self.endpoints[endpoint];
        part.inspection.get_or_init(|| part.value.inspect())
    }

    pub fn packets(&self, channel: usize) -> &VecDeque<Wire> {
        &self.packets[channel].value
    }

    pub fn channel_of(&self, flow: usize) -> usize {
        self.map.flows[flow]
    }

    /// Every step that might be possible now.
    pub fn actions(&self) -> impl Iterator<Item = Action> + use<> {
        let layout = &self.map.layout;
        let rooms: &[bool] = if layout.piggyback { &[false, true] } else { &[false] };
        let flows = layout.flows.len() as u8;
        let sends = (0..flows).flat_map(move |flow| rooms.iter().map(move |&room| Action::Send { flow, room }));
        let retrieves = (0..self.packets.len() as u8).map(|channel| Action::Retrieve { channel });
        let endpoints = if layout.polls_late { self.endpoints.len() as u8 } else { 0 };
        let polls = (0..endpoints).map(|endpoint| Action::Poll { endpoint });
        let restarts = layout.restarts.into_iter().map(|endpoint| Action::Restart { endpoint: endpoint as u8 });
        sends.chain(retrieves).chain(polls).chain(restarts)
    }

    /// Takes the step if it is possible, and says whether it was.
    pub fn step(&mut self, action: Action) -> Result<bool, String> {
        match action {
            Action::Send { flow, room } => Ok(self.send_one(usize::from(flow), room)),
            Action::Retrieve { channel } => self.retrieve(usize::from(channel)),
            Action::Poll { endpoint } => Ok(self.poll(usize::from(endpoint))),
            Action::Restart { endpoint } => Ok(self.restart(usize::from(endpoint))),
        }
    }

    fn send_one(&mut self, flow: usize, room: bool) -> bool {
        let channel = self.map.flows[flow];
        let Channel { from, to_index, .. } = self.map.channels[channel];
        if self.left[flow] == Some(0) || self.endpoints[from].value.credits(to_index) == 0 {
            return false;
        }
        let mut credits = self.take(channel, 1);
        if credits.count() == 0 {
            return false;
        }
        self.left[flow] = self.left[flow].map(|left| left - 1);
        self.send(channel, &mut credits, room);
        true
    }

    /// Takes credits for data out of a channel's sender.
    pub fn take(&mut self, channel: usize, wanted: u32) -> Credits {
        let Channel { from, to_index, .. } = self.map.channels[channel];
        let credits =
            Part::change(&mut self.endpoints[from]).request(to_index, wanted, Instant::default()).into_credits();
        self.in_hand[channel] += credits.count();
        credits
    }

    /// Sends one data packet for one of the credits.
    pub fn send(&mut self, channel: usize, credits: &mut Credits, room: bool) {
        let Channel { from, to_index, .. } = self.map.channels[channel];
        let mut packet = Packet::new(PacketKind::Data, if room { 0 } else { tidegate_flow::PAYLOAD_BYTES }, 0);
        Part::change(&mut self.endpoints[from]).before_send(to_index, &mut packet, 0);
        credits.spend();
        self.in_hand[channel] -= 1;
        Part::change(&mut self.packets[channel]).push_back(Wire::of(&packet));
        self.poll_unless_late(from);
    }

    /// Returns credits that were not used.
    pub fn give_back(&mut self, channel: usize, credits: Credits) {
        let Channel { from, to_index, .. } = self.map.channels[channel];
        self.in_hand[channel] -= credits.count();
        Part::change(&mut self.endpoints[from]).give_back(to_index, credits);
        self.poll_unless_late(from);
    }

    /// Retrieves the packet that is first in a channel, if there is one.
    pub fn retrieve(&mut self, channel: usize) -> Result<bool, String> {
        if self.packets(channel).is_empty() {
            return Ok(false);
        }
        let Channel { to, from_index, .. } = self.map.channels[channel];
        let Some(wire) = Part::change(&mut self.packets[channel]).pop_front() else { return Ok(false) };
        let gained = Part::change(&mut self.endpoints[to])
            .handle_retrieved(from_index, &wire.packet())
            .map_err(|violation| format!("{wire:?} of a correct peer was refused: {violation}"))?;
        if gained != wire.returns() {
            return Err(format!("{wire:?} was said to return {gained} credits"));
        }
        self.poll_unless_late(to);
        Ok(true)
    }

    fn poll_unless_late(&mut self, endpoint: usize) {
        if !self.map.layout.polls_late {
            self.poll(endpoint);
        }
    }

    /// Writes all control packets of an endpoint. Returns whether there were any.
    fn poll(&mut self, endpoint: usize) -> bool {
        let fault = self.map.layout.fault;
        if fault == Some(Fault::NobodyPolls) {
            return false;
        }
        let mut any = false;
        while let Some(control) = Part::change(&mut self.endpoints[endpoint]).poll_control() {
            any = true;
            let wire = Wire::of(&control.packet);
            if fault == Some(Fault::CreditPacketsVanish) && matches!(wire, Wire::Credit(_)) {
                continue;
            }
            let goes = |channel: &Channel| (channel.from, channel.to_index) == (endpoint, control.to);
            let channel = self.map.channels.iter().position(goes).unwrap();
            Part::change(&mut self.packets[channel]).push_back(wire);
        }
        any
    }

    /// An endpoint's flow control, changed as the caller likes.
    pub fn flow_control(&mut self, endpoint: usize) -> &mut FlowControl {
        Part::change(&mut self.endpoints[endpoint])
    }

    /// Whether an endpoint has control packets that nobody has polled for yet.
    pub fn is_poll_due(&self, endpoint: usize) -> bool {
        self.map.layout.polls_late && self.endpoints[endpoint].value.clone().poll_control().is_some()
    }

    /// A dying process leaves packets behind. While they are retrieved it is no different from one that is slow, so
    /// only what comes then is modelled here: packets to it vanish, its peer resets what it keeps of it, and another
    /// starts in its place.
    fn restart(&mut self, endpoint: usize) -> bool {
        let index = self.map.channels.iter().position(|channel| channel.from == endpoint).unwrap();
        let Channel { to, from_index, reverse, .. } = self.map.channels[index];
        if !self.packets(index).is_empty() {
            return false;
        }
        Part::change(&mut self.packets[reverse]).clear();
        *Part::change(&mut self.endpoints[endpoint]) = self.map.layout.flow_control(endpoint);
        Part::change(&mut self.endpoints[to]).reset(from_index);
        true
    }
}

/// One line: every endpoint, then every channel that is not empty.
impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for endpoint in 0..self.endpoints.len() {
            write!(f, "[{endpoint}] {} ", self.inspect(endpoint))?;
        }
        for (channel, packets) in self.map.channels.iter().zip(&self.packets) {
            if !packets.value.is_empty() {
                write!(f, " {}→{}:", channel.from, channel.to)?;
                packets.value.iter().try_for_each(|wire| write!(f, " {wire:?}"))?;
            }
        }
        Ok(())
    }
}
