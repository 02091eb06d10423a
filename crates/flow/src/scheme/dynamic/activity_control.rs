//! Activity control (P §6.5.2): what happens when a packet is retrieved, and when the current threshold is reached by
//! that ("the regular way"). Rules C1 and C2.

use super::state::Dynamic;
use crate::PeerId;
use crate::threshold::threshold;

impl Dynamic {
    /// Packets of `from` that cost a credit each were retrieved: their slots are free again. Takes up to `most`, as
    /// many as come to the next place where something is to be done, and returns how many.
    #[inline(always)]
    pub(super) fn retrieve(&mut self, from: PeerId, most: u32) -> u32 {
        let sender = self.receivers.of(from);
        if sender.blocked {
            self.slots.take_back(sender, 1);
            self.retrieve_blocked(from);
            return 1;
        }
        let taken = most.min(sender.head.saturating_sub(sender.retrieved).max(1));
        self.slots.take_back(sender, taken);
        sender.retrieved += taken;
        if sender.retrieved >= sender.head {
            self.cross(from);
        }
        taken
    }

    /// The threshold is reached the regular way: grants credits in a credit packet.
    ///
    /// C2: the head is subtracted from `retrieved`, which is not set to 0, and the next head may be reached as well.
    /// (Only what the piggyback way left over can reach two at once.) A second crossing may find that all that is left
    /// is reserved for others; then the sender has its static slots at least, and its next packet crosses.
    #[inline(never)]
    fn cross(&mut self, from: PeerId) {
        loop {
            let sender = self.receivers.of(from);
            let grantable = self.slots.grantable(sender);
            if sender.retrieved < sender.head || grantable == 0 {
                break;
            }
            let computed = self.reach_threshold(from);
            // C1: what is queued is what is granted, not what was computed.
            let granted = computed.min(grantable);
            let sender = self.receivers.of(from);
            sender.retrieved -= sender.head;
            // The paper's regular way: what rode before is not considered (P §6.6.2).
            sender.piggybacked = 0;
            self.thresholds.advance(from, sender, granted);
            self.slots.lend(sender, granted);
            self.control.return_credits(from, granted);
        }
    }

    /// Every `credit_slots + 1` crossings the sender has used all it was given: a monitoring point. Then, in any case,
    /// the new threshold follows from the intended quota (P eq. 1).
    pub(super) fn reach_threshold(&mut self, from: PeerId) -> u32 {
        if self.receivers.of(from).crossings == self.credit_slots {
            self.tally.monitoring_points += 1;
            self.handle_monitoring_point(from);
        }
        threshold(self.receivers.of(from).intended_quota, self.credit_slots)
    }
}
