//! The sender's half (P §6.2, §6.5.4): credits, and control packets that cost one and wait for it.
//!
//! A return request or response costs a credit like data. Without one it waits behind a flag, ahead of data, the
//! request before the response. The response's amount is computed as it leaves, so credits that arrive while it waits
//! are returned too.

use crate::credit::CreditCounter;
use crate::{Initial, Packet, PacketKind, PeerId};

/// What the sender knows of one receiver.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SenderSide {
    pub(super) credits: CreditCounter,
    /// Our return request has not left yet.
    pub(super) request_waiting: bool,
    /// Our return response has not left yet.
    pub(super) response_waiting: bool,
}

impl Initial for SenderSide {
    /// The static slots.
    type Config = u32;

    /// See P §6.3.
    fn initial(&static_slots: &u32, _: PeerId) -> Self {
        SenderSide { credits: CreditCounter::new(static_slots), request_waiting: false, response_waiting: false }
    }
}

impl SenderSide {
    /// Credits held.
    #[inline]
    pub(super) fn credits(&self) -> u32 {
        self.credits.count()
    }

    /// Whether data has to stand back for a control packet.
    #[inline]
    pub(super) fn is_control_waiting(&self) -> bool {
        self.request_waiting | self.response_waiting
    }

    /// The control packet that goes next, its credit paid; none if none waits or no credit is left.
    pub(super) fn poll_waiting(&mut self, static_slots: u32) -> Option<Packet> {
        if !self.is_control_waiting() || self.credits() == 0 {
            return None;
        }
        let excess = self.credits().saturating_sub(static_slots);
        let mut fare = self.credits.take(1);
        fare.spend();
        if std::mem::take(&mut self.request_waiting) {
            return Some(Packet::new(PacketKind::ReturnRequest, 0, 0));
        }
        self.response_waiting = false;
        // With an excess, `static_slots − 1` stay: the fare was one of the static slots.
        let returned = self.credits.take(excess).into_count();
        Some(Packet::with_credits(PacketKind::ReturnResponse, returned))
    }
}
