//! Short direct accesses in a row wait for each other in a [`Batch`](super::batch::Batch), and go together.

use super::Rma;
use super::batch::{Batched, BatchedPart};
use super::operation::Place;
use super::request::WriteRest;
use crate::deferral::Rooms;
use crate::link::{BatchPiece, Buffer, Link, TransferStatus};
use crate::operation::Access;
use crate::port::Port;
use crate::wire::Status;
use tidegate_flow::PeerId;

impl<L: Link> Rma<L> {
    /// Whether a direct access to so many bytes of a peer's memory is to wait.
    pub(super) fn may_wait(&self, port: &mut Port<L>, peer: PeerId, bytes: usize) -> bool {
        self.batch.would_wait(bytes) && port.link.capabilities(peer).is_synchronous
    }

    /// Lets a piece of an operation of ours wait for the next ones.
    pub(super) fn let_wait(
        &mut self,
        port: &mut Port<L>,
        rooms: &mut Rooms,
        (peer, access): (PeerId, Access),
        piece: BatchPiece<L::Buffer>,
        part: BatchedPart,
    ) {
        if self.batch.must_go_before(peer, access) {
            self.send_batch(port, rooms);
        }
        self.operations.add_transfer(part.operation);
        self.batch.push(peer, access, piece, part);
    }

    /// Carries out what waits. Losses that it finds are the caller's to handle.
    #[inline]
    pub(crate) fn send_batch(&mut self, port: &mut Port<L>, rooms: &mut Rooms) {
        if self.batch.has_any() {
            self.carry_batch_out(port, rooms);
        }
    }

    /// A call of progress: carries out what waits, and the next access goes at once. Returns whether anything waited.
    #[inline]
    pub(crate) fn end_row(&mut self, port: &mut Port<L>, rooms: &mut Rooms) -> bool {
        if self.batch.takes_spared() {
            return false;
        }
        let waiting = self.batch.len();
        self.send_batch(port, rooms);
        self.batch.end_row(waiting);
        waiting > 0
    }

    /// The next call of progress is the thread's, and ends no row that has grown since the one before.
    pub(crate) fn spare_row(&mut self) {
        self.batch.spare();
    }

    /// 0 where [`end_row`](Self::end_row) has nothing to do.
    #[inline(always)]
    pub(crate) fn in_a_row(&self) -> usize {
        self.batch.in_a_row()
    }

    /// Whether pieces wait for the end of the row.
    pub(crate) fn has_batch(&self) -> bool {
        self.batch.has_any()
    }

    #[inline(never)]
    fn carry_batch_out(&mut self, port: &mut Port<L>, rooms: &mut Rooms) {
        let mut batch = self.batch.take();
        let (peer, access) = (batch.peer, batch.access);
        match access {
            Access::Read => port.link.read_pieces(peer, &mut batch.pieces),
            Access::Write | Access::ToldWrite => port.link.write_pieces(peer, &mut batch.pieces),
        }
        let Batched { pieces, parts, .. } = &mut batch;
        for (piece, part) in pieces.drain(..).zip(parts.drain(..)) {
            match piece.status {
                TransferStatus::Unreachable | TransferStatus::Pending => {
                    self.go_by_message(port, rooms, (peer, access), part, piece);
                }
                status => {
                    if part.is_told_direct && status == TransferStatus::Done {
                        self.operations.note_told(part.operation);
                    }
                    self.end_transfer_part(port, part.operation, status);
                }
            }
        }
        self.batch.give_back(batch);
    }

    /// A piece that waited cannot be reached.
    fn go_by_message(
        &mut self,
        port: &mut Port<L>,
        rooms: &mut Rooms,
        (peer, access): (PeerId, Access),
        part: BatchedPart,
        piece: BatchPiece<L::Buffer>,
    ) {
        let BatchedPart { operation, target, offset, is_last, is_told, .. } = part;
        if self.fail_if_lost(port, operation, peer) {
            if self.operations.end_transfer(operation, Status::Fault) {
                self.end_operation(port, operation);
            }
            return;
        }
        self.operations.turn_transfer(operation);
        let bytes = piece.here.len();
        if access == Access::Read {
            return self.request_read(port, rooms, operation, peer, Place { target, offset, bytes, is_last });
        }
        let (region, offset) = (target.key, target.offset);
        let rest = WriteRest { operation, region, offset, buffer: piece.here, position: 0, end: bytes, is_told };
        self.request_write(port, rooms, peer, rest);
    }
}
