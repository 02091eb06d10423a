//! What the owner of a mailbox does with its posted buffers, as its flow control says. Which writer gets one, and what
//! a dead writer leaves, is in `mailbox/buffers.rs`.

use super::mailbox::{Mailbox, Pool, Reader, SlotPool};
use super::segment::OwnSegment;
use super::state::ShmLink;
use crate::log::{self, Level};
use std::time::Duration;
use tidegate_flow::{Config, Header, Instant, Posting};

/// A buffer that is kept for a peer goes to others when the peer has not fetched it for two retry timers and so much
/// more: then its program computes.
const KEPT_LONGER: Duration = Duration::from_millis(200);
/// The count of calls of `poll_event` from which it takes few calls to the next look: the look comes when it wraps.
const POLLS_BEFORE_LOOK: u32 = u32::MAX - 15;

/// Our pool of posted buffers, if flow control has one.
pub(super) fn pool_of(flow: &Config, segment: &OwnSegment) -> Option<Pool> {
    let buffers = &flow.buffers;
    let has_one = flow.scheme.lends().is_pool();
    // SAFETY: it is a field of the value that owns the segment, and is never handed out.
    has_one
        .then(|| unsafe { Pool::new(segment.pool(), buffers.pool_first, buffers.pool_limit(), buffers.pool_bound()) })
}

/// The reader of our mailbox, with the pool that its slots go back to, if flow control has one.
pub(super) fn reader_of(flow: &Config, segment: &OwnSegment, mailbox: Mailbox) -> Reader {
    let reader = Reader::new(mailbox);
    if !flow.scheme.lends().is_pool_of_slots() {
        return reader;
    }
    let size = reader.size();
    // SAFETY: it is a field of the value that owns the segment, and is never handed out.
    reader.with_pool(unsafe { SlotPool::new(segment.slot_pool(), Box::new(segment.table()), flow.peers, size) })
}

impl ShmLink {
    /// Does what flow control wants done with posted buffers.
    pub(super) fn post_buffers(&mut self, posting: Posting) {
        if self.is_forked() {
            return;
        }
        match (&mut self.pool, posting) {
            (Some(pool), Posting::Again(_)) => pool.post_again(&self.table),
            (Some(pool), Posting::Window { buffers, limit }) => pool.set_window(buffers, limit, &self.table),
            (None, Posting::Again(peer)) => self.post_for(peer.0 as usize, 1),
            (None, Posting::More(peer, buffers)) => self.post_for(peer.0 as usize, buffers.into()),
            // The buffer of the message that was processed is free memory.
            (_, Posting::Withdrawn(_)) | (Some(_), Posting::More(..)) | (None, Posting::Window { .. }) => {}
        }
        if self.pool.as_ref().is_some_and(Pool::is_event_due) {
            // `poll_event` tells of it at its next look.
            self.polls = u32::MAX;
        }
    }

    /// So many buffers more for a peer.
    fn post_for(&mut self, peer: usize, buffers: u64) {
        if let Some(known) = self.peers.get_mut(peer) {
            known.posted += buffers;
            self.table.set_posted(tidegate_flow::PeerId(peer as u32), known.posted);
        }
    }

    /// A packet was retrieved that nobody asks for, and flow control does not see: if it ends a buffer of the pool,
    /// that is free.
    #[cold]
    pub(super) fn note_dropped(&mut self, header: Header) {
        if let Some(pool) = &mut self.pool
            && header.is_last_in_buffer()
        {
            pool.post_again(&self.table);
        }
    }

    /// Looks after senders that wait for slots, and looks again soon if slots are kept for others.
    #[cold]
    pub(super) fn look_at_waiting(&mut self, now: Instant) {
        if self.is_forked() {
            return;
        }
        if let Some(pool) = self.reader.slot_pool() {
            pool.look(now);
        }
        if self.reader.may_revoke() {
            self.polls = POLLS_BEFORE_LOOK;
        }
    }

    /// Looks after the pool: what is kept for those who do not come, and what dead writers have taken along.
    pub(super) fn look_at_pool(&mut self, now: Instant) {
        let table = self.table;
        let missing = self.reader.settle_pool(|| table.is_any_writing());
        if missing > 0 {
            log::line(Level::Info, || format!("{missing} slots had been taken and never filled: free again"));
        }
        let Some(pool) = &mut self.pool else { return };
        pool.expire(now, 2 * self.config.flow.buffers.retry_timer + KEPT_LONGER, &self.table);
        let reader = &self.reader;
        let missing = pool.settle(&table, || !table.is_any_writing() && reader.backlog() == Ok(0));
        if missing > 0 {
            log::line(Level::Info, || {
                format!("{missing} posted buffers had been taken and never filled: posted again")
            });
        }
    }
}
