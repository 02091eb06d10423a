//! What is open, as readers get it: the words of a side become rows.

use super::cause::{WaitCause, cause_of};
use super::layout::{
    Head, MESSAGE_WORDS, MESSAGES_AT, OPEN_ROWS, OTHER_ROWS, RECEIVE_WORDS, RECEIVES_AT, SEND_WORDS, SENDS_AT,
    WAIT_ROWS, WAIT_WORDS, WAITS_AT,
};
use super::rows::{BYTES_BITS, CAUSE_MASK, IS_ARRIVING, IS_PROBE, IS_UNTAGGED};
use std::time::Duration;

/// A peer for which sends or receives of an endpoint waited, and the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerWait {
    /// The id of the peer's endpoint; `None`: all peers that have no row of their own, or any.
    pub peer: Option<u64>,
    /// What for.
    pub cause: WaitCause,
    /// How many times.
    pub count: u64,
    /// How long the waits took that are over.
    pub waited: Duration,
    /// How long a wait has lasted that goes on.
    pub open_for: Option<Duration>,
}

impl PeerWait {
    /// How long they waited, a wait that goes on included.
    pub fn in_all(&self) -> Duration {
        self.waited + self.open_for.unwrap_or_default()
    }
}

/// What an endpoint has not finished, the oldest first, at most [`OPEN_ROWS`] of each kind.
///
/// An age counts from the first look that saw the operation. Processes look after polls that found nothing, every few
/// milliseconds at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenWork {
    /// Receives that wait for their message, or into whose buffer it is on its way.
    pub receives: Vec<OpenReceive>,
    /// How many there are.
    pub receives_in_all: u64,
    /// Sends that have not left, or whose receiver has not got them.
    pub sends: Vec<OpenSend>,
    /// How many there are.
    pub sends_in_all: u64,
    /// Messages that have come and that nobody has received.
    pub unexpected: Vec<OpenMessage>,
    /// How many there are.
    pub unexpected_in_all: u64,
}

/// A receive that is not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenReceive {
    /// The id of the endpoint that it names as sender; `None`: it accepts messages of anybody.
    pub from: Option<u64>,
    /// Match bits; `None`: it is untagged.
    pub tag: Option<u64>,
    /// Bits of the tag that do not matter.
    pub ignore: u64,
    /// Length of its buffer.
    pub bytes: u64,
    /// How long it has been open.
    pub age: Duration,
    /// Whether its message has come and is on its way into the buffer.
    pub is_arriving: bool,
    /// Whether it is none: the program asks again and again whether such a message is there.
    pub is_probe: bool,
}

/// A send that is not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSend {
    /// The id of the receiver's endpoint.
    pub to: u64,
    /// Match bits; `None`: it is untagged.
    pub tag: Option<u64>,
    /// Length of the message.
    pub bytes: u64,
    /// How long it has been open.
    pub age: Duration,
    /// What it waits for, if that is known.
    pub waits_for: Option<WaitCause>,
}

/// A message that nobody has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenMessage {
    /// The id of the sender's endpoint.
    pub from: u64,
    /// Match bits; `None`: it is untagged.
    pub tag: Option<u64>,
    /// Its length.
    pub bytes: u64,
    /// How long it has been here.
    pub age: Duration,
}

impl OpenWork {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        [self.receives_in_all, self.sends_in_all, self.unexpected_in_all] == [0; 3]
    }

    /// All of it has been open for so much longer.
    pub(super) fn grow_older(&mut self, time: Duration) {
        self.receives.iter_mut().for_each(|receive| receive.age += time);
        self.sends.iter_mut().for_each(|send| send.age += time);
        self.unexpected.iter_mut().for_each(|message| message.age += time);
    }
}

/// A side as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Side {
    /// When it was written, in nanoseconds by its writer's clock; 0: never.
    pub(super) written: u64,
    pub(super) activity: u64,
    pub(super) peers_delayed: u64,
    pub(super) is_pressed: bool,
    pub(super) is_waiting: bool,
    pub(super) waits: Vec<PeerWait>,
    pub(super) open: OpenWork,
}

impl Side {
    /// How many words there are up to the last row, by the head of the side. Rows that cannot be are left out.
    pub(super) fn words(head: &[u64]) -> usize {
        WAITS_AT + Listed::of(head).waits * WAIT_WORDS
    }

    /// What the words of a side say. `None`: they are too few.
    pub(super) fn read(words: &[u64]) -> Option<Side> {
        let head = |word: Head| words.get(word as usize).copied();
        let written = head(Head::Written)?;
        let listed = Listed::of(words);
        let age = |since: u64| Duration::from_nanos(written.saturating_sub(since));
        let tag = |tag: u64, length: u64| (length & IS_UNTAGGED == 0).then_some(tag);
        let bytes = |length: u64| length & ((1 << BYTES_BITS) - 1);
        let cause = |length: u64| cause_of((length >> BYTES_BITS) & CAUSE_MASK);
        let some = |id: u64| Some(id).filter(|id| *id != 0);
        let receive = |&[from, bits, ignore, length, since]: &[u64; RECEIVE_WORDS]| OpenReceive {
            from: some(from),
            tag: tag(bits, length),
            ignore,
            bytes: bytes(length),
            age: age(since),
            is_arriving: length & IS_ARRIVING != 0,
            is_probe: length & IS_PROBE != 0,
        };
        let send = |&[to, bits, length, since]: &[u64; SEND_WORDS]| OpenSend {
            to,
            tag: tag(bits, length),
            bytes: bytes(length),
            age: age(since),
            waits_for: cause(length),
        };
        let message = |&[from, bits, length, since]: &[u64; MESSAGE_WORDS]| OpenMessage {
            from,
            tag: tag(bits, length),
            bytes: bytes(length),
            age: age(since),
        };
        let wait = |&[peer, count, waited, since]: &[u64; WAIT_WORDS]| {
            Some(PeerWait {
                peer: some(peer),
                cause: cause(count)?,
                count: bytes(count),
                waited: Duration::from_nanos(waited),
                open_for: some(since).map(age),
            })
        };
        Some(Side {
            written,
            activity: head(Head::Activity)?,
            peers_delayed: head(Head::PeersDelayed)?,
            is_pressed: head(Head::IsPressed)? != 0,
            is_waiting: head(Head::IsWaiting)? != 0,
            waits: rows(words, WAITS_AT, listed.waits)?.iter().filter_map(wait).collect(),
            open: OpenWork {
                receives: rows(words, RECEIVES_AT, listed.receives)?.iter().map(receive).collect(),
                receives_in_all: head(Head::ReceivesInAll)?,
                sends: rows(words, SENDS_AT, listed.sends)?.iter().map(send).collect(),
                sends_in_all: head(Head::SendsInAll)?,
                unexpected: rows(words, MESSAGES_AT, listed.messages)?.iter().map(message).collect(),
                unexpected_in_all: head(Head::MessagesInAll)?,
            },
        })
    }
}

/// Rows of each kind.
struct Listed {
    receives: usize,
    sends: usize,
    messages: usize,
    waits: usize,
}

impl Listed {
    fn of(head: &[u64]) -> Listed {
        let listed = head.get(Head::Listed as usize).copied().unwrap_or(0);
        let part = |from: u32, most: usize| ((listed >> from & 0xffff) as usize).min(most);
        Listed {
            receives: part(0, OPEN_ROWS),
            sends: part(16, OPEN_ROWS),
            messages: part(32, OPEN_ROWS),
            waits: part(48, WAIT_ROWS + OTHER_ROWS),
        }
    }
}

fn rows<const WORDS: usize>(words: &[u64], at: usize, count: usize) -> Option<&[[u64; WORDS]]> {
    Some(words.get(at..at + count * WORDS)?.as_chunks::<WORDS>().0)
}
