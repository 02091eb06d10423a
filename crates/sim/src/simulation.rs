//! [`Simulation`]: processes on nodes on a network, until nothing is left to happen.
//!
//! One queue holds all events. A process is run when its clock is reached or something arrives for it; a node's
//! interface is served when it is free and has something to pass on; everything else belongs to the network. Nothing
//! polls.

mod amid;
mod interfaces;
mod posted;
mod watching;

pub use watching::Look;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

use tidegate_flow::ReceiveQueues;
use tidegate_message::{Endpoint, EndpointConfig};

use crate::adapter::Adapter;
use crate::buffer::Memory;
use crate::bulk::Bulk;
use crate::checker::{Bounds, Deadlock, Ledger};
use crate::config::{BlockedSender, SimulationConfig, SimulationError};
use crate::cost::Spent;
use crate::flight::{NodeId, Rank};
use crate::link::{PacketCost, SimLink};
use crate::local::LocalMessage;
use crate::node::{Direction, Node};
use crate::noise::Interruptions;
use crate::outcome::{Outcome, ProcessOutcome, RankWait};
use crate::parcel::Bodies;
use crate::process::{After, Neighbours, Process};
use crate::random::Random;
use crate::task::{Program, Task};
use crate::{EventQueue, Network, NetworkEvent, Notice, Time};

#[derive(Clone, Copy, Debug)]
enum Event {
    Network(NetworkEvent),
    /// A node's interface has something to pass on.
    Serve(u32),
    /// A process's clock is reached.
    Run(u32),
    /// A message on the local path has come.
    Local(u32),
    /// The moment has come that a process's endpoint wanted to be woken at.
    Timeout(u32),
    /// The retry timer of the connection has run out that was refused first.
    Retry,
    /// A process's pool has slots for a sender that was refused.
    Invite(u32),
}

/// What is scheduled for a process. It lies apart from the process, because whatever arrives for a process that is busy
/// needs to know no more.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    /// When the next timeout of its endpoint is scheduled.
    wakes_at: Time,
    /// A run of it is scheduled.
    runs: bool,
    /// The interface has not yet taken what it wrote.
    draining: bool,
}

/// Events between two checks of all credits, where checkers are on.
const EVENTS_PER_CHECK: u64 = 2_000;
/// The random stream of rank 0's noise; the streams of the other ranks follow. Streams before are left to programs.
const NOISE_STREAMS: u64 = 1 << 32;

/// A run that is about to happen. Deterministic: equal configurations and programs give equal outcomes, to the last
/// byte.
pub struct Simulation {
    config: SimulationConfig,
    queue: EventQueue<Event>,
    network: Network,
    /// The interfaces of all nodes of the topology.
    nodes: Vec<Node>,
    /// The nodes that run processes, in the order of their ranks.
    homes: Vec<NodeId>,
    bulk: Bulk,
    /// By node; none unless receivers post buffers.
    adapters: Vec<Adapter>,
    /// Connections whose retry timers run, in order.
    retries: VecDeque<(Rank, Rank)>,
    /// Retry timers that have run out since a process ran last or got a packet.
    vain_retries: usize,
    /// Nothing but retries happens any more.
    is_stuck: bool,
    processes: Vec<Process>,
    /// By rank.
    schedules: Vec<Schedule>,
    local: Vec<Option<LocalMessage>>,
    local_free: Vec<u32>,
    mailbox_slots: usize,
    /// Programs that have not ended.
    running: u32,
    /// What bounds the run's time, once the last program has ended.
    bounds: Bounds,
    ledger: Option<Rc<RefCell<Ledger>>>,
    /// Why the run cannot go on: it ends after the event under way.
    failure: Option<String>,
    events: u64,
    /// Somebody looks at the processes.
    is_watched: bool,
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "simulation of {} processes on a {}", self.processes.len(), self.config.topology)
    }
}

impl Simulation {
    /// Puts the job together.
    ///
    /// # Errors
    /// If the configuration makes no sense; the error says what to change.
    pub fn new(config: SimulationConfig, program: &impl Program) -> Result<Self, SimulationError> {
        config.check()?;
        let (endpoint, mailbox_slots) = config.endpoint().map_err(SimulationError::Endpoint)?;
        let network =
            Network::new(config.topology.clone(), config.network.clone()).map_err(SimulationError::Network)?;
        let posts_buffers = endpoint.flow.scheme.lends().posts_buffers();
        let ledger = || if posts_buffers { Ledger::of_buffers() } else { Ledger::new(endpoint.flow.credit_slots) };
        let ledger = config.checks.then(|| Rc::new(RefCell::new(ledger())));
        let mut simulation = Simulation {
            queue: EventQueue::new(),
            network,
            nodes: Vec::new(),
            homes: Vec::new(),
            bulk: Bulk::new(config.topology.nodes() as usize, config.cost.bulk_frame_bytes),
            adapters: Vec::new(),
            retries: VecDeque::new(),
            vain_retries: 0,
            is_stuck: false,
            processes: Vec::new(),
            schedules: Vec::new(),
            local: Vec::new(),
            local_free: Vec::new(),
            mailbox_slots,
            running: config.size(),
            bounds: Bounds::default(),
            ledger,
            failure: None,
            events: 0,
            is_watched: false,
            config,
        };
        simulation.add_nodes();
        simulation.add_processes(&endpoint, program)?;
        if let Some(packets) = simulation.config.amid_messages_of {
            simulation.begin_mid_stream(packets)?;
        }
        Ok(simulation)
    }

    fn add_processes(
        &mut self,
        endpoint_config: &EndpointConfig,
        program: &impl Program,
    ) -> Result<(), SimulationError> {
        let (size, per_node) = (self.config.size(), self.config.processes_per_node);
        let costs = Rc::new(PacketCost { cost: self.config.cost.clone(), lends: endpoint_config.flow.scheme.lends() });
        let bodies = Rc::new(RefCell::new(Bodies::default()));
        let slow = self.config.slow_receivers;
        let is_slow = slow.drawn(size, self.config.seed);
        for rank in (0..size).map(Rank) {
            let mut link = SimLink::new(rank, size, endpoint_config.flow.peers, costs.clone(), bodies.clone());
            if is_slow[rank.0 as usize] {
                link.slow_down(slow.delay);
            }
            let stream = Random::stream(self.config.seed, NOISE_STREAMS + u64::from(rank.0));
            link.disturb(Interruptions::new(self.config.noise, stream));
            if let Some(ledger) = &self.ledger {
                link.attach(ledger.clone());
            }
            let tidegate_flow::Config { scheme, peers, ref buffers, .. } = endpoint_config.flow;
            link.meet_by(self.config.rendezvous);
            if let Some(queues) = ReceiveQueues::new(scheme, peers, buffers) {
                link.post_buffers(queues);
            }
            let endpoint = Endpoint::new(endpoint_config.clone(), link);
            let endpoint = endpoint.map_err(SimulationError::Endpoint)?;
            let task = Task::new(rank, size, self.config.unreceived_most(), Memory::new(self.config.contents));
            let run = program.start(task.clone());
            let neighbours = Neighbours { first: rank.0 / per_node * per_node, count: per_node };
            let neighbours = self.config.intra_node_path.then_some(neighbours);
            self.processes.push(Process::new(
                endpoint,
                task,
                run,
                costs.clone(),
                neighbours,
                self.config.message_header,
            ));
            self.schedules.push(Schedule { wakes_at: Time::NEVER, runs: true, draining: false });
            self.queue.schedule(Time::ZERO, Event::Run(rank.0));
        }
        Ok(())
    }

    /// Runs the simulation to its end.
    ///
    /// # Errors
    /// If nothing can move before all programs have ended, if a process cannot go on, or if a checker found something.
    pub fn run(self) -> Result<Outcome, SimulationError> {
        self.run_watched(Time::NEVER, &mut |_| Time::NEVER)
    }

    /// The same, while somebody looks at the processes: at the first event from `first` on, and then at the first from
    /// the moment on that `watch` returned. The run is the same as without.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_watched(mut self, first: Time, watch: &mut dyn FnMut(Look) -> Time) -> Result<Outcome, SimulationError> {
        let mut next_look = first;
        self.is_watched = first < Time::NEVER;
        while let Some((now, event)) = self.queue.pop() {
            if now >= next_look {
                next_look = watch(Look { at: now, processes: &self.processes });
            }
            if now > self.config.time_most && self.running > 0 {
                return Ok(Outcome { cut: Some(self.config.time_most), ..self.outcome() });
            }
            self.events += 1;
            self.handle(now, event);
            if let Some(failure) = self.failure.take() {
                return Err(SimulationError::Process(failure));
            }
            if self.ledger.is_some() && self.events.is_multiple_of(EVENTS_PER_CHECK) {
                self.check()?;
            }
            if self.is_stuck {
                break;
            }
        }
        self.check()?;
        let outbound: Vec<_> = (0..self.processes.len()).map(|index| self.outbound(index)).collect();
        let processes = self.processes.iter_mut().zip(outbound);
        let waiters: Vec<_> = processes.filter_map(|(process, outbound)| process.waiter(outbound)).collect();
        if !waiters.is_empty() {
            let at = self.processes.iter().map(Process::clock).max().unwrap_or_default();
            return Err(SimulationError::Deadlock(Deadlock { at, waiters }));
        }
        if let Some(ledger) = &self.ledger {
            ledger.borrow_mut().check_empty();
            self.check_adapters_empty(&mut ledger.borrow_mut());
        }
        self.check_ledger()?;
        Ok(self.outcome())
    }

    #[inline]
    fn handle(&mut self, now: Time, event: Event) {
        match event {
            Event::Network(event) => {
                let queue = &mut self.queue;
                let notice =
                    self.network.handle(now, event, &mut |at, event| queue.schedule(at, Event::Network(event)));
                match notice {
                    Some(Notice::Injectable(node)) => {
                        self.nodes[node.0 as usize].refused = false;
                        self.serve(now, node.0 as usize);
                    }
                    Some(Notice::Arrived(node)) => self.serve(now, node.0 as usize),
                    None => {}
                }
            }
            Event::Serve(index) => {
                let node = &mut self.nodes[index as usize];
                if node.wake_at <= now {
                    node.wake_at = Time::NEVER;
                }
                self.serve(now, index as usize);
            }
            Event::Run(rank) => {
                self.schedules[rank as usize].runs = false;
                self.run_process(now, rank as usize);
            }
            Event::Local(index) => self.deliver_locally(now, index),
            Event::Timeout(rank) => {
                self.schedules[rank as usize].wakes_at = Time::NEVER;
                self.rouse(now, rank as usize);
            }
            Event::Retry => self.retry(now),
            Event::Invite(rank) => self.handle_invitation(now, Rank(rank)),
        }
    }

    fn add_nodes(&mut self) {
        let (all, per_node) = (self.config.topology.nodes(), self.config.processes_per_node);
        let is_shared = self.config.cost.shared_host_interface;
        self.nodes = (0..all).map(|node| Node::new(NodeId(node), 0, 0, is_shared)).collect();
        self.homes = self.config.nodes.clone().unwrap_or_else(|| (0..all).map(NodeId).collect());
        for (index, home) in self.homes.iter().enumerate() {
            self.nodes[home.0 as usize] = Node::new(*home, index as u32 * per_node, per_node, is_shared);
        }
        if self.posts_buffers() {
            let credits = self.adapter_credits();
            self.adapters = (0..all).map(|_| Adapter::new(credits)).collect();
        }
    }

    #[inline]
    fn home(&self, rank: Rank) -> NodeId {
        self.homes[(rank.0 / self.config.processes_per_node) as usize]
    }

    /// Runs a process, and lets its surroundings know what it did.
    #[inline]
    fn run_process(&mut self, now: Time, index: usize) {
        if self.schedules[index].draining {
            return self.retrieve_while_blocked(now, index);
        }
        self.vain_retries = 0;
        let had_ended = self.processes[index].finished.is_some();
        let after = self.processes[index].run(now);
        if self.processes[index].finished.is_some() && !had_ended {
            self.end_program();
        }
        self.pass_on(now, index);
        match after {
            After::Drain => self.start_draining(index),
            After::Again => self.schedule_run(index),
            After::Idle => self.schedule_timeout(index),
        }
    }

    /// Schedules the next timeout of an idle process's endpoint, so that it runs even if nothing comes for it.
    #[inline]
    fn schedule_timeout(&mut self, index: usize) {
        let process = &self.processes[index];
        let Some(due) = process.endpoint.next_timeout() else { return };
        let due = Time::of_instant(due).max(process.clock());
        let schedule = &mut self.schedules[index];
        if due < schedule.wakes_at {
            schedule.wakes_at = due;
            self.queue.schedule(due, Event::Timeout(index as u32));
        }
    }

    /// A process waits until its node's interface has taken what it wrote. If the interface is blocked already, nobody
    /// else will tell the process to look at its mailbox.
    #[inline]
    fn start_draining(&mut self, index: usize) {
        self.schedules[index].draining = true;
        let node = &self.nodes[self.home(Rank(index as u32)).0 as usize];
        if node.refused && self.processes[index].endpoint.link().mailbox.len() > 0 {
            self.schedule_run(index);
        }
    }

    /// A program has ended. What happens after the last one (credits on their way back) does not count for the run's
    /// time, nor for its bounds.
    fn end_program(&mut self) {
        self.running -= 1;
        if self.running == 0 {
            self.bounds = self.bounds();
        }
    }

    /// A process whose packets do not leave looks at its mailbox.
    fn retrieve_while_blocked(&mut self, now: Time, index: usize) {
        let node = &self.nodes[self.home(Rank(index as u32)).0 as usize];
        if self.config.blocked_sender == BlockedSender::Blocks || !node.refused {
            return;
        }
        let process = &mut self.processes[index];
        process.retrieve_while_blocked(now);
        if process.endpoint.link().mailbox.len() > 0 {
            self.schedule_run(index);
        }
        self.pass_on(now, index);
    }

    /// Passes on what a process has produced when it ran: packets, requests for bulk data, local messages, room in its
    /// mailbox.
    #[inline]
    fn pass_on(&mut self, now: Time, index: usize) {
        let rank = Rank(index as u32);
        let home = self.home(rank).0 as usize;
        let process = &mut self.processes[index];
        let link = process.endpoint.link_mut();
        if link.failure.is_some() {
            self.failure = self.failure.take().or(link.failure.take());
            return;
        }
        let (has_requests, clock) = (!link.requests.is_empty(), link.clock);
        let mut serve_at = self.offer(index, home);
        if has_requests {
            serve_at = serve_at.min(clock);
            self.start_bulk(rank);
        }
        if self.nodes[home].full == Some(rank) && self.has_room(index) {
            self.nodes[home].full = None;
            serve_at = serve_at.min(self.processes[index].clock());
        }
        if self.config.intra_node_path && !self.processes[index].local_out.is_empty() {
            self.send_locally(index);
        }
        if serve_at < Time::NEVER {
            self.wake_node(now, home, serve_at);
        }
        if self.posts_buffers() {
            self.schedule_invitation(rank);
        }
    }

    /// Schedules a run of a process for when its clock is reached.
    #[inline]
    fn schedule_run(&mut self, index: usize) {
        if !std::mem::replace(&mut self.schedules[index].runs, true) {
            self.queue.schedule(self.processes[index].clock(), Event::Run(index as u32));
        }
    }

    /// Something has come for a process: runs it now, or when it is no longer busy.
    #[inline]
    fn rouse(&mut self, now: Time, index: usize) {
        if self.schedules[index].runs {
            return;
        }
        if self.processes[index].clock() > now {
            self.schedule_run(index);
        } else {
            self.run_process(now, index);
        }
    }

    /// Compares the ledger with the state of every endpoint's flow control.
    fn check(&self) -> Result<(), SimulationError> {
        let Some(ledger) = &self.ledger else { return Ok(()) };
        let holders: Vec<_> = self.processes.iter().map(Process::holder).collect();
        ledger.borrow_mut().check_credits(&holders);
        self.check_buffers(&holders, &mut ledger.borrow_mut());
        self.check_ledger()
    }

    fn check_ledger(&self) -> Result<(), SimulationError> {
        match &self.ledger {
            Some(ledger) if !ledger.borrow().violations().is_empty() => {
                Err(SimulationError::Violations(ledger.borrow().violations().to_vec()))
            }
            _ => Ok(()),
        }
    }

    fn outcome(mut self) -> Outcome {
        let waits: Vec<Vec<RankWait>> = match self.is_watched {
            true => self.processes.iter_mut().map(Process::waits).collect(),
            false => Vec::new(),
        };
        let samples = self.processes.iter().flat_map(|process| process.task.look().samples.clone()).collect();
        let mailbox_bytes = self.processes.iter().map(|process| process.endpoint.link().mailbox.heap_bytes()).sum();
        let mut processes: Vec<_> = self
            .processes
            .iter()
            .map(|process| ProcessOutcome {
                is_slow: process.endpoint.link().is_slow(),
                finished: process.finished.map_or(Time::ZERO, |(at, _)| at),
                counters: process.counters(),
                spent: process.finished.map_or_else(Spent::default, |(_, spent)| spent),
                blocked: process.endpoint.link().blocked.total(),
                waits: Vec::new(),
                buffers: self.posted_by(process),
            })
            .collect();
        processes.iter_mut().zip(waits).for_each(|(process, waits)| process.waits = waits);
        let time = processes.iter().map(|process| process.finished).max().unwrap_or_default();
        let (network, events, bounds) = (self.network.totals(), self.events, self.bounds);
        let answers = self.adapters.iter().map(|adapter| adapter.answered).sum();
        Outcome { time, cut: None, processes, samples, network, answers, bounds, events, mailbox_bytes }
    }

    /// What each resource alone would have needed.
    fn bounds(&self) -> Bounds {
        let cost = &self.config.cost;
        let most = |times: &mut dyn Iterator<Item = Time>| times.max().unwrap_or_default();
        Bounds {
            process: most(&mut self.processes.iter().filter_map(|process| Some(process.finished?.1.total()))),
            injection: most(&mut self.nodes.iter().map(|node| cost.injection * node.passed(Direction::Out))),
            extraction: most(&mut self.nodes.iter().map(|node| cost.extraction * node.passed(Direction::In))),
            link: most(&mut self.network.links().map(|link| link.busy)),
        }
    }
}
