//! `fi_mr_reg` and its relatives. [`region`](crate::objects::region) explains keys.

use crate::border::bindings::*;
use crate::border::errno::{Errno, INVALID, TRY_AGAIN};
use crate::border::guard::guarded;
use crate::border::log;
use crate::border::object::{self, Fid, Object, hand_out, head, operations, share};
use crate::objects::counter::Counter;
use crate::objects::domain::Domain;
use crate::objects::endpoint::Endpoint;
use crate::objects::region::{Region, key_for};
use crate::parameter::limits::PIECES_MOST;
use crate::threads::domain_lock::Entered;
use core::ffi::{c_int, c_void};
use std::sync::Arc;
use tidegate_link::memory::Piece;
use tidegate_link::{Copies, IoBuffer};
use tidegate_message::Access;

/// `FI_KEY_NOTAVAIL`.
const NO_KEY: u64 = u64::MAX;

/// A registered region.
#[repr(C)]
pub struct MemoryRegion {
    fid: Fid<fid_mr>,
    domain: Arc<Domain>,
    key: u64,
}

// SAFETY: `repr(C)`, and the C struct comes first.
unsafe impl Object for MemoryRegion {
    type Fid = fid_mr;
}

static HEAD: fi_ops = operations(close, bind, control);
/// The calls of a domain that register memory.
pub static OPS: fi_ops_mr = fi_ops_mr {
    size: size_of::<fi_ops_mr>(),
    reg: Some(register_one),
    regv: Some(register_many),
    regattr: Some(register_described),
};

/// What the application asks for.
struct Request {
    access: u64,
    offset: u64,
    key: u64,
    flags: u64,
    context: *mut c_void,
}

/// # Safety
/// `domain` must be open, the pieces be the application's memory, and `region` be a place for the answer.
unsafe fn register(
    domain: *mut fid,
    pieces: impl Iterator<Item = Piece> + Clone,
    start: u64,
    request: Request,
    region: *mut *mut fid_mr,
) -> c_int {
    guarded(|| {
        if request.flags & !FI_RMA_EVENT != 0 {
            return Err(Errno(FI_EBADFLAGS));
        }
        if request.offset != 0 {
            return Err(INVALID);
        }
        // SAFETY: promised by the caller. The application keeps the memory until it closes the region; that it may be
        // used by others meanwhile is the nature of remote memory access.
        let (domain, buffer) = unsafe { (share::<Domain>(domain.cast()), IoBuffer::from_pieces(pieces)) };
        let granted = [(FI_REMOTE_READ, Access::Read), (FI_REMOTE_WRITE, Access::Write)];
        let access = granted.iter().filter(|(flag, _)| request.access & flag != 0).map(|(_, access)| *access).collect();
        let mut key = request.key;
        let outcome = domain.enter(|entered| {
            let regions = &mut domain.state.get(entered).regions;
            if domain.virtual_addresses {
                key = key_for(start, |key| regions.contains_key(&key))?;
            }
            if key == NO_KEY || regions.contains_key(&key) {
                return Err(Errno(FI_ENOKEY));
            }
            let is_counted = request.flags & FI_RMA_EVENT != 0;
            regions.insert(key, Region { buffer, access, is_counted, is_closing: false });
            register_with_endpoints(&domain, key, entered);
            Ok(0)
        });
        if outcome != 0 {
            return Err(Errno(-outcome as c_int));
        }
        let head = head(FI_CLASS_MR, request.context, &HEAD);
        let fid = Fid::new(fid_mr { fid: head, mem_desc: core::ptr::null_mut(), key });
        // SAFETY: promised by the caller.
        unsafe { hand_out(Arc::new(MemoryRegion { fid, domain, key }), region) };
        Ok(0)
    })
}

/// Lets all endpoints of the domain know a region, or what has changed of it.
fn register_with_endpoints(domain: &Domain, key: u64, entered: &mut Entered) {
    for index in 0..domain.state.get(entered).endpoints.len() {
        let endpoint = Arc::clone(&domain.state.get(entered).endpoints[index]);
        let Some(region) = domain.state.get(entered).regions.remove(&key) else { return };
        if let Some(active) = &mut endpoint.state.get(entered).active {
            region.register(key, &mut active.engine, endpoint.counts());
        }
        domain.state.get(entered).regions.insert(key, region);
    }
}

unsafe extern "C" fn register_one(
    domain: *mut fid,
    buffer: *const c_void,
    length: usize,
    access: u64,
    offset: u64,
    requested_key: u64,
    flags: u64,
    region: *mut *mut fid_mr,
    context: *mut c_void,
) -> c_int {
    let piece = Piece::new(buffer.cast_mut().cast(), length);
    let request = Request { access, offset, key: requested_key, flags, context };
    // SAFETY: called by the application with an open domain, its own memory and a place for the answer.
    unsafe { register(domain, core::iter::once(piece), buffer as u64, request, region) }
}

unsafe extern "C" fn register_many(
    domain: *mut fid,
    pieces: *const iovec,
    count: usize,
    access: u64,
    offset: u64,
    requested_key: u64,
    flags: u64,
    region: *mut *mut fid_mr,
    context: *mut c_void,
) -> c_int {
    if count == 0 || count > PIECES_MOST {
        return -FI_EINVAL;
    }
    // SAFETY: the application passes `count` pieces.
    let pieces = unsafe { core::slice::from_raw_parts(pieces, count) };
    let start = pieces[0].iov_base as u64;
    let pieces = pieces.iter().map(|piece| Piece::new(piece.iov_base.cast(), piece.iov_len));
    let request = Request { access, offset, key: requested_key, flags, context };
    // SAFETY: called by the application with an open domain, its own memory and a place for the answer.
    unsafe { register(domain, pieces, start, request, region) }
}

unsafe extern "C" fn register_described(
    domain: *mut fid,
    attr: *const fi_mr_attr,
    flags: u64,
    region: *mut *mut fid_mr,
) -> c_int {
    // SAFETY: the application passes attributes. Only the fields of the first version of the struct are read: an older
    // application's struct ends there.
    unsafe {
        let attr = &raw const *attr;
        let (pieces, count) = ((*attr).mr_iov, (*attr).iov_count);
        let (access, offset, key) = ((*attr).access, (*attr).offset, (*attr).requested_key);
        register_many(domain, pieces, count, access, offset, key, flags, region, (*attr).context)
    }
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: the application closes a region that `register` made.
    let region = unsafe { share::<MemoryRegion>(fid.cast()) };
    // In a forked child it is the parent's, and stays.
    let outcome = if region.domain.is_inherited() { 0 } else { withdraw(&region) };
    if outcome != 0 {
        return outcome as c_int;
    }
    // SAFETY: as above; nothing else keeps regions.
    guarded(|| unsafe { object::close::<MemoryRegion>(fid.cast(), |_| false) })
}

/// Takes a region from all peers. The application may free the memory as soon as this is over, so it waits for those
/// that copy just now: outside of the domain, where other threads go on.
fn withdraw(region: &MemoryRegion) -> isize {
    let domain = &region.domain;
    let mut waits: Option<Vec<(Arc<Endpoint>, Copies)>> = None;
    loop {
        let outcome = domain.enter(|entered| {
            let state = domain.state.get(entered);
            let endpoints = state.endpoints.clone();
            // An endpoint that opens while this waits would let peers reach the region, and go on after the end.
            if let Some(region) = state.regions.get_mut(&region.key) {
                region.is_closing = true;
            }
            let waits = waits.get_or_insert_with(|| {
                let withdraw = |endpoint: &Arc<Endpoint>, entered: &mut Entered| {
                    let active = endpoint.state.get(entered).active.as_mut()?;
                    Some((Arc::clone(endpoint), active.engine.link_mut().first().withdraw_region(region.key)))
                };
                endpoints.iter().filter_map(|endpoint| withdraw(endpoint, entered)).collect()
            });
            while let Some((endpoint, copies)) = waits.last_mut() {
                let Some(active) = &endpoint.state.get(entered).active else {
                    drop(waits.pop());
                    continue;
                };
                match active.engine.link().look_at_first().are_over(copies) {
                    Ok(true) => drop(waits.pop()),
                    Ok(false) => return Err(TRY_AGAIN),
                    Err(why) => {
                        let key = region.key;
                        log::trouble(FI_LOG_MR, &format!("fi_close of the memory region with key {key}: {why}"));
                        return Err(Errno(FI_EBUSY));
                    }
                }
            }
            let state = domain.state.get(entered);
            state.regions.remove(&region.key);
            state.region_counters.remove(&region.key);
            for endpoint in &endpoints {
                if let Some(active) = &mut endpoint.state.get(entered).active {
                    active.engine.deregister(region.key);
                }
            }
            Ok(0)
        });
        match waits.as_mut().and_then(|waits| waits.last_mut()) {
            Some((_, copies)) if outcome == TRY_AGAIN.code() => copies.pause(),
            _ => return outcome,
        }
    }
}

/// `fi_mr_bind`. Regions belong to the whole domain, so nothing changes when one is bound to an endpoint of the domain.
/// A counter counts what peers change in the region, from now on: Tidegate does not ask for `FI_MR_RMA_EVENT`, so a
/// region is in use before it is bound, whether or not it was registered with `FI_RMA_EVENT`.
unsafe extern "C" fn bind(fid: *mut fid, other: *mut fid, flags: u64) -> c_int {
    // SAFETY: the application passes open objects; the class tells what the other one is.
    let (region, class) = unsafe { (share::<MemoryRegion>(fid.cast()), (*other).fclass as u32) };
    let domain = &region.domain;
    let outcome = domain.enter(|entered| match class {
        FI_CLASS_EP => {
            // SAFETY: as above.
            let endpoint = unsafe { share::<Endpoint>(other.cast()) };
            if Arc::ptr_eq(&endpoint.domain, domain) { Ok(0) } else { Err(INVALID) }
        }
        FI_CLASS_CNTR => {
            // SAFETY: as above.
            let counter = unsafe { share::<Counter>(other.cast()) };
            if flags != FI_REMOTE_WRITE {
                return Err(Errno(FI_EBADFLAGS));
            }
            let state = domain.state.get(entered);
            let known = state.regions.get_mut(&region.key).ok_or(INVALID)?;
            if !Arc::ptr_eq(&counter.domain, domain) || state.region_counters.contains_key(&region.key) {
                return Err(INVALID);
            }
            known.is_counted = true;
            state.region_counters.insert(region.key, Arc::clone(&counter));
            *counter.counts_at_regions.get(entered) = true;
            register_with_endpoints(domain, region.key, entered);
            Ok(0)
        }
        _ => Err(Errno(FI_ENOSYS)),
    });
    outcome as c_int
}

/// Regions are enabled from the start.
unsafe extern "C" fn control(_fid: *mut fid, command: c_int, _arg: *mut c_void) -> c_int {
    if command as u64 == FI_ENABLE { 0 } else { -FI_ENOSYS }
}
