//! What a file says of posted buffers. Defaults depend on the scheme, so what is not said is left open until that is
//! known.

use crate::Time;
use tidegate_flow::{BUFFER_BYTES_MOST, Buffers, Growth, SchemeName};

use super::value;

/// The fields of `[flow]` that schemes with posted buffers read.
#[derive(Clone, Debug, Default)]
pub struct BufferFields {
    pub each: Option<u32>,
    pub most: Option<u32>,
    pub packets: Option<u32>,
    pub credit_threshold: Option<u32>,
    pub growth: Option<Growth>,
    /// `Some(None)`: never.
    pub quiet_after: Option<Option<Time>>,
    pub retry_timer: Option<Time>,
    pub pool_first: Option<u32>,
    pub pool_most: Option<u32>,
    pub refusals_most: Option<u32>,
    pub pool_slots: Option<u32>,
}

impl BufferFields {
    /// The buffers of a scheme, where the file does not say otherwise those of the papers.
    pub fn of(&self, scheme: SchemeName) -> Buffers {
        let usual = Buffers::of(scheme);
        let duration = |time: Time| std::time::Duration::from_nanos(time.0 / 1000);
        let each = self.each.unwrap_or(usual.per_connection);
        // What is not said gives way to what is, as in the library.
        Buffers {
            packets: if scheme.lends().is_pool_of_slots() { 1 } else { self.packets.unwrap_or(usual.packets) },
            per_connection: each,
            per_connection_most: self.most.unwrap_or(usual.per_connection_most.max(each)),
            credit_threshold: self.credit_threshold.unwrap_or(usual.credit_threshold),
            growth: self.growth.unwrap_or(usual.growth),
            quiet_after: self.quiet_after.map_or(usual.quiet_after, |after| after.map(duration)),
            retry_timer: self.retry_timer.map_or(usual.retry_timer, duration),
            pool_first: self.pool_first.unwrap_or(usual.pool_first.min(self.pool_most.unwrap_or(u32::MAX))),
            pool_most: self.pool_most.unwrap_or(usual.pool_most.max(self.pool_first.unwrap_or(0))),
            refusals_most: self.refusals_most.unwrap_or(usual.refusals_most),
            pool_slots: self.pool_slots.unwrap_or(usual.pool_slots),
        }
    }
}

/// Packets of a buffer that holds a message of so many bytes.
pub fn packets(text: &str) -> Result<u32, String> {
    match value::bytes(text)? {
        bytes @ 1.. if bytes <= BUFFER_BYTES_MOST.into() => Ok(Buffers::packets_of(bytes as u32)),
        _ => Err(format!("a buffer holds a message of 1 to {BUFFER_BYTES_MOST} bytes")),
    }
}

pub fn growth(text: &str) -> Result<Growth, String> {
    let word = value::word(text, &["linear", "exponential"])?;
    Ok(if word == "linear" { Growth::Linear } else { Growth::Exponential })
}

/// `never`, or a number of refusals.
pub fn refusals(text: &str) -> Result<u32, String> {
    if text == "never" { Ok(u32::MAX) } else { value::positive(text) }
}

/// `never`, or a time.
pub fn quiet_after(text: &str) -> Result<Option<Time>, String> {
    if text == "never" { Ok(None) } else { value::time(text).map(Some) }
}
