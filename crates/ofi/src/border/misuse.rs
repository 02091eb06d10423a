//! Calls that an application must not make, and that it makes by mistake: what they return, and the line that tells the
//! user, once in a process. They come from signal handlers, and from children that were forked while any lock was held,
//! so nothing here waits for a lock or allocates memory.

use crate::border::bindings::{FI_EBUSY, FI_EOPBADSTATE};
use crate::border::errno::Errno;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tidegate_link::{log, process};

/// A forked child has called an object that it has inherited. What the call returns.
#[cold]
pub fn of_parent() -> Errno {
    static TOLD: AtomicU32 = AtomicU32::new(0);
    if is_first(&TOLD) {
        log::print_now(format_args!(
            "process {} was forked and calls an object of libfabric that belongs to its parent: the call fails \
             (FI_EOPBADSTATE), as all such calls do but fi_close. A child opens a domain of its own: see Forked \
             children in fi_tidegate(7)",
            std::process::id()
        ));
    }
    Errno(FI_EOPBADSTATE)
}

/// A signal handler has called while its thread was in another call of the same domain. What the call returns.
#[cold]
pub fn by_handler() -> Errno {
    static TOLD: AtomicU32 = AtomicU32::new(0);
    if is_first(&TOLD) {
        log::print_now(format_args!(
            "process {}: a signal handler has called libfabric while its thread was in another call of the same domain: \
             the call fails (FI_EBUSY). No call of libfabric is safe in a signal handler: see Signal \
             handlers in fi_tidegate(7)",
            std::process::id()
        ));
    }
    Errno(FI_EBUSY)
}

/// Whether this process has not said it before. A child has not, whatever its parent has said.
fn is_first(told: &AtomicU32) -> bool {
    let process = process::number();
    told.swap(process, Relaxed) != process
}
