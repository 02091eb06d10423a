//! Writers killed at random while they flood one reader. Whatever moment they die at: what they published arrives, in
//! order and once; the reader never gets stuck; whoever comes next gets the place; and nothing stays in the folder of
//! segments.
//!
//! The seed is printed; `TIDEGATE_TEST_SEED` sets it, `TIDEGATE_TEST_KILLS` how many writers die (40).

use crate::support::*;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use tidegate_flow::{MOST_SLOTS_PER_PACKET, PAYLOAD_BYTES, PeerId};
use tidegate_link::ShmLink;
use tidegate_message::{Arrival, Link, WriteError};

/// Few, or they would spend their lives waiting for room, where dying is easy.
const WRITERS: u32 = 2;
/// The number a writer says of itself first: its process id, above all counts.
const HELLO: u64 = 1 << 40;

/// Small, seeded, good enough to choose victims.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// An endpoint with a mailbox that is rarely full.
fn link(folder: &Folder, peers: u32) -> ShmLink {
    let mut config = folder.config(peers);
    config.flow.slots_per_peer = 8192;
    ShmLink::new(config).unwrap()
}

/// Where a writer notes how many packets it has surely published.
fn ledger(folder: &Folder, pid: u32) -> std::path::PathBuf {
    folder.path().join(format!("published-{pid}"))
}

#[test]
#[ignore = "a process of the other test: writes numbers until it is killed"]
fn role_floods() {
    let folder = role_folder();
    let mut link = link(&folder, WRITERS);
    let to = link.peer(&role_address()).unwrap();
    let pid = std::process::id();
    let mut file = File::create(ledger(&folder, pid)).unwrap();
    file.write_all(&[0; 8]).unwrap();
    send(&mut link, to, HELLO + u64::from(pid));
    let mut next = 0_u64;
    for round in 0.. {
        // One to eight slots, in one packet: some die within it.
        let (wanted, mut number) = (1 + round % 8, next);
        let outcome = link.write(to, wanted, |places: &mut [tidegate_flow::Packet], placement| {
            for place in places {
                *place = packet(number).placed(placement);
                number += 1;
            }
        });
        let written = outcome.unwrap_or(0);
        next += u64::from(written);
        if written < wanted {
            link.idle().yield_if_asked();
        }
        // Now and then only: the system call would otherwise take most of the time, and all deaths would fall into it.
        if round % 16 == 0 {
            file.write_all_at(&next.saturating_sub(1).to_le_bytes(), 0).unwrap();
        }
    }
}

/// What the reader has seen of a writer.
struct Seen {
    pid: u32,
    next: u64,
}

struct Reader {
    link: ShmLink,
    seen: HashMap<PeerId, Seen>,
    /// Packets of several slots.
    long: u64,
}

impl Reader {
    /// Retrieves up to `count` packets and checks the order of each writer's.
    fn drain(&mut self, count: u64) {
        for _ in 0..count {
            let Some(Arrival { source: peer, packet }) = self.link.retrieve() else {
                self.link.idle().yield_if_asked();
                continue;
            };
            self.link.busy();
            let number = number(&packet);
            if number >= HELLO {
                let pid = (number - HELLO) as u32;
                assert!(self.seen.insert(peer, Seen { pid, next: 0 }).is_none(), "the place was not given back");
            } else {
                let mut following = [[0; PAYLOAD_BYTES]; MOST_SLOTS_PER_PACKET as usize];
                let slots = packet.header.slots() as usize;
                if slots > 1 {
                    let last = self.link.retrieve_following(&packet.header, &mut following);
                    last.expect("who dies within a packet has not published it");
                }
                let seen = self.seen.get_mut(&peer).expect("a writer says hello first");
                let payloads = [packet.payload].into_iter().chain(following).take(slots);
                for payload in payloads {
                    let number = number_in(&payload);
                    assert_eq!(number, seen.next, "a slot of pid {} was lost or came twice", seen.pid);
                    seen.next += 1;
                }
                self.long += u64::from(slots > 1);
            }
        }
    }

    /// Goes on reading until this process has said hello. Before that its death would be nobody's departure: see
    /// `who_dies_before_anybody_knows_it_is_tidied_up_after_by_the_next_to_start`.
    fn await_hello_of(&mut self, pid: u32) {
        let start = std::time::Instant::now();
        while !self.seen.values().any(|seen| seen.pid == pid) {
            self.drain(64);
            assert!(start.elapsed() < TEST_TIMEOUT, "pid {pid} does not get through");
        }
    }

    /// Goes on reading until the departure of this process is reported; returns what was seen of it.
    fn await_end_of(&mut self, pid: u32) -> (PeerId, Option<Seen>) {
        let start = std::time::Instant::now();
        loop {
            self.drain(16);
            if let Some(left) = poll_departure(&mut self.link) {
                assert!(!left.orderly);
                assert!(is_of(&left.name, pid), "{} has departed, not pid {pid}", left.name);
                self.link.release(left.peer);
                return (left.peer, self.seen.remove(&left.peer));
            }
            assert!(start.elapsed() < TEST_TIMEOUT, "the reader is stuck, or the death of pid {pid} is not noticed");
        }
    }
}

static SKIPPED: Mutex<u32> = Mutex::new(0);

#[test]
fn whatever_moment_writers_die_at_nothing_published_is_lost() {
    let variable = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = variable("TIDEGATE_TEST_SEED").unwrap_or(u64::from(std::process::id()));
    let kills = variable("TIDEGATE_TEST_KILLS").unwrap_or(25);
    println!("TIDEGATE_TEST_SEED={seed}");
    tidegate_link::log::set_sink(|_, text| *SKIPPED.lock().unwrap() += u32::from(text.starts_with("skipped a slot")));
    let folder = Folder::new();
    let mut random = Random(seed);
    let mut reader = Reader { link: link(&folder, WRITERS), seen: HashMap::new(), long: 0 };
    let start = |reader: &Reader| Process::start("killed_writers::role_floods", &folder, reader.link.address());
    let mut writers: Vec<Process> = (0..WRITERS).map(|_| start(&reader)).collect();
    let mut places = HashMap::new();
    for _ in 0..kills {
        let mut victim = writers.swap_remove(random.below(WRITERS.into()) as usize);
        let pid = victim.0.id();
        reader.await_hello_of(pid);
        let count = random.below(20_000);
        reader.drain(count);
        // Read on while it dies, so that it dies writing.
        victim.0.kill().unwrap();
        let (place, seen) = reader.await_end_of(pid);
        let seen = seen.expect("said hello");
        *places.entry(place).or_insert(0) += 1;
        let file = OpenOptions::new().read(true).open(ledger(&folder, pid)).unwrap();
        let mut published = [0; 8];
        file.read_exact_at(&mut published, 0).unwrap();
        let published = u64::from_le_bytes(published);
        assert!(seen.next >= published, "pid {pid} published {published}, and {} arrived", seen.next);
        std::fs::remove_file(ledger(&folder, pid)).unwrap();
        drop(victim);
        writers.push(start(&reader));
    }
    println!("{kills} kills, {} holes skipped", SKIPPED.lock().unwrap());
    assert!(reader.long > 0, "some packets take several slots");
    assert!(places.keys().all(|place| place.0 < WRITERS) && places.values().sum::<u64>() == kills);
    for writer in writers {
        reader.await_hello_of(writer.0.id());
        writer.kill();
    }
    until(&mut reader.link, "the last segments to be tidied up", |link| {
        let _ = link.retrieve();
        let _ = poll_departure(link);
        (segments(&folder) == 1).then_some(())
    });
    let dead = write(&mut reader.link, PeerId(0), &packet(0));
    assert!(!matches!(dead, Ok(()) | Err(WriteError::Full)), "everybody is dead");
}

/// Between creating its segment and entering the table of the first peer, nobody knows of a process.
#[test]
fn who_dies_before_anybody_knows_it_is_tidied_up_after_by_the_next_to_start() {
    const KILLED: u32 = 20;
    let folder = Folder::new();
    let first = link(&folder, KILLED);
    let mut left = 0;
    // It takes a process a millisecond or two to come that far: some die before, some after, and most in between.
    for turn in 0..KILLED {
        let writer = Process::start("killed_writers::role_floods", &folder, first.address());
        std::thread::sleep(std::time::Duration::from_micros(u64::from(turn) * 150));
        writer.kill();
        left += segments(&folder) - 1;
        let next = link(&folder, WRITERS);
        assert_eq!(segments(&folder), 2, "the segments of those who live, and no other: {:?}", folder.files());
        drop(next);
    }
    println!("{left} of the killed processes had left a segment");
}

/// Whether a peer's name is that of the process `pid`: `pid 7 of …`, or `pid 7, endpoint 1 of …` after its first file
/// was taken for a dead process's by one that started at the same time, before its lock was on it.
fn is_of(name: &str, pid: u32) -> bool {
    name.strip_prefix(&format!("pid {pid}")).is_some_and(|rest| rest.starts_with([' ', ',']))
}

/// How many segments are in the folder.
fn segments(folder: &Folder) -> usize {
    folder.files().iter().filter(|file| !file.starts_with("published-")).count()
}
