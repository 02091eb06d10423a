//! What only a look inside can provoke: a writer that dies at the one bad moment, and packets that nobody honest
//! writes.

use super::*;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use tidegate_flow::{Config, Packet, PacketKind, PeerId, SchemeName};
use tidegate_message::{Counter, Departure, Link, LinkEvent, WriteError};

const FOLDER: &str = "ROLE_FOLDER";
const ADDRESS: &str = "ROLE_ADDRESS";

pub(super) fn link(folder: &std::path::Path) -> ShmLink {
    let flow = Config { piggyback: true, ..Config::new(SchemeName::Static, 2, 16, 2) };
    ShmLink::new(ShmConfig { directory: folder.to_path_buf(), ..ShmConfig::new(flow) }).unwrap()
}

pub(super) fn folder() -> PathBuf {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let name = format!("tidegate-unit-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    std::fs::create_dir(&path).unwrap();
    path
}

fn packet(message: u8) -> Packet {
    Packet::new(PacketKind::Data, 0, message)
}

pub(super) fn write(link: &mut ShmLink, to: PeerId, packet: &Packet) -> Result<(), WriteError> {
    link.write(to, 1, |places: &mut [Packet], placement| places.fill(packet.placed(placement)))
        .map(|written| assert_eq!(written, 1))
}

fn poll_departure(link: &mut ShmLink) -> Option<Departure> {
    match link.poll_event()? {
        LinkEvent::Departed(departure) => Some(departure),
        _ => None,
    }
}

/// The kind of message of the next packet, and who sent it.
fn receive(link: &mut ShmLink) -> (PeerId, u8) {
    loop {
        if let Some(arrival) = link.retrieve() {
            return (arrival.source, arrival.packet.header.message());
        }
        link.idle().yield_if_asked();
    }
}

#[test]
#[ignore = "a process of the next test: dies between reserving a slot and publishing it"]
fn role_dies_writing() {
    let mut link = link(std::env::var_os(FOLDER).unwrap().as_ref());
    let text = std::env::var(ADDRESS).unwrap();
    let bytes: Vec<u8> = text.split(' ').map(|byte| byte.parse().unwrap()).collect();
    let to = link.peer(&Address::from_bytes(&bytes).unwrap()).unwrap();
    (0..3).for_each(|message| write(&mut link, to, &packet(message)).unwrap());
    let connection = link.peers[to.0 as usize].connection.take().unwrap();
    connection.reserve_and_die();
    loop {
        std::thread::park();
    }
}

fn start_dying(folder: &std::path::Path, address: Address) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "shm::tests::role_dies_writing"])
        .env(FOLDER, folder)
        .env(ADDRESS, address.to_bytes().map(|byte| byte.to_string()).join(" "))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn the_hole_of_a_dead_process_stops_the_reader_only_until_it_is_dead() {
    let folder = folder();
    let (mut a, mut c) = (link(&folder), link(&folder));
    let mut child = start_dying(&folder, a.address());
    let (dying, first) = receive(&mut a);
    assert_eq!(first, 0);
    (1..3).for_each(|message| assert_eq!(receive(&mut a), (dying, message)));
    // Behind the hole, which is there once the write pointer says so.
    while a.reader.backlog() == Ok(0) {
        std::thread::yield_now();
    }
    let to = c.peer(&a.address()).unwrap();
    write(&mut c, to, &packet(10)).unwrap();
    while a.monitor.hole.is_none() {
        assert!(a.retrieve().is_none(), "the writer lives: it may yet publish");
        a.idle().yield_if_asked();
    }
    child.kill().unwrap();
    let (living, message) = receive(&mut a);
    assert_eq!(message, 10);
    assert_ne!(living, dying);
    let left = loop {
        if let Some(left) = poll_departure(&mut a) {
            break left;
        }
        a.idle().yield_if_asked();
    };
    assert_eq!((left.peer, left.orderly), (dying, false));
    a.release(dying);
    for lap in 0..100 {
        write(&mut c, to, &packet(lap)).unwrap();
        assert_eq!(receive(&mut a), (living, lap));
    }
    child.wait().unwrap();
    drop((a, c));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    std::fs::remove_dir(folder).unwrap();
}

#[test]
fn packets_from_nobody_are_dropped_and_counted() {
    let folder = folder();
    let (mut a, mut b) = (link(&folder), link(&folder));
    let to = b.peer(&a.address()).unwrap();
    write(&mut b, to, &packet(1)).unwrap();
    for source in [1, 2, 0xf_ffff] {
        b.peers[to.0 as usize].connection.as_mut().unwrap().pretend_to_be(PeerId(source));
        write(&mut b, to, &packet(2)).unwrap();
    }
    b.peers[to.0 as usize].connection.as_mut().unwrap().pretend_to_be(PeerId(0));
    write(&mut b, to, &packet(3)).unwrap();
    assert_eq!(receive(&mut a).1, 1);
    assert_eq!(receive(&mut a).1, 3);
    assert_eq!(a.counters().get(Counter::Violations), 3);
    drop((a, b));
    std::fs::remove_dir(folder).unwrap();
}

#[test]
fn no_look_at_few_peers_goes_through_a_table_for_many() {
    let folder = folder();
    let flow = Config { piggyback: true, ..Config::new(SchemeName::Static, 5000, 16, 2) };
    let config = ShmConfig { directory: folder.clone(), ..ShmConfig::new(flow) };
    let (mut a, mut b, mut c) = (ShmLink::new(config).unwrap(), link(&folder), link(&folder));
    for other in [&mut b, &mut c] {
        let to = other.peer(&a.address()).unwrap();
        write(other, to, &packet(1)).unwrap();
        receive(&mut a);
    }
    // One has left, and its place is free; the other dies with a slot reserved.
    drop(c);
    let left = loop {
        if let Some(left) = poll_departure(&mut a) {
            break left;
        }
        a.idle().yield_if_asked();
    };
    a.release(left.peer);
    let to_a = b.peer(&a.address()).unwrap();
    b.peers[to_a.0 as usize].connection.take().unwrap().reserve_and_die();
    for _ in 0..2 * 20 {
        let before = index::LOOKS.get();
        a.look_soon();
        a.watch();
        let looks = index::LOOKS.get() - before;
        assert!(looks < 40, "{looks} looks");
    }
    assert!(a.monitor.hole.is_some(), "there is a slot that may never be written");
    assert_eq!(a.roster.len(), 1);
    drop((a, b));
    std::fs::remove_dir(folder).unwrap();
}

#[test]
fn the_first_packet_has_as_much_time_to_be_written_as_all_others() {
    let folder = folder();
    let (mut a, mut b) = (link(&folder), link(&folder));
    let to_a = b.peer(&a.address()).unwrap();
    b.connect(to_a).unwrap();
    b.peers[to_a.0 as usize].connection.take().unwrap().reserve_and_die();
    for is_hole in [false, true] {
        a.look_soon();
        a.watch();
        assert_eq!(a.monitor.hole.is_some(), is_hole);
    }
    drop((a, b));
    std::fs::remove_dir(folder).unwrap();
}

/// Endpoints of so many peers that have ended without a trace.
fn addresses_of_nobody(folder: &std::path::Path, count: usize) -> Vec<Address> {
    (0..count).map(|_| link(folder).address()).collect()
}

/// Tries to write to these, and takes note that all of them are gone: returns the places that they had.
fn find_gone(a: &mut ShmLink, addresses: &[Address]) -> Vec<PeerId> {
    let gone = addresses.iter().map(|address| {
        let to = a.peer(address).unwrap();
        assert!(matches!(write(a, to, &packet(1)), Err(WriteError::Unreachable(_))));
        poll_departure(a).expect("it is gone").peer
    });
    gone.collect()
}

#[test]
fn who_enters_silently_is_found_in_whatever_order_places_became_free() {
    let folder = folder();
    let flow = Config { piggyback: true, ..Config::new(SchemeName::Static, 8, 16, 2) };
    let config = ShmConfig { directory: folder.clone(), ..ShmConfig::new(flow) };
    let (mut a, mut c) = (ShmLink::new(config).unwrap(), link(&folder));
    a.monitor.next = tidegate_flow::Instant::from_nanos(u64::MAX);
    let places = find_gone(&mut a, &addresses_of_nobody(&folder, 3));
    assert_eq!(places, [0, 1, 2].map(PeerId));
    places.iter().rev().for_each(|place| a.release(*place));
    a.look_soon();
    a.watch();
    a.tell_window(12_345);
    let to = c.peer(&a.address()).unwrap();
    assert_eq!(c.window(to), Some(12_345), "it has entered");
    a.look_soon();
    a.watch();
    assert_eq!(a.address_of(PeerId(0)), Some(c.address()));
    drop((a, c));
    std::fs::remove_dir(folder).unwrap();
}

#[test]
fn a_newcomer_reads_the_window_of_newcomers() {
    let folder = folder();
    let mut a = link(&folder);
    a.tell_window(12_345);
    a.tell_newcomers(PeerId(1), 2048);
    let others: Vec<ShmLink> = (0..2).map(|_| link_for_one(&folder)).collect();
    let windows: Vec<_> = others
        .into_iter()
        .map(|mut other| {
            let to = other.peer(&a.address()).unwrap();
            other.window(to)
        })
        .collect();
    assert_eq!(windows, [Some(12_345), Some(2048)]);
    drop(a);
    std::fs::remove_dir(folder).unwrap();
}

#[test]
fn who_is_gone_again_and_again_between_two_looks_leaves_one_vacant_place() {
    let folder = folder();
    let mut a = link(&folder);
    let nobody = addresses_of_nobody(&folder, 1);
    for _ in 0..20 {
        a.monitor.next = tidegate_flow::Instant::from_nanos(u64::MAX);
        let places = find_gone(&mut a, &nobody);
        a.release(places[0]);
        a.look_soon();
        a.watch();
        assert_eq!((places, a.vacant.len()), (vec![PeerId(0)], 1));
    }
    drop(a);
    std::fs::remove_dir(folder).unwrap();
}

/// An endpoint for one peer, without bounce buffers.
fn link_for_one(folder: &std::path::Path) -> ShmLink {
    let flow = Config { piggyback: true, ..Config::new(SchemeName::Static, 1, 16, 2) };
    ShmLink::new(ShmConfig { directory: folder.to_path_buf(), bounce_buffers: 0, ..ShmConfig::new(flow) }).unwrap()
}

#[test]
fn ones_own_table_is_changing_as_long_as_the_place_of_one_out_of_reach_is_not_given_away() {
    let folder = folder();
    let (mut a, c) = (link_for_one(&folder), link_for_one(&folder));
    let gone = find_gone(&mut a, &addresses_of_nobody(&folder, 1));
    match a.peer(&c.address()) {
        Err(error @ LinkError::TableFull { .. }) => assert!(error.may_be_tried_again(), "{error}"),
        other => panic!("{other:?}"),
    }
    a.release(gone[0]);
    assert_eq!(a.peer(&c.address()).unwrap(), gone[0]);
    match a.peer(&link(&folder).address()) {
        Err(error @ LinkError::TableFull { .. }) => assert!(!error.may_be_tried_again(), "{error}"),
        other => panic!("{other:?}"),
    }
    drop((a, c));
    std::fs::remove_dir(folder).unwrap();
}

#[test]
fn who_finds_no_place_in_the_network_beside_tries_for_ten_seconds() {
    let folder = folder();
    let mut link = link_for_one(&folder);
    let is_tried_again = |link: &mut ShmLink| link.no_place_beside(7).may_be_tried_again();
    assert!(is_tried_again(&mut link) && is_tried_again(&mut link));
    link.place_retry.pretend_to_have_lasted(std::time::Duration::from_secs(10));
    let error = link.no_place_beside(7);
    assert!(!error.may_be_tried_again() && error.to_string().contains("full with 7 peers"), "{error}");
    drop(link);
    std::fs::remove_dir(folder).unwrap();
}

/// Tries again and again to write to `to`, without a pause. Returns why that cannot be, if so.
fn insist(link: &mut ShmLink, to: PeerId) -> Option<String> {
    loop {
        link.peers[to.0 as usize].connect_at = tidegate_flow::Instant::from_nanos(1);
        match write(link, to, &packet(1)) {
            Ok(()) => return None,
            Err(WriteError::Full | WriteError::Refused) => {}
            Err(WriteError::Unreachable(why)) => return Some(why),
        }
    }
}

#[test]
fn a_place_that_becomes_free_while_somebody_looks_for_one_is_found_at_the_next_try() {
    const NEWCOMERS: usize = 800;
    let folder = folder();
    let mut a = link_for_one(&folder);
    let (address, is_over) = (a.address(), std::sync::atomic::AtomicBool::new(false));
    let refusals: Vec<String> = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                a.retrieve();
                a.look_soon();
                if let Some(left) = poll_departure(&mut a) {
                    a.release(left.peer);
                }
            }
        });
        // One after the other: nobody is there but who has left.
        let newcomers = (0..NEWCOMERS).filter_map(|_| {
            let mut b = link_for_one(&folder);
            let to = b.peer(&address).unwrap();
            insist(&mut b, to)
        });
        let refusals = newcomers.collect();
        is_over.store(true, Ordering::Relaxed);
        refusals
    });
    assert!(refusals.is_empty(), "{} times, the first: {}", refusals.len(), refusals[0]);
    drop(a);
    std::fs::remove_dir(folder).unwrap();
}

#[test]
fn everybodys_turn_comes_also_when_some_leave() {
    let mut turn = state::Turn::default();
    assert_eq!([(); 5].map(|()| turn.next(3)), [0, 1, 2, 0, 1]);
    assert_eq!([(); 3].map(|()| turn.next(2)), [0, 1, 0]);
    assert_eq!(turn.next(1), 0);
}

static TOLD: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());

fn collect_troubles(level: crate::log::Level, text: &str) {
    if level == crate::log::Level::Trouble {
        TOLD.lock().unwrap().push(text.to_owned());
    }
}

/// Runs an ignored test of this program in a process of its own, with an endpoint of ours to connect to.
fn run_with_a_peer(role: &str) {
    let folder = folder();
    let a = link(&folder);
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", &format!("shm::tests::{role}"), "--nocapture"])
        .env(FOLDER, &folder)
        .env(ADDRESS, a.address().to_bytes().map(|byte| byte.to_string()).join(" "))
        .stdout(Stdio::null())
        .status();
    drop(a);
    let _ = std::fs::remove_dir_all(folder);
    assert!(child.unwrap().success(), "see the message of the process above");
}

/// Sets a limit of this process.
fn set_limit(of: libc::__rlimit_resource_t, most: libc::rlim_t) {
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: the struct lives through the call.
    assert_eq!(unsafe { libc::setrlimit(of, &limit) }, 0);
}

/// Tries to connect to the endpoint that started this process, without what is needed for it, as if for a minute.
fn lack_for_a_minute(take_all: impl FnOnce(), remedy: &str) {
    crate::log::set_sink(collect_troubles);
    let mut link = link(std::env::var_os(FOLDER).unwrap().as_ref());
    let text = std::env::var(ADDRESS).unwrap();
    let bytes: Vec<u8> = text.split(' ').map(|byte| byte.parse().unwrap()).collect();
    let to = link.peer(&Address::from_bytes(&bytes).unwrap()).unwrap();
    let told = || std::mem::take(&mut *TOLD.lock().unwrap());
    take_all();
    let try_after = |link: &mut ShmLink, seconds: u64| {
        link.peers[to.0 as usize].connect_retry.pretend_to_have_lasted(std::time::Duration::from_secs(seconds));
        link.peers[to.0 as usize].connect_at = tidegate_flow::Instant::from_nanos(1);
        write(link, to, &packet(1))
    };
    for seconds in [0, 4] {
        assert_eq!(try_after(&mut link, seconds), Err(WriteError::Full));
        assert!(told().is_empty(), "{seconds}");
    }
    for expected in [1, 0] {
        assert_eq!(try_after(&mut link, 6), Err(WriteError::Full));
        let told = told();
        assert!(told.len() == expected && told.iter().all(|text| text.contains(remedy)), "{told:?}");
    }
    let Err(WriteError::Unreachable(why)) = try_after(&mut link, 61) else { panic!("waits for ever") };
    assert!(why.contains(remedy) && why.contains("for 61 seconds"), "{why}");
    assert_eq!(told().len(), 1, "why it ends");
    let left = loop {
        if let Some(left) = poll_departure(&mut link) {
            break left;
        }
        link.idle().yield_if_asked();
    };
    assert!(left.peer == to && left.name.contains(remedy), "{left:?}");
}

#[test]
#[ignore = "a process of the next test: has no descriptor left"]
fn role_lacks_descriptors_for_a_minute() {
    let mut used = Vec::new();
    let take_all = || {
        set_limit(libc::RLIMIT_NOFILE, 64);
        used.extend(std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()));
    };
    lack_for_a_minute(take_all, "descriptors as it may have (64): raise its limit (ulimit -n)");
}

#[test]
fn who_lacks_descriptors_is_told_and_gives_up_after_a_minute() {
    run_with_a_peer("role_lacks_descriptors_for_a_minute");
}

#[test]
#[ignore = "a process of the next test: may map no more memory"]
fn role_lacks_address_space_for_a_minute() {
    let take_all = || {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: libc::rlim_t = pages.split(' ').next().unwrap().parse().unwrap();
        // Some more for this process itself; a segment with bounce buffers takes more than that.
        set_limit(libc::RLIMIT_AS, pages * 4096 + (512 << 10));
    };
    lack_for_a_minute(take_all, "raise the limit of its address space (ulimit -v");
}

#[test]
fn who_lacks_address_space_is_told_and_gives_up_after_a_minute() {
    run_with_a_peer("role_lacks_address_space_for_a_minute");
}

#[test]
fn a_segment_is_as_long_as_its_configuration_says() {
    let folder = folder();
    for (scheme, peers) in [(SchemeName::Dynamic, 3), (SchemeName::Static, 40), (SchemeName::Dynamic, 0)] {
        let config = ShmConfig { directory: folder.clone(), ..ShmConfig::new(Config::new(scheme, peers, 64, 2)) };
        let said = config.segment_bytes();
        let _link = ShmLink::new(config).unwrap();
        let longest = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).max();
        assert_eq!(said, longest, "{scheme} {peers}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
