//! `none`: no flow control. Everybody may always send, and the network's back-pressure is all that holds a sender when a
//! mailbox is full. The reference that the other schemes are measured against.

use crate::{Credits, Packet, Violation};

/// Any number of credits.
#[inline]
pub(crate) fn take(wanted: u32) -> Credits {
    Credits::new(wanted)
}

/// Data is all there is: nobody returns credits, and nobody asks for any.
#[inline]
pub(crate) fn handle_retrieved(packet: &Packet) -> Result<u32, Violation> {
    if packet.header.is_plain_data() { Ok(0) } else { Err(Violation::Unexpected) }
}
