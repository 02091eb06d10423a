//! Receives that are posted or find their message stored, and those that are canceled.

use super::Inbound;
use crate::completion::Failure;
use crate::envelope::Pattern;
use crate::link::Link;
use crate::matching::MatchQueue;
use crate::operation::{Context, MatchFlags, MultiReceive, Queue, Receive, Source, Target};
use crate::port::Port;
use crate::pulls::Pulling;

impl<L: Link> Inbound<L> {
    /// Whether a message may be there for the next receive: one is stored, or its envelope was dropped.
    #[inline(always)]
    pub(crate) fn may_satisfy(&mut self, queue: Queue) -> bool {
        self.matching.of(queue).has_stored() || self.windows.has_dropped()
    }

    /// Posts a receive that nothing stored satisfies.
    #[inline(always)]
    pub(crate) fn post(&mut self, receive: Receive<L::Buffer>, pattern: Pattern, queue: Queue) {
        let Receive { buffer, context, report, .. } = receive;
        let number = self.matching.next_number();
        self.matching.of(queue).post(number, pattern, buffer, context, report);
    }

    /// Posts a receive, unless it is satisfied by what is stored, or can never be.
    pub(crate) fn receive(
        &mut self,
        port: &mut Port<L>,
        pulls: &mut Pulling<L>,
        receive: Receive<L::Buffer>,
        pattern: Pattern,
        queue: Queue,
    ) {
        if receive.flags != MatchFlags::default() {
            return self.receive_by_flags(port, pulls, receive, &pattern, queue);
        }
        if let Some(multi) = receive.multi {
            return self.receive_many(port, pulls, receive, multi, pattern, queue);
        }
        if let Some(unexpected) = self.matching.of(queue).take_unexpected(&pattern) {
            let active = MatchQueue::activate_now(receive.buffer, receive.context, receive.report);
            self.deliver_stored(port, pulls, active, unexpected, queue);
        } else if let Some(peer) = self.dead_source(port, receive.from) {
            let failure = Failure::PeerLost { peer };
            port.complete_unmatched(receive.context, receive.space, false, failure);
        } else {
            let from = receive.from;
            self.post(receive, pattern, queue);
            self.seek(port, from);
        }
    }

    /// Posts a multi-receive buffer and fills it with what is stored already.
    fn receive_many(
        &mut self,
        port: &mut Port<L>,
        pulls: &mut Pulling<L>,
        receive: Receive<L::Buffer>,
        multi: MultiReceive,
        pattern: Pattern,
        queue: Queue,
    ) {
        let number = self.matching.next_number();
        let matching = self.matching.of(queue);
        let at = matching.post_multi(number, pattern, receive.buffer, receive.context, receive.report, multi);
        while let Some((active, unexpected)) = self.matching.of(queue).accept_stored(at) {
            self.deliver_stored(port, pulls, active, unexpected, queue);
        }
        if let Some(peer) = self.dead_source(port, receive.from)
            && let Some(left) = self.matching.of(queue).take_back(at)
        {
            port.complete_unmatched(left.context, receive.space, left.released, Failure::PeerLost { peer });
        }
        self.seek(port, receive.from);
    }

    /// The name of the one peer that a receive accepts, if that peer died.
    fn dead_source(&self, port: &Port<L>, from: Source) -> Option<String> {
        let Source::From(Target::Peer(peer)) = from else { return None };
        let lost = port.presence.lost(peer)?;
        (!lost.orderly).then(|| lost.name.clone())
    }

    /// Cancels the oldest receive or peek that the application calls `name`, if one has not matched. Returns whether.
    pub(crate) fn cancel_named(&mut self, port: &mut Port<L>, name: usize, name_of: impl Fn(Context) -> usize) -> bool {
        let inquiry = self.windows.inquiries.find_named(name, &name_of);
        if let Some((queue, canceled)) = self.matching.take_back_named(name, inquiry, &name_of) {
            port.complete_unmatched(canceled.context, queue.space(0), canceled.released, Failure::Canceled);
            return true;
        }
        let Some(inquiry) = inquiry.and_then(|number| self.windows.inquiries.take(number)) else { return false };
        port.complete_unmatched(inquiry.context, inquiry.queue.space(0), false, Failure::Canceled);
        true
    }
}
