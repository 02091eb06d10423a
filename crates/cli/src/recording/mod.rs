//! Recordings: what `tidegate run --record DIR` and `tidegate sim --record DIR` leave, and `tidegate report` reads.
//!
//! A recording is a folder with three files:
//!
//! * `recording.json`, what was run and how it ended ([`facts`]). Without its part `end` the recording goes on, or was
//!   interrupted;
//! * `samples.tidegate`, the counters of all endpoints at a number of moments ([`samples`] has the layout). It only
//!   grows, so what an interrupted run left can be read; when it would become too large, every second sample is left
//!   out and the interval doubles ([`writer`]);
//! * `last.json`, what the pages said last that is no counter: for whom sends waited, and what is not finished
//!   ([`rows`]). It is replaced as a whole.
//!
//! [`folder`] makes and finishes recordings, [`sampler`] fills one while a program runs, [`page`] is the only file that
//! knows what a page of counters has beyond its counters, [`simulated`] does the same for simulated processes. [`text`]
//! cleans what others wrote, [`view`] puts what was read together by process.

pub mod facts;
pub mod folder;
pub mod page;
pub mod rows;
pub mod sampler;
pub mod samples;
pub mod simulated;
#[cfg(test)]
pub mod testing;
pub mod text;
pub mod view;
pub mod writer;

use tidegate_message::Counter;

pub use facts::Clock;

/// Name and version of the format of a recording.
pub const RECORDING_SCHEMA: &str = "tidegate-recording/2";

/// The counters of an endpoint, in the order of [`Counter::ALL`].
pub type Values = [u64; Counter::COUNT];

/// Now, in seconds since the epoch.
fn now_s() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}
