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
/// The time to the second look for processes; while none is new, each later one takes twice as long, up to the most.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
const LOOK_AT_LEAST: Duration = Duration::from_secs(64);

/// A thread that waits for the ends of the processes whose pages are in a folder.
#[derive(Debug)]
pub struct DeathWatch {
    /// Closing it ends the thread.
    stop: OwnedFd,
    thread: JoinHandle<Vec<Vec<u32>>>,
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

    /// The process ids of those that have ended, in that order. Those that ended at the same moment, as far as this
    /// thread could tell, are together.
    #[must_use]
    pub fn finish(self) -> Vec<Vec<u32>> {
        drop(self.stop);
        self.thread.join().unwrap_or_default()
    }
}

/// The first of `candidates` that ended, if it was alone.
#[must_use]
pub fn first_of(ended: &[Vec<u32>], candidates: &[u32]) -> Option<u32> {
    let groups = ended.iter().map(|group| group.iter().filter(|pid| candidates.contains(pid)).collect::<Vec<_>>());
    match groups.into_iter().find(|group| !group.is_empty())?[..] {
        [only] => Some(*only),
        _ => None,
    }
}

fn watch(pages: &Path, stopped: &OwnedFd) -> Vec<Vec<u32>> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let (mut known, mut watched, mut ended) = (HashSet::new(), Vec::<(u32, OwnedFd)>::new(), Vec::new());
    let (mut pause, mut next_look) = (LOOK_AGAIN, Instant::now());
    loop {
        let now = Instant::now();
        if now >= next_look {
            let before = known.len();
            let read = stats::read_dir(pages).map(|pages| pages.read).unwrap_or_default();
            for page in read.iter().filter(|page| page.host == host && !page.ended) {
                if known.len() < WATCHED_MOST && known.insert(page.pid) {
                    let pid = i32::try_from(page.pid).ok().and_then(Pid::from_raw);
                    watched.extend(pid.and_then(|pid| Some((page.pid, pidfd_open(pid, PidfdFlags::empty()).ok()?))));
                }
            }
            pause = if known.len() > before { LOOK_AGAIN } else { (pause * 2).min(LOOK_AT_LEAST) };
            next_look = now + pause;
        }
        let mut polled: Vec<PollFd> = vec![PollFd::new(stopped, PollFlags::IN)];
        polled.extend(watched.iter().map(|(_, process)| PollFd::new(process, PollFlags::IN)));
        let wait = next_look.saturating_duration_since(Instant::now());
        let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        match poll(&mut polled, Some(&wait)) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            // Nothing more can be learned; the job goes on without.
            Err(_) => return ended,
        }
        let is_over: Vec<bool> = polled.iter().map(|polled| !polled.revents().is_empty()).collect();
        let mut over = is_over[1..].iter();
        let mut group = Vec::new();
        watched.retain(|(pid, _)| {
            let is_over = over.next().copied().unwrap_or(false);
            group.extend(is_over.then_some(*pid));
            !is_over
        });
        if !group.is_empty() {
            ended.push(group);
        }
        if is_over[0] {
            return ended;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_counts_if_it_was_alone() {
        let ended = [vec![7], vec![3], vec![1, 2]];
        assert_eq!(first_of(&ended, &[1, 2, 3]), Some(3), "7 closed in order");
        assert_eq!((first_of(&ended, &[1, 2]), first_of(&ended, &[9]), first_of(&[], &[1])), (None, None, None));
    }
}
