//! Messages over packets: matching, eager, rendezvous, RMA and atomics. No I/O, no clock, no thread: the environment is
//! a [`Link`], and callers say what time it is (`endpoint::progress`).
//!
//! A tour of the modules, from below:
//!
//! - `operation`, `submission`, `completion`, [`Counter`], [`Link`]: what comes in and goes out: operations,
//!   completions, counters, the environment.
//! - `wire`: what messages look like in packets.
//! - `collections`, `heap`, `account`, `memory`: lists and indices; what memory costs, and how receive memory is
//!   divided.
//! - `matching`, `payload`: which receive gets which message, and the bytes of those that wait for theirs.
//! - `egress`: messages are cut into packets; flow control gives credits, and what cannot leave waits.
//! - `attention`: one word that says whether anything rare is to be done.
//! - `presence`: who is there and who is gone.
//! - `port`: link, way out, time, presence and completions together. Every part below is lent it with each call.
//! - `assembly`: packets are put together.
//! - `deferral`: windows bound the memory that unmatched messages take; past them sends wait with their senders.
//! - `sends`: messages on their way out: eagerly, or by rendezvous, that is a request to send, after which they are
//!   pulled or streamed.
//! - `inbound`, `pulls`: receives and the messages that they get; the long ones among these are pulled.
//! - `rma`: remote operations, from the request to the answer, and what bounds them.
//! - `fence`: operations that wait until earlier ones to the same target have completed.
//! - `open`, `waits`, `ages`, `looks`: what is not finished and for whom sends wait, for whoever looks now and then.
//! - `endpoint`: from the application's calls and from packets to these parts, and from one of them to the next; what
//!   ends when a peer is lost (`endpoint::departure`).
//!
//! The parts know nothing of each other's insides. The signature of a method says which others it may touch.

mod account;
mod ages;
mod assembly;
mod attention;
mod collections;
mod completion;
mod control_size;
mod counter;
mod deferral;
mod egress;
mod endpoint;
mod envelope;
mod fence;
mod heap;
mod inbound;
mod link;
mod looks;
mod malformed;
mod matching;
mod memory;
mod open;
mod operation;
mod payload;
mod port;
mod presence;
mod pulls;
mod rma;
mod sends;
mod sequence;
mod submission;
#[cfg(test)]
mod testing;
mod turns;
mod wait_cause;
mod waits;
mod wire;

pub use completion::{Completion, Failure, Operation};
pub use counter::{Aggregate, Counter, Counters, Unit};
pub use deferral::Pressure;
pub use endpoint::{BacklogInspection, Endpoint, Share, WindowInspection};
pub use link::{
    Arrival, BatchPiece, Bounce, BounceBuffers, Buffer, Capabilities, Carry, Closing, Departure, Fill, Link, LinkEvent,
    Medium, PLACES_AHEAD, PeerMemory, PeerNames, RemoteMemory, SenderWrites, Span, TransferId, TransferStatus,
    WriteError,
};
pub use memory::EndpointError;
pub use open::{OPEN_MOST, OpenMessage, OpenReceive, OpenSend, PeerWait, Snapshot};
pub use operation::{
    Access, AtomicKind, AtomicOp, AtomicRequest, AtomicType, Context, EndpointConfig, MatchFlags, MultiReceive,
    ReadRequest, Receive, RemoteTarget, Send, Source, Space, Target, TryAgain, WriteRequest,
};
pub use pulls::{CLASSES as WAY_CLASSES, WayTimes};
pub use rma::{AtomicCall, AtomicError, AtomicInput, atomic_apply, atomic_is_valid};
pub use submission::Submission;
pub use tidegate_flow as flow;
pub use tidegate_flow::{Instant, PeerId};
pub use wait_cause::WaitCause;
pub use waits::ROWS_MOST as WAITS_MOST;
