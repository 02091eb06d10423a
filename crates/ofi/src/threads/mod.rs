//! Threads, those of the application and ours: which one this is, which one is inside a domain, what they sleep on,
//! and the two of ours that make progress.

pub(crate) mod flight;
pub(crate) mod forking;
pub(crate) mod lock;
pub(crate) mod pilot;
pub(crate) mod sleepers;
pub(crate) mod standby;
pub(crate) mod thread;
pub(crate) mod wait;
