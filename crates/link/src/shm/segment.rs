//! The segment: the one file in `/dev/shm` that an endpoint owns. In it: a header, the table of peers, the published
//! regions, the mailbox, and the stages. Peers map it; all they learn of its layout they check against the file's size.

use super::STAGES_MOST;
use super::address::Address;
use super::error::{LinkError, Shortage};
use super::life::{self, Here};
use super::lock::{self, Byte};
use super::mailbox::{Alone, Mailbox, Pointers, Slot};
use super::memory_map::{self, Mapping, Shared};
use super::peer::{Entry, Table};
use super::region::{Place, REGIONS, Regions};
use super::stage::{STAGE_BYTES, StageArea};
use crate::log::{self, Level};
use crate::memory::IoBuffer;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use tidegate_flow::{Config, PeerId, SchemeName};
use tidegate_message::{Access, Span};

/// First word of a segment; the last byte is the version of everything that peers read in it.
const MAGIC: u64 = u64::from_be_bytes(*b"TIDEGAT\x03");
/// More peers than flow control accepts.
const PEERS_LIMIT: u64 = 1 << 20;
const PAGE: usize = 4096;

/// The beginning of a segment. Written before anybody can know the segment's name, except for the last five fields.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Header {
    magic: AtomicU64,
    peers: AtomicU64,
    slots: AtomicU64,
    stages: AtomicU64,
    scheme: AtomicU64,
    slots_per_peer: AtomicU64,
    credit_slots: AtomicU64,
    piggyback: AtomicU64,
    /// What the owner sets aside for unmatched messages of each sender, in bytes; 0: it does not say.
    pub window: AtomicU64,
    /// Whether the owner may want to be woken.
    pub wakes: AtomicU64,
    /// A random number, and where the owner's own memory holds it too: who can read it there can read that memory.
    pub cookie: AtomicU64,
    pub cookie_address: AtomicU64,
    /// Not 0 once the owner is closing: it will match nothing more.
    pub closing: AtomicU64,
    /// Not 0 once the owner has closed: it will retrieve and write no more.
    pub closed: AtomicU64,
    /// Not 0 while the owner waits to be woken.
    pub armed: Alone<AtomicU64>,
    pointers: Pointers,
}

// SAFETY: atomics only.
unsafe impl Shared for Header {}
// SAFETY: atomics only, outside the loom model, where nothing is mapped.
unsafe impl Shared for Slot {}

/// Where things lie in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    peers: usize,
    slots: usize,
    peers_at: usize,
    slots_at: usize,
    stages: usize,
    stages_at: usize,
    total: usize,
}

const REGIONS_AT: usize = PAGE;

impl Layout {
    /// `None` for sizes that cannot be.
    fn of(peers: u64, slots: u64, stages: u64) -> Option<Layout> {
        if slots == 0 || peers > PEERS_LIMIT || stages > STAGES_MOST.into() {
            return None;
        }
        let (peers, slots) = (usize::try_from(peers).ok()?, usize::try_from(slots).ok()?);
        let peers_at = REGIONS_AT + REGIONS * size_of::<Place>();
        let slots_at = (peers_at + peers * size_of::<Entry>()).next_multiple_of(PAGE);
        let stages_at = slots.checked_mul(size_of::<Slot>())?.checked_add(slots_at)?.checked_next_multiple_of(PAGE)?;
        let stages = usize::try_from(stages).ok()?;
        let total = stages.checked_mul(STAGE_BYTES)?.checked_add(stages_at)?;
        Some(Layout { peers, slots, peers_at, slots_at, stages, stages_at, total })
    }
}

/// Receive memory of a segment besides its mailbox, in bytes.
pub(crate) fn bookkeeping_bytes(peers: u32) -> usize {
    REGIONS_AT + REGIONS * size_of::<Place>() + peers as usize * size_of::<Entry>() + 2 * PAGE
}

/// A mapped segment, ours or a peer's.
#[derive(Debug)]
struct View {
    map: Mapping,
    layout: Layout,
}

impl View {
    fn header(&self) -> &Header {
        // SAFETY: the header lies at the start of a live mapping, and is all atomics.
        unsafe { self.map.value::<Header>(0).as_ref() }
    }

    /// # Safety
    /// The value and its copies must not be used after the view is dropped.
    unsafe fn table(&self) -> Table {
        // SAFETY: valid as long as the mapping.
        unsafe { Table::new(self.map.slice::<Entry>(self.layout.peers_at, self.layout.peers)) }
    }

    /// # Safety
    /// As for [`table`](Self::table).
    unsafe fn regions(&self) -> Regions {
        // SAFETY: valid as long as the mapping.
        unsafe { Regions::new(self.map.slice::<Place>(REGIONS_AT, REGIONS)) }
    }

    /// # Safety
    /// As for [`table`](Self::table).
    unsafe fn mailbox(&self) -> Mailbox {
        let slots = self.map.slice::<Slot>(self.layout.slots_at, self.layout.slots);
        // SAFETY: valid as long as the mapping.
        unsafe { Mailbox::new(slots, NonNull::from(&self.header().pointers)) }
    }

    /// # Safety
    /// As for [`table`](Self::table).
    unsafe fn stages(&self) -> StageArea {
        // SAFETY: valid as long as the mapping.
        unsafe {
            StageArea::new(self.map.slice::<AtomicU64>(self.layout.stages_at, self.layout.stages * STAGE_BYTES / 8))
        }
    }
}

/// The segment of this endpoint. Dropping it closes the endpoint for its peers and removes the file.
#[derive(Debug)]
pub(crate) struct OwnSegment {
    view: View,
    file: File,
    path: PathBuf,
    address: Address,
    /// Somewhere in our own memory, for peers to try to read.
    cookie: Box<AtomicU64>,
}

impl OwnSegment {
    /// Creates the segment. Errors: a refused configuration; too little space, with both numbers; no access to the
    /// directory.
    pub fn create(directory: &Path, here: &Here, flow: &Config, stages: u32, wakes: bool) -> Result<Self, LinkError> {
        let regions = flow.regions().map_err(LinkError::Config)?;
        // A process without peers has a mailbox as well, into which nobody writes.
        let layout = Layout::of(flow.peers.into(), regions.mailbox.max(1).into(), stages.into());
        let layout = layout.expect("sizes that flow control accepts can be laid out");
        let (file, path, address) = create_file(directory, here)?;
        let remove = |error| {
            let _ = fs::remove_file(&path);
            error
        };
        memory_map::allocate(&file, layout.total as u64).map_err(|error| {
            // First of all, so that what is measured as free does not lack what this attempt has taken.
            let _ = fs::remove_file(&path);
            no_space(directory, &layout, error)
        })?;
        let map = Mapping::new(&file, layout.total)
            .map_err(|error| remove(LinkError::system(format!("mapping {}", path.display()), error)))?;
        let cookie = Box::new(AtomicU64::new(random()));
        let segment = OwnSegment { view: View { map, layout }, file, path, address, cookie };
        segment.describe(flow, wakes);
        Ok(segment)
    }

    fn describe(&self, flow: &Config, wakes: bool) {
        let header = self.view.header();
        let set = |word: &AtomicU64, value: u64| word.store(value, Ordering::Relaxed);
        set(&header.peers, self.view.layout.peers as u64);
        set(&header.slots, self.view.layout.slots as u64);
        set(&header.stages, self.view.layout.stages as u64);
        set(&header.scheme, scheme_code(flow.scheme));
        set(&header.slots_per_peer, flow.slots_per_peer.into());
        set(&header.credit_slots, flow.credit_slots.into());
        set(&header.piggyback, flow.piggyback.into());
        set(&header.wakes, wakes.into());
        set(&header.cookie, self.cookie.load(Ordering::Relaxed));
        set(&header.cookie_address, &raw const *self.cookie as u64);
        header.magic.store(MAGIC, Ordering::Release);
    }

    pub fn address(&self) -> Address {
        self.address
    }

    pub fn header(&self) -> &Header {
        self.view.header()
    }

    /// # Safety
    /// The value and its copies must not be used after the segment is dropped.
    pub unsafe fn table(&self) -> Table {
        // SAFETY: handed on to the caller.
        unsafe { self.view.table() }
    }

    /// # Safety
    /// As for [`table`](Self::table).
    pub unsafe fn regions(&self) -> Regions {
        // SAFETY: handed on to the caller.
        unsafe { self.view.regions() }
    }

    /// # Safety
    /// As for [`table`](Self::table).
    pub unsafe fn mailbox(&self) -> Mailbox {
        // SAFETY: handed on to the caller.
        unsafe { self.view.mailbox() }
    }

    /// Keeps others out of the table of peers.
    pub fn lock_table(&self) -> Result<lock::Held<'_>, LinkError> {
        lock::Held::take(&self.file, Byte::Insertion)
            .map_err(|error| LinkError::system(format!("locking {}", self.path.display()), error))
    }

    /// # Safety
    /// As for [`table`](Self::table).
    pub unsafe fn stages(&self) -> StageArea {
        // SAFETY: handed on to the caller.
        unsafe { self.view.stages() }
    }

    /// Bytes of the whole segment less those of the mailbox and the stages: what the peers cost beside their slots.
    pub fn bookkeeping_bytes(&self) -> u64 {
        self.view.layout.stages_at as u64 - self.mailbox_bytes()
    }

    /// Bytes of the stages.
    pub fn stage_bytes(&self) -> u64 {
        (self.view.layout.stages * STAGE_BYTES) as u64
    }

    /// Bytes of the mailbox.
    pub fn mailbox_bytes(&self) -> u64 {
        (self.view.layout.slots * size_of::<Slot>()) as u64
    }
}

impl Drop for OwnSegment {
    fn drop(&mut self) {
        // A child that was forked from the owner has a copy of this value, but the segment is its parent's.
        if std::process::id() != self.address.pid {
            return;
        }
        // Under the lock, so that a peer that connects meanwhile either sees the mark or is in the table before it.
        let _held = self.lock_table();
        self.view.header().closed.store(1, Ordering::Release);
        let _ = fs::remove_file(&self.path);
    }
}

/// A peer's segment.
#[derive(Debug)]
pub(crate) struct PeerSegment {
    view: View,
    file: Option<File>,
}

impl PeerSegment {
    /// Opens the segment of `peer` and checks that it fits ours.
    pub fn open(directory: &Path, peer: &Address, flow: &Config) -> Result<Self, LinkError> {
        let path = directory.join(peer.file_name());
        let file = life::open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => LinkError::Gone { peer: *peer },
            _ => LinkError::system(format!("opening the segment {} of {peer}", path.display()), error),
        })?;
        let broken = |what: String| LinkError::Elsewhere { peer: *peer, reason: format!("its segment {what}") };
        let size = file.metadata().map_err(|error| broken(format!("cannot be read: {error}")))?.len() as usize;
        if size < REGIONS_AT {
            return Err(broken(format!("has {size} bytes only; remove {}", path.display())));
        }
        // First the header alone, then, knowing the layout, everything.
        let glance = Mapping::new(&file, REGIONS_AT).map_err(|error| broken(format!("cannot be mapped: {error}")))?;
        // SAFETY: the header lies at the start of a mapping that lives to the end of this function, and is all atomics.
        let header = unsafe { glance.value::<Header>(0).as_ref() };
        let word = |word: &AtomicU64| word.load(Ordering::Relaxed);
        if header.magic.load(Ordering::Acquire) != MAGIC {
            return Err(broken("has another layout: all processes need the same version of Tidegate".into()));
        }
        let layout = Layout::of(word(&header.peers), word(&header.slots), word(&header.stages))
            .filter(|layout| layout.total == size);
        let layout = layout.ok_or_else(|| broken("contradicts its size".into()))?;
        agree(peer, flow, header)?;
        let map = Mapping::new(&file, size).map_err(|error| broken(format!("cannot be mapped: {error}")))?;
        Ok(PeerSegment { view: View { map, layout }, file: Some(file) })
    }

    /// Takes a place for `ours` in the peer's table, and closes the file, which nothing needs any more.
    pub fn enter(&mut self, peer: &Address, ours: &Address) -> Result<PeerId, LinkError> {
        let file = self.file.take().ok_or(LinkError::Gone { peer: *peer })?;
        let _held = lock::Held::take(&file, Byte::Insertion)
            .map_err(|error| LinkError::system(format!("locking the segment of {peer}"), error))?;
        if self.has_closed() {
            return Err(LinkError::Gone { peer: *peer });
        }
        // SAFETY: used in this function only.
        let table = unsafe { self.table() };
        let peers = table.capacity() as u32;
        let place =
            table.find_or_insert(ours).ok_or_else(|| LinkError::TableFull { owner: peer.to_string(), peers })?;
        table.mark_connected(place);
        Ok(place)
    }

    pub fn header(&self) -> &Header {
        self.view.header()
    }

    /// Whether the peer is closing its endpoint.
    pub fn is_closing(&self) -> bool {
        self.header().closing.load(Ordering::Acquire) != 0
    }

    /// Whether the peer has closed its endpoint.
    pub fn has_closed(&self) -> bool {
        self.header().closed.load(Ordering::Acquire) != 0
    }

    /// # Safety
    /// The value and its copies must not be used after the segment is dropped.
    pub unsafe fn table(&self) -> Table {
        // SAFETY: handed on to the caller.
        unsafe { self.view.table() }
    }

    /// # Safety
    /// As for [`table`](Self::table).
    pub unsafe fn mailbox(&self) -> Mailbox {
        // SAFETY: handed on to the caller.
        unsafe { self.view.mailbox() }
    }

    /// Copies the first `length` bytes of the peer's stage. `false` if there is no such stage.
    pub fn drain_stage(&self, stage: usize, into: &mut IoBuffer, offset: usize, length: usize) -> bool {
        // SAFETY: used here and now.
        unsafe { self.view.stages() }.drain(stage, into, offset, length)
    }

    /// Looks a published region up.
    pub fn find_region(&self, key: u64, offset: u64, length: u64, access: Access) -> Option<Span> {
        // SAFETY: used here and now.
        unsafe { self.view.regions() }.find(key, offset, length, access)
    }
}

/// Both ends of a connection must count slots in the same way.
fn agree(peer: &Address, flow: &Config, header: &Header) -> Result<(), LinkError> {
    let word = |word: &AtomicU64| word.load(Ordering::Relaxed);
    let differ = |parameter, ours: &dyn std::fmt::Display, theirs: &dyn std::fmt::Display| LinkError::Disagreement {
        peer: *peer,
        parameter,
        ours: ours.to_string(),
        theirs: theirs.to_string(),
    };
    let theirs = word(&header.scheme);
    if theirs != scheme_code(flow.scheme) {
        let name = SchemeName::ALL.get(theirs as usize).map_or("unknown", |scheme| scheme.name());
        return Err(differ("FI_TIDEGATE_SCHEME", &flow.scheme, &name));
    }
    let numbers = [
        ("FI_TIDEGATE_SLOTS", u64::from(flow.slots_per_peer), word(&header.slots_per_peer)),
        ("FI_TIDEGATE_CREDIT_SLOTS", flow.credit_slots.into(), word(&header.credit_slots)),
    ];
    for (parameter, ours, theirs) in numbers {
        if ours != theirs {
            return Err(differ(parameter, &ours, &theirs));
        }
    }
    let (ours, theirs) = (flow.piggyback, word(&header.piggyback) != 0);
    let text = |on| if on { "on" } else { "off" };
    if ours != theirs { Err(differ("FI_TIDEGATE_PIGGYBACK", &text(ours), &text(theirs))) } else { Ok(()) }
}

/// A scheme's place in `SchemeName::ALL`.
fn scheme_code(scheme: SchemeName) -> u64 {
    scheme as u64
}

/// Creates the file, empty and with its life lock held, under the next name that is free.
fn create_file(directory: &Path, here: &Here) -> Result<(File, PathBuf, Address), LinkError> {
    static SERIAL: AtomicU32 = AtomicU32::new(0);
    loop {
        let address = here.address(SERIAL.fetch_add(1, Ordering::Relaxed));
        let path = directory.join(address.file_name());
        let problem = |error| LinkError::system(format!("creating the segment {}", path.display()), error);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
        let file = match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            opened => opened.map_err(problem)?,
        };
        // A process that tidies up may have come between, taken the lock and removed the file.
        // It never removes one whose lock it has not got, so once we have both lock and name, we keep them.
        let kept = lock::try_take(&file, Byte::Life).and_then(|taken| Ok(taken && file.metadata()?.nlink() > 0));
        match kept {
            Ok(true) => return Ok((file, path, address)),
            Ok(false) => continue,
            Err(error) => {
                let _ = fs::remove_file(&path);
                return Err(problem(error));
            }
        }
    }
}

fn no_space(directory: &Path, layout: &Layout, error: io::Error) -> LinkError {
    let needed = layout.total as u64;
    if !matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG)) {
        return LinkError::system(format!("allocating {needed} bytes in {}", directory.display()), error);
    }
    let (total, free) = space(directory);
    let is_segment = |file: &fs::DirEntry| file.file_name().to_str().and_then(Address::from_file_name).is_some();
    let others = fs::read_dir(directory).into_iter().flatten().flatten().filter(is_segment);
    let taken: Vec<u64> = others.filter_map(|file| Some(file.metadata().ok()?.blocks() * 512)).collect();
    LinkError::NoSpace(Shortage {
        directory: directory.to_path_buf(),
        needed,
        mailbox: (layout.slots * size_of::<Slot>()) as u64,
        bounce_buffers: (layout.stages * STAGE_BYTES) as u64,
        total,
        free,
        others: taken.len(),
        taken_by_others: taken.iter().sum(),
    })
}

/// Bytes that the directory's file system holds, and those of them that are free; 0 if it does not say.
fn space(directory: &Path) -> (u64, u64) {
    use std::os::unix::ffi::OsStrExt;
    let Ok(path) = std::ffi::CString::new(directory.as_os_str().as_bytes()) else { return (0, 0) };
    // SAFETY: `statvfs` is a C struct of integers, for which zero is a value.
    let mut facts: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are valid for the length of the call.
    if unsafe { libc::statvfs(path.as_ptr(), &mut facts) } != 0 {
        return (0, 0);
    }
    (facts.f_blocks.saturating_mul(facts.f_frsize), facts.f_bavail.saturating_mul(facts.f_frsize))
}

/// Unpredictable enough to tell one process's memory from another's: the standard library seeds its hash maps from
/// the system.
fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) | 1
}

/// Removes what dead endpoints of this user left in `directory`; returns how many. Never touches a living one: see
/// [`life`].
pub(crate) fn reclaim(directory: &Path, here: &Here) -> usize {
    let Ok(files) = fs::read_dir(directory) else { return 0 };
    let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
    names
        .filter(|name| Address::from_file_name(name).is_some_and(|owner| remove_if_dead(directory, here, &owner)))
        .count()
}

/// Removes the segment of `owner` if it is dead; returns whether this call did.
pub(crate) fn remove_if_dead(directory: &Path, here: &Here, owner: &Address) -> bool {
    let path = directory.join(owner.file_name());
    let Ok(file) = life::open(&path) else { return false };
    // The lock is kept until the file is removed, so that nobody who is just creating it takes it for his.
    let locked = lock::try_take(&file, Byte::Life).unwrap_or(false);
    let removed = (locked || here.sees_gone(owner)) && fs::remove_file(&path).is_ok();
    if removed {
        log::line(Level::Info, || format!("removed {}, which {owner} left behind", path.display()));
    }
    removed
}
