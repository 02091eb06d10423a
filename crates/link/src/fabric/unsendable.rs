//! [`Unsendable`]: a batch that the network refuses, while it takes others for the same peer. Those end all trouble, so
//! that without this the one would be tried for ever.

use super::liveness::{FAILED_FOR, Series};
use tidegate_flow::Instant;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unsendable {
    sequence: u64,
    refusals: Series,
    /// Something else was taken in between.
    is_alone: bool,
}

impl Unsendable {
    /// The batch of this number was refused. Returns whether that is for good.
    pub fn handle_refusal(&mut self, sequence: u64, now: Instant) -> bool {
        if self.sequence != sequence {
            *self = Unsendable { sequence, ..Unsendable::default() };
        }
        self.refusals.add(now);
        self.is_alone && self.refusals.proves(now, FAILED_FOR)
    }

    /// Something was taken: this batch, or (`None`) something without a number.
    pub fn handle_taken(&mut self, sequence: Option<u64>) {
        match sequence {
            Some(taken) if taken == self.sequence => *self = Unsendable::default(),
            _ => self.is_alone |= !self.refusals.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    #[test]
    fn a_batch_that_alone_is_refused_for_ten_seconds_is_refused_for_good() {
        let refused_until = |refused: &mut Unsendable, end: u64, others: bool| {
            (0..end).step_by(5).find(|now| {
                if others && now.is_multiple_of(500) {
                    refused.handle_taken(None);
                }
                refused.handle_refusal(7, at(*now))
            })
        };
        assert_eq!(refused_until(&mut Unsendable::default(), 60_000, true), Some(10_000));
        assert_eq!(refused_until(&mut Unsendable::default(), 60_000, false), None, "that is trouble's, which asks");
        let mut refused = Unsendable::default();
        assert_eq!(refused_until(&mut refused, 9_000, true), None);
        refused.handle_taken(Some(7));
        assert_eq!(refused_until(&mut refused, 9_000, true), None, "it was taken in between");
    }
}
