//! A side of a page: a [`Snapshot`] as words, by its process, and back, by readers.
//!
//! Peers are named by the ids of their endpoints, which are never 0 and never used twice.

use super::cause::{cause_of, number_of};
use super::layout::{
    Head, MESSAGE_WORDS, MESSAGES_AT, OPEN_ROWS, OTHER_ROWS, RECEIVE_WORDS, RECEIVES_AT, SEND_WORDS, SENDS_AT,
    WAIT_ROWS, WAIT_WORDS, WAITS_AT,
};
use std::time::Duration;
use tidegate_message::{Instant, OpenMessage, OpenReceive, OpenSend, PeerWait, Snapshot};

/// The highest bits of a length say more of its row: 5 bits of a cause above 56 bits of length, and three flags.
const BYTES_BITS: u32 = 56;
const BYTES_MASK: u64 = (1 << BYTES_BITS) - 1;
const CAUSE_MASK: u64 = 0x1f;
const IS_PROBE: u64 = 1 << 61;
const IS_UNTAGGED: u64 = 1 << 62;
const IS_ARRIVING: u64 = 1 << 63;

/// A side as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Side {
    /// A number that changes with all that moves messages, as it was then.
    pub(super) activity: u64,
    pub(super) seen: Snapshot<u64, Duration>,
}

/// Tells each word of a side, by its place there. Operations and waits beyond the room of a side ([`WAIT_ROWS`],
/// [`OPEN_ROWS`]) are left out. `activity` is what it is now.
pub(super) fn tell(seen: &Snapshot<u64>, activity: u64, mut set: impl FnMut(usize, u64)) {
    let receives = &seen.receives[..seen.receives.len().min(OPEN_ROWS)];
    let sends = &seen.sends[..seen.sends.len().min(OPEN_ROWS)];
    let messages = &seen.unexpected[..seen.unexpected.len().min(OPEN_ROWS)];
    let waits = &seen.waits[..seen.waits.len().min(WAIT_ROWS + OTHER_ROWS)];
    let listed = receives.len() | sends.len() << 16 | messages.len() << 32 | waits.len() << 48;
    for (word, value) in [
        (Head::Written, seen.at.as_nanos()),
        (Head::Activity, activity),
        (Head::ReceivesInAll, seen.receives_in_all),
        (Head::SendsInAll, seen.sends_in_all),
        (Head::MessagesInAll, seen.unexpected_in_all),
        (Head::Listed, listed as u64),
        (Head::PeersDelayed, seen.peers_delayed.into()),
        (Head::IsPressed, seen.is_pressed.into()),
        (Head::IsWaiting, seen.is_waiting.into()),
    ] {
        set(word as usize, value);
    }
    tell_rows(RECEIVES_AT, receives.iter().map(receive_words), &mut set);
    tell_rows(SENDS_AT, sends.iter().map(send_words), &mut set);
    tell_rows(MESSAGES_AT, messages.iter().map(message_words), &mut set);
    tell_rows(WAITS_AT, waits.iter().map(wait_words), &mut set);
}

fn tell_rows<const WORDS: usize>(
    at: usize,
    rows: impl Iterator<Item = [u64; WORDS]>,
    set: &mut impl FnMut(usize, u64),
) {
    rows.flatten().enumerate().for_each(|(place, word)| set(at + place, word));
}

/// A length with what its highest bits say.
fn length(bytes: u64, tag: Option<u64>) -> u64 {
    bytes.min(BYTES_MASK) | if tag.is_none() { IS_UNTAGGED } else { 0 }
}

fn wait_words(wait: &PeerWait<u64>) -> [u64; WAIT_WORDS] {
    let cause = number_of(Some(wait.cause)) << BYTES_BITS;
    let waited = u64::try_from(wait.waited.as_nanos()).unwrap_or(u64::MAX);
    let since = wait.since.map_or(0, |since| since.as_nanos().max(1));
    [wait.peer.unwrap_or(0), wait.count.min(BYTES_MASK) | cause, waited, since]
}

fn receive_words(receive: &OpenReceive<u64>) -> [u64; RECEIVE_WORDS] {
    let arriving = if receive.is_arriving { IS_ARRIVING } else { 0 };
    let probe = if receive.is_probe { IS_PROBE } else { 0 };
    let length = length(receive.bytes, receive.tag) | arriving | probe;
    [receive.from.unwrap_or(0), receive.tag.unwrap_or(0), receive.ignore, length, receive.since.as_nanos()]
}

fn send_words(send: &OpenSend<u64>) -> [u64; SEND_WORDS] {
    let length = length(send.bytes, send.tag) | number_of(send.waits_for) << BYTES_BITS;
    [send.to, send.tag.unwrap_or(0), length, send.since.as_nanos()]
}

fn message_words(message: &OpenMessage<u64>) -> [u64; MESSAGE_WORDS] {
    [message.from, message.tag.unwrap_or(0), length(message.bytes, message.tag), message.since.as_nanos()]
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
        let cause = |length: u64| cause_of((length >> BYTES_BITS) & CAUSE_MASK);
        let some = |id: u64| Some(id).filter(|id| *id != 0);
        let receive = |&[from, bits, ignore, length, since]: &[u64; RECEIVE_WORDS]| OpenReceive {
            from: some(from),
            tag: tag(bits, length),
            ignore,
            bytes: length & BYTES_MASK,
            since: age(since),
            is_arriving: length & IS_ARRIVING != 0,
            is_probe: length & IS_PROBE != 0,
        };
        let send = |&[to, bits, length, since]: &[u64; SEND_WORDS]| OpenSend {
            to,
            tag: tag(bits, length),
            bytes: length & BYTES_MASK,
            since: age(since),
            waits_for: cause(length),
        };
        let message = |&[from, bits, length, since]: &[u64; MESSAGE_WORDS]| OpenMessage {
            from,
            tag: tag(bits, length),
            bytes: length & BYTES_MASK,
            since: age(since),
        };
        let wait = |&[peer, count, waited, since]: &[u64; WAIT_WORDS]| {
            Some(PeerWait {
                peer: some(peer),
                cause: cause(count)?,
                count: count & BYTES_MASK,
                waited: Duration::from_nanos(waited),
                since: some(since).map(age),
            })
        };
        let seen = Snapshot {
            at: Instant::from_nanos(written),
            peers_delayed: head(Head::PeersDelayed)?.try_into().unwrap_or(u32::MAX),
            is_pressed: head(Head::IsPressed)? != 0,
            is_waiting: head(Head::IsWaiting)? != 0,
            // They stand in the description.
            way_times: Default::default(),
            waits: rows(words, WAITS_AT, listed.waits)?.iter().filter_map(wait).collect(),
            receives: rows(words, RECEIVES_AT, listed.receives)?.iter().map(receive).collect(),
            receives_in_all: head(Head::ReceivesInAll)?,
            sends: rows(words, SENDS_AT, listed.sends)?.iter().map(send).collect(),
            sends_in_all: head(Head::SendsInAll)?,
            unexpected: rows(words, MESSAGES_AT, listed.messages)?.iter().map(message).collect(),
            unexpected_in_all: head(Head::MessagesInAll)?,
        };
        Some(Side { activity: head(Head::Activity)?, seen })
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
