//! Remote operations by message: requests that leave and are admitted, and what answers them.

use super::Rma;
use super::operation::Place;
use super::request::{Request, UnfinishedRead, WriteRest};
use crate::account::{answer_cost, fits};
use crate::collections::slab::Key;
use crate::deferral::Rooms;
use crate::egress::{Backlog, Body, Outgoing};
use crate::link::Link;
use crate::malformed::{Handled, Malformed};
use crate::operation::Access;
use crate::port::{BYTES_PER_TURN, Port};
use crate::wire::{Read, ReadData, Reply, Status};
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

impl<L: Link> Rma<L> {
    /// Sends a request for a part of an operation, whose answer costs so much, now or when earlier requests have been
    /// answered. The body may change as soon as this returns.
    pub(crate) fn request(
        &mut self,
        port: &mut Port<L>,
        rooms: &mut Rooms,
        to: PeerId,
        message: Outgoing<L::Buffer>,
        operation: Key,
        cost: u32,
    ) {
        rooms.meet_once(port, to);
        let account = rooms.limits(to).answers;
        let may_request = rooms.may_request(to);
        if !self.requests.has_waiting(to) && may_request && self.requests.fits(to, cost, account) {
            self.requests.charge(to, cost);
            rooms.note_request(to);
            return port.dispatch(to, message, true);
        }
        self.requests.wait(to, Request::Message(message, operation, cost).owned());
        rooms.ask(port, to);
    }

    /// Requests a part of a read by message.
    pub(super) fn request_read(&mut self, port: &mut Port<L>, rooms: &mut Rooms, key: Key, peer: PeerId, place: Place) {
        let Place { target, offset, bytes, is_last } = place;
        let (region, place, length) = (target.key, target.offset, bytes as u64);
        let head = Read { operation: key.0, position: offset as u64, region, offset: place, length, is_last };
        let message = Outgoing::new(head, Body::None, None);
        self.request(port, rooms, peer, message, key, answer_cost(0));
    }

    /// Sends what is left of a write, now or when earlier requests have been answered.
    pub(super) fn request_write(
        &mut self,
        port: &mut Port<L>,
        rooms: &mut Rooms,
        to: PeerId,
        rest: WriteRest<L::Buffer>,
    ) {
        rooms.meet_once(port, to);
        let rest = match self.requests.has_waiting(to) {
            false => self.send_request(port, rooms, to, Request::Write(rest)).left(),
            true => Some(Request::Write(rest)),
        };
        if let Some(rest) = rest {
            self.requests.wait(to, rest);
            rooms.ask(port, to);
        }
    }

    /// Sends requests that waited, as far as they may leave. Returns whether any did.
    pub(crate) fn send_requests(&mut self, port: &mut Port<L>, rooms: &mut Rooms) -> bool {
        let mut moved = false;
        for _ in 0..self.requests.requesters() {
            let Some(to) = self.requests.next_turn() else { break };
            moved |= self.send_requests_to(port, rooms, to);
            self.requests.end_turn(to);
        }
        moved
    }

    /// Every request that waits for this peer has a turn, in order, until one may not leave (Q1, Q4).
    pub(crate) fn send_requests_to(&mut self, port: &mut Port<L>, rooms: &mut Rooms, to: PeerId) -> bool {
        let mut moved = false;
        for _ in 0..self.requests.waiting(to) {
            let Some(request) = self.requests.pop(to) else { break };
            match self.send_request(port, rooms, to, request) {
                Sent::All => moved = true,
                Sent::Part(rest) => {
                    self.requests.put_back(to, rest, true);
                    moved = true;
                }
                Sent::Nothing(rest) => {
                    self.requests.put_back(to, rest, false);
                    break;
                }
            }
        }
        moved
    }

    /// Whether a request that waits may leave now.
    pub(crate) fn requests_can_move(&self, port: &Port<L>, rooms: &Rooms) -> bool {
        let may_leave = |to| self.requests.first(to).is_some_and(|request| self.may_request(port, rooms, to, request));
        self.requests.requesting().any(may_leave)
    }

    fn may_request(&self, port: &Port<L>, rooms: &Rooms, to: PeerId, request: &Request<L::Buffer>) -> bool {
        let account = rooms.limits(to).answers;
        match request {
            _ if !rooms.may_request(to) => false,
            Request::Message(.., cost) => self.requests.fits(to, *cost, account),
            // Pieces leave when nothing else waits, so they delay what does by one piece at most.
            Request::Write(_) => port.egress.is_idle(to) && self.requests.fits(to, answer_cost(0), account),
        }
    }

    /// Sends what may leave of a request: of a write some pieces at most.
    fn send_request(
        &mut self,
        port: &mut Port<L>,
        rooms: &mut Rooms,
        to: PeerId,
        mut request: Request<L::Buffer>,
    ) -> Sent<L::Buffer> {
        let mut bytes = 0;
        while self.may_request(port, rooms, to, &request) {
            // A false `Reply` could have ended the operation.
            let is_wanted = self.operations.contains(request.operation());
            match request {
                _ if !is_wanted => return Sent::All,
                Request::Message(message, _, cost) => {
                    self.requests.charge(to, cost);
                    rooms.note_request(to);
                    port.dispatch(to, message, true);
                    return Sent::All;
                }
                Request::Write(ref mut rest) => {
                    self.requests.charge(to, answer_cost(0));
                    rooms.note_request(to);
                    // What has to wait is copied, so that nothing in a backlog refers to the memory of an operation
                    // that a false `Reply` could end.
                    let piece = self.next_piece(rooms, to, rest);
                    // A piece of an empty write counts, too.
                    bytes += piece.body_bytes().max(1);
                    port.dispatch(to, piece, true);
                    match rest.is_over() {
                        true => return Sent::All,
                        false if bytes >= BYTES_PER_TURN => return Sent::Part(request),
                        false => {}
                    }
                }
            }
        }
        if bytes > 0 { Sent::Part(request) } else { Sent::Nothing(request) }
    }

    /// The next piece of a write, as long as the memory of its target has room for. One that is not the last is a part
    /// of the operation.
    pub(super) fn next_piece(
        &mut self,
        rooms: &Rooms,
        to: PeerId,
        rest: &mut WriteRest<L::Buffer>,
    ) -> Outgoing<L::Buffer> {
        let piece = rest.next_piece(rooms.limits(to).control.piece_bytes());
        if !rest.is_over() {
            self.operations.add_parts(rest.operation, 1);
        }
        piece
    }

    /// A peer requests something whose answer costs so much (Q3).
    #[inline]
    pub(super) fn admit_request(&mut self, port: &mut Port<L>, from: PeerId, cost: u32) -> Handled {
        if fits(self.unanswered_of(port, from), cost, port.limits_of(from).answers) {
            return Ok(());
        }
        port.quarantine(from, "it requested more than it may before it takes the answers");
        Err(Malformed)
    }

    /// What those requests of a peer cost whose answers have not left.
    fn unanswered_of(&self, port: &Port<L>, peer: PeerId) -> u32 {
        let answers = port.egress.backlog(peer).map_or(0, Backlog::answers);
        answers + self.requests.reading_cost(peer)
    }

    /// Starts to answer a peer's read of memory that it may read. What can leave at once does not wait for the next
    /// progress call.
    pub(super) fn begin_read(&mut self, port: &mut Port<L>, from: PeerId, mut read: UnfinishedRead) {
        let is_short = read.left <= port.limits_of(from).control.piece_bytes() as u64;
        if is_short && port.egress.is_idle(from) && self.requests.reads(from) == 0 {
            let status = self.send_read_piece(port, from, &mut read);
            self.note_read(port, from, &read, status);
            return self.reply(port, from, read.operation, status, 0, Body::None);
        }
        port.egress.attention.begin();
        if self.requests.begin_read(from, read) {
            self.send_reads_to(port, from);
        }
    }

    /// Lets reads of peers send some pieces. Returns whether any did.
    pub(crate) fn send_reads(&mut self, port: &mut Port<L>) -> bool {
        let mut moved = false;
        for _ in 0..self.requests.reader_count() {
            let Some(to) = self.requests.next_reader() else { break };
            moved |= self.send_reads_to(port, to);
        }
        moved
    }

    /// Lets the reads of a peer for which nothing else waits take turns.
    fn send_reads_to(&mut self, port: &mut Port<L>, to: PeerId) -> bool {
        let mut moved = false;
        for _ in 0..self.requests.reads(to) {
            if !port.egress.is_idle(to) {
                break;
            }
            let Some(mut read) = self.requests.pop_read(to) else { break };
            let (mut status, mut bytes) = (Status::Success, 0);
            while bytes < BYTES_PER_TURN as u64 && read.left > 0 && status == Status::Success && port.egress.is_idle(to)
            {
                let left = read.left;
                status = self.send_read_piece(port, to, &mut read);
                bytes += left - read.left;
            }
            moved = true;
            match status == Status::Success && read.left > 0 {
                true => self.requests.return_read(to, read),
                false => {
                    self.note_read(port, to, &read, status);
                    self.end_read(port, to, read.operation, status);
                }
            }
        }
        moved
    }

    /// Sends the next piece of a read, if the region is still there and as long.
    fn send_read_piece(&mut self, port: &mut Port<L>, to: PeerId, read: &mut UnfinishedRead) -> Status {
        let length = read.left.min(port.limits_of(to).control.piece_bytes() as u64);
        let part = self.regions.find(read.region, read.offset, length as usize, Access::Read);
        let Some(part) = part else { return Status::Denied };
        let head = ReadData { operation: read.operation, position: read.at };
        read.left -= length;
        (read.offset, read.at) = (read.offset + length, read.at.saturating_add(length));
        // A piece that has to wait is copied: the region may end before it leaves.
        port.dispatch(to, Outgoing::new(head, Body::Borrowed(part), None), true);
        Status::Success
    }

    /// A read is over.
    fn end_read(&mut self, port: &mut Port<L>, to: PeerId, operation: u32, status: Status) {
        self.requests.end_read(to);
        self.reply(port, to, operation, status, 0, Body::None);
    }

    /// Ends the reads of a region that is no more.
    pub(super) fn deny_reads(&mut self, port: &mut Port<L>, region: u64) {
        for to in self.requests.readers().collect::<Vec<_>>() {
            for _ in 0..self.requests.reads(to) {
                match self.requests.pop_read(to) {
                    Some(read) if read.region == region => self.end_read(port, to, read.operation, Status::Denied),
                    Some(read) => self.requests.return_read(to, read),
                    None => break,
                }
            }
        }
    }

    /// Whether a read could send another piece now.
    pub(crate) fn reads_can_move(&self, port: &Port<L>) -> bool {
        self.requests.readers().any(|reader| port.egress.is_idle(reader))
    }

    /// Answers a part of a peer's operation.
    pub(super) fn reply(
        &mut self,
        port: &mut Port<L>,
        to: PeerId,
        operation: u32,
        status: Status,
        offset: u32,
        body: Body<L::Buffer>,
    ) {
        let head = Reply { operation, status, is_counted: self.counting.has_begun(), position: offset };
        port.dispatch(to, Outgoing::new(head, body, None), false);
    }
}
