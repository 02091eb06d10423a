//! The packet: what one slot of a mailbox holds (P §2, §5.4).
//!
//! 64 bytes, one cache line: an 8-byte header and 56 bytes of payload. The header word, from bit 0 upwards:
//!
//! | bits | field | written by |
//! |---|---|---|
//! | 0–15 | `stamp`: which lap of the ring published the slot; 0 = never written | the link |
//! | 16–35 | `source`: the sender's index in the receiver's table of peers | the link |
//! | 36–37 | [`PacketKind`] | flow control |
//! | 38–43 | `length`: payload bytes in use, 0..=56 | flow control, messages |
//! | 44 | `piggyback`: the last two payload bytes return credits (P §5.4) | flow control |
//! | 48–63 | `label`: sixteen bits of the layer above, carried but never read here | messages |

/// Bytes of a slot and of the packet in it: one cache line.
pub const PACKET_BYTES: usize = 64;
/// Bytes of payload in a packet.
pub const PAYLOAD_BYTES: usize = 56;
/// Bytes at the end of the payload that a piggybacked credit count takes (P §5.4).
pub const PIGGYBACK_BYTES: usize = 2;

const STAMP_SHIFT: u32 = 0;
const SOURCE_SHIFT: u32 = 16;
const SOURCE_MASK: u64 = 0xf_ffff;
const KIND_SHIFT: u32 = 36;
const LENGTH_SHIFT: u32 = 38;
const PIGGYBACK_SHIFT: u32 = 44;
const LABEL_SHIFT: u32 = 48;

/// A peer, as an index into this endpoint's table of peers: `0..Config::peers`. A peer both receives from us and sends
/// to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId(pub u32);

/// What a packet is to flow control. Everything that an application or the message layer sends is [`PacketKind::Data`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketKind {
    /// Application data, or any packet of the message layer. Costs one credit.
    Data = 0,
    /// Explicit credit return (P §5.1). Costs none: the credit region holds it.
    Credit = 1,
    /// "Give back what you do not use" (P §6.1). Costs one credit.
    ReturnRequest = 2,
    /// The answer to it, with the credits given back. Costs one credit.
    ReturnResponse = 3,
}

/// The header word of a packet. A plain value; see the module for its layout.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header(u64);

impl Header {
    /// A header of `kind` with `length` payload bytes in use and the message layer's `label`.
    #[inline]
    pub fn new(kind: PacketKind, length: usize, label: u16) -> Self {
        debug_assert!(length <= PAYLOAD_BYTES);
        Header((kind as u64) << KIND_SHIFT | (length as u64) << LENGTH_SHIFT | u64::from(label) << LABEL_SHIFT)
    }

    /// The header as it stands in a slot.
    #[inline]
    pub fn from_bits(bits: u64) -> Self {
        Header(bits)
    }

    /// The word to put into a slot.
    #[inline]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The same header with the link's two fields filled in.
    #[inline]
    pub fn published(self, stamp: u16, source: PeerId) -> Self {
        debug_assert!(u64::from(source.0) <= SOURCE_MASK);
        let cleared = self.0 & !(0xffff << STAMP_SHIFT | SOURCE_MASK << SOURCE_SHIFT);
        Header(cleared | u64::from(stamp) << STAMP_SHIFT | u64::from(source.0) << SOURCE_SHIFT)
    }

    /// Lap of the ring that published the slot; 0 if it was never written.
    #[inline]
    pub fn stamp(self) -> u16 {
        (self.0 >> STAMP_SHIFT) as u16
    }

    /// The sender, as an index into the receiver's table of peers. Untrusted: may name a peer that does not exist.
    #[inline]
    pub fn source(self) -> PeerId {
        PeerId((self.0 >> SOURCE_SHIFT & SOURCE_MASK) as u32)
    }

    /// What flow control makes of the packet.
    #[inline]
    pub fn kind(self) -> PacketKind {
        match self.0 >> KIND_SHIFT & 3 {
            0 => PacketKind::Data,
            1 => PacketKind::Credit,
            2 => PacketKind::ReturnRequest,
            _ => PacketKind::ReturnResponse,
        }
    }

    /// Payload bytes in use. Untrusted input is clamped to [`PAYLOAD_BYTES`].
    #[inline]
    pub fn length(self) -> usize {
        ((self.0 >> LENGTH_SHIFT & 0x3f) as usize).min(PAYLOAD_BYTES)
    }

    /// Whether the last two payload bytes return credits.
    #[inline]
    pub fn has_piggyback(self) -> bool {
        self.0 >> PIGGYBACK_SHIFT & 1 != 0
    }

    /// Data on which no credits ride: most packets.
    #[inline]
    pub(crate) fn is_plain_data(self) -> bool {
        self.0 & (3 << KIND_SHIFT | 1 << PIGGYBACK_SHIFT) == 0
    }

    /// The message layer's sixteen bits.
    #[inline]
    pub fn label(self) -> u16 {
        (self.0 >> LABEL_SHIFT) as u16
    }
}

impl std::fmt::Debug for Header {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ride = if self.has_piggyback() { " piggyback" } else { "" };
        write!(f, "{:?} from {} len {} label {:#06x}{ride}", self.kind(), self.source().0, self.length(), self.label())
    }
}

/// One packet: the contents of one slot.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Packet {
    /// The header word.
    pub header: Header,
    /// The payload; only the first `header.length()` bytes (and a piggybacked count) mean anything.
    pub payload: [u8; PAYLOAD_BYTES],
}

impl Packet {
    /// A packet with an empty payload.
    #[inline]
    pub fn new(kind: PacketKind, length: usize, label: u16) -> Self {
        Packet { header: Header::new(kind, length, label), payload: [0; PAYLOAD_BYTES] }
    }

    /// A credit packet or a return response: a control packet that carries `credits`.
    pub fn with_credits(kind: PacketKind, credits: u32) -> Self {
        let mut packet = Packet::new(kind, 4, 0);
        packet.payload[..4].copy_from_slice(&credits.to_le_bytes());
        packet
    }

    /// The credits that a credit packet or a return response carries.
    #[inline]
    pub fn credits(&self) -> u32 {
        u32::from_le_bytes([self.payload[0], self.payload[1], self.payload[2], self.payload[3]])
    }

    /// Whether a piggybacked count would fit beside the payload.
    #[inline]
    pub fn has_room_to_piggyback(&self) -> bool {
        self.header.length() + PIGGYBACK_BYTES <= PAYLOAD_BYTES
    }

    /// Puts `credits` into the last two payload bytes and flags them (P §5.4).
    #[inline]
    pub fn set_piggyback(&mut self, credits: u16) {
        debug_assert!(self.has_room_to_piggyback());
        self.payload[PAYLOAD_BYTES - PIGGYBACK_BYTES..].copy_from_slice(&credits.to_le_bytes());
        self.header = Header(self.header.0 | 1 << PIGGYBACK_SHIFT);
    }

    /// The piggybacked credits, if the packet carries any.
    #[inline]
    pub fn piggyback(&self) -> Option<u16> {
        let tail = [self.payload[PAYLOAD_BYTES - 2], self.payload[PAYLOAD_BYTES - 1]];
        self.header.has_piggyback().then(|| u16::from_le_bytes(tail))
    }
}

/// A control packet that flow control wants sent now. What it costs has been paid; the caller only has to write it.
#[derive(Debug)]
#[must_use = "a control packet that is not sent loses credits"]
pub struct Control {
    /// Where it goes.
    pub to: PeerId,
    /// The packet: a credit packet, a return request or a return response.
    pub packet: Packet,
}
