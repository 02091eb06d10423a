//! Receivers with a pool each, and senders. Between a sender and its receiver is a network that keeps the order of
//! packets, and one for answers in the other direction.

use crate::world::Mixer;
use std::collections::VecDeque;
use std::fmt;
use std::hash::{Hash, Hasher};
use tidegate_flow::{Arrived, PeerId, SlotPool, Speculation};

/// Something wrong on purpose: a rule left out, to see that the checker notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Invitations are lost on their way.
    InvitationsVanish,
    /// A receiver does not look at the numbers of packets.
    NumbersIgnored,
    /// A packet is put into the mailbox though there is no slot for it.
    NeverRefused,
    /// Slots that come free go to packets that come, though senders are marked.
    MarksPassedOver,
    /// Slots are not given back.
    NothingFreed,
    /// Slots that are kept for a sender that computes are not taken back.
    NeverRevoked,
    /// Slots that are kept for a sender that has died are not taken back.
    NobodyForgets,
}

/// The two ends, and how many packets there will be.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    pub from: usize,
    pub to: usize,
    pub packets: u8,
}

#[derive(Clone, Debug)]
pub struct Layout {
    pub endpoints: usize,
    pub slots: u32,
    /// The largest window of a sender.
    pub window: u32,
    pub flows: Vec<Flow>,
    /// The flow whose sender computes for ever from some moment on: its adapter sends nothing more.
    pub computes: Option<usize>,
    /// The flow whose sender dies at some moment and comes back as new.
    pub restarts: Option<usize>,
    pub fault: Option<Fault>,
}

impl Layout {
    pub fn new(endpoints: usize, slots: u32, window: u32) -> Self {
        Layout { endpoints, slots, window, flows: Vec::new(), computes: None, restarts: None, fault: None }
    }

    pub fn flow(mut self, from: usize, to: usize, packets: u8) -> Self {
        self.flows.push(Flow { from, to, packets });
        self
    }

    pub fn computes(mut self, flow: usize) -> Self {
        self.computes = Some(flow);
        self
    }

    pub fn restarts(mut self, flow: usize) -> Self {
        self.restarts = Some(flow);
        self
    }

    pub fn fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// The place of a flow's sender in its receiver's table.
    pub fn peer(&self, flow: usize) -> PeerId {
        PeerId(self.flows[flow].from as u32)
    }
}

/// A receiver's answer to a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    Refused(u16),
    Accepted(u16),
    Invited(u32),
}

/// A flow's way from its sender to its receiver.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Channel {
    /// Packets that the program has still to send.
    pub left: u8,
    /// The adapter of the sender; a packet is its number in the flow.
    pub queue: Speculation<u8>,
    /// Packets in the network: number for the adapter, packets behind, number in the flow.
    pub network: VecDeque<(u16, u32, u8)>,
    pub answers: VecDeque<Answer>,
    /// The packet of the flow that is retrieved next.
    pub next: u8,
    pub computes: bool,
    pub has_died: bool,
    /// Grants of each other flow to the same receiver since this one was marked.
    pub passed_over: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The program of a flow sends a packet.
    Send(usize),
    /// The sender's adapter puts a packet into the network.
    Transmit(usize),
    /// The packet that is first in the network arrives.
    Arrive(usize),
    /// The answer that is first on its way arrives.
    Hear(usize),
    /// An endpoint retrieves the packet that came first.
    Retrieve(usize),
    /// An endpoint takes back what it has kept for long.
    Revoke(usize),
    /// The sender of a flow begins to compute.
    Compute(usize),
    /// The sender of a flow dies, and another begins.
    Restart(usize),
}

#[derive(Clone, Debug)]
pub struct World {
    pub layout: Layout,
    pub pools: Vec<SlotPool>,
    /// The flow and the number of each packet in an endpoint's mailbox.
    pub mailboxes: Vec<VecDeque<(usize, u8)>>,
    pub channels: Vec<Channel>,
}

impl World {
    pub fn new(layout: Layout) -> Self {
        let channel = |flow: &Flow| Channel {
            left: flow.packets,
            queue: Speculation::new(layout.window),
            network: VecDeque::new(),
            answers: VecDeque::new(),
            next: 0,
            computes: false,
            has_died: false,
            passed_over: vec![0; layout.flows.len()],
        };
        World {
            pools: vec![SlotPool::new(layout.endpoints as u32, layout.slots); layout.endpoints],
            mailboxes: vec![VecDeque::new(); layout.endpoints],
            channels: layout.flows.iter().map(channel).collect(),
            layout,
        }
    }

    pub fn fingerprint(&self) -> u64 {
        let mut mixer = Mixer::default();
        (&self.pools, &self.mailboxes, &self.channels).hash(&mut mixer);
        mixer.finish()
    }

    pub fn has_fault(&self, fault: Fault) -> bool {
        self.layout.fault == Some(fault)
    }

    pub fn actions(&self) -> Vec<Action> {
        let flows = 0..self.channels.len();
        let of_flows = flows
            .flat_map(|flow| [Action::Send(flow), Action::Transmit(flow), Action::Arrive(flow), Action::Hear(flow)]);
        let of_endpoints =
            (0..self.layout.endpoints).flat_map(|endpoint| [Action::Retrieve(endpoint), Action::Revoke(endpoint)]);
        let computes = self.layout.computes.map(Action::Compute);
        of_flows.chain(of_endpoints).chain(computes).chain(self.layout.restarts.map(Action::Restart)).collect()
    }

    /// Takes the step if it is possible, and says whether it was.
    pub fn step(&mut self, action: Action) -> Result<bool, String> {
        match action {
            Action::Send(flow) => Ok(self.send(flow)),
            Action::Transmit(flow) => Ok(self.transmit(flow)),
            Action::Arrive(flow) => self.arrive(flow),
            Action::Hear(flow) => Ok(self.hear(flow)),
            Action::Retrieve(endpoint) => self.retrieve(endpoint),
            Action::Revoke(endpoint) => Ok(self.revoke(endpoint)),
            Action::Compute(flow) => Ok(!std::mem::replace(&mut self.channels[flow].computes, true)),
            Action::Restart(flow) => Ok(self.restart(flow)),
        }
    }

    fn send(&mut self, flow: usize) -> bool {
        let all = self.layout.flows[flow].packets;
        let channel = &mut self.channels[flow];
        if channel.left == 0 || channel.computes {
            return false;
        }
        channel.queue.push(all - channel.left);
        channel.left -= 1;
        true
    }

    fn transmit(&mut self, flow: usize) -> bool {
        let channel = &mut self.channels[flow];
        if channel.computes {
            return false;
        }
        let Some((number, behind, &packet)) = channel.queue.next_to_send() else { return false };
        channel.queue.note_sent();
        channel.network.push_back((number, behind, packet));
        true
    }

    fn arrive(&mut self, flow: usize) -> Result<bool, String> {
        let Some((number, behind, packet)) = self.channels[flow].network.pop_front() else { return Ok(false) };
        let (to, peer) = (self.layout.flows[flow].to, self.layout.peer(flow));
        let is_marked = |world: &World, flow| world.pools[to].is_marked(world.layout.peer(flow));
        let others = self.others(flow);
        let (was_kept, were_marked) =
            (self.pools[to].kept_for(peer) > 0, others.iter().any(|&other| is_marked(self, other)));
        let arrived = match self.layout.fault {
            Some(Fault::NumbersIgnored) => {
                let expected = self.pools[to].expected(peer);
                self.pools[to].handle_arrival(peer, expected, behind)
            }
            Some(Fault::NeverRefused) => Arrived::Accepted,
            Some(Fault::MarksPassedOver) if self.mailboxes[to].len() < self.layout.slots as usize => Arrived::Accepted,
            _ => self.pools[to].handle_arrival(peer, number, behind),
        };
        match arrived {
            Arrived::Accepted if were_marked && !was_kept => {
                return Err(format!("a packet of flow {flow} has passed those of senders that are marked"));
            }
            Arrived::Accepted => {
                self.mailboxes[to].push_back((flow, packet));
                self.channels[flow].answers.push_back(Answer::Accepted(number.wrapping_add(1)));
            }
            Arrived::Refused => {
                self.channels[flow].passed_over.fill(0);
                self.channels[flow].answers.push_back(Answer::Refused(number));
            }
            Arrived::Dropped => {}
        }
        self.invite(to);
        Ok(true)
    }

    /// The other flows to the same receiver.
    pub fn others(&self, flow: usize) -> Vec<usize> {
        let to = self.layout.flows[flow].to;
        (0..self.channels.len()).filter(|&other| other != flow && self.layout.flows[other].to == to).collect()
    }

    /// Tells those that are invited.
    fn invite(&mut self, endpoint: usize) {
        while let Some((peer, slots)) = self.pools[endpoint].poll_invitation() {
            let is_it = |flow: &Flow| (flow.to, flow.from) == (endpoint, peer.0 as usize);
            let Some(flow) = self.layout.flows.iter().position(is_it) else { continue };
            for other in self.others(flow) {
                if self.pools[endpoint].is_marked(self.layout.peer(other)) {
                    self.channels[other].passed_over[flow] += 1;
                }
            }
            if !self.has_fault(Fault::InvitationsVanish) {
                self.channels[flow].answers.push_back(Answer::Invited(slots));
            }
        }
    }

    fn hear(&mut self, flow: usize) -> bool {
        let channel = &mut self.channels[flow];
        match channel.answers.pop_front() {
            Some(Answer::Accepted(before)) => _ = channel.queue.handle_accepted(before),
            Some(Answer::Refused(number)) => _ = channel.queue.handle_refused(number),
            Some(Answer::Invited(slots)) => channel.queue.handle_invited(slots),
            None => return false,
        }
        true
    }

    fn retrieve(&mut self, endpoint: usize) -> Result<bool, String> {
        let Some((flow, packet)) = self.mailboxes[endpoint].pop_front() else { return Ok(false) };
        let channel = &mut self.channels[flow];
        if packet != channel.next {
            return Err(format!("order of flow {flow}: {packet} came, {} was expected", channel.next));
        }
        channel.next += 1;
        if !self.has_fault(Fault::NothingFreed) {
            self.pools[endpoint].note_retrieved(1);
            self.invite(endpoint);
        }
        Ok(true)
    }

    fn revoke(&mut self, endpoint: usize) -> bool {
        if self.has_fault(Fault::NeverRevoked) || self.pools[endpoint].revoke().is_none() {
            return false;
        }
        self.invite(endpoint);
        true
    }

    /// A process dies, and what it has sent arrives and is retrieved before another takes its place.
    fn restart(&mut self, flow: usize) -> bool {
        let to = self.layout.flows[flow].to;
        let is_here = self.mailboxes[to].iter().any(|&(of, _)| of == flow);
        if self.channels[flow].has_died || is_here || !self.channels[flow].network.is_empty() {
            return false;
        }
        if !self.has_fault(Fault::NobodyForgets) {
            let peer = self.layout.peer(flow);
            self.pools[to].forget(peer);
            self.invite(to);
        }
        let new = World::new(self.layout.clone());
        self.channels[flow] = Channel { has_died: true, ..new.channels[flow].clone() };
        true
    }
}

/// One line: pools and what is in them, then channels.
impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?} {:?}", self.pools, self.mailboxes, self.channels)
    }
}
