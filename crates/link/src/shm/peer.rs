//! The table of peers: one entry per endpoint that we talk to or that talks to us. It lies in the segment of its
//! owner. The owner and the peers insert, under a lock on the segment's file, and find each other's entries by
//! identity: so a pair has one place on either side, whoever comes first.
//!
//! Places are given out in order, those that became free first, so that few peers are close together. The memory of a
//! place is allocated when it is first given out.
//!
//! A process can die between any two stores of an insertion, and its lock goes to the next. So the counts and the list
//! of free places follow the entry, and whoever comes next corrects them: a place that they call free and whose entry
//! is in use has been taken. What a hostile process writes into them costs time, but bounded time: free places that
//! are lost that way are found again by a look at all of them, when there is no other.

use super::accesses::Word;
use super::address::Address;
use super::index::{Found, Hash, Index, look, store_follows};
use super::mailbox::{Claim, Claims, Marks, change_claim};
use super::memory_map::Shared;
use super::sync;
use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegate_flow::PeerId;
use tidegate_message::PLACES_AHEAD;

const ADDRESS_WORDS: usize = Address::BYTES / 8;

/// One place in the table: a line that hardly ever changes, and one that the peer changes with every packet.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Entry {
    state: AtomicU64,
    address: [AtomicU64; ADDRESS_WORDS],
    /// Whether the peer holds the lock that says that it lives (`Byte::of`); it may be short of descriptors.
    is_locked: AtomicU64,
    /// How many buffers the owner has posted for the peer beside those at the start. The owner alone writes this.
    posted: sync::AtomicU64,
    changing: Changing,
}

/// The second line of an entry.
#[derive(Debug)]
#[repr(C, align(64))]
struct Changing {
    /// By this the peer shows that it is in the middle of writing a packet; see the mailbox.
    writing: sync::AtomicU64,
    /// In the list of free places, the next one plus one; 0: there is none.
    next_free: AtomicU64,
    /// Whether the peer claims a buffer or slots of the owner's pool, or some are kept for it; see the mailbox.
    claim: sync::AtomicU64,
    /// In the list of those that wait for slots of the owner's pool, the next place plus one; see the mailbox.
    next_marked: sync::AtomicU64,
    /// Odd while the peer copies to or from the owner's memory; see `withdrawing`.
    accessing: AtomicU64,
    /// How many messages the peer has copied out of the owner's send buffers.
    copied: AtomicU64,
}

/// What the table says of its places as a whole.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct Places {
    /// All from this one on have never been given out.
    used: AtomicU64,
    /// The first in the list of those that became free, plus one; 0: there is none.
    free: AtomicU64,
}

// SAFETY: atomics only.
unsafe impl Shared for Entry {}

/// What a table consists of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    pub entries: NonNull<[Entry]>,
    pub places: NonNull<Places>,
    /// How many places may be taken, which the owner alone says.
    pub open: NonNull<AtomicU64>,
    pub index: Index,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nobody's. Also stands for values that no honest process writes.
    Free = 0,
    /// Of somebody whom the owner wants to talk to, and who has not connected.
    Expected = 1,
    /// Of somebody who has connected to the owner.
    Connected = 2,
    /// Of somebody who had connected, has closed its endpoint and will write no more.
    Left = 3,
    /// Of somebody who had connected, cannot go on, and will write no more.
    Failed = 4,
    /// Of somebody who has connected, and of whom the owner reads nothing any more. It may still write.
    Severed = 5,
}

/// A table, ours or a peer's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table(Parts);

/// Memory that has to be there before it is touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// Bytes of the entries.
    Entries(Range<usize>),
    /// Bytes of the index.
    Index(Range<usize>),
}

impl Table {
    /// # Safety
    /// The parts must stay valid as long as the value or a copy of it is used.
    pub unsafe fn new(parts: Parts) -> Table {
        Table(parts)
    }

    fn entries(&self) -> &[Entry] {
        // SAFETY: valid by the promise made to `new`; all fields are atomics.
        unsafe { self.0.entries.as_ref() }
    }

    fn places(&self) -> &Places {
        // SAFETY: as for the entries.
        unsafe { self.0.places.as_ref() }
    }

    /// How many peers fit, of those for whom there is room in the segment: as many as the owner lets in.
    pub fn capacity(&self) -> usize {
        // SAFETY: as for the entries.
        let open = unsafe { self.0.open.as_ref() }.load(Ordering::Acquire);
        self.entries().len().min(usize::try_from(open).unwrap_or(usize::MAX))
    }

    /// All places from this one on have never been given out.
    pub fn used(&self) -> usize {
        (self.places().used.load(Ordering::Acquire) as usize).min(self.capacity())
    }

    /// What the entry is; `Free` for places outside the table too.
    pub fn state(&self, peer: PeerId) -> State {
        look();
        match self.entries().get(peer.0 as usize).map(|entry| entry.state.load(Ordering::Acquire)) {
            Some(1) => State::Expected,
            Some(2) => State::Connected,
            Some(3) => State::Left,
            Some(4) => State::Failed,
            Some(5) => State::Severed,
            _ => State::Free,
        }
    }

    /// Whose entry it is; `None`: nobody's.
    pub fn address(&self, peer: PeerId) -> Option<Address> {
        if peer.0 as usize >= self.used() || self.state(peer) == State::Free {
            return None;
        }
        let mut bytes = [0; Address::BYTES];
        let words = &self.entries()[peer.0 as usize].address;
        for (word, bytes) in words.iter().zip(bytes.as_chunks_mut::<8>().0) {
            *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        Address::from_bytes(&bytes)
    }

    /// All places in use.
    pub fn taken(&self) -> impl Iterator<Item = PeerId> + '_ {
        (0..self.used() as u32).map(PeerId).filter(|peer| self.state(*peer) != State::Free)
    }

    /// Whether anybody has ended: has said so, or is dead. What peers have said is looked at first: to ask the system
    /// takes a thousand times as long.
    pub fn has_some_ended(&self, is_dead: impl Fn(PeerId, Address) -> bool) -> bool {
        let has_said_so = |peer| matches!(self.state(peer), State::Left | State::Failed);
        self.taken().any(has_said_so)
            || self.taken().any(|peer| self.address(peer).is_some_and(|address| is_dead(peer, address)))
    }

    /// Whether no place is free, as far as the table says.
    pub fn is_full(&self) -> bool {
        self.used() == self.capacity() && self.places().free.load(Ordering::Relaxed) == 0
    }

    /// Whether few places are free, where `known` peers are known. In a damaged table more may be taken.
    pub fn is_low(&self, known: usize) -> bool {
        self.capacity() < known + PLACES_AHEAD as usize || self.is_full()
    }

    /// Whether a place is free: a look at all of them, since one that is being given away is free before the list of
    /// free ones has it.
    pub fn has_room(&self) -> bool {
        self.taken().count() < self.capacity()
    }

    /// The place of `address`, if it has one. The caller holds the insertion lock. `allocate` makes memory be there;
    /// its errors are returned.
    pub fn find(&self, address: &Address, allocate: impl Fn(Memory) -> io::Result<()>) -> io::Result<Option<PeerId>> {
        let hash = hash(address);
        allocate(Memory::Index(self.0.index.bytes(hash)))?;
        let is_its = |peer| self.address(peer).as_ref() == Some(address);
        Ok(match self.0.index.find(hash, is_its) {
            Found::At(peer) => Some(peer),
            Found::Absent => None,
            Found::Unknown => {
                self.repair_index(hash);
                self.taken().find(|peer| is_its(*peer))
            }
        })
    }

    /// The place of `address`, a new one if it has none yet; `None`: the table is full. Otherwise as
    /// [`find`](Self::find).
    pub fn find_or_insert(
        &self,
        address: &Address,
        allocate: impl Fn(Memory) -> io::Result<()>,
    ) -> io::Result<Option<PeerId>> {
        if let Some(peer) = self.find(address, &allocate)? {
            return Ok(Some(peer));
        }
        let Some(free) = self.free_place(allocate)? else { return Ok(None) };
        let entry = &self.entries()[free.0 as usize];
        for (word, bytes) in entry.address.iter().zip(address.to_bytes().as_chunks::<8>().0) {
            store_follows();
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
        self.0.index.insert(hash(address), free, |peer| self.hash_at(peer));
        store_follows();
        entry.state.store(State::Expected as u64, Ordering::Release);
        self.note_taken(free);
        Ok(Some(free))
    }

    /// A place that nobody has.
    fn free_place(&self, allocate: impl Fn(Memory) -> io::Result<()>) -> io::Result<Option<PeerId>> {
        let Places { used, free } = self.places();
        let is_free = |place: &PeerId| self.state(*place) == State::Free;
        // One that became free. Each is in the list once, unless somebody has damaged it.
        for _ in 0..self.capacity() {
            let Some(place) = self.first_free() else { break };
            if is_free(&place) {
                return Ok(Some(place));
            }
            self.note_taken(place);
        }
        store_follows();
        free.store(0, Ordering::Relaxed);
        // One that has never been given out.
        for place in self.used()..self.capacity() {
            let bytes = place * size_of::<Entry>();
            allocate(Memory::Entries(bytes..bytes + size_of::<Entry>()))?;
            let place = PeerId(place as u32);
            if is_free(&place) {
                return Ok(Some(place));
            }
            store_follows();
            used.store(u64::from(place.0) + 1, Ordering::Release);
        }
        Ok((0..self.capacity() as u32).map(PeerId).find(is_free))
    }

    /// The first in the list of free places, if that is a place at all.
    fn first_free(&self) -> Option<PeerId> {
        let place = self.places().free.load(Ordering::Relaxed).checked_sub(1)?;
        (place < self.used() as u64).then_some(PeerId(place as u32))
    }

    /// A free place is taken.
    fn note_taken(&self, place: PeerId) {
        let Places { used, free } = self.places();
        if self.first_free() == Some(place) {
            let next = self.entries()[place.0 as usize].changing.next_free.load(Ordering::Relaxed);
            store_follows();
            free.store(next, Ordering::Release);
        }
        store_follows();
        used.fetch_max(u64::from(place.0) + 1, Ordering::Release);
    }

    fn repair_index(&self, hash: Hash) {
        self.0.index.repair(hash, self.taken().filter_map(|peer| Some((peer, self.hash_at(peer)?))));
    }

    /// The hash of the address at a place, if there is one.
    fn hash_at(&self, peer: PeerId) -> Option<Hash> {
        self.address(peer).as_ref().map(hash)
    }

    /// The peer of this entry says that it is about to write, and whether it holds its lock.
    pub fn mark_connected(&self, peer: PeerId, is_locked: bool) {
        let entry = &self.entries()[peer.0 as usize];
        entry.is_locked.store(is_locked.into(), Ordering::Relaxed);
        // Whoever had the place before may have died amid a copy.
        entry.changing.accessing.store(0, Ordering::Relaxed);
        entry.changing.copied.store(0, Ordering::Relaxed);
        entry.state.store(State::Connected as u64, Ordering::Release);
    }

    /// The peer of this entry says that it will write no more: it closes, or it cannot go on.
    pub fn mark_ended(&self, peer: PeerId, orderly: bool) {
        let state = if orderly { State::Left } else { State::Failed };
        self.entries()[peer.0 as usize].state.store(state as u64, Ordering::Release);
    }

    /// The owner of the table says that it reads nothing more of a connected peer.
    pub fn sever(&self, peer: PeerId) {
        let (from, to) = (State::Connected as u64, State::Severed as u64);
        // If it has just ended by itself, that stands.
        let _ = self.entries()[peer.0 as usize].state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Whether the peer may write, and holds its lock as long as it lives.
    pub fn is_locked(&self, peer: PeerId) -> bool {
        self.may_write(peer) && self.entries()[peer.0 as usize].is_locked.load(Ordering::Relaxed) != 0
    }

    /// Whether the peer has connected and not said that it will write no more.
    pub fn may_write(&self, peer: PeerId) -> bool {
        matches!(self.state(peer), State::Connected | State::Severed)
    }

    /// The owner of the table gives the place to whoever comes next. It holds the insertion lock.
    pub fn free(&self, peer: PeerId) {
        let entry = &self.entries()[peer.0 as usize];
        let hash = self.hash_at(peer);
        entry.posted.store(0, sync::Ordering::Relaxed);
        entry.changing.claim.store(Claim::None as u64, sync::Ordering::Relaxed);
        // A writer that was killed amid a write has left an odd number. No hole of it is left, and whoever has the
        // place next may never write: the number must not say for ever that it does.
        let writing = entry.changing.writing.load(sync::Ordering::Relaxed);
        entry.changing.writing.store(writing.wrapping_add(writing & 1), sync::Ordering::Relaxed);
        entry.state.store(State::Free as u64, Ordering::Release);
        if let Some(hash) = hash
            && !self.0.index.remove(hash, peer, |peer| self.hash_at(peer))
        {
            self.repair_index(hash);
        }
        let Places { free, .. } = self.places();
        entry.changing.next_free.store(free.load(Ordering::Relaxed), Ordering::Relaxed);
        free.store(u64::from(peer.0) + 1, Ordering::Relaxed);
    }

    /// The peer's `writing` word.
    pub fn writing(&self, peer: PeerId) -> NonNull<sync::AtomicU64> {
        NonNull::from(&self.entries()[peer.0 as usize].changing.writing)
    }

    /// How many buffers were posted for the peer beside those at the start.
    pub fn posted(&self, peer: PeerId) -> NonNull<sync::AtomicU64> {
        NonNull::from(&self.entries()[peer.0 as usize].posted)
    }

    /// The owner of the table has posted so many by now.
    pub fn set_posted(&self, peer: PeerId, buffers: u64) {
        if let Some(entry) = self.entries().get(peer.0 as usize) {
            // Whoever finds the buffers there finds their slots retrieved.
            entry.posted.store(buffers, sync::Ordering::Release);
        }
    }

    /// The peer's claim to a buffer.
    pub fn claim(&self, peer: PeerId) -> NonNull<sync::AtomicU64> {
        NonNull::from(&self.entries()[peer.0 as usize].changing.claim)
    }

    /// The words by which the peer waits for slots of the owner's pool: its mark, and its link in the list.
    pub fn mark_words(&self, peer: PeerId) -> (NonNull<sync::AtomicU64>, NonNull<sync::AtomicU64>) {
        let changing = &self.entries()[peer.0 as usize].changing;
        (NonNull::from(&changing.claim), NonNull::from(&changing.next_marked))
    }

    /// The word by which the peer shows that it copies to or from the owner's memory.
    pub fn accessing(&self, peer: PeerId) -> &AtomicU64 {
        &self.entries()[peer.0 as usize].changing.accessing
    }

    /// How many messages the peer has copied out of the owner's send buffers, by its own count.
    #[inline]
    pub fn copied(&self, peer: PeerId) -> u64 {
        self.entries()[peer.0 as usize].changing.copied.load(Ordering::Acquire)
    }

    /// The peer of this entry says that.
    #[inline]
    pub fn set_copied(&self, peer: PeerId, count: u64) {
        self.entries()[peer.0 as usize].changing.copied.store(count, Ordering::Release);
    }

    /// What that word says, of a peer that may copy.
    pub(super) fn access_word(&self, peer: PeerId) -> Option<Word> {
        self.may_write(peer).then(|| Word(self.accessing(peer).load(Ordering::Acquire)))
    }

    /// Whether a peer is amid a write, or may have died amid one.
    pub fn is_any_writing(&self) -> bool {
        self.taken().any(|peer| self.writing_word(peer).is_some_and(|word| word % 2 == 1))
    }

    /// What the `writing` word of a place in use says.
    pub fn writing_word(&self, peer: PeerId) -> Option<u64> {
        let entry = self.entries().get(peer.0 as usize).filter(|_| self.state(peer) != State::Free)?;
        Some(entry.changing.writing.load(sync::Ordering::Acquire))
    }
}

impl Claims for Table {
    fn places(&self) -> u32 {
        self.used() as u32
    }

    fn read(&self, peer: PeerId) -> u64 {
        let entry = self.entries().get(peer.0 as usize);
        entry.map_or(Claim::None as u64, |entry| entry.changing.claim.load(sync::Ordering::Acquire))
    }

    fn change(&self, peer: PeerId, from: Claim, to: Claim) -> bool {
        self.entries().get(peer.0 as usize).is_some_and(|entry| change_claim(&entry.changing.claim, from, to))
    }
}

impl Marks for Table {
    fn places(&self) -> u32 {
        self.used() as u32
    }

    fn mark(&self, peer: PeerId) -> Option<&sync::AtomicU64> {
        self.entries().get(peer.0 as usize).map(|entry| &entry.changing.claim)
    }

    fn next(&self, peer: PeerId) -> Option<&sync::AtomicU64> {
        self.entries().get(peer.0 as usize).map(|entry| &entry.changing.next_marked)
    }
}

/// All bits of an address count, and the tag among them is random.
fn hash(address: &Address) -> Hash {
    let bytes = address.to_bytes();
    let words = bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
    words.fold(0, |hash: Hash, word| {
        let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 32
    })
}

#[cfg(all(test, not(loom)))]
mod tests;
