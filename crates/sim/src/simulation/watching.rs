//! [`Look`]: a look at all processes from outside, while they run.

use tidegate_message::Counter;

use crate::Time;
use crate::process::Process;

/// What somebody sees who looks at a simulation at some moment. Nothing in the simulation depends on it.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// The moment.
    pub at: Time,
    pub(super) processes: &'a [Process],
}

impl Look<'_> {
    /// The counters of all processes, by rank, in the order of [`Counter::ALL`].
    pub fn counters(&self) -> impl Iterator<Item = [u64; Counter::COUNT]> {
        self.processes.iter().map(Process::counters)
    }
}
