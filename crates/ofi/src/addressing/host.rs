//! Which names and addresses mean this host. Names of services lead to endpoints of this host only.

use core::ffi::{CStr, c_char};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether `node`, a name or a numeric address, means this host. With `numeric` it must be an address
/// (`FI_NUMERICHOST`), and no resolver is asked about names.
pub fn is_this_host(node: &CStr, numeric: bool) -> bool {
    // A host knows its own name, whatever its resolver says.
    let own = !numeric && (node.to_bytes().eq_ignore_ascii_case(b"localhost") || node.to_bytes() == host_name());
    own || {
        let addresses = resolve(node, numeric);
        !addresses.is_empty() && {
            let interfaces = interfaces();
            addresses.iter().any(|address| is_own(address, &interfaces))
        }
    }
}

/// Whether an address is one of ours: of an interface, of the loopback network, or "any".
fn is_own(address: &IpAddr, interfaces: &[(String, IpAddr)]) -> bool {
    let address = address.to_canonical();
    address.is_loopback() || address.is_unspecified() || interfaces.iter().any(|(_, own)| *own == address)
}

/// The name of this host.
pub fn host_name() -> Vec<u8> {
    let mut name = [0u8; 256];
    // SAFETY: the length given leaves a zero byte at the end.
    let failed = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) } != 0;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(0);
    if failed { Vec::new() } else { name[..end].to_vec() }
}

/// The addresses of a host; none if it is unknown.
fn resolve(node: &CStr, numeric: bool) -> Vec<IpAddr> {
    // SAFETY: a C struct for which zero is a value.
    let mut hints: libc::addrinfo = unsafe { core::mem::zeroed() };
    hints.ai_socktype = libc::SOCK_STREAM;
    hints.ai_flags = if numeric { libc::AI_NUMERICHOST } else { 0 };
    let mut list = core::ptr::null_mut();
    // SAFETY: `node` and `hints` live through the call, which sets `list` if it succeeds.
    if unsafe { libc::getaddrinfo(node.as_ptr(), core::ptr::null::<c_char>(), &hints, &mut list) } != 0 {
        return Vec::new();
    }
    let mut addresses = Vec::new();
    let mut next = list.cast_const();
    // SAFETY: the list is the library's until it is freed below; each member is null or valid.
    unsafe {
        while let Some(found) = next.as_ref() {
            addresses.extend(ip_of(found.ai_addr));
            next = found.ai_next;
        }
        libc::freeaddrinfo(list);
    }
    addresses
}

/// The addresses of this host's interfaces, each with the name of its interface.
pub fn interfaces() -> Vec<(String, IpAddr)> {
    let mut list = core::ptr::null_mut();
    // SAFETY: the call sets `list` if it succeeds.
    if unsafe { libc::getifaddrs(&mut list) } != 0 {
        return Vec::new();
    }
    let mut addresses = Vec::new();
    let mut next = list.cast_const();
    // SAFETY: the list is the library's until it is freed below; each member is null or valid.
    unsafe {
        while let Some(interface) = next.as_ref() {
            let name = || CStr::from_ptr(interface.ifa_name).to_string_lossy().into_owned();
            addresses.extend(ip_of(interface.ifa_addr).map(|ip| (name(), ip)));
            next = interface.ifa_next;
        }
        libc::freeifaddrs(list);
    }
    addresses
}

/// # Safety
/// The pointer is null or leads to an address of the family that it names.
pub unsafe fn ip_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: promised by the caller.
    unsafe {
        match i32::from(address.as_ref()?.sa_family) {
            libc::AF_INET => {
                let v4 = address.cast::<libc::sockaddr_in>().read_unaligned();
                Some(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)).into())
            }
            libc::AF_INET6 => {
                let v6 = address.cast::<libc::sockaddr_in6>().read_unaligned();
                Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    #[test]
    fn every_name_and_address_of_this_host_is_this_host() {
        for node in
            [c"localhost", c"LocalHost", c"127.0.0.1", c"127.9.9.9", c"::1", c"::ffff:127.0.0.1", c"0.0.0.0", c"::"]
        {
            assert!(is_this_host(node, false), "{node:?}");
        }
        assert!(is_this_host(&CString::new(host_name()).unwrap(), false));
        for (_, address) in interfaces() {
            assert!(is_this_host(&CString::new(address.to_string()).unwrap(), true), "{address}");
        }
    }

    #[test]
    fn other_hosts_are_not() {
        // Addresses for documentation, which no host has.
        for node in [c"192.0.2.1", c"2001:db8::1", c"no-such-host.invalid", c"", c"fi_sockaddr://127.0.0.1:80"] {
            assert!(!is_this_host(node, false), "{node:?}");
        }
    }

    #[test]
    fn a_name_is_no_numeric_address() {
        assert!(!is_this_host(c"localhost", true));
        assert!(is_this_host(c"127.0.0.1", true));
    }
}
