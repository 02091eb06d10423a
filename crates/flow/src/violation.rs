//! Packets that no correct peer sends. Everything that comes out of a mailbox is untrusted.

use crate::packet::{PACKET_BYTES, PIGGYBACK_BYTES};
use crate::{Packet, PacketKind};
use std::fmt;

/// A peer broke the protocol: its packet is impossible in any state. The endpoint treats such a peer as failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// More credits came back than the peer's data region has.
    TooManyCredits,
    /// A return response without a request, a second request before the first was answered, or a kind of packet that
    /// the scheme in use does not have. (Data that no credit covered cannot be told from data that one did.)
    Unexpected,
    /// A packet whose parts contradict each other: credits beside a full payload, a credit packet without credits.
    Malformed,
    /// The packet names a sender that the table of peers does not have.
    UnknownPeer,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Violation::TooManyCredits => "it returned more credits than a mailbox has slots for data",
            Violation::Unexpected => "it sent a packet that nobody asked for",
            Violation::Malformed => "it sent a malformed packet",
            Violation::UnknownPeer => "it has no place in the table of peers",
        })
    }
}

impl std::error::Error for Violation {}

/// Bytes of payload that a credit count takes in a control packet.
const COUNT_BYTES: usize = 4;

/// The credits that an arrived packet returns to its receiver, whatever the scheme: by an explicit credit packet, or
/// riding on data. A credit packet always brings at least one, and a count that rides is at least one as well.
#[inline]
pub(crate) fn returned_credits(packet: &Packet) -> Result<u32, Violation> {
    let header = packet.header;
    match (header.kind(), packet.piggyback()) {
        (PacketKind::Data, None) => Ok(0),
        (PacketKind::Data, Some(count)) if count > 0 && packet.has_room_to_piggyback() => Ok(u32::from(count)),
        (PacketKind::Credit, None) if header.length() == COUNT_BYTES && packet.credits() > 0 => Ok(packet.credits()),
        (PacketKind::ReturnRequest, None) if header.length() == 0 => Ok(0),
        (PacketKind::ReturnResponse, None) if header.length() == COUNT_BYTES => Ok(0),
        _ => Err(Violation::Malformed),
    }
}

const _: () = assert!(COUNT_BYTES + PIGGYBACK_BYTES < PACKET_BYTES);
