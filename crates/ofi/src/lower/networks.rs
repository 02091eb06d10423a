//! The table of providers that may carry messages to other hosts, a row each with all that is known of it, so that no
//! other file names one. docs/hosts.md shows the table to users; a test compares the names.
//!
//! A provider that has no row is taken like one that promises nothing: an address as it is, batches of
//! [`SHORT_BATCH_BYTES`], as many receives as it states.

use super::squeezing::{INFINIBAND, IPV6, OPX, Shape};
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
    /// The things that it calls domains.
    pub domains: Domains,
    /// Kinds of addresses that are not taken as they are.
    pub addresses: &'static [&'static Shape],
    /// Bytes of the longest message that goes without being announced first, as far as batches reach.
    pub batch_bytes: usize,
    /// The number of receives that it states is no limit.
    pub takes_any_receives: bool,
    /// How it is noticed that a peer has gone.
    pub asking: Asking,
    /// The version of libfabric from which a thread can sleep on its descriptor.
    pub sleeps_from: u32,
    /// Addresses of peers that have closed may be removed.
    pub removes_addresses: bool,
    /// Whether it reaches other hosts.
    pub leaves_the_host: bool,
}

const fn version(major: u32, minor: u32) -> u32 {
    major << 16 | minor
}

/// One that promises nothing.
const ORDINARY: Row = Row {
    names: &[],
    domains: Domains::Devices,
    addresses: &[&IPV6],
    batch_bytes: SHORT_BATCH_BYTES,
    takes_any_receives: false,
    asking: Asking::Operations,
    sleeps_from: 0,
    removes_addresses: true,
    leaves_the_host: true,
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

/// All that are known.
pub const ROWS: [Row; 15] = [
    // Its messages of any length go as they are.
    Row { names: &["tcp", "net"], batch_bytes: LONGEST_BATCH_BYTES, ..TCP },
    Row { names: &["tcp;ofi_rxm"], ..TCP },
    // The address is that of the socket at which it listens.
    Row { names: &["sockets"], domains: Domains::Interfaces, asking: Asking::Sockets, ..ORDINARY },
    Row { names: &["udp;ofi_rxd"], domains: Domains::Interfaces, ..ORDINARY },
    // A device with IP has addresses of IP, one without has InfiniBand's.
    Row { names: &["verbs;ofi_rxm"], addresses: &[&IPV6, &INFINIBAND], ..ORDINARY },
    Row { names: &["verbs;ofi_rxd"], addresses: &[&IPV6, &INFINIBAND], ..ORDINARY },
    // Removing the address of a peer that has closed ends the process ("Disconnect not allowed when already
    // disconnected", psm3/ptl_ips/ips_proto_connect.c), so they stay.
    Row { names: &["psm3"], removes_addresses: false, ..ORDINARY },
    Row { names: &["psm2"], ..ORDINARY },
    Row { names: &["efa"], ..ORDINARY },
    Row { names: &["cxi"], ..ORDINARY },
    Row { names: &["opx"], addresses: &[&OPX], ..ORDINARY },
    // Addresses of hundreds of bytes: refused, with a word.
    Row { names: &["ucx", "mlx"], ..ORDINARY },
    Row { names: &["lnx"], ..ORDINARY },
    // Within a host Tidegate has its own way.
    Row { names: &["shm"], leaves_the_host: false, ..ORDINARY },
    Row { names: &["sm2"], leaves_the_host: false, ..ORDINARY },
];

/// Names of providers that speak TCP, the best first. Until libfabric 1.17 `tcp` has no reliable datagrams of its own.
pub const SPEAK_TCP: [&str; 3] = ["tcp", "net", "tcp;ofi_rxm"];

/// The row of the provider that libfabric calls so.
pub fn row_of(provider: &str) -> &'static Row {
    ROWS.iter().find(|row| row.names.contains(&provider)).unwrap_or(&ORDINARY)
}

/// Whether a provider of this name can reach other hosts, as far as is known: one in several parts, if all of them can.
pub fn reaches_other_hosts(provider: &str) -> bool {
    row_of(provider).leaves_the_host && provider.split(';').all(|part| row_of(part).leaves_the_host)
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
                assert_eq!(reaches_other_hosts(name), row.leaves_the_host, "{name}");
                let has_number = NetworkKind::of_provider(name) != NetworkKind::OTHER;
                assert!(has_number || !row.leaves_the_host, "{name} passes for any other");
            }
        }
        assert!(row_of("moon").names.is_empty() && reaches_other_hosts("moon"));
        assert!(reaches_other_hosts("tcp;ofi_rxm") && !reaches_other_hosts("lnx;shm"));
    }

    #[test]
    fn no_batch_is_longer_than_the_protocol_has_them_or_shorter_than_it_needs() {
        for row in &ROWS {
            assert!((SHORT_BATCH_BYTES..=LONGEST_BATCH_BYTES).contains(&row.batch_bytes), "{:?}", row.names);
        }
    }
}
