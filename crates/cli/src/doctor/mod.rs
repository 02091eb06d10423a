//! `tidegate doctor`: whether a job would run here, and what would make it run, or run faster.
//!
//! All observations are gathered into one value, [`facts::Facts`], and all verdicts follow from that value alone.
//!
//! * [`words`]: launcher, options and program in the command of the user;
//! * [`gather`]: asks the system, the MPI and libfabric;
//! * [`facts`]: their answers;
//! * [`trial`]: a job of a few ranks, as `tidegate run` starts it, and its end; [`rank`]: its ranks;
//! * [`checks`]: facts into verdicts; [`verdict`]: verdicts as lines and as JSON.

pub mod checks;
pub mod facts;
pub mod gather;
pub mod rank;
pub mod trial;
pub mod verdict;
pub mod words;
