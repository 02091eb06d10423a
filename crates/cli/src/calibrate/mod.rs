//! What this machine costs: `tidegate calibrate`.
//!
//! Two processes of this command exchange messages over the provider's own endpoints and shared memory, without any MPI
//! and without libfabric: what is between the calls of an MPI and the wire is measured, and nothing else. A trace of
//! `tidegate record` has the time that the MPI itself takes as computation.
//!
//! * `end.rs`: one end: an endpoint with a peer;
//! * `pair.rs`: the two processes, and what they measure together;
//! * `alone.rs`: what one process measures by itself;
//! * `fit.rs`: times into costs;
//! * `file.rs`: costs into a machine file;
//! * `residual.rs`: the same exchanges on the simulated machine, beside the measured ones.

mod alone;
mod end;
mod file;
mod fit;
mod pair;
mod residual;

use std::time::{Duration, Instant};

pub use alone::Alone;
pub use end::Trouble;
pub use file::{Origin, machine_file};
pub use fit::{Costs, Line, Spread, fit};
pub use pair::{Exchange, Pair, answer};
pub use residual::{Residual, doubt, residuals};

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// How often each number is measured; the median counts.
    pub rounds: usize,
    /// Messages of which a time is made.
    pub messages: usize,
}

/// On a busy machine fewer rounds have to do: each number takes no longer than this, once it has the least rounds.
const LONGEST: Duration = Duration::from_secs(2);
const ROUNDS_LEAST: usize = 3;

impl Effort {
    /// Some ten seconds.
    pub const USUAL: Effort = Effort { rounds: 31, messages: 400 };
    /// Whether so many rounds do, since a number began to be measured. The first round, 0, warms up.
    fn is_done(self, round: usize, begun: Instant) -> bool {
        round > self.rounds || round > ROUNDS_LEAST && begun.elapsed() > LONGEST
    }

    /// As tests have it: numbers of the right kind, and no more.
    pub const QUICK: Effort = Effort { rounds: 3, messages: 20 };
}
