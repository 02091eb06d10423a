//! The table of providers that may carry messages to other hosts, a row each with all that is known of it, so that no
//! other file names one. docs/hosts.md shows the table to users; a test compares the names.
//!
//! A provider that has no row is taken like one that promises nothing: an address as it is, batches of
//! [`SHORT_BATCH_BYTES`], as many receives as it states.

use super::squeezing::{EFA, INFINIBAND, IPV6, OPX, PSM3, Shape};
use tidegate_link::fabric::{LONGEST_BATCH_BYTES, SHORT_BATCH_BYTES};

/// How a process finds out that a peer has gone to which nothing can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// Its address is that of a TCP socket at which it listens: the kernel of its host is asked.
    Sockets,
    /// Only operations that fail tell.
    Operations,
}

/// The things that the provider calls domains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domains {
    /// An interface of IP, such as `eth0`: the routes of the host tell which one reaches others.
    Interfaces,
    /// A device, such as `mlx5_0`: it says itself whether it is up and how fast it is.
    Devices,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its names in libfabric's versions, the one that users write first.
    pub names: &'static [&'static str],
    /// Of its offers only those of the fabric of this name, where two offers have the same domain.
    pub fabric: Option<&'static str>,
    /// The things that it calls domains.
    pub domains: Domains,
    /// Each device of a host reaches each of another, so processes may take different ones.
    pub is_one_network: bool,
    /// Kinds of addresses that are not taken as they are.
    pub addresses: &'static [&'static Shape],
    /// Bytes of the longest message that goes without being announced first, as far as batches reach.
    pub batch_bytes: usize,
    /// The number of receives that it states is no limit.
    pub takes_any_receives: bool,
    /// It may be asked to leave the registration of local memory to us (`FI_MR_LOCAL`). One that can do without demands
    /// it only because it was offered, and copies all the same.
    pub offers_local: bool,
    /// How it is noticed that a peer has gone.
    pub asking: Asking,
    /// The version of libfabric from which a thread can sleep on its descriptor.
    pub sleeps_from: u32,
    /// Addresses of peers that have closed may be removed.
    pub removes_addresses: bool,
    /// Variables of its own that `tidegate run` sets where the user has not, in all processes alike.
    pub environment: &'static [(&'static str, &'static str)],
    /// Why it is refused, if it is.
    pub refusal: Option<&'static str>,
}

const fn version(major: u32, minor: u32) -> u32 {
    major << 16 | minor
}

/// One that promises nothing.
const ORDINARY: Row = Row {
    names: &[],
    fabric: None,
    domains: Domains::Devices,
    is_one_network: false,
    addresses: &[&IPV6],
    batch_bytes: SHORT_BATCH_BYTES,
    takes_any_receives: false,
    offers_local: true,
    asking: Asking::Operations,
    sleeps_from: 0,
    removes_addresses: true,
    environment: &[],
    refusal: None,
};

/// One over TCP sockets. Before libfabric 1.19, fi_trywait(3) of `tcp` does nothing, and the descriptor stays ready for
/// ever. The number of receives that it states is no limit.
const TCP: Row = Row {
    domains: Domains::Interfaces,
    takes_any_receives: true,
    asking: Asking::Sockets,
    sleeps_from: version(1, 19),
    ..ORDINARY
};

const WITHIN_A_HOST: &str = "it leaves no host, and within one Tidegate needs none";
const LONG_ADDRESSES: &str = "its addresses have hundreds of bytes (ucx: 1024), and there is room for 32";

/// All that are known.
pub const ROWS: [Row; 16] = [
    // Its messages of any length go as they are.
    Row { names: &["tcp", "net"], batch_bytes: LONGEST_BATCH_BYTES, ..TCP },
    Row { names: &["tcp;ofi_rxm"], ..TCP },
    // The address is that of the socket at which it listens. A call that sends connects, and waits for that: 75 s, if
    // nothing answers, and 2 s with these.
    Row {
        names: &["sockets"],
        domains: Domains::Interfaces,
        asking: Asking::Sockets,
        environment: &[("FI_SOCKETS_CONN_TIMEOUT", "2000"), ("FI_SOCKETS_MAX_CONN_RETRY", "1")],
        ..ORDINARY
    },
    // The address of a peer stands once in its table, however often it was inserted, and the first removal ends it:
    // `Lower` counts.
    Row { names: &["udp;ofi_rxd"], domains: Domains::Interfaces, ..ORDINARY },
    // A device with IP has addresses of IP, one without has InfiniBand's. Without shared receives 128 buffers of 16 KiB
    // are posted for each peer, 2.1 MiB; with them 66 MiB for all.
    Row {
        names: &["verbs;ofi_rxm"],
        addresses: &[&IPV6, &INFINIBAND],
        offers_local: false,
        environment: &[("FI_OFI_RXM_USE_SRX", "1")],
        ..ORDINARY
    },
    Row { names: &["verbs;ofi_rxd"], ..ORDINARY },
    // Removing the address of a peer that has closed ends the process as it closes itself ("Disconnect not allowed when
    // already disconnected", psm3/ptl_ips/ips_proto.c and ips_proto_connect.c of libfabric 2.2 to 2.6). So addresses
    // stay. A peer to which no connection comes about in time ends the process too: after 10 s, if nothing is said.
    Row {
        names: &["psm3"],
        addresses: &[&PSM3],
        removes_addresses: false,
        environment: &[("PSM3_CONNECT_TIMEOUT", "60")],
        ..ORDINARY
    },
    // A removed address leaves the others of the same peer without a connection.
    Row { names: &["psm2"], removes_addresses: false, ..ORDINARY },
    // `efa-direct` is offered first, by the same name of the provider and the domain, and has messages of one packet.
    // The part of `efa` for one host is not needed, and where it is there, no thread can sleep.
    Row {
        names: &["efa"],
        fabric: Some("efa"),
        is_one_network: true,
        addresses: &[&EFA],
        environment: &[("FI_EFA_ENABLE_SHM_TRANSFER", "0")],
        ..ORDINARY
    },
    // Before libfabric 2.2 it announces what is longer than 4 KiB.
    Row { names: &["cxi"], is_one_network: true, environment: &[("FI_CXI_RDZV_THRESHOLD", "16384")], ..ORDINARY },
    // Built for GPUs, it announces what is longer than 4 or 8 KiB.
    Row { names: &["opx"], addresses: &[&OPX], environment: &[("FI_OPX_RZV_MIN_PAYLOAD_BYTES", "16385")], ..ORDINARY },
    Row { names: &["ucx", "mlx"], refusal: Some(LONG_ADDRESSES), ..ORDINARY },
    Row { names: &["lnx"], refusal: Some("it has no messages without tags (FI_MSG)"), ..ORDINARY },
    Row { names: &["mrail", "ofi_mrail"], refusal: Some(LONG_ADDRESSES), ..ORDINARY },
    Row { names: &["shm"], refusal: Some(WITHIN_A_HOST), ..ORDINARY },
    Row { names: &["sm2"], refusal: Some(WITHIN_A_HOST), ..ORDINARY },
];

/// Names of providers that speak TCP, the best first. Until libfabric 1.17 `tcp` has no reliable datagrams of its own.
pub const SPEAK_TCP: [&str; 3] = ["tcp", "net", "tcp;ofi_rxm"];

/// The row of the provider that libfabric calls so.
pub fn row_of(provider: &str) -> &'static Row {
    ROWS.iter().find(|row| row.names.contains(&provider)).unwrap_or(&ORDINARY)
}

/// Why a provider of this name is refused, if it is: one in several parts, if one of them is.
pub fn refusal(provider: &str) -> Option<&'static str> {
    row_of(provider).refusal.or_else(|| provider.split(';').find_map(|part| row_of(part).refusal))
}

/// Variables that help the provider of this name, with values.
pub fn environment(provider: &str) -> &'static [(&'static str, &'static str)] {
    row_of(provider).environment
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_link::fabric::NetworkKind;

    #[test]
    fn each_network_has_one_row_and_a_number_in_addresses() {
        for row in &ROWS {
            for name in row.names {
                assert_eq!(ROWS.iter().filter(|other| other.names.contains(name)).count(), 1, "{name}");
                assert_eq!(row_of(name).names, row.names);
                assert_eq!(refusal(name), row.refusal, "{name}");
                let has_number = NetworkKind::of_provider(name) != NetworkKind::OTHER;
                assert!(has_number || row.refusal.is_some(), "{name} passes for any other");
            }
        }
        assert!(row_of("moon").names.is_empty() && refusal("moon").is_none());
        assert!(refusal("tcp;ofi_rxm").is_none() && refusal("tcp;ofi_mrail").is_some());
    }

    #[test]
    fn no_batch_is_longer_than_the_protocol_has_them_or_shorter_than_it_needs() {
        for row in &ROWS {
            assert!((SHORT_BATCH_BYTES..=LONGEST_BATCH_BYTES).contains(&row.batch_bytes), "{:?}", row.names);
        }
    }

    /// docs/hosts.md has a row for each, and says of it whether it is refused.
    #[test]
    fn the_page_for_users_has_the_same_rows() {
        let page = include_str!("../../../../docs/hosts.md");
        let listed: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
        assert_eq!(listed.len(), ROWS.len(), "{listed:?}");
        for row in &ROWS {
            let name = format!("| `{}` |", row.names[0]);
            let line =
                listed.iter().find(|line| line.starts_with(&name)).unwrap_or_else(|| panic!("{name} is missing"));
            assert_eq!(line.contains("| refused: "), row.refusal.is_some(), "{line}");
            assert_eq!(line.contains("the device near the process"), row.is_one_network, "{line}");
            for (variable, value) in row.environment {
                assert!(page.contains(variable), "{variable}={value}");
            }
        }
    }
}
