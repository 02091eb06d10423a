//! Windows of which there are not enough for all (see [`sessions`](super::super::sessions)).

use super::{Window, Windows};
use crate::deferral::sessions::Sessions;
use crate::envelope::Number;
use tidegate_flow::PeerId;

impl Windows {
    /// Whether a peek may wait for who has the last session.
    pub(crate) fn waits_for_last(&self) -> bool {
        !self.inquiries.is_empty() && self.sessions.as_ref().is_some_and(|sessions| sessions.has_last())
    }

    /// The sessions, where there are not enough for all.
    #[inline]
    pub(crate) fn sessions(&self) -> Option<&Sessions> {
        self.sessions.as_deref()
    }

    /// The same, to change.
    #[inline]
    pub(crate) fn sessions_mut(&mut self) -> Option<&mut Sessions> {
        self.sessions.as_deref_mut()
    }

    /// Whether a sender may send at all: it has a window, or may be about to give it back.
    #[inline]
    pub(crate) fn has_session(&self, from: PeerId) -> bool {
        self.sessions.as_ref().is_none_or(|sessions| sessions.has(from))
    }

    /// Whether messages of a sender are stored here.
    pub(crate) fn stores_any_of(&self, from: PeerId) -> bool {
        self.of_peers.get(from).is_some_and(|window| window.stored > 0)
    }

    /// Whether a sender has nothing stored here, and no query to it is open.
    pub(crate) fn keeps_nothing_of(&self, from: PeerId) -> bool {
        let nothing_open = |window: &Window| window.dropped.as_ref().is_none_or(|dropped| dropped.open.is_none());
        self.of_peers.get(from).is_none_or(|window| window.stored == 0 && nothing_open(window))
    }

    /// Whether a session with a window may be wanted back whose sender has nothing here: none of its sends is dropped
    /// either, and nothing of its window has become free since the last look.
    pub(crate) fn is_quiet(&mut self, from: PeerId) -> bool {
        let window = self.of_peers.of(from);
        let (freed, has_dropped) = (window.freed, window.dropped.is_some());
        self.sessions.as_mut().is_some_and(|sessions| sessions.is_quiet(from, freed)) && !has_dropped
    }

    /// A sender has a session, and a window if it is not the last one. Returns the bytes of that.
    pub(crate) fn begin_session(&mut self, from: PeerId, has_window: bool) -> u32 {
        let bytes = if has_window { self.limits.window } else { 0 };
        *self.of(from) = Window { bytes, base: bytes, stored: 0, freed: 0, dropped: None };
        bytes
    }

    /// The sender that has the last session gets a window.
    pub(crate) fn widen_session(&mut self, from: PeerId) {
        let base = self.limits.window;
        let window = self.of(from);
        window.base += base;
        window.bytes += base;
        window.freed += base;
    }

    /// A sender goes on having its session. Returns what is free of its window.
    pub(crate) fn resume_session(&mut self, from: PeerId) -> u32 {
        let window = self.of(from);
        window.freed = 0;
        let room = window.bytes - window.stored;
        if let Some(sessions) = &mut self.sessions {
            sessions.resume(from);
        }
        room
    }

    /// The session of a sender that has nothing here is over. The sends that it has shown are forgotten.
    /// `latest`: the last receive or peek, with which all of them have been compared.
    pub(crate) fn end_session(&mut self, from: PeerId, latest: Number) {
        if self.of(from).dropped.take().is_some() {
            self.relax(from);
        }
        if let Some(before) = self.of_peers.forget(from) {
            self.spare += (before.bytes - before.base) as usize;
        }
        if let Some(sessions) = &mut self.sessions {
            sessions.end(from, latest);
        }
    }

    /// Up to which receive or peek a send counts as compared that is dropped now: up to the last, or where not all have
    /// windows, up to the one before the first peek that waits, so that it is queried for that (S5).
    pub(crate) fn compared_by_now(&self, latest: Number) -> Number {
        match self.inquiries.first_number().filter(|_| self.sessions.is_some()) {
            Some(first) => latest.min(Number(first.0 - 1)),
            None => latest,
        }
    }
}
