//! What is open, for readers of the page of counters: when it is to be written, and that it is.

use super::state::ShmLink;
use crate::stats::{Chunk, ROWS_INTERVAL, Rows};
use tidegate_flow::Instant;

impl ShmLink {
    /// Whether anybody may read what is open.
    pub fn is_observed(&self) -> bool {
        self.stats.is_public()
    }

    /// Whether what is open should be [written](Self::write_rows) now: somebody may read it, and it was not written for
    /// a few milliseconds. Polls that find nothing find that out, because those look at the clock.
    #[inline]
    pub fn is_look_due(&self) -> bool {
        self.is_look_due
    }

    /// The same for who knows what time it is.
    pub fn is_look_due_at(&mut self, now: Instant) -> bool {
        self.is_look_due |= self.stats.is_public() && now >= self.next_look;
        self.is_look_due
    }

    /// Writes what is open into the page of counters.
    pub fn write_rows(&mut self, rows: &Rows) {
        self.is_look_due = false;
        self.next_look = rows.written + ROWS_INTERVAL;
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
