//! Admission: which batches carry a proof, and what a stranger can do all the same.
//!
//! The simple idea is a random number that stands in every batch: whoever knows it belongs to the job. It fails because
//! the number lies in the hands of whoever gets to read one batch: the next owner of a dead rank's port, or a stranger
//! who has taken a connection over, which libfabric's `tcp` lets every process do that reaches the port
//! (fi_tidegate(7), Strangers). It failed worse when the number was part of a file's name, which every user of the host
//! can list.
//!
//! So there are two numbers. The *secret* stands in the endpoint's address and in no batch. The *id*, derived from it,
//! stands in all batches, and says only which of those who were let in is meant. A batch that is no packets and no
//! acknowledgement, or says that its sender closes, ends with a *proof* ([`Secret::proof`]) over all of it, by a secret
//! that both ends know:
//!
//! - the receiver's secret, if the sender was given the receiver's contact;
//! - else the sender's own. Then the receiver was given the sender's contact: one of the two has greeted the other
//!   first.
//!
//! A greeting says who its sender is without the sender's secret. A receiver that has the sender in its address vector
//! knows the secret; one that has not needs the id alone to answer.
//!
//! A1. A hello without a proof gets no place, no state and no answer. Before its proof is looked at, it has to name our
//!     id. One hash is what it costs.
//! A2. Nothing ends a peer but its own proven word (`Severed`, `Refusal`, a greeting with other parameters, its
//!     goodbye), silence that the kernels explain (`liveness`), or, for [`FAILED_FOR`](super::liveness::FAILED_FOR) on
//!     end, word that it is not where it was (`Absent`) and nothing from itself. `Absent` is said by processes that do
//!     not know the endpoint it is about, such as the next owner of a port, so it has no proof and is a hint to ask the
//!     peer again.
//! A3. The answers to those who have no place go to an address that they name, so their tries are few
//!     (`ANSWERS_PER_SECOND`, one at a time for each address), short, and say nothing but `Severed` (to those who have
//!     proven themselves) or `Absent`.
//!
//! So these can do the following:
//!
//! - **another user of the host, and another host**: knows ports, process ids and tags, none of which leads to an id or
//!   a secret. Its batches are dropped, and counted in `batches_dropped`.
//! - **the next owner of a dead rank's port**: is sent hellos and pings for that rank. They tell who asks (host,
//!   process, network address) and both ids; by these it can send packets and acknowledgements in the dead rank's name
//!   to those who ask, until they have noticed that the rank has ended. It cannot answer a ping, say `Severed` or
//!   goodbye, or greet any other rank.
//! - **a thief of a connection**: the same, and packets that were meant for the rank. Packets of its own with the
//!   number of true ones are taken in their place, so that the job may wait for ever. It can also hold back or repeat
//!   what it has got: a hello that is repeated leads to nothing but a welcome for its true sender. As long as it holds
//!   a connection, neither side hears the other by it; a rank that computes for
//!   [`FAILED_FOR`](super::liveness::FAILED_FOR) meanwhile can be made to count as lost.
//! - **who reads the wire**: reads everything, and can do what a thief can. Nothing is encrypted, and packets carry no
//!   proof: it would cost a hash over every byte of every message.
//! - **a process of the job**: is trusted. Each knows the secrets of all others.

use super::contact::Contact;
use super::wire::{Batch, PROOF_BYTES};
use crate::secret::Secret;

/// Adds the proof to a batch that is complete but for it.
pub fn seal(batch: &mut Vec<u8>, secret: &Secret) {
    let proof = secret.proof(batch);
    batch.extend_from_slice(&proof.to_le_bytes());
}

/// By which secret we prove something to the endpoint at a contact.
pub fn secret_for(own: &Contact, peer: &Contact) -> Secret {
    // Our own contact has a secret.
    peer.secret.or(own.secret).unwrap_or_else(Secret::draw)
}

/// Whether a batch was made by a process that knows our secret, or that of the peer that it names as its sender.
pub fn is_proven(batch: &Batch, own: &Contact, peer: Option<&Secret>) -> bool {
    let Some((said, proof)) = batch.whole.split_last_chunk::<PROOF_BYTES>() else { return false };
    let proof = u64::from_le_bytes(*proof);
    own.secret.iter().chain(peer).any(|secret| secret.proof(said) == proof)
}

#[cfg(test)]
mod tests {
    use super::super::greeting::batch_from;
    use super::super::testing::contact;
    use super::super::wire::Kind;
    use super::*;

    #[test]
    fn a_proof_is_made_by_the_secret_of_either_end_and_over_all_of_a_batch() {
        let (one, other, third) = (contact(1, 1, 64), contact(2, 2, 64), contact(3, 3, 64));
        let secret = |contact: &Contact| contact.secret.unwrap();
        for by in [&one, &other] {
            let mut bytes = batch_from(one.id(), other.id(), Kind::Severed, 0);
            seal(&mut bytes, &secret(by));
            let is_proven = |bytes: &[u8], peer| {
                Batch::parse(bytes).is_ok_and(|batch| super::is_proven(&batch, &other, Some(&secret(peer))))
            };
            assert!(is_proven(&bytes, &one));
            assert_eq!(is_proven(&bytes, &third), by == &other, "whoever lacks it takes it for no proof");
            for bit in 0..bytes.len() * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(!is_proven(&bytes, &one), "bit {bit}");
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
}
