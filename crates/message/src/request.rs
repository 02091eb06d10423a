//! Requests for remote operations that go by message, bounded at both ends.
//!
//! A request (a piece of a write, a read, an atomic) makes its target keep an answer until its origin takes it. *The simple idea*, to
//! answer whatever comes, lets an origin that takes nothing fill its target's memory. So there is an account per pair and direction,
//! like the window for unmatched messages, and derived from it: an [`answer_cost`] each, as long as a request is not answered. Both
//! ends know the window, so both keep the account:
//!
//! | | rule | why |
//! |---|---|---|
//! | Q1 | unanswered requests cost at most `Limits::answers`, or there is just one | the bound; the smallest window still lets one through |
//! | Q2 | the origin adds a request to the account as it leaves it (or joins the backlog), and takes it off when the answer has come | never less than what the target sees |
//! | Q3 | the target counts answers that have not left and reads that are not through | never more than what the origin counts; so whoever exceeds the account has broken the protocol, and is quarantined |
//! | Q4 | requests beyond the account wait with their origin, in order; a long write gives the others a turn | nothing is refused or overtaken for ever; atomics keep their order |
//!
//! Nothing waits in a circle: a target takes every request that comes, whatever waits for its own; and retrieving waits for nobody.

use crate::account::{ANSWER_BYTES, answer_cost, fits};
use crate::bulk::PIECES_PER_TURN;
use crate::collections::slab::Key;
use crate::counter::Counter;
use crate::egress::{Body, Outgoing, WaitingNote};
use crate::endpoint::Endpoint;
use crate::heap::block;
use crate::inbound::Malformed;
use crate::link::{Buffer, Link};
use crate::operation::Access;
use crate::wire::{PIECE_BYTES, ReadData, Status, Write};
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
}

impl<B: Buffer> Request<B> {
    fn operation(&self) -> Key {
        match self {
            Request::Message(_, operation, _) => *operation,
            Request::Write(rest) => rest.operation,
        }
    }

    /// The same, without a body that may change. What a write has not sent yet its operation holds.
    fn owned(mut self) -> Self {
        if let Request::Message(message, ..) = &mut self {
            message.own();
        }
        self
    }
}

impl<B: Buffer> WriteRest<B> {
    /// The next piece, which counts as sent.
    pub(crate) fn next_piece(&mut self) -> Outgoing<B> {
        let length = (self.end - self.position).min(PIECE_BYTES);
        let part = self.buffer.slice(self.position, length);
        let head = Write { operation: self.operation.0, region: self.region, offset: self.offset };
        self.position += length;
        self.offset = self.offset.saturating_add(length as u64);
        Outgoing::new(head, Body::Borrowed(part), None)
    }
}

/// What became of a request.
enum Sent<B> {
    /// It has left, or nobody wants it any more.
    All,
    /// This is left; it has had its turn.
    Part(Request<B>),
    /// It may not leave now.
    Nothing(Request<B>),
}

impl<B> Sent<B> {
    fn left(self) -> Option<Request<B>> {
        match self {
            Sent::All => None,
            Sent::Part(rest) | Sent::Nothing(rest) => Some(rest),
        }
    }
}

/// A peer's read whose data has not all left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnfinishedRead {
    /// The reader's name for it.
    pub(crate) operation: u32,
    pub(crate) region: u64,
    /// Where the next piece lies in the region.
    pub(crate) offset: u64,
    /// Where it goes in the reader's buffer.
    pub(crate) at: u64,
    /// Bytes that are left.
    pub(crate) left: u64,
}

impl UnfinishedRead {
    /// What one takes: its place in a queue that doubles as it grows. As long as there are few, [`queue_begun`] bounds what they take.
    ///
    /// [`queue_begun`]: crate::heap::queue_begun
    pub(crate) const BYTES: usize = 2 * size_of::<UnfinishedRead>();
}

/// What waits of one peer's requests for us, and of ours for it.
#[derive(Debug)]
pub(crate) struct Requests<B> {
    /// Ours that wait until earlier ones are answered.
    waiting: VecDeque<Request<B>>,
    /// What those cost that are not answered.
    unanswered: u32,
    /// Its reads that are not through.
    reads: VecDeque<UnfinishedRead>,
    /// How many these are, one whose turn it is included.
    unfinished: u32,
}

impl<B> Requests<B> {
    pub(crate) fn new() -> Self {
        Requests { waiting: VecDeque::new(), unanswered: 0, reads: VecDeque::new(), unfinished: 0 }
    }

    /// The operations of ours of which something waits.
    pub(crate) fn waiting_operations(&self) -> Vec<Key>
    where
        B: Buffer,
    {
        self.waiting.iter().map(Request::operation).collect()
    }

    /// How many of ours wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Bytes that unfinished reads of the peer have taken of the heap.
    pub(crate) fn read_bytes(&self) -> usize {
        block(self.reads.capacity() * size_of::<UnfinishedRead>())
    }

    /// A request of ours is answered, for which so much was paid. An answer that nothing was asked for is refused.
    #[inline]
    pub(crate) fn note_answer(&mut self, cost: u32) -> Result<(), Malformed> {
        self.unanswered = self.unanswered.checked_sub(cost).ok_or(Malformed)?;
        Ok(())
    }

    /// What our unanswered requests cost.
    pub(crate) fn unanswered(&self) -> u32 {
        self.unanswered
    }
}

impl<L: Link> Endpoint<L> {
    /// Asks a peer for a part of an operation, whose answer costs so much, now or when earlier requests have been answered. The body
    /// may change as soon as this returns.
    pub(crate) fn request(&mut self, to: PeerId, message: Outgoing<L::Buffer>, operation: Key, cost: u32) {
        if !self.deferral.rooms.is_met(to) {
            self.meet(to);
        }
        let (peer, account) = (&mut self.peers[to.0 as usize], self.deferral.rooms.limits(to).answers);
        if peer.requests.waiting.is_empty() && fits(peer.requests.unanswered, cost, account) {
            peer.requests.unanswered += cost;
            return self.dispatch(to, message, true);
        }
        self.wait_for_answers(to, Request::Message(message, operation, cost).owned());
    }

    /// Asks a peer to take what is left of a write.
    pub(crate) fn request_write(&mut self, to: PeerId, rest: WriteRest<L::Buffer>) {
        if !self.deferral.rooms.is_met(to) {
            self.meet(to);
        }
        let rest = match self.peers[to.0 as usize].requests.waiting.is_empty() {
            true => self.send_request(to, Request::Write(rest)).left(),
            false => Some(Request::Write(rest)),
        };
        if let Some(rest) = rest {
            self.wait_for_answers(to, rest);
        }
    }

    fn wait_for_answers(&mut self, to: PeerId, request: Request<L::Buffer>) {
        let waiting = &mut self.peers[to.0 as usize].requests.waiting;
        if waiting.is_empty() {
            self.requesting.push_back(to);
        }
        waiting.push_back(request);
    }

    /// Sends requests that waited, as far as they may leave. Returns whether any did.
    pub(crate) fn send_requests(&mut self) -> bool {
        let mut moved = false;
        for _ in 0..self.requesting.len() {
            let Some(to) = self.requesting.pop_front() else { break };
            moved |= self.send_requests_to(to);
            if !self.peers[to.0 as usize].requests.waiting.is_empty() {
                self.requesting.push_back(to);
            }
        }
        moved
    }

    /// Every request that waits for this peer has a turn, in order, until one may not leave (Q1, Q4).
    fn send_requests_to(&mut self, to: PeerId) -> bool {
        let mut moved = false;
        for _ in 0..self.peers[to.0 as usize].requests.waiting.len() {
            let Some(request) = self.peers[to.0 as usize].requests.waiting.pop_front() else { break };
            match self.send_request(to, request) {
                Sent::All => moved = true,
                Sent::Part(rest) => {
                    self.peers[to.0 as usize].requests.waiting.push_back(rest);
                    moved = true;
                }
                Sent::Nothing(rest) => {
                    self.peers[to.0 as usize].requests.waiting.push_front(rest);
                    break;
                }
            }
        }
        moved
    }

    /// Whether a request that waits may leave now.
    pub(crate) fn requests_can_move(&self) -> bool {
        self.requesting.iter().any(|to| {
            let first = self.peers[to.0 as usize].requests.waiting.front();
            first.is_some_and(|request| self.may_request(*to, request))
        })
    }

    fn may_request(&self, to: PeerId, request: &Request<L::Buffer>) -> bool {
        let (peer, account) = (&self.peers[to.0 as usize], self.deferral.rooms.limits(to).answers);
        match request {
            Request::Message(.., cost) => fits(peer.requests.unanswered, *cost, account),
            // Pieces leave when nothing else waits, so they delay what does by one piece at most.
            Request::Write(_) => self.egress.is_idle(to) && fits(peer.requests.unanswered, answer_cost(0), account),
        }
    }

    /// Sends what may leave of a request: of a write some pieces at most.
    fn send_request(&mut self, to: PeerId, mut request: Request<L::Buffer>) -> Sent<L::Buffer> {
        let mut pieces = 0;
        while self.may_request(to, &request) {
            // Sending may have shown that the peer is gone, and the operation with it.
            let is_wanted = self.operations.get(request.operation()).is_some();
            match request {
                _ if !is_wanted => return Sent::All,
                Request::Message(message, _, cost) => {
                    self.peers[to.0 as usize].requests.unanswered += cost;
                    self.dispatch(to, message, true);
                    return Sent::All;
                }
                Request::Write(ref mut rest) => {
                    self.peers[to.0 as usize].requests.unanswered += answer_cost(0);
                    // What has to wait is copied, so that nothing in a backlog refers to the memory of an operation that a false
                    // `Reply` could end.
                    self.dispatch(to, rest.next_piece(), true);
                    pieces += 1;
                    match rest.position == rest.end {
                        true => return Sent::All,
                        false if pieces == PIECES_PER_TURN => return Sent::Part(request),
                        false => {}
                    }
                }
            }
        }
        if pieces > 0 { Sent::Part(request) } else { Sent::Nothing(request) }
    }

    /// How many requests a write of `length` bytes makes.
    pub(crate) fn pieces(length: usize) -> usize {
        length.div_ceil(PIECE_BYTES).max(1)
    }

    /// A peer requests something whose answer costs so much (Q3).
    #[inline]
    pub(crate) fn admit_request(&mut self, from: PeerId, cost: u32) -> Result<(), Malformed> {
        if fits(self.unanswered_of(from), cost, self.deferral.windows.limits().answers) {
            return Ok(());
        }
        self.quarantine(from, "it requested more than it may before it takes the answers");
        Err(Malformed)
    }

    /// What those requests of a peer cost whose answers have not left.
    pub(crate) fn unanswered_of(&self, peer: PeerId) -> u32 {
        let answers = self.egress.backlog(peer).answers();
        answers + self.peers[peer.0 as usize].requests.unfinished * answer_cost(0)
    }

    /// Starts to answer a peer's read of memory that it may read. What can leave at once does not wait for the next progress call.
    pub(crate) fn begin_read(&mut self, from: PeerId, mut read: UnfinishedRead) {
        let peer = &mut self.peers[from.0 as usize];
        if read.left <= PIECE_BYTES as u64 && self.egress.is_idle(from) && peer.requests.reads.is_empty() {
            let status = self.send_read_piece(from, &mut read);
            return self.reply(from, read.operation, status, 0, Body::None);
        }
        let requests = &mut peer.requests;
        requests.unfinished += 1;
        if requests.unfinished == 1 {
            self.reading.push_back(from);
        }
        requests.reads.push_back(read);
        if requests.unfinished == 1 {
            self.send_reads_to(from);
        }
    }

    /// Lets reads of peers send some pieces. Returns whether any did.
    pub(crate) fn send_reads(&mut self) -> bool {
        let mut moved = false;
        for _ in 0..self.reading.len() {
            let Some(to) = self.reading.pop_front() else { break };
            self.reading.push_back(to);
            moved |= self.send_reads_to(to);
        }
        moved
    }

    /// Lets the reads of a peer for which nothing else waits take turns.
    fn send_reads_to(&mut self, to: PeerId) -> bool {
        let mut moved = false;
        for _ in 0..self.peers[to.0 as usize].requests.reads.len() {
            if !self.egress.is_idle(to) {
                break;
            }
            let Some(mut read) = self.peers[to.0 as usize].requests.reads.pop_front() else { break };
            let (mut status, mut pieces) = (Status::Success, 0);
            while pieces < PIECES_PER_TURN && read.left > 0 && status == Status::Success && self.egress.is_idle(to) {
                status = self.send_read_piece(to, &mut read);
                pieces += 1;
            }
            moved = true;
            let requests = &mut self.peers[to.0 as usize].requests;
            // Sending may have shown that the peer is gone, and all its reads with it.
            if requests.unfinished > 0 {
                match status == Status::Success && read.left > 0 {
                    true => requests.reads.push_back(read),
                    false => self.end_read(to, read.operation, status),
                }
            }
        }
        moved
    }

    /// Sends the next piece of a read, if the region is still there and as long.
    fn send_read_piece(&mut self, to: PeerId, read: &mut UnfinishedRead) -> Status {
        let length = read.left.min(PIECE_BYTES as u64);
        let part = self.find_region(read.region, read.offset, length as usize, Access::Read);
        let Some(part) = part else { return Status::Denied };
        let head = ReadData { operation: read.operation, position: read.at };
        read.left -= length;
        (read.offset, read.at) = (read.offset + length, read.at.saturating_add(length));
        // A piece that has to wait is copied: the region may end before it leaves.
        self.dispatch(to, Outgoing::new(head, Body::Borrowed(part), None), true);
        Status::Success
    }

    /// A read is over.
    fn end_read(&mut self, to: PeerId, operation: u32, status: Status) {
        let requests = &mut self.peers[to.0 as usize].requests;
        requests.unfinished -= 1;
        if requests.unfinished == 0 {
            self.reading.retain(|reader| *reader != to);
        }
        self.reply(to, operation, status, 0, Body::None);
    }

    /// Ends the reads of a region that is no more.
    pub(crate) fn deny_reads(&mut self, region: u64) {
        for to in self.reading.clone() {
            for _ in 0..self.peers[to.0 as usize].requests.reads.len() {
                let reads = &mut self.peers[to.0 as usize].requests.reads;
                match reads.pop_front() {
                    Some(read) if read.region == region => self.end_read(to, read.operation, Status::Denied),
                    Some(read) => reads.push_back(read),
                    None => break,
                }
            }
        }
    }

    /// Whether a read could send another piece now.
    pub(crate) fn reads_can_move(&self) -> bool {
        self.reading.iter().any(|reader| self.egress.is_idle(*reader))
    }

    /// A peer is gone: it answers nothing any more, and wants no answers.
    pub(crate) fn lose_requests(&mut self, peer: PeerId) {
        self.peers[peer.0 as usize].requests = Requests::new();
        self.requesting.retain(|to| *to != peer);
        self.reading.retain(|reader| *reader != peer);
    }

    /// A peer has done what no correct peer does and what would take our memory: from now on it counts as lost.
    #[cold]
    pub(crate) fn quarantine(&mut self, peer: PeerId, why: &str) {
        self.count(Counter::PeersQuarantined, 1);
        let name = self.link.quarantine(peer);
        self.lose_peer(peer, &format!("{name} (quarantined: {why})"), false);
    }
}
