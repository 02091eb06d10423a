//! A message on its way out, and how it is cut into packets (P §3).

use crate::collections::slab::Key;
use crate::completion::Notice;
use crate::link::{Buffer, Fill};
use crate::operation::{Send, Space};
use crate::wire::{Atomic, Carried, Eager, LARGEST_EAGER_BYTES, Message, Read, RequestToSend, Write};
use tidegate_flow::{FlowControl, Header, PAYLOAD_BYTES, Packet, PacketKind, PeerId, Placement};

/// Where the body of a message that leaves comes from.
#[derive(Debug)]
pub(crate) enum Body<B> {
    None,
    /// Bytes of our own.
    Owned(Box<[u8]>),
    /// The application's memory.
    Borrowed(B),
}

/// What leaves packet by packet.
pub(crate) trait Departing {
    /// Packets that have left.
    fn packets_gone(&self) -> u32;

    /// Packets that have not.
    fn packets_left(&self) -> u32;

    /// Whether it has waited to leave.
    fn has_waited(&self) -> bool;

    /// Makes `packets` the message's from the `index`-th on. They are filled in place: a copy of a packet on its way
    /// waits for stores that the processor cannot forward.
    fn fill(&self, index: u32, packets: &mut [Packet], placement: Placement);

    /// So many more packets have left.
    fn note_gone(&mut self, packets: u32);
}

/// Fills the next packets of a message, and lets credits ride on the last of those that are filled together.
pub(super) struct FillSome<'a, M> {
    pub(super) message: &'a M,
    pub(super) flow: &'a mut FlowControl,
    pub(super) to: PeerId,
    /// The next packet.
    pub(super) index: u32,
    /// Packets that have credits and are not filled.
    pub(super) left: u32,
    /// Credits that ride.
    pub(super) riding: &'a mut u32,
}

impl<M: Departing> Fill for FillSome<'_, M> {
    #[inline(always)]
    fn fill(&mut self, packets: &mut [Packet], placement: Placement) {
        self.message.fill(self.index, packets, placement);
        self.index += packets.len() as u32;
        self.left -= packets.len() as u32;
        // All but a message's last are full.
        if let Some(packet) = packets.last_mut() {
            *self.riding += self.flow.before_send(self.to, packet, self.left);
        }
    }
}

#[inline]
pub(super) fn head_of(space: Space, data: Option<u64>) -> Eager {
    Eager { queue: space.queue(), tag: space.tag(), data, was_dropped: false }
}

/// A message on its way out.
#[derive(Debug)]
pub(crate) struct Outgoing<B> {
    pub(crate) head: Message,
    pub(crate) body: Body<B>,
    /// Packets that have left. All but the last are full.
    pub(super) packets: u32,
    head_bytes: usize,
    /// Whether it has waited in a backlog.
    pub(super) has_waited: bool,
    pub(crate) total: usize,
    pub(crate) notice: Option<Notice>,
}

impl<B: Buffer> Outgoing<B> {
    /// A message of the application that travels whole.
    #[inline]
    pub(crate) fn eager(send: Send<B>) -> Self {
        let length = send.buffer.len();
        let head = head_of(send.space, send.data);
        let notice = Notice::of(&send);
        let body = if length == 0 { Body::None } else { Body::Borrowed(send.buffer) };
        Outgoing::new(head, body, Some(notice))
    }

    /// The same, of which so many packets have left.
    pub(crate) fn begun(send: Send<B>, packets: u32) -> Self {
        Outgoing { packets, ..Outgoing::eager(send) }
    }

    #[inline]
    pub(crate) fn new(head: impl Into<Message>, body: Body<B>, notice: Option<Notice>) -> Self {
        let head = head.into();
        let length = match &body {
            Body::None => 0,
            Body::Owned(bytes) => bytes.len(),
            Body::Borrowed(buffer) => buffer.len(),
        };
        debug_assert!(length <= LARGEST_EAGER_BYTES, "a message's body is bounded by the eager size");
        let head_bytes = head.bytes();
        Outgoing { head, body, packets: 0, head_bytes, has_waited: false, total: head_bytes + length, notice }
    }

    /// Packets of a message of the application that travels whole.
    pub(crate) fn eager_packets(send: &Send<B>) -> u32 {
        (head_of(send.space, send.data).head_bytes() + send.buffer.len()).div_ceil(PAYLOAD_BYTES) as u32
    }

    /// Bytes of the body.
    #[inline]
    pub(crate) fn body_bytes(&self) -> usize {
        self.total - self.head_bytes
    }

    /// Copies what has not left out of the application's memory.
    pub(crate) fn own(&mut self) {
        if let Body::Borrowed(buffer) = &self.body {
            self.body = Body::Owned(copy_of(buffer));
        }
    }

    /// Whether a request to send may leave in its place: it is an eager send of the application, and the receiver has
    /// not heard of it.
    pub(crate) fn may_be_announced(&self) -> bool {
        matches!(self.head, Message::Eager(Eager { was_dropped: false, .. }))
    }

    /// The remote operation of ours that this is a part of.
    pub(crate) fn operation(&self) -> Option<Key> {
        match self.head {
            Message::Write(Write { operation, .. })
            | Message::Read(Read { operation, .. })
            | Message::Atomic(Atomic { operation, .. }) => Some(Key(operation)),
            _ => None,
        }
    }

    pub(crate) fn into_notice(self) -> Option<Notice> {
        self.notice
    }
}

impl<B> Outgoing<B> {
    /// Whether this is a message of the program itself.
    pub(crate) fn is_send(&self) -> bool {
        self.sent().is_some()
    }

    /// Where a message of the program itself matches, and how long it is.
    pub(crate) fn sent(&self) -> Option<(Space, usize)> {
        match self.head {
            Message::Eager(Eager { queue, tag, .. }) => Some((queue.space(tag), self.total - self.head_bytes)),
            Message::Carried(Carried { queue, tag, length, .. }) => Some((queue.space(tag), length as usize)),
            _ => None,
        }
    }

    /// The send that this announces.
    pub(crate) fn announces(&self) -> Option<Key> {
        match self.head {
            Message::RequestToSend(RequestToSend { send, .. }) => Some(Key(send)),
            _ => None,
        }
    }
}

impl<B: Buffer> Departing for Outgoing<B> {
    #[inline]
    fn packets_gone(&self) -> u32 {
        self.packets
    }

    #[inline]
    fn packets_left(&self) -> u32 {
        // Most messages are short: they are spared the division.
        let packets = if self.total <= PAYLOAD_BYTES { 1 } else { self.total.div_ceil(PAYLOAD_BYTES) };
        packets as u32 - self.packets
    }

    #[inline]
    fn has_waited(&self) -> bool {
        self.has_waited
    }

    #[inline]
    fn fill(&self, index: u32, packets: &mut [Packet], placement: Placement) {
        let mut position = index as usize * PAYLOAD_BYTES;
        let (first, mut packets) = packets.split_at_mut(usize::from(index == 0).min(packets.len()));
        for packet in first {
            self.fill_any(position, packet);
            packet.header = packet.header.placed(placement);
            position += PAYLOAD_BYTES;
        }
        // Most packets behind the first are full, and all data of the application.
        if let Body::Borrowed(buffer) = &self.body {
            let count = packets.len().min(self.total.saturating_sub(position) / PAYLOAD_BYTES);
            let (full, rest) = packets.split_at_mut(count);
            if count > 0 {
                let header = Header::new(PacketKind::Data, PAYLOAD_BYTES, 0).placed(placement);
                buffer.read_packets(position - self.head_bytes, header, full);
                position += count * PAYLOAD_BYTES;
            }
            packets = rest;
        }
        for packet in packets {
            self.fill_any(position, packet);
            packet.header = packet.header.placed(placement);
            position += PAYLOAD_BYTES;
        }
    }

    #[inline]
    fn note_gone(&mut self, packets: u32) {
        self.packets += packets;
    }
}

impl<B: Buffer> Outgoing<B> {
    /// The packet that begins at this position of the message.
    #[inline]
    fn fill_any(&self, position: usize, packet: &mut Packet) {
        let payload = &mut packet.payload;
        let (filled, kind) = match position {
            0 => (self.head.emit(self.body_bytes() as u32, payload), self.head.kind() as u8),
            _ => (0, 0),
        };
        let end = (self.total - position).min(PAYLOAD_BYTES);
        let offset = position.max(self.head_bytes) - self.head_bytes;
        match &self.body {
            Body::None => {}
            Body::Owned(bytes) => payload[filled..end].copy_from_slice(&bytes[offset..offset + end - filled]),
            Body::Borrowed(buffer) => buffer.read(offset, &mut payload[filled..end]),
        }
        packet.header = Header::new(PacketKind::Data, end, kind);
    }
}

/// All bytes of a buffer.
pub(crate) fn copy_of<B: Buffer>(buffer: &B) -> Box<[u8]> {
    let mut bytes = vec![0; buffer.len()].into_boxed_slice();
    buffer.read(0, &mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::short::OnePacket;
    use crate::egress::{Short, Two};
    use crate::operation::{Context, Queue, Space, Target};
    use crate::testing::Bytes;

    fn eager(length: usize) -> Outgoing<Bytes> {
        let bytes: Vec<u8> = (0..length).map(|at| at as u8).collect();
        let head = Eager { queue: Queue::Tagged, tag: 1, data: None, was_dropped: false };
        Outgoing::new(head, Body::Borrowed(Bytes::new(&bytes)), None)
    }

    /// A send of so many bytes.
    fn send(length: u8, data: Option<u64>) -> Send<Bytes> {
        let bytes: Vec<u8> = (0..length).collect();
        Send {
            to: Target::Myself,
            space: Space::Tagged { tag: 7, ignore: 0 },
            buffer: Bytes::new(&bytes),
            data,
            context: Context(1),
            inject: false,
            delivery: false,
            report: true,
        }
    }

    /// The packets of a message: kind and payload of each.
    fn cut(message: &impl Departing) -> Vec<(u8, Vec<u8>)> {
        let packet_of = |index| {
            let mut packet = Packet::new(PacketKind::Data, 0, 0);
            message.fill(index, std::slice::from_mut(&mut packet), Placement::default());
            (packet.header.message(), packet.payload[..packet.header.length()].to_vec())
        };
        (0..message.packets_left()).map(packet_of).collect()
    }

    #[test]
    fn a_message_of_2_kib_is_37_packets_and_one_of_40_bytes_is_one() {
        assert_eq!([0, 1, 40, 41, 2048].map(|length| cut(&eager(length)).len()), [1, 1, 1, 2, 37]);
    }

    #[test]
    fn packets_together_are_head_and_body_and_only_the_first_says_what_begins() {
        for length in [0, 8, 40, 41, 96, 97, 1000] {
            let mut message = eager(length);
            let packets = cut(&message);
            assert_eq!(packets[0].0, 1);
            assert!(packets[1..].iter().all(|(kind, _)| *kind == 0));
            let all: Vec<u8> = packets.iter().flat_map(|(_, payload)| payload.clone()).collect();
            let expected: Vec<u8> = (0..length).map(|at| at as u8).collect();
            assert_eq!(all[16..], expected, "of {length} bytes");
            message.own();
            assert_eq!(cut(&message), packets, "a copy leaves as the original would");
        }
    }

    #[test]
    fn packets_are_the_same_however_many_are_filled_at_once_and_whatever_was_in_their_places() {
        let placement = Placement::following(7, tidegate_flow::PeerId(3));
        let mut dirt = Packet::new(PacketKind::ReturnRequest, 1, 255);
        dirt.header = Header::from_bits(u64::MAX);
        for length in [0, 40, 41, 96, 97, 1000] {
            let mut message = eager(length);
            for _ in 0..2 {
                let whole = cut(&message);
                for at_once in 1..=whole.len() {
                    let mut packets = vec![dirt; whole.len()];
                    let mut index = 0;
                    for places in packets.chunks_mut(at_once) {
                        message.fill(index, places, placement);
                        index += places.len() as u32;
                    }
                    for (packet, (kind, payload)) in packets.iter().zip(&whole) {
                        let expected = Header::new(PacketKind::Data, payload.len(), *kind).placed(placement);
                        assert_eq!((packet.header, &packet.payload[..payload.len()]), (expected, &payload[..]));
                    }
                    let header = packets[0].header;
                    assert_eq!((header.stamp(), header.source().0, header.follows()), (7, 3, true));
                }
                message.own();
            }
        }
    }

    #[test]
    fn a_message_of_two_packets_leaves_as_the_same_two_whether_it_waits_or_not() {
        for data in [None, Some(3), Some(1 << 40)] {
            for length in 30..=100 {
                let send = send(length, data);
                let two = Two::of(send.space, send.data, &send.buffer).map(|two| cut(&two));
                let packets = cut(&Outgoing::eager(send));
                assert_eq!(two, (packets.len() == 2).then_some(packets), "{length} {data:?}");
            }
        }
    }

    #[test]
    fn a_short_message_leaves_as_the_same_packet_whether_it_waits_or_not() {
        for data in [None, Some(3), Some(1 << 40)] {
            for length in 0..=41 {
                let send = send(length, data);
                let packet_of = |message: &dyn Fn(&mut Packet)| {
                    let mut packet = Packet::new(PacketKind::Data, 0, 0);
                    message(&mut packet);
                    (packet.header, packet.payload)
                };
                let short = Short::of(send.space, send.data, &send.buffer)
                    .map(|short| packet_of(&|packet| short.fill(packet, Placement::default())));
                let waiting = Outgoing::eager(send);
                let is_short = waiting.packets_left() == 1;
                assert_eq!(
                    short,
                    is_short.then(|| packet_of(&|packet| waiting.fill(
                        0,
                        std::slice::from_mut(packet),
                        Placement::default()
                    ))),
                    "{length} {data:?}"
                );
            }
        }
    }
}
