//! What a receiver keeps for each of its senders.

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
