//! Eager messages (P §3): sent at once through the mailbox, matched when their first packet arrives, stored at exactly
//! their size when no receive waits for them.

use crate::assembly::{Malformed, Sink, write_clipped};
use crate::bulk::Waited;
use crate::collections::list::Position;
use crate::completion::{Completion, Failure};
use crate::counter::Counter;
use crate::egress::Outgoing;
use crate::endpoint::Endpoint;
use crate::envelope::Envelope;
use crate::link::{Buffer, Link};
use crate::matching::{Active, Stored, Unexpected};
use crate::memory::Memory;
use crate::operation::{Queue, Send, Target};
use crate::wire::{Eager, LARGEST_EAGER_BYTES};
use tidegate_flow::PeerId;

impl<L: Link> Endpoint<L> {
    /// Sends a message through the mailbox.
    #[inline]
    pub(crate) fn send_eagerly(&mut self, to: PeerId, send: Send<L::Buffer>) {
        self.count(Counter::MessagesEager, 1);
        let inject = send.inject;
        self.dispatch(to, Outgoing::eager(send), inject);
    }

    /// The first packet of an eager message.
    #[inline]
    pub(crate) fn begin_eager(
        &mut self,
        from: PeerId,
        head: Eager,
        length: usize,
        rest: &[u8],
    ) -> Result<(), Malformed> {
        let queue = head.queue;
        if length > LARGEST_EAGER_BYTES {
            return Err(Malformed);
        }
        let cost = Memory::<L::Buffer>::eager_cost(length);
        self.check_window(from, cost)?;
        if head.was_dropped {
            self.deferral.windows.remember(from)?;
        }
        let envelope = Envelope { source: Target::Peer(from), tag: head.tag, data: head.data, length };
        let whole = rest.len() == length;
        match self.matching.of(queue).accept(&envelope) {
            Some(mut active) => {
                write_clipped(&mut active.buffer, 0, rest);
                if whole {
                    self.complete_receive(active, &envelope, queue);
                } else {
                    let sink = Sink::Receive(active, envelope, queue);
                    self.assembly.begin(from, sink, length, rest.len());
                }
                self.pass_window(from, cost);
            }
            None => {
                let mut bytes = Vec::with_capacity(length);
                bytes.extend_from_slice(rest);
                let at = self.store_unexpected(envelope, Stored::Here(bytes), queue, cost);
                if !whole {
                    let sink = Sink::Store(at, queue);
                    self.assembly.begin(from, sink, length, rest.len());
                }
                self.enter_window(from, cost);
            }
        }
        Ok(())
    }

    /// Stores a message that no receive waits for. The caller accounts for its cost.
    pub(crate) fn store_unexpected(
        &mut self,
        envelope: Envelope,
        stored: Stored<L::Buffer>,
        queue: Queue,
        cost: u32,
    ) -> Position {
        let counters = self.link.counters();
        counters.add(Counter::UnexpectedMessages, 1);
        if matches!(stored, Stored::Here(_)) {
            counters.add(Counter::UnexpectedBytes, envelope.length as u64);
            counters.raise(Counter::UnexpectedPeak, counters.get(Counter::UnexpectedBytes));
        }
        self.matching.of(queue).store(Unexpected { envelope, stored, claimed: None, cost })
    }

    /// A stored message has its receive.
    pub(crate) fn deliver_stored(
        &mut self,
        mut active: Active<L::Buffer>,
        unexpected: Unexpected<L::Buffer>,
        queue: Queue,
    ) {
        let (envelope, mut cost) = (unexpected.envelope, unexpected.cost);
        match unexpected.stored {
            Stored::Here(bytes) => {
                self.count_unstored(envelope.length);
                write_clipped(&mut active.buffer, 0, &bytes);
                match (bytes.len() < envelope.length, envelope.source) {
                    (true, Target::Peer(from)) => {
                        self.assembly.redirect(from, Sink::Receive(active, envelope, queue));
                    }
                    _ => self.complete_receive(active, &envelope, queue),
                }
            }
            Stored::Remote(announcement) => {
                cost -= announcement.kept();
                self.start_pull(active, envelope, announcement, queue, Waited::Message);
            }
            Stored::Own { buffer, context, report } => {
                self.deliver_own(active, &envelope, queue, &buffer);
                self.complete_own(context, report, &envelope, queue);
            }
            Stored::Lost(peer) => self.fail_receive(active, &envelope, queue, Failure::PeerLost { peer }),
        }
        self.leave_window(envelope.source, cost);
    }

    /// Drops a stored message (`FI_DISCARD`).
    pub(crate) fn discard_stored(&mut self, unexpected: Unexpected<L::Buffer>, queue: Queue) {
        let (envelope, cost) = (unexpected.envelope, unexpected.cost);
        match (unexpected.stored, envelope.source) {
            (Stored::Here(bytes), source) => {
                self.count_unstored(envelope.length);
                if let (true, Target::Peer(from)) = (bytes.len() < envelope.length, source) {
                    self.assembly.redirect(from, Sink::Discard);
                }
            }
            (Stored::Remote(announcement), _) => self.finish_announced(&announcement),
            (Stored::Own { context, report, .. }, _) => self.complete_own(context, report, &envelope, queue),
            (Stored::Lost(_), _) => {}
        }
        self.leave_window(envelope.source, cost);
    }

    fn count_unstored(&self, bytes: usize) {
        self.link.counters().sub(Counter::UnexpectedBytes, bytes as u64);
    }

    /// A receive has all of its message that fits.
    #[inline]
    pub(crate) fn complete_receive(&mut self, active: Active<L::Buffer>, envelope: &Envelope, queue: Queue) {
        self.count(Counter::BytesReceived, envelope.length as u64);
        let placed = envelope.length.min(active.buffer.len());
        let result = match placed == envelope.length {
            true => Ok(()),
            false => Err(Failure::Truncated { full: envelope.length }),
        };
        self.end_receive(active, envelope, queue, placed, result);
    }

    /// A receive that matched cannot get its message.
    #[cold]
    pub(crate) fn fail_receive(
        &mut self,
        active: Active<L::Buffer>,
        envelope: &Envelope,
        queue: Queue,
        failure: Failure,
    ) {
        self.end_receive(active, envelope, queue, 0, Err(failure));
    }

    #[inline]
    fn end_receive(
        &mut self,
        active: Active<L::Buffer>,
        envelope: &Envelope,
        queue: Queue,
        length: usize,
        result: Result<(), Failure>,
    ) {
        let released = self.matching.of(queue).finish(&active);
        if active.report || released || result.is_err() {
            let met = Completion::met(active.context, queue, envelope);
            self.completions.push_back(Completion { length, offset: active.offset, released, result, ..met });
        }
    }
}
