//! How the window of a peer is learned, at the first message to it.

use super::Rooms;
use crate::control_size::ControlSize;
use crate::link::Link;
use crate::memory::{Limits, Memory};
use crate::port::Port;
use tidegate_flow::PeerId;

impl Rooms {
    /// Learns what a peer sets aside for us, unless it is known.
    #[inline]
    pub(crate) fn meet_once<L: Link>(&mut self, port: &mut Port<L>, peer: PeerId) {
        if !self.is_met(peer) {
            self.learn(port, peer);
        }
    }

    /// The size of control messages for which the memories of both sides have room.
    pub(crate) fn common_control_size<L: Link>(&self, port: &Port<L>, peer: PeerId) -> ControlSize {
        self.limits(peer).control.min(port.limits.control)
    }

    /// Learns what a peer sets aside for us, at the first message to it.
    #[cold]
    pub(crate) fn learn<L: Link>(&mut self, port: &mut Port<L>, peer: PeerId) {
        port.egress.attention.raise();
        // One that does not say will do as we do; so will one that cannot be reached: the message will tell.
        let told = port.link.window(peer).unwrap_or(port.limits.told());
        self.meet(peer, limits_of(port, told), told == 0);
        if told == 0 {
            port.egress.try_again(peer);
        }
    }

    /// Tries again to learn the window of a peer that could not tell it at the first message to it. Returns whether it
    /// is known now.
    #[cold]
    pub(crate) fn learn_again<L: Link>(&mut self, port: &mut Port<L>, peer: PeerId) -> bool {
        if !self.is_met(peer) {
            // It has been lost since.
            self.forget_unknown(peer);
            return false;
        }
        let told = port.link.window(peer).unwrap_or(port.limits.told());
        match told {
            0 => port.egress.try_again(peer),
            _ => self.relearn_window(peer, limits_of(port, told)),
        }
        told > 0
    }
}

/// The limits towards a receiver that has told this.
fn limits_of<L: Link>(port: &Port<L>, told: u32) -> Limits {
    Memory::<L::Buffer>::limits_told(told, port.config.eager_bytes)
}
