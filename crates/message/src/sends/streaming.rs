//! Long messages on their way out, once their receivers have matched them.

use super::Sends;
use super::bounce::Use;
use super::send::Payload;
use super::streams::Stream;
use crate::collections::slab::Key;
use crate::completion::{Completion, Failure};
use crate::egress::{Body, Outgoing};
use crate::link::{Buffer, Link, Span};
use crate::malformed::{Handled, Malformed};
use crate::port::{PIECES_PER_TURN, Port};
use crate::wire::{BounceCopied, BouncedPiece, ClearToSend, Finished, Located, PIECE_BYTES, Piece, Status};
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

impl<L: Link> Sends<L> {
    /// The receiver has a message that it pulled, or wants no more of it.
    pub(crate) fn handle_finished(&mut self, port: &mut Port<L>, from: PeerId, finished: &Finished) -> Handled {
        let key = Key(finished.send);
        if !self.kept.is_to(key, from) {
            return Err(Malformed);
        }
        self.end_deferral(port, key);
        let send = self.remove_send(port, key).ok_or(Malformed)?;
        self.kept.note_finished(key, &send);
        let result = match finished.status {
            Status::Success => Ok(()),
            _ => Err(Failure::Fault),
        };
        if let Some(notice) = send.notice
            && (notice.report || result.is_err())
        {
            port.ended.push(Completion::sent(notice, result));
        }
        Ok(())
    }

    /// The receiver's clear to send: the message leaves piece by piece.
    pub(crate) fn handle_clear_to_send(&mut self, port: &mut Port<L>, from: PeerId, clear: &ClearToSend) -> Handled {
        let key = Key(clear.send);
        if !self.kept.is_to(key, from) || self.kept.is_streamed(key) {
            return Err(Malformed);
        }
        self.end_deferral(port, key);
        let wanted = usize::try_from(clear.wanted).map_err(|_| Malformed)?;
        let position = usize::try_from(clear.position).map_err(|_| Malformed)?;
        if clear.reads && self.locate(port, from, key, clear.pull) {
            return Ok(());
        }
        self.kept.begin_stream(key, wanted, position).ok_or(Malformed)?;
        match &self.kept.send(key).ok_or(Malformed)?.payload {
            Payload::Application(buffer) if port.link.writes_bulk() => {
                let part = buffer.slice(position, wanted - position);
                self.write_message(port, from, key, clear.pull, &part);
            }
            Payload::Application(buffer) => {
                let buffer = buffer.slice(0, wanted);
                self.kept.push_stream(Stream::new(from, key, clear.pull, buffer, position));
                // What we can send at once must not wait for the next progress call.
                self.pump_streams_to(port, from);
            }
            Payload::Copied(bytes) => {
                let rest = Body::Owned(bytes[position..wanted].into());
                let head = Piece { pull: clear.pull, position: position as u64 };
                port.dispatch(from, Outgoing::new(head, rest, None), false);
            }
        }
        Ok(())
    }

    /// Tells a receiver that wants to read a message where it lies, once, if that is in one piece. It may send another
    /// clear to send if it cannot read it after all. Returns whether it is told.
    fn locate(&mut self, port: &mut Port<L>, to: PeerId, key: Key, pull: u32) -> bool {
        let Some(send) = self.kept.send_mut(key).filter(|send| !send.is_located) else { return false };
        let Payload::Application(buffer) = &send.payload else { return false };
        let mut spans: Vec<Span> = buffer.spans().take(2).collect();
        let key = if spans.len() == 1 { port.link.expose(to, buffer, &mut spans) } else { 0 };
        let &[span] = &spans[..] else { return false };
        (send.key, send.is_located) = (key, true);
        port.dispatch(to, Outgoing::new(Located { pull, key, span }, Body::None, None), false);
        true
    }

    /// Lets streams send some pieces to peers for which nothing else waits. Returns whether any did.
    pub(crate) fn pump_streams(&mut self, port: &mut Port<L>) -> bool {
        let mut moved = false;
        for _ in 0..self.kept.streams.turns() {
            let Some(peer) = self.kept.streams.next_peer() else { break };
            moved |= self.pump_streams_to(port, peer);
        }
        moved
    }

    /// Lets the streams to a peer take turns until one cannot go on: then none behind it can.
    fn pump_streams_to(&mut self, port: &mut Port<L>, peer: PeerId) -> bool {
        let mut moved = false;
        for _ in 0..self.kept.streams.len_of(peer) {
            let Some(mut stream) = self.kept.streams.pop(peer) else { break };
            let begun_at = stream.position();
            let goes_on = self.send_some_pieces(port, &mut stream);
            let has_moved = stream.position() > begun_at;
            moved |= has_moved;
            self.kept.return_stream(stream, has_moved);
            if !goes_on {
                break;
            }
        }
        moved
    }

    /// Whether a stream could send another piece now, for which it waits for nobody.
    pub(crate) fn streams_can_move(&self, port: &Port<L>) -> bool {
        let control = |peer| self.rooms.limits(peer).control;
        let can_move = |peer| port.egress.is_idle(peer) && !self.kept.bounces.is_busy_for(peer, control(peer));
        self.kept.streams.peers().any(can_move)
    }

    /// One turn of a stream. Returns whether others to its peer may have theirs.
    fn send_some_pieces(&mut self, port: &mut Port<L>, stream: &mut Stream<L::Buffer>) -> bool {
        for _ in 0..PIECES_PER_TURN {
            let is_blocked = !port.egress.is_idle(stream.to());
            if is_blocked || stream.is_over() {
                return !is_blocked;
            }
            match self.bounce_piece(port, stream) {
                Bounced::Sent => {}
                Bounced::Busy => return false,
                Bounced::Unavailable => self.send_piece(port, stream),
            }
        }
        true
    }

    /// Sends the next piece of a rendezvous message through a bounce buffer, if one is free.
    fn bounce_piece(&mut self, port: &mut Port<L>, stream: &mut Stream<L::Buffer>) -> Bounced {
        if !self.kept.bounces.exists() || !port.link.capabilities(stream.to()).shares_bounce_buffers {
            return Bounced::Unavailable;
        }
        let control = self.rooms.limits(stream.to()).control;
        let Some(bounce) = self.kept.bounces.take(stream.to(), control, stream.send(), Use::Asked) else {
            let is_busy = self.kept.bounces.is_busy_for(stream.to(), control);
            return if is_busy { Bounced::Busy } else { Bounced::Unavailable };
        };
        let (position, part) = stream.next_piece(self.kept.bounces.bytes());
        let length = part.len();
        port.link.fill_bounce_buffer(bounce, &part, 0, length);
        let (pull, position) = (stream.pull(), position as u64);
        port.tell(stream.to(), BouncedPiece { pull, position, bounce: bounce as u32, length: length as u32 });
        Bounced::Sent
    }

    /// A receiver has copied a bounce buffer of ours: the next piece may follow.
    pub(crate) fn handle_bounce_copied(&mut self, port: &mut Port<L>, from: PeerId, copied: &BounceCopied) -> Handled {
        if !self.kept.bounces.give_back(from, copied.bounce as usize) {
            return Err(Malformed);
        }
        self.pump_streams(port);
        Ok(())
    }

    fn send_piece(&mut self, port: &mut Port<L>, stream: &mut Stream<L::Buffer>) {
        let (position, part) = stream.next_piece(PIECE_BYTES);
        let head = Piece { pull: stream.pull(), position: position as u64 };
        // A piece that has to wait is copied, so nothing in a backlog refers to the memory of an operation that a false
        // `Finished` could end.
        port.dispatch(stream.to(), Outgoing::new(head, Body::Borrowed(part), None), true);
    }
}
