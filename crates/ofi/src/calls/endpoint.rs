//! `fi_endpoint` and the calls of an endpoint, except those that transfer.

use crate::border::bindings::*;
use crate::border::errno::{Errno, INVALID};
use crate::border::guard::guarded;
use crate::border::object::{self, copy_out, hand_out, head, operations, share, table};
use crate::calls::address_vector::AddressVector;
use crate::calls::{atomic, message, rma, tagged};
use crate::info::{RECEIVE_FLAGS, SEND_FLAGS};
use crate::objects::domain::Domain;
use crate::objects::endpoint::{Defaults, Endpoint};
use crate::{addressing::place, objects::closing, parameter::limits};
use core::ffi::{c_int, c_void};
use std::sync::Arc;
use tidegate_link::fabric::Contact;

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
            let domain = share::<Domain>(domain);
            domain.check_own()?;
            let is_recorded = domain.settings.trace.is_some();
            let fid = fid_ep {
                fid: head(FI_CLASS_EP, context, &HEAD),
                ops: table(&OPS),
                cm: table(&NAMES),
                msg: message::ops(is_recorded),
                rma: rma::ops(is_recorded),
                tagged: tagged::ops(is_recorded),
                atomic: atomic::ops(is_recorded),
                collective: core::ptr::null_mut(),
            };
            let defaults = Defaults {
                caps: info.caps,
                send_flags: info.tx_attr.as_ref().map_or(0, |attr| attr.op_flags),
                receive_flags: info.rx_attr.as_ref().map_or(0, |attr| attr.op_flags),
            };
            let opened = Endpoint::new(fid, domain, place::source_of(info)?, defaults);
            hand_out(Arc::new(opened), endpoint);
        }
        Ok(0)
    })
}

/// `fi_endpoint2`. Its flags are for peer providers, and Tidegate is none.
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
        // SAFETY: as above. No list has the endpoint any more.
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
            FI_CLASS_AV => {
                let vector = object::object::<AddressVector>(other.cast());
                if !Arc::ptr_eq(&vector.domain, &endpoint.domain) {
                    return Err(INVALID);
                }
                endpoint.bind_vector(Arc::clone(&vector.addresses))
            }
            // Nothing is ever reported to an event queue.
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
        // The direction, for which flags are asked or set, is part of the flags that the application passes.
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
        let allowed = if given & FI_RECV != 0 { RECEIVE_FLAGS } else { SEND_FLAGS };
        if command as u32 == FI_SETOPSFLAG {
            let wanted = given & !(FI_TRANSMIT | FI_RECV);
            if wanted & !allowed != 0 {
                return Err(Errno(FI_EBADFLAGS));
            }
            *place = wanted;
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
            if room < Contact::BYTES {
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
