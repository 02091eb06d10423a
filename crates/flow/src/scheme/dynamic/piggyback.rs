//! Piggybacking (P §6.6): credits ride on data packets that have room. Rule C6, and C1 and C2 again.
//!
//! What rides is what was retrieved. C6: it lowers `retrieved` and raises `current_credits` alike, so the sum that C1
//! demands (thresholds − `retrieved` = `current_credits` + 1) stays. Riding puts off the threshold and with it the
//! monitoring of activity; therefore, as a packet leaves, the threshold also counts as reached when `retrieved +
//! piggybacked` reach it ("the piggyback way", P §6.6.1). Then of the credits that the new threshold earns,
//! `piggybacked` have ridden before:
//!
//! * *deficit*: it earns more; the difference rides now;
//! * *excess*: it earns less; nothing rides, and the next head rises by the excess.
//!
//! Where this and the paper part:
//!
//! * The paper zeroes `retrieved` at such a crossing. Here the overshoot, `retrieved + piggybacked − head`, stays (C2):
//!   in C6's terms the crossing takes the head out of the sum, and what rode had been taken out of `retrieved` before.
//!   With a zero the sum would be too large by the overshoot, and a sender could run dry below its threshold. Overshoot
//!   0 is the paper's case.
//! * The paper queues the computed threshold. Here what the slots allow is queued (C1): `piggybacked` + what rides now.
//! * The next head may be reached at once (C2); what that grants rides on the same packet.
//! * No credits ride to a blocked sender: it is to give credits back (C4).
//! * Only credits that C3 allows ride; the paper lets all of `retrieved` ride, even when the slots were lent to others
//!   meanwhile.

use super::state::Dynamic;
use crate::{Packet, PeerId};

/// Most credits that ride on one packet: two bytes.
const RIDE_MAX: u32 = u16::MAX as u32;

impl Dynamic {
    /// A data packet is about to leave for `to`, our sender in this role. Returns what rides.
    #[inline(always)]
    pub(super) fn let_credits_ride(&mut self, to: PeerId, packet: &mut Packet) -> u32 {
        if !self.piggyback || !packet.has_room_to_piggyback() {
            return 0;
        }
        // While a sender is blocked nothing is counted as retrieved, so nothing rides.
        let Some(sender) = self.receivers.get_mut(to).filter(|sender| sender.retrieved > 0) else { return 0 };
        let riding = if sender.retrieved + sender.piggybacked >= sender.head {
            self.cross_piggyback_way(to)
        } else {
            let riding = sender.retrieved.min(self.slots.grantable(sender)).min(RIDE_MAX);
            sender.retrieved -= riding;
            sender.piggybacked += riding;
            self.slots.lend(sender, riding);
            riding
        };
        if riding > 0 {
            packet.set_piggyback(riding as u16);
        }
        riding
    }

    /// The threshold is reached the piggyback way, monitoring included. Returns what rides.
    #[inline(never)]
    fn cross_piggyback_way(&mut self, to: PeerId) -> u32 {
        let mut riding = 0;
        loop {
            let sender = self.receivers.of(to);
            let grantable = self.slots.grantable(sender).min(RIDE_MAX - riding);
            let rode = sender.piggybacked;
            // The threshold that is queued must be at least 1, so something must have been granted for it (C1).
            if sender.retrieved + rode < sender.head || rode + grantable == 0 {
                return riding;
            }
            let earned = self.reach_threshold(to);
            let deficit = earned.saturating_sub(rode).min(grantable);
            let excess = rode.saturating_sub(earned);
            let sender = self.receivers.of(to);
            sender.retrieved = sender.retrieved + rode - sender.head;
            sender.piggybacked = 0;
            self.thresholds.advance(to, sender, rode + deficit - excess);
            sender.head += excess;
            self.slots.lend(sender, deficit);
            riding += deficit;
        }
    }
}
