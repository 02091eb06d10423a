//! [`HangWatch`]: a thread of `tidegate run` that looks at the counter pages of the job, and says when it hangs.
//!
//! It only reads pages, as `tidegate top` does, and what the system tells of the processes. Where a look takes long, as
//! with a thousand ranks, looks become rarer, so that the thread takes at most a thousandth of a processor.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use tidegate_link::log::print_line;
use tidegate_message::Counter;

use super::polling::{Polling, only_one_ran};
use super::quiet::{QuietLook, QuietPeriod, QuietStep};
use super::verdict::{HangVerdict, RankPolls, judge, quiet_time};
use crate::arguments::HangOptions;
use crate::failure::{self, Failure};
use crate::process::{self, State, processor_time};
use crate::top::habit::{PollHabit, stretch};
use crate::top::look::{Identity, Launch, Look, Seen, look};
use crate::top::waits::{by_identity, waits_as_of};

/// Looks in a quiet time.
const LOOKS_IN_QUIET_TIME: u32 = 10;
/// The shortest and the longest time between two looks, unless a look takes long.
const INTERVALS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];
/// The thread takes at most this share of a processor: one part in this many.
const SHARE_MOST: u32 = 1000;
/// A process that has not polled for this long is not in its MPI. Longer than in `tidegate top`, since a loaded machine
/// must not make a rank that waits look like one that computes.
const AWAY_AFTER: Duration = Duration::from_secs(1);
/// Counters that change with all that moves messages.
const MOVING: [Counter; 9] = [
    Counter::PacketsSent,
    Counter::PacketsReceived,
    Counter::MessagesSelf,
    Counter::BytesSent,
    Counter::BytesReceived,
    Counter::BytesRead,
    Counter::BytesBounced,
    Counter::RmaOperations,
    Counter::AtomicOperations,
];

/// The thread, while the job runs.
#[derive(Debug)]
pub struct HangWatch {
    stop: Sender<()>,
    thread: JoinHandle<bool>,
}

impl HangWatch {
    /// Begins to look at the pages in the folder `pages`, unless the user wants none of it. `mpi`: the id of the job's
    /// MPI, if it is known.
    ///
    /// # Errors
    /// If the options contradict each other, or no thread can be made.
    pub fn start(options: &HangOptions, pages: &Path, mpi: Option<&str>) -> Result<Option<Self>, Failure> {
        if options.hang_after.is_zero() {
            let contradiction = "--hang-exit ends a job that hangs, and by --hang-after 0 none ever does";
            return if options.hang_exit { Err(Failure::usage(contradiction)) } else { Ok(None) };
        }
        let (stop, stopped) = mpsc::channel();
        let mut watch = Watch {
            after: options.hang_after,
            ends_job: options.hang_exit,
            pages: pages.to_owned(),
            mpi: mpi.map(str::to_owned),
            interval: (options.hang_after / LOOKS_IN_QUIET_TIME).clamp(INTERVALS[0], INTERVALS[1]),
            launches: HashMap::new(),
        };
        let run = move || {
            let mut pause = watch.interval;
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let begin = processor_time();
                if watch.look(pause * 2) {
                    end_job();
                    return true;
                }
                let cost = processor_time().saturating_sub(begin);
                pause = watch.interval.max(cost * SHARE_MOST);
            }
            false
        };
        let thread = thread::Builder::new().name("hangs".into()).spawn(run);
        let thread = thread.map_err(|error| Failure::own(format!("cannot make a thread: {error}")))?;
        Ok(Some(HangWatch { stop, thread }))
    }

    /// Ends with the job. Returns whether it has ended the job.
    #[must_use]
    pub fn finish(self) -> bool {
        drop(self.stop);
        self.thread.join().unwrap_or(false)
    }
}

/// Asks for the end of the job as a batch system does: by a signal to this process, which passes it on.
fn end_job() {
    print_line(&format!("--hang-exit ends the job, with exit code {}", failure::HUNG));
    // This process may always send itself signals.
    let _ = kill_process(getpid(), Signal::TERM);
}

/// How long each thread of some processes has run, in ticks: by process id, then by thread id.
type Threads = HashMap<u32, HashMap<u32, u64>>;

/// A launch, as it was at the last look.
struct Known {
    look: Look,
    period: QuietPeriod,
    polling: HashMap<Identity, Polling>,
    /// The threads of its processes at some look in this quiet period.
    threads: Option<Threads>,
    /// Whether it was told that no message can move any more.
    is_closed_told: bool,
}

struct Watch {
    after: Duration,
    ends_job: bool,
    pages: PathBuf,
    mpi: Option<String>,
    interval: Duration,
    /// By the endpoint that opened first.
    launches: HashMap<u64, Known>,
}

impl Watch {
    /// Looks at all launches. `counts_most`: how much of the time since the last look counts at most. Returns whether
    /// the job is to be ended.
    fn look(&mut self, counts_most: Duration) -> bool {
        // A folder that goes away is that of a job that ends.
        let Ok(found) = look(&self.pages) else { return false };
        let (mut living, mut closed) = (0, 0);
        let mut known = std::mem::take(&mut self.launches);
        for launch in found.launches.into_iter().filter(|launch| launch.look.processes.iter().any(is_living)) {
            let first = launch.first;
            let before = known.remove(&first);
            let (now, is_closed) = self.look_at(launch, before, counts_most);
            living += 1;
            closed += usize::from(is_closed);
            self.launches.insert(first, now);
        }
        // A page that cannot be read may be of a rank that computes.
        self.ends_job && living > 0 && closed == living && found.gap.is_none()
    }

    /// Looks at a launch, and says what there is to say. Returns what is known of it now, and whether no message of it
    /// can move any more.
    fn look_at(&self, launch: Launch, before: Option<Known>, counts_most: Duration) -> (Known, bool) {
        let mut look = launch.look;
        let Some(mut known) = before else {
            let mut period = QuietPeriod::new(self.after);
            period.observe(QuietLook { at: look.at, counts_most, has_moved: true, was_stopped: false });
            let known = Known { look, period, polling: HashMap::new(), threads: None, is_closed_told: false };
            return (known, false);
        };
        look.follow(&known.look);
        let has_moved = has_moved(&known.look, &look);
        let was_stopped = was_stopped(&known.look, &look);
        let lasted = known.period.lasts();
        let step = known.period.observe(QuietLook { at: look.at, counts_most, has_moved, was_stopped });
        if has_moved || was_stopped {
            (known.polling, known.threads) = (HashMap::new(), None);
            known.is_closed_told &= !has_moved;
        } else {
            add_polling(&mut known.polling, &known.look, &look, known.period.lasts().saturating_sub(lasted));
            if known.threads.is_none() && known.period.lasts() * 2 >= self.after {
                known.threads = Some(threads(&look));
            }
        }
        let mut is_closed = false;
        match step {
            QuietStep::Judge { quiet_for, is_untold } if is_untold || self.may_end(&known, &look) => {
                if let Some(verdict) = self.judge(&known, &look) {
                    is_closed = verdict.closed.is_some();
                    if is_untold || is_closed && !known.is_closed_told {
                        print_line(&verdict.line(quiet_for));
                        known.is_closed_told = is_closed;
                    }
                    if is_untold {
                        known.period.note_told();
                    }
                }
            }
            QuietStep::MovesAgain(after) => print_line(&format!("messages move again, after {}", quiet_time(after))),
            QuietStep::Judge { .. } | QuietStep::Nothing => {}
        }
        known.look = look;
        (known, is_closed)
    }

    /// Whether the job may have to be ended, as far as is seen at little cost.
    fn may_end(&self, known: &Known, now: &Look) -> bool {
        let polls = |seen: &Seen| known.polling.get(&seen.identity()).is_some_and(|it| it.polls_for >= self.after);
        self.ends_job && now.processes.iter().all(|seen| !is_living(seen) || polls(seen))
    }

    fn judge(&self, known: &Known, now: &Look) -> Option<HangVerdict> {
        let of_pages = now.processes.iter().find_map(|seen| seen.first().mpi.as_deref());
        let waits = waits_as_of(Some(&known.look), now, of_pages.or(self.mpi.as_deref()), AWAY_AFTER);
        let polls: Vec<RankPolls> = now
            .processes
            .iter()
            .map(|seen| known.polling.get(&seen.identity()).copied().unwrap_or_default())
            .map(|polling| RankPolls { computes: polling.computes(), all_the_time: polling.polls_for >= self.after })
            .collect();
        let mut verdict = judge(&waits, &polls, is_whole(now))?;
        verdict.closed.take_if(|_| !has_single_threads(known.threads.as_ref(), now));
        Some(verdict)
    }
}

fn is_living(seen: &Seen) -> bool {
    seen.exists != Some(false) && !seen.has_ended()
}

/// Whether a message has moved between two looks, or a process has come or gone.
fn has_moved(before: &Look, now: &Look) -> bool {
    let earlier = by_identity(Some(before));
    let is_same = |seen: &Seen, before: &Seen| {
        is_living(seen) == is_living(before)
            && seen.pages.len() == before.pages.len()
            && MOVING.iter().all(|counter| seen.get(*counter) == before.get(*counter))
    };
    let all_same =
        now.processes.iter().all(|seen| earlier.get(&seen.identity()).is_some_and(|before| is_same(seen, before)));
    !all_same || before.processes.len() != now.processes.len()
}

/// Whether a process goes on that was stopped, or all of them are stopped.
fn was_stopped(before: &Look, now: &Look) -> bool {
    let is_stopped = |seen: &Seen| seen.process.is_some_and(|process| process.state == State::Stopped);
    let earlier = by_identity(Some(before));
    let mut living = now.processes.iter().filter(|seen| is_living(seen));
    let goes_on =
        |seen: &Seen| !is_stopped(seen) && earlier.get(&seen.identity()).is_some_and(|before| is_stopped(before));
    now.processes.iter().any(goes_on) || living.all(is_stopped)
}

/// Takes into account what processes did between two looks, which counts for `time`.
fn add_polling(polling: &mut HashMap<Identity, Polling>, before: &Look, now: &Look, time: Duration) {
    let (earlier, lasted) = (by_identity(Some(before)), now.at.saturating_sub(before.at));
    for seen in &now.processes {
        let stretch = earlier.get(&seen.identity()).and_then(|before| stretch(before, seen, lasted));
        let habit = stretch.map_or(PollHabit::Unclear, |stretch| stretch.habit());
        polling.entry(seen.identity()).or_default().add(habit, time);
    }
}

/// Whether all ranks of a launch are seen, those that have left included, and run on this host.
fn is_whole(look: &Look) -> bool {
    let ranks: HashSet<u32> = look.processes.iter().filter_map(|seen| seen.first().rank).collect();
    let size = look.processes.first().and_then(|seen| seen.first().job_size);
    size.is_some_and(|size| ranks.len() == size as usize && look.processes.len() == ranks.len())
        && look.processes.iter().all(|seen| seen.exists.is_some())
}

/// How long the threads of the processes of this host have run.
fn threads(look: &Look) -> Threads {
    let living = look.processes.iter().filter(|seen| is_living(seen) && seen.exists.is_some());
    living.map(|seen| (seen.first().pid, process::threads(seen.first().pid))).collect()
}

/// Whether no more than one thread of each process has run since `before`.
fn has_single_threads(before: Option<&Threads>, look: &Look) -> bool {
    let Some(before) = before else { return false };
    let accuracy = process::ticks(1);
    let single = |(pid, now): (&u32, &HashMap<u32, u64>)| {
        let earlier = before.get(pid)?;
        let ran = now.iter().map(|(thread, ran)| process::ticks(ran - earlier.get(thread).unwrap_or(&0).min(ran)));
        only_one_ran(&ran.collect::<Vec<_>>(), accuracy).then_some(())
    };
    threads(look).iter().all(|process| single(process).is_some())
}
