//! [`Runs`]: one case with every seed.

use std::sync::Arc;

use tidegate_sim::{Estimate, Measurement};

/// One case with every seed, in the order of the seeds.
#[derive(Clone, Debug)]
pub(crate) struct Runs(pub Vec<Arc<Measurement>>);

impl Runs {
    /// One run that stands for none, where a point is computed.
    pub fn none() -> Self {
        Runs(vec![Arc::new(Measurement::not_done())])
    }

    /// A value of each run.
    pub fn estimate(&self, value: impl Fn(&Measurement) -> f64) -> Estimate {
        Estimate::new(self.0.iter().map(|run| value(run)))
    }

    /// A value of each run and the run of `other` with the same seed, hence with the same interruptions.
    pub fn paired(&self, other: &Runs, value: impl Fn(&Measurement, &Measurement) -> f64) -> Estimate {
        Estimate::new(self.0.iter().zip(&other.0).map(|(run, other)| value(run, other)))
    }

    /// Mean over processes and seeds of the time per repetition, in microseconds.
    pub fn time(&self) -> f64 {
        self.estimate(|run| run.time).mean()
    }

    /// Overhead in percent: the mean over the seeds of that of each run beside the reference with the same seed.
    pub fn overhead(&self, reference: &Runs) -> f64 {
        self.paired(reference, Measurement::overhead).mean()
    }
}
