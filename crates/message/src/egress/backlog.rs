//! What waits to leave for one peer, in order.
//!
//! Two kinds of things wait. *Messages* are what our own program wants sent: the bound on its operations bounds them.
//! *Notes* are what the peer makes us say: answers, queries, receipts. A peer that sends as fast as it can and takes
//! nothing out of its mailbox would fill our memory with them; so a note is small, and how many there may be is decided
//! by construction, not by the peer:
//!
//! By what a peer sends, what we keep for it until it takes what we say:
//!
//! - eager message, request to send: the message or its envelope; of one that is being pulled the memory that it names,
//!   and a note (`ClearToSend`, then `Finished`). Why that is bounded: it costs window until it is matched, the memory
//!   that it names until it is pulled; what we give back (`Room`) counts as given when it has left, and waits behind
//!   the notes.
//! - pieces of what we pull: nothing: they go into the program's buffer. Why that is bounded: a piece counts only
//!   after our `ClearToSend` has left; then next in order, or it is dropped.
//! - a piece in a bounce buffer: a note (`BounceCopied`). Why that is bounded: at most `ControlSize::bounced`
//!   of a peer;
//!   beyond, dropped.
//! - a batch of deferral notices, or their number: a note each (`ClearToSend`, `Finished`), and `Acknowledged`. Why
//!   that is bounded: a batch has at most `ControlSize::batch`; one that comes before `Acknowledged` has left is
//!   dropped.
//! - a query: one answer, whose payload travels only if nothing else waits. Why that is bounded: a query that comes
//!   before the answer has left is dropped.
//! - an offer, `NoMatch`: a note or two (`Finished`, `ClearToSend`, `Decline`, `Accept`). Why that is bounded: it is
//!   dropped unless our query has left, and we make one query at a time.
//! - a request for a remote operation: a note with the result, or what is left to read, and the piece under way. Why
//!   that is bounded: an account of unanswered requests (`rma::request`); who exceeds it is quarantined.
//! - `Acknowledged`, `Decline`, `Accept`, `ClearToSend`, `Finished`, `Written`, `Reply`, data of a read: nothing, or
//!   what our own operations need anyway. Why that is bounded: it must name an operation of ours that waits for it; an
//!   `Acknowledged`, `Decline` or `Accept` also must answer what has left.
//! - completion data of a write: a completion. Why that is bounded: nothing is retrieved while the program does not
//!   take its completions.
//! - any other message: its body, up to `ControlSize::bytes`, while it is put together. Why that is bounded: one at
//!   a time.
//! - data while its own mailbox is full: credits that we owe it. Why that is bounded: a few control packets
//!   (`egress::refused_most`); who is owed more has not waited for credits, and is quarantined.
//!
//! A pull that a receive of the program has begun (at most one per receive) is the program's memory, as the receive
//! was. `memory` adds up what notes may take; it belongs to the fixed part of the receive memory.

use super::outgoing::{Body, Outgoing};
use crate::account::answer_cost;
use crate::heap::block;
use crate::wire::{Message, MessageKind, Note, Reply};
use std::collections::VecDeque;
use std::fmt;

/// Pieces in bounce buffers, of one peer, whose receipts have not left; also bounce buffers that a sender fills for one
/// peer before it gets any back.
pub(crate) const BOUNCED_MOST: usize = 16;

/// A note that waits.
#[derive(Debug)]
pub(crate) struct WaitingNote {
    said: Said,
    /// Messages that are to leave before it and after the note in front of it.
    after: u32,
    /// Packets that have left.
    packets: u8,
}

#[derive(Debug)]
enum Said {
    Head(Note),
    /// A reply with a result.
    Result(Reply, Box<[u8]>),
}

impl WaitingNote {
    /// What a note takes: its place in a queue that doubles as it grows.
    pub(crate) const BYTES: usize = 2 * size_of::<WaitingNote>();

    /// Notes have no bodies, but for replies.
    fn new<B>(note: Note, body: Body<B>, packets: u32, after: u32) -> WaitingNote {
        let said = match (note, body) {
            (Note::Reply(reply), Body::Owned(bytes)) => Said::Result(reply, bytes),
            (note, _) => Said::Head(note),
        };
        WaitingNote { said, after, packets: packets as u8 }
    }

    fn into_message<B: crate::link::Buffer>(self) -> Outgoing<B> {
        let mut message = match self.said {
            Said::Head(note) => Outgoing::new(Message::Note(note), Body::None, None),
            Said::Result(reply, bytes) => Outgoing::new(reply, Body::Owned(bytes), None),
        };
        message.packets = self.packets.into();
        message
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Backlog<B> {
    messages: VecDeque<Outgoing<B>>,
    notes: VecDeque<WaitingNote>,
    /// Messages behind the last note.
    behind: u32,
    /// Notes and messages.
    len: u32,
    /// Kinds of what waits, a bit each. A bit is cleared when one of its kind leaves, so it is right only for kinds of
    /// which at most one waits: [`waits`](Self::waits) is called for those alone.
    kinds: u64,
    /// Receipts for bounce buffers.
    bounced: u32,
    /// What waiting answers to requests cost (see `request`).
    answers: u32,
    /// Bytes of the window that are being given back.
    returning: u32,
    /// That of the first message.
    number: Number,
}

/// A number by which looks know a message that waits. It says nothing when it is shown: no decision follows from it,
/// and the explorer tells states apart by what is printed.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct Number(u32);

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Number")
    }
}

impl Number {
    #[cfg(test)]
    pub(super) fn of(number: u32) -> Number {
        Number(number)
    }

    /// The later one.
    pub(super) fn max(self, other: Number) -> Number {
        Number(self.0.max(other.0))
    }
}

impl<B: crate::link::Buffer> Backlog<B> {
    /// Messages for which the queue begins: an answer with a payload, and an offer without one behind it.
    const FEW: usize = 2;
    /// Notes up to which their queue grows by one.
    pub(crate) const FEW_NOTES: usize = 2;
    /// Bytes that it takes then.
    pub(crate) const FEW_MESSAGES: usize = block(Self::FEW * size_of::<Outgoing<B>>());

    pub(crate) fn new() -> Self {
        let (messages, notes) = (VecDeque::new(), VecDeque::new());
        Backlog {
            messages,
            notes,
            behind: 0,
            len: 0,
            kinds: 0,
            bounced: 0,
            answers: 0,
            returning: 0,
            number: Number(0),
        }
    }

    /// The next messages have this number or a later one, if no message waits.
    pub(super) fn number_from(&mut self, number: Number) {
        if self.messages.is_empty() {
            self.number = self.number.max(number);
        }
    }

    /// The number that the next message has, if no message waits.
    pub(super) fn number(&self) -> Number {
        self.number
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many messages wait.
    pub(crate) fn messages(&self) -> usize {
        self.messages.len()
    }

    /// The messages that wait, in order, each with a number that no other message for the peer has.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (u32, &Outgoing<B>)> {
        self.messages.iter().enumerate().map(|(place, message)| (self.number.0.wrapping_add(place as u32), message))
    }

    /// The message of this number, if it waits.
    pub(crate) fn of_number(&self, number: u32) -> Option<&Outgoing<B>> {
        self.messages.get(number.wrapping_sub(self.number.0) as usize)
    }

    /// How many notes wait.
    pub(crate) fn notes(&self) -> usize {
        self.notes.len()
    }

    /// Bytes that notes have taken of the heap, results included.
    pub(crate) fn note_bytes(&self) -> usize {
        let bodies = self.notes.iter().map(|note| match &note.said {
            Said::Result(_, bytes) => block(bytes.len()),
            Said::Head(_) => 0,
        });
        block(self.notes.capacity() * size_of::<WaitingNote>()) + bodies.sum::<usize>()
    }

    /// Bytes of the heap that those messages take which are answers: their payloads, and the queue as far as a single
    /// answer makes it grow. Whatever it has grown beyond that is due to our own program's messages.
    pub(crate) fn answer_bytes(&self) -> usize {
        let payloads = self.messages.iter().map(|message| match (&message.head, &message.body) {
            (Message::ReadData(_) | Message::Offer(_), Body::Owned(bytes)) => block(bytes.len()),
            _ => 0,
        });
        let queue = block(self.messages.capacity() * size_of::<Outgoing<B>>());
        queue.min(Self::FEW_MESSAGES) + payloads.sum::<usize>()
    }

    /// Whether something of this kind waits.
    #[inline]
    pub(crate) fn waits(&self, kind: MessageKind) -> bool {
        self.kinds >> kind as u32 & 1 != 0
    }

    /// How many receipts for bounce buffers wait.
    pub(crate) fn bounced(&self) -> usize {
        self.bounced as usize
    }

    /// What the waiting answers to requests cost.
    pub(crate) fn answers(&self) -> u32 {
        self.answers
    }

    /// Bytes of our window for the peer that we are about to give back.
    #[inline]
    pub(crate) fn returning(&self) -> u32 {
        self.returning
    }

    /// Lets a message wait behind all others.
    pub(crate) fn push(&mut self, message: Outgoing<B>) {
        self.add(&message);
        match message {
            Outgoing { head: Message::Note(note), body, packets, .. } => {
                let after = std::mem::take(&mut self.behind);
                if self.notes.len() == self.notes.capacity() && self.notes.len() < Self::FEW_NOTES {
                    self.notes.reserve_exact(1);
                }
                self.notes.push_back(WaitingNote::new(note, body, packets, after));
            }
            message => {
                if self.messages.capacity() == 0 {
                    self.messages.reserve_exact(Self::FEW);
                }
                self.messages.push_back(message);
                self.behind += 1;
            }
        }
    }

    /// Messages that leave before the first note.
    fn first(&mut self) -> &mut u32 {
        self.notes.front_mut().map_or(&mut self.behind, |note| &mut note.after)
    }

    /// The next to leave. It has waited.
    pub(crate) fn pop(&mut self) -> Option<Outgoing<B>> {
        let mut message = match self.notes.front() {
            Some(note) if note.after == 0 => self.notes.pop_front()?.into_message(),
            _ => {
                let message = self.messages.pop_front()?;
                self.number.0 = self.number.0.wrapping_add(1);
                *self.first() -= 1;
                message
            }
        };
        self.remove(&message);
        message.has_waited = true;
        Some(message)
    }

    /// Puts back what [`pop`](Self::pop) has just returned and what has not left, or not all of it.
    pub(crate) fn put_back(&mut self, message: Outgoing<B>) {
        self.add(&message);
        match message {
            Outgoing { head: Message::Note(note), body, packets, .. } => {
                self.notes.push_front(WaitingNote::new(note, body, packets, 0));
            }
            message => {
                *self.first() += 1;
                self.number.0 = self.number.0.wrapping_sub(1);
                self.messages.push_front(message);
            }
        }
    }

    /// Gives back the memory of queues in which nothing waits.
    pub(crate) fn shrink(&mut self) {
        if self.notes.is_empty() {
            self.notes = VecDeque::new();
        }
        if self.messages.is_empty() {
            self.messages = VecDeque::new();
        }
    }

    fn add(&mut self, message: &Outgoing<B>) {
        self.len += 1;
        self.kinds |= 1 << message.head.kind() as u32;
        match &message.head {
            Message::Note(Note::BounceCopied(_)) => self.bounced += 1,
            Message::Note(Note::Reply(_)) => self.answers += answer_cost(message.body_bytes()),
            Message::Note(Note::Room(room)) => self.returning += room.bytes as u32,
            _ => {}
        }
    }

    fn remove(&mut self, message: &Outgoing<B>) {
        self.len -= 1;
        self.kinds &= !(1 << message.head.kind() as u32);
        match &message.head {
            Message::Note(Note::BounceCopied(_)) => self.bounced -= 1,
            Message::Note(Note::Reply(_)) => self.answers -= answer_cost(message.body_bytes()),
            Message::Note(Note::Room(room)) => self.returning -= room.bytes as u32,
            _ => {}
        }
    }
}

/// How much is in all peers' backlogs.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) messages: usize,
    /// Of those, sends of the program, and not what announces one.
    pub(crate) sends: usize,
    notes: usize,
}

impl Waiting {
    fn of<B>(&mut self, message: &Outgoing<B>) -> &mut usize {
        if matches!(message.head, Message::Note(_)) { &mut self.notes } else { &mut self.messages }
    }

    pub(crate) fn add<B>(&mut self, message: &Outgoing<B>) {
        *self.of(message) += 1;
        self.sends += usize::from(message.is_send());
    }

    pub(crate) fn remove<B>(&mut self, message: &Outgoing<B>) {
        *self.of(message) -= 1;
        self.sends -= usize::from(message.is_send());
    }

    pub(crate) fn all(&self) -> usize {
        self.messages + self.notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{Buffer, Span};
    use crate::operation::Queue;
    use crate::wire::{
        Accept, Acknowledged, BounceCopied, ClearToSend, Decline, Eager, Finished, NoMatch, Query, Room, Status,
        Written,
    };

    /// A buffer of no bytes.
    #[derive(Debug)]
    struct Nothing;

    impl Buffer for Nothing {
        fn len(&self) -> usize {
            0
        }
        fn read(&self, _: usize, _: &mut [u8]) {}
        fn write(&mut self, _: usize, _: &[u8]) {}
        fn spans(&self) -> impl Iterator<Item = Span> {
            std::iter::empty()
        }
        fn slice(&self, _: usize, _: usize) -> Self {
            Nothing
        }
        fn copied(&self) -> Self {
            Nothing
        }
    }

    fn told(head: impl Into<Message>) -> Outgoing<Nothing> {
        Outgoing::new(head, Body::None, None)
    }

    fn finished(send: u32) -> Outgoing<Nothing> {
        told(Finished { send, status: Status::Success })
    }

    /// Its tag is its name here.
    fn eager(name: u32) -> Outgoing<Nothing> {
        told(Eager { queue: Queue::Tagged, tag: name.into(), data: None, was_dropped: false })
    }

    fn name_of(message: &Outgoing<Nothing>) -> u32 {
        match &message.head {
            Message::Note(Note::Finished(finished)) => finished.send,
            Message::Eager(eager) => eager.tag as u32,
            other => panic!("nobody has pushed {other:?}"),
        }
    }

    fn drain(backlog: &mut Backlog<Nothing>) -> Vec<u32> {
        std::iter::from_fn(|| backlog.pop()).map(|message| name_of(&message)).collect()
    }

    #[test]
    fn notes_and_messages_leave_in_the_order_in_which_they_came() {
        let mut backlog = Backlog::new();
        // Soon the numbers begin again.
        backlog.number = Number(u32::MAX - 100);
        let mut random = 1_u32;
        let (mut next, mut expected) = (0, 0);
        for _ in 0..20_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            match random >> 29 {
                0..2 => backlog.push(finished(next)),
                2..4 => backlog.push(eager(next)),
                4 => {
                    // Half of it leaves.
                    if let Some(message) = backlog.pop() {
                        assert_eq!(name_of(&message), expected);
                        backlog.put_back(message);
                    }
                    continue;
                }
                _ => {
                    if let Some(message) = backlog.pop() {
                        assert_eq!(name_of(&message), expected);
                        expected += 1;
                    }
                    continue;
                }
            }
            next += 1;
        }
        assert!(expected > 5000);
        assert_eq!(drain(&mut backlog), (expected..next).collect::<Vec<_>>());
        assert!(backlog.is_empty() && backlog.kinds == 0);
    }

    #[test]
    fn a_note_is_the_same_message_again() {
        let mut backlog = Backlog::new();
        let (operation, status, position) = (1, Status::Denied, 7);
        let reply = Reply { operation, status, is_counted: true, position };
        let notes = [
            Note::ClearToSend(ClearToSend { send: 5, pull: 6, wanted: 1 << 40, position: 9, reads: true }),
            Note::Finished(Finished { send: 5, status: Status::Fault }),
            Note::Reply(reply),
            Note::BounceCopied(BounceCopied { bounce: 3 }),
            Note::Acknowledged(Acknowledged),
            Note::Room(Room { bytes: 100 }),
            Note::Query(Query { queue: Queue::Untagged, tag: 1, ignore: 2 }),
            Note::NoMatch(NoMatch),
            Note::Decline(Decline { send: 5 }),
            Note::Accept(Accept { send: 5 }),
            Note::Written(Written { pull: 6 }),
        ];
        for note in notes {
            let head = Message::Note(note);
            backlog.push(told(head));
            assert!(backlog.waits(head.kind()));
            let message = backlog.pop().expect("it waits");
            assert_eq!((message.head, message.packets), (head, 0));
            assert!(!backlog.waits(head.kind()));
        }
        let result = || Outgoing::new(reply, Body::Owned([3; 1000].into()), None);
        let mut begun = result();
        begun.packets = 11;
        backlog.push(begun);
        assert_eq!(backlog.answers(), crate::account::answer_cost(1000));
        let message: Outgoing<Nothing> = backlog.pop().expect("it waits");
        assert_eq!((message.head, message.packets, message.total), (result().head, 11, result().total));
        assert!(matches!(message.body, Body::Owned(bytes) if *bytes == [3; 1000]));
        assert_eq!(backlog.answers(), 0);
    }
}
