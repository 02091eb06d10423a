//! [`Link`]: the whole environment of an endpoint, but for the time, which callers of the endpoint tell it. Shared
//! memory and the simulator implement it; several links together are one (`tidegate_link::Paths`).

use std::time::Duration;
use tidegate_flow::{Header, PAYLOAD_BYTES, Packet, PeerId, Placement, Posting};

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
    /// Fills packets with what lies from `offset` on, each with this header.
    #[inline]
    fn read_packets(&self, offset: usize, header: Header, packets: &mut [Packet]) {
        for (packet, index) in packets.iter_mut().zip(0..) {
            self.read(offset + index * PAYLOAD_BYTES, &mut packet.payload);
            packet.header = header;
        }
    }
    /// Copies `from` into the application's memory from `offset` on.
    fn write(&mut self, offset: usize, from: &[u8]);
    /// The pieces, in order.
    fn spans(&self) -> impl Iterator<Item = Span>;
    /// The part `offset..offset + len` as a buffer of its own (same memory).
    fn slice(&self, offset: usize, len: usize) -> Self;
    /// A buffer with the same bytes in memory of its own, which lasts as long as the buffer or a slice of it does: for
    /// an operation that has to wait while the application may use its memory for something else.
    fn copied(&self) -> Self;
}

/// A contiguous piece of a process's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Virtual address in the process that owns it.
    pub address: u64,
    /// Bytes.
    pub length: u64,
}

/// A contiguous piece of a peer's memory, as the link that reaches it needs it named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteMemory {
    /// The key under which the peer's link has [exposed](Link::expose) it, or what names the region in which it was
    /// [found](Link::find_region), as it was published then; 0 where none is needed.
    pub key: u64,
    /// Where it lies.
    pub span: Span,
}

/// Names one bulk transfer from [`Link::read_peer`] or [`Link::write_peer`] to its [`LinkEvent::TransferEnded`].
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

/// How many bounce buffers an endpoint has, and their size. None by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BounceBuffers {
    /// How many.
    pub count: usize,
    /// Bytes of each.
    pub bytes: usize,
}

/// What a link can do with one peer. By default nothing but packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// [`Link::read_peer`] and [`Link::write_peer`] reach its memory. Once they do not, it stays so for the life of the
    /// connection.
    pub reaches_memory: bool,
    /// They never return [`TransferStatus::Pending`]: our memory may change as soon as they return.
    pub is_synchronous: bool,
    /// It can copy out of our [bounce buffers](Link::bounce_buffers), and we out of its.
    pub shares_bounce_buffers: bool,
    /// Messages from this many bytes on are read out of the sender's memory, bounce buffers or not. Shorter ones, down
    /// to a bounce buffer, take the way that is measured to be faster.
    pub direct_from: usize,
}

/// Why no packet was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// There is no place: the mailbox is full, or the link has too much under way. Try again later. For a peer's
    /// mailbox this cannot happen under credits.
    Full,
    /// The peer has posted no buffer for the packet: flow control says when to try again.
    Refused,
    /// The peer cannot be reached at all; the text says why and what to do. If it has sent anything, its departure is
    /// reported behind that.
    Unreachable(String),
}

/// A packet that has come.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Who sent it, in our table of peers.
    pub source: PeerId,
    /// A copy of it, which its sender cannot change.
    pub packet: Packet,
}

impl Arrival {
    /// Its payload, as long as its header says.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        &self.packet.payload[..self.packet.header.length()]
    }

    /// Whether it met congestion on its way (InfiniBand's FECN).
    #[inline]
    pub fn is_marked(&self) -> bool {
        self.packet.header.is_marked()
    }
}

/// What happens outside of calls, and is reported by the next [`Link::poll_event`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// A transfer that was [`TransferStatus::Pending`] has ended.
    TransferEnded(TransferId, TransferStatus),
    /// Packets that were written to this peer do not arrive, and no more can be written to it; the text says why. What
    /// it has sent is still retrieved, and its departure is reported behind that.
    WriteFailed(PeerId, String),
    /// A packet that was written to this peer found no buffer there. The link has it, writes it again, and keeps the
    /// order.
    Refused(PeerId),
    /// In our pool of buffers fewer are left than the limit that was [posted](Link::post).
    LimitReached,
    /// A peer has said that it matches nothing more, and will close. All that it had sent before has been retrieved.
    Closing(PeerId),
    /// A peer has left.
    Departed(Departure),
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

/// Everything an endpoint can do to the world. Dropping a link ends all transfers.
pub trait Link {
    /// Application memory.
    type Buffer: Buffer;

    /// Writes packets of one message to a peer, or a control packet: reserves up to `count` places, lets `fill` fill
    /// them in turn, some at a time, and publishes them. Returns how many, at least one. `fill` is called for places
    /// only that are there, so what it puts into a packet is on its way. The link fills in the header's stamp and
    /// source, or asks `fill` by the [`Placement`] to add them. Packets of one sender to one receiver stay
    /// in order. Those of one call the link may join to long packets, of several slots.
    fn write(&mut self, to: PeerId, count: u32, fill: impl FnMut(&mut [Packet], Placement)) -> Result<u32, WriteError>;

    /// Takes the next packet that has come.
    fn retrieve(&mut self) -> Option<Arrival>;

    /// Takes the slots behind the first of a long packet, whose header this is, before the next packet is retrieved: puts their payload
    /// into `into`, and returns the last, on which credits may ride. `None`: they are not what a correct peer writes,
    /// or there are none, or more than `into` has room for. A link that writes no long packets retrieves none.
    fn retrieve_following(&mut self, _first: &Header, _into: &mut [[u8; PAYLOAD_BYTES]]) -> Option<Packet> {
        None
    }

    /// Does what flow control wants done with the buffers that are posted for messages to us. Links that keep none have
    /// nothing to do: then no scheme posts any.
    fn post(&mut self, _posting: Posting) {}

    /// What has happened since the last call. Transfers that ended are told even if nothing is retrieved.
    fn poll_event(&mut self) -> Option<LinkEvent>;

    /// What can be done with this peer. May connect.
    fn capabilities(&mut self, peer: PeerId) -> Capabilities;

    /// Lets `peer` reach memory of ours by [`read_peer`](Self::read_peer), until it is [hidden](Self::hide). Returns
    /// the key by which it does: 0 where none is needed. `pieces` are those of the memory, which the peer will be told;
    /// a link whose peers need other addresses than ours replaces them.
    fn expose(&mut self, _peer: PeerId, _memory: &Self::Buffer, _pieces: &mut [Span]) -> u64 {
        0
    }

    /// Ends what [`expose`](Self::expose) began, for a key other than 0: from now on no read touches the memory.
    fn hide(&mut self, _peer: PeerId, _key: u64) {}

    /// Longest message that can be [carried](Self::carry) to this peer; 0: none.
    fn carries_most(&mut self, _peer: PeerId) -> usize {
        0
    }

    /// Takes a copy of a message that is longer than 0 bytes and not longer than [`carries_most`](Self::carries_most),
    /// and brings it to the peer, beside packets: it is there before the packet that is written to it next. `false`:
    /// there is no room for it now, and nothing was taken.
    fn carry(&mut self, _peer: PeerId, _message: &Self::Buffer) -> bool {
        false
    }

    /// Takes the next message that a peer has [carried](Self::carry) to us. In their order; the packet that says what
    /// it is has come. `None`: there is none, so no correct peer has sent that packet.
    fn take_carried(&mut self, _peer: PeerId) -> Option<Vec<u8>> {
        None
    }

    /// Copies the peer's memory `from` (pieces in order) to `into` from `offset` on.
    fn read_peer(
        &mut self,
        id: TransferId,
        peer: PeerId,
        from: &[RemoteMemory],
        into: &mut Self::Buffer,
        offset: usize,
    ) -> TransferStatus;

    /// Whether a long message is written into its receiver's memory by its sender, once that memory has been named, as
    /// L §3.1 has it, and not read by its receiver. A job's links agree on that. A link that does so
    /// [admits writes](Self::admit_write).
    fn writes_bulk(&self) -> bool {
        false
    }

    /// Lets `peer` write into `buffer`, by [`write_peer`](Self::write_peer) to memory of this key, once: this is asked
    /// for only where [`writes_bulk`](Self::writes_bulk).
    fn admit_write(&mut self, _peer: PeerId, _key: u64, _buffer: &Self::Buffer) {}

    /// Copies `from`, from `offset` on, to the peer's memory `to` (pieces in order).
    fn write_peer(
        &mut self,
        id: TransferId,
        peer: PeerId,
        to: &[RemoteMemory],
        from: &Self::Buffer,
        offset: usize,
    ) -> TransferStatus;

    /// Stops a transfer with `peer` that is pending. `true`: from now on it touches no memory of ours, and no event
    /// comes of it. `false`: it cannot be stopped; our memory is in use until its event comes.
    fn cancel_transfer(&mut self, peer: PeerId, id: TransferId) -> bool;

    /// How long all calls of [`read_peer`](Self::read_peer) took so far, together. Zero where they do not copy
    /// themselves.
    fn time_reading(&self) -> Duration {
        Duration::ZERO
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

    /// Where the remote region `key` of `peer` lies, if the peer published it and it grants `access` to `length` bytes
    /// at `offset`: then RMA goes straight to memory. `None`: it goes by message.
    fn find_region(
        &mut self,
        peer: PeerId,
        key: u64,
        offset: u64,
        length: u64,
        access: crate::Access,
    ) -> Option<RemoteMemory>;

    /// Receive memory, in bytes, that the link takes besides the mailbox itself.
    fn bookkeeping_bytes(_flow: &tidegate_flow::Config) -> usize {
        0
    }

    /// What we set aside for the unmatched messages of each sender, in bytes: for peers to know. Called once, before
    /// anybody can.
    fn tell_window(&mut self, _bytes: u32) {}

    /// What this sender may have under way: what we set aside for it, less what is stored of it. As long as this is not
    /// called, what was [told](Self::tell_window). A link that [carries](Self::carry) messages keeps no more of them.
    fn set_window_left(&mut self, _peer: PeerId, _bytes: u32) {}

    /// What `peer` has told by [`tell_window`](Self::tell_window). `None`: as much as we. `Some(0)`: that cannot be
    /// found out now, but later. May connect.
    fn window(&mut self, _peer: PeerId) -> Option<u32> {
        None
    }

    /// Whether nothing that is written to `peer` leaves before the peer has answered us for the first time. That takes
    /// progress on both sides.
    fn must_greet(&mut self, _peer: PeerId) -> bool {
        false
    }

    /// We match nothing more, and will close: lets all peers know that are connected to us.
    fn tell_closing(&mut self) {}

    /// Whether packets of messages that were [written](Self::write) have not reached a peer yet that may still take
    /// them: who closes waits for them.
    fn has_unsent(&self) -> bool {
        false
    }

    /// The same of one peer.
    fn has_unsent_to(&self, _peer: PeerId) -> bool {
        false
    }

    /// Shows the headers of the packets that have not reached their peers.
    fn for_each_unsent(&self, _look: &mut dyn FnMut(tidegate_flow::Header)) {}

    /// Nothing more will be written: says goodbye to all peers.
    fn say_goodbye(&mut self) {}

    /// Goes on with what [`say_goodbye`](Self::say_goodbye) began, and drops what comes. Returns whether nothing is
    /// left of it.
    fn flush(&mut self) -> bool {
        true
    }

    /// Drops all packets of a peer from now on, although it lives: it has broken the protocol. Its departure is still
    /// reported. Returns who it is, for people.
    fn quarantine(&mut self, peer: PeerId) -> String;

    /// The endpoint keeps nothing more of a departed peer, or wants nothing of a stranger: as soon as that peer writes
    /// no more, its place may go to another. A peer that lives is told that nobody reads what it writes.
    fn release(&mut self, peer: PeerId);

    /// Whether newcomers may find no place in a table of peers: then departed peers are [released](Self::release)
    /// though the endpoint has messages of them.
    fn lacks_places(&self) -> bool {
        false
    }

    /// The address of a departed peer, which is released next, is to be found under this number as well, which is not
    /// that of a place, until the record ends.
    fn begin_record(&mut self, _peer: PeerId, _record: PeerId) {}

    /// Nothing is asked of this record any more.
    fn end_record(&mut self, _record: PeerId) {}

    /// A number that no endpoint but this peer's ever has. `None`: there is no such peer, or it has none.
    fn identity(&self, _peer: PeerId) -> Option<u64> {
        None
    }

    /// The endpoint of this [identity](Self::identity) has died, for whoever asks later which was the first.
    fn note_death(&mut self, _identity: u64) {}

    /// The page of counters of this endpoint.
    fn counters(&self) -> &crate::Counters;
}
