//! Which operations wait, what is promised of them, and how those end that never start.

use super::Fences;
use crate::completion::Failure;
use crate::link::{Buffer, Link};
use crate::operation::{Context, Target};
use crate::port::Port;
use crate::sends::Sends;
use crate::submission::Submission;
use tidegate_flow::PeerId;

impl<B: Buffer> Fences<B> {
    /// Lets an operation wait (F1). Of one whose memory may change a copy waits.
    #[cold]
    pub(crate) fn wait<L: Link<Buffer = B>>(
        &mut self,
        port: &mut Port<L>,
        sends: &mut Sends<L>,
        target: Target,
        operation: Submission<B>,
        is_fenced: bool,
    ) {
        if let Some(peer) = awaited_at(port, target, &operation) {
            port.presence.keep_send(peer);
        }
        port.egress.attention.begin();
        self.push(target, operation.kept(), is_fenced);
        self.update(port, sends, target);
    }

    /// The next operation to a target that may start, as [`pop`](Fences::pop).
    pub(crate) fn next<L: Link<Buffer = B>>(
        &mut self,
        port: &mut Port<L>,
        target: Target,
        is_first: bool,
    ) -> Option<(Submission<B>, bool)> {
        let (operation, is_fenced) = self.pop(target, is_first)?;
        if let Some(peer) = awaited_at(port, target, &operation) {
            port.presence.drop_send(peer);
        }
        Some((operation, is_fenced))
    }

    /// Ends all operations to a target that wait: it is gone, or this endpoint closes.
    pub(crate) fn fail<L: Link<Buffer = B>>(
        &mut self,
        port: &mut Port<L>,
        sends: &mut Sends<L>,
        target: Target,
        failure: &Failure,
    ) {
        while let Some((operation, _)) = self.next(port, target, true) {
            port.fail_waiting(&operation, failure.clone());
        }
        self.update(port, sends, target);
    }

    /// The same for all targets.
    pub(crate) fn fail_all<L: Link<Buffer = B>>(
        &mut self,
        port: &mut Port<L>,
        sends: &mut Sends<L>,
        failure: &Failure,
    ) {
        for target in self.targets() {
            self.fail(port, sends, target, failure);
        }
    }

    /// Cancels the oldest operation that the application calls `name`, if one waits. Returns whether.
    #[cold]
    pub(crate) fn cancel_named<L: Link<Buffer = B>>(
        &mut self,
        port: &mut Port<L>,
        sends: &mut Sends<L>,
        name: usize,
        name_of: impl Fn(Context) -> usize,
    ) -> bool {
        let Some((target, operation)) = self.take_named(name, name_of) else { return false };
        if let Some(peer) = awaited_at(port, target, &operation) {
            port.presence.drop_send(peer);
        }
        self.update(port, sends, target);
        port.fail_waiting(&operation, Failure::Canceled);
        true
    }

    /// Says to those who must know whether operations to a target wait.
    pub(crate) fn update<L: Link<Buffer = B>>(&self, port: &mut Port<L>, sends: &mut Sends<L>, target: Target) {
        set_fenced(port, sends, target, self.holds(target));
    }

    /// Lets operations to a target find room although others wait: it is those that start now.
    pub(crate) fn lower<L: Link<Buffer = B>>(&self, port: &mut Port<L>, sends: &mut Sends<L>, target: Target) {
        set_fenced(port, sends, target, false);
    }
}

fn set_fenced<L: Link>(port: &mut Port<L>, sends: &mut Sends<L>, target: Target, is_fenced: bool) {
    if let Target::Peer(peer) = target {
        sends.set_fenced(peer, is_fenced);
        port.set_fenced(peer, is_fenced);
    }
}

/// The peer at which closing waits for this operation, if it does.
fn awaited_at<L: Link>(port: &Port<L>, target: Target, operation: &Submission<L::Buffer>) -> Option<PeerId> {
    let Target::Peer(peer) = target else { return None };
    let is_awaited = operation.is_injected() || matches!(operation, Submission::Send(_)) && port.presence.awaits(false);
    is_awaited.then_some(peer)
}
