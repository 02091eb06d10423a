//! Endpoints of other hosts, over a network of datagrams that may lose, repeat and reorder.
//!
//! | file | what it is |
//! |---|---|
//! | `network` | what is needed of the network below, which the provider implements over another libfabric provider |
//! | `contact`, `kind` | how an endpoint is reached, 64 bytes; who is on the same host; which network it has |
//! | `admission` | who may speak: proofs, and what strangers can do all the same |
//! | `wire`, `greeting` | the bytes of a batch, and of what two endpoints say of themselves first |
//! | `stream` | packets in order and each once: numbers, acknowledgements, what is kept and sent again |
//! | `loading`, `copies` | messages that are carried beside packets, in one way; what they take at their sender |
//! | `buffers`, `posting` | posted buffers: what is refused, and sent again |
//! | `slots` | one pool of slots: what is refused, and sent again when its sender is invited |
//! | `peer` | one peer: what is to be said to it |
//! | `window` | the windows that peers are told, and those that they have told |
//! | `liveness` | whether a peer lives: when it is asked, and what proves that it is out of reach |
//! | `reachability_probe` | connections that nobody uses, by which a peer's kernel is asked whether it is there |
//! | `watch` | the same where the network below tells nothing of processes that have ended |
//! | `unsendable` | a batch that alone is refused |
//! | `former` | peers that have no place any more, and stay lost |
//! | `departing` | the network's names for peers that have no place any more |
//! | `protocol`, `receiving`, `sending` | all peers, the mailbox and events; what a batch does; what is sent when |
//! | `closing` | what is said to all at the end, and when that is over |
//! | `late` | peers for whom the network took nothing, and when they are tried again |
//! | `reads`, `reading` | long messages: chunks of peers' memory that the network reads; from whom, and when |
//! | `link` | the [`Link`](tidegate_message::Link) made of these |
//!
//! Nothing here does input or output but through `network`, and the time comes as an argument, except in `link`.

mod admission;
mod buffers;
mod closing;
mod contact;
mod copies;
mod departing;
mod former;
mod greeting;
#[cfg(test)]
mod kernels;
mod kind;
mod late;
mod link;
mod liveness;
mod loading;
#[cfg(test)]
mod loading_tests;
mod network;
mod notices;
mod peer;
mod posting;
#[cfg(test)]
mod posting_tests;
mod protocol;
mod reachability_probe;
#[cfg(test)]
mod reachability_probe_tests;
mod reading;
#[cfg(test)]
mod reading_tests;
mod reads;
mod receiving;
mod sending;
#[cfg(test)]
mod slot_tests;
mod slots;
#[cfg(test)]
mod stranger_tests;
mod stream;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trouble_tests;
mod unsendable;
mod watch;
#[cfg(test)]
mod watch_tests;
mod window;
mod wire;

pub use contact::{Contact, NoContact};
pub use greeting::Greeting;
pub use kind::NetworkKind;
pub use link::FabricLink;
pub use network::{
    Answer, LOWER_ADDRESS_MOST, LowerAddress, Network, NetworkEvent, Probe, ProbeTarget, Route, Sending, Token, Watched,
};
pub use peer::OUTSTANDING_MOST;
pub use protocol::{Counts, Protocol};
pub use reachability_probe::{PROBES_MOST, QUESTIONS_MOST};
pub use reads::Chunking;
pub use wire::{LONGEST_BATCH_BYTES, SHORT_BATCH_BYTES};
