//! What waits to leave for one peer, in order.
//!
//! Two kinds of things wait. *Messages* are what our own program wants sent: the bound on its operations bounds them. *Notes* are what
//! the peer makes us say: answers, questions, receipts. A peer that sends as fast as it can and takes nothing out of its mailbox would
//! fill our memory with them; so a note is small, and how many there may be is decided by construction, not by the peer:
//!
//! | what a peer sends | what we keep for it until it takes what we say | why that is bounded |
//! |---|---|---|
//! | eager message, announcement | the message or its envelope; of one that is being fetched the memory that it names, and a note (`Fetch`, then `Finish`) | it costs window until it is matched, the memory that it names until it is fetched; what we give back (`Room`) counts as given when it has left, and waits behind the notes |
//! | pieces of what we fetch | nothing: they go into the program's buffer | a piece counts only after our `Fetch` has left; then next in order, or it is dropped |
//! | a piece in a stage | a note (`StageCopied`) | at most [`STAGED_MOST`] of a peer; beyond, dropped |
//! | a batch of knocks | a note each (`Fetch`, `Finish`), and `Settled` | a batch has at most `BATCH_MOST`; one that comes before `Settled` has left is dropped |
//! | a question | one answer, whose payload travels only if nothing else waits | a question that comes before the answer has left is dropped |
//! | an offer, "nothing" | a note or two (`Finish`, `Fetch`, `Decline`, `Take`) | it is dropped unless our question has left, and we ask once at a time |
//! | a request for a remote operation | a note with the result, or what is left to read, and the piece under way | an account of unanswered requests ([`request`](crate::request)); who exceeds it is quarantined |
//! | `Settled`, `Decline`, `Take`, `Fetch`, `Finish`, `Reply`, data of a read | nothing, or what our own operations need anyway | it must name an operation of ours that waits for it; a `Settled`, `Decline` or `Take` also must answer what has left |
//! | completion data of a write | a completion | nothing is retrieved while the program does not take its completions |
//! | any other message | its body, up to `LARGEST_CONTROL_BYTES`, while it is put together | one at a time |
//! | data while its own mailbox is full | credits that we owe it | a few control packets (`transmit::held_control_most`); who is owed more has not waited for credits, and is quarantined |
//!
//! A fetch that a receive of the program has begun (at most one per receive) is the program's memory, as the receive was.
//! [`answer_memory`](crate::window) adds up what notes may take; it belongs to the fixed part of the receive memory.

use crate::transmit::{Body, Outgoing};
use crate::window::{block, queue_begun};
use crate::wire::{Head, MessageKind};
use std::collections::VecDeque;

/// Pieces in stages, of one peer, whose receipts have not left; also stages that a sender fills for one peer before it gets any back.
pub(crate) const STAGED_MOST: usize = 16;

/// What makes a message of our own again that waits: a head without completion data, and a result that we own.
#[derive(Debug)]
pub(crate) struct Note {
    kind: MessageKind,
    /// Packets that have left.
    packets: u8,
    aux: u32,
    /// Messages that are to leave before it and after the note in front of it.
    after: u32,
    word: u64,
    rest: Rest,
}

#[derive(Debug)]
enum Rest {
    Fields([u64; 2]),
    Body(Box<[u8]>),
}

impl Note {
    /// What a note takes: its place in a queue that doubles as it grows.
    pub(crate) const BYTES: usize = 2 * size_of::<Note>();

    fn of<B>(message: Outgoing<B>, after: u32) -> Note {
        let Outgoing { head, body, packets, .. } = message;
        let rest = match body {
            Body::Owned(bytes) => Rest::Body(bytes),
            Body::None | Body::Borrowed(_) => Rest::Fields([head.field(0), head.field(1)]),
        };
        Note { kind: head.kind, packets: packets as u8, aux: head.aux, after, word: head.word, rest }
    }

    fn into_message<B: crate::link::Buffer>(self) -> Outgoing<B> {
        let Note { kind, packets, aux, word, rest, .. } = self;
        let mut head = Head::new(kind).aux(aux).word(word);
        let body = match rest {
            Rest::Fields(fields) => {
                for field in fields.into_iter().take(Head::prefix_bytes(kind) / 8) {
                    head = head.with(field);
                }
                Body::None
            }
            Rest::Body(bytes) => Body::Owned(bytes),
        };
        let mut message = Outgoing::new(head, body, None);
        message.packets = packets.into();
        message
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Backlog<B> {
    messages: VecDeque<Outgoing<B>>,
    notes: VecDeque<Note>,
    /// Messages behind the last note.
    behind: u32,
    /// Notes and messages.
    len: u32,
    /// Kinds of what waits, a bit each. Those that are asked for in [`waits`](Self::waits) wait at most once.
    kinds: u32,
    /// Receipts for stages.
    staged: u32,
    /// What waiting answers to requests cost (see `request`).
    answers: u32,
    /// Bytes of the window that are being given back.
    returning: u32,
}

impl<B: crate::link::Buffer> Backlog<B> {
    pub(crate) fn new() -> Self {
        let (messages, notes) = (VecDeque::new(), VecDeque::new());
        Backlog { messages, notes, behind: 0, len: 0, kinds: 0, staged: 0, answers: 0, returning: 0 }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many messages wait.
    pub(crate) fn messages(&self) -> usize {
        self.messages.len()
    }

    /// How many notes wait.
    pub(crate) fn notes(&self) -> usize {
        self.notes.len()
    }

    /// Bytes that notes have taken of the heap, results included.
    pub(crate) fn note_bytes(&self) -> usize {
        let bodies = self.notes.iter().map(|note| match &note.rest {
            Rest::Body(bytes) => block(bytes.len()),
            Rest::Fields(_) => 0,
        });
        block(self.notes.capacity() * size_of::<Note>()) + bodies.sum::<usize>()
    }

    /// Bytes that messages have taken of the heap which are answers: their payloads, and the queue as far as a single one makes it
    /// grow. What it has grown beyond that our own program's messages have made it grow.
    pub(crate) fn answer_bytes(&self) -> usize {
        let payloads = self.messages.iter().map(|message| match (message.head.kind, &message.body) {
            (MessageKind::ReadData | MessageKind::OfferTagged | MessageKind::OfferUntagged, Body::Owned(bytes)) => {
                block(bytes.len())
            }
            _ => 0,
        });
        let queue = block(self.messages.capacity() * size_of::<Outgoing<B>>());
        queue.min(queue_begun::<Outgoing<B>>()) + payloads.sum::<usize>()
    }

    /// Whether something of this kind waits.
    #[inline]
    pub(crate) fn waits(&self, kind: MessageKind) -> bool {
        self.kinds >> kind as u32 & 1 != 0
    }

    /// How many receipts for stages wait.
    pub(crate) fn staged(&self) -> usize {
        self.staged as usize
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
        match message.head.kind.is_note() {
            true => {
                let after = std::mem::take(&mut self.behind);
                self.notes.push_back(Note::of(message, after));
            }
            false => {
                self.messages.push_back(message);
                self.behind += 1;
            }
        }
    }

    /// Messages that leave before the first note.
    fn first(&mut self) -> &mut u32 {
        self.notes.front_mut().map_or(&mut self.behind, |note| &mut note.after)
    }

    /// The next to leave.
    pub(crate) fn pop(&mut self) -> Option<Outgoing<B>> {
        let message = match self.notes.front() {
            Some(note) if note.after == 0 => self.notes.pop_front()?.into_message(),
            _ => {
                let message = self.messages.pop_front()?;
                *self.first() -= 1;
                message
            }
        };
        self.remove(&message);
        Some(message)
    }

    /// Puts back what [`pop`](Self::pop) has just returned and what has not left, or not all of it.
    pub(crate) fn put_back(&mut self, message: Outgoing<B>) {
        self.add(&message);
        match message.head.kind.is_note() {
            true => self.notes.push_front(Note::of(message, 0)),
            false => {
                *self.first() += 1;
                self.messages.push_front(message);
            }
        }
    }

    fn add(&mut self, message: &Outgoing<B>) {
        self.len += 1;
        self.kinds |= 1 << message.head.kind as u32;
        match message.head.kind {
            MessageKind::StageCopied => self.staged += 1,
            MessageKind::Reply => self.answers += crate::request::answer_cost(message.head.length as usize),
            MessageKind::Room => self.returning += message.head.word as u32,
            _ => {}
        }
    }

    fn remove(&mut self, message: &Outgoing<B>) {
        self.len -= 1;
        self.kinds &= !(1 << message.head.kind as u32);
        match message.head.kind {
            MessageKind::StageCopied => self.staged -= 1,
            MessageKind::Reply => self.answers -= crate::request::answer_cost(message.head.length as usize),
            MessageKind::Room => self.returning -= message.head.word as u32,
            _ => {}
        }
    }
}

/// How much is in all peers' backlogs.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) messages: usize,
    notes: usize,
}

impl Waiting {
    fn of<B>(&mut self, message: &Outgoing<B>) -> &mut usize {
        if message.head.kind.is_note() { &mut self.notes } else { &mut self.messages }
    }

    pub(crate) fn add<B>(&mut self, message: &Outgoing<B>) {
        *self.of(message) += 1;
    }

    pub(crate) fn remove<B>(&mut self, message: &Outgoing<B>) {
        *self.of(message) -= 1;
    }

    pub(crate) fn all(&self) -> usize {
        self.messages + self.notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{Buffer, Span};

    /// No memory at all.
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
    }

    fn told(kind: MessageKind, aux: u32) -> Outgoing<Nothing> {
        let fields = Head::prefix_bytes(kind) / 8;
        let head = (0..fields).fold(Head::new(kind).aux(aux).word(7), |head, field| head.with(field as u64));
        Outgoing::new(head, Body::None, None)
    }

    fn drain(backlog: &mut Backlog<Nothing>) -> Vec<u32> {
        std::iter::from_fn(|| backlog.pop()).map(|message| message.head.aux).collect()
    }

    #[test]
    fn notes_and_messages_leave_in_the_order_in_which_they_came() {
        let mut backlog = Backlog::new();
        let mut random = 1_u32;
        let (mut next, mut expected) = (0, 0);
        for _ in 0..20_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            match random >> 29 {
                0..2 => backlog.push(told(MessageKind::Finish, next)),
                2..4 => backlog.push(told(MessageKind::EagerTagged, next)),
                4 => {
                    // Half of it leaves.
                    if let Some(message) = backlog.pop() {
                        assert_eq!(message.head.aux, expected);
                        backlog.put_back(message);
                    }
                    continue;
                }
                _ => {
                    if let Some(message) = backlog.pop() {
                        assert_eq!(message.head.aux, expected);
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
        for kind in MessageKind::ALL.into_iter().filter(|kind| kind.is_note()) {
            backlog.push(told(kind, 5));
            assert!(backlog.waits(kind));
            let message = backlog.pop().expect("it waits");
            assert_eq!((message.head, message.packets), (told(kind, 5).head, 0));
            assert!(!backlog.waits(kind));
        }
        let result =
            || Outgoing::new(Head::new(MessageKind::Reply).aux(1).word(2), Body::Owned([3; 1000].into()), None);
        let mut begun = result();
        begun.packets = 11;
        backlog.push(begun);
        assert_eq!(backlog.answers(), crate::request::answer_cost(1000));
        let message: Outgoing<Nothing> = backlog.pop().expect("it waits");
        assert_eq!((message.head, message.packets, message.total), (result().head, 11, result().total));
        assert!(matches!(message.body, Body::Owned(bytes) if *bytes == [3; 1000]));
        assert_eq!(backlog.answers(), 0);
    }
}
