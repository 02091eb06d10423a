//! What a forked child inherits and must not keep: copies of the descriptors on which its parent holds locks.
//!
//! The simple idea is a list under a lock, which a fork takes before the child is made and lets go afterwards. But the
//! handlers of other libraries run while it is held, and any of these may wait for a thread that waits for our lock. So
//! nothing is held over a fork. The list is an array of words in static memory, one for each descriptor: a child finds
//! it whole whenever it was forked, and needs no more than system calls to act upon it.
//!
//! Opening a file and writing its number down are two steps, and so are closing it and striking the number out. A
//! thread that is about to do either marks the word as *unsettled* first. A child that finds such a word looks through
//! all its descriptors for files with names of ours. The system copies the descriptors before it copies the memory, so
//! a child that has a copy of a descriptor sees at least the mark that was made before it was opened. What it may
//! fail to see is a file that its parent closes at this very moment: then it keeps a copy on which no locks are left,
//! because they are released before.

use crate::process;
use std::io::Write;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering};

/// Descriptors that are known at a time. Children keep the copies of any above that number.
const PLACES_MOST: usize = 1 << 16;
/// The highest descriptor, plus one, that is looked at in a search for strays.
const SEARCHED_MOST: RawFd = 1 << 16;

/// A place that is nobody's.
const FREE: i32 = 0;
/// A place whose owner is about to open or to close a descriptor.
const UNSETTLED: i32 = -1;

/// For each descriptor one more than its number, or one of the above.
static PLACES: [AtomicI32; PLACES_MOST] = [const { AtomicI32::new(FREE) }; PLACES_MOST];
/// All places from this one on have always been free.
static PLACES_USED: AtomicUsize = AtomicUsize::new(0);
/// Where to begin to look for a free place: there is none before, unless two threads have met.
static SEARCH_FROM: AtomicUsize = AtomicUsize::new(0);
/// How many forks lie between the first process that used this library and this one.
static EPOCH: AtomicU32 = AtomicU32::new(0);

/// A place in the list of descriptors of which no child keeps a copy.
#[derive(Debug)]
pub(crate) struct Place(usize);

impl Place {
    /// A free place, for a descriptor that is about to be opened. `None`: there is none.
    pub fn reserve() -> Option<Place> {
        register_handler();
        let take = |at: &usize| {
            let place = &PLACES[*at];
            place.load(Ordering::Relaxed) == FREE
                && place.compare_exchange(FREE, UNSETTLED, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        };
        let begin = SEARCH_FROM.load(Ordering::Relaxed);
        let at = (begin..PLACES_MOST).chain(0..begin).find(take)?;
        SEARCH_FROM.store(at + 1, Ordering::Relaxed);
        PLACES_USED.fetch_max(at + 1, Ordering::SeqCst);
        Some(Place(at))
    }

    fn word(&self) -> &'static AtomicI32 {
        &PLACES[self.0]
    }

    /// The descriptor has been opened.
    pub fn settle(&self, descriptor: RawFd) {
        self.word().store(descriptor + 1, Ordering::SeqCst);
    }

    /// The descriptor is about to be closed.
    pub fn unsettle(&self) {
        self.word().store(UNSETTLED, Ordering::SeqCst);
    }

    /// The descriptor is closed, or has not been opened after all.
    pub fn free(self) {
        self.word().store(FREE, Ordering::SeqCst);
        SEARCH_FROM.fetch_min(self.0, Ordering::Relaxed);
    }
}

/// The process that something was made in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maker {
    epoch: u32,
    process: u32,
}

impl Maker {
    /// This process.
    pub fn here() -> Maker {
        Maker { epoch: EPOCH.load(Ordering::Relaxed), process: process::number() }
    }

    /// Whether we are a child, or a child's child, that has given up what it inherited.
    pub fn has_forked(&self) -> bool {
        self.epoch != EPOCH.load(Ordering::Relaxed)
    }

    /// Whether we are any child, also one that was made by the bare system call, of which no handler hears.
    pub fn is_ancestor(&self) -> bool {
        self.process != process::current()
    }
}

/// Nobody waits for another thread here, which a child would not have. So two threads may register the handler twice;
/// then the second call of it finds nothing to do.
fn register_handler() {
    static IS_REGISTERED: AtomicBool = AtomicBool::new(false);
    if !IS_REGISTERED.load(Ordering::Acquire) {
        // It fails only for want of memory; then children keep what they inherit.
        // SAFETY: the handler is a function of this library, and the C library forgets it when that is unloaded.
        let failed = unsafe { libc::pthread_atfork(None, None, Some(after_fork_in_child)) };
        IS_REGISTERED.store(failed == 0, Ordering::Release);
    }
}

/// Only system calls: the child may have been forked while another thread of its parent was anywhere, in the allocator
/// say.
extern "C" fn after_fork_in_child() {
    EPOCH.fetch_add(1, Ordering::Relaxed);
    let mut has_strays = false;
    for place in PLACES.iter().take(PLACES_USED.load(Ordering::Relaxed)) {
        match place.load(Ordering::Relaxed) {
            FREE => continue,
            UNSETTLED => has_strays = true,
            number => give_up(number - 1),
        }
        place.store(FREE, Ordering::Relaxed);
    }
    if has_strays {
        give_up_strays();
    }
}

/// Puts a harmless file in the place of a descriptor: a value that the child still has must never lead to a file that
/// the child has opened for itself.
fn give_up(descriptor: RawFd) {
    // SAFETY: the descriptor is of a kind that is never used again in this process. The path is a string of C.
    unsafe {
        libc::close(descriptor);
        // The lowest number that is free, which need not be this one.
        let harmless = libc::open(c"/".as_ptr(), libc::O_PATH | libc::O_CLOEXEC);
        if harmless >= 0 && harmless != descriptor {
            libc::dup3(harmless, descriptor, libc::O_CLOEXEC);
            libc::close(harmless);
        }
    }
}

/// Gives up all descriptors of files with names of ours.
fn give_up_strays() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the struct lives through the call.
    let is_known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } == 0;
    let end = if is_known { limit.rlim_cur.min(SEARCHED_MOST as libc::rlim_t) as RawFd } else { SEARCHED_MOST };
    (0..end).filter(|descriptor| leads_to_ours(*descriptor)).for_each(give_up);
}

/// Whether a descriptor is one of a segment or a claim.
fn leads_to_ours(descriptor: RawFd) -> bool {
    // SAFETY: takes no pointers.
    if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } < 0 {
        return false;
    }
    // The last byte stays zero.
    let mut link = [0_u8; 32];
    if write!(&mut link[..31], "/proc/self/fd/{descriptor}").is_err() {
        return false;
    }
    let mut target = [0_u8; libc::PATH_MAX as usize];
    // SAFETY: the path ends with a zero byte; the buffer has as many bytes as is said.
    let length = unsafe { libc::readlink(link.as_ptr().cast(), target.as_mut_ptr().cast(), target.len()) };
    let target = &target[..usize::try_from(length).unwrap_or(0)];
    let name_at = target.iter().rposition(|byte| *byte == b'/').map_or(target.len(), |slash| slash + 1);
    target[name_at..].starts_with(super::address::FILE_NAME_START.as_bytes())
}

#[cfg(all(test, not(miri), not(loom)))]
mod tests {
    use super::*;
    use crate::process::children::{clone, fork, in_child_by};
    use std::os::fd::AsRawFd;

    #[test]
    fn a_child_gives_up_what_its_parent_has_opened_and_not_yet_written_down() {
        let path = std::env::temp_dir().join(format!("tidegate-stray-{}", std::process::id()));
        let place = Place::reserve().unwrap();
        let file = std::fs::File::create(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let descriptor = file.as_raw_fd();
        assert!(leads_to_ours(descriptor));
        assert!(!in_child_by(fork, || leads_to_ours(descriptor)), "while it is being opened");
        place.settle(descriptor);
        assert!(!in_child_by(fork, || leads_to_ours(descriptor)), "when it is open");
        place.unsettle();
        assert!(!in_child_by(fork, || leads_to_ours(descriptor)), "while it is being closed");
        assert!(leads_to_ours(descriptor), "the parent has it still");
        place.free();
    }

    #[test]
    fn a_child_is_known_however_it_was_made() {
        Place::reserve().unwrap().free();
        let maker = Maker::here();
        assert!(!maker.has_forked() && !maker.is_ancestor());
        assert!(in_child_by(fork, || maker.has_forked() && maker.is_ancestor()));
        assert!(in_child_by(clone, || maker.is_ancestor() && !maker.has_forked()));
    }
}
