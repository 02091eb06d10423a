//! Clearing away what dead endpoints of this user left in the folder of segments: segments, and claims of services.
//!
//! Each endpoint that opens does it for those before it. But the folder is everybody's: another user may put any number
//! of files there, under names that say that they are ours, and only a look at each tells that they are not. Opening a
//! file and trying its lock costs several system calls, and with 100,000 such files every opening took two seconds. So:
//!
//! 1. A file whose name is another user's is not looked at.
//! 2. A file that belongs to another user, or is no regular file, is not opened: one system call tells.
//! 3. All that is bounded ([`Effort::BOUNDED`]). It begins at a random place of the list, so that files that cannot be
//!    removed keep no others from being found: the many ranks of a job, and the next job, look at other ones.
//!
//! Files that stay cost memory only. Where memory is lacking, and when a job has ended, everything is looked at
//! ([`Effort::THOROUGH`]).

use super::address::Address;
use super::life::{self, Here, Rights};
use super::lock::{self, Byte};
use super::service::Service;
use crate::log::{self, Level};
use crate::secret::random;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How much is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Effort {
    /// Names in the folder that are read, ours or not.
    names: usize,
    /// Files with names of ours whose owners are looked at.
    owners: usize,
    /// Files that are opened.
    files: usize,
}

impl Effort {
    /// Some milliseconds: as much as an opening may take for the sake of others.
    pub(crate) const BOUNDED: Effort = Effort { names: 1 << 16, owners: 4096, files: 256 };
    /// All.
    pub(crate) const THOROUGH: Effort = Effort { names: usize::MAX, owners: usize::MAX, files: usize::MAX };
}

/// Removes what dead endpoints of this user left in `directory`; returns how many segments these were. Never touches
/// those of a living one: see `life`.
pub(crate) fn clear_away(directory: &Path, here: &Here, effort: Effort) -> usize {
    let mut names = own_names(directory, here, effort);
    if !names.is_empty() {
        let begin = random() as usize % names.len();
        names.rotate_left(begin);
    }
    let is_own =
        |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|facts| facts.is_file() && facts.uid() == here.uid());
    let paths = names.iter().take(effort.owners).map(|name| directory.join(name));
    let mut reclaimed = 0;
    for path in paths.filter(is_own).take(effort.files) {
        match path.file_name().and_then(|name| Address::from_file_name(name.to_str()?)) {
            Some(owner) => reclaimed += usize::from(remove_file_if_dead(&path, here, &owner)),
            None => Service::remove_if_dead(&path, here),
        }
    }
    reclaimed
}

/// The names in `directory` that are names of segments and claims of this user.
fn own_names(directory: &Path, here: &Here, effort: Effort) -> Vec<String> {
    let (segments, claims) = (Address::prefix(here.uid()), Service::prefix(here.uid()));
    let is_own = |name: &String| {
        name.starts_with(&claims) || (name.starts_with(&segments) && Address::from_file_name(name).is_some())
    };
    let files = fs::read_dir(directory).into_iter().flatten().take(effort.names);
    files.filter_map(|file| file.ok()?.file_name().into_string().ok()).filter(is_own).collect()
}

/// Removes the segment of `owner` if it is dead; returns whether this call did.
pub(crate) fn remove_if_dead(directory: &Path, here: &Here, owner: &Address) -> bool {
    remove_file_if_dead(&here.path(directory, owner), here, owner)
}

/// The same of the file at `path`, which has the name of the segment of `owner`.
fn remove_file_if_dead(path: &Path, here: &Here, owner: &Address) -> bool {
    let Ok(file) = life::open(path, Rights::Lock) else { return false };
    // The lock is kept until the file is removed, so that an endpoint that has just created it does not go on with it.
    let locked = lock::try_take(&file, Byte::LIFE).unwrap_or(false);
    let removed = (locked || here.sees_ended(owner)) && fs::remove_file(path).is_ok();
    if removed {
        log::line(Level::Info, || format!("removed {}, which {owner} left behind", path.display()));
    }
    removed
}

#[cfg(all(test, not(miri), not(loom)))]
mod tests {
    use super::*;
    use crate::secret::Secret;
    use std::ffi::CString;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::chown;

    /// A folder of a test with what endpoints of this user, all dead, have left there.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("tidegate-reclaiming-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Folder(path)
        }

        fn leave(&self, here: &Here, count: usize) -> Vec<PathBuf> {
            let paths: Vec<_> = (0..count).map(|_| here.path(&self.0, &here.address(0, &Secret::draw()))).collect();
            paths.iter().for_each(|path| fs::write(path, []).unwrap());
            paths
        }

        fn count(&self) -> usize {
            fs::read_dir(&self.0).unwrap().count()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// How many files in the folder are opened meanwhile.
    fn opened_in(folder: &Folder, during: impl FnOnce()) -> usize {
        let path = CString::new(folder.0.as_os_str().as_bytes()).unwrap();
        // SAFETY: takes no pointers.
        let watch = unsafe { libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC) };
        assert!(watch >= 0);
        // SAFETY: a new descriptor, which is nobody else's.
        let watch = unsafe { OwnedFd::from_raw_fd(watch) };
        // SAFETY: our descriptor; the path lives through the call.
        assert!(unsafe { libc::inotify_add_watch(watch.as_raw_fd(), path.as_ptr(), libc::IN_OPEN) } >= 0);
        during();
        let mut events = vec![0_u8; 1 << 16];
        // SAFETY: our descriptor, and the buffer has as many bytes as is said.
        let got = unsafe { libc::read(watch.as_raw_fd(), events.as_mut_ptr().cast(), events.len()) };
        let (mut at, mut opened) = (0, 0);
        while at < usize::try_from(got).unwrap_or(0) {
            // Watch, mask, cookie, length of the name, name. That of the folder itself is empty.
            let length = u32::from_ne_bytes(events[at + 12..at + 16].try_into().unwrap()) as usize;
            opened += usize::from(length > 0);
            at += 16 + length;
        }
        opened
    }

    #[test]
    fn what_is_not_of_this_user_is_not_even_opened() {
        let (folder, here) = (Folder::new("foreign"), Here::find());
        let foreign = folder.leave(&here, 20);
        for path in &foreign {
            // Only root makes a file of another user. A pipe is another thing that is not ours.
            if chown(path, Some(65534), None).is_err() {
                fs::remove_file(path).unwrap();
                assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
            }
        }
        fs::write(folder.0.join(format!("tidegate-{}-service-x", here.uid())), []).unwrap();
        folder.leave(&here, 2);
        let mut removed = 0;
        assert_eq!(opened_in(&folder, || removed = clear_away(&folder.0, &here, Effort::BOUNDED)), 3);
        assert_eq!((removed, folder.count()), (2, foreign.len()));
    }

    // fi_tidegate(7): "However many files in /dev/shm have names of ours, an endpoint that opens looks at 4,096 of them
    // at most, and opens 256 of its own user's at most, to remove what dead processes have left there."
    #[test]
    fn an_opening_does_so_much_and_no_more_and_the_next_ones_the_rest() {
        let (folder, here) = (Folder::new("many"), Here::find());
        for (few, most) in [(Effort { files: 3, ..Effort::BOUNDED }, 3), (Effort { owners: 2, ..Effort::BOUNDED }, 2)] {
            folder.leave(&here, 2 * most + 1);
            let rounds = [0; 4].map(|_| clear_away(&folder.0, &here, few));
            assert_eq!((rounds, folder.count()), ([most, most, 1, 0], 0));
        }
        folder.leave(&here, 300);
        assert_eq!(clear_away(&folder.0, &here, Effort { names: 7, ..Effort::BOUNDED }), 7);
        assert_eq!(clear_away(&folder.0, &here, Effort::BOUNDED), 256);
        assert_eq!(clear_away(&folder.0, &here, Effort::THOROUGH), 37);
        assert_eq!(Effort::BOUNDED.owners, 4096);
    }

    #[test]
    fn files_that_cannot_be_removed_keep_no_others_from_being_found() {
        let (folder, here) = (Folder::new("hidden"), Here::find());
        for path in folder.leave(&here, 20) {
            fs::remove_file(&path).unwrap();
            std::os::unix::fs::symlink("/", path).unwrap();
        }
        folder.leave(&here, 1);
        // Each time one of 21, from a random place: that it is never the right one does not happen.
        let one = Effort { owners: 1, ..Effort::BOUNDED };
        assert!((0..5000).any(|_| clear_away(&folder.0, &here, one) == 1));
    }
}
