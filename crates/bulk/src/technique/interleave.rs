//! [`Interleave`]: pieces of one unit for different receivers in turn, not one long block after the other (B §2). So
//! that a receiver hears many senders a little, none for long. A block of one unit cannot be interleaved.

use crate::technique::interface::{Event, Part, Step, Technique};
use crate::technique::sending::{After, Sending};
use tidegate_flow::Instant;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Interleave(Sending);

impl Interleave {
    pub(crate) fn new(part: Part) -> Self {
        let (unit, most) = (part.settings.unit, part.settings.outstanding);
        Interleave(Sending::new(part, After::Piece, unit, most))
    }
}

impl Technique for Interleave {
    fn step(&mut self, _now: Instant) -> Step {
        self.0.step()
    }

    fn handle(&mut self, event: Event) {
        self.0.handle(event);
    }
}
