//! `rnr`: no flow control but the hardware's (L §4.1).
//!
//! The receiver posts a fixed number of buffers for each connection, and posts each again as soon as its message has
//! been processed. Senders do no accounting: every message goes out at once. One that finds no buffer is refused
//! ("receiver not ready") and goes again after a timer, without limit, everything behind it on its connection in order
//! after it.
//!
//! What L says and where that is here:
//!
//! * "no flow control at the MPI level": [`Unaccounted`] grants whatever is wanted, a buffer at a time;
//! * "when there is no posted receive … this message will be dropped and RNR Nak will be issued. The sender will then
//!   wait for a timeout and re-transmit": [`ReceiveQueues`](crate::ReceiveQueues) refuses; where the link refuses as it
//!   writes, [`Retries`](crate::retries::Retries) is the timer; where it refuses later, the link has the timer, and the
//!   scheme only counts;
//! * "the retry count can be set to infinite": nothing counts retries down.
//!
//! Beside L: InfiniBand's adapters also slow down by credits of their own ("end-to-end flow control"), which MPI does
//! not see. That is the adapter's business: the simulator's has them, links have not. L does not state its timer; the
//! default is 0.64 ms.
//!
//! Invariants: posted buffers + buffers with messages that were not processed = the buffers of the connection; while
//! the receiver processes messages, each message is accepted in the end, since nobody else takes its connection's
//! buffers.

use super::interface::Scheme;
use crate::unaccounted::Unaccounted;
use crate::{Answer, Config, Credits, Instant, Packet, PeerId, Posting, Regions, SchemeStats, Violation};
use std::collections::VecDeque;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rnr {
    sender: Unaccounted,
    /// Buffers that are to be posted again.
    postings: VecDeque<Posting>,
}

impl Scheme for Rnr {
    fn new(config: &Config, _regions: Regions) -> Self {
        Rnr { sender: Unaccounted::new(config), postings: VecDeque::new() }
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

    /// "After the receiver finishes processing a buffer, it immediately re-posts the buffer" (L §3.2).
    fn handle_retrieved(&mut self, from: PeerId, packet: &Packet) -> Result<u32, Violation> {
        if self.sender.ends_buffer(from, packet)? {
            self.postings.push_back(Posting::Again(from));
        }
        Ok(0)
    }

    fn handle_retrieved_slots(&mut self, _from: PeerId, _slots: u32) -> Result<(), Violation> {
        Ok(())
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
        self.sender.tally()
    }
}
