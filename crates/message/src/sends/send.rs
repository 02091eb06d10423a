//! Sends whose payload stays with us until the receiver has it.

use crate::collections::list::Position;
use crate::completion::Notice;
use crate::deferral::Place;
use crate::link::{Buffer, Span};
use crate::operation::Space;
use tidegate_flow::PeerId;

/// Most spans that a request to send carries; a more scattered message is streamed.
const SPANS_MOST: usize = 128;

/// The payload of a send that stays with us.
#[derive(Debug)]
pub(crate) enum Payload<B> {
    /// In the application's memory.
    Application(B),
    /// Injected: the application's memory may have changed since. Goes through the mailbox.
    Copied(Box<[u8]>),
}

/// A send whose payload is with us until the receiver gets it: by rendezvous, or deferred.
#[derive(Debug)]
pub(crate) struct PendingSend<B> {
    pub(crate) peer: PeerId,
    pub(crate) space: Space,
    pub(crate) data: Option<u64>,
    /// Bytes of payload.
    pub(crate) length: usize,
    /// Complete only when the receiver has it.
    pub(crate) delivery: bool,
    pub(crate) payload: Payload<B>,
    /// What the application has not been told yet.
    pub(crate) notice: Option<Notice>,
    /// Where it is among the deferred sends to its peer.
    pub(crate) deferred: Option<Place>,
    /// The key under which the receiver reaches the application's memory; 0: it needs none, or has not been told.
    pub(crate) key: u64,
    /// The receiver has been told where in memory it lies.
    pub(super) is_located: bool,
    /// The receiver has sent a clear to send for it, and gets it piece by piece.
    pub(super) is_streamed: bool,
    /// Where the stream is that this made, as long as that has not ended and it is not its turn.
    pub(super) stream: Option<Position>,
}

impl<B: Buffer> PendingSend<B> {
    /// A send that the receiver does not know of.
    pub(crate) fn new(
        peer: PeerId,
        space: Space,
        data: Option<u64>,
        delivery: bool,
        payload: Payload<B>,
        notice: Option<Notice>,
    ) -> Self {
        let length = match &payload {
            Payload::Application(buffer) => buffer.len(),
            Payload::Copied(bytes) => bytes.len(),
        };
        PendingSend {
            peer,
            space,
            data,
            length,
            delivery,
            payload,
            notice,
            deferred: None,
            key: 0,
            is_located: false,
            is_streamed: false,
            stream: None,
        }
    }

    /// Whether the application's memory may have changed since.
    pub(crate) fn is_copied(&self) -> bool {
        matches!(self.payload, Payload::Copied(_))
    }

    /// The pieces of memory that a request to send names, if all of them `fit` in number. With none, the receiver sends
    /// a clear to send for the payload.
    pub(crate) fn spans(&self, fit: impl FnOnce(usize) -> bool) -> Vec<Span> {
        let Payload::Application(buffer) = &self.payload else { return Vec::new() };
        let spans: Vec<_> = buffer.spans().take(SPANS_MOST + 1).collect();
        if spans.len() <= SPANS_MOST && fit(spans.len()) { spans } else { Vec::new() }
    }
}
