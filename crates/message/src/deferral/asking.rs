//! The sender's side of sessions (rules S1–S6 in [`sessions`](super::sessions)): at which receivers we have to ask for
//! one, have asked, have one, or are about to give it back. A sender without a session has no room and shows nothing:
//! to its sends the receiver is one whose window is not known yet.

use super::Rooms;
use super::deferred::{DeferredSends, Stage};
use super::rooms::{SendWindow, Standing};
use crate::malformed::Malformed;
use crate::memory::Limits;
use crate::wire::{Asking, Granted};
use tidegate_flow::PeerId;

impl DeferredSends {
    /// Sends that the receiver does not know of.
    fn fresh_ones(&self) -> u32 {
        std::iter::successors(self.fresh, |at| self.list.after(*at)).count() as u32
    }

    /// Whether the receiver is told the number of fresh sends, rather than shown them, `most` at a time: it takes fewer
    /// round trips to query us for all its receives (S6). `sends`: the number that it is about; `None`: all.
    pub(super) fn are_counted(&mut self, most: usize, sends: Option<u32>) -> bool {
        let Some(needs) = self.needs.take() else { return false };
        let shown = (needs as usize + 1).saturating_mul(most);
        let fresh = std::iter::successors(self.fresh, |at| self.list.after(*at));
        sends.map_or_else(|| fresh.take(shown.saturating_add(1)).count(), |sends| sends as usize) > shown
    }

    /// The receiver has forgotten what it was shown. Returns whether it was not shown everything.
    fn forget_shown(&mut self) -> bool {
        let is_more = self.fresh.is_some();
        let shown: Vec<_> = std::iter::successors(self.list.first(), |at| self.list.after(*at)).collect();
        for at in shown {
            if let Some(entry) = self.list.get_mut(at) {
                entry.stage = Stage::Fresh;
            }
        }
        self.fresh = self.list.first();
        is_more
    }
}

impl SendWindow {
    /// Whether the receiver has been shown what it is to be shown before we leave, and nothing is open between us.
    fn has_shown_all(&self) -> bool {
        let Some(deferred) = &self.deferred else { return true };
        let is_open = deferred.batch.is_some() || deferred.query.is_some() || deferred.has_offered();
        !is_open && (deferred.to_show == 0 || deferred.fresh.is_none())
    }
}

impl Rooms {
    /// Whether requests may leave for a peer: we have a session there, or need none. One that is wanted back lets one
    /// more request leave, if none has left yet, so that each session brings us on.
    #[inline]
    pub(crate) fn may_request(&self, to: PeerId) -> bool {
        self.peers.get(to).is_none_or(|towards| match towards.standing {
            Standing::Welcome => !towards.is_unknown,
            Standing::Inside => true,
            Standing::Leaving => !towards.has_requested,
            Standing::Outside | Standing::Asked | Standing::AskedAgain | Standing::Shown => false,
        })
    }

    /// A request has left.
    pub(crate) fn note_request(&mut self, to: PeerId) {
        self.of(to).has_requested = true;
    }

    /// Whether we have a session at a receiver that we may have to give back.
    #[inline]
    pub(crate) fn may_leave(&self, peer: PeerId) -> bool {
        self.peers.get(peer).is_some_and(|towards| match towards.standing {
            Standing::Inside => towards.is_turn,
            Standing::Leaving => true,
            _ => false,
        })
    }

    /// Whether we have to ask a receiver for a session, and have not.
    pub(crate) fn is_outside(&self, peer: PeerId) -> bool {
        self.peers.get(peer).is_some_and(|towards| towards.standing == Standing::Outside)
    }

    /// Something is to be sent. Whether the receiver is to be asked for a session now; then it has been.
    pub(crate) fn begin_asking(&mut self, to: PeerId) -> bool {
        let standing = &mut self.of(to).standing;
        let is_due = matches!(standing, Standing::Outside | Standing::AskedAgain);
        if is_due {
            *standing = Standing::Asked;
        }
        is_due
    }

    /// Whether a receiver has told that we have to ask.
    pub(crate) fn has_to_ask(&self, peer: PeerId) -> bool {
        self.peers.get(peer).is_some_and(|towards| towards.standing != Standing::Welcome)
    }

    /// A receiver tells that we have to ask.
    pub(super) fn stay_outside(&mut self, peer: PeerId, limits: Limits) {
        let towards = self.of(peer);
        (towards.limits, towards.room, towards.is_unknown) = (limits, 0, true);
        towards.standing = Standing::Outside;
    }

    /// A receiver has given us a session, with some room or none.
    pub(crate) fn enter(&mut self, from: PeerId, limits: Limits, granted: &Granted) -> Result<(), Malformed> {
        let towards = self.of(from);
        if !matches!(towards.standing, Standing::Asked | Standing::AskedAgain | Standing::Shown) {
            return Err(Malformed);
        }
        (towards.limits, towards.room, towards.is_unknown) = (limits, granted.room, false);
        (towards.standing, towards.has_requested, towards.is_turn) = (Standing::Inside, false, !granted.has_window);
        if let Some(deferred) = &mut towards.deferred {
            deferred.needs = Some(granted.needs);
        }
        Ok(())
    }

    /// A receiver wants the session back: nothing finds room any more, and the sends that it has not been shown are.
    /// `needs`: see [`Granted`].
    pub(crate) fn begin_leaving(&mut self, from: PeerId, needs: u32) -> Result<(), Malformed> {
        let towards = self.of(from);
        match towards.standing {
            Standing::Inside => {}
            // It did not know yet that we have given our turn back.
            Standing::Shown => return Ok(()),
            _ => return Err(Malformed),
        }
        (towards.standing, towards.room) = (Standing::Leaving, 0);
        if let Some(deferred) = &mut towards.deferred {
            (deferred.to_show, deferred.needs) = (deferred.fresh_ones(), Some(needs));
        }
        self.leaving.push(from);
        Ok(())
    }

    /// The receivers that want their sessions back.
    #[inline]
    pub(crate) fn leaving(&self) -> &[PeerId] {
        &self.leaving
    }

    /// Whether the receiver wants the session back and has been shown everything, or it is a turn and we have nothing
    /// more to send; then we send nothing more. `waiting`: requests of ours wait for it; `unanswered`: some are not
    /// answered.
    pub(crate) fn has_shown_all(&mut self, to: PeerId, waiting: bool, unanswered: bool) -> bool {
        let Some(towards) = self.peers.get_mut(to) else { return false };
        let is_over = match towards.standing {
            Standing::Leaving => (!waiting || towards.has_requested) && towards.has_shown_all(),
            // Our program may be silent from now on, and then we would not hear that others need the turn.
            Standing::Inside => towards.is_turn && !waiting && towards.deferred.is_none(),
            _ => false,
        };
        if unanswered || !is_over {
            return false;
        }
        towards.standing = Standing::Shown;
        self.leaving.retain(|&peer| peer != to);
        true
    }

    /// The receiver has our session back. Returns what is to be said to get another one, if we need one.
    pub(crate) fn go_outside(
        &mut self,
        from: PeerId,
        waiting: bool,
        outside: Limits,
    ) -> Result<Option<Asking>, Malformed> {
        let towards = self.of(from);
        if towards.standing != Standing::Shown {
            return Err(Malformed);
        }
        let is_more = towards.deferred.as_mut().is_some_and(|deferred| deferred.forget_shown()) || waiting;
        let has_sends = towards.deferred.as_ref().is_some_and(|deferred| deferred.list.first().is_some());
        (towards.limits, towards.room, towards.is_unknown) = (outside, 0, true);
        let (standing, asking) = match (has_sends, is_more) {
            (_, true) => (Standing::Asked, Some(Asking::Asks)),
            (true, false) => (Standing::AskedAgain, Some(Asking::AsksAgain)),
            (false, false) => (Standing::Outside, None),
        };
        towards.standing = standing;
        Ok(asking)
    }
}
