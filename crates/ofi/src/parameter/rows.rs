//! The rows of the table of parameters.

use tidegate_message::flow::SchemeName;

/// One row of the table.
#[derive(Debug)]
pub(super) struct Parameter {
    pub name: &'static str,
    pub default: &'static str,
    pub allowed: &'static str,
    pub help: &'static str,
}

pub(super) const SCHEME: Parameter = Parameter {
    name: "scheme",
    default: "speculative; dynamic where FI_TIDEGATE_SLOTS, FI_TIDEGATE_CREDIT_SLOTS or FI_TIDEGATE_PIGGYBACK is set",
    allowed: SchemeName::CHOICES,
    help: SchemeName::HELP,
};
pub(super) const SLOTS: Parameter = Parameter {
    name: "slots",
    default: "64 for each other rank as long as the mailbox takes from 256 KiB to 1 MiB, else more or fewer, at least 16; with static 64",
    allowed: "a number of slots up to 16777215, at least twice FI_TIDEGATE_CREDIT_SLOTS",
    help: "Slots of 64 bytes in the mailbox for each other rank of the job, or each peer where FI_TIDEGATE_PEERS or no launcher \
           says how many there are, credit slots included; peers beyond those have twice the credit slots. With static for \
           each peer, and the same in all processes of a job",
};
pub(super) const CREDIT_SLOTS: Parameter = Parameter {
    name: "credit_slots",
    default: "2",
    allowed: "a number of slots up to 65535, at least 1 (with scheme none also 0) and at most half of FI_TIDEGATE_SLOTS",
    help: "How many of these slots are reserved for credit packets. The same in all processes of a job",
};
pub(super) const PIGGYBACK: Parameter = Parameter {
    name: "piggyback",
    default: "on",
    allowed: "on or off",
    help: "Whether credits return on data packets that have room. The same in all processes of a job",
};
pub(super) const BUFFERS: Parameter = Parameter {
    name: "buffers",
    default: "100; with growing 1",
    allowed: "a number of buffers from 1 to 16383",
    help: "With schemes rnr, preposted and growing: how many buffers a receiver posts for each sender at the start; each holds a \
           message. The same in all processes of a job",
};
pub(super) const BUFFERS_MOST: Parameter = Parameter {
    name: "buffers_most",
    default: "100, or FI_TIDEGATE_BUFFERS if that is more",
    allowed: "a number of buffers from FI_TIDEGATE_BUFFERS to 32767",
    help: "With scheme growing: how many buffers a process posts at most, times its peers; all its senders share them. The same in \
           all processes of a job",
};
pub(super) const BUFFER_SIZE: Parameter = Parameter {
    name: "buffer_size",
    default: "2k",
    allowed: "bytes from 1 to 64k, with suffix k if wanted",
    help: "Bytes of the longest message that a posted buffer holds; longer ones take several. The same in all processes of a job",
};
pub(super) const CREDIT_THRESHOLD: Parameter = Parameter {
    name: "credit_threshold",
    default: "5",
    allowed: "a number of credits from 1 to 16383",
    help: "With schemes preposted and growing: after how many buffers posted again their credits return by a packet of their own, \
           if they have not ridden on messages before; never more than a sender has buffers",
};
pub(super) const GROWTH: Parameter = Parameter {
    name: "growth",
    default: "linear",
    allowed: "linear or exponential",
    help: "With scheme growing: whether a message that had to wait for a buffer brings its sender one more, or as many as it has",
};
pub(super) const QUIET_AFTER: Parameter = Parameter {
    name: "quiet_after",
    default: "1",
    allowed: "seconds from 0.001 to 1000000, or never",
    help: "With scheme growing: how long a sender that needs fewer buffers than it has got keeps them, in seconds; each time that \
           it lost them wrongly, twice as long from then on",
};
pub(super) const RETRY_TIMER: Parameter = Parameter {
    name: "retry_timer",
    default: "0.64",
    allowed: "milliseconds from 0.01 to 655.36",
    help: "With schemes rnr, preposted, growing and shared_window: after how long a message that found no posted buffer is \
           tried again, in milliseconds",
};
pub(super) const POOL_FIRST: Parameter = Parameter {
    name: "pool_first",
    default: "8, or FI_TIDEGATE_POOL_MOST if that is less",
    allowed: "a number of buffers from 1 to FI_TIDEGATE_POOL_MOST",
    help: "With scheme shared_window: how many buffers a receiver posts for all senders together at the start; as many as at most \
           make a pool of one size",
};
pub(super) const POOL_MOST: Parameter = Parameter {
    name: "pool_most",
    default: "4096, or FI_TIDEGATE_POOL_FIRST if that is more",
    allowed: "a number of buffers from 1 to 524288",
    help: "With scheme shared_window: how many it posts at most. While messages wait to be taken out there may be twice as many; one \
           more is for senders that were refused often",
};
pub(super) const POOL_SLOTS: Parameter = Parameter {
    name: "pool_slots",
    default: "4096, or 256 where FI_TIDEGATE_RX_MEMORY leaves no room for that",
    allowed: "a number of slots from 1 to 16777216",
    help: "With scheme speculative: how many mailbox slots of 64 bytes a receiver has for all senders together",
};
pub(super) const EAGER_SIZE: Parameter = Parameter {
    name: "eager_size",
    default: "2k",
    allowed: "bytes from 0 to 1M, with suffix k or M if wanted",
    help: "Bytes of the longest message that is sent through the mailbox at once; the receiver pulls longer ones",
};
pub(super) const RX_MEMORY: Parameter = Parameter {
    name: "rx_memory",
    default: "64M; less where the ranks of a node would come to more than an eighth of its memory; the smallest that is legal if \
              that is more",
    allowed: "bytes from 0 to 1T, with suffix k, M, G or T if wanted; at least what mailbox and book-keeping need",
    help: "Most memory that an endpoint takes on behalf of its senders: mailbox, book-keeping, and messages that no receive waits \
           for; what finds no room there is deferred: it waits with its sender",
};
pub(super) const PEERS: Parameter = Parameter {
    name: "peers",
    default: "4 for each rank of the job as the launcher tells and 16 more, at least 64, as long as the mailbox takes no more than \
              1 MiB, else ranks + 16; without a launcher the number of addresses that fi_av_open is told plus 16; in any case up to \
              512 newcomers, and more as they come where all share a pool, as long as they take little",
    allowed: "a number of endpoints from 1 to 1048575",
    help: "How many endpoints of other processes may exchange messages with an endpoint at a time; a process may have several",
};
pub(super) const BULK: Parameter = Parameter {
    name: "bulk",
    default: "auto",
    allowed: "auto, direct, bounced or mailbox",
    help: "How long messages travel: copied once between the processes' memories (direct), through bounce buffers in shared memory \
           (bounced), packet by packet (mailbox), or directly where a trial at connection works and measurements of \
           the first messages find it faster than bounce buffers (auto)",
};
pub(super) const BOUNCE_BUFFERS: Parameter = Parameter {
    name: "bounce_buffers",
    default: "32",
    allowed: "a number of bounce buffers from 0 to 32768",
    help: "Bounce buffers of 32 KiB per process, through which long messages travel with FI_TIDEGATE_BULK auto and bounced",
};
pub(super) const SEND_BUFFERS: Parameter = Parameter {
    name: "send_buffers",
    default: "32",
    allowed: "a number of send buffers from 0 to 65536",
    help: "Send buffers of 16 KiB per process, in which messages of 97 bytes to 16 KiB lie on their way to processes of the same \
           host; those that find none free, as with 0, go in packets or like long ones",
};
pub(super) const RENDEZVOUS: Parameter = Parameter {
    name: "rendezvous",
    default: "chunked",
    allowed: "chunked or single",
    help: "How a receiver takes a long message out of its sender's memory: in chunks, few of them at a time, so that what a slow \
           receiver has asked for does not fill the network (chunked), or all at once (single)",
};
pub(super) const CHUNK_SIZE: Parameter = Parameter {
    name: "chunk_size",
    default: "256k between hosts, 1m in shared memory",
    allowed: "bytes from 4k to 1g, with suffix k, m or g if wanted",
    help: "Bytes of a chunk of a long message that its receiver takes out of its sender's memory",
};
pub(super) const CHUNKS_IN_FLIGHT: Parameter = Parameter {
    name: "chunks_in_flight",
    default: "8",
    allowed: "a number of chunks from 1 to 1024",
    help: "Chunks of one sender that a receiver has asked for at a time, between hosts; the next when one has come",
};
pub(super) const CHUNKS_MOST: Parameter = Parameter {
    name: "chunks_most",
    default: "64",
    allowed: "a number of chunks from 1 to 1024",
    help: "Chunks that a receiver has asked for at a time in all, between hosts; beside them one of each sender may be under way, \
           so that senders that compute hold up nobody",
};
pub(super) const PROGRESS: Parameter = Parameter {
    name: "progress",
    default: "on_demand",
    allowed: "on_demand, calls or thread",
    help: "What makes progress: the calls of the application alone (calls); a thread as well, as long as the application does \
           not call though messages or answers of its own could not leave yet (on_demand); or a thread that goes on with \
           all that comes while the application computes, and sleeps while there is nothing to do (thread). An application that \
           asks for automatic progress of data (FI_PROGRESS_AUTO) gets that thread with on_demand too, and is refused with \
           calls",
};
pub(super) const SPIN: Parameter = Parameter {
    name: "spin",
    default: "2000 if the ranks fit the processors, else 32",
    allowed: "a number of polls from 0 to 4294967295",
    help: "Polls that find nothing before progress gives the processor to another process, which each that follows does, too; without \
           a number only one of 61 does, or of 7",
};
pub(super) const CLOSE_TIMEOUT: Parameter = Parameter {
    name: "close_timeout",
    default: "300",
    allowed: "seconds from 0 to 86400",
    help: "How long closing an endpoint waits, in seconds, until living peers have taken what was sent to them; what they have not taken by \
           then is lost, and reported",
};
pub(super) const STATS_DIR: Parameter = Parameter {
    name: "stats_dir",
    default: "none",
    allowed: "an existing folder that this user may write to, with ? before it one that may be missing on some hosts",
    help: "Folder where each endpoint keeps its counters in a small file; with ? before it, processes that have no such \
           folder keep none. `tidegate run` sets it",
};

pub(super) const TRACE_DIR: Parameter = Parameter {
    name: "trace_dir",
    default: "none",
    allowed: "an existing folder that this user may write to, with ? before it one that may be missing on some hosts",
    help: "Folder where each process writes a trace of its messages; with ? before it, processes that have no such folder \
           write none. `tidegate record` sets it, and makes one trace of a job of what is there",
};
pub(super) const TRACE_MOST: Parameter = Parameter {
    name: "trace_most",
    default: "64m",
    allowed: "bytes from 4k to 1t, with suffix k, m, g or t if wanted",
    help: "Bytes of a process's trace at most; what comes after that is left out. A message takes about 20",
};

pub(super) const FABRIC: Parameter = Parameter {
    name: "fabric",
    default: "auto",
    allowed: "auto, none, or a provider of libfabric, with /DOMAIN behind it if wanted: tcp, tcp/eth0, verbs;ofi_rxm",
    help: "What reaches processes of other hosts: a provider and, as its domain, an interface (fi_info lists them), nothing, \
           or, with auto, tcp if the launcher says that the job has ranks on other hosts. The same provider in all processes of a job",
};

pub(super) const PORTS: Parameter = Parameter {
    name: "ports",
    default: "any that is free",
    allowed: "two ports from 1 to 65535, the lower one first, with - between them: 40000-40100",
    help: "The ports at which the network between hosts listens, one for each endpoint of a host: what a firewall has to let in",
};

pub(super) const TABLE: [&Parameter; 32] = [
    &SCHEME,
    &SLOTS,
    &CREDIT_SLOTS,
    &PIGGYBACK,
    &BUFFERS,
    &BUFFERS_MOST,
    &BUFFER_SIZE,
    &CREDIT_THRESHOLD,
    &GROWTH,
    &QUIET_AFTER,
    &RETRY_TIMER,
    &POOL_FIRST,
    &POOL_MOST,
    &POOL_SLOTS,
    &EAGER_SIZE,
    &RX_MEMORY,
    &PEERS,
    &BULK,
    &BOUNCE_BUFFERS,
    &SEND_BUFFERS,
    &RENDEZVOUS,
    &CHUNK_SIZE,
    &CHUNKS_IN_FLIGHT,
    &CHUNKS_MOST,
    &PROGRESS,
    &SPIN,
    &CLOSE_TIMEOUT,
    &STATS_DIR,
    &TRACE_DIR,
    &TRACE_MOST,
    &FABRIC,
    &PORTS,
];
