//! [`ReceiveQueues`]: the buffers that a receiver has posted, and who gets them.
//!
//! With a queue for each connection (L) nobody takes another's buffers. A pool (A) serves whoever comes first, as
//! InfiniBand's shared receive queue does. So that nobody is refused for ever there, it has one buffer more than its
//! window, which only those get who were refused `refusals_most` times: [`Spare`], a rule beyond the paper.
//!
//! Where buffers are the slots of one pool ([`SlotPool`]), a sender that was refused is invited when there is one.
//!
//! Invariants: posted + taken = the buffers that the scheme has asked for, per connection; in a pool posted ≤ window
//! and posted + spare + taken ≤ bound.

use super::arrived::Arrived;
use super::slot_pool::SlotPool;
use super::spare::Spare;
use crate::buffers::limit_of;
use crate::{Buffers, Initial, PeerId, Peers, ReceiverResource, SchemeName};

/// What the receiving scheme wants done with buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Posting {
    /// A message of this peer was processed: its buffer is posted again. (In a pool only if fewer buffers are posted
    /// than the window says; else it is free memory again.)
    Again(PeerId),
    /// A message of this peer was processed, and its buffer is not posted again: the connection has one fewer.
    Withdrawn(PeerId),
    /// So many buffers more for messages of this peer.
    More(PeerId, u32),
    /// In a pool: so many buffers are to be posted, and an event is wanted when fewer than the limit are left.
    Window {
        /// The window.
        buffers: u32,
        /// The limit.
        limit: u32,
    },
}

impl Posting {
    /// The peer whose messages' buffers it is about.
    pub fn peer(self) -> Option<PeerId> {
        match self {
            Posting::Again(peer) | Posting::Withdrawn(peer) | Posting::More(peer, _) => Some(peer),
            Posting::Window { .. } => None,
        }
    }

    /// The same where its peer is called so.
    pub fn of_peer(self, peer: PeerId) -> Posting {
        match self {
            Posting::Again(_) => Posting::Again(peer),
            Posting::Withdrawn(_) => Posting::Withdrawn(peer),
            Posting::More(_, buffers) => Posting::More(peer, buffers),
            Posting::Window { .. } => self,
        }
    }
}

/// The posted buffers of one connection; of a pool only what is taken.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Connection {
    posted: u32,
    /// Buffers whose messages have not been processed.
    taken: u32,
    /// The number of the message that is expected next.
    expected: u32,
    /// How often that was refused since the last message that was accepted. Counted in a pool, as far as matters.
    refusals: u32,
}

impl Initial for Connection {
    /// Buffers posted for each connection.
    type Config = u32;

    fn initial(&posted: &u32, _: PeerId) -> Self {
        Connection { posted, taken: 0, expected: 0, refusals: 0 }
    }
}

/// A pool of buffers for all peers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Pool {
    posted: u32,
    /// Buffers of all peers whose messages have not been processed.
    taken: u32,
    window: u32,
    limit: u32,
    /// Whether an event is wanted.
    is_armed: bool,
    /// The event has happened, and nobody has been told.
    is_event_due: bool,
    bound: u32,
    refusals_most: u32,
    /// The buffer for those who were refused so often.
    spare: Spare,
}

impl Pool {
    fn new(buffers: &Buffers) -> Self {
        Pool {
            posted: buffers.pool_first,
            taken: 0,
            window: buffers.pool_first,
            limit: limit_of(buffers.pool_first),
            is_armed: true,
            is_event_due: false,
            bound: buffers.pool_bound(),
            refusals_most: buffers.refusals_most,
            spare: Spare::default(),
        }
    }

    /// Whether a message of `from` gets a buffer.
    fn take(&mut self, from: PeerId, connection: &mut Connection) -> bool {
        let was_refused_too_often = connection.refusals == self.refusals_most;
        if self.posted > 0 {
            self.posted -= 1;
            if was_refused_too_often {
                self.spare.note_ended(from);
            }
            self.note_low();
        } else if !was_refused_too_often {
            connection.refusals += 1;
            if connection.refusals == self.refusals_most {
                self.spare.note_refused(from);
            }
            return false;
        } else if !self.spare.take(from) {
            return false;
        }
        connection.refusals = 0;
        self.taken += 1;
        true
    }

    /// A buffer was taken: an event is due if fewer than the limit are left.
    fn note_low(&mut self) {
        if self.is_armed && self.posted < self.limit {
            self.is_armed = false;
            self.is_event_due = true;
        }
    }

    /// So many taken buffers are free again: the first is the spare one, if that was taken; the others are posted, as
    /// many of them as the window has room for.
    fn return_taken(&mut self, buffers: u32) {
        self.taken -= buffers;
        let buffers = buffers - u32::from(buffers > 0 && self.spare.put_back());
        self.posted += buffers.min(self.window.saturating_sub(self.posted));
    }

    /// Buffers that nobody has taken.
    fn free(&self) -> u32 {
        self.posted + u32::from(self.spare.is_there())
    }

    fn set_window(&mut self, window: u32, limit: u32) {
        (self.window, self.limit, self.is_armed) = (window, limit, true);
        let missing = window.saturating_sub(self.posted);
        self.posted += missing.min(self.bound.saturating_sub(self.free() + self.taken));
    }
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReceiveQueues {
    connections: Peers<Connection>,
    pool: Option<Pool>,
    slots: Option<SlotPool>,
}

impl ReceiveQueues {
    /// The buffers posted at the start, for `peers` peers; `None`: the scheme posts none.
    pub fn new(scheme: SchemeName, peers: u32, buffers: &Buffers) -> Option<Self> {
        let (per_connection, pool, slots) = match scheme.lends() {
            ReceiverResource::Buffers | ReceiverResource::CreditedBuffers | ReceiverResource::GrowingBuffers => {
                (buffers.per_connection, None, None)
            }
            ReceiverResource::PoolBuffers => (0, Some(Pool::new(buffers)), None),
            ReceiverResource::PoolSlots => (0, None, Some(SlotPool::new(peers, buffers.pool_slots))),
            ReceiverResource::Nothing | ReceiverResource::FixedSlots | ReceiverResource::MovingSlots => return None,
        };
        Some(ReceiveQueues { connections: Peers::new(peers, per_connection), pool, slots })
    }

    /// Takes a buffer for a message of `from`, if one is posted. Returns whether.
    pub fn take(&mut self, from: PeerId) -> bool {
        if let Some(slots) = &mut self.slots {
            return slots.take(from, 0);
        }
        let connection = self.connections.of(from);
        let has_taken = match &mut self.pool {
            Some(pool) => pool.take(from, connection),
            None if connection.posted > 0 => {
                connection.posted -= 1;
                true
            }
            None => false,
        };
        connection.taken += u32::from(has_taken);
        has_taken
    }

    /// The message of this number has come from `from`.
    pub fn handle_arrival(&mut self, from: PeerId, number: u32) -> Arrived {
        if let Some(slots) = &mut self.slots {
            return slots.handle_arrival(from, number as u16, 0);
        }
        if self.connections.of(from).expected != number {
            return Arrived::Dropped;
        }
        if !self.take(from) {
            return Arrived::Refused;
        }
        let connection = self.connections.of(from);
        connection.expected = connection.expected.wrapping_add(1);
        Arrived::Accepted
    }

    /// Does what the receiving scheme wants. More buffers than were taken of a peer are not processed, whatever its
    /// packets say.
    pub fn post(&mut self, posting: Posting) {
        match posting {
            Posting::Again(peer) => {
                let connection = self.connections.of(peer);
                let Some(taken) = connection.taken.checked_sub(1) else { return };
                connection.taken = taken;
                match &mut self.pool {
                    Some(pool) => pool.return_taken(1),
                    None => connection.posted += 1,
                }
            }
            Posting::Withdrawn(peer) => {
                let connection = self.connections.of(peer);
                connection.taken = connection.taken.saturating_sub(1);
            }
            Posting::More(peer, buffers) => self.connections.of(peer).posted += buffers,
            Posting::Window { buffers, limit } => {
                if let Some(pool) = &mut self.pool {
                    pool.set_window(buffers, limit);
                }
            }
        }
    }

    /// Whether fewer buffers are left in the pool than the limit since the last time that this said so: the scheme is
    /// to be told, by [`handle_limit_reached`](crate::FlowControl::handle_limit_reached).
    pub fn poll_limit_reached(&mut self) -> bool {
        self.pool.as_mut().is_some_and(|pool| std::mem::take(&mut pool.is_event_due))
    }

    /// A peer is gone, and all its messages were processed: what it took and never filled is posted again.
    pub fn forget(&mut self, peer: PeerId) {
        if let Some(slots) = &mut self.slots {
            return slots.forget(peer);
        }
        let taken = self.connections.forget(peer).map_or(0, |connection| connection.taken);
        if let Some(pool) = &mut self.pool {
            pool.return_taken(taken);
            pool.spare.note_ended(peer);
        }
    }

    /// The pool of slots, where buffers are that.
    pub fn slots(&self) -> Option<&SlotPool> {
        self.slots.as_ref()
    }

    /// The pool of slots, to tell what was retrieved and to ask who is invited.
    pub fn slots_mut(&mut self) -> Option<&mut SlotPool> {
        self.slots.as_mut()
    }

    /// Buffers posted: for messages of this peer, or in the pool.
    pub fn posted(&self, peer: PeerId) -> u32 {
        if let Some(slots) = &self.slots {
            return slots.free();
        }
        match &self.pool {
            Some(pool) => pool.posted,
            None => self.connections.get(peer).map_or(*self.connections.config(), |connection| connection.posted),
        }
    }

    /// Whether the pool's buffer for those who were refused too often is there.
    pub fn has_spare(&self) -> bool {
        self.pool.as_ref().is_some_and(|pool| pool.spare.is_there())
    }

    /// Buffers that this peer has taken and whose messages have not been processed.
    pub fn taken(&self, peer: PeerId) -> u32 {
        self.connections.get(peer).map_or(0, |connection| connection.taken)
    }

    /// How often the message of this peer that is next was refused, counted in a pool up to `refusals_most`.
    pub fn refusals(&self, peer: PeerId) -> u32 {
        self.connections.get(peer).map_or(0, |connection| connection.refusals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PeerId = PeerId(0);
    const B: PeerId = PeerId(1);

    fn pool(first: u32, most: u32, refusals_most: u32) -> ReceiveQueues {
        let scheme = SchemeName::SharedWindow;
        let buffers = Buffers { pool_first: first, pool_most: most, refusals_most, ..Buffers::of(scheme) };
        ReceiveQueues::new(scheme, 2, &buffers).unwrap()
    }

    #[test]
    fn what_is_behind_a_refused_message_is_dropped_until_that_has_come_again() {
        let buffers = Buffers { per_connection: 1, ..Buffers::of(SchemeName::Rnr) };
        let mut queues = ReceiveQueues::new(SchemeName::Rnr, 2, &buffers).unwrap();
        let arrivals = [0, 1, 2].map(|number| queues.handle_arrival(A, number));
        assert_eq!(arrivals, [Arrived::Accepted, Arrived::Refused, Arrived::Dropped]);
        queues.post(Posting::Again(A));
        // A buffer is there again, but the next message is not the one expected.
        assert_eq!(queues.handle_arrival(A, 2), Arrived::Dropped);
        assert_eq!(queues.handle_arrival(B, 0), Arrived::Accepted, "another connection is not touched");
        assert_eq!([1, 2].map(|number| queues.handle_arrival(A, number)), [Arrived::Accepted, Arrived::Refused]);
    }

    #[test]
    fn the_event_comes_once_when_fewer_than_the_limit_are_left() {
        let mut queues = pool(8, 64, 8);
        let events: Vec<_> = (0..8).map(|_| (queues.take(A), queues.poll_limit_reached())).collect();
        assert_eq!(events.iter().position(|&(_, is_event)| is_event), Some(4), "8 − 5 = 3 are fewer than 4");
        assert_eq!(events.iter().filter(|(_, is_event)| *is_event).count(), 1);
        queues.post(Posting::Window { buffers: 16, limit: 8 });
        assert_eq!((queues.posted(A), queues.taken(A)), (16, 8));
        (0..8).for_each(|_| queues.post(Posting::Again(A)));
        assert_eq!((queues.posted(A), queues.taken(A)), (16, 0), "no more than the window are posted");
    }

    #[test]
    fn a_pool_has_a_bound_however_often_it_is_filled() {
        let mut queues = pool(2, 4, 8);
        for _ in 0..100 {
            while queues.take(A) {}
            queues.post(Posting::Window { buffers: 4, limit: 2 });
        }
        assert_eq!((queues.posted(A), queues.has_spare(), queues.taken(A)), (0, false, 9));
    }

    #[test]
    fn a_sender_that_was_refused_too_often_gets_the_spare_buffer_and_others_go_on_meanwhile() {
        let mut queues = pool(1, 1, 3);
        assert!(queues.take(A));
        assert_eq!([(); 3].map(|()| queues.take(B)), [false; 3]);
        queues.post(Posting::Again(A));
        assert!(queues.take(A) && !queues.take(A), "nothing but the spare buffer is kept for the other");
        assert!(queues.take(B) && !queues.has_spare(), "though the pool is empty");
        assert!(!queues.take(B));
        queues.post(Posting::Again(A));
        assert_eq!((queues.posted(A), queues.has_spare()), (0, true), "the next that is free is the spare one");
        queues.post(Posting::Again(B));
        assert_eq!((queues.posted(A), queues.taken(A), queues.taken(B)), (1, 0, 0));
    }

    #[test]
    fn who_has_had_the_spare_buffer_waits_until_all_who_waited_meanwhile_have_had_it() {
        let buffers =
            Buffers { pool_first: 1, pool_most: 1, refusals_most: 1, ..Buffers::of(SchemeName::SharedWindow) };
        let mut queues = ReceiveQueues::new(SchemeName::SharedWindow, 4, &buffers).unwrap();
        let [a, b, c, d] = [0, 1, 2, 3].map(PeerId);
        assert!(queues.take(a));
        assert_eq!([b, c, d].map(|peer| queues.take(peer)), [false; 3]);
        assert!(queues.take(b), "whoever comes first");
        queues.post(Posting::Again(b));
        assert_eq!([(); 2].map(|()| queues.take(b)), [false; 2], "it had its turn");
        assert!(queues.take(d));
        queues.post(Posting::Again(d));
        queues.forget(c);
        assert!(queues.take(b), "nobody else waits any more");
    }

    #[test]
    fn what_a_dead_peer_took_and_never_filled_is_posted_again() {
        let mut queues = pool(2, 2, 1);
        assert!(queues.take(A) && queues.take(A) && !queues.take(A) && queues.take(A) && !queues.take(B));
        queues.post(Posting::Again(A));
        assert_eq!((queues.posted(B), queues.has_spare()), (0, true));
        queues.forget(A);
        assert_eq!((queues.posted(B), queues.taken(A), queues.has_spare()), (2, 0, true));
        queues.forget(B);
        let mut queues = ReceiveQueues::new(SchemeName::Rnr, 2, &Buffers::of(SchemeName::Rnr)).unwrap();
        assert!((0..100).all(|_| queues.take(A)) && !queues.take(A));
        queues.forget(A);
        assert_eq!(queues.posted(A), 100);
    }

    #[test]
    fn a_peer_that_says_it_was_processed_more_often_than_it_took_gains_nothing() {
        let mut queues = pool(2, 4, 8);
        queues.post(Posting::Again(A));
        assert_eq!((queues.posted(A), queues.taken(A)), (2, 0));
        let buffers = Buffers { per_connection: 1, ..Buffers::of(SchemeName::Rnr) };
        let mut queues = ReceiveQueues::new(SchemeName::Rnr, 2, &buffers).unwrap();
        queues.post(Posting::Again(A));
        assert_eq!(queues.posted(A), 1);
    }
}
