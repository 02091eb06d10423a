//! The batch: what travels as one message of the network below. A header of 40 bytes, then what its kind says; all
//! numbers are little-endian.
//!
//! | bytes | field |
//! |---|---|
//! | 0–2 | mark `TGB` |
//! | 3 | version of this format, which follows that of addresses (`contact`): so it differs with strangers only |
//! | 4 | [`Kind`] |
//! | 5 | flags: 1 the sender is closing, 2 the sender's last batch; above them, in six bits, how many messages the
//!         sender has refused that found no posted buffer; of a pool of slots, how often it has refused or invited |
//! | 6–7 | the number of the message that the sender expects next in a posted buffer, or of the packet in a slot; see
//!         `buffers` and `slots` |
//! | 8–15 | `to`: the receiver's endpoint id (`Secret::id`). Batches with another one are dropped and counted |
//! | 16–23 | `from`: the sender's endpoint id |
//! | 24–31 | `sequence`: of this batch of packets among those to this peer; of a ping and its answer: its number |
//! | 32–37 | `acknowledged`: all batches of packets before this one have come |
//! | 38–39 | to how many slots of its pool the sender has invited last; 0 under other schemes |
//!
//! Behind that come packets of 64 bytes each ([`Kind::Packets`]), a part of a message that is carried beside packets,
//! with a [`Load`] of 8 bytes before it, and a packet or none ([`Kind::Loaded`]), a
//! [`Greeting`](super::greeting::Greeting)
//! ([`Kind::Hello`], [`Kind::Welcome`], [`Kind::Refusal`]), the sender's network address ([`Kind::Ping`]), or nothing.
//! A batch that is no packets, no acknowledgement and no [`Kind::Absent`] ends with a proof of 8 bytes (`admission`).

use tidegate_flow::{Header as PacketHeader, PACKET_BYTES, PAYLOAD_BYTES, Packet, PeerId};

/// Most bytes of a batch of packets.
pub const BATCH_BYTES: usize = 8192;
/// Most bytes of a message that one batch carries beside packets, if the network takes batches of that length. In one
/// piece it takes the two hosts' kernels half the time that it takes in two.
pub const PART_MOST: usize = 32 << 10;
/// Bytes of a batch that are no part of a message: behind the part, the packet that says what the message is has room,
/// and a proof.
pub const BESIDE_PART: usize = HEADER_BYTES + LOAD_BYTES + PACKET_BYTES + PROOF_BYTES;
/// Most bytes of any batch.
pub const LONGEST_BATCH_BYTES: usize = PART_MOST + BESIDE_PART;
/// Most bytes of one on networks whose longer messages take more ways, or more memory that is set aside: `ofi_rxm`
/// sends no more at once.
pub const SHORT_BATCH_BYTES: usize = 16 << 10;
/// Bytes of its header.
pub const HEADER_BYTES: usize = 40;
/// Most packets of a batch.
pub const PACKETS_PER_BATCH: usize = (BATCH_BYTES - HEADER_BYTES) / PACKET_BYTES;
/// The version of this format.
pub const VERSION: u8 = 12;
/// Most bytes of a greeting and the like: so a stranger's costs the hash of so many.
pub const TOLD_MOST: usize = 256;
/// Bytes of a proof.
pub const PROOF_BYTES: usize = 8;
/// Bytes of a [`Load`].
pub const LOAD_BYTES: usize = 8;

const MARK: [u8; 3] = *b"TGB";
const CLOSING: u8 = 1;
const LAST: u8 = 2;
const REFUSALS_FROM: u32 = 2;
/// Bits of the number of a batch that is acknowledged.
const ACKNOWLEDGED_BITS: u32 = 48;

/// How an endpoint answers for messages that have come for its posted buffers, or packets for its pool of slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// The number of the message, or packet, that it expects next.
    pub expected: u16,
    /// How often it has refused one, in six bits. Of a pool of slots: how often it has refused or invited, so that the
    /// number is odd while the sender has to wait.
    pub refusals: u8,
    /// To how many slots of its pool it has invited last.
    pub slots: u16,
}

/// What a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The first of a connection: who the sender is, and its parameters. It asks for a welcome.
    Hello = 1,
    /// The answer to a hello whose parameters fit.
    Welcome = 2,
    /// The answer to a hello whose parameters do not fit.
    Refusal = 3,
    /// Packets, perhaps none. These are in sequence, acknowledged, and kept until then.
    Packets = 4,
    /// Says only what has come.
    Acknowledgement = 5,
    /// Asks for an answer.
    Ping = 6,
    /// The answer to the ping of this number.
    Answer = 7,
    /// The sender wants to hear no more of the receiver.
    Severed = 8,
    /// A part of a message (`loading`), then a packet or none; else as [`Kind::Packets`].
    Loaded = 9,
    /// The endpoint that is named as the sender is not at the address where this comes from.
    Absent = 10,
}

impl Kind {
    const ALL: [Kind; 10] = [
        Kind::Hello,
        Kind::Welcome,
        Kind::Refusal,
        Kind::Packets,
        Kind::Acknowledgement,
        Kind::Ping,
        Kind::Answer,
        Kind::Severed,
        Kind::Loaded,
        Kind::Absent,
    ];

    /// Whether such a batch ends with a proof whatever it says.
    pub fn has_proof(self) -> bool {
        !matches!(self, Kind::Packets | Kind::Loaded | Kind::Acknowledgement | Kind::Absent)
    }
}

/// What stands before a part of a message that is carried beside packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Bytes of the part.
    pub part: u32,
    /// Bytes of the message in batches behind this one.
    pub rest: u32,
}

impl Load {
    /// Its bytes.
    pub fn to_bytes(self) -> [u8; LOAD_BYTES] {
        (u64::from(self.part) | u64::from(self.rest) << 32).to_le_bytes()
    }

    /// Splits the body of a batch: the load, its part, the packet if there is one. `None`: no part, or one that is
    /// longer than the body, or more packets.
    pub fn split(body: &[u8]) -> Option<(Load, &[u8], &[u8])> {
        let (head, behind) = body.split_first_chunk::<LOAD_BYTES>()?;
        let head = u64::from_le_bytes(*head);
        let load = Load { part: head as u32, rest: (head >> 32) as u32 };
        let (part, packets) = behind.split_at_checked(load.part as usize)?;
        let is_sound = !part.is_empty() && packets.len() <= PACKET_BYTES;
        is_sound.then_some((load, part, packets))
    }
}

/// The header of a batch, as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the batch is.
    pub kind: Kind,
    /// The sender matches nothing more, and will close.
    pub is_closing: bool,
    /// The sender sends no packets behind this batch.
    pub is_last: bool,
    /// The receiver's endpoint id.
    pub to: u64,
    /// The sender's endpoint id.
    pub from: u64,
    /// See the module.
    pub sequence: u64,
    /// See the module.
    pub acknowledged: u64,
    /// Of messages for posted buffers.
    pub receipt: Receipt,
}

/// Bytes that are no batch of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// A batch that has come: its header is sound, and its body has a length that its kind allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch<'a> {
    /// The header.
    pub header: Header,
    body: &'a [u8],
    /// All of it, with its proof, if it has one.
    pub whole: &'a [u8],
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u64::from_le_bytes(*word))
}

impl Header {
    /// Whether the batch ends with a proof: it is neither packets nor an acknowledgement, or its sender closes.
    pub fn has_proof(&self) -> bool {
        self.kind.has_proof() || self.is_closing || self.is_last
    }

    /// Writes the header to the first [`HEADER_BYTES`] of a batch.
    pub fn emit(&self, bytes: &mut [u8]) {
        bytes[0..3].copy_from_slice(&MARK);
        bytes[3] = VERSION;
        bytes[4] = self.kind as u8;
        let flags = (u8::from(self.is_closing) * CLOSING) | (u8::from(self.is_last) * LAST);
        bytes[5] = flags | self.receipt.refusals << REFUSALS_FROM;
        bytes[6..8].copy_from_slice(&self.receipt.expected.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.to.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.from.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.sequence.to_le_bytes());
        let acknowledged = self.acknowledged & ((1 << ACKNOWLEDGED_BITS) - 1);
        let word = acknowledged | u64::from(self.receipt.slots) << ACKNOWLEDGED_BITS;
        bytes[32..40].copy_from_slice(&word.to_le_bytes());
    }
}

impl<'a> Batch<'a> {
    /// Reads a batch; anything may stand in `bytes`.
    pub fn parse(bytes: &'a [u8]) -> Result<Batch<'a>, Malformed> {
        let (head, body) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(Malformed)?;
        if head[0..3] != MARK || head[3] != VERSION || bytes.len() > LONGEST_BATCH_BYTES {
            return Err(Malformed);
        }
        let (to, from, come) = (word(head, 8), word(head, 16), word(head, 32));
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u8 == head[4]).ok_or(Malformed)?;
        let header = Header {
            kind,
            is_closing: head[5] & CLOSING != 0,
            is_last: head[5] & LAST != 0,
            to,
            from,
            sequence: word(head, 24),
            acknowledged: come & ((1 << ACKNOWLEDGED_BITS) - 1),
            receipt: Receipt {
                expected: u16::from_le_bytes([head[6], head[7]]),
                refusals: head[5] >> REFUSALS_FROM,
                slots: (come >> ACKNOWLEDGED_BITS) as u16,
            },
        };
        let body = match header.has_proof() {
            true => body.split_last_chunk::<PROOF_BYTES>().ok_or(Malformed)?.0,
            false => body,
        };
        let is_sound = match kind {
            Kind::Packets => body.len().is_multiple_of(PACKET_BYTES) && bytes.len() <= BATCH_BYTES,
            Kind::Loaded => Load::split(body).is_some_and(|(.., packets)| packets.len().is_multiple_of(PACKET_BYTES)),
            Kind::Acknowledgement | Kind::Answer | Kind::Severed | Kind::Absent => body.is_empty(),
            Kind::Hello | Kind::Welcome | Kind::Refusal | Kind::Ping => (1..=TOLD_MOST).contains(&body.len()),
        };
        if !is_sound {
            return Err(Malformed);
        }
        Ok(Batch { header, body, whole: bytes })
    }

    /// All that follows the header, without the proof.
    pub fn body(&self) -> &'a [u8] {
        self.body
    }
}

/// The packets of a batch's body, as those of the peer at a place of our table. Of each, the link's fields are the
/// receiver's: `stamp` and `source`, and every packet has one slot.
pub fn packets(body: &[u8], stamp: u16, source: PeerId) -> impl Iterator<Item = Packet> {
    sent_packets(body).map(move |packet| Packet { header: packet.header.published(stamp, source), ..packet })
}

/// The packets of a batch's body as they were sent, each of one slot.
pub fn sent_packets(body: &[u8]) -> impl Iterator<Item = Packet> {
    body.chunks_exact(PACKET_BYTES).map(|bytes| {
        let header = PacketHeader::from_bits(word(bytes, 0) & !LINK_BITS);
        let mut payload = [0; PAYLOAD_BYTES];
        payload.copy_from_slice(&bytes[PACKET_BYTES - PAYLOAD_BYTES..]);
        Packet { header, payload }
    })
}

/// The headers of the packets of a body of ours.
pub fn headers(packets: &[u8]) -> impl Iterator<Item = PacketHeader> {
    packets.chunks_exact(PACKET_BYTES).map(|bytes| PacketHeader::from_bits(word(bytes, 0)))
}

/// What only a link says in a packet's header, and no peer: how many slots it takes, and that it follows another.
const LINK_BITS: u64 = 0x3f << 42 | 1 << 62;

/// Adds a packet to a batch.
pub fn push_packet(batch: &mut Vec<u8>, packet: &Packet) {
    batch.extend_from_slice(&packet.header.bits().to_le_bytes());
    batch.extend_from_slice(&packet.payload);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tidegate_flow::PacketKind;

    fn header(kind: Kind) -> Header {
        Header {
            kind,
            is_closing: true,
            is_last: false,
            to: 1,
            from: 2,
            sequence: 3,
            acknowledged: (1 << ACKNOWLEDGED_BITS) - 2,
            receipt: Receipt { expected: 0x8765, refusals: 0x3f, slots: 0xfffe },
        }
    }

    fn batch(kind: Kind, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        header(kind).emit(&mut bytes);
        bytes.extend_from_slice(body);
        if header(kind).has_proof() {
            bytes.extend_from_slice(&[0; PROOF_BYTES]);
        }
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        let loaded = [&Load { part: 3, rest: 7 }.to_bytes()[..], &[1, 2, 3], &[9; 64]].concat();
        let bodies =
            [(Kind::Packets, &[7; 128][..]), (Kind::Severed, &[]), (Kind::Hello, &[1, 2, 3]), (Kind::Loaded, &loaded)];
        for (kind, body) in bodies {
            let bytes = batch(kind, body);
            assert_eq!(Batch::parse(&bytes), Ok(Batch { header: header(kind), body, whole: &bytes }));
        }
        let load = Load { part: 3, rest: 7 };
        assert_eq!(Load::split(&loaded), Some((load, &[1, 2, 3][..], &[9; 64][..])));
        for wrong in [&loaded[..10], &loaded[..loaded.len() - 1], &Load { part: 0, rest: 0 }.to_bytes()] {
            assert_eq!(Batch::parse(&batch(Kind::Loaded, wrong)), Err(Malformed));
        }
    }

    #[test]
    fn packets_keep_all_but_what_the_link_says() {
        let mut packet = Packet::new(PacketKind::ReturnResponse, 56, 9);
        packet.payload = std::array::from_fn(|at| at as u8);
        let mut body = Vec::new();
        push_packet(&mut body, &packet);
        packet.header = packet.header.with_slots(7).following();
        push_packet(&mut body, &packet);
        for read in packets(&body, 5, PeerId(77)) {
            assert_eq!(
                (read.header.kind(), read.header.length(), read.header.message()),
                (packet.header.kind(), 56, 9)
            );
            assert_eq!((read.header.stamp(), read.header.source(), read.payload), (5, PeerId(77), packet.payload));
            assert_eq!(
                (read.header.slots(), read.header.follows()),
                (1, false),
                "packets of several slots are not sent"
            );
        }
    }

    #[test]
    fn other_versions_and_nonsense_are_no_batches() {
        let mut bytes = batch(Kind::Hello, &[1]);
        bytes[3] = VERSION + 1;
        assert_eq!(Batch::parse(&bytes), Err(Malformed));
        (bytes[0], bytes[3]) = (0, VERSION);
        assert_eq!(Batch::parse(&bytes), Err(Malformed));
        assert_eq!(Batch::parse(&batch(Kind::Packets, &[0; 63])), Err(Malformed));
        assert_eq!(Batch::parse(&batch(Kind::Packets, &[0; BATCH_BYTES])), Err(Malformed));
        for length in [0, TOLD_MOST + 1] {
            assert_eq!(Batch::parse(&batch(Kind::Ping, &vec![7; length])), Err(Malformed));
        }
    }

    proptest! {
        #[test]
        fn anything_may_come(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0_u8..14, is_marked: bool) {
            let mut bytes = bytes;
            if is_marked && bytes.len() >= HEADER_BYTES {
                bytes[0..3].copy_from_slice(&MARK);
                (bytes[3], bytes[4]) = (VERSION, kind);
            }
            if let Ok(batch) = Batch::parse(&bytes) {
                prop_assert_eq!(packets(batch.body(), 1, PeerId(2)).count(), batch.body().len() / PACKET_BYTES);
            }
        }
    }
}
