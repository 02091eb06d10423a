//! Fenced operations (`FI_FENCE`): which of them start at once, and when the others do. The rules are in `fence`.

use super::Endpoint;
use crate::completion::{Completion, Failure, Notice};
use crate::counter::Counter;
use crate::egress::Step;
use crate::fence::Places;
use crate::link::Link;
use crate::operation::{Send, Submission, Target, TryAgain};
use tidegate_flow::PeerId;

impl<L: Link> Endpoint<L> {
    /// Submits an operation that starts when all earlier ones to its target have completed; later ones to this target
    /// stay behind it. Remote operations that are fenced go by message, so that they come behind earlier messages.
    pub fn submit_fenced(&mut self, operation: Submission<L::Buffer>) -> Result<(), TryAgain> {
        self.check_room()?;
        let Some(target) = operation.target() else { return Ok(()) };
        if self.fences.holds(target) || self.is_under_way_to(target, &mut Places::default()) {
            return self.wait_behind_fence(target, operation, true);
        }
        match operation {
            Submission::Send(send) => self.send(send),
            Submission::Write(write) if self.refuses_injected(&write) => Err(TryAgain),
            other => {
                self.start(other, true);
                Ok(())
            }
        }
    }

    /// Starts a remote operation, or lets it wait if its target is behind a fence.
    #[cold]
    pub(super) fn submit_in_turn(&mut self, operation: Submission<L::Buffer>) -> Result<(), TryAgain> {
        match operation.target().filter(|&target| self.fences.holds(target)) {
            Some(target) => self.wait_behind_fence(target, operation, false),
            None => {
                self.start(operation, false);
                Ok(())
            }
        }
    }

    /// Lets an operation wait (F1, F4). Of one whose memory may change a copy waits.
    #[cold]
    pub(super) fn wait_behind_fence(
        &mut self,
        target: Target,
        operation: Submission<L::Buffer>,
        is_fenced: bool,
    ) -> Result<(), TryAgain> {
        if self.operations_left() + self.ended.len() + self.fences.waiting() >= self.config.operations {
            return Err(TryAgain);
        }
        if let (Target::Peer(peer), true) = (target, self.closing_awaits(&operation)) {
            self.presence.keep_send(peer);
        }
        self.egress.work.begin();
        self.fences.push(target, operation.kept(), is_fenced);
        if let Target::Peer(peer) = target {
            self.deferral.rooms.raise_fence(peer);
        }
        Ok(())
    }

    /// Starts an operation that nothing keeps waiting any more.
    fn start(&mut self, operation: Submission<L::Buffer>, is_fenced: bool) {
        match operation {
            Submission::Send(send) => self.start_send(send),
            Submission::Write(write) => self.start_write(write, !is_fenced),
            Submission::Read(read) => self.start_read(read, !is_fenced),
            Submission::Atomic(atomic) => self.start_atomic(atomic),
        }
    }

    /// Starts a send that has waited.
    fn start_send(&mut self, send: Send<L::Buffer>) {
        let Target::Peer(to) = send.to else { return self.send_to_myself(send) };
        if !self.deferral.rooms.is_met(to) {
            self.meet(to);
        }
        if !self.take_room(to, &send) {
            return self.send_otherwise(to, send);
        }
        match self.begin_eagerly(to, &send) {
            Some(Step::Sent) => self.count_eager(&send),
            step => self.leave_eagerly(to, send, step),
        }
    }

    /// An operation to a target has ended, or has left: with the next progress those may start that wait for that.
    #[inline]
    pub(super) fn note_progress_to(&mut self, peer: PeerId) {
        if self.fences.are_raised() && self.fences.holds(Target::Peer(peer)) {
            self.egress.try_again(peer);
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
                self.deferral.rooms.raise_fence(peer);
            }
            if !self.has_room() {
                // Other operations have taken the room meanwhile: once more when there is some.
                return if let Target::Peer(peer) = target {
                    self.note_progress_to(peer)
                };
            }
        }
    }

    /// Whether an operation to this target has not completed. `seen`: where to look first.
    fn is_under_way_to(&mut self, target: Target, seen: &mut Places) -> bool {
        let Target::Peer(peer) = target else { return self.matching.keeps_own() };
        self.egress.holds_operation(peer)
            || self.bulk.has_send_to(peer, &mut seen.send)
            || self.rma.operations.has_any_to(target, &mut seen.remote)
    }

    fn lower_fence(&mut self, target: Target) {
        if let Target::Peer(peer) = target {
            self.deferral.rooms.lower_fence(peer);
        }
    }

    fn forget_copy(&mut self, target: Target, operation: &Submission<L::Buffer>) {
        if let (Target::Peer(peer), true) = (target, self.closing_awaits(operation)) {
            self.presence.drop_send(peer);
        }
    }

    /// Whether closing waits for this operation.
    fn closing_awaits(&self, operation: &Submission<L::Buffer>) -> bool {
        operation.is_injected() || matches!(operation, Submission::Send(_)) && self.presence.awaits(false)
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
    pub(super) fn cancel_fenced(&mut self, name: usize, name_of: impl Fn(crate::Context) -> usize) -> bool {
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
}
