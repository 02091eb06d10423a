//! [`Address`]: which endpoint of which process, in a way that never means another one later. Nothing of it is secret.
//!
//! A process id is reused, and a process that executes another program keeps its own. So every endpoint draws a random
//! number, its [`Secret`], and the part of that which every user may see, its *tag*, is part of the address and of the
//! name of the endpoint's file.

use crate::secret::Secret;
use std::fmt;

/// Where an endpoint is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// The host key, 48 bits: which host and which user, probably. See `life`.
    pub(crate) host: u64,
    /// Inode of the process namespace (a container has its own), which the kernel numbers in 32 bits; 0 where `/proc`
    /// does not tell.
    pub(crate) namespace: u32,
    /// The process, in its namespace. The kernel numbers them in 22 bits.
    pub(crate) pid: u32,
    /// Which endpoint of the process, for people: in 10 bits, as all further ones begin again.
    pub(crate) serial: u16,
    /// Follows from a random number, and is never 0: no other endpoint has it.
    pub(crate) tag: u64,
}

/// What the name of every segment, and of every claim, begins with.
pub(crate) const FILE_NAME_START: &str = "tidegate-";

/// First bytes of every address: tells one of ours from bytes of other origin, contacts and services among them.
const MARK: [u8; 2] = *b"tg";

/// Bits of a process id, and of the number of an endpoint, in a word.
const PID_BITS: u32 = 22;
const SERIAL_BITS: u32 = 10;
/// The bits of a host key.
pub(crate) const HOST_MASK: u64 = (1 << 48) - 1;

impl Address {
    /// Bytes of [`to_bytes`](Self::to_bytes).
    pub const BYTES: usize = 24;

    /// The address of an endpoint that has this secret.
    pub(crate) fn new(host: u64, namespace: u32, pid: u32, serial: u16, secret: &Secret) -> Address {
        let (host, pid, serial) = (host & HOST_MASK, pid & ((1 << PID_BITS) - 1), serial & ((1 << SERIAL_BITS) - 1));
        Address { host, namespace, pid, serial, tag: secret.tag() }
    }

    /// The address as bytes, the same on every host: mark, host key, process, namespace, tag.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..2].copy_from_slice(&MARK);
        bytes[2..8].copy_from_slice(&self.host.to_le_bytes()[..6]);
        bytes[8..12].copy_from_slice(&self.process_word().to_le_bytes());
        bytes[12..16].copy_from_slice(&self.namespace.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.tag.to_le_bytes());
        bytes
    }

    /// Back from bytes; longer input is fine, its rest is ignored. `None`: not an address of this kind.
    pub fn from_bytes(bytes: &[u8]) -> Option<Address> {
        let bytes: &[u8; Self::BYTES] = bytes.first_chunk()?;
        let half = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let word = |at: usize| u64::from(half(at)) | u64::from(half(at + 4)) << 32;
        let (pid, serial) = process_of(half(8));
        let address = Address { host: word(2) & HOST_MASK, namespace: half(12), pid, serial, tag: word(16) };
        (bytes[0..2] == MARK && address.tag != 0).then_some(address)
    }

    /// Process and number of the endpoint in one word.
    pub(crate) fn process_word(&self) -> u32 {
        self.pid | u32::from(self.serial) << PID_BITS
    }

    /// A number that no other endpoint ever has, and that every user may know; never 0.
    pub fn tag(&self) -> u64 {
        self.tag
    }

    /// The beginning of the names of all segments of a user.
    pub(crate) fn prefix(uid: u32) -> String {
        format!("{FILE_NAME_START}{uid}-")
    }

    /// Name of the endpoint's segment in the directory of segments, if this user has made it.
    pub(crate) fn file_name(&self, uid: u32) -> String {
        let Address { host, namespace, pid, serial, tag } = self;
        format!("{}{host:012x}-{namespace}-{pid}-{serial}-{tag:016x}", Address::prefix(uid))
    }

    /// Back from the name of a segment; `None` for files of other kinds.
    pub(crate) fn from_file_name(name: &str) -> Option<Address> {
        let mut fields = name.strip_prefix(FILE_NAME_START)?.split('-');
        let uid = fields.next()?.parse().ok()?;
        let address = Address {
            host: u64::from_str_radix(fields.next()?, 16).ok()?,
            namespace: fields.next()?.parse().ok()?,
            pid: fields.next()?.parse().ok()?,
            serial: fields.next()?.parse().ok()?,
            tag: u64::from_str_radix(fields.next()?, 16).ok()?,
        };
        // Comparing the whole name refuses signs, leading zeros and extra fields in one go.
        (address.file_name(uid) == name).then_some(address)
    }
}

/// Back from [`Address::process_word`].
pub(crate) fn process_of(word: u32) -> (u32, u16) {
    (word & ((1 << PID_BITS) - 1), (word >> PID_BITS) as u16)
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
        Address { host: 0xfeed, namespace: 4_026_531_836, pid: 4_194_303, serial: 1023, tag: 0x1234_5678_9abc_def0 }
    }

    #[test]
    fn bytes_and_names_lead_back_to_the_address() {
        let address = example();
        assert_eq!(Address::from_bytes(&address.to_bytes()), Some(address));
        assert_eq!(Address::from_file_name(&address.file_name(1000)), Some(address));
        assert_eq!(address.to_string(), "pid 4194303, endpoint 1023");
    }

    #[test]
    fn other_bytes_and_names_are_refused() {
        let mut bytes = example().to_bytes();
        assert_eq!(Address::from_bytes(&bytes[..23]), None);
        bytes[0] ^= 1;
        assert_eq!(Address::from_bytes(&bytes), None);
        for name in ["tidegate-", "tidegate-1000", "sem.x", "tidegate-1-0000000000ff-1-1-01-00000000000000ff"] {
            assert_eq!(Address::from_file_name(name), None, "{name}");
        }
        assert_eq!(Address::from_file_name(&(example().file_name(1000) + "-1")), None);
    }

    #[test]
    fn two_endpoints_of_a_process_have_two_tags() {
        let [one, other] = [1, 2].map(|serial| Address::new(1 << 60 | 7, 2, 3, serial, &Secret::draw()));
        assert_eq!((one.host, one.pid), (7, 3));
        assert_ne!(one.tag, other.tag);
    }
}
