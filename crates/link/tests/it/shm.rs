//! Endpoints over shared memory, two or three at a time, in one process or several.

use crate::support::*;
use std::os::fd::RawFd;
use tidegate_flow::{PeerId, SchemeName};
use tidegate_link::{LinkError, ShmConfig, ShmLink, StatsConfig, WaitChange, stats};
use tidegate_message::{Counter, Link, PeerMemory, WriteError};

fn unreachable_text(result: Result<(), WriteError>) -> String {
    match result {
        Err(WriteError::Unreachable(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_endpoints_know_each_other_by_one_index_each() {
    let folder = Folder::new();
    let (mut a, mut b) = (folder.link(3), folder.link(3));
    let (addr_a, addr_b) = (a.address(), b.address());
    let b_at_a = a.peer(&addr_b).unwrap();
    send(&mut a, b_at_a, 7);
    let (a_at_b, seven) = receive(&mut b);
    assert_eq!(seven, 7);
    assert_eq!(b.address_of(a_at_b), Some(addr_a));
    assert_eq!(b.peer(&addr_a).unwrap(), a_at_b, "who wrote first has its place already");
    send(&mut b, a_at_b, 8);
    assert_eq!(receive(&mut a), (b_at_a, 8));
    for number in 0..1000 {
        send(&mut a, b_at_a, number);
        assert_eq!(receive(&mut b), (a_at_b, number));
    }
}

#[test]
fn oneself_and_other_hosts_are_no_peers() {
    let folder = Folder::new();
    let mut a = folder.link(1);
    let own = a.address();
    assert!(a.peer(&own).unwrap_err().to_string().contains("itself"));
    // Another boot id, and nothing of it here: another host, or a container that shares nothing with us.
    let mut bytes = own.to_bytes();
    bytes[4] ^= 1;
    let elsewhere = tidegate_link::Address::from_bytes(&bytes).unwrap();
    assert!(a.peer(&elsewhere).unwrap_err().to_string().contains("another host"));
}

#[test]
fn processes_that_count_slots_differently_refuse_each_other() {
    let folder = Folder::new();
    let mut base = folder.config(2);
    base.flow.scheme = SchemeName::Static;
    let mut scheme = base.clone();
    scheme.flow.scheme = SchemeName::None;
    let mut slots = base.clone();
    slots.flow.slots_per_peer = 24;
    let mut credit_slots = base.clone();
    credit_slots.flow.credit_slots = 3;
    let mut piggyback = base.clone();
    piggyback.flow.piggyback = false;
    for (other, parameter, values) in [
        (scheme, "FI_TIDEGATE_SCHEME", ["is static here", "and none at"]),
        (slots, "FI_TIDEGATE_SLOTS", ["is 16 here", "and 24 at"]),
        (credit_slots, "FI_TIDEGATE_CREDIT_SLOTS", ["is 2 here", "and 3 at"]),
        (piggyback, "FI_TIDEGATE_PIGGYBACK", ["is on here", "and off at"]),
    ] {
        let (mut a, b) = (ShmLink::new(base.clone()).unwrap(), ShmLink::new(other).unwrap());
        // An endpoint that asks is told, and so is one that writes without asking.
        let peer = a.peer(&b.address()).unwrap();
        let written = write(&mut a, peer, &packet(0));
        let Err(WriteError::Unreachable(written)) = written else { panic!("{written:?}") };
        for text in [a.check_settings(&b.address()).unwrap_err().to_string(), written] {
            assert!(text.contains(parameter), "{text}");
            assert!(values.iter().all(|value| text.contains(value)), "{text}");
            let pid = format!("pid {}", std::process::id());
            assert!(text.matches(&pid).count() >= 2, "both processes are named: {text}");
        }
    }
}

#[test]
fn a_full_table_names_the_parameter_on_either_side() {
    let folder = Folder::new();
    let (mut a, mut b, mut c) = (folder.link(1), folder.link(2), folder.link(2));
    let a_at_b = b.peer(&a.address()).unwrap();
    send(&mut b, a_at_b, 1);
    let a_at_c = c.peer(&a.address()).unwrap();
    let text = unreachable_text(write(&mut c, a_at_c, &packet(1)));
    assert!(text.contains("FI_TIDEGATE_PEERS") && text.contains("1 peers"), "{text}");
    let text = a.peer(&c.address()).unwrap_err().to_string();
    assert!(text.contains("this process") && text.contains("FI_TIDEGATE_PEERS"), "{text}");
}

#[test]
fn a_full_mailbox_refuses_until_its_owner_retrieves() {
    let folder = Folder::new();
    let (mut a, mut b) = (folder.link(1), folder.link(1));
    let to = a.peer(&b.address()).unwrap();
    (0..16).for_each(|number| write(&mut a, to, &packet(number)).unwrap());
    assert_eq!(write(&mut a, to, &packet(16)), Err(WriteError::Full));
    (0..16).for_each(|number| assert_eq!(receive(&mut b).1, number));
    assert!(b.retrieve().is_none());
    assert_eq!(write(&mut a, to, &packet(16)), Ok(()));
    assert_eq!(b.counters().get(Counter::MailboxPeak), 9, "seen at the eighth packet of the burst");
    assert_eq!(b.counters().get(Counter::MailboxBytes), 16 * 64);
}

#[test]
fn who_closes_is_reported_after_its_last_packet_and_its_place_is_given_away() {
    let folder = Folder::new();
    let (mut a, mut b) = (folder.link(1), folder.link(1));
    let a_at_b = b.peer(&a.address()).unwrap();
    (0..10).for_each(|number| send(&mut b, a_at_b, number));
    let b_at_a = a.peer(&b.address()).unwrap();
    drop(b);
    // Once nothing can be written to it any more, the departure has been noticed; its packets still come first.
    until(&mut a, "the end of b", |a| {
        matches!(write(a, b_at_a, &packet(0)), Err(WriteError::Unreachable(_))).then_some(())
    });
    assert_eq!(poll_departure(&mut a), None);
    (0..10).for_each(|number| assert_eq!(receive(&mut a), (b_at_a, number)));
    let left = departure(&mut a);
    assert_eq!((left.peer, left.orderly), (b_at_a, true));
    assert!(left.name.starts_with(&format!("pid {}", std::process::id())), "{}", left.name);
    assert!(unreachable_text(write(&mut a, b_at_a, &packet(0))).contains("closed its endpoint"));
    let mut c = folder.link(1);
    assert!(matches!(a.peer(&c.address()), Err(LinkError::TableFull { .. })), "not before it is released");
    a.release(b_at_a);
    let a_at_c = c.peer(&a.address()).unwrap();
    send(&mut c, a_at_c, 77);
    assert_eq!(receive(&mut a), (b_at_a, 77), "the same place");
    assert_eq!(a.address_of(b_at_a), Some(c.address()));
}

#[test]
fn who_closes_is_noticed_by_those_it_never_wrote_to() {
    let folder = Folder::new();
    let (mut a, b, c) = (folder.link(2), folder.link(2), folder.link(2));
    let connected = a.peer(&b.address()).unwrap();
    send(&mut a, connected, 1);
    let expected = a.peer(&c.address()).unwrap();
    drop(b);
    drop(c);
    let left = departure(&mut a);
    assert_eq!((left.peer, left.orderly), (connected, true));
    // Of the other, whose process runs on, nothing is known but that its file is not there.
    assert!(unreachable_text(write(&mut a, expected, &packet(0))).contains("closed its endpoint, or its file"));
    let left = departure(&mut a);
    assert_eq!((left.peer, left.orderly), (expected, false));
    a.release(expected);
    a.release(connected);
    let mut d = folder.link(1);
    let to = a.peer(&d.address()).unwrap();
    send(&mut a, to, 3);
    assert_eq!(receive(&mut d).1, 3, "its place serves another");
}

#[test]
fn who_is_named_only_after_its_process_ended_has_died() {
    let folder = Folder::new();
    let mut a = folder.link(1);
    let child = Process::start("shm::role_writes_ten_packets", &folder, a.address());
    let (peer, _) = receive(&mut a);
    (1..10).for_each(|number| assert_eq!(receive(&mut a), (peer, number)));
    let address = a.address_of(peer).unwrap();
    child.kill();
    assert!(!departure(&mut a).orderly);
    a.release(peer);
    // Its segment was tidied up long ago; whoever still waits for it has to be told all the same.
    let again = a.peer(&address).unwrap();
    let left = departure(&mut a);
    assert_eq!((left.peer, left.orderly), (again, false));
}

#[test]
#[ignore = "a process of other tests: writes ten packets, then waits to be killed"]
fn role_writes_ten_packets() {
    let mut link = role_folder().link(1);
    let to = link.peer(&role_address()).unwrap();
    (0..10).for_each(|number| send(&mut link, to, number));
    loop {
        std::thread::park();
    }
}

#[test]
fn who_is_killed_is_reported_after_its_last_packet_and_leaves_nothing_behind() {
    let folder = Folder::new();
    let mut a = folder.link(1);
    let child = Process::start("shm::role_writes_ten_packets", &folder, a.address());
    let child_id = child.0.id();
    let (peer, _) = receive(&mut a);
    // Its segment is there; it has written everything once the ninth packet is retrieved and no more come for a while.
    (1..10).for_each(|number| assert_eq!(receive(&mut a), (peer, number)));
    assert_eq!(folder.files().len(), 2);
    child.kill();
    let left = departure(&mut a);
    assert_eq!((left.peer, left.orderly), (peer, false));
    assert!(left.name.contains(&child_id.to_string()));
    assert_eq!(folder.files().len(), 1, "the dead peer's segment is gone");
    assert!(unreachable_text(write(&mut a, peer, &packet(0))).contains("died"));
}

#[test]
fn a_peer_in_another_container_is_served_by_message_and_its_death_noticed() {
    let folder = Folder::new();
    let mut a = folder.link(1);
    let Some(child) = Process::start_contained("shm::role_writes_ten_packets", &folder, a.address()) else {
        println!("skipped: making a process namespace needs the superuser");
        return;
    };
    let (peer, _) = receive(&mut a);
    (1..10).for_each(|number| assert_eq!(receive(&mut a), (peer, number)));
    assert!(!a.capabilities(peer).reaches_memory, "its process id means another process here");
    send(&mut a, peer, 1);
    let next = folder.link(1);
    assert_eq!(folder.files().len(), 3, "somebody who starts meanwhile leaves the living one's segment alone");
    drop(next);
    child.kill();
    let left = departure(&mut a);
    assert_eq!((left.peer, left.orderly), (peer, false));
    assert_eq!(folder.files().len(), 1, "the dead peer's segment is gone");
}

#[test]
fn everybody_may_enter_at_once() {
    const PEERS: u32 = 8;
    let folder = Folder::new();
    for _ in 0..20 {
        let mut a = folder.link(PEERS);
        let address = a.address();
        let links: Vec<ShmLink> = (0..PEERS).map(|_| folder.link(PEERS)).collect();
        let addresses: Vec<_> = links.iter().map(ShmLink::address).collect();
        std::thread::scope(|scope| {
            for mut link in links {
                scope.spawn(move || {
                    let to = peer_of(&mut link, &address);
                    send(&mut link, to, 1);
                    receive(&mut link);
                });
            }
            // Meanwhile the owner of the table enters the same peers.
            let mut peers: Vec<PeerId> = addresses.iter().map(|address| peer_of(&mut a, address)).collect();
            peers.iter().for_each(|peer| send(&mut a, *peer, 2));
            let mut senders: Vec<PeerId> = addresses.iter().map(|_| receive(&mut a).0).collect();
            peers.sort();
            senders.sort();
            assert_eq!(peers, (0..PEERS).map(PeerId).collect::<Vec<_>>(), "one place each");
            assert_eq!(senders, peers);
        });
    }
}

fn is_readable(descriptor: RawFd, milliseconds: i32) -> bool {
    let mut wait = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, alive through the call.
    unsafe { libc::poll(&mut wait, 1, milliseconds) == 1 }
}

#[test]
fn a_descriptor_wakes_who_waits_and_only_then() {
    let folder = Folder::new();
    let mut a = ShmLink::new(ShmConfig { wakes: true, ..folder.config(1) }).unwrap();
    let mut b = folder.link(1);
    let descriptor = a.wake_fd().unwrap();
    assert_eq!(a.wake_fd().unwrap(), descriptor, "one for the life of the endpoint");
    let to = b.peer(&a.address()).unwrap();
    send(&mut b, to, 1);
    assert!(!is_readable(descriptor, 0), "nobody waits");
    assert!(!a.arm(), "a packet is there already");
    receive(&mut a);
    assert!(a.retrieve().is_none());
    for number in 0..100 {
        assert!(a.arm());
        assert!(!is_readable(descriptor, 0), "nothing has come");
        send(&mut b, to, number);
        assert!(is_readable(descriptor, 10_000));
        assert_eq!(receive(&mut a).1, number);
        assert!(!is_readable(descriptor, 0), "the wake is used up");
    }
    assert!(a.arm());
    assert!(is_readable(descriptor, 10_000), "it wakes by itself to look after its peers");
    assert!(b.wake_fd().is_err(), "it was made without");
}

#[test]
fn nobody_sleeps_through_a_packet() {
    let folder = Folder::new();
    let mut a = ShmLink::new(ShmConfig { wakes: true, ..folder.config(1) }).unwrap();
    let mut b = folder.link(1);
    let descriptor = a.wake_fd().unwrap();
    let to = b.peer(&a.address()).unwrap();
    let back = a.peer(&b.address()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for number in 0..2000 {
                send(&mut b, to, number);
                assert_eq!(receive(&mut b).1, number);
            }
        });
        let mut slept = 0;
        for number in 0..2000 {
            let packet = loop {
                if let Some(arrival) = a.retrieve() {
                    break arrival.packet;
                }
                // A lost wake would be made up for after half a second, so count those.
                let start = std::time::Instant::now();
                if a.arm() {
                    is_readable(descriptor, 10_000);
                }
                slept += u32::from(start.elapsed() > std::time::Duration::from_millis(450));
                assert!(slept < 20, "wakes get lost");
            };
            assert_eq!(crate::support::number(&packet), number);
            send(&mut a, back, number);
        }
    });
}

/// Else the first would last until the second begins.
#[test]
fn the_end_of_a_wait_is_told_before_the_beginning_of_the_next_whenever_it_is_asked_for() {
    let folder = Folder::new();
    let stats = StatsConfig { dir: folder.path().to_owned(), ..StatsConfig::default() };
    let mut link = ShmLink::new(ShmConfig { stats: Some(stats), ..folder.config(1) }).unwrap();
    link.note_sleep(tidegate_link::now());
    assert!(matches!(link.take_wait_change(), Some(WaitChange::Begins(_))));
    link.busy();
    let next = tidegate_link::now();
    link.note_sleep(next);
    assert!(matches!(link.take_wait_change(), Some(WaitChange::Ends(until)) if until <= next));
    assert_eq!((link.take_wait_change(), link.take_wait_change()), (Some(WaitChange::Begins(next)), None));
    // A wait that was not asked about while it lasted is not told at all.
    link.busy();
    assert!(matches!(link.take_wait_change(), Some(WaitChange::Ends(_))));
    link.note_sleep(next);
    link.busy();
    assert_eq!(link.take_wait_change(), None);
}

/// Also where no poll in vain came before.
#[test]
fn an_application_that_sleeps_waits_until_something_comes() {
    let folder = Folder::new();
    let stats = StatsConfig { dir: folder.path().to_owned(), ..StatsConfig::default() };
    let mut link = ShmLink::new(ShmConfig { stats: Some(stats), ..folder.config(1) }).unwrap();
    for _ in 0..2 {
        let now = tidegate_link::now();
        link.note_sleep(now);
        assert_eq!(link.take_wait_change(), Some(WaitChange::Begins(now)));
        link.busy();
        assert!(matches!(link.take_wait_change(), Some(WaitChange::Ends(until)) if until >= now));
        link.busy();
        assert_eq!(link.take_wait_change(), None);
    }
}

#[test]
#[ignore = "a process of other tests: publishes counters, then waits to be killed"]
fn role_counts() {
    let folder = role_folder();
    let dir = folder.path().join("stats");
    let stats = StatsConfig { dir, rank: Some(3), job_size: Some(8), ..StatsConfig::default() };
    let mut link = ShmLink::new(ShmConfig { stats: Some(stats), ..folder.config(1) }).unwrap();
    link.counters().add(Counter::MessagesEager, 41);
    link.counters().add(Counter::MessagesEager, 1);
    let to = link.peer(&role_address()).unwrap();
    send(&mut link, to, 0);
    loop {
        std::thread::park();
    }
}

#[test]
fn counters_outlive_a_process_that_is_killed() {
    let folder = Folder::new();
    let pages = folder.path().join("stats");
    std::fs::create_dir(&pages).unwrap();
    std::fs::write(pages.join("readme.txt"), "not a page").unwrap();
    let mut a = folder.link(1);
    let child = Process::start("shm::role_counts", &folder, a.address());
    let pid = child.0.id();
    receive(&mut a);
    child.kill();
    let found = stats::read_dir(&pages).unwrap().read;
    let [page] = &found[..] else { panic!("{} pages", found.len()) };
    assert_eq!((page.pid, page.serial, page.rank, page.job_size), (pid, 0, Some(3), Some(8)));
    assert_eq!((page.scheme, page.slots_per_peer, page.credit_slots), (SchemeName::None, 16, 2));
    assert_eq!((page.piggyback, page.peers, page.bulk.as_str()), (true, 1, "direct"));
    assert_eq!(page.get(Counter::MessagesEager), 42);
    let own = std::env::current_exe().unwrap();
    assert!(own.file_name().unwrap().to_str().unwrap().starts_with(&page.program), "{}", page.program);
    assert!(!page.program.is_empty());
    std::fs::write(pages.join("1-0.counters"), [7; 4096]).unwrap();
    let found = stats::read_dir(&pages).unwrap();
    assert!(found.read.len() == 1 && found.refused[0].contains("1-0.counters"), "{found:?}");
}

#[test]
fn an_unknown_peer_is_no_panic() {
    let folder = Folder::new();
    let mut a = folder.link(1);
    assert!(unreachable_text(write(&mut a, PeerId(0), &packet(0))).contains("no peer"));
    assert!(unreachable_text(write(&mut a, PeerId(u32::MAX), &packet(0))).contains("no peer"));
    assert!(!a.capabilities(PeerId(9)).reaches_memory);
    assert_eq!(a.address_of(PeerId(9)), None);
    a.release(PeerId(9));
}

#[test]
fn a_peer_that_the_endpoint_forgets_while_it_lives_is_not_heard_any_more() {
    let folder = Folder::new();
    let (mut a, mut b) = (folder.link(1), folder.link(1));
    let to = b.peer(&a.address()).unwrap();
    send(&mut b, to, 1);
    let (peer, _) = receive(&mut a);
    a.release(peer);
    send(&mut b, to, 2);
    assert!(a.retrieve().is_none());
    assert_eq!(a.counters().get(Counter::Violations), 1);
    assert!(unreachable_text(write(&mut a, peer, &packet(0))).contains("no place here"));
    drop(b);
    // Its place is free as soon as it is gone, without a report.
    let mut c = folder.link(1);
    let to = c.peer(&a.address()).unwrap();
    until(&mut a, "the place", |a| {
        assert_eq!(poll_departure(a), None);
        match write(&mut c, to, &packet(3)) {
            Ok(()) => Some(()),
            // The table is full, and the one place in it is that of a peer that has left.
            Err(WriteError::Full | WriteError::Refused) => None,
            Err(WriteError::Unreachable(why)) => panic!("{why}"),
        }
    });
    assert_eq!(receive(&mut a).1, 3);
}

#[test]
fn a_quarantined_peer_is_not_heard_and_its_departure_is_reported() {
    let folder = Folder::new();
    let (mut a, mut b) = (folder.link(1), folder.link(1));
    let to = b.peer(&a.address()).unwrap();
    send(&mut b, to, 1);
    let (peer, _) = receive(&mut a);
    assert!(a.quarantine(peer).contains(&b.address().to_string()));
    send(&mut b, to, 2);
    assert!(a.retrieve().is_none());
    assert!(unreachable_text(write(&mut a, peer, &packet(0))).contains("protocol"));
    drop(b);
    let mut departure = None;
    until(&mut a, "the departure", |a| {
        departure = poll_departure(a);
        departure.is_some().then_some(())
    });
    assert!(departure.is_some_and(|departure| departure.peer == peer && departure.orderly));
    a.release(peer);
    assert_eq!(a.address_of(peer), None);
}

#[test]
fn an_endpoint_without_peers_can_exist() {
    let folder = Folder::new();
    let mut alone = folder.link(0);
    assert!(alone.retrieve().is_none());
    assert!(matches!(alone.peer(&folder.link(1).address()), Err(LinkError::TableFull { peers: 0, .. })));
}
