//! Threads, those of the application and ours: which one this is, which one is inside a domain, what they sleep on and
//! for how long, and the one of ours that makes progress.

pub(crate) mod background;
pub(crate) mod domain_lock;
pub(crate) mod fork_guard;
pub(crate) mod poll_backoff;
pub(crate) mod progress_thread;
pub(crate) mod sleepers;
pub(crate) mod thread;
pub(crate) mod wait;
pub(crate) mod waits;
