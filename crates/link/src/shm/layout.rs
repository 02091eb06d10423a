//! What lies where in a segment, and a view of it that was checked.

use super::bounce::{BOUNCE_BUFFER_BYTES, BufferArea};
use super::config::{BOUNCE_BUFFERS_MOST, SEND_BUFFERS_MOST};
use super::guard_pages::GUARD_PAGES;
use super::index::Index;
use super::mailbox::{Mailbox, Pointers, PoolWords, Slot, SlotPoolWords};
use super::memory_map::{self, Mapping, PAGE_MOST, Shared};
use super::peer::{Entry, Memory, Parts, Places, Table};
use super::region::{Place, REGIONS, Regions};
use super::send_buffers::{SEND_BUFFER_BYTES, SentArea};
use super::sync::Alone;
use super::wake::WakeName;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// First word of a segment; the last byte is the version of everything that peers read in it.
pub(super) const MAGIC: u64 = u64::from_be_bytes(*b"TIDEGAT\x13");
/// A bound for checks: more peers than flow control accepts.
pub(super) const PEERS_LIMIT: u64 = 1 << 20;
pub(super) const PAGE: usize = 4096;

/// The beginning of the shown part. Written before any peer can know the segment's name, except for `window` and the
/// fields behind it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Header {
    pub(super) magic: AtomicU64,
    pub(super) peers: AtomicU64,
    pub(super) slots: AtomicU64,
    pub(super) bounce_buffers: AtomicU64,
    pub(super) send_buffers: AtomicU64,
    /// Whether the owner may want to be woken.
    pub wakes: AtomicU64,
    /// The settings that both ends must have alike (`Settings::to_word`).
    pub(super) settings: AtomicU64,
    /// Where the owner's memory holds its cookie, and what that is: who can read it there can read that memory, and no
    /// other.
    pub cookie_address: AtomicU64,
    pub cookie: AtomicU64,
    /// Where its guard pages are; 0: it has none.
    pub guards: [AtomicU64; GUARD_PAGES],
    /// What the owner sets aside for unmatched messages of each sender (`Link::tell_window`); 0: it does not say.
    pub window: AtomicU64,
    /// The same for newcomers, and the first place of one, plus one (`Link::tell_newcomers`); 0: no difference.
    pub window_of_newcomers: AtomicU64,
    pub newcomers: AtomicU64,
    /// How many places of the table of peers may be taken, the first, and how many may be in the end
    /// (`Link::open_places`).
    pub places: AtomicU64,
    pub places_most: AtomicU64,
    /// Name of the socket by which the owner is woken, in two words; 0: there is none.
    pub(super) wake_name: [AtomicU64; 2],
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
    places: Places,
    /// Posted buffers that all peers share; used where receivers have such a pool.
    pool: PoolWords,
    /// The pool of slots, where receivers have one.
    slot_pool: SlotPoolWords,
}

// SAFETY: atomics only.
unsafe impl Shared for Header {}
// SAFETY: atomics only.
unsafe impl Shared for Signals {}
// SAFETY: atomics only, outside the loom model, where nothing is mapped.
unsafe impl Shared for Slot {}

impl Header {
    /// Whether the owner may open more places of its table of peers.
    pub fn may_open_places(&self) -> bool {
        self.places.load(Ordering::Acquire) < self.places_most.load(Ordering::Relaxed)
    }

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
pub(super) struct Layout {
    pub(super) peers: usize,
    pub(super) slots: usize,
    pub(super) bounce_buffers: usize,
    pub(super) send_buffers: usize,
    /// Where the owner shows how much it has made of each send buffer, and where these begin.
    pub(super) made_at: usize,
    pub(super) send_buffers_at: usize,
    /// Where the shared part begins; what follows counts from there.
    pub(super) shared_at: usize,
    pub(super) index_at: usize,
    pub(super) slots_at: usize,
    pub(super) shared_bytes: usize,
}

pub(super) const REGIONS_AT: usize = PAGE;
pub(super) const BOUNCE_BUFFERS_AT: usize = REGIONS_AT + REGIONS * size_of::<Place>();
/// In the shared part.
pub(super) const PEERS_AT: usize = size_of::<Signals>();

impl Layout {
    /// `None` for sizes that cannot be.
    pub(super) fn of(peers: u64, slots: u64, bounce_buffers: u64, send_buffers: u64) -> Option<Layout> {
        let are_too_many = bounce_buffers > BOUNCE_BUFFERS_MOST.into() || send_buffers > SEND_BUFFERS_MOST.into();
        if slots == 0 || peers > PEERS_LIMIT || are_too_many {
            return None;
        }
        let [peers, slots] = [peers, slots].map(usize::try_from);
        let (peers, slots) = (peers.ok()?, slots.ok()?);
        let (bounce_buffers, send_buffers) = (bounce_buffers as usize, send_buffers as usize);
        let made_at = BOUNCE_BUFFERS_AT + bounce_buffers * BOUNCE_BUFFER_BYTES;
        let send_buffers_at = made_at + (send_buffers * size_of::<AtomicU32>()).next_multiple_of(PAGE);
        let shared_at = (send_buffers_at + send_buffers * SEND_BUFFER_BYTES).next_multiple_of(PAGE_MOST);
        // A bucket of the index is to lie in one page.
        let index_at = (PEERS_AT + peers * size_of::<Entry>()).next_multiple_of(index_bytes(peers).min(PAGE));
        let slots_at = (index_at + index_bytes(peers)).next_multiple_of(PAGE);
        let shared_bytes =
            slots.checked_mul(size_of::<Slot>())?.checked_add(slots_at)?.checked_next_multiple_of(PAGE)?;
        shared_at.checked_add(shared_bytes)?;
        Some(Layout {
            peers,
            slots,
            bounce_buffers,
            send_buffers,
            made_at,
            send_buffers_at,
            shared_at,
            index_at,
            slots_at,
            shared_bytes,
        })
    }

    /// Bytes of the send buffers, which few may ever have.
    pub(super) fn send_buffer_bytes(&self) -> usize {
        self.shared_at - self.made_at
    }

    /// Bytes of the file.
    pub(super) fn total(&self) -> usize {
        self.shared_at + self.shared_bytes
    }

    /// Makes all of the file be there but for the table of peers and the send buffers, which are allocated one by one.
    pub(super) fn allocate(&self, file: &File) -> io::Result<()> {
        memory_map::allocate(file, 0..self.send_buffers_at)?;
        memory_map::allocate(file, self.shared_at..self.shared_at + PEERS_AT)?;
        memory_map::allocate(file, self.shared_at + self.slots_at..self.total())
    }

    /// Makes these bytes of the send buffers be there.
    pub(super) fn allocate_send_buffers(&self, file: &File, bytes: Range<usize>) -> io::Result<()> {
        memory_map::allocate(file, self.send_buffers_at + bytes.start..self.send_buffers_at + bytes.end)
    }

    /// Makes a part of the table of peers be there.
    pub(super) fn allocate_table(&self, file: &File, memory: Memory) -> io::Result<()> {
        let within = |start: usize, bytes: Range<usize>| start + bytes.start..start + bytes.end;
        let bytes = match memory {
            Memory::Entries(bytes) => within(PEERS_AT, bytes),
            Memory::Index(bytes) => within(self.index_at, bytes),
        };
        memory_map::allocate(file, within(self.shared_at, bytes))
    }
}

/// Bytes of so many entries of the table of peers.
pub(super) const fn entry_bytes(places: usize) -> usize {
    places * size_of::<Entry>()
}

fn index_bytes(peers: usize) -> usize {
    Index::words_for(peers) * size_of::<AtomicU32>()
}

/// Receive memory of a segment besides its mailbox, in bytes, when every peer has its place, of `open` places.
pub(crate) fn bookkeeping_bytes(peers: u32, open: u32) -> usize {
    let table = entry_bytes(open as usize) + index_bytes(peers as usize);
    BOUNCE_BUFFERS_AT + PEERS_AT + table + 2 * PAGE + PAGE_MOST
}

/// A mapped segment, ours or a peer's.
#[derive(Debug)]
pub(super) struct View {
    /// A peer's segment has this part mapped for reading only: its owner alone may store through the values that are
    /// made of it here.
    pub(super) shown: Mapping,
    pub(super) shared: Mapping,
    pub(super) layout: Layout,
}

impl View {
    pub(super) fn header(&self) -> &Header {
        // SAFETY: the header lies at the start of a live mapping, and is all atomics.
        unsafe { self.shown.value::<Header>(0).as_ref() }
    }

    pub(super) fn signals(&self) -> &Signals {
        // SAFETY: as for the header.
        unsafe { self.shared.value::<Signals>(0).as_ref() }
    }

    /// # Safety
    /// The value and its copies must not be used after the view is dropped.
    pub(super) unsafe fn table(&self) -> Table {
        let words = self.shared.slice::<AtomicU32>(self.layout.index_at, Index::words_for(self.layout.peers));
        // SAFETY: all is valid as long as the mapping.
        unsafe {
            Table::new(Parts {
                entries: self.shared.slice::<Entry>(PEERS_AT, self.layout.peers),
                places: NonNull::from(&self.signals().places),
                open: NonNull::from(&self.header().places),
                index: Index::new(words),
            })
        }
    }

    /// # Safety
    /// As for [`table`](Self::table).
    pub(super) unsafe fn regions(&self) -> Regions {
        // SAFETY: valid as long as the mapping.
        unsafe { Regions::new(self.shown.slice::<Place>(REGIONS_AT, REGIONS)) }
    }

    /// # Safety
    /// As for [`table`](Self::table).
    pub(super) unsafe fn mailbox(&self) -> Mailbox {
        let slots = self.shared.slice::<Slot>(self.layout.slots_at, self.layout.slots);
        // SAFETY: valid as long as the mapping.
        unsafe { Mailbox::new(slots, NonNull::from(&self.signals().pointers)) }
    }

    /// The words of a pool of posted buffers. They lie there as long as the view.
    pub(super) fn pool(&self) -> NonNull<PoolWords> {
        NonNull::from(&self.signals().pool)
    }

    /// The words of a pool of slots. They lie there as long as the view.
    pub(super) fn slot_pool(&self) -> NonNull<SlotPoolWords> {
        NonNull::from(&self.signals().slot_pool)
    }

    /// # Safety
    /// As for [`table`](Self::table).
    pub(super) unsafe fn bounce_buffers(&self) -> BufferArea {
        let words = self.layout.bounce_buffers * BOUNCE_BUFFER_BYTES / 8;
        // SAFETY: valid as long as the mapping.
        unsafe { BufferArea::new(self.shown.slice::<AtomicU64>(BOUNCE_BUFFERS_AT, words), BOUNCE_BUFFER_BYTES) }
    }

    /// # Safety
    /// As for [`table`](Self::table).
    pub(super) unsafe fn send_buffers(&self) -> SentArea {
        let Layout { send_buffers, made_at, send_buffers_at, .. } = self.layout;
        let words = self.shown.slice::<AtomicU64>(send_buffers_at, send_buffers * SEND_BUFFER_BYTES / 8);
        // SAFETY: valid as long as the mapping.
        unsafe {
            SentArea::new(
                BufferArea::new(words, SEND_BUFFER_BYTES),
                self.shown.slice::<AtomicU32>(made_at, send_buffers),
            )
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_bound_on_book_keeping_holds_for_every_layout() {
        for peers in (0..2000).chain([4095, 4096, 4097, 65_536, 65_537, PEERS_LIMIT as u32]) {
            let slots = u64::from(peers).max(1) * 8;
            let layout = Layout::of(peers.into(), slots, 0, 0).unwrap();
            let beside = layout.total() - slots as usize * size_of::<Slot>();
            let bound = bookkeeping_bytes(peers, peers);
            assert!(beside <= bound, "{peers}: {beside} > {bound}");
            assert!(layout.index_at >= PEERS_AT + peers as usize * size_of::<Entry>(), "{peers}");
            assert!(layout.slots_at >= layout.index_at + index_bytes(peers as usize), "{peers}");
        }
    }

    #[test]
    fn the_shared_part_can_be_mapped_on_its_own_by_every_kernel() {
        for (bounce_buffers, send_buffers) in [(0, 0), (1, 0), (0, 1), (3, 5), (16, 127)] {
            let layout = Layout::of(7, 56, bounce_buffers, send_buffers).unwrap();
            assert!(layout.shared_at.is_multiple_of(PAGE_MOST), "{bounce_buffers}, {send_buffers}");
        }
    }
}
