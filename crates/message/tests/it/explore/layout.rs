//! What is explored: a program for each endpoint, and the configuration they run under.

use super::link::ActorLink;
use tidegate_message::flow::{Buffers, Config, FlowControl, SchemeName};
use tidegate_message::{Endpoint, EndpointConfig};

/// One operation of a program. `of` names an earlier operation of the same program by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A non-blocking send of `size` bytes.
    Send { to: usize, tag: u64, size: usize },
    /// The same of a buffer that changes as soon as the call has returned.
    Inject { to: usize, tag: u64, size: usize },
    /// The same as `Send`, behind all earlier sends to the same node (`FI_FENCE`).
    Fenced { to: usize, tag: u64, size: usize },
    /// A non-blocking receive; `None`: from anybody, with any tag.
    Receive { from: Option<usize>, tag: Option<u64> },
    /// A non-blocking receive of exactly what the probe found.
    ReceiveProbed { of: usize },
    /// A receive of the message that the claim set aside.
    ReceiveClaimed { of: usize },
    /// Looks again and again until there is a message (`MPI_Probe`).
    Probe { from: Option<usize>, tag: Option<u64> },
    /// Looks once and waits for the answer, which may be that there is none (`MPI_Iprobe`).
    Look { from: Option<usize>, tag: Option<u64> },
    /// Looks again and again, and sets the message aside (`MPI_Mprobe`).
    Claim { from: Option<usize>, tag: Option<u64> },
    /// Looks again and again, and throws the message away.
    Discard { from: Option<usize>, tag: Option<u64> },
    /// Cancels a receive.
    Cancel { of: usize },
    /// Writes eight bytes, its name, to its own place in a node's memory.
    Write { to: usize },
    /// Reads eight bytes of a node's memory.
    Read { from: usize },
    /// Adds one to the number at the beginning of a node's memory and fetches what was there.
    Add { to: usize },
    /// Goes on when that operation has completed, in whatever way.
    Wait { of: usize },
    /// The process is killed.
    Die,
    /// The process closes its endpoint in good order, once everything has left.
    Close,
}

/// The tag of messages that have none: they are apart from those with tags, and receives of any tag don't accept them.
pub const UNTAGGED: u64 = u64::MAX;

/// A message's name: its sender, and the place of the send in the sender's program. Travels as completion data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageName {
    pub node: usize,
    pub place: usize,
}

impl MessageName {
    const PLACES: usize = 1000;

    pub fn number(self) -> usize {
        self.node * Self::PLACES + self.place
    }

    /// Where a write of this name goes.
    pub fn offset(self) -> usize {
        8 + 8 * (Layout::OPERATIONS_MOST * self.node + self.place)
    }

    pub fn from_number(number: u64) -> Self {
        MessageName { node: number as usize / Self::PLACES, place: number as usize % Self::PLACES }
    }
}

/// Whether to explore what takes minutes too: `TIDEGATE_EXPLORE=all`.
pub fn everything() -> bool {
    std::env::var("TIDEGATE_EXPLORE").is_ok_and(|value| value == "all")
}

/// Programs and configuration.
#[derive(Clone, Debug)]
pub struct Layout {
    pub programs: Vec<Vec<Op>>,
    pub scheme: SchemeName,
    pub piggyback: bool,
    pub slots: u32,
    pub credit_slots: u32,
    /// Whether rendezvous messages are read from their sender's memory; else they come through the mailbox.
    pub direct: bool,
    pub window: Window,
    /// Whether what goes on in several packets may come in as one of several slots, too.
    pub joins: bool,
}

/// Receive memory for unmatched messages, beyond what configuration fixes. The windows of senders begin with half of
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// More than any program needs.
    Plenty,
    /// Just this many envelopes for each sender: only empty messages are eager.
    Envelopes(usize),
    /// Windows begin with four eager messages of the largest size.
    Payload,
    /// So many bytes for each sender.
    Bytes(usize),
    /// So many bytes beyond the least, which is not enough for all to send at a time.
    Few(usize),
}

impl Layout {
    /// Largest eager message: of three packets.
    pub const EAGER_BYTES: usize = 120;
    /// Bytes of every receive's buffer.
    pub const CAPACITY: usize = 400;

    /// Operations of a program that writes to memory of others.
    pub const OPERATIONS_MOST: usize = 8;
    /// The key of every node's memory.
    pub const KEY: u64 = 1;

    /// Bytes of every node's memory that others may write to: a number, and a place for every write. None if nobody
    /// does.
    pub fn memory_bytes(&self) -> usize {
        let is_remote = |op: &Op| matches!(op, Op::Write { .. } | Op::Read { .. } | Op::Add { .. });
        let place = MessageName { node: self.nodes(), place: 0 };
        if self.programs.iter().flatten().any(is_remote) { place.offset() } else { 0 }
    }

    /// These programs under `static` with the smallest mailboxes, and windows without end.
    pub fn new(programs: &[&[Op]]) -> Self {
        Layout {
            programs: programs.iter().map(|program| program.to_vec()).collect(),
            scheme: SchemeName::Static,
            piggyback: false,
            slots: 2,
            credit_slots: 1,
            direct: false,
            window: Window::Plenty,
            joins: everything(),
        }
    }

    pub fn nodes(&self) -> usize {
        self.programs.len()
    }

    /// Where receivers post buffers, each connection has one at the start, of three packets, and keeps what it gets.
    pub fn flow(&self) -> Config {
        let own = Config::new(self.scheme, self.nodes() as u32 - 1, self.slots, self.credit_slots);
        let buffers =
            Buffers { per_connection: 1, per_connection_most: 2, packets: 3, quiet_after: None, ..own.buffers };
        Config { piggyback: self.piggyback, buffers, ..own }
    }

    /// Whether flow control acts on time.
    pub fn is_timed(&self) -> bool {
        FlowControl::new(&self.flow()).is_ok_and(|flow| flow.is_timed())
    }

    /// The configuration of every endpoint.
    pub fn endpoint(&self) -> EndpointConfig {
        let plenty = EndpointConfig {
            flow: self.flow(),
            eager_bytes: Self::EAGER_BYTES,
            operations: 4096,
            receive_memory: 1 << 30,
            patience: std::time::Duration::ZERO,
            packets_per_progress: 8,
            bulk_bytes_per_progress: 4096,
        };
        let least = Endpoint::<ActorLink>::receive_memory_for_all(&plenty).expect("a legal configuration");
        // The least memory leaves an envelope for each peer.
        let envelope = Endpoint::<ActorLink>::ENVELOPE_BYTES;
        let each = match self.window {
            Window::Plenty => return plenty,
            Window::Envelopes(count) => count * envelope,
            Window::Payload => 2 * 4 * (envelope + Self::EAGER_BYTES + 40),
            Window::Bytes(bytes) => bytes,
            Window::Few(more) => {
                let least = Endpoint::<ActorLink>::least_receive_memory(&plenty).expect("a legal configuration");
                // Turns of two steps: they end by their number of steps, and by silence.
                return EndpointConfig { receive_memory: least + more, packets_per_progress: 2, ..plenty };
            }
        };
        let beyond = (each - envelope) * plenty.flow.peers as usize;
        // An eighth of what there is for messages is set aside for tables, out of the half that windows grow by.
        let receive_memory = least + beyond + (beyond + envelope * plenty.flow.peers as usize).div_ceil(3);
        EndpointConfig { receive_memory, ..plenty }
    }

    /// Slots of every mailbox. Where receivers post buffers, a packet of credits costs none, and the adapter refuses it
    /// if it finds no buffer: no adapter is explored here, but a mailbox that has room for it.
    pub fn mailbox(&self) -> usize {
        let slots = self.flow().regions().expect("a legal configuration").mailbox as usize;
        if self.scheme.lends().posts_buffers() { 2 * slots } else { slots }
    }
}
