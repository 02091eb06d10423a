//! Posting operations, in words: `world.send(0).to(1).tagged(7).bytes(&data).post()`.

use super::buffer::MemoryBuffer;
use super::world::{Done, Held, World};
use tidegate_message::{
    Access, AtomicKind, AtomicOp, AtomicRequest, AtomicType, Completion, Context, Failure, MatchFlags, MultiReceive,
    ReadRequest, Receive, RemoteTarget, Send, Source, Space, Submission, TryAgain, WriteRequest,
};

/// An operation that was posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle {
    pub node: usize,
    pub context: usize,
}

impl World {
    /// A buffer of `node`.
    pub fn buffer(&mut self, node: usize, contents: &[u8]) -> MemoryBuffer {
        self.network().arena.allocate(node, contents, false)
    }

    /// A buffer of `node` in three pieces.
    pub fn scattered(&mut self, node: usize, contents: &[u8]) -> MemoryBuffer {
        self.network().arena.allocate(node, contents, true)
    }

    fn handle(&mut self, node: usize) -> Handle {
        self.next_context += 1;
        Handle { node, context: self.next_context }
    }

    fn hold(&mut self, handle: Handle, into: Option<MemoryBuffer>, from: Vec<MemoryBuffer>, many: bool) {
        self.buffers.insert((handle.node, handle.context), Held { into, from, many });
    }

    /// A send from `node` (to itself, of nothing, untagged, until told otherwise).
    pub fn send(&mut self, node: usize) -> SendBuilder<'_> {
        let (space, bytes) = (Space::Untagged, Vec::new());
        let (inject, delivery, scattered, fenced) = (false, false, false, false);
        let flags = SendFlags { data: None, inject, delivery, report: true, scattered, fenced };
        SendBuilder { world: self, node, to: node, space, bytes, flags }
    }

    /// A receive at `node` (from anybody, untagged, into nothing, until told otherwise).
    pub fn receive(&mut self, node: usize) -> ReceiveBuilder<'_> {
        let (from, space) = (Source::Any, Space::Untagged);
        let flags = MatchFlags::default();
        ReceiveBuilder {
            world: self,
            node,
            from,
            space,
            capacity: 0,
            multi: None,
            flags,
            context: None,
            scattered: false,
        }
    }

    /// Lets peers of `node` address a buffer with these contents by `key`. The buffer that comes back shares the
    /// memory.
    pub fn register(&mut self, node: usize, key: u64, contents: &[u8], access: &[Access]) -> MemoryBuffer {
        let buffer = self.buffer(node, contents);
        self.endpoint(node).register(key, buffer.clone(), access);
        self.network().publish(node, key, &buffer, access);
        buffer
    }

    /// Peers of `node` no longer address a buffer by `key`.
    pub fn deregister(&mut self, node: usize, key: u64) {
        self.endpoint(node).deregister(key);
        self.network().unpublish(node, key);
    }

    /// A place in the memory of `peer`, as `node` names it.
    pub fn place(&self, node: usize, peer: usize, key: u64, offset: u64) -> RemoteTarget {
        RemoteTarget { to: self.target(node, peer), key, offset }
    }

    /// An RMA write of `bytes` by `node`.
    pub fn write(&mut self, node: usize, to: Vec<(RemoteTarget, u64)>, bytes: &[u8], data: Option<u64>) -> Handle {
        let (handle, buffer) = (self.handle(node), self.scattered(node, bytes));
        let context = Context(handle.context);
        self.hold(handle, None, vec![buffer.clone()], false);
        let request = WriteRequest { to, buffer, data, context, inject: false, report: true };
        self.endpoint(node).write(request).expect("room for a write");
        handle
    }

    /// An RMA read by `node` of as many bytes as the places add up to.
    pub fn read(&mut self, node: usize, from: Vec<(RemoteTarget, u64)>) -> Handle {
        let length: u64 = from.iter().map(|(_, length)| length).sum();
        let (handle, buffer) = (self.handle(node), self.scattered(node, &vec![0; length as usize]));
        self.hold(handle, Some(buffer.clone()), vec![], false);
        let request = ReadRequest { from, buffer, context: Context(handle.context), report: true };
        self.endpoint(node).read(request).expect("room for a read");
        handle
    }

    /// A fenced RMA write of `bytes` by `node`.
    pub fn write_fenced(&mut self, node: usize, to: RemoteTarget, bytes: &[u8], inject: bool) -> Handle {
        let (handle, buffer) = (self.handle(node), self.buffer(node, bytes));
        let context = Context(handle.context);
        self.hold(handle, None, vec![buffer.clone()], false);
        let to = vec![(to, bytes.len() as u64)];
        let request = WriteRequest { to, buffer, data: None, context, inject, report: true };
        self.endpoint(node).submit_fenced(Submission::Write(request)).expect("room for a write");
        if inject {
            self.retire(handle);
        }
        handle
    }

    /// A fenced RMA read by `node`.
    pub fn read_fenced(&mut self, node: usize, from: RemoteTarget, length: usize) -> Handle {
        let (handle, buffer) = (self.handle(node), self.buffer(node, &vec![0; length]));
        self.hold(handle, Some(buffer.clone()), vec![], false);
        let (from, context) = (vec![(from, length as u64)], Context(handle.context));
        let request = ReadRequest { from, buffer, context, report: true };
        self.endpoint(node).submit_fenced(Submission::Read(request)).expect("room for a read");
        handle
    }

    /// A fenced atomic by `node` that adds a number and fetches the one before.
    pub fn add_fenced(&mut self, node: usize, to: RemoteTarget, addend: u64) -> Handle {
        let (handle, operand) = (self.handle(node), self.buffer(node, &addend.to_ne_bytes()));
        let result = self.buffer(node, &[0; 8]);
        self.hold(handle, Some(result.clone()), vec![operand.clone()], false);
        let (kind, context) = (AtomicKind::Fetch { result }, Context(handle.context));
        let (datatype, op) = (AtomicType::Uint64, AtomicOp::Sum);
        let request = AtomicRequest { to: vec![(to, 1)], datatype, op, operand, kind, context, report: true };
        self.endpoint(node).submit_fenced(Submission::Atomic(request)).expect("room for an atomic");
        handle
    }

    /// A remote atomic without result by `node`.
    pub fn atomic(
        &mut self,
        node: usize,
        to: Vec<(RemoteTarget, u64)>,
        datatype: AtomicType,
        op: AtomicOp,
        operand: &[u8],
    ) -> Handle {
        let (handle, operand) = (self.handle(node), self.buffer(node, operand));
        self.hold(handle, None, vec![operand.clone()], false);
        let (kind, context) = (AtomicKind::Update, Context(handle.context));
        let request = AtomicRequest { to, datatype, op, operand, kind, context, report: true };
        self.endpoint(node).atomic(request).expect("room for an atomic");
        handle
    }

    /// A remote atomic that fetches, by `node`; it compares if `compare` is given.
    pub fn fetch_atomic(
        &mut self,
        node: usize,
        to: Vec<(RemoteTarget, u64)>,
        datatype: AtomicType,
        op: AtomicOp,
        operand: &[u8],
        compare: Option<&[u8]>,
    ) -> Handle {
        let elements: u64 = to.iter().map(|(_, count)| count).sum();
        let (handle, operand) = (self.handle(node), self.buffer(node, operand));
        let result = self.scattered(node, &vec![0; elements as usize * datatype.size()]);
        let mut from = vec![operand.clone()];
        let kind = match compare {
            None => AtomicKind::Fetch { result: result.clone() },
            Some(compare) => {
                let compare = self.buffer(node, compare);
                from.push(compare.clone());
                AtomicKind::Compare { result: result.clone(), compare }
            }
        };
        self.hold(handle, Some(result), from, false);
        let context = Context(handle.context);
        let request = AtomicRequest { to, datatype, op, operand, kind, context, report: true };
        self.endpoint(node).atomic(request).expect("room for an atomic");
        handle
    }

    /// Cancels a receive.
    pub fn cancel(&mut self, handle: Handle) -> bool {
        self.endpoint(handle.node).cancel(Context(handle.context))
    }

    /// All completions of an operation so far.
    pub fn all(&self, handle: Handle) -> &[Done] {
        self.done.get(&handle).map_or(&[], Vec::as_slice)
    }

    /// Whether the operation has completed, in whatever way.
    pub fn is_done(&self, handle: Handle) -> bool {
        !self.all(handle).is_empty()
    }

    /// The one completion of an operation.
    pub fn outcome(&self, handle: Handle) -> &Done {
        match self.all(handle) {
            [done] => done,
            all => panic!("{handle:?} has {} completions instead of one\n{self}", all.len()),
        }
    }

    /// The completion of an operation that succeeded.
    pub fn success(&self, handle: Handle) -> &Completion {
        let completion = &self.outcome(handle).completion;
        assert_eq!(completion.result, Ok(()), "{handle:?} failed\n{self}");
        completion
    }

    /// The bytes that a successful operation brought.
    pub fn bytes(&self, handle: Handle) -> &[u8] {
        self.success(handle);
        &self.outcome(handle).bytes
    }

    /// Why an operation failed.
    pub fn failure(&self, handle: Handle) -> Failure {
        self.outcome(handle).completion.result.clone().expect_err("the operation should have failed")
    }

    /// Checks that an operation failed because `node` is lost, and says so.
    pub fn assert_lost(&self, handle: Handle, node: usize) {
        match self.failure(handle) {
            Failure::PeerLost { peer } => {
                assert!(peer.contains(&format!("node {node}")), "{handle:?} blames {peer:?} instead of node {node}");
            }
            other => panic!("{handle:?} failed with {other:?} instead of the loss of node {node}\n{self}"),
        }
    }
}

#[derive(Clone, Copy)]
struct SendFlags {
    data: Option<u64>,
    inject: bool,
    delivery: bool,
    report: bool,
    scattered: bool,
    fenced: bool,
}

/// A send in the making.
#[must_use = "post it"]
pub struct SendBuilder<'w> {
    world: &'w mut World,
    node: usize,
    to: usize,
    space: Space,
    bytes: Vec<u8>,
    flags: SendFlags,
}

impl SendBuilder<'_> {
    pub fn to(mut self, node: usize) -> Self {
        self.to = node;
        self
    }
    pub fn tagged(mut self, tag: u64) -> Self {
        self.space = Space::Tagged { tag, ignore: 0 };
        self
    }
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.bytes = bytes.to_vec();
        self
    }
    pub fn data(mut self, data: u64) -> Self {
        self.flags.data = Some(data);
        self
    }
    pub fn inject(mut self) -> Self {
        self.flags.inject = true;
        self
    }
    pub fn delivery(mut self) -> Self {
        self.flags.delivery = true;
        self
    }
    pub fn silent(mut self) -> Self {
        self.flags.report = false;
        self
    }
    pub fn scattered(mut self) -> Self {
        self.flags.scattered = true;
        self
    }
    pub fn fenced(mut self) -> Self {
        self.flags.fenced = true;
        self
    }
    pub fn post(self) -> Handle {
        self.try_post().expect("room for a send")
    }
    pub fn try_post(self) -> Result<Handle, TryAgain> {
        let SendBuilder { world, node, to, space, bytes, flags } = self;
        let SendFlags { data, inject, delivery, report, scattered, fenced } = flags;
        let handle = world.handle(node);
        let buffer = world.network().arena.allocate(node, &bytes, scattered);
        world.hold(handle, None, vec![buffer.clone()], false);
        let (to, context) = (world.target(node, to), Context(handle.context));
        let send = Send { to, space, buffer, data, context, inject, delivery, report };
        let posted = match fenced {
            false => world.endpoint(node).send(send),
            true => world.endpoint(node).submit_fenced(Submission::Send(send)),
        };
        if inject && posted.is_ok() {
            world.retire(handle);
        } else if posted.is_err() {
            world.buffers.remove(&(handle.node, handle.context));
        }
        posted.map(|()| handle)
    }
}

/// A receive in the making.
#[must_use = "post it"]
pub struct ReceiveBuilder<'w> {
    world: &'w mut World,
    node: usize,
    from: Source,
    space: Space,
    capacity: usize,
    multi: Option<MultiReceive>,
    flags: MatchFlags,
    context: Option<usize>,
    scattered: bool,
}

impl ReceiveBuilder<'_> {
    pub fn from(mut self, node: usize) -> Self {
        self.from = Source::From(self.world.target(self.node, node));
        self
    }
    pub fn tagged(self, tag: u64) -> Self {
        self.matching(tag, 0)
    }
    pub fn matching(mut self, tag: u64, ignore: u64) -> Self {
        self.space = Space::Tagged { tag, ignore };
        self
    }
    pub fn capacity(mut self, bytes: usize) -> Self {
        self.capacity = bytes;
        self
    }
    pub fn multi(mut self, smallest: usize) -> Self {
        self.multi = Some(MultiReceive { smallest });
        self
    }
    pub fn peek(mut self) -> Self {
        self.flags.peek = true;
        self
    }
    pub fn claim(mut self) -> Self {
        self.flags.claim = true;
        self
    }
    pub fn discard(mut self) -> Self {
        self.flags.discard = true;
        self
    }
    /// Uses the context of an operation before: that is how a claimed message is called for.
    pub fn context_of(mut self, handle: Handle) -> Self {
        self.context = Some(handle.context);
        self
    }
    pub fn scattered(mut self) -> Self {
        self.scattered = true;
        self
    }
    pub fn post(self) -> Handle {
        self.try_post().expect("room for a receive")
    }
    pub fn try_post(self) -> Result<Handle, TryAgain> {
        let ReceiveBuilder { world, node, from, space, capacity, multi, flags, context, scattered } = self;
        let handle = match context {
            Some(context) => Handle { node, context },
            None => world.handle(node),
        };
        world.done.remove(&handle);
        let buffer = world.network().arena.allocate(node, &vec![0; capacity], scattered);
        world.hold(handle, Some(buffer.clone()), vec![], multi.is_some());
        let context = Context(handle.context);
        let receive = Receive { from, space, buffer, context, multi, flags, report: true };
        let posted = world.endpoint(node).receive(receive);
        if posted.is_err() {
            world.buffers.remove(&(handle.node, handle.context));
        }
        posted.map(|()| handle)
    }
}
