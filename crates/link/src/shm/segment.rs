//! The segment: the one file in `/dev/shm` that an endpoint owns. It has two parts. The owner alone writes the *shown*
//! one: a header, the published regions, and the bounce buffers. Peers write the *shared* one: the table of peers and
//! the mailbox. They map the first from a descriptor that is open for reading only, so that none of them can damage
//! what the owner says of itself or has put there for another peer, neither by mistake nor after `mprotect`. (A second
//! file would protect it no better: who may open one of this user's files may open the other. It would be a second name
//! to clear away.) All that peers learn of the layout they check against the file's size.

use super::address::Address;
use super::bounce::{BOUNCE_BUFFER_BYTES, BufferArea};
use super::config::NAMES;
use super::cookie::Cookie;
use super::error::{LinkError, Shortage};
use super::guard_pages::{GUARD_PAGES, GuardPages};
use super::layout::{Header, Layout, MAGIC, Signals, View};
use super::life::{self, Fate, Here, Rights};
use super::lock::{self, Byte};
use super::lock_file::LockFile;
use super::mailbox::{Mailbox, PoolWords, Slot, SlotPoolWords};
use super::memory_map::{Access, Mapping};
use super::peer::{Memory, Table};
use super::reclaiming::{Effort, clear_away};
use super::region::Regions;
use super::send_buffers::SentArea;
use super::settings::Settings;
use crate::files::OPEN_FLAGS;
use crate::secret::{Secret, random};
use std::fs::{self, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::time::Duration;
use tidegate_flow::Config;
use tidegate_message::{Counter, Counters};

/// The segment of this endpoint. Dropping it closes the endpoint for its peers and removes the file.
#[derive(Debug)]
pub(crate) struct OwnSegment {
    view: View,
    /// Holds the lock that says that we live. Nothing is mapped from it (see `lock_file`).
    file: LockFile,
    path: PathBuf,
    address: Address,
    /// The secret that our address holds, for the peers that are given it.
    secret: Secret,
    /// In our own memory, for peers to try to read.
    cookie: Cookie,
    /// For peers to write to before anything else, where the system has given them to us.
    guards: Option<GuardPages>,
}

impl OwnSegment {
    /// Creates the segment. Errors: a refused configuration; too little space, with both numbers; no access to the
    /// directory.
    pub fn create(
        directory: &Path,
        here: &Here,
        flow: &Config,
        (bounce_buffers, send_buffers): (u32, u32),
        wakes: bool,
    ) -> Result<Self, LinkError> {
        let regions = flow.regions().map_err(LinkError::Config)?;
        // A process without peers has a mailbox as well, into which nobody writes.
        let slots = regions.mailbox.max(1);
        let layout = Layout::of(flow.peers.into(), slots.into(), bounce_buffers.into(), send_buffers.into());
        let layout = layout.expect("sizes that flow control accepts can be laid out");
        let (file, path, address, secret) = create_file(directory, here)?;
        let remove = |error| {
            let _ = fs::remove_file(&path);
            error
        };
        let allocated = layout.allocate(&file).or_else(|error| match is_full(&error) {
            // Dead endpoints may have what is lacking.
            true if clear_away(directory, here, Effort::THOROUGH) > 0 => layout.allocate(&file),
            _ => Err(error),
        });
        allocated.map_err(|error| {
            // First of all, so that what is measured as free does not lack what this attempt has taken.
            let _ = fs::remove_file(&path);
            let by = flow.buffers_field().map_or(NAMES.slots, NAMES.buffers);
            no_space(directory, (&layout, by), error)
        })?;
        let cannot_map = |error| remove(LinkError::system(format!("mapping {}", path.display()), error));
        let mapped = life::open_to_map(&path, Rights::Lock).map_err(cannot_map)?;
        let shown = Mapping::new(&mapped, 0, layout.shared_at, Access::Write).map_err(cannot_map)?;
        let shared = Mapping::new(&mapped, layout.shared_at, layout.shared_bytes, Access::Write).map_err(cannot_map)?;
        let cookie = Cookie::new(random()).map_err(cannot_map)?;
        let guards = GuardPages::new();
        let segment = OwnSegment { view: View { shown, shared, layout }, file, path, address, secret, cookie, guards };
        segment.describe(wakes, Settings::of(flow));
        Ok(segment)
    }

    fn describe(&self, wakes: bool, settings: Settings) {
        let header = self.view.header();
        let set = |word: &AtomicU64, value: u64| word.store(value, Ordering::Relaxed);
        set(&header.peers, self.view.layout.peers as u64);
        set(&header.places, self.view.layout.peers as u64);
        set(&header.places_most, self.view.layout.peers as u64);
        set(&header.slots, self.view.layout.slots as u64);
        set(&header.bounce_buffers, self.view.layout.bounce_buffers as u64);
        set(&header.send_buffers, self.view.layout.send_buffers as u64);
        set(&header.wakes, wakes.into());
        set(&header.settings, settings.to_word());
        set(&header.cookie_address, self.cookie.address());
        set(&header.cookie, self.cookie.value());
        let guards = self.guards.as_ref().map_or([0; GUARD_PAGES], GuardPages::addresses);
        header.guards.iter().zip(guards).for_each(|(word, address)| set(word, address));
        header.magic.store(MAGIC, Ordering::Release);
    }

    pub fn address(&self) -> Address {
        self.address
    }

    pub fn secret(&self) -> Secret {
        self.secret
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

    /// Whether this is a copy in a child that was forked from the owner.
    pub fn is_forked(&self) -> bool {
        self.file.is_forked()
    }

    /// Whether somebody has removed the file, so that nobody can connect any more.
    pub fn is_removed(&self) -> bool {
        self.file.metadata().is_ok_and(|facts| facts.nlink() == 0)
    }

    /// What the lock says that a peer holds while it may write to this segment.
    pub fn fate_of_writer(&self, peer: &Address) -> Fate {
        life::fate_by_lock(&self.file, Byte::of(peer))
    }

    /// Says how many places of the table peers may take, and how many it may be in the end.
    pub fn open_places(&self, open: u32, most: u32) {
        let header = self.view.header();
        header.places_most.store(most.into(), Ordering::Relaxed);
        header.places.store(open.into(), Ordering::Release);
    }

    /// Whether more places may be opened.
    pub fn may_open_places(&self) -> bool {
        self.view.header().may_open_places()
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

    /// The words of our pool of posted buffers. They lie there as long as the segment.
    pub fn pool(&self) -> NonNull<PoolWords> {
        self.view.pool()
    }

    /// The words of our pool of slots. They lie there as long as the segment.
    pub fn slot_pool(&self) -> NonNull<SlotPoolWords> {
        self.view.slot_pool()
    }

    /// Whether any peer in our table has ended, so that its place will go to another.
    pub fn sees_some_ended(&self, here: &Here) -> bool {
        // SAFETY: used here and now.
        here.sees_some_ended(&unsafe { self.table() }, &self.file)
    }

    /// Keeps others out of the table of peers. Waits for the lock up to `timeout`.
    pub fn lock_table(&self, timeout: Duration) -> Result<lock::Held<'_>, LinkError> {
        lock::Held::take(&self.file, timeout)
            .map_err(|error| LinkError::system(format!("locking {}", self.path.display()), error))?
            .ok_or_else(|| LinkError::Busy { file: self.path.clone() })
    }

    /// Makes memory of the table be there.
    pub fn allocate_table(&self, memory: Memory) -> io::Result<()> {
        self.view.layout.allocate_table(&self.file, memory)
    }

    /// # Safety
    /// As for [`table`](Self::table).
    pub unsafe fn bounce_buffers(&self) -> BufferArea {
        // SAFETY: handed on to the caller.
        unsafe { self.view.bounce_buffers() }
    }

    /// # Safety
    /// As for [`table`](Self::table).
    pub unsafe fn send_buffers(&self) -> SentArea {
        // SAFETY: handed on to the caller.
        unsafe { self.view.send_buffers() }
    }

    /// Makes these bytes of the send buffers be there.
    pub fn allocate_send_buffers(&self, bytes: Range<usize>) -> io::Result<()> {
        self.view.layout.allocate_send_buffers(&self.file, bytes)
    }

    /// Bytes of the whole segment less those of the mailbox and the bounce buffers: what the peers cost beside their
    /// slots.
    pub fn bookkeeping_bytes(&self) -> u64 {
        self.view.layout.total() as u64 - self.mailbox_bytes() - self.bounce_buffer_bytes() - self.send_buffer_bytes()
    }

    /// Counts what the segment takes.
    pub fn count(&self, counters: &Counters) {
        counters.set(Counter::MailboxBytes, self.mailbox_bytes());
        counters.set(Counter::BounceBufferBytes, self.bounce_buffer_bytes());
        counters.set(Counter::BookkeepingBytes, self.bookkeeping_bytes());
    }

    /// Bytes of the bounce buffers.
    pub fn bounce_buffer_bytes(&self) -> u64 {
        (self.view.layout.bounce_buffers * BOUNCE_BUFFER_BYTES) as u64
    }

    /// Bytes of the send buffers, of which few may be there.
    fn send_buffer_bytes(&self) -> u64 {
        self.view.layout.send_buffer_bytes() as u64
    }

    /// Bytes of the mailbox.
    pub fn mailbox_bytes(&self) -> u64 {
        (self.view.layout.slots * size_of::<Slot>()) as u64
    }
}

impl Drop for OwnSegment {
    fn drop(&mut self) {
        // A child that was forked from the owner has a copy of this value, but the segment is its parent's.
        if self.is_forked() {
            return;
        }
        // Under the lock, so that a peer that connects meanwhile either sees the mark or is in the table before it.
        // Where somebody does not give the lock up, a peer may come into the table after all: it sees the mark when it
        // looks after us.
        let _held = self.lock_table(lock::TIMEOUT_AT_LAST);
        self.view.header().closed.store(1, Ordering::Release);
        let _ = fs::remove_file(&self.path);
    }
}

/// Creates the file, empty and with its life lock held, under the next name that is free.
fn create_file(directory: &Path, here: &Here) -> Result<(LockFile, PathBuf, Address, Secret), LinkError> {
    static SERIAL: AtomicU16 = AtomicU16::new(0);
    loop {
        let secret = Secret::draw();
        let address = here.address(SERIAL.fetch_add(1, Ordering::Relaxed), &secret);
        let path = here.path(directory, &address);
        let problem = |error| LinkError::system(format!("creating the segment {}", path.display()), error);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600).custom_flags(OPEN_FLAGS);
        let file = match LockFile::open(&options, &path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            opened => opened.map_err(problem)?,
        };
        // A process that tidies up may have come between, taken the lock and removed the file.
        // It never removes one whose lock it has not got, so once we have both lock and name, we keep them.
        let kept = lock::try_take(&file, Byte::LIFE).and_then(|taken| Ok(taken && file.metadata()?.nlink() > 0));
        match kept {
            Ok(true) => return Ok((file, path, address, secret)),
            Ok(false) => continue,
            Err(error) => {
                let _ = fs::remove_file(&path);
                return Err(problem(error));
            }
        }
    }
}

/// Whether the system has no room for so large a file.
fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG))
}

/// `by`: the parameter by which the mailbox is made smaller.
fn no_space(directory: &Path, (layout, by): (&Layout, &'static str), error: io::Error) -> LinkError {
    let needed = (layout.total() - layout.send_buffer_bytes()) as u64;
    if !is_full(&error) {
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
        mailbox_by: by,
        bounce_buffers: (layout.bounce_buffers * BOUNCE_BUFFER_BYTES) as u64,
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
