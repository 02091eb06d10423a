//! Remote operations by message: requests that leave and are admitted, and what answers them.

use super::Endpoint;
use crate::account::{answer_cost, fits};
use crate::bulk::PIECES_PER_TURN;
use crate::collections::slab::Key;
use crate::egress::{Backlog, Body, Outgoing};
use crate::link::Link;
use crate::malformed::Malformed;
use crate::operation::Access;
use crate::rma::{Request, UnfinishedRead, WriteRest};
use crate::wire::{PIECE_BYTES, ReadData, Reply, Status};
use tidegate_flow::PeerId;

/// What became of a request.
enum Sent<B> {
    /// It has left, or nobody wants it any more.
    All,
    /// Some pieces have left: this is the rest, which has had its turn.
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

impl<L: Link> Endpoint<L> {
    /// Sends a request for a part of an operation, whose answer costs so much, now or when earlier requests have been
    /// answered. The body may change as soon as this returns.
    pub(super) fn request(&mut self, to: PeerId, message: Outgoing<L::Buffer>, operation: Key, cost: u32) {
        if !self.deferral.rooms.is_met(to) {
            self.meet(to);
        }
        let account = self.deferral.rooms.limits(to).answers;
        if !self.rma.requests.has_waiting(to) && self.rma.requests.fits(to, cost, account) {
            self.rma.requests.charge(to, cost);
            return self.port.dispatch(to, message, true);
        }
        self.rma.requests.wait(to, Request::Message(message, operation, cost).owned());
    }

    /// Sends what is left of a write, now or when earlier requests have been answered.
    pub(super) fn request_write(&mut self, to: PeerId, rest: WriteRest<L::Buffer>) {
        if !self.deferral.rooms.is_met(to) {
            self.meet(to);
        }
        let rest = match self.rma.requests.has_waiting(to) {
            false => self.send_request(to, Request::Write(rest)).left(),
            true => Some(Request::Write(rest)),
        };
        if let Some(rest) = rest {
            self.rma.requests.wait(to, rest);
        }
    }

    /// Sends requests that waited, as far as they may leave. Returns whether any did.
    pub(super) fn send_requests(&mut self) -> bool {
        let mut moved = false;
        for _ in 0..self.rma.requests.requesters() {
            let Some(to) = self.rma.requests.next_turn() else { break };
            moved |= self.send_requests_to(to);
            self.rma.requests.end_turn(to);
        }
        moved
    }

    /// Every request that waits for this peer has a turn, in order, until one may not leave (Q1, Q4).
    fn send_requests_to(&mut self, to: PeerId) -> bool {
        let mut moved = false;
        for _ in 0..self.rma.requests.waiting(to) {
            let Some(request) = self.rma.requests.pop(to) else { break };
            match self.send_request(to, request) {
                Sent::All => moved = true,
                Sent::Part(rest) => {
                    self.rma.requests.put_back(to, rest, true);
                    moved = true;
                }
                Sent::Nothing(rest) => {
                    self.rma.requests.put_back(to, rest, false);
                    break;
                }
            }
        }
        moved
    }

    /// Whether a request that waits may leave now.
    pub(super) fn requests_can_move(&self) -> bool {
        let may_leave = |to| self.rma.requests.first(to).is_some_and(|request| self.may_request(to, request));
        self.rma.requests.requesting().any(may_leave)
    }

    fn may_request(&self, to: PeerId, request: &Request<L::Buffer>) -> bool {
        let account = self.deferral.rooms.limits(to).answers;
        match request {
            Request::Message(.., cost) => self.rma.requests.fits(to, *cost, account),
            // Pieces leave when nothing else waits, so they delay what does by one piece at most.
            Request::Write(_) => self.port.egress.is_idle(to) && self.rma.requests.fits(to, answer_cost(0), account),
        }
    }

    /// Sends what may leave of a request: of a write some pieces at most.
    fn send_request(&mut self, to: PeerId, mut request: Request<L::Buffer>) -> Sent<L::Buffer> {
        let mut pieces = 0;
        while self.may_request(to, &request) {
            // A false `Reply` could have ended the operation.
            let is_wanted = self.rma.operations.contains(request.operation());
            match request {
                _ if !is_wanted => return Sent::All,
                Request::Message(message, _, cost) => {
                    self.rma.requests.charge(to, cost);
                    self.port.dispatch(to, message, true);
                    return Sent::All;
                }
                Request::Write(ref mut rest) => {
                    self.rma.requests.charge(to, answer_cost(0));
                    // What has to wait is copied, so that nothing in a backlog refers to the memory of an operation
                    // that a false `Reply` could end.
                    self.port.dispatch(to, rest.next_piece(), true);
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

    /// A peer requests something whose answer costs so much (Q3).
    #[inline]
    pub(super) fn admit_request(&mut self, from: PeerId, cost: u32) -> Result<(), Malformed> {
        if fits(self.unanswered_of(from), cost, self.port.limits.answers) {
            return Ok(());
        }
        self.port.quarantine(from, "it requested more than it may before it takes the answers");
        Err(Malformed)
    }

    /// What those requests of a peer cost whose answers have not left.
    pub(super) fn unanswered_of(&self, peer: PeerId) -> u32 {
        let answers = self.port.egress.backlog(peer).map_or(0, Backlog::answers);
        answers + self.rma.requests.reading_cost(peer)
    }

    /// Starts to answer a peer's read of memory that it may read. What can leave at once does not wait for the next
    /// progress call.
    pub(super) fn begin_read(&mut self, from: PeerId, mut read: UnfinishedRead) {
        let is_short = read.left <= PIECE_BYTES as u64;
        if is_short && self.port.egress.is_idle(from) && self.rma.requests.reads(from) == 0 {
            let status = self.send_read_piece(from, &mut read);
            return self.reply(from, read.operation, status, 0, Body::None);
        }
        self.port.egress.attention.begin();
        if self.rma.requests.begin_read(from, read) {
            self.send_reads_to(from);
        }
    }

    /// Lets reads of peers send some pieces. Returns whether any did.
    pub(super) fn send_reads(&mut self) -> bool {
        let mut moved = false;
        for _ in 0..self.rma.requests.reader_count() {
            let Some(to) = self.rma.requests.next_reader() else { break };
            moved |= self.send_reads_to(to);
        }
        moved
    }

    /// Lets the reads of a peer for which nothing else waits take turns.
    fn send_reads_to(&mut self, to: PeerId) -> bool {
        let mut moved = false;
        for _ in 0..self.rma.requests.reads(to) {
            if !self.port.egress.is_idle(to) {
                break;
            }
            let Some(mut read) = self.rma.requests.pop_read(to) else { break };
            let (mut status, mut pieces) = (Status::Success, 0);
            while pieces < PIECES_PER_TURN && read.left > 0 && status == Status::Success && self.port.egress.is_idle(to)
            {
                status = self.send_read_piece(to, &mut read);
                pieces += 1;
            }
            moved = true;
            match status == Status::Success && read.left > 0 {
                true => self.rma.requests.return_read(to, read),
                false => self.end_read(to, read.operation, status),
            }
        }
        moved
    }

    /// Sends the next piece of a read, if the region is still there and as long.
    fn send_read_piece(&mut self, to: PeerId, read: &mut UnfinishedRead) -> Status {
        let length = read.left.min(PIECE_BYTES as u64);
        let part = self.rma.regions.find(read.region, read.offset, length as usize, Access::Read);
        let Some(part) = part else { return Status::Denied };
        let head = ReadData { operation: read.operation, position: read.at };
        read.left -= length;
        (read.offset, read.at) = (read.offset + length, read.at.saturating_add(length));
        // A piece that has to wait is copied: the region may end before it leaves.
        self.port.dispatch(to, Outgoing::new(head, Body::Borrowed(part), None), true);
        Status::Success
    }

    /// A read is over.
    fn end_read(&mut self, to: PeerId, operation: u32, status: Status) {
        self.rma.requests.end_read(to);
        self.reply(to, operation, status, 0, Body::None);
    }

    /// Ends the reads of a region that is no more.
    pub(super) fn deny_reads(&mut self, region: u64) {
        for to in self.rma.requests.readers().collect::<Vec<_>>() {
            for _ in 0..self.rma.requests.reads(to) {
                match self.rma.requests.pop_read(to) {
                    Some(read) if read.region == region => self.end_read(to, read.operation, Status::Denied),
                    Some(read) => self.rma.requests.return_read(to, read),
                    None => break,
                }
            }
        }
    }

    /// Whether a read could send another piece now.
    pub(super) fn reads_can_move(&self) -> bool {
        self.rma.requests.readers().any(|reader| self.port.egress.is_idle(reader))
    }

    /// Answers a part of a peer's operation.
    pub(super) fn reply(&mut self, to: PeerId, operation: u32, status: Status, offset: u32, body: Body<L::Buffer>) {
        let head = Reply { operation, status, is_counted: self.rma.counts_writes, position: offset };
        self.port.dispatch(to, Outgoing::new(head, body, None), false);
    }
}
