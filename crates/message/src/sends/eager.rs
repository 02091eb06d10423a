//! Eager messages (P §3) on their way out: sent at once through the mailbox, as there is room for them.

use super::Sends;
use crate::counter::Counter;
use crate::egress::{Outgoing, Step};
use crate::link::{Buffer, Link};
use crate::memory::Memory;
use crate::operation::{Send, TryAgain};
use crate::port::Port;
use tidegate_flow::PeerId;

impl<L: Link> Sends<L> {
    /// An eager message is not short, or has not left because of this. `may_refuse`: an injected one need not be kept.
    #[inline(always)]
    pub(crate) fn go_on_eagerly(
        &mut self,
        port: &mut Port<L>,
        to: PeerId,
        send: Send<L::Buffer>,
        step: Option<Step>,
        may_refuse: bool,
    ) -> Result<(), TryAgain> {
        port.egress.attention.raise();
        if send.inject && may_refuse && self.must_hold(port, to, &send, step.as_ref()) {
            let cost = Memory::<L::Buffer>::eager_cost(send.buffer.len());
            self.rooms.put_back(to, cost);
            return Err(TryAgain);
        }
        port.count(Counter::BytesSent, send.buffer.len() as u64);
        port.count(Counter::MessagesEager, 1);
        let inject = send.inject;
        let message = Outgoing::eager(send);
        let left = match step {
            Some(step) => port.end_step(to, step, message, inject),
            None => port.dispatch_unless_announced(to, message, inject),
        };
        if let Some(message) = left {
            self.announce_instead(port, to, message, inject);
        }
        Ok(())
    }

    /// Whether an injected message is refused, because it would wait here (`egress/holding.rs`).
    #[cold]
    fn must_hold(&mut self, port: &mut Port<L>, to: PeerId, send: &Send<L::Buffer>, step: Option<&Step>) -> bool {
        let is_stuck = match step {
            Some(step) => matches!(step, Step::NoCredits | Step::Full | Step::Announce),
            None if port.presence.lost(to).is_some() => false,
            None if !port.egress.is_idle(to) => true,
            None => !port.egress.has_credits_for(to, Outgoing::eager_packets(send), port.now),
        };
        is_stuck && port.egress.hold(to, port.config.patience, port.now)
    }
}
