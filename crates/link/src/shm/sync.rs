//! The atomics of the mailbox: the real ones, or loom's in its model.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};

/// A value alone in its two cache lines (processors fetch lines in pairs).
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Alone<T>(pub T);
