//! An operation as the calls describe it to [`submit`](crate::operations::submit): its kind, its flags, and the
//! application's memory.

use crate::border::bindings::*;
use crate::border::errno::{INVALID, Result};
use crate::parameter::limits::PIECES_MOST;
use core::ffi::c_void;
use tidegate_link::IoBuffer;
use tidegate_link::memory::Piece;
use tidegate_message::Context;

/// The kinds of operations that counters tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum EventKind {
    /// A receive of ours.
    Receive,
    /// A write of a peer to our memory, or an atomic without result.
    RemoteWrite,
    /// A read of a peer from our memory, or an atomic with result.
    RemoteRead,
    /// A send of ours.
    Send,
    /// An RMA write or an atomic without result.
    Write,
    /// An RMA read or an atomic with result.
    Read,
}

impl EventKind {
    /// How many kinds there are.
    pub const COUNT: usize = 6;

    /// Whether it goes to the queue of receives. These kinds are the first, so that one comparison tells.
    #[inline(always)]
    pub fn comes_in(self) -> bool {
        self as usize <= EventKind::RemoteRead as usize
    }
}

/// Where the flags of a call come from.
#[derive(Clone, Copy)]
pub enum Flags {
    /// The call takes no flags, so the endpoint's defaults apply.
    Default,
    /// The flags that the call was given.
    Given(u64),
    /// The call is `fi_inject` or one of its relatives.
    Inject,
}

/// What all operations have in common.
pub struct Call {
    /// The flags of its completion that say what kind of operation it is, such as `FI_TAGGED | FI_SEND`.
    pub kind: u64,
    /// The application's flags of this call, with the endpoint's defaults where they apply.
    pub flags: u64,
    /// The application's context.
    pub context: *mut c_void,
    /// Which counter counts it.
    pub event: EventKind,
    /// Where the buffer starts, if it is a multi-receive.
    pub start: *mut u8,
    /// Whether it is `fi_inject` or one of its relatives, which never complete unless they fail.
    pub silent: bool,
}

/// How the message layer is to tell of an operation that it starts.
#[derive(Clone, Copy)]
pub struct Named {
    /// The name of the operation in its completion.
    pub context: Context,
    /// Whether to report success.
    pub report: bool,
}

/// The application's memory as the message layer takes it.
///
/// # Safety
/// Until the operation has completed (for injected ones: until the call returns), `length` bytes at `address` must be
/// the application's and be left alone, as libfabric's rules say.
#[inline]
pub unsafe fn memory(address: *const c_void, length: usize) -> IoBuffer {
    // SAFETY: promised by the caller.
    unsafe { IoBuffer::from_parts(address.cast_mut().cast(), length) }
}

/// Scattered memory of the application.
///
/// # Safety
/// As [`memory`], for each of `count` pieces; the array itself is only read during the call.
#[inline]
pub unsafe fn scattered(pieces: *const iovec, count: usize) -> Result<IoBuffer> {
    // SAFETY: promised by the caller.
    unsafe {
        match count {
            0 => Ok(IoBuffer::empty()),
            1 => Ok(memory((*pieces).iov_base, (*pieces).iov_len)),
            _ if count > PIECES_MOST => Err(INVALID),
            _ => Ok(IoBuffer::from_pieces(
                core::slice::from_raw_parts(pieces, count)
                    .iter()
                    .map(|piece| Piece::new(piece.iov_base.cast(), piece.iov_len)),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_message::Buffer;

    #[test]
    fn kinds_that_come_in_are_the_first() {
        use EventKind::*;
        let kinds = [Send, Receive, Write, Read, RemoteWrite, RemoteRead];
        assert_eq!(kinds.map(EventKind::comes_in), [false, true, false, false, true, true]);
    }

    #[test]
    fn pieces_are_taken_together_up_to_the_limit() {
        let memory = [0u8; 64];
        let piece = iovec { iov_base: memory.as_ptr().cast_mut().cast(), iov_len: 3 };
        let pieces = [piece; PIECES_MOST + 1];
        for count in 0..=PIECES_MOST {
            // SAFETY: there are as many pieces, and nothing is written to their memory.
            let buffer = unsafe { scattered(pieces.as_ptr(), count) }.unwrap();
            assert_eq!(buffer.len(), 3 * count);
        }
        // SAFETY: as above.
        assert_eq!(unsafe { scattered(pieces.as_ptr(), PIECES_MOST + 1) }.err(), Some(INVALID));
    }
}
