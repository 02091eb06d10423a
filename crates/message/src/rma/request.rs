//! Requests for remote operations that go by message, bounded at both ends.
//!
//! A request (a piece of a write, a read, an atomic) makes its target keep an answer until it can leave. *The simple
//! idea*, to answer whatever comes, lets an origin that retrieves nothing fill its target's memory. So there is an
//! account per pair and direction, like the window for unmatched messages, and derived from it: an [`answer_cost`]
//! each, as long as a request is not answered. Both ends know the window, so both keep the account:
//!
//! - Q1: unanswered requests cost at most `Limits::answers`, or there is just one. Why: the bound; the smallest window
//!   still lets one through.
//! - Q2: the origin adds a request to the account as it leaves it (or joins the backlog), and takes it off when the
//!   answer has come. Why: never less than what the target sees.
//! - Q3: the target counts answers that have not left and reads that are not through. Why: never more than what the
//!   origin counts; so whoever exceeds the account has broken the protocol, and is quarantined.
//! - Q4: requests beyond the account wait with their origin, in order; a long write gives the others a turn. Why:
//!   nothing is refused or overtaken for ever; atomics keep their order.
//!
//! Nothing waits in a circle: a target retrieves every request that comes, even while its own requests wait.

use crate::account::{ANSWER_BYTES, answer_cost, fits};
use crate::collections::busy_peers::BusyPeers;
use crate::collections::slab::Key;
use crate::egress::{Body, Outgoing, WaitingNote};
use crate::heap::block;
use crate::link::Buffer;
use crate::malformed::{Handled, Malformed};
use crate::wire::Write;
use std::collections::VecDeque;
use tidegate_flow::PeerId;

const _: () = assert!(WaitingNote::BYTES <= ANSWER_BYTES && UnfinishedRead::BYTES <= ANSWER_BYTES);

/// A request that waits until earlier ones are answered.
#[derive(Debug)]
pub(crate) enum Request<B> {
    /// All of it, its operation, and what its answer costs.
    Message(Outgoing<B>, Key, u32),
    Write(WriteRest<B>),
}

/// What is left of a write.
#[derive(Debug)]
pub(crate) struct WriteRest<B> {
    pub(crate) operation: Key,
    /// The target's region, and where in it what is left goes.
    pub(crate) region: u64,
    pub(crate) offset: u64,
    pub(crate) buffer: B,
    pub(crate) position: usize,
    pub(crate) end: usize,
    /// Whether a notice tells the target of the write. If not, the last piece does.
    pub(crate) is_told: bool,
}

impl<B: Buffer> Request<B> {
    pub(crate) fn operation(&self) -> Key {
        match self {
            Request::Message(_, operation, _) => *operation,
            Request::Write(rest) => rest.operation,
        }
    }

    /// The same, with a copy of a body that may change. What is left of a write is not copied: the application keeps
    /// that memory as it is until the operation ends.
    pub(crate) fn owned(mut self) -> Self {
        if let Request::Message(message, ..) = &mut self {
            message.own();
        }
        self
    }
}

impl<B: Buffer> WriteRest<B> {
    /// The next piece, of so many bytes at most, which counts as sent.
    pub(crate) fn next_piece(&mut self, most: usize) -> Outgoing<B> {
        let length = (self.end - self.position).min(most);
        let part = self.buffer.slice(self.position, length);
        let (operation, region, offset) = (self.operation.0, self.region, self.offset);
        self.position += length;
        let whole = (self.is_over() && !self.is_told).then_some(self.end as u64);
        let head = Write { operation, region, offset, whole };
        self.offset = self.offset.saturating_add(length as u64);
        Outgoing::new(head, Body::Borrowed(part), None)
    }

    /// Whether all pieces have been sent.
    pub(crate) fn is_over(&self) -> bool {
        self.position == self.end
    }
}

/// A peer's read whose data has not all left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnfinishedRead {
    /// The reader's name for it.
    pub(crate) operation: u32,
    /// Whether it is the last part of the reader's operation.
    pub(crate) is_last: bool,
    pub(crate) region: u64,
    /// Where the next piece lies in the region.
    pub(crate) offset: u64,
    /// Where it goes in the reader's buffer.
    pub(crate) at: u64,
    /// Bytes that are left.
    pub(crate) left: u64,
}

impl UnfinishedRead {
    /// What one takes: its place in a queue that doubles as it grows. As long as there are few, [`queue_begun`] bounds
    /// what they take.
    ///
    /// [`queue_begun`]: crate::heap::queue_begun
    pub(crate) const BYTES: usize = 2 * size_of::<UnfinishedRead>();
}

/// What waits of one peer's requests for us, and of ours for it.
#[derive(Debug)]
struct Lane<B> {
    /// Ours that wait until earlier ones are answered.
    waiting: VecDeque<Request<B>>,
    /// What those cost that are not answered.
    unanswered: u32,
    /// Its reads that are not through.
    reads: VecDeque<UnfinishedRead>,
    /// How many reads of it are not through, the one whose turn it is included.
    unfinished: u32,
}

impl<B> Lane<B> {
    /// Whether there is nothing between us and the peer.
    fn is_idle(&self) -> bool {
        self.unanswered == 0 && self.unfinished == 0 && self.waiting.is_empty()
    }
}

impl<B> Default for Lane<B> {
    fn default() -> Self {
        Lane { waiting: VecDeque::new(), unanswered: 0, reads: VecDeque::new(), unfinished: 0 }
    }
}

/// Requests in both directions, of all peers.
#[derive(Debug)]
pub(crate) struct Requests<B> {
    lanes: BusyPeers<Lane<B>>,
    /// Peers for which requests of ours wait.
    requesting: VecDeque<PeerId>,
    /// Peers with reads whose data has not all left.
    reading: VecDeque<PeerId>,
}

impl<B: Buffer> Requests<B> {
    /// Most heap bytes of the table of peers.
    pub(super) const fn bytes_most(peers: u32) -> usize {
        BusyPeers::<Lane<B>>::bytes_most(peers)
    }

    /// Heap bytes for each peer whose requests we answer. Those of ours are among the program's operations.
    pub(super) const BYTES_OF_SENDER: usize = BusyPeers::<Lane<B>>::BYTES_EACH;

    pub(super) fn new(peers: u32) -> Self {
        Requests { lanes: BusyPeers::new(peers), requesting: VecDeque::new(), reading: VecDeque::new() }
    }

    #[inline]
    fn of(&mut self, peer: PeerId) -> &mut Lane<B> {
        self.lanes.of(peer)
    }

    #[inline]
    fn lane(&self, peer: PeerId) -> Option<&Lane<B>> {
        self.lanes.get(peer)
    }

    /// Peers whose turn may come: with requests of ours, or with reads of theirs.
    #[inline]
    pub(crate) fn turns(&self) -> usize {
        self.reading.len() + self.requesting.len()
    }

    /// Whether that may be this peer.
    pub(crate) fn has_turn(&self, peer: PeerId) -> bool {
        self.lane(peer).is_some_and(|lane| !lane.waiting.is_empty() || lane.unfinished > 0)
    }

    /// The peers with which there are requests, in order.
    pub(crate) fn peers(&self) -> impl Iterator<Item = PeerId> {
        self.lanes.all().map(|(peer, _)| peer)
    }

    /// Whether one more request of ours that costs so much is within the account (Q1).
    pub(crate) fn fits(&self, to: PeerId, cost: u32, account: u32) -> bool {
        fits(self.unanswered(to), cost, account)
    }

    /// Whether requests of ours wait for a peer.
    pub(crate) fn has_waiting(&self, to: PeerId) -> bool {
        self.waiting(to) > 0
    }

    /// How many requests of ours wait for a peer.
    pub(crate) fn waiting(&self, to: PeerId) -> usize {
        self.lane(to).map_or(0, |lane| lane.waiting.len())
    }

    /// A request of ours leaves, whose answer costs so much (Q2).
    pub(crate) fn charge(&mut self, to: PeerId, cost: u32) {
        self.of(to).unanswered += cost;
    }

    /// A request of ours is answered, for which so much was paid. An answer without a request is refused.
    #[inline]
    pub(crate) fn note_answer(&mut self, from: PeerId, cost: u32) -> Handled {
        let Some(lane) = self.lanes.get_mut(from) else { return if cost == 0 { Ok(()) } else { Err(Malformed) } };
        lane.unanswered = lane.unanswered.checked_sub(cost).ok_or(Malformed)?;
        self.end_if_idle(from);
        Ok(())
    }

    /// Forgets a peer with which nothing is left.
    #[inline]
    fn end_if_idle(&mut self, peer: PeerId) {
        if self.lane(peer).is_some_and(Lane::is_idle) {
            self.lanes.end(peer);
        }
    }

    /// What our unanswered requests cost.
    pub(crate) fn unanswered(&self, to: PeerId) -> u32 {
        self.lane(to).map_or(0, |lane| lane.unanswered)
    }

    /// Lets a request of ours wait until earlier ones are answered (Q4).
    pub(crate) fn wait(&mut self, to: PeerId, request: Request<B>) {
        let waiting = &mut self.of(to).waiting;
        waiting.push_back(request);
        if waiting.len() == 1 {
            self.requesting.push_back(to);
        }
    }

    /// The peers for which requests of ours wait.
    pub(crate) fn requesting(&self) -> impl Iterator<Item = PeerId> {
        self.requesting.iter().copied()
    }

    /// The peer whose requests have their turn, which the caller ends by [`end_turn`](Self::end_turn).
    pub(crate) fn next_turn(&mut self) -> Option<PeerId> {
        self.requesting.pop_front()
    }

    /// How many peers have a turn.
    pub(crate) fn requesters(&self) -> usize {
        self.requesting.len()
    }

    /// A turn has ended: if requests are left, another comes.
    pub(crate) fn end_turn(&mut self, to: PeerId) {
        match self.has_waiting(to) {
            true => self.requesting.push_back(to),
            false => self.end_if_idle(to),
        }
    }

    /// The first request that waits.
    pub(crate) fn first(&self, to: PeerId) -> Option<&Request<B>> {
        self.lane(to)?.waiting.front()
    }

    pub(crate) fn pop(&mut self, to: PeerId) -> Option<Request<B>> {
        self.lanes.get_mut(to)?.waiting.pop_front()
    }

    /// Puts back what is left of a request: behind the others if it had its turn.
    pub(crate) fn put_back(&mut self, to: PeerId, rest: Request<B>, had_its_turn: bool) {
        let waiting = &mut self.of(to).waiting;
        match had_its_turn {
            true => waiting.push_back(rest),
            false => waiting.push_front(rest),
        }
    }

    /// The operations of ours of which something waits.
    pub(crate) fn waiting_operations(&self, to: PeerId) -> Vec<Key> {
        self.lane(to).into_iter().flat_map(|lane| &lane.waiting).map(Request::operation).collect()
    }

    /// What the peer's requests cost that are answered by reads which are not through.
    pub(crate) fn reading_cost(&self, peer: PeerId) -> u32 {
        self.unfinished(peer) * answer_cost(0)
    }

    /// Whether reads of a peer are not through.
    pub(crate) fn is_read_by(&self, peer: PeerId) -> bool {
        self.unfinished(peer) > 0
    }

    /// Gives back what is kept for reads of a peer that has none.
    pub(crate) fn shrink(&mut self, peer: PeerId) {
        if let Some(lane) = self.lanes.get_mut(peer).filter(|lane| lane.unfinished == 0) {
            lane.reads = VecDeque::new();
        }
    }

    fn unfinished(&self, peer: PeerId) -> u32 {
        self.lane(peer).map_or(0, |lane| lane.unfinished)
    }

    /// How many reads of a peer wait for their turn.
    pub(crate) fn reads(&self, peer: PeerId) -> usize {
        self.lane(peer).map_or(0, |lane| lane.reads.len())
    }

    /// Bytes that unfinished reads of the peer have taken of the heap.
    pub(crate) fn read_bytes(&self, peer: PeerId) -> usize {
        block(self.lane(peer).map_or(0, |lane| lane.reads.capacity()) * size_of::<UnfinishedRead>())
    }

    /// Adds a read of a peer. Returns whether it is the only one.
    pub(crate) fn begin_read(&mut self, from: PeerId, read: UnfinishedRead) -> bool {
        let lane = self.of(from);
        lane.unfinished += 1;
        lane.reads.push_back(read);
        let is_first = lane.unfinished == 1;
        if is_first {
            self.reading.push_back(from);
        }
        is_first
    }

    /// The peers with reads that are not through.
    pub(crate) fn readers(&self) -> impl Iterator<Item = PeerId> {
        self.reading.iter().copied()
    }

    /// How many peers have reads that are not through.
    pub(crate) fn reader_count(&self) -> usize {
        self.reading.len()
    }

    /// The peer whose reads have their turn; the next turn is the next one's.
    pub(crate) fn next_reader(&mut self) -> Option<PeerId> {
        let to = self.reading.pop_front()?;
        self.reading.push_back(to);
        Some(to)
    }

    pub(crate) fn pop_read(&mut self, peer: PeerId) -> Option<UnfinishedRead> {
        self.lanes.get_mut(peer)?.reads.pop_front()
    }

    /// A read goes behind the others.
    pub(crate) fn return_read(&mut self, peer: PeerId, read: UnfinishedRead) {
        self.of(peer).reads.push_back(read);
    }

    /// Another read of the same operation of the peer, if one is left, is its last from now on. Returns whether one is.
    pub(crate) fn pass_last(&mut self, peer: PeerId, operation: u32) -> bool {
        let mut left = self.lanes.get_mut(peer).into_iter().flat_map(|lane| &mut lane.reads);
        let other = left.find(|read| read.operation == operation);
        other.is_some_and(|read| {
            read.is_last = true;
            true
        })
    }

    /// A read is over.
    pub(crate) fn end_read(&mut self, peer: PeerId) {
        let lane = self.of(peer);
        lane.unfinished -= 1;
        if lane.unfinished == 0 {
            self.reading.retain(|reader| *reader != peer);
            self.end_if_idle(peer);
        }
    }

    /// A peer is gone: it answers nothing any more, and wants no answers.
    pub(crate) fn lose_peer(&mut self, peer: PeerId) {
        if self.lanes.end(peer) {
            self.requesting.retain(|to| *to != peer);
            self.reading.retain(|reader| *reader != peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bytes;

    const A: PeerId = PeerId(0);
    const B: PeerId = PeerId(1);

    fn write(operation: u32, length: usize) -> Request<Bytes> {
        let buffer = Bytes::new(&vec![1; length]);
        Request::Write(WriteRest {
            operation: Key(operation),
            region: 9,
            offset: 0,
            buffer,
            position: 0,
            end: length,
            is_told: false,
        })
    }

    #[test]
    fn requests_are_paid_for_until_they_are_answered() {
        let mut requests: Requests<Bytes> = Requests::new(2);
        let (cost, account) = (answer_cost(0), 2 * answer_cost(0));
        assert!(requests.fits(A, 100 * cost, account), "a single one always fits");
        (0..2).for_each(|_| requests.charge(A, cost));
        assert!(!requests.fits(A, cost, account) && requests.fits(B, cost, account));
        assert_eq!((requests.note_answer(A, cost), requests.fits(A, cost, account)), (Ok(()), true));
        assert_eq!(requests.note_answer(A, 2 * cost), Err(Malformed), "nobody has asked that much");
    }

    #[test]
    fn peers_and_their_requests_have_turns_in_order() {
        let mut requests = Requests::new(2);
        for (to, operation) in [(A, 1), (B, 2), (A, 3)] {
            requests.wait(to, write(operation, 10));
        }
        assert_eq!(requests.requesting().collect::<Vec<_>>(), [A, B]);
        assert_eq!(requests.next_turn(), Some(A));
        let first = requests.pop(A).expect("it waits");
        requests.put_back(A, first, true);
        assert_eq!(requests.waiting_operations(A), [Key(3), Key(1)], "it had its turn");
        let first = requests.pop(A).expect("it waits");
        requests.put_back(A, first, false);
        assert_eq!(requests.waiting_operations(A), [Key(3), Key(1)], "it had none");
        requests.end_turn(A);
        assert_eq!(requests.requesting().collect::<Vec<_>>(), [B, A]);
        requests.lose_peer(B);
        assert_eq!((requests.requesting().collect::<Vec<_>>(), requests.has_waiting(B)), (vec![A], false));
    }

    #[test]
    fn a_write_is_cut_into_pieces_that_follow_each_other() {
        let Request::Write(mut rest) = write(1, 145) else { unreachable!("it is a write") };
        // The receiver's memory may turn out to have room for longer ones.
        let lengths = [40, 40, 100].map(|most| (rest.next_piece(most).body_bytes(), rest.is_over()));
        assert_eq!((lengths, rest.offset), ([(40, false), (40, false), (65, true)], 145));
    }

    #[test]
    fn reads_count_until_they_are_through() {
        let mut requests: Requests<Bytes> = Requests::new(2);
        let read = UnfinishedRead { operation: 1, is_last: true, region: 9, offset: 0, at: 0, left: 100 };
        assert!(requests.begin_read(A, read) && !requests.begin_read(A, read) && requests.begin_read(B, read));
        let one = requests.pop_read(A).expect("it waits");
        assert_eq!((requests.reads(A), requests.reading_cost(A)), (1, 2 * answer_cost(0)), "its turn counts");
        requests.return_read(A, one);
        assert_eq!(
            [requests.next_reader(), requests.next_reader(), requests.next_reader()],
            [Some(A), Some(B), Some(A)]
        );
        (0..2).for_each(|_| requests.end_read(A));
        assert_eq!((requests.unfinished(A), requests.readers().collect::<Vec<_>>()), (0, vec![B]));
    }
}
