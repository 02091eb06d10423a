//! [`Address`]: which endpoint of which process, in a way that never means another one later, and the settings that
//! both ends of a connection must have alike.
//!
//! A process id is reused, and a process that executes another program keeps its own. So every endpoint draws a random
//! number, its *nonce*: it is part of the address and of the name of the endpoint's file, and lies in the memory of the
//! process, where whoever reads or writes that memory finds out whose it is (see `bulk`).

use std::fmt;
use tidegate_flow::{Config, SchemeName};

/// Where an endpoint is found. Small and plain, so that it travels through libfabric's address vectors as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    pub(crate) identity: Identity,
    pub(crate) settings: Settings,
}

/// Who it is. The name of the endpoint's file says the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    /// The host key, a hash of the kernel's boot id: which host, probably. A container may show another one.
    pub boot: u64,
    /// Inode of the process namespace (a container has its own), which the kernel numbers in 32 bits; 0 where `/proc`
    /// does not tell.
    pub namespace: u32,
    /// The process, in its namespace.
    pub pid: u32,
    /// Its effective user.
    pub uid: u32,
    /// Which endpoint of the process, for people.
    pub serial: u16,
    /// Random, and never 0: no other endpoint has it.
    pub nonce: u64,
}

/// What both ends of a connection must have alike, because they count each other's slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Settings {
    /// Place in `SchemeName::ALL`.
    pub scheme: u8,
    pub piggyback: bool,
    pub slots_per_peer: u32,
    pub credit_slots: u32,
}

/// A parameter that two processes have set differently: its name, and what each has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub parameter: &'static str,
    pub ours: String,
    pub theirs: String,
}

/// What the name of every segment, and of every claim, begins with.
pub(crate) const FILE_NAME_START: &str = "tidegate-";

/// First bytes of every address: tells one of ours from bytes of other origin.
const MARK: [u8; 3] = *b"TG3";

/// The largest settings that an address can say.
pub const SLOTS_PER_PEER_MOST: u32 = 0xff_ffff;
/// The same for credit slots.
pub const CREDIT_SLOTS_MOST: u32 = 0xffff;

impl Settings {
    pub fn of(flow: &Config) -> Settings {
        Settings {
            scheme: flow.scheme as u8,
            piggyback: flow.piggyback,
            slots_per_peer: flow.slots_per_peer,
            credit_slots: flow.credit_slots,
        }
    }

    /// The first parameter in which `theirs` differ from ours.
    pub fn difference(&self, theirs: &Settings) -> Option<Difference> {
        let scheme = |settings: &Settings| {
            SchemeName::ALL.get(usize::from(settings.scheme)).map_or("unknown", |scheme| scheme.name()).to_owned()
        };
        let switch = |settings: &Settings| if settings.piggyback { "on" } else { "off" }.to_owned();
        let values: [(&'static str, String, String); 4] = [
            ("FI_TIDEGATE_SCHEME", scheme(self), scheme(theirs)),
            ("FI_TIDEGATE_SLOTS", self.slots_per_peer.to_string(), theirs.slots_per_peer.to_string()),
            ("FI_TIDEGATE_CREDIT_SLOTS", self.credit_slots.to_string(), theirs.credit_slots.to_string()),
            ("FI_TIDEGATE_PIGGYBACK", switch(self), switch(theirs)),
        ];
        let differing = values.into_iter().find(|(_, ours, theirs)| ours != theirs);
        differing.map(|(parameter, ours, theirs)| Difference { parameter, ours, theirs })
    }
}

impl Address {
    /// Bytes of [`to_bytes`](Self::to_bytes).
    pub const BYTES: usize = 40;

    /// The address as bytes, the same on every host. The fourth is 0; a [`Contact`](crate::fabric::Contact) uses it.
    /// Settings above what an address can say are said as the largest.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let Address { identity, settings } = self;
        let mut bytes = [0; Self::BYTES];
        let slots = settings.slots_per_peer.min(SLOTS_PER_PEER_MOST);
        let credit_slots = settings.credit_slots.min(CREDIT_SLOTS_MOST) as u16;
        bytes[0..3].copy_from_slice(&MARK);
        bytes[4..12].copy_from_slice(&identity.boot.to_le_bytes());
        bytes[12..16].copy_from_slice(&identity.namespace.to_le_bytes());
        bytes[16..20].copy_from_slice(&identity.pid.to_le_bytes());
        bytes[20..24].copy_from_slice(&identity.uid.to_le_bytes());
        bytes[24..26].copy_from_slice(&identity.serial.to_le_bytes());
        bytes[26] = settings.scheme | u8::from(settings.piggyback) << 7;
        bytes[27..30].copy_from_slice(&slots.to_le_bytes()[..3]);
        bytes[30..32].copy_from_slice(&credit_slots.to_le_bytes());
        bytes[32..40].copy_from_slice(&identity.nonce.to_le_bytes());
        bytes
    }

    /// Back from bytes; longer input is fine, its rest is ignored. `None`: not an address of this kind.
    pub fn from_bytes(bytes: &[u8]) -> Option<Address> {
        let bytes: &[u8; Self::BYTES] = bytes.first_chunk()?;
        let half = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let word = |at: usize| u64::from(half(at)) | u64::from(half(at + 4)) << 32;
        (bytes[0..3] == MARK).then(|| Address {
            identity: Identity {
                boot: word(4),
                namespace: half(12),
                pid: half(16),
                uid: half(20),
                serial: u16::from_le_bytes([bytes[24], bytes[25]]),
                nonce: word(32),
            },
            settings: Settings {
                scheme: bytes[26] & 0x7f,
                piggyback: bytes[26] & 0x80 != 0,
                slots_per_peer: half(27) & SLOTS_PER_PEER_MOST,
                credit_slots: half(30) & CREDIT_SLOTS_MOST,
            },
        })
    }
}

impl Identity {
    /// Name of the endpoint's segment in the directory of segments.
    pub fn file_name(&self) -> String {
        let Identity { boot, namespace, pid, uid, serial, nonce } = self;
        format!("{FILE_NAME_START}{uid}-{boot:016x}-{namespace}-{pid}-{serial}-{nonce:016x}")
    }

    /// Back from the name of a segment; `None` for files of other kinds.
    pub fn from_file_name(name: &str) -> Option<Identity> {
        let mut fields = name.strip_prefix(FILE_NAME_START)?.split('-');
        let identity = Identity {
            uid: fields.next()?.parse().ok()?,
            boot: u64::from_str_radix(fields.next()?, 16).ok()?,
            namespace: fields.next()?.parse().ok()?,
            pid: fields.next()?.parse().ok()?,
            serial: fields.next()?.parse().ok()?,
            nonce: u64::from_str_radix(fields.next()?, 16).ok()?,
        };
        // Comparing the whole name refuses signs, leading zeros and extra fields in one go.
        (identity.file_name() == name).then_some(identity)
    }
}

/// `pid 4711`, or `pid 4711, endpoint 2` if the process has several.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pid {}", self.pid)?;
        if self.serial > 0 {
            write!(f, ", endpoint {}", self.serial)?;
        }
        Ok(())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.identity.fmt(f)
    }
}

/// A number that nobody else has or can guess; never 0.
pub fn random() -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: the buffer has as many bytes as is said.
    let count = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if count == bytes.len() as isize {
        return u64::from_ne_bytes(bytes).max(1);
    }
    // A sandbox that forbids the call: the standard library seeds its hash maps from the system by other means too.
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Address {
        Address {
            identity: Identity {
                boot: 0xfeed,
                namespace: 4026531836,
                pid: 4711,
                uid: 1000,
                serial: 2,
                nonce: 0x1234_5678_9abc_def0,
            },
            settings: Settings { scheme: 1, piggyback: true, slots_per_peer: 64, credit_slots: 2 },
        }
    }

    #[test]
    fn bytes_and_names_lead_back_to_the_address() {
        let address = example();
        assert_eq!(Address::from_bytes(&address.to_bytes()), Some(address));
        assert_eq!(Identity::from_file_name(&address.identity.file_name()), Some(address.identity));
        assert_eq!(address.to_string(), "pid 4711, endpoint 2");
    }

    #[test]
    fn other_bytes_and_names_are_refused() {
        let mut bytes = example().to_bytes();
        assert_eq!(Address::from_bytes(&bytes[..39]), None);
        bytes[0] ^= 1;
        assert_eq!(Address::from_bytes(&bytes), None);
        for name in ["tidegate-", "tidegate-1000", "sem.x", "tidegate-1-00000000000000ff-1-1-01-00000000000000ff"] {
            assert_eq!(Identity::from_file_name(name), None, "{name}");
        }
        assert_eq!(Identity::from_file_name(&(example().identity.file_name() + "-1")), None);
    }

    #[test]
    fn settings_that_differ_are_named_with_both_values() {
        let ours = example().settings;
        let difference = |theirs: Settings| {
            ours.difference(&theirs).map(|found| format!("{} {} {}", found.parameter, found.ours, found.theirs))
        };
        assert_eq!(difference(ours), None);
        let found = difference(Settings { scheme: 100, ..ours });
        assert!(found.as_ref().is_some_and(|text| text.ends_with("unknown")), "{found:?}");
        let found = difference(Settings { slots_per_peer: 16, ..ours });
        assert_eq!(found.as_deref(), Some("FI_TIDEGATE_SLOTS 64 16"));
        let found = difference(Settings { piggyback: false, ..ours });
        assert_eq!(found.as_deref(), Some("FI_TIDEGATE_PIGGYBACK on off"));
    }

    #[test]
    fn random_numbers_differ() {
        let mut numbers: Vec<u64> = (0..100).map(|_| random()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 100);
    }
}
