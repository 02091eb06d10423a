//! `fi_cntr_open` and the calls of counters. Reading a counter makes progress.

use crate::border::bindings::*;
use crate::border::errno::{Errno, INVALID};
use crate::border::guard::guarded;
use crate::border::object::{self, hand_out, head, no_bind, no_control, operations, share};
use crate::objects::counter::Counter;
use crate::objects::domain::Domain;
use crate::operations::recording::{Recording, tables};
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

static HEAD: fi_ops = operations(close, no_bind, no_control);
tables!(fi_ops_cntr, calls);

const fn calls<R: Recording>() -> fi_ops_cntr {
    fi_ops_cntr {
        size: size_of::<fi_ops_cntr>(),
        read: Some(read::<R>),
        readerr: Some(read_errors::<R>),
        add: Some(add),
        set: Some(set),
        wait: Some(wait::<R>),
        adderr: Some(add_errors),
        seterr: Some(set_errors),
    }
}

/// `fi_cntr_open`.
pub unsafe extern "C" fn open(
    domain: *mut fid_domain,
    attr: *mut fi_cntr_attr,
    counter: *mut *mut fid_cntr,
    context: *mut c_void,
) -> c_int {
    guarded(|| {
        // SAFETY: called with an open domain, attributes or null, and a place for the answer.
        unsafe {
            if let Some(attr) = attr.as_ref() {
                let waits = matches!(attr.wait_obj, FI_WAIT_NONE | FI_WAIT_UNSPEC | FI_WAIT_YIELD);
                // Bytes are not counted, and counters have no descriptor.
                if !waits || attr.events != FI_CNTR_EVENTS_COMP {
                    return Err(Errno(FI_ENOSYS));
                }
                if attr.flags != 0 {
                    return Err(INVALID);
                }
            }
            let domain = share::<Domain>(domain);
            domain.check_own()?;
            let ops = ops(domain.settings.trace.is_some());
            let fid = fid_cntr { fid: head(FI_CLASS_CNTR, context, &HEAD), ops };
            hand_out(Arc::new(Counter::new(fid, domain)), counter);
        }
        Ok(0)
    })
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: the application closes a counter that `open` made. Bound endpoints share it.
    guarded(|| unsafe {
        object::close::<Counter>(fid.cast(), |counter| !counter.domain.is_inherited() && Arc::strong_count(counter) > 1)
    })
}

unsafe extern "C" fn read<R: Recording>(counter: *mut fid_cntr) -> u64 {
    // SAFETY: the handle is an open counter's.
    let counter = unsafe { object::object::<Counter>(counter) };
    R::call(|| counter.poll());
    counter.ended_well()
}

unsafe extern "C" fn read_errors<R: Recording>(counter: *mut fid_cntr) -> u64 {
    // SAFETY: the handle is an open counter's.
    let counter = unsafe { object::object::<Counter>(counter) };
    R::call(|| counter.poll());
    counter.errors.load(Relaxed)
}

/// The application sets a counter, or adds to it.
fn change(counter: *mut fid_cntr, change: impl FnOnce(&Counter)) -> c_int {
    guarded(|| {
        // SAFETY: the handle is an open counter's.
        let counter = unsafe { object::object::<Counter>(counter) };
        counter.domain.check_own()?;
        change(counter);
        Ok(0)
    })
}

unsafe extern "C" fn add(counter: *mut fid_cntr, value: u64) -> c_int {
    change(counter, |counter| _ = counter.successes.fetch_add(value, Relaxed))
}

unsafe extern "C" fn set(counter: *mut fid_cntr, value: u64) -> c_int {
    change(counter, |counter| counter.successes.store(value, Relaxed))
}

unsafe extern "C" fn add_errors(counter: *mut fid_cntr, value: u64) -> c_int {
    change(counter, |counter| _ = counter.errors.fetch_add(value, Relaxed))
}

unsafe extern "C" fn set_errors(counter: *mut fid_cntr, value: u64) -> c_int {
    change(counter, |counter| counter.errors.store(value, Relaxed))
}

unsafe extern "C" fn wait<R: Recording>(counter: *mut fid_cntr, threshold: u64, timeout: c_int) -> c_int {
    // SAFETY: the handle is an open counter's.
    guarded(|| R::call(|| unsafe { object::object::<Counter>(counter) }.wait(threshold, timeout)))
}
