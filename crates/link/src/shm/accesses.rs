//! Peers that copy to or from our memory just now, and how memory is given back.
//!
//! A peer reads and writes memory that we have shown without us. The application may do with that memory what it likes
//! as soon as its region is closed, or the endpoint is. *The simple idea*, to withdraw the region and go on, fails: a
//! peer that has looked the region up a moment before still writes, into what the memory holds by then. So each peer has
//! a word in our table, which is odd while it copies.
//!
//! - The peer makes its word odd; then it looks whether the region, or the endpoint, is still there; then it copies, and
//!   makes its word even.
//! - The owner withdraws the region; then it looks at the words, and waits for each that is odd to change.
//!
//! At least one of the two sees what the other has done: between the store and the look there is a full fence on both
//! sides. A word is waited for once, so copies that begin later hold up nothing: they find the region withdrawn.
//!
//! The system ends a copy before it ends the process, so one that is proven to be gone copies no more. One that is
//! stopped amid a copy (by a signal, or a debugger) may go on later: after [`WAIT_MOST`] the owner is told to try again.

use super::liveness::Evidence;
use super::peer::Table;
use super::state::{ShmLink, describe};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::thread;
use std::time::{Duration, Instant};
use tidegate_flow::PeerId;

/// How long a copy is waited for. The longest takes as long as the system takes to copy a region.
const WAIT_MOST: Duration = if cfg!(test) { Duration::from_millis(300) } else { Duration::from_secs(10) };
/// Looks that give the processor away, before those with a nap between them.
const LOOKS_BEFORE_NAPS: u32 = 100;
const NAP: Duration = Duration::from_micros(200);

/// What a peer's word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(pub u64);

impl Word {
    fn is_copying(self) -> bool {
        self.0 % 2 == 1
    }
}

/// A copy of ours to or from a peer's memory, from when it is announced to its end.
#[derive(Debug)]
pub(crate) struct Access<'a>(&'a AtomicU64);

impl<'a> Access<'a> {
    /// Announces a copy, by our word in the table of the memory's owner. What is looked up after this is valid until the
    /// value is dropped.
    pub fn begin(word: &'a AtomicU64) -> Access<'a> {
        // An odd word is left of nothing that still goes on: we copy once at a time.
        word.store(word.load(Ordering::Relaxed) | 1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        Access(word)
    }
}

impl Drop for Access<'_> {
    fn drop(&mut self) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }
}

impl Table {
    /// The peers that copy just now, and what their words say.
    fn copying(&self) -> Vec<(PeerId, Word)> {
        fence(Ordering::SeqCst);
        let words = self.taken().filter_map(|peer| Some((peer, self.access_word(peer)?)));
        words.filter(|(_, word)| word.is_copying()).collect()
    }
}

impl ShmLink {
    /// Waits until no peer copies to or from our memory that began before this call. What it is about has been withdrawn
    /// before. Otherwise returns which peer still does, and what to do.
    pub(super) fn await_accesses(&self) -> Result<(), String> {
        let mut copying = self.table.copying();
        if copying.is_empty() {
            return Ok(());
        }
        let end = Instant::now() + WAIT_MOST;
        for look in 0.. {
            let evidence: Evidence = self.evidence();
            copying.retain(|&(peer, word)| self.table.access_word(peer) == Some(word) && !evidence.is_dead(peer));
            let Some(&(peer, _)) = copying.first() else { break };
            if Instant::now() >= end {
                let name = self.table.address(peer).map_or_else(|| format!("peer {}", peer.0), |it| describe(&it));
                return Err(format!(
                    "{name} copies to or from this memory, and has not ended within {} s: if that process is stopped, let \
                     it go on (kill -CONT) or end it",
                    WAIT_MOST.as_secs_f32()
                ));
            }
            match look {
                0..LOOKS_BEFORE_NAPS => thread::yield_now(),
                _ => thread::sleep(NAP),
            }
        }
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::tests::{folder, link, write};
    use super::*;
    use tidegate_flow::{Packet, PacketKind};
    use tidegate_message::{Access as Right, Link, Span, TransferId, TransferStatus};

    /// An endpoint, and a peer that has connected to it, with a memory of the endpoint that the peer knows.
    fn pair(bytes: &mut [u8]) -> (ShmLink, ShmLink, PeerId) {
        let folder = folder();
        let (mut owner, mut peer) = (link(&folder), link(&folder));
        let span = Span { address: bytes.as_mut_ptr() as u64, length: bytes.len() as u64 };
        assert!(owner.publish_region(7, span, true, true));
        let to = peer.peer(&owner.address()).unwrap();
        write(&mut peer, to, &Packet::new(PacketKind::Data, 0, 1)).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        (owner, peer, to)
    }

    #[test]
    fn closing_a_region_waits_for_the_copies_that_have_begun_and_for_no_others() {
        let mut bytes = [0; 64];
        let (mut owner, mut peer, to) = pair(&mut bytes);
        let connection = peer.peers[to.0 as usize].connection.as_mut().unwrap();
        let closed = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let copied = connection.access([0].into_iter(), |_| {
                scope.spawn(|| {
                    assert_eq!(owner.withdraw_region(7), Ok(()));
                    closed.store(true, Ordering::Relaxed);
                });
                thread::sleep(WAIT_MOST / 3);
                assert!(!closed.load(Ordering::Relaxed));
            });
            assert!(copied.is_some());
        });
        assert!(closed.into_inner());
        let begun = Instant::now();
        assert_eq!(owner.withdraw_region(7), Ok(()));
        assert!(begun.elapsed() < WAIT_MOST / 3, "the copy is over");
    }

    // fi_tidegate(7): "When a copy that has begun is not over after 10 seconds (its process is stopped), closing the
    // region is -FI_EBUSY and may be tried again, and a line on standard error names the process; closing an endpoint
    // goes on then."
    #[test]
    fn closing_gives_up_waiting_for_a_copy_that_stands_still_and_can_be_tried_again() {
        let mut bytes = [0; 64];
        let (mut owner, mut peer, to) = pair(&mut bytes);
        let connection = peer.peers[to.0 as usize].connection.as_mut().unwrap();
        let copied = connection.access([0].into_iter(), |_| owner.withdraw_region(7));
        let why = copied.unwrap().unwrap_err();
        assert!(why.contains(&format!("pid {}", std::process::id())) && why.contains("kill -CONT"), "{why}");
        assert_eq!(owner.withdraw_region(7), Ok(()));
    }

    #[test]
    fn a_copy_of_the_dead_is_not_waited_for_whoever_has_their_place() {
        let mut bytes = [0; 64];
        let (mut owner, peer, to) = pair(&mut bytes);
        let place = owner.table.taken().next().expect("the peer has one");
        owner.table.accessing(place).store(7, Ordering::Relaxed);
        assert!(owner.withdraw_region(7).is_err());
        owner.table.mark_connected(place, false);
        assert_eq!(owner.withdraw_region(7), Ok(()), "another one has connected");
        owner.table.accessing(place).store(7, Ordering::Relaxed);
        drop(peer);
        assert_eq!((owner.withdraw_region(7), to), (Ok(()), PeerId(0)), "it has said that it left");
    }

    #[test]
    fn what_was_looked_up_before_its_region_was_closed_is_not_touched() {
        let (mut bytes, mut nines) = ([0; 64], [9; 64]);
        let (mut owner, mut peer, to) = pair(&mut bytes);
        // SAFETY: the bytes outlive the buffer.
        let mut local = unsafe { crate::IoBuffer::from_parts(nines.as_mut_ptr(), 64) };
        let found = |peer: &mut ShmLink| peer.find_region(to, 7, 0, 64, Right::Write);
        let before = found(&mut peer).expect("it is published");
        assert_eq!(peer.write_peer(TransferId(0), to, &[before], &local, 0), TransferStatus::Done);
        assert_eq!(owner.withdraw_region(7), Ok(()));
        // The same key again, and another place in the same memory.
        assert!(owner.publish_region(7, Span { address: bytes.as_ptr() as u64, length: 32 }, true, true));
        bytes.fill(0);
        assert_eq!(peer.write_peer(TransferId(0), to, &[before], &local, 0), TransferStatus::Unreachable);
        assert_eq!(peer.read_peer(TransferId(0), to, &[before], &mut local, 0), TransferStatus::Unreachable);
        let within = peer.find_region(to, 7, 0, 32, Right::Write).expect("it is published");
        assert_eq!((bytes, peer.write_peer(TransferId(0), to, &[within], &local, 0)), ([0; 64], TransferStatus::Done));
        drop(owner);
        bytes.fill(0);
        assert_eq!(peer.write_peer(TransferId(0), to, &[within], &local, 0), TransferStatus::Unreachable);
        assert_eq!(bytes, [0; 64], "its owner has closed");
    }

    #[test]
    fn a_word_is_odd_while_its_peer_copies_and_another_one_each_time() {
        for start in [0, 6, u64::MAX - 1] {
            let word = AtomicU64::new(start);
            let value = || Word(word.load(Ordering::Relaxed));
            let mut before = Vec::new();
            for _ in 0..3 {
                let access = Access::begin(&word);
                assert!(value().is_copying() && !before.contains(&value()));
                before.push(value());
                drop(access);
                assert!(!value().is_copying());
            }
        }
        // What a process has left that had this place before.
        let word = AtomicU64::new(7);
        drop(Access::begin(&word));
        assert_eq!(word.load(Ordering::Relaxed), 8);
    }
}
