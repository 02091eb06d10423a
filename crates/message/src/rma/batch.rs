//! [`Batch`]: short pieces of one peer's memory that wait to be read or written together.
//!
//! A link that reaches the memory of its peers does so by a system call, which takes many times as long as the copy of
//! a few bytes, and takes a list of places as well as one. Some MPIs make an operation of each element of a strided Get
//! or Put. *The simple idea*, to let every short operation wait for the next, makes a program slower that reads a word
//! and waits for it. So:
//!
//! - The first direct accesses in a row go at once: [`AT_ONCE`], or one if the row before was a long one. A row ends
//!   with the next call of progress.
//! - Those that follow in the row wait here, up to [`PIECES_MOST`], if they are short, of one kind, and of one peer.
//!   Any other operation on a peer's memory sends them off first, so none overtakes them. (No order is promised between
//!   remote operations, and none to messages, which go past them.)
//! - The next call of progress sends them off, so waiting for one takes no longer than that. The thread that goes on
//!   for an application which does not call sends them off as well, after a nap, or once the row has [ceased to
//!   grow](Batch::spare).
//! - Of what is injected a copy waits. What brings completion data goes at once: its target may wait for that.
//! - Each piece ends alone: if one cannot be reached it goes by message, or fails there, and the others do not notice.

use crate::collections::slab::Key;
use crate::link::{BatchPiece, Buffer};
use crate::operation::{Access, RemoteTarget};
use tidegate_flow::PeerId;

/// Direct accesses in a row before others wait.
const AT_ONCE: u32 = 4;
/// Pieces that waited at the end of a row that was a long one: the next is expected to be as long.
const LONG: usize = 16;
/// Pieces that wait at most. With more of them the time for each becomes no shorter.
pub(super) const PIECES_MOST: usize = 256;
/// Bytes of a piece that waits at most: the system copies so many in less time than it takes to be called.
const PIECE_BYTES_MOST: usize = 2048;

/// What a piece is of, and where it goes by message.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchedPart {
    pub(super) operation: Key,
    pub(super) target: RemoteTarget,
    /// Where it lies in the operation's buffer.
    pub(super) offset: usize,
    /// Of a read: whether it is the last part of the operation.
    pub(super) is_last: bool,
    /// Of a write: whether a notice tells the target of the operation's end, if this piece goes by message; and if it
    /// does not.
    pub(super) is_told: bool,
    pub(super) is_told_direct: bool,
}

/// Where the pieces of a batch lie, what they are of, and which way they go.
#[derive(Debug)]
pub(super) struct Batched<B> {
    pub(super) peer: PeerId,
    pub(super) access: Access,
    pub(super) pieces: Vec<BatchPiece<B>>,
    /// As many as pieces.
    pub(super) parts: Vec<BatchedPart>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Batch<B> {
    waiting: Batched<B>,
    /// Direct accesses since the last call of progress, up to the number that goes at once.
    in_a_row: u32,
    at_once: u32,
    /// The row as it was when the thread looked last.
    seen: (u32, usize),
    /// The next end of the row is none.
    is_spared: bool,
}

impl<B: Buffer> Batch<B> {
    pub(super) fn new() -> Self {
        let waiting = Batched { peer: PeerId(0), access: Access::Read, pieces: Vec::new(), parts: Vec::new() };
        Batch { waiting, in_a_row: 0, at_once: AT_ONCE, seen: (0, 0), is_spared: false }
    }

    /// How many accesses there were in this row, as far as that matters: 0 if nothing is to be done when it ends.
    #[inline(always)]
    pub(super) fn in_a_row(&self) -> usize {
        self.in_a_row as usize
    }

    /// Whether pieces wait.
    pub(super) fn has_any(&self) -> bool {
        self.len() > 0
    }

    /// How many do.
    pub(super) fn len(&self) -> usize {
        self.waiting.pieces.len()
    }

    /// A direct access goes at once.
    pub(super) fn note_access(&mut self) {
        self.in_a_row = (self.in_a_row + 1).min(self.at_once);
    }

    /// Whether the next direct access to so many bytes waits, if it is of a kind that may wait.
    pub(super) fn would_wait(&self, bytes: usize) -> bool {
        self.in_a_row == self.at_once && bytes <= PIECE_BYTES_MOST
    }

    /// Whether the pieces that wait have to go before this one joins.
    pub(super) fn must_go_before(&self, peer: PeerId, access: Access) -> bool {
        let Batched { peer: other, access: kind, pieces, .. } = &self.waiting;
        pieces.len() >= PIECES_MOST || !pieces.is_empty() && (*other, *kind) != (peer, access)
    }

    /// Lets a piece wait.
    pub(super) fn push(&mut self, peer: PeerId, access: Access, piece: BatchPiece<B>, part: BatchedPart) {
        let waiting = &mut self.waiting;
        (waiting.peer, waiting.access) = (peer, access);
        waiting.pieces.push(piece);
        waiting.parts.push(part);
    }

    /// The thread is about to make progress: a row that has grown since it looked last goes on, for its application
    /// calls. Else a thread that looks every microsecond would leave it no row.
    pub(super) fn spare(&mut self) {
        let now = (self.in_a_row, self.len());
        self.is_spared = core::mem::replace(&mut self.seen, now) != now;
    }

    /// Whether the row goes on though a call of progress is made: the thread makes it.
    pub(super) fn takes_spared(&mut self) -> bool {
        core::mem::take(&mut self.is_spared)
    }

    /// A call of progress ends the row, in which so many pieces wait.
    pub(super) fn end_row(&mut self, waiting: usize) {
        (self.in_a_row, self.seen) = (0, (0, 0));
        self.at_once = if waiting >= LONG { 1 } else { AT_ONCE };
    }

    /// Takes all pieces, to carry them out; the lists are to be [given back](Self::give_back).
    pub(super) fn take(&mut self) -> Batched<B> {
        let Batched { peer, access, pieces, parts } = &mut self.waiting;
        let (peer, access) = (*peer, *access);
        Batched { peer, access, pieces: std::mem::take(pieces), parts: std::mem::take(parts) }
    }

    /// Takes back the lists of a batch that has been carried out, empty, for the next one.
    pub(super) fn give_back(&mut self, done: Batched<B>) {
        if !self.has_any() {
            // An endpoint that had a batch is like one that had none: explorers take the two for one.
            self.waiting = Batched { peer: PeerId(0), access: Access::Read, ..done };
        }
    }

    /// An operation is given up: what waits of it does not touch its memory any more.
    pub(super) fn forget(&mut self, operation: Key) {
        let Batched { pieces, parts, .. } = &mut self.waiting;
        let mut at = 0;
        while at < parts.len() {
            if parts[at].operation == operation {
                parts.remove(at);
                pieces.remove(at);
            } else {
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::RemoteMemory;
    use crate::operation::Target;
    use crate::testing::Bytes;

    const A: PeerId = PeerId(0);
    const B: PeerId = PeerId(1);

    fn push(batch: &mut Batch<Bytes>, operation: u32, address: u64) {
        let (operation, span) = (Key(operation), crate::link::Span { address, length: 4 });
        let target = RemoteTarget { to: Target::Peer(A), key: 1, offset: address };
        let part = BatchedPart { operation, target, offset: 0, is_last: true, is_told: false, is_told_direct: false };
        let piece = BatchPiece::new(RemoteMemory { key: 0, span }, Bytes::new(&[0; 4]));
        batch.push(A, Access::Read, piece, part);
    }

    #[test]
    fn the_thread_ends_a_row_that_has_ceased_to_grow_and_no_other() {
        let mut batch = Batch::<Bytes>::new();
        for _ in 0..3 {
            batch.note_access();
            batch.spare();
            assert!(batch.takes_spared(), "it has grown");
            assert!(!batch.takes_spared(), "an end of the row by the application is one");
        }
        batch.spare();
        assert!(!batch.takes_spared(), "it has not grown since");
        batch.end_row(0);
        batch.note_access();
        batch.spare();
        assert!(batch.takes_spared(), "another row");
    }

    #[test]
    fn the_first_accesses_of_a_row_go_at_once_and_short_ones_wait_after_them() {
        let mut batch = Batch::<Bytes>::new();
        for _ in 0..2 {
            for _ in 0..AT_ONCE {
                assert!(!batch.would_wait(4));
                batch.note_access();
            }
            assert!(
                batch.would_wait(4) && batch.would_wait(PIECE_BYTES_MOST) && !batch.would_wait(PIECE_BYTES_MOST + 1)
            );
            batch.end_row(LONG - 1);
            assert_eq!(batch.in_a_row(), 0);
        }
        batch.end_row(LONG);
        batch.note_access();
        assert!(batch.would_wait(4), "the row before was a long one");
    }

    #[test]
    fn what_waits_is_of_one_peer_and_one_kind_and_bounded() {
        let mut batch = Batch::new();
        assert!(!batch.must_go_before(B, Access::Write), "nothing waits");
        for at in 0..PIECES_MOST {
            assert!(!batch.must_go_before(A, Access::Read));
            push(&mut batch, at as u32, 0);
            assert!(batch.must_go_before(B, Access::Read) && batch.must_go_before(A, Access::Write));
        }
        assert!(batch.must_go_before(A, Access::Read));
        let mut taken = batch.take();
        assert_eq!(
            (taken.peer, taken.pieces.len(), taken.parts.len(), batch.has_any()),
            (A, PIECES_MOST, PIECES_MOST, false)
        );
        taken.pieces.clear();
        taken.parts.clear();
        batch.give_back(taken);
        assert!(batch.waiting.pieces.capacity() >= PIECES_MOST, "its lists last");
    }

    #[test]
    fn an_operation_that_is_given_up_leaves_the_others_in_order() {
        let mut batch = Batch::new();
        for (operation, address) in [(1, 10), (2, 20), (1, 30), (3, 40)] {
            push(&mut batch, operation, address);
        }
        batch.forget(Key(1));
        let left = batch.take();
        let addresses: Vec<u64> = left.pieces.iter().map(|piece| piece.there.span.address).collect();
        let operations: Vec<Key> = left.parts.iter().map(|part| part.operation).collect();
        assert_eq!((addresses, operations), (vec![20, 40], vec![Key(2), Key(3)]));
    }
}
