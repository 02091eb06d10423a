//! The packet: what one slot of a mailbox holds (P §2, §5.4).
//!
//! 64 bytes, one cache line: an 8-byte header and 56 bytes of payload. The header word, from bit 0 upwards:
//!
//! | bits | field | written by |
//! |---|---|---|
//! | 0–15 | `stamp`: which lap of the ring published the slot; 0 = never written | the link |
//! | 16–35 | `source`: the sender's index in the receiver's table of peers | the link |
//! | 36–37 | [`PacketKind`] | flow control |
//! | 38 | `piggyback`: the last two payload bytes return credits (P §5.4) | flow control |
//! | 39 | congestion mark: a switch or receiver on the way was congested (InfiniBand's FECN) | the network |
//! | 40 | congestion echo: what we sent came with that mark (InfiniBand's BECN) | reserved |
//! | 41 | the packet is the last in its buffer, under schemes whose receivers post buffers | flow control |
//! | 42–47 | slots that the packet takes, less one: it may take up to 64 that follow each other | the link |
//! | 48–53 | `length`: payload bytes in use in this slot, 0..=56; 56 in all but the last | flow control, messages |
//! | 54–61 | `message`: kind of the message that begins here; 0: the packet goes on with the last one | messages |
//! | 62 | the slot belongs to the packet that begins before it | the link |
//! | 63 | the message in this buffer has waited for a credit (L §4.3) | flow control |
//!
//! What is reserved is 0 when written and not looked at when read. Each slot of a packet has a header of its own; flow
//! control and messages read those of the first and the last. A refusal ("receiver not ready") is no packet: links and
//! the simulator's interfaces tell each other of it.

/// Bytes of a slot and of the packet in it: one cache line.
pub const PACKET_BYTES: usize = 64;
/// Bytes of payload in a packet.
pub const PAYLOAD_BYTES: usize = 56;
/// Bytes at the end of the payload that a piggybacked credit count takes (P §5.4).
pub const PIGGYBACK_BYTES: usize = 2;

/// A part of the header word.
#[derive(Clone, Copy)]
struct Field {
    /// Its lowest bit.
    first: u32,
    bits: u32,
}

impl Field {
    const fn mask(self) -> u64 {
        ((1 << self.bits) - 1) << self.first
    }

    #[inline]
    const fn of(self, word: u64) -> u64 {
        (word & self.mask()) >> self.first
    }

    /// The word in which nothing else is set. `value` has no more bits than the field.
    #[inline]
    const fn with(self, value: u64) -> u64 {
        debug_assert!(value <= self.mask() >> self.first);
        value << self.first
    }
}

const STAMP: Field = Field { first: 0, bits: 16 };
const SOURCE: Field = Field { first: 16, bits: 20 };
const KIND: Field = Field { first: 36, bits: 2 };
const PIGGYBACK: Field = Field { first: 38, bits: 1 };
const CONGESTION_MARK: Field = Field { first: 39, bits: 1 };
const CONGESTION_ECHO: Field = Field { first: 40, bits: 1 };
const ENDS_BUFFER: Field = Field { first: 41, bits: 1 };
const SLOTS_LESS_ONE: Field = Field { first: 42, bits: 6 };
const LENGTH: Field = Field { first: 48, bits: 6 };
const MESSAGE: Field = Field { first: 54, bits: 8 };
const FOLLOWS: Field = Field { first: 62, bits: 1 };
const HAS_WAITED: Field = Field { first: 63, bits: 1 };

/// Most slots of a packet.
pub const MOST_SLOTS_PER_PACKET: u32 = 1 << SLOTS_LESS_ONE.bits;

/// The fields lie one behind the other, and there is no bit between them.
const _: () = {
    let fields = [
        STAMP,
        SOURCE,
        KIND,
        PIGGYBACK,
        CONGESTION_MARK,
        CONGESTION_ECHO,
        ENDS_BUFFER,
        SLOTS_LESS_ONE,
        LENGTH,
        MESSAGE,
        FOLLOWS,
        HAS_WAITED,
    ];
    let (mut at, mut index) = (0, 0);
    while index < fields.len() {
        assert!(fields[index].first == at);
        at += fields[index].bits;
        index += 1;
    }
    assert!(at == 64 && PAYLOAD_BYTES < 1 << LENGTH.bits);
};

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

/// What a link wants in the headers of packets that are filled where they will stay: its own fields. The default is
/// nothing, of a link that fills them in later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement(u64);

impl Placement {
    /// Of slots that belong to the packet before.
    #[inline]
    pub fn following(stamp: u16, source: PeerId) -> Self {
        Placement(Header(0).following().published(stamp, source).0)
    }
}

/// The header word of a packet. A plain value; see the module for its layout.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Header(u64);

impl Header {
    /// A header of `kind`, one slot, with `length` payload bytes in use, in which a message of the kind `message`
    /// begins.
    #[inline]
    pub fn new(kind: PacketKind, length: usize, message: u8) -> Self {
        debug_assert!(length <= PAYLOAD_BYTES);
        Header(KIND.with(kind as u64) | LENGTH.with(length as u64) | MESSAGE.with(message as u64))
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
        let cleared = self.0 & !(STAMP.mask() | SOURCE.mask());
        Header(cleared | STAMP.with(u64::from(stamp)) | SOURCE.with(u64::from(source.0)))
    }

    /// The same header, of a packet that is filled where it will stay.
    #[inline]
    pub fn placed(self, placement: Placement) -> Self {
        Header(self.0 | placement.0)
    }

    /// Whether the link's fields are these.
    #[inline]
    pub fn is_placed(self, placement: Placement) -> bool {
        self.0 & (STAMP.mask() | SOURCE.mask() | FOLLOWS.mask()) == placement.0
    }

    /// The header of the first slot of a packet of so many, at most [`MOST_SLOTS_PER_PACKET`].
    #[inline]
    pub fn with_slots(self, slots: u32) -> Self {
        debug_assert!((1..=MOST_SLOTS_PER_PACKET).contains(&slots));
        Header(self.0 & !SLOTS_LESS_ONE.mask() | SLOTS_LESS_ONE.with(u64::from(slots - 1)))
    }

    /// Slots that the packet takes which begins here: this one, and those behind it that [follow](Self::follows).
    #[inline]
    pub fn slots(self) -> u32 {
        SLOTS_LESS_ONE.of(self.0) as u32 + 1
    }

    /// Whether a packet of several slots may begin so: with data, as much as there is room for.
    #[inline]
    pub fn begins_long_packet(self) -> bool {
        self.kind() == PacketKind::Data && self.length() == PAYLOAD_BYTES && !self.follows()
    }

    /// The header of a slot that belongs to the packet before.
    #[inline]
    pub fn following(self) -> Self {
        Header(self.0 | FOLLOWS.mask())
    }

    /// Whether the slot belongs to the packet that begins before it.
    #[inline]
    pub fn follows(self) -> bool {
        FOLLOWS.of(self.0) != 0
    }

    /// Lap of the ring that published the slot; 0 if it was never written.
    #[inline]
    pub fn stamp(self) -> u16 {
        STAMP.of(self.0) as u16
    }

    /// The sender, as an index into the receiver's table of peers. Untrusted: may name a peer that does not exist.
    #[inline]
    pub fn source(self) -> PeerId {
        PeerId(SOURCE.of(self.0) as u32)
    }

    /// What flow control makes of the packet.
    #[inline]
    pub fn kind(self) -> PacketKind {
        match KIND.of(self.0) {
            0 => PacketKind::Data,
            1 => PacketKind::Credit,
            2 => PacketKind::ReturnRequest,
            _ => PacketKind::ReturnResponse,
        }
    }

    /// Payload bytes in use. Untrusted input is clamped to [`PAYLOAD_BYTES`].
    #[inline]
    pub fn length(self) -> usize {
        (LENGTH.of(self.0) as usize).min(PAYLOAD_BYTES)
    }

    /// Whether the last two payload bytes return credits.
    #[inline]
    pub fn has_piggyback(self) -> bool {
        PIGGYBACK.of(self.0) != 0
    }

    /// Data on which no credits ride: most packets.
    #[inline]
    pub(crate) fn is_plain_data(self) -> bool {
        self.0 & (KIND.mask() | PIGGYBACK.mask()) == 0
    }

    /// The kind of the message that begins with this packet; 0: it goes on with the message before. Flow control
    /// carries the kind and never reads it.
    #[inline]
    pub fn message(self) -> u8 {
        MESSAGE.of(self.0) as u8
    }

    /// Whether the packet is the last in its buffer: the next one from the same sender begins another buffer. Each
    /// control packet has a buffer of its own, and need not say so.
    #[inline]
    pub fn ends_buffer(self) -> bool {
        ENDS_BUFFER.of(self.0) != 0
    }

    /// Whether another buffer begins behind the packet: it ends its own, or is a control packet, which has one to
    /// itself.
    #[inline]
    pub fn is_last_in_buffer(self) -> bool {
        self.kind() != PacketKind::Data || self.ends_buffer()
    }

    /// The same header of a packet that is the last in its buffer.
    #[inline]
    #[must_use]
    pub fn ending_buffer(self) -> Self {
        Header(self.0 | ENDS_BUFFER.mask())
    }

    /// Whether the message in the buffer that this packet ends has waited for a credit, in its sender's backlog or,
    /// injected, with its program (L §4.3).
    #[inline]
    pub fn has_waited(self) -> bool {
        HAS_WAITED.of(self.0) != 0
    }

    /// The same header of the last packet of a message that has waited.
    #[inline]
    #[must_use]
    pub fn after_waiting(self) -> Self {
        Header(self.0 | HAS_WAITED.mask())
    }

    /// Whether a switch or receiver on the way was congested (InfiniBand's FECN).
    #[inline]
    pub fn is_marked(self) -> bool {
        CONGESTION_MARK.of(self.0) != 0
    }

    /// The same header with the congestion mark set.
    #[inline]
    pub fn marked(self) -> Self {
        Header(self.0 | CONGESTION_MARK.mask())
    }
}

impl std::fmt::Debug for Header {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ride = if self.has_piggyback() { " piggyback" } else { "" };
        write!(f, "{:?} from {} len {} message {}{ride}", self.kind(), self.source().0, self.length(), self.message())
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
    pub fn new(kind: PacketKind, length: usize, message: u8) -> Self {
        Packet { header: Header::new(kind, length, message), payload: [0; PAYLOAD_BYTES] }
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

    /// The same packet, filled where it will stay.
    #[inline]
    #[must_use]
    pub fn placed(mut self, placement: Placement) -> Self {
        self.header = self.header.placed(placement);
        self
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
        // The whole last word, as the link reads it: a wide load soon after a narrow store waits for it.
        const FREE: u32 = 64 - 8 * PIGGYBACK_BYTES as u32;
        let Some(last) = self.payload.last_chunk_mut::<8>() else { return };
        let kept = u64::from_le_bytes(*last) & ((1 << FREE) - 1);
        *last = (kept | u64::from(credits) << FREE).to_le_bytes();
        self.header = Header(self.header.0 | PIGGYBACK.mask());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_header_do_not_touch_each_other() {
        let kinds = [PacketKind::Data, PacketKind::Credit, PacketKind::ReturnRequest, PacketKind::ReturnResponse];
        for kind in kinds {
            for (length, message) in [(0, 0), (56, 0), (0, u8::MAX), (17, 25)] {
                for (stamp, source) in [(0, 0), (u16::MAX, 0), (1, 0xf_ffff)] {
                    let mut packet = Packet::new(kind, length, message);
                    packet.header = packet.header.published(stamp, PeerId(source));
                    for riding in [false, length + PIGGYBACK_BYTES <= PAYLOAD_BYTES] {
                        if riding {
                            packet.set_piggyback(513);
                        }
                        let header = Header::from_bits(packet.header.bits());
                        assert_eq!((header.kind(), header.length(), header.message()), (kind, length, message));
                        assert_eq!((header.stamp(), header.source()), (stamp, PeerId(source)));
                        assert_eq!((header.has_piggyback(), packet.piggyback()), (riding, riding.then_some(513)));
                        assert_eq!(SLOTS_LESS_ONE.of(header.bits()), 0, "one slot");
                        assert_eq!((header.ends_buffer(), header.has_waited()), (false, false));
                        let ended = header.ending_buffer();
                        assert_eq!((ended.ends_buffer(), ended.has_waited(), ended.kind()), (true, false, kind));
                        let waited = header.after_waiting();
                        assert_eq!((waited.ends_buffer(), waited.has_waited(), waited.length()), (false, true, length));
                        assert_eq!(ended.is_plain_data(), header.is_plain_data());
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_reserved_makes_no_difference() {
        let packet = Packet::new(PacketKind::Data, 40, 3);
        for field in [CONGESTION_MARK, CONGESTION_ECHO, SLOTS_LESS_ONE] {
            let header = Header::from_bits(packet.header.bits() | field.mask());
            assert_eq!((header.kind(), header.length(), header.message()), (PacketKind::Data, 40, 3));
            assert!(!header.has_piggyback() && header.is_plain_data());
        }
    }
}
