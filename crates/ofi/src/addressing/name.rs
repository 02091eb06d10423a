//! What stands in libfabric's addresses: an endpoint, or a service by which one is found. Both take the same number of
//! bytes.
//!
//! A client may call `fi_getinfo` before its server has opened anything, and a service may have another owner tomorrow.
//! So the name of a service stays a service in `dest_addr` and in address vectors. Which endpoint has it is looked up
//! when an operation first needs to know (`Endpoint::find_target`). While no endpoint has the service, operations
//! return `-FI_EAGAIN`, for the time [`SERVICE_TIMEOUT`]; then they fail. So client and server may be started in any
//! order, and a client whose server never comes gets an error. (If `fi_getinfo` returned `-FI_ENODATA` instead, every
//! client would have to wait and call it again.)

use core::fmt;
use std::time::{Duration, Instant};
use tidegate_link::Service;
use tidegate_link::fabric::{Contact, NoContact};

/// How long a service may have no owner before operations that go there fail.
pub const SERVICE_TIMEOUT: Duration = Duration::from_secs(10);

/// What an address names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// This endpoint.
    Endpoint(Contact),
    /// The endpoint that has this service at the time.
    Service(Service),
}

impl Name {
    /// Bytes of every name.
    pub const BYTES: usize = Contact::BYTES;

    /// The bytes that libfabric and applications pass around.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        match self {
            Name::Endpoint(contact) => contact.to_bytes(),
            Name::Service(service) => {
                let mut bytes = [0; Self::BYTES];
                bytes[..Service::BYTES].copy_from_slice(&service.to_bytes());
                bytes
            }
        }
    }

    /// The name that these bytes hold. Further bytes behind it are ignored. The error says for people what they are.
    pub fn from_bytes(bytes: &[u8]) -> Result<Name, NoContact> {
        match Service::from_bytes(bytes) {
            Some(service) => Ok(Name::Service(service)),
            None => Contact::from_bytes(bytes).map(Name::Endpoint),
        }
    }

    /// Whether it can lead anywhere: the service with the empty name cannot.
    pub fn is_somewhere(&self) -> bool {
        !matches!(self, Name::Service(service) if service.is_empty())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Endpoint(contact) => contact.fmt(f),
            Name::Service(service) => service.fmt(f),
        }
    }
}

/// How long an operation has waited for an endpoint that has its service.
#[derive(Clone, Copy, Debug)]
pub struct ServiceWait {
    since: Instant,
}

impl ServiceWait {
    /// The wait begins now.
    pub fn new(now: Instant) -> ServiceWait {
        ServiceWait { since: now }
    }

    /// Whether [`SERVICE_TIMEOUT`] is over.
    pub fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= SERVICE_TIMEOUT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends() {
        let begun = Instant::now();
        let wait = ServiceWait::new(begun);
        assert!(!wait.is_over(begun));
        assert!(!wait.is_over(begun + SERVICE_TIMEOUT - Duration::from_millis(1)));
        assert!(wait.is_over(begun + SERVICE_TIMEOUT));
    }

    #[test]
    fn services_and_nonsense_are_told_apart() {
        let [some, none] = [&b"7471"[..], b""].map(|name| Name::Service(Service::new(name).unwrap()));
        assert_eq!(Name::from_bytes(&some.to_bytes()), Ok(some));
        assert!(some.is_somewhere() && !none.is_somewhere());
        assert_eq!(Name::from_bytes(&[7; Name::BYTES]), Err(NoContact::Foreign));
        assert_eq!(some.to_string(), "service 7471");
    }
}
