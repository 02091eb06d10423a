//! Collective operations, one file each.
mod alltoall;
mod barrier;
pub use alltoall::{Alltoall, alltoall};
pub use barrier::{Barrier, barrier};
