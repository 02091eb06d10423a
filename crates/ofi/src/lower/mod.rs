//! The network between hosts: another provider of the libfabric that loaded us, as a
//! [`Network`](tidegate_link::fabric::Network).
//!
//! | file | what it is |
//! |---|---|
//! | `choice` | which provider and which interface: `FI_TIDEGATE_FABRIC` |
//! | `networks` | what is known of each provider: the only file that names them |
//! | `asking` | `fi_getinfo`, called from inside a provider, what it lists, and in which order that is tried |
//! | `squeezing` | addresses of the provider below in the room that ours have for them |
//! | `faster` | what this host has that is faster than what was taken, and the line that takes it |
//! | `interfaces` | which interface is taken where the user has not said |
//! | `nearness` | which of several equal devices is near to this process |
//! | `wants` | what an endpoint is opened for |
//! | `objects` | fabric, domain, address vector, completion queue, endpoint: opened in order, closed in reverse |
//! | `slots` | the memory that the provider below reads and writes while an operation is under way |
//! | `receives` | those that are posted, and how many |
//! | `reads` | what the provider below has of each read of a peer's memory |
//! | `probe_sockets` | connections that nobody uses, to find out whether a peer and its host are there |
//! | `watched_port` | a TCP port by which peers find out whether this process is there, beside such a network |
//! | `failing` | for how long something fails |
//! | `ports` | at which ports it may listen: `FI_TIDEGATE_PORTS` |
//! | `sending` | how a batch is handed to the provider below, and in whose memory |
//! | `network` | batches sent and received through these |
//! | `memory` | memory of peers read through these, and ours exposed to them |
//!
//! Only the smallest common part of providers is asked for: reliable datagrams (`FI_EP_RDM`) by `FI_MSG`, manual
//! progress, one thread at a time, contexts of 64 bytes of our own for each operation, posted receives; and `FI_RMA`
//! where it is to be had, for reads of long messages. Nothing relies on the order of operations, on knowing their
//! source, on injection, on more than that a read that has ended well has ended.

mod asking;
mod choice;
mod failing;
mod faster;
mod interfaces;
mod memory;
mod nearness;
mod network;
mod networks;
mod objects;
mod ports;
mod probe_sockets;
#[cfg(test)]
mod reading_tests;
mod reads;
mod receives;
mod sending;
mod slots;
mod squeezing;
#[cfg(test)]
mod stranger_tests;
#[cfg(test)]
mod tests;
mod wants;
mod watched_port;

pub use asking::{has_this_provider, is_asking};
pub use choice::Choice;
pub use faster::{Fast, Speed};
pub use interfaces::{is_virtual, speed_of_interface};
pub use network::{Lower, Taken};
pub use ports::Ports;
pub use wants::Wants;
