//! Which jobs there are: the folders of counter pages that runs of this user made ([`crate::folder`]), and those that
//! the command line names.
//!
//! No process and no list is kept for this. Each run has a folder on its host, in one of few places, that holds a
//! description of the job; it is removed with the run, and those of killed runs are swept. Some of these places can be
//! written by everybody, so a folder counts only if it is no link, belongs to this user and is closed to all others.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tidegate_link::files::read_left;

use crate::failure::Failure;
use crate::recording::text;
use crate::{folder, process};

/// The description's name in the folder.
const FILE: &str = "job.json";
/// A longer description is none of ours: a command may have 2 MiB.
const BYTES_MOST: u64 = 16 << 20;

/// What a run tells of its job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Description {
    /// The program and its arguments.
    #[serde(deserialize_with = "text::list")]
    pub command: Vec<String>,
    /// The MPI's id, if recognised.
    #[serde(deserialize_with = "text::perhaps")]
    pub mpi: Option<String>,
    /// The host of the run.
    #[serde(deserialize_with = "text::one")]
    pub host: String,
    /// The process of the run there.
    pub pid: u32,
    /// When that process started, in ticks since its host did.
    pub pid_started_ticks: u64,
    /// When the job started, in seconds since the epoch.
    pub started_s: f64,
    /// Where the pages are.
    #[serde(with = "any_path")]
    pub pages: PathBuf,
}

/// A path as text, or as its bytes where it is none.
mod any_path {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Form {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        let bytes = || Form::Bytes(path.as_os_str().as_bytes().to_vec());
        path.to_str().map_or_else(bytes, |text| Form::Text(text.to_owned())).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Ok(match Form::deserialize(from)? {
            Form::Text(text) => text.into(),
            Form::Bytes(bytes) => OsString::from_vec(bytes).into(),
        })
    }
}

impl Description {
    /// What this process is about to run.
    pub fn of_this_process(command: &[OsString], mpi: Option<&str>) -> Self {
        let pid = std::process::id();
        Description {
            command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            mpi: mpi.map(str::to_owned),
            host: process::host_name(),
            pid,
            pid_started_ticks: process::find(pid).map_or(0, |process| process.started_ticks),
            started_s: tidegate_link::since_epoch().as_secs_f64(),
            pages: PathBuf::new(),
        }
    }

    /// Leaves the description in a folder. `pages`: where the pages are.
    pub fn write_in(&self, folder: &Path, pages: &Path) -> io::Result<()> {
        let text = serde_json::to_vec(&Description { pages: pages.to_owned(), ..self.clone() })?;
        // Under another name first, so that nobody reads half of it.
        let draft = folder.join("job.json.new");
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?.write_all(&text)?;
        fs::rename(draft, folder.join(FILE))
    }

    fn read_in(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&read_left(&folder.join(FILE), BYTES_MOST).ok()?).ok()
    }

    /// Whether the process of the run exists; `None` if it is on another host.
    pub fn is_running(&self) -> Option<bool> {
        let is_it = |process: process::Process| process.is_alive() && process.started_ticks == self.pid_started_ticks;
        (self.host == process::host_name()).then(|| process::find(self.pid).is_some_and(is_it))
    }
}

/// A job, or a folder that holds pages of jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundJob {
    /// What to call it: the process id of its run, else the folder.
    pub id: String,
    /// Where its pages are.
    pub pages: PathBuf,
    /// What its run tells, if `tidegate run` runs it.
    pub description: Option<Description>,
}

impl FoundJob {
    fn in_folder(folder: &Path) -> Self {
        let description = Description::read_in(folder);
        // Another host may see a shared folder at another path.
        let pages = description.as_ref().map(|told| told.pages.clone()).filter(|pages| pages.is_dir());
        let id = match &description {
            Some(told) if told.pid != 0 => told.pid.to_string(),
            _ => folder.display().to_string(),
        };
        FoundJob { id, pages: pages.unwrap_or_else(|| folder.to_owned()), description }
    }
}

/// Where jobs of this user are found: where `tidegate run` puts its folders, also if it was started with another
/// XDG_RUNTIME_DIR than this process.
pub fn places() -> Vec<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let mut places = folder::places(|name| env::var_os(name));
    for place in [PathBuf::from(format!("/run/user/{user}")), "/dev/shm".into(), "/tmp".into()] {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// The jobs of this user that have a folder in these places, in order of their start.
pub fn running(places: &[PathBuf]) -> Vec<FoundJob> {
    let mut found: Vec<FoundJob> = places.iter().flat_map(|place| runs_in(place)).collect();
    found.retain(|job| is_own_folder(&job.pages));
    found.sort_by(|one, other| {
        let started = |job: &FoundJob| job.description.as_ref().map_or(0.0, |told| told.started_s);
        started(one).total_cmp(&started(other)).then_with(|| one.id.cmp(&other.id))
    });
    found
}

/// The jobs whose folders lie in one place.
fn runs_in(place: &Path) -> Vec<FoundJob> {
    let Ok(entries) = fs::read_dir(place) else { return Vec::new() };
    let is_run = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(folder::PREFIX.as_bytes());
    let folders = entries.flatten().filter(|entry| is_run(&entry.file_name())).map(|entry| entry.path());
    folders.filter(|folder| is_own_folder(folder)).map(|folder| FoundJob::in_folder(&folder)).collect()
}

/// Whether this is a folder and no link to one, ours, and closed to all others.
fn is_own_folder(folder: &Path) -> bool {
    folder.symlink_metadata().is_ok_and(|metadata| {
        metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o077 == 0
    })
}

/// The jobs that a word of the command line means: those of a folder, or the job of a process id. `places` as for
/// [`running`].
pub fn named(word: &OsStr, places: &[PathBuf]) -> Result<Vec<FoundJob>, Failure> {
    let folder = Path::new(word);
    if folder.is_dir() {
        let runs = runs_in(folder);
        return Ok(if runs.is_empty() { vec![FoundJob::in_folder(folder)] } else { runs });
    }
    let found: Vec<FoundJob> = running(places).into_iter().filter(|job| *job.id == *word).collect();
    if found.is_empty() {
        let is_number = word.as_encoded_bytes().iter().all(u8::is_ascii_digit);
        let word = word.display();
        let text = match is_number {
            true => format!("no job {word} of this user runs on this host: `tidegate top --once` lists those that do"),
            false => format!(
                "{word} is no folder: name a folder of counter pages (FI_TIDEGATE_STATS_DIR), or a job by the process \
                 id of its `tidegate run`, as `tidegate top --once` lists them"
            ),
        };
        return Err(Failure::usage(text));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn make(place: &Path, name: &str, mode: u32) -> PathBuf {
        let folder = place.join(name);
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        folder
    }

    #[test]
    fn own_closed_folders_are_jobs_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let job = make(place.path(), "tidegate-run-a", 0o700);
        make(place.path(), "tidegate-run-open", 0o755);
        let other = make(place.path(), "other", 0o700);
        symlink(&other, place.path().join("tidegate-run-link")).unwrap();
        fs::write(place.path().join("tidegate-run-file"), "").unwrap();
        let found = running(&[place.path().into(), "/nowhere".into()]);
        assert_eq!(found.iter().map(|found| found.pages.clone()).collect::<Vec<_>>(), [job]);
    }

    #[test]
    fn a_description_comes_back_and_names_the_job() {
        let place = tempfile::tempdir().unwrap();
        let folder = make(place.path(), "tidegate-run-a", 0o700);
        let told = Description::of_this_process(&["mpiexec".into(), "a b".into()], Some("mpich"));
        told.write_in(&folder, &folder).unwrap();
        let [found] = &running(&[place.path().into()])[..] else { panic!() };
        assert_eq!(found.id, std::process::id().to_string());
        let back = found.description.clone().unwrap();
        assert_eq!((back.is_running(), back.command), (Some(true), vec!["mpiexec".to_owned(), "a b".into()]));
        let gone = Description { pid_started_ticks: 1, ..told.clone() };
        assert_eq!(gone.is_running(), Some(false), "another process with that number");
        assert_eq!(Description { host: "elsewhere".into(), ..told }.is_running(), None);
    }

    #[test]
    fn pages_elsewhere_count_if_they_are_ours() {
        let place = tempfile::tempdir().unwrap();
        let shared = make(place.path(), "shared", 0o700);
        let told = Description::of_this_process(&[], None);
        for (name, pages) in [("tidegate-run-a", shared.clone()), ("tidegate-run-b", "/".into())] {
            told.write_in(&make(place.path(), name, 0o700), &pages).unwrap();
        }
        let found = running(&[place.path().into()]);
        assert_eq!(found.iter().map(|found| found.pages.clone()).collect::<Vec<_>>(), [shared]);
    }

    #[test]
    fn folders_may_have_any_names() {
        let place = tempfile::tempdir().unwrap();
        let name: &OsStr = OsStrExt::from_bytes(b"shared\xff\xfe");
        let pages = place.path().join(name);
        fs::create_dir(&pages).unwrap();
        fs::set_permissions(&pages, Permissions::from_mode(0o700)).unwrap();
        let run = make(place.path(), "tidegate-run-a", 0o700);
        Description::of_this_process(&[], None).write_in(&run, &pages).unwrap();
        assert_eq!(running(&[place.path().into()])[0].pages, pages);
        assert_eq!(named(pages.as_os_str(), &[]).unwrap()[0].pages, pages);
        let missing = place.path().join("no").join(name);
        assert!(named(missing.as_os_str(), &[]).unwrap_err().to_string().contains("is no folder"));
    }

    #[test]
    fn a_torn_or_foreign_description_is_no_error() {
        let place = tempfile::tempdir().unwrap();
        let folder = make(place.path(), "tidegate-run-a", 0o700);
        for text in ["{\"command\": [", "[1]", ""] {
            fs::write(folder.join(FILE), text).unwrap();
            let [found] = &running(&[place.path().into()])[..] else { panic!() };
            assert_eq!((&found.pages, &found.description), (&folder, &None));
        }
        fs::remove_file(folder.join(FILE)).unwrap();
        fs::write(place.path().join("target"), "{\"pid\": 7}").unwrap();
        symlink(place.path().join("target"), folder.join(FILE)).unwrap();
        assert_eq!(running(&[place.path().into()])[0].description, None, "links are not followed");
    }

    #[test]
    fn words_name_folders_runs_in_them_and_process_ids() {
        let place = tempfile::tempdir().unwrap();
        let places = [place.path().to_owned()];
        let word = place.path().as_os_str();
        assert_eq!(named(word, &places).unwrap()[0].pages, place.path(), "a folder of pages");
        let run = make(place.path(), "tidegate-run-a", 0o700);
        let told = Description { pid: 4711, ..Description::default() };
        told.write_in(&run, &run).unwrap();
        assert_eq!(named(word, &places).unwrap()[0].pages, run, "a shared folder");
        assert_eq!(named("4711".as_ref(), &places).unwrap()[0].pages, run);
        for (word, part) in [("4712", "no job 4712"), ("/nowhere", "FI_TIDEGATE_STATS_DIR")] {
            let failure = named(word.as_ref(), &places).unwrap_err();
            assert!(failure.code == crate::failure::USAGE && failure.to_string().contains(part), "{failure}");
        }
    }
}
