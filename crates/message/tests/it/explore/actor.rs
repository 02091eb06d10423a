//! One endpoint with its program, run step by step. What it does depends on nothing but the steps it has taken, so a
//! step from a state that was seen before need not be run again (`machine.rs`).

use super::digest::Digest;
use super::layout::{Layout, MessageName, Op, UNTAGGED};
use super::link::ActorLink;
use crate::support::{Arena, MemoryBuffer, node_of, pattern, peer_of};
use std::collections::VecDeque;
use std::fmt::Write;
use std::rc::Rc;
use tidegate_message::flow::Packet;
use tidegate_message::{
    Access, AtomicKind, AtomicOp, AtomicRequest, AtomicType, BacklogInspection, Buffer, Completion, Context, Counter,
    Counters, Endpoint, Failure, Instant, MatchFlags, Operation, PeerId, ReadRequest, Receive, RemoteTarget, Send,
    Source, Space, Span, Submission, Target, WindowInspection, WriteRequest,
};

/// What a buffer holds once its operation has completed; nobody may change it or send it any more.
const SCRIBBLE: u8 = 0xdd;

/// What an endpoint can meet next.
#[derive(Clone, Copy, Debug)]
pub enum Input<'p> {
    /// Its program goes on by an operation.
    Operation,
    /// It makes progress, and finds this packet.
    Packet(&'p Packet),
    /// It makes progress, and finds these two.
    Pair(&'p Packet, &'p Packet),
    /// It makes progress, and finds one packet of two or three slots.
    Long(&'p Packet, &'p Packet, Option<&'p Packet>),
    /// It makes progress, and finds nothing.
    Idle,
    /// Time passes until it wants to be called, and it makes progress.
    Timeout,
    /// It makes progress, and is told that this node is no more.
    Departure(usize),
}

/// Whether a node is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Presence {
    #[default]
    Alive,
    Killed,
    Closed,
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub completion: Completion,
    /// What the receive's buffer held at that moment.
    pub bytes: Vec<u8>,
}

/// What the rest of the world can see of an endpoint's state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The next operation of the program.
    pub place: usize,
    /// By place in the program.
    pub outcomes: Vec<Option<Outcome>>,
    pub presence: Presence,
    /// Nodes that it has been told are gone.
    pub told: Vec<usize>,
    /// How the windows between it and each other node stand.
    pub windows: Vec<Option<WindowInspection>>,
    /// What waits between it and each other node.
    pub backlogs: Vec<Option<BacklogInspection>>,
    /// What its memory for others holds.
    pub memory: Vec<u8>,
}

/// What a step did to the rest of the world.
#[derive(Debug, Default)]
pub struct Effects {
    pub written: Vec<(usize, Packet)>,
    /// Sends of others whose memory was read.
    pub touched: Vec<MessageName>,
}

/// An endpoint with its program.
pub struct Actor {
    layout: Rc<Layout>,
    me: usize,
    endpoint: Endpoint<ActorLink>,
    /// Of all operations, by node and place: those of others only keep the memory there.
    buffers: Vec<Vec<MemoryBuffer>>,
    memory: MemoryBuffer,
    /// A look is under way.
    looking: bool,
    now: Instant,
    summary: Summary,
}

impl Actor {
    pub fn new(layout: Rc<Layout>, me: usize) -> Self {
        let (nodes, mut arena) = (layout.nodes(), Arena::default());
        // Everybody allocates everything, in the same order: an address means the same to all.
        let allocate = |(node, program): (usize, &Vec<Op>)| -> Vec<MemoryBuffer> {
            let places = program.iter().enumerate();
            places.map(|(place, op)| arena.allocate(node, &contents(MessageName { node, place }, op), false)).collect()
        };
        let buffers = layout.programs.iter().enumerate().map(allocate).collect();
        let memory = arena.allocate(me, &vec![0; layout.memory_bytes()], false);
        let link = ActorLink {
            me,
            nodes,
            direct: layout.direct,
            incoming: VecDeque::new(),
            is_long: false,
            written: Vec::new(),
            room: vec![0; nodes],
            departure: None,
            told: Vec::new(),
            orderly: layout.programs.iter().map(|program| program.contains(&Op::Close)).collect(),
            arena,
            touched: Vec::new(),
            counters: Counters::default(),
        };
        let mut endpoint = Endpoint::new(layout.endpoint(), link).expect("a legal configuration");
        endpoint.register(Layout::KEY, memory.clone(), &[Access::Read, Access::Write]);
        let outcomes = vec![None; layout.programs[me].len()];
        let summary = Summary { outcomes, ..Summary::default() };
        let now = Instant::default();
        Actor { layout, me, endpoint, buffers, memory, looking: false, now, summary }
    }

    /// One step. `room`: packets that fit each node's mailbox.
    pub fn step(&mut self, input: Input, room: &[usize]) -> Effects {
        self.endpoint.link_mut().room = room.to_vec();
        match input {
            Input::Operation => self.operate(),
            Input::Packet(packet) => self.progress(&[packet]),
            Input::Pair(first, second) => self.progress(&[first, second]),
            Input::Long(first, second, third) => {
                self.endpoint.link_mut().is_long = true;
                let slots: Vec<_> = [first, second].into_iter().chain(third).collect();
                self.progress(&slots);
                self.endpoint.link_mut().is_long = false;
            }
            Input::Idle => self.progress(&[]),
            Input::Timeout => {
                self.now = self.endpoint.next_timeout().unwrap_or_default().max(self.now);
                self.progress(&[]);
            }
            Input::Departure(node) => {
                self.endpoint.link_mut().departure = Some(node);
                self.progress(&[]);
            }
        }
        while let Some(completion) = self.endpoint.poll_completion() {
            self.complete(completion);
        }
        self.endpoint.poll_pressure();
        let nodes = 0..self.layout.nodes();
        let window = |node| (node != self.me).then(|| self.endpoint.inspect_window(self.peer(node)));
        self.summary.windows = nodes.clone().map(window).collect();
        let backlog = |node| (node != self.me).then(|| self.backlog(node));
        self.summary.backlogs = nodes.map(backlog).collect();
        self.summary.memory = self.memory.bytes();
        self.check();
        let link = self.endpoint.link_mut();
        self.summary.told.clone_from(&link.told);
        let (written, touched) = (std::mem::take(&mut link.written), std::mem::take(&mut link.touched));
        Effects { written, touched: touched.into_iter().map(|(node, span)| self.name_of(node, span)).collect() }
    }

    /// One progress call that finds these packets.
    fn progress(&mut self, packets: &[&Packet]) {
        self.endpoint.link_mut().incoming = packets.iter().map(|packet| **packet).collect();
        self.endpoint.progress(self.now);
        assert!(self.endpoint.link().incoming.is_empty(), "a progress call left packets where they were");
    }

    /// What waits between this endpoint and another. Memory that was needed once is kept, and no part of the state.
    fn backlog(&self, node: usize) -> BacklogInspection {
        let backlog = self.endpoint.inspect_backlog(self.peer(node));
        assert!(backlog.is_within_its_bounds(0), "beyond the bound: {backlog:?}");
        let (note_bytes, read_bytes, answer_bytes) = Default::default();
        BacklogInspection { note_bytes, read_bytes, answer_bytes, ..backlog }
    }

    /// What can be seen from outside.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// A digest of everything that the next steps may depend on: but for the names of places in lists, which nobody
    /// else sees.
    pub fn fingerprint(&self) -> u64 {
        let mut digest = Digest::default();
        let own = &self.buffers[self.me];
        let Summary { place, outcomes, presence, .. } = &self.summary;
        write!(digest, "{:?}{place}{outcomes:?}{presence:?}{}{own:?}", self.endpoint, self.looking)
            .expect("a digest takes all");
        digest.finish()
    }

    fn peer(&self, node: usize) -> PeerId {
        peer_of(self.me, node, self.layout.nodes())
    }

    /// The send whose memory lies there.
    fn name_of(&self, node: usize, span: Span) -> MessageName {
        let holds = |buffer: &MemoryBuffer| buffer.spans().any(|own| own.address >> 32 == span.address >> 32);
        let place = self.buffers[node].iter().position(holds).expect("the memory of an operation");
        MessageName { node, place }
    }

    fn operate(&mut self) {
        let Some(&op) = self.layout.programs[self.me].get(self.summary.place) else { return };
        let next = match op {
            Op::Send { to, tag, .. } | Op::Fenced { to, tag, .. } | Op::Inject { to, tag, .. } => {
                self.send(op, to, tag)
            }
            Op::Receive { from, tag } => self.receive(from, tag, MatchFlags::default()),
            Op::ReceiveProbed { of } => self.receive_probed(of),
            Op::ReceiveClaimed { of } => {
                let Op::Claim { from, tag } = self.layout.programs[self.me][of] else { panic!("not a claim") };
                self.receive_as(of, from, tag, MatchFlags { claim: true, ..MatchFlags::default() })
            }
            Op::Probe { from, tag } | Op::Look { from, tag } => {
                self.look(from, tag, MatchFlags { peek: true, ..MatchFlags::default() })
            }
            Op::Claim { from, tag } => {
                self.look(from, tag, MatchFlags { peek: true, claim: true, ..MatchFlags::default() })
            }
            Op::Discard { from, tag } => {
                self.look(from, tag, MatchFlags { peek: true, discard: true, ..MatchFlags::default() })
            }
            Op::Write { to } | Op::Read { from: to } | Op::Add { to } => {
                self.remote(op, to);
                true
            }
            Op::Cancel { of } => {
                self.endpoint.cancel(Context(of));
                true
            }
            Op::Wait { of } => self.summary.outcomes[of].is_some(),
            Op::Die => {
                self.summary.presence = Presence::Killed;
                true
            }
            Op::Close if self.endpoint.has_unsent() => false,
            Op::Close => {
                self.summary.presence = Presence::Closed;
                true
            }
        };
        self.summary.place += usize::from(next);
    }

    fn send(&mut self, op: Op, to: usize, tag: u64) -> bool {
        let inject = matches!(op, Op::Inject { .. });
        let place = self.summary.place;
        let (name, mut buffer) = (MessageName { node: self.me, place }, self.buffers[self.me][place].clone());
        let (to, space) = (Target::Peer(self.peer(to)), space_of(tag));
        let (data, context) = (Some(name.number() as u64), Context(place));
        let send = Send { to, space, buffer: buffer.clone(), data, context, inject, delivery: false, report: true };
        match op {
            Op::Fenced { .. } => self.endpoint.submit_fenced(Submission::Send(send)),
            _ => self.endpoint.send(send),
        }
        .expect("room for a send");
        if inject {
            buffer.fill(SCRIBBLE);
        }
        true
    }

    fn remote(&mut self, op: Op, to: usize) {
        let name = MessageName { node: self.me, place: self.summary.place };
        let offset = if matches!(op, Op::Write { .. }) { name.offset() as u64 } else { 0 };
        let target = RemoteTarget { to: Target::Peer(self.peer(to)), key: Layout::KEY, offset };
        let (buffer, context) = (self.buffers[self.me][name.place].clone(), Context(name.place));
        match op {
            Op::Write { .. } => {
                let to = vec![(target, 8)];
                self.endpoint.write(WriteRequest { to, buffer, data: None, context, inject: false, report: true })
            }
            Op::Read { .. } => {
                self.endpoint.read(ReadRequest { from: vec![(target, 8)], buffer, context, report: true })
            }
            _ => {
                let (to, datatype, op) = (vec![(target, 1)], AtomicType::Uint64, AtomicOp::Sum);
                let kind = AtomicKind::Fetch { result: buffer.clone() };
                self.endpoint.atomic(AtomicRequest { to, datatype, op, operand: buffer, kind, context, report: true })
            }
        }
        .expect("room for a remote operation");
    }

    fn receive(&mut self, from: Option<usize>, tag: Option<u64>, flags: MatchFlags) -> bool {
        self.receive_as(self.summary.place, from, tag, flags)
    }

    fn receive_as(&mut self, context: usize, from: Option<usize>, tag: Option<u64>, flags: MatchFlags) -> bool {
        let from = from.map_or(Source::Any, |from| Source::From(Target::Peer(self.peer(from))));
        let space = tag.map_or(Space::Tagged { tag: 0, ignore: u64::MAX }, space_of);
        let (buffer, context) = (self.buffers[self.me][self.summary.place].clone(), Context(context));
        let receive = Receive { from, space, buffer, context, multi: None, flags, report: true };
        self.endpoint.receive(receive).expect("room for a receive");
        true
    }

    fn receive_probed(&mut self, of: usize) -> bool {
        let found = &self.summary.outcomes[of].as_ref().expect("the probe comes first").completion;
        let Some(Target::Peer(peer)) = found.source else { panic!("a probe found a message without a sender") };
        let Space::Tagged { tag, .. } = found.space else { panic!("no program looks for messages without tags") };
        let from = node_of(self.me, peer, self.layout.nodes());
        self.receive(Some(from), Some(tag), MatchFlags::default())
    }

    /// The program goes on when the answer is there: see [`complete`](Self::complete).
    fn look(&mut self, from: Option<usize>, tag: Option<u64>, flags: MatchFlags) -> bool {
        if !std::mem::replace(&mut self.looking, true) {
            self.receive(from, tag, flags);
        }
        false
    }

    fn complete(&mut self, completion: Completion) {
        let (program, context) = (&self.layout.programs[self.me], completion.context.0);
        let is_look =
            matches!(program[context], Op::Look { .. } | Op::Probe { .. } | Op::Claim { .. } | Op::Discard { .. });
        if is_look && self.summary.place == context {
            assert!(std::mem::replace(&mut self.looking, false), "nobody looked: {completion:?}");
            let again = completion.result == Err(Failure::NoMessage) && !matches!(program[context], Op::Look { .. });
            if again {
                return;
            }
            self.summary.place += 1;
        }
        // A claimed message is received under the name of the claim.
        let place = match self.summary.outcomes[context] {
            Some(_) => program.iter().position(|op| *op == Op::ReceiveClaimed { of: context }).unwrap_or(context),
            None => context,
        };
        let buffer = &mut self.buffers[self.me][place];
        let mut bytes = buffer.bytes();
        if completion.operation == Operation::Receive {
            bytes.truncate(completion.length);
        }
        buffer.fill(SCRIBBLE);
        let before = self.summary.outcomes[place].replace(Outcome { completion, bytes });
        assert_eq!(before, None, "operation {place} of node {} completed twice", self.me);
    }

    /// What must hold after every step.
    fn check(&self) {
        let counter = |counter| self.endpoint.link().counters.get(counter);
        assert_eq!(counter(Counter::Violations), 0, "packets broke the protocol");
        let stored: u64 = self.summary.windows.iter().flatten().map(|window| u64::from(window.stored)).sum();
        assert_eq!(counter(Counter::UnmatchedBytes), stored, "what is counted is what is stored");
        assert!(counter(Counter::ReceiveFixedBytes) + stored <= counter(Counter::ReceiveBound), "beyond the bound");
        assert!(counter(Counter::ReceivePeak) <= counter(Counter::ReceiveBound), "beyond the bound for a while");
        let windows: u64 = self.summary.windows.iter().flatten().map(|window| u64::from(window.window)).sum();
        let all = counter(Counter::ReceiveFixedBytes) + windows + self.endpoint.inspect_spare() as u64;
        assert_eq!(all, counter(Counter::ReceiveBound), "W1: all windows and what is spare are the receive memory");
        for window in self.summary.windows.iter().flatten() {
            let sound = window.stored + window.freed <= window.window;
            assert!(sound, "a window is not kept: {window:?}");
        }
        for backlog in self.summary.backlogs.iter().flatten() {
            // One request may always be unanswered: the dearest here is a fetch of eight bytes.
            assert!(backlog.unanswered <= backlog.unanswered_most.max(128), "beyond the account: {backlog:?}");
        }
        for (place, outcome) in self.summary.outcomes.iter().enumerate() {
            let touched = || self.buffers[self.me][place].bytes().iter().any(|byte| *byte != SCRIBBLE);
            assert!(
                outcome.is_none() || !touched(),
                "the buffer of operation {place} was written after its completion"
            );
        }
    }
}

/// The matching space and tag of a message.
pub fn space_of(tag: u64) -> Space {
    if tag == UNTAGGED { Space::Untagged } else { Space::Tagged { tag, ignore: 0 } }
}

/// What an operation's buffer holds at first.
fn contents(name: MessageName, op: &Op) -> Vec<u8> {
    match op {
        Op::Send { size, .. } | Op::Inject { size, .. } | Op::Fenced { size, .. } => pattern(name.number(), *size),
        Op::Write { .. } => (name.number() as u64).to_le_bytes().to_vec(),
        Op::Read { .. } => vec![0; 8],
        Op::Add { .. } => 1u64.to_le_bytes().to_vec(),
        Op::Receive { .. } | Op::ReceiveProbed { .. } | Op::ReceiveClaimed { .. } => vec![0; Layout::CAPACITY],
        _ => Vec::new(),
    }
}
