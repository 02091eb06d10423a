//! The one path of every operation: from the thin calls of `tagged`, `message`, `rma` and `atomic` into the message layer, and
//! of every completion back into queues and counters.

use crate::address_vector::NO_ADDRESS;
use crate::bindings::*;
use crate::completion_queue::{Entry, Failed, log_failure};
use crate::endpoint::{Endpoint, EventKind, QueueBinding};
use crate::errno::{Errno, INVALID, Reason, Result, TRY_AGAIN};
use crate::lock::Entered;
use crate::log;
use crate::name::{Name, PATIENCE, Wait};
use core::ffi::c_void;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;
use tidegate_link::{Address, Claim, IoBuffer, Service, ShmLink};
use tidegate_message::{Completion, Context, Instant, Operation, PeerId, Pressure, Source, Space, Target, TryAgain};

/// The message layer over shared memory.
pub type Engine = tidegate_message::Endpoint<ShmLink>;

/// An endpoint that can communicate.
pub struct Active {
    /// The message layer.
    pub engine: Engine,
    /// Its own address.
    pub own: Address,
    /// Where an `fi_addr_t` leads: a peer's number, `MYSELF`, or `UNKNOWN`.
    targets: Vec<u32>,
    /// What the application calls a peer, by the peer's number.
    sources: Vec<fi_addr_t>,
    /// What the application calls this endpoint itself.
    own_source: fi_addr_t,
    /// State of the table of peers that the two above belong to.
    epoch: u32,
    /// Services that nobody has opened yet, by index in the address vector.
    waits: HashMap<fi_addr_t, Wait>,
    /// The service that others find this endpoint by.
    pub claim: Option<Claim>,
    tickets: Tickets,
}

const UNKNOWN: u32 = u32::MAX;
const MYSELF: u32 = u32::MAX - 1;

/// What is remembered of an operation until it completes.
#[derive(Clone, Copy)]
struct Ticket {
    context: *mut c_void,
    /// Completion flags.
    kind: u64,
    /// Multi-receive: where the buffer starts.
    start: *mut u8,
    /// Whether success goes to the queue (failure always does).
    wanted: bool,
    event: EventKind,
}

/// Tickets by number: the number is the operation's context in the message layer.
#[derive(Default)]
struct Tickets {
    places: Vec<Ticket>,
    free: Vec<u32>,
    /// Sends, reads, writes and atomics that have not completed.
    outgoing: usize,
    /// Unexpected messages that were set aside for `FI_CLAIM`: the application's context, and the number of the ticket.
    claimed: BTreeSet<(usize, usize)>,
}

/// Context of operations that nobody wants to hear of unless they fail.
const SILENT: Context = Context(usize::MAX);

impl Tickets {
    #[inline]
    fn insert(&mut self, ticket: Ticket) -> Context {
        self.outgoing += usize::from(ticket.event != EventKind::Receive);
        match self.free.pop() {
            Some(index) => {
                self.places[index as usize] = ticket;
                Context(index as usize)
            }
            None => {
                self.places.push(ticket);
                Context(self.places.len() - 1)
            }
        }
    }

    #[inline]
    fn remove(&mut self, context: Context) {
        let Some(ticket) = self.places.get(context.0) else { return };
        self.outgoing -= usize::from(ticket.event != EventKind::Receive);
        self.free.push(context.0 as u32);
    }

    #[inline]
    fn get(&self, context: Context) -> Option<Ticket> {
        self.places.get(context.0).copied()
    }

    /// The message that was set aside for this context of the application waits under this ticket, or no longer.
    fn set_claimed(&mut self, ticket: Context, claimed: bool) {
        let name = (self.places[ticket.0].context.addr(), ticket.0);
        if claimed {
            self.claimed.insert(name)
        } else {
            self.claimed.remove(&name)
        };
    }

    /// The ticket of a message that was set aside for this context of the application.
    fn find_claimed(&self, context: *mut c_void) -> Option<Context> {
        let all = (context.addr(), 0)..=(context.addr(), usize::MAX);
        self.claimed.range(all).next().map(|(_, ticket)| Context(*ticket))
    }
}

/// What all operations have in common.
pub struct Call {
    /// Completion flags: what it is.
    pub kind: u64,
    /// The application's flags of this call, with the endpoint's defaults where they apply.
    pub flags: u64,
    /// The application's context.
    pub context: *mut c_void,
    /// Which counter counts it.
    pub event: EventKind,
    /// Multi-receive: where the buffer starts.
    pub start: *mut u8,
    /// `fi_inject` and its relatives: no completion, ever, unless it fails.
    pub silent: bool,
}

/// What the message layer is to say of an operation that it starts.
#[derive(Clone, Copy)]
pub struct Named {
    /// Its name.
    pub context: Context,
    /// Whether to report success.
    pub report: bool,
}

/// What is to be told of an operation that succeeds.
#[derive(Clone, Copy)]
struct Reporting {
    /// Whether success goes to the queue.
    wanted: bool,
    /// Whether the message layer tells of success at all.
    ticketed: bool,
}

/// An operation that ended, on its way to queues and counters.
struct Event {
    kind: EventKind,
    wanted: bool,
    /// Whether it is not the end of one operation that the application started here.
    unsolicited: bool,
    entry: Entry,
}

impl Active {
    /// An endpoint with nothing outstanding.
    pub fn new(engine: Engine) -> Active {
        let (own, epoch) = (engine.link().address(), engine.epoch());
        let (targets, sources) = (Vec::new(), Vec::new());
        let (own_source, waits, tickets) = (NO_ADDRESS, HashMap::new(), Tickets::default());
        Active { engine, own, targets, sources, own_source, epoch, waits, claim: None, tickets }
    }

    /// Addresses have changed: they are looked up again when they are needed.
    pub fn forget_addresses(&mut self) {
        self.targets.clear();
        self.sources.clear();
        self.own_source = NO_ADDRESS;
    }

    /// These indices have been removed: whoever gets them next waits from the beginning. All others have waited as long as before,
    /// whatever else changes in the vector.
    pub fn forget_waits(&mut self, removed: &[fi_addr_t]) {
        if !self.waits.is_empty() {
            for index in removed {
                self.waits.remove(index);
            }
        }
    }

    /// Whether every operation so far has completed, as `FI_FENCE` wants it.
    fn is_drained(&self) -> bool {
        self.tickets.outgoing == 0 && !self.engine.has_outstanding()
    }

    /// Tells people that receive memory is used up, and why.
    #[cold]
    fn warn_of(&self, pressure: &Pressure) {
        let name = |peer: PeerId| {
            let address = self.engine.link().address_of(peer);
            address.map_or_else(|| format!("peer {}", peer.0), |address| address.to_string())
        };
        let (sender, tag) = pressure.sender;
        let tag = tag.map_or_else(|| "untagged".to_owned(), |tag| format!("tag {tag:#x}"));
        let stored: Vec<String> =
            pressure.stored.iter().map(|&(peer, bytes)| format!("{bytes} bytes from {}", name(peer))).collect();
        let Pressure { window, bytes, .. } = pressure;
        log::warn(FI_LOG_EP_DATA, || {
            format!(
                "{} has no room for more unmatched messages of {} ({tag}), whose share is {window} bytes; unmatched in all: \
                 {bytes} bytes ({}). They wait with their senders until they are received, which costs time but no memory; a \
                 larger FI_TIDEGATE_RX_MEMORY gives more room",
                self.own,
                name(sender),
                stored.join(", ")
            )
        });
    }

    /// The receive of this context, for canceling.
    pub fn cancel(&mut self, context: *mut c_void) -> bool {
        // A context may name several receives; the oldest that has not matched is meant.
        let tickets = &self.tickets;
        self.engine.cancel_named(context.addr(), |ticket| tickets.places[ticket.0].context.addr())
    }

    /// The message set aside for this context was claimed or discarded: its name, which the new operation takes over.
    pub fn claimed(&self, context: *mut c_void) -> Option<Context> {
        self.tickets.find_claimed(context)
    }

    /// Turns a completion into what queues and counters want, and ends the ticket if nothing more comes under it. `None`: it is one
    /// of the special ones.
    #[inline(always)]
    fn settle(&mut self, completion: &Completion) -> Option<Event> {
        if completion.operation == Operation::RemoteWrite {
            return None;
        }
        let ticket = self.tickets.get(completion.context).unwrap_or_else(|| Ticket::silent(completion.operation));
        if ticket.kind & (FI_MULTI_RECV | FI_CLAIM) != 0 {
            return None;
        }
        if completion.context != SILENT {
            self.tickets.remove(completion.context);
        }
        let entry = ticket.entry(completion);
        Some(Event { kind: ticket.event, wanted: ticket.wanted, unsolicited: false, entry })
    }

    /// The same for special completions: peers' writes, multi-receives, which complete many times, and peeks that claim, whose ticket
    /// waits for the claim.
    #[cold]
    fn settle_special(&mut self, completion: &Completion) -> Event {
        let ticket = self.tickets.get(completion.context);
        let Some(ticket) = ticket.filter(|_| completion.operation != Operation::RemoteWrite) else {
            let mut entry = Entry::new(core::ptr::null_mut(), FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
            entry.completion.len = completion.length;
            entry.completion.data = completion.data.unwrap_or(0);
            // Without data it is only counted.
            let wanted = completion.data.is_some();
            return Event { kind: EventKind::RemoteWrite, wanted, unsolicited: true, entry };
        };
        let mut entry = ticket.entry(completion);
        let mut ended = true;
        if ticket.kind & FI_MULTI_RECV != 0 {
            entry.completion.buf = ticket.start.wrapping_add(completion.offset).cast();
            if !completion.released {
                entry.completion.flags &= !FI_MULTI_RECV;
                ended = false;
            }
        }
        if ticket.kind & FI_CLAIM != 0 {
            entry.completion.flags &= !FI_CLAIM;
            if completion.result.is_ok() {
                self.tickets.set_claimed(completion.context, true);
                ended = false;
            }
        }
        if ended {
            self.tickets.remove(completion.context);
        }
        let unsolicited = ticket.kind & FI_MULTI_RECV != 0;
        Event { kind: ticket.event, wanted: ticket.wanted, unsolicited, entry }
    }
}

impl Ticket {
    /// What a queue says of an operation.
    #[inline(always)]
    fn entry(&self, completion: &Completion) -> Entry {
        let mut entry = Entry::new(self.context, self.kind);
        entry.completion.len = completion.length;
        if let Some(data) = completion.data {
            entry.completion.data = data;
            entry.completion.flags |= FI_REMOTE_CQ_DATA;
        }
        if let Space::Tagged { tag, .. } = completion.space {
            entry.completion.tag = tag;
        }
        entry
    }

    /// For an operation without a ticket that failed.
    #[cold]
    fn silent(operation: Operation) -> Ticket {
        let (kind, event) = match operation {
            Operation::Write => (FI_RMA | FI_WRITE, EventKind::Write),
            Operation::Read => (FI_RMA | FI_READ, EventKind::Read),
            Operation::Atomic => (FI_ATOMIC | FI_WRITE, EventKind::Write),
            _ => (FI_SEND, EventKind::Send),
        };
        let (context, start) = (core::ptr::null_mut(), core::ptr::null_mut());
        Ticket { context, kind, start, wanted: false, event }
    }
}

impl Endpoint {
    /// Where messages to an address go.
    #[inline]
    pub fn target(&self, address: fi_addr_t, entered: &mut Entered) -> Result<Target> {
        let active = self.state.get(entered).active.as_ref().ok_or(Errno(FI_EOPBADSTATE))?;
        match active.targets.get(address as usize) {
            Some(&number) if number < MYSELF => Ok(Target::Peer(PeerId(number))),
            _ => self.find_target(address, entered),
        }
    }

    /// From whom a receive takes messages.
    #[inline]
    pub fn source(&self, address: fi_addr_t, entered: &mut Entered) -> Result<Source> {
        if address == NO_ADDRESS || !self.is_directed() {
            return Ok(Source::Any);
        }
        self.target(address, entered).map(Source::From)
    }

    #[cold]
    fn find_target(&self, address: fi_addr_t, entered: &mut Entered) -> Result<Target> {
        let vector = self.vector.get().ok_or(Errno(FI_ENOAV))?;
        let bytes = match vector.name(address, entered).ok_or(INVALID)? {
            Name::Endpoint(bytes) => bytes,
            Name::Service(service) => self.find_service(address, &service, entered)?,
        };
        let active = self.state.get(entered).active.as_mut().ok_or(Errno(FI_EOPBADSTATE))?;
        let index = address as usize;
        if active.targets.len() <= index {
            active.targets.resize(index + 1, UNKNOWN);
        }
        if bytes == active.own {
            active.targets[index] = MYSELF;
            return Ok(Target::Myself);
        }
        let peer = active.engine.link_mut().peer(&bytes).map_err(|error| {
            if error.may_be_tried_again() {
                return Errno(FI_EAGAIN);
            }
            log::trouble(FI_LOG_EP_DATA, &error.to_string());
            Errno::of_link(&error)
        })?;
        active.targets[index] = peer.0;
        Ok(Target::Peer(peer))
    }

    /// Where a service leads that was inserted under this index. While it leads nowhere, the operation is to be tried again, but
    /// not for ever.
    fn find_service(&self, index: fi_addr_t, service: &Service, entered: &mut Entered) -> Result<Address> {
        let vector = self.vector.get().ok_or(Errno(FI_ENOAV))?;
        let active = self.state.get(entered).active.as_mut().ok_or(Errno(FI_EOPBADSTATE))?;
        if let Some(owner) = service.find(active.engine.link().directory()) {
            active.waits.remove(&index);
            vector.check_settings(&owner)?;
            vector.note(index, owner, entered);
            return Ok(owner);
        }
        let now = std::time::Instant::now();
        if active.waits.entry(index).or_insert_with(|| Wait::new(now)).is_over(now) {
            let seconds = PATIENCE.as_secs();
            log::trouble(
                FI_LOG_EP_DATA,
                &format!(
                    "no endpoint of this user has opened {service} on this host for {seconds} seconds; start its server, \
                     which opens by fi_getinfo with FI_SOURCE and the same service"
                ),
            );
            return Err(Errno(FI_ECONNREFUSED));
        }
        self.progress(entered);
        Err(TRY_AGAIN)
    }

    /// Starts an operation: the one way from all calls into the message layer.
    #[inline]
    pub fn submit(
        &self,
        call: Call,
        entered: &mut Entered,
        start: impl FnOnce(&mut Engine, Named) -> core::result::Result<(), TryAgain>,
    ) -> Result {
        let queue = if call.event == EventKind::Receive { self.receive_queue.get() } else { self.send_queue.get() };
        let wanted = !call.silent && queue.is_some_and(|queue| !queue.selective || call.flags & FI_COMPLETION != 0);
        let ticketed = !call.silent || self.counters[call.event as usize].get().is_some();
        if wanted {
            match self.state.get(entered).room(call.event) {
                0 => return self.start_if_room(call, entered, start),
                room => *room -= 1,
            }
        }
        self.start(call, Reporting { wanted, ticketed }, entered, start)
    }

    /// As [`submit`](Self::submit), where the queue has to be looked at first.
    #[cold]
    fn start_if_room(
        &self,
        call: Call,
        entered: &mut Entered,
        start: impl FnOnce(&mut Engine, Named) -> core::result::Result<(), TryAgain>,
    ) -> Result {
        self.find_room(call.event, entered)?;
        self.start(call, Reporting { wanted: true, ticketed: true }, entered, start)
    }

    #[inline(always)]
    fn start(
        &self,
        call: Call,
        reporting: Reporting,
        entered: &mut Entered,
        start: impl FnOnce(&mut Engine, Named) -> core::result::Result<(), TryAgain>,
    ) -> Result {
        let Reporting { wanted, ticketed } = reporting;
        let active = self.state.get(entered).active.as_mut().ok_or(Errno(FI_EOPBADSTATE))?;
        if call.flags & FI_FENCE != 0 && !active.is_drained() {
            self.progress(entered);
            return Err(TRY_AGAIN);
        }
        let context = if ticketed {
            let Call { context, kind, event, start, .. } = call;
            active.tickets.insert(Ticket { context, kind, start, wanted, event })
        } else {
            SILENT
        };
        match start(&mut active.engine, Named { context, report: ticketed }) {
            Ok(()) => {
                if self.state.get(entered).watched {
                    self.look_after_sleepers(entered);
                }
                Ok(0)
            }
            Err(TryAgain) => {
                active.tickets.remove(context);
                self.progress(entered);
                Err(TRY_AGAIN)
            }
        }
    }

    /// Starts an operation on the message that an earlier peek set aside for `context`; its ticket serves again.
    pub fn submit_claimed(
        &self,
        call: Call,
        entered: &mut Entered,
        start: impl FnOnce(&mut Engine, Named) -> core::result::Result<(), TryAgain>,
    ) -> Result {
        let selective = self.receive_queue.get().is_none_or(|queue| queue.selective);
        let active = self.state.get(entered).active.as_mut().ok_or(Errno(FI_EOPBADSTATE))?;
        let context = active.claimed(call.context).ok_or(INVALID)?;
        let ticket = &mut active.tickets.places[context.0];
        ticket.kind = call.kind;
        ticket.wanted = !selective || call.flags & FI_COMPLETION != 0;
        active.tickets.set_claimed(context, false);
        if start(&mut active.engine, Named { context, report: true }).is_err() {
            active.tickets.set_claimed(context, true);
            return Err(TRY_AGAIN);
        }
        if self.state.get(entered).watched {
            self.look_after_sleepers(entered);
        }
        Ok(0)
    }

    /// Looks how many operations may start whose completions go where those of this kind do, and lets one of them start. If none
    /// may, makes progress, since the application may do nothing but try again until another queue tells it what it waits for.
    #[cold]
    fn find_room(&self, kind: EventKind, entered: &mut Entered) -> Result<()> {
        self.report_all(entered);
        let room = self.queue_for(kind).map_or(usize::MAX, |bound| bound.queue.state.get(entered).room());
        if room == 0 {
            self.progress(entered);
            return Err(TRY_AGAIN);
        }
        *self.state.get(entered).room(kind) = room - 1;
        Ok(())
    }

    /// Makes progress and reports what has ended. Nothing is retrieved while the application has not read what peers have brought
    /// that it did not ask for. Returns whether anything happened.
    #[inline]
    pub fn progress(&self, entered: &mut Entered) -> bool {
        let may_retrieve = !self.waits_for_reader(entered);
        if self.state.get(entered).active.as_ref().is_some_and(|active| active.engine.has_departed()) {
            self.report_all(entered);
        }
        let Some(active) = &mut self.state.get(entered).active else { return false };
        let now = if active.engine.is_timed() { tidegate_link::now() } else { Instant::default() };
        let mut moved = match may_retrieve {
            true => active.engine.progress(now),
            false => active.engine.progress_without_retrieving(now),
        };
        if let Some(pressure) = active.engine.poll_pressure() {
            active.warn_of(&pressure);
        }
        if active.engine.epoch() != active.epoch {
            // Somebody's place in the table of peers has become free: numbers may mean others from now on.
            active.epoch = active.engine.epoch();
            active.forget_addresses();
        }
        moved |= self.report_all(entered);
        if moved && let Some(active) = &mut self.state.get(entered).active {
            active.engine.link_mut().busy();
        }
        if self.state.get(entered).watched {
            self.look_after_sleepers(entered);
        }
        moved
    }

    /// Sees to it that other threads that sleep on queues of ours wake when they must, though this thread may have taken away what
    /// would have woken them, and may now leave for good.
    #[cold]
    pub fn look_after_sleepers(&self, entered: &mut Entered) {
        self.report_all(entered);
        let mut any = false;
        for queue in self.wait_queues() {
            any |= queue.has_sleepers(entered);
        }
        self.state.get(entered).watched = any;
        if !any {
            return;
        }
        let most = self.arm(entered);
        for queue in self.wait_queues() {
            match most {
                Some(most) => queue.wake_after(most, entered),
                None => queue.wake(entered),
            }
        }
    }

    /// Tells of operations that closing has ended, as far as the queue of sends has room.
    pub fn report_abandoned(&self, entered: &mut Entered) {
        let room = self.send_queue.get().map_or(0, |bound| bound.queue.state.get(entered).room_for_errors());
        for _ in 0..room {
            let Some(active) = &mut self.state.get(entered).active else { return };
            let Some(completion) = active.engine.poll_completion() else { return };
            if completion.result.is_err() {
                self.report_failure(completion, entered);
            }
        }
    }

    /// Whether progress waits until the application has read what peers have brought that it did not ask for.
    #[inline]
    pub fn waits_for_reader(&self, entered: &mut Entered) -> bool {
        self.receive_queue.get().is_some_and(|bound| !bound.queue.state.get(entered).has_room_for_unsolicited())
    }

    /// Reports what has ended. Returns whether anything has.
    #[inline(always)]
    fn report_all(&self, entered: &mut Entered) -> bool {
        let mut any = false;
        while let Some(active) = &mut self.state.get(entered).active {
            let Some(completion) = active.engine.poll_completion() else { break };
            match &completion.result {
                Ok(()) => self.report(&completion, entered),
                Err(_) => self.report_failure(completion, entered),
            }
            any = true;
        }
        any
    }

    /// Progress found nothing: spins or yields. Returns whether something has come meanwhile.
    #[inline]
    pub fn idle(&self, entered: &mut Entered) -> bool {
        self.state.get(entered).active.as_mut().is_some_and(|active| active.engine.link_mut().idle())
    }

    /// Asks for a wake at the next packet. How long the application may sleep at most without one; `None`: there is something to do
    /// at once.
    pub fn arm(&self, entered: &mut Entered) -> Option<Duration> {
        let waits_for_reader = self.waits_for_reader(entered);
        if waits_for_reader && let Some(bound) = self.receive_queue.get() {
            bound.queue.state.get(entered).awaited = true;
        }
        let Some(active) = &mut self.state.get(entered).active else { return Some(Duration::MAX) };
        let most = active.engine.next_timeout().map_or(Duration::MAX, |due| due.since(tidegate_link::now()));
        // Packets are no reason to be awake for one who retrieves none: its reader goes on when it reads the other queue.
        (!most.is_zero() && (waits_for_reader || active.engine.link_mut().arm())).then_some(most)
    }

    /// Tells of an operation that succeeded.
    #[inline(always)]
    fn report(&self, completion: &Completion, entered: &mut Entered) {
        let Some(active) = &mut self.state.get(entered).active else { return };
        match active.settle(completion) {
            Some(event) => self.report_event(event, completion.source, entered),
            None => self.report_special(completion, entered),
        }
    }

    #[cold]
    fn report_special(&self, completion: &Completion, entered: &mut Entered) {
        let Some(active) = &mut self.state.get(entered).active else { return };
        let event = active.settle_special(completion);
        self.report_event(event, completion.source, entered);
    }

    #[inline(always)]
    fn report_event(&self, event: Event, source: Option<Target>, entered: &mut Entered) {
        let Event { kind, wanted, unsolicited, mut entry } = event;
        if let Some(counter) = self.counters[kind as usize].get() {
            counter.count(true);
        }
        let Some(bound) = self.queue_for(kind).filter(|_| wanted) else { return };
        if let Some(source) = source {
            entry.source = self.source_of(source, entered);
        }
        if unsolicited {
            bound.queue.state.get(entered).expect_unsolicited();
        }
        bound.queue.push(entry, entered);
    }

    /// Tells of an operation that failed.
    #[cold]
    fn report_failure(&self, completion: Completion, entered: &mut Entered) {
        let Some(active) = &mut self.state.get(entered).active else { return };
        let event = active.settle(&completion).unwrap_or_else(|| active.settle_special(&completion));
        let Event { kind, wanted, unsolicited, mut entry } = event;
        if let Some(counter) = self.counters[kind as usize].get() {
            counter.count(false);
        }
        if let Some(source) = completion.source {
            entry.source = self.source_of(source, entered);
        }
        let Err(failure) = completion.result else { return };
        let failed = Failed { entry, reason: Reason::of_failure(failure, completion.length) };
        log_failure(&failed);
        let Some(bound) = self.queue_for(kind) else { return };
        // An operation that was to report nothing is not refused for want of room, so its error may find none. Then the log has
        // it: resource management does not promise more (fi_domain(3)).
        if (wanted && !unsolicited) || bound.queue.state.get(entered).room_for_errors() > 0 {
            bound.queue.push_error(failed, entered);
        }
    }

    #[inline]
    fn queue_for(&self, kind: EventKind) -> Option<&QueueBinding> {
        let receives = matches!(kind, EventKind::Receive | EventKind::RemoteWrite);
        if receives { self.receive_queue.get() } else { self.send_queue.get() }
    }

    /// What the application calls a sender.
    #[inline]
    fn source_of(&self, source: Target, entered: &mut Entered) -> fi_addr_t {
        let Some(active) = &self.state.get(entered).active else { return NO_ADDRESS };
        let known = match source {
            Target::Myself => active.own_source,
            Target::Peer(peer) => active.sources.get(peer.0 as usize).copied().unwrap_or(NO_ADDRESS),
        };
        if known == NO_ADDRESS { self.find_source(source, entered) } else { known }
    }

    #[cold]
    fn find_source(&self, source: Target, entered: &mut Entered) -> fi_addr_t {
        let Some(active) = &self.state.get(entered).active else { return NO_ADDRESS };
        let address = match source {
            Target::Myself => Some(active.own),
            Target::Peer(peer) => active.engine.link().address_of(peer),
        };
        let (Some(address), Some(vector)) = (address, self.vector.get()) else { return NO_ADDRESS };
        let found = vector.index(&address, entered);
        let Some(active) = &mut self.state.get(entered).active else { return NO_ADDRESS };
        match source {
            Target::Myself => active.own_source = found,
            Target::Peer(PeerId(number)) => {
                let index = number as usize;
                if active.sources.len() <= index {
                    active.sources.resize(index + 1, NO_ADDRESS);
                }
                active.sources[index] = found;
            }
        }
        found
    }
}

/// The application's memory as the message layer takes it.
///
/// # Safety
/// Until the operation has completed (for injected ones: until the call returns), `length` bytes at `address` must be the
/// application's and be left alone, as libfabric's rules say.
#[inline]
pub unsafe fn memory(address: *const c_void, length: usize) -> IoBuffer {
    // SAFETY: promised by the caller.
    unsafe { IoBuffer::from_parts(address.cast_mut().cast(), length) }
}

/// Scattered memory of the application.
///
/// # Safety
/// As [`memory`], for each of `count` pieces; the array itself is only read during the call.
#[inline]
pub unsafe fn scattered(pieces: *const iovec, count: usize) -> Result<IoBuffer> {
    // SAFETY: promised by the caller.
    unsafe {
        match count {
            0 => Ok(IoBuffer::empty()),
            1 => Ok(memory((*pieces).iov_base, (*pieces).iov_len)),
            _ if count > crate::limits::PIECES_MOST => Err(INVALID),
            _ => Ok(IoBuffer::from_pieces(
                core::slice::from_raw_parts(pieces, count)
                    .iter()
                    .map(|piece| tidegate_link::memory::Piece::new(piece.iov_base.cast(), piece.iov_len)),
            )),
        }
    }
}
