//! Processes that fork: nothing of ours is held over a fork, and what a child does with its copies is nothing to its
//! parent.

use crate::support::*;
use std::cell::UnsafeCell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tidegate_link::ShmLink;
use tidegate_message::{Access, Link, PeerMemory, Span, WriteError};

/// Ends a role that has come to a stop, or a child that has.
fn limit_time() {
    // SAFETY: takes no pointers. The signal, of which nobody takes care, ends the process.
    unsafe { libc::alarm(TEST_TIMEOUT.as_secs() as u32) };
}

/// Forks a child that does something and says whether it went well.
fn in_child(what: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child allocates memory, which the C library allows, and ends by a system call.
    match unsafe { libc::fork() } {
        0 => {
            limit_time();
            let is_well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(what)).unwrap_or(false);
            // SAFETY: ends the process.
            unsafe { libc::_exit(if is_well { 0 } else { 1 }) }
        }
        child => {
            let mut status = 0;
            // SAFETY: our child; the word lives through the call.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            status == 0
        }
    }
}

/// How many descriptors of this process lead to the file.
fn descriptors_of(file: &PathBuf) -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    open.filter(|entry| std::fs::read_link(entry.as_ref().unwrap().path()).is_ok_and(|target| target == *file)).count()
}

/// A mutex of C, around an application's calls.
struct Mutex(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: that is what a mutex is for.
unsafe impl Sync for Mutex {}

static CALLS: Mutex = Mutex(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));

extern "C" fn lock_calls() {
    // SAFETY: the mutex is never moved.
    unsafe { libc::pthread_mutex_lock(CALLS.0.get()) };
}

extern "C" fn unlock_calls() {
    // SAFETY: the mutex is never moved, and this thread has it.
    unsafe { libc::pthread_mutex_unlock(CALLS.0.get()) };
}

#[test]
#[ignore = "a process of other tests: guards its calls by a mutex, over forks as well, as POSIX recommends"]
fn role_guards_its_calls() {
    limit_time();
    // Before anything of ours is registered, so that these handlers come later when a fork begins.
    // SAFETY: functions of this program.
    unsafe { libc::pthread_atfork(Some(lock_calls), Some(unlock_calls), Some(unlock_calls)) };
    let folder = role_folder();
    let stop = AtomicBool::new(false);
    let mut opened = 0;
    std::thread::scope(|scope| {
        let opener = scope.spawn(|| {
            let mut opened = 0;
            while !stop.load(Ordering::Relaxed) {
                lock_calls();
                drop(folder.link(1));
                unlock_calls();
                opened += 1;
                std::thread::sleep(Duration::from_micros(100));
            }
            opened
        });
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(2) {
            assert!(in_child(|| true));
            std::thread::sleep(Duration::from_micros(50));
        }
        stop.store(true, Ordering::Relaxed);
        opened = opener.join().unwrap();
    });
    assert!(opened > 0);
}

#[test]
fn a_fork_and_a_first_use_do_not_wait_for_each_other() {
    let folder = Folder::new();
    let a = folder.link(1);
    Process::start("forks::role_guards_its_calls", &folder, a.address()).join();
}

extern "C" fn take_time() {
    std::thread::sleep(Duration::from_millis(30));
}

#[test]
#[ignore = "a process of other tests: two threads of it fork at once, while a third opens endpoints"]
fn role_forks_twice_at_once() {
    limit_time();
    // SAFETY: a function of this program.
    unsafe { libc::pthread_atfork(Some(take_time), None, None) };
    let folder = role_folder();
    let before = folder.files();
    let link = folder.link(1);
    let file = folder.files().into_iter().find(|file| !before.contains(file)).unwrap();
    let file = folder.path().join(file);
    assert!(descriptors_of(&file) > 0);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                drop(folder.link(1));
            }
        });
        let fork = || {
            for _ in 0..20 {
                // Whatever another thread was doing: the child has none of its parent's locks, and can begin anew.
                assert!(in_child(|| {
                    drop(folder.link(1));
                    descriptors_of(&file) == 0
                }));
            }
        };
        let forkers = [scope.spawn(fork), scope.spawn(fork)];
        for forker in forkers {
            forker.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(descriptors_of(&file) > 0, "the parent keeps its own");
    drop(link);
}

#[test]
fn two_forks_at_once_leave_no_locks_to_their_children() {
    let folder = Folder::new();
    let a = folder.link(1);
    Process::start("forks::role_forks_twice_at_once", &folder, a.address()).join();
}

#[test]
#[ignore = "a process of other tests: its child uses and drops what it has inherited"]
fn role_has_a_child_that_meddles() {
    limit_time();
    let folder = role_folder();
    let mut link = folder.link(2);
    let to = link.peer(&role_address()).unwrap();
    send(&mut link, to, 1);
    let stranger = folder.link(2);
    let to_stranger = link.peer(&stranger.address()).unwrap();
    let word = 0_u64;
    link.publish_region(7, Span { address: (&raw const word) as u64, length: 8 }, &[Access::Read, Access::Write]);
    link.tell_window(12_345);
    let newcomer = folder.link(1).address();
    let mut copies = Some((link, stranger));
    let is_well = in_child(|| {
        let (mut link, stranger) = copies.take().unwrap();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(400) {
            assert_eq!(poll_departure(&mut link), None);
            link.idle().yield_if_asked();
        }
        let Err(WriteError::Unreachable(why)) = write(&mut link, to_stranger, &packet(9)) else { return false };
        link.release(to);
        let _ = link.withdraw_region(7);
        link.tell_window(1);
        assert!(link.peer(&newcomer).unwrap_err().to_string().contains("belongs to its parent"));
        let are_copies = link.is_forked() && stranger.is_forked();
        drop((link, stranger));
        are_copies && why.contains("belongs to its parent")
    });
    assert!(is_well);
    let (mut link, mut stranger): (ShmLink, ShmLink) = copies.unwrap();
    assert!(!link.is_forked());
    send(&mut link, to_stranger, 2);
    assert_eq!(receive(&mut stranger).1, 2);
    send(&mut link, to, 3);
    assert_eq!(receive(&mut link), (to, 4));
    assert_eq!(poll_departure(&mut link), None);
}

#[test]
fn what_a_child_does_with_its_copies_disturbs_nobody() {
    let folder = Folder::new();
    let mut a = folder.link(2);
    let process = Process::start("forks::role_has_a_child_that_meddles", &folder, a.address());
    let (peer, one) = receive(&mut a);
    assert_eq!(one, 1);
    assert_eq!(receive(&mut a), (peer, 3), "the parent goes on");
    assert_eq!(poll_departure(&mut a), None);
    assert_eq!(a.window(peer), Some(12_345));
    assert!(a.find_region(peer, 7, 0, 8, Access::Read).is_some(), "the child has withdrawn its copy");
    send(&mut a, peer, 4);
    process.join();
    assert!(departure(&mut a).orderly);
}
