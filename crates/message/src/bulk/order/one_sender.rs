//! `one_sender`: the sender that has waited longest has the next turn.

use super::{Candidate, Policy};
use std::time::Duration;
use tidegate_flow::Instant;

pub(super) struct OneSender;

impl Policy for OneSender {
    fn next(&self, waiting: &[Candidate], _: Duration, _: Instant) -> Option<usize> {
        (!waiting.is_empty()).then_some(0)
    }
}
