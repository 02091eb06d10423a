//! A small world: endpoints with posted buffers, and between each two that talk one channel per direction.
//!
//! Each endpoint is a real `FlowControl` with the real parts of an adapter. What the message layer does is done here: a
//! message that may not leave waits in a backlog, in order, and goes on when credits have come or flow control says so.

use super::layout::{Carrier, Fault, Layout};
pub use super::parts::{Action, Channel, Frame, Sender};
use crate::world::Mixer;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use tidegate_flow::{
    Answer, Arrived, Control, FlowControl, Inspection, Instant, PAYLOAD_BYTES, Packet, PacketKind, PeerId,
    ReceiveQueues,
};

/// All calls come at this moment, and timeouts as if all time had passed.
const NOW: Instant = Instant::from_nanos(0);
const LATER: Instant = Instant::from_nanos(u64::MAX / 2);

/// One direction between two endpoints.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    pub from: usize,
    pub to: usize,
    pub to_index: PeerId,
    pub from_index: PeerId,
    pub reverse: usize,
}

/// What never changes about a world.
#[derive(Debug)]
pub struct Map {
    pub layout: Layout,
    pub routes: Vec<Route>,
    flows: Vec<usize>,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct World {
    pub map: Rc<Map>,
    endpoints: Vec<Rc<FlowControl>>,
    pub queues: Vec<Rc<ReceiveQueues>>,
    pub channels: Vec<Rc<Channel>>,
    pub senders: Vec<Sender>,
}

impl World {
    pub fn new(layout: Layout) -> Self {
        let tables: Vec<Vec<usize>> = (0..layout.endpoints).map(|endpoint| layout.peers(endpoint)).collect();
        let index = |of: usize, at: usize| PeerId(tables[at].iter().position(|&peer| peer == of).unwrap() as u32);
        let pairs: Vec<(usize, usize)> =
            tables.iter().enumerate().flat_map(|(from, table)| table.iter().map(move |&to| (from, to))).collect();
        let place = |from: usize, to: usize| pairs.iter().position(|&pair| pair == (from, to)).unwrap();
        let route = |&(from, to): &(usize, usize)| {
            let (to_index, from_index, reverse) = (index(to, from), index(from, to), place(to, from));
            Route { from, to, to_index, from_index, reverse }
        };
        let sender = |flow: &super::layout::Flow| Sender { left: flow.messages, ..Sender::default() };
        World {
            endpoints: (0..layout.endpoints).map(|endpoint| Rc::new(layout.flow_control(endpoint))).collect(),
            queues: (0..layout.endpoints).map(|endpoint| Rc::new(layout.queues(endpoint))).collect(),
            channels: pairs.iter().map(|_| Rc::default()).collect(),
            senders: layout.flows.iter().map(sender).collect(),
            map: Rc::new(Map {
                routes: pairs.iter().map(route).collect(),
                flows: layout.flows.iter().map(|flow| place(flow.from, flow.to)).collect(),
                layout,
            }),
        }
    }

    /// Equal for equal states, and different for different ones but for a chance of 2⁻⁶⁴.
    pub fn fingerprint(&self) -> u64 {
        let mut mixer = Mixer::default();
        (&self.endpoints, &self.queues, &self.channels, &self.senders).hash(&mut mixer);
        mixer.finish()
    }

    pub fn inspect(&self, endpoint: usize) -> Inspection {
        self.endpoints[endpoint].inspect()
    }

    pub fn tally(&self, endpoint: usize) -> tidegate_flow::SchemeStats {
        self.endpoints[endpoint].tally()
    }

    /// An endpoint's flow control, changed as the caller likes.
    pub fn flow_control(&mut self, endpoint: usize) -> &mut FlowControl {
        Rc::make_mut(&mut self.endpoints[endpoint])
    }

    fn channel(&mut self, channel: usize) -> &mut Channel {
        Rc::make_mut(&mut self.channels[channel])
    }

    fn queue(&mut self, endpoint: usize) -> &mut ReceiveQueues {
        Rc::make_mut(&mut self.queues[endpoint])
    }

    fn has_fault(&self, fault: Fault) -> bool {
        self.map.layout.fault == Some(fault)
    }

    /// Whether messages are few enough to be told apart.
    fn counts(&self) -> bool {
        self.map.layout.flows.iter().all(|flow| flow.messages.is_some())
    }

    /// Every step that might be possible now.
    pub fn actions(&self) -> Vec<Action> {
        let layout = &self.map.layout;
        let (flows, channels, endpoints) =
            (layout.flows.len() as u8, self.channels.len() as u8, layout.endpoints as u8);
        let mut actions: Vec<Action> = (0..flows).map(|flow| Action::Send { flow }).collect();
        for channel in 0..channels {
            actions.push(Action::Retrieve { channel });
            if layout.carrier == Carrier::Late {
                actions.extend([Action::Transmit { channel }, Action::Arrive { channel }, Action::Retry { channel }]);
            }
        }
        for endpoint in 0..endpoints {
            actions.extend([
                Action::Timeout { endpoint },
                Action::LongTimeout { endpoint },
                Action::Limit { endpoint },
            ]);
        }
        let restarts = layout.restarts.map(|endpoint| endpoint as u8);
        actions.extend(
            restarts.into_iter().flat_map(|endpoint| [false, true].map(|takes| Action::Restart { endpoint, takes })),
        );
        actions
    }

    /// Takes the step if it is possible, and says whether it was.
    pub fn step(&mut self, action: Action) -> Result<bool, String> {
        match action {
            Action::Send { flow } => self.send(flow.into()),
            Action::Transmit { channel } => Ok(self.transmit(channel.into())),
            Action::Arrive { channel } => self.arrive(channel.into()),
            Action::Retrieve { channel } => self.retrieve(channel.into()),
            Action::Retry { channel } => Ok(self.retry(channel.into())),
            Action::Timeout { endpoint } => self.handle_timeout(endpoint.into(), false),
            Action::LongTimeout { endpoint } => self.handle_timeout(endpoint.into(), true),
            Action::Limit { endpoint } => self.handle_limit(endpoint.into()),
            Action::Restart { endpoint, takes } => Ok(self.restart(endpoint.into(), takes)),
        }
    }

    /// The application begins a message: it leaves, or waits.
    pub fn send(&mut self, flow: usize) -> Result<bool, String> {
        let Sender { left, waiting, .. } = self.senders[flow];
        if left == Some(0) || waiting >= self.map.layout.backlog {
            return Ok(false);
        }
        self.senders[flow].left = left.map(|left| left - 1);
        if waiting > 0 || !self.send_message(flow, false)? {
            self.senders[flow].waiting += 1;
        }
        Ok(true)
    }

    /// Sends what waits, as far as it goes.
    fn resume(&mut self, flow: usize) -> Result<(), String> {
        while self.senders[flow].waiting > 0 && self.send_message(flow, true)? {
            self.senders[flow].waiting -= 1;
        }
        Ok(())
    }

    /// Sends a message, or what is left of it. Returns whether all of it has left.
    fn send_message(&mut self, flow: usize, waited: bool) -> Result<bool, String> {
        let channel = self.map.flows[flow];
        let Route { from, to_index, .. } = self.map.routes[channel];
        let mut part = match self.senders[flow].part {
            0 => self.map.layout.message_packets,
            part => part,
        };
        while part > 0 {
            let flow_control = self.flow_control(from);
            let answer = match waited {
                true => flow_control.request_after_waiting(to_index, part.into(), NOW),
                false => flow_control.request(to_index, part.into(), NOW),
            };
            let Answer::Packets(mut credits) = answer else { break };
            let granted = credits.count();
            let number = self.channels[channel].numbers.0;
            if !self.has_place(channel) {
                self.flow_control(from).handle_refused(to_index, credits, NOW);
                break;
            }
            let frame = self.fill(from, to_index, granted, number)?;
            credits.spend_many(granted);
            credits.end();
            if self.counts() {
                self.channel(channel).numbers.0 = (number + 1) % 16;
            }
            self.put(channel, frame);
            part -= granted as u8;
        }
        let is_gone = part == 0;
        self.senders[flow].part = if part == self.map.layout.message_packets { 0 } else { part };
        self.poll(from)?;
        Ok(is_gone)
    }

    /// Fills a buffer, a packet at a time, as a link does that has few places at a time.
    fn fill(&mut self, from: usize, to: PeerId, granted: u32, number: u8) -> Result<Frame, String> {
        let mut last = Packet::new(PacketKind::Data, 0, 0);
        for index in 0..granted {
            let is_last = index + 1 == granted;
            let mut packet = Packet::new(PacketKind::Data, if is_last { 0 } else { PAYLOAD_BYTES }, 0);
            let riding = self.flow_control(from).before_send(to, &mut packet, granted - index - 1);
            if packet.header.ends_buffer() != is_last || riding != packet.piggyback().unwrap_or(0).into() {
                return Err(format!("packet {index} of {granted}: {packet:?}, {riding} riding"));
            }
            last = packet;
        }
        let (riding, waited) = (last.piggyback().unwrap_or(0), last.header.has_waited());
        Ok(Frame::Data { packets: granted as u8, riding, waited, number })
    }

    /// Whether the link takes a frame: where it refuses at once, this takes the buffer.
    fn has_place(&mut self, channel: usize) -> bool {
        self.map.layout.carrier == Carrier::Late || self.take(channel)
    }

    fn take(&mut self, channel: usize) -> bool {
        let Route { to, from_index, .. } = self.map.routes[channel];
        let was_due = self.is_due(channel);
        let has_taken = self.queue(to).take(from_index);
        self.note_taking(channel, has_taken, was_due);
        has_taken
    }

    /// Whether the pool's spare buffer is for this sender, too.
    fn is_due(&self, channel: usize) -> bool {
        let Route { to, from_index, .. } = self.map.routes[channel];
        self.queues[to].refusals(from_index) >= self.map.layout.buffers.refusals_most
    }

    fn note_taking(&mut self, channel: usize, has_taken: bool, was_due: bool) {
        let Channel { passed_over, has_got, .. } = self.channel(channel);
        let is_passed_over = was_due && *has_got;
        *passed_over = if has_taken { 0 } else { *passed_over + u8::from(is_passed_over) };
        *has_got = false;
    }

    /// A frame that has its buffer, or is to find one, is on its way.
    fn put(&mut self, channel: usize, frame: Frame) {
        let carrier = self.map.layout.carrier;
        let channel = self.channel(channel);
        match carrier {
            Carrier::AtOnce => channel.arrived.push_back(frame),
            Carrier::Late => {
                channel.unaccepted.push(frame);
                channel.frames.push_back(frame);
            }
        }
    }

    fn transmit(&mut self, channel: usize) -> bool {
        let channel = self.channel(channel);
        let Some((number, _)) = channel.unaccepted.next_to_send() else { return false };
        channel.unaccepted.note_sent();
        channel.in_network.push_back(number);
        true
    }

    fn arrive(&mut self, channel: usize) -> Result<bool, String> {
        let Some(number) = self.channel(channel).in_network.pop_front() else { return Ok(false) };
        let Route { from, to, to_index, from_index, .. } = self.map.routes[channel];
        let was_due = self.is_due(channel);
        let arrived = self.queue(to).handle_arrival(from_index, number);
        if arrived != Arrived::Dropped {
            self.note_taking(channel, arrived == Arrived::Accepted, was_due);
        }
        match arrived {
            Arrived::Accepted => {
                let channel = self.channel(channel);
                let frame = channel.unaccepted.handle_accepted(number).ok_or("accepted, and not under way")?;
                channel.frames.pop_front();
                channel.arrived.push_back(frame);
            }
            Arrived::Refused => {
                self.flow_control(from).handle_late_refusal(to_index, NOW);
                if !self.channel(channel).unaccepted.handle_refused(number) {
                    return Err("refused, and not under way".to_owned());
                }
            }
            Arrived::Dropped => {}
        }
        Ok(true)
    }

    fn retry(&mut self, channel: usize) -> bool {
        if !self.channels[channel].unaccepted.is_waiting() {
            return false;
        }
        self.channel(channel).unaccepted.handle_timeout();
        true
    }

    /// Retrieves the frame that came first, if there is one.
    pub fn retrieve(&mut self, channel: usize) -> Result<bool, String> {
        if self.channels[channel].arrived.is_empty() {
            return Ok(false);
        }
        let counts = self.counts();
        let Route { to, from_index, reverse, .. } = self.map.routes[channel];
        let state = self.channel(channel);
        let Some(frame) = state.arrived.pop_front() else { return Ok(false) };
        if let Frame::Data { number, .. } = frame
            && counts
        {
            state.messages += 1;
            let expected = std::mem::replace(&mut state.numbers.1, (number + 1) % 16);
            if number != expected {
                return Err(format!("order: message {number} came, {expected} was expected"));
            }
        }
        let mut gained = 0;
        for packet in frame.packets() {
            let handled = self.flow_control(to).handle_retrieved(from_index, &packet);
            gained += handled.map_err(|violation| format!("{frame:?} of a correct peer was refused: {violation}"))?;
        }
        if gained != frame.returns() {
            return Err(format!("{frame:?} was said to return {gained} credits"));
        }
        self.poll(to)?;
        if gained > 0 {
            self.resume_all(reverse)?;
        }
        Ok(true)
    }

    fn resume_all(&mut self, channel: usize) -> Result<(), String> {
        let flows = (0..self.senders.len()).filter(|&flow| self.map.flows[flow] == channel);
        flows.collect::<Vec<_>>().into_iter().try_for_each(|flow| self.resume(flow))
    }

    /// Posts buffers and writes control packets, as an endpoint wants.
    fn poll(&mut self, endpoint: usize) -> Result<(), String> {
        while let Some(posting) = self.flow_control(endpoint).poll_posting() {
            if self.has_fault(Fault::NobodyPosts) {
                continue;
            }
            let had_spare = self.queues[endpoint].has_spare();
            self.queue(endpoint).post(posting);
            if self.queues[endpoint].has_spare() && !had_spare {
                self.note_got(endpoint);
            }
        }
        while let Some(Control { to, packet }) = self.flow_control(endpoint).poll_control() {
            let channel = self.map.routes.iter().position(|route| (route.from, route.to_index) == (endpoint, to));
            let channel = channel.ok_or("a control packet to nobody")?;
            if self.has_fault(Fault::CreditPacketsVanish) {
                continue;
            }
            if !self.has_place(channel) {
                let control = Control { to, packet };
                if self.flow_control(endpoint).handle_control_refused(control, NOW).is_some() {
                    return Err("a refused credit packet came back".to_owned());
                }
                continue;
            }
            self.put(channel, Frame::Credit(packet.credits()));
        }
        Ok(())
    }

    /// The spare buffer of an endpoint's pool has come back.
    fn note_got(&mut self, endpoint: usize) {
        for channel in 0..self.channels.len() {
            if self.map.routes[channel].to == endpoint && self.is_due(channel) {
                self.channel(channel).has_got = true;
            }
        }
    }

    fn handle_timeout(&mut self, endpoint: usize, long: bool) -> Result<bool, String> {
        if self.endpoints[endpoint].next_timeout().is_none() {
            return Ok(false);
        }
        let flow_control = self.flow_control(endpoint);
        flow_control.handle_timeout(NOW);
        let due = flow_control.next_timeout().unwrap_or(NOW);
        flow_control.handle_timeout(if long { LATER } else { due });
        self.poll(endpoint)?;
        while let Some(peer) = self.flow_control(endpoint).poll_ready() {
            let channel = self.map.routes.iter().position(|route| (route.from, route.to_index) == (endpoint, peer));
            self.resume_all(channel.ok_or("ready for nobody")?)?;
        }
        Ok(true)
    }

    fn handle_limit(&mut self, endpoint: usize) -> Result<bool, String> {
        if !self.queue(endpoint).poll_limit_reached() {
            return Ok(false);
        }
        self.flow_control(endpoint).handle_limit_reached();
        self.poll(endpoint)?;
        Ok(true)
    }

    /// A dying process leaves messages behind. While they are retrieved it is no different from one that is slow, so
    /// only what comes then is modelled here.
    fn restart(&mut self, endpoint: usize, takes: bool) -> bool {
        let Some(channel) = self.map.routes.iter().position(|route| route.from == endpoint) else { return false };
        let Route { to, from_index, reverse, .. } = self.map.routes[channel];
        if !self.channels[channel].arrived.is_empty() {
            return false;
        }
        let abandoned = takes && self.queue(to).take(from_index);
        if takes && !abandoned {
            return false;
        }
        let layout = self.map.layout.clone();
        self.flow_control(to).reset(from_index);
        if !self.has_fault(Fault::NobodyForgets) {
            self.queue(to).forget(from_index);
        }
        self.endpoints[endpoint] = Rc::new(layout.flow_control(endpoint));
        self.queues[endpoint] = Rc::new(layout.queues(endpoint));
        self.channels[channel] = Rc::default();
        self.channels[reverse] = Rc::default();
        for (flow, &of) in self.map.flows.iter().enumerate() {
            if of == channel || of == reverse {
                (self.senders[flow].waiting, self.senders[flow].part) = (0, 0);
            }
        }
        true
    }
}

/// One line: every endpoint, then every channel.
impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for endpoint in 0..self.endpoints.len() {
            write!(f, "[{endpoint}] {} ", self.inspect(endpoint))?;
        }
        for (route, channel) in self.map.routes.iter().zip(&self.channels) {
            let (posted, taken) =
                (self.queues[route.to].posted(route.from_index), self.queues[route.to].taken(route.from_index));
            let Channel { frames, in_network, arrived, .. } = &**channel;
            write!(f, " {}→{}: posted {posted} taken {taken}", route.from, route.to)?;
            write!(f, " unaccepted {frames:?} network {in_network:?} arrived {arrived:?};")?;
        }
        write!(f, " {:?}", self.senders)
    }
}
