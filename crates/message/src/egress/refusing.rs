//! Which messages are refused, by the rules of `inject_backoff.rs`, and when that ends.

use super::Egress;
use super::lane::Lane;
use crate::link::Buffer;
use std::time::Duration;
use tidegate_flow::{Answer, Instant, PeerId};

impl<B: Buffer> Egress<B> {
    /// Whether a message that cannot leave had better be refused than wait here.
    #[cold]
    pub(crate) fn hold(&mut self, to: PeerId, patience: Duration, now: Instant) -> bool {
        if patience.is_zero() {
            return false;
        }
        // Its request may have begun a retry timer.
        self.attention.begin();
        let refusals = self.flow.refusals(to);
        let hold = &mut self.lanes.of(to).hold;
        if std::mem::take(&mut hold.is_on_trial) && refusals < 2 {
            // What was refused before has left.
            self.holding.end(hold);
        }
        let is_refused = self.holding.refuse(hold, patience, now);
        hold.is_scarce |= !is_refused && self.flow.credits(to) > 0;
        is_refused
    }

    /// Whether a message of so many packets can leave whole, or no waiting makes it so. Where there are no credits at
    /// all they are requested as for a message of one packet, so that a scheme that adapts hears of it.
    pub(crate) fn has_credits_for(&mut self, to: PeerId, packets: u32, now: Instant) -> bool {
        let credits = self.flow.credits(to);
        if credits == 0
            && let Answer::Packets(granted) = self.flow.request(to, packets, now)
        {
            self.flow.give_back(to, granted);
        }
        let is_scarce = self.lanes.get(to).is_some_and(|lane| lane.hold.is_scarce);
        if credits >= packets {
            if is_scarce {
                self.lanes.of(to).hold.is_scarce = false;
                self.lanes.end_if_idle(to);
            }
            return true;
        }
        credits > 0 && is_scarce
    }

    /// Whether anything goes on when credits come: something waits for the peer, or was refused.
    #[inline]
    pub(crate) fn wants_credits(&self, peer: PeerId) -> bool {
        self.waiting() + usize::from(self.holding.is_timed()) > 0
            && self.lanes.get(peer).is_some_and(Lane::wants_credits)
    }
}
