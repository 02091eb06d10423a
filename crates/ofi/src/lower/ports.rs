//! [`Ports`]: the value of `FI_TIDEGATE_PORTS`, which says at which ports the network below may listen.
//!
//! libfabric's `tcp` has variables for this (`FI_TCP_PORT_LOW_RANGE`, `FI_TCP_PORT_HIGH_RANGE`), whose names differ by
//! provider (`FI_NET_…` in 1.17). They are not used: two processes that bind the same port at the same time both
//! succeed, because `tcp` sets SO_REUSEADDR, and the later one fails as it listens, where `tcp` takes no other port.
//! Here the port stands in the address that the endpoint is opened with, and whatever is refused as taken is followed
//! by the next port.

use std::fmt;
use std::str::FromStr;

/// A range of ports, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    low: u16,
    high: u16,
}

impl Ports {
    /// How many there are.
    pub fn count(self) -> u32 {
        u32::from(self.high - self.low) + 1
    }

    /// All of them, each once, beginning at one that depends on `seed`: processes that start at the same time are not
    /// to try the same ones in the same order.
    pub fn in_turn(self, seed: u32) -> impl Iterator<Item = u16> {
        let first = seed % self.count();
        // The sum is at most `high`, so it is a port.
        (0..self.count()).map(move |step| (u32::from(self.low) + (first + step) % self.count()) as u16)
    }
}

impl FromStr for Ports {
    type Err = ();

    fn from_str(text: &str) -> Result<Ports, ()> {
        let (low, high) = text.split_once('-').ok_or(())?;
        let port =
            |text: &str| text.trim().parse().map_err(|_| ()).and_then(|port: u16| (port > 0).then_some(port).ok_or(()));
        let (low, high) = (port(low)?, port(high)?);
        (low <= high).then_some(Ports { low, high }).ok_or(())
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.low, self.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_two_ports_in_order() {
        for text in ["1-65535", "40000-40000", "40000-40010"] {
            assert_eq!(text.parse::<Ports>().map(|ports| ports.to_string()).as_deref(), Ok(text));
        }
        assert_eq!(" 5000 - 5001 ".parse(), Ok(Ports { low: 5000, high: 5001 }));
        for text in ["", "40000", "40000-", "-40000", "0-1", "5-4", "1-65536", "a-b", "1-2-3", "40000:40010"] {
            assert_eq!(text.parse::<Ports>(), Err(()), "{text}");
        }
    }

    #[test]
    fn every_port_has_its_turn_wherever_it_begins() {
        let ports = Ports { low: 65534, high: 65535 };
        assert_eq!(ports.in_turn(4).collect::<Vec<_>>(), [65534, 65535]);
        assert_eq!(ports.in_turn(u32::MAX).collect::<Vec<_>>(), [65535, 65534]);
        let all = Ports { low: 1, high: 65535 };
        let mut seen: Vec<u16> = all.in_turn(4711).collect();
        assert_eq!((all.count(), seen[0]), (65535, 4712));
        seen.sort_unstable();
        assert!(seen.iter().copied().eq(1..=65535));
    }
}
