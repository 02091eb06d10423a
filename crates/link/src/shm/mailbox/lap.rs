//! [`Lap`]: which slot a ticket means, and with which stamp.

/// The stamp of a lap: never 0.
pub(super) fn stamp_of(lap: u64) -> u16 {
    (lap % u64::from(u16::MAX) + 1) as u16
}

/// The stamp of the lap after.
#[inline(always)]
pub(super) fn stamp_after(stamp: u16) -> u16 {
    if stamp == u16::MAX { 1 } else { stamp + 1 }
}

/// One lap of the ring, remembered so that finding a ticket's slot takes no division.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lap {
    /// First ticket.
    start: u64,
    stamp: u16,
}

impl Lap {
    pub fn first() -> Self {
        Lap { start: 0, stamp: stamp_of(0) }
    }

    /// The index of the ticket's slot, and its stamp.
    #[inline(always)]
    pub fn locate(&mut self, ticket: u64, size: u64) -> (usize, u16) {
        let mut offset = ticket.wrapping_sub(self.start);
        if offset >= size {
            offset = self.move_to(ticket, size);
        }
        (offset as usize, self.stamp)
    }

    /// Moves to the ticket's lap, usually the next one, and returns its offset there.
    fn move_to(&mut self, ticket: u64, size: u64) -> u64 {
        let next = self.start.wrapping_add(size);
        if ticket.wrapping_sub(next) < size {
            *self = Lap { start: next, stamp: stamp_after(self.stamp) };
        } else {
            *self = Lap { start: ticket - ticket % size, stamp: stamp_of(ticket / size) };
        }
        ticket - self.start
    }
}
