//! Which interface reaches other hosts, where the user has not said, and what an address of our own means.
//!
//! Providers over sockets call each interface a domain. libfabric lists them by their speed as the system states it,
//! and a bridge of containers, which leads nowhere, states the same as a good card. So the interface is taken by which
//! this host reaches the world: that of the default route. All hosts of a cluster have one, and those of one cluster
//! reach each other by it. It may not be the fastest: the user names that. Where no interface has such a route, the
//! first that is no bridge and no tunnel is taken, in libfabric's order.

use crate::addressing::host;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

/// How good an interface is, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Preference {
    /// The default route leads through it.
    DefaultRoute,
    /// It is as good as any.
    Ordinary,
    /// It joins containers, virtual machines or tunnels.
    Virtual,
}

/// How the names of interfaces begin that Docker, libvirt, Kubernetes, LXC and others make, where the kernel does not
/// tell what they are.
const VIRTUAL_NAMES: [&str; 12] =
    ["docker", "br-", "virbr", "veth", "cni", "flannel", "lxc", "lxd", "podman", "cali", "tun", "vxlan"];

/// This host's interfaces: their addresses, and which has the default route, as the system says.
#[derive(Debug)]
pub struct Interfaces {
    /// Each address with the name of its interface.
    pub addresses: Vec<(String, IpAddr)>,
    /// The interface of the default route.
    pub default_route: Option<String>,
}

impl Interfaces {
    /// Asks the system.
    pub fn here() -> Interfaces {
        let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
        let default_route = default_route(&read("/proc/self/net/route"))
            .or_else(|| default_route_of_version_six(&read("/proc/self/net/ipv6_route")));
        Interfaces { addresses: host::interfaces(), default_route }
    }

    /// The interface that has an address.
    pub fn that_has(&self, ip: IpAddr) -> Option<&str> {
        self.addresses.iter().find(|(_, own)| *own == ip.to_canonical()).map(|(name, _)| name.as_str())
    }

    /// How good the interface of this name is.
    pub fn preference(&self, name: &str) -> Preference {
        match &self.default_route {
            Some(default) if default == name => Preference::DefaultRoute,
            _ if is_virtual(name) => Preference::Virtual,
            _ => Preference::Ordinary,
        }
    }
}

/// The interface of the default route, that of the least metric, in the kernel's table of routes: name, destination,
/// gateway, flags, references, uses, metric, mask.
fn default_route(table: &str) -> Option<String> {
    let routes = table.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, "00000000", _, flags, _, _, metric, "00000000", ..] = words[..] else { return None };
        is_usable(flags).then_some((metric.parse::<u32>().ok()?, name))
    });
    routes.min_by_key(|(metric, _)| *metric).map(|(_, name)| name.to_owned())
}

/// The same of IPv6: destination, its length, source, its length, next hop, metric, references, uses, flags, name.
fn default_route_of_version_six(table: &str) -> Option<String> {
    let routes = table.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "00", _, _, _, metric, _, _, flags, name] = words[..] else { return None };
        (is_usable(flags) && name != "lo").then_some((u32::from_str_radix(metric, 16).ok()?, name))
    });
    routes.min_by_key(|(metric, _)| *metric).map(|(_, name)| name.to_owned())
}

/// Whether a route of these flags is up, and not one that refuses all.
fn is_usable(flags: &str) -> bool {
    const UP: u32 = 1;
    const REJECT: u32 = 0x200;
    u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & (UP | REJECT) == UP)
}

/// Whether an interface joins containers, virtual machines or tunnels.
pub fn is_virtual(name: &str) -> bool {
    let folder = Path::new("/sys/class/net").join(name);
    let is_said = ["bridge", "tun_flags"].iter().any(|entry| folder.join(entry).exists());
    is_said || VIRTUAL_NAMES.iter().any(|beginning| name.starts_with(beginning))
}

/// Bits a second of an interface, as the system states them. `None`: it does not know.
pub fn speed_of_interface(name: &str) -> Option<u64> {
    let file = Path::new("/sys/class/net").join(name).join("speed");
    let megabits: u64 = fs::read_to_string(file).ok()?.trim().parse().ok()?;
    (megabits > 0).then_some(megabits * 1_000_000)
}

/// What is wrong, probably, where a peer of another host has this address and never answers: it is an address of ours
/// too. `None`: it is none.
pub fn doubt(address: IpAddr, own: &[(String, IpAddr)]) -> Option<String> {
    let (name, _) = own.iter().find(|(_, ip)| *ip == address.to_canonical())?;
    let others: Vec<String> = own.iter().map(|(name, ip)| format!("{name} ({ip})")).collect();
    Some(format!(
        "its network address is one of this host's own, of the interface {name}, which hosts have each for themselves: \
         name one by which the hosts reach each other: FI_TIDEGATE_FABRIC=tcp/INTERFACE; here are: {}",
        others.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";

    #[test]
    fn the_default_route_of_the_least_metric_counts() {
        let of = |lines: &str| default_route(&format!("{HEAD}{lines}"));
        let (slow, fast) = (
            "eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n",
            "ib0\t00000000\t0100010A\t0003\t0\t0\t50\t00000000\t0\t0\t0\n",
        );
        let net = "docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n";
        assert_eq!(of(&format!("{net}{slow}")).as_deref(), Some("eth0"));
        assert_eq!(of(&format!("{slow}{fast}{net}")).as_deref(), Some("ib0"));
        assert_eq!((of(net), of(&slow.replace("0003", "0200")), default_route("")), (None, None, None));
    }

    #[test]
    fn where_only_version_six_has_one_it_counts() {
        let zero = "0".repeat(32);
        let line = |metric: &str, flags: &str, name: &str| {
            format!("{zero} 00 {zero} 00 {zero} {metric} 00000001 00000000 {flags} {name:>8}\n")
        };
        let reject = line("ffffffff", "00200200", "lo");
        let table = format!("{}{}{reject}", line("00000400", "00000003", "eth1"), line("00000100", "00000003", "eth0"));
        assert_eq!(default_route_of_version_six(&table).as_deref(), Some("eth0"));
        assert_eq!(default_route_of_version_six(&reject), None);
    }

    #[test]
    fn containers_come_behind_cards_and_the_default_route_comes_first() {
        let interfaces = Interfaces { addresses: Vec::new(), default_route: Some("br0".into()) };
        let mut names = ["docker0", "eth0", "br-1f2e", "br0", "ib0", "virbr0", "cni0"];
        names.sort_by_key(|name| interfaces.preference(name));
        assert_eq!(names, ["br0", "eth0", "ib0", "docker0", "br-1f2e", "virbr0", "cni0"]);
    }

    #[test]
    fn an_address_of_ours_is_doubted_with_all_that_there_are() {
        let own: Vec<(String, IpAddr)> = [("eth0", [10, 77, 0, 1]), ("docker0", [172, 17, 0, 1])]
            .map(|(name, ip)| (name.to_owned(), ip.into()))
            .to_vec();
        let said = doubt([172, 17, 0, 1].into(), &own).unwrap();
        assert!(
            said.contains("of the interface docker0") && said.contains("FI_TIDEGATE_FABRIC=tcp/INTERFACE"),
            "{said}"
        );
        assert!(said.ends_with("here are: eth0 (10.77.0.1), docker0 (172.17.0.1)"), "{said}");
        assert_eq!(doubt([10, 77, 0, 2].into(), &own), None);
    }
}
