//! [`InOrder`]: one block after the other, in the order in which the program gave them (B §2: "CSHIFT" where that is a
//! cyclic shift, "Random" where receivers are random). What the other techniques are measured against.

use crate::technique::interface::{Event, Part, Step, Technique};
use crate::technique::sending::{After, Sending};
use tidegate_flow::Instant;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct InOrder(Sending);

impl InOrder {
    pub(crate) fn new(part: Part) -> Self {
        let most = part.settings.outstanding;
        InOrder(Sending::new(part, After::Block, u64::MAX, most))
    }
}

impl Technique for InOrder {
    fn step(&mut self, _now: Instant) -> Step {
        self.0.step()
    }

    fn handle(&mut self, event: Event) {
        self.0.handle(event);
    }
}
