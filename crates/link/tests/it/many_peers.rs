//! Endpoints made for many peers: memory goes to those who talk, and whoever enters is looked after.

use crate::support::*;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use tidegate_flow::{Config, PeerId, SchemeName};
use tidegate_link::{LinkError, ShmConfig, ShmLink};
use tidegate_message::{Counter, Link, WriteError};

/// An endpoint that has no memory for bulk data.
fn slim(folder: &Folder, peers: u32) -> ShmLink {
    ShmLink::new(ShmConfig { bounce_buffers: 0, ..folder.config(peers) }).unwrap()
}

/// Connects without writing anything.
fn connect_silently(link: &mut ShmLink, owner: &mut ShmLink) {
    owner.tell_window(12_345);
    let to = link.peer(&owner.address()).unwrap();
    until(link, "a connection", |link| link.window(to).filter(|window| *window > 0));
}

#[test]
fn who_enters_and_never_writes_is_looked_after_whatever_place_it_has() {
    let folder = Folder::new();
    let mut a = folder.link(6);
    let mut staying = folder.link(1);
    connect_silently(&mut staying, &mut a);
    for generation in 0..5 {
        let mut others: Vec<ShmLink> = (0..generation + 1).map(|_| folder.link(1)).collect();
        others.iter_mut().for_each(|other| connect_silently(other, &mut a));
        let mut expected: Vec<_> = others.iter().map(|other| Some(other.address())).collect();
        // Some leave before the owner has looked for the first time, some in the order in which they came.
        if generation % 2 == 0 {
            others.reverse();
        }
        drop(others);
        while !expected.is_empty() {
            let left = departure(&mut a);
            assert!(left.orderly);
            let address = a.address_of(left.peer);
            let at = expected.iter().position(|other| *other == address).expect("one of those who left, once");
            expected.swap_remove(at);
            assert!(left.peer.0 <= 5, "places that became free are used again");
            a.release(left.peer);
        }
    }
    assert_eq!(a.address_of(PeerId(0)), Some(staying.address()));
}

#[test]
#[ignore = "a process of the next test: enters the table of a peer, says so elsewhere, and waits to be killed"]
fn role_enters_silently() {
    let folder = role_folder();
    let mut link = folder.link(1);
    let to = link.peer(&role_address()).unwrap();
    until(&mut link, "a connection", |link| link.window(to).filter(|window| *window > 0));
    fs::write(folder.path().join(format!("entered-{}", std::process::id())), []).unwrap();
    loop {
        std::thread::park();
    }
}

#[test]
fn the_death_of_who_never_wrote_is_noticed_also_in_a_place_used_before() {
    let folder = Folder::new();
    let mut a = folder.link(2);
    a.tell_window(12_345);
    for _ in 0..3 {
        let process = Process::start("many_peers::role_enters_silently", &folder, a.address());
        let entered = folder.path().join(format!("entered-{}", process.0.id()));
        // The owner does not look meanwhile.
        while !entered.exists() {
            std::thread::yield_now();
        }
        process.kill();
        let left = departure(&mut a);
        assert_eq!((left.peer, left.orderly), (PeerId(0), false));
        a.release(left.peer);
    }
}

#[test]
fn an_endpoint_for_many_that_talks_to_few_takes_little_besides_its_mailbox() {
    const PEERS: u32 = 20_000;
    const TALKING: u32 = 8;
    let folder = Folder::new();
    let mut a = slim(&folder, PEERS);
    let path = folder.path().join(&folder.files()[0]);
    let allocated = || fs::metadata(&path).unwrap().blocks() * 512;
    let mailbox = a.counters().get(Counter::MailboxBytes);
    let local = a.counters().get(Counter::BookkeepingBytes);
    let beside = allocated() - mailbox;
    assert!(beside < 4 * u64::from(PEERS), "{beside} bytes before anybody is there");
    let mut others: Vec<ShmLink> = (0..TALKING).map(|_| slim(&folder, 1)).collect();
    for (number, other) in others.iter_mut().enumerate() {
        let to = other.peer(&a.address()).unwrap();
        send(other, to, number as u64);
        let (from, received) = receive(&mut a);
        assert_eq!((from.0 as usize, received as usize), (number, number));
    }
    let more = allocated() - mailbox - beside;
    assert!(more <= u64::from(TALKING + 1) * 4096, "{more} bytes for {TALKING} peers");
    let local = a.counters().get(Counter::BookkeepingBytes) - local;
    assert!(local > 0 && local <= u64::from(TALKING) * 2048, "{local} bytes of its own memory");
}

/// The link's part of an endpoint with a pool of slots for 65,536 peers and for 262,144, of which eight talk: its file
/// and its own tables. (The endpoint's part is counted in `crates/message/tests/peers/silent.rs`.)
#[test]
fn a_pool_of_slots_for_many_that_talks_to_few_is_small() {
    const TALKING: u32 = 8;
    for (peers, most) in [(1 << 16, 450_000), (1 << 18, 450_000)] {
        let folder = Folder::new();
        let flow = Config { ..Config::new(SchemeName::Speculative, peers, 0, 0) };
        let config = ShmConfig { bounce_buffers: 0, flow, ..folder.config(peers) };
        let mut a = ShmLink::new(config.clone()).unwrap();
        let path = folder.path().join(&folder.files()[0]);
        // That is the most at first, and what talking peers add is added.
        let most_at_first = a.counters().get(Counter::BookkeepingBytes);
        let mut others = Vec::new();
        for number in 0..TALKING {
            let flow = Config { peers: 1, ..config.flow.clone() };
            let mut other = ShmLink::new(ShmConfig { flow, ..config.clone() }).unwrap();
            let to = other.peer(&a.address()).unwrap();
            send(&mut other, to, number.into());
            assert_eq!(receive(&mut a).1, u64::from(number));
            others.push(other);
        }
        let local = a.counters().get(Counter::BookkeepingBytes) - most_at_first;
        let bytes = fs::metadata(&path).unwrap().blocks() * 512 + local;
        println!("{peers} peers: {bytes} bytes");
        assert!(bytes <= most, "{bytes} bytes for {peers} peers");
    }
}

/// A file system of a megabyte; `None` for those who may not mount.
struct SmallDisk(Folder);

impl SmallDisk {
    fn new() -> Option<Self> {
        let folder = Folder::new();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tidegate-test"]).arg(folder.path()).status();
        mounted.is_ok_and(|status| status.success()).then(|| SmallDisk(folder))
    }

    /// Takes all that is left; returns what to remove.
    fn fill(&self) -> std::path::PathBuf {
        let path = self.0.path().join("filler");
        assert!(fs::write(&path, vec![1; 1 << 20]).is_err(), "more than there is");
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_place_for_which_there_is_no_space_is_waited_for() {
    let Some(disk) = SmallDisk::new() else {
        println!("skipped: only the superuser can mount a small file system");
        return;
    };
    let [mut a, mut b] = [100, 100].map(|peers| slim(&disk.0, peers));
    let filler = disk.fill();
    match b.peer(&a.address()) {
        Err(error @ LinkError::System { .. }) => assert!(error.may_be_tried_again(), "{error}"),
        other => panic!("{other:?}"),
    }
    fs::remove_file(filler).unwrap();
    let to = b.peer(&a.address()).unwrap();
    let filler = disk.fill();
    assert_eq!(write(&mut b, to, &packet(1)), Err(WriteError::Full), "no place with a, for now");
    fs::remove_file(filler).unwrap();
    send(&mut b, to, 1);
    assert_eq!(receive(&mut a).1, 1);
}
