//! [`Totals`]: counts of a network since the beginning, and of its routers' choices ([`Choices`]).

use serde::{Deserialize, Serialize};

/// Comparisons of a shortest way with a detour by adaptive routers of a dragonfly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choices {
    /// How often they compared.
    pub compared: u64,
    /// How often they took the detour.
    pub diverted: u64,
    /// Flits in use behind the shortest ways, all together.
    pub shortest_flits: u64,
    /// Flits in use behind the detours, all together.
    pub detour_flits: u64,
}

/// Counts of a network since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets that entered.
    pub injected: u64,
    /// Packets that left.
    pub released: u64,
    /// Steps of packets through routers.
    pub hops: u64,
    /// Packets marked by a full queue.
    pub marked: u64,
    /// Packets that left the shortest way.
    pub diverted: u64,
    /// Choices for packets to nodes that are not slow, and to slow ones.
    pub choices: [Choices; 2],
}
