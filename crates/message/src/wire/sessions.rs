//! Messages about sessions (see `deferral::sessions`): who asks for one, gets one, and gives it back.

use super::codec::{Head, MessageKind, Reader, Writer};

/// Most receives and peeks that a receiver speaks of.
pub(crate) const NEEDS_MOST: u32 = u32::MAX >> 1;

/// A sender speaks of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asking {
    /// It asks for one.
    Asks,
    /// The same, only for sends that it showed while it had one.
    AsksAgain,
    /// The receiver wants its session back: it has shown everything, and sends nothing more.
    HasShown,
}

impl Asking {
    const ALL: [Asking; 3] = [Asking::Asks, Asking::AsksAgain, Asking::HasShown];
}

impl Head for Asking {
    const FIELDS: usize = 0;

    fn kind(&self) -> MessageKind {
        MessageKind::Asking
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        writer.header(0, *self as u32);
    }

    fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        reader.allow(0)?;
        Self::ALL.get(reader.aux as usize).copied()
    }
}

/// A receiver gives a sender a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Granted {
    /// The word of a window, as receivers tell it whose senders need not ask.
    pub(crate) told: u32,
    /// Bytes that are free of the sender's own window; 0: it may show its sends, and no more.
    pub(crate) room: u32,
    /// Whether there is a window at all: the last session has none.
    pub(crate) has_window: bool,
    /// The number of receives and peeks for which the receiver may have to query the sender: 31 bits.
    pub(crate) needs: u32,
}

impl Head for Granted {
    const FIELDS: usize = 0;

    fn kind(&self) -> MessageKind {
        MessageKind::Granted
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        let high = u64::from(self.needs) << 1 | u64::from(self.has_window);
        writer.header(u64::from(self.room) | high << 32, self.told);
    }

    fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        reader.allow(0)?;
        let (room, high) = (reader.word as u32, (reader.word >> 32) as u32);
        Some(Granted { told: reader.aux, room, has_window: high & 1 == 1, needs: high >> 1 })
    }
}

/// A receiver ends a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It wants it back: its sender is to show what it has to send, and to say when it has.
    Soon {
        /// As in [`Granted`].
        needs: u32,
    },
    /// It has it back, and has forgotten what was shown.
    Now,
}

impl Head for End {
    const FIELDS: usize = 0;

    fn kind(&self) -> MessageKind {
        MessageKind::End
    }

    fn emit(&self, writer: &mut Writer<'_>) {
        let (needs, is_over) = match *self {
            End::Soon { needs } => (needs, 0),
            End::Now => (0, 1),
        };
        writer.header(0, needs << 1 | is_over);
    }

    fn parse(_: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
        reader.allow(0)?;
        match (reader.aux >> 1, reader.aux & 1) {
            (needs, 0) => Some(End::Soon { needs }),
            (0, _) => Some(End::Now),
            _ => None,
        }
    }
}
