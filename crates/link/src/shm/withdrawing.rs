//! How memory that peers may read and write is shown, and how it is given back.
//!
//! A peer reads and writes memory that we have shown without us. The application may do with that memory what it likes
//! as soon as its region is closed, or the endpoint is. *The simple idea*, to withdraw the region and go on, fails: a
//! peer that has looked the region up a moment before still writes, into what the memory holds by then. So each peer
//! has a word in our table, which is odd while it copies (`accesses`).
//!
//! - The peer makes its word odd; then it looks whether the region, or the endpoint, is still there; then it copies,
//!   and makes its word even.
//! - The owner withdraws the region; then it looks at the words, and waits for each that is odd to change.
//!
//! At least one of the two sees what the other has done: between the store and the look there is a full fence on both
//! sides. A word is waited for once, so copies that begin later hold up nothing: they find the region withdrawn.
//!
//! The system ends a copy before it ends the process, so one that is proven to be gone copies no more. One that is
//! stopped amid a copy (by a signal, or a debugger) may go on later: after [`WAIT_MOST`] the owner is told to try
//! again.

use super::accesses::Word;
use super::liveness::Evidence;
use super::peer::Table;
use super::state::{ShmLink, describe};
use crate::log::{self, Level};
use std::sync::atomic::{Ordering, fence};
use std::thread;
use std::time::{Duration, Instant};
use tidegate_flow::PeerId;
use tidegate_message::{Access as Right, Span};

/// How long a copy is waited for. The longest takes as long as the system takes to copy a region.
const WAIT_MOST: Duration = if cfg!(test) { Duration::from_millis(300) } else { Duration::from_secs(10) };
/// Looks that give the processor away, before those with a nap between them.
const LOOKS_BEFORE_NAPS: u32 = 100;
const NAP: Duration = Duration::from_micros(200);

/// The peers that copy just now, and what their words say.
fn copying(table: &Table) -> Vec<(PeerId, Word)> {
    fence(Ordering::SeqCst);
    let words = table.taken().filter_map(|peer| Some((peer, table.access_word(peer)?)));
    words.filter(|(_, word)| word.is_copying()).collect()
}

impl ShmLink {
    /// Lets peers find a registered region, so that RMA goes straight to memory. `false`: no room; peers then go by
    /// message.
    pub fn publish_region(&mut self, key: u64, span: Span, access: &[Right]) -> bool {
        !self.is_forked() && self.regions.publish(key, span, access)
    }

    /// Withdraws a published region. Peers may still copy to or from it until the copies returned
    /// [are over](Self::are_over). A key that was not published is no error.
    pub fn withdraw_region(&mut self, key: u64) -> Copies {
        if self.is_forked() {
            return Copies::default();
        }
        self.regions.withdraw(key);
        self.copies()
    }

    /// The copies that are under way now. What they are about has been withdrawn before.
    fn copies(&self) -> Copies {
        let copying = copying(&self.table);
        let end = (!copying.is_empty()).then(|| Instant::now() + WAIT_MOST);
        Copies { copying, end, looks: 0 }
    }

    /// Whether these copies are over. If not, the caller [pauses](Copies::pause) and asks again.
    ///
    /// # Errors
    /// A peer has not ended its copy for a long time: which, and what to do.
    pub fn are_over(&self, copies: &mut Copies) -> Result<bool, String> {
        if copies.copying.is_empty() {
            return Ok(true);
        }
        let evidence: Evidence = self.evidence();
        copies.copying.retain(|&(peer, word)| self.table.access_word(peer) == Some(word) && !evidence.is_dead(peer));
        let Some(&(peer, _)) = copies.copying.first() else { return Ok(true) };
        if copies.end.is_none_or(|end| Instant::now() < end) {
            return Ok(false);
        }
        let name = self.table.address(peer).map_or_else(|| format!("peer {}", peer.0), |it| describe(&it));
        Err(format!(
            "{name} copies to or from this memory, and has not ended within {} s: if that process is stopped, let it \
             go on (kill -CONT) or end it",
            WAIT_MOST.as_secs_f32()
        ))
    }

    /// Waits until no peer copies to or from our memory that began before this call.
    fn await_copies(&self, mut copies: Copies) -> Result<(), String> {
        while !self.are_over(&mut copies)? {
            copies.pause();
        }
        Ok(())
    }
}

/// Copies of peers to or from memory that has been withdrawn from them. The default is none.
#[derive(Debug, Default)]
pub struct Copies {
    copying: Vec<(PeerId, Word)>,
    /// Until when they are waited for.
    end: Option<Instant>,
    looks: u32,
}

impl Copies {
    /// Gives the processor away between two looks. The caller holds no lock that others wait for.
    pub fn pause(&mut self) {
        self.looks = self.looks.saturating_add(1);
        match self.looks {
            0..LOOKS_BEFORE_NAPS => thread::yield_now(),
            _ => thread::sleep(NAP),
        }
    }
}

impl Drop for ShmLink {
    fn drop(&mut self) {
        // A forked child must not close its parent's connections.
        if self.is_forked() {
            return;
        }
        self.peers.iter_mut().filter_map(|peer| peer.connection.as_mut()).for_each(|connection| connection.leave(true));
        // The application may free what peers read and write as soon as the endpoint is closed.
        self.segment.header().closed.store(1, Ordering::Release);
        if let Err(why) = self.await_copies(self.copies()) {
            log::line(Level::Trouble, || format!("closing an endpoint: {why}"));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::tests::{folder, link, write};
    use super::*;
    use tidegate_flow::{Packet, PacketKind};
    use tidegate_message::{PeerMemory, TransferId, TransferStatus};

    /// An endpoint, and a peer that has connected to it, with a memory of the endpoint that the peer knows.
    fn pair(bytes: &mut [u8]) -> (ShmLink, ShmLink, PeerId) {
        let folder = folder();
        let (mut owner, mut peer) = (link(&folder), link(&folder));
        let span = Span { address: bytes.as_mut_ptr() as u64, length: bytes.len() as u64 };
        assert!(owner.publish_region(7, span, &[Right::Read, Right::Write]));
        let to = peer.peer(&owner.address()).unwrap();
        write(&mut peer, to, &Packet::new(PacketKind::Data, 0, 1)).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        (owner, peer, to)
    }

    fn close_region(owner: &mut ShmLink) -> Result<(), String> {
        let copies = owner.withdraw_region(7);
        owner.await_copies(copies)
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
                    assert_eq!(close_region(&mut owner), Ok(()));
                    closed.store(true, Ordering::Relaxed);
                });
                thread::sleep(WAIT_MOST / 3);
                assert!(!closed.load(Ordering::Relaxed));
            });
            assert!(copied.is_some());
        });
        assert!(closed.into_inner());
        let begun = Instant::now();
        assert_eq!(close_region(&mut owner), Ok(()));
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
        let copied = connection.access([0].into_iter(), |_| close_region(&mut owner));
        let why = copied.unwrap().unwrap_err();
        assert!(why.contains(&format!("pid {}", std::process::id())) && why.contains("kill -CONT"), "{why}");
        assert_eq!(close_region(&mut owner), Ok(()));
    }

    #[test]
    fn a_copy_of_the_dead_is_not_waited_for_whoever_has_their_place() {
        let mut bytes = [0; 64];
        let (mut owner, peer, to) = pair(&mut bytes);
        let place = owner.table.taken().next().expect("the peer has one");
        owner.table.accessing(place).store(7, Ordering::Relaxed);
        assert!(close_region(&mut owner).is_err());
        owner.table.mark_connected(place, false);
        assert_eq!(close_region(&mut owner), Ok(()), "another one has connected");
        owner.table.accessing(place).store(7, Ordering::Relaxed);
        drop(peer);
        assert_eq!((close_region(&mut owner), to), (Ok(()), PeerId(0)), "it has said that it left");
    }

    #[test]
    fn what_was_looked_up_before_its_region_was_closed_is_not_touched() {
        let (mut bytes, mut nines) = ([0; 64], [9; 64]);
        let (mut owner, mut peer, to) = pair(&mut bytes);
        // SAFETY: the bytes outlive the buffer.
        let mut local = unsafe { crate::IoBuffer::from_parts(nines.as_mut_ptr(), 64) };
        let found = |peer: &mut ShmLink| Some(peer.find_region(to, 7, 0, 64, Right::Write)?.0);
        let before = found(&mut peer).expect("it is published");
        assert_eq!(peer.write_peer(TransferId(0), to, &[before], &local, 0), TransferStatus::Done);
        assert_eq!(close_region(&mut owner), Ok(()));
        // The same key again, and another place in the same memory.
        assert!(owner.publish_region(
            7,
            Span { address: bytes.as_ptr() as u64, length: 32 },
            &[Right::Read, Right::Write]
        ));
        bytes.fill(0);
        assert_eq!(peer.write_peer(TransferId(0), to, &[before], &local, 0), TransferStatus::Unreachable);
        assert_eq!(peer.read_peer(TransferId(0), to, &[before], &mut local, 0), TransferStatus::Unreachable);
        let (within, _) = peer.find_region(to, 7, 0, 32, Right::Write).expect("it is published");
        assert_eq!((bytes, peer.write_peer(TransferId(0), to, &[within], &local, 0)), ([0; 64], TransferStatus::Done));
        drop(owner);
        bytes.fill(0);
        assert_eq!(peer.write_peer(TransferId(0), to, &[within], &local, 0), TransferStatus::Unreachable);
        assert_eq!(bytes, [0; 64], "its owner has closed");
    }
}
