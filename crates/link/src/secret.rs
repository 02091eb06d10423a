//! [`Secret`]: the random number by which an endpoint tells the processes of its job from strangers.
//!
//! It stands in the endpoint's address, which an MPI gives to the other ranks through its launcher, and in the memory
//! of those who have that address; nowhere else. Everything that others may see is derived from it by SHA-256, which
//! leads nowhere back, under a label of its own: so one derived number says nothing of another.
//!
//! | derived number | who may see it |
//! |---|---|
//! | [`tag`](Secret::tag) | every user of the host: it names files, locks and rows of counters |
//! | [`id`](Secret::id) | the peers: it stands in the batches between hosts |
//! | [`proof`](Secret::proof) | who reads a batch: it shows that the batch's sender knows the secret |
//!
//! `sha2` was chosen because it is the plain, widely reviewed implementation in Rust, without `std` and without
//! anything built in C. A hash is made once for an endpoint, for an address that is inserted, and for a batch that is
//! no packets.

use sha2::{Digest, Sha256};
use std::fmt;

/// See the module. It can be neither printed nor compared: to compare, derive a number from it.
#[derive(Clone, Copy)]
pub struct Secret([u8; Self::BYTES]);

impl Secret {
    /// 80 bits: as many as an address has room for.
    pub const BYTES: usize = 10;

    /// A new one.
    pub fn draw() -> Secret {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&random().to_ne_bytes());
        bytes[8..].copy_from_slice(&random().to_ne_bytes()[..2]);
        Secret(bytes)
    }

    /// From the bytes that an address holds.
    pub(crate) fn from_bytes(bytes: [u8; Self::BYTES]) -> Secret {
        Secret(bytes)
    }

    /// For an address.
    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        self.0
    }

    /// The part of it that everything may show: a number that no other endpoint ever has; never 0.
    pub fn tag(&self) -> u64 {
        self.derive(b"tidegate: tag", &[]).max(1)
    }

    /// The part of it that peers of other hosts see: a number that no other endpoint ever has; never 0.
    pub fn id(&self) -> u64 {
        self.derive(b"tidegate: id", &[]).max(1)
    }

    /// Shows that whoever has made these bytes knows the secret. Two proofs are compared as the numbers that they are,
    /// in one instruction, so the time that it takes does not tell where they differ.
    pub fn proof(&self, bytes: &[u8]) -> u64 {
        self.derive(b"tidegate: proof", bytes)
    }

    /// A label stands behind its length, so no two inputs are alike. A quarter of the hash is kept, by which no one can
    /// go on behind the bytes that it was made of.
    fn derive(&self, label: &[u8], bytes: &[u8]) -> u64 {
        let hash = Sha256::new().chain_update([label.len() as u8]).chain_update(label).chain_update(self.0);
        let hash: [u8; 32] = hash.chain_update(bytes).finalize().into();
        hash.first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// A hash of some text and numbers that no choice of them makes equal by design; nothing is secret about it.
pub(crate) fn hash_of(label: &[u8], words: &[u64]) -> u64 {
    let hash = words.iter().fold(Sha256::new().chain_update(label), |hash, word| hash.chain_update(word.to_le_bytes()));
    let hash: [u8; 32] = hash.finalize().into();
    hash.first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

/// A number that no other process has or can guess; never 0.
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

    #[test]
    fn what_is_derived_says_nothing_of_the_rest_and_is_the_same_everywhere() {
        let secret = Secret::from_bytes([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        let derived = [secret.tag(), secret.id(), secret.proof(b""), secret.proof(b"a"), Secret([0; 10]).tag()];
        for (at, number) in derived.iter().enumerate() {
            assert!(!derived[..at].contains(number), "{derived:x?}");
            assert!(!derived.map(|number| number.to_le_bytes()).iter().any(|bytes| bytes[..4] == secret.0[..4]));
        }
        assert_eq!(format!("{secret:?}"), "Secret", "no log line has it");
        // SHA-256 of 13, "tidegate: tag" and the ten bytes, as any other implementation says.
        assert_eq!(secret.tag(), TAG_OF_ONE_TO_TEN);
    }

    const TAG_OF_ONE_TO_TEN: u64 = 0xf671_f922_3602_43e4;

    #[test]
    fn random_numbers_and_secrets_differ() {
        let mut numbers: Vec<u64> = (0..100).map(|_| random()).chain((0..100).map(|_| Secret::draw().id())).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 200);
    }
}
