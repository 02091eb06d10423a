//! Messages that leave, or wait until they can.

use super::Endpoint;
use crate::completion::Notice;
use crate::egress::{Body, Outgoing, Short, Step};
use crate::link::Link;
use crate::operation::Send;
use crate::wire::Message;
use tidegate_flow::PeerId;

impl<L: Link> Endpoint<L> {
    /// Sends a message now, or as soon as everything before it has left. `inject`: the body is copied if it has to
    /// wait.
    #[inline]
    pub(super) fn dispatch(&mut self, to: PeerId, message: Outgoing<L::Buffer>, inject: bool) {
        if let Some(message) = self.dispatch_unless_announced(to, message, inject) {
            self.wait_in_queue(to, message, inject, false);
        }
    }

    /// The same, but returns the message if flow control would rather have its request to send leave first.
    #[inline]
    pub(super) fn dispatch_unless_announced(
        &mut self,
        to: PeerId,
        mut message: Outgoing<L::Buffer>,
        inject: bool,
    ) -> Option<Outgoing<L::Buffer>> {
        if let Some(lost) = self.presence.lost(to) {
            let name = lost.name.clone();
            self.fail_notice(message.into_notice(), &name);
            return None;
        }
        let step = self.egress.send(&mut self.link, self.now, to, &mut message);
        self.end_step(to, step, message, inject)
    }

    /// A message got so far.
    #[inline]
    pub(super) fn end_step(
        &mut self,
        to: PeerId,
        step: Step,
        message: Outgoing<L::Buffer>,
        inject: bool,
    ) -> Option<Outgoing<L::Buffer>> {
        match step {
            Step::Sent => self.report_sent(message.into_notice()),
            Step::Lost(peer) => {
                self.fail_notice(message.into_notice(), &peer.0);
                self.handle_unreachable(to, &peer.0);
            }
            Step::Announce => return Some(message),
            Step::NoCredits | Step::Full => self.wait_in_queue(to, message, inject, step == Step::Full),
        }
        self.quarantine_overdrawn();
        None
    }

    /// Sends a message of the application that fits into one packet, straight from the application's memory into the
    /// slot. Returns how far it got; `None`: it takes more than one packet, or its receiver is lost.
    #[inline(always)]
    pub(super) fn send_short(&mut self, to: PeerId, send: &Send<L::Buffer>) -> Option<Step> {
        let mut short = Short::of(send).filter(|_| self.presence.lost(to).is_none())?;
        let step = self.egress.send(&mut self.link, self.now, to, &mut short);
        if step == Step::Sent {
            // Asked here, too: a notice that nobody wants is a copy that waits for what has just been stored.
            if send.report {
                self.report_sent(Some(Notice::of(send)));
            }
            self.quarantine_overdrawn();
        }
        Some(step)
    }

    /// Sends a message of our own that is a head and nothing else.
    pub(super) fn tell(&mut self, to: PeerId, head: impl Into<Message>) {
        self.dispatch(to, Outgoing::new(head, Body::None, None), false);
    }

    /// Queues a message that cannot leave.
    #[cold]
    pub(super) fn wait_in_queue(&mut self, to: PeerId, mut message: Outgoing<L::Buffer>, inject: bool, full: bool) {
        if inject {
            message.own();
        }
        self.egress.wait(&self.link, to, message, full);
    }

    /// Quarantines the peers that send without waiting for credits.
    #[inline]
    pub(super) fn quarantine_overdrawn(&mut self) {
        while let Some(peer) = self.egress.poll_overdrawn() {
            self.quarantine(peer, "it sends without waiting for credits while its own mailbox is full");
        }
    }
}
