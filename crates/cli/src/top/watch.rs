//! Looks at jobs again and again, and remembers the look before.
//!
//! A look reads the pages of all ranks and nothing else, and takes processor time that grows with their number. So that
//! watching takes no more than a hundredth of one processor, the interval is stretched where a look takes more than
//! that part of it ([`pause`]).

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use tidegate_link::since_epoch;

use crate::failure::Failure;
use crate::jobs::{self, FoundJob};
use crate::process::processor_time;
use crate::top::look::{Found, Launch, Look, look};
use crate::top::view::JobView;

/// A look takes at most one part in so many of the time.
const COST_MOST: u32 = 100;
/// The second look comes early, so that rates are there soon.
const FIRST_INTERVAL: Duration = Duration::from_millis(250);
/// A job that has ended is still shown for so long.
const SHOWN_AFTER_END: Duration = Duration::from_secs(300);

/// A job that was there at an earlier look.
struct Known {
    look: Look,
    view: JobView,
}

/// Looks at jobs.
pub struct Watcher {
    /// What the command line names, or nothing: then all jobs of this user.
    named: Option<Vec<FoundJob>>,
    places: Vec<PathBuf>,
    /// By folder and the first endpoint of the launch.
    known: HashMap<(PathBuf, u64), Known>,
}

/// What a look showed.
pub struct Update {
    /// The jobs, those first that began first.
    pub views: Vec<JobView>,
    /// How much processor time the look took.
    pub cost: Duration,
}

impl Watcher {
    /// Of the jobs that these words of the command line name; of all of this user where there are none.
    pub fn new(words: &[OsString]) -> Result<Self, Failure> {
        let places = jobs::places();
        // As each run does: what killed ones left is nobody's.
        crate::folder::sweep_all(&places);
        let named: Vec<Vec<FoundJob>> =
            words.iter().map(|word| jobs::named(word, &places)).collect::<Result<_, Failure>>()?;
        let named = Some(named.concat()).filter(|_| !words.is_empty());
        Ok(Watcher { named, places, known: HashMap::new() })
    }

    /// Looks at all jobs.
    pub fn look(&mut self) -> Update {
        let start = processor_time();
        let found = self.named.clone().unwrap_or_else(|| jobs::running(&self.places));
        let mut views: Vec<JobView> = found.iter().flat_map(|job| self.look_at(job)).collect();
        self.push_ended(&mut views);
        Update { views, cost: processor_time().saturating_sub(start) }
    }

    fn look_at(&mut self, job: &FoundJob) -> Vec<JobView> {
        let Found { mut launches, gap } = match look(&job.pages) {
            // It has ended since it was found.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
            Err(error) => return vec![self.troubled(job, &error)],
            Ok(found) => found,
        };
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
            self.known.insert(key, Known { look, view: view.clone() });
            view
        });
        views.collect()
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

    #[test]
    fn a_look_takes_at_most_a_hundredth_of_the_time() {
        let (interval, ms) = (Duration::from_secs(1), Duration::from_millis);
        assert_eq!(pause(interval, ms(2)), ms(998));
        assert_eq!(pause(interval, ms(20)), ms(1980));
    }

    #[test]
    fn a_folder_without_pages_is_a_job_without_counters_and_ends_when_it_goes() {
        let folder = tempfile::tempdir().unwrap();
        let mut watcher = Watcher::new(&[folder.path().into()]).unwrap();
        let [view] = &watcher.look().views[..] else { panic!() };
        assert_eq!((view.rows.len(), view.has_ended), (0, false));
        drop(folder);
        let [view] = &watcher.look().views[..] else { panic!() };
        assert!(view.has_ended);
    }

    #[test]
    fn a_page_of_another_version_is_told_and_no_failure() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("1-0.counters"), "of some other version").unwrap();
        let mut watcher = Watcher::new(&[folder.path().into()]).unwrap();
        let [view] = &watcher.look().views[..] else { panic!() };
        assert!(view.trouble.as_ref().unwrap().contains("1-0.counters"), "{:?}", view.trouble);
    }
}
