//! What an adapter does for the schemes whose receivers post buffers (`rnr`, `preposted`, `growing`, `shared_window`):
//! it keeps the posted buffers, refuses messages that find none, and sends refused messages again.
//!
//! It is the hardware under a scheme, so nothing here decides how many buffers there are: the receiving scheme says so
//! by [`Posting`]. Whoever carries packets plays the adapter with these parts: an interface of the simulator, a link to
//! other hosts. Over shared memory the counts are words in the receiver's segment: the writer takes a buffer before it
//! reserves slots, and is refused at once. [`ReceiveQueues::take`] is what that does, in one piece.
//!
//! * [`ReceiveQueues`]: the receiver's half, a queue of posted buffers for each connection (L) or a pool for all (A).
//! * [`SendQueue`]: the sender's half, for one connection: messages in order, from a refused one on again.
//!
//! # A writer that dies between taking a buffer and filling it
//!
//! Its message never comes, so the buffer it took would be missing for ever. A count of *taken* buffers is therefore
//! kept for each peer: taking adds one, and each [`Posting`] that says that a message of the peer was processed takes
//! one away. When the peer is gone and all its messages have been processed ([`ReceiveQueues::forget`]), what is left
//! of the count was taken and never filled: it is posted again.
//! In shared memory the buffers of a connection have no count that both sides change, so there is nothing to put right.
//! Those of a pool are one word, and a writer can die after it has taken one. The reader can tell when its mailbox is
//! empty and no `writing` word is odd: nothing is under way then, so what counts as taken is missing, and it is posted
//! again (`mailbox/buffers.rs` in `tidegate-link`).

mod arrived;
mod receive;
mod send;
mod slot_pool;
mod spare;
mod speculation;

pub use arrived::Arrived;
pub use receive::{Posting, ReceiveQueues};
pub use send::SendQueue;
pub use slot_pool::SlotPool;
pub use speculation::{Speculation, WINDOW_MOST};
