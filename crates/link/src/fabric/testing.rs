//! A simulated network of a few nodes, which loses, repeats and reorders as a seed says, and contacts for tests.

use super::contact::Contact;
use super::network::{LowerAddress, Network, NetworkEvent, Route, Sending, Token};
use crate::shm::Address;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// The contact of an endpoint with this id, on this host. Its node is its id.
pub(super) fn contact(id: u64, boot: u64, slots: u32) -> Contact {
    let mut bytes = [0; Address::BYTES];
    bytes[..3].copy_from_slice(b"TG3");
    bytes[4..12].copy_from_slice(&boot.to_le_bytes());
    bytes[16..20].copy_from_slice(&(id as u32).to_le_bytes());
    (bytes[26], bytes[27], bytes[30]) = (2 | 0x80, slots as u8, 2);
    bytes[32..40].copy_from_slice(&id.to_le_bytes());
    let address = Address::from_bytes(&bytes).expect("an address");
    Contact { address, lower: LowerAddress::new(&[id as u8]).expect("short") }
}

/// A random number generator: the same seed, the same run.
#[derive(Debug)]
pub(super) struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    /// Whether it happens, of a thousand times.
    pub fn happens(&mut self, of_a_thousand: u64) -> bool {
        self.below(1000) < of_a_thousand
    }
}

/// What the network does wrong, of a thousand batches each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    pub lost: u64,
    pub repeated: u64,
    pub reordered: u64,
    /// The connection breaks: all that is on its way between two nodes is lost, and told for some of it only.
    pub broken: u64,
    /// It does not take the batch now.
    pub again: u64,
}

#[derive(Debug)]
enum Event {
    Received(Vec<u8>),
    Sent(Token),
    Failed(Token),
}

#[derive(Debug, Default)]
struct Node {
    /// What has come and not been told: from whom, and what.
    events: VecDeque<(usize, Event)>,
    is_gone: bool,
}

#[derive(Debug)]
pub(super) struct World {
    nodes: Vec<Node>,
    pub faults: Faults,
    random: Random,
    /// Batches that ever were on their way at once.
    pub most: usize,
}

impl World {
    pub fn new(nodes: usize, seed: u64) -> Rc<RefCell<World>> {
        let nodes = (0..nodes).map(|_| Node::default()).collect();
        let random = Random(seed | 1);
        Rc::new(RefCell::new(World { nodes, faults: Faults::default(), random, most: 0 }))
    }

    /// The process of a node ends.
    pub fn kill(&mut self, node: usize) {
        self.nodes[node].is_gone = true;
        self.nodes[node].events.clear();
    }

    fn push(&mut self, node: usize, from: usize, event: Event) {
        let is_reordered = self.random.happens(self.faults.reordered);
        let events = &mut self.nodes[node].events;
        let at = if is_reordered { self.random.below(events.len() as u64 + 1) as usize } else { events.len() };
        events.insert(at, (from, event));
        self.most = self.most.max(events.len());
    }

    /// All that is on its way between two nodes is lost.
    fn break_between(&mut self, one: usize, other: usize) {
        for (node, from) in [(one, other), (other, one)] {
            let (kept, lost): (VecDeque<_>, VecDeque<_>) = self.nodes[node]
                .events
                .drain(..)
                .partition(|(source, event)| *source != from || !matches!(event, Event::Received(_)));
            drop(lost);
            self.nodes[node].events = kept;
        }
    }
}

/// One node's network. Nodes are told by the only byte of their address.
#[derive(Debug)]
pub(super) struct SimNetwork {
    pub me: usize,
    pub world: Rc<RefCell<World>>,
    pub received: Vec<u8>,
}

impl Network for SimNetwork {
    fn address(&self) -> LowerAddress {
        LowerAddress::new(&[self.me as u8]).expect("short")
    }

    fn resolve(&mut self, address: &LowerAddress) -> Result<Route, String> {
        let node = u64::from(address.as_bytes()[0]);
        let is_there = (node as usize) < self.world.borrow().nodes.len();
        if is_there { Ok(Route(node)) } else { Err(format!("there is no node {node}")) }
    }

    fn forget(&mut self, _: Route) {}

    fn send(&mut self, to: Route, token: Token, batch: &[u8]) -> Sending {
        let (mut world, to) = (self.world.borrow_mut(), to.0 as usize);
        let faults = world.faults;
        if world.nodes[to].is_gone || world.random.happens(faults.again) {
            return Sending::Again;
        }
        if world.random.happens(faults.broken) {
            world.break_between(self.me, to);
            if world.random.happens(500) {
                world.push(self.me, self.me, Event::Failed(token));
                return Sending::Taken;
            }
        } else if !world.random.happens(faults.lost) {
            world.push(to, self.me, Event::Received(batch.to_vec()));
            if world.random.happens(faults.repeated) {
                world.push(to, self.me, Event::Received(batch.to_vec()));
            }
        }
        world.push(self.me, self.me, Event::Sent(token));
        Sending::Taken
    }

    fn poll(&mut self) -> Option<NetworkEvent<'_>> {
        let (_, event) = self.world.borrow_mut().nodes[self.me].events.pop_front()?;
        Some(match event {
            Event::Received(batch) => {
                self.received = batch;
                NetworkEvent::Received(&self.received)
            }
            Event::Sent(token) => NetworkEvent::Sent(token),
            Event::Failed(token) => NetworkEvent::Failed(token, "the connection broke".into()),
        })
    }

    fn is_refused(&mut self, route: Route) -> Option<bool> {
        Some(self.world.borrow().nodes[route.0 as usize].is_gone)
    }
}
