//! Messages of the rendezvous: the request to send and what follows it.

use super::codec::{
    HAS_DATA, Head, IS_KEYED, MessageKind, READS, Reader, WAS_DROPPED, WIDE_DATA, Writer, is_wide, of_queue,
    queue_among, u64_at,
};
use super::rma::Status;
use crate::link::Span;
use crate::operation::Queue;

/// Bytes of a piece of memory in a request to send.
pub(crate) const SPAN_BYTES: usize = 16;

/// Request to send (RTS): shows a send to its receiver. Body: the key of the memory, if it has one; the pieces beyond
/// the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestToSend {
    pub(crate) queue: Queue,
    /// 0 where untagged.
    pub(crate) tag: u64,
    pub(crate) data: Option<u64>,
    /// It was deferred, and the receiver has dropped its envelope once.
    pub(crate) was_dropped: bool,
    /// The sender's name for it.
    pub(crate) send: u32,
    /// Bytes of payload.
    pub(crate) length: u64,
    /// How many pieces of memory it lies in; 0: they are not told, and the payload comes after a clear to send.
    pub(crate) spans: u16,
    /// The first of them.
    pub(crate) first: Span,
    /// The sender's bounce buffer in which the first bytes lie.
    pub(crate) bounce: Option<u16>,
    /// The memory has a key, other than 0.
    pub(crate) is_keyed: bool,
}

impl RequestToSend {
    /// The body for these pieces of memory with this key.
    pub(crate) fn body_of(key: u64, spans: &[Span]) -> Vec<u8> {
        let key = Some(key).filter(|key| *key != 0);
        let rest = spans.iter().skip(1).flat_map(|span| [span.address, span.length]);
        key.into_iter().chain(rest).flat_map(u64::to_le_bytes).collect()
    }

    /// Most bytes of the body for this number of pieces.
    pub(crate) fn body_bytes(spans: usize) -> usize {
        8 + spans.saturating_sub(1) * SPAN_BYTES
    }

    /// The key of the memory and its pieces, if they are as many as the head says.
    pub(crate) fn memory(&self, body: &[u8]) -> Option<(u64, Vec<Span>)> {
        let (key, rest) = match self.is_keyed {
            true => (u64_at(body, 0).filter(|key| *key != 0)?, &body[8..]),
            false => (0, body),
        };
        let count = usize::from(self.spans);
        if rest.len() != count.saturating_sub(1) * SPAN_BYTES {
            return None;
        }
        let first = (count > 0).then_some(self.first);
        let rest = rest
            .chunks_exact(SPAN_BYTES)
            .map(|span| Some(Span { address: u64_at(span, 0)?, length: u64_at(span, 8)? }));
        // No more places than it needs: a stored request to send pays for these.
        let mut spans = Vec::with_capacity(count);
        for span in first.map(Some).into_iter().chain(rest) {
            spans.push(span?);
        }
        Some((key, spans))
    }
}

impl Head for RequestToSend {
    /// The sender's name for the send (32 bits), number of pieces (16), bounce buffer + 1 (16); length; first piece.
    const FIELDS: usize = 4;

    fn kind(&self) -> MessageKind {
        of_queue(self.queue, MessageKind::RequestToSendTagged, MessageKind::RequestToSendUntagged)
    }

    fn wide_data(&self) -> bool {
        is_wide(self.data)
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        writer.with_data(self.tag, self.data, flag(self.was_dropped, WAS_DROPPED) | flag(self.is_keyed, IS_KEYED));
        let bounce = self.bounce.map_or(0, |bounce| u64::from(bounce) + 1);
        writer.field(u64::from(self.send) | u64::from(self.spans) << 32 | bounce << 48);
        writer.field(self.length);
        writer.field(self.first.address);
        writer.field(self.first.length);
    }

    fn parse(kind: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        let queue = queue_among(kind, MessageKind::RequestToSendTagged, MessageKind::RequestToSendUntagged)?;
        reader.allow(HAS_DATA | WIDE_DATA | WAS_DROPPED | IS_KEYED)?;
        let (tag, was_dropped, is_keyed) = (reader.word, reader.has(WAS_DROPPED), reader.has(IS_KEYED));
        let (data, names) = (reader.data()?, reader.field()?);
        let (send, spans, bounce) = (names as u32, (names >> 32) as u16, ((names >> 48) as u16).checked_sub(1));
        let length = reader.field()?;
        let first = Span { address: reader.field()?, length: reader.field()? };
        Some(RequestToSend { queue, tag, data, was_dropped, send, length, spans, first, bounce, is_keyed })
    }
}

/// Clear to send (CTS): the message of a request to send, or a deferred one, is to be sent piece by piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClearToSend {
    /// The sender's name for it.
    pub(crate) send: u32,
    /// The receiver's name for what it pulls.
    pub(crate) pull: u32,
    /// Bytes wanted.
    pub(crate) wanted: u64,
    /// Bytes that the receiver has already.
    pub(crate) position: u64,
    /// The receiver would rather read it, and does not know where it lies.
    pub(crate) reads: bool,
}

impl Head for ClearToSend {
    const FIELDS: usize = 2;

    fn kind(&self) -> MessageKind {
        MessageKind::ClearToSend
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        writer.flagged(self.wanted, self.send, if self.reads { READS } else { 0 });
        writer.field(u64::from(self.pull));
        writer.field(self.position);
    }

    fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        reader.allow(READS)?;
        let pull = u32::try_from(reader.field()?).ok()?;
        let (send, wanted, reads) = (reader.aux, reader.word, reader.has(READS));
        Some(ClearToSend { send, pull, wanted, position: reader.field()?, reads })
    }
}

/// Finished (FIN): the receiver has the message of a request to send, or a deferred one, or wants no more of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Finished {
    /// The sender's name for it.
    pub(crate) send: u32,
    pub(crate) status: Status,
}

impl Head for Finished {
    const FIELDS: usize = 0;

    fn kind(&self) -> MessageKind {
        MessageKind::Finished
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        writer.header(self.status as u64, self.send);
    }

    fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        reader.allow(0)?;
        Some(Finished { send: reader.aux, status: Status::from_word(reader.word) })
    }
}

/// The sender has written all of a message into its receiver's memory (L §3.1: the Finish of its rendezvous).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// The receiver's name for what it waits for.
    pub(crate) pull: u32,
}

impl Head for Written {
    const FIELDS: usize = 0;

    fn kind(&self) -> MessageKind {
        MessageKind::Written
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        writer.header(0, self.pull);
    }

    fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        reader.allow(0)?;
        Some(Written { pull: reader.aux })
    }
}

/// A part of a message after a clear to send. Body: the part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The receiver's name for what it pulls.
    pub(crate) pull: u32,
    /// Where the part begins in the message.
    pub(crate) position: u64,
}

impl Head for Piece {
    const FIELDS: usize = 0;

    fn kind(&self) -> MessageKind {
        MessageKind::Piece
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        writer.header(self.position, self.pull);
    }

    fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        reader.allow(0)?;
        Some(Piece { pull: reader.aux, position: reader.word })
    }
}

/// A part of a message after a clear to send lies in a bounce buffer of its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BouncedPiece {
    /// The receiver's name for what it pulls.
    pub(crate) pull: u32,
    /// Where the part begins in the message.
    pub(crate) position: u64,
    /// Which bounce buffer.
    pub(crate) bounce: u32,
    /// Bytes of the part.
    pub(crate) length: u32,
}

impl Head for BouncedPiece {
    const FIELDS: usize = 1;

    fn kind(&self) -> MessageKind {
        MessageKind::BouncedPiece
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        writer.header(self.position, self.pull);
        writer.field(u64::from(self.bounce) | u64::from(self.length) << 32);
    }

    fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        reader.allow(0)?;
        let part = reader.field()?;
        let (bounce, length) = (part as u32, (part >> 32) as u32);
        Some(BouncedPiece { pull: reader.aux, position: reader.word, bounce, length })
    }
}

/// The message of a clear to send lies in one piece where the receiver can read it, which is better than to send it
/// packet by packet: that was a deferred send, of which the receiver has known no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    /// The receiver's name for what it pulls.
    pub(crate) pull: u32,
    /// The key of the memory; 0: it needs none.
    pub(crate) key: u64,
    /// All of the message.
    pub(crate) span: Span,
}

impl Head for Located {
    const FIELDS: usize = 2;

    fn kind(&self) -> MessageKind {
        MessageKind::Located
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        writer.header(self.key, self.pull);
        writer.field(self.span.address);
        writer.field(self.span.length);
    }

    fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        reader.allow(0)?;
        let span = Span { address: reader.field()?, length: reader.field()? };
        Some(Located { pull: reader.aux, key: reader.word, span })
    }
}

/// The receiver has copied what lay in a bounce buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BounceCopied {
    /// Which bounce buffer.
    pub(crate) bounce: u32,
}

impl Head for BounceCopied {
    const FIELDS: usize = 0;

    fn kind(&self) -> MessageKind {
        MessageKind::BounceCopied
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        writer.header(0, self.bounce);
    }

    fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        reader.allow(0)?;
        Some(BounceCopied { bounce: reader.aux })
    }
}
