//! [`Node`]: the network interface that the processes of a node share.
//!
//! It takes the packets that processes have written, one after the other and in turn, into the network, and packets
//! that arrive into mailboxes. Each costs it some time; where both cross one host interface they take turns. A packet
//! for a mailbox without room stays where it is, and everything behind it waits (P §2).

use crate::Time;
use crate::flight::{Flight, Label, NodeId, Rank};
use crate::outbox::Train;

/// Which way packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Out,
    In,
}

/// A source that has packets to send.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// When the first of them is ready.
    ready: Time,
    /// Of the sources whose packets are ready, the one with the lowest turn goes first.
    turn: u64,
    source: u32,
}

/// The interface of one node.
#[derive(Debug)]
pub(crate) struct Node {
    pub id: NodeId,
    /// The rank of the node's first process.
    pub first: u32,
    /// When each source's next packet is ready; [`Time::NEVER`] if it has none. The sources are the node's processes
    /// and, behind them, bulk data of all of them, and the queues of the node's adapter.
    ready: Vec<Time>,
    /// The sources that have packets, the one whose packet is ready first at the end. Mostly none or one of them is
    /// ready.
    waiting: Vec<Waiting>,
    /// When the first of all packets is ready.
    earliest: Time,
    /// The turn of the source that gets one next.
    next_turn: u64,
    /// The packets of each process that are next to leave, and the node that they go to. Those of a source that does
    /// not wait have left.
    trains: Vec<(Train, NodeId)>,
    /// When the interface can work again, by direction.
    free_at: [Time; 2],
    is_shared: bool,
    /// Whether the direction that was served last goes out.
    last: Direction,
    /// The network has refused a packet and will say when to try again.
    pub refused: bool,
    /// The process whose mailbox has no room for the next packet.
    pub full: Option<Rank>,
    /// When the node is served next.
    pub wake_at: Time,
    /// Packets passed on, by direction.
    passed: [u64; 2],
}

impl Node {
    /// The idle interface of `processes` processes from the rank `first` on.
    pub fn new(id: NodeId, first: u32, processes: u32, is_shared: bool) -> Self {
        Node {
            id,
            first,
            ready: vec![Time::NEVER; processes as usize + 2],
            waiting: Vec::new(),
            earliest: Time::NEVER,
            next_turn: 0,
            trains: vec![(Train::none(), id); processes as usize],
            free_at: [Time::ZERO; 2],
            is_shared,
            last: Direction::In,
            refused: false,
            full: None,
            wake_at: Time::NEVER,
            passed: [0; 2],
        }
    }

    /// The place of bulk data among the sources.
    pub fn bulk_source(&self) -> usize {
        self.ready.len() - 2
    }

    /// The place of the adapter among the sources.
    pub fn adapter_source(&self) -> usize {
        self.ready.len() - 1
    }

    /// A source has packets, the first of them at `ready`. The source of bulk data may have some already.
    #[inline]
    pub fn add_source(&mut self, source: usize, ready: Time) {
        let known = self.ready[source];
        if known <= ready {
            return;
        }
        let turn = match self.waiting.iter().position(|waiting| waiting.source as usize == source) {
            Some(place) => self.waiting.remove(place).turn,
            None => self.take_turn(),
        };
        self.line_up(source, turn, ready);
    }

    /// The turn behind all others.
    #[inline]
    fn take_turn(&mut self) -> u64 {
        self.next_turn += 1;
        self.next_turn
    }

    /// Puts a source among those that wait.
    #[inline]
    fn line_up(&mut self, source: usize, turn: u64, ready: Time) {
        self.ready[source] = ready;
        let place = self.waiting.partition_point(|waiting| waiting.ready > ready);
        self.waiting.insert(place, Waiting { ready, turn, source: source as u32 });
        self.note_earliest();
    }

    #[inline]
    fn note_earliest(&mut self) {
        self.earliest = self.waiting.last().map_or(Time::NEVER, |first| first.ready);
    }

    /// Whether a source has packets.
    #[inline]
    pub fn is_waiting(&self, source: usize) -> bool {
        self.ready[source] < Time::NEVER
    }

    /// When the next packet of a source is ready.
    #[inline]
    pub fn ready(&self, source: usize) -> Time {
        self.ready[source]
    }

    /// Keeps the packets of a process that are next to leave, for the node `to`.
    #[inline]
    pub fn keep_train(&mut self, source: usize, train: Train, to: NodeId) {
        self.trains[source] = (train, to);
    }

    /// The packets of a process that are next to leave, if it has any.
    pub fn train(&self, source: usize) -> Option<&Train> {
        self.is_waiting(source).then(|| &self.trains[source].0)
    }

    /// The next packet of a process.
    #[inline]
    pub fn next_flight(&self, source: usize) -> Option<Flight> {
        let (train, to) = self.trains.get(source)?;
        let rank = Rank(self.first + source as u32);
        Some(Flight {
            parcel: train.parcel,
            from: self.id,
            to: *to,
            source: rank,
            destination: train.to,
            bulk_bytes: 0,
            label: Label::NONE,
        })
    }

    /// A packet of a process has left. Returns when the next of its train is ready, if there is one.
    #[inline]
    pub fn take_packet(&mut self, source: usize) -> Option<Time> {
        let train = &mut self.trains[source].0;
        train.pop_front().then_some(train.ready)
    }

    /// Whether a packet of a source can go into the network, as far as the node knows.
    #[inline]
    pub fn can_pass_out(&self, now: Time) -> bool {
        self.earliest <= now && self.is_free(Direction::Out, now) && !self.refused
    }

    /// Whether a packet can come out of the network, as far as the node knows.
    #[inline]
    pub fn can_pass_in(&self, now: Time) -> bool {
        self.is_free(Direction::In, now) && self.full.is_none()
    }

    /// Of the sources that have a packet ready, the one whose turn it is: its place among those that wait, and the
    /// source.
    #[inline]
    pub fn next_source(&self, now: Time) -> Option<(usize, usize)> {
        let ready = self.waiting.iter().enumerate().rev().take_while(|(_, waiting)| waiting.ready <= now);
        let (place, next) = ready.min_by_key(|(_, waiting)| waiting.turn)?;
        Some((place, next.source as usize))
    }

    /// The source at this place had its turn. `next` is when its next packet is ready; [`Time::NEVER`] if it has none.
    #[inline]
    pub fn pass_turn(&mut self, place: usize, next: Time) {
        let source = self.waiting.remove(place).source;
        if next < Time::NEVER {
            let turn = self.take_turn();
            self.line_up(source as usize, turn, next);
        } else {
            self.ready[source as usize] = next;
            self.note_earliest();
        }
    }

    /// Whether the interface can take a packet this way.
    #[inline]
    fn is_free(&self, direction: Direction, now: Time) -> bool {
        self.free_at[direction as usize] <= now
    }

    /// The direction to look at first: the one that did not have the last turn.
    #[inline]
    pub fn first_direction(&self) -> Direction {
        match self.last {
            Direction::Out => Direction::In,
            Direction::In => Direction::Out,
        }
    }

    /// The interface is busy for so long with a packet.
    #[inline]
    pub fn occupy(&mut self, direction: Direction, until: Time) {
        self.last = direction;
        self.passed[direction as usize] += 1;
        self.free_at[direction as usize] = until;
        if self.is_shared {
            self.free_at = [until; 2];
        }
    }

    /// Packets passed on this way.
    pub fn passed(&self, direction: Direction) -> u64 {
        self.passed[direction as usize]
    }

    /// When there will be something to do, as far as the node knows. `arrived`: whether a packet waits that has room.
    #[inline]
    pub fn next_work(&self, arrived: bool) -> Time {
        let incoming = if arrived { self.free_at[Direction::In as usize] } else { Time::NEVER };
        if self.refused {
            return incoming;
        }
        // A packet that is ready before the interface is free has to wait for it.
        let outgoing = self.earliest.max(self.free_at[Direction::Out as usize]);
        incoming.min(outgoing)
    }
}
