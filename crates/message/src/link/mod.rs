//! [`Link`]: the whole environment of an endpoint, but for the time, which callers of the endpoint tell it. Shared
//! memory, the network between hosts and the simulator implement it; several links together are one
//! (`tidegate_link::Paths`).
//!
//! Every link moves packets. What only some can do is a part of its own, which others declare empty (`impl Carry for
//! Wire {}`):
//!
//! - [`PeerMemory`]: reads and writes the memory of peers;
//! - [`Bounce`]: has bounce buffers;
//! - [`Carry`]: brings whole messages of some kilobytes beside packets;
//! - [`Closing`]: keeps what it has not delivered, and says goodbye;
//! - [`PeerNames`]: knows peers by numbers that last, also those that have left;
//! - [`SenderWrites`]: lets senders write long messages, as simulated adapters do.
//!
//! `tests/it/wire.rs` is a whole link that has none of them.

mod bounce;
mod buffer;
mod carry;
mod closing;
mod peer_memory;
mod peer_names;
mod sender_writes;

use tidegate_flow::{Header, PAYLOAD_BYTES, Packet, PeerId, Placement, Posting};

pub use bounce::{Bounce, BounceBuffers};
pub(crate) use buffer::copy;
pub use buffer::{Buffer, Medium, Span};
pub use carry::Carry;
pub use closing::Closing;
pub use peer_memory::{BatchPiece, Capabilities, PeerMemory, RemoteMemory, TransferId, TransferStatus};
pub use peer_names::PeerNames;
pub use sender_writes::SenderWrites;

/// When fewer of our [open places](Link::open_places) are free than this number, a link asks for more, and this number
/// is opened at a time: it is more than come between two looks, unless very many come at once.
pub const PLACES_AHEAD: u32 = 256;

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
    /// A place for one. Inlined, so that nothing is copied.
    #[inline(always)]
    pub fn none() -> Arrival {
        Arrival {
            source: PeerId(u32::MAX),
            packet: Packet { header: Header::from_bits(0), payload: [0; PAYLOAD_BYTES] },
        }
    }

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
    /// Few of our [open places](Link::open_places) are free: more are wanted, if there may be more.
    PlacesLow,
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

/// The content of the packets for which [`Link::write`] has places. Any closure of this shape is one. A type of its own
/// can have its `fill` inlined wherever it is called, which closures cannot.
pub trait Fill {
    /// Fills these packets, as the next of the message, and adds to their headers where they are.
    fn fill(&mut self, packets: &mut [Packet], placement: Placement);
}

impl<F: FnMut(&mut [Packet], Placement)> Fill for F {
    #[inline(always)]
    fn fill(&mut self, packets: &mut [Packet], placement: Placement) {
        self(packets, placement);
    }
}

/// Everything an endpoint can do to the world, with the parts that not every link has. Dropping a link ends all
/// transfers.
pub trait Link: PeerMemory + Bounce + Carry + Closing + PeerNames + SenderWrites {
    /// Writes packets of one message to a peer, or a control packet: reserves up to `count` places, lets `fill` fill
    /// them in turn, some at a time, and publishes them. Returns how many, at least one. `fill` is called for places
    /// only that are there, so what it puts into a packet is on its way. The link fills in the header's stamp and
    /// source, or asks `fill` by the [`Placement`] to add them. Packets of one sender to one receiver stay
    /// in order. Those of one call the link may join to long packets, of several slots.
    fn write(&mut self, to: PeerId, count: u32, fill: impl Fill) -> Result<u32, WriteError>;

    /// Takes the next packet that has come.
    fn retrieve(&mut self) -> Option<Arrival>;

    /// The same as [`retrieve`](Self::retrieve), into a place of the caller's, which saves two copies of the packet.
    /// Returns whether a packet has come.
    #[inline]
    fn retrieve_into(&mut self, place: &mut Arrival) -> bool {
        match self.retrieve() {
            Some(arrival) => {
                *place = arrival;
                true
            }
            None => false,
        }
    }

    /// Takes the slots behind the first of a long packet, whose header this is, before the next packet is retrieved:
    /// puts their payload into `into`, and returns the last, on which credits may ride. `None`: they are not what a
    /// correct peer writes, or there are none, or more than `into` has room for. A link that writes no long packets
    /// retrieves none.
    fn retrieve_following(&mut self, _first: &Header, _into: &mut [[u8; PAYLOAD_BYTES]]) -> Option<Packet> {
        None
    }

    /// Does what flow control wants done with the buffers that are posted for messages to us. Links that keep none have
    /// nothing to do: then no scheme posts any.
    fn post(&mut self, _posting: Posting) {}

    /// What has happened since the last call. Transfers that ended are told even if nothing is retrieved.
    fn poll_event(&mut self) -> Option<LinkEvent>;

    /// Whether neither [`retrieve`](Self::retrieve) nor [`poll_event`](Self::poll_event) would have anything now, asked
    /// in their place by an endpoint that has nothing to do. `false`: it is to ask them. What nobody signals, such as
    /// the death of a peer, is looked for by these two after a number of polls, of which this is one.
    #[inline]
    fn is_quiet(&mut self) -> bool {
        false
    }

    /// The window that we set aside for the unmatched messages of each sender, for peers to know: a number of bytes, a
    /// multiple of eight. In its last three bits the endpoint says how long other messages may be that it has to put
    /// together. Called once, before peers can ask.
    fn tell_window(&mut self, _told: u32) {}

    /// The same for newcomers: peers at this place of our table and behind it. Called after
    /// [`tell_window`](Self::tell_window), before peers can ask, if newcomers have less.
    fn tell_newcomers(&mut self, _first: PeerId, _told: u32) {}

    /// From now on `open` peers may have places in our table, the first, and in the end as many as `most`. Called for
    /// the first time before peers can ask, if fewer are open then than the link was made for, and again when more are
    /// opened. From when on few are free the link says so, as long as more may be opened
    /// ([`LinkEvent::PlacesLow`]): once with every peer that comes, or now and then.
    fn open_places(&mut self, _open: u32, _most: u32) {}

    /// What `peer` has told us by [`tell_window`](Self::tell_window), or by [`tell_newcomers`](Self::tell_newcomers).
    /// `None`: as much as we. `Some(0)`: that cannot be found out now, but later. May connect.
    fn window(&mut self, _peer: PeerId) -> Option<u32> {
        None
    }

    /// Whether nothing that is written to `peer` leaves before the peer has answered us for the first time. That takes
    /// progress on both sides.
    fn must_greet(&mut self, _peer: PeerId) -> bool {
        false
    }

    /// Drops all packets of a peer from now on, although it lives: it has broken the protocol. Its departure is still
    /// reported. Returns who it is, for people.
    fn quarantine(&mut self, peer: PeerId) -> String;

    /// The endpoint keeps nothing more of a departed peer, or wants nothing of a stranger: as soon as that peer writes
    /// no more, its place may go to another. A peer that lives is told that nobody reads what it writes.
    fn release(&mut self, peer: PeerId);

    /// The page of counters of this endpoint.
    fn counters(&self) -> &crate::Counters;

    /// Receive memory, in bytes, that the link takes besides the mailbox itself.
    fn bookkeeping_bytes(_flow: &tidegate_flow::Config) -> usize {
        0
    }
}
