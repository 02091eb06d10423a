//! What is open, as its process writes it: [`Rows`] become the words of a side.
//!
//! Peers are named by the ids of their endpoints, which are never 0 and never used twice.

use super::cause::{WaitCause, number_of};
use super::layout::{
    Head, MESSAGE_WORDS, MESSAGES_AT, OPEN_ROWS, OTHER_ROWS, RECEIVE_WORDS, RECEIVES_AT, SEND_WORDS, SENDS_AT,
    WAIT_ROWS, WAIT_WORDS, WAITS_AT,
};
use std::time::Duration;
use tidegate_message::{Instant, WAY_CLASSES, WayTimes};

/// The highest bits of a length say more of its row: 5 bits of a cause above 56 bits of length, and three flags.
pub(super) const BYTES_BITS: u32 = 56;
pub(super) const CAUSE_MASK: u64 = 0x1f;
pub(super) const IS_PROBE: u64 = 1 << 61;
pub(super) const IS_UNTAGGED: u64 = 1 << 62;
pub(super) const IS_ARRIVING: u64 = 1 << 63;

/// What was open when somebody looked. Of each kind the oldest come first, and what is beyond the room of a page
/// ([`WAIT_ROWS`], [`OPEN_ROWS`]) is left out.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// When that was.
    pub written: Instant,
    /// How many peers had sends waiting for credits or room in a mailbox.
    pub peers_delayed: u32,
    /// Whether peers deferred sends because of our receive memory.
    pub is_pressed: bool,
    /// Whether the application polled in vain while something of its was open.
    pub is_waiting: bool,
    /// How fast long messages come each way, by class.
    pub way_times: [WayTimes; WAY_CLASSES],
    /// Waits of sends and receives, by peer and cause.
    pub waits: Vec<WaitRow>,
    /// Posted receives.
    pub receives: Vec<ReceiveRow>,
    /// How many there are.
    pub receives_in_all: u64,
    /// Sends that are not finished.
    pub sends: Vec<SendRow>,
    /// How many there are.
    pub sends_in_all: u64,
    /// Messages that no receive waits for.
    pub messages: Vec<MessageRow>,
    /// How many there are.
    pub messages_in_all: u64,
}

/// A peer for which sends or receives wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitRow {
    /// The peer; `None`: all peers that have no row of their own.
    pub peer: Option<u64>,
    /// What for.
    pub cause: WaitCause,
    /// How often.
    pub count: u64,
    /// For how long, without the time of a wait that goes on.
    pub waited: Duration,
    /// Since when the wait has lasted that goes on.
    pub since: Option<Instant>,
}

/// A receive that is not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveRow {
    /// From whom; `None`: from anybody.
    pub from: Option<u64>,
    /// Match bits; `None`: it is untagged.
    pub tag: Option<u64>,
    /// Bits of the tag that do not matter.
    pub ignore: u64,
    /// Length of its buffer.
    pub bytes: u64,
    /// When it was seen first.
    pub since: Instant,
    /// Whether its message has come and is on its way into the buffer.
    pub is_arriving: bool,
    /// Whether it is none: the program asks again and again whether such a message is there.
    pub is_probe: bool,
}

/// A send that is not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendRow {
    /// To whom.
    pub to: u64,
    /// Match bits; `None`: it is untagged.
    pub tag: Option<u64>,
    /// Length of the message.
    pub bytes: u64,
    /// When it was seen first.
    pub since: Instant,
    /// What it waits for.
    pub waits_for: Option<WaitCause>,
}

/// A message that no receive waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRow {
    /// From whom.
    pub from: u64,
    /// Match bits; `None`: it is untagged.
    pub tag: Option<u64>,
    /// Its length.
    pub bytes: u64,
    /// When it was seen first.
    pub since: Instant,
}

impl Rows {
    /// Tells each word of a side, by its place there. `activity` is what it is now.
    pub(super) fn tell(&self, activity: u64, mut set: impl FnMut(usize, u64)) {
        let receives = &self.receives[..self.receives.len().min(OPEN_ROWS)];
        let sends = &self.sends[..self.sends.len().min(OPEN_ROWS)];
        let messages = &self.messages[..self.messages.len().min(OPEN_ROWS)];
        let waits = &self.waits[..self.waits.len().min(WAIT_ROWS + OTHER_ROWS)];
        let listed = receives.len() | sends.len() << 16 | messages.len() << 32 | waits.len() << 48;
        for (word, value) in [
            (Head::Written, self.written.as_nanos()),
            (Head::Activity, activity),
            (Head::ReceivesInAll, self.receives_in_all),
            (Head::SendsInAll, self.sends_in_all),
            (Head::MessagesInAll, self.messages_in_all),
            (Head::Listed, listed as u64),
            (Head::PeersDelayed, self.peers_delayed.into()),
            (Head::IsPressed, self.is_pressed.into()),
            (Head::IsWaiting, self.is_waiting.into()),
        ] {
            set(word as usize, value);
        }
        for (at, row) in receives.iter().enumerate() {
            tell_row(RECEIVES_AT + at * RECEIVE_WORDS, row.words(), &mut set);
        }
        for (at, row) in sends.iter().enumerate() {
            tell_row(SENDS_AT + at * SEND_WORDS, row.words(), &mut set);
        }
        for (at, row) in messages.iter().enumerate() {
            tell_row(MESSAGES_AT + at * MESSAGE_WORDS, row.words(), &mut set);
        }
        for (at, row) in waits.iter().enumerate() {
            tell_row(WAITS_AT + at * WAIT_WORDS, row.words(), &mut set);
        }
    }
}

fn tell_row<const WORDS: usize>(at: usize, words: [u64; WORDS], set: &mut impl FnMut(usize, u64)) {
    words.into_iter().enumerate().for_each(|(place, word)| set(at + place, word));
}

/// A length with what its highest bits say.
fn length(bytes: u64, tag: Option<u64>) -> u64 {
    bytes.min((1 << BYTES_BITS) - 1) | if tag.is_none() { IS_UNTAGGED } else { 0 }
}

impl WaitRow {
    fn words(&self) -> [u64; WAIT_WORDS] {
        let cause = number_of(Some(self.cause)) << BYTES_BITS;
        let waited = u64::try_from(self.waited.as_nanos()).unwrap_or(u64::MAX);
        let since = self.since.map_or(0, |since| since.as_nanos().max(1));
        [self.peer.unwrap_or(0), self.count.min((1 << BYTES_BITS) - 1) | cause, waited, since]
    }
}

impl ReceiveRow {
    fn words(&self) -> [u64; RECEIVE_WORDS] {
        let arriving = if self.is_arriving { IS_ARRIVING } else { 0 };
        let probe = if self.is_probe { IS_PROBE } else { 0 };
        let length = length(self.bytes, self.tag) | arriving | probe;
        [self.from.unwrap_or(0), self.tag.unwrap_or(0), self.ignore, length, self.since.as_nanos()]
    }
}

impl SendRow {
    fn words(&self) -> [u64; SEND_WORDS] {
        let length = length(self.bytes, self.tag) | number_of(self.waits_for) << BYTES_BITS;
        [self.to, self.tag.unwrap_or(0), length, self.since.as_nanos()]
    }
}

impl MessageRow {
    fn words(&self) -> [u64; MESSAGE_WORDS] {
        [self.from, self.tag.unwrap_or(0), length(self.bytes, self.tag), self.since.as_nanos()]
    }
}
