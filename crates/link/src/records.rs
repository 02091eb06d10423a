//! [`Records`]: addresses of departed peers whose messages the endpoint has stored and whose places other peers have by
//! now, each by the number that the endpoint has given it instead.

use crate::shm::Address;
use std::collections::HashMap;
use tidegate_flow::PeerId;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Records {
    addresses: HashMap<PeerId, Address>,
    numbers: HashMap<Address, PeerId>,
}

impl Records {
    /// The peer of this address has this number from now on.
    pub(crate) fn insert(&mut self, record: PeerId, address: Address) {
        self.addresses.insert(record, address);
        self.numbers.insert(address, record);
    }

    /// The number is no peer's any more.
    pub(crate) fn remove(&mut self, record: PeerId) {
        if let Some(address) = self.addresses.remove(&record)
            && self.numbers.get(&address) == Some(&record)
        {
            self.numbers.remove(&address);
        }
    }

    /// Whose number it is.
    pub(crate) fn address(&self, record: PeerId) -> Option<Address> {
        self.addresses.get(&record).copied()
    }

    /// The number of the peer of this address, if it has one.
    pub(crate) fn number(&self, address: &Address) -> Option<PeerId> {
        if self.numbers.is_empty() { None } else { self.numbers.get(address).copied() }
    }
}
