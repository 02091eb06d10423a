//! Addresses: what they say, which hosts they may name, how applications name places, what an address vector holds,
//! and by which path a peer is reached.

pub(crate) mod addresses;
pub(crate) mod host;
pub(crate) mod name;
pub(crate) mod place;
pub(crate) mod reach;
