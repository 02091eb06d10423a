//! What libfabric and applications call: one file per table of calls. Each call checks what it is given, enters the
//! domain, and passes on. The objects that no file below `calls` needs (address vectors, event queues, memory regions)
//! are defined beside their calls.

pub mod address_vector;
pub mod atomic;
pub mod completion_queue;
pub mod counter;
pub mod domain;
pub mod endpoint;
pub mod event_queue;
pub mod fabric;
pub mod memory_region;
pub mod message;
pub mod rma;
pub mod tagged;
