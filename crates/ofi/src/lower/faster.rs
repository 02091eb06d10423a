//! Whether this host has a faster network than the one that was taken by default, and the line that takes it.
//!
//! By default `tcp` is taken, by the interface of the default route, because hosts of one cluster reach each other by
//! it. Nothing tells here whether all of them have the faster one too, so it is named and not taken. Where there is no
//! such device or interface, this reads two folders of the system and asks libfabric nothing.

use super::asking::{self, Offer};
use super::choice::Choice;
use super::interfaces::{Interfaces, Preference, speed_of_interface};
use super::networks::{Domains, row_of};
use crate::border::loader::Loader;
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;

/// Bits a second, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Speed(pub u64);

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bits @ 1_000_000_000.. if bits.is_multiple_of(1_000_000_000) => {
                write!(f, "{} Gbit/s", bits / 1_000_000_000)
            }
            bits @ 1_000_000_000.. => write!(f, "{:.1} Gbit/s", bits as f64 / 1e9),
            bits => write!(f, "{} Mbit/s", bits / 1_000_000),
        }
    }
}

/// A network, as the user names it, and its speed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fast {
    /// Its name, for `FI_TIDEGATE_FABRIC`.
    pub name: String,
    /// Its speed.
    pub speed: Speed,
}

/// The kernel's drivers of devices that more than TCP uses, each with the providers that drive them, the best first.
const DRIVERS: [(&str, &[&str]); 8] = [
    ("mlx5_core", &["verbs;ofi_rxm"]),
    ("mlx4_core", &["verbs;ofi_rxm"]),
    ("bnxt_en", &["verbs;ofi_rxm"]),
    ("ice", &["verbs;ofi_rxm"]),
    ("i40e", &["verbs;ofi_rxm"]),
    ("idpf", &["verbs;ofi_rxm"]),
    ("efa", &["efa"]),
    ("hfi1", &["opx", "psm2"]),
];

/// The providers for devices that the folder of the system lists.
fn providers_of_devices(system: &Path) -> BTreeSet<&'static str> {
    let folder = |name: &str| fs::read_dir(system.join(name)).into_iter().flatten().flatten();
    let mut providers = BTreeSet::new();
    for device in folder("infiniband") {
        let driver = fs::read_link(device.path().join("device/driver")).unwrap_or_default();
        let known = DRIVERS.iter().find(|(name, _)| driver.file_name().is_some_and(|driver| driver == *name));
        providers.extend(known.into_iter().flat_map(|(_, providers)| providers.iter().copied()));
    }
    if folder("cxi").next().is_some() {
        providers.insert("cxi");
    }
    providers
}

/// Interfaces of IP that reach other hosts, as far as can be told, and state their speed.
fn interfaces(here: &Interfaces) -> Vec<Fast> {
    let addressed = here.addresses.iter().filter(|(_, ip)| !ip.is_loopback()).map(|(name, _)| name);
    let names: BTreeSet<&String> = addressed.filter(|name| here.preference(name) != Preference::Virtual).collect();
    let speeds = names.into_iter().filter_map(|name| Some((name, speed_of_interface(name)?)));
    speeds.map(|(name, speed)| Fast { name: format!("tcp/{name}"), speed: Speed(speed) }).collect()
}

/// The best that is faster than what was taken.
fn best(taken: &Fast, others: Vec<Fast>) -> Option<Fast> {
    others.into_iter().filter(|other| other.speed > taken.speed).max_by_key(|other| other.speed)
}

/// The network that was taken, for people: name, speed, and what is faster, such as `verbs;ofi_rxm/mlx5_0`, or
/// `tcp/eth0 (10 Gbit/s; faster, 100 Gbit/s: FI_TIDEGATE_FABRIC=tcp/ib0)`.
pub fn describe(loader: &'static Loader, choice: &Choice, taken: &Offer, here: &Interfaces) -> String {
    match faster(loader, choice, taken, here) {
        (None, _) => taken.name(),
        (Some(speed), faster) => said(&Fast { name: taken.name(), speed }, faster.as_ref()),
    }
}

/// The speed of the network that was taken, if it is known, and the fastest that is faster, if there is one.
pub fn faster(
    loader: &'static Loader,
    choice: &Choice,
    taken: &Offer,
    here: &Interfaces,
) -> (Option<Speed>, Option<Fast>) {
    let Some(speed) = taken.speed().map(Speed) else { return (None, None) };
    let mut others = Vec::new();
    if choice.domain().is_none() && row_of(&taken.provider()).domains == Domains::Interfaces {
        others.extend(interfaces(here));
    }
    if *choice == Choice::Auto {
        for provider in providers_of_devices(Path::new("/sys/class")) {
            let offers = asking::ask(loader, Some(provider), false).into_iter().filter(|offer| !offer.is_down());
            others.extend(offers.filter_map(|offer| Some(Fast { name: offer.name(), speed: Speed(offer.speed()?) })));
        }
    }
    (Some(speed), best(&Fast { name: taken.name(), speed }, others))
}

fn said(taken: &Fast, faster: Option<&Fast>) -> String {
    let Fast { name, speed } = taken;
    match faster {
        None => format!("{name} ({speed})"),
        Some(Fast { name: other, speed: more }) => {
            // The shell takes a semicolon for its own.
            let quote = if other.contains(';') { "'" } else { "" };
            format!("{name} ({speed}; faster, {more}: FI_TIDEGATE_FABRIC={quote}{other}{quote})")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn other(name: &str, gigabits: u64) -> Fast {
        Fast { name: name.into(), speed: Speed(gigabits * 1_000_000_000) }
    }

    #[test]
    fn speeds_read_as_people_say_them() {
        let shown = [100_000_000, 1_000_000_000, 2_500_000_000, 400_000_000_000].map(|bits| Speed(bits).to_string());
        assert_eq!(shown, ["100 Mbit/s", "1 Gbit/s", "2.5 Gbit/s", "400 Gbit/s"]);
    }

    #[test]
    fn the_fastest_is_named_with_the_line_that_takes_it() {
        let taken = other("tcp/eth0", 10);
        let of = |others| said(&taken, best(&taken, others).as_ref());
        assert_eq!(of(vec![other("tcp/eth0", 10), other("tcp/eth1", 1)]), "tcp/eth0 (10 Gbit/s)");
        assert_eq!(
            of(vec![other("tcp/ib0", 100), other("tcp/eth1", 25)]),
            "tcp/eth0 (10 Gbit/s; faster, 100 Gbit/s: FI_TIDEGATE_FABRIC=tcp/ib0)"
        );
        let device = of(vec![other("tcp/ib0", 100), other("verbs;ofi_rxm/mlx5_0", 200)]);
        assert!(device.ends_with("FI_TIDEGATE_FABRIC='verbs;ofi_rxm/mlx5_0')"), "{device}");
    }

    #[test]
    fn devices_lead_to_the_providers_that_drive_them() {
        let folder = std::env::temp_dir().join(format!("tidegate-devices-{}", std::process::id()));
        assert_eq!(providers_of_devices(&folder), BTreeSet::new());
        for (device, driver) in [("mlx5_0", "mlx5_core"), ("rdmap0s6", "efa"), ("moon0", "moon")] {
            let place = folder.join("infiniband").join(device).join("device");
            fs::create_dir_all(&place).unwrap();
            symlink(format!("../../../../bus/pci/drivers/{driver}"), place.join("driver")).unwrap();
        }
        fs::create_dir_all(folder.join("cxi/cxi0")).unwrap();
        assert_eq!(providers_of_devices(&folder), BTreeSet::from(["verbs;ofi_rxm", "efa", "cxi"]));
        fs::remove_dir_all(folder).unwrap();
    }
}
