//! [`Retries`]: senders whose message was refused, until their timers run out (L §4.1, A §2.1).
//!
//! A link that finds no buffer as it writes refuses at once, and the packet stays with its sender; then this is the
//! adapter's retry timer. (A link that refuses later keeps what it refused and has a timer of its own.) The timer is
//! the same for all and fixed from the start, so those who wait stand in the order in which they are tried again. A
//! buffer that is posted meanwhile changes nothing: nobody tells the sender.

use crate::control_queue::queue_bytes;
use crate::{Instant, PeerId, Peers, SchemeStats};
use std::collections::VecDeque;
use std::time::Duration;

/// What became of messages for one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Retry {
    /// Its timer runs.
    runs: bool,
    /// How often it refused since something left for it: 0, 1, or more often.
    refusals: u8,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Retries {
    timer: Duration,
    peers: Peers<Retry, 64>,
    /// Until when, the earliest first.
    due: VecDeque<(Instant, PeerId)>,
    /// Whose timer has run out and who has not been named.
    ready: VecDeque<PeerId>,
    tally: SchemeStats,
}

impl Retries {
    pub(crate) fn new(peers: u32, timer: Duration) -> Self {
        let tally = SchemeStats::default();
        Retries { timer, peers: Peers::new(peers, ()), due: VecDeque::new(), ready: VecDeque::new(), tally }
    }

    /// A message for `to` was refused: it waits, if it does not already.
    pub(crate) fn refuse(&mut self, to: PeerId, now: Instant) {
        self.tally.refusals += 1;
        let retry = self.peers.of(to);
        retry.refusals = (retry.refusals + 1).min(2);
        if !std::mem::replace(&mut retry.runs, true) {
            self.due.push_back((now + self.timer, to));
        }
    }

    /// A packet leaves for `to`.
    #[inline]
    pub(crate) fn note_departure(&mut self, to: PeerId) {
        if let Some(retry) = self.peers.get_mut(to).filter(|retry| retry.refusals > 0) {
            retry.refusals = 0;
        }
    }

    /// How often `to` has refused since something left for it: 0, 1, or more often.
    pub(crate) fn refusals(&self, to: PeerId) -> u8 {
        self.peers.get(to).map_or(0, |retry| retry.refusals)
    }

    /// A message was refused that its link sends again.
    pub(crate) fn count_late_refusal(&mut self) {
        self.tally.refusals += 1;
        self.tally.retries += 1;
    }

    /// Whether messages for `to` wait for a timer.
    #[inline]
    pub(crate) fn waits(&self, to: PeerId) -> bool {
        self.peers.get(to).is_some_and(|retry| retry.runs)
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.due.front().map(|&(due, _)| due)
    }

    /// Takes the next peer whose timer has run out.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<PeerId> {
        let &(_, peer) = self.due.front().filter(|(due, _)| *due <= now)?;
        self.due.pop_front();
        self.peers.of(peer).runs = false;
        self.tally.retries += 1;
        self.ready.push_back(peer);
        Some(peer)
    }

    pub(crate) fn poll_ready(&mut self) -> Option<PeerId> {
        self.ready.pop_front()
    }

    /// Nothing waits for a peer that is gone.
    pub(crate) fn forget(&mut self, peer: PeerId) {
        if self.peers.forget(peer).is_some_and(|retry| retry.runs) {
            self.due.retain(|&(_, other)| other != peer);
        }
        self.ready.retain(|&other| other != peer);
    }

    pub(crate) fn tally(&self) -> SchemeStats {
        self.tally
    }

    /// Most heap bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        let peers = self.peers.count();
        Peers::<Retry, 64>::bytes_most(peers) + queue_bytes::<(Instant, PeerId)>(peers) + queue_bytes::<PeerId>(peers)
    }
}
