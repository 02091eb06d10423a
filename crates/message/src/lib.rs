//! Messages over packets: matching, eager, rendezvous, RMA and atomics. No I/O, no clock, no thread: the environment is a
//! [`Link`], and callers say what time it is (`timing`).
//!
//! A tour. The application's operations ([`Send`], [`Receive`], …) enter at `endpoint`. What leaves is cut into packets in
//! `transmit`, where flow control gives credits and messages wait for them; `wire` says what packets look like. What arrives
//! is put together in `inbound` and goes by its kind to `eager`, `rendezvous` (`fetch_way` chooses between two copies and one, `streams` has
//! what goes through mailboxes piece by piece), `rma` or `atomic` (`atomic_apply` has the arithmetic). `matching` decides which receive gets
//! which message (its lists and their indices are `collections`), `peek` looks at those, `loopback` delivers an endpoint's messages to itself, `departure` ends what waits for a peer that died, and `closing` is
//! leaving oneself.
//! `window` bounds the memory that unmatched messages take; past it they are held by their senders (`held`), whom the receiver
//! asks (`ask`). `backlog` bounds what peers make us keep until they listen, and `request` how many remote operations may be
//! unanswered; `inspect` shows how they stand. [`Counter`] lists all counters.

mod account;
mod assembly;
mod bulk;
mod collections;
mod completion;
mod counter;
mod deferral;
mod egress;
mod endpoint;
mod envelope;
mod heap;
mod link;
mod malformed;
mod matching;
mod memory;
mod operation;
mod presence;
mod rma;
#[cfg(test)]
mod testing;
mod wire;

pub use completion::{Completion, Failure, Operation};
pub use counter::{Aggregate, Counter, Counters, Unit};
pub use deferral::Pressure;
pub use endpoint::{BacklogInspection, Endpoint, Share, WindowInspection};
pub use link::{Buffer, Departure, Link, Span, Stages, TransferId, TransferStatus, WriteError};
pub use memory::EndpointError;
pub use operation::{
    Access, AtomicKind, AtomicOp, AtomicRequest, AtomicType, Context, EndpointConfig, MatchFlags, MultiReceive,
    ReadRequest, Receive, RemoteTarget, Send, Source, Space, Target, TryAgain, WriteRequest,
};
pub use rma::{AtomicCall, AtomicError, AtomicInput, atomic_apply, atomic_is_valid};
pub use tidegate_flow as flow;
pub use tidegate_flow::{Instant, PeerId};
