//! [`Settings`]: the settings that both ends of a connection must have alike, and how that travels: in a word of the
//! segment's header, in the greeting between hosts, and in the address where there is room ([`Told`]).

use super::config::{BUFFER_SIZE, NAMES};
use super::error::LinkError;
use crate::secret::hash_of;
use tidegate_flow::{BufferField, Buffers, Config, ReceiverResource, SchemeName};

/// The settings that both ends of a connection must have alike, because they count each other's slots.
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
    /// Where mailboxes are shared by slots. `per_peer` is 0 where a sender does not reckon with how many slots it may
    /// come to have: then that is their owner's affair. So is `credit` where there are no credits.
    Slots { per_peer: u32, credit: u32 },
    /// Where receivers post buffers.
    Buffers { packets: u32, each: u32, most: u32 },
}

impl Sizes {
    /// The most that the fields hold: 24 and 16 bits; 11, 14 and 15.
    const SLOTS: u64 = SLOTS_PER_PEER_MOST as u64;
    const BUFFERS: u64 = BUFFERS_MOST as u64;
    const PACKETS_BITS: u32 = 11;
    const BUFFERS_BITS: u32 = 14;

    fn of(flow: &Config) -> Sizes {
        let buffers = &flow.buffers;
        match flow.scheme.lends() {
            ReceiverResource::Nothing => Sizes::Slots { per_peer: 0, credit: 0 },
            ReceiverResource::FixedSlots => Sizes::Slots { per_peer: flow.slots_per_peer, credit: flow.credit_slots },
            // A sender begins with its static slots, and gets more by credit packets.
            ReceiverResource::MovingSlots => Sizes::Slots { per_peer: 0, credit: flow.credit_slots },
            ReceiverResource::Buffers | ReceiverResource::CreditedBuffers | ReceiverResource::GrowingBuffers => {
                let most = if flow.scheme.lends().may_grow() { buffers.per_connection_most } else { 0 };
                Sizes::Buffers { packets: buffers.packets, each: buffers.per_connection, most }
            }
            // A pool is its owner's affair.
            ReceiverResource::PoolBuffers | ReceiverResource::PoolSlots => {
                Sizes::Buffers { packets: buffers.packets, each: 0, most: 0 }
            }
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

    /// Names and values. Of a buffer's size not more is known than how many packets that is, so what is said is all
    /// that a user may have written for so many.
    fn named(self) -> Vec<(&'static str, String)> {
        let [slots, credit_slots] = [NAMES.slots, NAMES.credit_slots];
        match self {
            Sizes::Slots { per_peer, credit } => {
                vec![(slots, per_peer.to_string()), (credit_slots, credit.to_string())]
            }
            Sizes::Buffers { packets, each, most } => vec![
                (BUFFER_SIZE, buffer_sizes(packets)),
                ((NAMES.buffers)(BufferField::PerConnection), each.to_string()),
                ((NAMES.buffers)(BufferField::PerConnectionMost), most.to_string()),
            ],
        }
    }
}

/// The buffer sizes for which a user gets so many packets.
fn buffer_sizes(packets: u32) -> String {
    let most = Buffers::message_bytes(packets);
    // A peer may say any number.
    let least = (Buffers::message_bytes(packets.saturating_sub(1)) + 1).min(most);
    format!("{least} to {most} bytes")
}

/// A parameter that two processes have set differently: its name, and what each has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub parameter: &'static str,
    pub ours: String,
    pub theirs: String,
}

/// The part of its owner's settings that an address tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// All of them.
    All(Settings),
    /// That they have this digest. Those of another one differ; those of the same one differ once in 256 times, which
    /// is found out at the first contact.
    Digest(u8),
}

impl Told {
    /// Whether an endpoint of which this is told counts slots as one with our settings does. Errors name the first
    /// parameter that differs, with both values, as far as is known.
    pub fn check(&self, ours: &Settings, peer: impl Fn() -> String) -> Result<(), LinkError> {
        match self {
            Told::All(theirs) => ours.check(theirs, peer),
            Told::Digest(digest) if *digest == ours.digest() => Ok(()),
            Told::Digest(_) => Err(LinkError::Disagreement {
                peer: peer(),
                parameter: "a parameter of flow control (FI_TIDEGATE_SCHEME, _PIGGYBACK, _SLOTS, _CREDIT_SLOTS, \
                    _BUFFERS, _BUFFERS_MOST or _BUFFER_SIZE)",
                ours: "as the environment says".into(),
                theirs: "another".into(),
            }),
        }
    }
}

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

    /// Bytes of [`to_bytes`](Self::to_bytes).
    pub const BYTES: usize = 6;

    /// All of them, the same on every host. What is larger than there is room for is said as the largest.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let word = self.to_word().to_le_bytes();
        std::array::from_fn(|at| word[at])
    }

    /// Back from bytes.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Settings {
        let mut word = [0; 8];
        word[..Self::BYTES].copy_from_slice(&bytes);
        Settings::from_word(u64::from_le_bytes(word))
    }

    /// The same as a word.
    pub fn to_word(self) -> u64 {
        u64::from(self.scheme & 0x7f) | u64::from(self.piggyback) << 7 | self.sizes.bits() << 8
    }

    /// Back from a word.
    pub fn from_word(word: u64) -> Settings {
        let scheme = word as u8 & 0x7f;
        Settings { scheme, piggyback: word & 0x80 != 0, sizes: Sizes::from_bits(word >> 8 & 0xff_ffff_ffff, scheme) }
    }

    /// A number that says whether others are probably the same.
    pub fn digest(&self) -> u8 {
        hash_of(b"tidegate: settings", &[self.to_word()]) as u8
    }

    /// Whether an endpoint with these settings counts slots as one with ours does. Errors name the first parameter that
    /// differs, with both values.
    pub fn check(&self, theirs: &Settings, peer: impl Fn() -> String) -> Result<(), LinkError> {
        match self.difference(theirs) {
            None => Ok(()),
            Some(Difference { parameter, ours, theirs }) => {
                Err(LinkError::Disagreement { peer: peer(), parameter, ours, theirs })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Settings {
        Settings { scheme: 1, piggyback: true, sizes: Sizes::Slots { per_peer: 64, credit: 2 } }
    }

    #[test]
    fn settings_that_differ_are_named_with_both_values() {
        let ours = example();
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
    fn slots_per_peer_have_to_agree_where_they_are_for_good() {
        let of = |scheme, slots, credit| Settings::of(&Config::new(scheme, 3, slots, credit));
        let differs = |scheme, slots, credit| of(scheme, 64, 2).difference(&of(scheme, slots, credit)).is_some();
        assert!(differs(SchemeName::Static, 16, 2) && differs(SchemeName::Dynamic, 64, 3));
        assert!(!differs(SchemeName::Dynamic, 16, 2) && !differs(SchemeName::None, 16, 3));
    }

    #[test]
    fn settings_of_posted_buffers_travel_as_far_as_they_have_to_agree() {
        for scheme in SchemeName::WITH_BUFFERS {
            let mut flow = Config::new(*scheme, 3, 64, 2);
            (flow.buffers.packets, flow.buffers.per_connection) = (1171, BUFFERS_MOST);
            flow.buffers.per_connection_most = 2 * BUFFERS_MOST + 1;
            let settings = Settings::of(&flow);
            assert_eq!(Settings::from_bytes(settings.to_bytes()), settings, "{scheme}");
            flow.slots_per_peer = 2;
            assert_eq!(Settings::of(&flow), settings, "slots mean nothing to {scheme}");
            flow.buffers.packets = 37;
            let found = settings.difference(&Settings::of(&flow)).expect("a difference");
            assert_eq!((found.ours.as_str(), found.theirs.as_str()), ("65505 to 65536 bytes", "2001 to 2056 bytes"));
            assert_eq!(found.parameter, "FI_TIDEGATE_BUFFER_SIZE");
        }
    }

    #[test]
    fn the_size_of_a_buffer_that_the_user_wrote_is_among_those_that_are_said() {
        for bytes in (1..70).chain([2047, 2048, 2049, 65_535, 65_536]) {
            let said = buffer_sizes(Buffers::packets_of(bytes));
            let [least, most] = said.trim_end_matches(" bytes").split(" to ").collect::<Vec<_>>()[..] else {
                panic!("{said}")
            };
            assert!((least.parse().unwrap()..=most.parse().unwrap()).contains(&bytes), "{bytes}: {said}");
        }
    }

    #[test]
    fn an_address_without_room_for_all_still_tells_that_something_differs() {
        let (ours, theirs) = (example(), Settings { piggyback: false, ..example() });
        assert_eq!(Settings::from_bytes(ours.to_bytes()), ours);
        let check = |told: Told| told.check(&ours, || "pid 7".into()).map_err(|error| error.to_string());
        assert!(check(Told::All(ours)).is_ok() && check(Told::Digest(ours.digest())).is_ok());
        assert!(check(Told::All(theirs)).unwrap_err().contains("FI_TIDEGATE_PIGGYBACK is on here"));
        let said = check(Told::Digest(theirs.digest())).unwrap_err();
        assert!(said.contains("FI_TIDEGATE_SCHEME") && said.contains("pid 7"), "{said}");
    }
}
