//! A pool of slots under loom: every interleaving of its atomics. Each model says which fault it finds.

use super::super::super::sync::{AtomicU64, Ordering, fence};
use super::super::{Mailbox, Pointers, Reader, Slot, Writer};
use super::fixture::Shared;
use super::*;
use crate::shm::mailbox::{Admission, Taker};
use loom::thread;
use std::sync::Arc;
use tidegate_flow::{PAYLOAD_BYTES, Packet, PacketKind};

fn model(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(test);
}

/// A pool whose slots are all taken by the first sender.
fn full(senders: u32, size: u32) -> (Arc<Shared>, SlotPool) {
    let shared = Shared::new(senders);
    let pool = shared.pool(size.into());
    assert_eq!(shared.taker(0).take(size), size);
    (shared, pool)
}

/// Takes in a thread of its own, as often as there are counts. Returns the taker, and the number that was taken.
fn taking(shared: &Arc<Shared>, peer: u32, counts: &'static [u32]) -> thread::JoinHandle<(SlotTaker, u64)> {
    let shared = shared.clone();
    thread::spawn(move || {
        let mut taker = shared.taker(peer);
        let taken = counts.iter().map(|&count| u64::from(taker.take(count))).sum();
        (taker, taken)
    })
}

/// Two senders take while the receiver gives: no slot is lost, and none is made. Found: a take that is no
/// compare-and-swap; `reclaim` with a load and a store.
#[test]
fn loom_slots_are_conserved_while_they_are_taken_and_given() {
    model(3, || {
        let (shared, mut pool) = full(3, 2);
        let threads = [1, 2].map(|peer| taking(&shared, peer, &[1, 1]));
        pool.give(1);
        pool.give(1);
        let taken: u64 = threads.map(|thread| thread.join().unwrap().1).iter().sum();
        assert_eq!(pool.counts().iter().sum::<u64>() + taken, 2);
    });
}

/// A sender marks itself while the receiver gives the only slot back, once and for all: the sender has it, or it is
/// kept for the sender. Found: no fence in `give`, or none in `wait_for`; no second look after either.
#[test]
fn loom_a_sender_that_marks_itself_while_slots_are_given_gets_them() {
    model(3, || {
        let (shared, mut pool) = full(2, 1);
        let thread = taking(&shared, 1, &[1]);
        pool.give(1);
        let (mut taker, taken) = thread.join().unwrap();
        assert_eq!(taken + u64::from(taker.take(1)), 1, "{:?}, {} free", shared.mark_of(1), shared.free());
    });
}

/// A sender that wants two slots withdraws its mark for one that is free, while the receiver invites it. Found: a
/// withdrawal or an invitation that does not look at what the word says.
#[test]
fn loom_a_mark_is_withdrawn_or_served_and_never_both() {
    model(3, || {
        let (shared, mut pool) = full(2, 4);
        let thread = taking(&shared, 1, &[2, 2]);
        pool.give(1);
        pool.give(2);
        let (mut taker, mut taken) = thread.join().unwrap();
        assert_eq!(pool.counts().iter().sum::<u64>() + taken, 3);
        pool.give(1);
        taken += [taker.take(4), taker.take(4)].map(u64::from).iter().sum::<u64>();
        assert_eq!(taken, 4, "all are to be had");
    });
}

/// Kept slots are taken back at the moment at which its sender comes, while another waits. Found: an end of a grant by
/// a store, or that does not look whether it was used up.
#[test]
fn loom_slots_are_taken_back_or_fetched_and_never_both() {
    model(3, || {
        let (shared, mut pool) = full(3, 2);
        let mut late = shared.taker(1);
        assert_eq!(late.take(1), 0);
        pool.give(1);
        let mut other = shared.taker(2);
        assert_eq!(other.take(1), 0);
        pool.look(Instant::default());
        let keep = shared.clone();
        let thread = thread::spawn(move || {
            let taken = late.take(1);
            drop(keep);
            u64::from(taken)
        });
        pool.look(Instant::default() + PATIENCE);
        let taken = thread.join().unwrap() + u64::from(other.take(1));
        assert_eq!(pool.counts().iter().sum::<u64>() + taken, 1);
        assert_eq!(taken, 1, "one of them has it");
    });
}

/// A sender that has withdrawn its mark, and is in the list still, marks itself again while the receiver reads the
/// list: neither its mark nor that of the sender behind it is lost. Found: a place that is taken off the list before
/// its link is read; a push of a place that is listed; no push of one that is not.
#[test]
fn loom_no_mark_is_lost_while_the_list_is_read() {
    model(3, || {
        let (shared, mut pool) = full(4, 3);
        for peer in [1, 2, 3] {
            assert_eq!(shared.taker(peer).take(1), 0);
        }
        shared.withdraw(2);
        let thread = taking(&shared, 2, &[1]);
        pool.give(0);
        assert_eq!(thread.join().unwrap().1, 0);
        pool.give(3);
        for peer in [1, 2, 3] {
            assert_eq!(shared.mark_of(peer), Mark::Kept(1), "{peer} waits in vain");
        }
    });
}

/// Two senders push their places while the receiver reads the list. Found: a push by a load and a store.
#[test]
fn loom_two_senders_mark_themselves_while_the_list_is_read() {
    model(3, || {
        let (shared, mut pool) = full(3, 2);
        let threads = [1, 2].map(|peer| taking(&shared, peer, &[1]));
        pool.give(0);
        for thread in threads {
            assert_eq!(thread.join().unwrap().1, 0);
        }
        pool.give(2);
        assert_eq!([1, 2].map(|peer| shared.mark_of(peer)), [Mark::Kept(1); 2]);
    });
}

/// A receiver says that it will sleep, as `ShmLink::arm` does, while a sender marks itself, and looks whether it is to
/// wake the receiver. Found: a receiver that looks at the list before it says that it will sleep.
#[test]
fn loom_a_receiver_does_not_sleep_through_a_mark() {
    model(3, || {
        let (shared, mut pool) = full(2, 1);
        let armed = Arc::new(AtomicU64::new(0));
        let (theirs, of_sender) = (armed.clone(), shared.clone());
        let thread = thread::spawn(move || {
            let mut taker = of_sender.taker(1);
            let taken = taker.take(1);
            let has_news = taken == 0 && taker.poll_news();
            fence(Ordering::SeqCst);
            (taken, has_news && theirs.load(Ordering::Relaxed) != 0)
        });
        pool.give(1);
        armed.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let sleeps = !pool.has_new_marks();
        let (taken, wakes) = thread.join().unwrap();
        assert!(!sleeps || wakes || taken == 1 || shared.mark_of(1) == Mark::Kept(1));
    });
}

/// A mailbox whose slots are a pool.
struct Ring {
    slots: Box<[Slot]>,
    pointers: Pointers,
    writing: [AtomicU64; 2],
    shared: Arc<Shared>,
}

// SAFETY: all fields are atomics.
unsafe impl Sync for Ring {}

impl Ring {
    fn new(size: usize) -> Arc<Self> {
        let word = || AtomicU64::new(0);
        let slot = || Slot { header: word(), payload: std::array::from_fn(|_| word()) };
        Arc::new(Ring {
            slots: (0..size).map(|_| slot()).collect(),
            pointers: Pointers { reserved: Alone(word()), retrieved: Alone(word()) },
            writing: [word(), word()],
            shared: Shared::new(2),
        })
    }

    fn mailbox(&self) -> Mailbox {
        // SAFETY: every thread holds the `Arc` as long as its reader or writer.
        unsafe { Mailbox::new(NonNull::from(&*self.slots), NonNull::from(&self.pointers)) }
    }

    fn writer(&self, peer: u32) -> Writer {
        let writing = NonNull::from(&self.writing[peer as usize]);
        // SAFETY: as in `mailbox`; each test makes one writer per peer.
        let writer = unsafe { Writer::new(self.mailbox(), writing, PeerId(peer), Admission::Credits) };
        writer.taking(Taker::Slots(self.shared.taker(peer)))
    }

    fn reader(&self) -> Reader {
        Reader::new(self.mailbox()).with_pool(self.shared.pool(self.slots.len() as u64))
    }
}

fn packet(number: u64) -> Packet {
    let mut packet = Packet::new(PacketKind::Data, PAYLOAD_BYTES, 0);
    packet.payload[..8].copy_from_slice(&number.to_ne_bytes());
    packet.payload[PAYLOAD_BYTES - 8..].copy_from_slice(&number.to_ne_bytes());
    packet
}

/// The number in the next packet.
fn retrieve(reader: &mut Reader) -> Option<u64> {
    let packet = reader.retrieve()?;
    let words = packet.payload.as_chunks::<8>().0;
    assert_eq!(words[0], words[words.len() - 1], "torn packet");
    Some(u64::from_ne_bytes(words[0]))
}

/// Two writers share a ring of one slot, the second of which may write when the first one's packet was retrieved: each
/// packet that was accepted arrives, whole. Found: slots that are given back before they were copied; a take or a
/// reservation that is not `Acquire`.
#[test]
fn loom_writers_of_a_pool_never_overtake_the_reader() {
    model(2, || {
        let ring = Ring::new(1);
        let mut reader = ring.reader();
        let threads = [0, 1].map(|peer| {
            let ring = ring.clone();
            thread::spawn(move || {
                let mut writer = ring.writer(peer);
                u64::from(writer.write(&packet(1 << (8 * peer))).is_ok()) << (8 * peer)
            })
        });
        let mut came = 0;
        for _ in 0..2 {
            came += retrieve(&mut reader).unwrap_or(0);
        }
        let accepted: u64 = threads.map(|thread| thread.join().unwrap()).iter().sum();
        while let Some(number) = retrieve(&mut reader) {
            came += number;
        }
        assert_eq!(came, accepted);
    });
}

/// A writer takes a slot and publishes its packet while the receiver settles the pool: it never takes a slot for lost
/// whose packet is on its way. Found: `settle` that reads the counts after it has looked whether it is quiet.
#[test]
fn loom_a_pool_of_slots_settles_only_what_no_packet_will_come_for() {
    model(3, || {
        let ring = Ring::new(2);
        let mut reader = ring.reader();
        let of_writer = ring.clone();
        let thread = thread::spawn(move || of_writer.writer(0).write(&packet(0)).unwrap());
        let is_writing = || ring.writing[0].load(Ordering::Acquire) % 2 == 1;
        assert_eq!(reader.settle_pool(is_writing), 0);
        thread.join().unwrap();
    });
}
