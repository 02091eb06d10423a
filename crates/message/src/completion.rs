//! What an endpoint reports of operations that ended.

use crate::envelope::Envelope;
use crate::link::Buffer;
use crate::operation::{Context, Queue, Send, Space, Target};
use std::fmt;

/// The operation that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A send.
    Send,
    /// A receive, or one message of a multi-receive.
    Receive,
    /// An RMA write of ours.
    Write,
    /// An RMA read of ours.
    Read,
    /// An atomic of ours.
    Atomic,
    /// A peer's RMA write that carried completion data, or, where [they are counted](crate::Endpoint::count_writes),
    /// any write of a peer, or atomic without a result. Of these four [`context`](Completion::context) is the key of a
    /// region.
    RemoteWrite,
    /// A peer's atomic with a result, which may have changed the region.
    RemoteFetch,
    /// A peer's read, or an atomic that only reads.
    RemoteRead,
    /// A further region that a write or atomic of a peer has changed, of which another completion tells.
    RemoteChange,
}

impl Operation {
    /// Whether it is an operation of a peer (or of our own) on our memory.
    #[inline(always)]
    pub fn is_at_target(self) -> bool {
        self as u8 >= Operation::RemoteWrite as u8
    }
}

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The message was longer than the buffer: `full` bytes; the buffer holds its beginning (`FI_ETRUNC`).
    Truncated {
        /// The message's length.
        full: usize,
    },
    /// The application canceled it (`FI_ECANCELED`).
    Canceled,
    /// A peek found nothing (`FI_ENOMSG`).
    NoMessage,
    /// The peer died or left, or cannot be reached; the text names it (`FI_EIO`, or `FI_ECONNABORTED`).
    PeerLost {
        /// Who and why, for people.
        peer: String,
    },
    /// No such region, out of its bounds, or it does not grant the access (`FI_EACCES`).
    Denied,
    /// The target does not know the atomic operation for the type (`FI_EOPNOTSUPP`).
    Unsupported,
    /// The copy failed: an address of the application is wrong (`FI_EFAULT`).
    Fault,
}

/// An operation that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The application's name for it: of an operation on our memory, the key of the region.
    pub context: Context,
    /// What kind of operation it was.
    pub operation: Operation,
    /// The matching space in which it matched; for a receive, with the message's tag.
    pub space: Space,
    /// Bytes transferred (with `Truncated`: bytes placed).
    pub length: usize,
    /// Multi-receive: where in the buffer the message lies.
    pub offset: usize,
    /// Remote completion data.
    pub data: Option<u64>,
    /// The sender, for receives.
    pub source: Option<Target>,
    /// Multi-receive: the buffer goes back to the application with this completion (`FI_MULTI_RECV`).
    pub released: bool,
    /// Success, or why not.
    pub result: Result<(), Failure>,
}

/// What to tell the application when a message has left.
#[derive(Debug)]
pub(crate) struct Notice {
    pub(crate) context: Context,
    pub(crate) space: Space,
    pub(crate) length: usize,
    pub(crate) report: bool,
}

impl Notice {
    /// What to tell of a send.
    #[inline]
    pub(crate) fn of<B: Buffer>(send: &Send<B>) -> Self {
        Notice { context: send.context, space: send.space, length: send.buffer.len(), report: send.report }
    }
}

impl Completion {
    /// A send has ended.
    pub(crate) fn sent(notice: Notice, result: Result<(), Failure>) -> Self {
        let Notice { context, space, length, .. } = notice;
        Completion { space, ..Self::plain(context, Operation::Send, length, result) }
    }

    /// A receive that ends without a message. `released`: the buffer of a multi-receive goes back with it.
    pub(crate) fn unmatched(context: Context, space: Space, released: bool, failure: Failure) -> Self {
        Completion { space, released, ..Self::plain(context, Operation::Receive, 0, Err(failure)) }
    }

    /// A receive or peek has met this message.
    #[inline(always)]
    pub(crate) fn met(context: Context, queue: Queue, envelope: &Envelope) -> Self {
        Completion {
            space: queue.space(envelope.tag),
            data: envelope.data,
            source: Some(envelope.source),
            ..Self::plain(context, Operation::Receive, envelope.length, Ok(()))
        }
    }

    /// A remote operation of ours has ended.
    pub(crate) fn remote(context: Context, operation: Operation, length: usize, result: Result<(), Failure>) -> Self {
        Self::plain(context, operation, if result.is_ok() { length } else { 0 }, result)
    }

    /// A remote operation of `source` on our memory is complete.
    pub(crate) fn at_target(operation: Operation, region: u64, source: Target, length: usize) -> Self {
        let source = Some(source);
        Completion { source, ..Self::plain(Context(region as usize), operation, length, Ok(())) }
    }

    #[inline(always)]
    fn plain(context: Context, operation: Operation, length: usize, result: Result<(), Failure>) -> Self {
        let (space, offset, data, source, released) = (Space::Untagged, 0, None, None, false);
        Completion { context, operation, space, length, offset, data, source, released, result }
    }
}

/// Completions in the order in which operations ended, until somebody has taken them. Most are successes, which take no
/// memory of their own, and are made and looked at where they are: moving each would cost as much as all else that is
/// done with it. So places are kept, with what was there.
#[derive(Default)]
pub(crate) struct Ended {
    places: Vec<Completion>,
    /// How many at the front have been taken, and where the next is to be.
    taken: usize,
    used: usize,
}

impl fmt::Debug for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.left()).finish()
    }
}

impl Ended {
    /// Those that nobody has taken.
    #[inline(always)]
    pub(crate) fn left(&self) -> &[Completion] {
        &self.places[self.taken..self.used]
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.used - self.taken
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, completion: Completion) {
        match self.places.get_mut(self.used) {
            Some(place) => *place = completion,
            None => self.add_place(completion),
        }
        self.used += 1;
    }

    #[cold]
    #[inline(never)]
    fn add_place(&mut self, completion: Completion) {
        self.places.push(completion);
    }

    /// The first of those that nobody has taken.
    #[inline(always)]
    pub(crate) fn first(&self) -> Option<&Completion> {
        if self.taken < self.used { self.places.get(self.taken) } else { None }
    }

    /// The first is taken. For a caller that goes on until none is left, or with [`pop`](Self::pop).
    #[inline(always)]
    pub(crate) fn pass(&mut self) {
        debug_assert!(self.len() > 0, "there is one");
        self.taken += 1;
        if self.taken == self.used {
            (self.taken, self.used) = (0, 0);
        }
    }

    /// More have been taken than are left, so moving these costs no more than taking those did.
    #[cold]
    fn close_up(&mut self) {
        self.places[..self.used].rotate_left(self.taken);
        self.used -= self.taken;
        self.taken = 0;
    }

    pub(crate) fn pop(&mut self) -> Option<Completion> {
        if self.len() == 0 {
            return None;
        }
        let nothing = Completion::plain(Context(0), Operation::Send, 0, Ok(()));
        let completion = std::mem::replace(&mut self.places[self.taken], nothing);
        self.pass();
        if self.taken > self.len() {
            self.close_up();
        }
        Some(completion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn what_has_ended_is_taken_once_and_in_order() {
        let (mut ended, mut expected, mut random) = (Ended::default(), VecDeque::new(), 1_u32);
        for number in 0..2000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            match random >> 30 {
                0 => assert_eq!(ended.pop().map(|completion| completion.context.0), expected.pop_front()),
                1 => {
                    let count = (random as usize >> 8) % (ended.len() + 1);
                    for number in expected.drain(..count) {
                        assert_eq!(ended.first().map(|completion| completion.context.0), Some(number));
                        ended.pass();
                    }
                }
                _ => {
                    ended.push(Completion::plain(Context(number), Operation::Send, 0, Ok(())));
                    expected.push_back(number);
                }
            }
            assert!(ended.left().iter().map(|completion| completion.context.0).eq(expected.iter().copied()));
            assert!(ended.len() == expected.len() && ended.first().is_none() == expected.is_empty());
        }
    }
}
