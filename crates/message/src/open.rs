//! [`Snapshot`]: all that can be seen of an endpoint besides its counters, at one look
//! ([`Endpoint::look`](crate::Endpoint::look)). It is declared once: the message layer fills it, pages of counters hold
//! it in words, and their readers get it back.
//!
//! Two things differ on that way. Peers are [`Target`]s to their endpoint, and ids to all others: `P`. Times are
//! moments for the endpoint; a reader has another clock, to which only ages mean something: `T`.

use crate::operation::Target;
use crate::pulls::{CLASSES, WayTimes};
use crate::wait_cause::WaitCause;
use std::time::Duration;
use tidegate_flow::Instant;

/// How many of each kind of open operations are told.
pub const OPEN_MOST: usize = 16;

/// The state of an endpoint at one look. Of each kind of operations the oldest come first, [`OPEN_MOST`] at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot<P = Target, T = Instant> {
    /// When that was, by the clock of the endpoint.
    pub at: Instant,
    /// How many peers had something waiting for credits or room in a mailbox.
    pub peers_delayed: u32,
    /// Whether peers had sends deferred because of our receive memory.
    pub is_pressed: bool,
    /// Whether the application polls in vain ([`Endpoint::begin_wait`](crate::Endpoint::begin_wait)).
    pub is_waiting: bool,
    /// How fast long messages come each way, by class.
    pub way_times: [WayTimes; CLASSES],
    /// Waits of sends and receives, by peer and cause.
    pub waits: Vec<PeerWait<P, T>>,
    /// Receives.
    pub receives: Vec<OpenReceive<P, T>>,
    /// How many there are.
    pub receives_in_all: u64,
    /// Sends.
    pub sends: Vec<OpenSend<P, T>>,
    /// How many there are.
    pub sends_in_all: u64,
    /// Messages that no receive waits for.
    pub unexpected: Vec<OpenMessage<P, T>>,
    /// How many there are.
    pub unexpected_in_all: u64,
}

impl<P, T> Default for Snapshot<P, T> {
    fn default() -> Self {
        Snapshot {
            at: Instant::default(),
            peers_delayed: 0,
            is_pressed: false,
            is_waiting: false,
            way_times: Default::default(),
            waits: Vec::new(),
            receives: Vec::new(),
            receives_in_all: 0,
            sends: Vec::new(),
            sends_in_all: 0,
            unexpected: Vec::new(),
            unexpected_in_all: 0,
        }
    }
}

/// A peer for which sends or receives wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerWait<P = Target, T = Instant> {
    /// The peer; `None`: all peers that have no row of their own, or any.
    pub peer: Option<P>,
    /// What for.
    pub cause: WaitCause,
    /// How often.
    pub count: u64,
    /// How long, without a wait that goes on.
    pub waited: Duration,
    /// Since when a wait has lasted that goes on, or for how long.
    pub since: Option<T>,
}

/// A receive that is not finished. (Buffers for many messages are no such.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenReceive<P = Target, T = Instant> {
    /// The sender that it names; `None`: it accepts messages of any.
    pub from: Option<P>,
    /// Match bits, of a receive whose message is on its way that message's; `None`: it is untagged.
    pub tag: Option<u64>,
    /// Bits of the tag that do not matter; all of them where there is none.
    pub ignore: u64,
    /// Length of its buffer.
    pub bytes: u64,
    /// When it was seen first, or how long ago.
    pub since: T,
    /// Whether its message is on its way into the buffer.
    pub is_arriving: bool,
    /// Whether it is none: the program asks again and again whether such a message is there.
    pub is_probe: bool,
}

/// A send that is not finished: it has not left, or its receiver has not got it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSend<P = Target, T = Instant> {
    /// The receiver.
    pub to: P,
    /// Match bits; `None`: it is untagged.
    pub tag: Option<u64>,
    /// Length of the message.
    pub bytes: u64,
    /// When it was seen first, or how long ago.
    pub since: T,
    /// What it waits for, if that is known.
    pub waits_for: Option<WaitCause>,
}

/// A message that has come, and that no receive waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenMessage<P = Target, T = Instant> {
    /// The sender.
    pub from: P,
    /// Match bits; `None`: it is untagged.
    pub tag: Option<u64>,
    /// Its length.
    pub bytes: u64,
    /// When it was seen first, or how long ago.
    pub since: T,
}

impl<P, T> Snapshot<P, T> {
    /// Whether no operation is open.
    pub fn is_empty(&self) -> bool {
        [self.receives_in_all, self.sends_in_all, self.unexpected_in_all] == [0; 3]
    }
}

impl<P> Snapshot<P, Duration> {
    /// All that was open has been so for longer, by this time, and so have the waits that went on.
    pub fn grow_older(&mut self, time: Duration) {
        self.receives.iter_mut().for_each(|receive| receive.since += time);
        self.sends.iter_mut().for_each(|send| send.since += time);
        self.unexpected.iter_mut().for_each(|message| message.since += time);
        self.waits.iter_mut().filter_map(|wait| wait.since.as_mut()).for_each(|since| *since += time);
    }
}

impl<P> PeerWait<P, Duration> {
    /// How long the wait has lasted that goes on.
    pub fn open_for(&self) -> Option<Duration> {
        self.since
    }

    /// How long they waited, a wait that goes on included.
    pub fn in_all(&self) -> Duration {
        self.waited + self.since.unwrap_or_default()
    }
}

impl<P> OpenReceive<P, Duration> {
    /// How long it has been open.
    pub fn age(&self) -> Duration {
        self.since
    }
}

impl<P> OpenSend<P, Duration> {
    /// How long it has been open.
    pub fn age(&self) -> Duration {
        self.since
    }
}

impl<P> OpenMessage<P, Duration> {
    /// How long it has been here.
    pub fn age(&self) -> Duration {
        self.since
    }
}
