//! How receives end, and messages are stored.

use super::Inbound;
use crate::collections::list::Position;
use crate::collections::slab::Key;
use crate::completion::{Completion, Failure};
use crate::counter::Counter;
use crate::envelope::Envelope;
use crate::link::{Buffer, Link};
use crate::matching::{Filled, Matched, Stored, Unexpected};
use crate::operation::{Queue, Target};
use crate::port::{Ending, Port, placed};
use crate::sequence::Received;

impl<L: Link> Inbound<L> {
    /// A receive has all of its message that fits.
    #[inline]
    pub(crate) fn complete_receive(&mut self, port: &mut Port<L>, matched: Matched<L::Buffer>) {
        let received = received(port, matched, Ok(()));
        self.end_receive(port, received);
    }

    /// A receive that matched cannot get its message.
    #[cold]
    pub(crate) fn fail_receive(&mut self, port: &mut Port<L>, matched: Matched<L::Buffer>, failure: Failure) {
        let received = received(port, matched, Err(failure));
        self.end_receive(port, received);
    }

    /// Ends a receive. In a buffer for several messages those of one sender end in their order.
    #[inline]
    fn end_receive(&mut self, port: &mut Port<L>, received: Received<L::Buffer>) {
        let received = match received.matched.envelope.source {
            Target::Peer(peer) if received.matched.active.is_of_several() => self.sequence.admit(peer, received),
            _ => Some(received),
        };
        if let Some(received) = received {
            self.report_received(port, received);
        }
    }

    /// Reports a receive; and the end of a buffer for several messages, if that was its last.
    #[inline]
    pub(super) fn report_received(&mut self, port: &mut Port<L>, received: Received<L::Buffer>) {
        let Received { matched: Matched { active, envelope, queue }, length, result } = received;
        let released = self.matching.of(queue).finish(&active);
        if active.report || released || result.is_err() {
            let met = Completion::met(active.context, queue, &envelope);
            port.ended.push(Completion { length, offset: active.offset, released, result, ..met });
        }
    }

    /// Stores a message that no receive waits for. The caller accounts for its cost.
    pub(crate) fn store_unexpected(
        &mut self,
        port: &mut Port<L>,
        envelope: Envelope,
        stored: Stored<L::Buffer>,
        queue: Queue,
        cost: u32,
    ) -> Position {
        let counters = port.link.counters();
        counters.add(Counter::UnexpectedMessages, 1);
        if matches!(stored, Stored::Here(_)) {
            counters.add(Counter::UnexpectedBytes, envelope.length as u64);
            counters.raise(Counter::UnexpectedPeak, counters.get(Counter::UnexpectedBytes));
        }
        self.matching.of(queue).store(Unexpected { envelope, stored, claimed: None, cost })
    }

    pub(super) fn count_unstored(&self, port: &Port<L>, bytes: usize) {
        port.link.counters().sub(Counter::UnexpectedBytes, bytes as u64);
    }

    /// No transfer of what is over is left.
    pub(crate) fn end_held(&mut self, port: &mut Port<L>, ending: Ending<L::Buffer>) {
        match ending {
            Ending::Receive(matched, failure) => self.fail_receive(port, matched, failure),
            Ending::Operation(completion) => port.ended.push(completion),
        }
    }

    /// A receive whose message was pulled is over. In a buffer for several messages it has its turn among those of its
    /// sender.
    pub(crate) fn end_pulled(
        &mut self,
        port: &mut Port<L>,
        key: Key,
        matched: Matched<L::Buffer>,
        result: Result<(), Failure>,
    ) {
        let received = received(port, matched, result);
        let Target::Peer(peer) = received.matched.envelope.source else { return };
        if !received.matched.active.is_of_several() {
            return self.report_received(port, received);
        }
        if let Some(received) = self.sequence.end(peer, key, received) {
            self.report_received(port, received);
        }
        while let Some(received) = self.sequence.next(peer) {
            self.report_received(port, received);
        }
    }

    /// A receive has been filled with a message that had come whole.
    #[inline(always)]
    pub(super) fn report_filled(&mut self, port: &mut Port<L>, filled: Filled, envelope: &Envelope, queue: Queue) {
        port.count(Counter::BytesReceived, envelope.length as u64);
        let (length, result) = placed(envelope, filled.room);
        if filled.report || result.is_err() {
            let met = Completion::met(filled.context, queue, envelope);
            port.ended.push(Completion { length, result, ..met });
        }
    }
}

/// A receive that has all of its message that fits, or cannot get it.
#[inline]
fn received<L: Link>(port: &Port<L>, matched: Matched<L::Buffer>, result: Result<(), Failure>) -> Received<L::Buffer> {
    let (length, result) = match result {
        Ok(()) => {
            port.count(Counter::BytesReceived, matched.envelope.length as u64);
            placed(&matched.envelope, matched.active.buffer.len())
        }
        failed => (0, failed),
    };
    Received { matched, length, result }
}
