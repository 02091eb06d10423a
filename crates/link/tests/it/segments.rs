//! Files: what is created, what is left behind by whom, and what is cleared away.

use crate::support::*;
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use tidegate_link::{Address, LinkError, ShmConfig, ShmLink};
use tidegate_message::{Link, WriteError};

/// The six fields of a segment's name: uid, host key, namespace, pid, serial, tag.
fn fields(folder: &Folder) -> [String; 6] {
    let link = folder.link(1);
    let [name] = &folder.files()[..] else { panic!("one segment") };
    let fields: Vec<String> = name.strip_prefix("tidegate-").unwrap().split('-').map(str::to_owned).collect();
    drop(link);
    fields.try_into().unwrap()
}

fn name(fields: &[String; 6]) -> String {
    format!("tidegate-{}", fields.join("-"))
}

fn changed(fields: &[String; 6], at: usize, value: &str) -> [String; 6] {
    let mut fields = fields.clone();
    fields[at] = value.to_owned();
    fields
}

/// Holds the lock on byte 0 that a living owner holds.
fn hold_life_lock(path: &Path) -> File {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    // SAFETY: a C struct of integers.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as _;
    lock.l_len = 1;
    // SAFETY: our descriptor; `lock` is alive through the call.
    assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &lock) }, 0);
    file
}

/// fi_tidegate(7): "Only processes of the same user can map a segment."
#[test]
fn a_segment_is_private_and_gone_when_its_endpoint_closes() {
    let folder = Folder::new();
    let link = ShmLink::new(ShmConfig { send_buffers: 0, ..folder.config(2) }).unwrap();
    let path = folder.path().join(&folder.files()[0]);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let facts = fs::metadata(&path).unwrap();
    assert!(facts.blocks() * 512 >= facts.len(), "all of it, send buffers apart, is allocated before it is touched");
    drop(link);
    assert!(folder.files().is_empty());
}

#[test]
fn segments_of_dead_owners_are_reclaimed_and_no_others() {
    let folder = Folder::new();
    let own = fields(&folder);
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let ended = child.id().to_string();
    let tag = |value: u64| format!("{value:016x}");
    let stale = [
        changed(&own, 1, "0000000000ff"), // another host key, and no process holds the lock
        changed(&changed(&own, 2, "1"), 5, &tag(77)), // another container, and no process holds the lock
        changed(&own, 5, &tag(999)),      // this process, but no process holds the lock
        changed(&own, 3, &ended),         // a process that has ended, whatever its lock says
    ];
    let kept = [
        changed(&own, 0, "12345678"),                 // another user
        changed(&changed(&own, 2, "1"), 5, &tag(78)), // another container, and its owner lives
        changed(&own, 5, &tag(1000)),                 // this process, and the endpoint exists
        changed(&own, 1, "0000000000fe"),             // another host key, and its owner lives all the same
    ];
    for fields in stale.iter().chain(&kept) {
        fs::write(folder.path().join(name(fields)), []).unwrap();
    }
    // A child that its owner forked holds the lock on.
    let _inherited = hold_life_lock(&folder.path().join(name(&stale[3])));
    let _held = kept[1..].iter().map(|fields| hold_life_lock(&folder.path().join(name(fields)))).collect::<Vec<_>>();
    let others = ["tidegate-", "tidegate-0-0-0", "sem.something"];
    others.iter().for_each(|name| fs::write(folder.path().join(name), []).unwrap());
    if own[0] == "0" {
        // Only the superuser can make the file of another user really that user's; for others the open fails.
        std::os::unix::fs::chown(folder.path().join(name(&kept[0])), Some(12_345_678), None).unwrap();
    } else {
        fs::set_permissions(folder.path().join(name(&kept[0])), fs::Permissions::from_mode(0o000)).unwrap();
    }
    let link = folder.link(1);
    let left = folder.files();
    for fields in &stale {
        assert!(!left.contains(&name(fields)), "{} should be gone", name(fields));
    }
    for name in kept.iter().map(name).chain(others.map(str::to_owned)) {
        assert!(left.contains(&name), "{name} should be there");
    }
    assert_eq!(left.len(), kept.len() + others.len() + 1);
    drop(link);
}

#[test]
fn links_and_pipes_in_the_folder_are_left_alone() {
    let folder = Folder::new();
    let own = fields(&folder);
    let target = folder.path().join("precious");
    fs::write(&target, "data").unwrap();
    symlink(&target, folder.path().join(name(&changed(&own, 1, "0000000000ff")))).unwrap();
    let pipe = folder.path().join(name(&changed(&own, 1, "0000000000fe")));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let link = folder.link(1);
    assert_eq!(fs::read_to_string(&target).unwrap(), "data");
    assert_eq!(folder.files().len(), 4);
    drop(link);
}

#[test]
#[ignore = "a process of other tests: makes an endpoint, says so, and waits to be killed"]
fn role_exists() {
    let mut link = role_folder().link(1);
    let to = link.peer(&role_address()).unwrap();
    send(&mut link, to, 0);
    loop {
        std::thread::park();
    }
}

#[test]
fn the_next_job_clears_up_after_a_killed_one() {
    let folder = Folder::new();
    let mut link = folder.link(1);
    let child = Process::start("segments::role_exists", &folder, link.address());
    receive(&mut link);
    drop(link);
    assert_eq!(folder.files().len(), 1, "the living one's segment stays");
    let next = folder.link(1);
    assert_eq!(folder.files().len(), 2, "also when somebody starts");
    child.kill();
    drop(next);
    let next = folder.link(1);
    assert_eq!(folder.files().len(), 1);
    drop(next);
}

#[test]
#[ignore = "a process of other tests: forks, and lets the child end in the ordinary way"]
fn role_forks() {
    let mut link = role_folder().link(1);
    // SAFETY: the child only drops a value and ends; no other thread of this process holds a lock that it needs.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // The numbers of its parent's files, which values here still have, are not given to files of its own.
        let own = File::open("/dev/null").unwrap();
        drop(link);
        // SAFETY: ends this process and nothing else.
        unsafe { libc::_exit(own.metadata().is_err().into()) };
    }
    let mut status = 1;
    // SAFETY: our child, and `status` lives through the call.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0);
    let to = link.peer(&role_address()).unwrap();
    send(&mut link, to, 5);
    assert_eq!(receive(&mut link).1, 6, "the parent's endpoint works on");
}

#[test]
fn a_forked_child_does_not_close_its_parents_endpoint() {
    let folder = Folder::new();
    let mut link = folder.link(1);
    let process = Process::start("segments::role_forks", &folder, link.address());
    let (peer, five) = receive(&mut link);
    assert_eq!(five, 5);
    send(&mut link, peer, 6);
    process.join();
}

/// A file system of 64 KiB over an empty folder; `None` for those who may not mount.
struct SmallDisk(Folder);

impl SmallDisk {
    fn new() -> Option<Self> {
        let folder = Folder::new();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "tidegate-test"]).arg(folder.path()).status();
        mounted.is_ok_and(|status| status.success()).then(|| SmallDisk(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn too_little_space_is_an_error_with_what_takes_it_and_leaves_nothing() {
    let Some(disk) = SmallDisk::new() else {
        println!("skipped: only the superuser can mount a small file system");
        return;
    };
    match ShmLink::new(disk.0.config(100)) {
        Err(LinkError::NoSpace(shortage)) => {
            assert_eq!(shortage.mailbox, 100 * 16 * 64);
            assert!(shortage.needed > shortage.mailbox + shortage.bounce_buffers, "{shortage:?}");
            // The attempt itself has left nothing there.
            assert_eq!((shortage.total, shortage.free, shortage.others), (65_536, 65_536, 0));
        }
        other => panic!("{other:?}"),
    }
    assert!(disk.0.files().is_empty());
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let folder = Folder::new();
    let mut config = folder.config(1);
    config.directory = folder.path().join("missing");
    let text = ShmLink::new(config).unwrap_err().to_string();
    assert!(text.contains("missing") && text.contains("creating the segment"), "{text}");
}

/// An address of a process that lives, whose segment holds these bytes. `number` must be another one each time: the
/// lock on the file outlives its holder for a moment where another test's thread is just starting a process, which
/// inherits the file.
fn fake(folder: &Folder, link: &ShmLink, number: usize, bytes: &[u8]) -> (Address, File) {
    let tag = 4_000_000_000 + number as u64;
    let mut address = link.address().to_bytes();
    address[16..24].copy_from_slice(&tag.to_le_bytes());
    let own = folder.files().into_iter().find(|file| file.starts_with("tidegate-")).unwrap();
    let (stem, _) = own.rsplit_once('-').unwrap();
    let path = folder.path().join(format!("{stem}-{tag:016x}"));
    fs::write(&path, bytes).unwrap();
    (Address::from_bytes(&address).unwrap(), hold_life_lock(&path))
}

#[test]
fn segments_that_are_nonsense_are_refused() {
    let folder = Folder::new();
    let mut link = folder.link(8);
    let good = fs::read(folder.path().join(&folder.files()[0])).unwrap();
    let mut other_version = good.clone();
    other_version[0] ^= 0xff;
    let mut huge_table = good.clone();
    huge_table[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    let mut huge_ring = good.clone();
    huge_ring[16..24].copy_from_slice(&(1_u64 << 58).to_le_bytes());
    let mut no_ring = good.clone();
    no_ring[16..24].fill(0);
    let nonsense =
        [vec![], vec![0; 100], good[..good.len() - 4096].to_vec(), other_version, huge_table, huge_ring, no_ring];
    for (at, bytes) in nonsense.iter().enumerate() {
        let (address, _life) = fake(&folder, &link, at, bytes);
        let peer = link.peer(&address).unwrap();
        match write(&mut link, peer, &packet(0)) {
            Err(WriteError::Unreachable(text)) => assert!(text.contains("its segment"), "{at}: {text}"),
            other => panic!("{at}: {other:?}"),
        }
        let left = departure(&mut link);
        assert!(left.peer == peer && !left.orderly && left.name.contains("its segment"), "{at}: {left:?}");
        link.release(peer);
    }
    let (address, _life) = fake(&folder, &link, nonsense.len(), &good);
    let peer = link.peer(&address).unwrap();
    assert_eq!(write(&mut link, peer, &packet(0)), Ok(()), "so the refusals above had their reasons");
}
