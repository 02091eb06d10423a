//! `fi_fabric` and the calls of a fabric.

use crate::border::bindings::*;
use crate::border::errno::{INVALID, TRY_AGAIN};
use crate::border::guard::guarded;
use crate::border::identity::NAME;
use crate::border::object::{self, hand_out, head, no_bind, no_control, operations, table};
use crate::calls::domain;
use crate::calls::event_queue::{self, EventQueue};
use crate::objects::completion_queue::CompletionQueue;
use crate::objects::fabric::Fabric;
use core::ffi::{CStr, c_int, c_void};
use std::sync::Arc;

static HEAD: fi_ops = operations(close, no_bind, no_control);
static OPS: fi_ops_fabric = fi_ops_fabric {
    size: size_of::<fi_ops_fabric>(),
    domain: Some(domain::open),
    passive_ep: Some(no_passive_endpoint),
    eq_open: Some(event_queue::open),
    wait_open: Some(no_wait_set),
    trywait: Some(trywait),
    domain2: Some(domain::open2),
};

/// Whether a handle is one of a fabric of ours.
///
/// # Safety
/// It must be the handle of an open fabric, of whatever provider.
pub unsafe fn is_ours(fabric: *mut fid_fabric) -> bool {
    // SAFETY: promised by the caller.
    core::ptr::eq(unsafe { (*fabric).ops }, table(&OPS))
}

/// `fi_fabric`.
pub unsafe extern "C" fn open(attr: *mut fi_fabric_attr, fabric: *mut *mut fid_fabric, context: *mut c_void) -> c_int {
    guarded(|| {
        // SAFETY: libfabric passes attributes and a place for the answer.
        unsafe {
            let attr = attr.as_ref().ok_or(INVALID)?;
            if attr.name.is_null() || CStr::from_ptr(attr.name) != NAME {
                return Err(INVALID);
            }
            let fid = fid_fabric {
                fid: head(FI_CLASS_FABRIC, context, &HEAD),
                ops: table(&OPS),
                api_version: attr.api_version,
            };
            hand_out(Arc::new(Fabric::new(fid)), fabric);
        }
        Ok(0)
    })
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: the application closes a fabric that `open` made. Domains and event queues share it.
    guarded(|| unsafe {
        object::close::<Fabric>(fid.cast(), |fabric| !fabric.is_inherited() && Arc::strong_count(fabric) > 1)
    })
}

/// `fi_trywait`: whether the application may sleep on the descriptors of all these objects.
unsafe extern "C" fn trywait(_fabric: *mut fid_fabric, fids: *mut *mut fid, count: c_int) -> c_int {
    guarded(|| {
        let count = usize::try_from(count).map_err(|_| INVALID)?;
        // Progress through one queue may report to another. So after the last progress all are looked at again, and
        // prepared for the sleep.
        for prepares in [false, true] {
            for index in 0..count {
                // SAFETY: the application passes `count` pointers to open objects; the class tells what each one is.
                let may_sleep = unsafe {
                    let fid = *fids.add(index);
                    match ((*fid).fclass as u32, prepares) {
                        (FI_CLASS_CQ, false) => object::object::<CompletionQueue>(fid.cast()).is_quiet(),
                        (FI_CLASS_CQ, true) => object::object::<CompletionQueue>(fid.cast()).prepare_sleep(),
                        (FI_CLASS_EQ, _) => object::object::<EventQueue>(fid.cast()).may_sleep(),
                        _ => Err(INVALID),
                    }
                }?;
                if !may_sleep {
                    return Err(TRY_AGAIN);
                }
            }
        }
        Ok(0)
    })
}

unsafe extern "C" fn no_passive_endpoint(
    _: *mut fid_fabric,
    _: *mut fi_info,
    _: *mut *mut fid_pep,
    _: *mut c_void,
) -> c_int {
    -FI_ENOSYS
}

unsafe extern "C" fn no_wait_set(_: *mut fid_fabric, _: *mut fi_wait_attr, _: *mut *mut fid_wait) -> c_int {
    -FI_ENOSYS
}
