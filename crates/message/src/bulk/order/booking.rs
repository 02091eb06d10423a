//! `booking`: while a receiver pulls from one sender, it asks the next one: "are you free after this?" A sender answers
//! when no other receiver has booked it, and keeps itself free for a time T. So receivers meet senders that nobody else
//! is pulling from.
//!
//! The first that has said yes is next. No answer after T is a yes, too; and who could not be asked before its turn was
//! there begins without: to ask then would cost more than it brings. Who has waited longest is passed over once at
//! most: its yes may run out before a turn is free, again and again, while those behind it are free at the right
//! moments.

use super::{Candidate, Policy, Since};
use std::time::Duration;
use tidegate_flow::Instant;

pub(super) struct Booking;

/// Whether a sender keeps itself free for us.
fn is_booked(waiting: &Candidate, stall: Duration, now: Instant) -> bool {
    waiting.booked != Since::Never && !waiting.booked.is_over(stall, now)
}

impl Policy for Booking {
    fn next(&self, waiting: &[Candidate], stall: Duration, now: Instant) -> Option<usize> {
        let first = waiting.first()?;
        if first.was_passed_over || first.asked.is_over(stall, now) {
            return Some(0);
        }
        let booked = waiting.iter().position(|waiting| is_booked(waiting, stall, now));
        booked.or_else(|| (first.asked == Since::Never).then_some(0))
    }

    fn question(&self, waiting: &[Candidate], stall: Duration, now: Instant) -> Option<usize> {
        if waiting.iter().any(|waiting| is_booked(waiting, stall, now)) {
            return None;
        }
        waiting.iter().position(|waiting| waiting.asked == Since::Never)
    }

    fn asks(&self) -> bool {
        true
    }

    fn next_due(&self, waiting: &[Candidate], stall: Duration, now: Instant) -> Option<Instant> {
        waiting.first().map(|first| first.asked.end(stall, now))
    }
}
