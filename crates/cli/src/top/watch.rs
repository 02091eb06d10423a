//! Looks at jobs again and again, and remembers the look before.
//!
//! A look reads the pages of all ranks and nothing else, and takes processor time that grows with their number. So that
//! watching takes no more than a hundredth of one processor, the interval is stretched where a look takes more than
//! that part of it ([`pause`]).

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use tidegate_link::{plain, since_epoch};

use crate::failure::Failure;
use crate::jobs::processes::{Teller, tellers};
use crate::jobs::slurm::SlurmJob;
use crate::jobs::{self, Description, FoundJob, belongs_to_other, user_name};
use crate::process::processor_time;
use crate::top::look::{Found, Launch, Look, Seen, look};
use crate::top::view::JobView;

/// A look takes at most one part in so many of the time.
const COST_MOST: u32 = 100;
/// The second look comes early, so that rates are there soon.
const FIRST_INTERVAL: Duration = Duration::from_millis(250);
/// A job that has ended is still shown for so long.
const SHOWN_AFTER_END: Duration = Duration::from_secs(300);

/// Environments are read again after this time: there may be thousands of processes.
const TELLERS_EVERY: Duration = Duration::from_secs(5);

/// Which jobs to look at.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Those that these words of the command line name; empty: all that this user may see.
    pub words: Vec<OsString>,
    /// Of these, those of a job of Slurm.
    pub slurm: Option<String>,
    /// The job of Slurm in which this process is itself: if it has any, they are the ones that are meant.
    pub own_slurm: Option<String>,
}

/// A job that was there at an earlier look.
struct Known {
    look: Look,
    view: JobView,
}

/// Looks at jobs.
pub struct Watcher {
    wanted: Wanted,
    /// What the command line names, or nothing: then all jobs.
    named: Option<Vec<FoundJob>>,
    places: Vec<PathBuf>,
    /// By folder and the first endpoint of the launch.
    known: HashMap<(PathBuf, u64), Known>,
    /// The processes that tell of jobs, as of this moment.
    tellers: Option<(Duration, Vec<Teller>)>,
    /// The names of other users.
    users: HashMap<u32, String>,
}

/// What a look showed.
pub struct Update {
    /// The jobs, those first that began first.
    pub views: Vec<JobView>,
    /// How much processor time the look took.
    pub cost: Duration,
}

impl Watcher {
    /// Of these jobs.
    pub fn new(wanted: Wanted) -> Result<Self, Failure> {
        let places = jobs::places();
        // As each run does: what killed ones left is nobody's.
        crate::folder::sweep_all(&places);
        let named: Vec<Vec<FoundJob>> =
            wanted.words.iter().map(|word| jobs::named(word, &places)).collect::<Result<_, Failure>>()?;
        let named = Some(named.concat()).filter(|_| !wanted.words.is_empty());
        Ok(Watcher { wanted, named, places, known: HashMap::new(), tellers: None, users: HashMap::new() })
    }

    /// Looks at all jobs.
    pub fn look(&mut self) -> Update {
        let start = processor_time();
        let found = match &self.named {
            Some(named) => named.clone(),
            None => {
                let places = self.places.clone();
                jobs::running(&places, self.tellers())
            }
        };
        let mut views: Vec<JobView> = found.iter().flat_map(|job| self.look_at(job)).collect();
        if self.named.is_none() {
            views.sort_by_key(|view| view.runs_for.map(|time| view.at.saturating_sub(time)));
        }
        self.push_ended(&mut views);
        self.keep_wanted(&mut views);
        Update { views, cost: processor_time().saturating_sub(start) }
    }

    /// The processes that tell of jobs.
    fn tellers(&mut self) -> &[Teller] {
        let now = since_epoch();
        let is_fresh = |(then, _): &(Duration, Vec<Teller>)| now.saturating_sub(*then) < TELLERS_EVERY;
        let fresh = self.tellers.take().filter(is_fresh);
        &self.tellers.insert(fresh.unwrap_or_else(|| (now, tellers()))).1
    }

    /// Leaves out the jobs of other jobs of Slurm than the one that is meant.
    fn keep_wanted(&self, views: &mut Vec<JobView>) {
        let is_of = |view: &JobView, word: &str| view.slurm.as_ref().is_some_and(|job| job.is_meant(word));
        if let Some(word) = &self.wanted.slurm {
            views.retain(|view| is_of(view, word));
        } else if let Some(own) = self.wanted.own_slurm.as_ref().filter(|_| self.named.is_none())
            && views.iter().any(|view| is_of(view, own))
        {
            views.retain(|view| is_of(view, own));
        }
    }

    fn look_at(&mut self, job: &FoundJob) -> Vec<JobView> {
        let Found { mut launches, mut gap } = match look(&job.pages) {
            // It has ended since it was found.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
            Err(error) => return vec![self.troubled(job, &error)],
            Ok(found) => found,
        };
        if job.is_living_only {
            launches.retain(|launch| launch.look.processes.iter().any(is_there));
            // Pages of another version say nothing of their processes, which are seen all the same.
            if launches.is_empty() && !(gap.is_some() && self.has_page_of_a_teller(&job.pages)) {
                return Vec::new();
            }
        }
        let user = self.user_of(job);
        if gap.is_some() && launches.is_empty() && user.is_some() && !jobs::sees_all() {
            gap =
                Some(belongs_to_other(&format!("folder {}", plain(&job.pages.display().to_string())), Some(job.user)));
        }
        if launches.is_empty() {
            launches.push(Launch { first: 0, look: Look { at: since_epoch(), processes: Vec::new() } });
        } else {
            // There was no page yet.
            self.known.remove(&(job.pages.clone(), 0));
        }
        let alone = launches.len() == 1;
        let views = launches.into_iter().enumerate().map(|(place, Launch { first, mut look })| {
            let key = (job.pages.clone(), first);
            if let Some(known) = self.known.get(&key) {
                look.follow(&known.look);
            }
            // A number is enough to tell several apart, as in the report, and none is needed for one.
            let launch = (!alone).then_some(place + 1);
            let mut view = JobView::new(job, launch, self.known.get(&key).map(|known| &known.look), &look);
            view.trouble.clone_from(&gap);
            view.user.clone_from(&user);
            view.slurm = slurm_job(job, &look);
            self.known.insert(key, Known { look, view: view.clone() });
            view
        });
        views.collect()
    }

    /// Whether a process that tells of jobs has a page in this folder: the name of each page begins with its process.
    fn has_page_of_a_teller(&self, folder: &Path) -> bool {
        let tellers = self.tellers.as_ref().map_or(&[][..], |(_, tellers)| tellers);
        let pid_of = |entry: fs::DirEntry| entry.file_name().to_str()?.split_once('-')?.0.parse::<u32>().ok();
        let mut pids = fs::read_dir(folder).into_iter().flatten().flatten().filter_map(pid_of);
        pids.any(|pid| tellers.iter().any(|teller| teller.pid == pid))
    }

    /// The name of the user of a job, if it is another one.
    fn user_of(&mut self, job: &FoundJob) -> Option<String> {
        let is_other = job.user != rustix::process::geteuid().as_raw();
        is_other.then(|| self.users.entry(job.user).or_insert_with(|| user_name(job.user)).clone())
    }

    /// The last view of a job whose pages cannot be read, with the reason.
    fn troubled(&self, job: &FoundJob, error: &io::Error) -> JobView {
        let last = self.known.iter().find(|(key, _)| key.0 == job.pages).map(|(_, known)| known.view.clone());
        let mut view = last.unwrap_or_else(|| JobView::new(job, None, None, &Look::default()));
        view.trouble = Some(format!("the counter pages cannot be read: {error}"));
        view
    }

    /// Adds the jobs that were there before and are not now.
    fn push_ended(&mut self, views: &mut Vec<JobView>) {
        let now = since_epoch();
        let is_there = |view: &JobView| views.iter().any(|there| there.id == view.id);
        let mut ended: Vec<JobView> = Vec::new();
        self.known.retain(|_, known| {
            if is_there(&known.view) {
                return true;
            }
            known.view.has_ended = true;
            ended.push(known.view.clone());
            now.saturating_sub(known.look.at) < SHOWN_AFTER_END
        });
        ended.sort_by_key(|view| view.at);
        views.extend(ended);
    }
}

/// The job of Slurm that a launch is: as its pages say, else its processes, else its run.
pub fn slurm_job(found: &FoundJob, now: &Look) -> Option<SlurmJob> {
    let of_pages = now.processes.iter().find_map(|seen| SlurmJob::from_launch(seen.first().launch.as_deref()?));
    // On other hosts the same numbers are those of other processes.
    let mut here = now.processes.iter().filter(|seen| seen.exists == Some(true));
    let mut of_processes = || here.find_map(|seen| found.slurm.get(&seen.first().pid).cloned());
    let of_run = || found.description.as_ref().and_then(Description::slurm_job);
    // A page knows nothing of an array, and its processes do.
    match (of_pages, of_processes()) {
        (Some(pages), Some(process)) => Some(pages.or_task_of(process)),
        (one, other) => one.or(other).or_else(of_run),
    }
}

/// Whether a process may be there: on another host that is not known.
fn is_there(seen: &Seen) -> bool {
    seen.exists != Some(false) && !seen.has_ended()
}

/// How long to wait after a look that took `cost`.
pub fn pause(interval: Duration, cost: Duration) -> Duration {
    interval.saturating_sub(cost).max(cost * (COST_MOST - 1))
}

/// Two looks with an interval between them, as one.
pub fn twice(watcher: &mut Watcher, interval: Duration) -> Update {
    watcher.look();
    thread::sleep(interval);
    watcher.look()
}

/// Looks in a thread of its own, because a folder on another machine may take long to answer, and keys must not wait
/// for it. The thread ends when the sender or the receiver that this returns is dropped; what is sent makes it look at
/// once.
pub fn start(mut watcher: Watcher, interval: Duration) -> io::Result<(Sender<()>, Receiver<Update>)> {
    let ((ask, asked), (tell, told)) = (channel(), channel());
    thread::Builder::new().name("looks".into()).spawn(move || {
        let mut next = interval.min(FIRST_INTERVAL);
        loop {
            let update = watcher.look();
            let wait = pause(next, update.cost);
            next = interval;
            if tell.send(update).is_err() {
                return;
            }
            match asked.recv_timeout(wait) {
                Ok(()) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    })?;
    Ok((ask, told))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_flow::{Config, SchemeName};
    use tidegate_link::{ShmConfig, ShmLink, StatsConfig};

    #[test]
    fn a_look_takes_at_most_a_hundredth_of_the_time() {
        let (interval, ms) = (Duration::from_secs(1), Duration::from_millis);
        assert_eq!(pause(interval, ms(2)), ms(998));
        assert_eq!(pause(interval, ms(20)), ms(1980));
    }

    #[test]
    fn a_folder_without_pages_is_a_job_without_counters_and_ends_when_it_goes() {
        let folder = tempfile::tempdir().unwrap();
        let mut watcher = Watcher::new(Wanted { words: vec![folder.path().into()], ..Wanted::default() }).unwrap();
        let [view] = &watcher.look().views[..] else { panic!() };
        assert_eq!((view.rows.len(), view.has_ended), (0, false));
        drop(folder);
        let [view] = &watcher.look().views[..] else { panic!() };
        assert!(view.has_ended);
    }

    /// A folder with the page of a living process, which names its launch so.
    fn job_of(launch: &str) -> (tempfile::TempDir, ShmLink) {
        let folder = tempfile::tempdir().unwrap();
        let (dir, launch) = (folder.path().to_owned(), Some(launch.to_owned()));
        let stats = StatsConfig { dir, rank: Some(0), job_size: Some(1), launch, ..StatsConfig::default() };
        let flow = Config::new(SchemeName::Dynamic, 3, 16, 2);
        let directory = folder.path().join("segments");
        std::fs::create_dir(&directory).unwrap();
        let link = ShmLink::new(ShmConfig { stats: Some(stats), directory, ..ShmConfig::new(flow) }).unwrap();
        (folder, link)
    }

    #[test]
    fn of_jobs_of_slurm_those_that_are_meant_are_shown() {
        let jobs = ["7000.0", "7000.1", "7001.0", "parent 9"].map(job_of);
        let words: Vec<OsString> = jobs.iter().map(|(folder, _)| folder.path().into()).collect();
        let shown = |slurm: Option<&str>, own: Option<&str>, is_named: bool| {
            let [slurm, own_slurm] = [slurm, own].map(|word| word.map(str::to_owned));
            let mut watcher = Watcher::new(Wanted { words: words.clone(), slurm, own_slurm }).unwrap();
            let named = watcher.named.take().unwrap();
            let mut views: Vec<JobView> = named.iter().flat_map(|job| watcher.look_at(job)).collect();
            watcher.named = is_named.then_some(named);
            watcher.keep_wanted(&mut views);
            views.len()
        };
        assert_eq!(shown(None, None, true), 4);
        assert_eq!([Some("7000"), Some("7000.1"), Some("7002")].map(|word| shown(word, None, true)), [2, 1, 0]);
        // The job that this process is in is meant unless another one is named, or it has none here.
        assert_eq!([Some("7001"), Some("7002")].map(|own| shown(None, own, false)), [1, 4]);
        assert_eq!((shown(None, Some("7001"), true), shown(Some("7000"), Some("7001"), false)), (4, 2));
    }

    #[test]
    fn a_page_of_another_version_is_told_and_no_failure() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("1-0.counters"), "of some other version").unwrap();
        std::fs::write(folder.path().join("1-0\u{1b}[2J.counters"), "of some other version").unwrap();
        let mut watcher = Watcher::new(Wanted { words: vec![folder.path().into()], ..Wanted::default() }).unwrap();
        let [view] = &watcher.look().views[..] else { panic!() };
        let trouble = view.trouble.as_ref().unwrap();
        assert!(trouble.contains("2 pages") && trouble.contains(".counters"), "{trouble}");
        assert!(!trouble.contains('\u{1b}'), "a name of a file speaks to the terminal: {trouble:?}");
    }
}
