//! `fi_av_open` and the calls of address vectors. Tables and maps are the same here: in both an `fi_addr_t` is an
//! index.

use crate::addressing::addresses::{Addresses, NO_ADDRESS};
use crate::addressing::name::Name;
use crate::addressing::place::{self, Place};
use crate::addressing::reach;
use crate::border::bindings::*;
use crate::border::errno::{Errno, INVALID};
use crate::border::guard::guarded;
use crate::border::log;
use crate::border::object::{
    self, Fid, Object, copy_out, hand_out, head, no_bind, no_control, operations, share, table,
};
use crate::objects::domain::Domain;
use crate::threads::domain_lock::Entered;
use crate::threads::waits::FAILURE_LINGERS;
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::ffi::CString;
use std::sync::Arc;

/// Flags of the calls that insert.
const INSERT_FLAGS: u64 = FI_MORE | FI_SYNC_ERR | FI_AV_USER_ID;

/// An address vector.
#[repr(C)]
pub struct AddressVector {
    fid: Fid<fid_av>,
    /// Its domain.
    pub domain: Arc<Domain>,
    /// What it holds, shared with bound endpoints.
    pub addresses: Arc<Addresses>,
}

// SAFETY: `repr(C)`, and the C struct comes first.
unsafe impl Object for AddressVector {
    type Fid = fid_av;
}

/// What became of a name that an application wanted to insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It has been inserted.
    Done,
    /// It has not been inserted.
    Refused(Refusal),
}

/// What is wrong with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// It is no address of Tidegate, or leads nowhere.
    NoAddress,
    /// It is the address of a process with other settings, or with another network to other hosts.
    Disagreement(Errno),
}

impl Outcome {
    /// Whether the other process disagrees with us, and the user has to hear of it from both.
    fn disagrees(self) -> bool {
        matches!(self, Outcome::Refused(Refusal::Disagreement(_)))
    }
}

impl Refusal {
    /// As libfabric's error number.
    fn errno(self) -> c_int {
        match self {
            Refusal::NoAddress => FI_EINVAL,
            Refusal::Disagreement(errno) => errno.0,
        }
    }
}

/// Gives the launcher time to pass on what this process has just printed, and the other process time to print the same.
/// A rank fails when an address is refused, and some launchers end a job at the first failure without passing on what
/// its ranks have printed by then (Intel MPI's launcher printed nothing for 2 jobs of 30). This is called outside the
/// domain, so that other threads go on meanwhile.
fn linger_once() {
    static LINGERED: AtomicBool = AtomicBool::new(false);
    if !LINGERED.swap(true, Relaxed) {
        std::thread::sleep(FAILURE_LINGERS);
    }
}

static HEAD: fi_ops = operations(close, no_bind, no_control);
static OPS: fi_ops_av = fi_ops_av {
    size: size_of::<fi_ops_av>(),
    insert: Some(insert),
    insertsvc: Some(insert_service),
    insertsym: Some(no_symmetric),
    remove: Some(remove),
    lookup: Some(lookup),
    straddr: Some(as_text),
    av_set: Some(no_set),
};

impl AddressVector {
    /// Inserts one name, at the places that the application may have given.
    ///
    /// # Safety
    /// `place` and `error` must be null or valid.
    unsafe fn insert_one(
        &self,
        name: Option<Name>,
        place: *mut fi_addr_t,
        error: *mut c_int,
        flags: u64,
        entered: &mut Entered,
    ) -> Outcome {
        // SAFETY: promised by the caller.
        unsafe {
            let user_id = place.as_ref().copied().filter(|_| flags & FI_AV_USER_ID != 0);
            let new = self.check(name, entered).map(|name| self.addresses.insert(name, user_id, entered));
            if let Some(place) = place.as_mut() {
                *place = new.unwrap_or(NO_ADDRESS);
            }
            if let Some(error) = error.as_mut() {
                *error = new.map_or_else(Refusal::errno, |_| 0);
            }
            new.map_or_else(Outcome::Refused, |_| Outcome::Done)
        }
    }

    /// Checks a name that an application wants to insert. The address of a process with other settings, or that none of
    /// our endpoints can reach, is refused here, before anything is sent: some MPIs take no notice of operations that
    /// fail (Intel MPI returned wrong sums), but all of them notice an address that is refused.
    fn check(&self, name: Option<Name>, entered: &mut Entered) -> core::result::Result<Name, Refusal> {
        let name = name.filter(Name::is_somewhere).ok_or(Refusal::NoAddress)?;
        let Name::Endpoint(contact) = &name else { return Ok(name) };
        self.addresses.check_settings(&self.domain.settings, contact).map_err(Refusal::Disagreement)?;
        let endpoints = self.domain.state.get(entered).endpoints.clone();
        for endpoint in endpoints {
            if let Some(active) = &endpoint.state.get(entered).active {
                reach::check(active.engine.link(), &active.own, contact).map_err(|error| {
                    log::trouble(FI_LOG_AV, &error.to_string());
                    Refusal::Disagreement(Errno::of_link(&error))
                })?;
            }
        }
        Ok(name)
    }

    /// The name that these bytes hold. Where they hold none, the user is told what they are.
    fn read(bytes: &[u8]) -> Option<Name> {
        let name = Name::from_bytes(bytes);
        name.inspect_err(|what| log::trouble(FI_LOG_AV, &format!("fi_av_insert: {what}"))).ok()
    }
}

/// `fi_av_open`.
pub unsafe extern "C" fn open(
    domain: *mut fid_domain,
    attr: *mut fi_av_attr,
    vector: *mut *mut fid_av,
    context: *mut c_void,
) -> c_int {
    guarded(|| {
        // SAFETY: called with an open domain, attributes and a place for the answer.
        unsafe {
            let attr = attr.as_mut().ok_or(INVALID)?;
            // Vectors shared between processes, insertion in the background and receive contexts are not offered.
            if !attr.name.is_null() || attr.flags & !FI_AV_USER_ID != 0 || attr.rx_ctx_bits != 0 {
                return Err(Errno(FI_ENOSYS));
            }
            match attr.type_ {
                FI_AV_UNSPEC => attr.type_ = FI_AV_TABLE,
                FI_AV_MAP | FI_AV_TABLE => {}
                _ => return Err(INVALID),
            }
            let domain = share::<Domain>(domain);
            domain.check_own()?;
            let opened = AddressVector {
                fid: Fid::new(fid_av { fid: head(FI_CLASS_AV, context, &HEAD), ops: table(&OPS) }),
                domain,
                addresses: Arc::new(Addresses::new(attr.count)),
            };
            hand_out(Arc::new(opened), vector);
        }
        Ok(0)
    })
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: the application closes a vector that `open` made. Bound endpoints share its addresses.
    guarded(|| unsafe {
        object::close::<AddressVector>(fid.cast(), |vector| {
            !vector.domain.is_inherited() && Arc::strong_count(&vector.addresses) > 1
        })
    })
}

unsafe extern "C" fn insert(
    vector: *mut fid_av,
    bytes: *const c_void,
    count: usize,
    indices: *mut fi_addr_t,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the handle is an open vector's.
    let vector = unsafe { object::object::<AddressVector>(vector) };
    let mut disagrees = false;
    let inserted = vector.domain.enter(|entered| {
        if bytes.is_null() || flags & !INSERT_FLAGS != 0 {
            return Err(INVALID);
        }
        let errors = if flags & FI_SYNC_ERR != 0 { context.cast::<c_int>() } else { core::ptr::null_mut() };
        let mut inserted = 0;
        for number in 0..count {
            // SAFETY: the application passes `count` addresses of our length one after the other, and, where it passes
            // them at all, as many places for indices and errors.
            unsafe {
                let bytes = core::slice::from_raw_parts(bytes.cast::<u8>().add(number * Name::BYTES), Name::BYTES);
                let place = if indices.is_null() { indices } else { indices.add(number) };
                let error = if errors.is_null() { errors } else { errors.add(number) };
                let new = vector.insert_one(AddressVector::read(bytes), place, error, flags, entered);
                inserted += isize::from(new == Outcome::Done);
                disagrees |= new.disagrees();
            }
        }
        // The application may know senders now that it did not know before.
        vector.domain.forget_addresses(&vector.addresses, &[], entered);
        Ok(inserted)
    });
    if disagrees {
        linger_once();
    }
    inserted as c_int
}

/// `fi_av_insertsvc`: inserts a service of this host, whether or not an endpoint has it already.
unsafe extern "C" fn insert_service(
    vector: *mut fid_av,
    node: *const c_char,
    service: *const c_char,
    index: *mut fi_addr_t,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the handle is an open vector's.
    let vector = unsafe { object::object::<AddressVector>(vector) };
    guarded(|| {
        if flags & !INSERT_FLAGS != 0 {
            return Err(INVALID);
        }
        // This happens outside the domain, because asking a resolver about a host may take long.
        let (node, service) = (place::text(node), place::text(service));
        let name = Place { node, service, numeric: false }.name().map_err(|mismatch| {
            log::info(FI_LOG_AV, || format!("no address for fi_av_insertsvc: {mismatch}"));
            Errno(FI_ENODATA)
        })?;
        let error = if flags & FI_SYNC_ERR != 0 { context.cast::<c_int>() } else { core::ptr::null_mut() };
        let inserted = vector.domain.enter(|entered| {
            // SAFETY: the application gives null, or a place for an index and one for an error.
            let new = unsafe { vector.insert_one(Some(name), index, error, flags, entered) };
            vector.domain.forget_addresses(&vector.addresses, &[], entered);
            if new == Outcome::Done { Ok(1) } else { Err(INVALID) }
        });
        Ok(inserted)
    })
}

unsafe extern "C" fn remove(vector: *mut fid_av, indices: *mut fi_addr_t, count: usize, _flags: u64) -> c_int {
    // SAFETY: the handle is an open vector's.
    let vector = unsafe { object::object::<AddressVector>(vector) };
    let outcome = vector.domain.enter(|entered| {
        if count == 0 {
            return Ok(0);
        }
        let mut outcome = Ok(0);
        // SAFETY: the application passes `count` indices.
        let indices = unsafe { core::slice::from_raw_parts(indices, count) };
        for &index in indices {
            // A bad index makes the call fail, but all other indices are removed.
            outcome = vector.addresses.remove(index, entered).and(outcome);
        }
        // This is needed also if the call fails: endpoints must not go on using what has been removed.
        vector.domain.forget_addresses(&vector.addresses, indices, entered);
        outcome
    });
    outcome as c_int
}

unsafe extern "C" fn lookup(vector: *mut fid_av, index: fi_addr_t, place: *mut c_void, length: *mut usize) -> c_int {
    // SAFETY: the handle is an open vector's.
    let vector = unsafe { object::object::<AddressVector>(vector) };
    let outcome = vector.domain.enter(|entered| {
        let name = vector.addresses.name(index, entered).ok_or(INVALID)?;
        // SAFETY: the application provides the place.
        unsafe { copy_out(&name.to_bytes(), place, length) };
        Ok(0)
    });
    outcome as c_int
}

unsafe extern "C" fn as_text(
    _vector: *mut fid_av,
    bytes: *const c_void,
    place: *mut c_char,
    length: *mut usize,
) -> *const c_char {
    let written = guarded(|| {
        // SAFETY: the application passes an address of our length.
        let bytes = unsafe { core::slice::from_raw_parts(bytes.cast::<u8>(), Name::BYTES) };
        let text = Name::from_bytes(bytes).map_or_else(|what| what.to_string(), |name| name.to_string());
        let text = CString::new(text).unwrap_or_default();
        // SAFETY: the application provides the place. A text that is cut still ends with a zero.
        unsafe {
            let room = *length;
            copy_out(text.as_bytes_with_nul(), place.cast(), length);
            if let Some(last) = room.checked_sub(1).filter(|_| room < *length) {
                *place.add(last) = 0;
            }
        }
        Ok(0)
    });
    if written == 0 { place } else { core::ptr::null() }
}

unsafe extern "C" fn no_symmetric(
    _: *mut fid_av,
    _: *const c_char,
    _: usize,
    _: *const c_char,
    _: usize,
    _: *mut fi_addr_t,
    _: u64,
    _: *mut c_void,
) -> c_int {
    -FI_ENOSYS
}

unsafe extern "C" fn no_set(_: *mut fid_av, _: *mut fi_av_set_attr, _: *mut *mut fid_av_set, _: *mut c_void) -> c_int {
    -FI_ENOSYS
}
