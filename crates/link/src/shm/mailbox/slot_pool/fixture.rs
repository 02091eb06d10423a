//! A pool of slots in ordinary memory, for tests and for loom's models.

use super::super::super::sync::{AtomicU64, Ordering};
use super::{Mark, Marks, SlotPool, SlotPoolWords, SlotTaker};
use std::ptr::NonNull;
use std::sync::Arc;
use tidegate_flow::PeerId;

/// The words of a pool, and those of the marks of some senders.
#[derive(Debug)]
pub(crate) struct Shared {
    pub words: SlotPoolWords,
    marks: Vec<AtomicU64>,
    nexts: Vec<AtomicU64>,
}

// SAFETY: all fields are atomics.
unsafe impl Sync for Shared {}

impl Marks for Arc<Shared> {
    fn places(&self) -> u32 {
        self.marks.len() as u32
    }

    fn mark(&self, peer: PeerId) -> Option<&AtomicU64> {
        self.marks.get(peer.0 as usize)
    }

    fn next(&self, peer: PeerId) -> Option<&AtomicU64> {
        self.nexts.get(peer.0 as usize)
    }
}

impl Shared {
    pub fn new(senders: u32) -> Arc<Self> {
        let words = || (0..senders).map(|_| AtomicU64::new(0)).collect();
        Arc::new(Shared { words: SlotPoolWords::fresh(), marks: words(), nexts: words() })
    }

    /// The receiver's side. Each test makes one.
    pub fn pool(self: &Arc<Self>, size: u64) -> SlotPool {
        // SAFETY: every test keeps the words as long as the pool.
        unsafe { SlotPool::new(NonNull::from(&self.words), Box::new(self.clone()), self.marks.len() as u32, size) }
    }

    pub fn taker(&self, peer: u32) -> SlotTaker {
        let [mark, next] = [&self.marks, &self.nexts].map(|words| NonNull::from(&words[peer as usize]));
        // SAFETY: every test keeps the words as long as its takers, of which it uses one for each peer at a time.
        unsafe { SlotTaker::new(NonNull::from(&self.words), (mark, next), PeerId(peer)) }
    }

    pub fn free(&self) -> u64 {
        self.words.free.0.load(Ordering::Acquire)
    }

    pub fn mark_of(&self, peer: u32) -> Mark {
        Mark::of(self.marks[peer as usize].load(Ordering::Acquire))
    }

    /// The sender has withdrawn its mark, and is in the list still.
    #[cfg(loom)]
    pub fn withdraw(&self, peer: u32) {
        let word = &self.marks[peer as usize];
        word.store(Mark::None.word(word.load(Ordering::Relaxed)), Ordering::Relaxed);
    }

    #[cfg(not(loom))]
    pub fn words_of(&self, peer: u32) -> [&AtomicU64; 2] {
        [&self.marks[peer as usize], &self.nexts[peer as usize]]
    }
}
