//! [`Address`]: which endpoint of which process, in a way that never means another one later. A process id alone is
//! reused; with the boot, the process namespace and the process's start time it is unique on a host for ever.

use std::fmt;

/// Where an endpoint is found. Small and plain, so that it travels through libfabric's address vectors as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// Hash of the kernel's boot id: which host, and which life of it.
    pub(crate) boot: u64,
    /// Inode of the process namespace (a container has its own); 0 where `/proc` does not tell.
    pub(crate) namespace: u64,
    /// Start of the process, in clock ticks after boot.
    pub(crate) start_ticks: u64,
    /// The process, in its namespace.
    pub(crate) pid: u32,
    /// Its effective user.
    pub(crate) uid: u32,
    /// Which endpoint of the process.
    pub(crate) serial: u32,
}

/// First bytes of every address: tells one of ours from bytes of other origin.
const MARK: [u8; 4] = *b"TGS1";

impl Address {
    /// Bytes of [`to_bytes`](Self::to_bytes).
    pub const BYTES: usize = 40;

    /// The address as bytes, the same on every host.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..4].copy_from_slice(&MARK);
        bytes[4..8].copy_from_slice(&self.pid.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.uid.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.serial.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.boot.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.namespace.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.start_ticks.to_le_bytes());
        bytes
    }

    /// Back from bytes; longer input is fine, its rest is ignored. `None`: not an address of this kind.
    pub fn from_bytes(bytes: &[u8]) -> Option<Address> {
        let bytes: &[u8; Self::BYTES] = bytes.first_chunk()?;
        let half = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let word = |at: usize| u64::from(half(at)) | u64::from(half(at + 4)) << 32;
        (bytes[0..4] == MARK).then(|| Address {
            boot: word(16),
            namespace: word(24),
            start_ticks: word(32),
            pid: half(4),
            uid: half(8),
            serial: half(12),
        })
    }

    /// Name of the endpoint's segment in the directory of segments.
    pub(crate) fn file_name(&self) -> String {
        let Address { boot, namespace, start_ticks, pid, uid, serial } = self;
        format!("tidegate-{uid}-{boot:016x}-{namespace}-{pid}-{start_ticks}-{serial}")
    }

    /// Back from the name of a segment; `None` for files of other kinds.
    pub(crate) fn from_file_name(name: &str) -> Option<Address> {
        let mut fields = name.strip_prefix("tidegate-")?.split('-');
        let address = Address {
            uid: fields.next()?.parse().ok()?,
            boot: u64::from_str_radix(fields.next()?, 16).ok()?,
            namespace: fields.next()?.parse().ok()?,
            pid: fields.next()?.parse().ok()?,
            start_ticks: fields.next()?.parse().ok()?,
            serial: fields.next()?.parse().ok()?,
        };
        // Comparing the whole name refuses signs, leading zeros and extra fields in one go.
        (address.file_name() == name).then_some(address)
    }
}

/// `pid 4711`, or `pid 4711, endpoint 2` if the process has several.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pid {}", self.pid)?;
        if self.serial > 0 {
            write!(f, ", endpoint {}", self.serial)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Address {
        Address { boot: 0xfeed, namespace: 4026531836, start_ticks: 123456, pid: 4711, uid: 1000, serial: 2 }
    }

    #[test]
    fn bytes_and_names_lead_back_to_the_address() {
        let address = example();
        assert_eq!(Address::from_bytes(&address.to_bytes()), Some(address));
        assert_eq!(Address::from_file_name(&address.file_name()), Some(address));
        assert_eq!(address.to_string(), "pid 4711, endpoint 2");
    }

    #[test]
    fn other_bytes_and_names_are_refused() {
        let mut bytes = example().to_bytes();
        assert_eq!(Address::from_bytes(&bytes[..39]), None);
        bytes[0] ^= 1;
        assert_eq!(Address::from_bytes(&bytes), None);
        for name in ["tidegate-", "tidegate-1000", "sem.x", "tidegate-1-00000000000000ff-1-1-1-01"] {
            assert_eq!(Address::from_file_name(name), None, "{name}");
        }
        assert_eq!(Address::from_file_name(&(example().file_name() + "-1")), None);
    }
}
