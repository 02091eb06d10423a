//! Monitoring points and stealing (P §6.4, §6.5.2, figs 12 and 13).

use super::state::Dynamic;
use crate::PeerId;
use crate::inspect::Activity;

impl Dynamic {
    /// `monitored` has used all the credits it was given: it rises by one list, and from the top it steals. A sender
    /// from the null list counts as one of the top: having only its static slots it needs credits fast.
    ///
    /// Stealing is always between a high and a low sender. When all are equally active they stay within two
    /// neighbouring lists, and nobody steals back and forth.
    pub(super) fn handle_monitoring_point(&mut self, monitored: PeerId) {
        match self.lists.activity(monitored) {
            Activity::Low => self.lists.move_to_front(monitored, Activity::Medium),
            Activity::Medium => self.lists.move_to_front(monitored, Activity::High),
            Activity::High | Activity::Null => {
                if self.lists.is_empty(Activity::Low) {
                    self.lists.shift();
                }
                self.lists.move_to_front(monitored, Activity::High);
                self.steal(monitored);
            }
        }
    }

    /// Moves intended quota from the sender that has been low for longest (P eq. 6), never below its static slots, and
    /// never more than the cap allows (P §7.4.1).
    fn steal(&mut self, monitored: PeerId) {
        let Some(victim) = self.lists.last(Activity::Low).filter(|&victim| victim != monitored) else {
            return;
        };
        let static_slots = self.slots.static_slots();
        let (rich, poor) = (self.receivers.of(monitored).intended_quota, self.receivers.of(victim).intended_quota);
        let room = self.quota_most.saturating_sub(rich);
        if room == 0 {
            return;
        }
        let wanted = (rich.abs_diff(poor) / 2).max(self.credit_slots + 1);
        let amount = wanted.min(poor.saturating_sub(static_slots)).min(room);
        self.tally.steals += 1;
        self.receivers.of(monitored).intended_quota += amount;
        let poor = self.receivers.of(victim);
        poor.intended_quota -= amount;
        let holds_more = poor.current_credits > static_slots;
        if poor.intended_quota > static_slots {
            // Among the medium, so that the others in low are stolen from first.
            return self.lists.move_to_front(victim, Activity::Medium);
        }
        self.lists.move_to_front(victim, Activity::Null);
        if holds_more {
            self.request_return(victim);
        }
    }
}
