//! Messages that leave, and what follows from it.

use crate::collections::slab::Key;
use crate::completion::{Completion, Failure, Notice};
use crate::counter::Counter;
use crate::egress::{Body, Outgoing, Resumed, Step};
use crate::endpoint::Endpoint;
use crate::link::{Buffer, Link};
use crate::memory::Memory;
use crate::operation::{Send, Target};
use crate::wire::{Message, Note};
use tidegate_flow::PeerId;

impl<L: Link> Endpoint<L> {
    /// Sends a message now, or as soon as everything before it has left. `inject`: the body is copied if it has to wait.
    #[inline]
    pub(crate) fn dispatch(&mut self, to: PeerId, mut message: Outgoing<L::Buffer>, inject: bool) {
        if let Some(lost) = self.presence.lost(to) {
            let name = lost.name.clone();
            return self.fail_notice(message.into_notice(), &name);
        }
        let step = self.egress.send(&mut self.link, self.timing.now(), to, &mut message);
        match step {
            Step::Sent => self.report_sent(message.into_notice()),
            Step::Lost(name) => {
                self.fail_notice(message.into_notice(), &name);
                self.handle_unreachable(to, &name);
            }
            Step::Announce => self.announce_instead(to, message, inject),
            Step::NoCredits | Step::Full => self.wait_in_queue(to, message, inject, step == Step::Full),
        }
        self.quarantine_overdrawn();
    }

    /// Ends the peers that send without waiting for credits.
    #[inline]
    pub(crate) fn quarantine_overdrawn(&mut self) {
        while let Some(peer) = self.egress.poll_overdrawn() {
            self.quarantine(peer, "it sends without waiting for credits while its own mailbox is full");
        }
    }

    /// Sends a message of our own that is a head and nothing else.
    pub(crate) fn tell(&mut self, to: PeerId, head: impl Into<Message>) {
        self.dispatch(to, Outgoing::new(head, Body::None, None), false);
    }

    /// Announces a short message whose first packet has no credit, as flow control asks; whatever else it is waits.
    #[cold]
    fn announce_instead(&mut self, to: PeerId, message: Outgoing<L::Buffer>, inject: bool) {
        let may_be_announced = message.may_be_announced();
        let has_room =
            |spans, eager| self.deferral.rooms.has_instead(to, eager, Memory::<L::Buffer>::announce_cost(spans));
        match message {
            Outgoing { head: Message::Eager(head), body: Body::Borrowed(buffer), notice: Some(notice), .. }
                if may_be_announced
                    && has_room(buffer.spans().count(), Memory::<L::Buffer>::eager_cost(buffer.len())) =>
            {
                self.link.counters().sub(Counter::MessagesEager, 1);
                let Notice { context, space, report, .. } = notice;
                let (target, data) = (Target::Peer(to), head.data);
                let send = Send { to: target, space, buffer, data, context, inject, delivery: false, report };
                self.announce_in_room(to, send);
            }
            message => self.wait_in_queue(to, message, inject, false),
        }
    }

    /// Queues a message that cannot leave.
    #[cold]
    fn wait_in_queue(&mut self, to: PeerId, mut message: Outgoing<L::Buffer>, inject: bool, full: bool) {
        if inject {
            message.own();
        }
        self.egress.wait(&self.link, to, message, full);
    }

    /// Sends what waits for `to`, as far as it goes.
    pub(crate) fn resume(&mut self, to: PeerId) {
        loop {
            match self.egress.send_waiting(&mut self.link, self.timing.now(), to) {
                Resumed::Left(message) => {
                    self.note_left(to, &message.head);
                    self.report_sent(message.into_notice());
                }
                Resumed::Lost(message, name) => {
                    self.fail_notice(message.into_notice(), &name);
                    self.handle_unreachable(to, &name);
                    break;
                }
                Resumed::Stuck => break,
            }
        }
        self.quarantine_overdrawn();
    }

    /// Something that waited has left.
    fn note_left(&mut self, to: PeerId, head: &Message) {
        match head {
            Message::Note(Note::ClearToSend(clear)) => self.bulk.pulls.note_asked(Key(clear.pull)),
            // More may have become free meanwhile.
            Message::Note(Note::Room(_)) => self.review(to),
            _ => {}
        }
    }

    /// Tries the peers again whose mailbox was full.
    pub(crate) fn retry_full(&mut self) {
        self.egress.retry_control(&mut self.link);
        self.quarantine_overdrawn();
        for to in self.egress.take_full() {
            self.egress.retry(to);
            if self.deferral.rooms.is_stranger(to) {
                self.meet_again(to);
            }
            self.resume(to);
        }
    }

    #[inline]
    fn report_sent(&mut self, notice: Option<Notice>) {
        if let Some(notice) = notice
            && notice.report
        {
            self.completions.push_back(Completion::sent(notice, Ok(())));
        }
    }

    pub(crate) fn fail_notice(&mut self, notice: Option<Notice>, peer: &str) {
        self.lose_notice(notice, Failure::PeerLost { peer: peer.to_owned() });
    }
}
