//! How the window of a peer is learned, at the first message to it.

use super::Rooms;
use crate::control_size::ControlSize;
use crate::link::Link;
use crate::memory::{Limits, Memory};
use crate::port::Port;
use crate::wire::Asking;
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
        self.limits(peer).control.min(port.limits_of(peer).control)
    }

    /// Learns what a peer sets aside for us, at the first message to it.
    #[cold]
    pub(crate) fn learn<L: Link>(&mut self, port: &mut Port<L>, peer: PeerId) {
        port.egress.attention.raise();
        // One that does not say will do as we do; so will one that cannot be reached: the message will tell.
        let told = port.link.window(peer).unwrap_or(port.limits.told());
        let limits = limits_of(port, told);
        match limits.must_ask {
            true => self.stay_outside(peer, limits),
            false => self.meet(peer, limits, told == 0),
        }
        if told == 0 {
            port.egress.try_again(peer);
        }
    }

    /// Asks a receiver for a session, if we need one and have not asked.
    pub(crate) fn ask<L: Link>(&mut self, port: &mut Port<L>, to: PeerId) {
        if self.begin_asking(to) {
            port.tell(to, Asking::Asks);
        }
    }

    /// The limits that are supposed where we have no session.
    pub(crate) fn limits_outside<L: Link>(port: &Port<L>) -> Limits {
        limits_of(port, ControlSize::TOLD_TO_ASK)
    }

    /// The limits that a receiver tells who gives us a session.
    pub(crate) fn limits_inside<L: Link>(port: &Port<L>, told: u32) -> Limits {
        Limits { must_ask: false, ..limits_of(port, told) }
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
        if self.has_to_ask(peer) {
            return false;
        }
        let told = port.link.window(peer).unwrap_or(port.limits.told());
        let limits = limits_of(port, told);
        match told {
            0 => port.egress.try_again(peer),
            _ if limits.must_ask => self.stay_outside(peer, limits),
            _ => self.relearn_window(peer, limits),
        }
        told > 0 && !limits.must_ask
    }
}

/// The limits towards a receiver that has told this.
fn limits_of<L: Link>(port: &Port<L>, told: u32) -> Limits {
    Memory::<L::Buffer>::limits_told(told, port.config.eager_bytes)
}
