//! [`Carry`]: whole messages that a network takes beside packets.

use super::buffer::Medium;
use tidegate_flow::PeerId;

/// A part of a link: it brings messages of some kilobytes to their receivers by itself, which packets only name. A link
/// that has not got it carries none, so they go packet by packet.
pub trait Carry: Medium {
    /// Longest message that can be [carried](Self::carry) to this peer; 0: none.
    fn carries_most(&mut self, _peer: PeerId) -> usize {
        0
    }

    /// Takes a copy of a message that is longer than 0 bytes and not longer than [`carries_most`](Self::carries_most),
    /// and brings it to the peer, beside packets: it is there before the packet that is written to it next. `false`:
    /// there is no room for it now, and nothing was taken.
    fn carry(&mut self, _peer: PeerId, _message: &Self::Buffer) -> bool {
        false
    }

    /// Takes the next message that a peer has [carried](Self::carry) to us. In their order; the packet that says what
    /// it is has come. `None`: there is none, so no correct peer has sent that packet.
    fn take_carried(&mut self, _peer: PeerId) -> Option<Vec<u8>> {
        None
    }

    /// What this sender may have under way: what we set aside for it, less what is stored of it. As long as this is not
    /// called, what was [told](crate::Link::tell_window). The link keeps no more of messages that are carried to us.
    fn set_window_left(&mut self, _peer: PeerId, _bytes: u32) {}
}
