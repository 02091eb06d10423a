//! What matching hands out: receives that have their message, and messages that have no receive.

use crate::collections::slab::Key;
use crate::envelope::Envelope;
use crate::heap::block;
use crate::link::Span;
use crate::operation::{Context, Queue};
use crate::payload::Payload;
use crate::wire::SPAN_BYTES;
use crate::wire::{Finished, Status};
use tidegate_flow::PeerId;

/// A receive that has its message.
#[derive(Debug)]
pub(crate) struct Active<B> {
    /// Where this message goes.
    pub(crate) buffer: B,
    pub(crate) context: Context,
    /// Offset of `buffer` in what the application posted.
    pub(crate) offset: usize,
    pub(crate) report: bool,
    pub(super) multi: Option<Key>,
}

impl<B> Active<B> {
    /// Whether its buffer takes several messages.
    #[inline(always)]
    pub(crate) fn is_of_several(&self) -> bool {
        self.multi.is_some()
    }
}

/// A receive, and the message that it has accepted.
#[derive(Debug)]
pub(crate) struct Matched<B> {
    pub(crate) active: Active<B>,
    pub(crate) envelope: Envelope,
    pub(crate) queue: Queue,
}

/// The payload of a stored message, or where it is.
#[derive(Debug)]
pub(crate) enum Stored<B> {
    /// In our memory, as much of it as has arrived.
    Here(Payload),
    /// With its sender: its request to send has come, or an offer of it was accepted.
    Remote(RemoteSend),
    /// In a buffer of our own application, who sent it to itself.
    Own { buffer: B, context: Context, report: bool },
    /// Its sender is gone, and the payload with it.
    Lost(String),
}

/// A message that stays with its sender until we pull it: a rendezvous message, or a deferred one.
#[derive(Debug)]
pub(crate) struct RemoteSend {
    pub(crate) peer: PeerId,
    /// The sender's name for it.
    pub(crate) id: u32,
    /// The sender's bounce buffer in which its first piece lies.
    pub(crate) bounce: Option<u16>,
    /// The key of its memory.
    pub(crate) key: u64,
    /// The pieces of its memory; none: they are not told, and the payload comes after a clear to send.
    pub(crate) spans: Vec<Span>,
}

impl RemoteSend {
    /// What its sender is told when nothing more of it is wanted: it was received or discarded, or cannot be.
    pub(crate) fn finished(&self, status: Status) -> Finished {
        Finished { send: self.id, status }
    }

    /// A send that its peer has deferred: it has said no more of it than its name.
    pub(crate) fn of_deferred(peer: PeerId, id: u32) -> Self {
        RemoteSend { peer, id, bounce: None, key: 0, spans: Vec::new() }
    }

    /// What it costs of its sender's window, in bytes, not only until it is matched, but until it is pulled: the list
    /// of pieces.
    pub(crate) fn kept(&self) -> u32 {
        block(self.spans.len() * SPAN_BYTES) as u32
    }
}

/// A message that arrived before its receive.
#[derive(Debug)]
pub(crate) struct Unexpected<B> {
    pub(crate) envelope: Envelope,
    pub(crate) stored: Stored<B>,
    /// Set aside by `FI_PEEK | FI_CLAIM` for this context.
    pub(crate) claimed: Option<Context>,
    /// Bytes of its sender's window that it takes.
    pub(crate) cost: u32,
}

/// A posted receive that was taken back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TakenBack {
    pub(crate) context: Context,
    /// Whether a multi-receive's buffer goes back to the application now. One with messages in flight goes with the
    /// last.
    pub(crate) released: bool,
}
