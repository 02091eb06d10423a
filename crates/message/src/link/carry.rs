//! [`Carry`]: whole messages that a network takes beside packets.

use super::buffer::Medium;
use tidegate_flow::PeerId;

/// A part of a link: it brings messages of some kilobytes to their receivers by itself, which packets only name. A link
/// that has not got it carries none, so they go packet by packet.
pub trait Carry: Medium {
    /// Whether a message of this length to this peer, which packets could bring, had better be carried.
    #[inline]
    fn is_better_carried(&self, _peer: PeerId, _length: usize) -> bool {
        false
    }

    /// Longest message that can be [carried](Self::carry) to this peer; 0: none.
    fn carries_most(&mut self, _peer: PeerId) -> usize {
        0
    }

    /// Takes a copy of a message that is longer than 0 bytes and not longer than [`carries_most`](Self::carries_most),
    /// or [better carried](Self::is_better_carried), and brings it to the peer, beside packets: it is there before the
    /// packet that is written to it next. Returns a number that is to be in that packet. `None`: there is no room for
    /// it now, and nothing was taken.
    fn carry(&mut self, _peer: PeerId, _message: &Self::Buffer) -> Option<u32> {
        None
    }

    /// Takes back the message to this peer that was carried last, because its packet could not be written: one that
    /// was [better carried](Self::is_better_carried).
    fn take_back_carried(&mut self, _peer: PeerId) {}

    /// Whether the next message that a peer has [carried](Self::carry) to us has this length. The packet that says
    /// what it is has come, with this number. `false`: no correct peer has sent that packet.
    fn has_carried(&mut self, _peer: PeerId, _number: u32, _length: usize) -> bool {
        false
    }

    /// Copies what [`has_carried`](Self::has_carried) has said is there into a buffer, as much as fits, and is done
    /// with it.
    fn copy_carried(&mut self, _peer: PeerId, _number: u32, _length: usize, _into: &mut Self::Buffer) {}

    /// Takes what [`has_carried`](Self::has_carried) has said is there.
    fn take_carried(&mut self, _peer: PeerId, _number: u32, length: usize) -> Vec<u8> {
        vec![0; length]
    }

    /// What this sender may have under way: what we set aside for it, less what is stored of it. As long as this is not
    /// called, what was [told](crate::Link::tell_window). The link keeps no more of messages that are carried to us.
    fn set_window_left(&mut self, _peer: PeerId, _bytes: u32) {}
}
