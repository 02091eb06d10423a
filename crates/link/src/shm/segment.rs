//! The segment: the one file in `/dev/shm` that an endpoint owns. It has two parts. The owner alone writes the *shown* one:
//! a header, the published regions, and the stages. Peers write the *shared* one: the table of peers and the mailbox. They
//! map the first from a descriptor that is open for reading only, so that none of them can damage what the owner says of
//! itself or has put there for another peer, neither by mistake nor after `mprotect`. (A second file would protect it no
//! better: who may open one of this user's files may open the other. It would be a second name to clear away.)
//! All that peers learn of the layout they check against the file's size.

use super::STAGES_MOST;
use super::address::{Address, Identity, Settings};
use super::bulk::Cookie;
use super::error::{LinkError, Shortage, is_shortage};
use super::life::{self, Fate, Here, Rights};
use super::lock::{self, Byte};
use super::lock_file::LockFile;
use super::mailbox::{Alone, Mailbox, Pointers, Slot};
use super::memory_map::{self, Access, Mapping, Shared};
use super::peer::{Entry, State, Table};
use super::region::{Place, REGIONS, Regions};
use super::stage::{STAGE_BYTES, StageArea};
use super::wake::WakeName;
use crate::log::{self, Level};
use crate::memory::IoBuffer;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::time::Duration;
use tidegate_flow::{Config, PeerId};
use tidegate_message::{Access as RegionAccess, Span};

/// First word of a segment; the last byte is the version of everything that peers read in it.
const MAGIC: u64 = u64::from_be_bytes(*b"TIDEGAT\x05");
/// More peers than flow control accepts.
const PEERS_LIMIT: u64 = 1 << 20;
const PAGE: usize = 4096;

/// The beginning of the shown part. Written before anybody can know the segment's name, except for the last five fields.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Header {
    magic: AtomicU64,
    peers: AtomicU64,
    slots: AtomicU64,
    stages: AtomicU64,
    /// Whether the owner may want to be woken.
    pub wakes: AtomicU64,
    /// Where the owner's memory holds its nonce: who can read it there can read that memory, and no other.
    pub cookie_address: AtomicU64,
    /// What the owner sets aside for unmatched messages of each sender, in bytes; 0: it does not say.
    pub window: AtomicU64,
    /// Name of the socket by which the owner is woken, in two words; 0: there is none.
    wake_name: [AtomicU64; 2],
    /// Not 0 once the owner is closing: it will match nothing more.
    pub closing: AtomicU64,
    /// Not 0 once the owner has closed: it will retrieve and write no more.
    pub closed: AtomicU64,
}

/// The beginning of the shared part.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Signals {
    /// Not 0 while the owner waits to be woken.
    pub armed: Alone<AtomicU64>,
    pointers: Pointers,
}

// SAFETY: atomics only.
unsafe impl Shared for Header {}
// SAFETY: atomics only.
unsafe impl Shared for Signals {}
// SAFETY: atomics only, outside the loom model, where nothing is mapped.
unsafe impl Shared for Slot {}

impl Header {
    /// How to wake the owner, if it can be woken.
    pub fn wake_name(&self) -> Option<WakeName> {
        WakeName::from_words([0, 1].map(|at| self.wake_name[at].load(Ordering::Acquire)))
    }

    /// The owner says how to wake it.
    pub fn set_wake_name(&self, name: WakeName) {
        for (word, value) in self.wake_name.iter().zip(name.words()) {
            word.store(value, Ordering::Release);
        }
    }
}

/// Where things lie in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    peers: usize,
    slots: usize,
    stages: usize,
    /// Where the shared part begins; the next two count from there.
    shared_at: usize,
    slots_at: usize,
    shared_bytes: usize,
}

const REGIONS_AT: usize = PAGE;
const STAGES_AT: usize = REGIONS_AT + REGIONS * size_of::<Place>();
/// In the shared part.
const PEERS_AT: usize = size_of::<Signals>();

impl Layout {
    /// `None` for sizes that cannot be.
    fn of(peers: u64, slots: u64, stages: u64) -> Option<Layout> {
        if slots == 0 || peers > PEERS_LIMIT || stages > STAGES_MOST.into() {
            return None;
        }
        let [peers, slots, stages] = [peers, slots, stages].map(usize::try_from);
        let (peers, slots, stages) = (peers.ok()?, slots.ok()?, stages.ok()?);
        let shared_at = stages.checked_mul(STAGE_BYTES)?.checked_add(STAGES_AT)?;
        let slots_at = (PEERS_AT + peers * size_of::<Entry>()).next_multiple_of(PAGE);
        let shared_bytes =
            slots.checked_mul(size_of::<Slot>())?.checked_add(slots_at)?.checked_next_multiple_of(PAGE)?;
        shared_at.checked_add(shared_bytes)?;
        Some(Layout { peers, slots, stages, shared_at, slots_at, shared_bytes })
    }

    /// Bytes of the file.
    fn total(&self) -> usize {
        self.shared_at + self.shared_bytes
    }
}

/// Receive memory of a segment besides its mailbox, in bytes.
pub(crate) fn bookkeeping_bytes(peers: u32) -> usize {
    STAGES_AT + PEERS_AT + peers as usize * size_of::<Entry>() + 2 * PAGE
}

/// A mapped segment, ours or a peer's.
#[derive(Debug)]
struct View {
    /// Of a peer's segment it can only be read: whatever is made of it here, only the owner stores to.
    shown: Mapping,
    shared: Mapping,
    layout: Layout,
}

impl View {
    fn header(&self) -> &Header {
        // SAFETY: the header lies at the start of a live mapping, and is all atomics.
        unsafe { self.shown.value::<Header>(0).as_ref() }
    }

    fn signals(&self) -> &Signals {
        // SAFETY: as for the header.
        unsafe { self.shared.value::<Signals>(0).as_ref() }
    }

    /// # Safety
    /// The value and its copies must not be used after the view is dropped.
    unsafe fn table(&self) -> Table {
        // SAFETY: valid as long as the mapping.
        unsafe { Table::new(self.shared.slice::<Entry>(PEERS_AT, self.layout.peers)) }
    }

    /// # Safety
    /// As for [`table`](Self::table).
    unsafe fn regions(&self) -> Regions {
        // SAFETY: valid as long as the mapping.
        unsafe { Regions::new(self.shown.slice::<Place>(REGIONS_AT, REGIONS)) }
    }

    /// # Safety
    /// As for [`table`](Self::table).
    unsafe fn mailbox(&self) -> Mailbox {
        let slots = self.shared.slice::<Slot>(self.layout.slots_at, self.layout.slots);
        // SAFETY: valid as long as the mapping.
        unsafe { Mailbox::new(slots, NonNull::from(&self.signals().pointers)) }
    }

    /// # Safety
    /// As for [`table`](Self::table).
    unsafe fn stages(&self) -> StageArea {
        // SAFETY: valid as long as the mapping.
        unsafe { StageArea::new(self.shown.slice::<AtomicU64>(STAGES_AT, self.layout.stages * STAGE_BYTES / 8)) }
    }
}

/// The segment of this endpoint. Dropping it closes the endpoint for its peers and removes the file.
#[derive(Debug)]
pub(crate) struct OwnSegment {
    view: View,
    /// Holds the lock that says that we live. Nothing is mapped from it (see `lock_file`).
    file: LockFile,
    path: PathBuf,
    address: Address,
    /// In our own memory, for peers to try to read.
    cookie: Cookie,
}

impl OwnSegment {
    /// Creates the segment. Errors: a refused configuration; too little space, with both numbers; no access to the
    /// directory.
    pub fn create(directory: &Path, here: &Here, flow: &Config, stages: u32, wakes: bool) -> Result<Self, LinkError> {
        let regions = flow.regions().map_err(LinkError::Config)?;
        // A process without peers has a mailbox as well, into which nobody writes.
        let layout = Layout::of(flow.peers.into(), regions.mailbox.max(1).into(), stages.into());
        let layout = layout.expect("sizes that flow control accepts can be laid out");
        let (file, path, address) = create_file(directory, here, Settings::of(flow))?;
        let remove = |error| {
            let _ = fs::remove_file(&path);
            error
        };
        memory_map::allocate(&file, layout.total() as u64).map_err(|error| {
            // First of all, so that what is measured as free does not lack what this attempt has taken.
            let _ = fs::remove_file(&path);
            no_space(directory, &layout, error)
        })?;
        let cannot_map = |error| remove(LinkError::system(format!("mapping {}", path.display()), error));
        let mapped = life::open(&path, Rights::Lock).map_err(cannot_map)?;
        let shown = Mapping::new(&mapped, 0, layout.shared_at, Access::Write).map_err(cannot_map)?;
        let shared = Mapping::new(&mapped, layout.shared_at, layout.shared_bytes, Access::Write).map_err(cannot_map)?;
        let cookie = Cookie::new(address.identity.nonce).map_err(cannot_map)?;
        let segment = OwnSegment { view: View { shown, shared, layout }, file, path, address, cookie };
        segment.describe(wakes);
        Ok(segment)
    }

    fn describe(&self, wakes: bool) {
        let header = self.view.header();
        let set = |word: &AtomicU64, value: u64| word.store(value, Ordering::Relaxed);
        set(&header.peers, self.view.layout.peers as u64);
        set(&header.slots, self.view.layout.slots as u64);
        set(&header.stages, self.view.layout.stages as u64);
        set(&header.wakes, wakes.into());
        set(&header.cookie_address, self.cookie.address());
        header.magic.store(MAGIC, Ordering::Release);
    }

    pub fn address(&self) -> Address {
        self.address
    }

    pub fn header(&self) -> &Header {
        self.view.header()
    }

    pub fn signals(&self) -> &Signals {
        self.view.signals()
    }

    /// Where it was created.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether somebody has removed the file, so that nobody can connect any more.
    pub fn is_removed(&self) -> bool {
        self.file.metadata().is_ok_and(|facts| facts.nlink() == 0)
    }

    /// What the lock says that a peer holds while it may write to this segment.
    pub fn fate_of_writer(&self, peer: &Identity) -> Fate {
        life::fate_by_lock(&self.file, Byte::of(peer.nonce))
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

    /// Keeps others out of the table of peers. Tries for so long.
    pub fn lock_table(&self, patience: Duration) -> Result<lock::Held<'_>, LinkError> {
        lock::Held::take(&self.file, Byte::INSERTION, patience)
            .map_err(|error| LinkError::system(format!("locking {}", self.path.display()), error))?
            .ok_or_else(|| LinkError::Busy { file: self.path.clone() })
    }

    /// # Safety
    /// As for [`table`](Self::table).
    pub unsafe fn stages(&self) -> StageArea {
        // SAFETY: handed on to the caller.
        unsafe { self.view.stages() }
    }

    /// Bytes of the whole segment less those of the mailbox and the stages: what the peers cost beside their slots.
    pub fn bookkeeping_bytes(&self) -> u64 {
        self.view.layout.total() as u64 - self.mailbox_bytes() - self.bounce_buffer_bytes()
    }

    /// Bytes of the stages.
    pub fn bounce_buffer_bytes(&self) -> u64 {
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
        if std::process::id() != self.address.identity.pid {
            return;
        }
        // Under the lock, so that a peer that connects meanwhile either sees the mark or is in the table before it. Where somebody
        // does not give the lock up, a peer may come into the table after all: it sees the mark when it looks after us.
        let _held = self.lock_table(lock::PATIENCE_AT_LAST);
        self.view.header().closed.store(1, Ordering::Release);
        let _ = fs::remove_file(&self.path);
    }
}

/// A peer's segment.
#[derive(Debug)]
pub(crate) struct PeerSegment {
    view: View,
    /// Open as long as we may write: it holds our lock, and answers for the peer's, whatever becomes of the file's name.
    /// `None`: we have few descriptors, and our process id and our own file answer for us.
    file: Option<LockFile>,
}

impl PeerSegment {
    /// Opens the segment of `peer` and checks its layout.
    pub fn open(directory: &Path, here: &Here, peer: &Address) -> Result<Self, LinkError> {
        let path = directory.join(peer.identity.file_name());
        let opened = |rights| {
            life::open(&path, rights).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => missing(here, peer, &path),
                _ => LinkError::system(format!("opening the segment {} of {peer}", path.display()), error),
            })
        };
        // Three times: to hold locks, which nothing is mapped from (see `lock_file`), and for mappings of two kinds.
        let (file, shared_file, shown_file) = (opened(Rights::Lock)?, opened(Rights::Lock)?, opened(Rights::Read)?);
        let broken = |what: String| LinkError::Elsewhere { peer: *peer, reason: format!("its segment {what}") };
        let unmapped = |error: io::Error| match is_shortage(&error) {
            true => LinkError::system(format!("mapping the segment {} of {peer}", path.display()), error),
            false => broken(format!("cannot be mapped: {error}")),
        };
        let size = file.metadata().map_err(|error| broken(format!("cannot be read: {error}")))?.len() as usize;
        if size < STAGES_AT {
            return Err(broken(format!("has {size} bytes only; remove {}", path.display())));
        }
        // First the header alone, then, knowing the layout, everything.
        let glance = Mapping::new(&shown_file, 0, PAGE, Access::Read).map_err(unmapped)?;
        // SAFETY: the header lies at the start of a mapping that lives to the end of this function, and is all atomics.
        let header = unsafe { glance.value::<Header>(0).as_ref() };
        let word = |word: &AtomicU64| word.load(Ordering::Relaxed);
        if header.magic.load(Ordering::Acquire) != MAGIC {
            return Err(broken("has another layout: all processes need the same version of Tidegate".into()));
        }
        let layout = Layout::of(word(&header.peers), word(&header.slots), word(&header.stages))
            .filter(|layout| layout.total() == size);
        let layout = layout.ok_or_else(|| broken("contradicts its size".into()))?;
        let shown = Mapping::new(&shown_file, 0, layout.shared_at, Access::Read).map_err(unmapped)?;
        let shared =
            Mapping::new(&shared_file, layout.shared_at, layout.shared_bytes, Access::Write).map_err(unmapped)?;
        Ok(PeerSegment { view: View { shown, shared, layout }, file: Some(file) })
    }

    /// Takes a place for `ours` in the peer's table, and the lock that says that we live.
    pub fn enter(
        &mut self,
        directory: &Path,
        here: &Here,
        peer: &Address,
        ours: &Address,
    ) -> Result<PeerId, LinkError> {
        let file = self.file.take().ok_or(LinkError::Gone { peer: *peer })?;
        let held = lock::Held::take(&file, Byte::INSERTION, lock::PATIENCE)
            .map_err(|error| LinkError::system(format!("locking the segment of {peer}"), error))?
            .ok_or_else(|| LinkError::Busy { file: directory.join(peer.identity.file_name()) })?;
        if self.has_closed() {
            return Err(LinkError::Gone { peer: *peer });
        }
        // SAFETY: used in this function only.
        let table = unsafe { self.table() };
        let peers = table.capacity() as u32;
        let is_changing = table.has_ended();
        let place = table.find_or_insert(ours).ok_or_else(|| LinkError::TableFull {
            owner: peer.to_string(),
            peers,
            is_changing,
        })?;
        if table.state(place) != State::Expected {
            return Err(LinkError::Elsewhere { peer: *peer, reason: "it has not yet forgotten an earlier end".into() });
        }
        // Who does not share our process ids has nothing but the lock to know us by.
        let worth_a_descriptor = !here.shares_namespace(&peer.identity) || has_descriptors_to_spare(&file);
        let locked = worth_a_descriptor && lock::try_take(&file, Byte::of(ours.identity.nonce)).unwrap_or(false);
        table.mark_connected(place, locked);
        drop(held);
        self.file = locked.then_some(file);
        Ok(place)
    }

    /// What the peer's own lock says, if we can ask for it.
    pub fn fate_of_owner(&self) -> Option<Fate> {
        self.file.as_ref().map(|file| life::fate_by_lock(file, Byte::LIFE))
    }

    pub fn header(&self) -> &Header {
        self.view.header()
    }

    pub fn signals(&self) -> &Signals {
        self.view.signals()
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
    pub fn find_region(&self, key: u64, offset: u64, length: u64, access: RegionAccess) -> Option<Span> {
        // SAFETY: used here and now.
        unsafe { self.view.regions() }.find(key, offset, length, access)
    }
}

/// Why there is no file of this peer.
fn missing(here: &Here, peer: &Address, path: &Path) -> LinkError {
    let may_run = here.shares_namespace(&peer.identity) && !here.sees_ended(&peer.identity);
    match here.shares_boot(&peer.identity) {
        false => LinkError::Elsewhere { peer: *peer, reason: elsewhere(path) },
        true if may_run => LinkError::Vanished { peer: *peer, file: path.to_path_buf() },
        true => LinkError::Gone { peer: *peer },
    }
}

/// What a missing file and another boot id mean together.
pub(crate) fn elsewhere(path: &Path) -> String {
    let directory = path.parent().unwrap_or(path).display();
    format!("it runs on another host, or in a container that does not share {directory}")
}

/// Whether less than half of the descriptors that the process may have are in use: the rest is the application's. The
/// system gives out the lowest that is free.
pub(crate) fn has_descriptors_to_spare(file: &File) -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the struct lives through the call.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } == 0;
    known && (file.as_raw_fd() as libc::rlim_t) < limit.rlim_cur / 2
}

/// Creates the file, empty and with its life lock held, under the next name that is free.
fn create_file(directory: &Path, here: &Here, settings: Settings) -> Result<(LockFile, PathBuf, Address), LinkError> {
    static SERIAL: AtomicU16 = AtomicU16::new(0);
    loop {
        let address = here.address(SERIAL.fetch_add(1, Ordering::Relaxed), settings);
        let path = directory.join(address.identity.file_name());
        let problem = |error| LinkError::system(format!("creating the segment {}", path.display()), error);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
        let file = match LockFile::open(&options, &path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            opened => opened.map_err(problem)?,
        };
        // A process that tidies up may have come between, taken the lock and removed the file.
        // It never removes one whose lock it has not got, so once we have both lock and name, we keep them.
        let kept = lock::try_take(&file, Byte::LIFE).and_then(|taken| Ok(taken && file.metadata()?.nlink() > 0));
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
    let needed = layout.total() as u64;
    if !matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG)) {
        return LinkError::system(format!("allocating {needed} bytes in {}", directory.display()), error);
    }
    let (total, free) = space(directory);
    let is_segment = |file: &fs::DirEntry| file.file_name().to_str().and_then(Identity::from_file_name).is_some();
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

/// Removes what dead endpoints of this user left in `directory`; returns how many. Never touches a living one: see
/// [`life`].
pub(crate) fn reclaim(directory: &Path, here: &Here) -> usize {
    let Ok(files) = fs::read_dir(directory) else { return 0 };
    let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
    names
        .filter(|name| Identity::from_file_name(name).is_some_and(|owner| remove_if_dead(directory, here, &owner)))
        .count()
}

/// Removes the segment of `owner` if it is dead; returns whether this call did.
pub(crate) fn remove_if_dead(directory: &Path, here: &Here, owner: &Identity) -> bool {
    let path = directory.join(owner.file_name());
    let Ok(file) = life::open(&path, Rights::Lock) else { return false };
    // The lock is kept until the file is removed, so that nobody who is just creating it takes it for his.
    let locked = lock::try_take(&file, Byte::LIFE).unwrap_or(false);
    let removed = (locked || here.sees_ended(owner)) && fs::remove_file(&path).is_ok();
    if removed {
        log::line(Level::Info, || format!("removed {}, which {owner} left behind", path.display()));
    }
    removed
}
