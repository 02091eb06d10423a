//! [`SlotTaker`]: one writer's way to the slots of a pool.

use super::super::super::sync::{AtomicU64, Ordering, fence};
use super::SlotPoolWords;
use super::mark::{LISTED, Mark};
use std::ptr::NonNull;
use tidegate_flow::PeerId;

/// See the module.
#[derive(Debug)]
pub(crate) struct SlotTaker {
    words: NonNull<SlotPoolWords>,
    /// Our mark, and our link in the list of marked senders.
    mark: NonNull<AtomicU64>,
    next: NonNull<AtomicU64>,
    /// Our place in the receiver's table of peers.
    place: PeerId,
    /// Our mark may say something: we take no slot but those that are kept for us.
    is_marked: bool,
    /// We have marked ourselves, and the receiver may have to be woken for that.
    has_news: bool,
}

impl SlotTaker {
    /// # Safety
    /// All words must stay valid as long as the value is used; the mark and the link are those of the place, and no
    /// other taker may use them.
    pub unsafe fn new(
        words: NonNull<SlotPoolWords>,
        (mark, next): (NonNull<AtomicU64>, NonNull<AtomicU64>),
        place: PeerId,
    ) -> Self {
        SlotTaker { words, mark, next, place, is_marked: false, has_news: false }
    }

    fn words(&self) -> &SlotPoolWords {
        // SAFETY: valid by the promise made to `new`.
        unsafe { self.words.as_ref() }
    }

    fn mark(&self) -> &AtomicU64 {
        // SAFETY: as in `words`.
        unsafe { self.mark.as_ref() }
    }

    /// Takes slots, `count` of them or as many as there are for us, and returns how many. If there are none, the sender
    /// is marked. The caller's `writing` word is odd meanwhile, and until the slots are filled.
    #[inline]
    pub fn take(&mut self, count: u32) -> u32 {
        if self.is_marked {
            return self.take_kept(count);
        }
        let taken = self.take_free(count);
        if taken == 0 { self.wait_for(count) } else { taken }
    }

    /// Whether the receiver is to be woken because we have marked ourselves since this was last asked.
    pub fn poll_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    #[inline]
    fn take_free(&self, count: u32) -> u32 {
        let free = &self.words().free.0;
        let mut found = free.load(Ordering::Relaxed);
        loop {
            let taken = found.min(count.into());
            if taken == 0 {
                return 0;
            }
            // `AcqRel`: the slots were retrieved before they became free.
            match free.compare_exchange_weak(found, found - taken, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return taken as u32,
                Err(now) => found = now,
            }
        }
    }

    /// Takes what is kept for us, if something is.
    #[cold]
    fn take_kept(&mut self, count: u32) -> u32 {
        let mut found = self.mark().load(Ordering::Acquire);
        loop {
            match Mark::of(found) {
                Mark::Waiting(_) => return 0,
                Mark::None => {
                    // The receiver has taken back what it had kept for us: this is as at the start.
                    self.is_marked = false;
                    return self.take(count);
                }
                Mark::Kept(kept) => {
                    let taken = kept.min(count);
                    let left = Mark::Kept(kept - taken).word(found);
                    match self.mark().compare_exchange(found, left, Ordering::AcqRel, Ordering::Acquire) {
                        Ok(_) => {
                            self.is_marked = kept > taken;
                            return taken;
                        }
                        Err(now) => found = now,
                    }
                }
            }
        }
    }

    /// Marks the sender, as it found no slot, and looks once more.
    #[cold]
    fn wait_for(&mut self, count: u32) -> u32 {
        self.set_mark(count);
        (self.is_marked, self.has_news) = (true, true);
        // A receiver that has added slots, and looked at the list before we were there, did so before this look.
        fence(Ordering::SeqCst);
        let taken = self.take_free(count);
        if taken == 0 {
            return 0;
        }
        let withdraw = |found| matches!(Mark::of(found), Mark::Waiting(_)).then(|| Mark::None.word(found));
        if self.mark().fetch_update(Ordering::AcqRel, Ordering::Acquire, withdraw).is_ok() {
            self.is_marked = false;
            return taken;
        }
        // Slots were kept for us just now: they are ours as well.
        taken + if taken < count { self.take_kept(count - taken) } else { 0 }
    }

    /// Says that we wait, and pushes our place onto the list unless it is there.
    fn set_mark(&self, count: u32) {
        let wait = |found| Some(Mark::Waiting(count).word(found) | LISTED);
        let before = self.mark().fetch_update(Ordering::AcqRel, Ordering::Relaxed, wait);
        if before.is_ok_and(|before| before & LISTED != 0) {
            return;
        }
        // SAFETY: valid by the promise made to `new`.
        let next = unsafe { self.next.as_ref() };
        let head = &self.words().marked.0;
        let push = |found| {
            next.store(found, Ordering::Relaxed);
            Some(u64::from(self.place.0) + 1)
        };
        let _ = head.fetch_update(Ordering::AcqRel, Ordering::Relaxed, push);
    }
}
