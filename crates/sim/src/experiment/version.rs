//! [`CODE`] and [`RunKey`]: what tells kept runs apart.
//!
//! A run is decided by its case, its seed, its noise, and the code of flow control, messages and simulator; not by the
//! machine, nor by the compiler or its options, because time is counted in whole picoseconds. So the fingerprint is a
//! hash of that source code, which `build.rs` takes, comments left out. A hash of the executable file would be simpler,
//! and would throw hours of runs away with every change of a picture, of a statement about the results, or of the
//! compiler. What a figure does with its runs (`p_*.rs`, `report.rs` and others in this folder) therefore does not
//! count; which cases it asks for does, because a case is part of the key with all its fields.

use serde::{Deserialize, Serialize};

use super::case::Case;
use super::hash::Hash;
use super::measurement::Measurement;
use crate::Noise;

/// The fingerprint of the code that decides what runs give.
pub const CODE: &str = env!("TIDEGATE_SIM_CODE");

/// What decides a run, the code excepted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunKey {
    /// All fields of the case.
    pub case: String,
    /// The seed.
    pub seed: u64,
    /// Mean interval between interruptions, in picoseconds.
    pub noise_interval_ps: u64,
    /// Length of an interruption, in picoseconds.
    pub noise_duration_ps: u64,
}

impl RunKey {
    pub(super) fn new(case: &Case, seed: u64, noise: Noise) -> Self {
        let Noise { interval, duration } = if case.has_processes() { noise } else { Noise::default() };
        RunKey { case: case.key(), seed, noise_interval_ps: interval.0, noise_duration_ps: duration.0 }
    }

    /// A short name, for a file.
    #[must_use]
    pub fn digits(&self) -> String {
        let mut hash = Hash::new();
        hash.add(self.case.as_bytes());
        for number in [self.seed, self.noise_interval_ps, self.noise_duration_ps] {
            hash.add(&number.to_le_bytes());
        }
        hash.digits()
    }
}

/// A run that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FinishedRun {
    /// [`CODE`] of the program that did it.
    pub code: String,
    /// What was run.
    pub key: RunKey,
    /// How long it took.
    pub seconds: f64,
    /// What came of it.
    pub measurement: Measurement,
}

/// How long a run took. This depends on the machine, so it is no part of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct RunTime {
    /// The name of the run's key ([`RunKey::digits`]): figures share runs.
    pub run: String,
    /// How long it took, in seconds of the clock on the wall.
    pub seconds: f64,
}

/// The name, among those of runs, of a search that is no run.
pub const SEARCH: &str = "search";

/// Where runs that have ended are kept, for this process and for others.
pub trait RunStore: Sync {
    /// The run that is kept under this key, if there is one.
    fn load(&self, key: &RunKey) -> Option<FinishedRun>;

    /// Tells other processes that this one does the run. `None`: another one is doing it.
    fn claim(&self, key: &RunKey) -> Option<Box<dyn RunClaim>>;
}

/// The right to do a run; it ends when this is dropped.
pub trait RunClaim {
    /// Keeps what came of it.
    fn keep(self: Box<Self>, run: &FinishedRun);
}

/// Keeps nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoStore;

impl RunStore for NoStore {
    fn load(&self, _key: &RunKey) -> Option<FinishedRun> {
        None
    }

    fn claim(&self, _key: &RunKey) -> Option<Box<dyn RunClaim>> {
        Some(Box::new(NoStore))
    }
}

impl RunClaim for NoStore {
    fn keep(self: Box<Self>, _run: &FinishedRun) {}
}

#[cfg(test)]
mod tests {
    #[test]
    fn files_that_decide_runs_use_no_others_of_this_folder() {
        let sources = [
            include_str!("case.rs"),
            include_str!("bulk_run.rs"),
            include_str!("exchange_run.rs"),
            include_str!("fabric.rs"),
            include_str!("machine.rs"),
            include_str!("operation.rs"),
            include_str!("program.rs"),
            include_str!("measurement.rs"),
        ]
        .map(str::lines);
        let uses = sources.into_iter().flatten().filter_map(|line| line.trim().strip_prefix("use super::"));
        for line in uses {
            // Estimates are made of measurements, and decide none.
            let allowed = [
                "measurement::",
                "operation::",
                "program::",
                "machine::",
                "case::",
                "fabric::",
                "bulk_run::",
                "exchange_run::",
                "estimate::",
            ];
            assert!(allowed.iter().any(|module| line.starts_with(module)), "`use super::{line}`");
        }
    }
}
