//! Bulk data between a peer's memory and ours, in one copy.

use super::bounce::BOUNCE_BUFFER_BYTES;
use super::bulk::{ProbedMemory, TransferError};
use super::connection::Connection;
use super::state::ShmLink;
use crate::clock;
use crate::log::{self, Level};
use crate::memory::IoBuffer;
use std::io;
use std::time::Duration;
use tidegate_flow::PeerId;
use tidegate_message::{
    Access, BatchPiece, Bounce, BounceBuffers, Buffer, Capabilities, PeerMemory, RemoteMemory, TransferId,
    TransferStatus,
};

/// Which way bulk data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the peer's memory to ours.
    Read,
    /// From ours to the peer's.
    Write,
}

/// Bulk transfers from this many bytes on go from memory to memory: no bounce buffer stays in a cache then, and a copy
/// that leaves the sender free to compute is worth more. For shorter ones the endpoint measures which way is faster.
const DIRECT_FROM: usize = 8 << 20;

impl ShmLink {
    /// Copies between a peer's memory, `remote`, and ours: `local` from `offset` on.
    pub(super) fn transfer(
        &mut self,
        direction: Direction,
        peer: PeerId,
        remote: &[RemoteMemory],
        local: &IoBuffer,
        offset: usize,
    ) -> TransferStatus {
        let room = local.len().checked_sub(offset);
        let wanted = remote.iter().try_fold(0_u64, |sum, memory| sum.checked_add(memory.span.length));
        let (Some(room), Some(wanted)) = (room, wanted) else { return TransferStatus::Failed };
        if wanted > room as u64 {
            return TransferStatus::Failed;
        }
        // Makes the connection if there is none.
        self.connection(peer);
        let connection = self.peers.get_mut(peer.0 as usize).and_then(|peer| peer.connection.as_mut());
        let Some(connection) = connection else { return TransferStatus::Unreachable };
        let Some(memory) = connection.memory() else { return TransferStatus::Unreachable };
        if !memory.may_try() {
            return TransferStatus::Unreachable;
        }
        let (pid, spans) = (memory.pid(), local.spans_of(offset, wanted as usize));
        let places = remote.iter().map(|memory| memory.span);
        let copier = &mut self.copier;
        let copy = |memory: &mut ProbedMemory| match direction {
            // SAFETY: the spans are parts of an `IoBuffer`, whose maker promised that memory for reading and, where
            // `Link` has it by `&mut` as here, for writing.
            Direction::Read => unsafe { copier.read(memory, spans, places) },
            // SAFETY: as above.
            Direction::Write => unsafe { copier.write(memory, spans, places) },
        };
        let Some(copied) = connection.access(remote.iter().map(|memory| memory.key), copy) else {
            return TransferStatus::Unreachable;
        };
        let Some(memory) = connection.memory() else { return TransferStatus::Unreachable };
        match copied {
            Ok(()) => {
                memory.note_success();
                TransferStatus::Done
            }
            Err(TransferError::Fault(error)) => {
                log::line(Level::Warn, || {
                    format!("bulk transfer of {wanted} bytes with pid {pid}: memory of this process: {error}")
                });
                TransferStatus::Failed
            }
            Err(TransferError::PeerFault(error)) => {
                memory.note_fault();
                log::line(Level::Info, || {
                    format!(
                        "{wanted} bytes go another way: memory of pid {pid} that the system does not reach: {error}"
                    )
                });
                TransferStatus::Unreachable
            }
            Err(TransferError::Unreachable(error)) => {
                give_up(direction, connection, &error);
                TransferStatus::Unreachable
            }
        }
    }

    /// Copies each of these pieces of a peer's memory alone, in as few system calls as there can be.
    fn transfer_pieces(&mut self, direction: Direction, peer: PeerId, pieces: &mut [BatchPiece<IoBuffer>]) {
        pieces.iter_mut().for_each(|piece| piece.status = TransferStatus::Unreachable);
        let connection = self.peers.get_mut(peer.0 as usize).and_then(|peer| peer.connection.as_mut());
        let Some(connection) = connection else { return };
        if connection.memory().is_none_or(|memory| !memory.may_try()) {
            return;
        }
        let (copier, piece_copier) = (&mut self.copier, &mut self.piece_copier);
        let copied = connection.access_shown(|memory, is_shown| {
            for BatchPiece { there, here, status } in &mut *pieces {
                *status = match is_shown(there.key) {
                    _ if there.span.length != here.len() as u64 => TransferStatus::Failed,
                    true => TransferStatus::Pending,
                    false => TransferStatus::Unreachable,
                };
            }
            match direction {
                Direction::Read => piece_copier.read(memory, pieces),
                Direction::Write => piece_copier.write(memory, copier, pieces),
            }
        });
        let left = pieces.iter_mut().filter(|piece| piece.status == TransferStatus::Pending);
        left.for_each(|piece| piece.status = TransferStatus::Unreachable);
        match copied {
            Some(Ok(0)) => connection.memory().into_iter().for_each(|memory| memory.note_success()),
            Some(Ok(faults)) => {
                connection.memory().into_iter().for_each(|memory| memory.note_fault());
                log::line(Level::Info, || {
                    format!("{faults} of {} pieces go another way: the system does not reach the memory", pieces.len())
                });
            }
            Some(Err(
                TransferError::Unreachable(error) | TransferError::Fault(error) | TransferError::PeerFault(error),
            )) => give_up(direction, connection, &error),
            None => {}
        }
    }
}

/// The memory of a peer cannot be reached any more.
fn give_up(direction: Direction, connection: &mut Connection, error: &io::Error) {
    let Some(memory) = connection.memory() else { return };
    let pid = memory.pid();
    // Memory that cannot be written to may be readable all the same: then only writes go another way.
    if direction == Direction::Read || memory.is_writable() {
        connection.give_up_memory();
        log::line(Level::Info, || {
            format!("the memory of pid {pid} cannot be reached any more, its bulk data goes another way: {error}")
        });
    }
}

impl PeerMemory for ShmLink {
    fn capabilities(&mut self, peer: PeerId) -> Capabilities {
        let shares_bounce_buffers = self.bounce_buffers.count() > 0;
        Capabilities {
            reaches_memory: self.connection(peer).is_some_and(|connection| connection.memory().is_some()),
            is_synchronous: true,
            shares_bounce_buffers,
            direct_from: if shares_bounce_buffers { DIRECT_FROM } else { 0 },
        }
    }

    fn read_peer(
        &mut self,
        _: TransferId,
        peer: PeerId,
        from: &[RemoteMemory],
        into: &mut IoBuffer,
        offset: usize,
    ) -> TransferStatus {
        let begun = clock::now();
        let status = self.transfer(Direction::Read, peer, from, into, offset);
        self.time_reading += clock::now().since(begun);
        status
    }

    fn write_peer(
        &mut self,
        _: TransferId,
        peer: PeerId,
        to: &[RemoteMemory],
        from: &IoBuffer,
        offset: usize,
    ) -> TransferStatus {
        self.transfer(Direction::Write, peer, to, from, offset)
    }

    fn read_pieces(&mut self, peer: PeerId, pieces: &mut [BatchPiece<IoBuffer>]) {
        self.transfer_pieces(Direction::Read, peer, pieces);
    }

    fn write_pieces(&mut self, peer: PeerId, pieces: &mut [BatchPiece<IoBuffer>]) {
        self.transfer_pieces(Direction::Write, peer, pieces);
    }

    fn time_reading(&self) -> Duration {
        self.time_reading
    }

    /// Every transfer ends before its call returns.
    fn cancel_transfer(&mut self, _: PeerId, _: TransferId) -> bool {
        true
    }

    fn find_region(
        &mut self,
        peer: PeerId,
        key: u64,
        offset: u64,
        length: u64,
        access: Access,
    ) -> Option<(RemoteMemory, Access)> {
        let connection = self.connection(peer)?;
        let memory = connection.memory()?;
        if access != Access::Read && !memory.is_writable() {
            return None;
        }
        let (ticket, span, granted) = connection.find_region(key, offset, length, access)?;
        Some((RemoteMemory { key: ticket.number(), span }, granted))
    }
}

impl Bounce for ShmLink {
    fn bounce_buffers(&self) -> BounceBuffers {
        BounceBuffers { count: self.bounce_buffers.count(), bytes: BOUNCE_BUFFER_BYTES }
    }

    fn fill_bounce_buffer(&mut self, bounce_buffer: usize, from: &IoBuffer, offset: usize, length: usize) {
        self.bounce_buffers.fill(&mut self.filling, bounce_buffer, from, offset, length);
    }

    fn drain_bounce_buffer(
        &mut self,
        peer: PeerId,
        bounce_buffer: usize,
        into: &mut IoBuffer,
        offset: usize,
        length: usize,
    ) -> bool {
        let begun = clock::now();
        let connection = self.connection(peer);
        let is_there =
            connection.is_some_and(|connection| connection.drain_bounce_buffer(bounce_buffer, into, offset, length));
        self.time_draining += clock::now().since(begun);
        is_there
    }

    fn time_draining(&self) -> Duration {
        self.time_draining
    }
}
