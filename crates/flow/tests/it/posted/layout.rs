//! What a world of posted buffers is made of.

use std::time::Duration;
use tidegate_flow::{Buffers, Config, FlowControl, ReceiveQueues, SchemeName};

/// One direction of messages between two endpoints.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    pub from: usize,
    pub to: usize,
    /// Messages it will ever send; `None` = it always has one.
    pub messages: Option<u8>,
}

/// Who refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// The writer looks at the receiver's counts and is refused as it writes, as over shared memory; the packet stays
    /// with the caller.
    AtOnce,
    /// The receiver's adapter refuses what arrives, and the sender's adapter sends it again, as in the simulator and
    /// between hosts.
    Late,
}

/// Something wrong on purpose, to see that the checker notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Credit packets disappear on their way.
    CreditPacketsVanish,
    /// Processed buffers are not posted again.
    NobodyPosts,
    /// What a dead writer took is not posted again.
    NobodyForgets,
}

/// What a world is made of.
#[derive(Clone, Debug)]
pub struct Layout {
    pub scheme: SchemeName,
    pub carrier: Carrier,
    pub endpoints: usize,
    pub buffers: Buffers,
    pub piggyback: bool,
    pub flows: Vec<Flow>,
    /// Packets of each message.
    pub message_packets: u8,
    /// Messages that may wait for one peer.
    pub backlog: u8,
    /// An endpoint, with a single peer, that dies and comes back as new again and again.
    pub restarts: Option<usize>,
    pub fault: Option<Fault>,
}

impl Layout {
    /// Endpoints with messages of one packet and buffers of one packet, and no traffic yet.
    pub fn new(scheme: SchemeName, carrier: Carrier, endpoints: usize) -> Self {
        let buffers = Buffers { packets: 1, retry_timer: Duration::from_micros(10), ..Buffers::of(scheme) };
        Layout {
            scheme,
            carrier,
            endpoints,
            buffers,
            piggyback: true,
            flows: Vec::new(),
            message_packets: 1,
            backlog: 1,
            restarts: None,
            fault: None,
        }
    }

    /// So many buffers for each connection at the start.
    pub fn each(mut self, buffers: u32) -> Self {
        self.buffers.per_connection = buffers;
        self.buffers.per_connection_most = self.buffers.per_connection_most.max(buffers);
        self
    }

    /// Under `growing`, buffers per peer at most.
    pub fn most(mut self, buffers: u32) -> Self {
        self.buffers.per_connection_most = buffers;
        self
    }

    pub fn threshold(mut self, credits: u32) -> Self {
        self.buffers.credit_threshold = credits;
        self
    }

    /// A pool of `first` buffers that may come to be `most`.
    pub fn pool(mut self, first: u32, most: u32, refusals_most: u32) -> Self {
        (self.buffers.pool_first, self.buffers.pool_most, self.buffers.refusals_most) = (first, most, refusals_most);
        self
    }

    /// Reviews of quiet connections are as rare as can be, so that they do not become rarer: fewer states.
    pub fn rarest(mut self) -> Self {
        self.buffers.quiet_after = Some(Duration::from_secs(1 << 20));
        self
    }

    /// Messages and buffers of several packets.
    pub fn packets(mut self, of_message: u8, of_buffer: u32) -> Self {
        (self.message_packets, self.buffers.packets) = (of_message, of_buffer);
        self
    }

    pub fn without_piggyback(mut self) -> Self {
        self.piggyback = false;
        self
    }

    /// `from` always has a message for `to`.
    pub fn flow(mut self, from: usize, to: usize) -> Self {
        self.flows.push(Flow { from, to, messages: None });
        self
    }

    /// `from` has `messages` messages for `to`, then falls silent.
    pub fn burst(mut self, from: usize, to: usize, messages: u8) -> Self {
        self.flows.push(Flow { from, to, messages: Some(messages) });
        self
    }

    /// So many messages may wait for one peer.
    pub fn backlog(mut self, messages: u8) -> Self {
        self.backlog = messages;
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
    pub fn peers(&self, endpoint: usize) -> Vec<usize> {
        let is_pair =
            |flow: &Flow, other| (flow.from, flow.to) == (endpoint, other) || (flow.to, flow.from) == (endpoint, other);
        (0..self.endpoints).filter(|&other| self.flows.iter().any(|flow| is_pair(flow, other))).collect()
    }

    fn config(&self, endpoint: usize) -> Config {
        let plain = Config::new(self.scheme, self.peers(endpoint).len() as u32, 1, 0);
        Config { piggyback: self.piggyback, buffers: self.buffers, ..plain }
    }

    /// A new endpoint's flow control.
    pub fn flow_control(&self, endpoint: usize) -> FlowControl {
        FlowControl::new(&self.config(endpoint)).expect("a legal configuration")
    }

    /// A new endpoint's posted buffers.
    pub fn queues(&self, endpoint: usize) -> ReceiveQueues {
        let Config { scheme, peers, buffers, .. } = self.config(endpoint);
        ReceiveQueues::new(scheme, peers, &buffers).expect("a scheme that posts buffers")
    }
}
