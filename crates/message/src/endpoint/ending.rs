//! How operations end: completions, and what is lost.

use super::Endpoint;
use crate::collections::list::Position;
use crate::completion::{Completion, Failure};
use crate::counter::Counter;
use crate::envelope::Envelope;
use crate::link::{Buffer, Link};
use crate::matching::{Active, Stored, Unexpected};
use crate::operation::{Context, Queue, Target};
use crate::port::Ending;
use crate::port::placed;
use crate::sequence::Received;

impl<L: Link> Endpoint<L> {
    /// A receive has all of its message that fits.
    #[inline]
    pub(super) fn complete_receive(&mut self, active: Active<L::Buffer>, envelope: &Envelope, queue: Queue) {
        let received = self.received(active, envelope, queue, Ok(()));
        self.end_receive(received);
    }

    /// A receive that matched cannot get its message.
    #[cold]
    pub(super) fn fail_receive(
        &mut self,
        active: Active<L::Buffer>,
        envelope: &Envelope,
        queue: Queue,
        failure: Failure,
    ) {
        let received = self.received(active, envelope, queue, Err(failure));
        self.end_receive(received);
    }

    /// What has become of a receive that has all of its message that fits, or cannot get it.
    #[inline]
    pub(super) fn received(
        &self,
        active: Active<L::Buffer>,
        envelope: &Envelope,
        queue: Queue,
        result: Result<(), Failure>,
    ) -> Received<L::Buffer> {
        let (length, result) = match result {
            Ok(()) => {
                self.port.count(Counter::BytesReceived, envelope.length as u64);
                placed(envelope, active.buffer.len())
            }
            failed => (0, failed),
        };
        Received { active, envelope: *envelope, queue, length, result }
    }

    /// Ends a receive. In a buffer for several messages those of one sender end in their order.
    #[inline]
    pub(super) fn end_receive(&mut self, received: Received<L::Buffer>) {
        let received = match received.envelope.source {
            Target::Peer(peer) if received.active.is_of_several() => self.sequence.admit(peer, received),
            _ => Some(received),
        };
        if let Some(received) = received {
            self.report_received(received);
        }
    }

    /// Reports a receive; and the end of a buffer for several messages, if that was its last.
    #[inline]
    pub(super) fn report_received(&mut self, received: Received<L::Buffer>) {
        let Received { active, envelope, queue, length, result } = received;
        let released = self.matching.of(queue).finish(&active);
        if active.report || released || result.is_err() {
            let met = Completion::met(active.context, queue, &envelope);
            self.port.ended.push(Completion { length, offset: active.offset, released, result, ..met });
        }
    }

    /// Stores a message that no receive waits for. The caller accounts for its cost.
    pub(super) fn store_unexpected(
        &mut self,
        envelope: Envelope,
        stored: Stored<L::Buffer>,
        queue: Queue,
        cost: u32,
    ) -> Position {
        let counters = self.port.link.counters();
        counters.add(Counter::UnexpectedMessages, 1);
        if matches!(stored, Stored::Here(_)) {
            counters.add(Counter::UnexpectedBytes, envelope.length as u64);
            counters.raise(Counter::UnexpectedPeak, counters.get(Counter::UnexpectedBytes));
        }
        self.matching.of(queue).store(Unexpected { envelope, stored, claimed: None, cost })
    }

    pub(super) fn count_unstored(&self, bytes: usize) {
        self.port.link.counters().sub(Counter::UnexpectedBytes, bytes as u64);
    }

    /// No transfer of what is over is left.
    pub(super) fn end_held(&mut self, ending: Ending<L::Buffer>) {
        match ending {
            Ending::Receive { active, envelope, queue, failure } => {
                self.fail_receive(active, &envelope, queue, failure);
            }
            Ending::Operation(completion) => self.port.ended.push(completion),
        }
    }

    /// Ends all operations to a target that wait: it is gone, or this endpoint closes.
    pub(super) fn fail_fenced(&mut self, target: Target, failure: &Failure) {
        self.lower_fence(target);
        while let Some((operation, _)) = self.fences.pop(target, true) {
            self.forget_copy(target, &operation);
            self.port.fail_waiting(&operation, failure.clone());
        }
    }

    /// The same for all targets.
    pub(super) fn fail_all_fenced(&mut self, failure: &Failure) {
        for target in self.fences.targets() {
            self.fail_fenced(target, failure);
        }
    }

    /// Cancels the oldest operation that the application calls `name`, if one waits. Returns whether.
    #[cold]
    pub(super) fn cancel_fenced(&mut self, name: usize, name_of: impl Fn(Context) -> usize) -> bool {
        let Some((target, operation)) = self.fences.take_named(name, name_of) else { return false };
        if !self.fences.holds(target) {
            self.lower_fence(target);
        }
        self.forget_copy(target, &operation);
        self.port.fail_waiting(&operation, Failure::Canceled);
        true
    }
}
