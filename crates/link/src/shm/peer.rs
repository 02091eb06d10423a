//! The table of peers: one entry per endpoint that we talk to or that talks to us. It lies in the segment of its
//! owner. The owner and the peers insert, under a lock on the segment's file, and find each other's entries by
//! identity: so a pair has one index on either side, whoever comes first.

use super::address::Address;
use super::memory_map::Shared;
use super::sync;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegate_flow::PeerId;

const ADDRESS_WORDS: usize = Address::BYTES / 8;

/// One place in the table: a line that hardly ever changes, and one that the peer changes with every packet.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Entry {
    state: AtomicU64,
    address: [AtomicU64; ADDRESS_WORDS],
    /// Whether the peer holds the lock that says that it lives (`Byte::of`); it may be short of descriptors.
    is_locked: AtomicU64,
    writing: Writing,
}

/// The word by which a peer shows that it is in the middle of writing a packet; see the mailbox.
#[derive(Debug)]
#[repr(C, align(64))]
struct Writing(sync::AtomicU64);

// SAFETY: atomics only.
unsafe impl Shared for Entry {}

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
    /// Of somebody who has connected and whom the owner does not hear any more. It may still write.
    Severed = 5,
}

/// A table, ours or a peer's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    entries: NonNull<[Entry]>,
}

impl Table {
    /// # Safety
    /// The entries must stay valid as long as the value or a copy of it is used.
    pub unsafe fn new(entries: NonNull<[Entry]>) -> Table {
        Table { entries }
    }

    fn entries(&self) -> &[Entry] {
        // SAFETY: valid by the promise made to `new`; all fields are atomics.
        unsafe { self.entries.as_ref() }
    }

    /// How many peers fit.
    pub fn capacity(&self) -> usize {
        self.entries.len()
    }

    /// What the entry is; `Free` for indices outside the table too.
    pub fn state(&self, peer: PeerId) -> State {
        match self.entries().get(peer.0 as usize).map(|entry| entry.state.load(Ordering::Acquire)) {
            Some(1) => State::Expected,
            Some(2) => State::Connected,
            Some(3) => State::Left,
            Some(4) => State::Failed,
            Some(5) => State::Severed,
            _ => State::Free,
        }
    }

    /// Whose it is.
    pub fn address(&self, peer: PeerId) -> Option<Address> {
        if self.state(peer) == State::Free {
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
        (0..self.capacity() as u32).map(PeerId).filter(|peer| self.state(*peer) != State::Free)
    }

    /// Whether no place is free.
    pub fn is_full(&self) -> bool {
        self.taken().count() == self.capacity()
    }

    /// The place of `address`, if it has one.
    pub fn find(&self, address: &Address) -> Option<PeerId> {
        self.taken().find(|peer| self.address(*peer).as_ref() == Some(address))
    }

    /// The place of `address`, a new one if it has none yet; `None`: the table is full. The caller holds the
    /// insertion lock.
    pub fn find_or_insert(&self, address: &Address) -> Option<PeerId> {
        if let Some(peer) = self.find(address) {
            return Some(peer);
        }
        let free = (0..self.capacity() as u32).map(PeerId).find(|peer| self.state(*peer) == State::Free)?;
        let entry = &self.entries()[free.0 as usize];
        for (word, bytes) in entry.address.iter().zip(address.to_bytes().as_chunks::<8>().0) {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
        entry.state.store(State::Expected as u64, Ordering::Release);
        Some(free)
    }

    /// The peer of this entry says that it is about to write, and whether it holds its lock.
    pub fn mark_connected(&self, peer: PeerId, is_locked: bool) {
        let entry = &self.entries()[peer.0 as usize];
        entry.is_locked.store(is_locked.into(), Ordering::Relaxed);
        entry.state.store(State::Connected as u64, Ordering::Release);
    }

    /// The peer of this entry says that it will write no more: it closes, or it cannot go on.
    pub fn mark_ended(&self, peer: PeerId, orderly: bool) {
        let state = if orderly { State::Left } else { State::Failed };
        self.entries()[peer.0 as usize].state.store(state as u64, Ordering::Release);
    }

    /// The owner of the table says that it hears a connected peer no more.
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
        self.entries()[peer.0 as usize].state.store(State::Free as u64, Ordering::Release);
    }

    /// The peer's `writing` word.
    pub fn writing(&self, peer: PeerId) -> NonNull<sync::AtomicU64> {
        NonNull::from(&self.entries()[peer.0 as usize].writing.0)
    }

    /// The `writing` words of all places in use.
    pub fn writing_words(&self) -> Vec<(PeerId, u64)> {
        let word = |peer: PeerId| self.entries()[peer.0 as usize].writing.0.load(sync::Ordering::Acquire);
        self.taken().map(|peer| (peer, word(peer))).collect()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::address::{Identity, Settings};
    use super::*;

    fn entries(count: usize) -> Vec<Entry> {
        let word = || AtomicU64::new(0);
        let entry = |_| Entry {
            state: word(),
            address: std::array::from_fn(|_| word()),
            is_locked: word(),
            writing: Writing(word()),
        };
        (0..count).map(entry).collect()
    }

    fn address(pid: u32) -> Address {
        Address {
            identity: Identity { boot: 1, namespace: 2, pid, uid: 0, serial: 0, nonce: 3 },
            settings: Settings { scheme: 0, piggyback: true, slots_per_peer: 64, credit_slots: 2 },
        }
    }

    #[test]
    fn an_entry_is_two_cache_lines() {
        assert_eq!(size_of::<Entry>(), 128);
    }

    #[test]
    fn everybody_has_one_place_and_a_freed_one_is_given_away() {
        let entries = entries(2);
        // SAFETY: `entries` outlives the table.
        let table = unsafe { Table::new(NonNull::from(&*entries)) };
        assert_eq!(table.find_or_insert(&address(10)), Some(PeerId(0)));
        assert_eq!(table.find_or_insert(&address(11)), Some(PeerId(1)));
        assert_eq!(table.find_or_insert(&address(10)), Some(PeerId(0)));
        assert_eq!(table.find_or_insert(&address(12)), None, "full");
        assert_eq!(table.state(PeerId(0)), State::Expected);
        assert!(!table.may_write(PeerId(0)));
        table.mark_connected(PeerId(0), false);
        assert_eq!(table.state(PeerId(0)), State::Connected);
        assert!(table.may_write(PeerId(0)) && !table.is_locked(PeerId(0)));
        table.sever(PeerId(0));
        assert_eq!(table.state(PeerId(0)), State::Severed);
        assert!(table.may_write(PeerId(0)), "nobody can keep it from writing");
        table.mark_connected(PeerId(0), true);
        assert!(table.is_locked(PeerId(0)));
        table.mark_ended(PeerId(0), true);
        table.sever(PeerId(0));
        assert_eq!(table.state(PeerId(0)), State::Left, "who has left has left");
        assert_eq!(table.find_or_insert(&address(12)), None, "who left is not forgotten before the owner says so");
        table.free(PeerId(0));
        assert_eq!(table.address(PeerId(0)), None);
        assert_eq!(table.find_or_insert(&address(12)), Some(PeerId(0)));
        assert_eq!(table.address(PeerId(0)), Some(address(12)));
        assert_eq!(table.state(PeerId(7)), State::Free, "outside the table");
    }
}
