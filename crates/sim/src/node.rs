//! [`Node`]: the network interface that the processes of a node share.
//!
//! It takes the packets that processes have written, one after the other and in turn, into the network, and packets
//! that arrive into mailboxes. Each costs it some time; where both cross one host interface they take turns. A packet
//! for a mailbox without room stays where it is, and everything behind it waits (P §2).

use std::collections::VecDeque;

use crate::Time;
use crate::flight::{NodeId, Rank};

/// Which way packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Out,
    In,
}

/// The interface of one node.
#[derive(Debug)]
pub(crate) struct Node {
    pub id: NodeId,
    /// The rank of the node's first process.
    pub first: u32,
    /// When each source's next packet is ready. The sources are the node's processes and, last, bulk data of all of
    /// them.
    ready: Vec<Time>,
    /// The sources that have packets, in the order of their turns.
    waiting: VecDeque<u32>,
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
            ready: vec![Time::NEVER; processes as usize + 1],
            waiting: VecDeque::new(),
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
        self.ready.len() - 1
    }

    /// A source has packets, the first of them at `ready`. The source of bulk data may have some already.
    #[inline]
    pub fn add_source(&mut self, source: usize, ready: Time) {
        let known = &mut self.ready[source];
        if *known == Time::NEVER {
            self.waiting.push_back(source as u32);
        }
        *known = ready.min(*known);
    }

    /// The first waiting source, in the order of turns, whose packet is ready: its place among those that wait, and the
    /// source.
    #[inline]
    pub fn next_source(&self, now: Time) -> Option<(usize, usize)> {
        let place = self.waiting.iter().position(|&source| self.ready[source as usize] <= now)?;
        Some((place, self.waiting[place] as usize))
    }

    /// The source at this place had its turn. `next` is when its next packet is ready; [`Time::NEVER`] if it has none.
    #[inline]
    pub fn pass_turn(&mut self, place: usize, next: Time) {
        let Some(source) = self.waiting.remove(place) else { return };
        self.ready[source as usize] = next;
        if next < Time::NEVER {
            self.waiting.push_back(source);
        }
    }

    /// Whether the interface can take a packet this way.
    #[inline]
    pub fn is_free(&self, direction: Direction, now: Time) -> bool {
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
        // A packet that is ready before the interface is free has to wait for it, so no source can be earlier than
        // `free_at`.
        let free_at = self.free_at[Direction::Out as usize];
        let mut outgoing = Time::NEVER;
        for &source in &self.waiting {
            outgoing = outgoing.min(self.ready[source as usize].max(free_at));
            if outgoing == free_at {
                break;
            }
        }
        incoming.min(outgoing)
    }
}
