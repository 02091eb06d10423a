//! Configuration of flow control and what follows from it (P eq. 2).

/// A scheme by its short name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SchemeName {
    /// No flow control: the network's back-pressure alone.
    None,
    /// Static credits (P §5).
    Static,
    /// Dynamic credits (P §6).
    Dynamic,
}

/// What the user chooses. Every process of a job must choose alike, `peers` excepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The scheme.
    pub scheme: SchemeName,
    /// Peers that may send to this endpoint, itself excluded.
    pub peers: u32,
    /// Mailbox slots per peer, credit slots included.
    pub slots_per_peer: u32,
    /// Of those, slots reserved for credit packets.
    pub credit_slots: u32,
    /// Whether credits ride on data packets (P §5.4).
    pub piggyback: bool,
}

/// How the mailbox divides. All counts are slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Regions {
    /// Slots of the whole mailbox.
    pub mailbox: u32,
    /// Slots of the data region, over all peers.
    pub data: u32,
    /// Slots of the credit region, over all peers.
    pub credit: u32,
    /// One peer's share of the data region.
    pub quota: u32,
}

/// A refused configuration. `Display` names the parameter to change and what it may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {}

impl Config {
    /// The regions, or why the configuration is refused (P eq. 2).
    pub fn regions(&self) -> Result<Regions, ConfigError> {
        todo!()
    }
}
