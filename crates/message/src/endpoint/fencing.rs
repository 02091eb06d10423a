//! Fenced operations (`FI_FENCE`): which operations wait, and until when. The rules are in `fence`.

use super::Endpoint;
use crate::completion::Failure;
use crate::fence::Places;
use crate::link::Link;
use crate::operation::{Context, Target, TryAgain};
use crate::submission::Submission;
use tidegate_flow::PeerId;

impl<L: Link> Endpoint<L> {
    /// Lets an operation wait (F1, F4). Of one whose memory may change a copy waits.
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
        if let (Target::Peer(peer), true) = (target, self.closing_awaits(&operation)) {
            self.port.presence.keep_send(peer);
        }
        self.port.egress.attention.begin();
        self.fences.push(target, operation.kept(), is_fenced);
        if let Target::Peer(peer) = target {
            self.raise_fence(peer);
        }
        Ok(())
    }

    /// Whether an operation to this target has not completed. `seen`: where to look first.
    pub(super) fn is_under_way_to(&mut self, target: Target, seen: &mut Places) -> bool {
        let Target::Peer(peer) = target else { return self.inbound.matching().keeps_own() };
        self.port.egress.holds_operation(peer)
            || self.sends.kept().has_send_to(peer, &mut seen.send)
            || self.rma.has_any_to(target, &mut seen.remote)
    }

    pub(super) fn lower_fence(&mut self, target: Target) {
        if let Target::Peer(peer) = target {
            self.sends.set_fenced(peer, false);
            self.port.set_fenced(peer, false);
        }
    }

    pub(super) fn raise_fence(&mut self, peer: PeerId) {
        self.sends.set_fenced(peer, true);
        self.port.set_fenced(peer, true);
    }

    pub(super) fn forget_copy(&mut self, target: Target, operation: &Submission<L::Buffer>) {
        if let (Target::Peer(peer), true) = (target, self.closing_awaits(operation)) {
            self.port.presence.drop_send(peer);
        }
    }

    /// Whether closing waits for this operation.
    fn closing_awaits(&self, operation: &Submission<L::Buffer>) -> bool {
        operation.is_injected() || matches!(operation, Submission::Send(_)) && self.port.presence.awaits(false)
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
