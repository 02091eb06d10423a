//! Jobs as the environments of their processes tell them: where their pages are, and which job of Slurm they are.
//!
//! A job that was not started by `tidegate run` has no folder that is known beforehand. But the processes that write
//! pages were told where, by FI_TIDEGATE_STATS_DIR, and a user may read the environments of own processes, root those
//! of all. They are read as they were when the program was started, which is when launchers set them.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::slurm::SlurmJob;
use crate::settings::STATS_DIR;

/// More than the system lets a program have.
const BYTES_MOST: u64 = 8 << 20;

/// A process that writes pages, or has started one that does.
#[derive(Clone, Debug, PartialEq)]
pub struct Teller {
    /// Its number.
    pub pid: u32,
    /// The folder of the pages.
    pub folder: PathBuf,
    /// The job of Slurm that it belongs to.
    pub slurm: Option<SlurmJob>,
}

/// All processes whose environment this user may read and that were told where to write pages, in order of their
/// numbers.
pub fn tellers() -> Vec<Teller> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut found: Vec<Teller> = pids.filter_map(teller).collect();
    found.sort_by_key(|teller| teller.pid);
    found
}

/// The same of one process.
pub fn teller(pid: u32) -> Option<Teller> {
    let process = Path::new("/proc").join(pid.to_string());
    let mut environment = Vec::new();
    fs::File::open(process.join("environ")).ok()?.take(BYTES_MOST).read_to_end(&mut environment).ok()?;
    let folder = stats_folder(&variable(&environment, STATS_DIR)?)?;
    // A relative path is that of the process.
    let folder = match folder.is_absolute() {
        true => folder,
        false => fs::read_link(process.join("cwd")).ok()?.join(folder),
    };
    let slurm = SlurmJob::from_variables(|name| variable(&environment, name)?.into_string().ok());
    folder.is_dir().then_some(Teller { pid, folder, slurm })
}

/// The folder that a value of FI_TIDEGATE_STATS_DIR names.
pub fn stats_folder(value: &OsStr) -> Option<PathBuf> {
    let bytes = value.as_bytes();
    // With a question mark the folder may be missing.
    let bytes = bytes.strip_prefix(b"?").unwrap_or(bytes);
    (!bytes.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(bytes)))
}

/// The user of a process, if there is such a process that this user can see.
pub fn user_of(pid: u32) -> Option<u32> {
    fs::metadata(format!("/proc/{pid}")).ok().map(|facts| facts.uid())
}

fn variable(environment: &[u8], name: &str) -> Option<OsString> {
    let value = |entry: &[u8]| Some(entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?.to_vec());
    environment.split(|byte| *byte == 0).find_map(value).map(OsString::from_vec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    struct Ended(Child);

    impl Drop for Ended {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn processes_tell_where_their_pages_are_and_which_job_of_slurm_they_are() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("pages");
        fs::create_dir(&folder).unwrap();
        let start = |value: &str| {
            let mut command = Command::new("sleep");
            command.arg("60").current_dir(place.path()).env(STATS_DIR, value).env("SLURM_JOB_ID", "77");
            Ended(command.env_remove("SLURM_STEP_ID").spawn().unwrap())
        };
        let absolute = folder.display().to_string();
        for value in [absolute.as_str(), "pages", &format!("?{absolute}")] {
            let process = start(value);
            // The new program's environment is there a moment after the process is.
            let mut tries = (0..1000).map(|_| std::thread::sleep(std::time::Duration::from_millis(10)));
            let found = tries.find_map(|()| teller(process.0.id())).unwrap();
            assert_eq!((&found.folder, found.slurm.clone().unwrap().id.as_str()), (&folder, "77"), "{value}");
            assert!(tellers().contains(&found), "{value}");
        }
        for value in ["", "?", "/no/such/folder"] {
            assert_eq!(teller(start(value).0.id()), None, "{value}");
        }
        assert_eq!((teller(u32::MAX), user_of(u32::MAX)), (None, None));
        assert_eq!(user_of(std::process::id()), Some(rustix::process::geteuid().as_raw()));
    }
}
