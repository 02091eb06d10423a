//! Reports of pressure on receive memory, for people.

use std::time::Duration;
use tidegate_flow::{Instant, PeerId};

/// Why receive memory is under pressure, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pressure {
    /// The sender whose messages find no room, and the tag of one that was refused (`None`: untagged).
    pub sender: (PeerId, Option<u64>),
    /// Bytes of its window.
    pub window: u64,
    /// Who else has unmatched messages stored here, the most first: sender, bytes. At most four.
    pub stored: Vec<(PeerId, u64)>,
    /// Bytes of unmatched messages stored here of all senders.
    pub bytes: u64,
}

/// Time between two reports of pressure at least.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// A report of pressure that is due, and when there was one.
#[derive(Debug, Default)]
pub(crate) struct PressureReport {
    /// The sender whose message found no room first since the last report, and its tag, while time is not known yet.
    begun: Option<(PeerId, Option<u64>)>,
    due: Option<Pressure>,
    last: Option<Instant>,
}

impl PressureReport {
    /// Whether something is to be reported as soon as time is known.
    #[inline]
    pub(super) fn is_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// A sender's message has found no room.
    pub(super) fn begin(&mut self, sender: PeerId, tag: Option<u64>) {
        self.begun.get_or_insert((sender, tag));
    }

    /// Prepares the report of what began since time was told last, unless there was one lately. `stored` says what
    /// unmatched messages take of each peer, in bytes, `window` what a peer's window is.
    pub(super) fn tell_time(
        &mut self,
        now: Instant,
        stored: impl Iterator<Item = (PeerId, u64)>,
        window: impl Fn(PeerId) -> u64,
    ) {
        let Some((from, tag)) = self.begun.take() else { return };
        if self.last.is_some_and(|last| now.since(last) < REPORT_INTERVAL) {
            return;
        }
        self.last = Some(now);
        let mut stored: Vec<_> = stored.filter(|&(_, bytes)| bytes > 0).collect();
        stored.sort_by_key(|&(peer, bytes)| (std::cmp::Reverse(bytes), peer.0));
        let bytes = stored.iter().map(|(_, bytes)| bytes).sum();
        stored.truncate(4);
        self.due = Some(Pressure { sender: (from, tag), window: window(from), stored, bytes });
    }

    /// The report that is due.
    pub(super) fn poll(&mut self) -> Option<Pressure> {
        // Nearly never; and a store with every poll would be one too many.
        if self.due.is_some() { self.due.take() } else { None }
    }
}
