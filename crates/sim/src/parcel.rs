//! [`Parcel`]: a packet in 16 bytes.
//!
//! A million pairs of processes can have tens of millions of packets under way and in mailboxes. As memory without
//! bytes reads as zeros, nearly all of them are a header and zeros: those have no body. The payload of the others is
//! kept in one place for the whole run and travels as a number.

use tidegate_flow::{Header, PAYLOAD_BYTES, Packet, PeerId};

/// Bytes at the end of the payload that a piggybacked count takes.
const COUNT_BYTES: usize = 2;

/// Where a packet's payload is. The network does not look at the number; it means something to whoever injects and
/// takes packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body(pub u32);

impl Body {
    /// Nowhere: the payload is zeros.
    pub const ZEROS: Body = Body(u32::MAX);
}

/// A packet, its payload elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// The packet's header. Its stamp, which nobody needs on a simulated network, holds the piggybacked count of a
    /// packet without body.
    pub header: Header,
    /// The payload.
    pub body: Body,
}

impl Parcel {
    /// The parcel of a packet whose payload is zeros, a piggybacked count apart; `None` for any other.
    #[inline]
    pub(crate) fn plain(packet: &Packet) -> Option<Parcel> {
        let riding = packet.piggyback().unwrap_or(0);
        let (payload, count) = packet.payload.split_at(PAYLOAD_BYTES - COUNT_BYTES);
        let is_zero = payload.iter().fold(0, |any, &byte| any | byte) == 0
            && (packet.header.has_piggyback() || count == [0; COUNT_BYTES]);
        is_zero.then(|| Parcel { header: packet.header.published(riding, PeerId(0)), body: Body::ZEROS })
    }
}

/// The payloads of all packets of a run that have any.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    payloads: Vec<[u8; PAYLOAD_BYTES]>,
    free: Vec<u32>,
}

impl Bodies {
    /// Keeps the payload of a packet that is not plain.
    pub fn keep(&mut self, packet: &Packet) -> Parcel {
        let index = match self.free.pop() {
            Some(index) => {
                self.payloads[index as usize] = packet.payload;
                index
            }
            None => {
                self.payloads.push(packet.payload);
                (self.payloads.len() - 1) as u32
            }
        };
        Parcel { header: packet.header, body: Body(index) }
    }

    /// The packet of a parcel, whose payload is kept no longer.
    pub fn open(&mut self, parcel: Parcel) -> Packet {
        self.free.push(parcel.body.0);
        Packet { header: parcel.header, payload: self.payloads[parcel.body.0 as usize] }
    }

    /// The packet of a parcel without body.
    #[inline]
    pub fn open_plain(parcel: Parcel) -> Packet {
        let mut packet = Packet { header: parcel.header, payload: [0; PAYLOAD_BYTES] };
        if parcel.header.has_piggyback() {
            packet.set_piggyback(parcel.header.stamp());
        }
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_flow::PacketKind;

    fn comes_back(packet: &Packet, is_plain: bool) {
        let mut bodies = Bodies::default();
        let opened = match Parcel::plain(packet) {
            Some(parcel) => Bodies::open_plain(parcel),
            None => {
                let parcel = bodies.keep(packet);
                bodies.open(parcel)
            }
        };
        assert_eq!(Parcel::plain(packet).is_some(), is_plain);
        assert_eq!(opened.header.published(0, PeerId(0)), packet.header, "{packet:?}");
        assert_eq!(opened.payload, packet.payload, "{packet:?}");
    }

    #[test]
    fn every_packet_comes_back_as_it_was() {
        let mut packet = Packet::new(PacketKind::Data, 40, 3);
        comes_back(&packet, true);
        packet.set_piggyback(517);
        comes_back(&packet, true);
        packet.payload[39] = 1;
        comes_back(&packet, false);
        comes_back(&Packet::with_credits(PacketKind::Credit, 9), false);
        let mut full = Packet::new(PacketKind::Data, 56, 0);
        full.payload[55] = 1;
        comes_back(&full, false);
    }
}
