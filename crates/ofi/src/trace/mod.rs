//! The trace of a process: what it sends and receives, what it computes between, and what it learns when.
//!
//! `tidegate record` sets `FI_TIDEGATE_TRACE_DIR`, runs a job, and makes one trace in GOAL of what its processes left
//! there. Each file uses only those above it:
//!
//! - [`mod@format`]: records, and how they look as bytes;
//! - `clock`: time;
//! - `gaps`: what of the time between calls is computation;
//! - `recorder`: calls and completions become records, without clock and file;
//! - [`process`]: the recorder of this process, with both;
//! - `operations`: an endpoint's operations until they are over, a queue's completions until they are read.
//!
//! `recording`, in the folder above, hangs all this into the calls: by tables of their own, so that a process that
//! records nothing runs the same code as if there were no traces.

mod clock;
pub mod format;
mod gaps;
pub(crate) mod operations;
pub mod process;
mod recorder;
