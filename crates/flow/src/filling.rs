//! [`Filling`]: how a sender's packets come to lie in its receiver's buffers, under schemes whose receivers post
//! buffers.
//!
//! A scheme lends buffers; senders ask for packets. So a sender that is granted a buffer may send as many packets as
//! the buffer holds, or as its message has left. The last of them says in its header that it ends the buffer, so
//! links, adapters and the receiver know where the next buffer begins. Packets of one message follow each other
//! (control packets excepted, which have buffers of their own), so at each receiver one buffer is under way at a time.

use crate::Packet;

/// The buffer that was granted last, at one receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Filling {
    /// None is under way.
    #[default]
    Idle,
    /// Nothing has been put into it.
    Granted,
    /// Packets are in it, and so many more will be: at least one.
    Begun(u32),
}

impl Filling {
    /// Packets that may leave for the buffer under way; 0: another buffer is needed.
    pub(crate) fn left(self) -> u32 {
        if let Filling::Begun(left) = self { left } else { 0 }
    }

    /// A buffer that holds `most` packets is granted for a message of which `wanted` are left. Returns how many
    /// packets may leave.
    pub(crate) fn begin(&mut self, wanted: u32, most: u32) -> u32 {
        *self = Filling::Granted;
        wanted.min(most)
    }

    /// A packet is about to leave; `left` are to follow it in its buffer. Returns whether it ends the buffer.
    pub(crate) fn fill(&mut self, packet: &mut Packet, left: u32) -> bool {
        let is_last = left == 0;
        *self = if is_last { Filling::Idle } else { Filling::Begun(left) };
        if is_last {
            packet.header = packet.header.ending_buffer();
        }
        is_last
    }

    /// So many packets that were granted have not left. Returns whether the whole buffer comes back.
    pub(crate) fn give_back(&mut self, packets: u32) -> bool {
        match *self {
            Filling::Granted => {
                *self = Filling::Idle;
                true
            }
            Filling::Begun(left) => {
                debug_assert!(left == packets, "{packets} packets come back of {left}");
                false
            }
            Filling::Idle => {
                debug_assert!(packets == 0, "packets come back of a buffer that is full");
                false
            }
        }
    }
}
