//! [`Greeting`]: what two endpoints say of themselves before the first packet. It is the body of a hello, a welcome and
//! a refusal. Nothing in it is secret (`admission`).
//!
//! | bytes | field |
//! |---|---|
//! | 0–23 | [`Address`] |
//! | 24–29 | the settings that both sides must have alike |
//! | 30 | kind of the network ([`NetworkKind`]) |
//! | 31 | 1 if its network reads memory, so that it can read ours and we its; else 0 |
//! | 32–35 | window: bytes set aside for the unmatched messages of each sender (`Link::tell_window`) |
//! | 36–39 | rank in the job, `u32::MAX` if it is not known |
//! | 40–72 | network address: its length, and 32 bytes |
//! | 73 | bytes of the host's name, at most 63 |
//! | 74– | the host's name |
//! | then | the TCP port at which it is watched: 0, or 4 or 6 for the family, IP address, port, name of 8 bytes |

use super::admission;
use super::contact::Contact;
use super::kind::NetworkKind;
use super::network::{LOWER_ADDRESS_MOST, LowerAddress, Watched};
use super::wire::{HEADER_BYTES, Header, Kind, Receipt};
use crate::shm::{Address, Difference, Settings, Told};
use std::net::IpAddr;

/// Most bytes of a host's name that are told.
const HOST_BYTES_MOST: usize = 63;

/// What an endpoint says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// How it is reached.
    pub contact: Contact,
    /// What it sets aside for the unmatched messages of each sender, in bytes.
    pub window: u32,
    /// Its rank, if it knows.
    pub rank: Option<u32>,
    /// Whether its network reads memory of peers, and lets them read its.
    pub reads_memory: bool,
    /// The name of its host.
    pub host: String,
    /// Where its kernel may be asked for it, if that is another socket than its address.
    pub watched: Option<Watched>,
}

/// A batch of a header only, from the endpoint of one id to that of another.
pub fn batch_from(from: u64, to: u64, kind: Kind, sequence: u64) -> Vec<u8> {
    header_of(from, to, kind, sequence, (0, Receipt::default()))
}

fn header_of(from: u64, to: u64, kind: Kind, sequence: u64, come: (u64, Receipt)) -> Vec<u8> {
    let (mut batch, (acknowledged, receipt)) = (vec![0; HEADER_BYTES], come);
    Header { kind, is_closing: false, is_last: false, to, from, sequence, acknowledged, receipt }.emit(&mut batch);
    batch
}

/// Adds a network address to a batch.
fn emit_lower(lower: &LowerAddress, batch: &mut Vec<u8>) {
    let bytes = lower.as_bytes();
    batch.push(bytes.len() as u8);
    batch.extend_from_slice(bytes);
    batch.resize(batch.len() + LOWER_ADDRESS_MOST - bytes.len(), 0);
}

/// The network address at the beginning of some bytes, and what follows it.
fn parse_lower(bytes: &[u8]) -> Option<(LowerAddress, &[u8])> {
    let (length, rest) = bytes.split_first()?;
    let (lower, rest) = rest.split_first_chunk::<LOWER_ADDRESS_MOST>()?;
    Some((LowerAddress::new(lower.get(..usize::from(*length))?)?, rest))
}

/// The port that these bytes name, if they name one. `None`: they are no such bytes.
fn parse_watched(bytes: &[u8]) -> Option<Option<Watched>> {
    let (family, rest) = bytes.split_first()?;
    let (ip, rest): (IpAddr, _) = match family {
        0 => return Some(None),
        4 => rest.split_first_chunk::<4>().map(|(ip, rest)| ((*ip).into(), rest))?,
        6 => rest.split_first_chunk::<16>().map(|(ip, rest)| ((*ip).into(), rest))?,
        _ => return None,
    };
    let (port, rest) = rest.split_first_chunk()?;
    let at = (ip, u16::from_be_bytes(*port)).into();
    Some(Some(Watched { at, name: u64::from_le_bytes(*rest.first_chunk()?) }))
}

/// Where the sender of a ping wants its answer, which is all that a ping says.
pub fn return_address(body: &[u8]) -> Option<LowerAddress> {
    parse_lower(body).filter(|(lower, rest)| rest.is_empty() && !lower.is_empty()).map(|(lower, _)| lower)
}

impl Greeting {
    /// Adds the greeting to a batch.
    pub fn emit(&self, batch: &mut Vec<u8>) {
        self.emit_telling(self.window, batch);
    }

    /// The same to a peer that is told another window.
    fn emit_telling(&self, window: u32, batch: &mut Vec<u8>) {
        let Contact { address, settings, kind, lower, .. } = &self.contact;
        let host = &self.host.as_bytes()[..self.host.len().min(HOST_BYTES_MOST)];
        // We know all our own settings.
        let settings = if let Told::All(settings) = settings { settings.to_bytes() } else { Default::default() };
        batch.extend_from_slice(&address.to_bytes());
        batch.extend_from_slice(&settings);
        batch.extend_from_slice(&[kind.byte(), self.reads_memory.into()]);
        batch.extend_from_slice(&window.to_le_bytes());
        batch.extend_from_slice(&self.rank.unwrap_or(u32::MAX).to_le_bytes());
        emit_lower(lower, batch);
        batch.push(host.len() as u8);
        batch.extend_from_slice(host);
        let Some(Watched { at, name }) = self.watched else { return batch.push(0) };
        match at.ip() {
            IpAddr::V4(ip) => batch.extend([&[4], &ip.octets()[..]].concat()),
            IpAddr::V6(ip) => batch.extend([&[6], &ip.octets()[..]].concat()),
        }
        batch.extend(at.port().to_be_bytes());
        batch.extend(name.to_le_bytes());
    }

    /// Reads the greeting of the endpoint that has this id; anything may stand in `bytes`. The host's name is for
    /// people: what is no printable text in it is left out.
    pub fn parse(id: u64, bytes: &[u8]) -> Option<Greeting> {
        let (address, rest) = bytes.split_first_chunk::<{ Address::BYTES }>()?;
        let (settings, rest) = rest.split_first_chunk()?;
        let ([kind, reads_memory], rest) = rest.split_first_chunk()?;
        let (window, rest) = rest.split_first_chunk()?;
        let (rank, rest) = rest.split_first_chunk()?;
        let (lower, rest) = parse_lower(rest).filter(|(lower, _)| !lower.is_empty())?;
        let (length, host) = rest.split_first()?;
        let (host, rest) = host.split_at_checked(usize::from(*length).min(HOST_BYTES_MOST))?;
        let watched = parse_watched(rest)?;
        let host = String::from_utf8_lossy(host).chars().filter(|letter| !letter.is_control()).collect();
        let rank = Some(u32::from_le_bytes(*rank)).filter(|rank| *rank != u32::MAX);
        let (settings, kind) = (Settings::from_bytes(*settings), NetworkKind::from_byte(*kind));
        let contact = Contact::told(Address::from_bytes(address)?, id, settings, kind, lower);
        Some(Greeting {
            contact,
            window: u32::from_le_bytes(*window),
            rank,
            reads_memory: *reads_memory == 1,
            host,
            watched,
        })
    }

    /// A batch without packets from the endpoint of this greeting, for one of whom nothing has come.
    pub fn batch(&self, to: &Contact, kind: Kind, sequence: u64) -> Vec<u8> {
        self.batch_after(to, kind, sequence, (0, Receipt::default()))
    }

    /// The same where so many batches have come, and messages of which this is to be said.
    pub fn batch_after(&self, to: &Contact, kind: Kind, sequence: u64, come: (u64, Receipt)) -> Vec<u8> {
        self.batch_telling(self.window, to, kind, sequence, come)
    }

    /// The same to a peer that is told this window.
    pub fn batch_telling(&self, window: u32, to: &Contact, kind: Kind, sequence: u64, come: (u64, Receipt)) -> Vec<u8> {
        let mut batch = header_of(self.contact.id(), to.id(), kind, sequence, come);
        match kind {
            Kind::Hello | Kind::Welcome | Kind::Refusal => self.emit_telling(window, &mut batch),
            Kind::Ping => emit_lower(&self.contact.lower, &mut batch),
            _ => {}
        }
        if kind.has_proof() {
            admission::seal(&mut batch, &admission::secret_for(&self.contact, to));
        }
        batch
    }

    /// Who it is, for people: `rank 3 (pid 4711 of host h2)`.
    pub fn name(&self) -> String {
        let Greeting { contact, rank, host, .. } = self;
        match rank {
            Some(rank) => format!("rank {rank} ({contact} of host {host})"),
            None => format!("{contact} of host {host}"),
        }
    }

    /// Why the two cannot communicate: the first parameter in which they differ, with both values. `None`: they can.
    pub fn disagreement(&self, theirs: &Greeting) -> Option<String> {
        let (Told::All(own), Told::All(others)) = (&self.contact.settings, &theirs.contact.settings) else {
            return None;
        };
        let (name, Difference { parameter, ours, theirs }) = (theirs.name(), own.difference(others)?);
        Some(format!(
            "{parameter} is {ours} here and {theirs} with {name}: it must be the same in all processes of a job"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::testing::contact;

    fn greeting(id: u64, slots: u32) -> Greeting {
        let contact = contact(id, 1, slots);
        Greeting { contact, window: 4096, rank: Some(3), reads_memory: true, host: "h2".into(), watched: None }
    }

    #[test]
    fn what_is_written_is_read_and_is_not_the_secret() {
        let sockets = [None, Some("10.0.0.7:4711"), Some("[fd00::7]:65535")];
        for (rank, socket) in [Some(3), None].into_iter().flat_map(|rank| sockets.map(|socket| (rank, socket))) {
            let watched = socket.map(|socket| Watched { at: socket.parse().unwrap(), name: 0x1234_5678_9abc_def0 });
            let greeting = Greeting { rank, watched, ..greeting(7, 64) };
            let mut bytes = Vec::new();
            greeting.emit(&mut bytes);
            let read = Greeting::parse(greeting.contact.id(), &bytes);
            assert_eq!(read, Some(greeting.clone()));
            assert!(read.unwrap().contact.secret.is_none());
            let secret = greeting.contact.secret.unwrap().to_bytes();
            assert!(!bytes.windows(4).any(|part| part == &secret[..4]), "the secret stays here");
            for length in 0..bytes.len() {
                assert_eq!(Greeting::parse(1, &bytes[..length]), None, "cut to {length} bytes");
            }
        }
    }

    #[test]
    fn a_difference_names_the_parameter_and_both_values() {
        let (ours, theirs) = (greeting(1, 64), greeting(2, 16));
        assert_eq!(ours.disagreement(&ours), None);
        let text = ours.disagreement(&theirs).unwrap();
        assert!(text.contains("FI_TIDEGATE_SLOTS is 64 here and 16 with rank 3 (pid 2 of host h2)"), "{text}");
    }
}
