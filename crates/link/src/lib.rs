//! Links: the environments that an endpoint of `tidegate-message` runs in outside the simulator.
//!
//! | folder or file | what it is |
//! |---|---|
//! | [`shm`] | processes of one host: mailboxes in shared memory, bulk data from memory to memory |
//! | [`fabric`] | processes of other hosts: a protocol over a network that the provider brings |
//! | [`paths`] | several links behind one endpoint: which peer by which |
//! | [`memory`] | [`IoBuffer`]: application memory that came in as raw pointers |
//! | [`journal`] | a file that a process appends to, and that outlives it |
//! | [`stats`] | the page of counters that outlives its process, and its reader |
//! | [`process`] | which process this is, among those that descend from one another by forks |
//! | [`Container`] | the container around this process |
//! | [`control_groups()`] | the folders of the control groups around this process |
//! | [`node_memory()`] | how much memory the processes of a node may use together |
//! | [`LockWord`] | a lock that costs a load as long as one side has it to itself |
//! | [`plain()`] | texts that others wrote, made safe to show where they are read |
//! | [`user_name()`] | the names of users |
//! | [`trouble`] | what went wrong in a process, left for `tidegate run` to say |
//! | [`now`], [`since_epoch`] | the clock |
//! | [`log`] | where log lines go: the provider hands them to libfabric |
//!
//! `unsafe` is allowed here and in `tidegate-ofi` only; each block says why it is sound.

mod boot;
mod clock;
mod container;
mod control_groups;
pub mod fabric;
pub mod files;
pub mod journal;
mod lock_word;
pub mod log;
pub mod memory;
mod node_memory;
pub mod paths;
mod plain;
pub mod process;
mod records;
mod secret;
pub mod shm;
pub mod stats;
pub mod trouble;
mod user_name;

pub use clock::{now, since_epoch};
pub use container::Container;
pub use control_groups::control_groups;
pub use lock_word::LockWord;
pub use memory::IoBuffer;
pub use node_memory::node_memory;
pub use paths::{Path, Paths};
pub use plain::plain;
pub use secret::{Secret, random};
pub use shm::{
    Address, BOUNCE_BUFFERS_MOST, BUFFERS_MOST, BulkChoice, CREDIT_SLOTS_MOST, Claim, ClaimError, Copies,
    DEFAULT_BOUNCE_BUFFERS, DEFAULT_SEND_BUFFERS, DIRECTORY, Idle, LinkError, Maker, NAMES, ReadableWord,
    SEND_BUFFERS_MOST, SLOTS_PER_PEER_MOST, Service, ShmConfig, ShmLink, Shortage, WaitChange, read_word, reclaim,
};
pub use stats::{Chosen, Chunk, EndpointStats, PostedBuffers, StatsConfig};
pub use user_name::user_name;
