//! The simulator: jobs on networks, networks alone, exchanges of bulk data.

mod bulk;
mod job;
mod network;
