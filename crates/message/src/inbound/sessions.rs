//! Senders that get a session and give it back (see `deferral::sessions`): what is kept of them in between.

use super::Inbound;
use crate::deferral::Sessions;
use crate::envelope::Number;
use crate::link::Link;
use crate::malformed::Malformed;
use crate::operation::Target;
use crate::port::Port;
use tidegate_flow::PeerId;

impl<L: Link> Inbound<L> {
    /// The sessions. An error: there are enough for all, and no sender has to ask.
    pub(crate) fn sessions(&mut self) -> Result<&mut Sessions, Malformed> {
        self.windows.sessions_mut().ok_or(Malformed)
    }

    /// Whether a sender has no message stored or under way here, and no query to it is open.
    pub(crate) fn keeps_nothing_of(&self, peer: PeerId) -> bool {
        self.windows.keeps_nothing_of(peer) && self.assembly.is_idle(peer)
    }

    /// The number of the first posted receive beyond another that accepts messages of a sender.
    pub(crate) fn first_from(&mut self, sender: PeerId, after: Number) -> Option<Number> {
        Some(self.matching.first_from(Target::Peer(sender), after)?.0)
    }

    /// Whether a sender has the last session.
    pub(crate) fn has_turn(&self, peer: PeerId) -> bool {
        self.windows.sessions().is_some_and(|sessions| sessions.has_turn(peer))
    }

    /// Whether a session with a window may be wanted back whose sender has nothing here.
    pub(crate) fn is_quiet(&mut self, peer: PeerId) -> bool {
        self.windows.is_quiet(peer)
    }

    /// Whether a receive has got a message of a sender in its turn since the last call.
    pub(crate) fn has_just_passed(&mut self, from: PeerId) -> bool {
        self.windows.sessions_mut().is_some_and(|sessions| sessions.has_just_passed(from))
    }

    /// A session is wanted back.
    pub(crate) fn begin_leaving(&mut self, peer: PeerId) {
        if let Some(sessions) = self.windows.sessions_mut() {
            sessions.begin_leaving(peer, self.matching.last_number());
        }
    }

    /// A sender has shown deferred sends, or answered a query, by which receives have got so many messages.
    pub(super) fn step(&mut self, from: PeerId, passed: u32) {
        if let Some(sessions) = self.windows.sessions_mut() {
            sessions.step(from, passed, self.matching.last_number());
        }
    }

    /// A sender gets a session. Returns the bytes of its window.
    pub(crate) fn begin_session(&mut self, port: &mut Port<L>, to: PeerId, has_window: bool) -> u32 {
        let bytes = self.windows.begin_session(to, has_window);
        self.tell_link(port, to);
        bytes
    }

    /// The sender that has the last session, without a window, gets one.
    pub(crate) fn widen_session(&mut self, port: &mut Port<L>, to: PeerId) {
        self.windows.widen_session(to);
        self.tell_link(port, to);
        self.update_window(port, to);
    }

    /// A sender of which messages are stored keeps its session, which we wanted back. Returns the bytes that are free
    /// of its window.
    pub(crate) fn resume_session(&mut self, from: PeerId) -> u32 {
        self.windows.resume_session(from)
    }

    /// The session of a sender of which nothing is here is over.
    pub(crate) fn end_session(&mut self, port: &mut Port<L>, from: PeerId) {
        self.windows.end_session(from, self.matching.last_number());
        self.assembly.release(from);
        port.egress.shrink(from);
        self.tell_link(port, from);
    }
}
