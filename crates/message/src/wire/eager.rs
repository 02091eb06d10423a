//! Eager messages: one kind for each queue; and two for those whose payload the link carries beside the packets.

use super::codec::{
    HAS_DATA, Head, MessageKind, Reader, WAS_DROPPED, WIDE_DATA, Writer, is_wide, of_queue, queue_of_number,
};
use crate::operation::Queue;
use tidegate_flow::PAYLOAD_BYTES;

/// A send that travels whole. Body: its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Eager {
    pub(crate) queue: Queue,
    /// 0 where untagged.
    pub(crate) tag: u64,
    pub(crate) data: Option<u64>,
    /// It was deferred, and the receiver has dropped its envelope once.
    pub(crate) was_dropped: bool,
}

impl Eager {
    /// The queue, if the number is one of this family's kinds.
    #[inline]
    pub(crate) fn queue_of(number: u8) -> Option<Queue> {
        queue_of_number(number, MessageKind::EagerTagged, MessageKind::EagerUntagged)
    }

    /// The number of its kind.
    #[inline]
    pub(crate) fn number(&self) -> u8 {
        self.kind() as u8
    }

    /// Bytes of the head.
    #[inline]
    pub(crate) fn head_bytes(&self) -> usize {
        self.bytes()
    }

    /// Writes the head of a message with a body of so many bytes; returns the bytes of the head.
    #[inline]
    pub(crate) fn emit_payload(&self, body: u32, payload: &mut [u8; PAYLOAD_BYTES]) -> usize {
        let mut writer = Writer::new(payload, body);
        self.emit(&mut writer);
        writer.end()
    }

    /// The head at the start of a first packet's payload, the length of the body, and as much of that as the packet
    /// has.
    #[inline]
    pub(crate) fn parse_payload(queue: Queue, payload: &[u8]) -> Option<(Eager, usize, &[u8])> {
        let mut reader = Reader::new(payload)?;
        let eager = Eager::read(queue, &mut reader)?;
        Some((eager, reader.length(), reader.rest()))
    }

    #[inline]
    fn read(queue: Queue, reader: &mut Reader<'_>) -> Option<Eager> {
        reader.allow(HAS_DATA | WIDE_DATA | WAS_DROPPED)?;
        let data = reader.data()?;
        Some(Eager { queue, tag: reader.word, data, was_dropped: reader.has(WAS_DROPPED) })
    }
}

impl Head for Eager {
    const FIELDS: usize = 0;

    #[inline]
    fn kind(&self) -> MessageKind {
        of_queue(self.queue, MessageKind::EagerTagged, MessageKind::EagerUntagged)
    }

    #[inline]
    fn wide_data(&self) -> bool {
        is_wide(self.data)
    }

    #[inline]
    fn emit(&self, writer: &mut Writer<'_>) {
        let flags = if self.was_dropped { WAS_DROPPED } else { 0 };
        writer.with_data(self.tag, self.data, flags);
    }

    fn parse(kind: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        Eager::read(Self::queue_of(kind as u8)?, reader)
    }
}

/// A send that travels whole, and whose payload the link has carried beside this packet. No body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Carried {
    pub(crate) queue: Queue,
    /// 0 where untagged.
    pub(crate) tag: u64,
    pub(crate) data: Option<u64>,
    /// Bytes of payload.
    pub(crate) length: u32,
    /// What the sender's link wants told to the receiver's.
    pub(crate) number: u32,
}

impl Carried {
    /// The queue, if the number is one of this family's kinds.
    #[inline]
    pub(crate) fn queue_of(number: u8) -> Option<Queue> {
        queue_of_number(number, MessageKind::CarriedTagged, MessageKind::CarriedUntagged)
    }

    /// Writes the whole message; returns its bytes and the number of its kind.
    #[inline]
    pub(crate) fn emit_payload(&self, payload: &mut [u8; PAYLOAD_BYTES]) -> (usize, u8) {
        let mut writer = Writer::new(payload, 0);
        self.emit(&mut writer);
        (writer.end(), self.kind() as u8)
    }

    /// The whole message.
    #[inline]
    pub(crate) fn parse_payload(queue: Queue, payload: &[u8]) -> Option<Carried> {
        let mut reader = Reader::new(payload)?;
        let carried = Carried::read(queue, &mut reader)?;
        (reader.length() == 0 && reader.rest().is_empty()).then_some(carried)
    }

    #[inline]
    fn read(queue: Queue, reader: &mut Reader<'_>) -> Option<Carried> {
        reader.allow(HAS_DATA | WIDE_DATA)?;
        let tag = reader.word;
        let (data, field) = (reader.data()?, reader.field()?);
        Some(Carried { queue, tag, data, length: field as u32, number: (field >> 32) as u32 })
    }
}

impl Head for Carried {
    const FIELDS: usize = 1;

    fn kind(&self) -> MessageKind {
        of_queue(self.queue, MessageKind::CarriedTagged, MessageKind::CarriedUntagged)
    }

    fn wide_data(&self) -> bool {
        is_wide(self.data)
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        writer.with_data(self.tag, self.data, 0);
        writer.field(u64::from(self.length) | u64::from(self.number) << 32);
    }

    fn parse(kind: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        Carried::read(Self::queue_of(kind as u8)?, reader)
    }
}
