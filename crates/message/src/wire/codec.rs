//! What all messages share on the wire: their kinds, and the head's parts one by one.

use crate::operation::Queue;
use tidegate_flow::PAYLOAD_BYTES;

/// Bytes of the message header (P §3).
pub(crate) const MESSAGE_HEADER_BYTES: usize = 16;
/// Largest eager message whatever the configuration: a sender cannot make a receiver allocate more at once.
pub(crate) const LARGEST_EAGER_BYTES: usize = 1 << 20;

/// Largest body of a message that is neither eager nor bulk data.
pub(crate) const LARGEST_CONTROL_BYTES: usize = 4096;

/// Payload bytes of a piece of bulk data: 73 packets, all of them full.
pub(crate) const PIECE_BYTES: usize = 73 * PAYLOAD_BYTES - MESSAGE_HEADER_BYTES;

const LENGTH_BITS: u32 = 24;
const LENGTH_MASK: u32 = (1 << LENGTH_BITS) - 1;
/// Completion data is there.
pub(super) const HAS_DATA: u32 = 1 << 24;
/// Completion data takes eight bytes behind the header instead of four in it.
pub(super) const WIDE_DATA: u32 = 1 << 25;
/// The message was deferred, and the receiver has dropped its envelope once.
pub(super) const WAS_DROPPED: u32 = 1 << 26;
/// The sender of the message can read the memory of its receiver.
pub(super) const READS: u32 = 1 << 27;
/// The memory that the message names has a key.
pub(super) const IS_KEYED: u32 = 1 << 28;

const _: () = assert!(LARGEST_EAGER_BYTES <= LENGTH_MASK as usize);

/// Lists the kinds of messages once: name and number.
macro_rules! kinds {
    ($($(#[$meta:meta])* $name:ident = $number:literal,)*) => {
        /// What a message is for: the number in the packet header. 0 is none of them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum MessageKind {
            $($(#[$meta])* $name = $number,)*
        }

        impl MessageKind {
            /// All kinds.
            #[cfg(test)]
            pub(crate) const ALL: &[MessageKind] = &[$(MessageKind::$name,)*];

            #[inline]
            pub(crate) fn from_number(number: u8) -> Option<MessageKind> {
                match number {
                    $($number => Some(MessageKind::$name),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    EagerTagged = 1,
    EagerUntagged = 2,
    RequestToSendTagged = 3,
    RequestToSendUntagged = 4,
    ClearToSend = 5,
    Finished = 6,
    Piece = 7,
    Write = 8,
    Read = 9,
    ReadData = 10,
    Atomic = 11,
    Reply = 12,
    WriteNotice = 13,
    BouncedPiece = 14,
    BounceCopied = 15,
    DeferralNotice = 16,
    Acknowledged = 17,
    Room = 18,
    QueryTagged = 19,
    QueryUntagged = 20,
    OfferTagged = 21,
    OfferUntagged = 22,
    NoMatch = 23,
    Decline = 24,
    Accept = 25,
    Written = 26,
    CarriedTagged = 27,
    CarriedUntagged = 28,
    Asking = 29,
    Granted = 30,
    End = 31,
    Located = 32,
    DeferralCount = 33,
}

/// One kind of message, or two that differ in the queue only. What it says is in its fields; its body is not a part of
/// it.
pub(crate) trait Head: Sized {
    /// Fields of eight bytes behind the message header, completion data not counted.
    const FIELDS: usize;

    fn kind(&self) -> MessageKind;

    /// Completion data, and whether it needs eight bytes of its own.
    #[inline]
    fn wide_data(&self) -> bool {
        false
    }

    /// Bytes of the head.
    #[inline]
    fn bytes(&self) -> usize {
        MESSAGE_HEADER_BYTES + 8 * (Self::FIELDS + usize::from(self.wide_data()))
    }

    /// Writes the head.
    fn emit(&self, writer: &mut Writer<'_>);

    /// Reads the head that [`emit`](Self::emit) wrote, from bytes that anybody may have written. `None`: no correct
    /// peer has.
    fn parse(kind: MessageKind, reader: &mut Reader<'_>) -> Option<Self>;
}

/// Writes a head into the payload of a message's first packet.
pub(crate) struct Writer<'p> {
    payload: &'p mut [u8; PAYLOAD_BYTES],
    /// Bytes of the body that follows.
    body: u32,
    end: usize,
}

impl<'p> Writer<'p> {
    #[inline]
    pub(super) fn new(payload: &'p mut [u8; PAYLOAD_BYTES], body: u32) -> Self {
        debug_assert!(body <= LENGTH_MASK);
        Writer { payload, body, end: MESSAGE_HEADER_BYTES }
    }

    /// The message header, without completion data.
    #[inline]
    pub(super) fn header(&mut self, word: u64, aux: u32) {
        self.flagged(word, aux, 0);
    }

    #[inline]
    pub(super) fn flagged(&mut self, word: u64, aux: u32, flags: u32) {
        // Eight bytes at a time, as the link reads them: a wide load soon after narrow stores waits for them.
        let numbers = u64::from(self.body | flags) | u64::from(aux) << 32;
        self.payload[..8].copy_from_slice(&word.to_le_bytes());
        self.payload[8..16].copy_from_slice(&numbers.to_le_bytes());
    }

    /// The header of a message whose kind leaves the auxiliary number to completion data that is not wide.
    #[inline]
    pub(super) fn with_data(&mut self, word: u64, data: Option<u64>, flags: u32) {
        match data {
            None => self.flagged(word, 0, flags),
            Some(data) if !is_wide(Some(data)) => self.flagged(word, data as u32, flags | HAS_DATA),
            Some(data) => {
                self.flagged(word, 0, flags | HAS_DATA | WIDE_DATA);
                self.field(data);
            }
        }
    }

    #[inline]
    pub(super) fn field(&mut self, value: u64) {
        self.payload[self.end..self.end + 8].copy_from_slice(&value.to_le_bytes());
        self.end += 8;
    }

    /// Bytes of the head.
    #[inline]
    pub(super) fn end(&self) -> usize {
        self.end
    }
}

/// Reads a head out of the payload of a message's first packet.
pub(crate) struct Reader<'p> {
    pub(super) word: u64,
    pub(super) aux: u32,
    length: u32,
    /// What has not been read.
    rest: &'p [u8],
}

impl<'p> Reader<'p> {
    #[inline]
    pub(super) fn new(payload: &'p [u8]) -> Option<Self> {
        let (header, rest) = payload.split_first_chunk::<MESSAGE_HEADER_BYTES>()?;
        let [word, numbers] = header.as_chunks::<8>().0 else { return None };
        let numbers = u64::from_le_bytes(*numbers);
        Some(Reader { word: u64::from_le_bytes(*word), aux: (numbers >> 32) as u32, length: numbers as u32, rest })
    }

    /// Refuses flags other than these.
    #[inline]
    pub(super) fn allow(&self, flags: u32) -> Option<()> {
        (self.length & !(LENGTH_MASK | flags) == 0).then_some(())
    }

    #[inline]
    pub(super) fn has(&self, flag: u32) -> bool {
        self.length & flag != 0
    }

    /// Completion data, of a message that leaves the auxiliary number to it. Comes before all fields.
    #[inline]
    pub(super) fn data(&mut self) -> Option<Option<u64>> {
        if self.length & (HAS_DATA | WIDE_DATA) == 0 {
            return Some(None);
        }
        match (self.has(HAS_DATA), self.has(WIDE_DATA)) {
            (true, true) => Some(Some(self.field()?)),
            (true, false) => Some(Some(u64::from(self.aux))),
            (false, _) => None,
        }
    }

    #[inline]
    pub(super) fn field(&mut self) -> Option<u64> {
        let (field, rest) = self.rest.split_first_chunk::<8>()?;
        self.rest = rest;
        Some(u64::from_le_bytes(*field))
    }

    /// Bytes of the body.
    #[inline]
    pub(super) fn length(&self) -> usize {
        (self.length & LENGTH_MASK) as usize
    }

    #[inline]
    pub(super) fn rest(&self) -> &'p [u8] {
        self.rest
    }
}

/// Whether completion data finds no room in the auxiliary number.
#[inline]
pub(super) fn is_wide(data: Option<u64>) -> bool {
    data.is_some_and(|data| data > u64::from(u32::MAX))
}

/// The one of two kinds that is of this queue.
#[inline]
pub(super) fn of_queue(queue: Queue, tagged: MessageKind, untagged: MessageKind) -> MessageKind {
    match queue {
        Queue::Tagged => tagged,
        Queue::Untagged => untagged,
    }
}

/// The queue of a kind that is one of two; the opposite of [`of_queue`].
#[inline]
pub(super) fn queue_among(kind: MessageKind, tagged: MessageKind, untagged: MessageKind) -> Option<Queue> {
    queue_of_number(kind as u8, tagged, untagged)
}

/// The same of a number that may be of no kind.
#[inline]
pub(super) fn queue_of_number(number: u8, tagged: MessageKind, untagged: MessageKind) -> Option<Queue> {
    match number {
        _ if number == tagged as u8 => Some(Queue::Tagged),
        _ if number == untagged as u8 => Some(Queue::Untagged),
        _ => None,
    }
}

/// The little-endian number at `offset`, if it is inside.
#[inline]
pub(super) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let field = bytes.get(offset..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*field))
}
