//! What is not finished, for whoever looks at an endpoint now and then ([`Endpoint::look`](crate::Endpoint::look)).

use crate::operation::{Source, Space, Target};
use crate::pulls::{CLASSES, WayTimes};
use crate::waits::{PeerWait, WaitCause};
use tidegate_flow::Instant;

/// How many of each kind are told.
pub const OPEN_MOST: usize = 16;

/// What was not finished at one look. Of each kind the oldest come first, [`OPEN_MOST`] at most.
#[derive(Clone, Debug, Default)]
pub struct Open {
    /// When that was.
    pub now: Instant,
    /// How many peers had something waiting for credits or room in a mailbox.
    pub peers_delayed: u32,
    /// Whether peers had sends deferred because of our receive memory.
    pub is_pressed: bool,
    /// Whether the application polls in vain for something that is open
    /// ([`Endpoint::begin_wait`](crate::Endpoint::begin_wait)).
    pub is_waiting: bool,
    /// How fast long messages come each way, by class.
    pub way_times: [WayTimes; CLASSES],
    /// Waits of sends and receives, by peer and cause.
    pub waits: Vec<PeerWait>,
    /// Receives.
    pub receives: Vec<OpenReceive>,
    /// How many there are.
    pub receives_in_all: usize,
    /// Sends.
    pub sends: Vec<OpenSend>,
    /// How many there are.
    pub sends_in_all: usize,
    /// Messages that no receive waits for.
    pub unexpected: Vec<OpenMessage>,
    /// How many there are.
    pub unexpected_in_all: usize,
}

/// A receive that is not finished. (Buffers for many messages are no such.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenReceive {
    /// Which senders it accepts.
    pub from: Source,
    /// Which tags; of one whose message is on its way, that message's.
    pub space: Space,
    /// Length of its buffer.
    pub bytes: usize,
    /// When it was seen first.
    pub since: Instant,
    /// Whether its message is on its way into the buffer.
    pub is_arriving: bool,
    /// Whether it is none: the program asks again and again whether such a message is there.
    pub is_probe: bool,
}

/// A send that is not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSend {
    /// To whom.
    pub to: Target,
    /// With which tag.
    pub space: Space,
    /// Length of the message.
    pub bytes: usize,
    /// When it was seen first.
    pub since: Instant,
    /// What it waits for.
    pub waits_for: WaitCause,
}

/// A message that no receive waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenMessage {
    /// From whom.
    pub from: Target,
    /// With which tag.
    pub space: Space,
    /// Its length.
    pub bytes: usize,
    /// When it was seen first.
    pub since: Instant,
}
