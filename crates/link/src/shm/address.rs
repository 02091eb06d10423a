//! [`Address`]: which endpoint of which process, in a way that never means another one later, and the settings that
//! both ends of a connection must have alike.
//!
//! A process id is reused, and a process that executes another program keeps its own. So every endpoint draws a random
//! number, its *nonce*: it is part of the address and of the name of the endpoint's file, and lies in the memory of the
//! process, where whoever reads or writes that memory finds out whose it is (see `bulk`).

use super::config::{BUFFER_SIZE, NAMES};
use std::fmt;
use tidegate_flow::{BufferField, Buffers, Config, Lends, SchemeName};

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
    pub sizes: Sizes,
}

/// How large things are. What the scheme has no use for need not agree, and is not said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Sizes {
    /// Where mailboxes are shared by slots.
    Slots { per_peer: u32, credit: u32 },
    /// Where receivers post buffers.
    Buffers { packets: u32, each: u32, most: u32 },
}

impl Sizes {
    /// What the fields hold at most: 24 and 16 bits; 11, 14 and 15.
    const SLOTS: u64 = SLOTS_PER_PEER_MOST as u64;
    const BUFFERS: u64 = BUFFERS_MOST as u64;
    const PACKETS_BITS: u32 = 11;
    const BUFFERS_BITS: u32 = 14;

    fn of(flow: &Config) -> Sizes {
        let buffers = &flow.buffers;
        match flow.scheme.lends() {
            Lends::Nothing | Lends::FixedSlots | Lends::MovingSlots => {
                Sizes::Slots { per_peer: flow.slots_per_peer, credit: flow.credit_slots }
            }
            Lends::Buffers | Lends::CreditedBuffers => {
                let most = if flow.scheme == SchemeName::Growing { buffers.per_connection_most } else { 0 };
                Sizes::Buffers { packets: buffers.packets, each: buffers.per_connection, most }
            }
            // A pool is its owner's affair.
            Lends::PoolBuffers => Sizes::Buffers { packets: buffers.packets, each: 0, most: 0 },
        }
    }

    /// In 40 bits. What is larger than they say is said as the largest.
    fn bits(self) -> u64 {
        match self {
            Sizes::Slots { per_peer, credit } => {
                u64::from(per_peer).min(Self::SLOTS) | u64::from(credit.min(CREDIT_SLOTS_MOST)) << 24
            }
            Sizes::Buffers { packets, each, most } => {
                let most = u64::from(most).min(2 * Self::BUFFERS + 1) << (Self::PACKETS_BITS + Self::BUFFERS_BITS);
                u64::from(packets.min(0x7ff)) | u64::from(each).min(Self::BUFFERS) << Self::PACKETS_BITS | most
            }
        }
    }

    fn from_bits(bits: u64, scheme: u8) -> Sizes {
        let posts = SchemeName::ALL.get(usize::from(scheme)).is_some_and(|scheme| scheme.lends().posts_buffers());
        let part = |from: u32, most: u64| ((bits >> from) & most) as u32;
        match posts {
            false => Sizes::Slots { per_peer: part(0, Self::SLOTS), credit: part(24, CREDIT_SLOTS_MOST.into()) },
            true => Sizes::Buffers {
                packets: part(0, 0x7ff),
                each: part(Self::PACKETS_BITS, Self::BUFFERS),
                most: part(Self::PACKETS_BITS + Self::BUFFERS_BITS, 2 * Self::BUFFERS + 1),
            },
        }
    }

    /// Names and values. Of a buffer's size not more is known than how many packets that is, so what is said is the
    /// longest message for which one gets so many.
    fn named(self) -> Vec<(&'static str, String)> {
        let [slots, credit_slots] = [NAMES.slots, NAMES.credit_slots];
        match self {
            Sizes::Slots { per_peer, credit } => {
                vec![(slots, per_peer.to_string()), (credit_slots, credit.to_string())]
            }
            Sizes::Buffers { packets, each, most } => vec![
                (BUFFER_SIZE, Buffers::message_bytes(packets).to_string()),
                ((NAMES.buffers)(BufferField::PerConnection), each.to_string()),
                ((NAMES.buffers)(BufferField::PerConnectionMost), most.to_string()),
            ],
        }
    }
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
/// The same for posted buffers of a connection at the start. Twice as many and one may it come to have.
pub const BUFFERS_MOST: u32 = tidegate_flow::GROWN_BUFFERS_MOST / 2;

impl Settings {
    pub fn of(flow: &Config) -> Settings {
        Settings { scheme: flow.scheme as u8, piggyback: flow.piggyback, sizes: Sizes::of(flow) }
    }

    /// The first parameter in which `theirs` differ from ours.
    pub fn difference(&self, theirs: &Settings) -> Option<Difference> {
        let scheme = |settings: &Settings| {
            SchemeName::ALL.get(usize::from(settings.scheme)).map_or("unknown", |scheme| scheme.name()).to_owned()
        };
        let switch = |settings: &Settings| if settings.piggyback { "on" } else { "off" }.to_owned();
        let words = [
            ("FI_TIDEGATE_SCHEME", scheme(self), scheme(theirs)),
            ("FI_TIDEGATE_PIGGYBACK", switch(self), switch(theirs)),
        ];
        // Of one scheme, both have sizes of the same kind.
        let sizes = self.sizes.named().into_iter().zip(theirs.sizes.named());
        let sizes = sizes.map(|((name, ours), (_, theirs))| (name, ours, theirs));
        let differing = words.into_iter().chain(sizes).find(|(_, ours, theirs)| ours != theirs);
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
        bytes[0..3].copy_from_slice(&MARK);
        bytes[4..12].copy_from_slice(&identity.boot.to_le_bytes());
        bytes[12..16].copy_from_slice(&identity.namespace.to_le_bytes());
        bytes[16..20].copy_from_slice(&identity.pid.to_le_bytes());
        bytes[20..24].copy_from_slice(&identity.uid.to_le_bytes());
        bytes[24..26].copy_from_slice(&identity.serial.to_le_bytes());
        bytes[26] = settings.scheme | u8::from(settings.piggyback) << 7;
        bytes[27..32].copy_from_slice(&settings.sizes.bits().to_le_bytes()[..5]);
        bytes[32..40].copy_from_slice(&identity.nonce.to_le_bytes());
        bytes
    }

    /// A number that no other endpoint ever has; never 0.
    pub fn endpoint_id(&self) -> u64 {
        self.identity.nonce
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
                sizes: Sizes::from_bits(word(27) & 0xff_ffff_ffff, bytes[26] & 0x7f),
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
            settings: Settings { scheme: 1, piggyback: true, sizes: Sizes::Slots { per_peer: 64, credit: 2 } },
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
        let found = difference(Settings { sizes: Sizes::Slots { per_peer: 16, credit: 2 }, ..ours });
        assert_eq!(found.as_deref(), Some("FI_TIDEGATE_SLOTS 64 16"));
        let found = difference(Settings { piggyback: false, ..ours });
        assert_eq!(found.as_deref(), Some("FI_TIDEGATE_PIGGYBACK on off"));
    }

    #[test]
    fn settings_of_posted_buffers_travel_as_far_as_they_have_to_agree() {
        for scheme in SchemeName::WITH_BUFFERS {
            let mut flow = Config::new(*scheme, 3, 64, 2);
            (flow.buffers.packets, flow.buffers.per_connection) = (1171, BUFFERS_MOST);
            flow.buffers.per_connection_most = 2 * BUFFERS_MOST + 1;
            let address = Address { settings: Settings::of(&flow), ..example() };
            assert_eq!(Address::from_bytes(&address.to_bytes()), Some(address), "{scheme}");
            flow.slots_per_peer = 2;
            assert_eq!(Settings::of(&flow), address.settings, "slots mean nothing to {scheme}");
            flow.buffers.packets = 37;
            let found = address.settings.difference(&Settings::of(&flow)).expect("a difference");
            assert_eq!((found.ours.as_str(), found.theirs.as_str()), ("65536", "2056"));
            assert_eq!(found.parameter, "FI_TIDEGATE_BUFFER_SIZE");
        }
    }

    #[test]
    fn random_numbers_differ() {
        let mut numbers: Vec<u64> = (0..100).map(|_| random()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 100);
    }
}
