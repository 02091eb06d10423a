//! Senders and receivers of long messages ask each other who is free, where the order is `booking`.

use super::Endpoint;
use crate::link::Link;
use crate::malformed::Malformed;
use crate::wire::{Booked, Booking, MessageKind};
use tidegate_flow::PeerId;

impl<L: Link> Endpoint<L> {
    /// Asks the senders that have their turn next whether they are free, and tells those that have begun unasked.
    /// Returns whether there were any.
    pub(super) fn ask_senders(&mut self) -> bool {
        let mut has_asked = false;
        while let Some(sender) = self.bulk.gate.turns.poll_question() {
            self.ask_sender(sender);
            has_asked = true;
        }
        has_asked
    }

    /// Asks a sender whether it is free, unless an earlier question is open: the answer to that will do.
    pub(super) fn ask_sender(&mut self, sender: PeerId) {
        if self.bulk.questions.ask(sender) {
            self.tell(sender, Booking);
        }
    }

    /// A receiver asks whether we are free.
    pub(super) fn handle_booking(&mut self, from: PeerId) -> Result<(), Malformed> {
        if self.egress.waits(from, &[MessageKind::Booked]) {
            return Err(Malformed);
        }
        self.bulk.reservations.ask(from)?;
        self.answer_receivers();
        Ok(())
    }

    /// Tells the receivers for which we are free now. Returns whether there are any.
    pub(super) fn answer_receivers(&mut self) -> bool {
        let mut has_answered = false;
        while let Some(receiver) = self.bulk.reservations.poll_answer() {
            self.tell(receiver, Booked);
            has_answered = true;
        }
        has_answered
    }

    /// A sender that we have asked is free: its turn may begin with the next call of progress. Who keeps turns hears
    /// it, the endpoint and the link, whichever of them had asked.
    pub(super) fn handle_booked(&mut self, from: PeerId) -> Result<(), Malformed> {
        if !self.bulk.questions.take(from) {
            return Err(Malformed);
        }
        self.bulk.gate.turns.handle_booked(from);
        self.link.handle_booked(from);
        Ok(())
    }
}
