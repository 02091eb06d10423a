//! How operations end: completions, and what is lost.

use super::Endpoint;
use crate::bulk::{Ending, PendingSend, TransferOwner};
use crate::collections::list::Position;
use crate::collections::slab::Key;
use crate::completion::{Completion, Failure, Notice};
use crate::counter::Counter;
use crate::envelope::Envelope;
use crate::link::{Buffer, Link, TransferId};
use crate::matching::{Active, Stored, Unexpected};
use crate::operation::{Context, Queue, Space, Target};
use crate::rma::RemoteOperation;
use crate::sequence::Received;
use crate::submission::Submission;
use tidegate_flow::PeerId;

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
                self.count(Counter::BytesReceived, envelope.length as u64);
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
            self.ended.push(Completion { length, offset: active.offset, released, result, ..met });
        }
    }

    /// A receive that ends without a message.
    pub(super) fn complete_unmatched(&mut self, context: Context, space: Space, released: bool, failure: Failure) {
        self.ended.push(Completion::unmatched(context, space, released, failure));
    }

    /// Stores a message that no receive waits for. The caller accounts for its cost.
    pub(super) fn store_unexpected(
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

    pub(super) fn count_unstored(&self, bytes: usize) {
        self.link.counters().sub(Counter::UnexpectedBytes, bytes as u64);
    }

    /// The send half of a message of our own is complete.
    pub(super) fn complete_own(&mut self, context: Context, report: bool, envelope: &Envelope, queue: Queue) {
        if report {
            let space = queue.space(envelope.tag);
            let notice = Notice { context, space, length: envelope.length, report };
            self.ended.push(Completion::sent(notice, Ok(())));
        }
    }

    #[inline]
    pub(super) fn report_sent(&mut self, notice: Option<Notice>) {
        if let Some(notice) = notice
            && notice.report
        {
            self.ended.push(Completion::sent(notice, Ok(())));
        }
    }

    pub(super) fn fail_notice(&mut self, notice: Option<Notice>, peer: &str) {
        self.lose_notice(notice, Failure::PeerLost { peer: peer.to_owned() });
    }

    /// A message will never reach its receiver: the send completes with a failure. While the application closes it
    /// hears nothing more of a send whose success it would not be told; that one counts as lost.
    pub(super) fn lose_notice(&mut self, notice: Option<Notice>, failure: Failure) {
        let Some(notice) = notice else { return };
        if self.presence.is_closing() && !notice.report {
            self.count(Counter::SendsLost, 1);
        }
        self.ended.push(Completion::sent(notice, Err(failure)));
    }

    /// A send is with us no longer, and nothing of it leaves any more.
    pub(super) fn remove_send(&mut self, key: Key) -> Option<PendingSend<L::Buffer>> {
        let send = self.bulk.remove(key)?;
        if send.key != 0 {
            self.link.hide(send.peer, send.key);
        }
        if self.presence.awaits(send.is_copied()) {
            self.presence.drop_send(send.peer);
        }
        self.note_progress_to(send.peer);
        Some(send)
    }

    /// Ends a send that stayed with us and whose peer is gone.
    pub(super) fn lose_send(&mut self, key: Key, peer: &str) {
        if let Some(send) = self.remove_send(key) {
            self.bulk.bounces.free_send(key);
            self.lose_kept(send, Failure::PeerLost { peer: peer.to_owned() });
        }
    }

    /// A send that stayed with us will never be received.
    pub(super) fn lose_kept(&mut self, send: PendingSend<L::Buffer>, failure: Failure) {
        self.lose_notice(send.notice, failure);
    }

    pub(super) fn complete_operation(&mut self, operation: &RemoteOperation<L::Buffer>, result: Result<(), Failure>) {
        let RemoteOperation { context, operation, length, .. } = *operation;
        self.ended.push(Completion::remote(context, operation, length, result));
    }

    /// Ends an operation that is given up. `None`: it is over; else whether the application would have been told of its
    /// success.
    pub(super) fn give_up_operation(&mut self, key: Key, failure: Failure) -> Option<bool> {
        let RemoteOperation { to, context, operation, length, report, .. } = self.rma.operations.end(key)?;
        let completion = Completion::remote(context, operation, length, Err(failure));
        match to {
            Target::Peer(peer) => {
                self.note_progress_to(peer);
                self.end_after_transfers(TransferOwner::Operation(key), peer, Ending::Operation(completion));
            }
            Target::Myself => self.ended.push(completion),
        }
        Some(report)
    }

    /// Ends what is over but for its transfers: now, or with the last of those that the link cannot stop. Until then
    /// they touch the application's memory.
    pub(super) fn end_after_transfers(&mut self, owner: TransferOwner, peer: PeerId, ending: Ending<L::Buffer>) {
        let mut running = self.bulk.transfers.of(owner);
        running.retain(|&transfer| {
            let is_stopped = self.link.cancel_transfer(peer, TransferId(transfer.0));
            if is_stopped {
                self.bulk.transfers.end(transfer);
            }
            !is_stopped
        });
        match running.is_empty() {
            true => self.end_held(ending),
            false => self.bulk.transfers.hold(&running, peer, ending),
        }
    }

    /// No transfer of what is over is left.
    pub(super) fn end_held(&mut self, ending: Ending<L::Buffer>) {
        match ending {
            Ending::Receive { active, envelope, queue, failure } => {
                self.fail_receive(active, &envelope, queue, failure);
            }
            Ending::Operation(completion) => self.ended.push(completion),
        }
    }

    /// Ends all operations to a target that wait: it is gone, or this endpoint closes.
    pub(super) fn fail_fenced(&mut self, target: Target, failure: &Failure) {
        self.lower_fence(target);
        while let Some((operation, _)) = self.fences.pop(target, true) {
            self.forget_copy(target, &operation);
            self.fail_waiting(&operation, failure.clone());
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
        self.fail_waiting(&operation, Failure::Canceled);
        true
    }

    /// An operation that has waited never starts.
    fn fail_waiting(&mut self, operation: &Submission<L::Buffer>, failure: Failure) {
        let (context, report) = operation.context();
        let Some(kind) = operation.remote_kind() else {
            let Submission::Send(send) = operation else { return };
            return self.lose_notice(Some(Notice::of(send)), failure);
        };
        if self.presence.is_closing() && !report {
            self.count(Counter::SendsLost, 1);
        }
        self.ended.push(Completion::remote(context, kind, 0, Err(failure)));
    }

    pub(super) fn complete_remote_write(&mut self, source: Target, length: usize, data: Option<u64>) {
        self.ended.push(Completion::remote_write(source, length, data));
    }

    /// A peek has found this message.
    pub(super) fn complete_peek(&mut self, context: Context, envelope: &Envelope, queue: Queue) {
        self.ended.push(Completion::met(context, queue, envelope));
    }
}

/// How many bytes of a message a buffer with so much room has, and what becomes of the receive.
#[inline(always)]
pub(super) fn placed(envelope: &Envelope, room: usize) -> (usize, Result<(), Failure>) {
    let full = envelope.length;
    if full <= room { (full, Ok(())) } else { (room, Err(Failure::Truncated { full })) }
}
