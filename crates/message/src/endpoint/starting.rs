//! Operations that have waited behind a fence start.

use super::Endpoint;
use crate::link::Link;
use crate::operation::Target;
use crate::submission::Submission;

impl<L: Link> Endpoint<L> {
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
            self.lower_fence(target);
            let mut is_first = true;
            while self.has_room()
                && let Some((operation, is_fenced)) = self.fences.pop(target, is_first)
            {
                self.forget_copy(target, &operation);
                self.start(operation, is_fenced);
                is_first = false;
            }
            if let (Target::Peer(peer), true) = (target, self.fences.holds(target)) {
                self.raise_fence(peer);
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
