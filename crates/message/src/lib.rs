//! Messages over packets: matching, eager, rendezvous, RMA and atomics. No I/O: the environment is a [`Link`].

mod atomic_apply;
mod completion;
mod counter;
mod endpoint;
mod link;
mod operation;

pub use atomic_apply::{AtomicCall, AtomicError, AtomicInput, apply as atomic_apply, is_valid as atomic_is_valid};
pub use completion::{Completion, Failure, Operation};
pub use counter::{Aggregate, Counter, Counters, Unit};
pub use endpoint::Endpoint;
pub use link::{Buffer, Departure, Link, Span, TransferId, TransferStatus, WriteError};
pub use operation::{
    Access, AtomicKind, AtomicOp, AtomicRequest, AtomicType, Context, EndpointConfig, MatchFlags, MultiReceive, ReadRequest,
    Receive, RemoteTarget, Send, Source, Space, Target, TryAgain, WriteRequest,
};
pub use tidegate_flow as flow;
pub use tidegate_flow::PeerId;
