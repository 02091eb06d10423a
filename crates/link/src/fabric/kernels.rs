//! Kernels of a simulated network's nodes, as far as they have connections that nobody uses: each port has a queue of
//! those that its process has not accepted, and what finds it full is not answered.

use super::network::{Answer, Probe, ProbeTarget};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

/// A port, and the host behind it.
#[derive(Clone, Copy, Debug)]
struct Port {
    host: u8,
    /// Connections that its queue has room for.
    queue_most: usize,
    /// Places of the queue that strangers' connections take.
    strangers: usize,
    /// Connections of ours that have ended and still wait there.
    ended: usize,
    is_closed: bool,
    /// What the provider below sends to it is not taken until its process makes progress.
    is_cut: bool,
    /// Its process closes connections that say nothing, once it accepts them.
    closes: bool,
}

/// A host.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Host {
    /// It has no power, or its network is cut.
    pub is_off: bool,
    /// Its firewall drops what comes to other ports than its process's.
    pub has_firewall: bool,
    /// Its neighbours say that it is not there.
    pub is_unreachable: bool,
}

#[derive(Clone, Copy, Debug)]
struct Connection {
    from: usize,
    to: usize,
    target: ProbeTarget,
    is_taken: bool,
    is_accepted: bool,
    is_ended: bool,
    /// The process has said its name.
    is_named: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Kernels {
    ports: Vec<Port>,
    pub hosts: HashMap<u8, Host>,
    connections: HashMap<u64, Connection>,
    number: u64,
    /// Connections that were ever tried, by target.
    pub tried: [u64; 2],
    /// The most that one port's queue ever had, and that one node ever had at a time.
    pub queue_peak: usize,
    pub held_peak: usize,
    /// The most questions that one node ever had at one host.
    pub questions_peak: usize,
    /// No node can make more than this.
    pub descriptors: usize,
    /// Processes say their names to those who connect, and close the connections.
    pub say_names: bool,
}

impl Kernels {
    pub fn new(nodes: usize) -> Kernels {
        let (queue_most, strangers, ended, is_closed, is_cut, closes) = (128, 0, 0, false, false, false);
        let port = |host| Port { host, queue_most, strangers, ended, is_closed, is_cut, closes };
        Kernels {
            ports: (0..nodes).map(|node| port(node as u8)).collect(),
            hosts: HashMap::new(),
            connections: HashMap::new(),
            number: 0,
            tried: [0; 2],
            queue_peak: 0,
            held_peak: 0,
            questions_peak: 0,
            descriptors: usize::MAX,
            say_names: false,
        }
    }

    pub fn host_of(&self, node: usize) -> IpAddr {
        IpAddr::from(Ipv4Addr::new(10, 0, 0, self.ports[node].host))
    }

    /// The number by which a node's process is told from others at its port.
    pub fn name_of(&self, node: usize) -> u64 {
        7_000_000 + node as u64
    }

    /// Puts a node on the host of another.
    pub fn move_to_host(&mut self, node: usize, host: u8) {
        self.ports[node].host = host;
    }

    /// A node's port has such a queue, of which strangers have so many places.
    pub fn set_queue(&mut self, node: usize, most: usize, strangers: usize) {
        (self.ports[node].queue_most, self.ports[node].strangers) = (most, strangers);
    }

    /// The connections of the provider below to a node end, and the next needs its process.
    pub fn cut(&mut self, node: usize) {
        self.ports[node].is_cut = true;
    }

    pub fn is_cut(&self, node: usize) -> bool {
        let host = self.host(node);
        self.ports[node].is_cut || host.is_off || host.is_unreachable
    }

    /// From now on a node's process closes what it accepts.
    pub fn close_accepted(&mut self, node: usize) {
        self.ports[node].closes = true;
    }

    pub fn end_process(&mut self, node: usize) {
        self.ports[node].is_closed = true;
        self.end_connections(node);
    }

    /// All connections that a node's port has taken end: its process or its host has, or keepalive has given up.
    pub fn end_connections(&mut self, node: usize) {
        let theirs = self.connections.values_mut().filter(|one| one.to == node && one.is_taken);
        theirs.for_each(|one| one.is_ended = true);
    }

    /// How many connections there are.
    pub fn held(&self) -> usize {
        self.connections.len()
    }

    /// Connections that a node has to targets of this kind.
    fn held_by(&self, node: usize, target: ProbeTarget) -> usize {
        self.connections.values().filter(|one| one.from == node && one.target == target).count()
    }

    fn host(&self, node: usize) -> Host {
        self.hosts.get(&self.ports[node].host).copied().unwrap_or_default()
    }

    fn queued(&self, node: usize) -> usize {
        let own = self.connections.values().filter(|one| one.to == node && one.is_taken && !one.is_accepted).count();
        self.ports[node].strangers + self.ports[node].ended + own
    }

    /// A node's process makes progress: it accepts all that waits.
    pub fn accept(&mut self, node: usize) {
        let port = &mut self.ports[node];
        (port.strangers, port.ended, port.is_cut) = (0, 0, false);
        let (closes, says_name) = (port.closes, self.say_names);
        for one in self.connections.values_mut().filter(|one| one.to == node && one.is_taken) {
            one.is_accepted = true;
            one.is_ended |= closes;
            one.is_named |= says_name;
        }
    }

    pub fn probe(&mut self, from: usize, to: usize, target: ProbeTarget) -> Result<Probe, Answer> {
        if self.held_by(from, ProbeTarget::Peer) + self.held_by(from, ProbeTarget::Host) >= self.descriptors {
            return Err(Answer::Lacking("too many open files".into()));
        }
        self.number += 1;
        self.tried[target as usize] += 1;
        let one =
            Connection { from, to, target, is_taken: false, is_accepted: false, is_ended: false, is_named: false };
        self.connections.insert(self.number, one);
        self.held_peak = self.held_peak.max(self.held_by(from, ProbeTarget::Peer));
        let host = self.host_of(to);
        let of_host =
            |one: &&Connection| one.from == from && one.target == ProbeTarget::Host && self.host_of(one.to) == host;
        self.questions_peak = self.questions_peak.max(self.connections.values().filter(of_host).count());
        Ok(Probe(self.number))
    }

    pub fn answer(&mut self, Probe(number): Probe) -> Answer {
        let one = self.connections[&number];
        let (port, host) = (self.ports[one.to], self.host(one.to));
        match one {
            Connection { is_named: true, .. } => return Answer::Named(self.name_of(one.to)),
            Connection { is_ended: true, .. } => return Answer::Ended,
            Connection { is_taken: true, .. } => return Answer::Taken,
            _ if host.is_unreachable => return Answer::Unreachable("no route to host".into()),
            _ if host.is_off => return Answer::None,
            Connection { target: ProbeTarget::Host, .. } => {
                return if host.has_firewall { Answer::None } else { Answer::Refused };
            }
            _ if port.is_closed => return Answer::Refused,
            _ if self.queued(one.to) >= port.queue_most => return Answer::None,
            _ => {}
        }
        if let Some(one) = self.connections.get_mut(&number) {
            one.is_taken = true;
        }
        self.queue_peak = self.queue_peak.max(self.queued(one.to));
        Answer::Taken
    }

    /// What is closed waits in the queue all the same.
    pub fn close(&mut self, Probe(number): Probe) {
        let one = self.connections.remove(&number).expect("a connection is closed once");
        self.ports[one.to].ended += usize::from(one.is_taken && !one.is_accepted);
    }
}
