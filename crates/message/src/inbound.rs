//! The way in: packets become messages again.
//!
//! Per peer at most one message is being put together, because packets of one message follow each other. Its payload goes
//! straight to where it belongs: into the buffer of the receive that it matched when its first packet came, or into
//! memory of exactly its size if no receive was posted. What belongs to this crate alone (announcements, RMA requests) is
//! put together in a scratch buffer of bounded size.

use crate::collections::list::Position;
use crate::collections::slab::Key;
use crate::counter::Counter;
use crate::deferral::Untrue;
use crate::endpoint::Endpoint;
use crate::envelope::Envelope;
use crate::link::{Buffer, Link};
use crate::matching::{Active, Stored, Unexpected};
use crate::operation::Queue;
use crate::wire::{Eager, LARGEST_CONTROL_BYTES, Message, Note};
use tidegate_flow::{Packet, PeerId};

/// Where the rest of a message goes whose first packet has come.
#[derive(Debug)]
pub(crate) enum Sink<B> {
    /// No message is under way.
    Idle,
    Receive(Active<B>, Envelope, Queue),
    /// The stored message at this position of the queue.
    Store(Position, Queue),
    /// Into the scratch buffer, then to the handler of its kind.
    Control(Message),
    /// Part of a fetch through the mailbox.
    Piece(Key, usize),
    /// Part of an RMA read's data.
    ReadData(Key, usize),
    Discard,
}

/// A message on its way in.
#[derive(Debug)]
pub(crate) struct Inbound<B> {
    pub(crate) sink: Sink<B>,
    /// Bytes of the body.
    pub(crate) length: usize,
    pub(crate) received: usize,
}

impl<B> Inbound<B> {
    pub(crate) fn new() -> Self {
        Inbound { sink: Sink::Idle, length: 0, received: 0 }
    }
}

/// A packet that no correct peer sends, unless it speaks of something that we have given up. It is counted and dropped.
#[derive(Debug)]
pub(crate) struct Malformed;

impl From<Untrue> for Malformed {
    fn from(_: Untrue) -> Self {
        Malformed
    }
}

impl<L: Link> Endpoint<L> {
    /// A data packet was retrieved.
    #[inline]
    pub(crate) fn handle_data(&mut self, from: PeerId, packet: &Packet) {
        let payload = &packet.payload[..packet.header.length()];
        let handled = match packet.header.message() {
            0 => self.handle_next(from, payload),
            kind => self.handle_first(from, kind, payload),
        };
        if handled.is_err() && !self.presence.is_given_up(from) {
            self.count(Counter::Violations, 1);
        }
    }

    #[inline]
    fn handle_first(&mut self, from: PeerId, kind: u8, payload: &[u8]) -> Result<(), Malformed> {
        let Some(queue) = Eager::queue_of(kind) else { return self.handle_first_of_ours(from, kind, payload) };
        let (head, length, rest) = Eager::parse_payload(queue, payload).ok_or(Malformed)?;
        self.check_first(from, length, rest)?;
        self.begin_eager(from, head, length, rest)
    }

    /// Whether a message may begin here.
    #[inline]
    fn check_first(&self, from: PeerId, length: usize, rest: &[u8]) -> Result<(), Malformed> {
        let is_idle = matches!(self.peers[from.0 as usize].inbound.sink, Sink::Idle);
        if is_idle && rest.len() <= length { Ok(()) } else { Err(Malformed) }
    }

    /// The first packet of a message that is not eager.
    fn handle_first_of_ours(&mut self, from: PeerId, kind: u8, payload: &[u8]) -> Result<(), Malformed> {
        let (head, length, rest) = Message::parse(kind, payload).ok_or(Malformed)?;
        self.check_first(from, length, rest)?;
        if rest.len() == length {
            return self.handle_control(from, &head, rest);
        }
        let sink = self.open_sink(from, &head, length)?;
        let inbound = &mut self.peers[from.0 as usize].inbound;
        *inbound = Inbound { sink, length, received: 0 };
        self.handle_next(from, rest)
    }

    /// The sink of a message of several packets that is not eager.
    fn open_sink(&mut self, from: PeerId, head: &Message, length: usize) -> Result<Sink<L::Buffer>, Malformed> {
        match head {
            Message::Piece(piece) => {
                let key = Key(piece.pull);
                Ok(Sink::Piece(key, self.bulk.pulls.admit(from, key, piece.position, length)?))
            }
            Message::ReadData(data) => {
                let key = Key(data.operation);
                self.admit_read_data(from, key, data.position, length).map(|offset| Sink::ReadData(key, offset))
            }
            _ if length <= LARGEST_CONTROL_BYTES => {
                let scratch = &mut self.peers[from.0 as usize].scratch;
                scratch.clear();
                scratch.reserve_exact(length);
                Ok(Sink::Control(*head))
            }
            _ => Err(Malformed),
        }
    }

    /// The next part of the message under way from `from`.
    fn handle_next(&mut self, from: PeerId, part: &[u8]) -> Result<(), Malformed> {
        let peer = &mut self.peers[from.0 as usize];
        let inbound = &mut peer.inbound;
        let offset = inbound.received;
        if matches!(inbound.sink, Sink::Idle) || part.len() > inbound.length - offset {
            return Err(Malformed);
        }
        inbound.received += part.len();
        let complete = inbound.received == inbound.length;
        match &mut inbound.sink {
            Sink::Idle | Sink::Discard => {}
            Sink::Receive(active, ..) => write_clipped(&mut active.buffer, offset, part),
            Sink::Control(_) => peer.scratch.extend_from_slice(part),
            Sink::Store(at, queue) => {
                let matching = self.matching.of(*queue);
                if let Some(Unexpected { stored: Stored::Here(bytes), .. }) = matching.stored_mut(*at) {
                    bytes.extend_from_slice(part);
                }
            }
            Sink::Piece(key, start) => {
                let (key, at) = (*key, *start + offset);
                self.place_piece(key, at, part);
            }
            Sink::ReadData(key, start) => {
                let (key, at) = (*key, *start + offset);
                self.place_read_data(key, at, part);
            }
        }
        if complete { self.end_inbound(from) } else { Ok(()) }
    }

    /// The message under way from `from` is complete.
    fn end_inbound(&mut self, from: PeerId) -> Result<(), Malformed> {
        let inbound = &mut self.peers[from.0 as usize].inbound;
        match std::mem::replace(&mut inbound.sink, Sink::Idle) {
            Sink::Receive(active, envelope, queue) => {
                self.complete_receive(active, &envelope, queue);
                Ok(())
            }
            Sink::Control(head) => {
                let scratch = std::mem::take(&mut self.peers[from.0 as usize].scratch);
                let handled = self.handle_control(from, &head, &scratch);
                self.peers[from.0 as usize].scratch = scratch;
                handled
            }
            Sink::Piece(key, _) => {
                self.finish_piece(key);
                Ok(())
            }
            Sink::Idle | Sink::Store(..) | Sink::ReadData(..) | Sink::Discard => Ok(()),
        }
    }

    /// A message of one of our own kinds is complete.
    fn handle_control(&mut self, from: PeerId, head: &Message, body: &[u8]) -> Result<(), Malformed> {
        match head {
            Message::RequestToSend(head) => self.handle_request_to_send(from, head, body),
            Message::Piece(piece) => {
                let key = Key(piece.pull);
                let at = self.bulk.pulls.admit(from, key, piece.position, body.len())?;
                self.place_piece(key, at, body);
                self.finish_piece(key);
                Ok(())
            }
            Message::BouncedPiece(piece) => self.handle_bounced_piece(from, piece),
            Message::Write(write) => self.handle_write(from, write, body),
            Message::Read(read) => self.handle_read(from, read),
            Message::ReadData(data) => {
                let key = Key(data.operation);
                let at = self.admit_read_data(from, key, data.position, body.len())?;
                self.place_read_data(key, at, body);
                Ok(())
            }
            Message::Atomic(atomic) => self.handle_atomic(from, atomic, body),
            Message::WriteNotice(notice) => self.handle_write_notice(from, notice),
            Message::DeferralNotice(_) => self.handle_deferral_notice(from, body),
            Message::Offer(offer) => self.handle_offer(from, offer, body),
            Message::Note(note) => self.handle_note(from, note, body),
            Message::Eager(_) => Err(Malformed),
        }
    }

    fn handle_note(&mut self, from: PeerId, note: &Note, body: &[u8]) -> Result<(), Malformed> {
        match note {
            Note::ClearToSend(clear) => self.handle_clear_to_send(from, clear),
            Note::Finished(finished) => self.handle_finished(from, finished),
            Note::Reply(reply) => self.handle_reply(from, reply, body),
            Note::BounceCopied(copied) => self.handle_bounce_copied(from, copied),
            Note::Acknowledged(_) => self.handle_acknowledged(from),
            Note::Room(room) => self.handle_room(from, *room),
            Note::Query(query) => self.handle_query(from, query),
            Note::NoMatch(_) => self.handle_no_match(from),
            Note::Decline(decline) => self.handle_decline(from, Key(decline.send)),
            Note::Accept(accept) => self.handle_accept(from, Key(accept.send)),
        }
    }
}

/// Writes as much of `part` as the buffer has room for.
#[inline]
pub(crate) fn write_clipped<B: Buffer>(buffer: &mut B, offset: usize, part: &[u8]) {
    let room = buffer.len().saturating_sub(offset);
    let fits = part.len().min(room);
    if fits > 0 {
        buffer.write(offset, &part[..fits]);
    }
}
