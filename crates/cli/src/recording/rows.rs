//! `last.json`: what pages of counters said last that is no counter.

use serde::{Deserialize, Serialize};

/// What was last seen of all endpoints, in the order of their first samples.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Last {
    /// [`RECORDING_SCHEMA`](super::RECORDING_SCHEMA).
    pub schema: String,
    /// When, in nanoseconds since the start.
    pub at_ns: u64,
    /// By endpoint.
    pub endpoints: Vec<EndpointRows>,
}

/// What was last seen of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndpointRows {
    /// Whether it closed in order.
    pub ended: bool,
    /// How bulk data travels.
    pub bulk: String,
    /// For whom its sends waited.
    pub waits: Vec<WaitRow>,
    /// What was not finished, oldest first, the most important of each kind.
    pub open: Vec<OpenRow>,
    /// How many of each kind there were in all.
    pub open_in_all: OpenCounts,
}

/// Sends that waited for a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitRow {
    /// The peer's id; `None`: many peers together, of whom no rows were kept.
    pub peer: Option<u64>,
    /// What they waited for.
    pub cause: Cause,
    /// How many waits, one that goes on included.
    pub count: u64,
    /// How long, the wait that goes on included, in nanoseconds.
    pub waited_ns: u64,
    /// Whether one goes on.
    pub goes_on: bool,
}

/// What sends waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// Credits.
    Credits,
    /// Room in the mailbox.
    Mailbox,
    /// Room in receive memory.
    Window,
    /// A posted buffer.
    Buffer,
    /// That the receiver pulls a long message.
    Pull,
}

impl Cause {
    /// All of them.
    pub const ALL: [Cause; 5] = [Cause::Credits, Cause::Mailbox, Cause::Window, Cause::Buffer, Cause::Pull];

    /// What is waited for, in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Cause::Credits => "credits",
            Cause::Mailbox => "room in the mailbox",
            Cause::Window => "room in receive memory",
            Cause::Buffer => "a posted buffer",
            Cause::Pull => "the receiver to pull a long message",
        }
    }
}

/// Something that was not finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenRow {
    /// What it is.
    pub kind: OpenKind,
    /// The other side; `None`: any.
    pub peer: Option<u64>,
    /// Its tag, in words.
    pub tag: String,
    /// Its bytes.
    pub bytes: u64,
    /// How long it had been so, in nanoseconds.
    pub age_ns: u64,
    /// What it waits for, if that is known.
    pub waits_for: Option<Cause>,
}

/// Kinds of unfinished work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OpenKind {
    /// A posted receive that nothing matched.
    Receive,
    /// A send that has not ended.
    Send,
    /// A message that nobody received.
    Unexpected,
}

/// How many of each kind are open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpenCounts {
    /// Posted receives.
    pub receives: u64,
    /// Sends.
    pub sends: u64,
    /// Messages that nobody received.
    pub unexpected: u64,
}
