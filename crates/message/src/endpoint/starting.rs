//! Fenced operations (`FI_FENCE`; the rules are in `fence`): which have to wait, and how those start that have waited.

use super::Endpoint;
use crate::fence::Places;
use crate::link::Link;
use crate::operation::{Target, TryAgain};
use crate::submission::Submission;

impl<L: Link> Endpoint<L> {
    /// Lets an operation wait behind a fence (F4).
    #[cold]
    pub(super) fn wait_behind_fence(
        &mut self,
        target: Target,
        operation: Submission<L::Buffer>,
        is_fenced: bool,
    ) -> Result<(), TryAgain> {
        if self.operations_left() + self.port.ended.len() + self.fences.waiting() >= self.port.config.operations {
            return Err(TryAgain);
        }
        self.fences.wait(&mut self.port, &mut self.sends, target, operation, is_fenced);
        Ok(())
    }

    /// Whether an operation to this target has not completed. `seen`: where to look first.
    pub(super) fn is_under_way_to(&mut self, target: Target, seen: &mut Places) -> bool {
        let Target::Peer(peer) = target else { return self.inbound.matching().keeps_own() };
        self.port.egress.holds_operation(peer)
            || self.sends.kept().has_send_to(peer, &mut seen.send)
            || self.rma.has_any_to(target, &mut seen.remote)
    }

    /// Starts an operation that nothing keeps waiting any more.
    pub(super) fn start(&mut self, operation: Submission<L::Buffer>, is_fenced: bool) {
        match operation {
            Submission::Send(send) => match send.to {
                Target::Peer(to) => self.sends.start(&mut self.port, to, send),
                Target::Myself => self.inbound.send_to_myself(&mut self.port, send),
            },
            Submission::Write(write) => self.rma.start_write(&mut self.port, self.sends.rooms(), write, !is_fenced),
            Submission::Read(read) => self.rma.start_read(&mut self.port, self.sends.rooms(), read, !is_fenced),
            Submission::Atomic(atomic) => self.rma.start_atomic(&mut self.port, self.sends.rooms(), atomic),
        }
    }

    /// Starts the operations to a target that need not wait any more (F2).
    #[cold]
    pub(super) fn release_fenced(&mut self, target: Target) {
        while let Some(mut seen) = self.fences.seen(target).map(|seen| *seen) {
            let is_under_way = self.is_under_way_to(target, &mut seen);
            if let Some(places) = self.fences.seen(target) {
                *places = seen;
            }
            if is_under_way {
                return;
            }
            self.fences.lower(&mut self.port, &mut self.sends, target);
            let mut is_first = true;
            while self.has_room()
                && let Some((operation, is_fenced)) = self.fences.next(&mut self.port, target, is_first)
            {
                self.start(operation, is_fenced);
                is_first = false;
            }
            if self.fences.holds(target) {
                self.fences.update(&mut self.port, &mut self.sends, target);
            }
            if !self.has_room() {
                // Other operations have taken the room meanwhile: once more when there is some.
                return if let Target::Peer(peer) = target {
                    self.port.note_progress_to(peer)
                };
            }
        }
    }
}
