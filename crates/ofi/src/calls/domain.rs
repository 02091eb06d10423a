//! `fi_domain` and the calls of a domain.

use crate::border::bindings::*;
use crate::border::errno::{Errno, INVALID};
use crate::border::guard::guarded;
use crate::border::object::{self, hand_out, head, no_bind, no_control, operations, share, table};
use crate::calls::{address_vector, atomic, completion_queue, counter, endpoint, memory_region};
use crate::objects::domain::Domain;
use crate::{border::loader, border::log, parameter};
use core::ffi::{c_int, c_void};
use std::sync::Arc;

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

/// Whether a handle is one of a domain of ours.
///
/// # Safety
/// It must be the handle of an open domain, of whatever provider.
pub unsafe fn is_ours(domain: *mut fid_domain) -> bool {
    // SAFETY: promised by the caller.
    core::ptr::eq(unsafe { (*domain).ops }, table(&OPS))
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
            let fid = fid_domain {
                fid: head(FI_CLASS_DOMAIN, context, &HEAD),
                ops: table(&OPS),
                mr: table(&memory_region::OPS),
            };
            hand_out(Arc::new(Domain::new(fid, share(fabric), settings, attr)?), domain);
        }
        Ok(0)
    })
}

/// `fi_domain2`. Its flags are for peer providers, and Tidegate is none.
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
    guarded(|| unsafe {
        object::close::<Domain>(fid.cast(), |domain| !domain.is_inherited() && Arc::strong_count(domain) > 1)
    })
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
