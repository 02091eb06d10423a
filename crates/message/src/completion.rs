//! What an endpoint reports of operations that ended.

use crate::envelope::Envelope;
use crate::link::Buffer;
use crate::operation::{Context, Queue, Send, Space, Target};

/// The operation that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A send.
    Send,
    /// A receive, or one message of a multi-receive.
    Receive,
    /// An RMA write of ours.
    Write,
    /// An RMA read of ours.
    Read,
    /// An atomic of ours.
    Atomic,
    /// A peer's RMA write that carried completion data, or, where [writes are counted](crate::Endpoint::count_writes),
    /// any write or atomic of a peer.
    RemoteWrite,
}

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The message was longer than the buffer: `full` bytes; the buffer holds its beginning (`FI_ETRUNC`).
    Truncated {
        /// The message's length.
        full: usize,
    },
    /// The application canceled it (`FI_ECANCELED`).
    Canceled,
    /// A peek found nothing (`FI_ENOMSG`).
    NoMessage,
    /// The peer died or left, or cannot be reached; the text names it (`FI_EIO`, or `FI_ECONNABORTED`).
    PeerLost {
        /// Who and why, for people.
        peer: String,
    },
    /// No such region, out of its bounds, or it does not grant the access (`FI_EACCES`).
    Denied,
    /// The target does not know the atomic operation for the type (`FI_EOPNOTSUPP`).
    Unsupported,
    /// The copy failed: an address of the application is wrong (`FI_EFAULT`).
    Fault,
}

/// An operation that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The application's name for it.
    pub context: Context,
    /// What kind of operation it was.
    pub operation: Operation,
    /// The matching space in which it matched; for a receive, with the message's tag.
    pub space: Space,
    /// Bytes transferred (with `Truncated`: bytes placed).
    pub length: usize,
    /// Multi-receive: where in the buffer the message lies.
    pub offset: usize,
    /// Remote completion data.
    pub data: Option<u64>,
    /// The sender, for receives.
    pub source: Option<Target>,
    /// Multi-receive: the buffer goes back to the application with this completion (`FI_MULTI_RECV`).
    pub released: bool,
    /// Success, or why not.
    pub result: Result<(), Failure>,
}

/// What to tell the application when a message has left.
#[derive(Debug)]
pub(crate) struct Notice {
    pub(crate) context: Context,
    pub(crate) space: Space,
    pub(crate) length: usize,
    pub(crate) report: bool,
}

impl Notice {
    /// What to tell of a send.
    #[inline]
    pub(crate) fn of<B: Buffer>(send: &Send<B>) -> Self {
        Notice { context: send.context, space: send.space, length: send.buffer.len(), report: send.report }
    }
}

impl Completion {
    /// A send has ended.
    pub(crate) fn sent(notice: Notice, result: Result<(), Failure>) -> Self {
        let Notice { context, space, length, .. } = notice;
        Completion { space, ..Self::plain(context, Operation::Send, length, result) }
    }

    /// A receive that ends without a message. `released`: the buffer of a multi-receive goes back with it.
    pub(crate) fn unmatched(context: Context, space: Space, released: bool, failure: Failure) -> Self {
        Completion { space, released, ..Self::plain(context, Operation::Receive, 0, Err(failure)) }
    }

    /// A receive or peek has met this message.
    #[inline]
    pub(crate) fn met(context: Context, queue: Queue, envelope: &Envelope) -> Self {
        Completion {
            space: queue.space(envelope.tag),
            data: envelope.data,
            source: Some(envelope.source),
            ..Self::plain(context, Operation::Receive, envelope.length, Ok(()))
        }
    }

    /// A remote operation of ours has ended.
    pub(crate) fn remote(context: Context, operation: Operation, length: usize, result: Result<(), Failure>) -> Self {
        Self::plain(context, operation, if result.is_ok() { length } else { 0 }, result)
    }

    /// A remote operation of `source` on our memory is complete.
    pub(crate) fn remote_write(source: Target, length: usize, data: Option<u64>) -> Self {
        Completion { data, source: Some(source), ..Self::plain(Context(0), Operation::RemoteWrite, length, Ok(())) }
    }

    #[inline]
    fn plain(context: Context, operation: Operation, length: usize, result: Result<(), Failure>) -> Self {
        let (space, offset, data, source, released) = (Space::Untagged, 0, None, None, false);
        Completion { context, operation, space, length, offset, data, source, released, result }
    }
}
