//! [`Link`]: the whole environment of an endpoint, but for the time, which callers of the endpoint tell it. Shared
//! memory, a lower provider and the simulator implement it.

use std::time::Duration;
use tidegate_flow::{Packet, PacketKind, PeerId};

/// Application memory, as the link's environment knows it: possibly scattered, addressed by an offset from its start.
///
/// Reads and writes outside `0..len()` are clipped by the caller; an implementation may panic on them.
pub trait Buffer: Sized {
    /// Bytes.
    fn len(&self) -> usize;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Copies `into.len()` bytes from `offset` on out of the application's memory.
    fn read(&self, offset: usize, into: &mut [u8]);
    /// Copies `from` into the application's memory from `offset` on.
    fn write(&mut self, offset: usize, from: &[u8]);
    /// The pieces, in order, as addresses that a peer's bulk read or write understands.
    fn spans(&self) -> impl Iterator<Item = Span>;
    /// The part `offset..offset + len` as a buffer of its own (same memory).
    fn slice(&self, offset: usize, len: usize) -> Self;
}

/// A contiguous piece of a process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Virtual address in the process that owns it.
    pub address: u64,
    /// Bytes.
    pub length: u64,
}

/// Names one bulk transfer between [`Link::read_peer`] / [`Link::write_peer`] and [`Link::poll_transfer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TransferId(pub u32);

/// Where a bulk transfer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferStatus {
    /// All bytes are where they belong.
    Done,
    /// The link will tell through [`Link::poll_transfer`].
    Pending,
    /// The peer's memory cannot be reached: wrong address.
    Failed,
    /// The peer's memory cannot be reached in this way: nothing of the transfer counts, and the data must go another
    /// way. If the peer is gone, its departure ends the operation and names it. Of a peer that lives this comes at
    /// once, never by
    /// [`Link::poll_transfer`].
    Unreachable,
}

/// How many bounce buffers an endpoint has, and their size. None by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BounceBuffers {
    /// How many.
    pub count: usize,
    /// Bytes of each.
    pub bytes: usize,
}

/// Why a packet was not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// The peer's mailbox is full: try again later. Under credits this cannot happen.
    Full,
    /// The peer has posted no buffer for the packet: flow control says when to try again.
    Refused,
    /// The peer cannot be reached at all; the text says why and what to do. If it has sent anything, its departure is
    /// reported behind that.
    Unreachable(String),
}

/// A peer is no more, or cannot be reached any more. Reported after its last packet was retrieved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Which.
    pub peer: PeerId,
    /// Whether it closed its endpoint (`true`), or died or got out of reach (`false`).
    pub orderly: bool,
    /// Who it was, for people: "pid 4711 of host h"; and why, where it did not simply end.
    pub name: String,
}

/// Lets `next` fill up to `count` packets and `write` publish each before the next one. Returns how many it published.
#[inline]
pub(crate) fn write_one_by_one(
    count: u32,
    mut next: impl FnMut(&mut Packet),
    mut write: impl FnMut(&Packet) -> Result<(), WriteError>,
) -> (u32, Result<(), WriteError>) {
    for written in 0..count {
        // A fresh one each time: nothing stale lies behind a short payload.
        let mut packet = Packet::new(PacketKind::Data, 0, 0);
        next(&mut packet);
        if let Err(error) = write(&packet) {
            return (written, Err(error));
        }
    }
    (count, Ok(()))
}

/// Everything an endpoint can do to the world.
pub trait Link {
    /// Application memory.
    type Buffer: Buffer;

    /// Publishes `packet` in `to`'s mailbox; the link fills in the header's stamp and source. Packets of one sender to
    /// one receiver stay in order.
    fn write(&mut self, to: PeerId, packet: &Packet) -> Result<(), WriteError>;

    /// Publishes up to `count` packets, one after the other, that `next` fills in turn; returns how many were
    /// published. A packet that was filled and could not be published is forgotten. A link that can reserve several
    /// slots at once does so.
    #[inline]
    fn write_many(&mut self, to: PeerId, count: u32, next: impl FnMut(&mut Packet)) -> (u32, Result<(), WriteError>) {
        write_one_by_one(count, next, |packet| self.write(to, packet))
    }

    /// Takes the next packet out of our mailbox, `header.source()` being a valid [`PeerId`] of ours.
    fn retrieve(&mut self) -> Option<Packet>;

    /// Whether [`read_peer`](Self::read_peer) and [`write_peer`](Self::write_peer) reach this peer's memory. Once it
    /// does not, it stays so for the life of the connection; may connect.
    fn reaches_memory(&mut self, peer: PeerId) -> bool;

    /// Copies the peer's memory `from` (pieces in order) to `into` from `offset` on. A synchronous link never returns
    /// `Pending`.
    fn read_peer(
        &mut self,
        id: TransferId,
        peer: PeerId,
        from: &[Span],
        into: &mut Self::Buffer,
        offset: usize,
    ) -> TransferStatus;

    /// Copies `from`, from `offset` on, to the peer's memory `to` (pieces in order).
    fn write_peer(
        &mut self,
        id: TransferId,
        peer: PeerId,
        to: &[Span],
        from: &Self::Buffer,
        offset: usize,
    ) -> TransferStatus;

    /// How long all calls of [`read_peer`](Self::read_peer) took so far, together. Zero where they do not copy
    /// themselves.
    fn time_reading(&self) -> Duration {
        Duration::ZERO
    }

    /// Messages from this many bytes on are read out of the sender's memory, bounce buffers or not. Shorter ones, down
    /// to a bounce buffer, take the way that is measured to be faster.
    fn direct_from(&self) -> usize {
        0
    }

    /// Our bounce buffers: pieces of memory that peers can read, for bulk data on its way to them.
    fn bounce_buffers(&self) -> BounceBuffers {
        BounceBuffers::default()
    }

    /// Copies `length` bytes of `from`, from `offset` on, into our bounce buffer of this number.
    fn fill_bounce_buffer(&mut self, _buffer: usize, _from: &Self::Buffer, _offset: usize, _length: usize) {}

    /// Copies the first `length` bytes of a peer's bounce buffer to `into`, from `offset` on. `false` if the peer has
    /// no such bounce buffer.
    fn drain_bounce_buffer(
        &mut self,
        _peer: PeerId,
        _buffer: usize,
        _into: &mut Self::Buffer,
        _offset: usize,
        _length: usize,
    ) -> bool {
        false
    }

    /// A bulk transfer that was `Pending` and has ended.
    fn poll_transfer(&mut self) -> Option<(TransferId, TransferStatus)>;

    /// Where the remote region `key` of `peer` lies, if the peer published it and it grants `access` to `length` bytes
    /// at `offset`: then RMA goes straight to memory. `None`: ask the peer by message.
    fn find_region(&mut self, peer: PeerId, key: u64, offset: u64, length: u64, access: crate::Access) -> Option<Span>;

    /// Receive memory, in bytes, that the link takes besides the mailbox itself.
    fn bookkeeping_bytes(_flow: &tidegate_flow::Config) -> usize {
        0
    }

    /// What we set aside for the unmatched messages of each sender, in bytes: for peers to know. Called once, before
    /// anybody can.
    fn tell_window(&mut self, _bytes: u32) {}

    /// What `peer` has told so. `None`: the same as ours. `Some(0)`: that cannot be found out now, but later. May
    /// connect.
    fn window(&mut self, _peer: PeerId) -> Option<u32> {
        None
    }

    /// We match nothing more, and will close: lets all peers know that are connected to us.
    fn tell_closing(&mut self) {}

    /// A peer that has said so since the last call, once all that it had sent before has been retrieved.
    fn poll_closing(&mut self) -> Option<PeerId> {
        None
    }

    /// A peer that left, if any did since the last call.
    fn poll_departure(&mut self) -> Option<Departure>;

    /// Drops all packets of a peer from now on, although it lives: it has broken the protocol. Its departure is still
    /// reported; transfers with it that are pending end without effect, as [`TransferStatus::Unreachable`]. Returns who
    /// it is, for people.
    fn quarantine(&mut self, peer: PeerId) -> String;

    /// The endpoint has forgotten a departed peer: its place may go to another.
    fn release(&mut self, peer: PeerId);

    /// The page of counters of this endpoint.
    fn counters(&self) -> &crate::Counters;
}
