//! [`Buffers`]: how receivers post buffers, under the schemes that lend buffers instead of slots (L, A).
//!
//! L is Liu, Panda: "Implementing Efficient and Scalable Flow Control Schemes in MPI over InfiniBand"; A is Sur, Koop,
//! Panda: "Adaptive Receiver Window Scaling". A *buffer* holds one message, as long as that has no more packets than
//! the buffer; a longer one takes several, one after the other. The defaults are those of the papers.

use crate::SchemeName;
use std::fmt;
use std::time::Duration;

/// The shortest time after which a refused message may be tried again: InfiniBand's code 1 (A §4.3).
pub const RETRY_TIMER_LEAST: Duration = Duration::from_micros(10);
/// The longest: InfiniBand's code 0.
pub const RETRY_TIMER_MOST: Duration = Duration::from_micros(655_360);
/// Bytes of the longest message that a buffer may be chosen to hold, in the library and in the simulator alike. It is
/// the round number that people would write; the packets of such a buffer would hold 24 bytes more.
pub const BUFFER_BYTES_MOST: u32 = 64 << 10;
/// Most packets that a buffer may hold: those of such a message.
pub const BUFFER_PACKETS_MOST: u32 = Buffers::packets_of(BUFFER_BYTES_MOST);
/// Bytes of the header that each message has in its first packet (P §3): a buffer holds it beside the message.
const MESSAGE_HEADER_BYTES: u32 = 16;

/// How many buffers a connection gets more when a message has waited for one (L §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Growth {
    /// One for each such message, as in L §5.
    Linear,
    /// As many as it has.
    Exponential,
}

/// What the user chooses. Which field means something depends on the scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Packets that a buffer holds. 37: a message of 2 KiB with its header of 16 bytes (L §5). Where buffers are slots
    /// it is 1.
    pub packets: u32,
    /// Buffers that each connection has at the start; under `rnr` and `preposted` also at the end.
    pub per_connection: u32,
    /// `growing`: buffers per peer that an endpoint posts at most. All its connections share them, so that one may
    /// have more. The same number of buffers under `preposted` takes the same memory.
    pub per_connection_most: u32,
    /// `preposted` and `growing`: how many credits a receiver owes before it sends a credit packet (L §6.3.1: 5).
    pub credit_threshold: u32,
    /// `growing`: how many buffers a connection gets more.
    pub growth: Growth,
    /// `growing`: after how long a connection that does not need its buffers begins to lose them. `None`: never, as in
    /// L.
    pub quiet_after: Option<Duration>,
    /// After how long a refused message is tried again.
    pub retry_timer: Duration,
    /// `shared_window`: the first window, in buffers (A §4.2: 8).
    pub pool_first: u32,
    /// `shared_window`: the largest window (A §4.2: 4096). Equal to the first, the window is fixed.
    pub pool_most: u32,
    /// `shared_window`: after so many refusals of one message its sender may have the pool's spare buffer.
    pub refusals_most: u32,
    /// `speculative`: slots of the pool.
    pub pool_slots: u32,
}

impl Buffers {
    /// The defaults of a scheme.
    pub const fn of(scheme: SchemeName) -> Self {
        Buffers {
            packets: if scheme.lends().is_pool_of_slots() { 1 } else { 37 },
            // L compares 100, which are enough, with 10 and 1; growing starts where table 2 says it did.
            per_connection: if scheme.lends().may_grow() { 1 } else { 100 },
            per_connection_most: 100,
            credit_threshold: 5,
            growth: Growth::Linear,
            quiet_after: Some(Duration::from_secs(1)),
            retry_timer: Duration::from_micros(640),
            pool_first: 8,
            pool_most: 4096,
            refusals_most: 8,
            pool_slots: 4096,
        }
    }

    /// Bytes of the longest message for which a user gets buffers of so many packets.
    pub const fn message_bytes(packets: u32) -> u32 {
        let held = packets.saturating_mul(crate::PAYLOAD_BYTES as u32).saturating_sub(MESSAGE_HEADER_BYTES);
        if held < BUFFER_BYTES_MOST { held } else { BUFFER_BYTES_MOST }
    }

    /// Packets of a buffer that holds a message of so many bytes and the message's header.
    pub const fn packets_of(bytes: u32) -> u32 {
        (bytes + MESSAGE_HEADER_BYTES).div_ceil(crate::PAYLOAD_BYTES as u32)
    }

    /// Of a pool's first window, the limit: an event comes when fewer buffers are left (A §3).
    pub const fn pool_limit(&self) -> u32 {
        limit_of(self.pool_first)
    }

    /// Buffers that a pool may have at most, posted or full. A window says how many are posted; while the receiver
    /// does not take messages out, A's event handler posts others for those that are full. Here it does so until
    /// there are twice as many as the largest window: memory has a bound. One more is spare, for those who were refused
    /// `refusals_most` times.
    pub const fn pool_bound(&self) -> u32 {
        self.pool_most.saturating_mul(2).saturating_add(1)
    }

    /// The largest window with which a pool has so many buffers at most; 0: too few for any.
    pub const fn pool_most_within(bound: u32) -> u32 {
        bound.saturating_sub(1) / 2
    }

    /// Why these numbers make no sense, if they do not.
    pub(crate) fn check(&self, scheme: SchemeName) -> Result<(), UnfitBuffers> {
        let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let least = u64::from(self.per_connection);
        let (timer_least, timer_most) = (micros(RETRY_TIMER_LEAST), micros(RETRY_TIMER_MOST));
        let most = u64::from(if scheme.lends().may_grow() { GROWN_BUFFERS_MOST } else { COUNT_MOST });
        let pool_most = u64::from(POOL_BUFFERS_MOST);
        let packets_most = if scheme.lends().is_pool_of_slots() { 1 } else { BUFFER_PACKETS_MOST };
        let rules = [
            (BufferField::Packets, self.packets.into(), 1, packets_most.into()),
            (BufferField::PerConnection, self.per_connection.into(), 1, most),
            (BufferField::CreditThreshold, self.credit_threshold.into(), 1, most),
            (BufferField::RetryTimer, micros(self.retry_timer), timer_least, timer_most),
            (BufferField::PoolFirst, self.pool_first.into(), 1, self.pool_most.into()),
            (BufferField::PoolMost, self.pool_most.into(), 1, pool_most),
            (BufferField::RefusalsMost, self.refusals_most.into(), 1, u32::MAX.into()),
            (BufferField::PoolSlots, self.pool_slots.into(), 1, POOL_SLOTS_MOST.into()),
        ];
        let of_growing = [
            (BufferField::PerConnectionMost, self.per_connection_most.into(), least, most),
            (BufferField::QuietAfter, self.quiet_after.map_or(1, micros), 1, u64::MAX),
        ];
        let of_growing = of_growing.into_iter().filter(|_| scheme.lends().may_grow());
        match rules.into_iter().chain(of_growing).find(|&(_, value, least, most)| !(least..=most).contains(&value)) {
            Some((field, value, least, most)) => Err(UnfitBuffers { field, value, least, most }),
            None => Ok(()),
        }
    }
}

/// Of a window, the limit: an event comes when fewer buffers are left (A §3). A window of 1 has 1, or it would never
/// grow.
pub(crate) const fn limit_of(window: u32) -> u32 {
    if window > 1 { window / 2 } else { 1 }
}

/// Most buffers of a connection under `growing`: as many as the addresses of processes can say (15 bits).
pub const GROWN_BUFFERS_MOST: u32 = 0x7fff;
/// Most buffers of a connection otherwise, and credits owed. (Products may allow fewer.)
const COUNT_MOST: u32 = 1 << 20;
/// Most slots of a pool: as many as a mailbox may have.
const POOL_SLOTS_MOST: u32 = 1 << 30;
/// The largest window of a pool.
pub const POOL_BUFFERS_MOST: u32 = 1 << 19;

/// A field of [`Buffers`] that may be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferField {
    /// [`Buffers::packets`].
    Packets,
    /// [`Buffers::per_connection`].
    PerConnection,
    /// [`Buffers::per_connection_most`].
    PerConnectionMost,
    /// [`Buffers::credit_threshold`].
    CreditThreshold,
    /// [`Buffers::quiet_after`], in microseconds.
    QuietAfter,
    /// [`Buffers::retry_timer`], in microseconds.
    RetryTimer,
    /// [`Buffers::pool_first`].
    PoolFirst,
    /// [`Buffers::pool_most`].
    PoolMost,
    /// [`Buffers::refusals_most`].
    RefusalsMost,
    /// [`Buffers::pool_slots`].
    PoolSlots,
}

impl BufferField {
    /// As the field is called here.
    pub const fn name(self) -> &'static str {
        match self {
            BufferField::Packets => "packets",
            BufferField::PerConnection => "per_connection",
            BufferField::PerConnectionMost => "per_connection_most",
            BufferField::CreditThreshold => "credit_threshold",
            BufferField::QuietAfter => "quiet_after",
            BufferField::RetryTimer => "retry_timer",
            BufferField::PoolFirst => "pool_first",
            BufferField::PoolMost => "pool_most",
            BufferField::RefusalsMost => "refusals_most",
            BufferField::PoolSlots => "pool_slots",
        }
    }

    const fn unit(self) -> &'static str {
        match self {
            BufferField::RetryTimer | BufferField::QuietAfter => " µs",
            _ => "",
        }
    }
}

/// A number of [`Buffers`] that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnfitBuffers {
    /// Which.
    pub field: BufferField,
    /// What it is; times in microseconds.
    pub value: u64,
    /// The least that is allowed.
    pub least: u64,
    /// The most that is allowed.
    pub most: u64,
}

impl UnfitBuffers {
    /// The text, the field called so.
    pub(crate) fn named(&self, field: &str) -> String {
        let UnfitBuffers { value, least, most, .. } = self;
        let unit = self.field.unit();
        match most {
            &u64::MAX => format!("{field}={value}{unit} is not allowed: at least {least}{unit} is needed"),
            _ => format!("{field}={value}{unit} is not allowed: choose from {least}{unit} to {most}{unit}"),
        }
    }
}

impl fmt::Display for UnfitBuffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named(self.field.name()))
    }
}
