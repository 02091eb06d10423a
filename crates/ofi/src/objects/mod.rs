//! The objects of libfabric, a file each, and what they hold.

pub(crate) mod active;
pub(crate) mod closing;
pub(crate) mod completion;
pub(crate) mod completion_queue;
pub(crate) mod completions;
pub(crate) mod counter;
pub(crate) mod domain;
pub(crate) mod endpoint;
pub(crate) mod fabric;
pub(crate) mod opening;
pub(crate) mod pending_operations;
pub(crate) mod region;
