//! Time, as the endpoint is told it: how long peers have had sends waiting, how long receive memory has been under pressure, and when
//! progress is to be made though nobody wakes us.
//!
//! Reading a clock costs as much as a tenth of a short message, so the endpoint asks for the time only while something is going on
//! whose time counts ([`Endpoint::is_timed`]). What begins between two tellings counts from the second.

use crate::Endpoint;
use crate::counter::Counter;
use crate::link::Link;
use std::time::Duration;
use tidegate_flow::Instant;

/// How long an endpoint sleeps at most while something waits for room in a peer's mailbox: no packet tells when there is some.
const RETRY_INTERVAL: Duration = Duration::from_millis(1);

/// What the endpoint knows of time.
#[derive(Debug, Default)]
pub(crate) struct Timing {
    /// What it was told last.
    now: Instant,
}

impl Timing {
    /// The moment that was told last.
    pub(crate) fn now(&self) -> Instant {
        self.now
    }
}

impl<L: Link> Endpoint<L> {
    /// Whether something is going on whose time counts. While it is, [`progress`](Self::progress) wants the present; while it is
    /// not, any moment will do that is not later, such as the last one told.
    #[inline]
    pub fn is_timed(&self) -> bool {
        // One test for everything that is rarely there.
        self.bulk.pulls.is_timed() || self.deferral.windows.is_timed() || self.egress.is_timed()
    }

    /// Tells the endpoint what time it is. [`progress`](Self::progress) does; who can afford it also says so after each operation, so
    /// that waiting counts from its beginning. Time never goes back: an earlier moment is taken for the last one.
    #[inline]
    pub fn tell_time(&mut self, now: Instant) {
        if now > self.timing.now || self.egress.has_new_delays() {
            self.account_for_time(now);
        }
    }

    #[cold]
    fn account_for_time(&mut self, now: Instant) {
        let timing = &mut self.timing;
        let passed = now.since(timing.now).as_nanos() as u64;
        timing.now = timing.now.max(now);
        let waited = self.egress.tell_time();
        if waited > 0 {
            self.count(Counter::DelayNanoseconds, passed.saturating_mul(waited.into()));
        }
        if self.deferral.windows.tell_time(self.timing.now) {
            self.count(Counter::PressureNanoseconds, passed);
        }
        self.bulk.pulls.tell_time(now);
    }

    /// When progress is to be made at the latest, though nothing has come: at a moment told, or earlier, if there is work left that
    /// only we can do; after a while if something waits of which nobody will tell. `None`: sleep until something comes.
    pub fn next_timeout(&self) -> Option<Instant> {
        let now = self.timing.now;
        if self.bulk.gate.waiting() > 0 || self.streams_can_move() || self.reads_can_move() || self.requests_can_move()
        {
            return Some(now);
        }
        let retry = (self.egress.to_retry() > 0).then(|| now + RETRY_INTERVAL);
        [retry, self.egress.next_timeout()].into_iter().flatten().min()
    }

    /// Does what was due until `now`. Returns whether anything was.
    #[inline]
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> bool {
        self.tell_time(now);
        let is_due = self.egress.next_timeout().is_some_and(|due| due <= now);
        if is_due {
            self.egress.handle_timeout(&mut self.link, now);
            self.quarantine_overdrawn();
            while let Some(peer) = self.egress.poll_ready() {
                self.resume(peer);
            }
        }
        is_due
    }
}
