//! The border to C: every function that libfabric calls goes through [`guarded`] or
//! [`Domain::enter`](crate::objects::domain::Domain::enter), so that a panic ends as an error number and never unwinds
//! into C. `catch_unwind` costs nothing until something panics.

use crate::border::bindings::*;
use crate::border::errno::{Errno, Result, code};
use crate::border::log;
use core::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the body of a call that needs no domain's lock. A panic becomes `-FI_EOTHER`.
pub fn guarded(body: impl FnOnce() -> Result) -> c_int {
    catch(body).map_or(Errno(FI_EOTHER).code(), code) as c_int
}

/// Runs `body`. If it panics, the panic goes to the log and there is no value.
#[inline(always)]
pub(crate) fn catch<T>(body: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|panic| report(&*panic)).ok()
}

#[cold]
fn report(panic: &(dyn core::any::Any + Send)) {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    // The panic hook has printed the place on standard error already. A panic while logging must not follow the first
    // one.
    let _ = catch_unwind(|| {
        log::warn(FI_LOG_CORE, || {
            format!(
                "internal error, please report it: {}; this domain refuses all further calls",
                text.unwrap_or("no text")
            )
        })
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::border::errno::TRY_AGAIN;

    #[test]
    fn a_panic_becomes_an_error_number() {
        assert_eq!(guarded(|| panic!("on purpose")), -FI_EOTHER);
    }

    #[test]
    fn values_and_errors_pass_through() {
        assert_eq!(guarded(|| Ok(3)), 3);
        assert_eq!(guarded(|| Err(TRY_AGAIN)), -FI_EAGAIN);
    }
}
