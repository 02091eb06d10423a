//! Which messages are refused, by the rules of `holding.rs`, and when that ends.

use super::holding::tries_on;
use super::lane::Lane;
use super::{Egress, Mailboxes};
use crate::link::Buffer;
use std::time::Duration;
use tidegate_flow::{Instant, PeerId};

impl<B: Buffer> Egress<B> {
    /// Whether a message that cannot leave had better be refused than wait here.
    #[cold]
    pub(crate) fn hold(
        &mut self,
        mailboxes: &mut impl Mailboxes,
        to: PeerId,
        patience: Duration,
        now: Instant,
    ) -> bool {
        if patience.is_zero() {
            return false;
        }
        let refusals = self.flow.refusals(to);
        let hold = &mut self.lanes.of(to).hold;
        if std::mem::take(&mut hold.is_on_trial) && refusals < 2 {
            // What was refused before has left.
            if hold.end() {
                self.holding.end_by(to, self.asked);
            }
        }
        if !hold.has_given_up {
            let mut ran = || mailboxes.processor_time(to);
            let tries_on = |begun| tries_on(&mut self.asked, to, &mut ran, (begun, patience), now);
            if self.holding.refuse(patience, now, tries_on) {
                hold.is_holding = true;
                return true;
            }
        }
        hold.has_given_up = true;
        hold.is_scarce |= self.flow.credits(to) > 0;
        false
    }

    /// Whether a message of so many packets can leave whole, or no waiting makes it so.
    pub(crate) fn has_credits_for(&mut self, to: PeerId, packets: u32) -> bool {
        let credits = self.flow.credits(to);
        let lane = self.lanes.get_mut(to);
        if credits >= packets {
            if let Some(lane) = lane {
                lane.hold.is_scarce = false;
            }
            return true;
        }
        credits > 0 && lane.is_some_and(|lane| lane.hold.is_scarce)
    }

    /// Whether anything goes on when credits come: something waits for the peer, or was refused.
    #[inline]
    pub(crate) fn wants_credits(&self, peer: PeerId) -> bool {
        self.waiting() + usize::from(self.holding.is_timed()) > 0
            && self.lanes.get(peer).is_some_and(Lane::wants_credits)
    }
}
