//! [`Process`]: a real endpoint (`tidegate_message::Endpoint`), a program and a clock.

use std::rc::Rc;
use std::task::{Context as PollContext, Poll, Waker};

use tidegate_message::{
    Completion, Context, Counter, Endpoint, Failure, Link, MatchFlags, OpenSend, Operation, PeerId, Receive, Send,
    Snapshot, Source, Space, Target,
};

use crate::Time;
use crate::buffer::Part;
use crate::checker::{Holder, Wait, Waiter};
use crate::config::MessageHeader;
use crate::cost::{Activity, Spent, time_of};
use crate::flight::Rank;
use crate::link::{PacketCost, SimLink};
use crate::local::{LocalMessage, LocalPath, PostedLocally};
use crate::outcome::RankWait;
use crate::task::{Aim, Call, Delivery, Run, Sender, Tag, TagFilter, Task};

/// What a process does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// Nothing, until its network interface has taken what it wrote.
    Drain,
    /// It goes on as soon as its clock is reached.
    Again,
    /// Nothing, until something arrives.
    Idle,
}

/// Which processes reach each other within a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neighbours {
    pub first: u32,
    pub count: u32,
}

impl Neighbours {
    fn includes(self, rank: Rank) -> bool {
        (self.first..self.first + self.count).contains(&rank.0)
    }
}

/// One simulated process.
pub(crate) struct Process {
    rank: Rank,
    pub endpoint: Endpoint<SimLink>,
    pub task: Task,
    /// `None` when the program has ended. The endpoint goes on serving its peers.
    program: Option<Run>,
    /// When the program ended, and what the process had spent its time on until then.
    pub finished: Option<(Time, Spent)>,
    costs: Rc<PacketCost>,
    local: LocalPath,
    /// Those it reaches without its mailbox.
    neighbours: Option<Neighbours>,
    /// Messages that left on the local path since the simulation last looked.
    pub local_out: Vec<LocalMessage>,
    message_header: MessageHeader,
    /// A send was called since the last look at the mailbox.
    has_sent: bool,
}

impl Process {
    pub fn new(
        endpoint: Endpoint<SimLink>,
        task: Task,
        program: Run,
        costs: Rc<PacketCost>,
        neighbours: Option<Neighbours>,
        message_header: MessageHeader,
    ) -> Self {
        Process {
            rank: task.rank(),
            message_header,
            endpoint,
            task,
            program: Some(program),
            finished: None,
            costs,
            local: LocalPath::default(),
            neighbours,
            local_out: Vec::new(),
            has_sent: false,
        }
    }

    /// The process's own time.
    #[inline]
    pub fn clock(&self) -> Time {
        self.endpoint.link().clock
    }

    /// Runs the process until it has to wait. As MPI libraries do, it looks at its mailbox while its program waits, and
    /// once after each send that it did not have to wait for.
    #[inline]
    pub fn run(&mut self, now: Time) -> After {
        let link = self.endpoint.link_mut();
        link.clock = link.clock.max(now);
        if std::mem::take(&mut self.has_sent) && self.endpoint.link().mailbox.len() > 0 {
            self.endpoint.link_mut().spend(Activity::Receive, self.costs.cost.poll);
            self.progress();
        }
        loop {
            self.run_program();
            let link = self.endpoint.link();
            if !link.outbox.is_empty() {
                return After::Drain;
            }
            if link.clock > now {
                // What arrives until then is to be seen too. What has come already is the last that tells of itself.
                return if link.mailbox.len() > 0 || link.has_events() { After::Again } else { After::Idle };
            }
            self.endpoint.link_mut().spend(Activity::Receive, self.costs.cost.poll);
            let worked = self.progress();
            // A program that has ended waits for nothing, and looks ready for ever.
            if !worked && (self.program.is_none() || !self.task.look().is_ready()) {
                return After::Idle;
            }
        }
    }

    /// Looks at the mailbox while the interface does not take what was written, which may help peers to go on. The
    /// program does not go on.
    pub fn retrieve_while_blocked(&mut self, now: Time) {
        let link = self.endpoint.link_mut();
        link.clock = link.clock.max(now);
        self.progress();
    }

    fn progress(&mut self) -> bool {
        let mut worked = self.endpoint.progress(self.clock().instant());
        let moved = worked;
        // Work that does not come out of the mailbox is done at once: bulk data that has come, deferred sends.
        while worked && self.endpoint.link().mailbox.len() == 0 {
            worked = self.endpoint.progress(self.clock().instant());
        }
        self.collect();
        moved
    }

    /// Polls the program and carries out its calls until it waits, ends, or has written packets.
    fn run_program(&mut self) {
        while self.endpoint.link().outbox.is_empty() && self.task.look().is_ready() {
            let Some(program) = &mut self.program else { break };
            self.task.state().borrow_mut().now = self.endpoint.link().clock;
            let poll = program.as_mut().poll(&mut PollContext::from_waker(Waker::noop()));
            if poll == Poll::Ready(()) {
                self.program = None;
                let link = self.endpoint.link();
                self.finished = Some((link.clock, link.spent));
                break;
            }
            let call = self.task.state().borrow_mut().take_call();
            if let Some(call) = call {
                self.carry_out(call);
                self.endpoint.tell_time(self.clock().instant());
                self.collect();
            }
        }
    }

    fn carry_out(&mut self, call: Call) {
        let costs = self.costs.clone();
        let cost = &costs.cost;
        match call {
            Call::Send { to, tag, part, operation } => {
                self.has_sent = true;
                self.send(to, tag, part, operation);
            }
            Call::Receive { from, tag, part, operation } => self.receive(from, tag, part, operation),
            Call::Compute(span) => self.endpoint.link_mut().spend(Activity::Compute, span),
            Call::Copy { from, to } => {
                self.task.memory().copy(from, to);
                let span = time_of(cost.copy_bandwidth, from.length);
                self.endpoint.link_mut().spend(Activity::Compute, span);
            }
            Call::Combine { from, into } => {
                self.task.memory().combine(from, into);
                let span = time_of(cost.combine_bandwidth, from.length);
                self.endpoint.link_mut().spend(Activity::Compute, span);
            }
            Call::Credits(rank) => {
                let peer = if rank == self.rank { None } else { self.endpoint.link().find_peer(rank) };
                self.task.state().borrow_mut().answer = peer.map_or(0, |peer| u64::from(self.endpoint.credits(peer)));
            }
            Call::Counter(counter) => {
                self.task.state().borrow_mut().answer = self.endpoint.link().counters().get(counter);
            }
        }
    }

    fn is_neighbour(&self, rank: Rank) -> bool {
        rank != self.rank && self.neighbours.is_some_and(|neighbours| neighbours.includes(rank))
    }

    /// What the endpoint calls `rank`. `None`, and the run ends, if its table of peers is full.
    fn target(&mut self, rank: Rank) -> Option<Target> {
        if rank == self.rank {
            return Some(Target::Myself);
        }
        self.endpoint.link_mut().admit_peer(rank).map(Target::Peer)
    }

    fn send(&mut self, to: Rank, tag: Tag, part: Part, operation: u32) {
        self.endpoint.link_mut().spend(Activity::Send, self.costs.cost.send_call);
        if self.is_neighbour(to) {
            return self.send_locally(to, tag, part, operation);
        }
        let Some(target) = self.target(to) else { return };
        let send = Send {
            to: target,
            space: Space::Tagged { tag: tag.0, ignore: 0 },
            buffer: self.task.memory().buffer(part),
            data: self.message_header.completion_data(),
            context: Context(operation as usize),
            inject: false,
            delivery: false,
            report: true,
        };
        if self.endpoint.send(send).is_err() {
            self.fail("its endpoint has no room for another operation".to_owned());
        }
    }

    fn send_locally(&mut self, to: Rank, tag: Tag, part: Part, operation: u32) {
        let cost = &self.costs.cost;
        let copy = time_of(cost.local_bandwidth, part.length);
        let link = self.endpoint.link_mut();
        link.spend(Activity::Send, copy);
        let arrives = link.clock + cost.local_latency;
        let bytes = self.task.memory().read(part);
        self.local_out.push(LocalMessage { from: self.rank, to, tag, length: part.length, bytes, arrives });
        let delivery = Delivery { peer: to, tag, length: part.length };
        self.task.state().borrow_mut().complete(operation, delivery);
    }

    fn receive(&mut self, from: Sender, tag: TagFilter, part: Part, operation: u32) {
        self.endpoint.link_mut().spend(Activity::Receive, self.costs.cost.receive_call);
        let may_be_local = self.neighbours.is_some() && from != Sender::Rank(self.rank);
        if may_be_local && matches!(from, Sender::Any) | matches!(from, Sender::Rank(rank) if self.is_neighbour(rank)) {
            let posted = PostedLocally { operation, from, tag, part };
            if let Some(message) = self.local.take_stored(&posted) {
                return self.deliver_local(&posted, &message);
            }
            self.local.post(posted);
            if from != Sender::Any {
                return;
            }
        }
        let from = match from {
            Sender::Any => Source::Any,
            Sender::Rank(rank) => match self.target(rank) {
                Some(target) => Source::From(target),
                None => return,
            },
        };
        let space = match tag {
            TagFilter::Any => Space::Tagged { tag: 0, ignore: u64::MAX },
            TagFilter::Is(tag) => Space::Tagged { tag: tag.0, ignore: 0 },
        };
        let receive = Receive {
            from,
            space,
            buffer: self.task.memory().buffer(part),
            context: Context(operation as usize),
            multi: None,
            flags: MatchFlags::default(),
            report: true,
        };
        if self.endpoint.receive(receive).is_err() {
            self.fail("its endpoint has no room for another receive".to_owned());
        }
    }

    /// A message has come on the local path. The receive for it may be posted at the endpoint as well, if it accepts
    /// messages from anybody. Such a receive is no longer free if the endpoint has matched it with a message of which
    /// not all has come: then the message goes to the next receive that accepts it.
    pub fn accept_local(&mut self, message: LocalMessage) {
        while let Some(posted) = self.local.take_posted(&message) {
            if posted.from != Sender::Any || self.endpoint.cancel(Context(posted.operation as usize)) {
                let clock = self.clock().max(message.arrives);
                self.endpoint.link_mut().clock = clock;
                return self.deliver_local(&posted, &message);
            }
        }
        self.local.store(message);
    }

    fn deliver_local(&mut self, posted: &PostedLocally, message: &LocalMessage) {
        if message.length > posted.part.length {
            let (from, room) = (message.from, posted.part.length);
            return self.fail(format!("a message of {} bytes of {from} meets a receive of {room}", message.length));
        }
        if let Some(bytes) = &message.bytes {
            self.task.memory().write(posted.part, bytes);
        }
        let copy = time_of(self.costs.cost.local_bandwidth, message.length);
        self.endpoint.link_mut().spend(Activity::Receive, copy);
        let delivery = Delivery { peer: message.from, tag: message.tag, length: message.length };
        self.task.state().borrow_mut().complete(posted.operation, delivery);
    }

    /// Hands the endpoint's completions to the program.
    #[inline]
    fn collect(&mut self) {
        while let Some(completion) = self.endpoint.poll_completion() {
            self.complete(completion);
        }
    }

    fn complete(&mut self, completion: Completion) {
        let operation = completion.context.0 as u32;
        match completion.result {
            Ok(()) => {}
            Err(Failure::Canceled) => return,
            Err(failure) => return self.fail(format!("an operation failed: {failure:?}")),
        }
        let Space::Tagged { tag, .. } = completion.space else { return };
        let received = completion.operation == Operation::Receive;
        let aim = self.task.look().aim(operation);
        let peer = match (completion.source, aim) {
            (Some(Target::Myself), _) => self.rank,
            (Some(Target::Peer(peer)), _) => self.endpoint.link().rank(peer),
            (None, Some(Aim::Send { to, .. })) => to,
            (None, _) => return self.fail(format!("operation {operation} ended, which nobody started")),
        };
        if received {
            self.endpoint.link_mut().spend(Activity::Receive, self.costs.cost.complete_message);
            if self.neighbours.is_some() {
                self.local.withdraw(operation);
            }
        }
        let delivery = Delivery { peer, tag: Tag(tag), length: completion.length as u64 };
        self.task.state().borrow_mut().complete(operation, delivery);
    }

    /// The run ends with this.
    fn fail(&mut self, what: String) {
        let rank = self.rank;
        self.endpoint.link_mut().failure.get_or_insert(format!("{rank}: {what}"));
    }

    /// What the process waits for, if its program has not ended. `outbound`: the receiver of the first packet that has
    /// not left, and how many such packets there are.
    pub fn waiter(&mut self, outbound: Option<(Rank, usize)>) -> Option<Waiter> {
        self.program.as_ref()?;
        let (mut open, now) = (Snapshot::default(), self.clock().instant());
        self.endpoint.look(now, &mut open);
        let awaited = self.task.look().awaited();
        let mut waits: Vec<Wait> = awaited.into_iter().map(|aim| self.wait_of(aim, &open)).collect();
        if let Some((to, packets)) = outbound {
            waits = vec![Wait::RoomAt { to, packets }];
        }
        if waits.is_empty() {
            waits.push(Wait::Nothing);
        }
        Some(Waiter { rank: self.rank, since: self.clock(), waits })
    }

    fn wait_of(&self, aim: Aim, open: &Snapshot) -> Wait {
        match aim {
            Aim::Receive { from: Sender::Any, tag } => Wait::MessageFromAnybody { tag },
            Aim::Receive { from: Sender::Rank(from), tag } => Wait::MessageFrom { from, tag },
            Aim::Send { to, tag } => {
                let peer = if to == self.rank { None } else { self.endpoint.link().find_peer(to) };
                let is_it = |send: &&OpenSend| {
                    let of_peer = peer.is_some_and(|peer| send.to == Target::Peer(peer));
                    of_peer && send.tag == Some(tag.0)
                };
                let cause = open.sends.iter().find(is_it).and_then(|send| send.waits_for);
                Wait::SendTo { to, tag, cause, credits: peer.map_or(u32::MAX, |peer| self.endpoint.credits(peer)) }
            }
        }
    }

    /// All counters, in the order of [`Counter::ALL`].
    pub fn counters(&self) -> [u64; Counter::COUNT] {
        let counters = self.endpoint.link().counters();
        std::array::from_fn(|index| counters.get(Counter::ALL[index]))
    }

    /// For whom its sends have waited.
    pub fn waits(&mut self) -> Vec<RankWait> {
        let mut open = Snapshot::default();
        let now = self.clock().instant();
        self.endpoint.look(now, &mut open);
        let link = self.endpoint.link();
        let told = open.waits.iter().map(|wait| RankWait {
            rank: match wait.peer {
                Some(Target::Peer(peer)) => link.known_rank(peer),
                _ => None,
            },
            cause: wait.cause,
            count: wait.count,
            waited: Time(u64::try_from(wait.waited.as_nanos() * 1_000).unwrap_or(u64::MAX)),
        });
        told.collect()
    }

    /// Flow control's state, for the checker.
    pub fn holder(&self) -> Holder {
        let inspection = self.endpoint.inspect();
        let link = self.endpoint.link();
        let peers = 0..inspection.peers.len() as u32;
        let ranks = peers.map_while(|peer| link.known_rank(PeerId(peer))).collect();
        Holder { rank: self.rank, ranks, inspection }
    }
}
