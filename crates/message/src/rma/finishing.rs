//! How remote operations of ours end.

use super::Rma;
use super::operation::RemoteOperation;
use crate::collections::slab::Key;
use crate::completion::{Completion, Failure};
use crate::counter::Counter;
use crate::link::{Link, TransferStatus};
use crate::operation::Target;
use crate::port::{Ending, Port, TransferOwner};
use crate::wire::Status;
use tidegate_flow::PeerId;

impl<L: Link> Rma<L> {
    /// Fails an operation towards a peer that is gone. Returns whether it did.
    pub(super) fn fail_if_lost(&mut self, port: &Port<L>, key: Key, peer: PeerId) -> bool {
        let lost = port.presence.lost(peer).is_some();
        if lost {
            self.operations.fail(key);
        }
        lost
    }

    /// A part of an operation is answered; the last one completes it.
    pub(crate) fn end_part(&mut self, port: &mut Port<L>, key: Key, status: Status) {
        if self.operations.end_part(key, status) {
            self.end_operation(port, key);
        }
    }

    /// A part of an operation that was a transfer has ended. (Where the peer cannot be reached any more its departure
    /// ends the operation.)
    pub(crate) fn end_transfer_part(&mut self, port: &mut Port<L>, key: Key, status: TransferStatus) {
        let result = match status {
            TransferStatus::Unreachable => return,
            TransferStatus::Done => Status::Success,
            _ => Status::Fault,
        };
        if self.operations.end_transfer(key, result) {
            self.end_operation(port, key);
        }
    }

    /// All parts of an operation are answered.
    pub(super) fn end_operation(&mut self, port: &mut Port<L>, key: Key) {
        let Some(operation) = self.operations.end(key) else { return };
        let lost = match operation.to {
            Target::Peer(peer) => {
                port.note_progress_to(peer);
                port.presence.lost(peer).map(|lost| lost.name.clone())
            }
            Target::Myself => None,
        };
        let result = match (lost, operation.status) {
            (_, Status::Success) => Ok(()),
            (Some(peer), _) => Err(Failure::PeerLost { peer }),
            (None, Status::Denied) => Err(Failure::Denied),
            (None, Status::Unsupported) => Err(Failure::Unsupported),
            (None, Status::Fault) => Err(Failure::Fault),
        };
        if result.is_ok() {
            self.tell_target(port, &operation);
        }
        if operation.report || result.is_err() {
            let RemoteOperation { context, operation, length, .. } = operation;
            port.ended.push(Completion::remote(context, operation, length, result));
        }
    }

    /// Nothing more goes to a peer, which is gone: what waits for it ends.
    pub(crate) fn lose_peer(&mut self, port: &mut Port<L>, peer: PeerId, name: &str) {
        self.requests.lose_peer(peer);
        for key in self.operations.of_peer(peer) {
            self.give_up_operation(port, key, Failure::PeerLost { peer: name.to_owned() });
        }
    }

    /// Ends an operation that is given up. `None`: it is over; else whether the application would have been told of its
    /// success.
    fn give_up_operation(&mut self, port: &mut Port<L>, key: Key, failure: Failure) -> Option<bool> {
        let RemoteOperation { to, context, operation, length, report, .. } = self.operations.end(key)?;
        self.batch.forget(key);
        let ending = Ending::Operation(Completion::remote(context, operation, length, Err(failure)));
        let ending = match to {
            Target::Peer(peer) => {
                port.note_progress_to(peer);
                port.stop_transfers(TransferOwner::Operation(key), peer, ending)
            }
            Target::Myself => Some(ending),
        };
        if let Some(Ending::Operation(completion)) = ending {
            port.ended.push(completion);
        }
        Some(report)
    }

    /// Gives up an operation of which a part has not left.
    pub(crate) fn abandon(&mut self, port: &mut Port<L>, key: Key) {
        if self.give_up_operation(port, key, Failure::Canceled) == Some(false) {
            port.count(Counter::SendsLost, 1);
        }
    }

    /// Gives up those of which something waits for a peer's answers.
    pub(crate) fn abandon_waiting(&mut self, port: &mut Port<L>, peer: PeerId) {
        for operation in self.requests.waiting_operations(peer) {
            self.abandon(port, operation);
        }
        self.requests.lose_peer(peer);
    }

    /// Cancels all others. Their targets have what they need, and may still do them: they are not lost.
    pub(crate) fn cancel_all(&mut self, port: &mut Port<L>) {
        for key in self.operations.all() {
            self.give_up_operation(port, key, Failure::Canceled);
        }
    }
}
