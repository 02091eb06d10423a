//! What messages look like in packets.
//!
//! A message is a *head* and a body, cut into packets of [`PAYLOAD_BYTES`]. The head travels whole in the first packet:
//! the 16-byte message header of P §3 (a word, the body's length, an auxiliary number), the remote completion data if it
//! does not fit the auxiliary number, then up to [`PREFIX_BYTES`] that belong to the kind of message. Packets of one message
//! follow each other without gaps in the stream from one sender to one receiver, flow control's own packets excepted.
//!
//! The packet header's 16-bit label holds, from bit 0: the [`MessageKind`] (5 bits), whether the packet is a message's
//! first, whether completion data is there, whether it is wide (8 bytes after the header instead of 4 in it), and whether the
//! message has knocked before (see `window`).

use tidegate_flow::PAYLOAD_BYTES;

/// Bytes of the message header (P §3).
pub(crate) const MESSAGE_HEADER_BYTES: usize = 16;
/// Most bytes of a kind's own fields in the head.
pub(crate) const PREFIX_BYTES: usize = 32;
/// Largest eager message whatever the configuration: a sender cannot make a receiver allocate more at once.
pub(crate) const LARGEST_EAGER_BYTES: usize = 1 << 20;

const FIRST: u16 = 1 << 5;
const HAS_DATA: u16 = 1 << 6;
const WIDE_DATA: u16 = 1 << 7;
const AGAIN: u16 = 1 << 8;

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum MessageKind {
    /// Payload of a tagged send. word: tag.
    EagerTagged = 1,
    /// Payload of an untagged send.
    EagerUntagged = 2,
    /// Announcement of a tagged send. word: tag. prefix, body: see `rendezvous`.
    AnnounceTagged = 3,
    /// Announcement of an untagged send.
    AnnounceUntagged = 4,
    /// "Stream me what you announced." aux: the sender's id, word: bytes wanted, prefix: the receiver's id,
    /// bytes it has already.
    Fetch = 5,
    /// The receiver has what was announced. aux: the sender's id, word: [`Status`].
    Finish = 6,
    /// A part of what a `Fetch` asked for. aux: the receiver's id, word: offset.
    Piece = 7,
    /// RMA write. aux: operation id, prefix: key, offset. body: data.
    Write = 8,
    /// RMA read. aux: operation id, word: offset in the reader's buffer, prefix: key, offset, length.
    Read = 9,
    /// Data of an RMA read. aux: operation id, word: offset in the reader's buffer.
    ReadData = 10,
    /// Atomic. aux: operation id, word: offset in the result buffer | type << 32 | op << 40 | kind << 48, prefix: key, offset.
    /// body: operand, then what to compare.
    Atomic = 11,
    /// A part of a remote operation ended. aux: operation id, word: [`Status`] | offset in the result buffer << 32. body: result.
    Reply = 12,
    /// An RMA write with completion data is complete. word: bytes.
    WriteNotice = 13,
    /// A part of what a `Fetch` asked for lies in a stage of its sender. aux: the receiver's id, word: offset,
    /// prefix: stage | bytes << 32.
    StagedPiece = 14,
    /// The receiver has copied a stage. aux: the stage.
    StageCopied = 15,
    /// Held sends, for receives that wait. body: see `held`.
    Knock = 16,
    /// All of a knock's sends have been matched or forgotten.
    Settled = 17,
    /// The receiver gives a part of the sender's window back. word: bytes.
    Room = 18,
    /// "Have you a tagged send that this accepts?" word: tag, prefix: bits to ignore.
    AskTagged = 19,
    /// The same, untagged.
    AskUntagged = 20,
    /// A held send for what was asked. aux: the sender's id, word: tag, prefix: length. body: the payload, if it is short.
    OfferTagged = 21,
    /// The same, untagged.
    OfferUntagged = 22,
    /// No held send for what was asked.
    Nothing = 23,
    /// What was offered is not wanted. aux: the sender's id.
    Decline = 24,
    /// What was offered is set aside, and will be fetched later. aux: the sender's id.
    Take = 25,
}

impl MessageKind {
    /// All kinds, in the order of their numbers.
    pub(crate) const ALL: [MessageKind; 25] = {
        use MessageKind::*;
        [
            EagerTagged,
            EagerUntagged,
            AnnounceTagged,
            AnnounceUntagged,
            Fetch,
            Finish,
            Piece,
            Write,
            Read,
            ReadData,
            Atomic,
            Reply,
            WriteNotice,
            StagedPiece,
            StageCopied,
            Knock,
            Settled,
            Room,
            AskTagged,
            AskUntagged,
            OfferTagged,
            OfferUntagged,
            Nothing,
            Decline,
            Take,
        ]
    };

    /// Whether it is said because of what the peer has sent, by a head and perhaps a result: a note, when it waits (see `backlog`).
    pub(crate) fn is_note(self) -> bool {
        use MessageKind::*;
        matches!(
            self,
            Fetch | Finish | Reply | StageCopied | Settled | Room | AskTagged | AskUntagged | Nothing | Decline | Take
        )
    }

    fn from_label(label: u16) -> Option<MessageKind> {
        Self::ALL.get(usize::from(label & 0x1f).checked_sub(1)?).copied()
    }
}

/// How a remote operation or a fetch ended, on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Status {
    Success = 0,
    Denied = 1,
    Unsupported = 2,
    Fault = 3,
}

impl Status {
    pub(crate) fn from_word(word: u64) -> Status {
        match word as u8 {
            0 => Status::Success,
            1 => Status::Denied,
            2 => Status::Unsupported,
            _ => Status::Fault,
        }
    }
}

/// Whether a packet's label says that it is the first of a message.
#[inline]
pub(crate) fn is_first(label: u16) -> bool {
    label & FIRST != 0
}

/// A message's head as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: MessageKind,
    pub(crate) word: u64,
    /// Bytes of the body that follows the head.
    pub(crate) length: u32,
    pub(crate) aux: u32,
    pub(crate) data: Option<u64>,
    /// The message was held, and the receiver has forgotten it once.
    pub(crate) again: bool,
    prefix: [u8; PREFIX_BYTES],
    prefix_length: u8,
}

impl Head {
    #[inline]
    pub(crate) fn new(kind: MessageKind) -> Self {
        Head { kind, word: 0, length: 0, aux: 0, data: None, again: false, prefix: [0; PREFIX_BYTES], prefix_length: 0 }
    }

    #[inline]
    pub(crate) fn word(mut self, word: u64) -> Self {
        self.word = word;
        self
    }

    #[inline]
    pub(crate) fn aux(mut self, aux: u32) -> Self {
        self.aux = aux;
        self
    }

    #[inline]
    pub(crate) fn data(mut self, data: Option<u64>) -> Self {
        self.data = data;
        self
    }

    /// Adds a field of eight bytes to the prefix.
    pub(crate) fn with(mut self, field: u64) -> Self {
        let start = usize::from(self.prefix_length);
        self.prefix[start..start + 8].copy_from_slice(&field.to_le_bytes());
        self.prefix_length += 8;
        self
    }

    /// The `index`-th field of the prefix.
    pub(crate) fn field(&self, index: usize) -> u64 {
        u64_at(&self.prefix, index * 8).unwrap_or(0)
    }

    /// Bytes of the prefix that this kind of message has.
    #[inline]
    pub(crate) fn prefix_bytes(kind: MessageKind) -> usize {
        match kind {
            MessageKind::AnnounceTagged | MessageKind::AnnounceUntagged => 32,
            MessageKind::Fetch => 16,
            MessageKind::StagedPiece | MessageKind::AskTagged | MessageKind::AskUntagged => 8,
            MessageKind::OfferTagged | MessageKind::OfferUntagged => 8,
            MessageKind::Write | MessageKind::Atomic => 16,
            MessageKind::Read => 24,
            _ => 0,
        }
    }

    #[inline]
    pub(crate) fn label(&self) -> u16 {
        let data = match self.data {
            None => 0,
            Some(data) if data <= u64::from(u32::MAX) && self.data_fits_aux() => HAS_DATA,
            Some(_) => HAS_DATA | WIDE_DATA,
        };
        let again = if self.again { AGAIN } else { 0 };
        self.kind as u16 | FIRST | data | again
    }

    /// Kinds that use `aux` themselves carry completion data wide.
    #[inline]
    fn data_fits_aux(&self) -> bool {
        !matches!(self.kind, MessageKind::Write | MessageKind::OfferTagged | MessageKind::OfferUntagged)
    }

    /// Writes the head into the payload of a first packet; returns its size.
    #[inline]
    pub(crate) fn write(&self, payload: &mut [u8; PAYLOAD_BYTES]) -> usize {
        debug_assert_eq!(usize::from(self.prefix_length), Self::prefix_bytes(self.kind));
        let label = self.label();
        let wide = label & WIDE_DATA != 0;
        let aux = match self.data {
            Some(data) if !wide => data as u32,
            _ => self.aux,
        };
        payload[..8].copy_from_slice(&self.word.to_le_bytes());
        payload[8..12].copy_from_slice(&self.length.to_le_bytes());
        payload[12..16].copy_from_slice(&aux.to_le_bytes());
        let mut end = MESSAGE_HEADER_BYTES;
        if let (true, Some(data)) = (wide, self.data) {
            payload[end..end + 8].copy_from_slice(&data.to_le_bytes());
            end += 8;
        }
        let prefix = usize::from(self.prefix_length);
        payload[end..end + prefix].copy_from_slice(&self.prefix[..prefix]);
        end + prefix
    }

    /// Bytes that [`write`](Self::write) takes.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        let wide = if self.label() & WIDE_DATA != 0 { 8 } else { 0 };
        MESSAGE_HEADER_BYTES + wide + usize::from(self.prefix_length)
    }

    /// The head at the start of a first packet's payload and its size, or `None` if the packet is malformed.
    #[inline]
    pub(crate) fn parse(label: u16, payload: &[u8]) -> Option<(Head, usize)> {
        let mut head = Head::new(MessageKind::from_label(label)?);
        head.again = label & AGAIN != 0;
        let fixed: &[u8; MESSAGE_HEADER_BYTES] = payload.first_chunk()?;
        head.word = u64_at(fixed, 0)?;
        head.length = u32::from_le_bytes([fixed[8], fixed[9], fixed[10], fixed[11]]);
        head.aux = u32::from_le_bytes([fixed[12], fixed[13], fixed[14], fixed[15]]);
        let mut end = MESSAGE_HEADER_BYTES;
        if label & WIDE_DATA != 0 {
            head.data = Some(u64_at(payload, end)?);
            end += 8;
        } else if label & HAS_DATA != 0 {
            head.data = Some(u64::from(head.aux));
        }
        let prefix = Self::prefix_bytes(head.kind);
        head.prefix[..prefix].copy_from_slice(payload.get(end..end + prefix)?);
        head.prefix_length = prefix as u8;
        Some((head, end + prefix))
    }
}

/// The little-endian number at `offset`, if it is inside.
#[inline]
pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let field = bytes.get(offset..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*field))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(head: Head) {
        let mut payload = [0; PAYLOAD_BYTES];
        let size = head.write(&mut payload);
        assert_eq!(size, head.bytes());
        let (mut read, read_size) = Head::parse(head.label(), &payload[..size]).expect("parses");
        if head.data.is_some() && head.label() & WIDE_DATA == 0 {
            read.aux = head.aux;
        }
        assert_eq!((read, read_size), (head, size));
        for cut in 0..size {
            assert_eq!(Head::parse(head.label(), &payload[..cut]), None, "a head cut at {cut} is refused");
        }
    }

    #[test]
    fn heads_come_back_as_they_were_written() {
        let mut head = Head::new(MessageKind::EagerTagged);
        (head.word, head.length) = (u64::MAX, 2048);
        for data in [None, Some(0), Some(u64::from(u32::MAX)), Some(1 << 32), Some(u64::MAX)] {
            head.data = data;
            round_trip(head);
        }
        let mut announce = Head::new(MessageKind::AnnounceTagged).with(1).with(2).with(3).with(u64::MAX);
        announce.data = Some(u64::MAX);
        round_trip(announce);
        assert_eq!(announce.bytes(), PAYLOAD_BYTES, "the largest head still fits the first packet");
        let mut write = Head::new(MessageKind::Write).with(7).with(8);
        (write.aux, write.data) = (5, Some(1));
        round_trip(write);
        let mut offer = Head::new(MessageKind::OfferTagged).with(7);
        (offer.aux, offer.data, offer.again) = (5, Some(1), true);
        round_trip(offer);
    }

    #[test]
    fn unknown_kinds_are_refused() {
        for label in [0, 26, 31] {
            assert_eq!(Head::parse(label | FIRST, &[0; PAYLOAD_BYTES]), None);
        }
    }
}
