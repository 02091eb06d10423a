//! The operations of an application: one value for each, handed to a method of `Endpoint`.

use std::time::Duration;
use tidegate_flow::{Config, PeerId};

/// What the application calls the operation: opaque here, given back in the completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Context(pub usize);

/// How an endpoint behaves.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Flow control.
    pub flow: Config,
    /// Largest message, in bytes, that is sent eagerly (P §3: 2 KiB).
    pub eager_bytes: usize,
    /// Most sends and remote operations that may be outstanding, completions that the application has not read
    /// included; one more is [`TryAgain`]. Posted receives are as many as the application likes: the memory is its own.
    pub operations: usize,
    /// Most memory, in bytes, that the endpoint holds on behalf of its senders: mailbox, book-keeping and messages that
    /// no receive waits for. What it has no room for waits with its sender.
    pub receive_memory: usize,
    /// How long injected messages that cannot leave yet are [refused](TryAgain), before they are copied and wait here.
    pub patience: Duration,
    /// Packets handled per progress call at most; also the steps of a sender's turn, while others need one (see
    /// `deferral::sessions`).
    pub packets_per_progress: usize,
    /// Bytes of bulk transfer per progress call, about.
    pub bulk_bytes_per_progress: usize,
}

/// The endpoint is at a bound: call `progress` and try again. Nothing was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TryAgain;

/// The other end of an operation: the endpoint itself, or a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// This endpoint. Uses neither mailbox nor credits.
    Myself,
    /// A peer.
    Peer(PeerId),
}

/// Which senders a receive accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// Anybody.
    Any,
    /// One only.
    From(Target),
}

/// The two separate matching spaces of libfabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// `FI_TAGGED`. A receive matches where `(tag ^ message tag) & !ignore == 0`; a send has `ignore` 0.
    Tagged {
        /// Match bits.
        tag: u64,
        /// Bits that do not matter.
        ignore: u64,
    },
    /// `FI_MSG`: everything matches.
    Untagged,
}

impl Space {
    #[inline]
    pub(crate) fn queue(self) -> Queue {
        match self {
            Space::Tagged { .. } => Queue::Tagged,
            Space::Untagged => Queue::Untagged,
        }
    }

    /// 0 where untagged.
    #[inline]
    pub(crate) fn tag(self) -> u64 {
        match self {
            Space::Tagged { tag, .. } => tag,
            Space::Untagged => 0,
        }
    }
}

/// One of the two spaces, whatever the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    Tagged,
    Untagged,
}

impl Queue {
    /// The space of a message, as reported.
    #[inline]
    pub(crate) fn space(self, tag: u64) -> Space {
        match self {
            Queue::Tagged => Space::Tagged { tag, ignore: 0 },
            Queue::Untagged => Space::Untagged,
        }
    }
}

/// A message to send.
#[derive(Debug)]
pub struct Send<B> {
    /// Whereto.
    pub to: Target,
    /// Tagged or not.
    pub space: Space,
    /// The payload. Must stay as it is until the completion, unless `inject`.
    pub buffer: B,
    /// Remote completion data (`FI_REMOTE_CQ_DATA`).
    pub data: Option<u64>,
    /// Given back in the completion.
    pub context: Context,
    /// The payload may change as soon as the call returns: copy what cannot leave at once.
    pub inject: bool,
    /// Complete only when the receiver has the payload in its buffer (`FI_DELIVERY_COMPLETE`).
    pub delivery: bool,
    /// Report success. Failures are always reported.
    pub report: bool,
}

/// A receive that is consumed piece by piece (`FI_MULTI_RECV`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiReceive {
    /// Given back to the application as soon as less room than this is left.
    pub smallest: usize,
}

/// `FI_PEEK`, `FI_CLAIM`, `FI_DISCARD`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchFlags {
    /// Look for an unexpected message, do not receive it; completes with `Failure::NoMessage` if there is none. It does
    /// so at once, unless peers have deferred sends whose envelopes were dropped here: then when they have answered.
    pub peek: bool,
    /// With `peek`: set the message found aside for this context. Without: receive the message set aside for it.
    pub claim: bool,
    /// With `peek` or `claim`: drop the message.
    pub discard: bool,
}

/// A receive to post.
#[derive(Debug)]
pub struct Receive<B> {
    /// From whom.
    pub from: Source,
    /// Tagged or not.
    pub space: Space,
    /// Where the payload goes.
    pub buffer: B,
    /// Given back in the completion.
    pub context: Context,
    /// Whether the buffer takes many messages.
    pub multi: Option<MultiReceive>,
    /// Peek, claim, discard.
    pub flags: MatchFlags,
    /// Report success. Failures are always reported.
    pub report: bool,
}

/// What a memory region lets peers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// `FI_REMOTE_READ`.
    Read,
    /// `FI_REMOTE_WRITE`.
    Write,
    /// The same, but the target counts: it has to be told when a write is over that went straight to memory.
    ToldWrite,
}

impl Access {
    /// The access that is granted to a peer that asks for this one: itself, or, of a region that counts, a write of
    /// which its owner is told. `None`: none is.
    pub fn granted_by(self, grants: impl Fn(Access) -> bool) -> Option<Access> {
        let told = (self == Access::Write).then_some(Access::ToldWrite);
        [Some(self), told].into_iter().flatten().find(|access| grants(*access))
    }
}

/// A place in a peer's registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteTarget {
    /// Whose memory.
    pub to: Target,
    /// Which region.
    pub key: u64,
    /// Bytes from the start of the region.
    pub offset: u64,
}

/// An RMA write.
#[derive(Debug)]
pub struct WriteRequest<B> {
    /// The places, in order: (place, bytes). Their lengths add up to the buffer's.
    pub to: Vec<(RemoteTarget, u64)>,
    /// The source.
    pub buffer: B,
    /// Completion data for the target (`FI_REMOTE_CQ_DATA`).
    pub data: Option<u64>,
    /// Given back in the completion.
    pub context: Context,
    /// The payload may change as soon as the call returns.
    pub inject: bool,
    /// Report success.
    pub report: bool,
}

/// An RMA read.
#[derive(Debug)]
pub struct ReadRequest<B> {
    /// The places, in order: (place, bytes).
    pub from: Vec<(RemoteTarget, u64)>,
    /// The destination.
    pub buffer: B,
    /// Given back in the completion.
    pub context: Context,
    /// Report success.
    pub report: bool,
}

/// The element type of an atomic operation. Discriminants are the wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum AtomicType {
    Int8,
    Uint8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Uint64,
    Int128,
    Uint128,
    Float,
    Double,
    FloatComplex,
    DoubleComplex,
    LongDouble,
    LongDoubleComplex,
}

/// The operation of an atomic. Discriminants are the wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum AtomicOp {
    Min,
    Max,
    Sum,
    Prod,
    Lor,
    Land,
    Bor,
    Band,
    Lxor,
    Bxor,
    Read,
    Write,
    CompareSwap,
    CompareSwapNotEqual,
    CompareSwapLessEqual,
    CompareSwapLess,
    CompareSwapGreaterEqual,
    CompareSwapGreater,
    MaskedSwap,
    Diff,
}

/// Which of the three atomic calls.
#[derive(Debug)]
pub enum AtomicKind<B> {
    /// `fi_atomic`: no result.
    Update,
    /// `fi_fetch_atomic`: the old value comes back.
    Fetch {
        /// Where the old value goes.
        result: B,
    },
    /// `fi_compare_atomic`.
    Compare {
        /// Where the old value goes.
        result: B,
        /// What is compared.
        compare: B,
    },
}

/// A remote atomic operation.
#[derive(Debug)]
pub struct AtomicRequest<B> {
    /// The places, in order: (place, elements). All together have less than 4 GiB.
    pub to: Vec<(RemoteTarget, u64)>,
    /// Element type.
    pub datatype: AtomicType,
    /// Operation.
    pub op: AtomicOp,
    /// Operand; empty for [`AtomicOp::Read`].
    pub operand: B,
    /// With or without a result.
    pub kind: AtomicKind<B>,
    /// Given back in the completion.
    pub context: Context,
    /// Report success.
    pub report: bool,
}
