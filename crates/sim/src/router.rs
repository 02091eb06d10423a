//! The state of links and of their virtual channels: queues of packets that wait for an output, and link-level credits.
//!
//! **Virtual output queues.** A packet waits for nothing but its own output: each router keeps a queue for every
//! input and output channel. Those of one output channel that are not empty take turns, one packet each ([`Turns`]),
//! and the channels of a link take turns too: no input starves, and inputs that all want one output get equal shares
//! of it. What the queues of an input hold together is limited by the buffers of that input, so by the credits of the
//! router before.
//!
//! **Credits without events.** An output may send when a buffer of the next input is free: it holds a credit. The
//! moment at which a credit comes back is known as soon as the packet leaves that buffer, so it is written down at
//! once in the ring of [`Credits`], and the output looks at it when it next has something to send. Only an output
//! that waits for a credit needs an event. That saves one event in two.

use crate::Time;
use crate::flight::{NONE, Place};

/// The free buffers of one virtual channel at a link's far end: for each, since when its credit is back at the near
/// end.
///
/// The numbers have 32 bits each: of shorter ones the compiler loads two at once, which has to wait for a store to one
/// of them.
#[derive(Clone, Debug)]
pub(crate) struct Credits {
    /// Where this ring starts in [`CreditRings`].
    base: u32,
    first: u32,
    free: u32,
    capacity: u32,
    /// When the credit given back last is there: none may overtake it.
    last: Time,
}

/// The memory of all rings, in one piece.
#[derive(Debug, Default)]
pub(crate) struct CreditRings(Vec<Time>);

impl CreditRings {
    /// A ring with `capacity` credits, all there from the start.
    pub fn add(&mut self, capacity: u16) -> Credits {
        let base = self.0.len() as u32;
        self.0.resize(self.0.len() + usize::from(capacity), Time::ZERO);
        let capacity = u32::from(capacity);
        Credits { base, first: 0, free: capacity, capacity, last: Time::ZERO }
    }

    pub fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<Time>()
    }
}

impl Credits {
    /// When the next credit is there; `None` if the far end has not freed any.
    #[inline]
    pub fn next_at(&self, rings: &CreditRings) -> Option<Time> {
        (self.free > 0).then(|| rings.0[self.slot(0)])
    }

    /// Whether a credit is there now.
    #[inline]
    pub fn ready(&self, rings: &CreditRings, now: Time) -> bool {
        // When the credit given back last is there, all are.
        self.free > 0 && (self.last <= now || rings.0[self.slot(0)] <= now)
    }

    /// Spends the next credit.
    #[inline]
    pub fn spend(&mut self) {
        debug_assert!(self.free > 0);
        self.free -= 1;
        self.first = if self.first + 1 == self.capacity { 0 } else { self.first + 1 };
    }

    /// A credit that is there from `at` on, but not before those that came back earlier: the wire keeps their order.
    #[inline]
    pub fn give_back(&mut self, rings: &mut CreditRings, at: Time) {
        debug_assert!(self.free < self.capacity);
        self.last = self.last.max(at);
        let slot = self.slot(self.free);
        rings.0[slot] = self.last;
        self.free += 1;
    }

    /// Buffers that the far end has not freed.
    pub fn occupied(&self) -> u32 {
        self.capacity - self.free
    }

    #[inline]
    fn slot(&self, index: u32) -> usize {
        let position = self.first + index;
        (self.base + if position >= self.capacity { position - self.capacity } else { position }) as usize
    }
}

/// Packets in order, linked through their [`Place`]s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    pub head: u32,
    tail: u32,
}

impl Queue {
    pub const EMPTY: Queue = Queue { head: NONE, tail: NONE };

    #[inline]
    pub fn is_empty(self) -> bool {
        self.head == NONE
    }

    #[inline]
    pub fn push(&mut self, places: &mut [Place], packet: u32) {
        places[packet as usize].next = NONE;
        if self.head == NONE {
            self.head = packet;
        } else {
            places[self.tail as usize].next = packet;
        }
        self.tail = packet;
    }

    #[inline]
    pub fn pop(&mut self, places: &[Place]) -> Option<u32> {
        let packet = self.head;
        if packet == NONE {
            return None;
        }
        self.head = places[packet as usize].next;
        Some(packet)
    }

    /// The packets, first to last.
    pub fn iter(self, places: &[Place]) -> impl Iterator<Item = u32> {
        let following = |&packet: &u32| Some(places[packet as usize].next).filter(|&next| next != NONE);
        std::iter::successors(Some(self.head).filter(|&head| head != NONE), following)
    }
}

/// Packets that came by one input and are to leave by one channel, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VirtualOutputQueue {
    packets: Queue,
    /// The queue whose turn comes after this one.
    next: u32,
}

impl VirtualOutputQueue {
    pub const EMPTY: VirtualOutputQueue = VirtualOutputQueue { packets: Queue::EMPTY, next: NONE };
}

/// The queues of one output channel: those with packets stand in line, and who was served goes to the end of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turns {
    /// Where the queues of this channel start, one for each input.
    base: u32,
    first: u32,
    last: u32,
}

impl Turns {
    /// None in line; the queues start at `base`.
    pub fn new(base: u32) -> Self {
        Turns { base, first: NONE, last: NONE }
    }

    /// Whether no packet waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// Queues a packet that came by `input`.
    #[inline]
    pub fn push(&mut self, queues: &mut [VirtualOutputQueue], places: &mut [Place], input: u32, packet: u32) {
        let index = self.base + input;
        let packets = &mut queues[index as usize].packets;
        let joins = packets.is_empty();
        packets.push(places, packet);
        if joins {
            self.line_up(queues, index);
        }
    }

    /// Takes the packet whose turn it is.
    #[inline]
    pub fn pop(&mut self, queues: &mut [VirtualOutputQueue], places: &[Place]) -> Option<u32> {
        let index = self.first;
        if index == NONE {
            return None;
        }
        let queue = &mut queues[index as usize];
        let packet = queue.packets.pop(places);
        self.first = queue.next;
        if !queue.packets.is_empty() {
            self.line_up(queues, index);
        }
        packet
    }

    #[inline]
    fn line_up(&mut self, queues: &mut [VirtualOutputQueue], index: u32) {
        queues[index as usize].next = NONE;
        if self.first == NONE {
            self.first = index;
        } else {
            queues[self.last as usize].next = index;
        }
        self.last = index;
    }
}

/// One virtual channel of a link, seen from the router that sends into it.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    /// Packets in this router that are to leave by it.
    pub waiting: Turns,
    /// Buffers at the far end.
    pub credits: Credits,
    /// Whether the next credit given back has to wake the link: a packet waits, and no credit is on its way.
    pub starved: bool,
}

/// What a link leads to, and so which numbers apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkKind {
    /// To another router.
    Hop,
    /// To the network interface of a node.
    Extraction,
    /// To nothing: never used.
    Edge,
}

/// One direction of a link, seen from the router that sends into it. Its channels are in the network's own array.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    /// When the last packet's end has left.
    pub free_at: Time,
    /// When it is next to look for something to send; [`Time::NEVER`] if no event is under way.
    pub wake_at: Time,
    /// The sum of the times that its packets took.
    pub busy: Time,
    /// Packets sent.
    pub carried: u64,
    /// Packets in the queues of its channels.
    pub waiting: u32,
    /// The router, or the node, at the far end.
    pub far_end: u32,
    /// Which of the far router's inputs it is.
    pub input: u32,
    pub kind: LinkKind,
    /// The channel whose turn it is.
    pub turn: u8,
}
