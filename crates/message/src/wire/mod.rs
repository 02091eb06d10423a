//! What messages look like in packets.
//!
//! A message is a *head* and a body, cut into packets of [`PAYLOAD_BYTES`]. The head travels whole in the first packet;
//! its kind is in the header of that packet, and packets in which no message begins say kind 0 there. Packets of one
//! message follow each other without gaps in the stream from one sender to one receiver, flow control's own packets
//! excepted. All numbers are little-endian.
//!
//! The bytes of the first packet's payload:
//!
//! - 0–7: P's message header (§3): a word.
//! - 8–11: bits 0–23: the body's length; 24: completion data is there; 25: it is wide; 26: the receiver has dropped the
//!   envelope once; 27: spare; 28: the memory that it names has a key; 29–31: spare.
//! - 12–15: an auxiliary number, or completion data that is not wide.
//! - then 8: completion data, if it is wide.
//! - then up to 32: fields of the kind, 8 bytes each.
//! - then: the body.
//!
//! What word, auxiliary number and fields mean is said by a struct for each kind, in a file for each family. A head
//! with flags that its kind does not know is refused.

mod codec;
mod deferral;
mod eager;
mod rendezvous;
mod rma;
mod sessions;

use codec::{Head, Reader, Writer};
use tidegate_flow::PAYLOAD_BYTES;

pub(crate) use codec::{LARGEST_CONTROL_BYTES, LARGEST_EAGER_BYTES, MESSAGE_HEADER_BYTES, MessageKind, PIECE_BYTES};
pub(crate) use deferral::{
    Accept, Acknowledged, BATCH_MOST, Decline, DeferralCount, DeferralNotice, ENTRY_BYTES, Entry, NoMatch, Offer,
    Query, Room,
};
pub(crate) use eager::{Carried, Eager};
pub(crate) use rendezvous::{
    BounceCopied, BouncedPiece, ClearToSend, Finished, Located, Piece, RequestToSend, SPAN_BYTES, Written,
};
pub(crate) use rma::{Atomic, Ends, Read, ReadData, Reply, Status, Write, WriteNotice};
pub(crate) use sessions::{Asking, End, Granted, NEEDS_MOST};

/// Makes an enum of the heads of a group, and perhaps an inner group, which can do what each of them can.
macro_rules! heads {
    ($(#[$meta:meta])* $group:ident $(($inner:ident))? { $($name:ident($($kind:ident)|+),)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $group {
            $($name($name),)*
            $($inner($inner),)?
        }

        impl $group {
            fn kind_of_head(&self) -> MessageKind {
                match self {
                    $($group::$name(head) => head.kind(),)*
                    $($group::$inner(inner) => inner.kind_of_head(),)?
                }
            }

            fn bytes_of_head(&self) -> usize {
                match self {
                    $($group::$name(head) => head.bytes(),)*
                    $($group::$inner(inner) => inner.bytes_of_head(),)?
                }
            }

            fn emit_head(&self, writer: &mut Writer<'_>) {
                match self {
                    $($group::$name(head) => head.emit(writer),)*
                    $($group::$inner(inner) => inner.emit_head(writer),)?
                }
            }

            fn parse_head(kind: MessageKind, reader: &mut Reader<'_>) -> Option<Self> {
                match kind {
                    $($(MessageKind::$kind)|+ => Some($group::$name($name::parse(kind, reader)?)),)*
                    #[allow(unreachable_patterns)]
                    _ => None$(.or_else(|| $inner::parse_head(kind, reader).map($group::$inner)))?,
                }
            }
        }

        $(impl From<$name> for Message {
            #[inline]
            fn from(head: $name) -> Message {
                $group::$name(head).into_message()
            }
        })*
    };
}

heads! {
    /// The head of any message.
    Message(Note) {
        Eager(EagerTagged | EagerUntagged),
        Carried(CarriedTagged | CarriedUntagged),
        RequestToSend(RequestToSendTagged | RequestToSendUntagged),
        Piece(Piece),
        BouncedPiece(BouncedPiece),
        Located(Located),
        Write(Write),
        Read(Read),
        ReadData(ReadData),
        Atomic(Atomic),
        WriteNotice(WriteNotice),
        DeferralNotice(DeferralNotice),
        DeferralCount(DeferralCount),
        Offer(OfferTagged | OfferUntagged),
    }
}

heads! {
    /// What is said because of what the peer has sent, by a head and perhaps a result (see `egress::backlog`).
    Note {
        ClearToSend(ClearToSend),
        Finished(Finished),
        Reply(Reply),
        BounceCopied(BounceCopied),
        Acknowledged(Acknowledged),
        Room(Room),
        Query(QueryTagged | QueryUntagged),
        NoMatch(NoMatch),
        Decline(Decline),
        Accept(Accept),
        Written(Written),
        Asking(Asking),
        Granted(Granted),
        End(End),
    }
}

impl Note {
    fn into_message(self) -> Message {
        Message::Note(self)
    }
}

impl Message {
    #[inline]
    fn into_message(self) -> Message {
        self
    }

    /// What the header of its first packet says.
    #[inline]
    pub(crate) fn kind(&self) -> MessageKind {
        match self {
            // Most messages are eager: they skip the larger switch.
            Message::Eager(eager) => eager.kind(),
            _ => self.kind_of_head(),
        }
    }

    /// Bytes of the head.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Message::Eager(eager) => eager.bytes(),
            _ => self.bytes_of_head(),
        }
    }

    /// Writes the head into the payload of a first packet, for a body of so many bytes; returns its size.
    #[inline]
    pub(crate) fn emit(&self, body: u32, payload: &mut [u8; PAYLOAD_BYTES]) -> usize {
        if let Message::Eager(eager) = self {
            return eager.emit_payload(body, payload);
        }
        let mut writer = Writer::new(payload, body);
        self.emit_head(&mut writer);
        writer.end()
    }

    /// The head at the start of a first packet's payload, the length of the body, and as much of that as the packet
    /// has. `None`: no correct peer has sent it.
    pub(crate) fn parse(kind: u8, payload: &[u8]) -> Option<(Message, usize, &[u8])> {
        let kind = MessageKind::from_number(kind)?;
        let mut reader = Reader::new(payload)?;
        let message = Message::parse_head(kind, &mut reader)?;
        Some((message, reader.length(), reader.rest()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Span;
    use crate::operation::{AtomicOp, AtomicType, Queue};

    /// Numbers that are the same in every run: xorshift.
    struct Random(u64);

    impl Random {
        fn bits(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }

        /// A payload whose flags are possible ones, with some numbers that are 0.
        fn payload(&mut self) -> [u8; PAYLOAD_BYTES] {
            let mut payload = std::array::from_fn(|_| (self.bits() >> 32) as u8 >> (self.0 & 7));
            let numbers = payload.as_chunks_mut::<4>().0.iter_mut();
            numbers.filter(|_| self.bits() >> 62 == 0).for_each(|number| *number = [0; 4]);
            payload[11] = (self.bits() >> 40) as u8 & 0b1_0111;
            payload
        }
    }

    /// Checks that a message comes back as it was written, and that no part of its head will do.
    fn round_trip(message: Message, body: usize) {
        let mut payload = [0; PAYLOAD_BYTES];
        let size = message.emit(body as u32, &mut payload);
        assert_eq!(size, message.bytes(), "{message:?}");
        let kind = message.kind() as u8;
        assert_eq!(Message::parse(kind, &payload[..size]), Some((message, body, &[][..])));
        let (_, _, rest) = Message::parse(kind, &payload).expect("more than a head is a head and a part of the body");
        assert_eq!(rest.len(), PAYLOAD_BYTES - size);
        for cut in 0..size {
            assert_eq!(Message::parse(kind, &payload[..cut]), None, "{message:?} cut at {cut} is refused");
        }
    }

    #[test]
    fn messages_of_all_kinds_come_back_as_they_were_written_and_cut_ones_are_refused() {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        for &kind in MessageKind::ALL {
            let mut read = 0;
            for _ in 0..5000 {
                let Some((message, body, _)) = Message::parse(kind as u8, &random.payload()) else { continue };
                assert_eq!(message.kind(), kind);
                round_trip(message, body);
                read += 1;
            }
            assert!(read > 20, "{kind:?}: only {read} of 5000 heads were read");
        }
    }

    #[test]
    fn completion_data_of_every_width_comes_back() {
        for data in [None, Some(0), Some(u64::from(u32::MAX)), Some(1 << 32), Some(u64::MAX)] {
            for (queue, tag) in [(Queue::Tagged, u64::MAX), (Queue::Untagged, 0)] {
                for was_dropped in [false, true] {
                    round_trip(Eager { queue, tag, data, was_dropped }.into(), 2048);
                    let first = Span { address: u64::MAX, length: 7 };
                    let (send, length, spans) = (u32::MAX, u64::MAX, 3);
                    for bounce in [None, Some(0), Some(u16::MAX - 1)] {
                        let names = RequestToSend {
                            queue,
                            tag,
                            data,
                            was_dropped,
                            send,
                            length,
                            spans,
                            first,
                            bounce,
                            is_keyed: was_dropped,
                        };
                        round_trip(names.into(), 32);
                        assert!(Message::from(names).bytes() <= PAYLOAD_BYTES, "the largest head fits a packet");
                    }
                }
                round_trip(Offer { queue, tag, data, send: 5, length: 9 }.into(), 9);
            }
            for is_further in [false, true] {
                round_trip(WriteNotice { length: 8, data, region: u64::MAX, is_further }.into(), 0);
            }
        }
    }

    #[test]
    fn unknown_kinds_and_flags_are_refused() {
        let known = |kind: &u8| MessageKind::from_number(*kind).is_some();
        assert_eq!((0..=u8::MAX).filter(known).collect::<Vec<_>>(), (1..=33).collect::<Vec<_>>());
        for kind in (0..=u8::MAX).filter(|kind| !known(kind)) {
            assert_eq!(Message::parse(kind, &[0; PAYLOAD_BYTES]), None);
        }
        for &kind in MessageKind::ALL {
            let is_request = matches!(kind, MessageKind::RequestToSendTagged | MessageKind::RequestToSendUntagged);
            let reads = kind == MessageKind::ClearToSend;
            for flag in (27..32).filter(|flag| !(*flag == 28 && is_request || *flag == 27 && reads)) {
                let mut payload = [0; PAYLOAD_BYTES];
                payload[8..12].copy_from_slice(&(1_u32 << flag).to_le_bytes());
                assert_eq!(Message::parse(kind as u8, &payload), None, "{kind:?} with flag {flag}");
            }
        }
    }

    /// What others read is these bytes.
    #[test]
    fn an_eager_message_and_an_atomic_lie_as_the_table_says() {
        let mut payload = [0; PAYLOAD_BYTES];
        let eager = Eager { queue: Queue::Tagged, tag: 0x0102, data: Some(3), was_dropped: true };
        assert_eq!((eager.kind() as u8, Message::from(eager).emit(8, &mut payload)), (1, 16));
        assert_eq!(payload[..16], [2, 1, 0, 0, 0, 0, 0, 0, 8, 0, 0, 5, 3, 0, 0, 0]);
        let atomic = Atomic {
            operation: 4,
            position: 8,
            region: 9,
            offset: 16,
            datatype: AtomicType::Uint64,
            op: AtomicOp::Read,
            wants_result: true,
            elements: 2,
            ends: Ends::Operation,
        };
        assert_eq!(Message::from(atomic).emit(0, &mut payload), 32);
        assert_eq!(payload[..16], [8, 0, 0, 0, 0x87, 138, 2, 0, 0, 0, 0, 0, 4, 0, 0, 0]);
    }

    #[test]
    fn entries_and_pieces_of_memory_come_back_as_they_were_written() {
        for (queue, tag) in [(Queue::Tagged, 7), (Queue::Untagged, 0)] {
            for data in [None, Some(0), Some(u64::MAX)] {
                let entry = Entry { send: 3, queue, length: 1 << 40, tag, data };
                let mut body = Vec::new();
                entry.emit(&mut body);
                assert_eq!((body.len(), Entry::parse(&body)), (Entry::BYTES, Some(entry)));
                (0..Entry::BYTES).for_each(|cut| assert_eq!(Entry::parse(&body[..cut]), None));
                body[5] = 1;
                assert_eq!(Entry::parse(&body), None, "an unknown flag");
            }
        }
        let all = [1, 2, 3].map(|n| Span { address: n << 50, length: n });
        for (count, key) in [(0, 0), (1, 0), (2, 0), (3, 0), (1, 5), (3, u64::MAX)] {
            let (spans, body) = (&all[..count], RequestToSend::body_of(key, &all[..count]));
            let first = spans.first().copied().unwrap_or(Span { address: 0, length: 0 });
            let (queue, data) = (Queue::Untagged, None);
            let head = RequestToSend {
                queue,
                tag: 0,
                data,
                was_dropped: false,
                send: 0,
                length: 6,
                spans: count as u16,
                first,
                bounce: None,
                is_keyed: key != 0,
            };
            assert_eq!(body.len() % 16, if key == 0 { 0 } else { 8 }, "memory without a key costs nothing for one");
            let (said, named) = head.memory(&body).expect("it is as it was written");
            assert_eq!((said, &named[..], named.capacity()), (key, spans, count), "stored, it takes what is paid for");
            assert_eq!(head.memory(&[body, vec![0]].concat()), None, "a body that is too long");
        }
    }
}
