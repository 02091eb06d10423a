//! `fi_av_open`: the addresses of peers. Tables and maps are the same here: an `fi_addr_t` is an index.

use crate::bindings::*;
use crate::domain::Domain;
use crate::endpoint::Endpoint;
use crate::errno::{Errno, INVALID, Result};
use crate::guard::guarded;
use crate::lock::{Entered, Guarded};
use crate::log;
use crate::name::Name;
use crate::object::{self, Fid, Object, hand_out, head, no_bind, no_control, operations, share, table};
use crate::place::{self, Place};
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use core::time::Duration;
use std::collections::{BTreeSet, HashMap};
use std::ffi::CString;
use std::sync::Arc;
use tidegate_link::{Address, check_settings};

/// Flags of the calls that insert.
const INSERT_FLAGS: u64 = FI_MORE | FI_SYNC_ERR | FI_AV_USER_ID;
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
    entries: Vec<Option<Entry>>,
    indices: HashMap<Address, Insertions>,
    free: Vec<usize>,
}

/// The indices of all insertions that lead to one address.
#[derive(Debug)]
struct Insertions {
    /// The one that is the address's name.
    answering: usize,
    /// Those that it may get its name from later.
    others: BTreeSet<usize>,
}

/// One insertion.
#[derive(Clone, Copy, Debug)]
struct Entry {
    name: Name,
    /// Where it leads, as far as that is known.
    address: Option<Address>,
    /// What the application wants to see as the source of its messages.
    shown: fi_addr_t,
}

impl Addresses {
    /// Every insertion gets an index of its own, even of an address that is there already.
    fn insert(&mut self, name: Name, user_id: Option<fi_addr_t>) -> fi_addr_t {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        let shown = user_id.unwrap_or(index as fi_addr_t);
        self.entries[index] = Some(Entry { name, address: None, shown });
        if let Name::Endpoint(address) = name {
            self.note(index as fi_addr_t, address);
        }
        index as fi_addr_t
    }

    /// The address that a name leads to, now.
    fn note(&mut self, index: fi_addr_t, address: Address) {
        let index = index as usize;
        let Some(entry) = self.entries.get_mut(index).and_then(Option::as_mut) else { return };
        if let Some(before) = entry.address.replace(address) {
            self.end_answering(index, before);
        }
        match self.indices.get_mut(&address) {
            Some(insertions) => {
                insertions.others.insert(insertions.answering);
                insertions.answering = index;
            }
            None => {
                self.indices.insert(address, Insertions { answering: index, others: BTreeSet::new() });
            }
        }
    }

    /// An insertion does not lead to `address` any more; another of the same address goes on answering for it.
    fn end_answering(&mut self, index: usize, address: Address) {
        let Some(insertions) = self.indices.get_mut(&address) else { return };
        if insertions.answering != index {
            insertions.others.remove(&index);
            return;
        }
        match insertions.others.pop_first() {
            Some(other) => insertions.answering = other,
            None => {
                self.indices.remove(&address);
            }
        }
    }

    /// What the application wants to see as the source of messages from `address`.
    fn shown(&self, address: &Address) -> Option<fi_addr_t> {
        let answering = self.indices.get(address)?.answering;
        self.entries[answering].map(|entry| entry.shown)
    }

    fn remove(&mut self, index: fi_addr_t) -> Result<()> {
        let slot = usize::try_from(index).ok().and_then(|index| self.entries.get_mut(index)).ok_or(INVALID)?;
        let removed = slot.take().ok_or(INVALID)?;
        self.free.push(index as usize);
        if let Some(address) = removed.address {
            self.end_answering(index as usize, address);
        }
        Ok(())
    }

    fn get(&self, index: fi_addr_t) -> Option<Name> {
        self.entries.get(usize::try_from(index).ok()?)?.map(|entry| entry.name)
    }
}

/// What became of a name that an application wanted to insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It is there.
    Done,
    /// It is not.
    Refused(Refusal),
}

/// What is wrong with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// It is no address, or leads nowhere.
    NoAddress,
    /// It is that of a process with other settings.
    OtherSettings(Errno),
}

impl Outcome {
    /// Whether others have to hear of it.
    fn disagrees(self) -> bool {
        matches!(self, Outcome::Refused(Refusal::OtherSettings(_)))
    }
}

impl Refusal {
    /// As libfabric's error number.
    fn errno(self) -> c_int {
        match self {
            Refusal::NoAddress => FI_EINVAL,
            Refusal::OtherSettings(errno) => errno.0,
        }
    }
}

/// Gives launchers time to pass on what this process has just said, and the other process time to say the same. A rank fails
/// on an address that is refused, and some launchers end a job at the first failure without passing on what its ranks have
/// printed by then (Intel MPI's: 2 jobs of 30 said nothing). Not inside the domain: other threads go on meanwhile.
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
    insertsvc: Some(insert_service),
    insertsym: Some(no_symmetric),
    remove: Some(remove),
    lookup: Some(lookup),
    straddr: Some(as_text),
    av_set: Some(no_set),
};

impl AddressVector {
    /// What an index stands for.
    pub fn name(&self, index: fi_addr_t, entered: &mut Entered) -> Option<Name> {
        self.state.get(entered).addresses.get(index)
    }

    /// Where the name of an index has been found to lead.
    pub fn note(&self, index: fi_addr_t, address: Address, entered: &mut Entered) {
        self.state.get(entered).addresses.note(index, address);
    }

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
            let new = self.check(name).map(|name| self.state.get(entered).addresses.insert(name, user_id));
            if let Some(place) = place.as_mut() {
                *place = new.unwrap_or(NO_ADDRESS);
            }
            if let Some(error) = error.as_mut() {
                *error = new.map_or_else(Refusal::errno, |_| 0);
            }
            new.map_or_else(Outcome::Refused, |_| Outcome::Done)
        }
    }

    /// What the application calls an address; `NO_ADDRESS` if it has not inserted it.
    pub fn index(&self, address: &Address, entered: &mut Entered) -> fi_addr_t {
        self.state.get(entered).addresses.shown(address).unwrap_or(NO_ADDRESS)
    }

    /// What is wrong with an address that an application wants to insert. A process with other
    /// settings is refused here, before anything is sent: some MPIs take no notice of operations that fail (Intel MPI returned
    /// wrong sums), but all of them notice this.
    fn check(&self, name: Option<Name>) -> core::result::Result<Name, Refusal> {
        let name = name.filter(Name::is_somewhere).ok_or(Refusal::NoAddress)?;
        if let Name::Endpoint(address) = &name {
            self.check_settings(address).map_err(Refusal::OtherSettings)?;
        }
        Ok(name)
    }

    /// Whether a process has our settings. If not, it is said.
    pub fn check_settings(&self, address: &Address) -> Result<()> {
        check_settings(&self.domain.settings.flow(self.announced), address).map_err(|error| {
            log::trouble(FI_LOG_AV, &error.to_string());
            Errno::of_link(&error)
        })
    }

    /// Endpoints look up again what they need, and know nothing any more of indices that have been removed.
    fn forget_in_endpoints(&self, removed: &[fi_addr_t], entered: &mut Entered) {
        for index in 0..self.state.get(entered).endpoints.len() {
            let endpoint = Arc::clone(&self.state.get(entered).endpoints[index]);
            if let Some(active) = &mut endpoint.state.get(entered).active {
                active.forget_addresses();
                active.forget_waits(removed);
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
            match attr.type_ {
                FI_AV_UNSPEC => attr.type_ = FI_AV_TABLE,
                FI_AV_MAP | FI_AV_TABLE => {}
                _ => return Err(INVALID),
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
                let new = vector.insert_one(Name::from_bytes(bytes), place, error, flags, entered);
                inserted += isize::from(new == Outcome::Done);
                disagrees |= new.disagrees();
            }
        }
        // Who was unknown as a source may be known now.
        vector.forget_in_endpoints(&[], entered);
        Ok(inserted)
    });
    if disagrees {
        linger_once();
    }
    inserted as c_int
}

/// `fi_av_insertsvc`: a service of this host, whether or not somebody has it already.
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
        // Not inside the domain: asking about a host may take long.
        let (node, service) = (place::text(node), place::text(service));
        let name = Place { node, service, numeric: false }.name().map_err(|mismatch| {
            log::info(FI_LOG_AV, || format!("no address for fi_av_insertsvc: {mismatch}"));
            Errno(FI_ENODATA)
        })?;
        let error = if flags & FI_SYNC_ERR != 0 { context.cast::<c_int>() } else { core::ptr::null_mut() };
        let inserted = vector.domain.enter(|entered| {
            // SAFETY: the application gives null, or a place for an index and one for an error.
            let new = unsafe { vector.insert_one(Some(name), index, error, flags, entered) };
            vector.forget_in_endpoints(&[], entered);
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
            // A bad index spoils the answer, not the removal of the others.
            outcome = vector.state.get(entered).addresses.remove(index).and(outcome);
        }
        // Whatever the answer: endpoints must not go on using what has been removed.
        vector.forget_in_endpoints(indices, entered);
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
        let name = vector.name(index, entered).ok_or(INVALID)?;
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
        let text = Name::from_bytes(bytes).map_or("not an address of Tidegate".to_owned(), |name| name.to_string());
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
    use tidegate_link::Service;

    fn address(pid: u8) -> Address {
        let mut bytes = [0; Address::BYTES];
        bytes[..4].copy_from_slice(b"TGS2");
        bytes[4] = pid;
        Address::from_bytes(&bytes).unwrap()
    }

    fn name(pid: u8) -> Name {
        Name::Endpoint(address(pid))
    }

    #[test]
    fn indices_count_from_zero_and_lead_back() {
        let mut all = Addresses::default();
        for pid in 0..5 {
            assert_eq!(all.insert(name(pid), None), pid.into());
        }
        assert_eq!(all.get(3), Some(name(3)));
        assert_eq!(all.shown(&address(3)), Some(3));
        assert_eq!((all.get(5), all.get(NO_ADDRESS)), (None, None));
    }

    #[test]
    fn a_removed_address_is_gone_and_its_index_used_again() {
        let mut all = Addresses::default();
        all.insert(name(1), None);
        all.insert(name(2), None);
        all.remove(0).unwrap();
        assert_eq!(all.get(0), None);
        assert_eq!(all.shown(&address(1)), None);
        assert_eq!(all.remove(0), Err(INVALID));
        assert_eq!(all.insert(name(3), None), 0);
    }

    #[test]
    fn an_address_inserted_twice_survives_one_removal() {
        let mut all = Addresses::default();
        let first = all.insert(name(1), None);
        let second = all.insert(name(1), None);
        assert_ne!(first, second);
        assert_eq!(all.shown(&address(1)), Some(second));
        all.remove(second).unwrap();
        assert_eq!(all.shown(&address(1)), Some(first));
        let third = all.insert(name(1), None);
        all.remove(first).unwrap();
        assert_eq!(all.shown(&address(1)), Some(third), "another's removal changes nothing");
        all.remove(third).unwrap();
        assert_eq!(all.shown(&address(1)), None);
        assert!(all.indices.is_empty());
    }

    /// Steps counted would be better than time, but with steps that grow with the number of addresses this takes minutes.
    #[test]
    fn what_an_insertion_or_removal_costs_does_not_grow_with_the_addresses() {
        const MANY: u64 = 200_000;
        let begun = std::time::Instant::now();
        let mut all = Addresses::default();
        let numbered = |number: u64| {
            let mut bytes = address(1).to_bytes();
            bytes[32..40].copy_from_slice(&number.to_le_bytes());
            Name::Endpoint(Address::from_bytes(&bytes).unwrap())
        };
        assert_ne!(numbered(1), numbered(2));
        for names in [&numbered, &|_| name(1)] as [&dyn Fn(u64) -> Name; 2] {
            let indices: Vec<fi_addr_t> = (0..MANY).map(|number| all.insert(names(number), None)).collect();
            indices.iter().for_each(|index| all.remove(*index).unwrap());
            assert!(all.indices.is_empty());
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }

    #[test]
    fn the_application_may_name_sources_itself() {
        let mut all = Addresses::default();
        let index = all.insert(name(1), Some(77));
        assert_eq!((index, all.shown(&address(1))), (0, Some(77)));
    }

    #[test]
    fn a_service_is_known_by_the_address_that_it_leads_to_last() {
        let mut all = Addresses::default();
        let service = Name::Service(Service::new(b"7471").unwrap());
        let index = all.insert(service, None);
        assert!(all.indices.is_empty());
        all.note(index, address(1));
        all.note(index, address(1));
        assert_eq!((all.shown(&address(1)), all.indices.len()), (Some(index), 1));
        all.note(index, address(2));
        assert_eq!((all.shown(&address(2)), all.indices.len()), (Some(index), 1));
        assert_eq!(all.get(index), Some(service));
        all.remove(index).unwrap();
        assert!(all.indices.is_empty());
    }
}
