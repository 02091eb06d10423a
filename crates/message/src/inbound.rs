//! The way in: packets become messages again.
//!
//! Per peer at most one message is being put together, because packets of one message follow each other. Its payload goes
//! straight to where it belongs: into the buffer of the receive that it matched when its first packet came, or into
//! memory of exactly its size if no receive was posted. What belongs to this crate alone (announcements, RMA requests) is
//! put together in a scratch buffer of bounded size.

use crate::counter::Counter;
use crate::endpoint::Endpoint;
use crate::link::{Buffer, Link};
use crate::list::Position;
use crate::matching::{Active, Envelope, Stored, Unexpected};
use crate::slab::Key;
use crate::wire::{Head, MessageKind, is_first};
use tidegate_flow::{Packet, PeerId};

/// Largest body of a message that this crate sends for itself.
pub(crate) const LARGEST_CONTROL_BYTES: usize = 4096;

/// Where the rest of a message goes whose first packet has come.
#[derive(Debug)]
pub(crate) enum Sink<B> {
    /// No message is under way.
    Idle,
    Receive(Active<B>, Envelope, bool),
    /// The stored message at this position of the tagged (`true`) or untagged matching space.
    Store(Position, bool),
    /// Into the scratch buffer, then to the handler of its kind.
    Control(Head),
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

impl<L: Link> Endpoint<L> {
    /// A data packet was retrieved.
    #[inline]
    pub(crate) fn handle_data(&mut self, from: PeerId, packet: &Packet) {
        let payload = &packet.payload[..packet.header.length()];
        let handled = match is_first(packet.header.label()) {
            true => self.handle_first(from, packet.header.label(), payload),
            false => self.handle_next(from, payload),
        };
        if handled.is_err() && !self.peers[from.0 as usize].is_given_up {
            self.count(Counter::Violations, 1);
        }
    }

    #[inline]
    fn handle_first(&mut self, from: PeerId, label: u16, payload: &[u8]) -> Result<(), Malformed> {
        let (head, size) = Head::parse(label, payload).ok_or(Malformed)?;
        let rest = &payload[size..];
        let length = head.length as usize;
        let inbound = &self.peers[from.0 as usize].inbound;
        if rest.len() > length || !matches!(inbound.sink, Sink::Idle) {
            return Err(Malformed);
        }
        match head.kind {
            MessageKind::EagerTagged | MessageKind::EagerUntagged => return self.begin_eager(from, &head, rest),
            _ if rest.len() == length => return self.handle_control(from, &head, rest),
            _ => {}
        }
        let sink = self.open_sink(from, &head)?;
        let inbound = &mut self.peers[from.0 as usize].inbound;
        *inbound = Inbound { sink, length, received: 0 };
        self.handle_next(from, rest)
    }

    /// The sink of a message of several packets that is not eager.
    fn open_sink(&mut self, from: PeerId, head: &Head) -> Result<Sink<L::Buffer>, Malformed> {
        let (key, length) = (Key(head.aux), head.length as usize);
        match head.kind {
            MessageKind::Piece => self.admit_piece(from, key, head.word, length).map(|offset| Sink::Piece(key, offset)),
            MessageKind::ReadData => {
                self.admit_read_data(from, key, head.word, length).map(|offset| Sink::ReadData(key, offset))
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
            Sink::Store(at, tagged) => {
                let matching = if *tagged { &mut self.tagged } else { &mut self.untagged };
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
            Sink::Receive(active, envelope, tagged) => {
                self.complete_receive(active, &envelope, tagged);
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
    pub(crate) fn handle_control(&mut self, from: PeerId, head: &Head, body: &[u8]) -> Result<(), Malformed> {
        match head.kind {
            MessageKind::AnnounceTagged | MessageKind::AnnounceUntagged => self.handle_announce(from, head, body),
            MessageKind::Fetch => self.handle_fetch(from, head),
            MessageKind::Finish => self.handle_finish(from, head),
            MessageKind::Piece => {
                let key = Key(head.aux);
                let at = self.admit_piece(from, key, head.word, body.len())?;
                self.place_piece(key, at, body);
                self.finish_piece(key);
                Ok(())
            }
            MessageKind::Write => self.handle_write(from, head, body),
            MessageKind::Read => self.handle_read(from, head),
            MessageKind::ReadData => {
                let key = Key(head.aux);
                let at = self.admit_read_data(from, key, head.word, body.len())?;
                self.place_read_data(key, at, body);
                Ok(())
            }
            MessageKind::Atomic => self.handle_atomic(from, head, body),
            MessageKind::Reply => self.handle_reply(from, head, body),
            MessageKind::WriteNotice => self.handle_write_notice(from, head),
            MessageKind::StagedPiece => self.handle_staged_piece(from, head),
            MessageKind::StageCopied => self.handle_stage_copied(from, head),
            MessageKind::Knock => self.handle_knock(from, body),
            MessageKind::Settled => self.handle_settled(from),
            MessageKind::Room => self.handle_room(from, head),
            MessageKind::AskTagged | MessageKind::AskUntagged => self.handle_ask(from, head),
            MessageKind::OfferTagged | MessageKind::OfferUntagged => self.handle_offer(from, head, body),
            MessageKind::Nothing => self.handle_nothing(from),
            MessageKind::Decline => self.handle_decline(from, head),
            MessageKind::Take => self.handle_take(from, head),
            MessageKind::EagerTagged | MessageKind::EagerUntagged => Err(Malformed),
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
