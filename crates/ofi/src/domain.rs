//! `fi_domain`: settings, the lock, and the registered memory that all endpoints of the domain share.

use crate::bindings::*;
use crate::errno::{self, Errno, INVALID, Result};
use crate::fabric::Fabric;
use crate::guard::{self, guarded};
use crate::lock::{DomainLock, Entered, Guarded};
use crate::memory_region::{self, Regions};
use crate::object::{self, Fid, Object, hand_out, head, no_bind, no_control, operations, share, table};
use crate::parameter::Settings;
use crate::{address_vector, atomic, completion_queue, counter, endpoint, loader, log, parameter};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use endpoint::Endpoint;
use std::sync::Arc;

/// A domain.
#[repr(C)]
pub struct Domain {
    fid: Fid<fid_domain>,
    /// Its fabric.
    pub fabric: Arc<Fabric>,
    /// The user's parameters, read when the domain was opened.
    pub settings: Settings,
    /// Whether remote addresses are virtual addresses and keys are ours (`FI_MR_BASIC`).
    pub virtual_addresses: bool,
    /// Endpoints and regions.
    pub state: Guarded<State>,
    lock: DomainLock,
    poisoned: AtomicBool,
}

/// What the lock guards.
#[derive(Default)]
pub struct State {
    /// Endpoints that can communicate.
    pub endpoints: Vec<Arc<Endpoint>>,
    /// Registered memory.
    pub regions: Regions,
}

// SAFETY: `repr(C)`, and the C struct comes first.
unsafe impl Object for Domain {
    type Fid = fid_domain;
}

static HEAD: fi_ops = operations(close, no_bind, no_control);
static OPS: fi_ops_domain = fi_ops_domain {
    size: size_of::<fi_ops_domain>(),
    av_open: Some(address_vector::open),
    cq_open: Some(completion_queue::open),
    endpoint: Some(endpoint::open),
    scalable_ep: Some(no_scalable_endpoint),
    cntr_open: Some(counter::open),
    poll_open: Some(no_poll_set),
    stx_ctx: Some(no_shared_send_context),
    srx_ctx: Some(no_shared_receive_context),
    query_atomic: Some(atomic::query),
    query_collective: Some(no_collectives),
    endpoint2: Some(endpoint::open2),
};

impl Domain {
    fn new(fabric: Arc<Fabric>, settings: Settings, threading: fi_threading, context: *mut c_void) -> Domain {
        let fid =
            fid_domain { fid: head(FI_CLASS_DOMAIN, context, &HEAD), ops: table(&OPS), mr: table(&memory_region::OPS) };
        Domain {
            fid: Fid::new(fid),
            fabric,
            settings,
            virtual_addresses: false,
            state: Guarded::new(State::default()),
            lock: DomainLock::new(threading != FI_THREAD_DOMAIN),
            poisoned: AtomicBool::new(false),
        }
    }

    /// Whether a handle is one of a domain of ours.
    ///
    /// # Safety
    /// It must be the handle of an open domain, of whatever provider.
    pub unsafe fn is_ours(domain: *mut fid_domain) -> bool {
        // SAFETY: promised by the caller.
        core::ptr::eq(unsafe { (*domain).ops }, table(&OPS))
    }

    /// Runs one call inside the domain: holding its lock, and with a panic turned into `-FI_EOTHER`. After a panic the state may
    /// be half-changed, so the domain refuses all further calls.
    #[inline(always)]
    pub fn enter(&self, body: impl FnOnce(&mut Entered) -> Result) -> isize {
        if self.poisoned.load(Relaxed) {
            return Errno(FI_EOTHER).code();
        }
        self.lock.acquire();
        let outcome = guard::catch(|| {
            // SAFETY: we hold the lock, or the application promised that nobody else is inside. Bodies do not enter again.
            let mut entered = unsafe { Entered::new() };
            body(&mut entered)
        });
        if outcome.is_none() {
            self.poisoned.store(true, Relaxed);
        }
        self.lock.release();
        outcome.map_or(Errno(FI_EOTHER).code(), errno::code)
    }
}

/// `fi_domain`.
pub unsafe extern "C" fn open(
    fabric: *mut fid_fabric,
    info: *mut fi_info,
    domain: *mut *mut fid_domain,
    context: *mut c_void,
) -> c_int {
    guarded(|| {
        let loader = loader::get().ok_or(Errno(FI_ENODATA))?;
        let settings = parameter::read(loader).map_err(|text| {
            log::trouble(FI_LOG_DOMAIN, &text);
            INVALID
        })?;
        // SAFETY: called with an open fabric, the info that `getinfo` gave, and a place for the answer.
        unsafe {
            let attr = info.as_ref().and_then(|info| info.domain_attr.as_ref()).ok_or(INVALID)?;
            let mut opened = Domain::new(share(fabric), settings, attr.threading, context);
            opened.virtual_addresses = attr.mr_mode & FI_MR_BASIC != 0;
            hand_out(Arc::new(opened), domain);
        }
        Ok(0)
    })
}

/// `fi_domain2`: its flags announce peer providers, which Tidegate is not.
pub unsafe extern "C" fn open2(
    fabric: *mut fid_fabric,
    info: *mut fi_info,
    domain: *mut *mut fid_domain,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    if flags != 0 {
        return -FI_EBADFLAGS;
    }
    // SAFETY: the caller's promises are those of `open`.
    unsafe { open(fabric, info, domain, context) }
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: the application closes a domain that `open` made. All its objects share it.
    guarded(|| unsafe { object::close::<Domain>(fid.cast(), |domain| Arc::strong_count(domain) > 1) })
}

unsafe extern "C" fn no_scalable_endpoint(
    _: *mut fid_domain,
    _: *mut fi_info,
    _: *mut *mut fid_ep,
    _: *mut c_void,
) -> c_int {
    -FI_ENOSYS
}

unsafe extern "C" fn no_poll_set(_: *mut fid_domain, _: *mut fi_poll_attr, _: *mut *mut fid_poll) -> c_int {
    -FI_ENOSYS
}

unsafe extern "C" fn no_shared_send_context(
    _: *mut fid_domain,
    _: *mut fi_tx_attr,
    _: *mut *mut fid_stx,
    _: *mut c_void,
) -> c_int {
    -FI_ENOSYS
}

unsafe extern "C" fn no_shared_receive_context(
    _: *mut fid_domain,
    _: *mut fi_rx_attr,
    _: *mut *mut fid_ep,
    _: *mut c_void,
) -> c_int {
    -FI_ENOSYS
}

unsafe extern "C" fn no_collectives(
    _: *mut fid_domain,
    _: fi_collective_op,
    _: *mut fi_collective_attr,
    _: u64,
) -> c_int {
    -FI_ENOSYS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_as_an_error_and_closes_the_domain_for_further_calls() {
        for threading in [FI_THREAD_SAFE, FI_THREAD_DOMAIN] {
            let settings = Settings::default();
            let domain = Domain::new(Fabric::for_tests(), settings, threading, core::ptr::null_mut());
            assert_eq!(domain.enter(|_| Ok(7)), 7);
            assert_eq!(domain.enter(|_| Err(INVALID)), INVALID.code());
            assert_eq!(domain.enter(|_| panic!("on purpose")), Errno(FI_EOTHER).code());
            let mut entered_again = false;
            let outcome = domain.enter(|_| {
                entered_again = true;
                Ok(0)
            });
            assert_eq!((outcome, entered_again), (Errno(FI_EOTHER).code(), false));
        }
    }
}
