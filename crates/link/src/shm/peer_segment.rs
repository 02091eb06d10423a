//! The segment of a peer, as those who write to it map it.

use super::address::Address;
use super::error::{LinkError, is_shortage};
use super::layout::{BOUNCE_BUFFERS_AT, Header, Layout, MAGIC, PAGE, Signals, View};
use super::life::{self, Fate, Here, Rights};
use super::lock::{self, Byte};
use super::lock_file::{LockFile, has_descriptors_to_spare};
use super::mailbox::{Mailbox, PoolWords, SlotPoolWords};
use super::memory_map::{Access, Mapping};
use super::peer::{State, Table};
use super::region::Ticket;
use super::send_buffers::SentArea;
use super::settings::Settings;
use crate::memory::IoBuffer;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegate_flow::PeerId;
use tidegate_message::{Access as RegionAccess, Span};

/// A peer's segment.
#[derive(Debug)]
pub(crate) struct PeerSegment {
    view: View,
    /// Open as long as we may write: it holds our lock, and shows whether the peer holds its own, whatever becomes of
    /// the file's name. `None`: we have few descriptors, and the peer tells by our process id and our own file whether
    /// we live.
    file: Option<LockFile>,
}

impl PeerSegment {
    /// Opens the segment of `peer`, checks its layout, and whether it counts slots as one with these settings does.
    pub fn open(directory: &Path, here: &Here, peer: &Address, ours: &Settings) -> Result<Self, LinkError> {
        let path = here.path(directory, peer);
        let unopened = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => missing(here, peer, &path),
            io::ErrorKind::PermissionDenied => forbidden(peer, &path, error),
            _ => LinkError::system(format!("opening the segment {} of {peer}", path.display()), error),
        };
        // Three times: to hold locks, which nothing is mapped from (see `lock_file`), and for mappings of two kinds.
        let file = life::open(&path, Rights::Lock).map_err(unopened)?;
        let shared_file = life::open_to_map(&path, Rights::Lock).map_err(unopened)?;
        let shown_file = life::open_to_map(&path, Rights::Read).map_err(unopened)?;
        let broken = |what: String| LinkError::Elsewhere { peer: *peer, reason: format!("its segment {what}") };
        let unmapped = |error: io::Error| match is_shortage(&error) {
            true => LinkError::system(format!("mapping the segment {} of {peer}", path.display()), error),
            false => broken(format!("cannot be mapped: {error}")),
        };
        let size = file.metadata().map_err(|error| broken(format!("cannot be read: {error}")))?.len() as usize;
        if size < BOUNCE_BUFFERS_AT {
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
        ours.check(&Settings::from_word(word(&header.settings)), || peer.to_string())?;
        let [bounce_buffers, send_buffers] = [&header.bounce_buffers, &header.send_buffers].map(word);
        let layout = Layout::of(word(&header.peers), word(&header.slots), bounce_buffers, send_buffers)
            .filter(|layout| layout.total() == size);
        let layout = layout.ok_or_else(|| broken("contradicts its size".into()))?;
        let shown = Mapping::new(&shown_file, 0, layout.shared_at, Access::Read).map_err(unmapped)?;
        let shared =
            Mapping::new(&shared_file, layout.shared_at, layout.shared_bytes, Access::Write).map_err(unmapped)?;
        Ok(PeerSegment { view: View { shown, shared, layout }, file: Some(file) })
    }

    /// Takes a place for `ours` in the peer's table, and the lock that says that we live. Waits for the lock of the
    /// table for so long.
    pub fn enter(
        &mut self,
        directory: &Path,
        here: &Here,
        peer: &Address,
        ours: &Address,
        timeout: Duration,
    ) -> Result<PeerId, LinkError> {
        let file = self.file.take().ok_or(LinkError::Gone { peer: *peer })?;
        let held = lock::Held::take(&file, timeout)
            .map_err(|error| LinkError::system(format!("locking the segment of {peer}"), error))?
            .ok_or_else(|| LinkError::Busy { file: here.path(directory, peer) })?;
        if self.has_closed() {
            return Err(LinkError::Gone { peer: *peer });
        }
        // SAFETY: used in this function only.
        let table = unsafe { self.table() };
        let allocate = |memory| self.view.layout.allocate_table(&file, memory);
        let place = table.find_or_insert(ours, allocate);
        let place =
            place.map_err(|error| LinkError::system(format!("taking a place in the segment of {peer}"), error))?;
        let Some(place) = place else {
            // Testing whether any of many peers has ended takes a while, during which others may use the table. The
            // owner may give away the place of the one that had ended: then none has, and the table is full no more.
            drop(held);
            let may_grow = self.header().may_open_places();
            let is_changing = may_grow || here.sees_some_ended(&table, &file) || table.has_room();
            return Err(LinkError::TableFull { owner: peer.to_string(), peers: table.capacity() as u32, is_changing });
        };
        match table.state(place) {
            State::Expected => {}
            State::Left | State::Failed => return Err(LinkError::NotNoticed { peer: *peer }),
            State::Free | State::Connected | State::Severed => {
                let reason = "its table says that this endpoint is connected already".into();
                return Err(LinkError::Elsewhere { peer: *peer, reason });
            }
        }
        // A peer of another process namespace can tell by the lock alone whether we live.
        let worth_a_descriptor = !here.shares_namespace(peer) || has_descriptors_to_spare(&file);
        let locked = worth_a_descriptor && lock::try_take(&file, Byte::of(ours)).unwrap_or(false);
        table.mark_connected(place, locked);
        drop(held);
        self.file = locked.then_some(file);
        Ok(place)
    }

    /// What the peer's own lock says, if we have a descriptor to test it with.
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

    /// The words of the peer's pool of posted buffers. They lie there as long as the segment.
    pub fn pool(&self) -> NonNull<PoolWords> {
        self.view.pool()
    }

    /// The words of the peer's pool of slots. They lie there as long as the segment.
    pub fn slot_pool(&self) -> NonNull<SlotPoolWords> {
        self.view.slot_pool()
    }

    /// Copies the first `length` bytes of the peer's bounce buffer. `false` if there is no such bounce buffer.
    pub fn drain_bounce_buffer(&self, bounce_buffer: usize, into: &mut IoBuffer, offset: usize, length: usize) -> bool {
        // SAFETY: used here and now.
        unsafe { self.view.bounce_buffers() }.drain(bounce_buffer, into, offset, length)
    }

    /// The peer's send buffers.
    ///
    /// # Safety
    /// As for [`table`](Self::table).
    #[inline]
    pub unsafe fn send_buffers(&self) -> SentArea {
        // SAFETY: handed on to the caller.
        unsafe { self.view.send_buffers() }
    }

    /// Looks a published region up.
    pub fn find_region(
        &self,
        key: u64,
        offset: u64,
        length: u64,
        access: RegionAccess,
    ) -> Option<(Ticket, Span, RegionAccess)> {
        // SAFETY: used here and now.
        unsafe { self.view.regions() }.find(key, offset, length, access)
    }

    /// Whether the region with this ticket is still published.
    pub fn holds_region(&self, ticket: u64) -> bool {
        // SAFETY: used here and now.
        unsafe { self.view.regions() }.holds(ticket)
    }
}

/// Why there is no file of this peer.
fn missing(here: &Here, peer: &Address, path: &Path) -> LinkError {
    let may_run = here.shares_namespace(peer) && !here.sees_ended(peer);
    match here.shares_host(peer) {
        false => LinkError::Elsewhere { peer: *peer, reason: elsewhere(path) },
        true if may_run => LinkError::Vanished { peer: *peer, file: path.to_path_buf() },
        true => LinkError::Gone { peer: *peer },
    }
}

/// Why the system does not let this process open the file of this peer.
fn forbidden(peer: &Address, path: &Path, error: io::Error) -> LinkError {
    // SAFETY: the call has no arguments and cannot fail.
    let ours = unsafe { libc::geteuid() };
    match path.metadata().map(|metadata| metadata.uid()) {
        Ok(owner) if owner != ours => LinkError::OtherUser { peer: *peer, file: path.to_path_buf(), owner, ours },
        _ => LinkError::system(format!("opening the segment {} of {peer}", path.display()), error),
    }
}

/// The meaning of a missing file together with another host key.
pub(crate) fn elsewhere(path: &Path) -> String {
    let directory = path.parent().unwrap_or(path).display();
    format!("it runs on another host, or in a container that does not share {directory}")
}
