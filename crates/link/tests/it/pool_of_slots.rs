//! One pool of slots over shared memory, at the link: senders that find none wait for an invitation, also while the
//! receiver sleeps and while other senders are away, and writers that are killed leave no slot missing.
//!
//! The seed is printed; `TIDEGATE_TEST_SEED` sets it, `TIDEGATE_TEST_KILLS` how many writers die (12).

use crate::support::*;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tidegate_flow::{Config, MOST_SLOTS_PER_PACKET, PAYLOAD_BYTES, Packet, PeerId, SchemeName};
use tidegate_link::{Address, ShmConfig, ShmLink};
use tidegate_message::{Arrival, Link, WriteError};

fn config(folder: &Folder, peers: u32, slots: u32) -> ShmConfig {
    let mut flow = Config::new(SchemeName::Speculative, peers, 16, 2);
    flow.buffers.pool_slots = slots;
    flow.buffers.packets = 1;
    ShmConfig { directory: folder.path().to_owned(), ..ShmConfig::new(flow) }
}

fn link(folder: &Folder, peers: u32, slots: u32) -> ShmLink {
    ShmLink::new(config(folder, peers, slots)).unwrap()
}

/// Writes packets with the numbers from `next` on, at most `most`, and returns how many there was room for.
fn write_some(link: &mut ShmLink, to: PeerId, next: u64, most: u32) -> u32 {
    let mut number = next;
    let written = link.write(to, most, |places: &mut [Packet], placement| {
        for place in places {
            *place = packet(number).placed(placement);
            number += 1;
        }
    });
    match written {
        Ok(written) => written,
        Err(WriteError::Full) => 0,
        Err(other) => panic!("{other:?}"),
    }
}

/// The numbers of the next packet, and its sender.
fn take(link: &mut ShmLink) -> Option<(PeerId, Vec<u64>)> {
    let Arrival { source, packet } = link.retrieve()?;
    let mut following = [[0; PAYLOAD_BYTES]; MOST_SLOTS_PER_PACKET as usize];
    let slots = packet.header.slots() as usize;
    if slots > 1 {
        link.retrieve_following(&packet.header, &mut following).expect("it is published as a whole");
    }
    let payloads = [packet.payload].into_iter().chain(following).take(slots);
    Some((source, payloads.map(|payload| number_in(&payload)).collect()))
}

/// The number that each sender is to send next.
#[derive(Default)]
struct Seen(HashMap<PeerId, u64>);

impl Seen {
    /// Retrieves a packet, if one is there, and checks the order. Returns the number of slots.
    fn take(&mut self, link: &mut ShmLink) -> u64 {
        let Some((source, numbers)) = take(link) else { return 0 };
        let next = self.0.entry(source).or_insert(0);
        for &number in &numbers {
            assert_eq!(number, *next, "{source:?}: a packet was lost, or came twice");
            *next += 1;
        }
        numbers.len() as u64
    }
}

#[test]
fn a_pool_is_full_when_all_its_slots_are_and_has_room_when_they_were_retrieved() {
    let folder = Folder::new();
    let (mut reader, mut one, mut two) = (link(&folder, 2, 10), link(&folder, 2, 10), link(&folder, 2, 10));
    let [to, of_two] = [&mut one, &mut two].map(|link| link.peer(&reader.address()).unwrap());
    assert_eq!([3, 100].map(|most| write_some(&mut one, to, 0, most)), [3, 7]);
    assert_eq!(write_some(&mut two, of_two, 0, 2), 0);
    assert_eq!(take(&mut reader).map(|(_, numbers)| numbers.len()), Some(3));
    assert_eq!(write_some(&mut one, to, 0, 5), 1, "the other has waited, for two of the three");
    assert_eq!(write_some(&mut two, of_two, 0, 5), 2);
}

/// Neither stops the other, whatever the size of their pools. A pool of one slot takes a turn of the other for each
/// packet, of which a machine that is busy with other things has some hundred in a second.
#[test]
fn two_links_that_flood_each_other_go_on() {
    for slots in [1, 2, 3, 64] {
        let most = u64::from(slots).min(20) * 1_000;
        let folder = Folder::new();
        let flood = |mut link: ShmLink, to: Address| {
            let to = peer_of(&mut link, &to);
            let (mut sent, mut came, mut seen) = (0, 0, Seen::default());
            let mut moved = Instant::now();
            while sent < most || came < most {
                let written = write_some(&mut link, to, sent, (most - sent).min(7) as u32);
                let retrieved = seen.take(&mut link);
                (sent, came) = (sent + u64::from(written), came + retrieved);
                if written == 0 && retrieved == 0 {
                    link.idle().yield_if_asked();
                } else {
                    link.busy();
                    moved = Instant::now();
                }
                assert!(moved.elapsed() < TEST_TIMEOUT, "{slots} slots: {sent} sent, {came} came");
            }
            link
        };
        let (first, second) = (link(&folder, 1, slots), link(&folder, 1, slots));
        let [of_first, of_second] = [&first, &second].map(ShmLink::address);
        let ends = std::thread::scope(|scope| {
            let other = scope.spawn(|| flood(second, of_first));
            (flood(first, of_second), other.join().unwrap())
        });
        drop(ends);
    }
}

/// All get through, and none is far ahead of the others while all want to send.
#[test]
fn many_senders_share_a_pool_of_few_slots_in_turn() {
    const SENDERS: u32 = 8;
    for slots in [1, 2, 40] {
        let folder = Folder::new();
        let mut reader = link(&folder, SENDERS, slots);
        let mut senders: Vec<(ShmLink, PeerId, u64)> = (0..SENDERS)
            .map(|_| {
                let mut link = link(&folder, SENDERS, slots);
                let to = link.peer(&reader.address()).unwrap();
                (link, to, 0)
            })
            .collect();
        let mut seen = Seen::default();
        for _ in 0..2000 {
            for (link, to, next) in &mut senders {
                *next += u64::from(write_some(link, *to, *next, 3));
            }
            seen.take(&mut reader);
            assert!(reader.poll_event().is_none());
        }
        let (least, most) = (seen.0.values().min().unwrap(), seen.0.values().max().unwrap());
        assert!(seen.0.len() == SENDERS as usize && most - least <= 40, "{slots}: {:?}", seen.0);
    }
}

/// The sender that is away has been invited, and does not come while the other sends.
#[test]
fn slots_that_are_kept_for_a_sender_that_is_away_go_to_others_and_it_is_served_when_it_comes() {
    let folder = Folder::new();
    let (mut reader, mut away, mut busy) = (link(&folder, 2, 1), link(&folder, 2, 1), link(&folder, 2, 1));
    let [of_away, of_busy] = [&mut away, &mut busy].map(|link| link.peer(&reader.address()).unwrap());
    let (mut gone, mut sent, start) = (0, 0, Instant::now());
    for round in 0..20 {
        // It comes once in a while, for a moment, and once more: it is marked, or has a slot.
        gone += u64::from(write_some(&mut away, of_away, gone, 1));
        let until = Instant::now() + Duration::from_millis(5);
        while Instant::now() < until {
            sent += u64::from(write_some(&mut busy, of_busy, sent, 1));
            match take(&mut reader) {
                Some(_) => reader.busy(),
                None => reader.idle().yield_if_asked(),
            }
        }
        assert!(sent > round && start.elapsed() < TEST_TIMEOUT, "round {round}: {sent} got through");
    }
    assert!(gone >= 4, "it was served {gone} times of 20");
    assert!(sent > 1000, "the other got {sent} through");
}

fn is_readable(descriptor: std::os::fd::RawFd, milliseconds: i32) -> bool {
    let mut wait = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, alive through the call.
    unsafe { libc::poll(&mut wait, 1, milliseconds) == 1 }
}

/// One retrieved slot is less than a batch.
#[test]
fn a_receiver_gives_all_slots_back_before_it_sleeps() {
    let folder = Folder::new();
    let mut reader = ShmLink::new(ShmConfig { wakes: true, ..config(&folder, 1, 16) }).unwrap();
    let mut writer = link(&folder, 1, 16);
    let to = writer.peer(&reader.address()).unwrap();
    reader.wake_fd().unwrap();
    assert_eq!(write_some(&mut writer, to, 0, 1), 1);
    take(&mut reader).unwrap();
    assert!(take(&mut reader).is_none() && reader.arm());
    assert_eq!(write_some(&mut writer, to, 0, 100), 16);
}

/// The only slot is kept for a sender that is away, and the receiver sleeps: it has to wake for the other's mark, and
/// then by its own clock.
#[test]
fn a_receiver_that_sleeps_takes_back_what_it_keeps_for_a_sender_that_is_away() {
    let folder = Folder::new();
    let mut reader = ShmLink::new(ShmConfig { wakes: true, ..config(&folder, 2, 1) }).unwrap();
    let (mut away, mut other) = (link(&folder, 2, 1), link(&folder, 2, 1));
    let [of_away, of_other] = [&mut away, &mut other].map(|link| link.peer(&reader.address()).unwrap());
    let descriptor = reader.wake_fd().unwrap();
    assert_eq!([(); 2].map(|()| write_some(&mut away, of_away, 0, 1)), [1, 0]);
    take(&mut reader).unwrap();
    assert!(take(&mut reader).is_none() && reader.arm(), "the slot is kept for the sender that has just written");
    assert_eq!(write_some(&mut other, of_other, 0, 1), 0);
    assert!(is_readable(descriptor, 10_000), "the mark wakes the receiver");
    let (mut wakes, start) = (0, Instant::now());
    loop {
        assert!(take(&mut reader).is_none());
        if write_some(&mut other, of_other, 0, 1) == 1 {
            break;
        }
        assert!(reader.arm() && is_readable(descriptor, 10_000));
        wakes += 1;
    }
    assert!(wakes <= 5 && start.elapsed() < Duration::from_millis(300), "{wakes} wakes, {:?}", start.elapsed());
    take(&mut reader).unwrap();
    assert_eq!(write_some(&mut away, of_away, 1, 1), 1);
}

const WRITERS: u32 = 2;
/// Turns of waiting in front of each packet: a writer that is killed has mostly taken slots.
const SLOWNESS: u32 = 300;
const SLOTS: u32 = 5;

#[test]
#[ignore = "a process of another test: writes until it is killed"]
fn role_floods() {
    let folder = role_folder();
    let mut link = link(&folder, WRITERS + 1, SLOTS);
    let to = link.peer(&role_address()).unwrap();
    let mut next = 0;
    for round in 0.. {
        let mut number = next;
        let written = link.write(to, 1 + round % 8, |places: &mut [Packet], placement| {
            for place in places {
                (0..SLOWNESS).for_each(|_| std::hint::spin_loop());
                *place = packet(number).placed(placement);
                number += 1;
            }
        });
        match written {
            Ok(written) => next += u64::from(written),
            Err(_) => link.idle().yield_if_asked(),
        }
    }
}

/// The receiver of the test below.
struct Reader {
    link: ShmLink,
    seen: Seen,
}

impl Reader {
    fn drain(&mut self, packets: u64) {
        for _ in 0..packets {
            if self.seen.take(&mut self.link) == 0 {
                self.link.idle().yield_if_asked();
            } else {
                self.link.busy();
            }
        }
    }

    /// Goes on reading until this number of writers have been heard of.
    fn await_writers(&mut self, count: usize) {
        let start = Instant::now();
        while self.seen.0.len() < count {
            self.drain(64);
            assert!(poll_departure(&mut self.link).is_none(), "no writer has been killed");
            assert!(start.elapsed() < TEST_TIMEOUT, "a writer does not get through");
        }
    }

    /// Goes on reading until a death is noticed, and forgets the dead writer.
    fn await_end(&mut self) {
        let start = Instant::now();
        loop {
            self.drain(16);
            if let Some(left) = poll_departure(&mut self.link) {
                self.link.release(left.peer);
                self.seen.0.remove(&left.peer);
                return;
            }
            assert!(start.elapsed() < TEST_TIMEOUT, "the reader is stuck, or the death is not noticed");
        }
    }
}

/// A random number below a bound.
fn below(random: &mut u64, bound: u64) -> u64 {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*random >> 33) % bound
}

#[test]
fn no_slot_is_missing_whatever_moment_writers_die_at() {
    let variable = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let mut random = variable("TIDEGATE_TEST_SEED").unwrap_or(u64::from(std::process::id()));
    let kills = variable("TIDEGATE_TEST_KILLS").unwrap_or(12);
    println!("TIDEGATE_TEST_SEED={random}");
    let folder = Folder::new();
    // A third place is for the sender that counts at the end.
    let mut reader = Reader { link: link(&folder, WRITERS + 1, SLOTS), seen: Seen::default() };
    let start = |reader: &Reader| Process::start("pool_of_slots::role_floods", &folder, reader.link.address());
    let mut writers: Vec<Process> = (0..WRITERS).map(|_| start(&reader)).collect();
    for _ in 0..kills {
        reader.await_writers(WRITERS as usize);
        let mut victim = writers.swap_remove(below(&mut random, WRITERS.into()) as usize);
        reader.drain(below(&mut random, 5_000));
        victim.0.kill().unwrap();
        reader.await_end();
        drop(victim);
        writers.push(start(&reader));
    }
    reader.await_writers(WRITERS as usize);
    for writer in writers {
        writer.kill();
        reader.await_end();
    }
    let mut last = link(&folder, WRITERS + 1, SLOTS);
    let to = last.peer(&reader.link.address()).unwrap();
    let begun = Instant::now();
    let mut next = 0;
    loop {
        // While the reader does nothing, slots that are taken stay taken.
        let mut taken = 0;
        for _ in 0..3 {
            taken += write_some(&mut last, to, next + u64::from(taken), 2 * SLOTS);
        }
        next += u64::from(taken);
        assert!(taken <= SLOTS, "none too many");
        if taken == SLOTS {
            return;
        }
        assert!(begun.elapsed() < TEST_TIMEOUT, "{} slots are missing", SLOTS - taken);
        reader.drain(8);
        assert!(poll_departure(&mut reader.link).is_none(), "all others are gone");
    }
}
