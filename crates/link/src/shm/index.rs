//! The index of the table of peers: it leads from an address to a place without a look at all places.
//!
//! It is a hash table with linear probing. A word is a place plus one; zero, which is what fresh memory holds, is
//! empty. Whoever uses it holds the lock of the table.
//!
//! **Anybody may write anything into it**, at any time. So a word is a hint: the entry at the place alone says whose it
//! is. A word that leads to no entry of this bucket is *stale*, and whoever inserts puts its own there. No search takes
//! more steps than a bucket has words. That an address is absent is proven by an empty word behind its home only. In a
//! bucket without one it is not known: the table is looked through, and the bucket written anew.
//!
//! **Anybody may die** between two stores. An insertion writes the word before the entry counts, so what a dead one
//! leaves is a stale word. Only the owner removes, and with it the index ends.
//!
//! **A bucket is at most a page**, and searches stay in it: an endpoint that talks to few takes few pages of an index
//! for many. A removal closes the gap, so that words of those who left do not fill the index in the long run.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use tidegate_flow::PeerId;

const EMPTY: u32 = 0;
const BUCKET_MOST: usize = 4096 / size_of::<AtomicU32>();
const WORDS_LEAST: usize = 16;

/// One look at a word of the index, or at an entry of the table: tests count them.
#[inline(always)]
pub(crate) fn look() {
    #[cfg(test)]
    LOOKS.set(LOOKS.get() + 1);
}

#[cfg(test)]
thread_local! {
    /// Looks of this thread.
    pub(crate) static LOOKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// A store to a table of peers follows. Whoever makes it may die before it: tests let that happen.
#[inline(always)]
pub(crate) fn store_follows() {
    #[cfg(test)]
    match STORES_LEFT.get() {
        None => {}
        Some(0) => std::panic::resume_unwind(Box::new("died")),
        Some(left) => STORES_LEFT.set(Some(left - 1)),
    }
}

#[cfg(test)]
thread_local! {
    /// Stores to tables of peers that this thread makes before it dies; `None`: it lives on.
    pub(crate) static STORES_LEFT: std::cell::Cell<Option<u32>> = const { std::cell::Cell::new(None) };
}

/// The hash of an address.
pub(crate) type Hash = u64;

/// What a search has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    At(PeerId),
    Absent,
    /// The bucket has no empty word.
    Unknown,
}

/// An index, ours or a peer's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Index {
    words: NonNull<[AtomicU32]>,
}

impl Index {
    /// How many words an index for so many peers has: a power of two. At most half of them are in use.
    pub fn words_for(peers: usize) -> usize {
        (2 * peers).next_power_of_two().max(WORDS_LEAST)
    }

    /// # Safety
    /// The words must stay valid as long as the value or a copy of it is used.
    pub unsafe fn new(words: NonNull<[AtomicU32]>) -> Index {
        assert!(words.len().is_power_of_two(), "as `words_for` says");
        Index { words }
    }

    fn words(&self) -> &[AtomicU32] {
        // SAFETY: valid by the promise made to `new`; all are atomics.
        unsafe { self.words.as_ref() }
    }

    /// The words of the bucket of this hash, as places in the index.
    fn bucket(&self, hash: Hash) -> Range<usize> {
        let size = self.words.len().min(BUCKET_MOST);
        let number = (hash >> 32) as usize & (self.words.len() / size - 1);
        number * size..(number + 1) * size
    }

    /// The bytes that a search or an insertion looks at.
    pub fn bytes(&self, hash: Hash) -> Range<usize> {
        let bucket = self.bucket(hash);
        bucket.start * size_of::<AtomicU32>()..bucket.end * size_of::<AtomicU32>()
    }

    /// All words of the bucket, from the home of this hash on.
    fn probe(&self, hash: Hash) -> impl Iterator<Item = &AtomicU32> {
        let bucket = &self.words()[self.bucket(hash)];
        let (before, behind) = bucket.split_at(hash as usize & (bucket.len() - 1));
        behind.iter().chain(before).inspect(|_| look())
    }

    /// The place of which `is_it` holds, among those with this hash.
    pub fn find(&self, hash: Hash, is_it: impl Fn(PeerId) -> bool) -> Found {
        for word in self.probe(hash) {
            match word.load(Ordering::Relaxed) {
                EMPTY => return Found::Absent,
                value if is_it(PeerId(value - 1)) => return Found::At(PeerId(value - 1)),
                _ => {}
            }
        }
        Found::Unknown
    }

    /// Lets searches for this hash find a place. `hash_at` is the hash of the address at a place, if there is one.
    pub fn insert(&self, hash: Hash, place: PeerId, hash_at: impl Fn(PeerId) -> Option<Hash>) {
        let is_stale = |value: u32| hash_at(PeerId(value - 1)).is_none_or(|at| self.bucket(at) != self.bucket(hash));
        let is_ours = |value: u32| value == EMPTY || value == place.0 + 1 || is_stale(value);
        // Without any, the bucket has no empty word, and the table will be looked through.
        if let Some(word) = self.probe(hash).find(|word| is_ours(word.load(Ordering::Relaxed))) {
            store_follows();
            word.store(place.0 + 1, Ordering::Relaxed);
        }
    }

    /// Searches find the place no more. Returns whether the bucket had an empty word; else it has to be
    /// [repaired](Self::repair), for it may lack some.
    pub fn remove(&self, hash: Hash, place: PeerId, hash_at: impl Fn(PeerId) -> Option<Hash>) -> bool {
        let mut words = self.probe(hash);
        let is_its = |value: u32| value == EMPTY || value == place.0 + 1;
        match words.find(|word| is_its(word.load(Ordering::Relaxed))) {
            None => return false,
            Some(word) if word.swap(EMPTY, Ordering::Relaxed) == EMPTY => return true,
            Some(_) => {}
        }
        // The words behind it may be there only because it was in their way: each is put in anew.
        for word in words {
            let value = word.swap(EMPTY, Ordering::Relaxed);
            if value == EMPTY {
                return true;
            }
            let place = PeerId(value - 1);
            if let Some(at) = hash_at(place).filter(|at| self.bucket(*at) == self.bucket(hash)) {
                self.insert(at, place, &hash_at);
            }
        }
        false
    }

    /// Writes a bucket anew, given all places in use and their hashes.
    pub fn repair(&self, hash: Hash, all: impl Iterator<Item = (PeerId, Hash)>) {
        let words = &self.words()[self.bucket(hash)];
        let mut values = vec![EMPTY; words.len()];
        for (place, at) in all.filter(|(_, at)| self.bucket(*at) == self.bucket(hash)) {
            let home = at as usize & (values.len() - 1);
            let free = (home..values.len()).chain(0..home).find(|at| values[*at] == EMPTY);
            free.into_iter().for_each(|free| values[free] = place.0 + 1);
        }
        // Whoever does this may die on the way: empty words, which prove absence, come last.
        for is_last in [false, true] {
            let these = words.iter().zip(&values).filter(|(_, value)| (**value == EMPTY) == is_last);
            for (word, value) in these {
                store_follows();
                word.store(*value, Ordering::Release);
            }
        }
    }
}
