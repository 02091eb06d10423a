//! [`Submission`]: an operation that goes out, of whatever kind, as the application hands it in.

use crate::completion::Operation;
use crate::link::Buffer;
use crate::operation::{AtomicKind, AtomicRequest, Context, ReadRequest, Send, Target, WriteRequest};

/// An operation that goes out, of whatever kind.
#[derive(Debug)]
pub enum Submission<B> {
    /// A send.
    Send(Send<B>),
    /// An RMA write.
    Write(WriteRequest<B>),
    /// An RMA read.
    Read(ReadRequest<B>),
    /// A remote atomic.
    Atomic(AtomicRequest<B>),
}

impl<B> Submission<B> {
    /// Where it goes; `None` for a remote operation that names no place.
    pub(crate) fn target(&self) -> Option<Target> {
        let place = match self {
            Submission::Send(send) => return Some(send.to),
            Submission::Write(write) => write.to.first(),
            Submission::Read(read) => read.from.first(),
            Submission::Atomic(atomic) => atomic.to.first(),
        };
        place.map(|(place, _)| place.to)
    }

    /// What the application calls it, and whether it hears of its success.
    pub(crate) fn context(&self) -> (Context, bool) {
        match self {
            Submission::Send(send) => (send.context, send.report),
            Submission::Write(write) => (write.context, write.report),
            Submission::Read(read) => (read.context, read.report),
            Submission::Atomic(atomic) => (atomic.context, atomic.report),
        }
    }

    /// What its completion calls it, unless it is a send.
    pub(crate) fn remote_kind(&self) -> Option<Operation> {
        match self {
            Submission::Send(_) => None,
            Submission::Write(_) => Some(Operation::Write),
            Submission::Read(_) => Some(Operation::Read),
            Submission::Atomic(_) => Some(Operation::Atomic),
        }
    }

    /// Whether the application may believe that it has left, because it may use its memory again.
    pub(crate) fn is_injected(&self) -> bool {
        match self {
            Submission::Send(send) => send.inject,
            Submission::Write(write) => write.inject,
            Submission::Read(_) | Submission::Atomic(_) => false,
        }
    }
}

impl<B: Buffer> Submission<B> {
    /// The same, with a copy of memory that may change when the call that submits it is over. Operands of atomics are
    /// always copied then.
    pub(crate) fn kept(self) -> Self {
        match self {
            Submission::Send(send) if send.inject => Submission::Send(Send { buffer: send.buffer.copied(), ..send }),
            Submission::Write(write) if write.inject => {
                Submission::Write(WriteRequest { buffer: write.buffer.copied(), ..write })
            }
            Submission::Atomic(atomic) => {
                let kind = match atomic.kind {
                    AtomicKind::Compare { result, compare } => {
                        AtomicKind::Compare { result, compare: compare.copied() }
                    }
                    other => other,
                };
                Submission::Atomic(AtomicRequest { operand: atomic.operand.copied(), kind, ..atomic })
            }
            other => other,
        }
    }
}
