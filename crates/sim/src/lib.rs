//! The simulator: the same flow control and message code that runs under MPI, in simulated processes on simulated nodes of a
//! simulated network.
//!
//! Deterministic: time is a whole number of picoseconds ([`Time`]), events that are due at the same time happen in the order in
//! which they were scheduled ([`EventQueue`]), and nothing else decides.
//!
//! * `time.rs`, `event_queue.rs`: the engine;
//! * `topology/`: who is wired to whom and which way a packet goes: mesh, torus, switch, ideal;
//! * `parameters.rs`: every number of the network model;
//! * `flight.rs`: a packet under way, and the pool of them;
//! * `router.rs`: queues and link-level credits;
//! * `network.rs`: the network model itself, from injection to extraction.

#![forbid(unsafe_code)]

mod event_queue;
mod flight;
pub mod network;
mod parameters;
mod router;
mod time;
pub mod topology;

pub use event_queue::EventQueue;
pub use flight::{Flight, NodeId, Rank};
pub use network::{LinkReport, Network, NetworkError, NetworkEvent, Notice, Refused, Totals};
pub use parameters::{Bandwidth, NetworkParameters};
pub use time::Time;
pub use topology::{Topology, TopologyError};
