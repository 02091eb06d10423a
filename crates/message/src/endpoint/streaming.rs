//! Long messages on their way out, once their receivers have matched them.

use super::Endpoint;
use crate::bulk::{PIECES_PER_TURN, Payload, Stream, Use};
use crate::collections::slab::Key;
use crate::completion::{Completion, Failure};
use crate::egress::{Body, Outgoing};
use crate::link::{Buffer, Link};
use crate::malformed::Malformed;
use crate::wire::{BounceCopied, BouncedPiece, ClearToSend, Finished, PIECE_BYTES, Piece, Status};
use tidegate_flow::PeerId;

/// What became of a piece that should go through a bounce buffer.
enum Bounced {
    Sent,
    /// Wait: this receiver has sent a clear to send for what is in bounce buffers, and gives them back as it makes
    /// progress.
    Busy,
    /// Do not wait: there are no buffers, or pieces for other receivers are in them, who may never make progress.
    Unavailable,
}

impl<L: Link> Endpoint<L> {
    /// The receiver has a message that it pulled, or wants no more of it.
    pub(super) fn handle_finished(&mut self, from: PeerId, finished: &Finished) -> Result<(), Malformed> {
        let key = Key(finished.send);
        if !self.bulk.is_to(key, from) {
            return Err(Malformed);
        }
        self.end_deferral(key);
        let send = self.remove_send(key).ok_or(Malformed)?;
        self.bulk.note_finished(key, &send);
        let result = match finished.status {
            Status::Success => Ok(()),
            _ => Err(Failure::Fault),
        };
        if let Some(notice) = send.notice
            && (notice.report || result.is_err())
        {
            self.port.ended.push(Completion::sent(notice, result));
        }
        Ok(())
    }

    /// The receiver's clear to send: the message leaves piece by piece.
    pub(super) fn handle_clear_to_send(&mut self, from: PeerId, clear: &ClearToSend) -> Result<(), Malformed> {
        let key = Key(clear.send);
        if !self.bulk.is_to(key, from) || self.bulk.is_streamed(key) {
            return Err(Malformed);
        }
        self.end_deferral(key);
        let wanted = usize::try_from(clear.wanted).map_err(|_| Malformed)?;
        let position = usize::try_from(clear.position).map_err(|_| Malformed)?;
        self.bulk.begin_stream(key, wanted, position).ok_or(Malformed)?;
        match &self.bulk.send(key).ok_or(Malformed)?.payload {
            Payload::Application(buffer) if self.port.link.writes_bulk() => {
                let part = buffer.slice(position, wanted - position);
                self.write_message(from, key, clear.pull, &part);
            }
            Payload::Application(buffer) => {
                let buffer = buffer.slice(0, wanted);
                self.bulk.push_stream(Stream::new(from, key, clear.pull, buffer, position));
                // What we can send at once must not wait for the next progress call.
                self.pump_streams_to(from);
            }
            Payload::Copied(bytes) => {
                let rest = Body::Owned(bytes[position..wanted].into());
                let head = Piece { pull: clear.pull, position: position as u64 };
                self.port.dispatch(from, Outgoing::new(head, rest, None), false);
            }
        }
        Ok(())
    }

    /// Lets streams send some pieces to peers for which nothing else waits. Returns whether any did.
    pub(super) fn pump_streams(&mut self) -> bool {
        let mut moved = false;
        for _ in 0..self.bulk.streams.turns() {
            let Some(peer) = self.bulk.streams.next_peer() else { break };
            moved |= self.pump_streams_to(peer);
        }
        moved
    }

    /// Lets the streams to a peer take turns until one cannot go on: then none behind it can.
    fn pump_streams_to(&mut self, peer: PeerId) -> bool {
        let mut moved = false;
        for _ in 0..self.bulk.streams.len_of(peer) {
            let Some(mut stream) = self.bulk.streams.pop(peer) else { break };
            let begun_at = stream.position();
            let goes_on = self.send_some_pieces(&mut stream);
            let has_moved = stream.position() > begun_at;
            moved |= has_moved;
            self.bulk.return_stream(stream, has_moved);
            if !goes_on {
                break;
            }
        }
        moved
    }

    /// Whether a stream could send another piece now, for which it waits for nobody.
    pub(super) fn streams_can_move(&self) -> bool {
        let control = |peer| self.deferral.rooms.limits(peer).control;
        let can_move = |peer| self.port.egress.is_idle(peer) && !self.bulk.bounces.is_busy_for(peer, control(peer));
        self.bulk.streams.peers().any(can_move)
    }

    /// One turn of a stream. Returns whether others to its peer may have theirs.
    fn send_some_pieces(&mut self, stream: &mut Stream<L::Buffer>) -> bool {
        for _ in 0..PIECES_PER_TURN {
            let is_blocked = !self.port.egress.is_idle(stream.to());
            if is_blocked || stream.is_over() {
                return !is_blocked;
            }
            match self.bounce_piece(stream) {
                Bounced::Sent => {}
                Bounced::Busy => return false,
                Bounced::Unavailable => self.send_piece(stream),
            }
        }
        true
    }

    /// Sends the next piece of a rendezvous message through a bounce buffer, if one is free.
    fn bounce_piece(&mut self, stream: &mut Stream<L::Buffer>) -> Bounced {
        if !self.bulk.bounces.exists() || !self.port.link.capabilities(stream.to()).shares_bounce_buffers {
            return Bounced::Unavailable;
        }
        let control = self.deferral.rooms.limits(stream.to()).control;
        let Some(bounce) = self.bulk.bounces.take(stream.to(), control, stream.send(), Use::Asked) else {
            let is_busy = self.bulk.bounces.is_busy_for(stream.to(), control);
            return if is_busy { Bounced::Busy } else { Bounced::Unavailable };
        };
        let (position, part) = stream.next_piece(self.bulk.bounces.bytes());
        let length = part.len();
        self.port.link.fill_bounce_buffer(bounce, &part, 0, length);
        let (pull, position) = (stream.pull(), position as u64);
        self.port.tell(stream.to(), BouncedPiece { pull, position, bounce: bounce as u32, length: length as u32 });
        Bounced::Sent
    }

    /// A receiver has copied a bounce buffer of ours: the next piece may follow.
    pub(super) fn handle_bounce_copied(&mut self, from: PeerId, copied: &BounceCopied) -> Result<(), Malformed> {
        if !self.bulk.bounces.give_back(from, copied.bounce as usize) {
            return Err(Malformed);
        }
        self.pump_streams();
        Ok(())
    }

    fn send_piece(&mut self, stream: &mut Stream<L::Buffer>) {
        let (position, part) = stream.next_piece(PIECE_BYTES);
        let head = Piece { pull: stream.pull(), position: position as u64 };
        // A piece that has to wait is copied, so nothing in a backlog refers to the memory of an operation that a false
        // `Finished` could end.
        self.port.dispatch(stream.to(), Outgoing::new(head, Body::Borrowed(part), None), true);
    }
}
