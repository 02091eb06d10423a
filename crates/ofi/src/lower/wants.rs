//! [`Wants`]: what an endpoint of the provider below is opened for, and what follows from it.

use super::ports::Ports;
use tidegate_link::fabric::OUTSTANDING_MOST;

/// Receives that are posted beside one for each peer.
pub const SPARE: usize = 32;
/// Sendings that may be under way beside those to peers: last words.
const SENDS_TO_STRANGERS: usize = 64;
/// Sendings that may be under way to a peer.
const SENDS_PER_PEER: usize = OUTSTANDING_MOST as usize;
/// Completions for which room is asked at most: more are a rare event, and memory of hardware.
const COMPLETIONS_MOST: usize = 32 << 10;

/// What an endpoint is opened for.
#[derive(Clone, Copy, Debug)]
pub struct Wants {
    /// How many peers there may be, about.
    pub peers: usize,
    /// Threads sleep until something has come.
    pub may_sleep: bool,
    /// Memory of peers is read, where the provider can.
    pub reads: bool,
    /// How many reads may be under way, beside one of each peer.
    pub chunks: usize,
    /// The ports at which it may listen, if the user said.
    pub ports: Option<Ports>,
    /// Its description is read, so it is to say how fast the network is, and what would be faster: for that, the
    /// providers of this host's devices are asked.
    pub described: bool,
}

impl Wants {
    /// Sendings that may be under way.
    pub fn sends(&self) -> usize {
        SENDS_TO_STRANGERS + SENDS_PER_PEER * self.peers
    }

    /// Receives that may be posted.
    pub fn receives(&self) -> usize {
        SPARE + self.peers
    }

    /// Operations that may be under way, so completions that may wait to be read.
    pub fn completions(&self) -> usize {
        let most = self.receives() + self.sends() + self.chunks + self.peers;
        most.min(COMPLETIONS_MOST)
    }
}
