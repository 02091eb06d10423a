//! The objects of the provider below that one endpoint needs, opened in order and closed in the reverse one.

use super::asking::Offer;
use super::ports::Ports;
use super::wants::Wants;
use crate::border::bindings::*;
use crate::border::loader::Loader;
use core::ffi::{c_int, c_void};
use core::ptr::{NonNull, null_mut};
use std::collections::HashMap;
use std::ffi::CStr;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// An object of libfabric, closed when this is dropped. All begin with their `fid`.
pub struct Owned<T>(NonNull<T>);

impl<T> Owned<T> {
    /// The object.
    pub fn get(&self) -> *mut T {
        self.0.as_ptr()
    }

    /// The object as what all have in common.
    pub fn fid(&self) -> *mut fid {
        self.0.as_ptr().cast()
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: the object is open, and nobody uses it after this.
        unsafe {
            let fid = self.fid();
            if let Some(close) = (*(*fid).ops).close {
                close(fid);
            }
        }
    }
}

/// Memory that peers may read: a registration of each of its pieces.
pub type Exposed = Vec<Owned<fid_mr>>;

/// All that an endpoint of the provider below needs. Fields are dropped in this order.
pub struct Objects {
    /// Memory that peers read, by the keys that they were told; a provider that chooses keys may choose one for
    /// several. Registrations may be bound to the endpoint, so they are closed before it.
    pub exposed: HashMap<u64, Vec<Exposed>>,
    /// The endpoint, enabled.
    pub endpoint: Owned<fid_ep>,
    /// Registrations of local memory, where the provider wants them.
    regions: Vec<Owned<fid_mr>>,
    /// Those of the memory into which is read, by operation.
    pub destinations: HashMap<usize, Owned<fid_mr>>,
    /// Addresses of peers.
    pub vector: Owned<fid_av>,
    /// Where operations are reported.
    pub queue: Owned<fid_cq>,
    domain: Owned<fid_domain>,
    /// The fabric.
    pub fabric: Owned<fid_fabric>,
    /// What to sleep on, if the provider has it and it was asked for.
    pub descriptor: Option<RawFd>,
    /// The last key of memory that no peer reaches, and the bits that keys have.
    key: u64,
    key_mask: u64,
}

/// Bytes of an address that are asked for first.
const USUAL_NAME: usize = 128;
/// No address is longer.
const NAME_MOST: usize = 64 << 10;
/// Tries to find a key that is not taken.
const KEYS_TRIED: usize = 4;

/// Makes a call of the provider below, whose function may be missing, and whose last argument but the context is a
/// place for an object.
macro_rules! open {
    ($loader:expr, $what:literal, $function:expr, |$open:ident, $place:ident| $call:expr) => {{
        let mut object = null_mut();
        let $place = &raw mut object;
        let code = match $function {
            Some($open) => $call,
            None => -FI_ENOSYS,
        };
        match NonNull::new(object).filter(|_| code == 0) {
            Some(object) => Owned(object),
            None => return Err(failure($loader, $what, code)),
        }
    }};
}

/// What helps a process that has no more descriptors.
pub const DESCRIPTORS_REMEDY: &str =
    ": too many open files: raise the limit (ulimit -n), of which each peer on another host takes one or two";
/// Descriptors that opening an endpoint of the provider below may take.
const DESCRIPTORS_TO_OPEN: usize = 12;

/// Whether this process is about to have no more descriptors.
fn is_short_of_descriptors() -> bool {
    let mut taken = Vec::new();
    while taken.len() < DESCRIPTORS_TO_OPEN {
        match std::fs::File::open("/dev/null") {
            Ok(file) => taken.push(file),
            Err(error) => return matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)),
        }
    }
    false
}

/// libfabric's text for an error.
pub fn text(loader: &Loader, error: c_int) -> String {
    // SAFETY: the library's texts live for ever and end in zero.
    unsafe { CStr::from_ptr(loader.error_text(error)) }.to_string_lossy().into_owned()
}

/// What failed, with libfabric's text for it, and what helps.
pub fn failure(loader: &Loader, what: &str, code: c_int) -> String {
    let text = text(loader, -code);
    let remedy = match -code {
        FI_EMFILE => DESCRIPTORS_REMEDY,
        FI_EADDRNOTAVAIL => ": no port is free",
        FI_ENOMEM => ": memory is short",
        // Providers do not always say what they lack.
        _ if is_short_of_descriptors() => DESCRIPTORS_REMEDY,
        _ => "",
    };
    format!("{what} failed: {text}{remedy}")
}

/// A call of the provider below that failed, and its code.
type Failed = (&'static str, c_int);

/// The objects that an endpoint needs.
type Parts<'a> = (&'a Owned<fid_domain>, &'a Owned<fid_av>, &'a Owned<fid_cq>);

/// How often a port is tried that others bind at the same time.
const TRIES_TO_LISTEN: u32 = 8;
/// Endpoints that this process has opened in a range of ports.
static OPENED: AtomicU32 = AtomicU32::new(0);

/// An endpoint that is bound and enabled, and listens at one of the ports, if the user gave some.
fn open_endpoint(
    loader: &'static Loader,
    offer: &mut Offer,
    ports: Option<Ports>,
    parts: Parts,
) -> Result<Owned<fid_ep>, String> {
    let refuse = |(call, code): Failed| failure(loader, call, code);
    // Where addresses have no ports, the range is that of the watched port alone (`watched_port`).
    let Some(ports) = ports.filter(|_| offer.has_sockets() || !offer.is_watched()) else {
        return try_endpoint(offer, parts).map_err(refuse);
    };
    let seed = std::process::id().wrapping_add(OPENED.fetch_add(1, Ordering::Relaxed));
    let pause = Duration::from_micros(u64::from(seed % 1000));
    for port in ports.in_turn(seed) {
        if !offer.listen_at(port) {
            return Err(format!("FI_TIDEGATE_PORTS={ports}: {} does not listen at ports", offer.provider()));
        }
        let opened = try_port(offer, parts, pause);
        match opened.map_err(|failed| format!("FI_TIDEGATE_PORTS={ports}: port {port}: {}", refuse(failed)))? {
            Some(endpoint) => return Ok(endpoint),
            None => continue,
        }
    }
    Err(format!(
        "FI_TIDEGATE_PORTS={ports} has no free port here: each endpoint of a host takes one (Open MPI: two a process). Name a \
         wider range, or end what listens there (`ss -ltnp` lists it)"
    ))
}

/// An endpoint at the port that the offer has; `None`: another process listens there.
fn try_port(offer: &Offer, parts: Parts, pause: Duration) -> Result<Option<Owned<fid_ep>>, Failed> {
    for _ in 0..TRIES_TO_LISTEN {
        match try_endpoint(offer, parts) {
            Ok(endpoint) => return Ok(Some(endpoint)),
            // Another process had bound it too, and the kernel may have refused both as they began to listen.
            Err(("fi_enable", code)) if code == -FI_EADDRINUSE => std::thread::sleep(pause),
            Err((_, code)) if code == -FI_EADDRINUSE => break,
            Err(failed) => return Err(failed),
        }
    }
    Ok(None)
}

/// An endpoint that is bound and enabled.
fn try_endpoint(offer: &Offer, (domain, vector, queue): Parts) -> Result<Owned<fid_ep>, Failed> {
    // SAFETY: the calls of fi_endpoint(3), in their order; the objects are open, and the endpoint is closed before.
    unsafe {
        let (ops, mut object) = ((*domain.get()).ops, null_mut());
        let code = (*ops).endpoint.map_or(-FI_ENOSYS, |open| open(domain.get(), offer.info(), &mut object, null_mut()));
        let endpoint = NonNull::new(object).filter(|_| code == 0).map(Owned).ok_or(("fi_endpoint", code))?;
        let ops = (*endpoint.fid()).ops;
        for (object, flags) in [(vector.fid(), 0), (queue.fid(), FI_TRANSMIT | FI_RECV)] {
            match (*ops).bind.map_or(-FI_ENOSYS, |bind| bind(endpoint.fid(), object, flags)) {
                0 => {}
                code => return Err(("fi_ep_bind", code)),
            }
        }
        match (*ops).control.map_or(-FI_ENOSYS, |control| control(endpoint.fid(), FI_ENABLE as c_int, null_mut())) {
            0 => Ok(endpoint),
            code => Err(("fi_enable", code)),
        }
    }
}

impl Objects {
    /// Opens everything. For who may sleep there is a descriptor to sleep on where the provider has one.
    pub fn open(loader: &'static Loader, offer: &mut Offer, wants: Wants) -> Result<Objects, String> {
        let info = offer.info();
        // SAFETY: libfabric's calls, in the order of fi_domain(3) and fi_endpoint(3); attributes live through their
        // calls, and each object is closed after those that were made of it.
        unsafe {
            let attributes = (*info).fabric_attr;
            let opened = open_fabric(loader, attributes);
            let fabric = opened.map_err(|why| match offer.provider().split_once(';') {
                // It asks for the lower one in its turn, as if it were the application.
                Some((below, above)) if std::env::var_os("FI_PROVIDER").is_some() => {
                    format!("{why}: FI_PROVIDER must name both parts too: FI_PROVIDER=tidegate,{below},{above}")
                }
                _ => why,
            })?;
            let ops = (*fabric.get()).ops;
            let domain: Owned<fid_domain> = open!(loader, "fi_domain", (*ops).domain, |open, place| {
                open(fabric.get(), info, place, null_mut())
            });
            let ops = (*domain.get()).ops;
            let mut attributes: fi_av_attr = core::mem::zeroed();
            (attributes.type_, attributes.count) = (FI_AV_UNSPEC, wants.peers);
            let vector: Owned<fid_av> = open!(loader, "fi_av_open", (*ops).av_open, |open, place| {
                open(domain.get(), &mut attributes, place, null_mut())
            });
            let (queue, descriptor) = open_queue(loader, &domain, wants)?;
            let endpoint = open_endpoint(loader, offer, wants.ports, (&domain, &vector, &queue))?;
            let (regions, exposed, destinations) = (Vec::new(), HashMap::new(), HashMap::new());
            let key_mask = (*(*info).domain_attr).mr_key_size;
            let key_mask = if key_mask >= 8 { u64::MAX } else { (1 << (8 * key_mask)) - 1 };
            Ok(Objects {
                exposed,
                endpoint,
                regions,
                destinations,
                vector,
                queue,
                domain,
                fabric,
                descriptor,
                key: 0,
                key_mask,
            })
        }
    }

    /// Registers memory, which stays where it is as long as this lives. Returns what operations on it must give.
    pub fn register(&mut self, loader: &Loader, memory: (*const c_void, usize)) -> Result<*mut c_void, String> {
        let region = self.register_own(loader, memory, FI_SEND | FI_RECV)?;
        let descriptor = descriptor_of(&region);
        self.regions.push(region);
        Ok(descriptor)
    }

    /// Registers memory for an operation, until that has ended. Returns what the operation must give.
    pub fn register_destination(
        &mut self,
        loader: &Loader,
        operation: usize,
        memory: (*const c_void, usize),
    ) -> Result<*mut c_void, String> {
        let region = self.register_own(loader, memory, FI_READ)?;
        let descriptor = descriptor_of(&region);
        self.destinations.insert(operation, region);
        Ok(descriptor)
    }

    /// Registers memory that no peer reaches: by keys that nothing else has, where the provider does not choose them.
    fn register_own(
        &mut self,
        loader: &Loader,
        memory: (*const c_void, usize),
        access: u64,
    ) -> Result<Owned<fid_mr>, String> {
        let mut why = String::new();
        for _ in 0..KEYS_TRIED {
            self.key = self.key.wrapping_add(1) & self.key_mask;
            match self.register_for(loader, memory, access, self.key) {
                Ok(region) => return Ok(region),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    /// Registers memory for what `access` lists, by this key, if the provider does not choose it.
    pub fn register_for(
        &self,
        loader: &Loader,
        memory: (*const c_void, usize),
        access: u64,
        key: u64,
    ) -> Result<Owned<fid_mr>, String> {
        // SAFETY: the call is fi_mr_reg(3). A provider that does not find the memory fails.
        unsafe {
            let domain = self.domain.get();
            Ok(open!(loader, "fi_mr_reg", (*(*domain).mr).reg, |open, place| {
                open(self.domain.fid(), memory.0, memory.1, access, 0, key, 0, place, null_mut())
            }))
        }
    }

    /// Makes a registration one of the endpoint's.
    pub fn bind_region(&self, loader: &Loader, region: &Owned<fid_mr>) -> Result<(), String> {
        let fid = region.fid();
        // SAFETY: both objects are open.
        let code = unsafe {
            let ops = (*fid).ops;
            match (*ops).bind.map_or(-FI_ENOSYS, |bind| bind(fid, self.endpoint.fid(), 0)) {
                0 => (*ops).control.map_or(-FI_ENOSYS, |control| control(fid, FI_ENABLE as c_int, null_mut())),
                code => code,
            }
        };
        if code == 0 { Ok(()) } else { Err(failure(loader, "binding a registration", code)) }
    }

    /// The endpoint's address, of as many bytes as it has.
    pub fn name(&self, loader: &Loader) -> Result<Vec<u8>, String> {
        let mut length = USUAL_NAME;
        let named = self.name_in(&mut length);
        match named {
            Err(code) if code == -FI_ETOOSMALL && (USUAL_NAME..NAME_MOST).contains(&length) => {
                self.name_in(&mut length).map_err(|code| failure(loader, "fi_getname", code))
            }
            named => named.map_err(|code| failure(loader, "fi_getname", code)),
        }
    }

    /// The endpoint's address, if it has at most `length` bytes. That is set to what it has.
    fn name_in(&self, length: &mut usize) -> Result<Vec<u8>, c_int> {
        let mut bytes = vec![0_u8; *length];
        let fid = self.endpoint.fid();
        // SAFETY: the endpoint is open, and as many bytes are there as is said.
        let code = unsafe {
            let cm = (*self.endpoint.get()).cm;
            (*cm).getname.map_or(-FI_ENOSYS, |getname| getname(fid, bytes.as_mut_ptr().cast(), length))
        };
        if code != 0 {
            return Err(code);
        }
        bytes.truncate(*length);
        Ok(bytes)
    }

    /// Whether a thread may sleep on the descriptor (`fi_trywait`).
    pub fn may_sleep(&self) -> bool {
        let mut fids = [self.queue.fid()];
        // SAFETY: fabric and queue are open.
        let code = unsafe {
            let ops = (*self.fabric.get()).ops;
            (*ops).trywait.map_or(-FI_ENOSYS, |trywait| trywait(self.fabric.get(), fids.as_mut_ptr(), 1))
        };
        code == 0
    }
}

/// What operations on registered memory must give.
fn descriptor_of(region: &Owned<fid_mr>) -> *mut c_void {
    // SAFETY: the registration is open.
    unsafe { (*region.get()).mem_desc }
}

/// The key of a registration.
pub fn key_of(region: &Owned<fid_mr>) -> u64 {
    // SAFETY: the registration is open.
    unsafe { (*region.get()).key }
}

/// # Safety
/// The attributes are those of an offer.
unsafe fn open_fabric(loader: &Loader, attributes: *mut fi_fabric_attr) -> Result<Owned<fid_fabric>, String> {
    // SAFETY: fi_fabric(3); promised by the caller.
    unsafe {
        Ok(open!(loader, "fi_fabric", loader.fabric_function(), |open, place| { open(attributes, place, null_mut()) }))
    }
}

/// # Safety
/// The domain is open.
unsafe fn open_queue(
    loader: &Loader,
    domain: &Owned<fid_domain>,
    wants: Wants,
) -> Result<(Owned<fid_cq>, Option<RawFd>), String> {
    // SAFETY: attributes live through their calls; a C struct for which zero is a value.
    unsafe {
        let ops = (*domain.get()).ops;
        let mut attributes: fi_cq_attr = core::mem::zeroed();
        (attributes.format, attributes.size) = (FI_CQ_FORMAT_MSG, wants.completions());
        if wants.may_sleep {
            attributes.wait_obj = FI_WAIT_FD;
            let mut queue: *mut fid_cq = null_mut();
            let code =
                (*ops).cq_open.map_or(-FI_ENOSYS, |open| open(domain.get(), &mut attributes, &mut queue, null_mut()));
            if let Some(queue) = NonNull::new(queue).filter(|_| code == 0).map(Owned) {
                let (mut descriptor, fid): (c_int, _) = (-1, queue.fid());
                let command = FI_GETWAIT as c_int;
                let place = (&raw mut descriptor).cast();
                let code = (*(*fid).ops).control.map_or(-FI_ENOSYS, |control| control(fid, command, place));
                return Ok((queue, (code == 0).then_some(descriptor)));
            }
        }
        attributes.wait_obj = FI_WAIT_NONE;
        let queue: Owned<fid_cq> = open!(loader, "fi_cq_open", (*ops).cq_open, |open, place| {
            open(domain.get(), &mut attributes, place, null_mut())
        });
        Ok((queue, None))
    }
}
