//! `fi_endpoint`: opening, binding, enabling, naming and closing. What an endpoint does between is in `submit`.

use crate::address_vector::{AddressVector, copy_out};
use crate::atomic;
use crate::bindings::*;
use crate::completion_queue::CompletionQueue;
use crate::counter::Counter;
use crate::domain::Domain;
use crate::errno::{Errno, INVALID, Result};
use crate::guard::guarded;
use crate::lock::{Entered, Guarded};
use crate::object::{self, Fid, Object, hand_out, head, operations, share, table};
use crate::submit::{Active, Engine};
use crate::{closing, limits, log, message, place, rma, tagged};
use core::ffi::{c_int, c_void};
use std::sync::{Arc, OnceLock};
use tidegate_link::{Address, Service, ShmConfig, ShmLink, StatsConfig};
use tidegate_message::{EndpointConfig, EndpointError};

/// Packets retrieved per progress call at most.
const PACKETS_PER_PROGRESS: usize = 64;
/// Bytes of bulk data moved per progress call, about.
const BULK_BYTES_PER_PROGRESS: usize = 1 << 20;
/// `FI_OPT_MIN_MULTI_RECV` until the application sets it, in bytes.
const MULTI_RECEIVE_LEAST: usize = 64;

/// What counters tell apart, in the order of [`EVENT_FLAGS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum EventKind {
    /// A send of ours.
    Send,
    /// A receive of ours.
    Receive,
    /// An RMA write or an atomic without result.
    Write,
    /// An RMA read or an atomic with result.
    Read,
    /// A write of a peer, or an atomic without result.
    RemoteWrite,
}

/// The flags by which counters are bound, in the order of [`EventKind`].
const EVENT_FLAGS: [u64; 5] = [FI_SEND, FI_RECV, FI_WRITE, FI_READ, FI_REMOTE_WRITE];

/// Where completions of one direction go.
pub struct QueueBinding {
    /// The queue.
    pub queue: Arc<CompletionQueue>,
    /// Successes are only reported of operations with `FI_COMPLETION`.
    pub selective: bool,
}

/// An endpoint.
#[repr(C)]
pub struct Endpoint {
    fid: Fid<fid_ep>,
    /// Its domain.
    pub domain: Arc<Domain>,
    caps: u64,
    /// The service that it is to be found by.
    service: Option<Service>,
    /// Queue for what we start.
    pub send_queue: OnceLock<QueueBinding>,
    /// Queue for what arrives.
    pub receive_queue: OnceLock<QueueBinding>,
    /// Addresses of peers.
    pub vector: OnceLock<Arc<AddressVector>>,
    /// By [`EventKind`].
    pub counters: [OnceLock<Arc<Counter>>; 5],
    /// Everything that changes.
    pub state: Guarded<State>,
}

/// What the domain's lock guards.
pub struct State {
    /// There from `fi_enable` (or the first question for the endpoint's name) until closing.
    pub active: Option<Active>,
    /// Whether the application has enabled the endpoint.
    pub enabled: bool,
    /// Flags of sending calls that take none themselves.
    pub send_flags: u64,
    /// Flags of receiving calls that take none themselves.
    pub receive_flags: u64,
    /// `FI_OPT_MIN_MULTI_RECV`, in bytes.
    pub multi_receive_least: usize,
    /// How many sends and remote operations may start before their queue has to be looked at again.
    pub send_room: usize,
    /// The same for receives.
    pub receive_room: usize,
    /// Whether threads may sleep on queues of ours, so that they have to be looked after.
    pub watched: bool,
}

impl State {
    /// How many operations of this kind may start before their queue has to be looked at again.
    #[inline(always)]
    pub fn room(&mut self, kind: EventKind) -> &mut usize {
        if kind == EventKind::Receive { &mut self.receive_room } else { &mut self.send_room }
    }
}

// SAFETY: `repr(C)`, and the C struct comes first.
unsafe impl Object for Endpoint {
    type Fid = fid_ep;
}

static HEAD: fi_ops = operations(close, bind, control);
static OPS: fi_ops_ep = fi_ops_ep {
    size: size_of::<fi_ops_ep>(),
    cancel: Some(cancel),
    getopt: Some(get_option),
    setopt: Some(set_option),
    tx_ctx: Some(no_send_context),
    rx_ctx: Some(no_receive_context),
    rx_size_left: Some(size_left),
    tx_size_left: Some(size_left),
};
static NAMES: fi_ops_cm = fi_ops_cm {
    size: size_of::<fi_ops_cm>(),
    setname: Some(no_set_name),
    getname: Some(get_name),
    getpeer: Some(no_get_peer),
    connect: Some(no_connect),
    listen: Some(no_listen),
    accept: Some(no_accept),
    reject: Some(no_reject),
    shutdown: Some(no_shutdown),
    join: Some(no_join),
};

impl Endpoint {
    /// Whether receives look at the sender.
    #[inline]
    pub fn is_directed(&self) -> bool {
        self.caps & FI_DIRECTED_RECV != 0
    }

    /// Whether a counter wants to hear of the writes of peers (`FI_REMOTE_WRITE`).
    pub fn counts_writes(&self) -> bool {
        self.counters[EventKind::RemoteWrite as usize].get().is_some()
    }

    /// Its queues whose readers sleep.
    pub fn wait_queues(&self) -> impl Iterator<Item = &Arc<CompletionQueue>> {
        let send = self.send_queue.get().map(|bound| &bound.queue);
        let receive = self.receive_queue.get().map(|bound| &bound.queue);
        send.into_iter()
            .chain(receive.filter(|queue| send.is_none_or(|send| !Arc::ptr_eq(send, queue))))
            .filter(|queue| queue.wakes())
    }

    /// Creates the mailbox.
    fn activate(self: &Arc<Self>, entered: &mut Entered) -> Result<()> {
        if self.state.get(entered).active.is_some() {
            return Ok(());
        }
        let settings = &self.domain.settings;
        let flow = settings.flow(self.vector.get().map_or(0, |vector| vector.announced));
        let mut config = ShmConfig::new(flow.clone());
        config.bulk = settings.bulk;
        config.stages = settings.stages;
        config.spin = settings.spin;
        // Whoever asks for the name before binding queues may still bind one that sleeps.
        config.wakes = self.wait_queues().next().is_some() || self.receive_queue.get().is_none();
        config.stats = settings.stats_dir.clone().map(|dir| StatsConfig {
            dir,
            rank: settings.job.rank,
            job_size: settings.job.size,
        });
        let link = ShmLink::new(config).map_err(|error| {
            log::trouble(FI_LOG_EP_CTRL, &error.for_job(settings.job.size));
            Errno::of_link(&error)
        })?;
        let mut config = EndpointConfig {
            flow,
            eager_bytes: settings.eager_bytes,
            operations: limits::OPERATIONS_MOST,
            receive_memory: 0,
            packets_per_progress: PACKETS_PER_PROGRESS,
            bulk_bytes_per_progress: BULK_BYTES_PER_PROGRESS,
        };
        let refuse = |error: EndpointError| {
            log::trouble(FI_LOG_EP_CTRL, &error.to_string());
            INVALID
        };
        let least = Engine::least_receive_memory(&config).map_err(|error| refuse(error.into()))?;
        config.receive_memory = settings.receive_memory(least);
        let engine = Engine::new(config, link).map_err(refuse)?;
        let mut active = Active::new(engine);
        if let Some(service) = &self.service {
            let claim = service.claim(active.engine.link().directory(), active.own).map_err(|error| {
                log::trouble(FI_LOG_EP_CTRL, &error.to_string());
                Errno::of_claim(&error)
            })?;
            active.claim = Some(claim);
        }
        self.domain.state.get(entered).endpoints.push(Arc::clone(self));
        log::info(FI_LOG_EP_CTRL, || format!("endpoint {} is open", active.own));
        self.state.get(entered).active = Some(active);
        self.register_regions(entered);
        Ok(())
    }

    /// Lets packets wake the readers of our queues: of all of them, or of none.
    fn add_wakes(&self, entered: &mut Entered) -> Result<()> {
        let active = self.state.get(entered).active.as_mut().ok_or(Errno(FI_EOPBADSTATE))?;
        let descriptor = active.engine.link_mut().wake_fd().map_err(|error| {
            log::warn(FI_LOG_EP_CTRL, || format!("no descriptor to wake by: {error}"));
            Errno::of_system(&error)
        })?;
        let added = self.wait_queues().try_for_each(|queue| queue.add_wake(descriptor));
        if added.is_err() {
            self.wait_queues().for_each(|queue| queue.remove_wake(descriptor));
        }
        added
    }

    /// Lets peers reach the domain's regions through this endpoint, if it can communicate.
    fn register_regions(&self, entered: &mut Entered) {
        let regions = core::mem::take(&mut self.domain.state.get(entered).regions);
        if let Some(active) = &mut self.state.get(entered).active {
            active.engine.count_writes(self.counts_writes());
            for (key, region) in &regions {
                region.register(*key, &mut active.engine, self.counts_writes());
            }
        }
        self.domain.state.get(entered).regions = regions;
    }

    /// `fi_enable`.
    fn enable(self: &Arc<Self>, entered: &mut Entered) -> Result {
        if self.vector.get().is_none() {
            return Err(Errno(FI_ENOAV));
        }
        if self.send_queue.get().is_none() && self.receive_queue.get().is_none() {
            return Err(Errno(FI_ENOCQ));
        }
        self.activate(entered)?;
        if !self.state.get(entered).enabled {
            if self.wait_queues().next().is_some() {
                self.add_wakes(entered)?;
            }
            // Only now: an endpoint whose enabling failed fails again.
            self.state.get(entered).enabled = true;
            // Somebody may sleep on our queues already.
            self.look_after_sleepers(entered);
        }
        Ok(0)
    }

    /// Leaves the lists of everything that knows of endpoints.
    pub fn leave_lists(self: &Arc<Self>, entered: &mut Entered) {
        let others = |endpoints: &mut Vec<Arc<Endpoint>>| endpoints.retain(|other| !Arc::ptr_eq(other, self));
        for bound in [self.send_queue.get(), self.receive_queue.get()].into_iter().flatten() {
            others(&mut bound.queue.state.get(entered).endpoints);
        }
        for counter in self.counters.iter().filter_map(OnceLock::get) {
            others(counter.endpoints.get(entered));
        }
        if let Some(vector) = self.vector.get() {
            others(&mut vector.state.get(entered).endpoints);
        }
        others(&mut self.domain.state.get(entered).endpoints);
    }

    fn bind_queue(self: &Arc<Self>, queue: Arc<CompletionQueue>, flags: u64, entered: &mut Entered) -> Result {
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

    fn bind_counter(self: &Arc<Self>, counter: Arc<Counter>, flags: u64, entered: &mut Entered) -> Result {
        if !Arc::ptr_eq(&counter.domain, &self.domain) {
            return Err(INVALID);
        }
        if flags & !EVENT_FLAGS.iter().fold(0, |all, flag| all | flag) != 0 {
            // Peers read memory without our noticing (`FI_REMOTE_READ`, `FI_RMA_EVENT`).
            return Err(Errno(FI_ENOSYS));
        }
        for (flag, place) in EVENT_FLAGS.iter().zip(&self.counters) {
            if flags & flag != 0 {
                place.set(Arc::clone(&counter)).map_err(|_| INVALID)?;
            }
        }
        self.join(counter.endpoints.get(entered));
        if flags & FI_REMOTE_WRITE != 0 {
            // Who asked for its name before has published the regions already.
            self.register_regions(entered);
        }
        Ok(0)
    }

    fn bind_vector(self: &Arc<Self>, vector: Arc<AddressVector>, entered: &mut Entered) -> Result {
        if !Arc::ptr_eq(&vector.domain, &self.domain) {
            return Err(INVALID);
        }
        self.vector.set(Arc::clone(&vector)).map_err(|_| INVALID)?;
        self.join(&mut vector.state.get(entered).endpoints);
        Ok(0)
    }

    fn join(self: &Arc<Self>, endpoints: &mut Vec<Arc<Endpoint>>) {
        if !endpoints.iter().any(|other| Arc::ptr_eq(other, self)) {
            endpoints.push(Arc::clone(self));
        }
    }
}

/// `fi_endpoint`.
pub unsafe extern "C" fn open(
    domain: *mut fid_domain,
    info: *mut fi_info,
    endpoint: *mut *mut fid_ep,
    context: *mut c_void,
) -> c_int {
    guarded(|| {
        // SAFETY: called with an open domain, an info that `getinfo` gave, and a place for the answer.
        unsafe {
            let info = info.as_ref().ok_or(INVALID)?;
            if let Some(attr) = info.ep_attr.as_ref() {
                let shared = attr.tx_ctx_cnt == FI_SHARED_CONTEXT || attr.rx_ctx_cnt == FI_SHARED_CONTEXT;
                if shared || !matches!(attr.type_, FI_EP_UNSPEC | FI_EP_RDM | FI_EP_DGRAM) {
                    return Err(Errno(FI_ENOSYS));
                }
            }
            let state = State {
                active: None,
                enabled: false,
                send_flags: info.tx_attr.as_ref().map_or(0, |attr| attr.op_flags),
                receive_flags: info.rx_attr.as_ref().map_or(0, |attr| attr.op_flags),
                multi_receive_least: MULTI_RECEIVE_LEAST,
                send_room: 0,
                receive_room: 0,
                watched: false,
            };
            let fid = fid_ep {
                fid: head(FI_CLASS_EP, context, &HEAD),
                ops: table(&OPS),
                cm: table(&NAMES),
                msg: table(&message::OPS),
                rma: table(&rma::OPS),
                tagged: table(&tagged::OPS),
                atomic: table(&atomic::OPS),
                collective: core::ptr::null_mut(),
            };
            let opened = Endpoint {
                fid: Fid::new(fid),
                domain: share(domain),
                caps: info.caps,
                service: place::source_of(info)?,
                send_queue: OnceLock::new(),
                receive_queue: OnceLock::new(),
                vector: OnceLock::new(),
                counters: [const { OnceLock::new() }; 5],
                state: Guarded::new(state),
            };
            hand_out(Arc::new(opened), endpoint);
        }
        Ok(0)
    })
}

/// `fi_endpoint2`: its flags announce peer providers, which Tidegate is not.
pub unsafe extern "C" fn open2(
    domain: *mut fid_domain,
    info: *mut fi_info,
    endpoint: *mut *mut fid_ep,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    if flags != 0 {
        return -FI_EBADFLAGS;
    }
    // SAFETY: the caller's promises are those of `open`.
    unsafe { open(domain, info, endpoint, context) }
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: the application closes an endpoint that `open` made.
    let endpoint = unsafe { share::<Endpoint>(fid.cast()) };
    guarded(|| {
        closing::close(&endpoint)?;
        // SAFETY: as above. Queues that are bound have let go of it.
        unsafe { object::close::<Endpoint>(fid.cast(), |_| false) }
    })
}

unsafe extern "C" fn bind(fid: *mut fid, other: *mut fid, flags: u64) -> c_int {
    // SAFETY: the application passes open objects; the class tells what the other one is.
    unsafe {
        let endpoint = share::<Endpoint>(fid.cast());
        let outcome = endpoint.domain.enter(|entered| match (*other).fclass as u32 {
            FI_CLASS_CQ => endpoint.bind_queue(share(other.cast()), flags, entered),
            FI_CLASS_CNTR => endpoint.bind_counter(share(other.cast()), flags, entered),
            FI_CLASS_AV => endpoint.bind_vector(share(other.cast()), entered),
            // Nothing is ever reported there.
            FI_CLASS_EQ => Ok(0),
            _ => Err(Errno(FI_ENOSYS)),
        });
        outcome as c_int
    }
}

unsafe extern "C" fn control(fid: *mut fid, command: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: the handle is an open endpoint's.
    let endpoint = unsafe { share::<Endpoint>(fid.cast()) };
    let outcome = endpoint.domain.enter(|entered| {
        if command as u64 == FI_ENABLE {
            return endpoint.enable(entered);
        }
        // The direction is part of the flags that the application passes.
        let flags = arg.cast::<u64>();
        if flags.is_null() || !matches!(command as u32, FI_GETOPSFLAG | FI_SETOPSFLAG) {
            return Err(Errno(FI_ENOSYS));
        }
        let state = endpoint.state.get(entered);
        // SAFETY: for these commands `arg` points to flags.
        let given = unsafe { *flags };
        let place = match given & (FI_TRANSMIT | FI_RECV) {
            FI_TRANSMIT => &mut state.send_flags,
            FI_RECV => &mut state.receive_flags,
            _ => return Err(INVALID),
        };
        if command as u32 == FI_SETOPSFLAG {
            *place = given & !(FI_TRANSMIT | FI_RECV);
        } else {
            // SAFETY: as above.
            unsafe { *flags = *place };
        }
        Ok(0)
    });
    outcome as c_int
}

unsafe extern "C" fn get_name(fid: fid_t, place: *mut c_void, length: *mut usize) -> c_int {
    // SAFETY: the handle is an open endpoint's.
    let endpoint = unsafe { share::<Endpoint>(fid.cast()) };
    let outcome = endpoint.domain.enter(|entered| {
        endpoint.activate(entered)?;
        let active = endpoint.state.get(entered).active.as_ref().ok_or(Errno(FI_EOPBADSTATE))?;
        // SAFETY: the application provides the place and says how long it is.
        unsafe {
            let room = *length;
            copy_out(&active.own.to_bytes(), place, length);
            if room < Address::BYTES {
                return Err(Errno(FI_ETOOSMALL));
            }
        }
        Ok(0)
    });
    outcome as c_int
}

unsafe extern "C" fn cancel(fid: fid_t, context: *mut c_void) -> isize {
    // SAFETY: the handle is an open endpoint's.
    let endpoint = unsafe { object::object::<Endpoint>(fid.cast()) };
    endpoint.domain.enter(|entered| {
        let active = endpoint.state.get(entered).active.as_mut().ok_or(Errno(FI_EOPBADSTATE))?;
        if !active.cancel(context) {
            return Err(Errno(FI_ENOENT));
        }
        if endpoint.state.get(entered).watched {
            endpoint.look_after_sleepers(entered);
        }
        Ok(0)
    })
}

unsafe extern "C" fn get_option(
    fid: fid_t,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: *mut usize,
) -> c_int {
    // SAFETY: the handle is an open endpoint's.
    let endpoint = unsafe { object::object::<Endpoint>(fid.cast()) };
    let outcome = endpoint.domain.enter(|entered| {
        if level as u32 != FI_OPT_ENDPOINT {
            return Err(Errno(FI_ENOPROTOOPT));
        }
        let answer = match name as u32 {
            FI_OPT_MIN_MULTI_RECV => endpoint.state.get(entered).multi_receive_least,
            FI_OPT_CM_DATA_SIZE => 0,
            _ => return Err(Errno(FI_ENOPROTOOPT)),
        };
        // SAFETY: the application provides the place and says how long it is.
        unsafe {
            if *length < size_of::<usize>() {
                return Err(Errno(FI_ETOOSMALL));
            }
            value.cast::<usize>().write_unaligned(answer);
            *length = size_of::<usize>();
        }
        Ok(0)
    });
    outcome as c_int
}

unsafe extern "C" fn set_option(fid: fid_t, level: c_int, name: c_int, value: *const c_void, length: usize) -> c_int {
    // SAFETY: the handle is an open endpoint's.
    let endpoint = unsafe { object::object::<Endpoint>(fid.cast()) };
    let outcome = endpoint.domain.enter(|entered| {
        if level as u32 != FI_OPT_ENDPOINT || name as u32 != FI_OPT_MIN_MULTI_RECV {
            return Err(Errno(FI_ENOPROTOOPT));
        }
        if length != size_of::<usize>() {
            return Err(INVALID);
        }
        // SAFETY: the application passes a number of this size.
        endpoint.state.get(entered).multi_receive_least = unsafe { value.cast::<usize>().read_unaligned() };
        Ok(0)
    });
    outcome as c_int
}

unsafe extern "C" fn size_left(_: *mut fid_ep) -> isize {
    limits::QUEUE_SIZE as isize
}

unsafe extern "C" fn no_send_context(
    _: *mut fid_ep,
    _: c_int,
    _: *mut fi_tx_attr,
    _: *mut *mut fid_ep,
    _: *mut c_void,
) -> c_int {
    -FI_ENOSYS
}

unsafe extern "C" fn no_receive_context(
    _: *mut fid_ep,
    _: c_int,
    _: *mut fi_rx_attr,
    _: *mut *mut fid_ep,
    _: *mut c_void,
) -> c_int {
    -FI_ENOSYS
}

unsafe extern "C" fn no_set_name(_: fid_t, _: *mut c_void, _: usize) -> c_int {
    -FI_ENOSYS
}

unsafe extern "C" fn no_get_peer(_: *mut fid_ep, _: *mut c_void, _: *mut usize) -> c_int {
    -FI_ENOSYS
}

unsafe extern "C" fn no_connect(_: *mut fid_ep, _: *const c_void, _: *const c_void, _: usize) -> c_int {
    -FI_ENOSYS
}

unsafe extern "C" fn no_listen(_: *mut fid_pep) -> c_int {
    -FI_ENOSYS
}

unsafe extern "C" fn no_accept(_: *mut fid_ep, _: *const c_void, _: usize) -> c_int {
    -FI_ENOSYS
}

unsafe extern "C" fn no_reject(_: *mut fid_pep, _: fid_t, _: *const c_void, _: usize) -> c_int {
    -FI_ENOSYS
}

unsafe extern "C" fn no_shutdown(_: *mut fid_ep, _: u64) -> c_int {
    -FI_ENOSYS
}

unsafe extern "C" fn no_join(_: *mut fid_ep, _: *const c_void, _: u64, _: *mut *mut fid_mc, _: *mut c_void) -> c_int {
    -FI_ENOSYS
}
