//! `fi_av_open`: the addresses of peers. Tables and maps are the same here: an `fi_addr_t` is an index.

use crate::bindings::*;
use crate::domain::Domain;
use crate::endpoint::Endpoint;
use crate::guard::{Errno, INVALID, Result, guarded};
use crate::lock::{Entered, Guarded};
use crate::log;
use crate::object::{self, Fid, Object, hand_out, head, no_bind, no_control, operations, share, table};
use crate::submit::link_errno;
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use core::time::Duration;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Arc;
use tidegate_link::{Address, check_settings};

/// `FI_ADDR_UNSPEC` and `FI_ADDR_NOTAVAIL`.
pub const NO_ADDRESS: fi_addr_t = u64::MAX;

/// How long a process that has to fail waits for others to hear why.
const LINGERING: Duration = Duration::from_secs(1);

/// An address vector.
#[repr(C)]
pub struct AddressVector {
    fid: Fid<fid_av>,
    /// Its domain.
    pub domain: Arc<Domain>,
    /// How many addresses the application announced.
    pub announced: usize,
    /// Addresses and bound endpoints.
    pub state: Guarded<State>,
}

/// What the domain's lock guards.
#[derive(Default)]
pub struct State {
    addresses: Addresses,
    /// Endpoints that keep what they know about addresses.
    pub endpoints: Vec<Arc<Endpoint>>,
}

// SAFETY: `repr(C)`, and the C struct comes first.
unsafe impl Object for AddressVector {
    type Fid = fid_av;
}

/// Addresses by index and indices by address.
#[derive(Debug, Default)]
struct Addresses {
    /// Address, and what the application wants to see as the source of its messages.
    entries: Vec<Option<(Address, fi_addr_t)>>,
    indices: HashMap<Address, fi_addr_t>,
    free: Vec<usize>,
}

impl Addresses {
    /// Every insertion gets an index of its own, even of an address that is there already.
    fn insert(&mut self, address: Address, user_id: Option<fi_addr_t>) -> fi_addr_t {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        let shown = user_id.unwrap_or(index as fi_addr_t);
        self.entries[index] = Some((address, shown));
        self.indices.insert(address, shown);
        index as fi_addr_t
    }

    fn remove(&mut self, index: fi_addr_t) -> Result<()> {
        let slot = usize::try_from(index).ok().and_then(|index| self.entries.get_mut(index)).ok_or(INVALID)?;
        let (address, _) = slot.take().ok_or(INVALID)?;
        self.free.push(index as usize);
        // Another insertion of the same address goes on answering for it.
        match self.entries.iter().flatten().find(|(other, _)| *other == address) {
            Some((_, shown)) => self.indices.insert(address, *shown),
            None => self.indices.remove(&address),
        };
        Ok(())
    }

    fn get(&self, index: fi_addr_t) -> Option<Address> {
        self.entries.get(usize::try_from(index).ok()?)?.map(|(address, _)| address)
    }
}

/// Gives launchers time to pass on what this process has just said, and the other process time to say the same. A rank fails
/// on an address that is refused, and some launchers end a job at the first failure without passing on what its ranks have
/// printed by then (Intel MPI's: 2 jobs of 30 said nothing).
fn linger_once() {
    static LINGERED: AtomicBool = AtomicBool::new(false);
    if !LINGERED.swap(true, Relaxed) {
        std::thread::sleep(LINGERING);
    }
}

static HEAD: fi_ops = operations(close, no_bind, no_control);
static OPS: fi_ops_av = fi_ops_av {
    size: size_of::<fi_ops_av>(),
    insert: Some(insert),
    insertsvc: Some(no_service),
    insertsym: Some(no_symmetric),
    remove: Some(remove),
    lookup: Some(lookup),
    straddr: Some(as_text),
    av_set: Some(no_set),
};

impl AddressVector {
    /// The address that an index stands for.
    pub fn address(&self, index: fi_addr_t, entered: &mut Entered) -> Option<Address> {
        self.state.get(entered).addresses.get(index)
    }

    /// What the application calls an address; `NO_ADDRESS` if it has not inserted it.
    pub fn index(&self, address: &Address, entered: &mut Entered) -> fi_addr_t {
        self.state.get(entered).addresses.indices.get(address).copied().unwrap_or(NO_ADDRESS)
    }

    /// What is wrong with an address that an application wants to insert, as libfabric's error number. A process with other
    /// settings is refused here, before anything is sent: some MPIs take no notice of operations that fail (Intel MPI returned
    /// wrong sums), but all of them notice this.
    fn check(&self, address: Option<Address>) -> core::result::Result<Address, c_int> {
        let address = address.ok_or(FI_EINVAL)?;
        check_settings(&self.domain.settings.flow(self.announced), &address).map_err(|error| {
            log::trouble(FI_LOG_AV, &error.to_string());
            linger_once();
            link_errno(&error).0
        })?;
        Ok(address)
    }

    /// Endpoints look up again what they need.
    fn forget_in_endpoints(&self, entered: &mut Entered) {
        for index in 0..self.state.get(entered).endpoints.len() {
            let endpoint = Arc::clone(&self.state.get(entered).endpoints[index]);
            if let Some(active) = &mut endpoint.state.get(entered).active {
                active.forget_addresses();
            }
        }
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
            if attr.type_ == FI_AV_UNSPEC {
                attr.type_ = FI_AV_TABLE;
            }
            let opened = AddressVector {
                fid: Fid::new(fid_av { fid: head(FI_CLASS_AV, context, &HEAD), ops: table(&OPS) }),
                domain: share(domain),
                announced: attr.count,
                state: Guarded::new(State::default()),
            };
            hand_out(Arc::new(opened), vector);
        }
        Ok(0)
    })
}

unsafe extern "C" fn close(fid: *mut fid) -> c_int {
    // SAFETY: the application closes a vector that `open` made. Bound endpoints share it.
    guarded(|| unsafe { object::close::<AddressVector>(fid.cast(), |vector| Arc::strong_count(vector) > 1) })
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
    let inserted = vector.domain.enter(|entered| {
        if bytes.is_null() || flags & !(FI_MORE | FI_SYNC_ERR | FI_AV_USER_ID) != 0 {
            return Err(INVALID);
        }
        let errors = if flags & FI_SYNC_ERR != 0 { context.cast::<c_int>() } else { core::ptr::null_mut() };
        let mut inserted = 0;
        for number in 0..count {
            // SAFETY: the application passes `count` addresses of our length one after the other, and, where it passes
            // them at all, as many places for indices and errors.
            unsafe {
                let bytes =
                    core::slice::from_raw_parts(bytes.cast::<u8>().add(number * Address::BYTES), Address::BYTES);
                let index = (!indices.is_null()).then(|| &mut *indices.add(number));
                let user_id = index.as_deref().filter(|_| flags & FI_AV_USER_ID != 0).copied();
                let new = vector
                    .check(Address::from_bytes(bytes))
                    .map(|address| vector.state.get(entered).addresses.insert(address, user_id));
                if let Some(index) = index {
                    *index = new.unwrap_or(NO_ADDRESS);
                }
                if !errors.is_null() {
                    *errors.add(number) = new.err().unwrap_or(0);
                }
                inserted += isize::from(new.is_ok());
            }
        }
        // Who was unknown as a source may be known now.
        vector.forget_in_endpoints(entered);
        Ok(inserted)
    });
    inserted as c_int
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
        for &index in unsafe { core::slice::from_raw_parts(indices, count) } {
            // A bad index spoils the answer, not the removal of the others.
            outcome = vector.state.get(entered).addresses.remove(index).and(outcome);
        }
        // Whatever the answer: endpoints must not go on using what has been removed.
        vector.forget_in_endpoints(entered);
        outcome
    });
    outcome as c_int
}

/// Copies `bytes` into the caller's place and says how long they are. Room for less is no error here: the caller compares.
///
/// # Safety
/// `length` must be valid, and as many bytes as it says at `place`.
pub unsafe fn copy_out(bytes: &[u8], place: *mut c_void, length: *mut usize) {
    // SAFETY: promised by the caller.
    unsafe {
        core::ptr::copy_nonoverlapping(bytes.as_ptr(), place.cast(), bytes.len().min(*length));
        *length = bytes.len();
    }
}

unsafe extern "C" fn lookup(vector: *mut fid_av, index: fi_addr_t, place: *mut c_void, length: *mut usize) -> c_int {
    // SAFETY: the handle is an open vector's.
    let vector = unsafe { object::object::<AddressVector>(vector) };
    let outcome = vector.domain.enter(|entered| {
        let address = vector.address(index, entered).ok_or(INVALID)?;
        // SAFETY: the application provides the place.
        unsafe { copy_out(&address.to_bytes(), place, length) };
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
        let bytes = unsafe { core::slice::from_raw_parts(bytes.cast::<u8>(), Address::BYTES) };
        let text =
            Address::from_bytes(bytes).map_or("not an address of Tidegate".to_owned(), |address| address.to_string());
        let text = CString::new(text).unwrap_or_default();
        // SAFETY: the application provides the place. A text that is cut still ends.
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

unsafe extern "C" fn no_service(
    _: *mut fid_av,
    _: *const c_char,
    _: *const c_char,
    _: *mut fi_addr_t,
    _: u64,
    _: *mut c_void,
) -> c_int {
    -FI_ENOSYS
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

#[cfg(test)]
mod tests {
    use super::*;

    fn address(pid: u8) -> Address {
        let mut bytes = [0; Address::BYTES];
        bytes[..4].copy_from_slice(b"TGS2");
        bytes[4] = pid;
        Address::from_bytes(&bytes).unwrap()
    }

    #[test]
    fn indices_count_from_zero_and_lead_back() {
        let mut all = Addresses::default();
        for pid in 0..5 {
            assert_eq!(all.insert(address(pid), None), pid.into());
        }
        assert_eq!(all.get(3), Some(address(3)));
        assert_eq!(all.indices[&address(3)], 3);
        assert_eq!((all.get(5), all.get(NO_ADDRESS)), (None, None));
    }

    #[test]
    fn a_removed_address_is_gone_and_its_index_used_again() {
        let mut all = Addresses::default();
        all.insert(address(1), None);
        all.insert(address(2), None);
        all.remove(0).unwrap();
        assert_eq!(all.get(0), None);
        assert!(!all.indices.contains_key(&address(1)));
        assert_eq!(all.remove(0), Err(INVALID));
        assert_eq!(all.insert(address(3), None), 0);
    }

    #[test]
    fn an_address_inserted_twice_survives_one_removal() {
        let mut all = Addresses::default();
        let first = all.insert(address(1), None);
        let second = all.insert(address(1), None);
        assert_ne!(first, second);
        all.remove(second).unwrap();
        assert_eq!(all.indices[&address(1)], first);
    }

    #[test]
    fn the_application_may_name_sources_itself() {
        let mut all = Addresses::default();
        let index = all.insert(address(1), Some(77));
        assert_eq!((index, all.indices[&address(1)]), (0, 77));
    }
}
