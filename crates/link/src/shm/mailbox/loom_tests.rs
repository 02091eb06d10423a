//! The mailbox under loom: every interleaving of its atomics. Run with
//! `RUSTFLAGS="--cfg loom" cargo test -p tidegate-link --release --lib loom`.

use super::*;
use loom::sync::Arc;
use loom::thread;
use tidegate_flow::{PacketKind, PeerId};

/// A mailbox and `writing` words for two peers.
struct Shared {
    slots: Box<[Slot]>,
    pointers: Pointers,
    writing: [AtomicU64; 2],
}

// SAFETY: all fields are atomics.
unsafe impl Sync for Shared {}

impl Shared {
    fn new(size: usize) -> Arc<Self> {
        let word = || AtomicU64::new(0);
        let slot = || Slot { header: word(), payload: std::array::from_fn(|_| word()) };
        Arc::new(Shared {
            slots: (0..size).map(|_| slot()).collect(),
            pointers: Pointers { reserved: Alone(word()), retrieved: Alone(word()) },
            writing: [word(), word()],
        })
    }

    fn mailbox(&self) -> Mailbox {
        // SAFETY: every thread holds the `Arc` as long as its reader or writer.
        unsafe { Mailbox::new(NonNull::from(&*self.slots), NonNull::from(&self.pointers)) }
    }

    fn writer(&self, peer: u32, admission: Admission) -> Writer {
        // SAFETY: as in `mailbox`; each test makes one writer per peer.
        unsafe { Writer::new(self.mailbox(), NonNull::from(&self.writing[peer as usize]), PeerId(peer), admission) }
    }

    fn word(&self, peer: PeerId) -> Option<u64> {
        Some(self.writing[peer.0 as usize].load(Ordering::Acquire))
    }
}

/// A packet whose first and last words both say `number`, so that a torn one shows.
fn packet(number: u64) -> Packet {
    let mut packet = Packet::new(PacketKind::Data, PAYLOAD_BYTES, 0);
    packet.payload[..8].copy_from_slice(&number.to_ne_bytes());
    packet.payload[PAYLOAD_BYTES - 8..].copy_from_slice(&number.to_ne_bytes());
    packet
}

fn number(packet: &Packet) -> u64 {
    let words = packet.payload.as_chunks::<8>().0;
    assert_eq!(words[0], words[PAYLOAD_WORDS - 1], "torn packet");
    u64::from_ne_bytes(words[0])
}

fn model(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(test);
}

/// Retrieves until `count` packets came; checks that each sender's arrive in order, each once.
fn drain(reader: &mut Reader, count: usize) {
    let mut next = [0, 0];
    for _ in 0..count {
        let packet = loop {
            match reader.retrieve() {
                Some(packet) => break packet,
                None => thread::yield_now(),
            }
        };
        let source = packet.header.source().0 as usize;
        assert_eq!(number(&packet), next[source]);
        next[source] += 1;
    }
    assert!(reader.retrieve().is_none());
}

#[test]
fn loom_two_writers_who_hold_credits() {
    model(3, || {
        let shared = Shared::new(4);
        let threads = [0, 1].map(|peer| {
            let shared = shared.clone();
            thread::spawn(move || {
                let mut writer = shared.writer(peer, Admission::Credits);
                (0..2).for_each(|number| writer.write(&packet(number)).unwrap());
            })
        });
        drain(&mut Reader::new(shared.mailbox()), 4);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// No loops that wait for each other here: what is refused is given up, and what was accepted must come out, in order.
#[test]
fn loom_two_writers_wrap_a_ring_that_refuses_when_full() {
    model(3, || {
        let shared = Shared::new(2);
        let threads = [(0, 2), (1, 1)].map(|(peer, tries)| {
            let shared = shared.clone();
            thread::spawn(move || {
                let mut writer = shared.writer(peer, Admission::Room);
                let mut accepted = 0;
                (0..tries).for_each(|_| accepted += u64::from(writer.write(&packet(accepted)).is_ok()));
                accepted
            })
        });
        let mut reader = Reader::new(shared.mailbox());
        let mut next = [0, 0];
        let mut poll = |reader: &mut Reader| {
            let Some(packet) = reader.retrieve() else { return false };
            let source = packet.header.source().0 as usize;
            assert_eq!(number(&packet), next[source]);
            next[source] += 1;
            true
        };
        for _ in 0..2 {
            poll(&mut reader);
        }
        let accepted = threads.map(|thread| thread.join().unwrap());
        while poll(&mut reader) {}
        assert_eq!(next, accepted);
    });
}

/// A credit travels by another road than the slot: writer 1 gets the slot that writer 0's packet left, because writer
/// 0's next reservation came after the retrieval.
#[test]
fn loom_credits_of_one_writer_protect_the_slot_of_another() {
    model(3, || {
        let shared = Shared::new(2);
        let credits = Arc::new(AtomicU64::new(0));
        let mut first = shared.writer(0, Admission::Credits);
        let mut second = shared.writer(1, Admission::Credits);
        first.write(&packet(0)).unwrap();
        let (theirs, keep) = (credits.clone(), shared.clone());
        let one = thread::spawn(move || {
            while theirs.load(Ordering::Acquire) == 0 {
                thread::yield_now();
            }
            first.write(&packet(1)).unwrap();
            drop(keep);
        });
        let keep = shared.clone();
        let two = thread::spawn(move || {
            second.write(&packet(0)).unwrap();
            drop(keep);
        });
        let mut reader = Reader::new(shared.mailbox());
        assert_eq!(number(&reader.retrieve().unwrap()), 0);
        credits.store(1, Ordering::Release);
        let mut next = [1, 0];
        for _ in 0..2 {
            let packet = loop {
                match reader.retrieve() {
                    Some(packet) => break packet,
                    None => thread::yield_now(),
                }
            };
            let source = packet.header.source().0 as usize;
            assert_eq!(number(&packet), next[source]);
            next[source] += 1;
        }
        one.join().unwrap();
        two.join().unwrap();
    });
}

/// Writer 0 dies with a slot reserved; writer 1 lives. The hole is skipped, and never a slot of writer 1.
#[test]
fn loom_only_the_dead_writers_slot_is_skipped() {
    model(3, || {
        let shared = Shared::new(4);
        let dying = {
            let shared = shared.clone();
            thread::spawn(move || {
                let mut writer = shared.writer(0, Admission::Credits);
                writer.write(&packet(0)).unwrap();
                writer.reserve_and_die(1, &[]);
            })
        };
        let living = {
            let shared = shared.clone();
            thread::spawn(move || shared.writer(1, Admission::Credits).write(&packet(0)).unwrap())
        };
        let mut reader = Reader::new(shared.mailbox());
        dying.join().unwrap();
        let (mut got, mut skipped, mut hole) = (0, 0, None);
        while got + skipped < 3 {
            if let Some(packet) = reader.retrieve() {
                assert_eq!(number(&packet), 0);
                got += 1;
                continue;
            }
            let (peers, word) = ((0..2).map(PeerId), |peer| shared.word(peer));
            match Hole::examine(&mut reader, hole.take(), peers, word, |peer| peer == PeerId(1)) {
                Verdict::Skipped(_) => skipped += 1,
                Verdict::Wait(found) => hole = Some(found),
                Verdict::Clear => {}
            }
            thread::yield_now();
        }
        assert_eq!((got, skipped), (2, 1));
        living.join().unwrap();
    });
}

/// Numbers in the slots of a packet, which all belong together.
fn slots_of(reader: &mut Reader, first: &Packet) -> Vec<u64> {
    let mut following = [[0; PAYLOAD_BYTES]; 3];
    let count = first.header.slots() as usize;
    if count > 1 {
        assert!(reader.retrieve_following(first.header, &mut following).is_some(), "all is published or nothing");
    }
    let payloads = [first.payload].into_iter().chain(following).take(count);
    payloads.map(|payload| number(&Packet { header: first.header, payload })).collect()
}

/// Long packets of two writers, one of which goes round the end of the ring.
#[test]
fn loom_long_packets_are_seen_whole_or_not_at_all() {
    model(2, || {
        let shared = Shared::new(3);
        let threads = [0, 1].map(|peer| {
            let shared = shared.clone();
            thread::spawn(move || {
                let mut next = 0;
                let written = shared.writer(peer, Admission::Room).write_many(2, |places: &mut [Packet], placement| {
                    for place in places {
                        *place = packet(next).placed(placement);
                        next += 1;
                    }
                });
                u64::from(written)
            })
        });
        let mut reader = Reader::new(shared.mailbox());
        let mut came = [0, 0];
        let mut poll = |reader: &mut Reader| {
            let Some(first) = reader.retrieve() else { return false };
            let source = first.header.source().0 as usize;
            for number in slots_of(reader, &first) {
                assert_eq!(number, came[source]);
                came[source] += 1;
            }
            true
        };
        for _ in 0..2 {
            poll(&mut reader);
        }
        let written = threads.map(|thread| thread.join().unwrap());
        while poll(&mut reader) {}
        assert_eq!(came, written);
    });
}

/// Writer 0 dies within a packet of two slots: the first is a hole, and the second is not taken for a packet.
#[test]
fn loom_nothing_of_an_unpublished_long_packet_is_taken_for_a_packet() {
    model(2, || {
        let shared = Shared::new(4);
        let dying = {
            let shared = shared.clone();
            thread::spawn(move || shared.writer(0, Admission::Credits).die_within(2, &packet(7)))
        };
        let living = {
            let shared = shared.clone();
            thread::spawn(move || shared.writer(1, Admission::Credits).write(&packet(0)).unwrap())
        };
        let mut reader = Reader::new(shared.mailbox());
        dying.join().unwrap();
        let (mut got, mut dropped, mut skipped, mut hole) = (0, 0, 0, None);
        while got + dropped + skipped < 3 {
            if let Some(packet) = reader.retrieve() {
                if packet.header.follows() {
                    dropped += 1;
                } else {
                    assert_eq!(number(&packet), 0);
                    got += 1;
                }
                continue;
            }
            let (peers, word) = ((0..2).map(PeerId), |peer| shared.word(peer));
            match Hole::examine(&mut reader, hole.take(), peers, word, |peer| peer == PeerId(1)) {
                Verdict::Skipped(_) => skipped += 1,
                Verdict::Wait(found) => hole = Some(found),
                Verdict::Clear => {}
            }
            thread::yield_now();
        }
        assert_eq!((got, dropped, skipped), (1, 1, 1));
        living.join().unwrap();
    });
}

/// The claims of two peers, and the words of a pool.
struct SharedPool {
    words: PoolWords,
    claims: [AtomicU64; 2],
    writing: [AtomicU64; 2],
}

// SAFETY: all fields are atomics.
unsafe impl Sync for SharedPool {}

impl Claims for SharedPool {
    fn places(&self) -> u32 {
        2
    }

    fn read(&self, peer: PeerId) -> u64 {
        self.claims[peer.0 as usize].load(Ordering::Acquire)
    }

    fn change(&self, peer: PeerId, from: Claim, to: Claim) -> bool {
        change_claim(&self.claims[peer.0 as usize], from, to)
    }
}

impl SharedPool {
    fn new() -> Arc<Self> {
        let word = || AtomicU64::new(0);
        Arc::new(SharedPool { words: PoolWords::fresh(), claims: [word(), word()], writing: [word(), word()] })
    }

    fn pool(&self, window: u32) -> Pool {
        // SAFETY: each thread holds the `Arc` as long as its pool or taker.
        unsafe { Pool::new(NonNull::from(&self.words), window, 1, 4) }
    }

    fn taker(&self, peer: usize) -> Taker {
        // SAFETY: as for the pool.
        unsafe { Taker::of_pool(NonNull::from(&self.words), NonNull::from(&self.claims[peer]), 1) }
    }
}

/// Two writers take and claim buffers while the receiver keeps, posts and takes back: no buffer is lost or made.
#[test]
fn loom_buffers_of_a_pool_are_conserved_while_claims_are_made_and_served() {
    model(3, || {
        let shared = SharedPool::new();
        let mut pool = shared.pool(1);
        let threads = [0, 1].map(|peer| {
            let shared = shared.clone();
            thread::spawn(move || {
                let mut taker = shared.taker(peer);
                (0..2).map(|_| u64::from(taker.take())).sum::<u64>()
            })
        });
        // As though a message had come, if one was taken.
        pool.post_again(&*shared);
        pool.expire(tidegate_flow::Instant::default(), std::time::Duration::ZERO, &*shared);
        let taken: u64 = threads.map(|thread| thread.join().unwrap()).iter().sum();
        let processed = taken - pool.taken_for_tests(&*shared);
        assert!(processed <= 1, "one at most was processed");
        assert_eq!(shared.words.posted.load(Ordering::Acquire) + pool.spare_for_tests() + taken - processed, 2);
    });
}

/// A writer takes a buffer and publishes its message, or dies before that, while the receiver settles the pool: it
/// never takes a buffer for lost whose message is on its way.
#[test]
fn loom_a_pool_settles_only_what_no_message_will_come_for() {
    model(3, || {
        let shared = SharedPool::new();
        let messages = Arc::new(AtomicU64::new(0));
        let mut pool = shared.pool(1);
        let (theirs, of_writer) = (messages.clone(), shared.clone());
        let writer = thread::spawn(move || {
            of_writer.writing[0].store(1, Ordering::Relaxed);
            let is_there = of_writer.taker(0).take();
            if is_there {
                theirs.fetch_add(1, Ordering::AcqRel);
            }
            of_writer.writing[0].store(2, Ordering::Release);
        });
        let settled = pool.settle(&*shared, || {
            shared.writing[0].load(Ordering::Acquire) % 2 == 0 && messages.load(Ordering::Acquire) == 0
        });
        assert_eq!(settled, 0, "its message is there, or its word is odd");
        writer.join().unwrap();
    });
}
