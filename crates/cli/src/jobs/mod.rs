//! Which jobs there are: the folders of counter pages that runs of this user made ([`crate::folder`]), those that the
//! environments of processes name ([`processes`]), and those that the command line names. Root sees those of all users.
//!
//! No process and no list is kept for this. Each run has a folder on its host, in one of few places, that holds a
//! description of the job; it is removed with the run, and those of killed runs are swept. Some of these places can be
//! written by everybody, so a folder counts only if it is no link, belongs to this user and is closed to all others; to
//! root, if it is closed to all but its owner. No file is read that is not its folder's owner's
//! ([`tidegate_link::files`]).

mod description;
pub mod processes;
pub mod slurm;

use std::collections::HashMap;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tidegate_link::plain;

pub use self::description::Description;
use self::processes::Teller;
use self::slurm::SlurmJob;
use crate::failure::Failure;
use crate::settings::STATS_DIR;
use crate::{folder, process};

/// Folders of one user that are looked into: they are easily made.
const FOLDERS_MOST: usize = 512;

/// A job, or a folder that holds pages of jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundJob {
    /// What to call it: the process id of its run, else the folder.
    pub id: String,
    /// Where its pages are.
    pub pages: PathBuf,
    /// What its run tells, if `tidegate run` runs it.
    pub description: Option<Description>,
    /// The user to whom the folder belongs.
    pub user: u32,
    /// The jobs of Slurm of those of its processes that tell one, by their numbers.
    pub slurm: HashMap<u32, SlurmJob>,
    /// Whether the folder is known by the environment of a process only: what ended jobs have left in it does not
    /// count.
    pub is_living_only: bool,
}

impl FoundJob {
    /// The pages in a folder of this user, of which nothing else is known.
    pub fn of_pages(id: &str, pages: &Path) -> Self {
        FoundJob {
            id: id.to_owned(),
            pages: pages.to_owned(),
            description: None,
            user: this_user(),
            slurm: HashMap::new(),
            is_living_only: false,
        }
    }

    fn in_folder(folder: &Path) -> Self {
        let description = Description::read_in(folder);
        let user = owner(folder);
        // Another host may see a shared folder at another path. A description can be of a user whom root looks at.
        let is_of_user = |pages: &PathBuf| pages.is_dir() && owner(pages) == user;
        let pages = description.as_ref().map(|told| told.pages.clone()).filter(is_of_user);
        let id = match &description {
            Some(told) if told.pid != 0 => told.pid.to_string(),
            _ => plain(&folder.display().to_string()),
        };
        let job = FoundJob::of_pages(&id, &pages.unwrap_or_else(|| folder.to_owned()));
        FoundJob { description, user: user.unwrap_or_else(this_user), ..job }
    }
}

/// This user.
fn this_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether this user may see the jobs of all.
pub fn sees_all() -> bool {
    this_user() == 0
}

/// The owner of a folder, if it is one.
fn owner(folder: &Path) -> Option<u32> {
    folder.metadata().ok().filter(fs::Metadata::is_dir).map(|facts| facts.uid())
}

/// Where jobs are found: where `tidegate run` puts its folders, also if it was started with another XDG_RUNTIME_DIR
/// than this process. To root, those of all users.
pub fn places() -> Vec<PathBuf> {
    let mut places = folder::places(|name| env::var_os(name));
    let runtime = match sees_all() {
        true => fs::read_dir("/run/user").into_iter().flatten().flatten().map(|entry| entry.path()).collect(),
        false => vec![PathBuf::from(format!("/run/user/{}", this_user()))],
    };
    for place in runtime.into_iter().chain(["/dev/shm".into(), "/tmp".into()]) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// The jobs that have a folder in these places, and those that processes tell, in order of their start. Where the
/// environment of this process names a folder of pages, that one counts, too.
pub fn running(places: &[PathBuf], tellers: &[Teller]) -> Vec<FoundJob> {
    let mut of_user: HashMap<Option<u32>, usize> = HashMap::new();
    let mut folders: Vec<PathBuf> = places.iter().flat_map(|place| folders_in(place)).collect();
    folders.retain(|folder| {
        let count = of_user.entry(owner(folder)).or_default();
        *count += 1;
        *count <= FOLDERS_MOST
    });
    let mut found: Vec<FoundJob> = folders.iter().map(|folder| FoundJob::in_folder(folder)).collect();
    found.retain(|job| is_own_folder(&job.pages));
    let whole = |folder: &Path| folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mut known: HashMap<PathBuf, usize> = found.iter().map(|job| whole(&job.pages)).zip(0..).collect();
    let mut places: HashMap<PathBuf, usize> = HashMap::new();
    // The processes of a job tell the same folder, of which there may be hundreds.
    let mut place_of = |folder: &Path| match places.get(folder) {
        Some(place) => *place,
        None => {
            let place = known.get(&whole(folder)).copied().unwrap_or_else(|| {
                let job = FoundJob { is_living_only: true, ..FoundJob::in_folder(folder) };
                *known.entry(whole(&job.pages)).or_insert_with(|| {
                    found.push(job);
                    found.len() - 1
                })
            });
            places.insert(folder.to_owned(), place);
            place
        }
    };
    let of_environment = env::var_os(STATS_DIR).and_then(|value| processes::stats_folder(&value));
    of_environment.filter(|folder| folder.is_dir()).map(|folder| place_of(&folder));
    let told: Vec<(usize, u32, Option<SlurmJob>)> =
        tellers.iter().map(|teller| (place_of(&teller.folder), teller.pid, teller.slurm.clone())).collect();
    let told = told.into_iter().filter_map(|(place, pid, slurm)| Some((place, pid, slurm?)));
    for (place, pid, slurm) in told {
        found[place].slurm.insert(pid, slurm);
    }
    found.sort_by(|one, other| {
        let started = |job: &FoundJob| job.description.as_ref().map_or(0.0, |told| told.started_s);
        started(one).total_cmp(&started(other)).then_with(|| one.id.cmp(&other.id))
    });
    found
}

/// The folders of jobs that lie in one place.
fn folders_in(place: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(place) else { return Vec::new() };
    let is_run = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(folder::PREFIX.as_bytes());
    let folders = entries.flatten().filter(|entry| is_run(&entry.file_name())).map(|entry| entry.path());
    folders.filter(|folder| is_own_folder(folder)).collect()
}

/// Whether this is a folder and no link to one, closed to all but its owner, who is this user; to root, any.
fn is_own_folder(folder: &Path) -> bool {
    folder.symlink_metadata().is_ok_and(|metadata| {
        metadata.is_dir() && (metadata.uid() == this_user() || sees_all()) && metadata.mode() & 0o077 == 0
    })
}

/// The jobs that a word of the command line means: those of a folder, or the job of a process id: of its run, of its
/// launcher or of one of its ranks. `places` as for [`running`].
pub fn named(word: &OsStr, places: &[PathBuf]) -> Result<Vec<FoundJob>, Failure> {
    let folder = Path::new(word);
    match folder.metadata().map(|facts| (facts.is_dir(), facts.uid())) {
        Ok((true, owner)) if fs::read_dir(folder).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied) => {
            return Err(of_other(&format!("folder {}", folder.display()), Some(owner)));
        }
        Ok((true, _)) => {
            let runs = folders_in(folder);
            let folders = if runs.is_empty() { vec![folder.to_owned()] } else { runs };
            return Ok(folders.iter().map(|folder| FoundJob::in_folder(folder)).collect());
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return Err(of_other(&format!("folder {}", folder.display()), None));
        }
        _ => {}
    }
    let pid = word.to_str().and_then(|word| word.parse::<u32>().ok());
    let teller = pid.and_then(processes::teller);
    let tellers = Vec::from_iter(teller.clone());
    let mut found = running(places, &tellers);
    found.retain(|job| *job.id == *word || teller.as_ref().is_some_and(|teller| is_same(&job.pages, &teller.folder)));
    if !found.is_empty() {
        return Ok(found);
    }
    Err(match pid {
        Some(pid) => no_job(pid),
        None => Failure::usage(format!(
            "{} is no folder: name a folder of counter pages (FI_TIDEGATE_STATS_DIR), or a job by the process id of \
             its `tidegate run`, as `tidegate top --once` lists them",
            word.display()
        )),
    })
}

fn is_same(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().ok().zip(other.canonicalize().ok()).is_some_and(|(one, other)| one == other)
}

/// Why a process id names no job.
fn no_job(pid: u32) -> Failure {
    match processes::user_of(pid) {
        Some(user) if user != this_user() && !sees_all() => of_other(&format!("process {pid}"), Some(user)),
        None if process::is_hidden(pid) => of_other(&format!("process {pid}"), None),
        Some(_) => Failure::usage(format!(
            "process {pid} is of no job with counter pages: it is no `tidegate run`, and no FI_TIDEGATE_STATS_DIR in its \
             environment names a folder; `tidegate top --once` lists the jobs of this host"
        )),
        None => Failure::usage(format!(
            "no job {pid} of this user runs on this host: `tidegate top --once` lists those that do; a job of Slurm is \
             named by --slurm {pid}"
        )),
    }
}

fn of_other(what: &str, user: Option<u32>) -> Failure {
    Failure::usage(belongs_to_other(what, user))
}

/// That something belongs to another user, of this name if it is known, and what to do.
pub fn belongs_to_other(what: &str, user: Option<u32>) -> String {
    match user.map(user_name) {
        Some(name) if user == Some(0) => format!("{what} belongs to {name}: run `tidegate top` as {name}"),
        Some(name) => format!("{what} belongs to {name}: run `tidegate top` as root or as {name}"),
        None => format!("{what} belongs to another user: run `tidegate top` as root or as its owner"),
    }
}

/// The name of a user, else the number.
pub fn user_name(user: u32) -> String {
    tidegate_link::user_name(user).unwrap_or_else(|| format!("user {user}"))
}

#[cfg(test)]
mod tests {
    use super::description::FILE;
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
        let found = running(&[place.path().into(), "/nowhere".into()], &[]);
        assert_eq!(found.iter().map(|found| found.pages.clone()).collect::<Vec<_>>(), [job]);
    }

    #[test]
    fn root_finds_the_folders_of_other_users_and_no_pages_of_a_third() {
        const ONE: u32 = 10_001;
        const OTHER: u32 = 10_002;
        if !sees_all() {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let own = |path: &Path, user: u32| std::os::unix::fs::chown(path, Some(user), Some(user)).unwrap();
        let [run, elsewhere] = ["tidegate-run-a", "elsewhere"].map(|name| make(place.path(), name, 0o700));
        Description::of_this_process(&[], None).write_in(&run, &elsewhere).unwrap();
        [&run, &elsewhere, &run.join(FILE)].iter().for_each(|path| own(path, ONE));
        let found = || running(&[place.path().into()], &[]).pop().unwrap();
        assert_eq!((found().user, found().pages), (ONE, elsewhere.clone()));
        own(&elsewhere, OTHER);
        assert_eq!((found().user, found().pages), (ONE, run), "one user's description leads to another's folder");
    }

    #[test]
    fn folders_that_processes_tell_are_jobs_and_each_is_one() {
        let place = tempfile::tempdir().unwrap();
        let run = make(place.path(), "tidegate-run-a", 0o700);
        let other = make(place.path(), "other", 0o755);
        let slurm = |id: &str| SlurmJob::from_launch(&format!("{id}.0"));
        let teller = |pid, folder: &Path, slurm| Teller { pid, folder: folder.to_owned(), slurm };
        let tellers = [
            teller(1, &run, slurm("8")),
            teller(2, &other, None),
            teller(3, &place.path().join("./other"), slurm("9")),
            teller(4, &other, slurm("9")),
        ];
        let found = running(&[place.path().into()], &tellers);
        let of = |folder: &Path| found.iter().find(|job| is_same(&job.pages, folder)).unwrap();
        assert_eq!((found.len(), of(&run).is_living_only, of(&other).is_living_only), (2, false, true));
        let mut pids: Vec<_> = of(&other).slurm.keys().copied().collect();
        pids.sort_unstable();
        assert_eq!((pids, of(&run).slurm.get(&1).cloned()), (vec![3, 4], slurm("8")));
    }

    #[test]
    fn a_description_comes_back_and_names_the_job() {
        let place = tempfile::tempdir().unwrap();
        let folder = make(place.path(), "tidegate-run-a", 0o700);
        let told = Description::of_this_process(&["mpiexec".into(), "a b".into()], Some("mpich"));
        told.write_in(&folder, &folder).unwrap();
        let [found] = &running(&[place.path().into()], &[])[..] else { panic!() };
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
        let found = running(&[place.path().into()], &[]);
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
        assert_eq!(running(&[place.path().into()], &[])[0].pages, pages);
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
            let [found] = &running(&[place.path().into()], &[])[..] else { panic!() };
            assert_eq!((&found.pages, &found.description), (&folder, &None));
        }
        fs::remove_file(folder.join(FILE)).unwrap();
        fs::write(place.path().join("target"), "{\"pid\": 7}").unwrap();
        symlink(place.path().join("target"), folder.join(FILE)).unwrap();
        assert_eq!(running(&[place.path().into()], &[])[0].description, None, "links are not followed");
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
        let this = std::process::id().to_string();
        let none = [("4000000000", "no job 4000000000"), ("/nowhere", "FI_TIDEGATE_STATS_DIR"), (&this, "of no job")];
        for (word, part) in none {
            let failure = named(word.as_ref(), &places).unwrap_err();
            assert!(failure.code == crate::failure::USAGE && failure.to_string().contains(part), "{failure}");
        }
    }
}
