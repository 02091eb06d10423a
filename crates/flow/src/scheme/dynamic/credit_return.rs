//! Compulsory credit return (P §6.1, §6.5.4): the request, the response, and the sender that is *blocked* in between.
//! Rules C4 and C5.

use super::state::Dynamic;
use crate::{PeerId, Violation};

impl Dynamic {
    /// Receiver: requests that `victim` return what it does not use. The victim is blocked until it has answered, and
    /// gets no second request before that.
    pub(super) fn request_return(&mut self, victim: PeerId) {
        let sender = self.receivers.of(victim);
        if std::mem::replace(&mut sender.blocked, true) {
            return;
        }
        sender.retrieved = 0;
        sender.piggybacked = 0;
        self.senders.of(victim).request_waiting = true;
        self.wake_control(victim);
    }

    /// Receiver: a packet of a blocked sender was retrieved.
    ///
    /// C4: nothing crosses, so its credits run down; but when it holds nothing at all, and no credit is on the way to
    /// it, it could not pay for its answer: it gets one. (The paper looks at thresholds only, and grants one whenever
    /// there are fewer than the static slots; but a sender that has run dry need not have reached a threshold, and one
    /// credit at zero is all that the answer needs. Granting below the static slots, at every packet, is as safe, and
    /// measures the same: papers/prades/machine.md.)
    #[cold]
    pub(super) fn retrieve_blocked(&mut self, from: PeerId) {
        self.tally.blocked_packets += 1;
        let sender = self.receivers.of(from);
        if sender.current_credits == 0 {
            self.slots.lend(sender, 1);
            self.control.return_credits(from, 1);
        }
    }

    /// Sender: our receiver `from` wants credits back, and gets its answer when there is a credit for it.
    pub(super) fn handle_request(&mut self, from: PeerId) -> Result<(), Violation> {
        // One request at a time: nobody asks again before it was answered.
        if std::mem::replace(&mut self.senders.of(from).response_waiting, true) {
            return Err(Violation::Unexpected);
        }
        Ok(())
    }

    /// Receiver: the answer, with `returned` credits. Its sender is then in the initial state again.
    ///
    /// C5: grants up to `static_slots`, all thresholds one, nothing retrieved. No credit packet is unread by then:
    /// those granted before the request arrived before it, and one granted under C4 paid for this answer. A sender that
    /// had taken credits out of its counter when it answered still has more than its static slots; they go into the
    /// newest threshold, which keeps the sum that C1 demands. (The paper keeps the old thresholds. Not counting the
    /// first crossings towards monitoring, which is the nearest to that, is as safe and measures worse:
    /// papers/prades/machine.md.)
    pub(super) fn handle_response(&mut self, from: PeerId, returned: u32) -> Result<(), Violation> {
        let sender = self.receivers.of(from);
        if !sender.blocked || self.senders.of(from).request_waiting {
            return Err(Violation::Unexpected);
        }
        if returned >= sender.current_credits {
            return Err(Violation::TooManyCredits);
        }
        self.slots.take_back(sender, returned + 1);
        self.restart(from);
        let static_slots = self.slots.static_slots();
        let sender = self.receivers.of(from);
        let granted = static_slots.saturating_sub(sender.current_credits);
        if granted > 0 {
            self.slots.lend(sender, granted);
            self.control.return_credits(from, granted);
        }
        let extra = sender.current_credits - static_slots;
        self.thresholds.restart(from, sender, extra);
        Ok(())
    }

    /// Receiver: counters of `from` as at the start; credits and thresholds are the caller's.
    pub(super) fn restart(&mut self, from: PeerId) {
        let sender = self.receivers.of(from);
        sender.blocked = false;
        sender.retrieved = 0;
        sender.piggybacked = 0;
    }
}
