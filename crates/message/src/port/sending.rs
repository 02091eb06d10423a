//! Messages that leave, or wait until they can.

use super::Port;
use crate::completion::Notice;
use crate::counter::Counter;
use crate::egress::{Body, CarriedShort, Outgoing, Short, Step, Two};
use crate::link::{Buffer, Link};
use crate::operation::{Context, Space};
use crate::presence::Loss;
use crate::wire::{Carried, Message};
use tidegate_flow::PeerId;

impl<L: Link> Port<L> {
    /// Sends a message now, or as soon as everything before it has left. `inject`: the body is copied if it has to
    /// wait.
    #[inline]
    pub(crate) fn dispatch(&mut self, to: PeerId, message: Outgoing<L::Buffer>, inject: bool) {
        if let Some(message) = self.dispatch_unless_announced(to, message, inject) {
            self.wait_in_queue(to, message, inject, false);
        }
    }

    /// The same, but returns the message if flow control would rather have its request to send leave first.
    #[inline]
    pub(crate) fn dispatch_unless_announced(
        &mut self,
        to: PeerId,
        mut message: Outgoing<L::Buffer>,
        inject: bool,
    ) -> Option<Outgoing<L::Buffer>> {
        if let Some(name) = self.presence.gone(to) {
            let name = name.to_owned();
            self.fail_notice(message.into_notice(), &name);
            return None;
        }
        match self.egress.send(&mut self.link, self.now, to, &mut message) {
            Step::Sent => {
                self.report_sent(message.into_notice());
                None
            }
            step => self.end_step(to, step, message, inject),
        }
    }

    /// A message got so far. Out of line, so that one that has left is not moved.
    #[inline(never)]
    pub(crate) fn end_step(
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
                self.note_unreachable(to, peer.0);
            }
            Step::Announce => return Some(message),
            Step::NoCredits | Step::Full | Step::Begun => {
                self.wait_in_queue(to, message, inject, step != Step::NoCredits);
            }
        }
        None
    }

    /// Sends a message of the application that fits into one packet, straight from the application's memory into the
    /// packet that is written. Returns how far it got; `None`: it takes more than one packet, or its receiver is lost.
    #[inline(always)]
    pub(crate) fn send_short(
        &mut self,
        to: PeerId,
        space: Space,
        data: Option<u64>,
        buffer: &L::Buffer,
    ) -> Option<Step> {
        let short = Short::of(space, data, buffer).filter(|_| self.presence.lost(to).is_none())?;
        Some(self.egress.send_short(&mut self.link, self.now, to, short))
    }

    /// Sends a message of the application that takes more than one packet, straight from the application's memory, if
    /// that takes one call of the link. Returns how far it got; `None`: it has to go the way of longer ones.
    #[inline(never)]
    pub(crate) fn send_at_once(
        &mut self,
        to: PeerId,
        space: Space,
        data: Option<u64>,
        buffer: &L::Buffer,
    ) -> Option<Step> {
        if self.presence.lost(to).is_some() {
            return None;
        }
        match Two::of(space, data, buffer) {
            Some(two) => self.egress.send_two(&mut self.link, self.now, to, two),
            None => self.send_carried(to, space, data, buffer),
        }
    }

    /// Sends a message of the application that takes more than one packet in one all the same, if the link can carry it
    /// better than packets, and the packet can leave now. `None`: it cannot.
    #[inline]
    fn send_carried(&mut self, to: PeerId, space: Space, data: Option<u64>, buffer: &L::Buffer) -> Option<Step> {
        let length = buffer.len();
        let is_better = self.link.is_better_carried(to, length);
        if !is_better || !self.egress.may_leave(to) {
            return None;
        }
        let number = self.link.carry(to, buffer)?;
        let head = Carried { queue: space.queue(), tag: space.tag(), data, length: length as u32, number };
        let step = self.egress.send_short(&mut self.link, self.now, to, CarriedShort(head));
        if step != Step::Sent {
            self.link.take_back_carried(to);
        }
        Some(step)
    }

    /// A short message has left.
    #[inline(always)]
    pub(crate) fn end_short(&mut self, context: Context, space: Space, length: usize, report: bool) {
        self.count(Counter::BytesSent, length as u64);
        self.count(Counter::MessagesEager, 1);
        // Asked here, too: to make a notice that is not wanted would read back values that have just been stored.
        if report {
            self.report_sent(Some(Notice { context, space, length, report }));
        }
    }

    /// Sends a message of one of our own kinds that is a head and nothing else.
    pub(crate) fn tell(&mut self, to: PeerId, head: impl Into<Message>) {
        self.dispatch(to, Outgoing::new(head, Body::None, None), false);
    }

    /// Queues a message that cannot leave.
    #[cold]
    pub(crate) fn wait_in_queue(&mut self, to: PeerId, mut message: Outgoing<L::Buffer>, inject: bool, full: bool) {
        if inject {
            message.own();
        }
        self.egress.wait(&self.link, to, message, full);
    }

    /// Nothing can be sent to a peer any more: what waits for it ends when this call does.
    #[cold]
    pub(crate) fn note_unreachable(&mut self, peer: PeerId, name: String) {
        self.egress.attention.note_loss();
        self.presence.note_loss(Loss { peer, name, is_quarantined: false });
    }

    /// A peer has done what no correct peer does and what would take our memory: from now on it counts as lost.
    #[cold]
    pub(crate) fn quarantine(&mut self, peer: PeerId, why: &str) {
        self.egress.attention.note_loss();
        self.count(Counter::PeersQuarantined, 1);
        let name = format!("{} (quarantined: {why})", self.link.quarantine(peer));
        self.presence.note_loss(Loss { peer, name, is_quarantined: true });
    }
}
