//! How operations end: completions for the application.

use super::Port;
use super::transfers::{Ending, TransferOwner};
use crate::completion::{Completion, Failure, Notice};
use crate::counter::Counter;
use crate::envelope::Envelope;
use crate::link::{Link, TransferId};
use crate::operation::{Context, Queue, Space};
use crate::submission::Submission;
use tidegate_flow::PeerId;

impl<L: Link> Port<L> {
    /// A receive that ends without a message.
    pub(crate) fn complete_unmatched(&mut self, context: Context, space: Space, released: bool, failure: Failure) {
        self.ended.push(Completion::unmatched(context, space, released, failure));
    }

    /// The send half of a message to ourselves is complete.
    pub(crate) fn complete_own(&mut self, context: Context, report: bool, envelope: &Envelope, queue: Queue) {
        if report {
            let space = queue.space(envelope.tag);
            let notice = Notice { context, space, length: envelope.length, report };
            self.ended.push(Completion::sent(notice, Ok(())));
        }
    }

    #[inline]
    pub(crate) fn report_sent(&mut self, notice: Option<Notice>) {
        if let Some(notice) = notice
            && notice.report
        {
            self.ended.push(Completion::sent(notice, Ok(())));
        }
    }

    pub(crate) fn fail_notice(&mut self, notice: Option<Notice>, peer: &str) {
        self.lose_notice(notice, Failure::PeerLost { peer: peer.to_owned() });
    }

    /// A message will never reach its receiver: the send completes with a failure. While the application closes it
    /// hears nothing more of a send whose success it would not be told; that one counts as lost.
    pub(crate) fn lose_notice(&mut self, notice: Option<Notice>, failure: Failure) {
        let Some(notice) = notice else { return };
        if self.presence.is_closing() && !notice.report {
            self.count(Counter::SendsLost, 1);
        }
        self.ended.push(Completion::sent(notice, Err(failure)));
    }

    /// An operation that has waited never starts.
    pub(crate) fn fail_waiting(&mut self, operation: &Submission<L::Buffer>, failure: Failure) {
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

    /// Stops the transfers of what is over otherwise. Returns its ending if none is left. Those that the link cannot
    /// stop touch the application's memory until they have ended: the ending is held until the last of them.
    pub(crate) fn stop_transfers(
        &mut self,
        owner: TransferOwner,
        peer: PeerId,
        ending: Ending<L::Buffer>,
    ) -> Option<Ending<L::Buffer>> {
        let mut running = self.transfers.of(owner);
        running.retain(|&transfer| {
            let is_stopped = self.link.cancel_transfer(peer, TransferId(transfer.0));
            if is_stopped {
                self.transfers.end(transfer);
            }
            !is_stopped
        });
        if running.is_empty() {
            return Some(ending);
        }
        self.transfers.hold(&running, peer, ending);
        None
    }

    /// An operation on our memory is complete.
    pub(crate) fn complete_at_target(&mut self, completion: Completion) {
        self.ended.push(completion);
    }

    /// A peek has found this message.
    pub(crate) fn complete_peek(&mut self, context: Context, envelope: &Envelope, queue: Queue) {
        self.ended.push(Completion::met(context, queue, envelope));
    }
}

/// How many bytes of a message a buffer with so much room has, and what becomes of the receive.
#[inline(always)]
pub(crate) fn placed(envelope: &Envelope, room: usize) -> (usize, Result<(), Failure>) {
    let full = envelope.length;
    if full <= room { (full, Ok(())) } else { (room, Err(Failure::Truncated { full })) }
}
