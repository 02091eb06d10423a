//! What a user says of posted buffers and of pools.

use super::rows::*;
use super::values::*;
use std::time::Duration;
use tidegate_message::flow::{
    BUFFER_BYTES_MOST, Buffers, Growth, POOL_BUFFERS_MOST, RETRY_TIMER_LEAST, RETRY_TIMER_MOST, SchemeName,
};

/// The most slots of a pool: 1 GiB.
const POOL_SLOTS_MOST: u32 = 1 << 24;

/// What the user said of posted buffers: defaults depend on the scheme, and on each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferSettings {
    each: Option<u32>,
    most: Option<u32>,
    bytes: Option<usize>,
    credit_threshold: Option<u32>,
    growth: Option<Growth>,
    quiet_after: Option<Option<Duration>>,
    retry_timer: Option<Duration>,
    pool_first: Option<u32>,
    pool_most: Option<u32>,
    pub(super) pool_slots: Option<u32>,
}

impl BufferSettings {
    pub(super) fn read(get: impl Fn(&Parameter) -> Option<String>) -> Result<Self, Misfit> {
        let timer = RETRY_TIMER_LEAST..=RETRY_TIMER_MOST;
        // No buffer holds a message of no bytes.
        let size = bytes(&BUFFER_SIZE, get(&BUFFER_SIZE), BUFFER_BYTES_MOST as usize)?;
        if size == Some(0) {
            return Err(Misfit { parameter: &BUFFER_SIZE, value: get(&BUFFER_SIZE).unwrap_or_default() });
        }
        Ok(BufferSettings {
            each: number(&BUFFERS, get(&BUFFERS), 1..=tidegate_link::BUFFERS_MOST)?,
            most: number(&BUFFERS_MOST, get(&BUFFERS_MOST), 1..=2 * tidegate_link::BUFFERS_MOST + 1)?,
            bytes: size,
            credit_threshold: number(&CREDIT_THRESHOLD, get(&CREDIT_THRESHOLD), 1..=tidegate_link::BUFFERS_MOST)?,
            growth: get(&GROWTH).map(|text| choose(&GROWTH, Some(text), &GROWTHS)).transpose()?,
            quiet_after: seconds_or_never(&QUIET_AFTER, get(&QUIET_AFTER))?,
            retry_timer: milliseconds(&RETRY_TIMER, get(&RETRY_TIMER), timer)?,
            pool_first: number(&POOL_FIRST, get(&POOL_FIRST), 1..=POOL_BUFFERS_MOST)?,
            pool_most: number(&POOL_MOST, get(&POOL_MOST), 1..=POOL_BUFFERS_MOST)?,
            pool_slots: number(&POOL_SLOTS, get(&POOL_SLOTS), 1..=POOL_SLOTS_MOST)?,
        })
    }

    /// The buffers under a scheme. What was not said gives way to what was.
    pub fn of(&self, scheme: SchemeName) -> Buffers {
        let usual = Buffers::of(scheme);
        let each = self.each.unwrap_or(usual.per_connection);
        let packets = |bytes: usize| Buffers::packets_of(bytes as u32);
        Buffers {
            packets: match self.bytes {
                // There buffers are slots, whatever is said of others.
                Some(bytes) if !scheme.lends().is_pool_of_slots() => packets(bytes),
                _ => usual.packets,
            },
            per_connection: each,
            per_connection_most: self.most.unwrap_or(usual.per_connection_most.max(each)),
            credit_threshold: self.credit_threshold.unwrap_or(usual.credit_threshold),
            growth: self.growth.unwrap_or(usual.growth),
            quiet_after: self.quiet_after.unwrap_or(usual.quiet_after),
            retry_timer: self.retry_timer.unwrap_or(usual.retry_timer),
            pool_first: self.pool_first.unwrap_or(usual.pool_first.min(self.pool_most.unwrap_or(u32::MAX))),
            pool_most: self.pool_most.unwrap_or(usual.pool_most.max(self.pool_first.unwrap_or(0))),
            pool_slots: self.pool_slots.unwrap_or(usual.pool_slots),
            ..usual
        }
    }
}
