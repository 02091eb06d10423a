//! [`Outcome`]: the result of a run.

use tidegate_message::{Counter, WaitCause};

use crate::checker::Bounds;
use crate::cost::Spent;
use crate::flight::Rank;
use crate::task::Sample;
use crate::{Time, Totals};

/// The result of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessOutcome {
    /// Whether it takes packets more slowly than others ([`SlowReceivers`](crate::SlowReceivers)).
    pub is_slow: bool,
    /// When its program ended.
    pub finished: Time,
    /// Its endpoint's counters, in the order of [`Counter::ALL`].
    pub counters: [u64; Counter::COUNT],
    /// What it spent its time on until then.
    pub spent: Spent,
    /// How long peers were blocked that it had asked to return credits, from request to answer, added over peers.
    pub blocked: Time,
    /// For whom its sends waited; only of runs that somebody looked at
    /// ([`run_watched`](crate::Simulation::run_watched)).
    pub waits: Vec<RankWait>,
    /// Buffers that it had posted at the end, where receivers post buffers.
    pub buffers: PostedBuffers,
}

/// Sends of a process that waited for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankWait {
    /// For whom; `None`: for processes of which no account of their own was kept.
    pub rank: Option<Rank>,
    /// For what.
    pub cause: WaitCause,
    /// How often.
    pub count: u64,
    /// How long, in all.
    pub waited: Time,
}

/// Buffers that a process has posted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PostedBuffers {
    /// Most of one connection; of a pool all.
    pub most: u32,
    /// All of them.
    pub all: u32,
}

impl ProcessOutcome {
    /// One counter.
    #[must_use]
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters[counter as usize]
    }
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// When the last program ended that has.
    pub time: Time,
    /// When the run was ended before its programs had, if it was: then nothing else here is of a whole run.
    pub cut: Option<Time>,
    /// The processes, by rank.
    pub processes: Vec<ProcessOutcome>,
    /// What programs recorded, in order of rank, each rank's in order of time.
    pub samples: Vec<Sample>,
    /// The network's counts.
    pub network: Totals,
    /// Packets of adapters to each other: refusals, and invitations and acknowledgements of a pool of slots.
    pub answers: u64,
    /// Times that the run could not have beaten.
    pub bounds: Bounds,
    /// Events of the simulation.
    pub events: u64,
    /// Heap bytes of all mailboxes at the end. They never shrink, so this is their high-water mark.
    pub mailbox_bytes: usize,
}

impl Outcome {
    /// One counter over all processes: the sum or the maximum, as [`Counter::aggregate`] says.
    #[must_use]
    pub fn counter(&self, counter: Counter) -> u64 {
        counter.aggregate().of(self.processes.iter().map(|process| process.counter(counter)))
    }

    /// The samples of one label.
    pub fn samples_of(&self, label: &str) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |sample| sample.label == label)
    }
}
