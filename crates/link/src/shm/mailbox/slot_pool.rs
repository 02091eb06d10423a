//! One pool of slots for all senders (`speculative`, whose file in `tidegate-flow` says why, as `adapter/slot_pool.rs`
//! there has the rules for carriers that can refuse a packet late). Over shared memory no packet is refused late: a
//! writer takes slots of the pool before it reserves places in the ring.
//!
//! **Free slots** are counted in one word, from which every writer takes as many as it needs, or as there are, by
//! compare-and-swap. The receiver adds the slots that it has retrieved. It does so in batches, so that the word's cache
//! line does not move with each packet: when an eighth of the pool is retrieved, before it sleeps, and as soon as a
//! sender waits.
//!
//! **A writer that finds no slot marks itself**: it says in a word of its own how many slots it wants, and pushes its
//! place onto a list. The head of the list is a word of its own line, so the receiver's look for marks costs a hit in
//! its cache while there are none, and what it finds there are the marked senders alone, in order: it never walks all
//! places, and the list takes no memory but a word of each place. A marked writer takes nothing but what is *kept* for
//! it, which the receiver says in the same word.
//!
//! **No wake-up is lost.** The writer marks itself, and then looks at the free slots once more; the receiver adds free
//! slots, and then looks at the list once more. There is a full fence between the two steps on both sides, so at least
//! one of them sees the other: the writer takes the slots and withdraws its mark, or the receiver takes the slots back
//! and keeps them for the writer. Where the receiver sleeps, the writer that has marked itself wakes it, and the
//! receiver gives all slots back before it sleeps and looks at the list when it has said that it will (`ShmLink::arm`).
//!
//! **No sender starves.** While a sender is marked, no slot that comes free becomes free for all. Marks are served in
//! the order of the list, and a sender is served when it can have all that it wants, or half of the pool, or
//! [`MOST_KEPT`] slots. A sender that wants more stands behind the others then. So a marked sender is served after at
//! most one grant to each other marked sender.
//!
//! **No slot is idle for long.** A sender whose program computes does not fetch what is kept for it. While other
//! senders wait, the receiver takes back what has been kept for [`PATIENCE`], the oldest first, by compare-and-swap, so
//! that either the sender has it or the receiver. The sender's word then says nothing any more: it marks itself again
//! when it comes. A sender that came too late may be one that makes progress seldom, and would be invited in vain for
//! ever. So until it has come in time it gets a single slot, and that is kept until it comes, whenever that is, as long
//! as such slots are at most half of the pool: the others have the rest. Beyond that half, and in a pool of one slot,
//! it is given twice the time at each turn, up to [`MISSES_MOST`] times: about a second. There a sender that calls more
//! seldom may be passed over for as long as others fill the pool, and costs them so much of their time.
//!
//! **Why the ring never overflows.** Each reserved place is covered by a slot that was taken, each slot that is taken
//! was in the pool at the start or given back since, and each slot that is given back was retrieved. The reservation
//! takes the history of all takes before it along (`AcqRel` on the write pointer), so whichever writer gets a place
//! comes after the retrieval of the packet that was there before.
//!
//! **A writer that dies** between a take and the publication leaves places that are skipped, and count as retrieved
//! ([`Hole`](super::Hole)), or slots that are in no place: see [`SlotPool::settle`]. One that dies while it is marked,
//! or while slots are kept for it, is forgotten with its place. One that dies between its mark and the push has a word
//! that is looked at with its place.
//!
//! **A hostile writer** may write anything into all of these words. Each number that is read back is clamped to the
//! size of the pool, a grant counts for no more than it was, each place is in the receiver's queues once, and a walk
//! along the list ends at the first place that is not listed. If the list is cut, [`SlotPool::find_lost`] finds those
//! that were behind the cut, now and whenever they mark themselves again: their places stay listed, so their marks wait
//! for a slow look. Too high a count of free slots lets slots be overwritten, as a wild write pointer does
//! (see the mailbox).
//!
//! Invariant: free + kept + ready (with the receiver) + taken or filled = size.

use super::super::sync::{Alone, AtomicU64, Ordering, fence};
use std::collections::VecDeque;
use std::fmt;
use std::ptr::NonNull;
use std::time::Duration;
use tidegate_flow::{Instant, PeerId, Peers};

#[cfg(test)]
mod fixture;
#[cfg(all(test, loom))]
mod loom_tests;
mod mark;
mod taker;

use mark::{LISTED, Mark};
pub(crate) use taker::SlotTaker;

/// Most slots that are kept for a sender at a time, and that are retrieved before they are given back. An invitation
/// costs two moves of a cache line, so larger ones would save nothing, and let others wait longer.
const MOST_KEPT: u64 = 64;
/// How long slots are kept for a sender that does not fetch them while others wait.
pub(crate) const PATIENCE: Duration = Duration::from_millis(1);
/// How often that time doubles.
const MISSES_MOST: u8 = 10;
/// How often a sender's word is tried that changes all the time.
const TRIES_MOST: u32 = 8;
/// How often slots are given before the receiver goes on. Only marks that are made meanwhile lead to a second time.
const ROUNDS_MOST: u32 = 8;

/// The words of a pool. They are the receiver's and all writers'.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct SlotPoolWords {
    /// Slots that any writer may take.
    pub(super) free: Alone<AtomicU64>,
    /// The head of the list of marked senders: a place plus one; 0: the list is empty.
    pub(super) marked: Alone<AtomicU64>,
}

/// The words of all senders' marks, where they lie.
pub(crate) trait Marks: fmt::Debug {
    /// The number of places that have such words.
    fn places(&self) -> u32;
    /// The word in which the sender at this place and the receiver speak of slots; see [`Mark`].
    fn mark(&self, peer: PeerId) -> Option<&AtomicU64>;
    /// The next place in the list behind this one, plus one; 0: none.
    fn next(&self, peer: PeerId) -> Option<&AtomicU64>;
}

/// The receiver's memory of a sender.
#[derive(Debug, Default)]
struct Sender {
    /// It is among those that wait.
    is_waiting: bool,
    /// How often in a row slots that were kept for it were taken back.
    misses: u8,
}

/// A grant that may not be used up.
#[derive(Debug)]
struct Holder {
    peer: PeerId,
    /// The number of slots that were kept.
    slots: u64,
    /// When the grant was first seen while others waited.
    since: Option<Instant>,
}

/// The receiver's side of a pool.
#[derive(Debug)]
pub(crate) struct SlotPool {
    words: NonNull<SlotPoolWords>,
    marks: Box<dyn Marks>,
    /// Slots of the ring.
    size: u64,
    /// Slots that were retrieved, and that are neither free nor kept for a sender yet.
    ready: u64,
    senders: Peers<Sender>,
    /// Marked senders, in order. A sender that has withdrawn its mark may still be there.
    waiting: VecDeque<PeerId>,
    /// Senders that slots were kept for, the oldest grant first.
    holders: VecDeque<Holder>,
}

impl SlotPool {
    /// Most heap bytes, when all of `peers` senders wait or have slots kept for them. Queues double as they grow.
    pub const fn bytes_most(peers: u32) -> usize {
        let queued = size_of::<PeerId>() + size_of::<Holder>();
        Peers::<Sender>::bytes_most(peers) + 2 * queued * peers as usize
    }

    /// A pool for a ring of `size` slots, all of which are free, and for `peers` senders at most.
    ///
    /// # Safety The words must stay valid as long as the value is used, and those of the marks too. There must be one
    /// such value.
    pub unsafe fn new(words: NonNull<SlotPoolWords>, marks: Box<dyn Marks>, peers: u32, size: u64) -> Self {
        let (waiting, holders) = (VecDeque::new(), VecDeque::new());
        let pool = SlotPool { words, marks, size, ready: 0, senders: Peers::new(peers, ()), waiting, holders };
        pool.words().free.0.store(size, Ordering::Release);
        pool
    }

    #[inline(always)]
    fn words(&self) -> &SlotPoolWords {
        // SAFETY: valid by the promise made to `new`.
        unsafe { self.words.as_ref() }
    }

    /// Retrieved slots that are given back together while no sender waits.
    fn batch(&self) -> u64 {
        (self.size / 8).clamp(1, MOST_KEPT)
    }

    /// Most slots that are kept for one sender.
    fn most(&self) -> u64 {
        (self.size / 2).clamp(1, MOST_KEPT)
    }

    /// After how many retrievals slots are to be given back.
    pub fn stride(&self) -> u64 {
        let wanted = self.waiting.front().and_then(|&first| self.wanted(first));
        wanted.map_or(self.batch(), |wanted| wanted.saturating_sub(self.ready).clamp(1, self.batch()))
    }

    /// Whether a sender is marked, as far as is known without a look at its word.
    #[inline(always)]
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty() || self.has_new_marks()
    }

    /// Whether there are marks that the receiver has not seen.
    #[inline(always)]
    pub fn has_new_marks(&self) -> bool {
        self.words().marked.0.load(Ordering::Relaxed) != 0
    }

    /// Whether senders wait while slots are kept for others, so that [`look`](Self::look) is to be called soon.
    pub fn may_revoke(&self) -> bool {
        !self.waiting.is_empty() && !self.holders.is_empty()
    }

    /// The slots that a sender waits for: what it wants, or as many as are kept for one sender.
    fn wanted(&self, peer: PeerId) -> Option<u64> {
        match Mark::of(self.marks.mark(peer)?.load(Ordering::Acquire)) {
            Mark::Waiting(slots) => Some(self.granted(peer, slots)),
            Mark::None | Mark::Kept(_) => None,
        }
    }

    /// The slots that a sender gets which wants that many: a single one if it came too late the last time.
    fn granted(&self, peer: PeerId, wanted: u32) -> u64 {
        match self.misses(peer) {
            0 => u64::from(wanted).min(self.most()),
            _ => 1,
        }
    }

    /// How often in a row a sender came too late.
    fn misses(&self, peer: PeerId) -> u8 {
        self.senders.get(peer).map_or(0, |sender| sender.misses)
    }

    /// The grants of senders that came too late before.
    fn late(&self) -> usize {
        self.holders.iter().filter(|holder| self.misses(holder.peer) > 0).count()
    }

    /// Gives slots back that were retrieved: to marked senders first, the rest to all.
    pub fn give(&mut self, slots: u64) {
        self.ready = self.ready.saturating_add(slots).min(self.size);
        for _ in 0..ROUNDS_MOST {
            self.pull_marks();
            if self.waiting.is_empty() {
                self.free_ready();
                // As late as that: a sender that marks itself looks at the free slots after its mark.
                fence(Ordering::SeqCst);
                if !self.has_new_marks() {
                    return;
                }
            } else {
                self.reclaim();
                self.invite();
                if !self.waiting.is_empty() {
                    return;
                }
            }
        }
        self.free_ready();
    }

    /// Lets all senders take what the receiver has.
    fn free_ready(&mut self) {
        let more = std::mem::take(&mut self.ready);
        if more == 0 {
            return;
        }
        let free = &self.words().free.0;
        let before = free.fetch_add(more, Ordering::AcqRel);
        if before.saturating_add(more) > self.size {
            // A sender has written a number that cannot be.
            let _ = free.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |found| Some(found.min(self.size)));
        }
    }

    /// Takes all free slots, as a sender waits.
    fn reclaim(&mut self) {
        let free = &self.words().free.0;
        if free.load(Ordering::Relaxed) > 0 {
            let found = free.swap(0, Ordering::AcqRel);
            self.ready = self.ready.saturating_add(found).min(self.size);
        }
    }

    /// Reads the list of marked senders, and empties it.
    pub fn pull_marks(&mut self) {
        if !self.has_new_marks() {
            return;
        }
        let (mut head, places) = (self.words().marked.0.swap(0, Ordering::AcqRel), self.marks.places());
        let before = self.waiting.len();
        for _ in 0..places {
            let place = head.checked_sub(1).filter(|&place| place < places.into());
            let Some(peer) = place.map(|place| PeerId(place as u32)) else { break };
            let (Some(mark), Some(next)) = (self.marks.mark(peer), self.marks.next(peer)) else { break };
            // Before the sender learns that it is not listed any more, and may push its place again.
            head = next.load(Ordering::Relaxed);
            let word = mark.fetch_and(!LISTED, Ordering::AcqRel);
            if word & LISTED == 0 {
                // The list is damaged.
                break;
            }
            if matches!(Mark::of(word), Mark::Waiting(_)) {
                self.enqueue(peer);
            }
        }
        // The list has the last sender first.
        self.waiting.make_contiguous()[before..].reverse();
    }

    /// A sender is marked. It waits behind the others, if it does not wait already.
    fn enqueue(&mut self, peer: PeerId) {
        let sender = self.senders.of(peer);
        if std::mem::replace(&mut sender.is_waiting, true) {
            return;
        }
        self.waiting.push_back(peer);
        if let Some(at) = self.holders.iter().position(|holder| holder.peer == peer) {
            // It marks itself when it has used up what was kept for it.
            self.holders.remove(at);
            self.senders.of(peer).misses = 0;
        }
    }

    /// Keeps slots for those that wait, as far as the slots go.
    fn invite(&mut self) {
        let mut tries = 0;
        while let Some(&peer) = self.waiting.front() {
            let Some(word) = self.marks.mark(peer) else { break };
            let found = word.load(Ordering::Acquire);
            if let Mark::Waiting(slots) = Mark::of(found) {
                let wanted = self.granted(peer, slots);
                if self.ready < wanted {
                    return;
                }
                let kept = Mark::Kept(wanted as u32).word(found);
                if word.compare_exchange(found, kept, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                    // It was withdrawn at this moment, or something else has changed: look again. A word that never
                    // stays as it is is a hostile peer's: it goes behind the others.
                    tries += 1;
                    if tries < TRIES_MOST {
                        continue;
                    }
                    self.waiting.rotate_left(1);
                    return;
                }
                self.ready -= wanted;
                self.holders.push_back(Holder { peer, slots: wanted, since: None });
            }
            self.waiting.pop_front();
            self.senders.of(peer).is_waiting = false;
        }
    }

    /// Looks after senders that wait: serves new marks, and takes back what has been kept too long for others.
    pub fn look(&mut self, now: Instant) {
        self.give(0);
        let (mut at, mut late) = (0, self.late());
        while at < self.holders.len() && !self.waiting.is_empty() {
            let peer = self.holders[at].peer;
            let word = self.marks.mark(peer).map_or(0, |word| word.load(Ordering::Acquire));
            if Mark::of(word).kept() == 0 {
                // It has used them up.
                self.holders.remove(at);
                let misses = std::mem::take(&mut self.senders.of(peer).misses);
                late = late.saturating_sub(usize::from(misses > 0));
                continue;
            }
            let misses = self.misses(peer);
            let since = *self.holders[at].since.get_or_insert(now);
            let is_spared = misses > 0 && late as u64 <= self.size / 2;
            if is_spared || now.since(since) < PATIENCE * (1 << misses) {
                at += 1;
                continue;
            }
            let slots = self.take_back(at);
            late = late.saturating_sub(usize::from(misses > 0));
            self.senders.of(peer).misses = if slots > 0 { (misses + 1).min(MISSES_MOST) } else { 0 };
            self.ready = self.ready.saturating_add(slots).min(self.size);
            self.invite();
        }
        self.give(0);
    }

    /// Ends a grant, and returns what was left of it.
    fn take_back(&mut self, at: usize) -> u64 {
        let Some(holder) = self.holders.remove(at) else { return 0 };
        let Some(word) = self.marks.mark(holder.peer) else { return 0 };
        let end = |found| matches!(Mark::of(found), Mark::Kept(_)).then(|| Mark::None.word(found));
        match word.fetch_update(Ordering::AcqRel, Ordering::Acquire, end) {
            Ok(found) => Mark::of(found).kept().min(holder.slots),
            Err(_) => 0,
        }
    }

    /// The sender at this place says that it waits, though it is not in any list: its mark was lost, as a writer has
    /// damaged the list, or it makes its mark at this moment.
    pub fn find_lost(&mut self, peer: PeerId) {
        let is_known = self.senders.get(peer).is_some_and(|sender| sender.is_waiting);
        if !is_known && self.wanted(peer).is_some() {
            self.enqueue(peer);
        }
    }

    /// A peer is gone. Its mark ends, what is kept for it goes to others, and its place may go to another peer.
    pub fn forget(&mut self, peer: PeerId) {
        self.pull_marks();
        if let Some(at) = self.holders.iter().position(|holder| holder.peer == peer) {
            self.ready = self.ready.saturating_add(self.take_back(at)).min(self.size);
        }
        if self.senders.forget(peer).is_some_and(|sender| sender.is_waiting) {
            self.waiting.retain(|&other| other != peer);
        }
        if let Some(word) = self.marks.mark(peer) {
            let end = |found| (Mark::of(found) != Mark::None).then(|| Mark::None.word(found));
            let _ = word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, end);
        }
        self.give(0);
    }

    /// Puts the count right, if nothing is under way, and returns the number of slots that were missing: a writer that
    /// has died between a take and its reservation leaves such slots. All that was retrieved has been given back.
    ///
    /// Every take happens while its writer's `writing` word is odd, and until its packets are published. So if no word
    /// is odd *after* the counts were read, the packets of all takes up to then are published, or their writers are
    /// dead and gone; and if all that was reserved is retrieved then, these packets' slots were given back. Then a slot
    /// that is neither free nor kept was taken and never filled. `is_quiet` says whether both hold. While slots are
    /// retrieved all the time it may be long until they do: when none is left, no packet can be written, and it is
    /// quiet.
    pub fn settle(&mut self, is_quiet: impl FnOnce() -> bool) -> u64 {
        let found = self.words().free.0.load(Ordering::Acquire);
        let others = self.kept() + self.ready;
        let all = found.saturating_add(others);
        if all == self.size || !is_quiet() {
            return 0;
        }
        if all > self.size {
            // A sender has written a number that cannot be.
            let (free, right) = (&self.words().free.0, self.size.saturating_sub(others));
            let _ = free.compare_exchange(found, right, Ordering::AcqRel, Ordering::Relaxed);
            return 0;
        }
        self.give(self.size - all);
        self.size - all
    }

    /// Slots that are kept for senders now.
    fn kept(&self) -> u64 {
        let left = |holder: &Holder| {
            let word = self.marks.mark(holder.peer).map_or(0, |word| word.load(Ordering::Acquire));
            Mark::of(word).kept().min(holder.slots)
        };
        self.holders.iter().map(left).sum()
    }
}

#[cfg(test)]
impl SlotPoolWords {
    /// In ordinary memory.
    pub(super) fn fresh() -> Self {
        SlotPoolWords { free: Alone(AtomicU64::new(0)), marked: Alone(AtomicU64::new(0)) }
    }
}

#[cfg(test)]
impl SlotPool {
    /// Free slots, those kept, and those that the receiver has.
    pub(super) fn counts(&self) -> [u64; 3] {
        [self.words().free.0.load(Ordering::Acquire), self.kept(), self.ready]
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
