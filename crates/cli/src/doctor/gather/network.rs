//! Interfaces of this host.

use std::net::IpAddr;

use tidegate_fi::diagnosis::{self, Speed, speed_of_interface};

use super::super::facts::Interface;

/// The interfaces that are up and have an address by which other hosts may be reached.
pub fn interfaces() -> Vec<Interface> {
    let mut found: Vec<Interface> = Vec::new();
    for (name, address) in diagnosis::interfaces() {
        let is_local = match address {
            IpAddr::V4(address) => address.is_loopback() || address.is_link_local(),
            IpAddr::V6(address) => address.is_loopback() || address.is_unicast_link_local(),
        };
        if is_local {
            continue;
        }
        match found.iter_mut().find(|interface| interface.name == name) {
            Some(interface) => interface.addresses.push(address.to_string()),
            None => {
                let speed = speed_of_interface(&name).map(|speed| Speed(speed).to_string());
                let is_virtual = diagnosis::is_virtual(&name);
                found.push(Interface { name, addresses: vec![address.to_string()], speed, is_virtual });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_no_way_to_other_hosts() {
        assert!(interfaces().iter().all(|interface| interface.name != "lo" && !interface.addresses.is_empty()));
    }
}
