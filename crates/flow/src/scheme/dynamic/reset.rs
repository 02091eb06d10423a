//! A peer left, or died, and another process may take its place: both roles return to the initial state.

use super::sender::SenderSide;
use super::state::Dynamic;
use crate::PeerId;
use crate::inspect::Activity;

impl Dynamic {
    /// See [`FlowControl::reset`](crate::FlowControl::reset). The credits of the dead peer return to the pool, and its
    /// static slots are lent to its place again. That place is the next victim until somebody is active there.
    pub(super) fn forget(&mut self, peer: PeerId) {
        let index = peer.0 as usize;
        let static_slots = self.slots.static_slots();
        self.senders[index] = SenderSide::new(static_slots);
        self.control.forget(index);

        let dead = &mut self.receivers[index];
        let held = dead.current_credits;
        self.slots.take_back(dead, held);
        self.slots.lend(dead, static_slots);
        self.thresholds.restart(index, dead, 0);
        self.restart(index);
        self.even_out(index);
        self.lists.move_to_back(index, Activity::Low);
    }

    /// Brings the intended quota of `index` back to its share at the start, give and take with those on the other side
    /// of theirs: the quotas sum to the data region, so there are always enough of them, and nobody is pushed past its
    /// share.
    fn even_out(&mut self, index: usize) {
        let uneven = self.uneven;
        let share = |peer: usize| self.quota + u32::from((peer as u32) < uneven);
        let mine = self.receivers[index].intended_quota;
        let (mut surplus, mut lack) = (mine.saturating_sub(share(index)), share(index).saturating_sub(mine));
        for other in (0..self.receivers.len()).filter(|&other| other != index) {
            let share = share(other);
            let quota = &mut self.receivers[other].intended_quota;
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
        self.receivers[index].intended_quota = share(index);
    }
}
