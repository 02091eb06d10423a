//! Programs, as functions over a [`Task`](crate::Task) or over a [`Communicator`], a group of tasks.
//!
//! * `point_to_point.rs`: two processes at a time: pingpong, multi-pingpong, pingping, sendrecv, exchange;
//! * `collective/`: one file per collective operation, each with its plain form and the usual optimised ones.

pub mod collective;
mod communicator;
pub mod point_to_point;

pub use communicator::Communicator;
