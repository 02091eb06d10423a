//! `round_robin`: all senders at once, a chunk each. Nobody waits for a turn, so there are none.

use super::{Candidate, Policy};
use std::time::Duration;
use tidegate_flow::Instant;

pub(super) struct RoundRobin;

impl Policy for RoundRobin {
    fn takes_turns(&self) -> bool {
        false
    }

    fn next(&self, waiting: &[Candidate], _: Duration, _: Instant) -> Option<usize> {
        (!waiting.is_empty()).then_some(0)
    }
}
