//! Slot management (P §6.5.1): the pool of data slots that are lent to nobody, and rule C3.
//!
//! C3: nobody's static slots are lent out. A sender whose `current_credits` fell below `static_slots` must be able to
//! get them back at any moment, so a grant to one sender leaves the *shortfall* of all the others, Σ max(`static_slots`
//! − `current_credits`, 0), in the pool. The total is kept up to date with every change, so the limit is known at once.
//! Without the rule a busy sender could be lent the last slots, and a sender that has run dry would find nothing to be
//! granted.

use super::receiver::ReceiverSide;

/// See the module. Invariant: `available` ≥ `shortfall`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SlotPool {
    available: u32,
    shortfall: u32,
    static_slots: u32,
}

impl SlotPool {
    /// A pool of `available` slots; every sender holds its `static_slots`.
    pub(super) fn new(available: u32, static_slots: u32) -> Self {
        SlotPool { available, shortfall: 0, static_slots }
    }

    /// `available_slots`: slots lent to nobody.
    pub(super) fn available(&self) -> u32 {
        self.available
    }

    /// What every sender keeps.
    #[inline]
    pub(super) fn static_slots(&self) -> u32 {
        self.static_slots
    }

    #[inline]
    fn shortfall_of(&self, sender: &ReceiverSide) -> u32 {
        self.static_slots.saturating_sub(sender.current_credits)
    }

    /// Credits that may be granted to `sender` now: what is available, less the other senders' shortfall (C3).
    #[inline]
    pub(super) fn grantable(&self, sender: &ReceiverSide) -> u32 {
        debug_assert!(self.available >= self.shortfall, "somebody's static slots were lent out");
        self.available - (self.shortfall - self.shortfall_of(sender))
    }

    /// `credits` slots are lent to `sender`.
    #[inline]
    pub(super) fn lend(&mut self, sender: &mut ReceiverSide, credits: u32) {
        debug_assert!(credits <= self.grantable(sender));
        let before = self.shortfall_of(sender);
        self.available -= credits;
        sender.current_credits += credits;
        self.shortfall -= before - self.shortfall_of(sender);
    }

    /// `credits` slots of `sender` are free again: a packet was retrieved, or credits came back unused.
    #[inline(always)]
    pub(super) fn take_back(&mut self, sender: &mut ReceiverSide, credits: u32) {
        let before = self.shortfall_of(sender);
        self.available += credits;
        sender.current_credits -= credits;
        self.shortfall += self.shortfall_of(sender) - before;
    }
}
