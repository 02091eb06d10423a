//! Networks that are simulated cycle by cycle: dragonflies and fat trees of routers with input queues, as R simulates
//! them, under load.
//!
//! The network of `network/` is another model: it moves the packets of processes, in picoseconds, and its topologies
//! are small and regular. Here time is cycles, a link carries a flit in each, and there are thousands of nodes that
//! send as fast as they can.
//!
//! * `layout.rs`: who is wired to whom, and the ways; `dragonfly.rs` and `fat_tree.rs` are the two kinds, each with the
//!   reason why its packets cannot wait for each other in a circle;
//! * `parameters.rs`: the numbers of routers and links;
//! * `packet.rs`, `wheel.rs`: packets under way, and what is due when;
//! * `engine.rs`, `totals.rs`: routers and links, one cycle after the other, and what they did;
//! * `pattern.rs`, `load.rs`: what nodes do: who sends to whom, slow nodes, marks of congestion, chunks;
//! * `all_to_all/`: exchanges of all nodes, by the techniques of bulk-transfer scheduling and as MPIs do them;
//! * `throughput.rs`: how much comes through once the network has settled.

pub mod all_to_all;
mod dragonfly;
mod engine;
mod fat_tree;
mod layout;
mod load;
mod packet;
mod parameters;
mod pattern;
#[cfg(test)]
pub(crate) mod routes_tests;
#[cfg(test)]
mod tests;
mod throughput;
mod totals;
mod wheel;

pub use dragonfly::Dragonfly;
pub use fat_tree::FatTree;
pub(crate) use layout::Far;
pub use layout::{Layout, LayoutError, PORTS_MAX, Routing};
pub use load::{Control, Counts, Limited, Load, Loaded, Machine, MachineError, SLOW_FACTOR_MAX};
pub(crate) use packet::Journey;
pub use parameters::{BUFFER_FLITS_MAX, CHANNELS_MAX, ChannelMap, LATENCY_MAX, Lanes, ParameterError, Parameters};
pub use pattern::Pattern;
pub(crate) use throughput::{FIVE_PERCENT, is_settled};
pub use throughput::{Settled, Throughput, Windows};
pub use totals::{Choices, Totals};
