//! The jobs that run, at one moment. They are found and read as by `tidegate top`, which looks at each launch of a
//! job; here a job is one thing, since the name of a series must not change when a script launches a second program.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::jobs::{self, Description, FoundJob, processes};
use crate::process::processor_time;
use crate::top::look::{self, Look, look};
use crate::top::view::JobView;
use crate::top::watch::slurm_job;

/// Folders of one user that are looked at at most: they are easily made, and each job costs Prometheus some forty
/// series.
const JOBS_MOST: usize = 256;

/// Letters of a job's name at most.
const ID_MOST: usize = 128;

/// A job, with the launches of its script.
pub struct Job {
    /// Its name, as `tidegate top` takes it.
    pub id: String,
    /// Whose it is.
    pub user: String,
    /// Its number in Slurm; empty where it has none.
    pub slurm_job_id: String,
    /// Where its pages are.
    pub pages: PathBuf,
    /// Its launches, in the order in which they began.
    pub launches: Vec<Launch>,
    /// Whether some of its pages could not be read.
    pub is_incomplete: bool,
}

/// A launch of a job.
pub struct Launch {
    /// By what it is known again.
    pub first: u64,
    /// The differences of two looks at it.
    pub view: JobView,
}

impl Launch {
    /// Whether any of its processes is there.
    pub fn is_alive(&self) -> bool {
        self.view.rows.iter().any(|row| row.presence.is_there())
    }
}

/// The outcome of a look.
#[derive(Default)]
pub struct Jobs {
    /// The jobs that run.
    pub running: Vec<Job>,
    /// How many were left out, since one user has too many.
    pub left_out: usize,
    /// When they were looked at, since the epoch.
    pub at: Duration,
    /// How much processor time the look took.
    pub cost: Duration,
}

/// Looks at jobs, and remembers the look before.
#[derive(Default)]
pub struct Collector {
    /// By folder and the first endpoint of the launch.
    before: HashMap<(PathBuf, u64), Look>,
    /// Names by the numbers of users.
    users: HashMap<u32, String>,
}

impl Collector {
    /// Looks at all jobs.
    pub fn look(&mut self) -> Jobs {
        let start = processor_time();
        // A user who logs in gets a place that was not there before.
        let found = jobs::running(&jobs::places(), &processes::tellers());
        let mut jobs = Jobs { at: tidegate_link::since_epoch(), ..Jobs::default() };
        let mut of_user: HashMap<u32, usize> = HashMap::new();
        let mut before = std::mem::take(&mut self.before);
        // The newest first: where there are too many, the oldest are the most likely to be of runs that were killed.
        for found in found.iter().rev() {
            let count = of_user.entry(found.user).or_default();
            *count += 1;
            match *count <= JOBS_MOST {
                true => jobs.running.extend(self.look_at(found, &mut before)),
                false => jobs.left_out += 1,
            }
        }
        jobs.running.reverse();
        name_apart(&mut jobs.running);
        jobs.cost = processor_time().saturating_sub(start);
        jobs
    }

    /// A job, if it runs. One whose run is on another host is told there: else each host of it would count all ranks.
    fn look_at(&mut self, job: &FoundJob, before: &mut HashMap<(PathBuf, u64), Look>) -> Option<Job> {
        let is_running = match &job.description {
            Some(told) => told.is_running()?,
            None => false,
        };
        let (found, is_incomplete) = match look(&job.pages) {
            Ok(found) => (found.launches, found.gap.is_some()),
            Err(_) => (Vec::new(), true),
        };
        let mut slurm = None;
        let mut launches = Vec::new();
        for look::Launch { first, look: mut now } in found {
            let key = (job.pages.clone(), first);
            let earlier = before.remove(&key);
            if let Some(earlier) = &earlier {
                now.follow(earlier);
            }
            let launch = Launch { first, view: JobView::new(job, None, earlier.as_ref(), &now) };
            // Jobs of long ago may be there as well; a launch that ran at the look before still counts.
            if job.is_living_only && earlier.is_none() && !launch.is_alive() {
                continue;
            }
            slurm = slurm_job(job, &now).or(slurm);
            launches.push(launch);
            self.before.insert(key, now);
        }
        // A killed run leaves its folder, and a folder of pages stays as long as its owner wants: neither is a job.
        if !is_running && !launches.iter().any(Launch::is_alive) {
            return None;
        }
        let slurm = slurm.or_else(|| job.description.as_ref().and_then(Description::slurm_job));
        Some(Job {
            id: cut(&job.id),
            user: self.users.entry(job.user).or_insert_with(|| user_name(job.user)).clone(),
            slurm_job_id: slurm.map(|job| job.id).unwrap_or_default(),
            pages: job.pages.clone(),
            launches,
            is_incomplete,
        })
    }
}

/// A job's name as a label: of a folder with a long path the end. Each of some forty series has it.
fn cut(id: &str) -> String {
    match id.char_indices().rev().nth(ID_MOST) {
        Some((at, letter)) => format!("…{}", &id[at + letter.len_utf8()..]),
        None => id.to_owned(),
    }
}

/// Two jobs of one user may have one id: process ids of containers are their own. Two series of one name and labels
/// would make Prometheus refuse all.
fn name_apart(jobs: &mut [Job]) {
    let mut seen: HashMap<(String, String), usize> = HashMap::new();
    for job in jobs {
        let count = seen.entry((job.user.clone(), job.id.clone())).or_default();
        *count += 1;
        if *count > 1 {
            // No id of a process has such a sign, and folders begin with one.
            job.id = format!("{}#{count}", job.id);
        }
    }
}

/// The name of a user; the number where there is none.
fn user_name(user: u32) -> String {
    tidegate_link::user_name(user).unwrap_or_else(|| user.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_with_one_id_are_named_apart() {
        let job = |id: &str, user: &str| Job {
            id: id.into(),
            user: user.into(),
            slurm_job_id: String::new(),
            pages: PathBuf::new(),
            launches: Vec::new(),
            is_incomplete: false,
        };
        let mut jobs = [job("7", "a"), job("7", "b"), job("7", "a"), job("8", "a"), job("7", "a")];
        name_apart(&mut jobs);
        assert_eq!(jobs.map(|job| job.id), ["7", "7", "7#2", "8", "7#3"]);
    }

    #[test]
    fn a_long_path_is_a_short_label() {
        let path = format!("/{}ä", "x".repeat(4000));
        assert_eq!(cut(&path), format!("…{}ä", "x".repeat(ID_MOST - 1)));
        assert_eq!([cut("7"), cut(&path[..ID_MOST])], ["7".to_owned(), path[..ID_MOST].to_owned()]);
    }

    #[test]
    fn root_has_a_name_and_unknown_users_a_number() {
        assert_eq!([user_name(0), user_name(4_000_000_123)], ["root".to_owned(), "4000000123".into()]);
    }

    #[test]
    fn folders_without_living_processes_are_no_jobs() {
        let folder = tempfile::tempdir().unwrap();
        let mut collector = Collector::default();
        let job = FoundJob::of_pages("7", folder.path());
        assert!(collector.look_at(&job, &mut HashMap::new()).is_none());
        let told = Description::of_this_process(&[], None);
        let job = FoundJob { description: Some(told.clone()), ..job };
        let found = collector.look_at(&job, &mut HashMap::new()).unwrap();
        assert_eq!((found.id.as_str(), found.launches.len(), found.is_incomplete), ("7", 0, false), "it begins");
        let elsewhere = Description { host: "elsewhere".into(), ..told.clone() };
        let elsewhere = FoundJob { description: Some(elsewhere), ..job.clone() };
        assert!(collector.look_at(&elsewhere, &mut HashMap::new()).is_none());
        let killed = FoundJob { description: Some(Description { pid_started_ticks: 1, ..told }), ..job };
        assert!(collector.look_at(&killed, &mut HashMap::new()).is_none());
    }
}
