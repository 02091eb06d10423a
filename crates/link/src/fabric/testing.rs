//! A simulated network of a few nodes, which loses, repeats and reorders as a seed says, and contacts for tests. Memory
//! is read when the reader polls; when a connection breaks, a read ends with an error and has written rubbish before.

use super::contact::Contact;
use super::kernels::Kernels;
use super::network::{Answer, LowerAddress, Network, NetworkEvent, Probe, ProbeTarget, Route, Sending, Token, Watched};
use super::peer::OUTSTANDING_MOST;
use super::wire::{Kind, SHORT_BATCH_BYTES};
use crate::memory::IoBuffer;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use tidegate_flow::{Config, SchemeName};
use tidegate_message::{Buffer, RemoteMemory, Span};

/// The contact of an endpoint with this number, on this host. Its node is its number.
pub(super) fn contact(number: u64, host: u64, slots: u32) -> Contact {
    let flow = Config { piggyback: true, ..Config::new(SchemeName::Static, 4, slots, 2) };
    Contact::example(number, host, &flow, LowerAddress::new(&[number as u8]).expect("short"))
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
    /// A read fails.
    pub unread: u64,
    /// The sending is taken, and fails.
    pub failed: u64,
    /// There is no buffer.
    pub no_buffer: u64,
}

#[derive(Debug)]
enum Event {
    Received(Vec<u8>),
    /// To whom.
    Sent(Token, usize),
    Failed(Token, usize),
    Reading(Reading),
}

/// A read that has not ended.
#[derive(Debug)]
struct Reading {
    token: Token,
    from: RemoteMemory,
    into: IoBuffer,
    is_broken: bool,
}

#[derive(Debug, Default)]
struct Node {
    /// What has come and not been told: from whom, and what.
    events: VecDeque<(usize, Event)>,
    is_gone: bool,
    /// It serves no reads now.
    computes: bool,
    /// It takes nothing off its connections: sendings to it do not end.
    takes_nothing: bool,
    /// How often it has made a node known to its network, and not made it forget it.
    known: HashMap<usize, u32>,
    /// Sendings by it that have not ended, by the node that they go to.
    outstanding: HashMap<usize, u32>,
    exposed: HashMap<u64, IoBuffer>,
    /// Where it was told that the kernels of others may be asked for them.
    watched: HashMap<usize, SocketAddr>,
}

/// Bits of an address below the number of its piece.
const PIECE_BITS: u32 = 57;

#[derive(Debug)]
pub(super) struct World {
    nodes: Vec<Node>,
    pub faults: Faults,
    random: Random,
    /// Batches that ever were on their way at once.
    pub most: usize,
    /// Sendings that were tried.
    pub tried: u64,
    /// Of the batches that will be sent from now on, those of packets that are lost.
    pub lose_packets: u32,
    /// What the nodes' kernels do with connections that nobody uses.
    pub kernels: Kernels,
    /// What is wrong, probably, where nobody answers.
    pub doubt: Option<String>,
    /// Sendings to hosts that are cut off end well, and those to processes that have ended are taken and never end;
    /// kernels are asked by another network, at the places that are told.
    pub tells_nothing: bool,
}

impl World {
    pub fn new(nodes: usize, seed: u64) -> Rc<RefCell<World>> {
        let (kernels, random) = (Kernels::new(nodes), Random(seed | 1));
        let nodes = (0..nodes).map(|_| Node::default()).collect();
        let (faults, most, tried, lose_packets, doubt) = (Faults::default(), 0, 0, 0, None);
        let tells_nothing = false;
        let world = World { nodes, faults, random, most, tried, lose_packets, kernels, doubt, tells_nothing };
        Rc::new(RefCell::new(world))
    }

    /// The process of a node ends.
    pub fn kill(&mut self, node: usize) {
        self.nodes[node].is_gone = true;
        self.kernels.end_process(node);
        self.nodes[node].events.clear();
    }

    /// The process of a node computes, or does no longer.
    pub fn compute(&mut self, node: usize, computes: bool) {
        self.nodes[node].computes = computes;
    }

    /// A node takes nothing off its connections, or does again.
    pub fn stop_taking(&mut self, node: usize, takes_nothing: bool) {
        self.nodes[node].takes_nothing = takes_nothing;
    }

    /// Reads of a node that have not ended.
    pub fn reads_of(&self, node: usize) -> usize {
        self.nodes[node].events.iter().filter(|(_, event)| matches!(event, Event::Reading(_))).count()
    }

    /// How many pieces of memory a node exposes.
    pub fn exposed_by(&self, node: usize) -> usize {
        self.nodes[node].exposed.len()
    }

    /// Ends a read of a node's memory. Returns whether all is in place.
    fn read(&mut self, node: usize, reading: &mut Reading) -> bool {
        let (from, into) = (reading.from.span, &mut reading.into);
        let exposed = self.nodes[node].exposed.get(&reading.from.key);
        let (number, at) = ((from.address >> PIECE_BITS) as usize, from.address & ((1 << PIECE_BITS) - 1));
        let spans: Vec<Span> = exposed.iter().flat_map(|memory| memory.spans()).collect();
        let before: u64 = spans.iter().take(number).map(|span| span.length).sum();
        let is_inside = spans.get(number).is_some_and(|span| at + from.length <= span.length);
        let is_broken = reading.is_broken || self.nodes[node].is_gone || self.random.happens(self.faults.unread);
        let (Some(memory), true, false) = (exposed, is_inside, is_broken) else {
            into.write(0, &vec![0xee; into.len() / 2]);
            return false;
        };
        let mut bytes = vec![0; from.length as usize];
        memory.read((before + at) as usize, &mut bytes);
        into.write(0, &bytes);
        true
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
            for (target, event) in &mut self.nodes[node].events {
                if let Event::Reading(reading) = event {
                    reading.is_broken |= *target == from;
                }
            }
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
        let mut world = self.world.borrow_mut();
        if node as usize >= world.nodes.len() {
            return Err(format!("there is no node {node}"));
        }
        *world.nodes[self.me].known.entry(node as usize).or_default() += 1;
        Ok(Route(node))
    }

    fn doubt(&self, _: &LowerAddress) -> Option<String> {
        self.world.borrow().doubt.clone()
    }

    fn forget(&mut self, route: Route) {
        let (mut world, node) = (self.world.borrow_mut(), route.0 as usize);
        let known = world.nodes[self.me].known.get_mut(&node).filter(|known| **known > 0).expect("it is known");
        *known -= 1;
        if *known == 0 {
            let outstanding = world.nodes[self.me].outstanding.get(&node).copied();
            assert_eq!(outstanding.unwrap_or(0), 0, "no sending to it is under way");
        }
    }

    /// So that long messages take several.
    fn longest_batch(&self) -> usize {
        SHORT_BATCH_BYTES
    }

    fn send(&mut self, to: Route, token: Token, batch: &[u8]) -> Sending {
        let (mut world, to) = (self.world.borrow_mut(), to.0 as usize);
        assert!(world.nodes[self.me].known.get(&to).is_some_and(|known| *known > 0), "it is known");
        let faults = world.faults;
        world.tried += 1;
        let is_taken = world.tells_nothing || !(world.nodes[to].is_gone || world.kernels.is_cut(to));
        if !is_taken || world.random.happens(faults.again) {
            return Sending::Again;
        }
        if world.random.happens(faults.no_buffer) {
            return Sending::NoBuffer;
        }
        let outstanding = world.nodes[self.me].outstanding.entry(to).or_default();
        *outstanding += 1;
        assert!(*outstanding <= OUTSTANDING_MOST + 1, "one peer does not use up the buffers of all");
        if world.nodes[to].is_gone && world.tells_nothing {
            return Sending::Taken;
        }
        if world.random.happens(faults.failed) {
            world.push(self.me, self.me, Event::Failed(token, to));
            return Sending::Taken;
        }
        if batch[4] == Kind::Packets as u8 && world.lose_packets > 0 {
            world.lose_packets -= 1;
            world.push(self.me, self.me, Event::Sent(token, to));
            return Sending::Taken;
        }
        if world.random.happens(faults.broken) {
            world.break_between(self.me, to);
            if world.random.happens(500) {
                world.push(self.me, self.me, Event::Failed(token, to));
                return Sending::Taken;
            }
        } else if !world.random.happens(faults.lost) {
            world.push(to, self.me, Event::Received(batch.to_vec()));
            if world.random.happens(faults.repeated) {
                world.push(to, self.me, Event::Received(batch.to_vec()));
            }
        }
        world.push(self.me, self.me, Event::Sent(token, to));
        Sending::Taken
    }

    fn poll(&mut self) -> Option<NetworkEvent<'_>> {
        let mut world = self.world.borrow_mut();
        world.kernels.accept(self.me);
        let is_held = |world: &World, (from, event): &(usize, Event)| match event {
            Event::Reading(reading) => !reading.is_broken && world.nodes[*from].computes && !world.nodes[*from].is_gone,
            Event::Sent(_, to) => world.nodes[*to].takes_nothing && !world.nodes[*to].is_gone,
            _ => false,
        };
        let at = world.nodes[self.me].events.iter().position(|event| !is_held(&world, event))?;
        let (from, event) = world.nodes[self.me].events.remove(at)?;
        if let Event::Sent(_, to) | Event::Failed(_, to) = &event
            && let Some(outstanding) = world.nodes[self.me].outstanding.get_mut(to)
        {
            *outstanding -= 1;
        }
        Some(match event {
            Event::Received(batch) => {
                self.received = batch;
                NetworkEvent::Received(&self.received)
            }
            Event::Sent(token, _) => NetworkEvent::Sent(token),
            Event::Failed(token, _) => NetworkEvent::Failed(token, "the connection broke".into()),
            Event::Reading(mut reading) => match world.read(from, &mut reading) {
                true => NetworkEvent::Read(reading.token),
                false => NetworkEvent::ReadFailed(reading.token, "the connection broke".into()),
            },
        })
    }

    fn reads_memory(&self) -> bool {
        true
    }

    /// Addresses are distances from the beginning of each piece.
    fn expose(&mut self, memory: &IoBuffer, pieces: &mut [Span]) -> Option<u64> {
        for (piece, number) in pieces.iter_mut().zip(0..) {
            piece.address = number << PIECE_BITS;
        }
        let mut world = self.world.borrow_mut();
        let key = world.random.below(u64::MAX >> 12) + 1;
        world.nodes[self.me].exposed.insert(key, memory.slice(0, memory.len()));
        Some(key)
    }

    fn hide(&mut self, key: u64) {
        let found = self.world.borrow_mut().nodes[self.me].exposed.remove(&key);
        assert!(found.is_some(), "a key is hidden once, by who exposed it");
    }

    fn read(&mut self, from: Route, token: Token, memory: RemoteMemory, into: IoBuffer) -> Sending {
        let (mut world, from) = (self.world.borrow_mut(), from.0 as usize);
        let faults = world.faults;
        if world.nodes[from].is_gone || world.random.happens(faults.again) {
            return Sending::Again;
        }
        if world.random.happens(faults.broken) {
            world.break_between(self.me, from);
        }
        world.push(self.me, from, Event::Reading(Reading { token, from: memory, into, is_broken: false }));
        Sending::Taken
    }

    fn watched(&self) -> Option<Watched> {
        let world = self.world.borrow();
        let at = (world.kernels.host_of(self.me), 1000 + self.me as u16).into();
        world.tells_nothing.then(|| Watched { at, name: world.kernels.name_of(self.me) })
    }

    fn watch(&mut self, route: Route, at: SocketAddr) {
        let (mut world, node) = (self.world.borrow_mut(), route.0 as usize);
        assert_eq!(at, (world.kernels.host_of(node), 1000 + node as u16).into());
        let before = world.nodes[self.me].watched.insert(node, at);
        assert_eq!(before, None, "it is told once");
    }

    fn host(&self, route: Route) -> Option<IpAddr> {
        let (world, node) = (self.world.borrow(), route.0 as usize);
        let may_ask = !world.tells_nothing || world.nodes[self.me].watched.contains_key(&node);
        may_ask.then(|| world.kernels.host_of(node))
    }

    fn probe(&mut self, route: Route, target: ProbeTarget) -> Result<Probe, Answer> {
        self.world.borrow_mut().kernels.probe(self.me, route.0 as usize, target)
    }

    fn answer(&mut self, probe: Probe) -> Answer {
        self.world.borrow_mut().kernels.answer(probe)
    }

    fn close(&mut self, probe: Probe) {
        self.world.borrow_mut().kernels.close(probe);
    }
}
