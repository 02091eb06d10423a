//! Shared memory between the processes of one host.
//!
//! Each endpoint owns one `segment`: a file in `/dev/shm` with a table of `peer`s, its `index`, and a `mailbox`, which
//! peers write to, and a list of published `region`s and `bounce` buffers for bulk data, which they only read. A
//! `connection` is made at the first packet to a peer: it maps the peer's segment and takes a place in the peer's
//! table. `bulk` data goes from memory to memory (`copying`), short `pieces` of it together, in lists of `iovecs`,
//! writes behind `guard_pages`. `posting` is what the owner does with posted buffers, which writers take as `mailbox`
//! says. A `service` is a name that leads to an endpoint. `state` says what an endpoint
//! is made of, `config` what it needs to know, `connecting` how peers are found and reached, `connect_retry` what makes
//! that wait, `endpoint` what messages see of all that, `observed` what others see of it. `vacant` finds out who has
//! come, `liveness` who closes or dies and what is left behind, which `reclaiming` clears away; `life` says who lives,
//! by each `lock` that an endpoint holds and no forked child of it keeps (`lock_file`, `fork`), and `processor` who
//! only waits for its turn to run. `sibling` tries whether two processes may read each other. `spin` decides when an
//! idle process yields, and `wake` lets it block.

mod accesses;
mod address;
mod bounce;
mod bulk;
mod carrying;
mod config;
mod connect_retry;
mod connecting;
mod connection;
mod cookie;
mod copying;
#[cfg(all(test, not(loom), not(miri)))]
mod crowd_tests;
mod endpoint;
mod error;
mod faults;
mod filling;
mod fork;
mod guard_pages;
mod idling;
mod index;
mod iovecs;
mod layout;
mod life;
mod liveness;
mod lock;
mod lock_file;
mod mailbox;
pub(crate) mod memory_map;
mod observed;
mod peer;
mod peer_segment;
mod pieces;
mod posting;
mod reclaiming;
mod region;
mod segment;
mod send_buffers;
mod service;
mod settings;
mod sibling;
mod spin;
mod state;
mod sync;
#[cfg(all(test, not(loom)))]
mod tests;
mod vacant;
mod wait_meter;
mod wake;
mod withdrawing;

pub use address::Address;
pub(crate) use address::process_of;
pub use config::{
    BOUNCE_BUFFERS_MOST, BulkChoice, DEFAULT_BOUNCE_BUFFERS, DEFAULT_SEND_BUFFERS, DIRECTORY, NAMES, SEND_BUFFERS_MOST,
    ShmConfig,
};
pub use error::{LinkError, Shortage};
pub use fork::Maker;
pub use service::{Claim, ClaimError, Service};
pub use settings::{BUFFERS_MOST, CREDIT_SLOTS_MOST, SLOTS_PER_PEER_MOST};
pub(crate) use settings::{Difference, Settings, Told};
pub use sibling::{ReadableWord, read_word};
pub use spin::Idle;
pub use state::ShmLink;
pub use wait_meter::WaitChange;
pub use withdrawing::Copies;

use life::Here;
use reclaiming::Effort;
use std::path::Path;

/// Removes the segments that dead processes of this user left in `directory`; returns how many. Every new endpoint
/// does so by itself, within bounds: this is for whoever sees a job end and wants its memory back at once.
pub fn reclaim(directory: &Path) -> usize {
    reclaiming::clear_away(directory, &Here::find(), Effort::THOROUGH)
}
