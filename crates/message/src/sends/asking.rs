//! Receivers that give sessions: what follows from what they say (see `deferral::sessions`).

use super::Sends;
use crate::deferral::Rooms;
use crate::link::Link;
use crate::malformed::Handled;
use crate::port::Port;
use crate::wire::{Asking, Granted};
use tidegate_flow::PeerId;

impl<L: Link> Sends<L> {
    /// A receiver gives us a session: sends leave as far as it has room for them, and it is shown the others.
    pub(crate) fn handle_granted(&mut self, port: &mut Port<L>, from: PeerId, granted: Granted) -> Handled {
        let limits = Rooms::limits_inside(port, granted.told);
        self.rooms.enter(from, limits, &granted)?;
        self.go_on_with_room(port, from);
        Ok(())
    }

    /// Says to a receiver that wants our session back that it has been shown everything, once it has and nothing is
    /// open. `waiting`: requests of ours wait for it; `unanswered`: some are not answered.
    pub(crate) fn leave(&mut self, port: &mut Port<L>, to: PeerId, waiting: bool, unanswered: bool) {
        if self.rooms.has_shown_all(to, waiting, unanswered) {
            port.tell(to, Asking::HasShown);
        }
    }

    /// A receiver has our session back.
    pub(crate) fn go_outside(&mut self, port: &mut Port<L>, from: PeerId, waiting: bool) -> Handled {
        let outside = Rooms::limits_outside(port);
        if let Some(asking) = self.rooms.go_outside(from, waiting, outside)? {
            port.tell(from, asking);
        }
        Ok(())
    }
}
