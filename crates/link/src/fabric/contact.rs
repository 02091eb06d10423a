//! [`Contact`]: how an endpoint is reached from anywhere: its address, by which processes of its host find it in shared
//! memory, and its address in the network below.
//!
//! 64 bytes, for all endpoints of a job: MPICH, Open MPI and Intel MPI have room for no more. Who is where follows from
//! two contacts alone, and both sides come to the same answer: of one host are endpoints of one user with the same host
//! key, which is a hash of the kernel's boot id and of what `/dev/shm` is (`shm/life.rs`).

use super::network::LowerAddress;
use crate::shm::{Address, Difference, LinkError};
use std::fmt;

/// How an endpoint is reached. See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Contact {
    /// Where processes of its host find it.
    pub address: Address,
    /// Where other hosts find it; empty where it has no network.
    pub lower: LowerAddress,
}

/// The address's part of the bytes.
const ADDRESS_BYTES: usize = Address::BYTES;

impl Contact {
    /// Bytes of [`to_bytes`](Self::to_bytes).
    pub const BYTES: usize = 64;

    /// The contact as bytes, the same on every host.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..ADDRESS_BYTES].copy_from_slice(&self.address.to_bytes());
        let lower = self.lower.as_bytes();
        bytes[3] = lower.len() as u8;
        bytes[ADDRESS_BYTES..ADDRESS_BYTES + lower.len()].copy_from_slice(lower);
        bytes
    }

    /// Back from bytes; longer input is fine, its rest is ignored. `None`: no contact.
    pub fn from_bytes(bytes: &[u8]) -> Option<Contact> {
        let bytes: &[u8; Self::BYTES] = bytes.first_chunk()?;
        let lower = bytes.get(ADDRESS_BYTES..ADDRESS_BYTES + usize::from(bytes[3]))?;
        Some(Contact { address: Address::from_bytes(bytes)?, lower: LowerAddress::new(lower)? })
    }

    /// The endpoint's random number, which every batch to it carries.
    pub fn id(&self) -> u64 {
        self.address.identity.nonce
    }

    /// Whether the two share a host, and with it memory.
    pub fn shares_host(&self, other: &Contact) -> bool {
        let (ours, theirs) = (&self.address.identity, &other.address.identity);
        (ours.boot, ours.uid) == (theirs.boot, theirs.uid)
    }

    /// Whether the endpoint there counts slots as ours does. Errors name the first parameter that differs, with both
    /// values.
    pub fn check_settings(&self, theirs: &Contact) -> Result<(), LinkError> {
        match self.address.settings.difference(&theirs.address.settings) {
            None => Ok(()),
            Some(Difference { parameter, ours, theirs: value }) => {
                // The name of the host comes with the greeting, which nobody with other settings gets.
                let peer = format!("{theirs} of another host");
                Err(LinkError::Disagreement { peer, parameter, ours, theirs: value })
            }
        }
    }
}

impl fmt::Display for Contact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}
