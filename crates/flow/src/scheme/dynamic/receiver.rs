//! What a receiver keeps for each of its senders.

use crate::{Initial, PeerId};

/// What the receiver knows of one sender (P §6.2).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ReceiverSide {
    /// Packets retrieved and not yet accounted for by a crossing or by credits that rode. Stands still while blocked.
    pub(super) retrieved: u32,
    /// The current threshold: `retrieved` that triggers the next return of credits.
    pub(super) head: u32,
    /// Credits the sender holds + its packets on the way + credits on the way to it.
    pub(super) current_credits: u32,
    /// Credits that rode on data packets since the last crossing.
    pub(super) piggybacked: u32,
    /// Credits it should have in the near future.
    pub(super) intended_quota: u32,
    /// Crossings since the last monitoring point, `0..=credit_slots`; also the head's place in the ring of thresholds.
    pub(super) crossings: u32,
    /// A return request is on its way, or its response.
    pub(super) blocked: bool,
}

/// How the slots are divided at the start (P §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shares {
    pub(super) static_slots: u32,
    /// How many peers are expected, the first. The others have their static slots.
    pub(super) expected: u32,
    /// An equal share of what those leave of the data region, rounded down.
    pub(super) quota: u32,
    /// Slots left over by that: so many of the first peers have one more.
    pub(super) uneven: u32,
}

impl Shares {
    /// The share of a peer.
    pub(super) fn of(&self, peer: PeerId) -> u32 {
        if self.is_expected(peer) { self.quota + u32::from(peer.0 < self.uneven) } else { self.static_slots }
    }

    /// Whether a peer has a share at the start.
    pub(super) fn is_expected(&self, peer: PeerId) -> bool {
        peer.0 < self.expected
    }
}

impl Initial for ReceiverSide {
    type Config = Shares;

    fn initial(shares: &Shares, peer: PeerId) -> Self {
        ReceiverSide {
            retrieved: 0,
            head: 1,
            current_credits: shares.static_slots,
            piggybacked: 0,
            intended_quota: shares.of(peer),
            crossings: 0,
            blocked: false,
        }
    }
}
