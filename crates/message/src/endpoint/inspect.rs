//! A copy of what an endpoint and one of its peers have agreed on about unmatched messages, for displays and checkers.

use super::Endpoint;
use crate::egress::{Backlog, WaitingControl, WaitingNote};
use crate::link::Link;
use crate::memory::Memory;
use tidegate_flow::PeerId;

/// The windows between an endpoint and one peer, in both directions (rule W1 in `deferral`). In bytes, unless said
/// otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowInspection {
    /// Of the peer's window for us: what is left. `None`: we have not sent it anything yet.
    pub room: Option<u32>,
    /// What we set aside for the peer.
    pub window: u32,
    /// Of that: what unmatched messages take.
    pub stored: u32,
    /// Of that: what is free again and the peer has not been told.
    pub freed: u32,
    /// How many of our sends the peer has no room for.
    pub deferred: usize,
    /// How many sends of the peer we have dropped the envelopes of.
    pub dropped: u64,
    /// Whether the peer has not answered a query of ours yet.
    pub querying: bool,
}

/// What waits between an endpoint and one peer (see `egress::backlog` and `rma::request`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BacklogInspection {
    /// Messages of our own program that wait to leave.
    pub messages: usize,
    /// Notes that the peer's packets have caused and that wait to leave.
    pub notes: usize,
    /// What these take, and the most that they may take, whatever the peer does; pulls that our program's receives
    /// have begun add a note each.
    pub note_bytes: Share,
    /// What reads of the peer take that are not through, and the most that they may take.
    pub read_bytes: Share,
    /// What answers to the peer with a payload take, and the most that they may take.
    pub answer_bytes: Share,
    /// What control packets take that the peer's full mailbox has refused, and the most that they may take.
    pub control_bytes: Share,
    /// Requests of ours that wait until the peer has answered earlier ones.
    pub requests: usize,
    /// What the peer's answers to our unanswered requests cost.
    pub unanswered: u32,
    /// The most that these may cost, unless it is a single request; 0: we have sent the peer nothing yet.
    pub unanswered_most: u32,
    /// Control packets that the peer's full mailbox has refused.
    pub control: usize,
}

/// What something takes of the receive memory, and the part that is set aside for it. In bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// What it takes now.
    pub taken: usize,
    /// The most that it may take.
    pub most: usize,
}

impl BacklogInspection {
    /// Whether each kind of what waits takes no more than is set aside for it, while so many pulls of our program's
    /// receives are under way.
    pub fn is_within_its_bounds(&self, pulls: usize) -> bool {
        let notes = Share { most: self.note_bytes.most + pulls * WaitingNote::BYTES, ..self.note_bytes };
        [notes, self.read_bytes, self.answer_bytes, self.control_bytes].iter().all(|share| share.taken <= share.most)
    }
}

impl<L: Link> Endpoint<L> {
    /// What waits between us and `peer`. Takes time in proportion to it.
    pub fn inspect_backlog(&self, peer: PeerId) -> BacklogInspection {
        let backlog = self.port.egress.inspect_backlog(peer);
        let (window, base) = (self.inbound.windows().inspect(peer), *self.port.limits_of(peer));
        let refused = self.port.egress.refused(peer) as usize;
        let has_session = self.inbound.windows().has_session(peer);
        BacklogInspection {
            messages: backlog.map_or(0, Backlog::messages),
            notes: backlog.map_or(0, Backlog::notes),
            note_bytes: Share {
                taken: backlog.map_or(0, Backlog::note_bytes),
                most: Memory::<L::Buffer>::note_bytes_most(window.bytes, base, has_session),
            },
            read_bytes: Share {
                taken: self.rma.requests().read_bytes(peer),
                most: Memory::<L::Buffer>::read_memory(base),
            },
            answer_bytes: Share {
                taken: backlog.map_or(0, Backlog::answer_bytes),
                most: Memory::<L::Buffer>::answer_message_memory(base.control),
            },
            // All peers share one queue, which has at most twice as many places as there ever were packets in it.
            control_bytes: Share {
                taken: refused * WaitingControl::BYTES,
                most: Memory::<L::Buffer>::control_memory(&self.port.config.flow),
            },
            requests: self.rma.requests().waiting(peer),
            unanswered: self.rma.requests().unanswered(peer),
            unanswered_most: self.sends.show_rooms().limits(peer).answers,
            control: refused,
        }
    }

    /// How the windows between us and `peer` stand. Takes time in proportion to the sends that are outstanding.
    pub fn inspect_window(&self, peer: PeerId) -> WindowInspection {
        let window = self.inbound.windows().inspect(peer);
        WindowInspection {
            room: self.sends.show_rooms().room(peer),
            window: window.bytes,
            stored: window.stored,
            freed: window.freed,
            deferred: self.sends.kept().deferred_to(peer),
            dropped: window.dropped,
            querying: window.is_querying,
        }
    }

    /// Bytes of our receive memory that belong to no window.
    pub fn inspect_spare(&self) -> usize {
        self.inbound.windows().spare()
    }

    /// How often a stream of bulk data was looked at so far, whether it could send a piece or not.
    pub fn inspect_stream_looks(&self) -> u64 {
        self.sends.streaming().looks()
    }
}
