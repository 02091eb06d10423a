//! The simulator: the same flow control and message code that runs under MPI, in simulated processes on simulated
//! nodes of a simulated network.
//!
//! Deterministic: time is a whole number of picoseconds ([`Time`]), events that are due at the same time happen in the
//! order in which they were scheduled ([`EventQueue`]), and random choices depend on the seed alone ([`Random`]).
//!
//! * `time.rs`, `event_queue.rs`: the engine;
//! * `topology/`: who is wired to whom and which way a packet goes: mesh, torus, switch, ideal;
//! * `parameters.rs`: every number of the network model;
//! * `parcel.rs`, `flight.rs`: a packet in 16 bytes, a packet under way, and the pool of them;
//! * `router.rs`: queues and link-level credits;
//! * `network/`: the network model itself, from injection to extraction;
//! * `buffer.rs`, `contacts.rs`, `link.rs`, `outbox.rs`, `bulk.rs`, `rendezvous.rs`, `local.rs`: the environment of an
//!   endpoint: memory, peers, mailbox, what it has written, remote memory, and the path between processes of one node;
//! * `adapter.rs`, `posted.rs`: interfaces whose receivers post buffers;
//! * `cost.rs`, `noise.rs`, `node.rs`, `process.rs`: what work costs, what interrupts it, network interfaces, and
//!   processes: a real endpoint and a program;
//! * `task.rs`, `workload/`: the calls that programs make, and programs;
//! * `config.rs`, `simulation.rs`, `outcome.rs`: a run, from its configuration to what came of it;
//! * `random.rs`: numbers that a seed decides;
//! * `cycle/`: dragonflies and fat trees under load, cycle by cycle: another model of a network, for thousands of
//!   nodes;
//! * `bulk_machine/`: nodes whose receiving is dearer than sending, with the decisions of `tidegate_bulk`;
//! * `calibration.rs`: the times that the machine's parameters are calibrated to;
//! * `checker/`: what must hold in every run;
//! * `goal.rs`, `run_spec/`: the description of a run, as files have it;
//! * `measurement.rs`, `estimate.rs`, `kept.rs`: what is to be known of a run, its mean over seeds, and what tells runs
//!   apart that are kept on disk.

#![forbid(unsafe_code)]

mod adapter;
mod buffer;
mod bulk;
pub mod bulk_machine;
pub mod calibration;
pub mod checker;
mod config;
mod contacts;
mod cost;
pub mod cycle;
mod estimate;
mod event_queue;
mod flight;
pub mod goal;
mod hash;
mod kept;
mod link;
mod local;
mod measurement;
pub mod network;
mod node;
mod noise;
mod outbox;
mod outcome;
mod parameters;
mod parcel;
mod posted;
mod process;
mod random;
mod rendezvous;
mod router;
pub mod run_spec;
mod simulation;
mod slots;
mod task;
mod time;
pub mod topology;
pub mod workload;

pub use buffer::{Contents, Memory, Part};
pub use config::{BlockedSender, FlowChoice, MessageHeader, SetupError, SimulationConfig, SimulationError};
pub use cost::{Activity, Cost, SlowReceivers, Spent};
pub use estimate::Estimate;
pub use event_queue::EventQueue;
pub use flight::{Flight, Label, NodeId, Rank};
pub use kept::{CODE, FinishedRun, NoStore, RunClaim, RunKey, RunStore};
pub use measurement::{Bulk, Carried, Measurement, Note, Posted, Stop};
pub use network::{LinkReport, Network, NetworkError, NetworkEvent, Notice, Refused, Totals};
pub use noise::Noise;
pub use outcome::{Outcome, PostedBuffers, ProcessOutcome, RankWait};
pub use parameters::{Bandwidth, NetworkParameters};
pub use parcel::{Body, Parcel};
pub use random::Random;
pub use rendezvous::Rendezvous;
pub use simulation::{Look, Simulation};
pub use task::{Delivery, Program, Request, Run, Sample, Sender, Tag, TagFilter, Task};
pub use time::Time;
pub use topology::{Topology, TopologyError, Ways};
