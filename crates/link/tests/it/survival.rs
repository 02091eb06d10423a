//! Who lives is not taken for dead, and who is dead not for alive: files that vanish, children that inherit locks,
//! programs that execute others, containers that show other boot ids and times.

use crate::support::*;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use tidegate_flow::PeerId;
use tidegate_link::{LinkError, Service, ShmLink};
use tidegate_message::{Bounce, Link, WriteError};

/// Longer than anybody takes to look after all of so few peers.
const SOME_LOOKS: Duration = Duration::from_millis(600);

/// The segment of the endpoint that `open` makes, and the endpoint.
fn with_file(folder: &Folder, peers: u32) -> (ShmLink, PathBuf) {
    let before = folder.files();
    let link = folder.link(peers);
    let file = folder.files().into_iter().find(|file| !before.contains(file)).unwrap();
    (link, folder.path().join(file))
}

/// Lets endpoints look after their peers for a while, in which nobody may depart.
fn nobody_departs(links: &mut [&mut ShmLink]) {
    let start = Instant::now();
    while start.elapsed() < SOME_LOOKS {
        for link in links.iter_mut() {
            assert_eq!(poll_departure(link), None);
            link.idle().yield_if_asked();
        }
    }
}

fn write_error(link: &mut ShmLink, to: PeerId) -> String {
    match write(link, to, &packet(0)) {
        Err(WriteError::Unreachable(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn connected_peers_go_on_without_their_files_and_their_places_are_not_given_away() {
    let folder = Folder::new();
    let ((mut a, a_file), (mut b, b_file)) = (with_file(&folder, 1), with_file(&folder, 1));
    let to_a = b.peer(&a.address()).unwrap();
    send(&mut b, to_a, 1);
    let (from_b, _) = receive(&mut a);
    send(&mut a, from_b, 2);
    assert_eq!(receive(&mut b), (to_a, 2));
    fs::remove_file(b_file).unwrap();
    nobody_departs(&mut [&mut a, &mut b]);
    // A newcomer finds no place with `a`, and nothing of `b`.
    let mut c = folder.link(2);
    let from_c = c.peer(&a.address()).unwrap();
    assert!(write_error(&mut c, from_c).contains("FI_TIDEGATE_PEERS"));
    let from_c = c.peer(&b.address()).unwrap();
    let text = write_error(&mut c, from_c);
    assert!(text.contains("was removed while it runs") && text.contains("RemoveIPC"), "{text}");
    fs::remove_file(a_file).unwrap();
    nobody_departs(&mut [&mut a, &mut b]);
    for number in 10..100 {
        send(&mut b, to_a, number);
        assert_eq!(receive(&mut a), (from_b, number));
        send(&mut a, from_b, number);
        assert_eq!(receive(&mut b), (to_a, number));
    }
    drop(b);
    let left = departure(&mut a);
    assert_eq!((left.peer, left.orderly), (from_b, true));
}

#[test]
fn who_cannot_be_answered_is_heard_to_the_end_and_both_sides_are_told() {
    let folder = Folder::new();
    let ((mut a, _), (mut b, b_file)) = (with_file(&folder, 1), with_file(&folder, 1));
    let to_a = b.peer(&a.address()).unwrap();
    (0..5).for_each(|number| send(&mut b, to_a, number));
    fs::remove_file(b_file).unwrap();
    let (from_b, _) = receive(&mut a);
    assert!(write_error(&mut a, from_b).contains("was removed while it runs"));
    (1..5).for_each(|number| assert_eq!(receive(&mut a), (from_b, number), "what it had sent counts"));
    let left = departure(&mut a);
    assert!(left.peer == from_b && !left.orderly && left.name.contains("RemoveIPC"), "{left:?}");
    a.release(from_b);
    assert!(matches!(a.peer(&b.address()), Err(LinkError::Elsewhere { .. })), "nothing more goes between these two");
    // `b` does not know it yet, and its place is nobody else's.
    send(&mut b, to_a, 6);
    let mut c = folder.link(1);
    assert!(matches!(a.peer(&c.address()), Err(LinkError::TableFull { .. })));
    assert!(a.retrieve().is_none());
    let left = departure(&mut b);
    assert!(left.peer == to_a && !left.orderly && left.name.contains("does not hear"), "{left:?}");
    assert!(write_error(&mut b, to_a).contains("does not hear"));
    // Now it does, and will write no more.
    let from_c = until(&mut a, "the place", |a| {
        assert_eq!(poll_departure(a), None);
        a.peer(&c.address()).ok()
    });
    let to_a = c.peer(&a.address()).unwrap();
    send(&mut c, to_a, 7);
    assert_eq!(receive(&mut a), (from_c, 7));
}

#[test]
fn an_endpoint_without_its_file_gives_up_those_who_never_connected() {
    let folder = Folder::new();
    let ((mut a, a_file), mut b, mut c) = (with_file(&folder, 3), folder.link(3), folder.link(3));
    let to_a = b.peer(&a.address()).unwrap();
    send(&mut b, to_a, 1);
    let (from_b, _) = receive(&mut a);
    let expected = a.peer(&c.address()).unwrap();
    fs::remove_file(a_file).unwrap();
    let left = departure(&mut a);
    assert!(left.peer == expected && !left.orderly && left.name.contains("of this process was removed"), "{left:?}");
    a.release(expected);
    assert!(a.peer(&c.address()).unwrap_err().to_string().contains("RemoveIPC"));
    let from_c = c.peer(&a.address()).unwrap();
    assert!(write_error(&mut c, from_c).contains("was removed while it runs"));
    send(&mut a, from_b, 2);
    assert_eq!(receive(&mut b), (to_a, 2));
}

#[test]
#[ignore = "a process of other tests: makes a child that lives on with its locks, tells its id, and waits to be killed"]
fn role_leaves_a_child() {
    let mut link = role_folder().link(1);
    let to = link.peer(&role_address()).unwrap();
    send(&mut link, to, 0);
    // By the bare system call, of which no handler hears that could give the locks up.
    // SAFETY: the child only waits.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    if child == 0 {
        loop {
            // SAFETY: takes no pointers.
            unsafe { libc::pause() };
        }
    }
    send(&mut link, to, child as u64);
    loop {
        std::thread::park();
    }
}

#[test]
fn a_process_is_dead_though_its_child_holds_its_locks() {
    let folder = Folder::new();
    let mut a = folder.link(1);
    let process = Process::start("survival::role_leaves_a_child", &folder, a.address());
    let (peer, _) = receive(&mut a);
    let (_, child) = receive(&mut a);
    process.kill();
    let left = departure(&mut a);
    assert_eq!((left.peer, left.orderly), (peer, false));
    assert_eq!(folder.files().len(), 1, "its segment is gone");
    a.release(peer);
    // The place serves another, whose death is noticed as well although the child holds locks of the first.
    let next = Process::start("survival::role_writes_and_waits", &folder, a.address());
    let (next_peer, _) = receive(&mut a);
    assert_eq!(next_peer, peer);
    next.kill();
    assert_eq!(departure(&mut a).peer, peer);
    // SAFETY: the process that our own child has left behind.
    assert_eq!(unsafe { libc::kill(child as libc::pid_t, libc::SIGKILL) }, 0);
}

#[test]
#[ignore = "a process of other tests: writes a packet, then waits to be killed"]
fn role_writes_and_waits() {
    let mut link = role_folder().link(1);
    let to = link.peer(&role_address()).unwrap();
    send(&mut link, to, 7);
    loop {
        if link.retrieve().is_none() {
            link.idle().yield_if_asked();
        }
        assert_eq!(poll_departure(&mut link), None);
    }
}

#[test]
#[ignore = "a process of other tests: writes a packet, and another one as another program"]
fn role_executes_another_program() {
    let mut link = role_folder().link(1);
    let to = link.peer(&role_address()).unwrap();
    send(&mut link, to, 1);
    let error = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "survival::role_writes_and_waits", "--nocapture"])
        .exec();
    panic!("{error}");
}

/// fi_tidegate(7): "A process that runs another program is another peer afterwards: an endpoint's address has a random
/// part, and the old one counts as dead."
#[test]
fn a_process_that_executes_another_program_is_another_peer() {
    let folder = Folder::new();
    let mut a = folder.link(2);
    let process = Process::start("survival::role_executes_another_program", &folder, a.address());
    let (old, one) = receive(&mut a);
    let (new, seven) = receive(&mut a);
    assert_eq!((one, seven), (1, 7));
    assert_ne!(old, new);
    assert_ne!(a.address_of(old), a.address_of(new), "the same process id, and another address");
    let left = departure(&mut a);
    assert_eq!((left.peer, left.orderly), (old, false));
    a.release(old);
    nobody_departs(&mut [&mut a]);
    process.kill();
    assert_eq!(departure(&mut a).peer, new);
}

fn leave_a_child_and_execute_another_program(fork: fn() -> libc::pid_t) {
    let mut link = role_folder().link(1);
    let _claim = Service::new(b"echo").unwrap().claim(link.directory(), link.address()).unwrap();
    let to = link.peer(&role_address()).unwrap();
    send(&mut link, to, 0);
    let child = fork();
    if child == 0 {
        // Nothing is left of a test that fails.
        // SAFETY: takes no pointers.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        loop {
            // SAFETY: takes no pointers.
            unsafe { libc::pause() };
        }
    }
    send(&mut link, to, child as u64);
    receive(&mut link);
    let error = Command::new("sleep").arg("1000").exec();
    panic!("{error}");
}

#[test]
#[ignore = "a process of other tests: forks a child that lives on, and executes another program"]
fn role_leaves_a_child_and_executes_another_program() {
    // SAFETY: the child only waits.
    leave_a_child_and_execute_another_program(|| unsafe { libc::fork() });
}

#[test]
#[ignore = "a process of other tests: the same, with a child made by the bare system call"]
fn role_leaves_a_bare_child_and_executes_another_program() {
    // SAFETY: the child only waits.
    let clone = || unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as libc::pid_t };
    leave_a_child_and_execute_another_program(clone);
}

/// fi_tidegate(7): "A child that it had forked, and that lives on, does not change that: a child gives its copies of
/// the locks up as soon as it is forked (pthread_atfork(3))."
#[test]
fn a_process_that_executes_another_program_is_gone_though_its_child_lives() {
    let folder = Folder::new();
    let mut a = folder.link(1);
    let process = Process::start("survival::role_leaves_a_child_and_executes_another_program", &folder, a.address());
    let (peer, _) = receive(&mut a);
    let (_, child) = receive(&mut a);
    // The child has given its copies of the locks up, and its parent still has them.
    nobody_departs(&mut [&mut a]);
    let service = Service::new(b"echo").unwrap();
    assert_eq!(service.find(folder.path()), a.address_of(peer));
    send(&mut a, peer, 1);
    let left = departure(&mut a);
    assert_eq!((left.peer, left.orderly), (peer, false));
    assert_eq!(service.find(folder.path()), None);
    assert_eq!(folder.files().len(), 1, "its files are gone: {:?}", folder.files());
    // SAFETY: the process that our own child has left behind.
    assert_eq!(unsafe { libc::kill(child as libc::pid_t, libc::SIGKILL) }, 0);
    process.kill();
}

/// fi_tidegate(7): "One that was made by the bare system call (clone(2) and the like) keeps them. Then an endpoint that
/// has run another program, or that has died in another process namespace, counts as alive until the child ends too."
#[test]
fn a_process_that_executes_another_program_counts_as_alive_while_a_bare_child_of_it_lives() {
    let folder = Folder::new();
    let mut a = folder.link(1);
    let process =
        Process::start("survival::role_leaves_a_bare_child_and_executes_another_program", &folder, a.address());
    let (peer, _) = receive(&mut a);
    let (_, child) = receive(&mut a);
    send(&mut a, peer, 1);
    nobody_departs(&mut [&mut a]);
    // SAFETY: the process that our own child has left behind.
    assert_eq!(unsafe { libc::kill(child as libc::pid_t, libc::SIGKILL) }, 0);
    let left = departure(&mut a);
    assert_eq!((left.peer, left.orderly), (peer, false));
    process.kill();
}

/// Commands that run another one where it sees the machine differently; each needs the superuser.
fn containers(folder: &Folder) -> Vec<Vec<String>> {
    let boot = folder.path().join("boot_id");
    fs::write(&boot, "00000000-1111-2222-3333-444444444444\n").unwrap();
    let hide = format!("mount --bind {} /proc/sys/kernel/random/boot_id && exec \"$@\"", boot.display());
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    vec![
        words(&["unshare", "--mount", "sh", "-c", &hide, "sh"]),
        words(&["unshare", "--time", "--boottime", "100000", "--fork", "--kill-child"]),
        words(&["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", &hide, "sh"]),
    ]
}

#[test]
fn other_boot_ids_and_times_are_no_proof_of_death() {
    let folder = Folder::new();
    for container in containers(&folder) {
        let words: Vec<&str> = container.iter().map(String::as_str).collect();
        let mut a = folder.link(1);
        let Some(process) = Process::start_within(&words, "survival::role_writes_and_waits", &folder, a.address())
        else {
            println!("skipped: {container:?} cannot run here");
            continue;
        };
        let (peer, _) = receive(&mut a);
        // The one that started has left our segment alone, and one that starts now leaves both alone.
        let next = folder.link(1);
        assert_eq!(folder.files().len(), 4, "{container:?}: {:?}", folder.files());
        drop(next);
        nobody_departs(&mut [&mut a]);
        send(&mut a, peer, 1);
        process.kill();
        let left = departure(&mut a);
        assert_eq!((left.peer, left.orderly), (peer, false), "{container:?}");
        assert_eq!(folder.files().len(), 2, "{container:?}: {:?}", folder.files());
    }
}

#[test]
#[ignore = "a process of other tests: has no descriptors to spare, writes a packet, then waits to be killed"]
fn role_has_few_descriptors() {
    let limit = libc::rlimit { rlim_cur: 64, rlim_max: 64 };
    // SAFETY: the struct lives through the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    let _used: Vec<fs::File> = (0..40).map(|_| fs::File::open("/dev/null").unwrap()).collect();
    role_writes_and_waits();
}

#[test]
fn who_has_few_descriptors_keeps_none_for_a_peer_and_is_looked_after_all_the_same() {
    let folder = Folder::new();
    let mut a = folder.link(1);
    let process = Process::start("survival::role_has_few_descriptors", &folder, a.address());
    let (peer, _) = receive(&mut a);
    let open = fs::read_dir(format!("/proc/{}/fd", process.0.id())).unwrap();
    let names = open.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    let segments = names.filter(|name| name.to_string_lossy().contains("tidegate-test")).count();
    assert_eq!(segments, 1, "its own");
    send(&mut a, peer, 1);
    nobody_departs(&mut [&mut a]);
    process.kill();
    assert_eq!(departure(&mut a).peer, peer);
}

/// fi_tidegate(7): "It does bound what a faulty peer can do through Tidegate: into an endpoint's memory it writes its
/// mailbox, the table of peers and nothing else; what an endpoint says of itself, the memory that it has registered,
/// and the bounce buffers with data for others are mapped for reading, from a descriptor that allows no more."
#[test]
fn what_a_peer_only_reads_it_cannot_make_writable() {
    let folder = Folder::new();
    let (mut a, (b, b_file)) = (folder.link(1), with_file(&folder, 1));
    let to = a.peer(&b.address()).unwrap();
    send(&mut a, to, 1);
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let of_b: Vec<&str> = maps.lines().filter(|line| line.ends_with(b_file.to_str().unwrap())).collect();
    let shown: Vec<&&str> = of_b.iter().filter(|line| line.contains(" r--s ")).collect();
    assert_eq!((of_b.len(), shown.len()), (4, 1), "b has mapped both parts, and a has: {of_b:#?}");
    let bound = |at: usize| usize::from_str_radix(shown[0].split([' ', '-']).nth(at).unwrap(), 16).unwrap();
    let (start, end) = (bound(0), bound(1));
    assert!(end - start > a.bounce_buffers().count * a.bounce_buffers().bytes, "the bounce buffers are there");
    // SAFETY: the call is meant to fail; if it did not, the mapping would only allow more than before.
    let changed = unsafe { libc::mprotect(start as *mut _, end - start, libc::PROT_READ | libc::PROT_WRITE) };
    assert_eq!((changed, std::io::Error::last_os_error().raw_os_error()), (-1, Some(libc::EACCES)));
}
