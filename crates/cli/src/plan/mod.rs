//! How much memory a job needs: `tidegate plan`.
//!
//! A trace of the job is replayed in the simulator, where nothing but flow control and the machine decides how long it
//! takes, with one setting after the other.
//!
//! * `trace.rs`: the trace, and what must hold of it;
//! * `machine.rs`: the machine that it is replayed on;
//! * `scale/`: the same program for more ranks;
//! * `setting.rs`: a scheme, slots or buffers, and memory: for the simulator, and as options of `tidegate run`;
//! * `halving.rs`: the least of many settings that is enough;
//! * `runs.rs`: runs with every seed, on all processors, kept for the next time;
//! * `margin.rs`: how much more than the least is recommended;
//! * `choice.rs`: the searches for one scheme; `schemes.rs`: those for all;
//! * `estimate.rs`: how many runs they take, and how long;
//! * `report.rs`: the findings; `words.rs`: sentences on them; `errors.rs`: how sure they are.

mod choice;
mod errors;
mod estimate;
mod halving;
pub mod machine;
mod margin;
mod report;
pub mod runs;
mod scale;
mod schemes;
mod setting;
mod trace;
mod words;

pub use choice::{Choice, Chosen, Least, Wish};
pub use errors::{ERRORS, PredictionError, SOURCE};
pub use estimate::Expected;
pub use margin::Margin;
pub use report::{Findings, PLAN_SCHEMA, Recommendation};
pub use scale::{Scaled, scale};
pub use schemes::{Aim, search};
pub use setting::{Knob, Setting};
pub use trace::{Program, longer_than};

#[cfg(test)]
mod tests;
