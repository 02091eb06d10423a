//! Programs, as functions over a [`Task`](crate::Task) or over a [`Communicator`], a group of tasks.
//!
//! * `point_to_point.rs`: two processes at a time: pingpong, multi-pingpong, pingping, sendrecv, exchange;
//! * `collective/`: one file per collective operation, each with its plain form and the usual optimised ones;
//! * `operation.rs`: every operation by name, repeated and timed;
//! * `neighbours.rs`: halos, and all-to-alls of each process with a few others;
//! * `phases.rs`: part of the job works, the rest waits, then another part;
//! * `traffic.rs`: random, permutation, incast, cyclic shift, transpose;
//! * `goal/`: traces in the GOAL text format, read and replayed;
//! * `nas/`: the NAS Parallel Benchmarks' patterns;
//! * `recording.rs`: what a program does, in order, and as a trace in GOAL.

pub mod collective;
mod communicator;
mod goal;
pub mod nas;
mod neighbours;
mod operation;
mod phases;
pub mod point_to_point;
mod recording;
mod traffic;

pub use communicator::Communicator;
pub(crate) use goal::check_messages;
pub use goal::{HALO, Trace, TraceError, TraceOperation, WORK_MOST};
pub use neighbours::Neighbours;
pub use operation::{Benchmark, Mixed, Operation};
pub use phases::{Phase, Phases};
pub use recording::{RecordedOperation, Step, goal as write_goal, record, write_rank};
pub use traffic::{Pattern, Traffic};
