//! What stands in libfabric's addresses: an endpoint, or a service by which one is found. Both take the same number of
//! bytes.
//!
//! A client's `fi_getinfo` may come before its server has opened anything, and a service may have another owner
//! tomorrow. So it stays a service in `dest_addr` and in address vectors, and is looked up when an operation first
//! needs to know where it leads (`Endpoint::find_target`). While nobody has it, the operation is to be tried again, for
//! [`PATIENCE`]: client and server may be started in any order, and a client whose server never comes is told so. (The
//! other choice, `FI_ENODATA`, would make every client wait and ask again by itself.)

use core::fmt;
use std::time::{Duration, Instant};
use tidegate_link::{Address, Service};

/// How long a service may have no owner before operations that go there fail.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Where an address leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// To this endpoint.
    Endpoint(Address),
    /// To whoever has the service.
    Service(Service),
}

impl Name {
    /// Bytes of every name.
    pub const BYTES: usize = Address::BYTES;

    /// As addresses are passed around.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        match self {
            Name::Endpoint(address) => address.to_bytes(),
            Name::Service(service) => service.to_bytes(),
        }
    }

    /// Back from bytes; longer input is fine, its rest is ignored. `None`: not one of ours.
    pub fn from_bytes(bytes: &[u8]) -> Option<Name> {
        let service = || Service::from_bytes(bytes).map(Name::Service);
        Address::from_bytes(bytes).map(Name::Endpoint).or_else(service)
    }

    /// Whether it leads anywhere.
    pub fn is_somewhere(&self) -> bool {
        !matches!(self, Name::Service(service) if service.is_empty())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Endpoint(address) => address.fmt(f),
            Name::Service(service) => service.fmt(f),
        }
    }
}

/// Waiting for a service to be claimed.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    since: Instant,
}

impl Wait {
    /// From now on.
    pub fn new(now: Instant) -> Wait {
        Wait { since: now }
    }

    /// Whether nobody need wait any longer.
    pub fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends() {
        let begun = Instant::now();
        let wait = Wait::new(begun);
        assert!(!wait.is_over(begun));
        assert!(!wait.is_over(begun + PATIENCE - Duration::from_millis(1)));
        assert!(wait.is_over(begun + PATIENCE));
    }

    #[test]
    fn services_and_nonsense_are_told_apart() {
        let [some, none] = [&b"7471"[..], b""].map(|name| Name::Service(Service::new(name).unwrap()));
        assert_eq!(Name::from_bytes(&some.to_bytes()), Some(some));
        assert!(some.is_somewhere() && !none.is_somewhere());
        assert_eq!(Name::from_bytes(&[7; Name::BYTES]), None);
        assert_eq!(some.to_string(), "service 7471");
    }
}
