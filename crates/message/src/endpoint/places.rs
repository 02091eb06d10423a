//! More newcomers come than have places: places are opened, as long as spare receive memory pays for all that a
//! newcomer may make us keep. So the bound holds at every moment, and newcomers that never come take nothing of it, but
//! for the first, which have places from the start.

use super::Endpoint;
use crate::counter::Counter;
use crate::link::{Link, PLACES_AHEAD};
use crate::memory::Memory;

impl<L: Link> Endpoint<L> {
    /// How many peers have places now, and how many may have one in the end.
    pub fn places(&self) -> (u32, u32) {
        (self.port.config.flow.at_opening(), self.places_most)
    }

    /// Few of the open places are free. Where the spare memory is lent, the link says so again.
    #[cold]
    pub(super) fn handle_places_low(&mut self) {
        let mut more = PLACES_AHEAD.min(self.places_most.saturating_sub(self.port.config.flow.at_opening()));
        // Where there is not enough for all, for a few.
        while more > 0 && !self.open_more_places(more) {
            more /= 4;
        }
    }

    /// Opens this number of places, if spare memory can pay for them. Returns whether.
    fn open_more_places(&mut self, more: u32) -> bool {
        let flow = &self.port.config.flow;
        let (open, later) = (flow.at_opening(), flow.later - more.min(flow.later));
        let needed = Memory::<L::Buffer>::opening_memory(&self.port.config, later, Self::others);
        let Ok((fixed, windows)) = needed else { return false };
        if !self.inbound.take_spare(fixed + windows) {
            return false;
        }
        let tables = Self::table_bytes(open + more) - Self::table_bytes(open);
        self.port.count(Counter::ReceiveFixedBytes, fixed as u64);
        self.port.count(Counter::BookkeepingBytes, tables as u64);
        // From now on the configuration is as if these places had been open from the start.
        self.port.config.flow.later = later;
        self.port.link.open_places(open + more, self.places_most);
        true
    }
}
