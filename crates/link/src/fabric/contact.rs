//! [`Contact`]: how an endpoint is reached from anywhere, and by what it is told apart from strangers. Whoever has an
//! endpoint's contact belongs to its job: MPIs exchange contacts through their launcher.
//!
//! 64 bytes, for all endpoints of a job: MPICH, Open MPI and Intel MPI have room for no more.
//!
//! | bytes | field |
//! |---|---|
//! | 0–1 | mark `TG` |
//! | 2 | [`VERSION`] of all that two endpoints have to speak alike |
//! | 3 | kind of the network for other hosts ([`NetworkKind`]) |
//! | 4 | bytes of the network address, at most 32 |
//! | 5 | digest of the settings that both ends must have alike |
//! | 6–7 | check value over all other bytes |
//! | 8–13 | host key, 48 bits (`shm/life.rs`) |
//! | 14–23 | the [`Secret`], 80 bits |
//! | 24–27 | process id in 22 bits, number of the endpoint in 10 |
//! | 28–31 | process namespace |
//! | 32–63 | network address; where it leaves room for them (not with `psm3` and `efa`), the last six bytes are the
//!            settings |
//!
//! Which endpoints share a host follows from two contacts alone, and both sides come to the same answer: of one host
//! are endpoints with the same host key, which is a hash of the kernel's boot id, of what `/dev/shm` is, and of the
//! user.

use super::kind::NetworkKind;
use super::network::{LOWER_ADDRESS_MOST, LowerAddress};
use crate::secret::Secret;
use crate::shm::{Address, LinkError, Settings, Told, process_of};
use std::fmt;
use tidegate_flow::Config;

/// The version of the address, of the batches between hosts (`wire`) and of what greetings say. Both numbers only grow,
/// so each change of either makes a new one: two minor versions of Tidegate never meet in a job, even where they could.
/// (Segments have a version of their own, in their first word.)
const VERSION: u8 = LAYOUT + MINOR;
/// One more for each change of what the version is of.
const LAYOUT: u8 = 8;
const MINOR: u8 = match u8::from_str_radix(env!("CARGO_PKG_VERSION_MINOR"), 10) {
    Ok(number) => number,
    Err(_) => panic!("cargo's versions are numbers"),
};
const MARK: [u8; 2] = *b"TG";
/// Where things are in the bytes.
const CHECK_AT: usize = 6;
const LOWER_AT: usize = 32;
const SETTINGS_AT: usize = Contact::BYTES - Settings::BYTES;
const _: () = assert!(LOWER_AT + LOWER_ADDRESS_MOST == Contact::BYTES);

/// How an endpoint is reached. See the module.
#[derive(Clone, Copy, Debug)]
pub struct Contact {
    /// Where processes of its host find it.
    pub address: Address,
    /// The number by which batches name it; see [`Secret::id`].
    pub(super) id: u64,
    /// By what it is told apart from strangers. `None`: it has told us who it is, and we were not given its contact.
    pub(crate) secret: Option<Secret>,
    /// The settings that both ends of a connection must have alike.
    pub(crate) settings: Told,
    /// Which network it has for other hosts.
    pub kind: NetworkKind,
    /// Where other hosts find it; empty where it has no network.
    pub lower: LowerAddress,
}

/// Why bytes are no contact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoContact {
    /// They are something else.
    Foreign,
    /// They are one of another version of Tidegate.
    Version(u8),
    /// They were one, and have been changed on the way.
    Changed,
}

impl Contact {
    /// Bytes of [`to_bytes`](Self::to_bytes).
    pub const BYTES: usize = 64;

    /// The contact of an endpoint of ours with this flow control, so far without a network.
    pub fn new(address: Address, secret: Secret, flow: &Config) -> Contact {
        Contact {
            address,
            id: secret.id(),
            secret: Some(secret),
            settings: Told::All(Settings::of(flow)),
            kind: NetworkKind::NONE,
            lower: LowerAddress::default(),
        }
    }

    /// The contact of an endpoint that was found without it: by its address alone, on this host.
    pub fn found(address: Address) -> Contact {
        Contact {
            address,
            id: 0,
            secret: None,
            settings: Told::Digest(0),
            kind: NetworkKind::NONE,
            lower: LowerAddress::default(),
        }
    }

    /// The contact of an endpoint as its greeting tells it: without the secret.
    pub(super) fn told(
        address: Address,
        id: u64,
        settings: Settings,
        kind: NetworkKind,
        lower: LowerAddress,
    ) -> Contact {
        Contact { address, id, secret: None, settings: Told::All(settings), kind, lower }
    }

    /// The same endpoint, reached by this network too.
    pub fn with_network(self, kind: NetworkKind, lower: LowerAddress) -> Contact {
        Contact { kind, lower, ..self }
    }

    /// The contact as bytes, the same on every host.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let lower = self.lower.as_bytes();
        bytes[0..2].copy_from_slice(&MARK);
        (bytes[2], bytes[3], bytes[4]) = (VERSION, self.kind.byte(), lower.len() as u8);
        bytes[8..14].copy_from_slice(&self.address.host.to_le_bytes()[..6]);
        bytes[14..24].copy_from_slice(&self.secret.map_or([0; Secret::BYTES], Secret::to_bytes));
        bytes[24..28].copy_from_slice(&self.address.process_word().to_le_bytes());
        bytes[28..32].copy_from_slice(&self.address.namespace.to_le_bytes());
        bytes[LOWER_AT..LOWER_AT + lower.len()].copy_from_slice(lower);
        bytes[5] = match &self.settings {
            Told::All(settings) => settings.digest(),
            Told::Digest(digest) => *digest,
        };
        if let (Told::All(settings), true) = (&self.settings, has_room(lower.len())) {
            bytes[SETTINGS_AT..].copy_from_slice(&settings.to_bytes());
        }
        let check = check_value(&bytes);
        bytes[CHECK_AT..CHECK_AT + 2].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Back from bytes; longer input is fine, its rest is ignored.
    pub fn from_bytes(bytes: &[u8]) -> Result<Contact, NoContact> {
        if bytes.first_chunk() != Some(&MARK) {
            return Err(NoContact::Foreign);
        }
        let bytes: &[u8; Self::BYTES] = bytes.first_chunk().ok_or(NoContact::Changed)?;
        if bytes[2] != VERSION {
            return Err(NoContact::Version(bytes[2]));
        }
        let half = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (said, check) = (half(CHECK_AT) as u16, check_value(bytes));
        let length = usize::from(bytes[4]);
        let lower = bytes.get(LOWER_AT..LOWER_AT + length).and_then(LowerAddress::new);
        let (true, Some(lower)) = (said == check, lower) else { return Err(NoContact::Changed) };
        let secret = Secret::from_bytes(std::array::from_fn(|at| bytes[14 + at]));
        let host = u64::from(half(8)) | u64::from(half(12) & 0xffff) << 32;
        let (pid, serial) = process_of(half(24));
        let settings = match has_room(length) {
            true => Told::All(Settings::from_bytes(std::array::from_fn(|at| bytes[SETTINGS_AT + at]))),
            false => Told::Digest(bytes[5]),
        };
        Ok(Contact {
            address: Address::new(host, half(28), pid, serial, &secret),
            id: secret.id(),
            secret: Some(secret),
            settings,
            kind: NetworkKind::from_byte(bytes[3]),
            lower,
        })
    }

    /// The number by which batches name the endpoint; never 0.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether the two share a host, and with it memory.
    pub fn shares_host(&self, other: &Contact) -> bool {
        self.address.host == other.address.host
    }

    /// Whether the endpoint there counts slots as one with this flow control does. Errors name the first parameter that
    /// differs, with both values.
    pub fn check_settings(&self, ours: &Config) -> Result<(), LinkError> {
        self.settings.check(&Settings::of(ours), || self.address.to_string())
    }

    /// Whether we reach that endpoint, which is on another host, by the network that we have. Errors name what each
    /// has.
    pub fn check_network(&self, theirs: &Contact) -> Result<(), LinkError> {
        let (ours, other) = (self.kind, theirs.kind);
        if ours == other && ours != NetworkKind::NONE {
            return Ok(());
        }
        let peer = format!("{} of another host", theirs.address);
        if ours == other {
            let reason = "it runs on another host, or as another user, and FI_TIDEGATE_FABRIC is none here and there: \
                          no network is open; see FI_TIDEGATE_FABRIC in fi_tidegate(7)";
            return Err(LinkError::Elsewhere { peer: theirs.address, reason: reason.into() });
        }
        let (ours, theirs) = (ours.to_string(), other.to_string());
        Err(LinkError::Disagreement { peer, parameter: "FI_TIDEGATE_FABRIC", ours, theirs })
    }

    /// Adds to a batch what proves that its sender was given this contact; for tests and fuzzing.
    #[doc(hidden)]
    pub fn seal(&self, batch: &mut Vec<u8>) {
        let proof = self.secret.map_or(0, |secret| secret.proof(batch));
        batch.extend_from_slice(&proof.to_le_bytes());
    }

    /// Gives bytes that are long enough a mark, a version and a check value that are right; for fuzzing.
    #[doc(hidden)]
    pub fn make_sound(bytes: &mut [u8]) {
        if let Some(bytes) = bytes.first_chunk_mut::<{ Contact::BYTES }>() {
            bytes[0..2].copy_from_slice(&MARK);
            bytes[2] = VERSION;
            let check = check_value(bytes);
            bytes[CHECK_AT..CHECK_AT + 2].copy_from_slice(&check.to_le_bytes());
        }
    }

    /// A contact of an endpoint that does not exist, for tests and fuzzing: another one for each number. It is reached
    /// at this address.
    #[doc(hidden)]
    pub fn example(number: u64, host: u64, flow: &Config, lower: LowerAddress) -> Contact {
        let mut bytes = [0; Secret::BYTES];
        bytes[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
        let secret = Secret::from_bytes(bytes);
        let address = Address::new(host, 0, number as u32, 0, &secret);
        Contact::new(address, secret, flow).with_network(NetworkKind::OTHER, lower)
    }
}

/// Whether behind a network address of so many bytes there is room for settings.
fn has_room(lower: usize) -> bool {
    LOWER_AT + lower <= SETTINGS_AT
}

/// A CRC of 16 bits (CCITT) over all bytes but its own: it finds every change within 16 bits, and of others all but one
/// of 65,536.
fn check_value(bytes: &[u8; Contact::BYTES]) -> u16 {
    let rest = bytes[..CHECK_AT].iter().chain(&bytes[CHECK_AT + 2..]);
    rest.fold(0xffff, |crc: u16, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| crc << 1 ^ if crc & 0x8000 != 0 { 0x1021 } else { 0 })
    })
}

impl PartialEq for Contact {
    /// They are of one endpoint, reached in one way.
    fn eq(&self, other: &Contact) -> bool {
        (self.address, self.id, self.kind, self.lower) == (other.address, other.id, other.kind, other.lower)
    }
}

impl Eq for Contact {}

impl fmt::Display for Contact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

impl fmt::Display for NoContact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoContact::Foreign => f.write_str("this is no address of Tidegate"),
            NoContact::Changed => {
                f.write_str("this is no address of Tidegate: its check value is wrong; the launcher has changed it")
            }
            NoContact::Version(version) => {
                // Until version 3 this byte was a digit.
                let version = if version.is_ascii_digit() { version - b'0' } else { *version };
                write!(
                    f,
                    "this is an address of another version of Tidegate ({version}; here {VERSION}): install the same \
                     Tidegate on all hosts"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_flow::SchemeName;

    fn flow(slots: u32) -> Config {
        Config::new(SchemeName::Static, 4, slots, 2)
    }

    fn contact(lower: usize) -> Contact {
        Contact::example(7, 0x1234_5678_9abc, &flow(64), LowerAddress::new(&vec![9; lower]).unwrap())
    }

    #[test]
    fn bytes_lead_back_to_the_contact_whatever_network_it_has() {
        for length in 0..=LOWER_ADDRESS_MOST {
            let contact = contact(length);
            let bytes = contact.to_bytes();
            let back = Contact::from_bytes(&bytes).unwrap();
            assert_eq!((back, back.to_bytes()), (contact, bytes), "{length}");
            assert_eq!(matches!(back.settings, Told::All(_)), length <= 26, "{length}");
            assert!(back.check_settings(&flow(64)).is_ok(), "{length}");
            let error = back.check_settings(&flow(16)).unwrap_err().to_string();
            assert!(error.contains("FI_TIDEGATE_S"), "{length}: {error}");
        }
    }

    #[test]
    fn a_changed_address_is_told_apart_from_one_of_another_process() {
        let good = contact(16).to_bytes();
        for bit in 3 * 8..Contact::BYTES * 8 {
            let mut bytes = good;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Contact::from_bytes(&bytes), Err(NoContact::Changed), "bit {bit}");
        }
        assert_eq!(Contact::from_bytes(&good[..63]), Err(NoContact::Changed), "cut");
        assert_eq!(Contact::from_bytes(&[7; 64]), Err(NoContact::Foreign));
        let old = [&b"TG3"[..], &good[3..]].concat();
        let said = Contact::from_bytes(&old).unwrap_err().to_string();
        assert!(said.contains(&format!("another version of Tidegate (3; here {VERSION})")), "{said}");
        let said = NoContact::Changed.to_string();
        assert_eq!(said, "this is no address of Tidegate: its check value is wrong; the launcher has changed it");
    }

    #[test]
    fn different_networks_are_named_on_both_sides() {
        let with = |name: &str| contact(16).with_network(NetworkKind::of_provider(name), LowerAddress::default());
        let none = contact(0).with_network(NetworkKind::NONE, LowerAddress::default());
        let said = |ours: &Contact, theirs: &Contact| ours.check_network(theirs).unwrap_err().to_string();
        assert!(with("tcp").check_network(&with("net")).is_ok());
        assert!(said(&with("tcp"), &with("tcp;ofi_rxm")).contains("FI_TIDEGATE_FABRIC is tcp here"));
        assert!(said(&with("tcp;ofi_rxm"), &with("tcp")).contains("and tcp at pid 7 of another host"));
        assert!(said(&none, &with("tcp")).contains("FI_TIDEGATE_FABRIC is none here"));
        assert!(said(&none, &none).contains("FI_TIDEGATE_FABRIC"));
    }
}
