//! Messages about sends that find no room in the receiver's window: what is deferred, queried, offered, and given back.

use super::codec::{HAS_DATA, Head, MessageKind, Reader, WIDE_DATA, Writer, of_queue, queue_among, u64_at};
use crate::operation::Queue;

/// Most entries of a batch: each may make the receiver keep a note for us.
pub(crate) const BATCH_MOST: usize = 32;

/// Bytes of an [`Entry`].
pub(crate) const ENTRY_BYTES: usize = Entry::BYTES;

/// Shows the receiver deferred sends. Body: an [`Entry`] each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeferralNotice;

/// Tells the receiver the number of further deferred sends, and does not show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeferralCount {
    pub(crate) sends: u32,
}

impl Head for DeferralCount {
    const FIELDS: usize = 0;

    fn kind(&self) -> MessageKind {
        MessageKind::DeferralCount
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        writer.header(0, self.sends);
    }

    fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        reader.allow(0)?;
        Some(DeferralCount { sends: reader.aux })
    }
}

/// A deferred send in a [`DeferralNotice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The sender's name for it.
    pub(crate) send: u32,
    pub(crate) queue: Queue,
    /// Bytes of payload.
    pub(crate) length: u64,
    /// 0 where untagged.
    pub(crate) tag: u64,
    pub(crate) data: Option<u64>,
}

impl Entry {
    pub(crate) const BYTES: usize = 32;
    const TAGGED: u32 = 1;
    const HAS_DATA: u32 = 2;

    /// The sender's name (32 bits) and flags (32), length, tag, completion data.
    pub(crate) fn emit(&self, body: &mut Vec<u8>) {
        let tagged = if self.queue == Queue::Tagged { Self::TAGGED } else { 0 };
        let flags = tagged | if self.data.is_some() { Self::HAS_DATA } else { 0 };
        body.extend_from_slice(&self.send.to_le_bytes());
        body.extend_from_slice(&flags.to_le_bytes());
        for field in [self.length, self.tag, self.data.unwrap_or(0)] {
            body.extend_from_slice(&field.to_le_bytes());
        }
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Entry> {
        let names = u64_at(bytes, 0)?;
        let flags = (names >> 32) as u32;
        if flags & !(Self::TAGGED | Self::HAS_DATA) != 0 || bytes.len() != Self::BYTES {
            return None;
        }
        let (queue, tag) = match flags & Self::TAGGED != 0 {
            true => (Queue::Tagged, u64_at(bytes, 16)?),
            false => (Queue::Untagged, 0),
        };
        let data = u64_at(bytes, 24)?;
        let data = (flags & Self::HAS_DATA != 0).then_some(data);
        Some(Entry { send: names as u32, queue, length: u64_at(bytes, 8)?, tag, data })
    }
}

/// The receiver gives a part of the sender's window back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
}

impl Head for Room {
    const FIELDS: usize = 0;

    fn kind(&self) -> MessageKind {
        MessageKind::Room
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        writer.header(self.bytes, 0);
    }

    fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        reader.allow(0)?;
        Some(Room { bytes: reader.word })
    }
}

/// A query: does the sender have a deferred send that this tag with these ignored bits accepts?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) queue: Queue,
    pub(crate) tag: u64,
    /// Bits of the tag that do not matter.
    pub(crate) ignore: u64,
}

impl Head for Query {
    const FIELDS: usize = 1;

    fn kind(&self) -> MessageKind {
        of_queue(self.queue, MessageKind::QueryTagged, MessageKind::QueryUntagged)
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        writer.header(self.tag, 0);
        writer.field(self.ignore);
    }

    fn parse(kind: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        let queue = queue_among(kind, MessageKind::QueryTagged, MessageKind::QueryUntagged)?;
        reader.allow(0)?;
        Some(Query { queue, tag: reader.word, ignore: reader.field()? })
    }
}

/// The answer to a query: the first deferred send that it accepts. Body: its payload, if that is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) queue: Queue,
    /// 0 where untagged.
    pub(crate) tag: u64,
    pub(crate) data: Option<u64>,
    /// The sender's name for it.
    pub(crate) send: u32,
    /// Bytes of payload.
    pub(crate) length: u64,
}

impl Head for Offer {
    const FIELDS: usize = 1;

    fn kind(&self) -> MessageKind {
        of_queue(self.queue, MessageKind::OfferTagged, MessageKind::OfferUntagged)
    }

    /// The auxiliary number is taken.
    fn wide_data(&self) -> bool {
        self.data.is_some()
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        let flags = if self.data.is_some() { HAS_DATA | WIDE_DATA } else { 0 };
        writer.flagged(self.tag, self.send, flags);
        if let Some(data) = self.data {
            writer.field(data);
        }
        writer.field(self.length);
    }

    fn parse(kind: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        let queue = queue_among(kind, MessageKind::OfferTagged, MessageKind::OfferUntagged)?;
        reader.allow(HAS_DATA | WIDE_DATA)?;
        let tag = if queue == Queue::Tagged { reader.word } else { 0 };
        let data = match (reader.has(HAS_DATA), reader.has(WIDE_DATA)) {
            (true, true) => Some(reader.field()?),
            (false, false) => None,
            _ => return None,
        };
        Some(Offer { queue, tag, data, send: reader.aux, length: reader.field()? })
    }
}

/// What was offered is not wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decline {
    /// The sender's name for it.
    pub(crate) send: u32,
}

impl Head for Decline {
    const FIELDS: usize = 0;

    fn kind(&self) -> MessageKind {
        MessageKind::Decline
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        writer.header(0, self.send);
    }

    fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        reader.allow(0)?;
        Some(Decline { send: reader.aux })
    }
}

/// What was offered is set aside, and will be pulled later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accept {
    /// The sender's name for it.
    pub(crate) send: u32,
}

impl Head for Accept {
    const FIELDS: usize = 0;

    fn kind(&self) -> MessageKind {
        MessageKind::Accept
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        writer.header(0, self.send);
    }

    fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        reader.allow(0)?;
        Some(Accept { send: reader.aux })
    }
}

/// Messages that say nothing but what kind they are.
macro_rules! bare {
    ($($name:ident),*) => {
        $(impl Head for $name {
            const FIELDS: usize = 0;

            fn kind(&self) -> MessageKind {
                MessageKind::$name
            }

            fn emit(&self, writer: &mut Writer<'_>) {
                writer.header(0, 0);
            }

            fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
                reader.allow(0)?;
                Some($name)
            }
        })*
    };
}

/// All of a batch of deferred sends have been matched or dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acknowledged;

/// The answer to a query that accepts no deferred send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoMatch;

bare!(DeferralNotice, Acknowledged, NoMatch);
