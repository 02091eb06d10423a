//! [`Fences`]: operations that wait behind a fence (`FI_FENCE`), by target. `endpoint/starting.rs` starts them.
//!
//! A fenced operation starts when all earlier ones to its target have completed, and later ones to this target stay
//! behind it (fi_msg(3)). *The simple idea*, to refuse a fenced operation while anything is outstanding, makes it wait
//! for other targets as well, and for ever if the application goes on sending to them. So an operation that may not
//! start yet waits here:
//!
//! - F1: While a target has a queue here, every new operation to it joins the queue. Why: later ones stay behind.
//! - F2: The first of a queue starts when no operation to its target is under way, and those up to the next fenced one
//!   start with it. Why: between two fences the usual order holds, which asks for no completion.
//! - F3: Without a fence nothing is looked up. A queue keeps the room in its target's window from being taken
//!   (`Rooms::raise_fence`), so a send finds out where it finds no room; a remote operation compares one number.
//! - F4: Operations here count towards the bound on outstanding operations when one more is to wait.

mod waiting;

use crate::operation::{Context, Target};
use crate::submission::Submission;
use std::collections::{BTreeMap, VecDeque};
use tidegate_flow::PeerId;

/// An operation that waits.
#[derive(Debug)]
struct Waiting<B> {
    operation: Submission<B>,
    /// Whether it waits for the operations before it, too.
    is_fenced: bool,
}

/// The operations to one target that wait.
#[derive(Debug)]
struct Queue<B> {
    waiting: VecDeque<Waiting<B>>,
    /// Where the last look has found a send, and a remote operation, that is under way: the next one begins there, so
    /// that all looks together go over each place about once.
    seen: Places,
}

/// Places in the two tables of operations.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Places {
    pub(crate) send: usize,
    pub(crate) remote: usize,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Fences<B> {
    /// By peer; `None` is this endpoint itself.
    queues: BTreeMap<Option<PeerId>, Queue<B>>,
    waiting: usize,
}

fn name_of(target: Target) -> Option<PeerId> {
    match target {
        Target::Peer(peer) => Some(peer),
        Target::Myself => None,
    }
}

impl<B> Fences<B> {
    pub(crate) fn new() -> Self {
        Fences { queues: BTreeMap::new(), waiting: 0 }
    }

    /// Whether anything waits here at all.
    #[inline(always)]
    pub(crate) fn are_raised(&self) -> bool {
        self.waiting > 0
    }

    /// How many operations wait.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether operations to this target have to wait.
    #[inline]
    pub(crate) fn holds(&self, target: Target) -> bool {
        self.are_raised() && self.queues.contains_key(&name_of(target))
    }

    /// Peers with operations that wait for them.
    fn targets(&self) -> Vec<Target> {
        self.queues.keys().map(|name| name.map_or(Target::Myself, Target::Peer)).collect()
    }

    /// The peers of the sends that wait in the application's memory, once for each send.
    pub(crate) fn uncopied_sends(&self) -> impl Iterator<Item = PeerId> {
        let waiting = self.queues.iter().filter_map(|(peer, queue)| Some(((*peer)?, &queue.waiting)));
        waiting.flat_map(|(peer, waiting)| {
            let is_meant = |operation: &Submission<B>| matches!(operation, Submission::Send(send) if !send.inject);
            waiting.iter().filter(move |waiting| is_meant(&waiting.operation)).map(move |_| peer)
        })
    }

    /// Lets an operation wait behind all others to its target.
    fn push(&mut self, target: Target, operation: Submission<B>, is_fenced: bool) {
        let new = || Queue { waiting: VecDeque::new(), seen: Places::default() };
        self.queues.entry(name_of(target)).or_insert_with(new).waiting.push_back(Waiting { operation, is_fenced });
        self.waiting += 1;
    }

    /// Where to look first for an operation to this target that is under way.
    pub(crate) fn seen(&mut self, target: Target) -> Option<&mut Places> {
        self.queues.get_mut(&name_of(target)).map(|queue| &mut queue.seen)
    }

    /// The next operation to a target, and whether it is a fenced one; after the first (`is_first`) only as far as the
    /// next fenced one.
    fn pop(&mut self, target: Target, is_first: bool) -> Option<(Submission<B>, bool)> {
        let name = name_of(target);
        let queue = self.queues.get_mut(&name)?;
        if !is_first && queue.waiting.front()?.is_fenced {
            return None;
        }
        let Waiting { operation, is_fenced } = queue.waiting.pop_front()?;
        if queue.waiting.is_empty() {
            self.queues.remove(&name);
        }
        self.waiting -= 1;
        Some((operation, is_fenced))
    }

    /// Takes the oldest operation of this name that reports its end. One that was fenced leaves its fence to the next.
    fn take_named(&mut self, name: usize, name_of: impl Fn(Context) -> usize) -> Option<(Target, Submission<B>)> {
        let is_meant = |waiting: &Waiting<B>| {
            let (context, report) = waiting.operation.context();
            report && name_of(context) == name
        };
        let found =
            self.queues.iter().find_map(|(peer, queue)| Some((*peer, queue.waiting.iter().position(is_meant)?)));
        let (peer, at) = found?;
        let queue = self.queues.get_mut(&peer)?;
        let taken = queue.waiting.remove(at)?;
        if let Some(next) = queue.waiting.get_mut(at) {
            next.is_fenced |= taken.is_fenced;
        }
        if queue.waiting.is_empty() {
            self.queues.remove(&peer);
        }
        self.waiting -= 1;
        Some((peer.map_or(Target::Myself, Target::Peer), taken.operation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{Send, Space};
    use crate::testing::Bytes;

    const A: Target = Target::Peer(PeerId(0));

    fn push(fences: &mut Fences<Bytes>, to: Target, name: usize, is_fenced: bool) {
        let (context, buffer) = (Context(name), Bytes::new(&[]));
        let (inject, delivery, report, data) = (false, false, true, None);
        let send = Send { to, space: Space::Untagged, buffer, data, context, inject, delivery, report };
        fences.push(to, Submission::Send(send), is_fenced);
    }

    fn pop(fences: &mut Fences<Bytes>, to: Target, is_first: bool) -> Option<(usize, bool)> {
        fences.pop(to, is_first).map(|(operation, is_fenced)| (operation.context().0.0, is_fenced))
    }

    #[test]
    fn operations_start_up_to_the_next_fence() {
        let mut fences = Fences::new();
        for (name, is_fenced) in [(1, true), (2, false), (3, true), (4, false)] {
            push(&mut fences, A, name, is_fenced);
        }
        push(&mut fences, Target::Myself, 5, true);
        assert_eq!([pop(&mut fences, A, true), pop(&mut fences, A, false)], [Some((1, true)), Some((2, false))]);
        assert_eq!((pop(&mut fences, A, false), fences.holds(A), fences.waiting()), (None, true, 3));
        assert_eq!([pop(&mut fences, A, true), pop(&mut fences, A, false)], [Some((3, true)), Some((4, false))]);
        assert!(!fences.holds(A) && fences.holds(Target::Myself));
    }

    #[test]
    fn an_operation_that_is_taken_away_leaves_its_fence_behind() {
        let mut fences = Fences::new();
        for (name, is_fenced) in [(1, true), (2, false), (3, false)] {
            push(&mut fences, A, name, is_fenced);
        }
        let take = |fences: &mut Fences<Bytes>, name| fences.take_named(name, |context| context.0).map(|it| it.0);
        assert_eq!((take(&mut fences, 1), take(&mut fences, 1)), (Some(A), None));
        assert_eq!((take(&mut fences, 3), fences.waiting()), (Some(A), 1));
        assert_eq!((pop(&mut fences, A, true), fences.holds(A), fences.are_raised()), (Some((2, true)), false, false));
    }
}
