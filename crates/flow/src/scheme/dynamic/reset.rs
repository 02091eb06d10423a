//! A peer left, or died, and another process may take its place: both roles return to the initial state.

use super::receiver::ReceiverSide;
use super::state::Dynamic;
use crate::PeerId;
use crate::inspect::Activity;

impl Dynamic {
    /// See [`FlowControl::reset`](crate::FlowControl::reset). The credits of the dead peer return to the pool, and its
    /// static slots are lent to its place again. That place is the next victim until somebody is active there.
    pub(super) fn forget(&mut self, peer: PeerId) {
        let static_slots = self.slots.static_slots();
        self.senders.forget(peer);
        self.control.forget(peer);

        let dead = self.receivers.of(peer);
        let held = dead.current_credits;
        self.slots.take_back(dead, held);
        self.slots.lend(dead, static_slots);
        self.thresholds.restart(peer, dead, 0);
        self.restart(peer);
        self.even_out(peer);
        self.lists.move_to_back(peer, if self.shares.is_expected(peer) { Activity::Low } else { Activity::Null });
    }

    /// Brings the intended quota of `peer` back to its share at the start, give and take with those on the other side
    /// of theirs: the quotas sum to the data region, so there are always enough of them, and nobody is pushed past its
    /// share. Who was never stolen from, and has never stolen, is not looked at.
    fn even_out(&mut self, peer: PeerId) {
        let share = self.shares.of(peer);
        let mine = std::mem::replace(&mut self.receivers.of(peer).intended_quota, share);
        let (mut surplus, mut lack) = (mine.saturating_sub(share), share.saturating_sub(mine));
        if mine == share {
            return;
        }
        let moved = |&(other, state): &(PeerId, &ReceiverSide)| state.intended_quota != self.shares.of(other);
        let others: Vec<PeerId> = self.receivers.contacted().filter(moved).map(|(other, _)| other).collect();
        for other in others {
            let share = self.shares.of(other);
            let quota = &mut self.receivers.of(other).intended_quota;
            let given = surplus.min(share.saturating_sub(*quota));
            let taken = lack.min(quota.saturating_sub(share));
            *quota = *quota + given - taken;
            surplus -= given;
            lack -= taken;
            if given > 0 && self.lists.activity(other) == Activity::Null {
                self.lists.move_to_front(other, Activity::Low);
            }
        }
        debug_assert_eq!((surplus, lack), (0, 0), "the intended quotas do not sum to the data region");
    }
}
