//! Decisions of bulk-transfer scheduling: who sends which piece of a large exchange to whom, and when.
//!
//! Many senders that meet at one receiver, while other receivers are idle, waste a network. The techniques of Brewer,
//! Gauthier, Fox and Schuett (B below: "Software Techniques for Improving MPP Bulk-Transfer Performance") see to
//! it that each receiver hears one sender at a time, and that few are idle. Like `tidegate_flow`, this crate does no
//! I/O: no clock, no system call, no thread, no `unsafe`. So the same code serves programs over any MPI's messages,
//! simulated machines, and the tests that try every interleaving.
//!
//! [`Exchange`] is the whole interface: one node's part of one exchange. `step` says what to do next (send a piece,
//! send a signal, enter a barrier), `handle` hears what has happened. `table.rs` lists the techniques; each is a file:
//!
//! * `technique/in_order.rs`: one block after the other, nothing more (B's "CSHIFT" and "Random");
//! * `technique/interleave.rs`: pieces for different receivers in turn (B §2);
//! * `technique/bandwidth_matching.rs`: no faster than a receiver takes pieces from the network (B §1.1);
//! * `technique/barriers.rs`: a cyclic shift, a barrier behind each round (B §2);
//! * `technique/tokens.rs`: a cyclic shift, a receiver's token goes from sender to sender (B §3.1);
//! * `technique/receiver_tokens.rs`: each receiver has a queue of requests for its token (B §3.2);
//! * `technique/booking/`: senders book rounds with their receivers (B §4.3), also with fewer barriers (B §5.1).
//!
//! Beside them: `technique/interface.rs` (what a technique is asked and told), `technique/sending.rs` (what the first
//! three share), `work.rs` (what is left to send, cut into pieces), `signal.rs` (the small messages between nodes, and
//! their bytes), `tree.rs` (a barrier made of messages), `settings.rs` (the user's choice), `node_set.rs`.

#![forbid(unsafe_code)]

mod exchange;
mod node_set;
mod settings;
mod signal;
mod table;
mod technique;
mod tree;
mod work;

pub use exchange::Exchange;
pub use settings::{Settings, UnfitSettings, WINDOW_MOST};
pub use signal::{SIGNAL_BYTES, Signal};
pub use table::{TechniqueName, UnknownTechnique};
pub use technique::booking::Booked;
pub use technique::interface::{Action, Completion, Event, Step};
pub use tree::{TreeBarrier, TreeSignal};
pub use work::{Block, Piece};

/// A participant of an exchange, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node(pub u32);

impl Node {
    /// The node `distance` behind this one in a ring of `nodes`.
    const fn after(self, distance: u32, nodes: u32) -> Node {
        Node(((self.0 as u64 + distance as u64) % nodes as u64) as u32)
    }

    /// The node `distance` before this one in a ring of `nodes`.
    const fn before(self, distance: u32, nodes: u32) -> Node {
        self.after(nodes - distance % nodes, nodes)
    }
}
