//! Binding and enabling an endpoint, and taking it out of the lists of the objects that it is bound to.

use crate::addressing::addresses::Addresses;
use crate::addressing::host;
use crate::addressing::reach::{self, Links};
use crate::border::bindings::*;
use crate::border::caller;
use crate::border::errno::{Errno, INVALID, Result};
use crate::border::loader;
use crate::border::log;
use crate::lower::{Choice, Lower, Wants};
use crate::objects::active::{Active, Engine};
use crate::objects::completion_queue::CompletionQueue;
use crate::objects::counter::Counter;
use crate::objects::endpoint::{Endpoint, QueueBinding};
use crate::operations::operation::EventKind;
use crate::parameter::ChunkSettings;
use crate::parameter::launcher;
use crate::parameter::limits::OPERATIONS_MOST;
use crate::parameter::sizes::Needs;
use crate::threads::domain_lock::Entered;
use crate::threads::waits::INJECT_PATIENCE;
use crate::trace::operations::Operations;
use crate::trace::process;
use std::sync::{Arc, OnceLock};
use tidegate_link::fabric::{FabricLink, Greeting, Network};
use tidegate_link::{BulkChoice, Chosen, NAMES, ShmConfig, ShmLink, StatsConfig};
use tidegate_message::flow::{Config, PACKET_BYTES};
use tidegate_message::{EndpointConfig, EndpointError};

/// Packets retrieved per progress call at most.
const PACKETS_PER_PROGRESS: usize = 64;
/// The flags by which counters are bound to kinds of events.
const EVENT_FLAGS: [(EventKind, u64); EventKind::COUNT] = [
    (EventKind::Send, FI_SEND),
    (EventKind::Receive, FI_RECV),
    (EventKind::Write, FI_WRITE),
    (EventKind::Read, FI_READ),
    (EventKind::RemoteWrite, FI_REMOTE_WRITE),
    (EventKind::RemoteRead, FI_REMOTE_READ),
];

impl Endpoint {
    /// Creates the mailbox, and the message layer over it, unless they are there.
    pub fn activate(self: &Arc<Self>, entered: &mut Entered) -> Result<()> {
        if self.state.get(entered).active.is_some() {
            return Ok(());
        }
        let settings = &self.domain.settings;
        let flow = self.flow();
        let mut config = ShmConfig::new(flow.clone());
        config.bulk = settings.bulk;
        config.bounce_buffers = settings.bounce_buffers;
        config.send_buffers = settings.send_buffers;
        config.spin = settings.spin;
        // An application that calls `fi_getname` before it binds queues may still bind one whose readers sleep.
        config.wakes = self.may_sleep() || self.receive_queue.get().is_none();
        config.stats = settings.stats_dir.clone().map(|dir| StatsConfig {
            dir,
            rank: settings.job.rank,
            job_size: settings.job.size,
            launch: launcher::launch(),
            mpi: caller::mpi(),
            chosen: Chosen { slots: settings.leaves_slots(), memory: settings.receive_memory.is_none() },
        });
        let link = ShmLink::new(config).map_err(|error| {
            log::trouble(FI_LOG_EP_CTRL, &error.for_job(settings.job.size));
            Errno::of_link(&error)
        })?;
        let network = self.open_network(&link, &flow)?;
        let share = settings.share_within_host(flow.planned());
        let links = join(link, network, settings.chunks, (flow.peers, share));
        let mut config = self.config(flow);
        let refuse = |error: EndpointError| {
            log::trouble(FI_LOG_EP_CTRL, &error.named(&NAMES));
            INVALID
        };
        let least = Engine::least_receive_memory(&config).map_err(|error| refuse(error.into()))?;
        let for_all = Engine::receive_memory_for_all(&config).map_err(|error| refuse(error.into()))?;
        config.receive_memory = settings.receive_memory(Needs { least, for_all });
        let engine = Engine::new(config, links).map_err(refuse)?;
        let mut active = Active::new(engine);
        if let Some(trace) = &settings.trace {
            process::open(trace, &settings.job);
            active.trace = Operations::open(&active.own.address);
        }
        if let Some(service) = &self.service {
            let claim = service.claim(active.engine.link().look_at_first().directory(), active.own.address).map_err(
                |error| {
                    log::trouble(FI_LOG_EP_CTRL, &error.to_string());
                    Errno::of_claim(&error)
                },
            )?;
            active.claim = Some(claim);
        }
        self.domain.state.get(entered).endpoints.push(Arc::clone(self));
        log::info(FI_LOG_EP_CTRL, || format!("endpoint {} is open", active.own));
        self.state.get(entered).active = Some(active);
        self.register_regions(entered);
        Ok(())
    }

    /// The configuration of the message layer, but for the bound on receive memory.
    fn config(&self, flow: Config) -> EndpointConfig {
        let settings = &self.domain.settings;
        EndpointConfig {
            flow,
            eager_bytes: settings.eager_bytes,
            operations: OPERATIONS_MOST,
            receive_memory: 0,
            patience: INJECT_PATIENCE,
            packets_per_progress: PACKETS_PER_PROGRESS,
            bulk_bytes_per_progress: settings.chunks.bytes_per_call(),
        }
    }

    /// How flow control is configured. The user is told if the application expects more addresses than there are
    /// places.
    fn flow(&self) -> Config {
        let expected = self.vector.get().map_or(0, |vector| vector.expected);
        // What flow control refuses is said when the endpoint is made.
        let for_all = |flow: &Config| Engine::receive_memory_for_all(&self.config(flow.clone())).unwrap_or(0);
        let (flow, is_cut) = self.domain.settings.flow(expected, for_all);
        if is_cut {
            log::trouble(
                FI_LOG_EP_CTRL,
                &format!(
                    "the application expects {expected} addresses (fi_av_attr.count), and this endpoint has places for {} \
                     peers, whose mailbox takes {} MiB in /dev/shm: if more are to communicate, set FI_TIDEGATE_PEERS",
                    flow.peers,
                    flow.regions().map_or(0, |regions| regions.mailbox as usize * PACKET_BYTES) >> 20
                ),
            );
        }
        flow
    }

    /// The network to other hosts, if the user and the launcher say that one is needed.
    fn open_network(&self, link: &ShmLink, flow: &Config) -> Result<Option<FabricLink<Lower>>> {
        let settings = &self.domain.settings;
        let job = &settings.job;
        // Other ranks, or the process that has started this one, may be on any host, and the launcher does not tell.
        let is_guess = settings.fabric == Choice::Auto && !job.spans_hosts() && job.may_span_hosts();
        let choice = match &settings.fabric {
            Choice::Auto if !job.spans_hosts() && !is_guess => &Choice::None,
            choice => choice,
        };
        let (Some(loader), false) = (loader::get(), *choice == Choice::None) else { return Ok(None) };
        let reads = settings.bulk != BulkChoice::Mailbox;
        let chunks = settings.chunks.most as usize;
        let (peers, ports) = (flow.at_opening() as usize, settings.ports);
        // The page of counters has it for `tidegate run`, and the log.
        let described = settings.stats_dir.is_some() || log::shows_info(FI_LOG_EP_CTRL);
        let wants = Wants { peers, may_sleep: self.may_sleep(), reads, chunks, ports, described };
        let lower = match Lower::open(loader, choice, wants) {
            Ok(lower) => lower,
            Err(why) if is_guess => {
                log::info(FI_LOG_EP_CTRL, || format!("no other hosts are reached: {why}"));
                return Ok(None);
            }
            Err(why) => {
                log::trouble(FI_LOG_EP_CTRL, &why);
                return Err(Errno(FI_ENODEV));
            }
        };
        log::info(FI_LOG_EP_CTRL, || {
            let reads = if lower.reads_memory() { ", which reads their memory" } else { "" };
            format!("other hosts are reached by {}{reads}", lower.description())
        });
        let host = String::from_utf8_lossy(&host::host_name()).into_owned();
        let own = Greeting {
            contact: reach::contact_of(link),
            window: 0,
            rank: settings.job.rank,
            reads_memory: reads,
            host,
            watched: lower.watched(),
        };
        let chunking = settings.chunks.between_hosts(lower.longest_bytes());
        let mut link = FabricLink::new(own, lower, flow);
        link.set_chunking(chunking);
        Ok(Some(link))
    }

    /// Whether threads may sleep until something comes for this endpoint.
    fn may_sleep(&self) -> bool {
        self.domain.always_progresses() || self.wait_queues().next().is_some()
    }

    /// Lets packets wake the readers of our queues, and the thread that makes all progress. If that fails for one, it
    /// is undone for the others.
    fn add_wakes(&self, entered: &mut Entered) -> Result<()> {
        let active = self.state.get(entered).active.as_mut().ok_or(Errno(FI_EOPBADSTATE))?;
        let descriptors = reach::wake_descriptors(active.engine.link_mut()).map_err(|error| {
            log::warn(FI_LOG_EP_CTRL, || format!("no descriptor to wake by: {error}"));
            Errno::of_system(&error)
        })?;
        let added =
            descriptors.iter().try_for_each(|descriptor| self.waits().try_for_each(|wait| wait.add(*descriptor)));
        if added.is_err() {
            self.remove_wakes(&descriptors);
        }
        added
    }

    /// The links wake nobody any more.
    pub fn remove_own_wakes(&self, entered: &mut Entered) {
        if let Some(active) = &mut self.state.get(entered).active
            && let Ok(descriptors) = reach::wake_descriptors(active.engine.link_mut())
        {
            self.remove_wakes(&descriptors);
        }
    }

    /// Lets peers reach the domain's regions through this endpoint, if it can communicate.
    fn register_regions(&self, entered: &mut Entered) {
        let regions = core::mem::take(&mut self.domain.state.get(entered).regions);
        if let Some(active) = &mut self.state.get(entered).active {
            let counts = self.counts();
            active.engine.count_writes(counts.writes);
            active.engine.count_reads(counts.reads);
            for (key, region) in &regions {
                region.register(*key, &mut active.engine, counts);
            }
        }
        self.domain.state.get(entered).regions = regions;
    }

    /// `fi_enable`.
    pub fn enable(self: &Arc<Self>, entered: &mut Entered) -> Result {
        if self.vector.get().is_none() {
            return Err(Errno(FI_ENOAV));
        }
        if self.send_queue.get().is_none() && self.receive_queue.get().is_none() {
            return Err(Errno(FI_ENOCQ));
        }
        self.activate(entered)?;
        if !self.state.get(entered).enabled {
            if self.may_sleep() {
                self.add_wakes(entered)?;
            }
            self.domain.begin_always().inspect_err(|_| self.remove_own_wakes(entered))?;
            // Only now, so that an endpoint whose enabling failed does not pass for enabled at the next call.
            self.state.get(entered).enabled = true;
            // Threads may sleep on our queues already.
            self.look_after_sleepers(entered);
        }
        Ok(0)
    }

    /// Takes the endpoint out of the lists of its queues, its counters and its domain.
    pub fn leave_lists(self: &Arc<Self>, entered: &mut Entered) {
        let others = |endpoints: &mut Vec<Arc<Endpoint>>| endpoints.retain(|other| !Arc::ptr_eq(other, self));
        for bound in [self.send_queue.get(), self.receive_queue.get()].into_iter().flatten() {
            others(&mut bound.queue.state.get(entered).endpoints);
        }
        for counter in self.counters.iter().filter_map(OnceLock::get) {
            others(counter.endpoints.get(entered));
        }
        others(&mut self.domain.state.get(entered).endpoints);
    }

    /// `fi_ep_bind` of a completion queue.
    pub fn bind_queue(self: &Arc<Self>, queue: Arc<CompletionQueue>, flags: u64, entered: &mut Entered) -> Result {
        if flags & !(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION) != 0 || flags & (FI_TRANSMIT | FI_RECV) == 0 {
            return Err(Errno(FI_EBADFLAGS));
        }
        if !Arc::ptr_eq(&queue.domain, &self.domain) {
            return Err(INVALID);
        }
        let selective = flags & FI_SELECTIVE_COMPLETION != 0;
        for (flag, place) in [(FI_TRANSMIT, &self.send_queue), (FI_RECV, &self.receive_queue)] {
            if flags & flag != 0 {
                place.set(QueueBinding { queue: Arc::clone(&queue), selective }).map_err(|_| INVALID)?;
            }
        }
        self.join(&mut queue.state.get(entered).endpoints);
        Ok(0)
    }

    /// `fi_ep_bind` of a counter.
    pub fn bind_counter(self: &Arc<Self>, counter: Arc<Counter>, flags: u64, entered: &mut Entered) -> Result {
        if !Arc::ptr_eq(&counter.domain, &self.domain) {
            return Err(INVALID);
        }
        if flags & !EVENT_FLAGS.iter().fold(0, |all, (_, flag)| all | flag) != 0 {
            return Err(Errno(FI_ENOSYS));
        }
        for (kind, flag) in EVENT_FLAGS {
            if flags & flag != 0 {
                self.counters[kind as usize].set(Arc::clone(&counter)).map_err(|_| INVALID)?;
            }
        }
        self.join(counter.endpoints.get(entered));
        if flags & (FI_REMOTE_READ | FI_REMOTE_WRITE) != 0 {
            // If the endpoint communicates already, its regions are published for accesses that are not counted.
            self.register_regions(entered);
        }
        Ok(0)
    }

    /// `fi_ep_bind` of an address vector, which must be one of this endpoint's domain.
    pub fn bind_vector(&self, addresses: Arc<Addresses>) -> Result {
        self.vector.set(addresses).map(|()| 0).map_err(|_| INVALID)
    }

    /// Enters the endpoint in the list of a queue or a counter, once.
    fn join(self: &Arc<Self>, endpoints: &mut Vec<Arc<Endpoint>>) {
        if !endpoints.iter().any(|other| Arc::ptr_eq(other, self)) {
            endpoints.push(Arc::clone(self));
        }
    }
}

/// The ways to all peers: over shared memory, and over the network if there is one. What long messages are taken in is
/// noted in the page of counters.
///
/// `peers`: places that there are. `share`: of those that the endpoint was planned for, how many may come over shared
/// memory.
fn join(
    link: ShmLink,
    network: Option<FabricLink<Lower>>,
    chunks: ChunkSettings,
    (peers, share): (u32, Option<u32>),
) -> Links {
    let Some(mut network) = network else {
        link.note_chunks(chunks.within(), None);
        return Links::alone(link);
    };
    let lower = network.network();
    link.note_network(lower.description());
    let longest = Some(lower.longest_bytes()).filter(|_| lower.reads_memory());
    link.note_chunks(chunks.within(), longest.map(|longest| chunks.between(longest)));
    let links = Links::new(link, network, peers);
    match share {
        Some(of_first) => links.with_share(of_first),
        None => links,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameter::Settings;
    use tidegate_message::flow::SchemeName;
    use tidegate_message::{Counter, Link};

    /// KiB of an endpoint of a job of this size, without a network: its mailbox, its base window, and what of the
    /// bound is fixed; and how many peers may have places in the end. `changed`: what is otherwise than by default.
    fn of(scheme: SchemeName, ranks: u32, changed: fn(Config) -> Config) -> ([u64; 3], u32) {
        let mut settings = Settings { node_memory: None, scheme, ..Settings::default() };
        (settings.job.size, settings.job.local_size) = (Some(ranks), Some(ranks));
        let config = |flow: Config| EndpointConfig {
            flow,
            eager_bytes: settings.eager_bytes,
            operations: OPERATIONS_MOST,
            receive_memory: 64 << 20,
            patience: INJECT_PATIENCE,
            packets_per_progress: PACKETS_PER_PROGRESS,
            bulk_bytes_per_progress: settings.chunks.bytes_per_call(),
        };
        let for_all = |flow: &Config| Engine::receive_memory_for_all(&config(flow.clone())).unwrap_or(0);
        let flow = changed(settings.flow(4, for_all).0);
        let link = ShmLink::new(ShmConfig::new(flow.clone())).unwrap();
        let engine = Engine::new(config(flow), Links::alone(link)).unwrap();
        let counters = engine.link().counters();
        let all = [Counter::MailboxBytes, Counter::WindowBytes, Counter::ReceiveFixedBytes];
        (all.map(|it| counters.get(it) >> 10), engine.places().1)
    }

    #[test]
    fn places_for_newcomers_take_nearly_nothing_from_the_peers_that_were_planned_for() {
        let dynamic = |ranks, changed| of(SchemeName::Dynamic, ranks, changed).0;
        let without = |flow: Config| {
            let flow = Config { peers: flow.planned(), newcomers: 0, ..flow };
            Config { slots_per_peer: crate::parameter::sizes::slots_by_default(&flow), ..flow }
        };
        for (ranks, mailbox_more, window_less, fixed_more) in
            [(1, 0, 4, 1400), (8, 0, 4, 1400), (64, 64, 1, 800), (1024, 128, 1, 1500)]
        {
            let (plain, mixed) = (dynamic(ranks, without), dynamic(ranks, |flow| flow));
            let is_within = |before: u64, after: u64, most: u64| after.abs_diff(before) <= most + 1;
            assert!(is_within(plain[0], mixed[0], mailbox_more), "{ranks} ranks: mailbox {plain:?} {mixed:?}");
            assert!(is_within(plain[1], mixed[1], window_less), "{ranks} ranks: window {plain:?} {mixed:?}");
            assert!(is_within(plain[2], mixed[2], fixed_more), "{ranks} ranks: fixed {plain:?} {mixed:?}");
        }
        // The documents have these numbers for the usual bound.
        assert_eq!(
            [8, 64, 1024].map(|ranks| dynamic(ranks, |flow| flow)),
            [[256, 505, 17_784], [364, 125, 19_641], [1155, 29, 24_388]]
        );
    }

    #[test]
    fn by_default_a_job_has_places_for_two_thousand_newcomers_which_take_nothing_as_long_as_they_do_not_come() {
        let default = |ranks, changed| of(SchemeName::Speculative, ranks, changed);
        let without_later = |flow: Config| {
            let (peers, newcomers) = (flow.at_opening(), flow.newcomers - flow.later);
            Config { peers, newcomers, later: 0, ..flow }
        };
        for ranks in [1, 8, 64, 1024] {
            let ((plain, few), (mixed, most)) = (default(ranks, without_later), default(ranks, |flow| flow));
            let is_within = |at: usize, part: u64| mixed[at].abs_diff(plain[at]) * part <= plain[at] + part;
            assert!(
                plain[0] == mixed[0] && is_within(1, 500) && is_within(2, 200),
                "{ranks} ranks: {plain:?} {mixed:?}"
            );
            assert!(most > few + 900, "{ranks} ranks: {few} and {most} places");
        }
        assert_eq!(of(SchemeName::SharedWindow, 8, |flow| flow).1, 1695);
        // The documents have these numbers for the usual bound.
        assert_eq!(
            [8, 64, 1024].map(|ranks| default(ranks, |flow| flow)),
            [([256, 504, 17_835], 1933), ([256, 124, 20_271], 1923), ([256, 29, 23_735], 2498)]
        );
    }
}
