//! [`Lower`]: batches as messages of a provider below.

use super::asking::{self, Offer};
use super::choice::Choice;
use super::doors::{Doors, PORT_OF_NOBODY};
use super::memory::Memory;
use super::objects::{Objects, failure};
use super::slots::{NewPage, Slots};
use super::wants::Wants;
use crate::bindings::*;
use crate::loader::Loader;
use crate::log;
use core::ffi::{c_int, c_void};
use core::mem::ManuallyDrop;
use core::ptr::null_mut;
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::RawFd;
use tidegate_link::fabric::{
    Answer, BATCH_BYTES, Door, Knock, LOWER_ADDRESS_MOST, LowerAddress, Network, NetworkEvent, Route, Sending, Token,
};
use tidegate_link::{IoBuffer, Maker};
use tidegate_message::{RemoteMemory, Span};

/// Failures to receive in a row after which nothing more is expected to come.
const FAILURES_MOST: u32 = 1000;
/// The version of libfabric from which one can sleep on the descriptor of `tcp`.
const TCP_SLEEPS_FROM: u32 = 1 << 16 | 19;
/// Completions that are read at a time.
const ENTRIES: usize = 16;

/// An endpoint of a provider below. The objects are closed before the memory goes that they use.
pub struct Lower {
    objects: ManuallyDrop<Objects>,
    receives: Slots,
    sends: Slots,
    /// Sendings that there may be.
    sends_most: usize,
    /// Whether the provider wants to know the memory of the slots.
    registers: bool,
    /// Reads of peers' memory, if the provider can.
    memory: Option<Memory>,
    /// Failures to receive since the last success.
    failures: u32,
    /// Of what the user is told once.
    is_told_of_failure: bool,
    last_failure: String,
    /// Receives that are to be posted again.
    to_post: Vec<usize>,
    /// Completions that were read and not told.
    entries: VecDeque<fi_cq_msg_entry>,
    /// All that the last reading of completions brought has been told. Whoever polls is told that first, and handles
    /// it, before the next reading, which is a system call with most providers.
    is_told: bool,
    /// The receive whose bytes are lent.
    lent: Option<usize>,
    /// Peers' addresses, where a socket reaches them too, and how often each was resolved: the provider has one name
    /// for an address.
    sockets: HashMap<u64, (SocketAddr, u32)>,
    doors: Doors,
    is_tcp: bool,
    name: String,
    address: LowerAddress,
    /// Bytes of an address as the provider has it.
    address_bytes: usize,
    loader: &'static Loader,
    maker: Maker,
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
        let offer = asking::find(loader, choice, wants.reads)?;
        let name = format!("{}/{}", offer.provider(), offer.domain());
        Lower::open_offer(loader, &offer, wants).map_err(|why| format!("opening {name}: {why}"))
    }

    fn open_offer(loader: &'static Loader, offer: &Offer, wants: Wants) -> Result<Lower, String> {
        let reading = match wants.reads {
            true => offer.reading(),
            false => Err("FI_TIDEGATE_BULK=mailbox".into()),
        };
        if let Err(why) = &reading {
            log::info(FI_LOG_EP_CTRL, || format!("{}: long messages go packet by packet: {why}", offer.provider()));
        }
        // One page of receives is posted. Its memory lives longer than the objects that have it, also where opening
        // fails.
        let page = NewPage::new();
        let is_tcp = offer.provider().split(';').next().is_some_and(|core| core == "tcp" || core == "net");
        // Before 1.19, its fi_trywait(3) does nothing, and the descriptor stays ready for ever.
        let can_sleep = !(is_tcp && loader.version < TCP_SLEEPS_FROM);
        let wants = Wants { may_sleep: wants.may_sleep && can_sleep, ..wants };
        let mut objects = Objects::open(loader, offer, wants)?;
        let bytes = objects.name(loader)?;
        let address = squeeze(&bytes).ok_or_else(|| {
            format!(
                "its addresses have {} bytes, and there is room for {LOWER_ADDRESS_MOST}: with verbs, choose the addresses \
                 of its interface's IP (verbs;ofi_rxm)",
                bytes.len()
            )
        })?;
        let registers = offer.wants_registration();
        let descriptor = if registers { objects.register(loader, page.memory())? } else { null_mut() };
        let mut receives = Slots::default();
        receives.add(page, descriptor);
        let name = format!("{}/{}", offer.provider(), offer.domain());
        let mut lower = Lower {
            objects: ManuallyDrop::new(objects),
            receives,
            sends: Slots::default(),
            sends_most: wants.sends(),
            registers,
            memory: reading.ok().map(|reading| Memory::new(reading, loader)),
            failures: 0,
            is_told_of_failure: false,
            last_failure: String::new(),
            to_post: Vec::new(),
            entries: VecDeque::new(),
            is_told: false,
            lent: None,
            sockets: HashMap::new(),
            doors: Doors::default(),
            is_tcp,
            name,
            address,
            address_bytes: bytes.len(),
            loader,
            maker: Maker::here(),
        };
        while let Some(slot) = lower.receives.take() {
            lower.to_post.push(slot);
        }
        lower.post_receives();
        Ok(lower)
    }

    /// Provider and domain, as the user would choose them.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What to sleep on, if there is something.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.objects.descriptor
    }

    /// Whether a thread may sleep on the descriptor now: nothing has come that was not read.
    pub fn may_sleep(&self) -> bool {
        self.entries.is_empty() && self.lent.is_none() && self.objects.may_sleep()
    }

    fn post_receives(&mut self) {
        let endpoint = self.objects.endpoint.get();
        while let Some(slot) = self.to_post.pop() {
            let (context, data, descriptor) = self.receives.pointers(slot);
            // SAFETY: the endpoint is open; the slot is ours alone until its operation ends, and lives longer than the
            // endpoint.
            let code = unsafe {
                (*(*endpoint).msg).recv.map_or(-FI_ENOSYS as isize, |recv| {
                    recv(endpoint, data, BATCH_BYTES, descriptor, FI_ADDR_UNSPEC, context)
                })
            };
            if code != 0 {
                self.to_post.push(slot);
                if code != -FI_EAGAIN as isize {
                    self.handle_failure(failure(self.loader, "posting a receive", code as c_int));
                }
                return;
            }
        }
    }

    /// A slot to send from. There are as many as the peers may use, made as they are needed: a peer that takes nothing
    /// must not hold up the others.
    fn take_send(&mut self) -> Option<usize> {
        if let Some(slot) = self.sends.take() {
            return Some(slot);
        }
        if self.sends.count() >= self.sends_most {
            return None;
        }
        let page = NewPage::new();
        let descriptor = match self.registers {
            true => match self.objects.register(self.loader, page.memory()) {
                Ok(descriptor) => descriptor,
                Err(why) => {
                    let count = self.sends.count();
                    log::trouble(FI_LOG_EP_DATA, &format!("{}: {why}: {count} buffers to send must do", self.name));
                    self.sends_most = count;
                    return None;
                }
            },
            false => null_mut(),
        };
        self.sends.add(page, descriptor);
        self.sends.take()
    }

    /// Something has failed that is no end of an operation, and may be over when it is tried again.
    fn handle_failure(&mut self, why: String) {
        self.failures = self.failures.saturating_add(1);
        if !core::mem::replace(&mut self.is_told_of_failure, true) {
            log::trouble(FI_LOG_EP_DATA, &format!("{}: {why}", self.name));
        }
        self.last_failure = why;
    }

    /// The read of a context has ended, if it is one. Returns its name.
    fn end_of_read(&mut self, context: *mut c_void) -> Option<Token> {
        self.memory.as_mut()?.end_of(&mut self.objects, context)
    }

    /// Reads completions into `entries`. Returns what failed, with the context of its operation.
    fn read(&mut self) -> Option<(*mut c_void, String)> {
        let queue = self.objects.queue.get();
        let empty = fi_cq_msg_entry { op_context: null_mut(), flags: 0, len: 0 };
        let mut entries = [empty; ENTRIES];
        // SAFETY: the queue is open and of the format of these entries, of which there are as many as is said.
        let count = unsafe {
            let read = (*(*queue).ops).read;
            read.map_or(-FI_ENOSYS as isize, |read| read(queue, entries.as_mut_ptr().cast(), ENTRIES))
        };
        if count > 0 {
            self.entries.extend(entries.iter().take(count as usize));
            return None;
        }
        if count == 0 || count == -FI_EAGAIN as isize {
            return None;
        }
        if count != -FI_EAVAIL as isize {
            self.handle_failure(failure(self.loader, "reading completions", count as c_int));
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
            (read.map_or(0, |read| read(queue, &mut entry.known, 0)), entry.known)
        };
        (read == 1).then(|| (entry.op_context, failure(self.loader, "an operation", -entry.err)))
    }
}

/// The address of an unspecified peer.
const FI_ADDR_UNSPEC: fi_addr_t = u64::MAX;

/// An address of the provider below in the room that there is. What sockets have of IPv6 is 28 bytes, 4 of which say
/// nothing.
fn squeeze(bytes: &[u8]) -> Option<LowerAddress> {
    let family = bytes.first_chunk().map(|family| i32::from(u16::from_ne_bytes(*family)));
    match (family, bytes.len()) {
        (Some(libc::AF_INET6), 28) => LowerAddress::new(&[&bytes[..4], &bytes[8..]].concat()),
        _ => LowerAddress::new(bytes),
    }
}

/// Back to what the provider below has.
fn expand(address: &LowerAddress) -> Vec<u8> {
    let bytes = address.as_bytes();
    let family = bytes.first_chunk().map(|family| i32::from(u16::from_ne_bytes(*family)));
    match (family, bytes.len()) {
        (Some(libc::AF_INET6), 24) => [&bytes[..4], &[0; 4], &bytes[4..]].concat(),
        _ => bytes.to_vec(),
    }
}

/// The socket of an address, if it is one.
fn socket(bytes: &[u8]) -> Option<SocketAddr> {
    let port = u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]);
    let ip = match i32::from(u16::from_ne_bytes([bytes[0], bytes[1]])) {
        libc::AF_INET => IpAddr::from(Ipv4Addr::from(*bytes.get(4..)?.first_chunk::<4>()?)),
        libc::AF_INET6 => IpAddr::from(Ipv6Addr::from(*bytes.get(8..)?.first_chunk::<16>()?)),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

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

    fn resolve(&mut self, address: &LowerAddress) -> Result<Route, String> {
        let bytes = expand(address);
        if bytes.len() != self.address_bytes {
            return Err(format!(
                "its network address {address} is of another kind than ours, {}: FI_TIDEGATE_FABRIC must name the same \
                 provider in all processes of a job",
                self.address
            ));
        }
        let (vector, mut route) = (self.objects.vector.get(), FI_ADDR_UNSPEC);
        // SAFETY: the vector is open, and an address has as many bytes as our own.
        let count = unsafe {
            let insert = (*(*vector).ops).insert;
            insert.map_or(0, |insert| insert(vector, bytes.as_ptr().cast(), 1, &mut route, 0, null_mut()))
        };
        if count != 1 {
            return Err(failure(
                self.loader,
                &format!("inserting the network address {address}"),
                count.min(-FI_EINVAL),
            ));
        }
        if let Some(socket) = socket(&bytes).filter(|_| self.is_tcp) {
            self.sockets.entry(route).or_insert((socket, 0)).1 += 1;
        }
        Ok(Route(route))
    }

    fn forget(&mut self, route: Route) {
        if let Some((_, uses)) = self.sockets.get_mut(&route.0) {
            *uses -= 1;
            if *uses == 0 {
                self.sockets.remove(&route.0);
            }
        }
        let (vector, mut route) = (self.objects.vector.get(), route.0);
        // SAFETY: the vector is open.
        unsafe {
            if let Some(remove) = (*(*vector).ops).remove {
                remove(vector, &mut route, 1, 0);
            }
        }
    }

    fn send(&mut self, to: Route, token: Token, batch: &[u8]) -> Sending {
        let Some(slot) = self.take_send() else { return Sending::NoBuffer };
        self.sends.fill(slot, batch);
        self.sends.tokens[slot] = token;
        let (context, data, descriptor) = self.sends.pointers(slot);
        let endpoint = self.objects.endpoint.get();
        // SAFETY: the endpoint is open; the slot is the provider's until its operation ends, and lives longer than the
        // endpoint.
        let code = unsafe {
            (*(*endpoint).msg)
                .send
                .map_or(-FI_ENOSYS as isize, |send| send(endpoint, data, batch.len(), descriptor, to.0, context))
        };
        let code = code as c_int;
        if code == 0 {
            return Sending::Taken;
        }
        self.sends.give_back(slot);
        if code == -FI_EAGAIN { Sending::Again } else { Sending::Failed(failure(self.loader, "sending", code)) }
    }

    fn poll(&mut self) -> Option<NetworkEvent<'_>> {
        if let Some(slot) = self.lent.take() {
            self.to_post.push(slot);
        }
        if !self.to_post.is_empty() {
            self.post_receives();
        }
        if self.entries.is_empty() && core::mem::take(&mut self.is_told) {
            return None;
        }
        while self.entries.is_empty()
            && let Some((context, why)) = self.read()
        {
            if let Some(slot) = self.sends.find(context) {
                self.sends.give_back(slot);
                return Some(NetworkEvent::Failed(self.sends.tokens[slot], why));
            }
            if let Some(token) = self.end_of_read(context) {
                return Some(NetworkEvent::ReadFailed(token, why));
            }
            log::info(FI_LOG_EP_DATA, || format!("{}: a receive ended: {why}", self.name));
            self.to_post.extend(self.receives.find(context));
            self.failures += 1;
            self.last_failure = why;
            if self.failures >= FAILURES_MOST {
                break;
            }
        }
        if self.failures >= FAILURES_MOST {
            self.failures = 0;
            return Some(NetworkEvent::Broken(core::mem::take(&mut self.last_failure)));
        }
        while let Some(entry) = self.entries.pop_front() {
            self.is_told = self.entries.is_empty();
            if let Some(slot) = self.sends.find(entry.op_context) {
                self.sends.give_back(slot);
                return Some(NetworkEvent::Sent(self.sends.tokens[slot]));
            }
            if let Some(slot) = self.receives.find(entry.op_context) {
                (self.lent, self.failures) = (Some(slot), 0);
                // SAFETY: the receive has ended, and is posted again by the next call.
                return Some(NetworkEvent::Received(unsafe { self.receives.received(slot, entry.len) }));
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
        self.sockets.get(&route.0).map(|(socket, _)| socket.ip())
    }

    fn knock(&mut self, route: Route, door: Door) -> Result<Knock, Answer> {
        let (mut socket, _) = *self.sockets.get(&route.0).ok_or(Answer::None)?;
        if door == Door::Host {
            socket.set_port(PORT_OF_NOBODY);
        }
        let knock = self.doors.knock(socket);
        if let Err(Answer::Lacking(why)) = &knock
            && !core::mem::replace(&mut self.is_told_of_failure, true)
        {
            log::trouble(FI_LOG_EP_DATA, &format!("{}: {why}", self.name));
        }
        knock
    }

    fn answer(&mut self, knock: Knock) -> Answer {
        self.doors.answer(knock)
    }

    fn close(&mut self, knock: Knock) {
        self.doors.close(knock);
    }
}
