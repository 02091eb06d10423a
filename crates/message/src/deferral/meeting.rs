//! How the window of a peer is learned, at the first message to it.

use super::Rooms;
use crate::link::Link;
use crate::memory::{Limits, Memory};
use crate::port::Port;
use tidegate_flow::PeerId;

impl Rooms {
    /// Learns what a peer sets aside for us, at the first message to it.
    #[cold]
    pub(crate) fn learn<L: Link>(&mut self, port: &mut Port<L>, peer: PeerId) {
        port.egress.attention.raise();
        // One that does not say will do as we do; so will one that cannot be reached: the message will tell.
        let window = port.link.window(peer).unwrap_or(port.limits.window);
        self.meet(peer, limits_of(port, window), window == 0);
        if window == 0 {
            port.egress.try_again(peer);
        }
    }

    /// Tries again to learn the window of a peer that could not tell it at the first message to it. Returns whether it
    /// is known now.
    #[cold]
    pub(crate) fn learn_again<L: Link>(&mut self, port: &mut Port<L>, peer: PeerId) -> bool {
        if !self.is_met(peer) {
            // It has been lost since.
            self.forget_stranger(peer);
            return false;
        }
        let window = port.link.window(peer).unwrap_or(port.limits.window);
        match window {
            0 => port.egress.try_again(peer),
            _ => self.meet_again(peer, limits_of(port, window)),
        }
        window > 0
    }
}

/// What a window of so many bytes allows us.
fn limits_of<L: Link>(port: &Port<L>, window: u32) -> Limits {
    let least = Memory::<L::Buffer>::ENVELOPE_BYTES as u32;
    Memory::<L::Buffer>::limits_of(window.max(least), port.config.eager_bytes)
}
