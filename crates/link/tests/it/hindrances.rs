//! What hinders for a while, and must neither stop anybody nor be taken for a peer's end: locks that a stopped process
//! holds, a lack of descriptors, places of peers that have just left.

use crate::support::*;
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};
use tidegate_link::{ClaimError, LinkError, Service, ShmLink};
use tidegate_message::{Access, Link, PeerMemory, Span, WriteError};

/// Longer than any call may take here, even on a busy machine; a call that waited for a lock would never return.
const BOUND: Duration = Duration::from_secs(3);

/// Holds the lock of a table or a claim, as a process does that is stopped at the wrong moment, until dropped.
fn hold(path: &Path) -> File {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    // SAFETY: our descriptor.
    assert_eq!(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }, 0);
    file
}

/// Holds the lock of the only segment there.
fn hold_only_table(folder: &Folder) -> File {
    let [name] = &folder.files()[..] else { panic!("one segment") };
    hold(&folder.path().join(name))
}

/// Does something that must not take long.
fn soon<T>(what: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let done = what();
    assert!(begun.elapsed() < BOUND, "took {:?}", begun.elapsed());
    done
}

/// Lets an endpoint look after its peers several times; none may depart.
fn nobody_departs(link: &mut ShmLink) {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(300) {
        assert_eq!(poll_departure(link), None);
        link.idle().yield_if_asked();
    }
}

#[test]
fn a_peer_whose_table_is_locked_is_connected_to_when_it_is_free() {
    let folder = Folder::new();
    let mut a = folder.link(1);
    a.tell_window(12_345);
    let held = hold_only_table(&folder);
    let mut b = folder.link(1);
    let to_a = b.peer(&a.address()).unwrap();
    assert_eq!(soon(|| write(&mut b, to_a, &packet(1))), Err(WriteError::Full));
    assert_eq!(b.window(to_a), Some(0), "not known yet");
    nobody_departs(&mut b);
    let begun = Instant::now();
    (0..1000).for_each(|_| assert_eq!(write(&mut b, to_a, &packet(1)), Err(WriteError::Full)));
    assert!(begun.elapsed() < BOUND, "not every write waits");
    drop(held);
    send(&mut b, to_a, 1);
    assert_eq!(b.window(to_a), Some(12_345));
    assert_eq!(receive(&mut a).1, 1);
}

#[test]
fn an_endpoint_whose_own_table_is_locked_goes_on_and_closes() {
    let folder = Folder::new();
    let mut a = folder.link(2);
    let held = hold_only_table(&folder);
    let b = folder.link(1);
    let refused = soon(|| a.peer(&b.address())).unwrap_err();
    assert!(refused.may_be_tried_again() && refused.to_string().contains("some process holds the lock"), "{refused}");
    soon(|| drop(a));
    assert_eq!(folder.files().len(), 1, "that of b");
    drop((held, b));
}

#[test]
fn the_place_of_a_departed_peer_is_given_away_when_the_lock_is_free() {
    let folder = Folder::new();
    let mut a = folder.link(1);
    let path = folder.path().join(&folder.files()[0]);
    let (mut b, mut c) = (folder.link(1), folder.link(1));
    let from_b = b.peer(&a.address()).unwrap();
    send(&mut b, from_b, 1);
    let (peer, _) = receive(&mut a);
    drop(b);
    assert_eq!(departure(&mut a).peer, peer);
    let held = hold(&path);
    soon(|| a.release(peer));
    assert_eq!(a.address_of(peer), None);
    nobody_departs(&mut a);
    let from_c = c.peer(&a.address()).unwrap();
    assert_eq!(write(&mut c, from_c, &packet(2)), Err(WriteError::Full));
    drop(held);
    until(&mut a, "the place of b", |_| match write(&mut c, from_c, &packet(2)) {
        Ok(()) => Some(()),
        Err(WriteError::Full | WriteError::Refused) => None,
        Err(WriteError::Unreachable(why)) => panic!("{why}"),
    });
    assert_eq!(receive(&mut a).1, 2);
}

/// Its place at the owner says that it cannot go on, until the owner looks.
#[test]
fn who_was_severed_may_come_back_before_the_owner_has_noticed_that_it_went() {
    let folder = Folder::new();
    let (mut a, mut b) = (folder.link(2), folder.link(2));
    let owner = b.peer(&a.address()).unwrap();
    send(&mut b, owner, 1);
    let (severed, _) = receive(&mut a);
    a.release(severed);
    assert_eq!(departure(&mut b).peer, owner);
    b.release(owner);
    let owner = b.peer(&a.address()).unwrap();
    assert_eq!(write(&mut b, owner, &packet(2)), Err(WriteError::Full));
    nobody_departs(&mut b);
    let deadline = Instant::now() + TEST_TIMEOUT;
    while let Err(error) = write(&mut b, owner, &packet(2)) {
        assert!(error == WriteError::Full && Instant::now() < deadline, "{error:?}");
        // The owner looks.
        assert!(a.retrieve().is_none());
        a.poll_event();
        a.idle().yield_if_asked();
    }
    assert_eq!(receive(&mut a).1, 2);
}

#[test]
fn a_claim_whose_lock_somebody_holds_stops_nobody() {
    let folder = Folder::new();
    let a = folder.link(1);
    let service = Service::new(b"held").unwrap();
    let claim = service.claim(folder.path(), a.address()).unwrap();
    let name = folder.files().into_iter().find(|name| name.contains("service")).unwrap();
    let held = hold(&folder.path().join(&name));
    let b = soon(|| folder.link(1));
    assert_eq!(soon(|| service.find(folder.path())), None);
    let refused = soon(|| service.claim(folder.path(), b.address())).unwrap_err();
    assert!(matches!(refused, ClaimError::Busy { .. }) && refused.to_string().contains(&name), "{refused}");
    soon(|| drop(claim));
    assert_eq!(folder.files().len(), 2, "two segments");
    drop(held);
}

#[test]
#[ignore = "a process of other tests: has no descriptor left when it wants to connect, and some later"]
fn role_lacks_descriptors() {
    let limit = libc::rlimit { rlim_cur: 64, rlim_max: 64 };
    // SAFETY: the struct lives through the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    let mut link = role_folder().link(1);
    let to = link.peer(&role_address()).unwrap();
    let mut used: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert_eq!(write(&mut link, to, &packet(1)), Err(WriteError::Full));
    nobody_departs(&mut link);
    // Enough to connect, and still more than half of them in use.
    used.truncate(45);
    send(&mut link, to, 1);
    let before = fs::read_dir("/proc/self/fd").unwrap().count();
    assert!(link.find_region(to, 7, 0, 8, Access::Read).is_some(), "no descriptor is needed to read");
    assert_eq!(link.find_region(to, 7, 0, 8, Access::Write), None, "none is to spare for writing");
    assert_eq!(fs::read_dir("/proc/self/fd").unwrap().count(), before);
}

#[test]
fn who_lacks_descriptors_loses_no_peer_and_keeps_half_of_them() {
    let folder = Folder::new();
    let mut a = folder.link(1);
    let word = 0_u64;
    a.publish_region(7, Span { address: (&raw const word) as u64, length: 8 }, &[Access::Read, Access::Write]);
    let process = Process::start("hindrances::role_lacks_descriptors", &folder, a.address());
    assert_eq!(receive(&mut a).1, 1);
    process.join();
}

#[test]
fn many_peers_one_after_the_other_need_few_places() {
    let folder = Folder::new();
    let mut a = folder.link(4);
    let begun = Instant::now();
    for number in 0..100 {
        let mut b = folder.link(1);
        let to_a = b.peer(&a.address()).unwrap();
        until(&mut b, "a place", |b| {
            if let Some(left) = poll_departure(&mut a) {
                a.release(left.peer);
            }
            a.idle().yield_if_asked();
            match write(b, to_a, &packet(number)) {
                Ok(()) => Some(()),
                Err(WriteError::Full | WriteError::Refused) => None,
                Err(WriteError::Unreachable(why)) => panic!("newcomer {number}: {why}"),
            }
        });
        let (peer, found) = receive(&mut a);
        assert_eq!(found, number);
        // Others are expected as well, who have not connected.
        assert_eq!(a.peer(&b.address()).unwrap(), peer);
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "places come back late: {:?}", begun.elapsed());
}

#[test]
fn ones_own_table_is_changing_as_long_as_peers_in_it_have_left() {
    let folder = Folder::new();
    let (mut a, mut b, c) = (folder.link(1), folder.link(1), folder.link(1));
    let to_a = b.peer(&a.address()).unwrap();
    send(&mut b, to_a, 1);
    let (peer, _) = receive(&mut a);
    assert!(matches!(a.peer(&c.address()), Err(LinkError::TableFull { is_changing: false, .. })));
    drop(b);
    assert!(a.peer(&c.address()).unwrap_err().may_be_tried_again());
    a.idle().yield_if_asked();
    assert_eq!(departure(&mut a).peer, peer);
    a.release(peer);
    a.peer(&c.address()).unwrap();
}

#[test]
fn only_the_first_try_waits_for_a_locked_table() {
    const PEERS: usize = 8;
    let folder = Folder::new();
    let mut a = folder.link(PEERS as u32);
    let own = folder.files();
    let others: Vec<ShmLink> = (0..PEERS).map(|_| folder.link(1)).collect();
    let files = folder.files().into_iter().filter(|file| !own.contains(file));
    let held: Vec<File> = files.map(|file| hold(&folder.path().join(file))).collect();
    let peers: Vec<_> = others.iter().map(|other| a.peer(&other.address()).unwrap()).collect();
    let mut write_to_all = |for_long: Duration| {
        let (begun, mut waited) = (Instant::now(), Duration::ZERO);
        while begun.elapsed() < for_long {
            let round = Instant::now();
            peers.iter().for_each(|peer| assert_eq!(write(&mut a, *peer, &packet(1)), Err(WriteError::Full)));
            waited += round.elapsed();
            std::thread::sleep(Duration::from_millis(5));
        }
        waited
    };
    write_to_all(Duration::ZERO);
    write_to_all(Duration::from_millis(1));
    // If each try waited for 10 ms, the eight peers together would take more than the whole time.
    let waited = write_to_all(Duration::from_secs(1));
    assert!(waited < Duration::from_millis(300), "{waited:?} of a second");
    drop(held);
    peers.iter().for_each(|peer| send(&mut a, *peer, 1));
}

#[test]
#[ignore = "a process of other tests: enters the table of a peer, then waits to be killed"]
fn role_takes_a_place() {
    let mut link = role_folder().link(1);
    let to = link.peer(&role_address()).unwrap();
    send(&mut link, to, 7);
    loop {
        std::thread::park();
    }
}

/// An endpoint whose table is full of peers that have just been killed.
fn full_of_dead(folder: &Folder) -> ShmLink {
    let mut a = folder.link(2);
    let processes = [0, 1].map(|_| Process::start("hindrances::role_takes_a_place", folder, a.address()));
    processes.iter().for_each(|_| assert_eq!(receive(&mut a).1, 7));
    processes.into_iter().for_each(Process::kill);
    a
}

#[test]
fn a_newcomer_gets_a_place_of_peers_that_were_just_killed() {
    let folder = Folder::new();
    let mut a = full_of_dead(&folder);
    let mut c = folder.link(1);
    let to_a = c.peer(&a.address()).unwrap();
    assert_eq!(write(&mut c, to_a, &packet(1)), Err(WriteError::Full), "not refused for good");
    until(&mut a, "a place", |a| {
        if let Some(left) = poll_departure(a) {
            assert!(!left.orderly);
            a.release(left.peer);
        }
        match write(&mut c, to_a, &packet(1)) {
            Ok(()) => Some(()),
            Err(WriteError::Full | WriteError::Refused) => None,
            Err(WriteError::Unreachable(why)) => panic!("{why}"),
        }
    });
    assert_eq!(receive(&mut a).1, 1);
}

#[test]
fn ones_own_table_is_changing_as_long_as_peers_in_it_are_dead() {
    let folder = Folder::new();
    let mut a = full_of_dead(&folder);
    let c = folder.link(1);
    assert!(a.peer(&c.address()).unwrap_err().may_be_tried_again());
    until(&mut a, "a place", |a| {
        if let Some(left) = poll_departure(a) {
            a.release(left.peer);
        }
        a.peer(&c.address()).ok()
    });
}

#[test]
#[ignore = "a process of other tests: has no descriptor left while a peer closes, whom it could never connect to"]
fn role_has_no_descriptor_while_a_peer_closes() {
    let limit = libc::rlimit { rlim_cur: 64, rlim_max: 64 };
    // SAFETY: the struct lives through the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    let folder = role_folder();
    let mut link = folder.link(2);
    let other = folder.link(1);
    let to = link.peer(&other.address()).unwrap();
    let to_starter = link.peer(&role_address()).unwrap();
    let take_all = || std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    let _used: Vec<File> = take_all();
    assert_eq!(write(&mut link, to, &packet(1)), Err(WriteError::Full));
    nobody_departs(&mut link);
    drop(other);
    // It was of this process, and has left a descriptor.
    let _given_back: Vec<File> = take_all();
    let left = departure(&mut link);
    assert!(left.peer == to && left.name.contains("has closed its endpoint"), "{left:?}");
    assert_eq!(write(&mut link, to_starter, &packet(1)), Err(WriteError::Full), "who is still there has not departed");
    nobody_departs(&mut link);
}

#[test]
fn who_has_no_descriptor_left_notices_a_peer_that_closes() {
    let folder = Folder::new();
    let a = folder.link(1);
    Process::start("hindrances::role_has_no_descriptor_while_a_peer_closes", &folder, a.address()).join();
}
