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
//! **Who gets the next buffer of a pool.** A sender that is refused tries again after a time, and may find the pool
//! empty each time, because others that come at better moments take every buffer. So once it was refused
//! `refusals_most` times, it *claims* one: it says so in a word of its own ([`Claim`]). The receiver then does not post
//! the next free buffer, but *keeps* it for the sender, by a change to that word. Senders that claim are served in
//! turn. A sender that claims may still take a buffer of the pool, and then its claim is void. One that has a buffer
//! kept and does not fetch it, as its program computes, loses it after a while: others do not wait for it without end.
//!
//! **A hostile writer** may write anything into these words, and into the ring itself. What is read back is clamped.
//! Too low a count makes others wait until the pool settles, too high a one lets slots be overwritten that were not
//! retrieved, as a wild write pointer does (see the mailbox). The ring has one size, so memory is bounded anyway.

use super::super::sync::{AtomicU64, Ordering};
use std::collections::VecDeque;
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
    /// A buffer is kept for it. The receiver writes this.
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

/// A writer's way to the posted buffers of a receiver.
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

    /// Takes a buffer, if one is posted. The caller's `writing` word is odd meanwhile, and until the message is there.
    pub fn take(&mut self) -> bool {
        match self {
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

/// A buffer that is kept for a peer.
#[derive(Debug)]
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
    /// Buffers that there are: posted, kept, and taken.
    total: u64,
    /// What `posted` was after we last changed it.
    known: u64,
    kept: VecDeque<Kept>,
    /// Claims that were looked for.
    claims_seen: u64,
    /// From which place on to look for claims.
    turn: u32,
}

impl Pool {
    /// A pool with its first window, and an event when fewer than `limit` are left.
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
            total: window,
            known: window,
            kept: VecDeque::new(),
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
        self.kept.retain(|kept| claims.read(kept.peer) == Claim::Kept as u64);
        self.total.saturating_sub(posted + self.kept.len() as u64)
    }

    /// A message was processed: its buffer is free. It is kept for a peer that claims one, or posted again, or, if
    /// enough are posted, no buffer any more.
    pub fn post_again(&mut self, claims: &dyn Claims) {
        if self.taken(claims) > 0 {
            self.give(1, claims);
        }
    }

    /// So many buffers that were taken are free.
    fn give(&mut self, buffers: u64, claims: &dyn Claims) {
        for _ in 0..buffers {
            if self.keep_one(claims) {
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

    /// Keeps a free buffer for the next peer that claims one. Returns whether there is such a peer.
    fn keep_one(&mut self, claims: &dyn Claims) -> bool {
        let made = self.words().claims.load(Ordering::Acquire);
        if made == self.claims_seen {
            return false;
        }
        let places = claims.places();
        for place in (self.turn.min(places)..places).chain(0..self.turn.min(places)).map(PeerId) {
            if claims.read(place) == Claim::Made as u64 && claims.change(place, Claim::Made, Claim::Kept) {
                self.kept.push_back(Kept { peer: place, since: None });
                self.turn = place.0 + 1;
                return true;
            }
        }
        // All that were made by then have ended.
        self.claims_seen = made;
        false
    }

    /// A window and its limit.
    pub fn set_window(&mut self, window: u32, limit: u32, claims: &dyn Claims) {
        (self.window, self.limit, self.is_armed) = (window.into(), limit.into(), true);
        let missing = self.window.saturating_sub(self.posted()).min(self.bound.saturating_sub(self.total));
        self.total += missing;
        self.known = self.posted();
        self.give(missing, claims);
        self.known = self.posted();
    }

    /// Whether fewer buffers than the limit were left since this last said so.
    pub fn poll_limit_reached(&mut self) -> bool {
        std::mem::take(&mut self.is_event_due)
    }

    /// Whether [`poll_limit_reached`](Self::poll_limit_reached) has something to say.
    pub fn is_event_due(&self) -> bool {
        self.is_event_due
    }

    /// Takes back what is kept for peers that have not fetched it for so long.
    pub fn expire(&mut self, now: Instant, after: Duration, claims: &dyn Claims) {
        let mut kept = std::mem::take(&mut self.kept);
        let mut late = 0;
        kept.retain_mut(|kept| {
            let is_late = now.since(*kept.since.get_or_insert(now)) >= after;
            let is_taken_back = is_late && claims.change(kept.peer, Claim::Kept, Claim::None);
            late += u64::from(is_taken_back);
            !is_taken_back && claims.read(kept.peer) == Claim::Kept as u64
        });
        self.kept = kept;
        self.give(late, claims);
    }

    /// A peer is gone: what is kept for it goes to others. Its place may go to another peer.
    pub fn forget(&mut self, peer: PeerId, claims: &dyn Claims) {
        let is_kept = claims.change(peer, Claim::Kept, Claim::None);
        claims.change(peer, Claim::Made, Claim::None);
        self.kept.retain(|kept| kept.peer != peer);
        self.give(is_kept.into(), claims);
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
            let right = self.total.saturating_sub(self.kept.len() as u64);
            let _ = self.words().posted.compare_exchange(found, right, Ordering::AcqRel, Ordering::Relaxed);
            return 0;
        }
        self.give(taken, claims);
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

    pub(super) fn kept_for_tests(&self) -> u64 {
        self.kept.len() as u64
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
