//! Packets that have come: the messages in them, each to whom it is for.

use super::Endpoint;
use crate::assembly::{Sink, write_clipped};
use crate::collections::slab::Key;
use crate::counter::Counter;
use crate::link::Link;
use crate::malformed::{Handled, Malformed};
use crate::operation::Queue;
use crate::wire::{Carried, Eager, Message, Note, Piece, ReadData};
use tidegate_flow::{PAYLOAD_BYTES, Packet, PacketKind, PeerId};

impl<L: Link> Endpoint<L> {
    /// A packet of one slot has come.
    #[inline(always)]
    pub(super) fn handle_packet(&mut self, from: PeerId, packet: &Packet) {
        if from.0 >= self.port.config.flow.peers {
            return self.port.count(Counter::Violations, 1);
        }
        // Credits that it has brought.
        let gained = match self.port.egress.handle_retrieved(from, packet) {
            Ok(gained) => gained,
            Err(_) => return self.port.count(Counter::Violations, 1),
        };
        if packet.header.kind() == PacketKind::Data {
            let handled = self.handle_data(from, packet);
            self.count_violation(from, handled);
        } else {
            self.port.egress.attention.raise();
        }
        self.end_packet(from, gained);
    }

    /// What was retrieved has been handled: control packets leave, and what waited for the credits that it brought.
    #[inline(always)]
    fn end_packet(&mut self, from: PeerId, gained: u32) {
        self.port.egress.flush_control(&mut self.port.link, self.port.now);
        self.end_losses();
        if gained > 0 && self.port.egress.wants_credits(from) {
            self.port.egress.attention.raise();
            self.resume(from);
        }
    }

    /// A packet of several slots: each has cost a credit, and credits may ride on the last. To messages it is two
    /// packets, the first slot and the rest.
    pub(super) fn handle_long_packet(&mut self, from: PeerId, first: &Packet) {
        let mut rest = self.inbound.assembly().take_rest();
        // All slots are read before anything is said to their sender.
        let last = self.port.link.retrieve_following(&first.header, &mut rest);
        match last.filter(|_| from.0 < self.port.config.flow.peers && first.header.begins_long_packet()) {
            Some(last) => {
                let length = (first.header.slots() as usize - 2) * PAYLOAD_BYTES + last.header.length();
                self.handle_slots(from, first, &rest.as_flattened()[..length], &last);
            }
            None => self.port.count(Counter::Violations, 1),
        }
        self.inbound.assembly().return_rest(rest);
    }

    fn handle_slots(&mut self, from: PeerId, first: &Packet, rest: &[u8], last: &Packet) {
        let gained = match self.port.egress.handle_retrieved_long(from, first.header.slots(), last) {
            Ok(gained) => gained,
            Err(_) => return self.port.count(Counter::Violations, 1),
        };
        let handled = self.handle_data(from, first).and_then(|()| self.handle_next(from, rest));
        self.count_violation(from, handled);
        self.end_packet(from, gained);
    }

    /// A data packet was retrieved.
    #[inline(always)]
    pub(super) fn handle_data(&mut self, from: PeerId, packet: &Packet) -> Handled {
        let payload = &packet.payload[..packet.header.length()];
        match packet.header.message() {
            0 => self.handle_next(from, payload),
            kind => self.handle_first(from, kind, payload),
        }
    }

    /// What no correct peer sends counts as a violation.
    #[inline]
    pub(super) fn count_violation(&mut self, from: PeerId, handled: Handled) {
        if handled.is_err() && !self.port.presence.is_given_up(from) {
            self.port.count(Counter::Violations, 1);
        }
    }

    #[inline(always)]
    fn handle_first(&mut self, from: PeerId, kind: u8, payload: &[u8]) -> Handled {
        let Some(queue) = Eager::queue_of(kind) else {
            return match Carried::queue_of(kind) {
                Some(queue) => self.handle_carried(from, queue, payload),
                None => self.handle_first_of_ours(from, kind, payload),
            };
        };
        let (head, length, rest) = Eager::parse_payload(queue, payload).ok_or(Malformed)?;
        self.inbound.assembly().check_first(from, length, rest.len())?;
        self.inbound.begin_eager(&mut self.port, from, head, length, rest)
    }

    /// The packet of a message that the link has carried.
    #[inline(never)]
    fn handle_carried(&mut self, from: PeerId, queue: Queue, payload: &[u8]) -> Handled {
        let head = Carried::parse_payload(queue, payload).ok_or(Malformed)?;
        self.inbound.assembly().check_first(from, 0, 0)?;
        // One that could have come in packets needs no session, as then.
        let is_long = head.length as usize > self.port.config.eager_bytes;
        if is_long && !self.inbound.windows().has_session(from) {
            return Err(Malformed);
        }
        self.inbound.handle_carried(&mut self.port, from, &head)
    }

    /// The first packet of a message that is not eager.
    #[inline(never)]
    fn handle_first_of_ours(&mut self, from: PeerId, kind: u8, payload: &[u8]) -> Handled {
        self.port.egress.attention.raise();
        let (head, length, rest) = Message::parse(kind, payload).ok_or(Malformed)?;
        self.inbound.assembly().check_first(from, length, rest.len())?;
        if rest.len() == length {
            return self.handle_control(from, &head, rest);
        }
        self.begin_control(from, head, length)?;
        self.handle_next(from, rest)
    }

    /// A message of several packets begins that is not eager.
    fn begin_control(&mut self, from: PeerId, head: Message, length: usize) -> Handled {
        self.check_session(from, &head)?;
        let sink = match head {
            Message::Piece(Piece { pull, position }) => {
                Sink::Piece(Key(pull), self.pulls.admit(from, Key(pull), position, length)?)
            }
            Message::ReadData(ReadData { operation, position }) => {
                let at = self.rma.admit_read_data(from, Key(operation), position, length)?;
                Sink::ReadData(Key(operation), at)
            }
            head if length <= self.port.limits_of(from).control.bytes() => {
                self.inbound.assembly().begin_control(&mut self.port.egress.attention, from, head, length);
                return Ok(());
            }
            _ => return Err(Malformed),
        };
        self.inbound.assembly().begin(&mut self.port.egress.attention, from, sink, length, 0);
        Ok(())
    }

    /// The next part of the message under way from `from`.
    #[inline(never)]
    fn handle_next(&mut self, from: PeerId, part: &[u8]) -> Handled {
        let (offset, is_last, sink) = self.inbound.assembly().advance(from, part.len())?;
        if !matches!(sink, Sink::Receive(..)) {
            self.port.egress.attention.raise();
        }
        match sink {
            Sink::Idle | Sink::Discard => {}
            Sink::Receive(matched) => write_clipped(&mut matched.active.buffer, offset, part),
            Sink::Control(_) => self.inbound.assembly().keep(from, part),
            Sink::Store(at, queue) => {
                let (at, queue) = (*at, *queue);
                self.inbound.append(at, queue, part);
            }
            Sink::Piece(key, start) => {
                let (key, at) = (*key, *start + offset);
                self.pulls.place_piece(key, at, part);
            }
            Sink::ReadData(key, start) => {
                let (key, at) = (*key, *start + offset);
                self.rma.place_read_data(key, at, part);
            }
        }
        if is_last { self.end_inbound(from) } else { Ok(()) }
    }

    /// The message under way from `from` is complete.
    fn end_inbound(&mut self, from: PeerId) -> Handled {
        match self.inbound.assembly().end(from) {
            Sink::Receive(matched) => self.inbound.complete_receive(&mut self.port, matched),
            Sink::Control(head) => {
                let scratch = self.inbound.assembly().take_scratch();
                let handled = self.handle_control(from, &head, &scratch);
                // Of peers without a session nothing is kept.
                if self.inbound.windows().has_session(from) {
                    self.inbound.assembly().return_scratch(scratch);
                }
                return handled;
            }
            Sink::Piece(key, _) => self.pulls.finish_piece(&mut self.port, &mut self.inbound, key),
            Sink::Idle | Sink::Store(..) | Sink::ReadData(..) | Sink::Discard => {}
        }
        Ok(())
    }

    /// Fails if a message needs a session, and its sender has none.
    fn check_session(&self, from: PeerId, head: &Message) -> Handled {
        let needs_one = matches!(
            head,
            Message::Write(_)
                | Message::Read(_)
                | Message::Atomic(_)
                | Message::RequestToSend(_)
                | Message::DeferralNotice(_)
                | Message::DeferralCount(_)
        );
        if needs_one && !self.inbound.windows().has_session(from) { Err(Malformed) } else { Ok(()) }
    }

    /// A message of one of our own kinds is complete.
    fn handle_control(&mut self, from: PeerId, head: &Message, body: &[u8]) -> Handled {
        self.check_session(from, head)?;
        match head {
            Message::RequestToSend(head) => {
                self.pulls.handle_request_to_send(&mut self.port, &mut self.inbound, from, head, body)
            }
            Message::Piece(piece) => {
                let key = Key(piece.pull);
                let at = self.pulls.admit(from, key, piece.position, body.len())?;
                self.pulls.place_piece(key, at, body);
                self.pulls.finish_piece(&mut self.port, &mut self.inbound, key);
                Ok(())
            }
            Message::BouncedPiece(piece) => {
                self.pulls.handle_bounced_piece(&mut self.port, &mut self.inbound, from, piece)
            }
            Message::Located(located) => self.pulls.handle_located(&mut self.port, &mut self.inbound, from, located),
            Message::Write(write) => self.rma.handle_write(&mut self.port, from, write, body),
            Message::Read(read) => self.rma.handle_read(&mut self.port, from, read),
            Message::ReadData(data) => {
                let key = Key(data.operation);
                let at = self.rma.admit_read_data(from, key, data.position, body.len())?;
                self.rma.place_read_data(key, at, body);
                Ok(())
            }
            Message::Atomic(atomic) => self.rma.handle_atomic(&mut self.port, from, atomic, body),
            Message::WriteNotice(notice) => self.rma.handle_write_notice(&mut self.port, from, notice),
            Message::DeferralNotice(_) => {
                self.inbound.handle_deferral_notice(&mut self.port, &mut self.pulls, from, body)
            }
            Message::DeferralCount(count) => self.inbound.handle_deferral_count(&mut self.port, from, *count),
            Message::Offer(offer) => self.inbound.handle_offer(&mut self.port, &mut self.pulls, from, offer, body),
            Message::Note(note) => self.handle_note(from, note, body),
            Message::Eager(_) | Message::Carried(_) => Err(Malformed),
        }
    }

    fn handle_note(&mut self, from: PeerId, note: &Note, body: &[u8]) -> Handled {
        let handled = self.handle_note_itself(from, note, body);
        // It may have ended the last of what we had to send in our turn.
        self.leave(from);
        handled
    }

    fn handle_note_itself(&mut self, from: PeerId, note: &Note, body: &[u8]) -> Handled {
        match note {
            Note::ClearToSend(clear) => self.sends.handle_clear_to_send(&mut self.port, from, clear),
            Note::Finished(finished) => self.sends.handle_finished(&mut self.port, from, finished),
            Note::Reply(reply) => self.rma.handle_reply(&mut self.port, from, reply, body),
            Note::BounceCopied(copied) => self.sends.handle_bounce_copied(&mut self.port, from, copied),
            Note::Acknowledged(_) => self.sends.handle_acknowledged(&mut self.port, from),
            Note::Room(room) => self.sends.handle_room(&mut self.port, from, *room),
            Note::Query(query) => self.sends.handle_query(&mut self.port, from, query),
            Note::NoMatch(_) => self.inbound.handle_no_match(&mut self.port, from),
            Note::Decline(decline) => self.sends.handle_decline(&mut self.port, from, Key(decline.send)),
            Note::Accept(accept) => self.sends.handle_accept(&mut self.port, from, Key(accept.send)),
            Note::Written(written) => {
                self.pulls.handle_written(&mut self.port, &mut self.inbound, from, Key(written.pull))
            }
            Note::Asking(asking) => self.handle_asking(from, *asking),
            Note::Granted(granted) => self.handle_granted(from, *granted),
            Note::End(end) => self.handle_end(from, *end),
        }
    }
}
