//! Progress: what has come is handled, what can go on goes on, what is due is done.
//!
//! Time, as the endpoint is told it: how long peers have had sends waiting, how long receive memory has been under
//! pressure, and when progress is to be made though nobody wakes us.
//!
//! Reading a clock costs as much as a tenth of a short message, so the endpoint asks for the time only while something
//! is going on whose time counts ([`Endpoint::is_timed`]). What begins between two tellings counts from the second.

use super::Endpoint;
use crate::collections::slab::Key;
use crate::counter::Counter;
use crate::deferral::Sessions;
use crate::link::{Arrival, Link, LinkEvent, TransferId, TransferStatus};
use crate::operation::Target;
use crate::port::{EndedTransfer, TransferOwner};
use crate::turns::Pieces;
use std::time::Duration;
use tidegate_flow::Instant;

/// How long an endpoint sleeps at most while something waits for room in a peer's mailbox: no packet tells when there
/// is some.
const RETRY_INTERVAL: Duration = Duration::from_millis(1);

impl<L: Link> Endpoint<L> {
    /// Retrieves packets, moves bulk data, sends what waited, does what is due: a bounded amount of each. Returns
    /// whether anything happened. `now` is the present while [`is_timed`](Self::is_timed).
    #[inline]
    pub fn progress(&mut self, now: Instant) -> bool {
        debug_assert!(
            !self.port.egress.attention.is_low() || !self.may_have_work(),
            "attention is low, and there is work"
        );
        let was_due = !self.port.egress.attention.is_low() && self.do_what_is_due(now);
        let (mut retrieved, mut slots_retrieved) = (0, 0);
        let mut arrival = Arrival::none();
        while retrieved < self.port.config.packets_per_progress && self.port.ended.len() < self.port.config.operations {
            if !self.port.link.retrieve_into(&mut arrival) {
                break;
            }
            let slots = arrival.packet.header.slots();
            match slots {
                1 => self.handle_packet(arrival.source, &arrival.packet),
                _ => self.handle_long_packet(arrival.source, &arrival.packet),
            }
            retrieved += 1;
            slots_retrieved += slots;
        }
        if retrieved > 0 {
            self.port.count(Counter::PacketsReceived, slots_retrieved.into());
        }
        // Most messages leave nothing to do. The others have raised attention.
        let worked = if self.port.egress.attention.is_low() { self.handle_events() } else { self.work() };
        if !self.port.egress.attention.is_low() {
            self.lower_attention();
        }
        retrieved > 0 || worked || was_due
    }

    /// Whether it is known that the endpoint has nothing to do, and nothing to tell, as long as nothing comes.
    #[inline(always)]
    pub fn has_nothing_to_do(&self) -> bool {
        let has_nothing = self.port.egress.attention.is_low() && self.port.ended.len() == 0;
        debug_assert!(!has_nothing || !self.may_have_work(), "attention is low, and there is work");
        debug_assert!(
            !has_nothing || self.port.egress.next_timeout().is_none(),
            "something is due, and attention is low"
        );
        has_nothing
    }

    /// The same, though there may be something to tell.
    #[inline(always)]
    pub fn is_left_nothing(&self) -> bool {
        self.port.egress.attention.is_low()
    }

    /// Whether [`progress`](Self::progress) has nothing to do but what may have come, and nothing has: then it need not
    /// be called. This counts as a call of it.
    #[inline(always)]
    pub fn is_quiet(&mut self) -> bool {
        self.has_nothing_to_do() && self.port.link.is_quiet()
    }

    /// A call of progress is over, which has raised attention if it has left something.
    #[inline(never)]
    fn lower_attention(&mut self) {
        let has_work = self.port.egress.attention.has_not_been_raised() && self.may_have_work();
        self.port.egress.attention.lower(has_work);
        if self.port.egress.attention.is_low() && self.port.egress.attention.has_begun() {
            self.looks_for_work();
        }
    }

    /// Whether something is to be done, at once or at some time, though nothing comes.
    fn may_have_work(&self) -> bool {
        let backlog = self.port.egress.to_retry() + self.pulls.waiting() + self.pieces_left() + self.rma.in_a_row();
        let is_awaited = self.port.presence.has_departed() || !self.inbound.windows().inquiries.is_empty();
        backlog > 0 || is_awaited || self.is_timed() || self.has_sessions_to_move()
    }

    /// Whether a sender or a peek waits for a session of ours to move, or a receiver for one that we have.
    fn has_sessions_to_move(&self) -> bool {
        let windows = self.inbound.windows();
        windows.sessions().is_some_and(Sessions::has_work)
            || windows.waits_for_last()
            || !self.sends.show_rooms().leaving().is_empty()
    }

    /// Releases departed peers and handles time-outs, before packets are retrieved. Returns whether a time-out was due.
    #[inline(never)]
    fn do_what_is_due(&mut self, now: Instant) -> bool {
        self.end_losses();
        if self.port.presence.has_departed() {
            self.release_departed();
        }
        self.handle_timeout(now)
    }

    /// To be called before [`progress`](Self::progress) by a thread that goes on in place of the application: short
    /// accesses in a row go on waiting for each other while the application adds to them.
    #[inline]
    pub fn spare_row(&mut self) {
        if self.rma.in_a_row() > 0 {
            self.rma.spare_row();
        }
    }

    /// [`progress`](Self::progress) for a caller that has no room for the completions of what would be retrieved:
    /// whatever needs no packet goes on.
    pub fn progress_without_retrieving(&mut self, now: Instant) -> bool {
        self.port.egress.attention.raise();
        let was_due = self.handle_timeout(now);
        self.work() || was_due
    }

    /// Everything that is done without a packet.
    #[inline(never)]
    fn work(&mut self) -> bool {
        // First, so that what cannot be reached directly leaves in this call.
        let carried = self.rma.in_a_row() > 0 && self.rma.end_row(&mut self.port, self.sends.rooms());
        // One test for everything that is rarely there.
        let backlog = self.port.egress.to_retry() + self.pulls.waiting() + self.pieces_left();
        let worked = backlog > 0 && self.progress_backlog();
        self.end_losses();
        let happened = self.handle_events();
        // After the departures: no packet will come to end a peek that waited only for a peer that is gone.
        if !self.inbound.windows().inquiries.is_empty() {
            self.check_inquiries();
        }
        let mut moved = false;
        if self.has_sessions_to_move() {
            moved = self.leave_all() | self.serve_askers();
        }
        self.end_losses();
        carried | worked | happened | moved
    }

    /// Handles the events of the link. Returns whether there were any.
    #[inline(always)]
    fn handle_events(&mut self) -> bool {
        let mut happened = false;
        while let Some(event) = self.port.link.poll_event() {
            self.handle_event(event);
            happened = true;
        }
        happened
    }

    #[cold]
    fn progress_backlog(&mut self) -> bool {
        let before = self.port.egress.waiting() + self.pulls.waiting() + self.pieces_left();
        self.retry_full();
        let streamed = self.send_pieces();
        let pulled = self.pulls.continue_pulls(&mut self.port, &mut self.inbound);
        let after = self.port.egress.waiting() + self.pulls.waiting() + self.pieces_left();
        streamed || pulled || before != after
    }

    #[cold]
    fn handle_event(&mut self, event: LinkEvent) {
        self.port.egress.attention.raise();
        match event {
            LinkEvent::TransferEnded(id, status) => self.end_transfer(id, status),
            LinkEvent::WriteFailed(peer, why) => self.handle_unreachable(peer, &why),
            LinkEvent::LimitReached => self.handle_limit_reached(),
            LinkEvent::PlacesLow => self.handle_places_low(),
            LinkEvent::Refused(peer) => self.port.egress.handle_refusal(&self.port.link, peer, self.port.now),
            LinkEvent::Closing(peer) => self.port.presence.handle_closing(peer),
            LinkEvent::Departed(departure) => self.handle_departure(departure),
        }
        self.end_losses();
    }

    /// Sends pieces to peers for which nothing else waits. The three kinds of pieces begin in turn, so that none of
    /// them is always late.
    fn send_pieces(&mut self) -> bool {
        let mut moved = false;
        for pieces in self.turns.order() {
            moved |= match pieces {
                Pieces::Streams => self.sends.pump_streams(&mut self.port),
                Pieces::Reads => self.rma.send_reads(&mut self.port),
                Pieces::Requests => self.rma.send_requests(&mut self.port, self.sends.rooms()),
            };
        }
        if moved {
            self.turns.end_turn();
        }
        moved
    }

    /// Whether nothing is to be done but to wait for packets that are about to come: the rest of a message, or credits
    /// that sends of ours wait for.
    #[inline]
    pub fn expects_packets(&self) -> bool {
        let is_near = self.inbound.is_under_way() || self.port.egress.waiting() > 0;
        is_near && self.port.egress.to_retry() + self.pulls.waiting() + self.pieces_left() == 0
    }

    /// In our pool of posted buffers fewer are left than the limit, and more are to be posted. Links tell of it by
    /// [`LinkEvent::LimitReached`]; this is for those whose adapters interrupt the program (A §2.1).
    pub fn handle_limit_reached(&mut self) {
        self.port.egress.attention.raise();
        self.port.egress.handle_limit_reached(&mut self.port.link, self.port.now);
        self.end_losses();
    }

    /// Whether something is going on whose time counts. While it is, [`progress`](Self::progress) wants the present;
    /// while it is not, any moment will do that is not later, such as the last one told.
    #[inline]
    pub fn is_timed(&self) -> bool {
        // One test for everything that is rarely there.
        self.pulls.under_way().is_timed() || self.inbound.windows().is_timed() || self.port.egress.is_timed()
    }

    /// Tells the endpoint what time it is. [`progress`](Self::progress) does; who can afford it also says so after each
    /// operation, so that waiting counts from its beginning. Time never goes back: an earlier moment is taken for the
    /// last one.
    #[inline]
    pub fn tell_time(&mut self, now: Instant) {
        if now > self.port.now || self.port.egress.has_new_delays() {
            self.port.egress.attention.raise();
            self.account_for_time(now);
        }
    }

    #[cold]
    fn account_for_time(&mut self, now: Instant) {
        let passed = now.since(self.port.now).as_nanos() as u64;
        self.port.now = self.port.now.max(now);
        let waited = self.port.egress.tell_time(self.port.now);
        if waited > 0 {
            self.port.count(Counter::DelayNanoseconds, passed.saturating_mul(waited.into()));
        }
        if self.inbound.tell_time(self.port.now) {
            self.port.count(Counter::PressureNanoseconds, passed);
        }
        self.sends.rooms().tell_time(self.port.now);
        self.pulls.tell_time(now);
    }

    /// When progress is to be made at the latest, though nothing has come: at a moment told, or earlier, if there is
    /// work left that only we can do; after a while if something waits of which nobody will tell. `None`: sleep until
    /// something comes.
    pub fn next_timeout(&self) -> Option<Instant> {
        let now = self.port.now;
        if self.pulls.waiting() > 0
            || self.rma.has_batch()
            || self.sends.streams_can_move(&self.port)
            || self.rma.reads_can_move(&self.port)
            || self.rma.requests_can_move(&self.port, self.sends.show_rooms())
        {
            return Some(now);
        }
        let is_to_retry = self.port.egress.to_retry() > 0 || self.has_sessions_to_move();
        let retry = is_to_retry.then(|| now + RETRY_INTERVAL);
        [retry, self.port.egress.next_timeout()].into_iter().flatten().min()
    }

    /// Does what was due until `now`. Returns whether anything was.
    #[inline]
    pub(super) fn handle_timeout(&mut self, now: Instant) -> bool {
        self.tell_time(now);
        let is_due = self.port.egress.next_timeout().is_some_and(|due| due <= now);
        if is_due {
            self.port.egress.handle_timeout(&mut self.port.link, now);
            self.end_losses();
            while let Some(peer) = self.port.egress.poll_ready() {
                self.resume(peer);
            }
        }
        is_due
    }

    /// A transfer that the link had begun for us has ended.
    fn end_transfer(&mut self, id: TransferId, status: TransferStatus) {
        match self.port.transfers.end(Key(id.0)) {
            Some(EndedTransfer::Part(TransferOwner::Pull(key), length)) => {
                self.pulls.end_pull_part(&mut self.port, &mut self.inbound, key, length, status)
            }
            Some(EndedTransfer::Part(TransferOwner::Send(key, pull), _)) => {
                self.sends.end_written(&mut self.port, key, pull, status)
            }
            Some(EndedTransfer::Part(TransferOwner::Operation(key), _)) => {
                self.rma.end_transfer_part(&mut self.port, key, status);
            }
            Some(EndedTransfer::Last(ending)) => self.inbound.end_held(&mut self.port, ending),
            None => {}
        }
    }

    /// Ends the peeks that have their answers.
    #[cold]
    fn check_inquiries(&mut self) {
        self.inbound.check_inquiries(&mut self.port);
        if self.fences.are_raised() {
            // A message to ourselves may have been dropped.
            self.release_fenced(Target::Myself);
        }
    }
}
