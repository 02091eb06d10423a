//! Posted buffers over shared memory, at the link: refusals, the pool's event, and writers that are killed at random
//! while they take buffers and fill them. Whatever moment they die at, no buffer is missing in the end.
//!
//! The seed is printed; `TIDEGATE_TEST_SEED` sets it, `TIDEGATE_TEST_KILLS` how many writers die (20 for each scheme).

use crate::support::*;
use std::collections::HashMap;
use tidegate_flow::{Config, MOST_SLOTS_PER_PACKET, PAYLOAD_BYTES, Packet, PeerId, Posting, SchemeName};
use tidegate_link::{ShmConfig, ShmLink};
use tidegate_message::{Arrival, Departure, Link, LinkEvent, WriteError};

const WRITERS: u32 = 2;
/// Turns of waiting in front of each packet, of those who are killed: they are amid a write nearly all the time.
const SLOWNESS: u32 = 500;
/// Packets of a buffer here.
const PACKETS: u32 = 8;
/// Buffers of a connection, or of the pool.
const BUFFERS: u32 = 3;

fn link(folder: &Folder, scheme: SchemeName, peers: u32) -> ShmLink {
    let mut flow = Config::new(scheme, peers, 16, 2);
    flow.buffers.packets = PACKETS;
    flow.buffers.per_connection = BUFFERS;
    (flow.buffers.pool_first, flow.buffers.pool_most) = (BUFFERS, BUFFERS);
    let directory = folder.path().to_owned();
    ShmLink::new(ShmConfig { directory, ..ShmConfig::new(flow) }).unwrap()
}

/// Two links of one process that know each other: the first, the second, and what the first calls the second.
fn pair(folder: &Folder, scheme: SchemeName) -> (ShmLink, ShmLink, PeerId) {
    let mut first = link(folder, scheme, WRITERS);
    let second = link(folder, scheme, WRITERS);
    let peer = first.peer(&second.address()).unwrap();
    (first, second, peer)
}

/// Writes a message of so many packets, numbered from `first` on, which fills one buffer.
fn write_message(link: &mut ShmLink, to: PeerId, first: u64, packets: u32) -> Result<(), WriteError> {
    write_slowly(link, to, first, packets, 0)
}

/// The same, with so many turns of waiting in front of each packet: who is killed then has taken a buffer.
fn write_slowly(link: &mut ShmLink, to: PeerId, first: u64, packets: u32, turns: u32) -> Result<(), WriteError> {
    let (mut number, mut left) = (first, packets);
    let written = link.write(to, packets, |places: &mut [Packet], placement| {
        for place in places {
            (0..turns).for_each(|_| std::hint::spin_loop());
            *place = packet(number).placed(placement);
            (number, left) = (number + 1, left - 1);
            if left == 0 {
                place.header = place.header.ending_buffer();
            }
        }
    })?;
    assert_eq!(written, packets, "a buffer is filled at once");
    Ok(())
}

/// The numbers of the next packet, its sender, and whether it ends a buffer.
fn take(link: &mut ShmLink) -> Option<(PeerId, Vec<u64>, bool)> {
    let Arrival { source, packet } = link.retrieve()?;
    let mut following = [[0; PAYLOAD_BYTES]; MOST_SLOTS_PER_PACKET as usize];
    let slots = packet.header.slots() as usize;
    let mut last: Packet = packet;
    if slots > 1 {
        last = link.retrieve_following(&packet.header, &mut following).expect("it is published as a whole");
    }
    let payloads = [packet.payload].into_iter().chain(following).take(slots);
    Some((source, payloads.map(|payload| number_in(&payload)).collect(), last.header.ends_buffer()))
}

/// Retrieves one whole message, and posts its buffer again.
fn process(link: &mut ShmLink) -> (PeerId, u64) {
    let mut packets = 0;
    loop {
        let (source, numbers, is_end) = until(link, "a packet", take);
        packets += numbers.len() as u64;
        if is_end {
            link.post(Posting::Again(source));
            return (source, packets);
        }
    }
}

fn refusals_of(link: &mut ShmLink, to: PeerId, tries: u32) -> Vec<bool> {
    (0..tries).map(|_| write_message(link, to, 0, 1) == Err(WriteError::Refused)).collect()
}

#[test]
fn a_connection_has_its_buffers_and_no_others() {
    for scheme in [SchemeName::Rnr, SchemeName::Preposted, SchemeName::Growing] {
        let folder = Folder::new();
        let (mut writer, mut reader, to) = pair(&folder, scheme);
        assert_eq!(refusals_of(&mut writer, to, 5), [false, false, false, true, true], "{scheme}");
        let (source, _) = process(&mut reader);
        assert_eq!(refusals_of(&mut writer, to, 2), [false, true], "{scheme}");
        reader.post(Posting::More(source, 2));
        assert_eq!(refusals_of(&mut writer, to, 3), [false, false, true], "{scheme}");
        assert_eq!(until(&mut reader, "a packet", take).1, [0]);
        reader.post(Posting::Withdrawn(source));
        assert_eq!(refusals_of(&mut writer, to, 1), [true], "{scheme}");
        // The pool's window is nothing to a connection.
        reader.post(Posting::Window { buffers: 100, limit: 50 });
        assert_eq!(refusals_of(&mut writer, to, 1), [true], "{scheme}");
    }
}

/// Every buffer is full to its last packet, which is when the ring is full too.
#[test]
fn all_buffers_full_to_the_brim_fit_into_the_mailbox() {
    for scheme in SchemeName::WITH_BUFFERS {
        let folder = Folder::new();
        let (mut writer, mut reader, to) = pair(&folder, *scheme);
        let mut next = 0;
        for _ in 0..100 {
            while write_message(&mut writer, to, next, PACKETS).is_ok() {
                next += u64::from(PACKETS);
            }
            process(&mut reader);
            if until_none(&mut reader) {
                reader.post(Posting::Window { buffers: BUFFERS, limit: 1 });
            }
        }
        assert!(next >= 100 * u64::from(PACKETS));
    }
}

/// Whether the pool's event has come. Nothing else is told here.
fn until_none(link: &mut ShmLink) -> bool {
    let mut has_come = false;
    while let Some(event) = link.poll_event() {
        assert_eq!(event, LinkEvent::LimitReached);
        has_come = true;
    }
    has_come
}

#[test]
fn a_pool_tells_when_its_limit_is_passed_and_gets_larger() {
    let folder = Folder::new();
    let (mut writer, mut reader, to) = pair(&folder, SchemeName::SharedWindow);
    assert_eq!(refusals_of(&mut writer, to, 4), [false, false, false, true]);
    assert!(!until_none(&mut reader), "the receiver has made no progress");
    process(&mut reader);
    assert!(until_none(&mut reader) && !until_none(&mut reader), "once");
    reader.post(Posting::Window { buffers: 6, limit: 3 });
    // One was posted again, and the window lacks five more; three more there may be.
    assert_eq!(refusals_of(&mut writer, to, 5), [false, false, false, false, true]);
}

#[test]
fn buffers_of_packets_that_nobody_asks_for_go_back_to_the_pool() {
    let folder = Folder::new();
    let (mut writer, mut reader, to) = pair(&folder, SchemeName::SharedWindow);
    write_message(&mut writer, to, 0, 1).unwrap();
    let (source, ..) = until(&mut reader, "a packet", take);
    reader.post(Posting::Again(source));
    for _ in 0..BUFFERS {
        write_message(&mut writer, to, 0, PACKETS).unwrap();
    }
    reader.quarantine(source);
    let mut other = link(&folder, SchemeName::SharedWindow, WRITERS);
    let place = other.peer(&reader.address()).unwrap();
    assert_eq!(write_message(&mut other, place, 7, 1), Err(WriteError::Refused));
    until(&mut reader, "the packets to be dropped", |reader| {
        assert!(take(reader).is_none());
        (write_message(&mut other, place, 7, 1) == Ok(())).then_some(())
    });
}

/// Small, seeded, good enough to choose victims.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn role(scheme: SchemeName) {
    let folder = role_folder();
    let mut link = link(&folder, scheme, WRITERS);
    let to = link.peer(&role_address()).unwrap();
    let mut next = 0;
    for round in 0.. {
        let packets = 1 + round % PACKETS;
        if write_slowly(&mut link, to, next, packets, SLOWNESS).is_ok() {
            next += u64::from(packets);
        } else {
            link.idle().yield_if_asked();
        }
    }
}

#[test]
#[ignore = "a process of another test: writes until it is killed"]
fn role_floods_connection() {
    role(SchemeName::Rnr);
}

#[test]
#[ignore = "a process of another test: writes until it is killed"]
fn role_floods_pool() {
    role(SchemeName::SharedWindow);
}

/// The reader of the test below, and the number that each writer is to send next.
struct Reader {
    link: ShmLink,
    next: HashMap<PeerId, u64>,
}

impl Reader {
    fn drain(&mut self, packets: u64) {
        for _ in 0..packets {
            let Some((source, numbers, is_end)) = take(&mut self.link) else {
                self.link.idle().yield_if_asked();
                continue;
            };
            self.link.busy();
            let next = self.next.entry(source).or_insert(0);
            for number in numbers {
                assert_eq!(number, *next, "{source:?}: a packet was lost, or came twice");
                *next += 1;
            }
            if is_end {
                self.link.post(Posting::Again(source));
            }
        }
    }

    fn poll_departure(&mut self) -> Option<Departure> {
        loop {
            match self.link.poll_event()? {
                LinkEvent::Departed(departure) => return Some(departure),
                // A window would post others for those that are missing.
                LinkEvent::LimitReached | LinkEvent::Closing(_) => {}
                other => panic!("shared memory has no such event: {other:?}"),
            }
        }
    }

    /// Goes on reading until so many peers have been heard of.
    fn await_writers(&mut self, count: usize) {
        let start = std::time::Instant::now();
        while self.next.len() < count {
            self.drain(64);
            assert!(self.poll_departure().is_none(), "nobody has been killed");
            assert!(start.elapsed() < TEST_TIMEOUT, "a writer does not get through");
        }
    }

    /// Goes on reading until a death is noticed, and forgets the dead.
    fn await_end(&mut self) {
        let start = std::time::Instant::now();
        loop {
            self.drain(16);
            if let Some(left) = self.poll_departure() {
                self.link.release(left.peer);
                self.next.remove(&left.peer);
                return;
            }
            assert!(start.elapsed() < TEST_TIMEOUT, "the reader is stuck, or the death is not noticed");
        }
    }
}

fn no_buffer_is_missing_whatever_moment_writers_die_at(scheme: SchemeName, role: &str) {
    let variable = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = variable("TIDEGATE_TEST_SEED").unwrap_or(u64::from(std::process::id()));
    let kills = variable("TIDEGATE_TEST_KILLS").unwrap_or(12);
    println!("TIDEGATE_TEST_SEED={seed}");
    let folder = Folder::new();
    let mut random = Random(seed);
    // A third place is for the one that counts at the end.
    let mut reader = Reader { link: link(&folder, scheme, WRITERS + 1), next: HashMap::new() };
    let start = |reader: &Reader| Process::start(role, &folder, reader.link.address());
    let mut writers: Vec<Process> = (0..WRITERS).map(|_| start(&reader)).collect();
    for _ in 0..kills {
        reader.await_writers(WRITERS as usize);
        let mut victim = writers.swap_remove(random.below(WRITERS.into()) as usize);
        reader.drain(random.below(5_000));
        victim.0.kill().unwrap();
        reader.await_end();
        drop(victim);
        writers.push(start(&reader));
    }
    // The writers live: the last to come have all that was posted.
    reader.await_writers(WRITERS as usize);
    for writer in writers {
        writer.kill();
        reader.await_end();
    }
    let mut last = link(&folder, scheme, WRITERS + 1);
    let to = last.peer(&reader.link.address()).unwrap();
    // A pool has its spare buffer beside them, which the last writer gets if it was refused often enough meanwhile.
    let spare = u32::from(scheme == SchemeName::SharedWindow);
    let begun = std::time::Instant::now();
    loop {
        // While the reader does nothing, what is taken stays taken.
        let taken = (0..=BUFFERS + spare).take_while(|_| write_message(&mut last, to, 0, 1).is_ok()).count() as u32;
        assert!(taken <= BUFFERS + spare, "none too many");
        if taken >= BUFFERS {
            return;
        }
        assert!(begun.elapsed() < TEST_TIMEOUT, "{} buffers are missing", BUFFERS - taken);
        while let Some((source, _, is_end)) = take(&mut reader.link) {
            assert!(is_end, "a message of one packet");
            reader.link.post(Posting::Again(source));
        }
        assert!(reader.poll_departure().is_none(), "everybody else is gone");
        reader.link.idle().yield_if_asked();
    }
}

#[test]
fn no_buffer_of_a_pool_is_missing_whatever_moment_writers_die_at() {
    no_buffer_is_missing_whatever_moment_writers_die_at(SchemeName::SharedWindow, "posted_buffers::role_floods_pool");
}

#[test]
fn no_buffer_of_a_connection_is_missing_whatever_moment_writers_die_at() {
    no_buffer_is_missing_whatever_moment_writers_die_at(SchemeName::Rnr, "posted_buffers::role_floods_connection");
}
