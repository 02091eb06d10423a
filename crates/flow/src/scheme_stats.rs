//! [`SchemeStats`]: how often a scheme did what matters to its cost, for reports. No decision depends on it.

use std::fmt;
use std::hash::{Hash, Hasher};

/// Counts since the start. A tally is not a part of the state: any two are equal, and none
/// is shown, so that checkers that explore all states find those again that differ in their past alone.
#[derive(Clone, Copy, Default)]
pub struct SchemeStats {
    /// Monitoring points: senders that had used all they were given (P §6.4).
    pub monitoring_points: u64,
    /// Times that a sender took intended quota from another.
    pub steals: u64,
    /// Packets retrieved of senders that were blocked: asked to return credits, and the answer is not there.
    pub blocked_packets: u64,
    /// Messages of ours that found no buffer at their receiver, each time that they did.
    pub refusals: u64,
    /// Times that the timer of a refused message of ours ran out, so that it was tried again.
    pub retries: u64,
    /// Times that fewer buffers than the limit were left in our pool (A §3).
    pub limit_events: u64,
    /// Buffers that were added to connections whose messages had waited (L §4.3).
    pub buffers_added: u64,
    /// Messages that had waited and for which no buffer could be added: all that may be were.
    pub growths_denied: u64,
    /// Buffers that were taken from connections that had gone quiet.
    pub buffers_withdrawn: u64,
}

impl PartialEq for SchemeStats {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for SchemeStats {}

impl Hash for SchemeStats {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl fmt::Debug for SchemeStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SchemeStats")
    }
}
