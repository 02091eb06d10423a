//! `shared_window`: one pool of buffers for all peers, whose size adapts (A §3).
//!
//! The receiver posts a *window* of buffers that messages of any peer may take. When fewer than a *limit* are left, the
//! adapter raises an event, and the receiver makes the window larger and posts buffers up to it:
//!
//! > window = min(2^events × first, most), limit = window / 2
//!
//! Senders do no accounting, and messages that find no buffer are refused and go again after a timer, as under `rnr`.
//!
//! What A says and where that is here:
//!
//! * the two formulas: [`SharedWindow::handle_limit_reached`]; the number of events saturates when the window cannot
//!   grow any more. A window that is never exceeded stays: "currently, our design does not reduce the window size";
//! * the event is one-shot, and raised when the number *drops below* the limit: [`ReceiveQueues`](crate::ReceiveQueues)
//!   (notes, 17). With the first window of 8 the first limit is 4;
//! * a fixed window (A's baseline, 512): first and most alike. Then an event only posts what is missing.
//!
//! Where A is silent or this departs from it:
//!
//! * each buffer is posted again once its message was processed (notes, 15: if only events posted buffers, every
//!   program would have the largest window after nine events), but no more are posted than the window says (notes, 16);
//! * a window of 1 has the limit 1 instead of 0, or it could never grow;
//! * A's event is an interrupt, which needs no progress of the application (notes, 18): who carries this scheme decides
//!   when it calls [`handle_limit_reached`](Scheme::handle_limit_reached). Without progress, buffers are posted for
//!   those that are full until there are [`pool_bound`](crate::Buffers::pool_bound) in all; A names no bound;
//! * first come, first served; but a sender that was refused `refusals_most` times in a row may take one *spare*
//!   buffer, which nobody else gets, or it might starve beside others that are never refused. The rule, why it is
//!   live, why no other buffer is kept for anybody, and why `refusals_most` is no parameter: `adapter/spare.rs`.
//!
//! Invariants: window ≤ most; posted ≤ window; posted + spare + full ≤ bound; while the receiver processes messages and
//! all who were refused go on trying, each other sender gets the spare buffer at most twice before a message that was
//! refused `refusals_most` times.

use super::interface::Scheme;
use crate::unaccounted::Unaccounted;
use crate::{Answer, Config, Credits, Inspection, Instant, Packet, PeerId, Posting, Regions, SchemeStats, Violation};
use std::collections::VecDeque;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SharedWindow {
    sender: Unaccounted,
    first: u32,
    most: u32,
    /// Events so far, as long as they make the window larger.
    events: u32,
    postings: VecDeque<Posting>,
    limit_events: SchemeStats,
}

impl SharedWindow {
    /// `min(2^events × first, most)`.
    fn window(&self) -> u32 {
        (u64::from(self.first) << self.events).min(self.most.into()) as u32
    }
}

impl Scheme for SharedWindow {
    fn new(config: &Config, _regions: Regions) -> Self {
        SharedWindow {
            sender: Unaccounted::new(config),
            first: config.buffers.pool_first,
            most: config.buffers.pool_most,
            events: 0,
            postings: VecDeque::new(),
            limit_events: SchemeStats::default(),
        }
    }

    fn request(&mut self, to: PeerId, wanted: u32, _now: Instant) -> Answer {
        self.sender.request(to, wanted)
    }

    fn give_back(&mut self, to: PeerId, credits: Credits) {
        self.sender.give_back(to, credits);
    }

    fn handle_refused(&mut self, to: PeerId, credits: Credits, now: Instant) {
        self.sender.give_back(to, credits);
        self.sender.retries().refuse(to, now);
    }

    fn handle_late_refusal(&mut self, _by: PeerId, _now: Instant) {
        self.sender.retries().count_late_refusal();
    }

    fn before_send(&mut self, to: PeerId, packet: &mut Packet, left: u32) -> u32 {
        self.sender.before_send(to, packet, left);
        0
    }

    fn handle_retrieved(&mut self, from: PeerId, packet: &Packet) -> Result<u32, Violation> {
        if self.sender.ends_buffer(from, packet)? {
            self.postings.push_back(Posting::Again(from));
        }
        Ok(0)
    }

    fn handle_retrieved_slots(&mut self, _from: PeerId, _slots: u32) -> Result<(), Violation> {
        Ok(())
    }

    fn handle_limit_reached(&mut self) {
        self.limit_events.limit_events += 1;
        // At the largest window another event would change nothing.
        if self.window() < self.most {
            self.events += 1;
        }
        let window = self.window();
        self.postings.push_back(Posting::Window { buffers: window, limit: crate::buffers::limit_of(window) });
    }

    fn has_control(&self) -> bool {
        !self.postings.is_empty()
    }

    fn poll_posting(&mut self) -> Option<Posting> {
        self.postings.pop_front()
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.sender.next_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.sender.handle_timeout(now);
    }

    fn poll_ready(&mut self) -> Option<PeerId> {
        self.sender.retries().poll_ready()
    }

    /// The window stays: it is everybody's.
    fn reset(&mut self, peer: PeerId) {
        self.sender.reset(peer);
        self.postings.retain(|posting| *posting != Posting::Again(peer));
    }

    fn credits(&self, to: PeerId) -> u32 {
        self.sender.credits(to)
    }

    fn refusals(&self, to: PeerId) -> u8 {
        self.sender.refusals(to)
    }

    fn heap_bytes(&self) -> usize {
        self.sender.heap_bytes()
    }

    fn tally(&self) -> SchemeStats {
        SchemeStats { limit_events: self.limit_events.limit_events, ..self.sender.tally() }
    }

    fn inspect(&self, into: &mut Inspection) {
        into.window = self.window();
    }
}
