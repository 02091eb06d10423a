//! [`PeerMemory`]: reading and writing the memory of peers, where the link can.

use super::buffer::{Medium, Span};
use crate::operation::Access;
use std::time::Duration;
use tidegate_flow::PeerId;

/// A contiguous piece of a peer's memory, as the link that reaches it needs it named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteMemory {
    /// The key under which the peer's link has [exposed](PeerMemory::expose) it, or what names the region in which it
    /// was [found](PeerMemory::find_region), as it was published then; 0 where none is needed.
    pub key: u64,
    /// Where it lies.
    pub span: Span,
}

/// Names one bulk transfer from [`PeerMemory::read_peer`] or [`PeerMemory::write_peer`] to the
/// [event](crate::LinkEvent::TransferEnded) that tells its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TransferId(pub u32);

/// Where a bulk transfer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferStatus {
    /// All bytes are where they belong.
    Done,
    /// An event will tell.
    Pending,
    /// Our memory cannot be read or written, or the lengths do not fit. Also what an event says of a peer that lives
    /// and whose memory has got out of reach meanwhile.
    Failed,
    /// The peer's memory, or this part of it, cannot be reached in this way: nothing of the transfer counts, and the
    /// data must go another way. As an event it says that the peer is gone: its departure ends what the transfer was
    /// for, and names it.
    Unreachable,
}

/// A piece of a peer's memory that is copied together with others, to or from a piece of ours.
#[derive(Debug)]
pub struct BatchPiece<B> {
    /// Where it lies at the peer.
    pub there: RemoteMemory,
    /// Ours, of the same length.
    pub here: B,
    /// How it went, after [`PeerMemory::read_pieces`] or [`PeerMemory::write_pieces`].
    pub status: TransferStatus,
}

impl<B> BatchPiece<B> {
    /// A piece that is not copied yet.
    pub fn new(there: RemoteMemory, here: B) -> Self {
        BatchPiece { there, here, status: TransferStatus::Unreachable }
    }
}

/// What a link can do with one peer. By default nothing but packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// [`PeerMemory::read_peer`] and [`PeerMemory::write_peer`] reach its memory. Once they do not, it stays so for the
    /// life of the connection.
    pub reaches_memory: bool,
    /// They never return [`TransferStatus::Pending`]: our memory may change as soon as they return.
    pub is_synchronous: bool,
    /// It can copy out of our [bounce buffers](crate::Bounce::bounce_buffers), and we out of its.
    pub shares_bounce_buffers: bool,
    /// Messages from this many bytes on are read out of the sender's memory, bounce buffers or not. Shorter ones, down
    /// to a bounce buffer, take the way that is measured to be faster.
    pub direct_from: usize,
}

/// A part of a link: bulk data goes straight from memory to memory. A link that has not got it reaches the memory of no
/// peer, so long messages go through mailboxes, and remote operations by message.
pub trait PeerMemory: Medium {
    /// What can be done with this peer. May connect.
    fn capabilities(&mut self, _peer: PeerId) -> Capabilities {
        Capabilities::default()
    }

    /// Lets `peer` reach memory of ours by [`read_peer`](Self::read_peer), until it is [hidden](Self::hide). Returns
    /// the key by which it does: 0 where none is needed. `pieces` are those of the memory, which the peer will be told;
    /// a link whose peers need other addresses than ours replaces them.
    fn expose(&mut self, _peer: PeerId, _memory: &Self::Buffer, _pieces: &mut [Span]) -> u64 {
        0
    }

    /// Ends what [`expose`](Self::expose) began, for a key other than 0: from now on no read touches the memory.
    fn hide(&mut self, _peer: PeerId, _key: u64) {}

    /// Copies the peer's memory `from` (pieces in order) to `into` from `offset` on.
    fn read_peer(
        &mut self,
        _id: TransferId,
        _peer: PeerId,
        _from: &[RemoteMemory],
        _into: &mut Self::Buffer,
        _offset: usize,
    ) -> TransferStatus {
        TransferStatus::Unreachable
    }

    /// Copies `from`, from `offset` on, to the peer's memory `to` (pieces in order).
    fn write_peer(
        &mut self,
        _id: TransferId,
        _peer: PeerId,
        _to: &[RemoteMemory],
        _from: &Self::Buffer,
        _offset: usize,
    ) -> TransferStatus {
        TransferStatus::Unreachable
    }

    /// Copies each of these pieces of the peer's memory to ours, and says of each how it went: like as many calls of
    /// [`read_peer`](Self::read_peer), for which the link may find a quicker way. Only for a peer whose
    /// [`Capabilities::is_synchronous`].
    fn read_pieces(&mut self, peer: PeerId, pieces: &mut [BatchPiece<Self::Buffer>]) {
        for BatchPiece { there, here, status } in pieces {
            *status = self.read_peer(TransferId(u32::MAX), peer, &[*there], here, 0);
        }
    }

    /// The same from our memory to the peer's, like as many calls of [`write_peer`](Self::write_peer), in order.
    fn write_pieces(&mut self, peer: PeerId, pieces: &mut [BatchPiece<Self::Buffer>]) {
        for BatchPiece { there, here, status } in pieces {
            *status = self.write_peer(TransferId(u32::MAX), peer, &[*there], here, 0);
        }
    }

    /// Stops a transfer with `peer` that is pending. `true`: from now on it touches no memory of ours, and no event
    /// comes of it. `false`: it cannot be stopped; our memory is in use until its event comes.
    fn cancel_transfer(&mut self, _peer: PeerId, _id: TransferId) -> bool {
        true
    }

    /// Where the remote region `key` of `peer` lies, if the peer published it and it grants `access` to `length` bytes
    /// at `offset`, and what it grants: then RMA goes straight to memory. A region that is asked for [`Access::Write`]
    /// may grant [`Access::ToldWrite`]. `None`: it goes by message.
    fn find_region(
        &mut self,
        _peer: PeerId,
        _key: u64,
        _offset: u64,
        _length: u64,
        _access: Access,
    ) -> Option<(RemoteMemory, Access)> {
        None
    }

    /// How long all calls of [`read_peer`](Self::read_peer) took so far, together. Zero where they do not copy
    /// themselves.
    fn time_reading(&self) -> Duration {
        Duration::ZERO
    }
}
