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
}
