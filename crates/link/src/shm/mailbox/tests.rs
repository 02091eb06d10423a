//! The mailbox in one process, small enough for miri:
//! `cargo +nightly miri test -p tidegate-link --lib mailbox`.

use super::lap::Lap;
use super::writer::{Full, LONGEST_PACKET};
use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use tidegate_flow::packet::MOST_SLOTS_PER_PACKET;
use tidegate_flow::{PacketKind, PeerId};

/// A mailbox in ordinary memory, with `writing` words.
pub(super) struct Shared {
    slots: Box<[Slot]>,
    pointers: Pointers,
    writing: Box<[AtomicU64]>,
}

impl Shared {
    pub fn new(size: usize, peers: usize) -> Self {
        let word = || AtomicU64::new(0);
        let slot = || Slot { header: word(), payload: std::array::from_fn(|_| word()) };
        Shared {
            slots: (0..size).map(|_| slot()).collect(),
            pointers: Pointers { reserved: Alone(word()), retrieved: Alone(word()) },
            writing: (0..peers).map(|_| word()).collect(),
        }
    }

    pub fn mailbox(&self) -> Mailbox {
        // SAFETY: every test keeps `self` until its readers and writers are gone.
        unsafe { Mailbox::new(NonNull::from(&*self.slots), NonNull::from(&self.pointers)) }
    }

    pub fn writer(&self, peer: u32, admission: Admission) -> Writer {
        // SAFETY: as in `mailbox`; tests make one writer at a time per peer.
        unsafe { Writer::new(self.mailbox(), NonNull::from(&self.writing[peer as usize]), PeerId(peer), admission) }
    }

    fn peers(&self) -> impl Iterator<Item = PeerId> {
        (0..self.writing.len() as u32).map(PeerId)
    }

    pub fn set_word(&self, peer: PeerId, word: u64) {
        self.writing[peer.0 as usize].store(word, Ordering::Release);
    }

    pub fn word(&self, peer: PeerId) -> Option<u64> {
        Some(self.writing[peer.0 as usize].load(Ordering::Acquire))
    }

    fn examine(&self, reader: &mut Reader, before: Option<Hole>, alive: &[u32]) -> Verdict {
        Hole::examine(reader, before, self.peers(), |peer| self.word(peer), |peer| alive.contains(&peer.0))
    }
}

/// A packet that carries `number`, with a length that depends on it.
fn packet(number: u64) -> Packet {
    let mut packet = Packet::new(PacketKind::Data, 8 + number as usize % 49, number as u8);
    packet.payload[..8].copy_from_slice(&number.to_le_bytes());
    packet.payload[8..].fill(number as u8);
    packet
}

/// The number of a packet of [`packet`], after checking that all of it belongs together.
fn number(packet: &Packet) -> u64 {
    let number = u64::from_le_bytes(*packet.payload.first_chunk().unwrap());
    assert_eq!(packet.header.length(), 8 + number as usize % 49);
    assert_eq!(packet.header.message(), number as u8);
    assert!(packet.payload[8..].iter().all(|byte| *byte == number as u8), "torn packet");
    number
}

#[test]
fn slots_are_cache_lines_and_pointers_keep_apart() {
    assert_eq!(size_of::<Slot>(), 64);
    assert_eq!(size_of::<Pointers>(), 256);
}

#[test]
fn packets_come_out_as_they_went_in() {
    let shared = Shared::new(3, 2);
    let (mut zero, mut one) = (shared.writer(0, Admission::Credits), shared.writer(1, Admission::Credits));
    let mut reader = Reader::new(shared.mailbox());
    assert!(reader.retrieve().is_none());
    for lap in 0..100 {
        zero.write(&packet(2 * lap)).unwrap();
        one.write(&packet(2 * lap + 1)).unwrap();
        for source in 0..2 {
            let packet = reader.retrieve().unwrap();
            assert_eq!((packet.header.source(), number(&packet)), (PeerId(source), 2 * lap + u64::from(source)));
        }
        assert!(reader.retrieve().is_none());
    }
}

#[test]
fn a_piggybacked_count_travels_behind_a_short_payload() {
    let shared = Shared::new(2, 1);
    let mut sent = Packet::new(PacketKind::Data, 3, 7);
    sent.set_piggyback(517);
    shared.writer(0, Admission::Credits).write(&sent).unwrap();
    assert_eq!(Reader::new(shared.mailbox()).retrieve().unwrap().piggyback(), Some(517));
}

#[test]
fn a_full_ring_refuses_and_takes_packets_again_once_it_ran_empty() {
    let shared = Shared::new(8, 1);
    let mut writer = shared.writer(0, Admission::Room);
    let mut reader = Reader::new(shared.mailbox());
    for round in 0..5 {
        (0..8).for_each(|at| writer.write(&packet(8 * round + at)).unwrap());
        assert_eq!(writer.write(&packet(0)), Err(Full));
        assert_eq!(reader.backlog(), Ok(8));
        (0..8).for_each(|at| assert_eq!(number(&reader.retrieve().unwrap()), 8 * round + at));
        assert!(reader.retrieve().is_none());
    }
    assert_eq!(shared.word(PeerId(0)).unwrap() % 2, 0, "a refused packet must not look like one being written");
}

#[test]
fn room_shows_in_quarters_of_the_ring() {
    let shared = Shared::new(8, 1);
    let mut writer = shared.writer(0, Admission::Room);
    let mut reader = Reader::new(shared.mailbox());
    (0..8).for_each(|at| writer.write(&packet(at)).unwrap());
    reader.retrieve().unwrap();
    assert_eq!(writer.write(&packet(8)), Err(Full));
    reader.retrieve().unwrap();
    assert_eq!(writer.write(&packet(8)), Ok(()));
}

#[test]
fn stamps_never_are_zero_and_run_through_all_others() {
    let mut stamp = stamp_of(0);
    for lap in 1..200_000 {
        stamp = stamp_after(stamp);
        assert_eq!(stamp, stamp_of(lap));
        assert_ne!(stamp, 0);
    }
}

#[test]
fn tickets_are_found_near_and_far() {
    for size in [1, 2, 7, 64] {
        let mut lap = Lap::first();
        let mut ticket = 0;
        for step in [0, 1, 1, 3, 64, 65, 1000, 7, 1, 65_535 * 64, 1] {
            ticket += step;
            assert_eq!(lap.locate(ticket, size), ((ticket % size) as usize, stamp_of(ticket / size)));
        }
        assert_eq!(
            lap.locate(3, size),
            ((3 % size) as usize, stamp_of(3 / size)),
            "a pointer that went back stays inside"
        );
    }
}

#[test]
fn many_writers_and_one_reader_lose_nothing() {
    let (writers, each) = if cfg!(miri) { (3, 20) } else { (4, 50_000) };
    let shared = Shared::new(if cfg!(miri) { 4 } else { 64 }, writers);
    thread::scope(|scope| {
        for peer in 0..writers {
            let mut writer = shared.writer(peer as u32, Admission::Room);
            scope.spawn(move || {
                for at in 0..each {
                    while writer.write(&packet(at)).is_err() {
                        thread::yield_now();
                    }
                }
            });
        }
        let mut reader = Reader::new(shared.mailbox());
        let mut next = vec![0; writers];
        while next.iter().any(|next| *next < each) {
            match reader.retrieve() {
                Some(packet) => {
                    let next = &mut next[packet.header.source().0 as usize];
                    assert_eq!(number(&packet), *next);
                    *next += 1;
                }
                None => thread::yield_now(),
            }
        }
        assert!(reader.retrieve().is_none());
    });
}

// SAFETY: writers move to other threads, where their pointers, into `Shared`, stay valid; all they point to is atomic.
unsafe impl Send for Writer {}

#[test]
fn a_dead_writers_hole_is_skipped_and_the_ring_goes_on() {
    let shared = Shared::new(4, 2);
    let mut reader = Reader::new(shared.mailbox());
    shared.writer(0, Admission::Credits).reserve_and_die(1, &[]);
    let mut living = shared.writer(1, Admission::Credits);
    living.write(&packet(5)).unwrap();
    assert!(reader.retrieve().is_none());
    assert!(matches!(shared.examine(&mut reader, None, &[1]), Verdict::Skipped(_)));
    assert_eq!(number(&reader.retrieve().unwrap()), 5);
    for at in 0..20 {
        living.write(&packet(at)).unwrap();
        assert_eq!(number(&reader.retrieve().unwrap()), at, "the lap after a hole is counted right");
    }
    // Whoever takes the dead writer's place starts with an even number again.
    shared.writer(0, Admission::Credits).write(&packet(9)).unwrap();
    assert_eq!(number(&reader.retrieve().unwrap()), 9);
    assert!(shared.peers().all(|peer| shared.word(peer).unwrap().is_multiple_of(2)));
}

/// Writes numbers as one message; returns how many slots there were.
pub(super) fn write_numbers(writer: &mut Writer, mut numbers: impl Iterator<Item = u64>, count: u32) -> u32 {
    writer.write_many(count, |places: &mut [Packet], placement| {
        places.iter_mut().for_each(|place| *place = full(numbers.next().unwrap()).placed(placement));
    })
}

/// A packet that carries `number` and is full.
pub(super) fn full(number: u64) -> Packet {
    let mut packet = Packet::new(PacketKind::Data, PAYLOAD_BYTES, 1);
    packet.payload.as_chunks_mut::<8>().0.fill(number.to_le_bytes());
    packet
}

/// The numbers in the slots of the next packet.
pub(super) fn numbers(reader: &mut Reader) -> Option<Vec<u64>> {
    numbers_of(reader).map(|(_, numbers)| numbers)
}

/// The same, and who sent them.
fn numbers_of(reader: &mut Reader) -> Option<(PeerId, Vec<u64>)> {
    let first = reader.retrieve()?;
    let mut following = [[0; PAYLOAD_BYTES]; MOST_SLOTS_PER_PACKET as usize - 1];
    let count = first.header.slots() as usize - 1;
    if count > 0 {
        let last = reader.retrieve_following(first.header, &mut following).expect("a correct writer's");
        assert_eq!(last.payload, following[count - 1]);
    }
    let payloads = [first.payload].into_iter().chain(following).take(count + 1);
    let number = |payload: [u8; PAYLOAD_BYTES]| {
        let words = payload.as_chunks::<8>().0;
        assert!(words.iter().all(|word| *word == words[0]), "torn slot");
        u64::from_le_bytes(words[0])
    };
    Some((first.header.source(), payloads.map(number).collect()))
}

#[test]
fn two_slots_are_two_packets_and_three_are_one() {
    let shared = Shared::new(8, 1);
    let (mut reader, mut writer) = (Reader::new(shared.mailbox()), shared.writer(0, Admission::Credits));
    assert_eq!([write_numbers(&mut writer, 0.., 2), write_numbers(&mut writer, 2.., 3)], [2, 3]);
    assert_eq!([(); 3].map(|()| numbers(&mut reader)), [vec![0], vec![1], vec![2, 3, 4]].map(Some));
}

#[test]
fn long_packets_come_out_whole_wherever_the_ring_ends() {
    for size in [17, 20, 33] {
        let shared = Shared::new(size, 1);
        let (mut reader, mut writer) = (Reader::new(shared.mailbox()), shared.writer(0, Admission::Credits));
        let (mut next, mut lengths) = (0, Vec::new());
        for count in (1..=size as u32).cycle().take(200) {
            assert_eq!(write_numbers(&mut writer, next.., count), count);
            let end = next + u64::from(count);
            while next < end {
                let numbers = numbers(&mut reader).expect("all are published");
                assert_eq!(numbers, (next..next + numbers.len() as u64).collect::<Vec<_>>());
                lengths.push(numbers.len());
                next += numbers.len() as u64;
            }
            assert!(reader.retrieve().is_none());
        }
        assert_eq!(lengths.iter().max(), Some(&(LONGEST_PACKET as usize)));
    }
}

#[test]
fn without_credits_a_long_packet_is_as_long_as_there_is_room() {
    let shared = Shared::new(8, 1);
    let (mut reader, mut writer) = (Reader::new(shared.mailbox()), shared.writer(0, Admission::Room));
    assert_eq!(write_numbers(&mut writer, 0.., 5), 5);
    assert_eq!(write_numbers(&mut writer, 5.., 5), 3);
    assert_eq!(write_numbers(&mut writer, 8.., 5), 0);
    assert_eq!(numbers(&mut reader), Some(vec![0, 1, 2, 3, 4]));
    // The reader has published its position behind the long packet.
    assert_eq!(write_numbers(&mut writer, 8.., 9), 5);
    assert_eq!([(); 2].map(|()| numbers(&mut reader)), [Some(vec![5, 6, 7]), Some(vec![8, 9, 10, 11, 12])]);
}

#[test]
fn a_writer_that_dies_within_a_long_packet_leaves_one_hole_and_slots_that_nobody_takes_for_packets() {
    for size in [8, 6] {
        let shared = Shared::new(size, 2);
        let mut reader = Reader::new(shared.mailbox());
        let mut living = shared.writer(1, Admission::Credits);
        living.write(&full(1)).unwrap();
        shared.writer(0, Admission::Credits).die_within(4, &full(2));
        assert_eq!(numbers(&mut reader), Some(vec![1]));
        assert_eq!(write_numbers(&mut living, 3.., 3), 3);
        assert!(reader.retrieve().is_none());
        assert!(matches!(shared.examine(&mut reader, None, &[1]), Verdict::Skipped(_)));
        // The endpoint drops what follows nothing.
        assert!([(); 3].iter().all(|()| reader.retrieve().unwrap().header.follows()));
        assert_eq!(numbers(&mut reader), Some(vec![3, 4, 5]));
        assert!(reader.retrieve().is_none());
    }
}

#[test]
fn many_writers_of_long_packets_and_one_reader_lose_nothing() {
    let (writers, each, size, longest) = if cfg!(miri) { (2, 40, 8, 6) } else { (4, 100_000, 64, 40) };
    let shared = Shared::new(size, writers);
    thread::scope(|scope| {
        for peer in 0..writers {
            let mut writer = shared.writer(peer as u32, Admission::Room);
            scope.spawn(move || {
                let (mut next, mut wanted) = (0, peer as u32);
                while next < each {
                    wanted = wanted % longest + 1;
                    match write_numbers(&mut writer, next.., wanted.min((each - next) as u32)) {
                        0 => thread::yield_now(),
                        written => next += u64::from(written),
                    }
                }
            });
        }
        let mut reader = Reader::new(shared.mailbox());
        let mut next = vec![0; writers];
        while next.iter().any(|next| *next < each) {
            let Some((source, numbers)) = numbers_of(&mut reader) else {
                thread::yield_now();
                continue;
            };
            let next = &mut next[source.0 as usize];
            for number in numbers {
                assert_eq!(number, *next);
                *next += 1;
            }
        }
        assert!(reader.retrieve().is_none());
    });
}

#[test]
fn a_packet_that_says_more_slots_than_it_has_takes_none_of_others() {
    let shared = Shared::new(8, 2);
    let mut reader = Reader::new(shared.mailbox());
    let (mut hostile, mut honest) = (shared.writer(0, Admission::Credits), shared.writer(1, Admission::Credits));
    let mut lie = full(1);
    lie.header = lie.header.with_slots(3);
    hostile.write(&lie).unwrap();
    honest.write(&full(2)).unwrap();
    write_numbers(&mut honest, 3.., 3);
    let first = reader.retrieve().unwrap();
    let mut following = [[0; PAYLOAD_BYTES]; MOST_SLOTS_PER_PACKET as usize - 1];
    assert!(reader.retrieve_following(first.header, &mut following).is_none());
    assert!(reader.retrieve_following(first.header, &mut following[..1]).is_none(), "there is no room for them");
    assert_eq!([(); 2].map(|()| numbers(&mut reader)), [Some(vec![2]), Some(vec![3, 4, 5])]);
    // Nor does one that follows a slot that is not full, or slots of the lap before.
    let mut short = packet(48);
    short.header = short.header.with_slots(2);
    hostile.write(&short).unwrap();
    let first = reader.retrieve().unwrap();
    assert!(reader.retrieve_following(first.header, &mut following).is_none());
}

#[test]
fn a_writer_that_dies_amid_a_message_leaves_a_hole_for_each_packet_it_did_not_write() {
    let shared = Shared::new(8, 2);
    let mut reader = Reader::new(shared.mailbox());
    let mut living = shared.writer(1, Admission::Credits);
    living.write(&full(1)).unwrap();
    shared.writer(0, Admission::Credits).reserve_and_die(4, &[full(2)]);
    assert_eq!(write_numbers(&mut living, 3.., 3), 3);
    assert_eq!([(); 2].map(|()| numbers(&mut reader)), [Some(vec![1]), Some(vec![2])]);
    for _ in 0..3 {
        assert!(reader.retrieve().is_none());
        assert!(matches!(shared.examine(&mut reader, None, &[1]), Verdict::Skipped(_)));
    }
    assert_eq!(numbers(&mut reader), Some(vec![3, 4, 5]));
}

#[test]
fn a_writer_that_panics_amid_a_message_holds_nobody_up() {
    let longest = LONGEST_PACKET;
    // Slots of the message, the slot at which it panics, slots of whole packets before.
    let cases = [(1, 0, 0), (2, 1, 1), (5, 0, 0), (5, 1, 0), (5, 4, 0)];
    let cases = cases.into_iter().chain([(longest + 5, longest, longest), (longest + 5, longest + 4, longest)]);
    for (count, panics_at, whole) in cases {
        // The second round wraps.
        let shared = Shared::new(longest as usize + 8, 2);
        let mut reader = Reader::new(shared.mailbox());
        let (mut broken, mut other) = (shared.writer(0, Admission::Credits), shared.writer(1, Admission::Credits));
        for _ in 0..2 {
            let mut filled = 0;
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                broken.write_many(count, |places: &mut [Packet], placement| {
                    for place in places {
                        assert!(filled < panics_at, "as it was asked to");
                        *place = full(filled.into()).placed(placement);
                        filled += 1;
                    }
                })
            }));
            assert!(panicked.is_err());
            assert_eq!(write_numbers(&mut other, 100.., 3), 3);
            // Nothing waits, packets before the one in which it panicked are whole, and nothing of that one is there.
            let (mut slots, mut following) = ([0, 0], [[0; PAYLOAD_BYTES]; MOST_SLOTS_PER_PACKET as usize - 1]);
            while let Some(first) = reader.retrieve() {
                if !first.header.follows() {
                    slots[first.header.source().0 as usize] += first.header.slots();
                    let rest = reader.retrieve_following(first.header, &mut following);
                    assert_eq!(rest.is_some(), first.header.slots() > 1);
                }
            }
            assert_eq!(slots, [whole, 3], "{count} slots, a panic at {panics_at}");
            assert_eq!(reader.backlog(), Ok(0));
            assert!(matches!(shared.examine(&mut reader, None, &[0, 1]), Verdict::Clear));
            assert!(shared.word(PeerId(0)).unwrap().is_multiple_of(2));
        }
    }
}

#[test]
fn all_slots_of_a_dead_writer_take_one_look_at_the_words_of_all_writers() {
    let shared = Shared::new(8, 3);
    let mut reader = Reader::new(shared.mailbox());
    let (mut looks, mut skipped, mut hole) = (0, 0, None);
    for last in [5, 2 * 5] {
        shared.writer(0, Admission::Credits).reserve_and_die(5, &[]);
        loop {
            let writers = shared.peers().inspect(|_| looks += 1);
            match Hole::examine(&mut reader, hole.take(), writers, |peer| shared.word(peer), |_| false) {
                Verdict::Skipped(behind) => (skipped, hole) = (skipped + 1, Some(behind)),
                Verdict::Clear => break,
                Verdict::Wait(hole) => panic!("nobody lives: {hole:?}"),
            }
        }
        assert_eq!(skipped, last);
    }
    assert_eq!(looks, 2 * 3, "once for each death");
}

#[test]
fn a_living_suspect_is_waited_for_until_its_word_moves() {
    let shared = Shared::new(4, 2);
    let mut reader = Reader::new(shared.mailbox());
    shared.writer(0, Admission::Credits).reserve_and_die(1, &[]);
    // Peer 1 is alive and in the middle of another packet, for all that the reader can see.
    shared.writing[1].store(41, Ordering::Release);
    let Verdict::Wait(hole) = shared.examine(&mut reader, None, &[1]) else { panic!("peer 1 may own the hole") };
    let Verdict::Wait(hole) = shared.examine(&mut reader, Some(hole), &[1]) else { panic!("nothing has changed") };
    // In the middle of the next packet: still odd, but it has published what it reserved before.
    shared.writing[1].store(43, Ordering::Release);
    assert!(matches!(shared.examine(&mut reader, Some(hole), &[1]), Verdict::Skipped(_)));
}

#[test]
fn no_hole_is_seen_where_nothing_is_reserved_or_all_is_published() {
    let shared = Shared::new(4, 1);
    let mut reader = Reader::new(shared.mailbox());
    assert!(matches!(shared.examine(&mut reader, None, &[]), Verdict::Clear));
    shared.writer(0, Admission::Credits).write(&packet(1)).unwrap();
    assert!(matches!(shared.examine(&mut reader, None, &[]), Verdict::Clear));
    assert_eq!(number(&reader.retrieve().unwrap()), 1);
}

#[test]
fn a_wild_write_pointer_is_noticed_and_leads_nowhere() {
    let shared = Shared::new(4, 1);
    let mut reader = Reader::new(shared.mailbox());
    shared.pointers.reserved.0.store(u64::MAX - 1, Ordering::Release);
    assert_eq!(reader.backlog(), Err(WildPointer));
    assert_eq!(reader.end(), 0);
    assert!(reader.retrieve().is_none());
    shared.writer(0, Admission::Credits).write(&packet(1)).unwrap();
    assert!(matches!(shared.examine(&mut reader, None, &[]), Verdict::Skipped(_)));
    assert_eq!(reader.position(), 1);
}
