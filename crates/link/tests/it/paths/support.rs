//! An endpoint with two links, and a peer at the end of each.

use super::local_link::{LocalLink, Network};
use crate::support::{Folder, TEST_TIMEOUT};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tidegate_flow::{Config, PeerId, SchemeName};
use tidegate_link::{IoBuffer, Path, Paths, ShmConfig, ShmLink};
use tidegate_message::{
    Buffer, Completion, Context, Endpoint, EndpointConfig, Link, MatchFlags, ReadRequest, Receive, RemoteTarget, Send,
    Source, Space, Target, WriteRequest,
};

/// Memory of an application. It is never given back, so that it outlives whatever uses it.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    address: *mut u8,
    length: usize,
}

impl Memory {
    pub fn new(contents: &[u8]) -> Self {
        let bytes = Vec::leak(contents.to_vec());
        Memory { address: bytes.as_mut_ptr(), length: bytes.len() }
    }

    /// Memory that was made before.
    pub fn at(address: u64, length: usize) -> Self {
        Memory { address: address as *mut u8, length }
    }

    pub fn buffer(self) -> IoBuffer {
        // SAFETY: the memory is never given back, and tests look at it between operations only.
        unsafe { IoBuffer::from_parts(self.address, self.length) }
    }

    pub fn bytes(self) -> Vec<u8> {
        let mut bytes = vec![0; self.length];
        self.buffer().read(0, &mut bytes);
        bytes
    }
}

/// Bytes that differ.
pub fn pattern(seed: u8, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8 ^ seed).collect()
}

/// An endpoint, and what it has completed.
pub struct Party<L: Link> {
    pub endpoint: Endpoint<L>,
    pub done: Vec<Completion>,
}

impl<L: Link<Buffer = IoBuffer>> Party<L> {
    fn new(link: L, flow: Config) -> Self {
        let config = EndpointConfig {
            flow,
            eager_bytes: 2048,
            operations: 1000,
            receive_memory: 64 << 20,
            patience: Duration::ZERO,
            packets_per_progress: 16,
            bulk_bytes_per_progress: 1 << 16,
        };
        Party { endpoint: Endpoint::new(config, link).expect("a legal configuration"), done: Vec::new() }
    }

    pub fn progress(&mut self) {
        self.endpoint.progress(tidegate_link::now());
        self.done.extend(std::iter::from_fn(|| self.endpoint.poll_completion()));
    }

    pub fn send(&mut self, context: usize, to: PeerId, tag: u64, memory: Memory) {
        let (to, space, buffer) = (Target::Peer(to), Space::Tagged { tag, ignore: 0 }, memory.buffer());
        let (data, context) = (None, Context(context));
        let send = Send { to, space, buffer, data, context, inject: false, delivery: false, report: true };
        self.endpoint.send(send).expect("room");
    }

    /// From anybody, if no peer is given.
    pub fn receive(&mut self, context: usize, from: Option<PeerId>, tag: u64, memory: Memory) {
        self.post(context, from, tag, memory, MatchFlags::default());
    }

    pub fn post(&mut self, context: usize, from: Option<PeerId>, tag: u64, memory: Memory, flags: MatchFlags) {
        let from = from.map_or(Source::Any, |peer| Source::From(Target::Peer(peer)));
        let (space, buffer) = (Space::Tagged { tag, ignore: 0 }, memory.buffer());
        let context = Context(context);
        let receive = Receive { from, space, buffer, context, multi: None, flags, report: true };
        self.endpoint.receive(receive).expect("room");
    }

    pub fn write(&mut self, context: usize, to: PeerId, key: u64, offset: u64, memory: Memory) {
        let place = RemoteTarget { to: Target::Peer(to), key, offset };
        let (buffer, context) = (memory.buffer(), Context(context));
        let to = vec![(place, buffer.len() as u64)];
        let write = WriteRequest { to, buffer, data: None, context, inject: false, report: true };
        self.endpoint.write(write).expect("room");
    }

    pub fn read(&mut self, context: usize, from: PeerId, key: u64, offset: u64, memory: Memory) {
        let place = RemoteTarget { to: Target::Peer(from), key, offset };
        let (buffer, context) = (memory.buffer(), Context(context));
        let from = vec![(place, buffer.len() as u64)];
        self.endpoint.read(ReadRequest { from, buffer, context, report: true }).expect("room");
    }

    /// How an operation ended, if it has.
    pub fn outcome(&self, context: usize) -> Option<&Completion> {
        self.done.iter().find(|completion| completion.context == Context(context))
    }
}

pub type Middle = Paths<ShmLink, LocalLink>;

/// One endpoint in the middle that has both links, one near it in shared memory, one far from it on the network.
pub struct World {
    folder: Folder,
    pub network: Rc<RefCell<Network>>,
    pub middle: Party<Middle>,
    pub near: Option<Party<ShmLink>>,
    pub far: Option<Party<LocalLink>>,
    /// What the middle calls the others.
    pub to_near: PeerId,
    pub to_far: PeerId,
    /// What they call it.
    pub near_to_middle: PeerId,
    pub far_to_middle: PeerId,
}

/// The far one's node; the middle is node 0.
pub const FAR: usize = 1;

fn flow(scheme: SchemeName, peers: u32) -> Config {
    Config { piggyback: scheme.lends().has_credits(), ..Config::new(scheme, peers, 32, 2) }
}

fn shm(folder: &Folder, flow: &Config) -> ShmLink {
    ShmLink::new(ShmConfig { directory: folder.path().to_path_buf(), ..ShmConfig::new(flow.clone()) }).unwrap()
}

impl World {
    /// The middle is made for so many peers.
    pub fn new(scheme: SchemeName, peers: u32) -> Self {
        let (folder, network) = (Folder::new(), Rc::new(RefCell::new(Network::default())));
        let flow = flow(scheme, peers);
        let local = LocalLink::new(&network);
        let middle = Party::new(Paths::new(shm(&folder, &flow), local, peers), flow.clone());
        let far = Party::new(LocalLink::new(&network), flow.clone());
        let mut near = Party::new(shm(&folder, &flow), flow);
        let mut world = World {
            near_to_middle: PeerId(0),
            far_to_middle: far.endpoint.link().peer(0),
            to_near: PeerId(0),
            to_far: PeerId(0),
            folder,
            network,
            middle,
            near: None,
            far: Some(far),
        };
        let address = world.middle.endpoint.link_mut().first().address();
        world.near_to_middle = near.endpoint.link_mut().peer(&address).unwrap();
        world.to_near = world.know_near(&near);
        world.near = Some(near);
        let links = world.middle.endpoint.link_mut();
        let far = links.second().unwrap().peer(FAR);
        world.to_far = links.place(Path::Second(far)).unwrap();
        world
    }

    fn know_near(&mut self, near: &Party<ShmLink>) -> PeerId {
        let links = self.middle.endpoint.link_mut();
        let place = links.first().peer(&near.endpoint.link().address()).unwrap();
        links.place(Path::First(place)).unwrap()
    }

    /// The peer at the end of either link and the middle: (the middle's name for it, its name for the middle).
    pub fn near(&mut self) -> &mut Party<ShmLink> {
        self.near.as_mut().expect("it is there")
    }

    pub fn far(&mut self) -> &mut Party<LocalLink> {
        self.far.as_mut().expect("it is there")
    }

    /// Everybody makes progress.
    pub fn step(&mut self) {
        self.network.borrow_mut().step();
        self.middle.progress();
        self.middle.endpoint.link_mut().first().idle().yield_if_asked();
        if let Some(near) = &mut self.near {
            near.progress();
            near.endpoint.link_mut().idle().yield_if_asked();
        }
        if let Some(far) = &mut self.far {
            far.progress();
        }
    }

    pub fn steps(&mut self, count: usize) {
        (0..count).for_each(|_| self.step());
    }

    /// Goes on until something holds.
    pub fn until(&mut self, what: &str, mut holds: impl FnMut(&mut World) -> bool) {
        let start = Instant::now();
        while !holds(self) {
            assert!(start.elapsed() < TEST_TIMEOUT, "waited in vain for {what}");
            self.step();
        }
    }

    /// Goes on until the middle's operation has ended, and says how.
    pub fn outcome(&mut self, context: usize) -> Completion {
        self.until("an operation to end", |world| world.middle.outcome(context).is_some());
        self.middle.outcome(context).expect("it has ended").clone()
    }

    /// One more process near the middle, and what it calls it.
    pub fn another_near(&mut self, peers: u32, scheme: SchemeName) -> (Party<ShmLink>, PeerId) {
        let flow = flow(scheme, peers);
        let mut near = Party::new(shm(&self.folder, &flow), flow);
        let address = self.middle.endpoint.link_mut().first().address();
        let to_middle = near.endpoint.link_mut().peer(&address).unwrap();
        (near, to_middle)
    }

    /// A new far one.
    pub fn another_far(&mut self, peers: u32, scheme: SchemeName) -> PeerId {
        let link = LocalLink::new(&self.network);
        self.far_to_middle = link.peer(0);
        self.far = Some(Party::new(link, flow(scheme, peers)));
        self.far_to_middle
    }
}
