//! A whole job in one thread: endpoints over an in-memory network whose every delay a seed decides.
//!
//! * [`Setup`] says what the job is like, [`Setup::build`] makes a [`World`] of it.
//! * [`World::send`], [`World::receive`] and their siblings post operations; [`World::settle`] runs until nothing
//!   moves.
//! * Whatever a test forgets to check, the world checks: no mailbox beyond its slots, no buffer touched after its
//!   completion, no send buffer read after its completion (it is scribbled over).

mod buffer;
mod hostile;
mod link;
mod operations;
mod random;
mod world;

pub use buffer::{Arena, MemoryBuffer};
pub use hostile::{assert_others_work, fuzz_packets, hostile_run};
pub use link::{Memory, node_of, peer_of};
pub use operations::{Handle, ReceiveBuilder};
pub use random::Random;
pub use world::{Setup, World};

/// `length` bytes that depend on `seed` and on their place, so that a byte in the wrong place shows.
pub fn pattern(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|place| (seed.wrapping_mul(131) ^ place.wrapping_mul(7) ^ (place >> 8)) as u8).collect()
}
