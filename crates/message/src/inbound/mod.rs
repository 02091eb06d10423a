//! [`Inbound`]: receives and the messages that they get, those that wait for a receive, and the windows of the senders,
//! of which these take a part.
//!
//! `assembly`, `matching`, `sequence` and `deferral` are the parts of it; each file says what follows in them from what
//! happens: `eager` when messages come, `querying` for deferred sends of peers, `posting` and `receiving` when receives
//! begin and end, `departure` when a peer is lost. Of a message that stays with its sender `matching` has the envelope
//! until it has its receive; from then on it is in [`Pulling`](crate::pulls), which methods are handed where they need
//! it.

mod delivering;
mod departure;
mod eager;
mod loopback;
mod peek;
mod posting;
mod querying;
mod receiving;
mod sessions;
mod window;

use crate::assembly::Assembly;
use crate::collections::list::Position;
use crate::collections::slab::Key;
use crate::deferral::{Pressure, Windows};
use crate::envelope::Envelope;
use crate::link::Link;
use crate::malformed::Handled;
use crate::matching::{Active, Matching, Stored, Unexpected};
use crate::operation::Queue;
use crate::sequence::Sequence;
use tidegate_flow::{Instant, PeerId};

/// See the module.
#[derive(Debug)]
pub(crate) struct Inbound<L: Link> {
    assembly: Assembly<L::Buffer>,
    matching: Matching<L::Buffer>,
    sequence: Sequence<L::Buffer>,
    windows: Windows,
}

impl<L: Link> Inbound<L> {
    /// Most heap bytes of the tables of peers: when messages of all `peers` have come.
    pub(crate) const fn bytes_most(peers: u32) -> usize {
        Assembly::<L::Buffer>::bytes_most(peers) + Windows::bytes_most(peers)
    }

    /// The same for each sender that has a window.
    pub(crate) const BYTES_OF_SENDER: usize = Windows::BYTES_OF_SENDER + Assembly::<L::Buffer>::BYTES_OF_SENDER;

    pub(crate) fn new(peers: u32, windows: Windows) -> Self {
        Inbound {
            assembly: Assembly::new(peers),
            matching: Matching::new(peers),
            sequence: Sequence::default(),
            windows,
        }
    }

    /// Messages that come in several packets.
    #[inline(always)]
    pub(crate) fn assembly(&mut self) -> &mut Assembly<L::Buffer> {
        &mut self.assembly
    }

    /// Whether any are under way.
    #[inline]
    pub(crate) fn is_under_way(&self) -> bool {
        self.assembly.is_under_way()
    }

    /// Which receive gets which message, for looks.
    pub(crate) fn matching(&self) -> &Matching<L::Buffer> {
        &self.matching
    }

    /// The windows of the peers, for looks.
    #[inline]
    pub(crate) fn windows(&self) -> &Windows {
        &self.windows
    }

    /// Takes this number of bytes out of the spare receive memory for good. Returns whether it had as many.
    pub(crate) fn take_spare(&mut self, bytes: usize) -> bool {
        self.windows.take_spare(bytes)
    }

    /// Time is told. Returns whether receive memory has been under pressure since it was told last.
    pub(crate) fn tell_time(&mut self, now: Instant) -> bool {
        self.windows.tell_time(now)
    }

    /// Why receive memory came under pressure, if it did since the last call.
    pub(crate) fn poll_pressure(&mut self) -> Option<Pressure> {
        self.windows.poll_pressure()
    }

    /// The first receive that accepts a message.
    pub(crate) fn accept(&mut self, queue: Queue, envelope: &Envelope) -> Option<Active<L::Buffer>> {
        self.matching.of(queue).accept(envelope)
    }

    /// A message of a peer is being pulled into a buffer for several.
    pub(crate) fn begin_in_sequence(&mut self, peer: PeerId, pull: Key) {
        self.sequence.begin(peer, pull);
    }

    /// A send of a peer was deferred, and its envelope was dropped here: it has come after all.
    pub(crate) fn remember(&mut self, from: PeerId) -> Handled {
        self.windows.remember(from)
    }

    /// The next part of a stored message has come.
    pub(crate) fn append(&mut self, at: Position, queue: Queue, part: &[u8]) {
        let stored = self.matching.of(queue).stored_mut(at);
        if let Some(Unexpected { stored: Stored::Here(payload), envelope, .. }) = stored {
            payload.append(part, envelope.length);
        }
    }
}
