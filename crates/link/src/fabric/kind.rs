//! [`NetworkKind`]: which network an endpoint has for other hosts, as one byte of its address. Two endpoints reach each
//! other only if theirs are of one kind.

use std::fmt;

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NetworkKind(u8);

/// A kind for each protocol between hosts, under the names by which libfabric's versions know the provider that speaks
/// it. The numbers stand in addresses and stay what they are. `net` is the name that libfabric 1.17 has for `tcp`.
const KINDS: [(u8, &[&str]); 14] = [
    (1, &["tcp", "net"]),
    (2, &["tcp;ofi_rxm"]),
    (3, &["sockets"]),
    (4, &["udp;ofi_rxd"]),
    (5, &["verbs;ofi_rxm"]),
    (6, &["verbs"]),
    (7, &["psm3"]),
    (8, &["efa"]),
    (9, &["cxi"]),
    (10, &["opx"]),
    (11, &["psm2"]),
    (12, &["ucx", "mlx"]),
    (13, &["verbs;ofi_rxd"]),
    (14, &["lnx"]),
];

impl NetworkKind {
    /// There is no network.
    pub const NONE: NetworkKind = NetworkKind(0);
    /// One that has no number.
    pub const OTHER: NetworkKind = NetworkKind(255);

    /// The kind of the provider that libfabric calls so.
    pub fn of_provider(name: &str) -> NetworkKind {
        let known = KINDS.iter().find(|(_, names)| names.contains(&name));
        known.map_or(NetworkKind::OTHER, |(number, _)| NetworkKind(*number))
    }

    /// From the byte of an address.
    pub(crate) fn from_byte(byte: u8) -> NetworkKind {
        NetworkKind(byte)
    }

    /// For an address.
    pub(crate) fn byte(self) -> u8 {
        self.0
    }
}

/// As the user names it in `FI_TIDEGATE_FABRIC`.
impl fmt::Display for NetworkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = KINDS.iter().find(|(number, _)| *number == self.0);
        match (*self, known) {
            (NetworkKind::NONE, _) => f.write_str("none"),
            (_, Some((_, names))) => f.write_str(names[0]),
            (_, None) => f.write_str("another provider"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_one_number_and_the_name_that_users_write() {
        for (number, names) in KINDS {
            assert_eq!(KINDS.iter().filter(|(other, _)| *other == number).count(), 1, "{number}");
            assert!(names.iter().all(|name| NetworkKind::of_provider(name).byte() == number));
            assert_eq!(NetworkKind::from_byte(number).to_string(), names[0]);
        }
        assert_eq!(NetworkKind::of_provider("net"), NetworkKind::of_provider("tcp"), "one protocol");
        assert_eq!(NetworkKind::of_provider("moon"), NetworkKind::OTHER);
        assert_eq!(
            (NetworkKind::NONE.to_string(), NetworkKind::OTHER.to_string()),
            ("none".into(), "another provider".into())
        );
    }
}
