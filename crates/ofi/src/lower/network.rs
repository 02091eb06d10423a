//! [`Lower`]: batches as messages of a provider below.

use super::asking::{self, Offer};
use super::choice::Choice;
use super::failing::Failing;
use super::faster::{self, Fast, Speed};
use super::interfaces::{self, Interfaces};
use super::memory::Memory;
use super::networks::{Asking, Row, row_of};
use super::objects::{Objects, failure, text};
use super::probe_sockets::{PORT_OF_NOBODY, ProbeSockets};
use super::receives::Receives;
use super::sending::{Below, Sends};
use super::squeezing::Squeezing;
use super::wants::Wants;
use super::watched_port::WatchedPort;
use crate::border::bindings::*;
use crate::border::loader::Loader;
use crate::border::log;
use core::ffi::{c_int, c_void};
use core::mem::ManuallyDrop;
use core::ptr::null_mut;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Instant;
use tidegate_link::fabric::{
    Answer, LowerAddress, Network, NetworkEvent, NetworkKind, Probe, ProbeTarget, Route, Sending, Token, Watched,
};
use tidegate_link::{IoBuffer, Maker};
use tidegate_message::{RemoteMemory, Span};

/// Completions that are read at a time.
const ENTRIES: usize = 16;

/// An endpoint of a provider below. The objects are closed before the memory goes that they use.
pub struct Lower {
    objects: ManuallyDrop<Objects>,
    receives: Receives,
    sends: Sends,
    /// Whether the provider wants to know the memory of the slots.
    registers: bool,
    /// Reads of peers' memory, if the provider can.
    memory: Option<Memory>,
    /// Posting receives fails, or reading completions.
    failing_to_post: Failing,
    failing_to_read: Failing,
    /// Nothing more is expected to come, for this reason.
    broken: Option<String>,
    /// Of what the user is told once.
    is_told_of_failure: bool,
    /// Completions that were read and not told.
    entries: VecDeque<fi_cq_msg_entry>,
    /// All that the last reading of completions brought has been told. Whoever polls is told that first, and handles
    /// it, before the next reading, which is a system call with most providers.
    is_told: bool,
    /// The provider's name for each address that was resolved and not forgotten, and how often that was: some providers
    /// have one name for an address, and end it with the first removal.
    resolved: HashMap<LowerAddress, (Route, u32)>,
    /// Those addresses, by the provider's names, and where else we may ask for these peers.
    addresses: HashMap<u64, (LowerAddress, Option<SocketAddr>)>,
    probes: ProbeSockets,
    /// Where peers may ask the kernel whether this process is there, where their provider tells nothing of that.
    watched_port: Option<WatchedPort>,
    row: &'static Row,
    /// Its addresses are those of sockets; else they may look like such.
    has_sockets: bool,
    /// This host's addresses, each with the name of its interface.
    own: Vec<(String, IpAddr)>,
    name: String,
    /// The name, and if that is wanted, how fast it is.
    description: String,
    longest_bytes: usize,
    kind: NetworkKind,
    address: LowerAddress,
    squeezing: Squeezing,
    loader: &'static Loader,
    maker: Maker,
}

/// A network that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The provider, as `fi_info` shows it.
    pub provider: String,
    /// Its domain: for providers over sockets an interface, else a device.
    pub domain: String,
    /// Its speed, if it is known.
    pub speed: Option<Speed>,
    /// The fastest network that is faster, if there is one.
    pub faster: Option<Fast>,
}

impl core::fmt::Debug for Lower {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Lower").field("name", &self.name).field("address", &self.address).finish_non_exhaustive()
    }
}

impl Lower {
    /// Opens an endpoint of the provider that was chosen, which reads memory if that is wanted and the provider can.
    /// Errors are for users.
    pub fn open(loader: &'static Loader, choice: &Choice, wants: Wants) -> Result<Lower, String> {
        asking::open_best(loader, choice, wants.reads, |offer, here| {
            let mut lower = Lower::open_offer(loader, offer, here, wants)?;
            if wants.described {
                lower.description = faster::describe(loader, choice, offer, here);
            }
            Ok(lower)
        })
    }

    /// Opens such an endpoint, closes it again, and says which network it had. Errors are those of `open`.
    pub fn try_out(loader: &'static Loader, choice: &Choice, wants: Wants) -> Result<Taken, String> {
        asking::open_best(loader, choice, wants.reads, |offer, here| {
            Lower::open_offer(loader, offer, here, wants)?;
            let (speed, faster) = faster::faster(loader, choice, offer, here);
            Ok(Taken { provider: offer.provider(), domain: offer.domain(), speed, faster })
        })
    }

    fn open_offer(
        loader: &'static Loader,
        offer: &mut Offer,
        here: &Interfaces,
        wants: Wants,
    ) -> Result<Lower, String> {
        let reading = match wants.reads {
            true => offer.reading(),
            false => Err("FI_TIDEGATE_BULK=mailbox".into()),
        };
        if let Err(why) = &reading {
            log::info(FI_LOG_EP_CTRL, || format!("{}: long messages go packet by packet: {why}", offer.provider()));
        }
        let row = row_of(&offer.provider());
        let wants = Wants { may_sleep: wants.may_sleep && loader.version >= row.sleeps_from, ..wants };
        let objects = Objects::open(loader, offer, wants)?;
        let (squeezing, address) =
            Squeezing::of(&objects.name(loader)?, row.addresses).map_err(|why| why.to_string())?;
        let registers = offer.wants_registration();
        let receives_most = if row.takes_any_receives { usize::MAX } else { offer.receives_most() };
        let mut lower = Lower {
            objects: ManuallyDrop::new(objects),
            receives: Receives::new(wants.receives().min(receives_most), row.batch_bytes),
            sends: Sends::new(wants.sends(), row.batch_bytes, registers),
            registers,
            memory: reading.ok().map(|reading| Memory::new(reading, loader)),
            failing_to_post: Failing::default(),
            failing_to_read: Failing::default(),
            broken: None,
            is_told_of_failure: false,
            entries: VecDeque::new(),
            is_told: false,
            resolved: HashMap::new(),
            addresses: HashMap::new(),
            probes: ProbeSockets::default(),
            watched_port: None,
            row,
            has_sockets: offer.has_sockets(),
            own: here.addresses.clone(),
            name: offer.name(),
            description: offer.name(),
            longest_bytes: offer.longest_bytes(),
            kind: NetworkKind::of_provider(&offer.provider()),
            address,
            squeezing,
            loader,
            maker: Maker::here(),
        };
        if row.asking == Asking::Operations {
            let own = lower.address.socket().filter(|_| lower.has_sockets).map(|socket| socket.ip());
            lower.watched_port = WatchedPort::beside(&lower.name, own, here, wants.ports);
        }
        lower.grow_receives()?;
        lower.post_receives();
        Ok(lower)
    }

    /// Provider and domain, as the user would choose them; where it is [wanted](Wants::described), for people how fast
    /// that is, and what would be faster.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Most bytes of a message, and of a read of a peer's memory.
    pub fn longest_bytes(&self) -> usize {
        self.longest_bytes
    }

    /// Whether an address may lead to this host: it is that of one of its interfaces, or of no socket.
    pub fn may_be_own(&self, address: &LowerAddress) -> bool {
        address.socket().filter(|_| self.has_sockets).is_none_or(|socket| self.is_own(socket.ip()))
    }

    fn is_own(&self, ip: IpAddr) -> bool {
        self.own.iter().any(|(_, own)| *own == ip.to_canonical())
    }

    /// The socket by which the kernel of a peer's host can be asked for the peer.
    fn socket(&self, route: Route) -> Option<SocketAddr> {
        let (address, watched) = self.addresses.get(&route.0)?;
        match self.row.asking {
            Asking::Sockets => address.socket(),
            Asking::Operations => *watched,
        }
    }

    /// What to sleep on, if there is something.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.objects.descriptor
    }

    /// Whether a thread may sleep on the descriptor now: nothing has come that was not read.
    pub fn may_sleep(&self) -> bool {
        self.entries.is_empty() && !self.receives.is_lent() && self.objects.may_sleep()
    }

    /// As many receives as the known peers need. The error: there are not so many.
    fn grow_receives(&mut self) -> Result<(), String> {
        self.receives.grow(self.loader, &mut self.objects, self.registers, self.resolved.len())
    }

    fn post_receives(&mut self) {
        match self.receives.post(self.loader, &self.objects) {
            Ok(true) => self.failing_to_post.handle_success(),
            Ok(false) => {}
            Err(why) => {
                self.broken = self.failing_to_post.handle_failure(Instant::now(), why.clone());
                self.tell_failure(&why);
            }
        }
    }

    /// Something has failed that is no end of an operation, and may be over when it is tried again.
    fn tell_failure(&mut self, why: &str) {
        if !core::mem::replace(&mut self.is_told_of_failure, true) {
            log::trouble(FI_LOG_EP_DATA, &format!("{}: {why}", self.name));
        }
    }

    /// The read of a context has ended, if it is one. Returns its name.
    fn end_of_read(&mut self, context: *mut c_void) -> Option<Token> {
        self.memory.as_mut()?.end_of(&mut self.objects, context)
    }

    /// Reads completions into `entries`. Returns the context of an operation that has failed, and the error.
    fn read(&mut self) -> Option<(*mut c_void, c_int)> {
        let queue = self.objects.queue.get();
        let empty = fi_cq_msg_entry { op_context: null_mut(), flags: 0, len: 0 };
        let mut entries = [empty; ENTRIES];
        // SAFETY: the queue is open and of the format of these entries, of which there are as many as is said.
        let count = unsafe {
            let read = (*(*queue).ops).read;
            read.map_or(-FI_ENOSYS as isize, |read| read(queue, entries.as_mut_ptr().cast(), ENTRIES))
        };
        if count >= 0 || count == -FI_EAGAIN as isize {
            self.entries.extend(entries.iter().take(count.max(0) as usize));
            self.failing_to_read.handle_success();
            return None;
        }
        if count != -FI_EAVAIL as isize {
            self.handle_failure_to_read(count as c_int);
            return None;
        }
        // Larger than the struct of any version that there is, which grow at the end.
        #[repr(C)]
        struct Entry {
            known: fi_cq_err_entry,
            later: [u64; 16],
        }
        // SAFETY: a C struct for which zero is a value; the queue is open.
        let (read, entry) = unsafe {
            let mut entry: Entry = core::mem::zeroed();
            let read = (*(*queue).ops).readerr;
            (read.map_or(-FI_ENOSYS as isize, |read| read(queue, &mut entry.known, 0)), entry.known)
        };
        match read {
            1 => return Some((entry.op_context, entry.err)),
            // Also where it says that there is an error and has none: nothing else comes behind that.
            _ => self.handle_failure_to_read(read as c_int),
        }
        None
    }

    fn handle_failure_to_read(&mut self, code: c_int) {
        let why = failure(self.loader, "reading completions", code);
        self.broken = self.failing_to_read.handle_failure(Instant::now(), why.clone());
        self.tell_failure(&why);
    }

    /// An operation has ended with an error. `None`: it is none of ours.
    fn end_with_error(&mut self, context: *mut c_void, code: c_int) -> Option<NetworkEvent<'static>> {
        let loader = self.loader;
        let why = || failure(loader, "an operation", -code);
        if let Some(token) = self.sends.end(context) {
            return Some(NetworkEvent::Failed(token, why()));
        }
        if let Some(token) = self.end_of_read(context) {
            return Some(NetworkEvent::ReadFailed(token, why()));
        }
        // It says something of its sender only: anybody may send what is longer than a batch, or break his connection.
        log::info(FI_LOG_EP_DATA, || format!("{}: a receive has ended: {}", self.name, text(loader, code)));
        let receive = self.receives.find(context)?;
        self.receives.end(receive);
        Some(NetworkEvent::Dropped)
    }
}

/// The address of an unspecified peer.
const FI_ADDR_UNSPEC: fi_addr_t = u64::MAX;

/// A forked child's copy is not closed: what the kernel has of it is the parent's too, which goes on.
impl Drop for Lower {
    fn drop(&mut self) {
        if !self.maker.is_ancestor() {
            // SAFETY: nobody uses the objects after this.
            unsafe { ManuallyDrop::drop(&mut self.objects) };
        }
    }
}

impl Network for Lower {
    fn address(&self) -> LowerAddress {
        self.address
    }

    fn kind(&self) -> NetworkKind {
        self.kind
    }

    fn longest_batch(&self) -> usize {
        self.row.batch_bytes
    }

    fn resolve(&mut self, address: &LowerAddress) -> Result<Route, String> {
        if let Some((route, uses)) = self.resolved.get_mut(address) {
            *uses += 1;
            return Ok(*route);
        }
        let Some(bytes) = self.squeezing.expand(address) else {
            return Err(format!(
                "its network address {address} is of another kind than ours, {}: FI_TIDEGATE_FABRIC must name the same \
                 provider in all processes of a job",
                self.address
            ));
        };
        let (vector, mut route) = (self.objects.vector.get(), FI_ADDR_UNSPEC);
        // SAFETY: the vector is open, and an address has as many bytes as our own.
        let count = unsafe {
            let insert = (*(*vector).ops).insert;
            insert.map_or(0, |insert| insert(vector, bytes.as_ptr().cast(), 1, &mut route, 0, null_mut()))
        };
        if count != 1 || route == FI_ADDR_UNSPEC {
            return Err(failure(
                self.loader,
                &format!("inserting the network address {address}"),
                count.min(-FI_EINVAL),
            ));
        }
        self.resolved.insert(*address, (Route(route), 1));
        self.addresses.insert(route, (*address, None));
        if let Err(why) = self.grow_receives() {
            log::trouble(FI_LOG_EP_DATA, &format!("{}: {why}", self.name));
        }
        Ok(Route(route))
    }

    fn doubt(&self, address: &LowerAddress) -> Option<String> {
        interfaces::doubt(address.socket().filter(|_| self.row.asking == Asking::Sockets)?.ip(), &self.own)
    }

    fn forget(&mut self, route: Route) {
        let Some((address, _)) = self.addresses.get(&route.0).copied() else { return };
        let Entry::Occupied(mut resolved) = self.resolved.entry(address) else { return };
        let (_, uses) = resolved.get_mut();
        *uses -= 1;
        // A name that stays is found again.
        if *uses > 0 || !self.row.removes_addresses {
            return;
        }
        resolved.remove();
        self.addresses.remove(&route.0);
        let (vector, mut route) = (self.objects.vector.get(), route.0);
        // SAFETY: the vector is open.
        unsafe { (*(*vector).ops).remove.map(|remove| remove(vector, &mut route, 1, 0)) };
    }

    fn send(&mut self, to: Route, token: Token, batch: &[u8]) -> Sending {
        let below = Below { loader: self.loader, objects: &mut self.objects, name: &self.name };
        self.sends.send(below, to, token, batch)
    }

    fn send_kept(&mut self, to: Route, token: Token, batch: &Arc<Vec<u8>>) -> Sending {
        let below = Below { loader: self.loader, objects: &mut self.objects, name: &self.name };
        self.sends.send_kept(below, to, token, batch)
    }

    fn poll(&mut self) -> Option<NetworkEvent<'_>> {
        if self.receives.is_due() {
            self.post_receives();
        }
        if self.entries.is_empty() && core::mem::take(&mut self.is_told) {
            return None;
        }
        if self.entries.is_empty()
            && let Some((context, code)) = self.read()
            && let Some(event) = self.end_with_error(context, code)
        {
            return Some(event);
        }
        if let Some(why) = self.broken.take() {
            return Some(NetworkEvent::Broken(why));
        }
        while let Some(entry) = self.entries.pop_front() {
            self.is_told = self.entries.is_empty();
            if let Some(token) = self.sends.end(entry.op_context) {
                return Some(NetworkEvent::Sent(token));
            }
            if let Some(receive) = self.receives.find(entry.op_context) {
                return Some(NetworkEvent::Received(self.receives.lend(receive, entry.len)));
            }
            if let Some(token) = self.end_of_read(entry.op_context) {
                return Some(NetworkEvent::Read(token));
            }
        }
        None
    }

    fn reads_memory(&self) -> bool {
        self.memory.is_some()
    }

    fn expose(&mut self, memory: &IoBuffer, pieces: &mut [Span]) -> Option<u64> {
        self.memory.as_ref()?.expose(&mut self.objects, memory, pieces)
    }

    fn hide(&mut self, key: u64) {
        if let Some(memory) = &self.memory {
            memory.hide(&mut self.objects, key);
        }
    }

    fn read(&mut self, from: Route, token: Token, place: RemoteMemory, into: IoBuffer) -> Sending {
        match &mut self.memory {
            Some(memory) => memory.read(&mut self.objects, from, token, place, into),
            None => Sending::Failed("this provider has no remote reads".into()),
        }
    }

    fn host(&self, route: Route) -> Option<IpAddr> {
        self.socket(route).map(|socket| socket.ip())
    }

    fn watched(&self) -> Option<Watched> {
        self.watched_port.as_ref().map(WatchedPort::watched)
    }

    fn tend(&mut self) {
        if let Some(port) = &self.watched_port {
            port.tend();
        }
    }

    fn may_answer(&self, stranger: &LowerAddress) -> bool {
        self.row.removes_addresses || self.resolved.contains_key(stranger)
    }

    fn watch(&mut self, route: Route, at: SocketAddr) {
        // A peer is on another host: an address of ours leads to a process of ours.
        let is_elsewhere = !self.is_own(at.ip());
        if let Some((_, watched)) = self.addresses.get_mut(&route.0) {
            *watched = is_elsewhere.then_some(at);
        }
    }

    fn probe(&mut self, route: Route, target: ProbeTarget) -> Result<Probe, Answer> {
        let mut socket = self.socket(route).ok_or(Answer::None)?;
        if target == ProbeTarget::Host {
            socket.set_port(PORT_OF_NOBODY);
        }
        let probe = self.probes.probe(socket);
        if let Err(Answer::Lacking(why)) = &probe
            && !core::mem::replace(&mut self.is_told_of_failure, true)
        {
            log::trouble(FI_LOG_EP_DATA, &format!("{}: {why}", self.name));
        }
        probe
    }

    fn answer(&mut self, probe: Probe) -> Answer {
        self.probes.answer(probe)
    }

    fn close(&mut self, probe: Probe) {
        self.probes.close(probe);
    }
}
