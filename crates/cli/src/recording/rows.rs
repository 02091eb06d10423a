//! `last.json`: what pages of counters said last that is no counter.

use serde::{Deserialize, Serialize};
use tidegate_link::stats::WaitCause;

use super::text;

/// What was last seen of all endpoints, in the order of their first samples.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Last {
    /// [`RECORDING_SCHEMA`](super::RECORDING_SCHEMA).
    pub schema: String,
    /// When, in nanoseconds since the start.
    pub at_ns: u64,
    /// By endpoint.
    pub endpoints: Vec<EndpointRows>,
    /// Who held up whom then, in a sentence, if anybody did; a job that ended in order has none.
    #[serde(default, deserialize_with = "text::perhaps")]
    pub held_up: Option<String>,
}

/// What was last seen of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndpointRows {
    /// Whether it closed in order.
    pub ended: bool,
    /// How long it had been open, in nanoseconds; 0: not known.
    pub lived_ns: u64,
    /// How bulk data travels.
    #[serde(deserialize_with = "text::one")]
    pub bulk: String,
    /// How fast long messages came each way within the host, in picoseconds per byte, by class of length: by bounce
    /// buffers, and read directly. See [`WayTimes`](tidegate_message::WayTimes); none: nothing was measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ways: Vec<[u32; 2]>,
    /// The peers for which its sends and receives waited.
    pub waits: Vec<WaitRow>,
    /// What was not finished, oldest first, the most important of each kind.
    pub open: Vec<OpenRow>,
    /// How many of each kind there were in all.
    pub open_in_all: OpenCounts,
}

/// Sends or receives that waited for a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitRow {
    /// The peer's id; `None`: many peers together, without rows of their own, or any.
    pub peer: Option<u64>,
    /// What they waited for.
    #[serde(with = "cause")]
    pub cause: WaitCause,
    /// How many waits, one that goes on included.
    pub count: u64,
    /// How long, the wait that goes on included, in nanoseconds.
    pub waited_ns: u64,
    /// Whether one goes on.
    pub goes_on: bool,
}

/// The tag of receives without one, which are the MPI's own: it posts buffers for what may come.
pub const UNTAGGED: &str = "untagged";

/// What is waited for, in words.
#[must_use]
pub fn words(cause: WaitCause) -> &'static str {
    match cause {
        WaitCause::Pull => "a long message to be received",
        cause => cause.help(),
    }
}

/// Causes by their names.
mod cause {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use tidegate_link::stats::WaitCause;

    pub fn serialize<S: Serializer>(cause: &WaitCause, to: S) -> Result<S::Ok, S::Error> {
        cause.name().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<WaitCause, D::Error> {
        let name = String::deserialize(from)?;
        let found = WaitCause::ALL.iter().copied().find(|cause| cause.name() == name);
        found.ok_or_else(|| D::Error::custom(format!("nothing waits for \"{name}\"")))
    }

    /// Where there may be none.
    pub mod optional {
        use super::*;

        #[derive(Serialize, Deserialize)]
        struct Named(#[serde(with = "super")] WaitCause);

        pub fn serialize<S: Serializer>(cause: &Option<WaitCause>, to: S) -> Result<S::Ok, S::Error> {
            cause.map(Named).serialize(to)
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<WaitCause>, D::Error> {
            Ok(Option::<Named>::deserialize(from)?.map(|Named(cause)| cause))
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
    #[serde(deserialize_with = "text::one")]
    pub tag: String,
    /// Its bytes.
    pub bytes: u64,
    /// How long it had been so, in nanoseconds.
    pub age_ns: u64,
    /// What it waits for, if that is known.
    #[serde(default, with = "cause::optional")]
    pub waits_for: Option<WaitCause>,
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
