//! How much memory a job needs: `tidegate plan`.
//!
//! A trace of the job is replayed in the simulator, where nothing but flow control and the machine decides how long it
//! takes, with one setting after the other.
//!
//! * `trace.rs`: the trace, and what must hold of it;
//! * `machine.rs`: the machine that it is replayed on;
//! * `scale/`: the same program for more ranks;
//! * `setting.rs`: a scheme, slots or buffers, and memory: for the simulator, and as options of `tidegate run`;
//! * `search.rs`: the least of many settings that is enough;
//! * `runs.rs`: runs with every seed, on all processors, kept for the next time;
//! * `choice.rs`: the searches for one scheme;
//! * `report.rs`: what was found; `errors.rs`: how sure that is.

mod choice;
mod errors;
pub mod machine;
mod report;
pub mod runs;
mod scale;
mod search;
mod setting;
mod trace;

pub use choice::{Choice, Chosen, TRIALS_MOST, Wish, choose, each};
pub use errors::{ERRORS, PredictionError, SOURCE};
pub use report::{Findings, PLAN_SCHEMA, Recommendation};
pub use scale::{Scaled, scale};
pub use setting::{Knob, Setting};
pub use trace::{Program, longer_than};
