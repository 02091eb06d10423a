//! Places as applications name them, by node and service or by an address in a struct, and the [`Name`]s that they lead
//! to.

use crate::addressing::host;
use crate::addressing::name::Name;
use crate::border::bindings::fi_info;
use crate::border::errno::{INVALID, Result};
use core::ffi::{CStr, c_char, c_void};
use tidegate_link::Service;

/// Why a wish of an application cannot be met, as a text for people.
pub type Mismatch = String;

/// A text that an application passes.
pub fn text<'a>(pointer: *const c_char) -> Option<&'a CStr> {
    // SAFETY: names in hints are null or C strings that outlive the call.
    (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) })
}

/// A place as people name it.
#[derive(Clone, Copy, Default)]
pub struct Place<'a> {
    /// A host's name or address.
    pub node: Option<&'a CStr>,
    /// The name of a service: a number or a word.
    pub service: Option<&'a CStr>,
    /// Whether the node must be a numeric address.
    pub numeric: bool,
}

impl Place<'_> {
    /// Whether neither node nor service is given.
    pub fn is_nowhere(&self) -> bool {
        self.node.is_none() && self.service.is_none()
    }

    /// The service on this host. The node must mean this host. Without a service, or with port 0, the name of the
    /// service is empty.
    pub fn name(&self) -> core::result::Result<Name, Mismatch> {
        let service = self.service.map_or(&b""[..], CStr::to_bytes);
        let service = if service == b"0" { b"" } else { service };
        let most = Service::NAME_BYTES_MOST;
        let service =
            Service::new(service).ok_or_else(|| format!("it names a service by more than {most} characters"))?;
        if let Some(node) = self.node
            && !host::is_this_host(node, self.numeric)
        {
            return Err(format!("{} is not this host, and Tidegate reaches no other", node.to_string_lossy()));
        }
        Ok(Name::Service(service))
    }
}

/// The service that an endpoint is to be found by, from the info with which it is opened.
///
/// # Safety
/// The info's source address must be null or as long as the info says.
pub unsafe fn source_of(info: &fi_info) -> Result<Option<Service>> {
    // SAFETY: promised by the caller.
    match unsafe { name_at(info.src_addr, info.src_addrlen) } {
        Ok(None) => Ok(None),
        Ok(Some(Name::Service(service))) => Ok(Some(service).filter(|service| !service.is_empty())),
        Ok(Some(Name::Endpoint(_))) | Err(_) => Err(INVALID),
    }
}

/// The name at a place in memory; `None` if the place is null.
///
/// # Safety
/// There must be `length` bytes, unless the address is null.
pub unsafe fn name_at(address: *const c_void, length: usize) -> core::result::Result<Option<Name>, Mismatch> {
    if address.is_null() {
        return Ok(None);
    }
    // SAFETY: promised by the caller.
    let bytes = unsafe { core::slice::from_raw_parts(address.cast::<u8>(), length) };
    Name::from_bytes(bytes).map(Some).map_err(|what| format!("of the address that it gives: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(node: Option<&CStr>, service: Option<&CStr>) -> core::result::Result<Name, Mismatch> {
        Place { node, service, numeric: false }.name()
    }

    fn service(text: &[u8]) -> Name {
        Name::Service(Service::new(text).unwrap())
    }

    #[test]
    fn a_service_of_this_host_is_named_with_or_without_the_host() {
        assert_eq!(name(None, Some(c"7471")), Ok(service(b"7471")));
        assert_eq!(name(Some(c"localhost"), Some(c"7471")), Ok(service(b"7471")));
    }

    #[test]
    fn no_service_and_port_0_are_the_empty_service() {
        for place in [None, Some(c""), Some(c"0")] {
            assert_eq!(name(None, place), Ok(service(b"")), "{place:?}");
        }
    }

    #[test]
    fn other_hosts_and_long_services_are_refused_with_a_reason() {
        // An address for documentation, which no host has.
        assert!(name(Some(c"192.0.2.1"), Some(c"7471")).unwrap_err().contains("192.0.2.1 is not this host"));
        let long = std::ffi::CString::new(vec![b'x'; Service::NAME_BYTES_MOST + 1]).unwrap();
        assert!(name(None, Some(&long)).unwrap_err().contains("more than"));
    }

    #[test]
    fn names_in_memory_are_ours_or_refused() {
        let bytes = service(b"7471").to_bytes();
        // SAFETY: null, or as many bytes as are said.
        let read = |place: *const u8, length| unsafe { name_at(place.cast(), length) };
        assert_eq!(read(bytes.as_ptr(), bytes.len()), Ok(Some(service(b"7471"))));
        assert_eq!(read(core::ptr::null(), 0), Ok(None));
        assert!(read([7; Name::BYTES].as_ptr(), Name::BYTES).is_err());
    }
}
