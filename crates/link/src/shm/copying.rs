//! Bulk data between a peer's memory and ours, in one copy.

use super::bulk::{PeerMemory, TransferError};
use super::state::ShmLink;
use crate::log::{self, Level};
use crate::memory::IoBuffer;
use tidegate_flow::PeerId;
use tidegate_message::{Buffer, RemoteMemory, TransferStatus};

/// Which way bulk data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the peer's memory to ours.
    Read,
    /// From ours to the peer's.
    Write,
}

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
        let copy = |memory: &mut PeerMemory| match direction {
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
                // Memory that cannot be written to may be readable all the same: then only writes go another way.
                if direction == Direction::Read || memory.is_writable() {
                    connection.give_up_memory();
                    log::line(Level::Info, || {
                        format!(
                            "the memory of pid {pid} cannot be reached any more, its bulk data goes another way: {error}"
                        )
                    });
                }
                TransferStatus::Unreachable
            }
        }
    }
}
