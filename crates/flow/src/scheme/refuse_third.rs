//! `refuse_third`: a scheme for tests, and the shortest one that uses time, refusals and [`Answer::Announce`].
//!
//! It stands for a receiver whose adapter refuses every third packet ("receiver not ready"), as the sender sees it: the
//! packet stays with the sender, which tries again after [`RETRY_AFTER`]. A packet that the link itself refuses is
//! treated alike. A short message whose first packet is refused may go by a request to send (RTS) instead.

use super::interface::Scheme;
use crate::control_queue::queue_bytes;
use crate::{Answer, Config, Credits, Instant, PeerId, Peers, Regions};
use std::collections::VecDeque;
use std::time::Duration;

/// How long a refused packet waits.
const RETRY_AFTER: Duration = Duration::from_micros(20);

/// What is remembered of each peer, and who waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RefuseThird {
    /// Packets that each peer has taken since the last that it refused. Three: it has refused one, which waits.
    taken: Peers<u32>,
    /// Who waits until when, the earliest first.
    waiting: VecDeque<(Instant, PeerId)>,
    /// Peers whose wait is over; `poll_ready` names them.
    ready: VecDeque<PeerId>,
}

impl RefuseThird {
    fn refuse(&mut self, to: PeerId, now: Instant) {
        *self.taken.of(to) = 3;
        self.waiting.push_back((now + RETRY_AFTER, to));
    }
}

impl Scheme for RefuseThird {
    fn new(config: &Config, _regions: Regions) -> Self {
        RefuseThird { taken: Peers::new(config.peers, ()), waiting: VecDeque::new(), ready: VecDeque::new() }
    }

    fn request(&mut self, to: PeerId, wanted: u32, now: Instant) -> Answer {
        match *self.taken.of(to) {
            3 => Answer::Wait,
            2 => {
                self.refuse(to, now);
                Answer::Announce
            }
            taken => {
                let granted = wanted.min(2 - taken);
                *self.taken.of(to) += granted;
                Answer::Packets(Credits::new(granted))
            }
        }
    }

    fn give_back(&mut self, to: PeerId, credits: Credits) {
        *self.taken.of(to) -= credits.into_count();
    }

    fn handle_refused(&mut self, to: PeerId, credits: Credits, now: Instant) {
        credits.into_count();
        self.refuse(to, now);
    }

    fn handle_late_refusal(&mut self, by: PeerId, now: Instant) {
        if *self.taken.of(by) < 3 {
            self.refuse(by, now);
        }
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.waiting.front().map(|&(due, _)| due)
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(due, peer)) = self.waiting.front()
            && due <= now
        {
            self.waiting.pop_front();
            *self.taken.of(peer) = 0;
            self.ready.push_back(peer);
        }
    }

    fn poll_ready(&mut self) -> Option<PeerId> {
        self.ready.pop_front()
    }

    fn reset(&mut self, peer: PeerId) {
        self.taken.forget(peer);
        self.waiting.retain(|&(_, other)| other != peer);
    }

    fn credits(&self, to: PeerId) -> u32 {
        2_u32.saturating_sub(self.taken.get(to).copied().unwrap_or(0))
    }

    fn heap_bytes(&self) -> usize {
        let peers = self.taken.count();
        Peers::<u32>::bytes_most(peers) + queue_bytes::<(Instant, PeerId)>(peers) + queue_bytes::<PeerId>(peers)
    }
}
