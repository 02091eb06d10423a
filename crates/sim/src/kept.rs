//! [`CODE`] and [`RunKey`]: what tells kept runs apart.
//!
//! A run is decided by what is run, its seed, its noise, and the code of flow control, messages and simulator; not by
//! the machine, nor by the compiler or its options, because time is counted in whole picoseconds. So the fingerprint
//! is a hash of that source code, which `build.rs` takes, comments left out. A hash of the executable file would be
//! simpler, and would throw hours of runs away with every change of another command, or of the compiler.

use serde::{Deserialize, Serialize};

use crate::hash::Hash;
use crate::measurement::Measurement;

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

/// A run that has ended. `M` is what is kept of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FinishedRun<M = Measurement> {
    /// [`CODE`] of the program that did it.
    pub code: String,
    /// What was run.
    pub key: RunKey,
    /// How long it took.
    pub seconds: f64,
    /// What came of it.
    pub measurement: M,
}

/// Where runs that have ended are kept, for this process and for others.
pub trait RunStore<M = Measurement>: Sync {
    /// The run that is kept under this key, if there is one.
    fn load(&self, key: &RunKey) -> Option<FinishedRun<M>>;

    /// Tells other processes that this one does the run. `None`: another one is doing it.
    fn claim(&self, key: &RunKey) -> Option<Box<dyn RunClaim<M>>>;
}

/// The right to do a run; it ends when this is dropped.
pub trait RunClaim<M = Measurement> {
    /// Keeps what came of it.
    fn keep(self: Box<Self>, run: &FinishedRun<M>);
}

/// Keeps nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoStore;

impl<M> RunStore<M> for NoStore {
    fn load(&self, _key: &RunKey) -> Option<FinishedRun<M>> {
        None
    }

    fn claim(&self, _key: &RunKey) -> Option<Box<dyn RunClaim<M>>> {
        Some(Box::new(NoStore))
    }
}

impl<M> RunClaim<M> for NoStore {
    fn keep(self: Box<Self>, _run: &FinishedRun<M>) {}
}
