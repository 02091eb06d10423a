//! [`Greeting`]: what two endpoints say of themselves before the first packet. It is the body of a hello, a welcome and
//! a refusal.
//!
//! | bytes | field |
//! |---|---|
//! | 0–63 | [`Contact`], with the settings that both sides must have alike |
//! | 64–67 | window: bytes set aside for the unmatched messages of each sender |
//! | 68–71 | rank in the job, `u32::MAX` if nobody has told |
//! | 72 | 1 if its network reads memory, so that it can read ours and we its; else 0 |
//! | 73 | bytes of the host's name, at most 63 |
//! | 74– | the host's name |

use super::contact::Contact;
use super::wire::{HEADER_BYTES, Header, Kind, Receipt};
use crate::shm::Difference;

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
}

/// A batch of a header only, from the endpoint of this id.
pub fn batch_from(from: u64, to: &Contact, kind: Kind) -> Vec<u8> {
    header_of(from, to, kind, 0, (0, Receipt::default()))
}

fn header_of(from: u64, to: &Contact, kind: Kind, sequence: u64, come: (u64, Receipt)) -> Vec<u8> {
    let (mut batch, to, (acknowledged, receipt)) = (vec![0; HEADER_BYTES], to.id(), come);
    Header { kind, is_closing: false, is_last: false, to, from, sequence, acknowledged, receipt }.emit(&mut batch);
    batch
}

impl Greeting {
    /// Adds the greeting to a batch.
    pub fn emit(&self, batch: &mut Vec<u8>) {
        let host = &self.host.as_bytes()[..self.host.len().min(HOST_BYTES_MOST)];
        batch.extend_from_slice(&self.contact.to_bytes());
        batch.extend_from_slice(&self.window.to_le_bytes());
        batch.extend_from_slice(&self.rank.unwrap_or(u32::MAX).to_le_bytes());
        batch.push(self.reads_memory.into());
        batch.push(host.len() as u8);
        batch.extend_from_slice(host);
    }

    /// Reads a greeting; anything may stand in `bytes`. The host's name is for people: what is no printable text in it
    /// is left out.
    pub fn parse(bytes: &[u8]) -> Option<Greeting> {
        let (contact, rest) = bytes.split_at_checked(Contact::BYTES)?;
        let (window, rest) = rest.split_first_chunk()?;
        let (rank, rest) = rest.split_first_chunk()?;
        let (reads_memory, rest) = rest.split_first()?;
        let (length, host) = rest.split_first()?;
        let host = host.get(..usize::from(*length).min(HOST_BYTES_MOST))?;
        let host = String::from_utf8_lossy(host).chars().filter(|letter| !letter.is_control()).collect();
        let rank = Some(u32::from_le_bytes(*rank)).filter(|rank| *rank != u32::MAX);
        let (contact, window) = (Contact::from_bytes(contact)?, u32::from_le_bytes(*window));
        Some(Greeting { contact, window, rank, reads_memory: *reads_memory == 1, host })
    }

    /// A batch without packets from the endpoint of this greeting, for one of whom nothing has come.
    pub fn batch(&self, to: &Contact, kind: Kind, sequence: u64) -> Vec<u8> {
        self.batch_after(to, kind, sequence, (0, Receipt::default()))
    }

    /// The same where so many batches have come, and messages of which this is to be said.
    pub fn batch_after(&self, to: &Contact, kind: Kind, sequence: u64, come: (u64, Receipt)) -> Vec<u8> {
        let mut batch = header_of(self.contact.id(), to, kind, sequence, come);
        match kind {
            Kind::Hello | Kind::Welcome | Kind::Refusal => self.emit(&mut batch),
            Kind::Ping => batch.extend_from_slice(&self.contact.to_bytes()),
            _ => {}
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
        let found = self.contact.address.settings.difference(&theirs.contact.address.settings)?;
        let (name, Difference { parameter, ours, theirs }) = (theirs.name(), found);
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
        Greeting { contact, window: 4096, rank: Some(3), reads_memory: true, host: "h2".into() }
    }

    #[test]
    fn what_is_written_is_read() {
        for rank in [Some(3), None] {
            let greeting = Greeting { rank, ..greeting(7, 64) };
            let mut bytes = Vec::new();
            greeting.emit(&mut bytes);
            assert_eq!(Greeting::parse(&bytes), Some(greeting));
            for length in 0..bytes.len() {
                assert_eq!(Greeting::parse(&bytes[..length]), None, "cut to {length} bytes");
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
