//! What travels: [`Flight`], one packet on its way between two processes, and the pool that holds all that are under
//! way.

use std::fmt;

use tidegate_flow::PAYLOAD_BYTES;

use crate::parcel::Parcel;

/// A node: what sits behind one network interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// A process of the simulated application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(pub u32);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.0)
    }
}

/// What an adapter says of a packet, under schemes whose receivers post buffers. 32 bits, which fit into what would be
/// a gap in a [`Flight`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(u32);

/// What a [`Label`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Labelled {
    /// Nothing.
    Plain,
    /// A packet of this number for a pool of slots, with others behind it, perhaps to be acknowledged.
    Slot { number: u16, behind: u32, wants_answer: bool },
    /// The packet belongs to the message of this number, and perhaps begins it.
    Message { number: u32, is_first: bool },
    /// The packet says that the message of this number was refused.
    Refusal { number: u32 },
    /// The packet says that this number of slots is kept for refused packets.
    Invitation { slots: u32 },
    /// The packet says that all packets before this number were accepted.
    Acknowledgement { before: u16 },
}

impl Label {
    /// Nothing.
    pub const NONE: Label = Label(0);
    /// Numbers of messages begin anew after so many.
    const NUMBERS: u32 = 1 << 29;
    /// Those of packets for a pool of slots are shorter; the other bits say how many are behind.
    const SLOTS: u32 = 1 << 16;

    pub(crate) fn packet(number: u32, is_first: bool) -> Label {
        Label(((1 + u32::from(is_first)) * Label::NUMBERS) + number % Label::NUMBERS)
    }

    pub(crate) fn refusal(number: u32) -> Label {
        Label(3 * Label::NUMBERS + number % Label::NUMBERS)
    }

    pub(crate) fn invitation(slots: u32) -> Label {
        Label(4 * Label::NUMBERS + slots.min(Label::NUMBERS - 1))
    }

    pub(crate) fn acknowledgement(before: u16) -> Label {
        Label(5 * Label::NUMBERS + u32::from(before))
    }

    pub(crate) fn slot(number: u16, behind: u32, wants_answer: bool) -> Label {
        let behind = behind.min(Label::NUMBERS / Label::SLOTS - 1);
        Label((6 + u32::from(wants_answer)) * Label::NUMBERS + behind * Label::SLOTS + u32::from(number))
    }

    #[inline]
    pub(crate) fn read(self) -> Labelled {
        let number = self.0 % Label::NUMBERS;
        match self.0 / Label::NUMBERS {
            0 => Labelled::Plain,
            3 => Labelled::Refusal { number },
            4 => Labelled::Invitation { slots: number },
            5 => Labelled::Acknowledgement { before: number as u16 },
            kind @ (6 | 7) => {
                let (number, behind) = (number as u16, number / Label::SLOTS);
                Labelled::Slot { number, behind, wants_answer: kind == 7 }
            }
            kind => Labelled::Message { number, is_first: kind == 2 },
        }
    }
}

/// One packet under way.
///
/// It is written into a pool when it enters the network and read when it leaves; between the two only its index moves.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// What arrives in the mailbox.
    pub parcel: Parcel,
    /// The node it leaves.
    pub from: NodeId,
    /// The node it goes to.
    pub to: NodeId,
    /// The process that sends.
    pub source: Rank,
    /// The process whose mailbox it is for.
    pub destination: Rank,
    /// Bytes of bulk data (P §2: RMA) that the packet carries on the wire, in addition to its payload; 0 for a packet
    /// of a mailbox. The packet takes one buffer whatever its size, so this should be at most a frame of the network
    /// that is simulated.
    pub bulk_bytes: u32,
    /// What adapters say of it.
    pub label: Label,
}

const _: () = assert!(size_of::<Flight>() == 40);

impl Flight {
    /// Bytes of payload on the wire: those in use, all of them if credits ride at the end (P §5.4), and bulk data.
    #[inline]
    #[must_use]
    pub fn payload_bytes(&self) -> u32 {
        let header = self.parcel.header;
        let own = if header.has_piggyback() { PAYLOAD_BYTES } else { header.length() };
        own as u32 + self.bulk_bytes
    }
}

/// Where a packet is, in the few words that each hop touches. The [`Flight`] itself is read only when the packet leaves
/// the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The next packet in the queue this one waits in, or the next free entry of the pool.
    pub next: u32,
    /// The channel whose buffer it occupies.
    pub held: u32,
    /// The router it is in, or comes to next.
    pub router: u32,
    /// By which of that router's inputs.
    pub input: u32,
    /// The node it goes to.
    pub to: u32,
    /// Its size on the wire.
    pub wire_bytes: u32,
}

/// No packet: the end of a queue.
pub(crate) const NONE: u32 = u32::MAX;

/// All packets under way, by index. Entries are used again, last freed first, while they are still in the cache.
#[derive(Debug)]
pub(crate) struct Pool {
    flights: Vec<Flight>,
    pub places: Vec<Place>,
    free: u32,
    in_use: usize,
}

impl Pool {
    pub fn new() -> Self {
        Pool { flights: Vec::new(), places: Vec::new(), free: NONE, in_use: 0 }
    }

    /// Stores `flight`, to be at `place`, and returns its index.
    #[inline]
    pub fn insert(&mut self, flight: Flight, place: Place) -> u32 {
        self.in_use += 1;
        if self.free == NONE {
            self.flights.push(flight);
            self.places.push(place);
            return (self.flights.len() - 1) as u32;
        }
        let index = self.free;
        self.free = self.places[index as usize].next;
        self.flights[index as usize] = flight;
        self.places[index as usize] = place;
        index
    }

    /// Takes a packet out; its index may be used again from now on.
    #[inline]
    pub fn remove(&mut self, index: u32) -> Flight {
        self.in_use -= 1;
        self.places[index as usize].next = self.free;
        self.free = index;
        self.flights[index as usize]
    }

    #[inline]
    pub fn get(&self, index: u32) -> &Flight {
        &self.flights[index as usize]
    }

    /// Packets stored.
    pub fn in_use(&self) -> usize {
        self.in_use
    }

    /// Bytes of heap.
    pub fn heap_bytes(&self) -> usize {
        self.flights.capacity() * size_of::<Flight>() + self.places.capacity() * size_of::<Place>()
    }
}
