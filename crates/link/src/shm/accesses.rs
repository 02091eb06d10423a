//! Words by which peers show that they copy to or from each other's memory. The owner of the memory waits for them:
//! `withdrawing.rs` says why and how.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// What a peer's word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(pub u64);

impl Word {
    /// Whether the peer copies just now.
    pub fn is_copying(self) -> bool {
        self.0 % 2 == 1
    }
}

/// A copy of ours to or from a peer's memory, from when it is announced to its end.
#[derive(Debug)]
pub(crate) struct Access<'a>(&'a AtomicU64);

impl<'a> Access<'a> {
    /// Announces a copy, by our word in the table of the memory's owner. What is looked up after this is valid until
    /// the value is dropped.
    pub fn begin(word: &'a AtomicU64) -> Access<'a> {
        // An odd word is left of nothing that still goes on: we copy once at a time.
        word.store(word.load(Ordering::Relaxed) | 1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        Access(word)
    }
}

impl Drop for Access<'_> {
    fn drop(&mut self) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_odd_while_its_peer_copies_and_another_one_each_time() {
        for start in [0, 6, u64::MAX - 1] {
            let word = AtomicU64::new(start);
            let value = || Word(word.load(Ordering::Relaxed));
            let mut before = Vec::new();
            for _ in 0..3 {
                let access = Access::begin(&word);
                assert!(value().is_copying() && !before.contains(&value()));
                before.push(value());
                drop(access);
                assert!(!value().is_copying());
            }
        }
        // What a process has left that had this place before.
        let word = AtomicU64::new(7);
        drop(Access::begin(&word));
        assert_eq!(word.load(Ordering::Relaxed), 8);
    }
}
