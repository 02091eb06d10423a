//! Which word of a page is what. A page is read on the host that wrote it, or on one of the same kind: words of 64 bits
//! in the machine's order.
//!
//! First the description ([`Word`]), whose last part is texts ([`Text`]); then one word per counter, in the order of
//! `Counter::ALL`; then two sides, each with a head ([`Head`]) and rows.

use crate::plain::plain;
use tidegate_message::{Counter, WAY_CLASSES, WaitCause};

/// What the first word of a page of any version has in its upper seven bytes.
const MARK: [u8; 7] = *b"TIDESTA";
/// The version of this layout.
pub(super) const VERSION: u8 = 7;
/// The first word of a page.
pub(super) const MAGIC: u64 = {
    let [a, b, c, d, e, f, g] = MARK;
    u64::from_be_bytes([a, b, c, d, e, f, g, VERSION])
};

/// Most rows of a side that say for whom sends wait.
pub const WAIT_ROWS: usize = tidegate_message::WAITS_MOST;
/// Rows in which all other peers are summed, one for each cause.
pub const OTHER_ROWS: usize = WaitCause::ALL.len();
/// Most rows of a side for each kind of what is open.
pub const OPEN_ROWS: usize = tidegate_message::OPEN_MOST;

/// Words of the description, texts included.
pub(super) const HEADER_WORDS: usize = 128;
/// Where the texts begin.
const TEXTS_AT: usize = 64;
const SIDES_AT: usize = HEADER_WORDS + Counter::COUNT;
const SIDE_WORDS: usize = WAITS_AT + (WAIT_ROWS + OTHER_ROWS) * WAIT_WORDS;

/// Bytes of a page: 21 KiB, so a file takes 24 KiB.
pub const PAGE_BYTES: usize = (SIDES_AT + 2 * SIDE_WORDS) * 8;

/// Words of a row of each kind.
pub(super) const RECEIVE_WORDS: usize = 5;
pub(super) const SEND_WORDS: usize = 4;
pub(super) const MESSAGE_WORDS: usize = 4;
pub(super) const WAIT_WORDS: usize = 4;
/// Where the rows of each kind begin in a side.
pub(super) const RECEIVES_AT: usize = 9;
pub(super) const SENDS_AT: usize = RECEIVES_AT + OPEN_ROWS * RECEIVE_WORDS;
pub(super) const MESSAGES_AT: usize = SENDS_AT + OPEN_ROWS * SEND_WORDS;
/// Last, because a reader stops behind the last row that there is.
pub(super) const WAITS_AT: usize = MESSAGES_AT + OPEN_ROWS * MESSAGE_WORDS;

/// Stands for what the launcher did not tell.
pub(super) const UNKNOWN: u64 = u64::MAX;

/// The words of the description.
#[derive(Clone, Copy)]
#[repr(usize)]
pub(super) enum Word {
    Magic,
    Counters,
    Pid,
    Serial,
    Rank,
    JobSize,
    Scheme,
    SlotsPerPeer,
    CreditSlots,
    Piggyback,
    Peers,
    Bulk,
    /// The next five where buffers are posted, else 0.
    BufferPackets,
    Buffers,
    BuffersMost,
    PoolFirst,
    PoolMost,
    /// The random number that is part of the endpoint's address.
    Endpoint,
    /// When the page was made: nanoseconds since the epoch, and by the clock of all other times in the page.
    StartedEpoch,
    Started,
    /// When the endpoint closed in order; else 0.
    Ended,
    /// The endpoint that was the first whose death this one has noticed; else 0.
    FirstDead,
    /// How often rows have been written: the lowest bit says which side has the last ones.
    Written,
    /// Polls that find nothing before the processor is given away, as chosen when a peer came last.
    Spin,
    /// Bytes of the chunks in which long messages are taken: within the host, and between hosts. 0: nobody has said so;
    /// [`UNKNOWN`]: whole.
    Chunk,
    ChunkBetweenHosts,
    /// Names the clock of all times but the epoch's: readers that have it, too, need no other. 0: not known.
    Boot,
    /// Peers that share the slots at the start; 0: all that there may be.
    ExpectedPeers,
    /// The settings that were chosen because the user left them open: a bit each, see [`Chosen`](super::Chosen).
    Chosen,
    /// The first of [`WAY_CLASSES`] words: the times of both ways of long messages of a class
    /// ([`WayTimes`](tidegate_message::WayTimes)), that of bounce buffers in the upper half.
    WayTimes,
}

/// The words with which a side begins.
#[derive(Clone, Copy)]
#[repr(usize)]
pub(super) enum Head {
    /// When the rows were written.
    Written,
    /// The [activity](activity) then.
    Activity,
    /// How many there are of each kind, rows or not.
    ReceivesInAll,
    SendsInAll,
    MessagesInAll,
    /// How many rows there are of each kind: receives, sends, messages and waits, 16 bits each.
    Listed,
    /// How many peers had sends waiting for credits or room in a mailbox.
    PeersDelayed,
    /// Whether peers deferred sends because of our receive memory.
    IsPressed,
    /// Whether the application polled in vain while something of its was open.
    IsWaiting,
}

/// A text of the description: zeros follow it.
#[derive(Clone, Copy)]
pub(super) struct Text {
    /// The word at which it begins.
    pub(super) at: usize,
    /// Its room.
    pub(super) words: usize,
}

impl Text {
    /// Name of the program.
    pub(super) const PROGRAM: Text = Text { at: TEXTS_AT, words: 32 };
    pub(super) const HOST: Text = Text { at: Self::PROGRAM.end(), words: 8 };
    pub(super) const LAUNCH: Text = Text { at: Self::HOST.end(), words: 8 };
    /// Which MPI it is.
    pub(super) const MPI: Text = Text { at: Self::LAUNCH.end(), words: 2 };
    /// What reaches other hosts.
    pub(super) const NETWORK: Text = Text { at: Self::MPI.end(), words: 14 };

    const fn end(self) -> usize {
        self.at + self.words
    }

    /// The words of a text, cut to its room, with at least one zero behind it.
    pub(super) fn words_of(self, text: &[u8]) -> Vec<u64> {
        let mut bytes = vec![0; self.words * 8];
        let kept = text.len().min(bytes.len() - 1);
        bytes[..kept].copy_from_slice(&text[..kept]);
        bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect()
    }

    /// The text in the words of a page, which another user may have made.
    pub(super) fn read(self, page: &[u64]) -> Option<String> {
        let bytes: Vec<u8> = page.get(self.at..self.end())?.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let text = bytes.split(|byte| *byte == 0).next()?;
        Some(plain(&String::from_utf8_lossy(text)))
    }
}

const _: () = assert!(Word::WayTimes as usize + WAY_CLASSES <= TEXTS_AT);
const _: () = assert!(Text::NETWORK.end() <= HEADER_WORDS && (Word::ChunkBetweenHosts as usize) < TEXTS_AT);
const _: () = assert!((Head::IsWaiting as usize) < RECEIVES_AT && PAGE_BYTES <= 24 << 10);

/// The first word of the side that is in use after rows have been written so often.
pub(super) fn side_at(written: u64) -> usize {
    SIDES_AT + (written & 1) as usize * SIDE_WORDS
}

/// A number that changes with all that moves messages: while it stands still, what was open stays open.
pub(super) fn activity(counter: impl Fn(Counter) -> u64) -> u64 {
    let moving = [Counter::PacketsSent, Counter::PacketsReceived, Counter::MessagesSelf, Counter::BytesRead];
    moving.into_iter().map(counter).fold(0, u64::wrapping_add)
}

/// The version of the layout that a first word tells; `None` if it is of no page of counters.
pub(super) fn version_of(first: u64) -> Option<u8> {
    let [mark @ .., version] = first.to_be_bytes();
    (mark == MARK).then_some(version)
}
