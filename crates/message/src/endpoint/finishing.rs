//! How remote operations of ours end.

use super::Endpoint;
use crate::collections::slab::Key;
use crate::completion::Failure;
use crate::link::Link;
use crate::operation::Target;
use crate::wire::{Status, WriteNotice};
use tidegate_flow::PeerId;

impl<L: Link> Endpoint<L> {
    /// Fails an operation towards a peer that is gone. Returns whether it did.
    pub(super) fn fail_if_lost(&mut self, key: Key, peer: PeerId) -> bool {
        let lost = self.port.presence.lost(peer).is_some();
        if lost {
            self.rma.operations.fail(key);
        }
        lost
    }

    /// A part of an operation is answered; the last one completes it.
    pub(super) fn end_part(&mut self, key: Key, status: Status) {
        if self.rma.operations.end_part(key, status) {
            self.end_operation(key);
        }
    }

    /// A part of an operation that was a transfer has ended.
    pub(super) fn end_transfer_part(&mut self, key: Key, status: Status) {
        if self.rma.operations.end_transfer(key, status) {
            self.end_operation(key);
        }
    }

    /// All parts of an operation are answered.
    fn end_operation(&mut self, key: Key) {
        let Some(operation) = self.rma.operations.end(key) else { return };
        let lost = match operation.to {
            Target::Peer(peer) => {
                self.port.note_progress_to(peer);
                self.port.presence.lost(peer).map(|lost| lost.name.clone())
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
        let counted = operation.changes_target() && (operation.counted || self.counts_own(operation.to));
        if result.is_ok() && (operation.data.is_some() || counted) {
            self.notify_target(operation.to, operation.length, operation.data);
        }
        if operation.report || result.is_err() {
            self.complete_operation(&operation, result);
        }
    }

    /// Whether the target is this endpoint and counts writes.
    fn counts_own(&self, to: Target) -> bool {
        self.rma.counts_writes && to == Target::Myself
    }

    /// Tells the target of a write that is complete, with its completion data.
    fn notify_target(&mut self, to: Target, length: usize, data: Option<u64>) {
        match to {
            Target::Myself => self.port.complete_remote_write(Target::Myself, length, data),
            Target::Peer(peer) => {
                self.port.tell(peer, WriteNotice { length: length as u64, data });
            }
        }
    }
}
