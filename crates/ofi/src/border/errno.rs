//! Error numbers: libfabric's own, and what the errors of the layers below mean in libfabric's terms.

use crate::border::bindings::*;
use core::ffi::c_int;
use tidegate_link::{ClaimError, LinkError};
use tidegate_message::Failure;

/// An error number of libfabric (positive). Calls return it negated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub c_int);

/// What the body of a call returns.
pub type Result<T = isize> = core::result::Result<T, Errno>;

/// `FI_EAGAIN`.
pub const TRY_AGAIN: Errno = Errno(FI_EAGAIN);
/// What the body of a call returns that has nothing to say yet and asks for the processor to be given away: the call
/// returns [`TRY_AGAIN`] once that is done (`Domain::enter_and_yield`). It is no error number of libfabric.
pub const YIELD: Errno = Errno(c_int::MAX);
/// The same, and then there is an error to be read.
pub const YIELD_BEFORE_ERROR: Errno = Errno(c_int::MAX - 1);
/// `FI_EINVAL`.
pub const INVALID: Errno = Errno(FI_EINVAL);

impl Errno {
    /// The negative number that a call returns for this error.
    #[inline]
    pub fn code(self) -> isize {
        -(self.0 as isize)
    }

    /// The number of a system call that failed, or `FI_EIO` if it left none.
    pub fn of_system(error: &std::io::Error) -> Errno {
        Errno(error.raw_os_error().unwrap_or(FI_EIO))
    }

    /// What went wrong in reaching a peer.
    pub fn of_link(error: &LinkError) -> Errno {
        match error {
            LinkError::Config(_) | LinkError::Disagreement { .. } => Errno(FI_EINVAL),
            LinkError::NoSpace(_) | LinkError::TableFull { .. } => Errno(FI_ENOSPC),
            LinkError::Busy { .. } | LinkError::NotNoticed { .. } => Errno(FI_EAGAIN),
            LinkError::Elsewhere { .. } => Errno(FI_EHOSTUNREACH),
            LinkError::Gone { .. } | LinkError::Vanished { .. } => Errno(FI_ECONNABORTED),
            LinkError::NoDirectBulk { .. } | LinkError::OtherUser { .. } => Errno(FI_EACCES),
            LinkError::System { error, .. } => Errno::of_system(error),
        }
    }

    /// What went wrong in claiming a service.
    pub fn of_claim(error: &ClaimError) -> Errno {
        match error {
            ClaimError::Taken { .. } | ClaimError::Occupied { .. } => Errno(FI_EADDRINUSE),
            ClaimError::Busy { .. } => Errno(FI_EBUSY),
            ClaimError::System { error, .. } => Errno::of_system(error),
        }
    }
}

/// What a call returns: the value, or the negated error number.
#[inline]
pub fn code(result: Result) -> isize {
    match result {
        Ok(value) => value,
        Err(errno) => errno.code(),
    }
}

/// Why an operation failed, as a completion queue tells it.
pub struct Reason {
    /// The error number.
    pub errno: Errno,
    /// Bytes that did not fit into the receiver's buffer.
    pub overflow: usize,
    /// Text for people. It is empty if there is nothing to say beyond the error number.
    pub text: String,
}

impl Reason {
    /// `placed`: bytes of the message that did fit.
    #[cold]
    pub fn of_failure(failure: Failure, placed: usize) -> Reason {
        let (errno, overflow, text) = match failure {
            Failure::Truncated { full } => (FI_ETRUNC, full.saturating_sub(placed), String::new()),
            Failure::Canceled => (FI_ECANCELED, 0, String::new()),
            Failure::NoMessage => (FI_ENOMSG, 0, String::new()),
            Failure::PeerLost { peer } => (FI_ECONNABORTED, 0, format!("peer lost: {peer}")),
            Failure::Denied => {
                (FI_EACCES, 0, "the target has no memory registered under this key that allows the access".to_owned())
            }
            Failure::Unsupported => (FI_EOPNOTSUPP, 0, "the target does not know this atomic operation".to_owned()),
            Failure::Fault => {
                (FI_EFAULT, 0, "an address of this operation is not readable or writable memory".to_owned())
            }
        };
        Reason { errno: Errno(errno), overflow, text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_return_negated_numbers() {
        assert_eq!(code(Ok(3)), 3);
        assert_eq!(code(Err(TRY_AGAIN)), -(FI_EAGAIN as isize));
    }

    #[test]
    fn a_message_that_was_cut_says_by_how_much() {
        let reason = Reason::of_failure(Failure::Truncated { full: 100 }, 60);
        assert_eq!((reason.errno, reason.overflow), (Errno(FI_ETRUNC), 40));
        assert_eq!(Reason::of_failure(Failure::Truncated { full: 10 }, 60).overflow, 0);
    }

    #[test]
    fn answers_have_no_text_and_faults_have_one() {
        for (failure, errno, has_text) in [
            (Failure::Canceled, FI_ECANCELED, false),
            (Failure::NoMessage, FI_ENOMSG, false),
            (Failure::Denied, FI_EACCES, true),
            (Failure::Unsupported, FI_EOPNOTSUPP, true),
            (Failure::Fault, FI_EFAULT, true),
        ] {
            let reason = Reason::of_failure(failure, 0);
            assert_eq!((reason.errno, reason.overflow), (Errno(errno), 0));
            assert_eq!(!reason.text.is_empty(), has_text, "{}", reason.text);
        }
    }
}
