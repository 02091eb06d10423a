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
//! - `assembly`: packets are put together.
//! - `deferral`: windows bound the memory that unmatched messages take; past them sends wait with their senders.
//! - `sends`, `bulk`: messages on their way out, and long ones on their way in, by rendezvous: a request to send, then
//!   they are pulled or streamed.
//! - `rma`: remote operations, from the request to the answer, and what bounds them.
//! - `fence`: operations that wait until earlier ones to the same target have completed.
//! - `presence`: who is there and who is gone.
//! - `port`: the link, the way out, time, presence and completions together: each part is lent it with each call.
//! - `open`, `waits`, `ages`, `looks`: what is not finished and for whom sends wait, for whoever looks now and then.
//! - `endpoint`: the wiring: what follows in one of these from what has happened in another.
//!
//! The parts know nothing of each other's insides, and each is tested alone.

mod account;
mod ages;
mod assembly;
mod attention;
mod bulk;
mod collections;
mod completion;
mod counter;
mod deferral;
mod egress;
mod endpoint;
mod envelope;
mod fence;
mod heap;
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
mod rma;
mod sends;
mod sequence;
mod submission;
#[cfg(test)]
mod testing;
mod waits;
mod wire;

pub use completion::{Completion, Failure, Operation};
pub use counter::{Aggregate, Counter, Counters, Unit};
pub use deferral::Pressure;
pub use endpoint::{BacklogInspection, Endpoint, Share, WindowInspection};
pub use link::{
    Arrival, Bounce, BounceBuffers, Buffer, Capabilities, Carry, Closing, Departure, Fill, Link, LinkEvent, Medium,
    PeerMemory, PeerNames, RemoteMemory, SenderWrites, Span, TransferId, TransferStatus, WriteError,
};
pub use memory::EndpointError;
pub use open::{OPEN_MOST, Open, OpenMessage, OpenReceive, OpenSend};
pub use operation::{
    Access, AtomicKind, AtomicOp, AtomicRequest, AtomicType, Context, EndpointConfig, MatchFlags, MultiReceive,
    ReadRequest, Receive, RemoteTarget, Send, Source, Space, Target, TryAgain, WriteRequest,
};
pub use rma::{AtomicCall, AtomicError, AtomicInput, atomic_apply, atomic_is_valid};
pub use submission::Submission;
pub use tidegate_flow as flow;
pub use tidegate_flow::{Instant, PeerId};
pub use waits::{PeerWait, ROWS_MOST as WAITS_MOST, WaitCause};
