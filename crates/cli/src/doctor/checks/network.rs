//! Which network a job over several hosts takes, and which faster ones there are; its ports.

use super::{endpoints_per_rank, one_folder_of_providers, ranks};
use crate::doctor::facts::{Facts, Interface, Taken};
use crate::doctor::trial::Trial;
use crate::doctor::verdict::{Verdict, bad, ok, warn};
use crate::quote;

/// The network that is taken, and those that are faster.
pub fn network(facts: &Facts) -> Vec<Verdict> {
    let Some(Ok(libfabric)) = &facts.libfabric else {
        let list: Vec<String> = facts.interfaces.iter().map(described).collect();
        let text = if list.is_empty() {
            "no interface leads to other hosts".to_owned()
        } else {
            format!("this host has {}", list.join(", "))
        };
        return vec![ok("network", text)];
    };
    let taken = match &libfabric.taken {
        None => return vec![ok("network", "none, as FI_TIDEGATE_FABRIC says: jobs on one host only")],
        Some(Ok(taken)) => taken,
        Some(Err(_)) if facts.hosts_job.as_ref().is_some_and(Trial::is_good) => {
            let network = facts.hosts_job.as_ref().and_then(|job| job.network.clone()).unwrap_or_default();
            return vec![ok("network", format!("{network} is taken between hosts"))];
        }
        Some(Err(why)) => {
            let text = format!("none between hosts: {why}");
            let tcp = || "export FI_TIDEGATE_FABRIC=tcp".to_owned();
            let remedy = one_folder_of_providers(facts).unwrap_or_else(tcp);
            // A job on one host needs none, unless the user has asked for one.
            let is_needed = facts.hosts.len() > 1 || facts.fabric.is_some();
            return vec![bad(is_needed, "network", text, remedy)];
        }
    };
    let Taken { provider, domain, speed, faster } = taken;
    let interface = facts.interfaces.iter().find(|interface| interface.name == *domain);
    let address = interface.and_then(|interface| interface.addresses.first());
    let inside: Vec<String> = address.into_iter().chain(speed).cloned().collect();
    let taken = with_inside(format!("{provider}/{domain}"), &inside);
    if let Some(text) = address_doubt(facts, interface) {
        return vec![warn("network", text, "export FI_TIDEGATE_FABRIC=tcp/INTERFACE".to_owned())];
    }
    vec![match faster {
        None => ok("network", format!("{taken} is taken between hosts")),
        Some((name, speed)) => {
            let text = format!("{taken} is taken between hosts; {name} ({speed}) is faster");
            let name = quote::line(&[name]);
            warn("network", text, format!("export FI_TIDEGATE_FABRIC={name}"))
        }
    }]
}

/// Whether the only way to other hosts is an interface that joins containers or virtual machines, though there are
/// others.
fn address_doubt(facts: &Facts, taken: Option<&Interface>) -> Option<String> {
    let taken = taken.filter(|interface| interface.is_virtual)?;
    let other = facts.interfaces.iter().find(|interface| !interface.is_virtual)?;
    Some(format!("{} is taken between hosts, which joins containers; there is {}, too", taken.name, other.name))
}

fn described(interface: &Interface) -> String {
    let inside: Vec<String> = interface.addresses.first().into_iter().chain(&interface.speed).cloned().collect();
    with_inside(interface.name.clone(), &inside)
}

fn with_inside(name: String, inside: &[String]) -> String {
    if inside.is_empty() { name } else { format!("{name} ({})", inside.join(", ")) }
}

/// Whether there is a port for each endpoint of this host.
pub fn ports(facts: &Facts) -> Vec<Verdict> {
    let Some(count) = facts.ports else { return Vec::new() };
    let needed = facts.ranks * endpoints_per_rank(facts);
    let text = format!("FI_TIDEGATE_PORTS has {count}; {} listen at {needed} on this host", ranks(facts.ranks));
    if count >= needed {
        return vec![ok("ports", text)];
    }
    let remedy = format!("tidegate run --ports 41000-{}", 41_000 + needed - 1);
    vec![bad(facts.hosts.len() > 1, "ports", text, remedy)]
}

#[cfg(test)]
mod tests {
    use super::super::testing::{healthy, one};
    use super::*;
    use crate::doctor::verdict::Level;
    use crate::mpi::{Mpi, MpiKind};

    fn interface(name: &str, speed: &str, is_virtual: bool) -> Interface {
        let addresses = vec![format!("10.0.0.{}", name.len())];
        let speed = (!speed.is_empty()).then(|| speed.to_owned());
        Interface { name: name.into(), addresses, speed, is_virtual }
    }

    fn with(interfaces: Vec<Interface>) -> Facts {
        Facts { interfaces, ..healthy() }
    }

    fn taking(mut facts: Facts, taken: Option<Result<Taken, String>>) -> Facts {
        if let Some(Ok(libfabric)) = &mut facts.libfabric {
            libfabric.taken = taken;
        }
        facts
    }

    #[test]
    fn a_faster_network_is_named_with_the_line_that_takes_it() {
        let of = |speed: Option<&str>, faster: Option<(&str, &str)>| {
            let faster = faster.map(|(name, speed)| (name.to_owned(), speed.to_owned()));
            let speed = speed.map(str::to_owned);
            let taken = Taken { provider: "tcp".into(), domain: "eth0".into(), speed, faster };
            one(&network(&taking(with(vec![interface("eth0", "", false)]), Some(Ok(taken)))))
        };
        let (level, text, remedy) = of(Some("10 Gbit/s"), Some(("verbs;ofi_rxm/mlx5_0", "100 Gbit/s")));
        assert_eq!((level, remedy.as_deref()), (Level::Warn, Some("export FI_TIDEGATE_FABRIC='verbs;ofi_rxm/mlx5_0'")));
        assert_eq!(
            text,
            "tcp/eth0 (10.0.0.4, 10 Gbit/s) is taken between hosts; verbs;ofi_rxm/mlx5_0 (100 Gbit/s) is faster"
        );
        assert_eq!(of(None, None), (Level::Ok, "tcp/eth0 (10.0.0.4) is taken between hosts".into(), None));
    }

    #[test]
    fn a_bridge_that_is_taken_is_doubted() {
        let facts = with(vec![interface("eth0", "", false), interface("docker0", "", true)]);
        let taken = Taken { provider: "tcp".into(), domain: "docker0".into(), ..Taken::default() };
        let facts = taking(facts, Some(Ok(taken)));
        assert!(one(&network(&facts)).1.starts_with("docker0 is taken"));
    }

    #[test]
    fn without_a_network_jobs_run_on_one_host() {
        let taken = |taken| taking(healthy(), taken);
        let nothing = taken(Some(Err("there is no domain \"ib0\"".into())));
        assert_eq!(one(&network(&nothing)).0, Level::Warn);
        let hosts = vec!["a".into(), "b".into()];
        assert_eq!(one(&network(&Facts { hosts, ..nothing.clone() })).0, Level::No);
        assert_eq!(one(&network(&Facts { fabric: Some("tcp/ib0".into()), ..nothing.clone() })).0, Level::No);
        let mut of_intel = nothing;
        of_intel.mpi.mpi = Some(Mpi::of(MpiKind::IntelMpi));
        assert!(one(&network(&of_intel)).2.unwrap().starts_with("tidegate run --shared DIR"));
        of_intel.has_shared_folder = true;
        assert_eq!(one(&network(&of_intel)).2.as_deref(), Some("export FI_TIDEGATE_FABRIC=tcp"));
        assert_eq!(one(&network(&taken(None))).0, Level::Ok, "none is wanted");
        let unknown = Facts { libfabric: None, ..with(vec![interface("eth0", "100 Mbit/s", false)]) };
        assert_eq!(one(&network(&unknown)).1, "this host has eth0 (10.0.0.4, 100 Mbit/s)");
        assert!(one(&network(&Facts::default())).1.contains("no interface"));
    }

    #[test]
    fn a_range_of_ports_has_one_for_each_endpoint() {
        let facts = Facts { ranks: 4, ports: Some(4), ..healthy() };
        assert_eq!(one(&ports(&facts)).0, Level::Ok);
        let facts = Facts { ports: Some(3), ..facts };
        assert_eq!(one(&ports(&facts)).0, Level::Warn);
        let (level, _, remedy) = one(&ports(&Facts { hosts: vec!["a".into(), "b".into()], ..facts }));
        assert_eq!((level, remedy.as_deref()), (Level::No, Some("tidegate run --ports 41000-41003")));
        assert_eq!(ports(&healthy()), []);
    }
}
