//! [`DeathWatch`]: in which order processes of a job end, as the system tells. A launcher ends the others of a failed
//! job within milliseconds of the first, and some launchers say neither which that was nor why.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tidegate_link::stats;

/// Processes that are watched at most: each takes a descriptor.
const WATCHED_MOST: usize = 512;
/// The time between two looks for processes, until there are some; while none is new, each later one takes twice as
/// long, up to the most.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
const LOOK_AT_LEAST: Duration = Duration::from_secs(8);
/// A look takes at most this share of the time to the next: one part in this many.
const SHARE_MOST: u32 = 200;

/// The order in which processes ended.
#[derive(Clone, Debug, Default)]
pub struct Deaths {
    /// The host on which they were watched.
    host: String,
    /// All that were watched, by process id.
    watched: HashSet<u32>,
    /// Those that ended, in that order. Processes that ended at the same moment, as far as could be told, are together.
    ended: Vec<Vec<u32>>,
}

impl Deaths {
    /// These processes of a host ended one after the other, for tests.
    #[cfg(test)]
    pub fn of(host: &str, ended: &[u32]) -> Self {
        let (watched, ended) = (ended.iter().copied().collect(), ended.iter().map(|pid| vec![*pid]).collect());
        Deaths { host: host.to_owned(), watched, ended }
    }

    /// The first of these processes of `host` that ended, if it was alone and all of them were watched.
    #[must_use]
    pub fn first_of(&self, host: &str, processes: &[u32]) -> Option<u32> {
        if host != self.host || !processes.iter().all(|pid| self.watched.contains(pid)) {
            return None;
        }
        let of_these =
            |group: &Vec<u32>| group.iter().copied().filter(|pid| processes.contains(pid)).collect::<Vec<_>>();
        match self.ended.iter().map(of_these).find(|group| !group.is_empty())?[..] {
            [only] => Some(only),
            _ => None,
        }
    }
}

/// A thread that waits for the ends of the processes whose pages are in a folder.
#[derive(Debug)]
pub struct DeathWatch {
    /// Closing it ends the thread.
    stop: OwnedFd,
    thread: JoinHandle<Deaths>,
}

impl DeathWatch {
    /// Begins. `None`: the system has no descriptors or threads left, or none for processes.
    #[must_use]
    pub fn start(pages: &Path) -> Option<Self> {
        let (stopped, stop) = pipe_with(PipeFlags::CLOEXEC).ok()?;
        let pages = pages.to_owned();
        let run = move || watch(&pages, &stopped);
        let thread = thread::Builder::new().name("deaths".into()).spawn(run).ok()?;
        Some(DeathWatch { stop, thread })
    }

    /// Ends with the job.
    #[must_use]
    pub fn finish(self) -> Deaths {
        drop(self.stop);
        self.thread.join().unwrap_or_default()
    }
}

fn watch(pages: &Path, stopped: &OwnedFd) -> Deaths {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let mut deaths = Deaths { host, ..Deaths::default() };
    let mut living: Vec<(u32, OwnedFd)> = Vec::new();
    let (mut pause, mut next_look) = (LOOK_AGAIN, Instant::now());
    loop {
        let now = Instant::now();
        if now >= next_look {
            let before = deaths.watched.len();
            let read = stats::read_dir(pages).map(|pages| pages.read).unwrap_or_default();
            for page in read.iter().filter(|page| page.host == deaths.host && !page.ended) {
                if living.len() < WATCHED_MOST
                    && !deaths.watched.contains(&page.pid)
                    && let Some(pid) = i32::try_from(page.pid).ok().and_then(Pid::from_raw)
                    && let Ok(process) = pidfd_open(pid, PidfdFlags::empty())
                {
                    deaths.watched.insert(page.pid);
                    living.push((page.pid, process));
                }
            }
            let has_new = deaths.watched.len() > before || deaths.watched.is_empty();
            pause = if has_new { LOOK_AGAIN } else { (pause * 2).min(LOOK_AT_LEAST) };
            next_look = now + pause.max(now.elapsed() * SHARE_MOST);
        }
        let mut polled: Vec<PollFd> = vec![PollFd::new(stopped, PollFlags::IN)];
        polled.extend(living.iter().map(|(_, process)| PollFd::new(process, PollFlags::IN)));
        let wait = next_look.saturating_duration_since(Instant::now());
        let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        match poll(&mut polled, Some(&wait)) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            // Nothing more can be learned; the job goes on without.
            Err(_) => return deaths,
        }
        let is_over: Vec<bool> = polled.iter().map(|polled| !polled.revents().is_empty()).collect();
        let mut over = is_over[1..].iter();
        let mut group = Vec::new();
        living.retain(|(pid, _)| {
            let is_over = over.next().copied().unwrap_or(false);
            group.extend(is_over.then_some(*pid));
            !is_over
        });
        if !group.is_empty() {
            deaths.ended.push(group);
        }
        if is_over[0] {
            return deaths;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_counts_if_it_was_alone_and_all_were_watched() {
        let ended = vec![vec![7], vec![3], vec![1, 2]];
        let deaths = Deaths { host: "here".into(), watched: [1, 2, 3, 5, 7].into(), ended };
        let first = |pids: &[u32]| deaths.first_of("here", pids);
        assert_eq!(first(&[1, 2, 3, 5]), Some(3), "7 closed in order, and 5 still lives");
        assert_eq!((first(&[1, 2]), first(&[]), first(&[3, 9])), (None, None, None));
        assert_eq!(deaths.first_of("there", &[3]), None);
    }
}
