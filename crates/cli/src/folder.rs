//! The private folder in which the endpoints of one run leave their counter pages.
//!
//! It is in memory where possible, readable for its owner only, and removed when the value is dropped. A run that was
//! killed cannot remove its folder, so each run first removes those of its own user that nobody uses any more: the run
//! that made the folder held a lock on it, and each page is named after its process.
//!
//! `tidegate top` finds running jobs by these folders ([`crate::jobs`]), so there is always one on the host of the run,
//! with a file that describes the job; where the pages are in a folder that all hosts share, it says where.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use tempfile::TempDir;

use crate::failure::Failure;
use crate::jobs::Description;

/// What the names of these folders begin with.
pub(crate) const PREFIX: &str = "tidegate-run-";
/// A folder younger than this is left alone, because its run may not have locked it yet.
const AGE_LEAST: Duration = Duration::from_secs(60);

/// Room for the pages of a few ranks, in bytes: a file system that has less is no place for them.
const ROOM_LEAST: u64 = 256 << 10;

/// The folder of one run.
pub struct StatsFolder {
    /// Where the pages are.
    pages: LockedFolder,
    /// The folder on this host, where the pages are in a shared one. Without it `tidegate top` does not find the job,
    /// which is no reason to refuse to run it.
    local: Option<LockedFolder>,
}

/// A private folder that is removed with this value.
struct LockedFolder {
    folder: TempDir,
    _lock: File,
}

impl StatsFolder {
    /// Makes the folder in the first place that takes it: `XDG_RUNTIME_DIR`, `/dev/shm`, `TMPDIR` or `/tmp`; or in the
    /// one that all hosts share.
    pub fn create(shared: Option<&Path>) -> Result<Self, Failure> {
        let places = places(|name| env::var_os(name));
        let Some(shared) = shared else { return Self::create_in(&places) };
        // Ranks on other hosts are in other folders.
        let shared = std::path::absolute(shared).unwrap_or_else(|_| shared.to_owned());
        let refused =
            |error| Failure::usage(format!("--shared={}: no folder can be made there: {error}", shared.display()));
        let pages = LockedFolder::new_in(&shared).map_err(refused)?;
        Ok(StatsFolder { pages, local: LockedFolder::new_in_one_of(&places).ok() })
    }

    fn create_in(places: &[PathBuf]) -> Result<Self, Failure> {
        let refused = |refusals| {
            Failure::own(format!(
                "no place for the folder of counter pages; set TMPDIR to a folder that can be written:{refusals}"
            ))
        };
        Ok(StatsFolder { pages: LockedFolder::new_in_one_of(places).map_err(refused)?, local: None })
    }

    /// Leaves a description of the job for `tidegate top`, with the pages and, where these are elsewhere, on this host.
    /// A full file system is no reason not to run the job: it goes without a description then.
    pub fn describe(&self, job: &Description) {
        let folders = [Some(&self.pages), self.local.as_ref()];
        for folder in folders.into_iter().flatten() {
            let _ = job.write_in(folder.folder.path(), self.path());
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.pages.folder.path()
    }

    /// Puts links to all providers of a search path into one folder in it, for a libfabric that looks into the first
    /// folder only, as Intel MPI's does. Returns that folder.
    pub fn gather_providers(&self, search: &OsStr) -> io::Result<PathBuf> {
        let gathered = self.path().join("providers");
        fs::create_dir(&gathered)?;
        for folder in env::split_paths(search) {
            for entry in fs::read_dir(folder)?.flatten() {
                let link = gathered.join(entry.file_name());
                if entry.file_name().as_encoded_bytes().ends_with(b"-fi.so") && !link.exists() {
                    std::os::unix::fs::symlink(entry.path(), link)?;
                }
            }
        }
        Ok(gathered)
    }
}

impl LockedFolder {
    /// Makes the folder in the first place that takes it, else says in lines why none did.
    fn new_in_one_of(places: &[PathBuf]) -> Result<Self, String> {
        let mut refusals = String::new();
        for place in places {
            sweep(place, AGE_LEAST);
            match Self::new_in(place) {
                Ok(folder) => return Ok(folder),
                Err(error) => refusals += &format!("\n  {}: {error}", place.display()),
            }
        }
        Err(refusals)
    }

    fn new_in(place: &Path) -> io::Result<Self> {
        let folder =
            tempfile::Builder::new().prefix(PREFIX).permissions(Permissions::from_mode(0o700)).tempdir_in(place)?;
        let room = folder.path().join("room");
        has_room(&room)?;
        fs::remove_file(room)?;
        let lock = File::open(folder.path())?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(LockedFolder { folder, _lock: lock })
    }
}

/// Fails where there is no room for pages, with a file for which there has to be some. (A full file system takes a
/// folder, and none of the pages. One that cannot set room aside may have it.)
fn has_room(file: &Path) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    match fallocate(&File::create(file)?, FallocateFlags::empty(), 0, ROOM_LEAST) {
        Err(full @ (Errno::NOSPC | Errno::DQUOT)) => Err(full.into()),
        _ => Ok(()),
    }
}

/// Removes the folders that killed runs of this user left in these places.
pub(crate) fn sweep_all(places: &[PathBuf]) {
    places.iter().for_each(|place| sweep(place, AGE_LEAST));
}

/// Where folders are made, best place first.
pub(crate) fn places(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> Vec<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let runtime = absolute("XDG_RUNTIME_DIR");
    let temporary = absolute("TMPDIR").unwrap_or_else(|| "/tmp".into());
    runtime.into_iter().chain(["/dev/shm".into(), temporary]).collect()
}

/// Removes the folders that killed runs of this user left in `place`, if they are at least `age_least` old. What cannot
/// be read or removed is left alone.
fn sweep(place: &Path, age_least: Duration) {
    let Ok(entries) = fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) && is_abandoned(&entry.path(), age_least)
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_abandoned(folder: &Path, age_least: Duration) -> bool {
    let Ok(metadata) = folder.symlink_metadata() else { return false };
    let age = metadata.modified().ok().and_then(|time| time.elapsed().ok());
    if !metadata.is_dir()
        || metadata.uid() != rustix::process::geteuid().as_raw()
        || age.is_none_or(|age| age < age_least)
    {
        return false;
    }
    // No link, if another user has put one there meanwhile.
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(lock) = rustix::fs::open(folder, flags, Mode::empty()) else { return false };
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return false;
    }
    let Ok(pages) = fs::read_dir(folder) else { return false };
    !pages.flatten().any(|page| process_of(&page.file_name()).is_some_and(|pid| Path::new("/proc").join(pid).exists()))
}

/// The process that a page is named after: `<pid>-<n>.counters`.
fn process_of(page: &OsStr) -> Option<String> {
    let (pid, _) = page.to_str()?.split_once('-')?;
    Some(pid.to_owned()).filter(|pid| !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_private_and_goes_with_its_value() {
        let place = tempfile::tempdir().unwrap();
        let folder = StatsFolder::create_in(&["/nowhere".into(), place.path().into()]).unwrap();
        let path = folder.path().to_owned();
        assert!(path.starts_with(place.path()));
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o700);
        fs::write(path.join("1-0.counters"), "").unwrap();
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn providers_of_all_folders_come_together_and_the_first_of_a_name_counts() {
        let place = tempfile::tempdir().unwrap();
        let [one, other] = ["one", "other"].map(|name| place.path().join(name));
        for (folder, names) in [(&one, &["liba-fi.so", "x.txt"]), (&other, &["liba-fi.so", "libb-fi.so"])] {
            fs::create_dir(folder).unwrap();
            names.iter().for_each(|name| fs::write(folder.join(name), "").unwrap());
        }
        let folder = StatsFolder::create(Some(place.path())).unwrap();
        let gathered = folder.gather_providers(&env::join_paths([&one, &other]).unwrap()).unwrap();
        let target = |name: &str| fs::read_link(gathered.join(name)).unwrap();
        assert_eq!([target("liba-fi.so"), target("libb-fi.so")], [one.join("liba-fi.so"), other.join("libb-fi.so")]);
        assert_eq!(fs::read_dir(&gathered).unwrap().count(), 2);
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists() && one.join("liba-fi.so").exists());
        assert!(
            StatsFolder::create(Some(Path::new("/nowhere"))).err().unwrap().to_string().contains("--shared=/nowhere")
        );
    }

    #[test]
    fn a_run_with_a_shared_folder_is_found_on_its_own_host() {
        let (shared, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let pages = LockedFolder::new_in(shared.path()).unwrap();
        let local = LockedFolder::new_in(place.path()).unwrap();
        let folder = StatsFolder { pages, local: Some(local) };
        folder.describe(&Description::of_this_process(&["mpiexec".into()], None));
        let found = crate::jobs::running(&[place.path().to_owned()], &[]);
        assert_eq!(found.iter().map(|job| job.pages.as_path()).collect::<Vec<_>>(), [folder.path()]);
        assert!(folder.path().starts_with(shared.path()) && folder.path().join("job.json").exists());
    }

    #[test]
    fn without_any_place_the_failure_names_all_that_were_tried() {
        let failure = StatsFolder::create_in(&["/nowhere".into(), "/proc".into()]).err().unwrap().to_string();
        assert!(failure.contains("TMPDIR") && failure.contains("/nowhere") && failure.contains("/proc"), "{failure}");
    }

    #[test]
    fn memory_is_preferred_to_disk() {
        let variable = |name: &str| {
            [("XDG_RUNTIME_DIR", "/run/user/7"), ("TMPDIR", "/scratch")]
                .iter()
                .find(|v| v.0 == name)
                .map(|v| v.1.into())
        };
        assert_eq!(places(variable), ["/run/user/7", "/dev/shm", "/scratch"].map(PathBuf::from));
        assert_eq!(places(|_| None), ["/dev/shm", "/tmp"].map(PathBuf::from));
        assert_eq!(places(|_| Some("relative".into())), ["/dev/shm", "/tmp"].map(PathBuf::from));
    }

    #[test]
    fn folders_of_killed_runs_are_swept_and_no_others() {
        let place = tempfile::tempdir().unwrap();
        let make = |name: &str, page: &str| {
            let folder = place.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join(page), "").unwrap();
            folder
        };
        // No process has a number as large as this one.
        let dead = make("tidegate-run-dead", "4294967295-0.counters");
        let orphan = make("tidegate-run-orphan", &format!("{}-0.counters", std::process::id()));
        let foreign = make("other", "4294967295-0.counters");
        let living = StatsFolder::create_in(&[place.path().into()]).unwrap();
        sweep(place.path(), Duration::from_secs(60));
        assert!(dead.exists(), "too young to be swept");
        sweep(place.path(), Duration::ZERO);
        assert_eq!([&dead, &orphan, &foreign, living.path()].map(|folder| folder.exists()), [false, true, true, true]);
    }
}
