//! Sessions, which not all peers can have at a time where receive memory is small (see `deferral::sessions`): who gets
//! one, and who gives it back.

use super::Endpoint;
use crate::counter::Counter;
use crate::deferral::Turn;
use crate::envelope::Number;
use crate::link::Link;
use crate::malformed::Handled;
use crate::wire::{Asking, End, Granted, NEEDS_MOST};
use tidegate_flow::PeerId;

/// Holders of sessions that one call of progress looks at, however many there are.
const LOOKS_MOST: usize = 16;

/// Receives of a sender that are counted one by one.
const NEEDS_COUNTED: usize = 64;

impl<L: Link> Endpoint<L> {
    /// A sender asks for a session, or has shown everything before we have its own back. What follows for others is
    /// done when packets have been handled: now flow control may have a packet for them that has not left, which our
    /// notes would have to wait for, and no credits would tell when it has.
    pub(super) fn handle_asking(&mut self, from: PeerId, asking: Asking) -> Handled {
        let latest = self.inbound.matching().last_number();
        if self.inbound.sessions()?.handle(from, asking, latest)? {
            self.inbound.update_window(&mut self.port, from);
        }
        Ok(())
    }

    /// The number of receives and peeks for which a sender may have to be queried; where there are very many, of all
    /// senders together.
    fn needs(&mut self, sender: PeerId) -> u32 {
        let (peeks, mut after) = (self.inbound.windows().inquiries.len(), Number::default());
        for found in 0..NEEDS_COUNTED {
            match self.inbound.first_from(sender, after) {
                Some(number) => after = number,
                None => return (found + peeks) as u32,
            }
        }
        (self.inbound.matching().posted_in_all() + peeks).min(NEEDS_MOST as usize) as u32
    }

    fn tell_granted(&mut self, to: PeerId, room: u32) {
        let (told, has_window) = (self.port.limits.told_in_session(), !self.inbound.has_turn(to));
        let needs = self.needs(to);
        self.port.tell(to, Granted { told, room, has_window, needs });
    }

    /// Whether a sender has nothing here: no message stored or under way, no note to it that waits, no query and no
    /// request that is not answered.
    fn keeps_nothing_of(&self, peer: PeerId) -> bool {
        let notes = self.port.egress.inspect_backlog(peer).map_or(0, |backlog| backlog.notes());
        notes == 0
            && self.inbound.keeps_nothing_of(peer)
            && !self.rma.requests().is_read_by(peer)
            && self.pulls.under_way().of_peer(peer).is_empty()
    }

    /// Whether a session may be wanted back. A turn as soon as no query to its sender is open: it may show sends all
    /// the time that are matched, and there may always be something to tell it, but the sends that it had when its
    /// session is wanted back come to an end.
    fn may_be_wanted_back(&mut self, peer: PeerId, has_window: bool) -> bool {
        match has_window {
            true => self.keeps_nothing_of(peer) && self.inbound.is_quiet(peer),
            false => self.inbound.windows().keeps_nothing_of(peer) && !self.rma.requests().is_read_by(peer),
        }
    }

    fn end_session(&mut self, from: PeerId) {
        self.inbound.end_session(&mut self.port, from);
        self.rma.end_session(from);
    }

    /// Ends the sessions whose senders have shown everything, once nothing is kept of them, or lets them go on. Returns
    /// whether there was any.
    fn end_sessions(&mut self) -> bool {
        let Ok(sessions) = self.inbound.sessions() else { return false };
        let mut moved = false;
        for peer in sessions.all_shown().to_vec() {
            if self.inbound.windows().stores_any_of(peer) {
                // It has sent that before it knew.
                let room = self.inbound.resume_session(peer);
                self.tell_granted(peer, room);
                self.inbound.update_window(&mut self.port, peer);
                moved = true;
            } else if self.keeps_nothing_of(peer) {
                if !self.inbound.has_just_passed(peer) {
                    self.end_session(peer);
                    self.port.tell(peer, End::Now);
                }
                moved = true;
            }
        }
        moved
    }

    /// Gives sessions to those who ask as far as there are any, and wants some back if not. Returns whether anything
    /// moved.
    pub(super) fn serve_askers(&mut self) -> bool {
        let mut moved = self.end_sessions();
        let latest = self.inbound.matching().last_number();
        while let Ok(sessions) = self.inbound.sessions() {
            let turn = sessions.next_turn(latest);
            moved |= turn != Turn::Nothing;
            match turn {
                Turn::Grant { to, has_window } => {
                    self.port.count(Counter::SessionsGiven, 1);
                    let room = self.inbound.begin_session(&mut self.port, to, has_window);
                    self.tell_granted(to, room);
                }
                Turn::Widen(to) => self.inbound.widen_session(&mut self.port, to),
                Turn::Nothing => break,
            }
        }
        let has_peeks = !self.inbound.windows().inquiries.is_empty();
        let Ok(sessions) = self.inbound.sessions() else { return moved };
        for (peer, has_window) in sessions.candidates(latest, has_peeks, LOOKS_MOST) {
            if self.port.presence.lost(peer).is_some() {
                if self.keeps_nothing_of(peer) {
                    self.end_session(peer);
                    moved = true;
                }
            } else if self.may_be_wanted_back(peer, has_window) {
                self.inbound.begin_leaving(peer);
                let needs = self.needs(peer);
                self.port.tell(peer, End::Soon { needs });
                moved = true;
            }
        }
        moved
    }

    /// A receiver wants our session back, or has it back.
    pub(super) fn handle_end(&mut self, from: PeerId, end: End) -> Handled {
        match end {
            End::Soon { needs } => {
                self.sends.rooms().begin_leaving(from, needs)?;
                self.leave(from);
                Ok(())
            }
            End::Now => {
                let waiting = self.rma.requests().has_waiting(from);
                self.sends.go_outside(&mut self.port, from, waiting)
            }
        }
    }

    /// A receiver gives us a session.
    pub(super) fn handle_granted(&mut self, from: PeerId, granted: Granted) -> Handled {
        self.sends.handle_granted(&mut self.port, from, granted)?;
        self.rma.send_requests_to(&mut self.port, self.sends.rooms(), from);
        Ok(())
    }

    /// Tells receivers that want our sessions back that they have been shown everything, as soon as that is so. Returns
    /// whether any was told.
    pub(super) fn leave_all(&mut self) -> bool {
        let leaving = self.sends.show_rooms().leaving().to_vec();
        leaving.iter().for_each(|&peer| self.leave(peer));
        self.sends.show_rooms().leaving().len() < leaving.len()
    }

    #[inline]
    pub(super) fn leave(&mut self, to: PeerId) {
        if self.sends.show_rooms().may_leave(to) {
            self.leave_if_over(to);
        }
    }

    #[cold]
    fn leave_if_over(&mut self, to: PeerId) {
        let requests = self.rma.requests();
        let (waiting, unanswered) = (requests.has_waiting(to), requests.unanswered(to) > 0);
        self.sends.leave(&mut self.port, to, waiting, unanswered);
    }
}
