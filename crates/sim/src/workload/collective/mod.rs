//! Collective operations: a function each, and the forms in which libraries carry it out.
//!
//! `Plain` is always the textbook's first idea, which P measures with "collective optimisations off"; the others are
//! those that MPI libraries choose among. All are written over a [`Communicator`](crate::workload::Communicator) and
//! parts of memory, and move real bytes where memory has any, so that tests can compare what everybody has in the end.
//!
//! Reductions add bytes, wrapping: no order of evaluation changes the result.

mod allgather;
mod allreduce;
mod alltoall;
mod barrier;
mod broadcast;
mod gather;
mod reduce;
mod reduce_scatter;
mod scatter;
mod tree;

pub use allgather::{Allgather, allgather, allgatherv};
pub use allreduce::{Allreduce, allreduce};
pub use alltoall::{Alltoall, Alltoallv, Blocks, alltoall, alltoallv};
pub use barrier::{Barrier, barrier};
pub use broadcast::{Broadcast, broadcast};
pub use gather::{Gather, gather, gatherv};
pub use reduce::{Reduce, reduce};
pub use reduce_scatter::{ReduceScatter, reduce_scatter, reduce_then_scatterv};
pub use scatter::{Scatter, scatter, scatterv};
