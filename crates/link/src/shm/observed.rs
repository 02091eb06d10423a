//! What is open, for readers of the page of counters: when it is to be written, and that it is; and how long the
//! application polls in vain.

use super::spin::Looked;
use super::state::ShmLink;
use super::wait_meter::WaitChange;
use crate::clock;
use crate::stats::{Chunk, ROWS_INTERVAL};
use tidegate_flow::Instant;
use tidegate_message::Snapshot;

impl ShmLink {
    /// Whether anybody may read what is open.
    pub fn is_observed(&self) -> bool {
        self.stats.is_public()
    }

    /// Whether there is something to [take](Self::take_wait_change), or what is open should be
    /// [written](Self::write_rows) now: it may be read, and it was not written for a few milliseconds. Polls that find
    /// nothing find that out, because those look at the clock.
    #[inline]
    pub fn is_look_due(&self) -> bool {
        self.is_look_due
    }

    /// The same for who knows what time it is.
    pub fn is_look_due_at(&mut self, now: Instant) -> bool {
        self.is_look_due |= self.stats.is_public() && now >= self.next_look;
        self.is_look_due
    }

    /// A run of empty polls is over, and with it the wait of the application, if it was one.
    #[cold]
    pub(super) fn end_run(&mut self, looked: Looked) {
        if self.is_observed() {
            let change = self.wait_meter.end(clock::now(), looked, clock::ran);
            self.note_wait_change(change);
        }
    }

    /// That the application has begun to poll in vain, or has ended to, if it was not told before; the end of one wait
    /// comes before the beginning of the next.
    pub fn take_wait_change(&mut self) -> Option<WaitChange> {
        self.is_look_due = false;
        let ends = self.wait_ends.take().map(WaitChange::Ends);
        ends.or_else(|| self.wait_begins.take().map(WaitChange::Begins))
    }

    /// The endpoint closes: a wait of the application ends, which is still to be taken.
    pub fn end_wait(&mut self) {
        if let Some(looked) = self.spin.reset() {
            self.end_run(looked);
        }
    }

    pub(super) fn note_wait_change(&mut self, change: Option<WaitChange>) {
        match change {
            None => return,
            Some(WaitChange::Begins(since)) => self.wait_begins = Some(since),
            // A wait that nobody was told of has not been.
            Some(WaitChange::Ends(until)) => {
                if self.wait_begins.take().is_none() {
                    self.wait_ends = Some(until);
                }
            }
        }
        self.is_look_due = true;
    }

    /// The application, which has armed the link, may sleep until something comes. That counts as a look, so that the
    /// next find ends the wait.
    pub fn note_sleep(&mut self, now: Instant) {
        if self.is_observed() {
            self.spin.look();
            let change = self.wait_meter.fall_asleep(now);
            self.note_wait_change(change);
        }
    }

    /// Writes what is open into the page of counters.
    pub fn write_rows(&mut self, rows: &Snapshot<u64>) {
        self.is_look_due = false;
        self.next_look = rows.at + ROWS_INTERVAL;
        self.stats.write_rows(rows);
    }

    /// Says what reaches other hosts, for readers of the page of counters.
    pub fn note_network(&self, name: &str) {
        self.stats.set_network(name);
    }

    /// Says for them in what chunks long messages are taken, within the host and between hosts.
    pub fn note_chunks(&self, within: Chunk, between_hosts: Option<Chunk>) {
        self.stats.set_chunks(within, between_hosts);
    }
}
