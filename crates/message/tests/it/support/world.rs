//! [`World`]: the endpoints of a job, the scheduler that runs them, and what they reported.

use super::buffer::MemoryBuffer;
use super::link::{Memory, MemoryLink, Network};
use super::operations::Handle;
use super::random::Random;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;
use tidegate_message::flow::{Config, Packet, SchemeName};
use tidegate_message::{Buffer, Completion, Counter, Endpoint, EndpointConfig, Instant, Link, PeerId, Target};

/// Steps after which a run that still moves is taken for one that never ends.
const MOST_STEPS: usize = 3_000_000;
/// What a buffer holds once its operation has completed; nobody may read it for data or change it any more.
const SCRIBBLE: u8 = 0xdd;

/// What a job is like. `Display` is one line that tells a failing run from the others.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub nodes: usize,
    pub scheme: SchemeName,
    pub piggyback: bool,
    pub slots: u32,
    pub credit_slots: u32,
    pub memory: Memory,
    pub scheduled: bool,
    pub seed: u64,
    pub eager_bytes: usize,
    pub operations: usize,
    /// Bytes per peer for unmatched messages, beyond one envelope; `None`: plenty.
    pub window: Option<usize>,
    /// Instead of it: much and little of it, another number for each node, which turns with this one.
    pub uneven: Option<usize>,
    /// Instead of both: so many bytes beyond the least receive memory, which is not enough for all to send at a time.
    pub few: Option<usize>,
    /// Peers of each node, the last ones, that are newcomers to it: where it has much memory they have little of it.
    pub newcomers: u32,
    /// How often an injected message is refused that cannot leave.
    pub patience: Duration,
}

impl Setup {
    /// A comfortable job: dynamic credits, 64 slots per peer, memory within reach, packets visible at once.
    pub fn new(nodes: usize) -> Self {
        Setup {
            nodes,
            scheme: SchemeName::Dynamic,
            piggyback: true,
            slots: 64,
            credit_slots: 2,
            memory: Memory::Direct,
            scheduled: false,
            seed: 1,
            eager_bytes: 2048,
            operations: 4096,
            window: None,
            uneven: None,
            few: None,
            newcomers: 0,
            patience: Duration::ZERO,
        }
    }

    /// Every scheme that lends slots, or nothing, with and without piggybacking, at the smallest legal number of slots,
    /// one more (the smallest with a dynamic region) and plenty, over every kind of memory; delays by `seed`.
    pub fn all(nodes: usize, seed: u64) -> impl Iterator<Item = Setup> {
        let schemes = [
            (SchemeName::None, false),
            (SchemeName::Static, false),
            (SchemeName::Static, true),
            (SchemeName::Dynamic, false),
            (SchemeName::Dynamic, true),
            (SchemeName::Speculative, false),
            (SchemeName::RefuseThird, false),
        ];
        let memories = Memory::ALL;
        schemes.into_iter().flat_map(move |(scheme, piggyback)| {
            [(2, 1), (3, 1), (64, 2)].into_iter().flat_map(move |(slots, credit_slots)| {
                memories.into_iter().map(move |memory| {
                    let base = Setup { scheme, piggyback, slots, credit_slots, memory, ..Setup::new(nodes) };
                    Setup { scheduled: true, seed, ..base }
                })
            })
        })
    }

    /// Whether short messages leave at once and whole, and none goes by a request to send because it was refused.
    pub fn never_refuses(&self) -> bool {
        let has_buffers = self.scheme.lends().posts_buffers() && !self.scheme.lends().is_pool_of_slots();
        self.scheme != SchemeName::RefuseThird && !has_buffers
    }

    /// The job, with nothing posted.
    pub fn build(self) -> World {
        let mut network = Network::new(self.nodes, self.flow(), self.memory, self.scheduled);
        network.is_stubborn = self.seed % 2 == 1;
        network.joins = self.seed % 4 < 2;
        let network = Rc::new(RefCell::new(network));
        let mut world = World {
            setup: self,
            network,
            endpoints: Vec::new(),
            paused: vec![false; self.nodes],
            random: Random::new(self.seed),
            buffers: HashMap::new(),
            retired: Vec::new(),
            done: HashMap::new(),
            remote_writes: Vec::new(),
            next_context: 1000,
        };
        world.endpoints = (0..self.nodes).map(|node| Some(world.endpoint_of(node))).collect();
        world
    }

    fn flow(&self) -> Config {
        let mut config = Config::new(self.scheme, self.nodes as u32 - 1, self.slots, self.credit_slots);
        (config.piggyback, config.newcomers) = (self.piggyback, self.newcomers);
        // Few slots stand for few buffers, which long messages take several of.
        let each = self.slots.div_ceil(3);
        let buffers = &mut config.buffers;
        (buffers.per_connection, buffers.per_connection_most) = (each, 2 * each);
        (buffers.pool_first, buffers.pool_most) = (each, 2 * each);
        // One pool has as few for all.
        buffers.pool_slots = self.slots;
        if self.slots < 64 && !self.scheme.lends().is_pool_of_slots() {
            buffers.packets = 4;
        }
        config
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Setup { nodes, scheme, slots, credit_slots, memory, window, few, newcomers, seed, .. } = self;
        let ride = if self.piggyback { "+piggyback" } else { "" };
        let order = if self.scheduled { "scheduled" } else { "at once" };
        write!(
            f,
            "{nodes} nodes, {scheme:?}{ride} {slots}/{credit_slots} slots, {window:?} window, {few:?} few, {newcomers} newcomers, {memory:?} memory, {order}, \
             seed {seed}"
        )
    }
}

/// One completion, with the bytes that its buffer held at that moment.
#[derive(Clone, Debug)]
pub struct Done {
    pub completion: Completion,
    pub bytes: Vec<u8>,
}

/// What the world knows of an operation's memory.
#[derive(Debug)]
pub(super) struct Held {
    /// Where data arrives: its bytes are kept with the completion.
    pub(super) into: Option<MemoryBuffer>,
    /// Everything else that the operation may touch until it completes.
    pub(super) from: Vec<MemoryBuffer>,
    /// A multi-receive: the buffer stays in use until its release.
    pub(super) many: bool,
}

/// The endpoints of a job and everything around them.
pub struct World {
    pub setup: Setup,
    pub(super) network: Rc<RefCell<Network>>,
    pub(super) endpoints: Vec<Option<Endpoint<MemoryLink>>>,
    paused: Vec<bool>,
    random: Random,
    pub(super) buffers: HashMap<(usize, usize), Held>,
    /// Buffers whose operation completed: they must stay as they were scribbled.
    retired: Vec<(Handle, MemoryBuffer)>,
    pub(super) done: HashMap<Handle, Vec<Done>>,
    /// Completions of peers' writes that carried data, by the node that got them.
    remote_writes: Vec<(usize, Completion)>,
    pub(super) next_context: usize,
}

impl World {
    fn endpoint_of(&self, node: usize) -> Endpoint<MemoryLink> {
        let mut config = EndpointConfig {
            flow: self.setup.flow(),
            eager_bytes: self.setup.eager_bytes,
            operations: self.setup.operations,
            receive_memory: 1 << 30,
            patience: self.setup.patience,
            packets_per_progress: 8,
            bulk_bytes_per_progress: 4096,
        };
        const UNEVEN: [Option<usize>; 7] =
            [Some(0), None, Some(700), Some(20_000), Some(2_000), Some(6_000), Some(100_000)];
        let window = self.setup.uneven.map_or(self.setup.window, |turn| UNEVEN[(3 * node + turn) % UNEVEN.len()]);
        if let Some(window) = window {
            let least = Endpoint::<MemoryLink>::receive_memory_for_all(&config).expect("a legal configuration");
            config.receive_memory = least + window * (self.setup.nodes - 1);
        }
        if let Some(more) = self.setup.few {
            let least = Endpoint::<MemoryLink>::least_receive_memory(&config).expect("a legal configuration");
            config.receive_memory = least + more;
        }
        Endpoint::new(config, MemoryLink::new(node, self.setup.nodes, self.network.clone()))
            .expect("a legal configuration")
    }

    /// The endpoint of `node`, which is alive.
    pub fn endpoint(&mut self, node: usize) -> &mut Endpoint<MemoryLink> {
        let endpoint = self.endpoints[node].as_mut().expect("the node is alive");
        // Checks, as it is asked after every call, that what the one before has left was said to be.
        endpoint.leaves_work();
        endpoint
    }

    /// What `me` calls `node`.
    pub fn target(&self, me: usize, node: usize) -> Target {
        if me == node { Target::Myself } else { Target::Peer(super::link::peer_of(me, node, self.setup.nodes)) }
    }

    /// The node that `me` means by `target`.
    pub fn node_of(&self, me: usize, target: Target) -> usize {
        match target {
            Target::Myself => me,
            Target::Peer(peer) => super::link::node_of(me, peer, self.setup.nodes),
        }
    }

    /// Completion data of peers' writes that `node` was told of.
    pub fn remote_writes(&self, node: usize) -> Vec<&Completion> {
        self.remote_writes.iter().filter(|(at, _)| *at == node).map(|(_, completion)| completion).collect()
    }

    /// How many operations of `node` have not completed.
    pub fn open_operations(&self, node: usize) -> usize {
        self.buffers.keys().filter(|(owner, _)| *owner == node).count()
    }

    /// A counter of a node.
    pub fn counter(&mut self, node: usize, counter: Counter) -> u64 {
        self.endpoint(node).link().counters().get(counter)
    }

    /// Checks that both sides of every pair of `node` agree on what is left of its windows, that nothing is deferred
    /// and that no query is open. Nothing may move.
    pub fn assert_windows(&mut self, node: usize) {
        let nodes = self.setup.nodes;
        let windows =
            (0..nodes as u32 - 1).map(|peer| self.endpoint(node).inspect_window(PeerId(peer)).window as usize);
        let windows: usize = windows.collect::<Vec<_>>().into_iter().sum();
        let all =
            windows + self.endpoint(node).inspect_spare() + self.counter(node, Counter::ReceiveFixedBytes) as usize;
        assert_eq!(
            all,
            self.counter(node, Counter::ReceiveBound) as usize,
            "receive memory of {node} got lost\n{self}"
        );
        let others: Vec<usize> = (0..nodes).filter(|other| *other != node && self.is_alive(*other)).collect();
        for other in others {
            let here = self.endpoint(node).inspect_window(super::link::peer_of(node, other, nodes));
            let there = self.endpoint(other).inspect_window(super::link::peer_of(other, node, nodes));
            let sum = here.stored + here.freed + there.room.unwrap_or(here.window);
            assert_eq!(sum, here.window, "the window of {node} for {other}: {here:?} {there:?}\n{self}");
            assert_eq!((there.deferred, here.dropped, here.querying), (0, 0, false), "of {other} at {node}\n{self}");
        }
    }

    /// The network, to look at or to break.
    pub fn network(&mut self) -> std::cell::RefMut<'_, Network> {
        self.network.borrow_mut()
    }

    /// A packet from `from` appears in the way to `to`, whatever flow control thinks of it.
    pub fn inject_packet(&mut self, from: usize, to: usize, packet: Packet) {
        let mut network = self.network.borrow_mut();
        network.hostile = true;
        network.inject(from, to, packet);
    }

    /// The node's process is stopped: it makes no progress until [`World::resume`].
    pub fn pause(&mut self, node: usize) {
        self.paused[node] = true;
    }

    /// A stopped process goes on.
    pub fn resume(&mut self, node: usize) {
        self.paused[node] = false;
    }

    /// The node's process dies, as by SIGKILL.
    pub fn kill(&mut self, node: usize) {
        self.leave(node, false);
    }

    /// The node closes its endpoint in good order.
    pub fn close(&mut self, node: usize) {
        self.leave(node, true);
    }

    /// Whether the node's process is there.
    pub fn is_alive(&self, node: usize) -> bool {
        self.endpoints[node].is_some()
    }

    fn leave(&mut self, node: usize, orderly: bool) {
        self.endpoints[node] = None;
        self.network.borrow_mut().depart(node, orderly);
        self.buffers.retain(|(owner, _), _| *owner != node);
        self.retired.retain(|(handle, _)| handle.node != node);
    }

    /// A new process takes the place of one that left.
    pub fn replace(&mut self, node: usize) {
        self.network.borrow_mut().revive(node);
        self.endpoints[node] = Some(self.endpoint_of(node));
    }

    fn awake(&self) -> Vec<usize> {
        (0..self.setup.nodes).filter(|node| self.endpoints[*node].is_some() && !self.paused[*node]).collect()
    }

    /// One random thing happens: a packet becomes visible, a transfer ends, or an endpoint makes progress.
    pub fn step(&mut self) -> bool {
        let awake = self.awake();
        if awake.is_empty() {
            return false;
        }
        if self.random.one_in(2) && self.network.borrow_mut().step(&mut self.random, &awake) {
            return true;
        }
        let node = awake[self.random.below(awake.len())];
        self.progress(node)
    }

    /// Some random things happen.
    pub fn steps(&mut self, count: usize) {
        for _ in 0..count {
            self.step();
        }
    }

    /// Time passes, and nothing else happens.
    pub fn pass(&mut self, time: Duration) {
        let mut network = self.network.borrow_mut();
        network.now = network.now + time;
    }

    /// What time it is.
    pub fn now(&self) -> Instant {
        self.network.borrow().now
    }

    /// One call of `progress`, and everything that has completed.
    pub fn progress(&mut self, node: usize) -> bool {
        let now = self.now();
        let may_sleep = self.endpoint(node).next_timeout().is_none() && self.network.borrow().has_nothing_for(node);
        let is_quiet = self.endpoint(node).is_quiet();
        let moved = self.endpoint(node).progress(now);
        assert!(!moved || !is_quiet, "a program would not have called progress of node {node}, which has work\n{self}");
        assert!(!moved || !may_sleep, "node {node} would have slept with work to do\n{self}");
        let collected = self.collect(node);
        self.check();
        moved || collected
    }

    fn collect(&mut self, node: usize) -> bool {
        let mut any = false;
        while let Some(completion) = self.endpoint(node).poll_completion() {
            any = true;
            self.complete(node, completion);
        }
        any
    }

    fn complete(&mut self, node: usize, completion: Completion) {
        if completion.operation.is_at_target() {
            self.remote_writes.push((node, completion));
            return;
        }
        let handle = Handle { node, context: completion.context.0 };
        let mut bytes = Vec::new();
        if let Some(held) = self.buffers.get(&(node, handle.context)) {
            if let Some(into) = &held.into {
                // A peek reports the length of a message that stays where it is.
                let end = into.len().min(completion.offset + completion.length);
                bytes = into.bytes()[completion.offset..end].to_vec();
            }
            if !held.many || completion.released {
                self.retire(handle);
            }
        }
        self.done.entry(handle).or_default().push(Done { completion, bytes });
    }

    /// The operation is over: from now on its memory is the application's.
    pub(super) fn retire(&mut self, handle: Handle) {
        let Some(held) = self.buffers.remove(&(handle.node, handle.context)) else { return };
        for mut buffer in held.into.into_iter().chain(held.from) {
            buffer.fill(SCRIBBLE);
            self.retired.push((handle, buffer));
        }
    }

    /// Runs until nothing moves any more.
    pub fn settle(&mut self) {
        for _ in 0..MOST_STEPS {
            if !self.step() && self.is_still() {
                self.check_retired();
                return;
            }
        }
        panic!("still moving after {MOST_STEPS} steps\n{self}");
    }

    /// Runs until `condition` holds.
    pub fn run_until(&mut self, what: &str, condition: impl Fn(&mut World) -> bool) {
        for _ in 0..MOST_STEPS {
            if condition(self) {
                return;
            }
            if !self.step() && self.is_still() && !condition(self) {
                panic!("nothing moves, and not yet: {what}\n{self}");
            }
        }
        panic!("still not after {MOST_STEPS} steps: {what}\n{self}");
    }

    /// Whether nothing is under way and no endpoint finds anything to do.
    fn is_still(&mut self) -> bool {
        let awake = self.awake();
        let moved = awake.iter().any(|node| self.progress(*node));
        !moved
            && !self.network.borrow_mut().step(&mut self.random, &awake)
            && !self.network.borrow().has_visible(&awake)
            && !self.wait_for_timers(&awake)
    }

    /// Nothing happens any more before the next timer. Returns whether anything does then.
    fn wait_for_timers(&mut self, awake: &[usize]) -> bool {
        let now = self.now();
        let timers = awake.iter().filter_map(|node| self.endpoints[*node].as_ref()?.next_timeout());
        let Some(due) = timers.min() else { return false };
        self.pass(due.since(now));
        awake.iter().any(|node| self.progress(*node))
    }

    /// What must hold at any moment.
    fn check(&self) {
        let network = self.network.borrow();
        assert!(network.problems.is_empty(), "{}\n{self}", network.problems.join("\n"));
    }

    fn check_retired(&self) {
        for (handle, buffer) in &self.retired {
            let touched = buffer.bytes().iter().any(|byte| *byte != SCRIBBLE);
            assert!(!touched, "the buffer of {handle:?} was written after its completion\n{self}");
        }
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "in a job of {}:", self.setup)?;
        for (node, endpoint) in self.endpoints.iter().enumerate() {
            write!(f, "  {}", self.network.borrow().line(node))?;
            if let Some(endpoint) = endpoint {
                let peers = (0..self.setup.nodes).filter(|peer| *peer != node);
                let credits = peers.map(|peer| endpoint.credits(super::link::peer_of(node, peer, self.setup.nodes)));
                write!(f, ", credits {:?}", credits.collect::<Vec<_>>())?;
                write!(f, ", unsent {}", endpoint.has_unsent())?;
            }
            writeln!(f, ", {} operations open", self.open_operations(node))?;
        }
        Ok(())
    }
}
