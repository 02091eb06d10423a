//! Pages as they are written and read: rows that are replaced while somebody reads them, writers that die amid a row,
//! pages of other versions.

use super::layout::{OPEN_ROWS, PAGE_BYTES, Text, WAIT_ROWS, Word};
use super::page::{Chunk, StatsConfig, StatsPage};
use super::{EndpointStats, WaitCause, read_dir};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegate_flow::{Config, SchemeName};
use tidegate_message::{Counter, Instant, OpenMessage, OpenReceive, OpenSend, PeerWait, Snapshot, WayTimes};

/// A folder of a test, which is removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tidegate-stats-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a place for the test");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn page(folder: &Folder) -> StatsPage {
    let config = StatsConfig {
        dir: folder.0.clone(),
        rank: Some(2),
        job_size: Some(4),
        launch: Some("x@1".into()),
        mpi: Some("mpich"),
        chosen: super::Chosen { slots: true, memory: false },
    };
    StatsPage::create(&config, &Config::new(SchemeName::Static, 3, 16, 2), 77).expect("a page")
}

fn only(folder: &Folder) -> EndpointStats {
    let mut pages = read_dir(&folder.0).expect("pages");
    assert_eq!((pages.read.len(), &pages.refused[..]), (1, &[][..]));
    pages.read.remove(0)
}

#[test]
fn a_folder_that_somebody_fills_is_read_in_part_and_says_so() {
    let folder = Folder::new("filled");
    (0..9).for_each(|number| fs::write(folder.0.join(format!("{number}.other")), "").unwrap());
    assert_eq!(super::reader::read_some(&folder.0, 9).unwrap().refused, [""; 0]);
    let refused = super::reader::read_some(&folder.0, 8).unwrap().refused;
    assert!(refused.len() == 1 && refused[0].contains("more than 8 files"), "{refused:?}");
}

#[test]
fn no_text_of_a_page_speaks_to_the_terminal() {
    let folder = Folder::new("plain");
    drop(page(&folder));
    let path = fs::read_dir(&folder.0).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&path).unwrap();
    // The page of another user, who has written into it by other means.
    for text in [Text::PROGRAM, Text::HOST, Text::LAUNCH, Text::MPI, Text::NETWORK] {
        bytes[text.at * 8..][..6].copy_from_slice(b"\x1b[31m\x07");
        bytes[text.at * 8 + 6] = 0;
    }
    fs::write(&path, bytes).unwrap();
    let found = only(&folder);
    let cleaned = "\u{fffd}[31m\u{fffd}";
    assert_eq!([&found.program, &found.host, &found.network], [cleaned; 3]);
    assert_eq!([found.launch.as_deref(), found.mpi.as_deref()], [Some(cleaned); 2]);
}

/// Rows that all follow from a number, as many as a page has room for.
fn rows(number: u64) -> Snapshot<u64> {
    let since = Instant::from_nanos(number);
    let (tag, bytes) = (Some(number), number & 0xffff);
    Snapshot {
        at: Instant::from_nanos(number + 1000),
        peers_delayed: 1,
        is_pressed: false,
        is_waiting: false,
        way_times: std::array::from_fn(|class| WayTimes { asked: class as u32, read: u32::MAX - class as u32 }),
        waits: vec![
            PeerWait {
                peer: Some(number),
                cause: WaitCause::Window,
                count: number,
                waited: Duration::from_nanos(number),
                since: Some(since)
            };
            WAIT_ROWS
        ],
        receives: vec![
            OpenReceive {
                from: None,
                tag,
                ignore: number,
                bytes,
                since,
                is_arriving: false,
                is_probe: false
            };
            OPEN_ROWS
        ],
        receives_in_all: number,
        sends: vec![OpenSend { to: number, tag, bytes, since, waits_for: Some(WaitCause::Pull) }; OPEN_ROWS],
        sends_in_all: number,
        unexpected: vec![OpenMessage { from: number, tag, bytes, since }; OPEN_ROWS],
        unexpected_in_all: number,
    }
}

/// The number that all rows of a page follow from; panics if they do not.
fn number_of(page: &EndpointStats) -> u64 {
    let number = page.open.receives_in_all;
    assert_eq!((page.open.sends_in_all, page.open.unexpected_in_all), (number, number));
    let age = Duration::from_nanos(1000);
    assert_eq!((page.open.waits.len(), page.open.receives.len()), (WAIT_ROWS, OPEN_ROWS));
    for wait in &page.open.waits {
        assert_eq!((wait.peer, wait.count, wait.cause), (Some(number), number, WaitCause::Window));
        assert_eq!((wait.waited, wait.since), (Duration::from_nanos(number), Some(age)));
    }
    for receive in &page.open.receives {
        assert_eq!((receive.tag, receive.ignore, receive.since), (Some(number), number, age));
    }
    for send in &page.open.sends {
        assert_eq!((send.to, send.tag, send.waits_for), (number, Some(number), Some(WaitCause::Pull)));
    }
    for message in &page.open.unexpected {
        assert_eq!((message.from, message.tag, message.bytes), (number, Some(number), number & 0xffff));
    }
    number
}

#[test]
fn what_a_page_says_reads_back() {
    let folder = Folder::new("back");
    let page = page(&folder);
    page.counters().add(Counter::PacketsSent, 7);
    page.set_network("tcp/eth0");
    page.set_spin(32);
    page.set_chunks(Chunk::Bytes(4096), Some(Chunk::Whole));
    page.note_death(5);
    page.note_death(6);
    let before = only(&folder);
    assert_eq!((before.endpoint, before.rank, before.job_size), (77, Some(2), Some(4)));
    assert_eq!((before.launch.as_deref(), before.mpi.as_deref()), (Some("x@1"), Some("mpich")));
    assert_eq!((before.network.as_str(), before.first_dead, before.ended), ("tcp/eth0", Some(5), false));
    let chunks = (before.chunk, before.chunk_between_hosts);
    assert_eq!((before.spin, chunks), (32, (Some(Chunk::Bytes(4096)), Some(Chunk::Whole))));
    assert!(!before.host.is_empty() && before.started > Duration::from_secs(1 << 30));
    assert!(before.written.is_zero() && before.open.is_empty() && before.open.waits.is_empty());
    let now = crate::now();
    let receive = OpenReceive {
        from: Some(9),
        tag: None,
        ignore: u64::MAX,
        bytes: 5,
        since: now,
        is_arriving: true,
        is_probe: true,
    };
    let wait = PeerWait { peer: None, cause: WaitCause::Mailbox, count: 3, waited: Duration::ZERO, since: None };
    let (receives, waits) = (vec![receive], vec![wait]);
    page.write_rows(&Snapshot { at: now, receives, receives_in_all: 40, waits, ..Snapshot::default() });
    let after = only(&folder);
    let [receive] = after.open.receives[..] else { panic!("one receive") };
    assert_eq!((receive.from, receive.tag, receive.bytes), (Some(9), None, 5));
    assert!(receive.is_arriving && receive.is_probe);
    assert_eq!((after.open.receives_in_all, after.open.sends_in_all, after.is_current), (40, 0, true));
    let [wait] = after.open.waits[..] else { panic!("one wait") };
    assert_eq!((wait.peer, wait.cause, wait.count, wait.since), (None, WaitCause::Mailbox, 3, None));
    assert!(after.written >= after.started && after.written < after.started + Duration::from_secs(60));
    drop(page);
    let closed = only(&folder);
    assert!(closed.ended && closed.closed >= Some(closed.written));
}

#[test]
fn a_clock_of_the_world_that_was_set_changes_no_time_of_a_page() {
    let folder = Folder::new("jump");
    let page = page(&folder);
    page.write_rows(&rows(1));
    let before = only(&folder);
    let year: u64 = 365 * 24 * 3600 * 1_000_000_000;
    let path = fs::read_dir(&folder.0).unwrap().next().unwrap().unwrap().path();
    let at = Word::StartedEpoch as usize * 8;
    let mut bytes = fs::read(&path).unwrap();
    let epoch = u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
    bytes[at..at + 8].copy_from_slice(&(epoch - year).to_ne_bytes());
    fs::write(&path, &bytes).unwrap();
    let after = only(&folder);
    assert_eq!((after.started, after.written), (before.started, before.written));
    let present = crate::since_epoch();
    assert!(after.started <= present && present < after.started + Duration::from_secs(60));
    // Of another host, or from before this one was started, its own clock of the world is all that is known.
    bytes[Word::Boot as usize * 8] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert!(only(&folder).started + Duration::from_secs(364 * 24 * 3600) < before.started);
}

#[test]
fn launches_with_long_names_are_told_apart_by_their_ends() {
    let folder = Folder::new("launches");
    let host = "h".repeat(60);
    for (endpoint, launch) in [(1, format!("prterun-{host}-4711@1")), (2, format!("prterun-{host}-4711@2"))] {
        let config = StatsConfig { dir: folder.0.clone(), launch: Some(launch), ..StatsConfig::default() };
        let flow = Config::new(SchemeName::Static, 3, 16, 2);
        drop(StatsPage::create(&config, &flow, endpoint).expect("a page"));
    }
    let pages = read_dir(&folder.0).expect("pages").read;
    let ends: Vec<_> = pages.iter().map(|page| page.launch.as_deref().unwrap().rsplit_once('-').unwrap().1).collect();
    assert_eq!(ends, ["4711@1", "4711@2"]);
}

#[test]
fn rows_are_whole_however_often_they_are_replaced_while_they_are_read() {
    let folder = Folder::new("torn");
    let page = page(&folder);
    page.write_rows(&rows(1));
    let written = AtomicU64::new(1);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut read = 0;
            while read < 50 || written.load(Ordering::Relaxed) < 200 {
                read += usize::from(number_of_last(&folder).is_some());
            }
        });
        while !reader.is_finished() {
            for _ in 0..5 {
                page.write_rows(&rows(written.fetch_add(1, Ordering::Relaxed) + 1));
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        reader.join().expect("all rows were whole");
    });
}

/// The number of the rows of the only page. `None`: they were replaced again and again; then there are none.
fn number_of_last(folder: &Folder) -> Option<u64> {
    let page = only(folder);
    if page.written.is_zero() {
        assert!(page.open.is_empty() && page.open.waits.is_empty());
        return None;
    }
    Some(number_of(&page))
}

#[test]
fn a_writer_that_dies_amid_its_rows_leaves_the_ones_before() {
    let folder = Folder::new("death");
    let page = page(&folder);
    page.write_rows(&rows(10));
    page.write_rows(&rows(11));
    // What it would have written third, in part: the side is filled and not made the one in use.
    page.fill_side(3, &Snapshot { receives_in_all: 99, ..rows(12) });
    assert_eq!(number_of(&only(&folder)), 11);
    page.write_rows(&rows(13));
    assert_eq!(number_of(&only(&folder)), 13);
}

#[test]
fn more_rows_than_there_is_room_for_are_cut() {
    let folder = Folder::new("cut");
    let page = page(&folder);
    let mut many = rows(5);
    many.receives = vec![many.receives[0]; 3 * OPEN_ROWS];
    page.write_rows(&many);
    let read = only(&folder);
    assert_eq!((number_of(&read), read.open.way_times), (5, many.way_times));
}

#[test]
fn what_goes_on_grows_until_the_end_unless_something_has_moved() {
    let folder = Folder::new("grows");
    let page = page(&folder);
    let now = crate::now();
    let since = now;
    let wait = |since| PeerWait { peer: Some(3), cause: WaitCause::Credits, count: 1, waited: Duration::ZERO, since };
    page.counters().set(Counter::DelayNanoseconds, 140_000);
    page.write_rows(&Snapshot {
        at: now,
        peers_delayed: 2,
        is_pressed: true,
        is_waiting: true,
        waits: vec![wait(Some(since)), wait(None)],
        receives: vec![OpenReceive {
            from: None,
            tag: Some(1),
            ignore: 0,
            bytes: 0,
            since,
            is_arriving: false,
            is_probe: false,
        }],
        receives_in_all: 1,
        ..Snapshot::default()
    });
    let mut read = only(&folder);
    let six = Duration::from_secs(6);
    read.lasts_until(read.written + six);
    assert_eq!(read.open.receives[0].since, six);
    assert_eq!([read.open.waits[0].since, read.open.waits[1].since], [Some(six), None]);
    assert_eq!(read.get(Counter::DelayNanoseconds), 140_000 + 2 * 6_000_000_000);
    assert_eq!([Counter::PressureNanoseconds, Counter::WaitNanoseconds].map(|of| read.get(of)), [6_000_000_000; 2]);
    // A packet has come: what waited may have gone on.
    page.counters().add(Counter::PacketsReceived, 1);
    let mut read = only(&folder);
    read.lasts_until(read.written + six);
    assert_eq!((read.is_current, read.open.receives[0].since), (false, Duration::ZERO));
    assert_eq!(read.get(Counter::DelayNanoseconds), 140_000);
}

#[test]
fn files_that_are_no_pages_are_refused_by_name_and_hide_no_page() {
    let folder = Folder::new("version");
    let _page = page(&folder);
    let refused = |name: &str, bytes: &[u8]| {
        let path = folder.0.join(name);
        std::fs::write(&path, bytes).expect("a file");
        let found = read_dir(&folder.0).expect("a folder");
        std::fs::remove_file(path).expect("it was there");
        assert_eq!((found.read.len(), found.refused.len()), (1, 1), "{found:?}");
        assert!(found.refused[0].contains(name), "{found:?}");
        found.gap().expect("there is one")
    };
    let mut old = vec![0; 64 * 8];
    old[..8].copy_from_slice(&u64::from_be_bytes(*b"TIDESTA\x02").to_ne_bytes());
    assert!(refused("1-0.counters", &old).contains("layout 2"));
    assert!(refused("2-0.counters", &[7; 4096]).contains("is not a page of counters"));
    let this = std::fs::read(folder.0.join(format!("{}-0.counters", std::process::id()))).expect("a page");
    assert!(
        refused("2-0.counters", &this[..600]).contains("is not a page of counters"),
        "it is of this version, and cut"
    );
    // One whose process was killed while it set it up is passed over.
    std::fs::write(folder.0.join("3-0.counters"), vec![0; PAGE_BYTES]).expect("a file");
    assert_eq!(only(&folder).endpoint, 77);
    // What is no file at all: a pipe without a writer must not be waited for.
    std::fs::create_dir(folder.0.join("4-0.counters")).expect("a folder");
    let pipe =
        std::ffi::CString::new(folder.0.join("5-0.counters").into_os_string().into_encoded_bytes()).expect("a path");
    // SAFETY: a path that ends with a zero.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    let found = read_dir(&folder.0).expect("a folder");
    assert_eq!((found.read.len(), found.refused.len()), (1, 2), "{found:?}");
    let gap = found.gap().expect("there is one");
    assert!(gap.starts_with("2 pages of counters are left out: ") && gap.ends_with("; and 1 more"), "{gap}");
}

#[test]
fn a_folder_that_is_not_there_is_an_error_at_once() {
    let config = StatsConfig { dir: Path::new("/no/such/folder").into(), ..StatsConfig::default() };
    let failed = StatsPage::create(&config, &Config::new(SchemeName::None, 1, 16, 2), 1);
    assert_eq!(failed.expect_err("no folder").kind(), std::io::ErrorKind::NotFound);
}
