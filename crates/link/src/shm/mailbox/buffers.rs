//! Posted buffers, where receivers post buffers that hold a message each (L, A): a writer takes one before it reserves
//! slots, and is refused where there is none. Each buffer has as many slots as a message may have packets, so whoever
//! has taken one finds room in the ring.
//!
//! **Buffers of a connection.** The receiver counts in one word of the connection how many it has posted *again*, or
//! more than at the start; it alone writes there. The writer knows how many there were at the start, and counts in its
//! own memory how many it has taken. So nobody shares a count that both change, no atomic takes more than a load or a
//! store, and when a writer dies nothing is left to put right: its connection ends with it, and both counts begin anew.
//!
//! **A pool.** Whoever comes first takes a buffer of all, by taking one from a word that the receiver adds to. Here a
//! writer can die after it has taken a buffer and before its message is there: the buffer would be missing for ever.
//! See [`Pool::settle`].
//!
//! **Who is never left out.** A sender that is refused tries again after a time, and may find the pool empty each time,
//! because others that come at better moments take every buffer. So a pool has one *spare* buffer beside those that it
//! posts, for those who were refused `refusals_most` times in a row (why no other is kept: `adapter/spare.rs` in
//! `tidegate-flow`, whose rule this is). Such a sender *claims* it: it says so in a word of its own ([`Claim`]). The
//! receiver *keeps* the spare buffer for one sender that claims it, by a change to that word, and when a buffer has
//! come back after the sender fetched it, for the next: they are served in turn, by their places. The posted buffers go
//! on meanwhile. A sender that claims may still take one of them, and then its claim is void. One for which the spare
//! buffer is kept and that does not fetch it, as its program computes, loses it after a while: others do not wait for
//! it without end.
//!
//! **A hostile writer** may write anything into these words, and into the ring itself. What is read back is clamped.
//! Too low a count makes others wait until the pool settles, too high a one lets slots be overwritten that were not
//! retrieved, as a wild write pointer does (see the mailbox). The ring has one size, so memory is bounded anyway.

use super::super::sync::{AtomicU64, Ordering};
use super::slot_pool::SlotTaker;
use std::ptr::NonNull;
use std::time::Duration;
use tidegate_flow::{Instant, PeerId};

/// The words of a pool. They are the receiver's and all writers'.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct PoolWords {
    /// Buffers that anybody may take.
    pub(super) posted: AtomicU64,
    /// How many claims were ever made.
    pub(super) claims: AtomicU64,
}

/// What the word of a peer says of its claim to a buffer of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Claim {
    /// There is none. Fresh memory says so.
    None = 0,
    /// The peer was refused too often. It writes this.
    Made = 1,
    /// The spare buffer is kept for it. The receiver writes this.
    Kept = 2,
}

/// Changes a claim. Returns whether it was what it was taken for.
pub(crate) fn change(word: &AtomicU64, from: Claim, to: Claim) -> bool {
    word.compare_exchange(from as u64, to as u64, Ordering::AcqRel, Ordering::Acquire).is_ok()
}

/// Takes a buffer of a pool, if there is one.
fn take_posted(posted: &AtomicU64) -> bool {
    let less_one = |count: u64| count.checked_sub(1);
    posted.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less_one).is_ok()
}

/// A writer's way to the posted buffers of a receiver, or to the slots of its pool.
#[derive(Debug)]
pub(crate) enum Taker {
    /// Those of its connection.
    Connection {
        /// The receiver's count of buffers posted since the start.
        posted: NonNull<AtomicU64>,
        /// The buffers at the start, and the last that was read there.
        known: u64,
        /// Buffers at the start.
        first: u64,
        /// Buffers taken.
        taken: u64,
    },
    /// Those of a pool.
    Pool {
        words: NonNull<PoolWords>,
        /// Our claim.
        claim: NonNull<AtomicU64>,
        /// Whether we have made one that we have not seen end.
        has_claimed: bool,
        /// How often our next message was refused.
        refusals: u32,
        /// After how many refusals we claim a buffer.
        refusals_most: u32,
    },
    /// No buffers but slots of one pool.
    Slots(SlotTaker),
}

impl Taker {
    /// Of a connection with so many buffers at the start.
    ///
    /// # Safety
    /// The word must stay valid as long as the value is used.
    pub unsafe fn of_connection(posted: NonNull<AtomicU64>, first: u32) -> Self {
        let first = u64::from(first);
        Taker::Connection { posted, known: first, first, taken: 0 }
    }

    /// Of a pool.
    ///
    /// # Safety
    /// All words must stay valid as long as the value is used.
    pub unsafe fn of_pool(words: NonNull<PoolWords>, claim: NonNull<AtomicU64>, refusals_most: u32) -> Self {
        Taker::Pool { words, claim, has_claimed: false, refusals: 0, refusals_most }
    }

    /// Takes a buffer for `count` packets, if one is posted, and returns for how many there is room. The caller's
    /// `writing` word is odd meanwhile, and until the packets are there.
    #[inline(never)]
    pub fn take_buffer(&mut self, count: u32) -> u32 {
        if self.take() { count } else { 0 }
    }

    /// Whether it takes buffers that are posted, and not slots of a pool.
    pub fn takes_buffers(&self) -> bool {
        !matches!(self, Taker::Slots(_))
    }

    /// Whether the receiver is to be woken, as we have just begun to wait for slots of it.
    pub fn poll_news(&mut self) -> bool {
        match self {
            Taker::Slots(taker) => taker.poll_news(),
            Taker::Connection { .. } | Taker::Pool { .. } => false,
        }
    }

    /// Takes a buffer, if one is posted.
    pub fn take(&mut self) -> bool {
        match self {
            Taker::Slots(_) => false,
            Taker::Connection { posted, known, first, taken } => {
                if *taken >= *known {
                    // SAFETY: valid by the promise made to the constructor. `Acquire`: who posts a buffer has retrieved
                    // what was in it before.
                    *known = first.saturating_add(unsafe { posted.as_ref() }.load(Ordering::Acquire));
                }
                let is_there = *taken < *known;
                *taken += u64::from(is_there);
                is_there
            }
            Taker::Pool { words, claim, has_claimed, refusals, refusals_most } => {
                // SAFETY: valid by the promise made to the constructor.
                let (words, claim) = unsafe { (words.as_ref(), claim.as_ref()) };
                let is_there = take_from_pool(words, claim, has_claimed);
                if is_there {
                    *refusals = 0;
                    return true;
                }
                *refusals = refusals.saturating_add(1);
                if *refusals >= *refusals_most && !*has_claimed {
                    *has_claimed = true;
                    claim.store(Claim::Made as u64, Ordering::Release);
                    words.claims.fetch_add(1, Ordering::AcqRel);
                }
                false
            }
        }
    }
}

/// Takes the buffer that is kept for us, or one of the pool.
fn take_from_pool(words: &PoolWords, claim: &AtomicU64, has_claimed: &mut bool) -> bool {
    if !*has_claimed {
        return take_posted(&words.posted);
    }
    if change(claim, Claim::Kept, Claim::None) {
        *has_claimed = false;
        return true;
    }
    if claim.load(Ordering::Acquire) == Claim::None as u64 {
        // It was kept for too long, and others have it.
        *has_claimed = false;
    }
    if !take_posted(&words.posted) {
        return false;
    }
    if std::mem::take(has_claimed)
        && !change(claim, Claim::Made, Claim::None)
        && change(claim, Claim::Kept, Claim::None)
    {
        // One was kept for us just now: then that is ours, and the other goes back.
        words.posted.fetch_add(1, Ordering::AcqRel);
    }
    true
}

/// For whom the spare buffer is kept.
#[derive(Clone, Copy, Debug)]
struct Kept {
    peer: PeerId,
    /// When it was first seen that it has not been fetched.
    since: Option<Instant>,
}

/// The receiver's side of a pool: how many buffers there are, and for whom.
#[derive(Debug)]
pub(crate) struct Pool {
    words: NonNull<PoolWords>,
    /// Buffers that are to be posted.
    window: u64,
    /// An event is due when fewer than so many are left.
    limit: u64,
    /// No event has come since the limit was set.
    is_armed: bool,
    is_event_due: bool,
    /// Most buffers that there may be.
    bound: u64,
    /// Buffers that there are: posted, spare, and taken.
    total: u64,
    /// What `posted` was after we last changed it.
    known: u64,
    /// The spare buffer is there, and kept for nobody.
    has_spare: bool,
    kept: Option<Kept>,
    /// Claims that were looked for.
    claims_seen: u64,
    /// From which place on to look for claims.
    turn: u32,
}

impl Pool {
    /// A pool with its first window and a spare buffer, and an event when fewer than `limit` are left.
    ///
    /// # Safety
    /// The words must stay valid as long as the value is used. There must be one such value.
    pub unsafe fn new(words: NonNull<PoolWords>, window: u32, limit: u32, bound: u32) -> Self {
        let window = u64::from(window);
        let pool = Pool {
            words,
            window,
            limit: limit.into(),
            is_armed: true,
            is_event_due: false,
            bound: bound.into(),
            total: window + 1,
            known: window,
            has_spare: true,
            kept: None,
            claims_seen: 0,
            turn: 0,
        };
        pool.words().posted.store(window, Ordering::Release);
        pool
    }

    fn words(&self) -> &PoolWords {
        // SAFETY: valid by the promise made to `new`.
        unsafe { self.words.as_ref() }
    }

    /// Buffers that are posted. More than there are can nobody have left.
    fn posted(&self) -> u64 {
        self.words().posted.load(Ordering::Acquire).min(self.total)
    }

    /// Buffers that were taken and whose messages have not been processed. `claims` leads to the claim of a peer.
    fn taken(&mut self, claims: &dyn Claims) -> u64 {
        let posted = self.posted();
        self.note_fetched(claims);
        self.total.saturating_sub(posted + self.spare())
    }

    /// Whether the spare buffer is there, kept or not, as a number.
    fn spare(&self) -> u64 {
        u64::from(self.has_spare || self.kept.is_some())
    }

    /// Sees whether the spare buffer was fetched by the peer that it was kept for.
    fn note_fetched(&mut self, claims: &dyn Claims) {
        self.kept = self.kept.filter(|kept| claims.read(kept.peer) == Claim::Kept as u64);
    }

    /// A message was processed: its buffer is free. It is the spare one, if that was fetched, or posted again, or, if
    /// enough are posted, no buffer any more.
    pub fn post_again(&mut self, claims: &dyn Claims) {
        if self.taken(claims) > 0 {
            self.give(1);
        }
        self.keep_spare(claims);
    }

    /// So many buffers that were taken are free.
    fn give(&mut self, buffers: u64) {
        for _ in 0..buffers {
            if self.spare() == 0 {
                self.has_spare = true;
                continue;
            }
            if self.posted() >= self.window {
                self.total -= 1;
                continue;
            }
            self.add(1);
        }
    }

    /// Posts so many. Whether the limit was passed is seen here: only we add.
    fn add(&mut self, buffers: u64) {
        let before = self.words().posted.fetch_add(buffers, Ordering::AcqRel);
        self.note_low(before);
        self.known = before.saturating_add(buffers);
    }

    /// So many were posted just now. Some have been taken since we last knew, if there are fewer than then.
    fn note_low(&mut self, posted: u64) {
        if self.is_armed && posted < self.limit && posted < self.known {
            self.is_armed = false;
            self.is_event_due = true;
        }
    }

    /// Keeps the spare buffer, if it is there, for the next peer that claims it.
    fn keep_spare(&mut self, claims: &dyn Claims) {
        let made = self.words().claims.load(Ordering::Acquire);
        if !self.has_spare || made == self.claims_seen {
            return;
        }
        let places = claims.places();
        for place in (self.turn.min(places)..places).chain(0..self.turn.min(places)).map(PeerId) {
            if claims.read(place) == Claim::Made as u64 && claims.change(place, Claim::Made, Claim::Kept) {
                self.has_spare = false;
                self.kept = Some(Kept { peer: place, since: None });
                self.turn = place.0 + 1;
                return;
            }
        }
        // All that were made by then have ended.
        self.claims_seen = made;
    }

    /// A window and its limit.
    pub fn set_window(&mut self, window: u32, limit: u32, claims: &dyn Claims) {
        (self.window, self.limit, self.is_armed) = (window.into(), limit.into(), true);
        let missing = self.window.saturating_sub(self.posted()).min(self.bound.saturating_sub(self.total));
        self.note_fetched(claims);
        self.total += missing;
        self.known = self.posted();
        self.add(missing);
        self.keep_spare(claims);
    }

    /// Whether fewer buffers than the limit were left since this last said so.
    pub fn poll_limit_reached(&mut self) -> bool {
        std::mem::take(&mut self.is_event_due)
    }

    /// Whether [`poll_limit_reached`](Self::poll_limit_reached) has something to say.
    pub fn is_event_due(&self) -> bool {
        self.is_event_due
    }

    /// Takes back the spare buffer if the peer that it is kept for has not fetched it for so long.
    pub fn expire(&mut self, now: Instant, after: Duration, claims: &dyn Claims) {
        self.note_fetched(claims);
        if let Some(kept) = &mut self.kept {
            let is_late = now.since(*kept.since.get_or_insert(now)) >= after;
            let peer = kept.peer;
            if is_late {
                self.take_back(peer, claims);
            }
        }
        self.keep_spare(claims);
    }

    /// Takes back the spare buffer, if it is kept for this peer and was not fetched.
    fn take_back(&mut self, peer: PeerId, claims: &dyn Claims) {
        let is_taken_back = claims.change(peer, Claim::Kept, Claim::None);
        if self.kept.take_if(|kept| kept.peer == peer).is_some() {
            self.has_spare = is_taken_back;
        }
    }

    /// A peer is gone: what is kept for it goes to others. Its place may go to another peer.
    pub fn forget(&mut self, peer: PeerId, claims: &dyn Claims) {
        self.take_back(peer, claims);
        claims.change(peer, Claim::Made, Claim::None);
        self.keep_spare(claims);
    }

    /// Puts the count right, if nothing is under way. A writer that has died between taking a buffer and publishing its
    /// message leaves one that is missing.
    ///
    /// Every take happens while its writer's `writing` word is odd, and until its message is published. So if no word
    /// is odd *after* we have read the count, the messages of all takes up to then are published, or their writers are
    /// dead and gone; and if there is nothing left to retrieve after that, all these messages were processed, and their
    /// buffers given back. Then what still counts as taken was taken and never filled. `is_quiet` says whether both
    /// hold. While others keep the mailbox busy it may be long until they do: that costs a buffer for so long. When
    /// none is left, nothing can be written, and it is quiet.
    pub fn settle(&mut self, claims: &dyn Claims, is_quiet: impl FnOnce() -> bool) -> u64 {
        let found = self.words().posted.load(Ordering::Acquire);
        let taken = self.taken(claims);
        if found <= self.total && taken == 0 || !is_quiet() {
            return 0;
        }
        if found > self.total {
            // Somebody has written what cannot be.
            let right = self.total.saturating_sub(self.spare());
            let _ = self.words().posted.compare_exchange(found, right, Ordering::AcqRel, Ordering::Relaxed);
            return 0;
        }
        self.give(taken);
        self.keep_spare(claims);
        taken
    }
}

/// The claims of all peers, where they lie.
pub(crate) trait Claims {
    /// How many places there are to look at.
    fn places(&self) -> u32;
    /// What the word of a place says.
    fn read(&self, peer: PeerId) -> u64;
    /// Changes the word of a place, if it says what is expected. Returns whether it did.
    fn change(&self, peer: PeerId, from: Claim, to: Claim) -> bool;
}

#[cfg(test)]
impl PoolWords {
    /// In ordinary memory.
    pub(super) fn fresh() -> Self {
        PoolWords { posted: AtomicU64::new(0), claims: AtomicU64::new(0) }
    }
}

#[cfg(all(test, loom))]
impl Pool {
    pub(super) fn taken_for_tests(&mut self, claims: &dyn Claims) -> u64 {
        self.taken(claims)
    }

    pub(super) fn spare_for_tests(&self) -> u64 {
        self.spare()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
