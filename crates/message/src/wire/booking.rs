//! Messages between a receiver and the sender from which it pulls next (`bulk::order::booking`).

use super::codec::{Head, MessageKind, Reader, Writer};

/// A receiver asks a sender whether it is free, or says that it has begun without asking. One answer follows, once the
/// sender is free; until then the receiver asks no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Booking;

impl Head for Booking {
    const FIELDS: usize = 0;

    fn kind(&self) -> MessageKind {
        MessageKind::Booking
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        writer.header(0, 0);
    }

    fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        reader.allow(0)?;
        Some(Booking)
    }
}

/// The sender keeps itself free for the receiver that has asked, for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Booked;

impl Head for Booked {
    const FIELDS: usize = 0;

    fn kind(&self) -> MessageKind {
        MessageKind::Booked
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        writer.header(0, 0);
    }

    fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        reader.allow(0)?;
        Some(Booked)
    }
}
