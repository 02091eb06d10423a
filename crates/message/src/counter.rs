//! The counters: one table of name, unit, how ranks add up, and meaning. They are an interface: `tidegate run` and
//! other tools read them from a shared page by their place in this table.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
    /// Mailbox slots of 64 bytes.
    Slots,
}

/// How the values of several endpoints make one value of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// They add up.
    Sum,
    /// The largest counts.
    Max,
}

impl Aggregate {
    /// Several values as one.
    pub fn of(self, values: impl Iterator<Item = u64>) -> u64 {
        match self {
            Aggregate::Sum => values.fold(0, u64::saturating_add),
            Aggregate::Max => values.max().unwrap_or(0),
        }
    }
}

macro_rules! counters {
    ($($variant:ident, $name:literal, $unit:ident, $aggregate:ident, $help:literal;)*) => {
        /// Every counter, in the order of the shared page.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(usize)]
        pub enum Counter { $(#[doc = $help] $variant,)* }

        impl Counter {
            /// All counters, in the order of the shared page.
            pub const ALL: &[Counter] = &[$(Counter::$variant,)*];
            /// How many there are.
            pub const COUNT: usize = Counter::ALL.len();

            /// Short name, as in tables and JSON.
            pub fn name(self) -> &'static str { match self { $(Counter::$variant => $name,)* } }
            /// Unit of the value.
            pub fn unit(self) -> Unit { match self { $(Counter::$variant => Unit::$unit,)* } }
            /// How ranks add up.
            pub fn aggregate(self) -> Aggregate { match self { $(Counter::$variant => Aggregate::$aggregate,)* } }
            /// What it means, one sentence.
            pub fn help(self) -> &'static str { match self { $(Counter::$variant => $help,)* } }
        }
    };
}

counters! {
    PacketsSent, "packets_sent", Count, Sum, "Packets written to peers' mailboxes, control packets included; a long one counts as its slots.";
    PacketsReceived, "packets_received", Count, Sum, "Packets retrieved from the own mailbox, control packets included; a long one counts as its slots.";
    MessagesEager, "messages_eager", Count, Sum, "Messages sent through the mailbox.";
    MessagesRendezvous, "messages_rendezvous", Count, Sum, "Messages sent by rendezvous: the receiver pulls them, after a request to send or because it has learned that they were deferred.";
    MessagesSelf, "messages_self", Count, Sum, "Messages from an endpoint to itself; they use no credits.";
    RmaOperations, "rma_operations", Count, Sum, "RMA reads and writes started.";
    AtomicOperations, "atomic_operations", Count, Sum, "Remote atomic operations started.";
    BytesSent, "bytes_sent", Bytes, Sum, "Payload bytes of messages sent.";
    BytesReceived, "bytes_received", Bytes, Sum, "Payload bytes of messages delivered.";
    BytesRead, "bytes_read", Bytes, Sum, "Payload bytes of long messages that were read out of their senders' memory.";
    BytesBounced, "bytes_bounced", Bytes, Sum, "Payload bytes of long messages that came through bounce buffers.";
    SendsDelayed, "sends_delayed", Count, Sum, "Sends that had to wait for credits (under `none` and `speculative`: for room in the mailbox).";
    DelayNanoseconds, "delay_ns", Nanoseconds, Sum, "Time during which peers had sends waiting for credits, added over peers.";
    WaitNanoseconds, "wait_ns", Nanoseconds, Sum, "Time during which the application polled in vain: it waited for messages, or for something else of its peers; waits of some microseconds are not seen.";
    CreditPackets, "credit_packets", Count, Sum, "Explicit credit packets sent.";
    CreditsPiggybacked, "credits_piggybacked", Count, Sum, "Credits that rode on data packets.";
    ReturnRequests, "return_requests", Count, Sum, "Compulsory credit return requests sent.";
    ReturnResponses, "return_responses", Count, Sum, "Compulsory credit return responses sent.";
    MonitoringPoints, "monitoring_points", Count, Sum, "Times that a sender had used all the credits it was given, which makes it more active in its receiver's eyes; as of the last control packet sent.";
    Steals, "steals", Count, Sum, "Times that an active sender was given slots that a quiet one was to have; as of the last control packet sent.";
    BlockedPackets, "blocked_packets", Count, Sum, "Packets received from senders that were asked to return credits and had not answered yet; as of the last control packet sent.";
    SendsLost, "sends_lost", Count, Sum, "Messages that the application believed sent and that never reached their receiver, because it or we closed, or it died.";
    MailboxFull, "mailbox_full", Count, Sum, "Packets refused by a full mailbox and tried again.";
    MailboxPeak, "mailbox_peak_slots", Slots, Max, "Most mailbox slots seen in use; sampled once per burst.";
    UnexpectedMessages, "unexpected_messages", Count, Sum, "Messages that arrived before their receive was posted.";
    UnexpectedBytes, "unexpected_bytes", Bytes, Sum, "Bytes of unexpected messages stored now.";
    UnexpectedPeak, "unexpected_peak_bytes", Bytes, Max, "Most bytes of unexpected messages ever stored.";
    UnmatchedBytes, "unmatched_bytes", Bytes, Sum, "Receive memory that unmatched messages take now, envelopes included.";
    ReceiveBound, "receive_memory_bytes", Bytes, Max, "The bound on receive memory.";
    ReceiveFixedBytes, "receive_fixed_bytes", Bytes, Max, "Its part that configuration fixes: mailbox, book-keeping, tables, and what answers to peers may take.";
    ReceivePeak, "receive_peak_bytes", Bytes, Max, "Most receive memory ever taken, the fixed part included.";
    WindowBytes, "window_bytes", Bytes, Max, "Receive memory that is set aside for the unmatched messages of each sender, at least.";
    SendsDeferred, "sends_deferred", Count, Sum, "Sends that stayed with their sender because the receiver had no room for them unmatched.";
    DeferralNotices, "deferral_notices", Count, Sum, "Messages by which receivers were told of deferred sends, in batches.";
    EnvelopesDropped, "envelopes_dropped", Count, Sum, "Deferred sends of peers that no receive waited for: only their number was kept.";
    Queries, "queries", Count, Sum, "Times that a peer was asked whether it has a deferred send that a receive accepts.";
    Sessions, "sessions", Count, Max, "Senders that may have something here at a time, where receive memory is not enough for all; else 0.";
    SessionsGiven, "sessions_given", Count, Sum, "Times that a sender got a session, without which it may not send where receive memory is not enough for all.";
    PressureNanoseconds, "pressure_ns", Nanoseconds, Sum, "Time during which peers deferred sends because of our receive memory.";
    BounceBufferBytes, "bounce_buffer_bytes", Bytes, Sum, "Memory of the bounce buffers, through which bulk data travels.";
    MailboxBytes, "mailbox_bytes", Bytes, Sum, "Memory of the mailbox.";
    BookkeepingBytes, "bookkeeping_bytes", Bytes, Sum, "Most memory that flow control's book-keeping and the tables of peers take: once all peers have talked.";
    PeersDied, "peers_died", Count, Sum, "Peers that died while connected.";
    Violations, "violations", Count, Sum, "Packets that broke the protocol and were dropped.";
    PeersQuarantined, "peers_quarantined", Count, Sum, "Peers that exceeded what a bound allows them and count as lost since.";
    Yields, "yields", Count, Sum, "Times that progress found nothing and gave the processor away.";
    BatchesSent, "batches_sent", Count, Sum, "Batches of packets, acknowledgements and questions sent to other hosts.";
    BatchesResent, "batches_resent", Count, Sum, "Batches of packets sent to other hosts again, because the network had lost them or may have.";
    BatchesReceived, "batches_received", Count, Sum, "Batches from other hosts that were for this endpoint.";
    BatchesDropped, "batches_dropped", Count, Sum, "Batches from other hosts that were dropped: strangers', malformed, too long, cut off when their connection broke, or of peers that count as lost.";
    Refusals, "refusals", Count, Sum, "Messages and credit packets of ours that found no posted buffer at their receiver, each time that they did.";
    Retries, "retries", Count, Sum, "Times that a refused message of ours was tried again, because the retry timer had run out.";
    LimitEvents, "limit_events", Count, Sum, "Times that fewer posted buffers than the limit were left in our pool, so that more were posted.";
    BuffersAdded, "buffers_added", Count, Sum, "Posted buffers that connections got more because messages had waited for one.";
    GrowthsDenied, "growths_denied", Count, Sum, "Messages that had waited for a buffer and for whose connection no more could be posted: all that may be were.";
    BuffersWithdrawn, "buffers_withdrawn", Count, Sum, "Posted buffers that connections lost because they had gone quiet.";
}

impl Counter {
    /// How the endpoints of one process add up: as ranks do, but that a process that polls several at once waits once.
    pub fn within_process(self) -> Aggregate {
        if self == Counter::WaitNanoseconds { Aggregate::Max } else { self.aggregate() }
    }
}

/// The counters of one endpoint: a page that its owner alone writes and anybody may read.
#[derive(Debug)]
#[repr(transparent)]
pub struct Counters([AtomicU64; Counter::COUNT]);

impl Default for Counters {
    fn default() -> Self {
        Counters([const { AtomicU64::new(0) }; Counter::COUNT])
    }
}

impl Counters {
    /// Adds to a counter. The owner is the only writer, so no atomic read-modify-write is needed.
    #[inline]
    pub fn add(&self, counter: Counter, amount: u64) {
        let cell = &self.0[counter as usize];
        cell.store(cell.load(Relaxed).wrapping_add(amount), Relaxed);
    }

    /// Takes from a gauge.
    #[inline]
    pub fn sub(&self, counter: Counter, amount: u64) {
        let cell = &self.0[counter as usize];
        cell.store(cell.load(Relaxed).wrapping_sub(amount), Relaxed);
    }

    /// Sets a counter.
    #[inline]
    pub fn set(&self, counter: Counter, value: u64) {
        self.0[counter as usize].store(value, Relaxed);
    }

    /// Raises a high-water mark.
    #[inline]
    pub fn raise(&self, counter: Counter, value: u64) {
        if value > self.get(counter) {
            self.set(counter, value);
        }
    }

    /// The value now.
    #[inline]
    pub fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize].load(Relaxed)
    }
}
